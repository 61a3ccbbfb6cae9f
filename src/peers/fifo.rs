//! Lists of a pool's tenants, first in, first out, linked through the tenants themselves.

use super::memory::Memory;
use super::slab::{NONE, Slab};

/// A tenant's place in one list.
#[derive(Clone, Copy, Debug)]
pub struct Hook {
    next: u32,
    listed: bool,
}

impl Hook {
    /// Not in the list.
    pub const NEW: Self = Self { next: NONE, listed: false };

    /// Whether the tenant is in the list.
    pub const fn is_listed(self) -> bool {
        self.listed
    }
}

/// A list. A tenant must leave it before it leaves the pool.
#[derive(Debug)]
pub struct Fifo {
    head: u32,
    tail: u32,
}

impl Fifo {
    /// An empty list.
    pub const NEW: Self = Self { head: NONE, tail: NONE };

    /// Whether there is nobody in it.
    pub const fn is_empty(&self) -> bool {
        self.head == NONE
    }

    /// The first, who stays.
    pub const fn first(&self) -> Option<u32> {
        if self.head == NONE { None } else { Some(self.head) }
    }

    /// Appends a tenant, unless it is in the list already.
    pub fn push<T, M: Memory>(&mut self, slots: &mut Slab<T, M>, hook: fn(&mut T) -> &mut Hook, slot: u32) {
        match slots.get_mut(slot).map(hook) {
            Some(place) if !place.listed => *place = Hook { next: NONE, listed: true },
            _ => return,
        }
        match slots.get_mut(self.tail).map(hook) {
            Some(last) => last.next = slot,
            None => self.head = slot,
        }
        self.tail = slot;
    }

    /// Removes the first.
    pub fn pop<T, M: Memory>(
        &mut self,
        slots: &mut Slab<T, M>,
        hook: fn(&mut T) -> &mut Hook,
    ) -> Option<u32> {
        let slot = self.first()?;
        if let Some(place) = slots.get_mut(slot).map(hook) {
            self.head = place.next;
            *place = Hook::NEW;
        } else {
            self.head = NONE;
        }
        if self.head == NONE {
            self.tail = NONE;
        }
        Some(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Heap;
    use super::*;

    #[test]
    fn first_in_first_out_and_nobody_twice() {
        let mut slab = Slab::<Hook, Heap>::new(&Heap::plenty(), 512).unwrap();
        assert!(slab.grow(Slab::<Hook, Heap>::segment(&Heap::plenty()).unwrap()).is_ok());
        for _ in 0..3 {
            slab.insert(Hook::NEW).unwrap();
        }
        let hook: fn(&mut Hook) -> &mut Hook = |hook| hook;
        let mut list = Fifo::NEW;
        for slot in [2, 0, 2, 1, 99] {
            list.push(&mut slab, hook, slot);
        }
        assert!(slab.get(2).unwrap().is_listed());
        assert_eq!([(); 4].map(|()| list.pop(&mut slab, hook)), [Some(2), Some(0), Some(1), None]);
        assert!(list.is_empty() && !slab.get(2).unwrap().is_listed());
        list.push(&mut slab, hook, 1);
        assert_eq!(list.pop(&mut slab, hook), Some(1));
    }
}
