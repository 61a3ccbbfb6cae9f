//! The mutex of the lab's own state.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

thread_local! {
    static HELD: Cell<u32> = const { Cell::new(0) };
}

/// A mutex for lab state, never to be held over a yield point or a call into the driver.
///
/// Whoever breaks that rule in deterministic mode would block the only OS thread for ever, so the yield points
/// check it and panic instead. A panic of a holder does not poison the state: the run has failed anyway and its
/// report still wants to be written.
#[derive(Debug, Default)]
pub struct Lock<T>(Mutex<T>);

impl<T> Lock<T> {
    /// A new lock around `value`.
    pub const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Takes the lock.
    pub fn lock(&self) -> LockGuard<'_, T> {
        let guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        HELD.set(HELD.get() + 1);
        LockGuard(Some(guard))
    }

    /// The value, when nobody else can have it.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A held [`Lock`].
pub struct LockGuard<'a, T>(Option<MutexGuard<'a, T>>);

impl<T> LockGuard<'_, T> {
    /// Waits on `condvar`, at most for `timeout`, with the lock released meanwhile.
    pub(super) fn wait(&mut self, condvar: &std::sync::Condvar, timeout: std::time::Duration) {
        if let Some(guard) = self.0.take() {
            let (guard, _) = condvar.wait_timeout(guard, timeout).unwrap_or_else(PoisonError::into_inner);
            self.0 = Some(guard);
        }
    }
}

impl<T> Deref for LockGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("held until dropped")
    }
}

impl<T> DerefMut for LockGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect("held until dropped")
    }
}

impl<T> Drop for LockGuard<'_, T> {
    fn drop(&mut self) {
        HELD.set(HELD.get() - 1);
    }
}

/// Panics if this OS thread holds a [`Lock`]: called at every yield point.
pub(crate) fn assert_none_held() {
    let held = HELD.get();
    assert!(held == 0, "{held} lab lock(s) held over a yield point or a call into the driver");
}
