//! Failing what can fail: every fallible export asks here first whether this time it shall.

mod plan;
mod site;
mod walk;

pub use plan::{Faults, Plan, SiteReport, Sweep};
pub use site::Site;

use crate::kernel::Machine;

/// Asks the current machine's plan whether `call` shall fail now. The caller then returns its documented failure.
pub fn should_fail(call: &'static str) -> bool {
    let machine = Machine::current();
    let fail = machine.faults().decide(machine.sim(), call);
    if fail {
        machine.sim().trace(crate::sim::TraceEvent::text("fault", u64::from(machine.id()), call));
    }
    fail
}
