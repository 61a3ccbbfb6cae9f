//! Address handles, their users, and the graveyard.
//!
//! A handle may be read by the adapter until the last send that names it has completed (IBTA volume 1,
//! 11.2.2, leaves destroying one that is in use undefined). So each post takes a reference; a handle that
//! its destination no longer wants is doomed, and lies in the graveyard once the last reference is back, for
//! the worker to destroy at PASSIVE_LEVEL.

use super::memory::{Memory, OutOfMemory};
use super::slab::{NONE, Slab, Slot};

/// A reference that a send in flight holds. Give it back with [`AvPool::release`].
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct AvRef(u32);

impl AvRef {
    /// As an integer, for a send descriptor. The reference is then in the integer.
    pub const fn into_raw(self) -> u32 {
        self.0
    }

    /// Undoes [`Self::into_raw`]; once for each.
    pub const fn from_raw(raw: u32) -> Self {
        Self(raw)
    }
}

/// A handle's number in the pool; its owner is one destination.
#[derive(Debug, PartialEq, Eq)]
pub struct AvId(u32);

struct Entry<A> {
    handle: A,
    users: u32,
    doomed: bool,
    next_dead: u32,
}

/// Every address handle of an adapter.
pub struct AvPool<A, M: Memory> {
    entries: Slab<Entry<A>, M>,
    dead: u32,
}

/// Memory for [`AvPool::grow`].
pub struct Growth<A, M: Memory>(M::Array<Slot<Entry<A>>>);

impl<A, M: Memory> AvPool<A, M> {
    /// An empty pool that can grow to `limit` handles.
    pub fn new(memory: &M, limit: u32) -> Result<Self, OutOfMemory> {
        Ok(Self { entries: Slab::new(memory, limit)?, dead: NONE })
    }

    /// Memory for one more segment.
    pub fn prepare(memory: &M) -> Result<Growth<A, M>, OutOfMemory> {
        Slab::segment(memory).map(Growth)
    }

    /// Adds it; beyond the limit it is dropped.
    pub fn grow(&mut self, growth: Growth<A, M>) {
        let _ = self.entries.grow(growth.0);
    }

    /// Handles there are, doomed ones included.
    pub fn count(&self) -> u32 {
        self.entries.len()
    }

    /// Handles that there is room for now.
    pub fn capacity(&self) -> u32 {
        self.entries.capacity()
    }

    /// Whether the pool cannot grow further.
    pub fn is_at_limit(&self) -> bool {
        self.entries.is_at_limit()
    }

    /// Enters a handle, or hands it back if there is no room.
    pub fn insert(&mut self, handle: A) -> Result<AvId, A> {
        self.entries
            .insert(Entry { handle, users: 0, doomed: false, next_dead: NONE })
            .map(|key| AvId(key.slot()))
            .map_err(|entry| entry.handle)
    }

    /// A reference for one post, and the handle. `None` if 2^32 - 1 sends are in flight.
    #[inline]
    pub fn acquire(&mut self, id: &AvId) -> Option<(AvRef, &A)> {
        let entry = self.entries.get_mut(id.0)?;
        entry.users = entry.users.checked_add(1)?;
        Some((AvRef(id.0), &entry.handle))
    }

    /// Gives a reference, which is used up, back. `true` if there is now a handle to destroy.
    #[inline]
    #[allow(clippy::needless_pass_by_value)]
    pub fn release(&mut self, reference: AvRef) -> bool {
        let AvRef(slot) = reference;
        let Some(entry) = self.entries.get_mut(slot) else { return false };
        entry.users = entry.users.saturating_sub(1);
        if entry.users != 0 || !entry.doomed {
            return false;
        }
        self.bury(slot);
        true
    }

    /// Gives a handle, whose number is used up, up for good: it is destroyed when the last send that names it
    /// has completed.
    #[allow(clippy::needless_pass_by_value)]
    pub fn doom(&mut self, id: AvId) {
        let AvId(slot) = id;
        if let Some(entry) = self.entries.get_mut(slot) {
            entry.doomed = true;
            if entry.users == 0 {
                self.bury(slot);
            }
        }
    }

    fn bury(&mut self, slot: u32) {
        if let Some(entry) = self.entries.get_mut(slot) {
            entry.next_dead = self.dead;
            self.dead = slot;
        }
    }

    /// Whether there is a handle to destroy.
    pub const fn has_dead(&self) -> bool {
        self.dead != NONE
    }

    /// A handle to destroy.
    pub fn take_dead(&mut self) -> Option<A> {
        let entry = self.entries.remove(self.dead)?;
        self.dead = entry.next_dead;
        Some(entry.handle)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Heap;
    use super::*;

    fn pool() -> AvPool<&'static str, Heap> {
        let mut pool = AvPool::new(&Heap::plenty(), 512).unwrap();
        pool.grow(AvPool::<&'static str, Heap>::prepare(&Heap::plenty()).unwrap());
        pool
    }

    #[test]
    fn a_doomed_handle_lives_until_its_last_send_is_over() {
        let mut pool = pool();
        let id = pool.insert("handle").unwrap();
        let (first, handle) = pool.acquire(&id).unwrap();
        assert_eq!(*handle, "handle");
        let (second, _) = pool.acquire(&id).unwrap();
        pool.doom(id);
        assert!(!pool.release(first));
        assert_eq!(pool.take_dead(), None, "a send is in flight");
        assert!(pool.release(AvRef::from_raw(second.into_raw())));
        assert_eq!(pool.take_dead(), Some("handle"));
        assert_eq!((pool.take_dead(), pool.count()), (None, 0));
    }

    #[test]
    fn an_unused_handle_dies_at_once_and_a_wanted_one_never() {
        let mut pool = pool();
        let (kept, unused) = (pool.insert("kept").unwrap(), pool.insert("unused").unwrap());
        let (reference, _) = pool.acquire(&kept).unwrap();
        assert!(!pool.release(reference));
        pool.doom(unused);
        assert!(pool.has_dead());
        assert_eq!((pool.take_dead(), pool.take_dead()), (Some("unused"), None));
        assert!(pool.acquire(&kept).is_some());
    }
}
