//! The border into the driver: every call of one of its functions passes here.

use windows_kernel_sys::KIRQL;

use super::rules;
use super::{cause, irql_name, violation};
use crate::kernel::{Machine, irql};
use crate::sim::border::Side;
use crate::sim::{self, border};

/// A call into the driver that runs now, for the checks at its end.
#[derive(Clone, Copy, Debug)]
pub struct DriverCall {
    /// Name of the callback.
    pub callback: &'static str,
    /// IRQL at which it was called, below which it must not go.
    pub irql: KIRQL,
}

/// Calls a function of the driver: raises to `at` if the current IRQL is lower, runs `f`, and checks that it came
/// back at the same IRQL and with no spin lock held that it took.
///
/// # Panics
/// If the current IRQL is above `at`, or a lab lock is held: faults of the lab, not of the driver.
pub fn call_driver<R>(callback: &'static str, at: KIRQL, f: impl FnOnce() -> R) -> R {
    sim::assert_none_held();
    let machine = Machine::current();
    let before = sim::level();
    assert!(before <= at, "{callback} is called at {}, which is above {}", irql_name(before), irql_name(at));
    irql::raise(at);
    let held_before = machine.held_locks();
    let _scope = cause::enter(callback);
    let outer = machine.enter_driver(DriverCall { callback, irql: at });
    crate::kernel::preempt(callback);
    let (result, depth) = sim::measure_stack(|| border::on(Side::Driver, f));
    machine.note_driver_stack(depth);
    let now = sim::level();
    if now != at {
        let detail = format!("called at {}, returned at {}", irql_name(at), irql_name(now));
        violation(rules::IRQL_NOT_RESTORED, callback, detail);
    }
    machine.leave_driver(outer);
    // At a lower level the thread may have moved to another processor, whose locks are not its own.
    if at >= irql::DISPATCH_LEVEL {
        let held = machine.held_locks();
        if held != held_before {
            let detail = format!("{held_before} spin lock(s) held at the call, {held} at the return");
            violation(rules::LOCK_HELD_AT_RETURN, callback, detail);
        }
    }
    irql::lower(before);
    result
}
