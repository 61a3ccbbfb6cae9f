//! A lock for code at PASSIVE_LEVEL that stays there while it holds it, so that it may wait and call verbs.
//!
//! Made of a synchronization event: unlike a KMUTEX it has no owner thread and is not recursive, and unlike a fast
//! mutex it does not raise to APC_LEVEL, where verbs may not be called.

use super::event::{Event, Kind};
use super::irql::Passive;
use super::status::Result;
use core::cell::UnsafeCell;
use core::fmt;
use core::ops::{Deref, DerefMut};

/// A value that one thread at a time may use, at PASSIVE_LEVEL.
pub struct Mutex<T> {
    /// Set while nobody holds the lock.
    free: Event,
    value: UnsafeCell<T>,
}

// SAFETY: the event lets one thread at a time reach the value.
unsafe impl<T: Send> Sync for Mutex<T> {}

impl<T> Mutex<T> {
    /// A free lock around `value`.
    pub fn try_new(value: T) -> Result<Self> {
        Ok(Self { free: Event::try_new(Kind::Synchronization, true)?, value: UnsafeCell::new(value) })
    }

    /// Waits for the lock. Locking twice in one thread never returns.
    pub fn lock(&self, at: &Passive<'_>) -> MutexGuard<'_, T> {
        self.free.wait(at);
        MutexGuard(self)
    }

    /// The value, reached without locking since nobody else can reach it.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

impl<T> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mutex").finish_non_exhaustive()
    }
}

/// The lock is held while this lives.
#[must_use]
pub struct MutexGuard<'a, T>(&'a Mutex<T>);

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the lock is held.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock is held, and the guard is borrowed exclusively.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        self.0.free.set();
    }
}
