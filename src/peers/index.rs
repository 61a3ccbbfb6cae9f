//! An index from a key's hash to the slot of a pool, by linear hashing.
//!
//! The number of buckets grows by one with each entry, splitting one bucket into two: no entry ever pays for a
//! rehash of all. Chains run through an array parallel to the pool's slots, so an entry needs no allocation, and
//! removing one leaves no tombstone. Lookups compare full hashes first; the caller compares keys.

use super::memory::{Memory, OutOfMemory};
use super::segments::{SEGMENT, Segments, segment};
use super::slab::NONE;

/// An entry's place in its bucket's chain.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    hash: u32,
    next: u32,
}

/// The index.
pub struct Index<M: Memory> {
    heads: Segments<u32, M>,
    links: Segments<Link, M>,
    /// Buckets in use: as many as there ever were entries, and at least a segment.
    buckets: u32,
    len: u32,
}

/// Memory for [`Index::grow`].
pub struct Growth<M: Memory> {
    heads: M::Array<u32>,
    links: M::Array<Link>,
}

impl<M: Memory> Index<M> {
    /// An empty index over a pool that can grow to `limit` slots.
    pub fn new(memory: &M, limit: u32) -> Result<Self, OutOfMemory> {
        Ok(Self {
            heads: Segments::new(memory, limit)?,
            links: Segments::new(memory, limit)?,
            buckets: 0,
            len: 0,
        })
    }

    /// Memory for the entries of one more segment of the pool.
    pub fn prepare(memory: &M) -> Result<Growth<M>, OutOfMemory> {
        Ok(Growth {
            heads: segment(memory, || NONE)?,
            links: segment(memory, || Link { hash: 0, next: NONE })?,
        })
    }

    /// Adds it. Beyond the limit it is dropped.
    pub fn grow(&mut self, growth: Growth<M>) {
        // Both have the same limit, so they take it or drop it together.
        let _ = self.heads.push(growth.heads);
        let _ = self.links.push(growth.links);
        if self.buckets == 0 {
            self.buckets = self.heads.len().min(SEGMENT as u32);
        }
    }

    /// Entries.
    #[cfg(test)]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// The bucket of `hash` when there are `buckets`.
    #[inline]
    fn bucket(hash: u32, buckets: u32) -> u32 {
        let mask = buckets.checked_next_power_of_two().unwrap_or(0).wrapping_sub(1);
        let bucket = hash & mask;
        if bucket < buckets { bucket } else { hash & mask >> 1 }
    }

    /// The slot of the entry with this hash for which `is_it` says yes.
    #[inline]
    pub fn find(&self, hash: u32, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let mut slot = *self.heads.get(Self::bucket(hash, self.buckets))?;
        while let Some(&link) = self.links.get(slot) {
            if link.hash == hash && is_it(slot) {
                return Some(slot);
            }
            slot = link.next;
        }
        None
    }

    /// Enters `slot`, which is not in the index, under `hash`.
    pub fn insert(&mut self, hash: u32, slot: u32) {
        self.chain(Self::bucket(hash, self.buckets), hash, slot);
        self.len += 1;
        if self.len > self.buckets && self.buckets < self.heads.len() {
            let new = self.buckets;
            self.buckets += 1;
            // The bucket that so far held what now belongs to the new one: its number without the top bit.
            let parent = new & !(u32::MAX << new.checked_ilog2().unwrap_or(0));
            self.redistribute(parent);
        }
    }

    fn chain(&mut self, bucket: u32, hash: u32, slot: u32) {
        if let (Some(head), Some(link)) = (self.heads.get_mut(bucket), self.links.get_mut(slot)) {
            *link = Link { hash, next: *head };
            *head = slot;
        }
    }

    /// Puts every entry of a bucket where it belongs.
    fn redistribute(&mut self, bucket: u32) {
        let Some(head) = self.heads.get_mut(bucket) else { return };
        let mut slot = core::mem::replace(head, NONE);
        while let Some(&Link { hash, next }) = self.links.get(slot) {
            self.chain(Self::bucket(hash, self.buckets), hash, slot);
            slot = next;
        }
    }

    /// Takes `slot` out; `false` if it is not in.
    pub fn remove(&mut self, slot: u32) -> bool {
        let Some(&Link { hash, next }) = self.links.get(slot) else { return false };
        let bucket = Self::bucket(hash, self.buckets);
        let Some(head) = self.heads.get_mut(bucket) else { return false };
        if *head == slot {
            *head = next;
        } else {
            let mut before = *head;
            loop {
                match self.links.get_mut(before) {
                    Some(link) if link.next == slot => {
                        link.next = next;
                        break;
                    }
                    Some(link) => before = link.next,
                    None => return false,
                }
            }
        }
        self.len -= 1;
        true
    }
}
