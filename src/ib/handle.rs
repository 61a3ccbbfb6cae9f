//! An owned handle, and the check that it was given back.

use core::fmt;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use super::status::IbError;

/// A handle of the access layer that this driver owns.
///
/// There is no verb in `Drop`: destroying needs PASSIVE_LEVEL, which a drop cannot prove. A debug build
/// checks that the handle was taken out before.
pub(super) struct Handle<T>(AtomicPtr<T>);

impl<T> Handle<T> {
    /// `NO_RESOURCES` for null, which no call that succeeded should leave.
    pub(super) fn new(raw: *mut T) -> Result<Self, IbError> {
        if raw.is_null() { Err(IbError::NO_RESOURCES) } else { Ok(Self(AtomicPtr::new(raw))) }
    }

    /// The handle; null after it was destroyed, which every call of the access layer rejects.
    pub(super) fn get(&self) -> *mut T {
        self.0.load(Ordering::Relaxed)
    }

    /// Takes the handle, to be destroyed. `None` the second time.
    pub(super) fn take(&self) -> Option<*mut T> {
        let raw = self.0.swap(ptr::null_mut(), Ordering::AcqRel);
        (!raw.is_null()).then_some(raw)
    }
}

impl<T> Drop for Handle<T> {
    fn drop(&mut self) {
        debug_assert!(self.get().is_null(), "an object of the access layer was dropped, not destroyed");
    }
}

impl<T> fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}
