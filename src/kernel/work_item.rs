//! NDIS I/O work items (ndis/nf-ndis-ndisallocateioworkitem): the way from DISPATCH_LEVEL to PASSIVE_LEVEL.

use super::adapter::AdapterHandle;
use super::arc::PoolArc;
use super::callback::Callback;
use super::irql::Passive;
use super::pool::{PoolBox, Tag};
use super::status::{Error, Result};
use core::ffi::c_void;
use core::mem::ManuallyDrop;
use core::sync::atomic::{AtomicU8, Ordering};
use windows_kernel_sys as sys;

const TAG: Tag = Tag::new(*b"IbWi");

/// Not asked for.
const IDLE: u8 = 0;
/// Asked for and not begun.
const QUEUED: u8 = 1;
/// Running.
const RUNNING: u8 = 2;
/// Running, and asked for again since it began.
const AGAIN: u8 = 3;

struct Shared<T> {
    callback: Callback<T>,
    state: AtomicU8,
    run: fn(&T, &mut Passive<'_>),
}

/// A work item that calls `run(context)` at PASSIVE_LEVEL in a system thread.
///
/// However often it is queued, it runs once for all requests made before it begins, and never beside itself: a
/// request made while it runs makes it run once more.
pub struct WorkItem<T: Send + Sync> {
    handle: sys::NDIS_HANDLE,
    shared: ManuallyDrop<PoolBox<Shared<T>>>,
}

// SAFETY: NDIS serialises calls on the handle; the rest is Send and Sync for such a T.
unsafe impl<T: Send + Sync> Send for WorkItem<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for WorkItem<T> {}

impl<T: Send + Sync> WorkItem<T> {
    /// A work item that is not queued. IRQL <= DISPATCH_LEVEL.
    pub fn try_new(
        adapter: AdapterHandle,
        context: PoolArc<T>,
        run: fn(&T, &mut Passive<'_>),
    ) -> Result<Self> {
        let callback = Callback::try_new(context)?;
        let shared = PoolBox::try_new(TAG, Shared { callback, state: AtomicU8::new(IDLE), run })?;
        // SAFETY: a valid adapter handle.
        let handle = unsafe { sys::NdisAllocateIoWorkItem(adapter.raw()) };
        if handle.is_null() {
            Err(Error::RESOURCES)
        } else {
            Ok(Self { handle, shared: ManuallyDrop::new(shared) })
        }
    }

    /// Makes it run, soon and once. `false` if it is stopped. IRQL <= DISPATCH_LEVEL.
    pub fn queue(&self) -> bool {
        let Shared { callback, state, .. } = &**self.shared;
        // The ticket covers the look at the state, and the run if this call is what causes one.
        if !callback.enter() {
            return false;
        }
        let before = state
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |state| match state {
                IDLE => Some(QUEUED),
                RUNNING => Some(AGAIN),
                // Written all the same, so that the run sees what was stored before the request.
                _ => Some(state),
            })
            .unwrap_or(QUEUED);
        if before == IDLE {
            submit(self.handle, &self.shared);
        } else {
            // A run that was asked for before will see what this request is about.
            callback.leave();
        }
        true
    }

    /// Lets it not be queued again, waits for the run that is under way or queued, and drops its reference to the
    /// context. Not from its own function: that would wait for itself.
    pub fn stop(&self, at: &Passive<'_>) {
        self.shared.callback.stop(at, || false);
    }
}

impl<T: Send + Sync> Drop for WorkItem<T> {
    fn drop(&mut self) {
        // Dropped without being stopped while a run is still to come: that run needs what would be freed here, so it
        // is leaked. The circle of owner and item makes this unreachable for an item that lives in its context.
        if !self.shared.callback.close(|| false) {
            debug_assert!(false, "a work item was dropped before it was stopped");
            return;
        }
        // SAFETY: closed with no run to come, so not queued.
        unsafe { sys::NdisFreeIoWorkItem(self.handle) };
        // SAFETY: not used afterwards.
        unsafe { ManuallyDrop::drop(&mut self.shared) };
    }
}

/// Hands the item to the system's workers. Its state is QUEUED, a ticket is held for the run.
fn submit<T: Send + Sync>(handle: sys::NDIS_HANDLE, shared: &Shared<T>) {
    let context = (&raw const *shared).cast_mut().cast();
    // SAFETY: the item is not queued and not about to begin (the state says so); `shared` lives until it is stopped,
    // for which the ticket is waited.
    unsafe { sys::NdisQueueIoWorkItem(handle, Some(work::<T>), context) };
}

/// The item's function; PASSIVE_LEVEL (ndis/nc-ndis-ndis_io_workitem_function).
unsafe extern "win64" fn work<T: Send + Sync>(context: *mut c_void, handle: sys::NDIS_HANDLE) {
    // SAFETY: the context given to `submit`, which outlives the run.
    let shared = unsafe { &*context.cast::<Shared<T>>() };
    shared.state.swap(RUNNING, Ordering::AcqRel);
    // SAFETY: documented to run at PASSIVE_LEVEL, and nothing above this frame holds a proof.
    let mut at = unsafe { Passive::assume() };
    // SAFETY: this run holds a ticket.
    (shared.run)(unsafe { shared.callback.context() }, &mut at);
    if shared.state.compare_exchange(RUNNING, IDLE, Ordering::AcqRel, Ordering::Acquire).is_ok() {
        shared.callback.leave();
    } else {
        // Asked for again meanwhile. The ticket of this run goes over to the next.
        shared.state.store(QUEUED, Ordering::Release);
        submit(handle, shared);
    }
}
