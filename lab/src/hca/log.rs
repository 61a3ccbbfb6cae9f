//! The typed log of an HCA: what was created, destroyed, moved and called, when, at which IRQL and in which
//! callback. The timeline of the main job and the tests of the fixed decisions read it.

use crate::sim::Lock;
use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::handle::{Handle, Kind};
use super::qp_state::QpState;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A verb made an object.
    Created(Handle),
    /// A verb destroyed an object.
    Destroyed(Handle),
    /// A queue pair changed state.
    Transition {
        /// Its number.
        qpn: u32,
        /// State before.
        from: QpState,
        /// State after.
        to: QpState,
        /// Did a verb ask for it (or an error of the hardware)?
        asked: bool,
    },
    /// A queue pair has another Q_Key.
    QKey {
        /// Its number.
        qpn: u32,
        /// The Q_Key from now on.
        qkey: u32,
    },
    /// A Plug and Play callback of the client begins.
    PnpBegin {
        /// `IB_PNP_*`.
        event: &'static str,
    },
    /// It returned.
    PnpEnd {
        /// `IB_PNP_*`.
        event: &'static str,
        /// The client's status.
        status: i32,
    },
    /// A multicast group was joined, or the join failed.
    Joined {
        /// Group.
        mgid: [u8; 16],
        /// LID of the group, 0 if it failed.
        mlid: u16,
        /// Access layer status, 0 for success.
        status: i32,
    },
    /// A multicast group was left.
    Left {
        /// Group.
        mgid: [u8; 16],
    },
    /// A query of the subnet administrator ended.
    Queried {
        /// Attribute id.
        attribute: u16,
        /// Access layer status, 0 for success.
        status: i32,
        /// Requests sent, retries included.
        sent: u32,
    },
    /// An asynchronous event was reported.
    Async {
        /// `IB_AE_*`.
        code: i32,
    },
}

/// One line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Simulated time in nanoseconds.
    pub at: u64,
    /// IRQL at which it happened; hardware events are logged at the IRQL of the machine's interrupt, 0xff.
    pub irql: u8,
    /// The driver's handler, or the thread or DPC, in which it happened.
    pub cause: String,
    /// What.
    pub event: Event,
}

/// IRQL noted for what the hardware did by itself.
pub const HARDWARE: u8 = 0xff;

#[derive(Debug, Default)]
struct Inner {
    entries: Vec<Entry>,
    created: BTreeMap<Kind, u64>,
    destroyed: BTreeMap<Kind, u64>,
}

/// Verbs that can be told apart.
const VERBS: usize = 64;
/// IRQLs that are counted apart: PASSIVE_LEVEL, APC_LEVEL, DISPATCH_LEVEL and all above.
const LEVELS: usize = 3;

/// Every verb that was ever called, in order of its first call.
static NAMES: Lock<Vec<&'static str>> = Lock::new(Vec::new());

/// A verb, numbered at its first call so that counting one costs an addition.
#[derive(Debug)]
pub struct Verb {
    /// Its name.
    pub name: &'static str,
    number: OnceLock<usize>,
}

impl Verb {
    /// A verb of this name.
    pub const fn new(name: &'static str) -> Self {
        Self { name, number: OnceLock::new() }
    }

    fn number(&self) -> usize {
        *self.number.get_or_init(|| {
            let mut names = NAMES.lock();
            let known = names.iter().position(|name| *name == self.name);
            known.unwrap_or_else(|| {
                names.push(self.name);
                names.len() - 1
            })
        })
    }
}

/// The log of one HCA.
#[derive(Debug)]
pub struct Log {
    inner: Lock<Inner>,
    verbs: [[AtomicU64; LEVELS]; VERBS],
}

impl Default for Log {
    fn default() -> Self {
        Self { inner: Lock::default(), verbs: std::array::from_fn(|_| Default::default()) }
    }
}

impl Log {
    /// Notes an event.
    pub fn note(&self, at: u64, irql: u8, cause: &str, event: Event) {
        let mut inner = self.inner.lock();
        match &event {
            Event::Created(handle) => *inner.created.entry(handle.kind).or_default() += 1,
            Event::Destroyed(handle) => *inner.destroyed.entry(handle.kind).or_default() += 1,
            _ => {}
        }
        // Address vectors and queries come with the traffic: counted, but a timeline of them says nothing.
        let traffic = matches!(&event, Event::Created(h) | Event::Destroyed(h)
            if matches!(h.kind, Kind::Av | Kind::Query));
        if !traffic {
            inner.entries.push(Entry { at, irql, cause: cause.to_owned(), event });
        }
    }

    /// Counts a verb.
    pub fn verb(&self, verb: &Verb, irql: u8) {
        if let Some(levels) = self.verbs.get(verb.number()) {
            levels[usize::from(irql).min(LEVELS - 1)].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// All events so far, oldest first.
    pub fn entries(&self) -> Vec<Entry> {
        self.inner.lock().entries.clone()
    }

    /// Events from index `from` on, for a reader that follows the log.
    pub fn entries_from(&self, from: usize) -> Vec<Entry> {
        self.inner.lock().entries.get(from..).unwrap_or_default().to_vec()
    }

    /// Objects of a kind created so far.
    pub fn created(&self, kind: Kind) -> u64 {
        self.inner.lock().created.get(&kind).copied().unwrap_or(0)
    }

    /// Objects of a kind destroyed so far.
    pub fn destroyed(&self, kind: Kind) -> u64 {
        self.inner.lock().destroyed.get(&kind).copied().unwrap_or(0)
    }

    /// How often each verb was called, by the IRQL of the caller.
    pub fn verbs(&self) -> BTreeMap<(&'static str, u8), u64> {
        let names = NAMES.lock().clone();
        let mut counts = BTreeMap::new();
        for (name, levels) in names.into_iter().zip(&self.verbs) {
            for (irql, count) in levels.iter().enumerate() {
                let count = count.load(Ordering::Relaxed);
                if count > 0 {
                    counts.insert((name, irql as u8), count);
                }
            }
        }
        counts
    }

    /// Calls of one verb at any IRQL.
    pub fn calls(&self, verb: &str) -> u64 {
        self.verbs().iter().filter(|((name, _), _)| *name == verb).map(|(_, n)| n).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counters follow the events, and traffic objects are counted without a line each.
    #[test]
    fn counts_and_lines() {
        let log = Log::default();
        let handle = |kind| Handle { hca: 0, kind, serial: 1 };
        log.note(1, 0, "init", Event::Created(handle(Kind::Qp)));
        log.note(2, 0, "worker", Event::Created(handle(Kind::Av)));
        log.note(3, 0, "halt", Event::Destroyed(handle(Kind::Qp)));
        static POST: Verb = Verb::new("post_send");
        log.verb(&Verb::new("create_qp"), 0);
        log.verb(&POST, 2);
        log.verb(&POST, 0);
        assert_eq!(log.created(Kind::Qp), 1);
        assert_eq!(log.destroyed(Kind::Qp), 1);
        assert_eq!(log.created(Kind::Av), 1);
        assert_eq!(log.entries().len(), 2);
        assert_eq!(log.entries_from(1).len(), 1);
        assert_eq!(log.calls("post_send"), 2);
        assert_eq!(log.verbs()[&("post_send", 2)], 1);
    }
}
