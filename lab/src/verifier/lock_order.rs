//! The order in which spin locks are taken, over the whole life of a machine.

use std::collections::{BTreeMap, BTreeSet};

/// Which lock was ever held while which was taken. A cycle is a deadlock waiting for its moment, whether or not
/// this run would have met it.
#[derive(Default)]
pub struct LockOrder {
    after: BTreeMap<usize, BTreeSet<usize>>,
}

impl LockOrder {
    /// Notes that `taken` was taken while `held` was held; false if some run of earlier steps leads from `taken`
    /// to `held`, so that the order is not one.
    pub fn note(&mut self, held: usize, taken: usize) -> bool {
        if self.after.get(&held).is_some_and(|after| after.contains(&taken)) {
            return true;
        }
        if self.reaches(taken, held) {
            return false;
        }
        self.after.entry(held).or_default().insert(taken);
        true
    }

    /// Forgets the locks that lie in memory that is gone.
    pub fn forget(&mut self, memory: std::ops::Range<usize>) {
        self.after.retain(|lock, _| !memory.contains(lock));
        for after in self.after.values_mut() {
            after.retain(|lock| !memory.contains(lock));
        }
    }

    fn reaches(&self, from: usize, to: usize) -> bool {
        let mut seen = BTreeSet::new();
        let mut open = vec![from];
        while let Some(lock) = open.pop() {
            if lock == to {
                return true;
            }
            if seen.insert(lock) {
                open.extend(self.after.get(&lock).into_iter().flatten());
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_order_is_kept_and_a_cycle_through_a_third_lock_is_seen() {
        let mut order = LockOrder::default();
        assert!(order.note(1, 2));
        assert!(order.note(2, 3));
        assert!(order.note(1, 3));
        assert!(order.note(1, 2));
        assert!(!order.note(3, 1));
        assert!(!order.note(2, 1));
    }

    #[test]
    fn a_freed_lock_leaves_no_order_behind() {
        let mut order = LockOrder::default();
        assert!(order.note(10, 20));
        assert!(order.note(20, 30));
        order.forget(20..21);
        assert!(order.note(30, 10));
    }
}
