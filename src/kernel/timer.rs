//! One-shot NDIS timers (ndis/nf-ndis-ndisallocatetimerobject). A periodic one sets itself again.

use super::adapter::AdapterHandle;
use super::arc::PoolArc;
use super::callback::Callback;
use super::event::relative;
use super::irql::{Dispatch, Passive};
use super::pool::{PoolBox, Tag};
use super::status::{Result, check};
use core::ffi::c_void;
use core::mem::ManuallyDrop;
use core::ptr;
use core::time::Duration;
use windows_kernel_sys as sys;

const TAG: Tag = Tag::new(*b"IbTm");

struct Shared<T> {
    callback: Callback<T>,
    run: fn(&T, Dispatch<'_>),
}

/// A timer that calls `run(context)` at DISPATCH_LEVEL.
///
/// It holds a reference to its context, which usually holds the timer: [`Timer::stop`] cuts that circle.
pub struct Timer<T: Send + Sync> {
    handle: sys::NDIS_HANDLE,
    shared: ManuallyDrop<PoolBox<Shared<T>>>,
}

// SAFETY: NDIS serialises calls on the handle; the rest is Send and Sync for such a T.
unsafe impl<T: Send + Sync> Send for Timer<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Timer<T> {}

impl<T: Send + Sync> Timer<T> {
    /// A timer that is not set. IRQL <= DISPATCH_LEVEL.
    pub fn try_new(adapter: AdapterHandle, context: PoolArc<T>, run: fn(&T, Dispatch<'_>)) -> Result<Self> {
        let shared = PoolBox::try_new(TAG, Shared { callback: Callback::try_new(context)?, run })?;
        let mut characteristics = sys::NDIS_TIMER_CHARACTERISTICS {
            Header: sys::NDIS_OBJECT_HEADER::new(
                sys::NDIS_OBJECT_TYPE_TIMER_CHARACTERISTICS,
                sys::NDIS_TIMER_CHARACTERISTICS_REVISION_1,
                sys::NDIS_SIZEOF_TIMER_CHARACTERISTICS_REVISION_1,
            ),
            AllocationTag: TAG.value(),
            TimerFunction: Some(fired::<T>),
            FunctionContext: shared.as_ptr().cast(),
        };
        let mut handle = ptr::null_mut();
        // SAFETY: a valid handle and description; `shared` stays where it is until the timer is freed.
        check(unsafe {
            sys::NdisAllocateTimerObject(adapter.raw(), &raw mut characteristics, &raw mut handle)
        })?;
        Ok(Self { handle, shared: ManuallyDrop::new(shared) })
    }

    /// Sets it to fire after `delay`, instead of when it was set to before. Nothing happens once it is stopped.
    /// IRQL <= DISPATCH_LEVEL.
    pub fn set(&self, delay: Duration) {
        if !self.shared.callback.enter() {
            return;
        }
        // SAFETY: a live timer object. A null context means the one given at allocation.
        let was_set = unsafe { sys::NdisSetTimerObject(self.handle, relative(delay), 0, ptr::null_mut()) }
            != sys::FALSE;
        if was_set {
            // The firing that was asked for before will not come; this one's ticket stands for both.
            self.shared.callback.leave();
        }
    }

    /// Takes a firing back that has not begun. IRQL <= DISPATCH_LEVEL.
    pub fn cancel(&self) {
        if self.retract() {
            self.shared.callback.leave();
        }
    }

    fn retract(&self) -> bool {
        // SAFETY: a live timer object.
        unsafe { sys::NdisCancelTimerObject(self.handle) != sys::FALSE }
    }

    /// Cancels it for good, waits until it is not running, and drops its reference to the context. Not from the
    /// timer's own function, which cannot have a `Passive`.
    pub fn stop(&self, at: &Passive<'_>) {
        self.shared.callback.stop(at, || self.retract());
    }
}

impl<T: Send + Sync> Drop for Timer<T> {
    fn drop(&mut self) {
        // Dropped without being stopped while its function runs: that needs what would be freed here, so it is leaked.
        // The circle of owner and timer makes this unreachable for a timer that lives in its context.
        if !self.shared.callback.close(|| self.retract()) {
            debug_assert!(false, "a timer was dropped before it was stopped");
            return;
        }
        // SAFETY: closed with no firing to come, so not in the timer queue.
        unsafe { sys::NdisFreeTimerObject(self.handle) };
        // SAFETY: not used afterwards.
        unsafe { ManuallyDrop::drop(&mut self.shared) };
    }
}

/// The timer's function; DISPATCH_LEVEL (ndis/nc-ndis-ndis_timer_function).
unsafe extern "win64" fn fired<T: Send + Sync>(
    _: *mut c_void,
    context: *mut c_void,
    _: *mut c_void,
    _: *mut c_void,
) {
    // SAFETY: the context given at allocation, which lives until the timer is stopped, for which the ticket of this
    // firing is waited.
    let shared = unsafe { &*context.cast::<Shared<T>>() };
    // SAFETY: this firing holds the ticket that `set` took; documented to run at DISPATCH_LEVEL.
    unsafe { (shared.run)(shared.callback.context(), Dispatch::assume()) };
    shared.callback.leave();
}
