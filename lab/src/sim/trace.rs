//! The record of a run: equal seeds give equal records.

use std::collections::VecDeque;
use std::fmt;

use super::Nanos;

/// One thing that happened. Holds no address and no pointer, since those differ from run to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceEvent {
    /// What happened, a fixed name such as `"KeSetEvent"`.
    pub kind: &'static str,
    /// Whom it concerns (a machine, a port, a queue), by number.
    pub subject: u64,
    /// A value that goes with it.
    pub value: u64,
    /// Free text, empty if there is nothing to say.
    pub text: String,
}

impl TraceEvent {
    /// An event without text.
    pub fn new(kind: &'static str, subject: u64, value: u64) -> Self {
        Self { kind, subject, value, text: String::new() }
    }

    /// An event with text.
    pub fn text(kind: &'static str, subject: u64, text: impl Into<String>) -> Self {
        Self { kind, subject, value: 0, text: text.into() }
    }
}

/// A [`TraceEvent`] and when it happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub at: Nanos,
    pub event: TraceEvent,
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TraceEvent { kind, subject, value, text } = &self.event;
        write!(f, "{:>14} {kind} {subject} {value:#x} {text}", self.at)
    }
}

/// The last records, and a hash over all of them.
pub(super) struct Trace {
    hash: u64,
    count: u64,
    records: VecDeque<Record>,
    capacity: usize,
}

impl Trace {
    pub fn new(capacity: usize) -> Self {
        // The offset basis of FNV-1a.
        Self { hash: 0xCBF2_9CE4_8422_2325, count: 0, records: VecDeque::new(), capacity }
    }

    /// Adds to the hash alone: for what is too frequent to keep.
    pub fn mix(&mut self, at: Nanos, kind: &str, subject: u64, value: u64) {
        self.count += 1;
        self.word(at);
        self.bytes(kind.as_bytes());
        self.word(subject);
        self.word(value);
    }

    pub fn push(&mut self, at: Nanos, event: TraceEvent) {
        self.mix(at, event.kind, event.subject, event.value);
        self.bytes(event.text.as_bytes());
        if self.capacity == 0 {
            return;
        }
        if self.records.len() == self.capacity {
            self.records.pop_front();
        }
        self.records.push_back(Record { at, event });
    }

    pub fn hash(&self) -> u64 {
        self.hash
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn records(&self) -> impl Iterator<Item = &Record> {
        self.records.iter()
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.word(u64::from_le_bytes(word));
        }
    }

    /// FNV-1a by words, with a rotation so that high bits reach low ones.
    fn word(&mut self, word: u64) {
        self.hash = (self.hash ^ word).wrapping_mul(0x0000_0100_0000_01B3).rotate_left(29);
    }
}
