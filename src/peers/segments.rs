//! An array that grows by whole segments, so that growing moves nothing.

use super::memory::{Memory, OutOfMemory};

/// Elements of a segment.
pub const SEGMENT: usize = 512;

/// The array. Its directory of segments has the size of the limit from the start (a pointer for each);
/// segments are added as they are needed.
pub struct Segments<T, M: Memory> {
    directory: M::Array<Option<M::Array<T>>>,
    len: u32,
}

impl<T, M: Memory> Segments<T, M> {
    /// An empty array with room for `limit` elements, rounded up to whole segments.
    pub fn new(memory: &M, limit: u32) -> Result<Self, OutOfMemory> {
        let directory = memory.array((limit as usize).div_ceil(SEGMENT), |_| None)?;
        Ok(Self { directory, len: 0 })
    }

    /// Adds a segment made by [`segment`]. Hands it back if the limit is reached.
    pub fn push(&mut self, segment: M::Array<T>) -> Result<(), M::Array<T>> {
        match self.directory.get_mut(self.len as usize / SEGMENT) {
            Some(place) => {
                *place = Some(segment);
                self.len += SEGMENT as u32;
                Ok(())
            }
            None => Err(segment),
        }
    }

    /// Elements there are.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether no further segment can be added.
    pub fn is_full(&self) -> bool {
        self.len as usize / SEGMENT >= self.directory.len()
    }

    /// The element at `index`.
    #[inline]
    pub fn get(&self, index: u32) -> Option<&T> {
        let index = index as usize;
        self.directory.get(index / SEGMENT)?.as_ref()?.get(index % SEGMENT)
    }

    /// The element at `index`.
    #[inline]
    pub fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        let index = index as usize;
        self.directory.get_mut(index / SEGMENT)?.as_mut()?.get_mut(index % SEGMENT)
    }
}

/// A segment to be added, made without the array: so it can be allocated before the lock is taken.
pub fn segment<T, M: Memory>(memory: &M, mut make: impl FnMut() -> T) -> Result<M::Array<T>, OutOfMemory> {
    memory.array(SEGMENT, |_| make())
}
