//! The interrupt request level as a value.
//!
//! A value of [`Passive`] or [`Dispatch`] says at which level the code that holds it runs; code that depends on a
//! level asks its caller for one. Only two things make them: the entry points, by what the DDI documents of each
//! callback ([`Passive::assume`], [`at_dispatch`]), and raising, which lends a [`Dispatch`] for as long as the level
//! stays up.
//!
//! What may wait borrows `&Passive`. What raises the level (a spin lock) borrows `&mut Passive` until it is lowered,
//! so that nothing in between can wait:
//!
//! ```compile_fail,E0502
//! # use ipoib::kernel::{event::Event, irql::Passive, spinlock::SpinLock};
//! fn waits_under_a_spin_lock(at: &mut Passive<'_>, lock: &SpinLock<u32>, event: &Event) {
//!     let guard = lock.lock(at);
//!     event.wait(at); // runs at DISPATCH_LEVEL
//!     drop(guard);
//! }
//! ```
//!
//! Code that is documented to run at or below DISPATCH_LEVEL raises to it at its entry, once ([`at_dispatch`]).

use core::marker::PhantomData;
use windows_kernel_sys as sys;

/// Neither `Send` nor `Sync`: a level belongs to the processor that runs this code now.
type NotSend = PhantomData<*mut ()>;

/// Proof that the code that holds it runs at PASSIVE_LEVEL: it may wait, and call what must not be called higher.
///
/// Not `Copy`: a raise borrows it exclusively.
#[derive(Debug)]
pub struct Passive<'a>(PhantomData<&'a ()>, NotSend);

impl Passive<'_> {
    /// Takes the level for granted.
    ///
    /// # Safety
    /// The caller runs at PASSIVE_LEVEL for the whole lifetime of the value, and holds no other `Passive`. Only an
    /// entry point that the DDI documents to run at PASSIVE_LEVEL can know this.
    #[must_use]
    pub unsafe fn assume() -> Self {
        debug_assert_eq!(current(), sys::PASSIVE_LEVEL);
        Self(PhantomData, PhantomData)
    }

    /// Runs `f` at DISPATCH_LEVEL and comes back.
    pub fn raised<R>(&mut self, f: impl FnOnce(Dispatch<'_>) -> R) -> R {
        // SAFETY: PASSIVE_LEVEL, which this value proves, is not above DISPATCH_LEVEL.
        unsafe { at_dispatch(f) }
    }
}

/// Proof that the code that holds it runs at DISPATCH_LEVEL: it is not preempted and must not wait.
#[derive(Clone, Copy, Debug)]
pub struct Dispatch<'a>(PhantomData<&'a ()>, NotSend);

impl Dispatch<'_> {
    /// Takes the level for granted.
    ///
    /// # Safety
    /// The caller runs at DISPATCH_LEVEL for the whole lifetime of the value.
    #[must_use]
    pub unsafe fn assume() -> Self {
        debug_assert_eq!(current(), sys::DISPATCH_LEVEL);
        Self(PhantomData, PhantomData)
    }
}

/// Runs `f` at DISPATCH_LEVEL, raising the level if it is lower, and restores it.
///
/// # Safety
/// The caller runs at or below DISPATCH_LEVEL.
pub unsafe fn at_dispatch<R>(f: impl FnOnce(Dispatch<'_>) -> R) -> R {
    if current() == sys::DISPATCH_LEVEL {
        return f(Dispatch(PhantomData, PhantomData));
    }
    let _raised = Raised::to_dispatch();
    f(Dispatch(PhantomData, PhantomData))
}

/// The level now.
fn current() -> sys::KIRQL {
    // SAFETY: may be called at any level.
    unsafe { sys::KeGetCurrentIrql() }
}

/// Lowers the level again when dropped.
struct Raised(sys::KIRQL);

impl Raised {
    /// The level must be at or below DISPATCH_LEVEL.
    fn to_dispatch() -> Self {
        // SAFETY: raising from a level that is not higher.
        Self(unsafe { sys::KfRaiseIrql(sys::DISPATCH_LEVEL) })
    }
}

impl Drop for Raised {
    fn drop(&mut self) {
        // SAFETY: back to the level from which `to_dispatch` raised.
        unsafe { sys::KeLowerIrql(self.0) }
    }
}
