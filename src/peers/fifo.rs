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
    pub const fn is_listed(&self) -> bool {
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
