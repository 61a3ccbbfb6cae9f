//! Interrupt request levels. A CPU's level in [`crate::sim`] is its IRQL.

use windows_kernel_sys::KIRQL;
pub use windows_kernel_sys::{APC_LEVEL, DISPATCH_LEVEL, PASSIVE_LEVEL};

use crate::sim;

/// The preemption point that every export and every call into the driver passes: DPCs are delivered, other
/// processors get their turn, and at PASSIVE_LEVEL other threads.
///
/// # Panics
/// If the coroutine's stack is nearly used up: the lab's fault, found before it becomes a crash.
pub fn preempt(call: &str) {
    if let Some(left) = sim::stack_left()
        && left < 16 * 1024
    {
        panic!("{call}: only {left} bytes of stack left");
    }
    sim::preempt();
}

/// Raises the current CPU to `level` and returns the level before. For the lab's own use: no rule is checked.
pub fn raise(level: KIRQL) -> KIRQL {
    let before = sim::level();
    if level > before {
        sim::set_level(level);
    }
    before
}

/// Lowers the current CPU to `level`; waiting DPCs run before this returns. For the lab's own use.
pub fn lower(level: KIRQL) {
    if level < sim::level() {
        sim::set_level(level);
    }
}

/// Runs `f` at `level` or above.
pub fn at<R>(level: KIRQL, f: impl FnOnce() -> R) -> R {
    let before = raise(level);
    let result = f();
    lower(before);
    result
}
