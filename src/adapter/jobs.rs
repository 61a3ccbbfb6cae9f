//! What the PASSIVE worker has been asked to do: a set of bits, so that asking twice is asking once.

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
        /// A poll of a completion queue used up its budget.
        const POLL = 1 << 6;
        /// IBAL reported an asynchronous error of the QP.
        const QP_ERROR = 1 << 7;
        /// IBAL reported an asynchronous error of a CQ.
        const CQ_ERROR = 1 << 8;
        /// MiniportHaltEx wants the QP taken down.
        const HALT = 1 << 9;
    }
}

/// The jobs asked for and not yet taken.
#[derive(Debug, Default)]
pub struct Pending(AtomicU32);

impl Pending {
    /// Nothing to do.
    pub const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Asks for `jobs`; the work item is queued afterwards. Any IRQL.
    pub fn add(&self, jobs: Jobs) {
        self.0.fetch_or(jobs.bits(), Ordering::AcqRel);
    }

    /// For the work item: takes what has been asked for.
    pub fn take(&self) -> Jobs {
        Jobs::from_bits_truncate(self.0.swap(0, Ordering::AcqRel))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_add_up_until_they_are_taken() {
        let pending = Pending::new();
        pending.add(Jobs::TICK);
        pending.add(Jobs::RESET);
        pending.add(Jobs::TICK);
        assert_eq!(pending.take(), Jobs::TICK | Jobs::RESET);
        assert!(pending.take().is_empty());
    }
}
