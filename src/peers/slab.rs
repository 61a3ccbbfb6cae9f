//! A pool of slots with stable numbers.

use super::memory::{Memory, OutOfMemory};
use super::segments::{SEGMENT, Segments, segment};

/// No slot.
pub const NONE: u32 = u32::MAX;

/// A slot and which of its successive tenants is meant: what a query carries while it is outstanding, so that
/// an answer which comes after the tenant has left is recognized.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    slot: u32,
    generation: u32,
}

impl Key {
    /// The slot's number.
    pub const fn slot(self) -> u32 {
        self.slot
    }
}

/// A place in the pool.
pub struct Slot<T> {
    generation: u32,
    next_free: u32,
    value: Option<T>,
}

impl<T> Slot<T> {
    /// An empty place.
    pub const fn empty() -> Self {
        Self { generation: 0, next_free: NONE, value: None }
    }
}

/// The pool.
pub struct Slab<T, M: Memory> {
    slots: Segments<Slot<T>, M>,
    free: u32,
    len: u32,
}

impl<T, M: Memory> Slab<T, M> {
    /// An empty pool that can grow to `limit` slots.
    pub fn new(memory: &M, limit: u32) -> Result<Self, OutOfMemory> {
        Ok(Self { slots: Segments::new(memory, limit)?, free: NONE, len: 0 })
    }

    /// Memory for [`Self::grow`].
    pub fn segment(memory: &M) -> Result<M::Array<Slot<T>>, OutOfMemory> {
        segment(memory, Slot::empty)
    }

    /// Adds the slots of one segment; they are handed out lowest first.
    pub fn grow(&mut self, segment: M::Array<Slot<T>>) -> Result<(), M::Array<Slot<T>>> {
        let first = self.slots.len();
        self.slots.push(segment)?;
        for index in (first..first + SEGMENT as u32).rev() {
            if let Some(slot) = self.slots.get_mut(index) {
                slot.next_free = self.free;
                self.free = index;
            }
        }
        Ok(())
    }

    /// Tenants.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Slots there are.
    pub fn capacity(&self) -> u32 {
        self.slots.len()
    }

    /// Whether no further segment can be added.
    pub fn is_at_limit(&self) -> bool {
        self.slots.is_full()
    }

    /// Moves `value` into a free slot; hands it back if there is none.
    pub fn insert(&mut self, value: T) -> Result<Key, T> {
        let index = self.free;
        let Some(slot) = self.slots.get_mut(index) else { return Err(value) };
        self.free = slot.next_free;
        slot.value = Some(value);
        self.len += 1;
        Ok(Key { slot: index, generation: slot.generation })
    }

    /// Empties a slot. Its next tenant has another generation.
    pub fn remove(&mut self, index: u32) -> Option<T> {
        let slot = self.slots.get_mut(index)?;
        let value = slot.value.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        slot.next_free = self.free;
        self.free = index;
        self.len -= 1;
        Some(value)
    }

    /// The tenant of a slot.
    #[inline]
    pub fn get(&self, index: u32) -> Option<&T> {
        self.slots.get(index)?.value.as_ref()
    }

    /// The tenant of a slot.
    #[inline]
    pub fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        self.slots.get_mut(index)?.value.as_mut()
    }

    /// The slot's number if the tenant that `key` means is still there.
    pub fn resolve(&self, key: Key) -> Option<u32> {
        let slot = self.slots.get(key.slot)?;
        (slot.generation == key.generation && slot.value.is_some()).then_some(key.slot)
    }

    /// The key of a slot's tenant.
    pub fn key(&self, index: u32) -> Option<Key> {
        let slot = self.slots.get(index)?;
        slot.value.as_ref()?;
        Some(Key { slot: index, generation: slot.generation })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Heap;
    use super::*;

    fn slab(limit: u32) -> Slab<u32, Heap> {
        let mut slab = Slab::new(&Heap::plenty(), limit).unwrap();
        assert!(slab.grow(Slab::<u32, Heap>::segment(&Heap::plenty()).unwrap()).is_ok());
        slab
    }

    #[test]
    fn a_key_does_not_outlive_its_tenant() {
        let mut slab = slab(512);
        let first = slab.insert(1).unwrap();
        assert_eq!(slab.resolve(first), Some(0));
        assert_eq!(slab.remove(0), Some(1));
        assert_eq!((slab.resolve(first), slab.remove(0)), (None, None));
        let second = slab.insert(2).unwrap();
        assert_eq!(second.slot(), first.slot());
        assert_eq!((slab.resolve(first), slab.resolve(second)), (None, Some(0)));
        assert_eq!(slab.key(0), Some(second));
    }

    #[test]
    fn a_full_pool_hands_back_and_grows_to_its_limit() {
        let mut slab = slab(1000);
        for number in 0..512 {
            assert_eq!(slab.insert(number).map(Key::slot), Ok(number));
        }
        assert_eq!(slab.insert(512), Err(512));
        assert!(slab.grow(Slab::<u32, Heap>::segment(&Heap::plenty()).unwrap()).is_ok());
        assert_eq!(slab.insert(512).map(Key::slot), Ok(512));
        assert!(slab.is_at_limit());
        assert!(slab.grow(Slab::<u32, Heap>::segment(&Heap::plenty()).unwrap()).is_err());
        assert_eq!((slab.len(), slab.capacity()), (513, 1024));
    }

    #[test]
    fn no_memory_is_an_error() {
        assert!(Slab::<u32, Heap>::new(&Heap::limited(0), 512).is_err());
        assert!(Slab::<u32, Heap>::segment(&Heap::limited(0)).is_err());
    }
}
