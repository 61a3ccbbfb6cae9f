//! Spin locks, and what each processor holds.
//!
//! A lock's word in the driver's memory is 0 when free and the holder's processor number plus one when held, so
//! that a lock that was never zeroed, or that something wrote over, shows.

use std::sync::atomic::{AtomicUsize, Ordering};

use windows_kernel_sys::{KIRQL, KSPIN_LOCK};

use super::Machine;
use super::irql::{DISPATCH_LEVEL, PASSIVE_LEVEL};
use crate::sim::{self, Lock};
use crate::verifier::rules::{
    IRQL_LOWER_RAISES, IRQL_LOWERED_BELOW_ENTRY, IRQL_RAISE_LOWERS, LOCK_CORRUPT, LOCK_HELD_BELOW_DISPATCH,
    LOCK_NOT_HELD, LOCK_ORDER, LOCK_RECURSION,
};
use crate::verifier::{DriverCall, irql_name, violation};

/// What the kernel knows about one processor.
#[derive(Default)]
pub(super) struct Processor(Lock<State>);

#[derive(Default)]
struct State {
    /// Addresses of the locks held, in order of acquisition, and the call that took each.
    held: Vec<(usize, &'static str)>,
    driver_call: Option<DriverCall>,
}

impl Processor {
    pub fn held(&self) -> usize {
        self.0.lock().held.len()
    }

    pub fn driver_call(&self) -> Option<DriverCall> {
        self.0.lock().driver_call
    }

    pub fn enter_driver(&self, call: Option<DriverCall>) -> Option<DriverCall> {
        std::mem::replace(&mut self.0.lock().driver_call, call)
    }
}

impl Machine {
    /// Takes the spin lock at DISPATCH_LEVEL or above; the level is the caller's business.
    ///
    /// # Safety
    /// `lock` must point to a spin lock that stays valid while it is held.
    pub(super) unsafe fn acquire_spin_lock(&self, lock: *mut KSPIN_LOCK, call: &'static str) {
        let address = lock as usize;
        let me = Self::processor_index() as usize + 1;
        // SAFETY: the caller's contract; a spin lock is only ever accessed through such atomics.
        let word = unsafe { AtomicUsize::from_ptr(lock) };
        let held = self.processor().0.lock().held.clone();
        if word.load(Ordering::Relaxed) == me {
            let by = held.iter().find(|(at, _)| *at == address).map_or("(unknown)", |(_, by)| by);
            violation(LOCK_RECURSION, call, format!("this processor took the lock already, in {by}"));
        }
        self.check_resident(address, "the spin lock", call);
        if !held.is_empty() {
            let mut order = self.0.lock_order.lock();
            let broken = held.iter().find(|(outer, _)| !order.note(*outer, address)).map(|(_, by)| *by);
            drop(order);
            if let Some(by) = broken {
                let detail =
                    format!("taken while the lock taken in {by} is held; before, it was the other way round");
                violation(LOCK_ORDER, call, detail);
            }
        }
        loop {
            match word.compare_exchange_weak(0, me, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => break,
                Err(holder) if holder > self.0.processors.len() => {
                    violation(LOCK_CORRUPT, call, format!("the lock's word is {holder:#x}"));
                }
                Err(0) => {}
                Err(_) => sim::spin_wait(address),
            }
        }
        self.processor().0.lock().held.push((address, call));
    }

    /// Releases the spin lock.
    ///
    /// # Safety
    /// `lock` must point to a spin lock.
    pub(super) unsafe fn release_spin_lock(&self, lock: *mut KSPIN_LOCK, call: &'static str) {
        let address = lock as usize;
        let me = Self::processor_index() as usize + 1;
        // SAFETY: the caller's contract; a spin lock is only ever accessed through such atomics.
        let word = unsafe { AtomicUsize::from_ptr(lock) };
        let holder = word.load(Ordering::Relaxed);
        if holder != me {
            let detail = match holder {
                0 => "the lock is free".into(),
                other if other <= self.0.processors.len() => {
                    format!("processor {} holds the lock", other - 1)
                }
                other => format!("the lock's word is {other:#x}"),
            };
            violation(LOCK_NOT_HELD, call, detail);
        }
        self.processor().0.lock().held.retain(|(at, _)| *at != address);
        word.store(0, Ordering::Release);
        sim::spin_wake(address);
    }

    /// Whether a held spin lock lies in the memory.
    pub(super) fn held_lock_in(&self, memory: &std::ops::Range<usize>) -> bool {
        self.0
            .processors
            .iter()
            .any(|processor| processor.0.lock().held.iter().any(|(address, _)| memory.contains(address)))
    }

    /// Raises the current processor for the driver.
    pub(super) fn raise_irql(level: KIRQL, call: &'static str) -> KIRQL {
        let now = sim::level();
        if level < now {
            violation(IRQL_RAISE_LOWERS, call, format!("from {} to {}", irql_name(now), irql_name(level)));
        }
        sim::set_level(level);
        now
    }

    /// Lowers the current processor for the driver; waiting DPCs run before this returns.
    pub(super) fn lower_irql(&self, level: KIRQL, call: &'static str) {
        let now = sim::level();
        if level > now {
            violation(IRQL_LOWER_RAISES, call, format!("from {} to {}", irql_name(now), irql_name(level)));
        }
        if level < DISPATCH_LEVEL && self.held_locks() > 0 {
            let held = self.held_locks();
            violation(
                LOCK_HELD_BELOW_DISPATCH,
                call,
                format!("{held} spin lock(s) held, lowered to {}", irql_name(level)),
            );
        }
        let entry = self.processor().0.lock().driver_call;
        let in_dpc = sim::current_thread().is_none();
        let floor = entry.map_or(if in_dpc { DISPATCH_LEVEL } else { PASSIVE_LEVEL }, |call| call.irql);
        if level < floor {
            let callback = entry.map_or("a DPC", |call| call.callback);
            let detail =
                format!("{callback} was called at {}, lowered to {}", irql_name(floor), irql_name(level));
            violation(IRQL_LOWERED_BELOW_ENTRY, call, detail);
        }
        sim::set_level(level);
    }
}
