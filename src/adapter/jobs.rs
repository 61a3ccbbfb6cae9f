//! What the PASSIVE worker has been asked to do: a set of bits that queues the work item once, however often and
//! from wherever it is asked.

use bitflags::bitflags;
use core::sync::atomic::{AtomicU32, Ordering};

bitflags! {
    /// Work that needs PASSIVE_LEVEL.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Jobs: u32 {
        /// MiniportResetEx was called.
        const RESET = 1 << 0;
        /// A get, join or leave of the broadcast group ended.
        const BROADCAST = 1 << 1;
        /// The retry timer of the broadcast join fired.
        const RETRY = 1 << 2;
        /// Peers wait for path queries or address handles, or path answers came.
        const PATHS = 1 << 3;
        /// The set of wanted groups changed, or the join or leave of one ended.
        const GROUPS = 1 << 4;
        /// A second has passed.
        const TICK = 1 << 5;
        /// A receive poll used up its budget.
        const POLL = 1 << 6;
        /// IBAL reported an asynchronous error of the QP.
        const QP_ERROR = 1 << 7;
        /// IBAL reported an asynchronous error of a CQ.
        const CQ_ERROR = 1 << 8;
        /// MiniportHaltEx wants the QP taken down.
        const HALT = 1 << 9;
    }
}

/// The work item is queued or runs.
const BUSY: u32 = 1 << 30;
/// No more work is taken on.
const STOPPED: u32 = 1 << 31;

/// The jobs asked for and the state of the work item, in one word.
#[derive(Debug, Default)]
pub struct Pending(AtomicU32);

impl Pending {
    /// Nothing to do, nothing queued.
    pub const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Asks for `jobs`. `true` if the caller has to queue the work item. Any IRQL.
    #[must_use]
    pub fn request(&self, jobs: Jobs) -> bool {
        self.0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |word| {
                (word & STOPPED == 0).then_some(word | jobs.bits() | BUSY)
            })
            .is_ok_and(|before| before & BUSY == 0)
    }

    /// For the work item: the jobs to do now. `None` when there are none: the work item must return, and whoever
    /// asks next queues it again.
    pub fn take(&self) -> Option<Jobs> {
        let mut word = self.0.load(Ordering::Acquire);
        loop {
            let jobs = Jobs::from_bits_truncate(word);
            let next = if jobs.is_empty() { word & !BUSY } else { word & !jobs.bits() };
            match self.0.compare_exchange_weak(word, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) if jobs.is_empty() => return None,
                Ok(_) => return Some(jobs),
                Err(now) => word = now,
            }
        }
    }

    /// Takes on no more work. What was asked before is still done. `true` if the work item is at rest.
    #[must_use]
    pub fn stop(&self) -> bool {
        self.0.fetch_or(STOPPED, Ordering::AcqRel) & BUSY == 0
    }

    /// Whether [`Pending::stop`] was called.
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Acquire) & STOPPED != 0
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use std::thread;

    #[test]
    fn the_first_request_queues_and_the_others_ride_along() {
        let pending = Pending::new();
        assert!(pending.request(Jobs::TICK));
        assert!(!pending.request(Jobs::RESET));
        assert_eq!(pending.take(), Some(Jobs::TICK | Jobs::RESET));
        assert!(!pending.request(Jobs::PATHS), "the work item still runs");
        assert_eq!(pending.take(), Some(Jobs::PATHS));
        assert_eq!(pending.take(), None);
        assert!(pending.request(Jobs::TICK));
    }

    #[test]
    fn a_stopped_worker_finishes_what_was_asked() {
        let pending = Pending::new();
        assert!(pending.request(Jobs::HALT));
        assert!(!pending.stop());
        assert!(!pending.request(Jobs::TICK));
        assert_eq!(pending.take(), Some(Jobs::HALT));
        assert_eq!(pending.take(), None);
        assert!(pending.stop());
    }

    #[test]
    fn no_request_is_lost_between_the_last_job_and_the_return() {
        // Every request either makes its caller queue the item or is seen by the running one.
        let pending = Pending::new();
        let (queued, served) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..20_000 {
                        if pending.request(Jobs::TICK) {
                            queued.fetch_add(1, Ordering::Relaxed);
                            while pending.take().is_some() {
                                served.fetch_add(1, Ordering::Relaxed);
                            }
                        }
                    }
                });
            }
        });
        assert!(served.load(Ordering::Relaxed) >= queued.load(Ordering::Relaxed));
        assert_eq!(pending.take(), None, "nothing is left behind");
        assert!(pending.request(Jobs::TICK));
    }
}
