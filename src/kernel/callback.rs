//! What timers, work items and DMA share: a context that outlives the callbacks, and knowing when none is under way.

use super::arc::PoolArc;
use super::event::{Event, Kind};
use super::gate::Gate;
use super::irql::Passive;
use super::status::Result;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

/// The context of one kind of callback, counted in and out.
///
/// Each callback that the kernel may still make holds a ticket of the gate, and the gate's owner holds the context.
pub(super) struct Callback<T> {
    gate: Gate,
    /// Set by the last callback behind the closed gate.
    idle: Event,
    /// A reference given up to a raw pointer, null once stopped.
    context: AtomicPtr<T>,
}

impl<T: Send + Sync> Callback<T> {
    /// Open.
    pub(super) fn try_new(context: PoolArc<T>) -> Result<Self> {
        let gate = Gate::new();
        gate.open();
        let idle = Event::try_new(Kind::Notification, false)?;
        Ok(Self { gate, idle, context: AtomicPtr::new(context.into_raw().cast_mut()) })
    }

    /// Takes a ticket for a callback to come.
    pub(super) fn enter(&self) -> bool {
        self.gate.enter()
    }

    /// Gives a ticket back. After the last one behind a closed gate nothing of `self` may be touched: whoever stops
    /// it frees it.
    pub(super) fn leave(&self) {
        if self.gate.leave(1) {
            self.idle.set();
        }
    }

    /// The context. The caller holds a ticket, which keeps it alive.
    ///
    /// # Safety
    /// Called with a ticket, and not used after it is given back.
    pub(super) unsafe fn context<'a>(&self) -> &'a T {
        // SAFETY: the reference is dropped only when no ticket is out.
        unsafe { &*self.context.load(Ordering::Acquire) }
    }

    /// Lets no more callbacks begin and waits until none is under way; `retract` takes back a callback that was
    /// asked for and has not begun, and says whether it did. Then the context is dropped.
    pub(super) fn stop(&self, at: &Passive<'_>, retract: impl FnOnce() -> bool) {
        if !self.close(retract) {
            self.idle.wait(at);
        }
        self.drop_context();
    }

    /// Lets no more callbacks begin, retracting one as [`Callback::stop`] does. `true` if none is under way.
    pub(super) fn close(&self, retract: impl FnOnce() -> bool) -> bool {
        self.gate.close() || (retract() && self.gate.leave(1))
    }

    fn drop_context(&self) {
        let context = self.context.swap(ptr::null_mut(), Ordering::AcqRel);
        if !context.is_null() {
            // SAFETY: given up by `try_new`, and taken back once, since the pointer was swapped out.
            drop(unsafe { PoolArc::from_raw(context) });
        }
    }
}

impl<T> Drop for Callback<T> {
    fn drop(&mut self) {
        let context = *self.context.get_mut();
        debug_assert!(self.gate.count() == 0, "freed with a callback under way");
        if !context.is_null() {
            // SAFETY: given up by `try_new` and not taken back.
            drop(unsafe { PoolArc::from_raw(context) });
        }
    }
}
