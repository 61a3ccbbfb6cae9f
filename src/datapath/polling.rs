//! One processor at a time serves a completion queue.

use core::sync::atomic::{AtomicU8, Ordering};

/// Polls of one visit before the rest is left to the worker, so that a flood cannot keep a processor at
/// DISPATCH_LEVEL.
const BUDGET: usize = 64;

/// Nobody polls.
const IDLE: u8 = 0;
/// Somebody polls.
const BUSY: u8 = 1;
/// Somebody polls, and was called upon since.
const AGAIN: u8 = 2;

/// Who polls: frames stay in order, and a call that comes meanwhile is served by who is there.
#[derive(Debug, Default)]
pub(super) struct Polling(AtomicU8);

impl Polling {
    /// Nobody.
    pub(super) const fn new() -> Self {
        Self(AtomicU8::new(IDLE))
    }

    /// Has `drain` empty the queue, unless somebody is at it, until nobody called meanwhile. `drain` says whether it
    /// got to the end within its budget. `true` if something may be left.
    pub(super) fn run(&self, mut drain: impl FnMut(&mut usize) -> bool) -> bool {
        let before = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, |state| {
            Some(if state == IDLE { BUSY } else { AGAIN })
        });
        if before != Ok(IDLE) {
            return false;
        }
        let mut budget = BUDGET;
        loop {
            self.0.store(BUSY, Ordering::Release);
            if !drain(&mut budget) {
                self.0.store(IDLE, Ordering::Release);
                return true;
            }
            if self.0.compare_exchange(BUSY, IDLE, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                return false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_from_inside_is_served_by_who_is_there() {
        let polling = Polling::new();
        let mut rounds = 0;
        let left = polling.run(|_| {
            rounds += 1;
            if rounds == 1 {
                assert!(!polling.run(|_| panic!("two at once")));
            }
            true
        });
        assert_eq!((rounds, left), (2, false));
    }

    #[test]
    fn who_runs_out_of_budget_says_so_and_lets_others_in() {
        let polling = Polling::new();
        assert!(polling.run(|budget| {
            *budget = 0;
            false
        }));
        assert!(!polling.run(|budget| *budget == BUDGET));
    }
}
