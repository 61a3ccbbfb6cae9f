//! Tables in nonpaged pool: they are used under a spin lock.

use super::memory::{Memory, OutOfMemory};
use crate::kernel::pool::{PoolVec, Tag};

/// Nonpaged pool, tag `IbPe`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pool;

/// Peers and groups, as `poolmon` shows them.
const TAG: Tag = Tag::new(*b"IbPe");

impl Memory for Pool {
    type Array<T> = PoolVec<T>;

    fn array<T>(&self, len: usize, mut make: impl FnMut(usize) -> T) -> Result<PoolVec<T>, OutOfMemory> {
        PoolVec::try_from_fn(TAG, len, |index| Ok(make(index))).map_err(|_| OutOfMemory)
    }
}
