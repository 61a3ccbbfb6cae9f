//! A place that is filled once, after the value it lives in was shared.

use core::cell::UnsafeCell;
use core::fmt;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU8, Ordering};

const EMPTY: u8 = 0;
const FILLING: u8 = 1;
const FULL: u8 = 2;

/// Holds nothing, then one value for good. Reading is one atomic load.
pub struct SetOnce<T> {
    state: AtomicU8,
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: the value is written by one filler before FULL is published, and only shared afterwards.
unsafe impl<T: Send + Sync> Sync for SetOnce<T> {}

impl<T> Default for SetOnce<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> SetOnce<T> {
    /// Empty.
    pub const fn new() -> Self {
        Self { state: AtomicU8::new(EMPTY), value: UnsafeCell::new(MaybeUninit::uninit()) }
    }

    /// Fills the place, or hands the value back if it was filled before.
    pub fn set(&self, value: T) -> Result<(), T> {
        if self.state.compare_exchange(EMPTY, FILLING, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return Err(value);
        }
        // SAFETY: FILLING was won by this caller alone, and nobody reads before FULL.
        unsafe { (*self.value.get()).write(value) };
        self.state.store(FULL, Ordering::Release);
        Ok(())
    }

    /// The value, if there is one.
    pub fn get(&self) -> Option<&T> {
        // SAFETY: FULL is published after the value was written, and it stays until drop.
        (self.state.load(Ordering::Acquire) == FULL).then(|| unsafe { (*self.value.get()).assume_init_ref() })
    }

    /// Empties the place.
    pub fn take(&mut self) -> Option<T> {
        if *self.state.get_mut() != FULL {
            return None;
        }
        *self.state.get_mut() = EMPTY;
        // SAFETY: it was full, and is empty from now on.
        Some(unsafe { self.value.get_mut().assume_init_read() })
    }

    /// Empties the place while it is shared: the way out of a circle in which the value holds references to what it
    /// lives in.
    ///
    /// # Safety
    /// No reference from [`SetOnce::get`] is in use, and nobody calls a method of this while this runs.
    pub unsafe fn take_shared(&self) -> Option<T> {
        if self.state.swap(EMPTY, Ordering::AcqRel) != FULL {
            return None;
        }
        // SAFETY: it was full, and is empty from now on; by the contract nobody looks at it.
        Some(unsafe { (*self.value.get()).assume_init_read() })
    }
}

impl<T> Drop for SetOnce<T> {
    fn drop(&mut self) {
        drop(self.take());
    }
}

impl<T: fmt::Debug> fmt::Debug for SetOnce<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SetOnce").field(&self.get()).finish()
    }
}
