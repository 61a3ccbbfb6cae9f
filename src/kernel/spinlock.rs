//! Spin locks that own what they protect. Holding one is being at DISPATCH_LEVEL.

use super::irql::{Dispatch, Passive};
use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use windows_kernel_sys as sys;

/// A value behind a kernel spin lock (wdm/nf-wdm-keacquirespinlockraisetodpc).
///
/// Not recursive: locking twice on one processor never returns. Where two are held, the order is written where the
/// second is taken.
pub struct SpinLock<T: ?Sized> {
    lock: UnsafeCell<sys::KSPIN_LOCK>,
    value: UnsafeCell<T>,
}

// SAFETY: the lock lets one processor at a time reach the value.
unsafe impl<T: ?Sized + Send> Sync for SpinLock<T> {}
// SAFETY: a lock that is moved is not held, and owns its value.
unsafe impl<T: ?Sized + Send> Send for SpinLock<T> {}

impl<T> SpinLock<T> {
    /// A free lock around `value`. On x64 a free KSPIN_LOCK is zero (`KeInitializeSpinLock`).
    pub const fn new(value: T) -> Self {
        Self { lock: UnsafeCell::new(sys::KSPIN_LOCK_FREE), value: UnsafeCell::new(value) }
    }
}

impl<T: Default> Default for SpinLock<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: ?Sized> SpinLock<T> {
    /// Raises to DISPATCH_LEVEL and acquires. The level is lowered when the guard goes, and until then nothing can
    /// be called that needs `at`.
    pub fn lock<'a>(&'a self, at: &'a mut Passive<'_>) -> SpinGuard<'a, T> {
        let _ = at;
        // SAFETY: `Passive` proves a level at or below DISPATCH_LEVEL, and the lock is initialised.
        let irql = unsafe { sys::KeAcquireSpinLockRaiseToDpc(self.lock.get()) };
        SpinGuard { owner: self, lower_to: Some(irql), _level: PhantomData }
    }

    /// Acquires at DISPATCH_LEVEL, without a change of level.
    pub fn lock_at<'a>(&'a self, _at: Dispatch<'a>) -> SpinGuard<'a, T> {
        // SAFETY: `Dispatch` proves DISPATCH_LEVEL, and the lock is initialised.
        unsafe { sys::KeAcquireSpinLockAtDpcLevel(self.lock.get()) };
        SpinGuard { owner: self, lower_to: None, _level: PhantomData }
    }

    /// The value, reached without locking since nobody else can reach it.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

impl<T: ?Sized> fmt::Debug for SpinLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpinLock").finish_non_exhaustive()
    }
}

/// The lock is held, and the processor at DISPATCH_LEVEL, while this lives.
#[must_use]
pub struct SpinGuard<'a, T: ?Sized> {
    owner: &'a SpinLock<T>,
    /// The level to go back to, if acquiring raised it.
    lower_to: Option<sys::KIRQL>,
    _level: PhantomData<*mut ()>,
}

impl<T: ?Sized> SpinGuard<'_, T> {
    /// The value together with the proof of DISPATCH_LEVEL that the lock gives: for calling, with the lock held,
    /// what needs the proof.
    pub fn parts(&mut self) -> (&mut T, Dispatch<'_>) {
        // SAFETY: the lock is held, exclusively, while `self` lives; the level is DISPATCH_LEVEL until it is dropped.
        unsafe { (&mut *self.owner.value.get(), Dispatch::assume()) }
    }
}

impl<T: ?Sized> Deref for SpinGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the lock is held.
        unsafe { &*self.owner.value.get() }
    }
}

impl<T: ?Sized> DerefMut for SpinGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock is held, and the guard is borrowed exclusively.
        unsafe { &mut *self.owner.value.get() }
    }
}

impl<T: ?Sized> Drop for SpinGuard<'_, T> {
    fn drop(&mut self) {
        let lock = self.owner.lock.get();
        match self.lower_to {
            // SAFETY: acquired by `lock`, which raised from this level.
            Some(irql) => unsafe { sys::KeReleaseSpinLock(lock, irql) },
            // SAFETY: acquired by `lock_at`, at DISPATCH_LEVEL.
            None => unsafe { sys::KeReleaseSpinLockFromDpcLevel(lock) },
        }
    }
}
