//! A gate that begins closed: a count of what is under way behind it.
//!
//! Restart opens it, each NET_BUFFER_LIST takes a ticket, pause closes it and waits until the last ticket is
//! back. The waiting is the caller's: [`Gate::leave`] says when the last one left a closed gate.

use core::sync::atomic::{AtomicUsize, Ordering};

/// Set while the gate is closed; the rest of the word counts tickets.
const CLOSED: usize = 1;
/// One ticket.
const TICKET: usize = 2;

/// Counts what is under way, and stops more from coming.
#[derive(Debug)]
pub struct Gate(AtomicUsize);

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

impl Gate {
    /// A closed gate with nothing behind it.
    pub const fn new() -> Self {
        Self(AtomicUsize::new(CLOSED))
    }

    /// Lets tickets be taken.
    pub fn open(&self) {
        self.0.fetch_and(!CLOSED, Ordering::AcqRel);
    }

    /// Lets no more tickets be taken. `true` if none is out.
    pub fn close(&self) -> bool {
        self.0.fetch_or(CLOSED, Ordering::AcqRel) & !CLOSED == 0
    }

    /// Takes a ticket, if the gate is open. Each ticket is given back through [`Gate::leave`].
    #[must_use]
    pub fn enter(&self) -> bool {
        self.0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |word| {
                if word & CLOSED == 0 { word.checked_add(TICKET) } else { None }
            })
            .is_ok()
    }

    /// Gives `count` tickets back. `true` if they were the last ones behind a closed gate: whoever closed it may
    /// be waiting.
    #[must_use]
    pub fn leave(&self, count: usize) -> bool {
        let before = self.0.fetch_sub(TICKET.wrapping_mul(count), Ordering::AcqRel);
        before == TICKET.wrapping_mul(count) | CLOSED
    }

    /// Whether the gate is open.
    pub fn is_open(&self) -> bool {
        self.0.load(Ordering::Acquire) & CLOSED == 0
    }

    /// How many tickets are out.
    pub fn count(&self) -> usize {
        self.0.load(Ordering::Acquire) / TICKET
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::thread;

    #[test]
    fn a_new_gate_is_closed() {
        let gate = Gate::new();
        assert!(!gate.enter());
        assert!(gate.close());
        assert_eq!(gate.count(), 0);
    }

    #[test]
    fn the_last_ticket_behind_a_closed_gate_says_so() {
        let gate = Gate::new();
        gate.open();
        assert!(gate.enter() && gate.enter() && gate.enter());
        assert!(!gate.leave(1), "the gate is open");
        assert!(!gate.close(), "two tickets are out");
        assert!(!gate.enter());
        assert!(gate.leave(2));
    }

    #[test]
    fn exactly_one_party_ends_the_wait() {
        // Either close() finds no ticket or exactly one leave() reports to be the last.
        for _ in 0..2_000 {
            let gate = Gate::new();
            gate.open();
            let ends = thread::scope(|scope| {
                let workers: std::vec::Vec<_> =
                    (0..3).map(|_| scope.spawn(|| usize::from(gate.enter() && gate.leave(1)))).collect();
                let closed = usize::from(gate.close());
                closed + workers.into_iter().map(|worker| worker.join().expect("no panic")).sum::<usize>()
            });
            assert_eq!(ends, 1);
            assert_eq!(gate.count(), 0);
        }
    }
}
