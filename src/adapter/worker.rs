//! What needs PASSIVE_LEVEL and begins at DISPATCH_LEVEL: one work item serves it, one timer kicks it.

use super::Adapter;
use super::jobs::Jobs;
use super::lifecycle::Event;
use crate::kernel::irql::{Dispatch, Passive};
use core::time::Duration;

/// Between two ticks: the grain of retries and of aging.
pub(super) const TICK: Duration = Duration::from_secs(1);

/// The work item's function.
pub(super) fn work(adapter: &Adapter, at: &mut Passive<'_>) {
    let jobs = adapter.jobs.take();
    // Errors first: a reset that comes with them is to find them.
    if jobs.contains(Jobs::QP_ERROR) {
        adapter.handle(Event::QpError, at);
    }
    if jobs.contains(Jobs::CQ_ERROR) {
        adapter.handle(Event::CqError, at);
    }
    if jobs.contains(Jobs::BROADCAST) {
        adapter.handle_broadcast(at);
    }
    if jobs.contains(Jobs::RESET) {
        adapter.handle(Event::Reset, at);
    }
    if jobs.contains(Jobs::HALT) {
        adapter.handle(Event::Halt, at);
        adapter.halted.set();
    }
    let Some(machinery) = adapter.machinery() else { return };
    if jobs.contains(Jobs::TICK) {
        adapter.handle_retry(at);
        at.raised(|at| machinery.receiver.refill(machinery, at));
    }
    if jobs.contains(Jobs::POLL) {
        at.raised(|at| machinery.serve_queues(adapter, at));
    }
    if jobs.contains(Jobs::GROUPS) {
        machinery.resolver.set_listened(adapter, at);
    }
    if jobs.intersects(Jobs::PATHS | Jobs::GROUPS | Jobs::TICK) {
        machinery.resolver.serve(adapter, machinery, at);
    }
}

/// The timer's function: sets itself again, and asks the worker.
pub(super) fn tick(adapter: &Adapter, _at: Dispatch<'_>) {
    if let Some(machinery) = adapter.machinery() {
        adapter.ask(Jobs::TICK);
        machinery.timer.set(TICK);
    }
}
