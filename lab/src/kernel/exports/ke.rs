//! `Ke`: IRQL, spin locks, events, waiting, time, bug checks. And `vDbgPrintEx`.

use std::ffi::CStr;

use windows_kernel_sys::{
    BOOLEAN, EVENT_TYPE, KEVENT, KIRQL, KPROCESSOR_MODE, KSPIN_LOCK, KWAIT_REASON, NTSTATUS,
    NotificationEvent, PVOID, STATUS_SUCCESS, SynchronizationEvent,
};

use crate::kernel::irql::{APC_LEVEL, DISPATCH_LEVEL};
use crate::kernel::time::{PERFORMANCE_FREQUENCY, SYSTEM_TIME_AT_START, UNIT, deadline};
use crate::kernel::{Machine, preempt};
use crate::sim;
use crate::verifier::rules::{BUG_CHECK, OBJECT_NOT_INITIALIZED};
use crate::verifier::{irql, violation};

crate::export! {
    "ntoskrnl.exe";

    /// The current IRQL. Any level.
    pub unsafe fn KeGetCurrentIrql() -> KIRQL {
        sim::level()
    }

    /// Raises the IRQL; returns the old one. Never lowers.
    pub unsafe fn KfRaiseIrql(new_irql: KIRQL) -> KIRQL {
        preempt("KfRaiseIrql");
        Machine::raise_irql(new_irql, "KfRaiseIrql")
    }

    /// Lowers the IRQL to what a raise returned.
    pub unsafe fn KeLowerIrql(new_irql: KIRQL) {
        preempt("KeLowerIrql");
        Machine::current().lower_irql(new_irql, "KeLowerIrql");
    }

    /// Raises to DISPATCH_LEVEL and takes the lock. IRQL <= DISPATCH_LEVEL.
    pub unsafe fn KeAcquireSpinLockRaiseToDpc(spin_lock: *mut KSPIN_LOCK) -> KIRQL {
        let call = "KeAcquireSpinLockRaiseToDpc";
        irql(call, ..=DISPATCH_LEVEL);
        preempt(call);
        let machine = Machine::current();
        let before = Machine::raise_irql(DISPATCH_LEVEL, call);
        // SAFETY: the caller's lock.
        unsafe { machine.acquire_spin_lock(spin_lock, call) };
        before
    }

    /// Releases the lock and lowers to `new_irql`. IRQL = DISPATCH_LEVEL.
    pub unsafe fn KeReleaseSpinLock(spin_lock: *mut KSPIN_LOCK, new_irql: KIRQL) {
        let call = "KeReleaseSpinLock";
        irql(call, DISPATCH_LEVEL..=DISPATCH_LEVEL);
        preempt(call);
        let machine = Machine::current();
        // SAFETY: the caller's lock.
        unsafe { machine.release_spin_lock(spin_lock, call) };
        machine.lower_irql(new_irql, call);
    }

    /// Takes the lock. IRQL >= DISPATCH_LEVEL.
    pub unsafe fn KeAcquireSpinLockAtDpcLevel(spin_lock: *mut KSPIN_LOCK) {
        let call = "KeAcquireSpinLockAtDpcLevel";
        irql(call, DISPATCH_LEVEL..);
        preempt(call);
        // SAFETY: the caller's lock.
        unsafe { Machine::current().acquire_spin_lock(spin_lock, call) };
    }

    /// Releases the lock. IRQL >= DISPATCH_LEVEL.
    pub unsafe fn KeReleaseSpinLockFromDpcLevel(spin_lock: *mut KSPIN_LOCK) {
        let call = "KeReleaseSpinLockFromDpcLevel";
        irql(call, DISPATCH_LEVEL..);
        preempt(call);
        // SAFETY: the caller's lock.
        unsafe { Machine::current().release_spin_lock(spin_lock, call) };
    }

    /// Initialises an event. Any level.
    pub unsafe fn KeInitializeEvent(event: *mut KEVENT, kind: EVENT_TYPE, state: BOOLEAN) {
        preempt("KeInitializeEvent");
        if kind != NotificationEvent && kind != SynchronizationEvent {
            violation(OBJECT_NOT_INITIALIZED, "KeInitializeEvent", format!("event type {kind}"));
        }
        // SAFETY: the caller's event.
        unsafe { Machine::current().initialize_event(event, kind, state != 0, "KeInitializeEvent") };
    }

    /// Signals an event. IRQL <= DISPATCH_LEVEL; < DISPATCH_LEVEL if the caller announces a wait.
    pub unsafe fn KeSetEvent(event: *mut KEVENT, _increment: i32, wait: BOOLEAN) -> i32 {
        irql("KeSetEvent", ..=if wait == 0 { DISPATCH_LEVEL } else { APC_LEVEL });
        preempt("KeSetEvent");
        // SAFETY: the caller's event.
        let previous = unsafe { Machine::current().set_event(event, "KeSetEvent") };
        // The woken thread may run before the caller does anything more.
        preempt("KeSetEvent");
        previous
    }

    /// Clears an event. IRQL <= DISPATCH_LEVEL.
    pub unsafe fn KeClearEvent(event: *mut KEVENT) {
        irql("KeClearEvent", ..=DISPATCH_LEVEL);
        preempt("KeClearEvent");
        // SAFETY: the caller's event.
        unsafe { Machine::current().reset_event(event, "KeClearEvent") };
    }

    /// Clears an event and returns its previous state. IRQL <= DISPATCH_LEVEL.
    pub unsafe fn KeResetEvent(event: *mut KEVENT) -> i32 {
        irql("KeResetEvent", ..=DISPATCH_LEVEL);
        preempt("KeResetEvent");
        // SAFETY: the caller's event.
        unsafe { Machine::current().reset_event(event, "KeResetEvent") }
    }

    /// The state of an event. IRQL <= DISPATCH_LEVEL.
    pub unsafe fn KeReadStateEvent(event: *mut KEVENT) -> i32 {
        irql("KeReadStateEvent", ..=DISPATCH_LEVEL);
        preempt("KeReadStateEvent");
        // SAFETY: the caller's event.
        unsafe { Machine::current().read_event(event, "KeReadStateEvent") }
    }

    /// Waits for an event. IRQL <= APC_LEVEL, or DISPATCH_LEVEL with a timeout of zero.
    pub unsafe fn KeWaitForSingleObject(
        object: PVOID,
        _reason: KWAIT_REASON,
        _mode: KPROCESSOR_MODE,
        _alertable: BOOLEAN,
        timeout: *mut i64,
    ) -> NTSTATUS {
        let call = "KeWaitForSingleObject";
        preempt(call);
        let machine = Machine::current();
        // SAFETY: the caller's timeout, if it gave one.
        let until = unsafe { timeout.as_ref() }.map(|timeout| deadline(machine.sim().now(), *timeout));
        // SAFETY: the caller's event.
        unsafe { machine.wait_for_event(object.cast(), until, call) }
    }

    /// Sleeps. IRQL <= APC_LEVEL.
    pub unsafe fn KeDelayExecutionThread(_mode: KPROCESSOR_MODE, _alertable: BOOLEAN, interval: *mut i64) -> NTSTATUS {
        irql("KeDelayExecutionThread", ..=APC_LEVEL);
        preempt("KeDelayExecutionThread");
        let now = Machine::current().sim().now();
        // SAFETY: the caller's interval.
        let until = deadline(now, unsafe { *interval });
        sim::sleep(until.saturating_sub(now));
        STATUS_SUCCESS
    }

    /// Time since boot in 100 ns, and the performance counter at that moment. Any level.
    pub unsafe fn KeQueryInterruptTimePrecise(qpc_time_stamp: *mut u64) -> u64 {
        preempt("KeQueryInterruptTimePrecise");
        let now = Machine::current().sim().now() / UNIT;
        // SAFETY: the caller's variable, if it gave one.
        if let Some(stamp) = unsafe { qpc_time_stamp.as_mut() } {
            *stamp = now;
        }
        now
    }

    /// System time in 100 ns since 1601. Any level.
    pub unsafe fn KeQuerySystemTimePrecise(current_time: *mut i64) {
        preempt("KeQuerySystemTimePrecise");
        let now = SYSTEM_TIME_AT_START + Machine::current().sim().now() / UNIT;
        // SAFETY: the caller's variable.
        unsafe { *current_time = now as i64 };
    }

    /// The performance counter, and its frequency. Any level.
    pub unsafe fn KeQueryPerformanceCounter(performance_frequency: *mut i64) -> i64 {
        preempt("KeQueryPerformanceCounter");
        // SAFETY: the caller's variable, if it gave one.
        if let Some(frequency) = unsafe { performance_frequency.as_mut() } {
            *frequency = PERFORMANCE_FREQUENCY;
        }
        (Machine::current().sim().now() / UNIT) as i64
    }

    /// Stops the system. Any level.
    pub unsafe fn KeBugCheckEx(code: u32, first: usize, second: usize, third: usize, fourth: usize) -> ! {
        let detail = format!("code {code:#x} ({first:#x}, {second:#x}, {third:#x}, {fourth:#x})");
        violation(BUG_CHECK, "KeBugCheckEx", detail)
    }

    /// Prints a string: the lab supports the format "%s" and formats without arguments. Any level.
    pub unsafe fn vDbgPrintEx(_component: u32, level: u32, format: *const i8, arguments: *mut PVOID) -> u32 {
        // SAFETY: the caller's format, a terminated string.
        let format = unsafe { CStr::from_ptr(format) }.to_string_lossy();
        let text = if format.trim_end() == "%s" {
            // SAFETY: the format takes one argument, a terminated string.
            unsafe { CStr::from_ptr((*arguments).cast()) }.to_string_lossy()
        } else {
            format
        };
        Machine::current().debug_print(level, &text);
        0
    }
}
