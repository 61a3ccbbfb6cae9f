//! The system event log, as far as NDIS writes it for a miniport (`NdisWriteErrorLogEntry`).

use std::sync::{Arc, Mutex, PoisonError};

use crate::sim::Nanos;

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventLogEntry {
    /// When it was written.
    pub time: Nanos,
    /// The adapter's name, or the driver's.
    pub source: String,
    /// `NDIS_ERROR_CODE`.
    pub code: u32,
    /// The values that went with it.
    pub values: Vec<u32>,
}

/// Entries kept. A log written faster than anybody reads it must not eat the memory of a long run.
const CAPACITY: usize = 4096;

#[derive(Default)]
struct Entries {
    kept: std::collections::VecDeque<EventLogEntry>,
    written: u64,
}

/// The log of one host.
#[derive(Clone, Default)]
pub struct EventLog(Arc<Mutex<Entries>>);

impl EventLog {
    /// Appends an entry; the oldest one goes if the log is full.
    pub fn write(&self, entry: EventLogEntry) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.kept.len() == CAPACITY {
            entries.kept.pop_front();
        }
        entries.kept.push_back(entry);
        entries.written += 1;
    }

    /// Everything kept, oldest first.
    pub fn entries(&self) -> Vec<EventLogEntry> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).kept.iter().cloned().collect()
    }

    /// How many entries were ever written.
    pub fn written(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).written
    }

    /// How many of the kept entries were written at or after `since`: a driver must not flood the log.
    pub fn since(&self, since: Nanos) -> usize {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.kept.iter().filter(|entry| entry.time >= since).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_log_drops_the_oldest_and_still_counts() {
        let log = EventLog::default();
        for time in 0..CAPACITY as u64 + 5 {
            log.write(EventLogEntry { time, source: "a".into(), code: 1, values: vec![] });
        }
        assert_eq!(log.entries().len(), CAPACITY);
        assert_eq!(log.entries()[0].time, 5);
        assert_eq!(log.written(), CAPACITY as u64 + 5);
        assert_eq!(log.since(CAPACITY as u64), 5);
    }
}
