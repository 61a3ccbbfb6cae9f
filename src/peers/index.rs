//! An index from a key's hash to the slot of a pool, by linear hashing.
//!
//! The number of buckets grows by one with each entry, splitting one bucket into two: no entry ever pays for
//! a rehash of all. Chains run through an array parallel to the pool's slots, so an entry needs no
//! allocation, and removing one leaves no tombstone. Lookups compare full hashes first; the caller compares
//! keys.

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

#[cfg(test)]
mod tests {
    extern crate std;
    use super::super::testing::Heap;
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;
    use std::vec::Vec;

    fn index(segments: usize) -> Index<Heap> {
        let mut index = Index::new(&Heap::plenty(), (segments * SEGMENT) as u32).unwrap();
        for _ in 0..segments {
            index.grow(Index::prepare(&Heap::plenty()).unwrap());
        }
        index
    }

    fn longest_chain(index: &Index<Heap>) -> usize {
        let chain = |bucket| {
            let mut slot = *index.heads.get(bucket).unwrap();
            let mut length = 0;
            while let Some(link) = index.links.get(slot) {
                slot = link.next;
                length += 1;
            }
            length
        };
        (0..index.buckets).map(chain).max().unwrap_or(0)
    }

    /// Cost independent of the number of peers: chains stay as short with 100,000 entries as with 1,000.
    #[test]
    fn chains_stay_short_however_many_entries_there_are() {
        let mut index = index(200);
        let hash = super::super::hash::HashKey::new(7);
        let mut longest = Vec::new();
        for slot in 0..100_000_u32 {
            // Consecutive LIDs of one QPN: what a subnet really looks like.
            index.insert(hash.one(u64::from(slot) << 8), slot);
            if slot + 1 == 1_000 || slot + 1 == 100_000 {
                longest.push(longest_chain(&index));
            }
        }
        assert_eq!(index.len(), 100_000);
        assert!(longest.iter().all(|&longest| longest <= 12), "{longest:?}");
        for slot in 0..100_000_u32 {
            assert_eq!(index.find(hash.one(u64::from(slot) << 8), |found| found == slot), Some(slot));
        }
    }

    #[test]
    fn an_index_without_memory_is_empty() {
        let index = Index::<Heap>::new(&Heap::plenty(), 1000).unwrap();
        assert_eq!(index.find(0, |_| true), None);
    }

    proptest! {
        /// Against a map, with hashes that collide often.
        #[test]
        fn it_agrees_with_a_map(
            operations in prop::collection::vec((0_u32..1500, 0_u32..40, any::<bool>()), 0..3000),
        ) {
            let mut index = index(3);
            let mut model: HashMap<u32, u32> = HashMap::new();
            for (slot, hash, insert) in operations {
                let hash = hash.wrapping_mul(0x9e37_79b9);
                if insert && !model.contains_key(&slot) {
                    index.insert(hash, slot);
                    model.insert(slot, hash);
                } else if !insert && model.contains_key(&slot) {
                    prop_assert!(index.remove(slot));
                    model.remove(&slot);
                }
                prop_assert_eq!(index.len() as usize, model.len());
            }
            for slot in 0..1500 {
                for hash in (0..40_u32).map(|hash| hash.wrapping_mul(0x9e37_79b9)) {
                    let expected = (model.get(&slot) == Some(&hash)).then_some(slot);
                    prop_assert_eq!(index.find(hash, |found| found == slot), expected);
                }
            }
        }
    }
}
