//! Nonpaged pool, allocated fallibly. There is no path to a global allocator.
//!
//! IRQL <= DISPATCH_LEVEL for everything here (wdm/nf-wdm-exallocatepool2, wdm/nf-wdm-exfreepoolwithtag).

use super::status::{Error, Result};
use core::fmt;
use core::mem::{self, MaybeUninit};
use core::ops::{Deref, DerefMut};
use core::ptr::{self, NonNull};
use core::slice;
use windows_kernel_sys as sys;

/// Four characters that name the owner of pool memory, as `poolmon` and Driver Verifier show them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag(u32);

impl Tag {
    /// A tag of four printable characters, in the order they are read.
    pub const fn new(name: [u8; 4]) -> Self {
        Self(u32::from_le_bytes(name))
    }

    /// The value the DDI takes.
    pub const fn value(self) -> u32 {
        self.0
    }
}

/// Types for which zero bytes are a value.
///
/// # Safety
/// The all-zero bit pattern is valid.
pub unsafe trait Zero: Copy {}
// SAFETY: an integer.
unsafe impl Zero for u8 {}
// SAFETY: an integer.
unsafe impl Zero for u32 {}
// SAFETY: an integer.
unsafe impl Zero for u64 {}

/// What `ExAllocatePool2` aligns to; blocks of a page or more are aligned to a page.
const POOL_ALIGN: usize = 16;

/// Zeroed nonpaged memory. `size` is not zero.
fn allocate(size: usize, tag: Tag) -> Result<NonNull<u8>> {
    // SAFETY: callable at IRQL <= DISPATCH_LEVEL, where all code of this driver runs.
    let block = unsafe { sys::ExAllocatePool2(sys::POOL_FLAGS::NON_PAGED.bits(), size, tag.value()) };
    NonNull::new(block.cast()).ok_or(Error::RESOURCES)
}

/// # Safety
/// `block` is from [`allocate`] with the same tag and is not used afterwards.
unsafe fn free(block: NonNull<u8>, tag: Tag) {
    // SAFETY: the caller's contract.
    unsafe { sys::ExFreePoolWithTag(block.as_ptr().cast(), tag.value()) }
}

/// One value in nonpaged pool. Its address does not change while the box moves.
pub struct PoolBox<T> {
    block: NonNull<T>,
    tag: Tag,
}

// SAFETY: a box owns its value, as a value of type T would be owned.
unsafe impl<T: Send> Send for PoolBox<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for PoolBox<T> {}

impl<T> PoolBox<T> {
    const FITS: () = assert!(mem::align_of::<T>() <= POOL_ALIGN && mem::size_of::<T>() > 0);

    /// Moves `value` into pool memory. On failure the value is dropped.
    pub fn try_new(tag: Tag, value: T) -> Result<Self> {
        let block = Self::block(tag)?;
        // SAFETY: the block is fresh and large and aligned enough.
        unsafe { block.write(value) };
        Ok(Self { block, tag })
    }

    /// A value made where it will stay, for what is too large for a kernel stack. `init` fills zeroed memory.
    ///
    /// # Safety
    /// After `init` the value is valid.
    pub unsafe fn try_init(tag: Tag, init: impl FnOnce(&mut MaybeUninit<T>)) -> Result<Self> {
        let block = Self::block(tag)?;
        // SAFETY: the block is fresh, and MaybeUninit is valid in any state.
        init(unsafe { block.cast::<MaybeUninit<T>>().as_mut() });
        Ok(Self { block, tag })
    }

    /// A value of zero bytes, made where it will stay.
    pub fn try_zeroed(tag: Tag) -> Result<Self>
    where
        T: sys::Zeroable,
    {
        // SAFETY: the memory is zeroed, which the trait says is a valid value.
        unsafe { Self::try_init(tag, |_| ()) }
    }

    /// A place for a value that is to come: for making sure of the memory before what must not fail half-way, and for
    /// values that are large. [`PoolBox::write`] fills it.
    pub fn try_uninit(tag: Tag) -> Result<PoolBox<MaybeUninit<T>>> {
        Ok(PoolBox { block: Self::block(tag)?.cast(), tag })
    }

    /// Moves the value out and frees its place.
    pub fn into_inner(self) -> T {
        // SAFETY: the value is moved out; the place is then dropped as one that holds nothing.
        let value = unsafe { self.block.read() };
        let tag = self.tag;
        drop(PoolBox { block: self.into_raw().cast::<MaybeUninit<T>>(), tag });
        value
    }

    fn block(tag: Tag) -> Result<NonNull<T>> {
        let () = Self::FITS;
        Ok(allocate(mem::size_of::<T>(), tag)?.cast())
    }

    /// Gives the value up to a raw pointer, to be taken back by [`PoolBox::from_raw`].
    pub fn into_raw(self) -> NonNull<T> {
        let block = self.block;
        mem::forget(self);
        block
    }

    /// Takes back what [`PoolBox::into_raw`] gave up.
    ///
    /// # Safety
    /// `block` is from `into_raw` of a box with this tag, and is taken back once.
    pub unsafe fn from_raw(block: NonNull<T>, tag: Tag) -> Self {
        Self { block, tag }
    }

    /// Where the value is.
    pub fn as_ptr(&self) -> *mut T {
        self.block.as_ptr()
    }
}

impl<T> PoolBox<MaybeUninit<T>> {
    /// Moves a value into the place.
    pub fn write(mut self, value: T) -> PoolBox<T> {
        MaybeUninit::write(&mut self, value);
        let tag = self.tag;
        PoolBox { block: self.into_raw().cast(), tag }
    }
}

impl<T> Deref for PoolBox<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the box owns a valid value.
        unsafe { self.block.as_ref() }
    }
}

impl<T> DerefMut for PoolBox<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the box owns a valid value and is borrowed exclusively.
        unsafe { self.block.as_mut() }
    }
}

impl<T> Drop for PoolBox<T> {
    fn drop(&mut self) {
        // SAFETY: the box owns a valid value, which is not used after this.
        unsafe { ptr::drop_in_place(self.block.as_ptr()) };
        // SAFETY: the block is from `allocate` with this tag.
        unsafe { free(self.block.cast(), self.tag) };
    }
}

impl<T: fmt::Debug> fmt::Debug for PoolBox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// A vector in nonpaged pool whose capacity is fixed when it is made: pushing never allocates.
///
/// Its elements do not move until one before them is removed, so a vector that only grows has stable addresses.
pub struct PoolVec<T> {
    block: NonNull<T>,
    len: usize,
    capacity: usize,
    tag: Tag,
}

// SAFETY: the vector owns its elements.
unsafe impl<T: Send> Send for PoolVec<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for PoolVec<T> {}

impl<T> PoolVec<T> {
    const FITS: () = assert!(mem::align_of::<T>() <= POOL_ALIGN && mem::size_of::<T>() > 0);

    /// An empty vector with room for `capacity` elements, which may be zero.
    pub fn try_with_capacity(tag: Tag, capacity: usize) -> Result<Self> {
        let () = Self::FITS;
        let block = if capacity == 0 {
            NonNull::dangling()
        } else {
            let size = mem::size_of::<T>().checked_mul(capacity).ok_or(Error::RESOURCES)?;
            allocate(size, tag)?.cast()
        };
        Ok(Self { block, len: 0, capacity, tag })
    }

    /// `count` elements, each from `make`, which is told its index.
    pub fn try_from_fn(tag: Tag, count: usize, mut make: impl FnMut(usize) -> Result<T>) -> Result<Self> {
        let mut vec = Self::try_with_capacity(tag, count)?;
        for index in 0..count {
            if vec.push(make(index)?).is_err() {
                return Err(Error::RESOURCES);
            }
        }
        Ok(vec)
    }

    /// `count` elements of zero bytes.
    pub fn try_zeroed(tag: Tag, count: usize) -> Result<Self>
    where
        T: Zero,
    {
        let mut vec = Self::try_with_capacity(tag, count)?;
        // The block is zeroed, which is a valid value of each element.
        vec.len = count;
        Ok(vec)
    }

    /// A copy of `items`.
    pub fn try_from_slice(tag: Tag, items: &[T]) -> Result<Self>
    where
        T: Copy,
    {
        let mut vec = Self::try_with_capacity(tag, items.len())?;
        // SAFETY: the block has room for all of `items`, which are Copy and cannot overlap it.
        unsafe { ptr::copy_nonoverlapping(items.as_ptr(), vec.block.as_ptr(), items.len()) };
        vec.len = items.len();
        Ok(vec)
    }

    /// Appends, or hands the element back if there is no room.
    pub fn push(&mut self, item: T) -> core::result::Result<(), T> {
        if self.len == self.capacity {
            return Err(item);
        }
        // SAFETY: `len < capacity`, so the place is inside the block and holds no value.
        unsafe { self.block.add(self.len).write(item) };
        self.len += 1;
        Ok(())
    }

    /// Removes the last element.
    pub fn pop(&mut self) -> Option<T> {
        self.len = self.len.checked_sub(1)?;
        // SAFETY: the place held a value, which no longer counts as one of the vector.
        Some(unsafe { self.block.add(self.len).read() })
    }

    /// Removes an element by putting the last one in its place.
    pub fn swap_remove(&mut self, index: usize) -> Option<T> {
        let last = self.len.checked_sub(1)?;
        if index > last {
            return None;
        }
        self.swap(index, last);
        self.pop()
    }

    /// Drops all elements, keeping the capacity.
    pub fn clear(&mut self) {
        let live: *mut [T] = &raw mut **self;
        self.len = 0;
        // SAFETY: these were the elements, which no longer count.
        unsafe { ptr::drop_in_place(live) };
    }

    /// A vector with twice the capacity (at least `at_least`) and the same elements takes the place of this one.
    pub fn try_grow(&mut self, at_least: usize) -> Result<()> {
        let wanted = self.capacity.saturating_mul(2).max(at_least);
        if wanted <= self.capacity {
            return Ok(());
        }
        let mut larger = Self::try_with_capacity(self.tag, wanted)?;
        // SAFETY: the elements move to a block with room for them; the old vector then counts none.
        unsafe { ptr::copy_nonoverlapping(self.block.as_ptr(), larger.block.as_ptr(), self.len) };
        larger.len = mem::take(&mut self.len);
        *self = larger;
        Ok(())
    }

    /// How many elements fit without growing.
    pub fn capacity(&self) -> usize {
        self.capacity
    }
}

impl<T> Deref for PoolVec<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the first `len` places hold values (none for the dangling block of capacity zero).
        unsafe { slice::from_raw_parts(self.block.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for PoolVec<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and the vector is borrowed exclusively.
        unsafe { slice::from_raw_parts_mut(self.block.as_ptr(), self.len) }
    }
}

impl<T> Drop for PoolVec<T> {
    fn drop(&mut self) {
        self.clear();
        if self.capacity != 0 {
            // SAFETY: the block is from `allocate` with this tag.
            unsafe { free(self.block.cast(), self.tag) };
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for PoolVec<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
