//! What the room's tests share: memory from the heap that can be made to run out.

extern crate std;
use super::memory::{Memory, OutOfMemory};
use core::cell::Cell;
use std::vec::Vec;

/// The heap, with a count of the allocations that still succeed.
#[derive(Debug)]
pub struct Heap(Cell<usize>);

impl Heap {
    /// One that never runs out.
    pub fn plenty() -> Self {
        Self::limited(usize::MAX)
    }

    /// One that runs out after `allocations`.
    pub fn limited(allocations: usize) -> Self {
        Self(Cell::new(allocations))
    }
}

impl Memory for Heap {
    type Array<T> = Vec<T>;

    fn array<T>(&self, len: usize, make: impl FnMut(usize) -> T) -> Result<Vec<T>, OutOfMemory> {
        let left = self.0.get().checked_sub(1).ok_or(OutOfMemory)?;
        self.0.set(left);
        Ok((0..len).map(make).collect())
    }
}
