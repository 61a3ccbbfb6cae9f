//! Where tables get their memory: nonpaged pool in the driver, the heap in tests.

use core::fmt;
use core::ops::DerefMut;

/// No memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory;

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("out of memory")
    }
}

/// A source of arrays of fixed length. Allocating may fail and is never retried here.
pub trait Memory {
    /// An array that gives its memory back when dropped.
    type Array<T>: DerefMut<Target = [T]>;

    /// `len` elements, each from `make`, which is told its index.
    fn array<T>(&self, len: usize, make: impl FnMut(usize) -> T) -> Result<Self::Array<T>, OutOfMemory>;
}
