//! A counted reference to one value in nonpaged pool. IRQL <= DISPATCH_LEVEL, the last drop included if the value's
//! own drop allows it.

use super::pool::{PoolBox, Tag};
use super::status::Result;
use core::fmt;
use core::mem;
use core::ops::Deref;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering, fence};

struct Counted<T> {
    count: AtomicUsize,
    tag: Tag,
    value: T,
}

/// Shared ownership of a value in pool. What the kernel calls back with (timers, work items, IBAL) holds one, so that
/// the context outlives the callback; the cycle is cut when the callback's owner is stopped.
pub struct PoolArc<T> {
    counted: NonNull<Counted<T>>,
}

// SAFETY: shares T between holders, any of which may drop it.
unsafe impl<T: Send + Sync> Send for PoolArc<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for PoolArc<T> {}

impl<T> PoolArc<T> {
    /// The first reference to `value`.
    pub fn try_new(tag: Tag, value: T) -> Result<Self> {
        let counted = PoolBox::try_new(tag, Counted { count: AtomicUsize::new(1), tag, value })?;
        Ok(Self { counted: counted.into_raw() })
    }

    fn counted(&self) -> &Counted<T> {
        // SAFETY: this reference keeps the block alive.
        unsafe { self.counted.as_ref() }
    }

    /// Gives the reference up to a raw pointer to the value, as the kernel keeps a context.
    pub fn into_raw(self) -> *const T {
        let value = self.as_ptr();
        mem::forget(self);
        value
    }

    /// Where the value is.
    pub fn as_ptr(&self) -> *const T {
        // SAFETY: a field of the live block.
        unsafe { &raw const (*self.counted.as_ptr()).value }
    }

    /// Takes back a reference given up by [`PoolArc::into_raw`].
    ///
    /// # Safety
    /// `value` is from `into_raw`, and each reference is taken back once.
    pub unsafe fn from_raw(value: *const T) -> Self {
        let block = value.wrapping_byte_sub(mem::offset_of!(Counted<T>, value)).cast::<Counted<T>>();
        // SAFETY: `into_raw` gave a pointer into a live block, which is not at address zero.
        Self { counted: unsafe { NonNull::new_unchecked(block.cast_mut()) } }
    }

    /// The value, if this is the only reference.
    pub fn get_mut(this: &mut Self) -> Option<&mut T> {
        if this.counted().count.load(Ordering::Acquire) == 1 {
            // SAFETY: the only reference, borrowed exclusively.
            Some(unsafe { &mut (*this.counted.as_ptr()).value })
        } else {
            None
        }
    }
}

impl<T> Clone for PoolArc<T> {
    fn clone(&self) -> Self {
        // A count that could overflow would take 2^63 live references.
        self.counted().count.fetch_add(1, Ordering::Relaxed);
        Self { counted: self.counted }
    }
}

impl<T> Deref for PoolArc<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.counted().value
    }
}

impl<T> Drop for PoolArc<T> {
    fn drop(&mut self) {
        if self.counted().count.fetch_sub(1, Ordering::Release) == 1 {
            fence(Ordering::Acquire);
            let tag = self.counted().tag;
            // SAFETY: the last reference; the block came from a PoolBox with this tag.
            drop(unsafe { PoolBox::from_raw(self.counted, tag) });
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for PoolArc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
