//! The border between NDIS and the miniport: what every export checks first, and the levels NDIS calls at.

use std::ops::RangeInclusive;

use windows_kernel_sys::KIRQL;

use super::rules::{self, broken};
use crate::kernel::irql::{DISPATCH_LEVEL, PASSIVE_LEVEL};
use crate::kernel::preempt;
use crate::verifier;
use crate::{fault, sim};

/// What every function that a miniport calls does first: checks the level its page allows, and lets others run.
pub(super) fn entered(call: &'static str, levels: RangeInclusive<KIRQL>) {
    verifier::irql(call, levels);
    preempt(call);
}

/// As [`entered`] for a function that may fail: whether it shall, this time.
pub(super) fn entered_or_fails(call: &'static str, levels: RangeInclusive<KIRQL>) -> bool {
    entered(call, levels);
    fault::should_fail(call)
}

/// PASSIVE_LEVEL only.
pub(super) const PASSIVE: RangeInclusive<KIRQL> = PASSIVE_LEVEL..=PASSIVE_LEVEL;
/// DISPATCH_LEVEL and below.
pub(super) const UP_TO_DISPATCH: RangeInclusive<KIRQL> = PASSIVE_LEVEL..=DISPATCH_LEVEL;
/// DISPATCH_LEVEL only.
pub(super) const DISPATCH: RangeInclusive<KIRQL> = DISPATCH_LEVEL..=DISPATCH_LEVEL;

/// Checks a flag by which the caller says that it runs at DISPATCH_LEVEL.
pub(super) fn dispatch_flag(call: &str, flag: bool) {
    let level = sim::level();
    if flag && level != DISPATCH_LEVEL {
        let detail = format!("the DISPATCH_LEVEL flag is set at {}", verifier::irql_name(level));
        broken(&rules::NDIS_DISPATCH_FLAG, call, detail);
    }
}

/// The level of a call that a protocol may make at PASSIVE_LEVEL or DISPATCH_LEVEL: one of them by chance, if the
/// caller runs below DISPATCH_LEVEL.
pub(super) fn some_level() -> KIRQL {
    let level = sim::level();
    let raise = sim::current().is_some_and(|sim| sim.rng(|rng| rng.chance(1 << 15)));
    if level < DISPATCH_LEVEL && raise { DISPATCH_LEVEL } else { level }
}
