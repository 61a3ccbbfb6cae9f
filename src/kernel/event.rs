//! Kernel events (wdm/nf-wdm-keinitializeevent). Waiting needs PASSIVE_LEVEL, setting is allowed to DISPATCH_LEVEL.

use super::irql::Passive;
use super::pool::{PoolBox, Tag};
use super::status::Result;
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ptr;
use core::time::Duration;
use windows_kernel_sys as sys;

const TAG: Tag = Tag::new(*b"IbEv");

/// How an event is reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Stays set until it is cleared: releases every waiter.
    Notification,
    /// Releases one waiter and is cleared by that.
    Synchronization,
}

/// An event. Its KEVENT lies in pool, since the kernel keeps pointers to it and it must not move.
#[derive(Debug)]
pub struct Event(PoolBox<UnsafeCell<sys::KEVENT>>);

// SAFETY: the kernel serialises every access to a KEVENT.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    /// A new event. IRQL <= DISPATCH_LEVEL.
    pub fn try_new(kind: Kind, set: bool) -> Result<Self> {
        let kind = match kind {
            Kind::Notification => sys::NotificationEvent,
            Kind::Synchronization => sys::SynchronizationEvent,
        };
        // SAFETY: KeInitializeEvent makes a valid KEVENT of any memory.
        let event = unsafe {
            PoolBox::try_init(TAG, |place: &mut MaybeUninit<UnsafeCell<sys::KEVENT>>| {
                sys::KeInitializeEvent(place.as_mut_ptr().cast(), kind, sys::BOOLEAN::from(set));
            })?
        };
        Ok(Self(event))
    }

    fn raw(&self) -> *mut sys::KEVENT {
        self.0.get()
    }

    /// Sets it. IRQL <= DISPATCH_LEVEL.
    pub fn set(&self) {
        // SAFETY: an initialised event; Wait is FALSE.
        unsafe { sys::KeSetEvent(self.raw(), sys::IO_NO_INCREMENT, sys::FALSE) };
    }

    /// Clears it. IRQL <= DISPATCH_LEVEL.
    pub fn clear(&self) {
        // SAFETY: an initialised event.
        unsafe { sys::KeClearEvent(self.raw()) };
    }

    /// Whether it is set now. IRQL <= DISPATCH_LEVEL.
    pub fn is_set(&self) -> bool {
        // SAFETY: an initialised event.
        unsafe { sys::KeReadStateEvent(self.raw()) != 0 }
    }

    /// Waits until it is set.
    pub fn wait(&self, _at: &Passive<'_>) {
        // SAFETY: an initialised event, at PASSIVE_LEVEL. A kernel-mode wait that is not alertable ends only when the
        // event is set.
        unsafe { wait_forever(self.raw()) };
    }

    /// Waits until it is set or the time is over. `true` if it was set.
    #[must_use]
    pub fn wait_timeout(&self, _at: &Passive<'_>, timeout: Duration) -> bool {
        let mut timeout = relative(timeout);
        // SAFETY: an initialised event, at PASSIVE_LEVEL.
        let status = unsafe {
            sys::KeWaitForSingleObject(
                self.raw().cast(),
                sys::Executive,
                sys::KernelMode,
                sys::FALSE,
                &raw mut timeout,
            )
        };
        status == sys::STATUS_WAIT_0
    }
}

/// Waits for an event that need not be an [`Event`].
///
/// # Safety
/// `event` is initialised and the caller runs at PASSIVE_LEVEL.
pub(super) unsafe fn wait_forever(event: *mut sys::KEVENT) {
    // SAFETY: the caller's contract.
    unsafe {
        sys::KeWaitForSingleObject(
            event.cast(),
            sys::Executive,
            sys::KernelMode,
            sys::FALSE,
            ptr::null_mut(),
        );
    }
}

/// A time from now, as the kernel takes it: negative, in units of 100 ns, saturated.
pub(super) fn relative(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos() / 100).unwrap_or(i64::MAX).saturating_neg()
}

/// Lets the thread sleep (wdm/nf-wdm-kedelayexecutionthread).
pub fn sleep(_at: &Passive<'_>, duration: Duration) {
    let mut interval = relative(duration);
    // SAFETY: PASSIVE_LEVEL, and a valid interval.
    unsafe { sys::KeDelayExecutionThread(sys::KernelMode, sys::FALSE, &raw mut interval) };
}
