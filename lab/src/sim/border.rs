//! Whose code runs: the lab's or the driver's. Benchmarks watch the border, to count the driver's part alone.
//!
//! It is crossed in two places: [`call_driver`](crate::verifier::call_driver), into the driver, and
//! [`contain`](super::contain), which every function that the driver imports runs in. Unwatched, a crossing costs
//! a load and a branch.

use std::sync::OnceLock;

/// A side of the border.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The driver.
    Driver,
    /// The simulated kernel, NDIS, access layer, and whatever is below and above them.
    Lab,
}

/// Told which side runs from now on; answers which did before. Coroutines are switched on the lab's side only, so
/// in deterministic mode one variable can hold the answer.
pub type Watch = fn(Side) -> Side;

static WATCH: OnceLock<Watch> = OnceLock::new();

/// Watches the border from now on, for as long as the process lives. The first watch stands.
pub fn watch(watch: Watch) {
    // A second one would have to know what the first was told.
    let _ = WATCH.set(watch);
}

/// Runs `f` on a side, then goes back to the one before.
#[inline]
pub fn on<R>(side: Side, f: impl FnOnce() -> R) -> R {
    let Some(watch) = WATCH.get() else { return f() };
    let before = watch(side);
    let result = f();
    watch(before);
    result
}
