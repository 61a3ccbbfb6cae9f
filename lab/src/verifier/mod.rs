//! The rules a driver must keep, and what happens when it breaks one.
//!
//! A rule is a named value with the document it comes from. Each room of the lab declares the rules it watches
//! with [`rules!`](crate::rules); those of this room are in [`rules`]. Breaking one ends the run with the rule's
//! name, the call, what was wrong and the seed; the context that broke it never runs again, since a driver's
//! frames cannot unwind.

pub mod cause;
mod driver_call;
mod ledger;
mod lock_order;
pub mod rules;

pub use driver_call::{DriverCall, call_driver};
pub use ledger::{Leak, Ledger};
pub use lock_order::LockOrder;
pub use rules::Rule;

use std::ops::{Bound, RangeBounds};

use windows_kernel_sys::KIRQL;

use crate::sim;

/// Checks that the current IRQL is one at which `call` may be made.
pub fn irql(call: &str, allowed: impl RangeBounds<KIRQL>) {
    let now = sim::level();
    if !allowed.contains(&now) {
        irql_broken(call, now, &describe_range(&allowed));
    }
}

#[cold]
fn irql_broken(call: &str, now: KIRQL, allowed: &str) -> ! {
    violation(rules::IRQL, call, format!("called at {}, allowed is {allowed}", irql_name(now)))
}

fn describe_range(range: &impl RangeBounds<KIRQL>) -> String {
    let name = |bound| match bound {
        Bound::Included(&level) | Bound::Excluded(&level) => Some(irql_name(level)),
        Bound::Unbounded => None,
    };
    match (name(range.start_bound()), name(range.end_bound())) {
        (Some(low), Some(high)) if low == high => low,
        (Some(low), Some(high)) => format!("{low} to {high}"),
        (Some(low), None) => format!("{low} or above"),
        (None, Some(high)) => format!("{high} or below"),
        (None, None) => "any".into(),
    }
}

/// The name of an IRQL, for people.
pub fn irql_name(level: KIRQL) -> String {
    match level {
        0 => "PASSIVE_LEVEL".into(),
        1 => "APC_LEVEL".into(),
        2 => "DISPATCH_LEVEL".into(),
        15 => "HIGH_LEVEL".into(),
        other => format!("DIRQL {other}"),
    }
}

/// Ends the run: `rule` was broken in `call`. Never returns; a coroutine is suspended for ever, an event's closure
/// is unwound.
///
/// # Panics
/// Outside a simulation, and with a lab lock held: the report needs the locks.
pub fn violation(rule: Rule, call: &str, detail: impl Into<String>) -> ! {
    let detail = detail.into();
    let Some(sim) = sim::current() else {
        panic!("{} in {call}: {detail} (outside any simulation)", rule.name);
    };
    sim::assert_none_held();
    sim.record_violation(rule.name, call, detail);
    sim::suspend_for_ever()
}
