//! The clocks that a driver reads.

use crate::sim::Nanos;

/// Nanoseconds in the unit of Windows' times.
pub const UNIT: Nanos = 100;

/// Counts of the performance counter in a second: 10 MHz, as on every x64 Windows since Windows 10 1607.
pub const PERFORMANCE_FREQUENCY: i64 = 10_000_000;

/// System time at the start of a simulation: 2026-01-01 00:00 UTC, in 100 ns since 1601-01-01.
pub const SYSTEM_TIME_AT_START: u64 = 134_116_992_000_000_000;

/// The absolute simulated time that a kernel timeout means: negative is relative, positive a system time.
pub fn deadline(now: Nanos, timeout: i64) -> Nanos {
    if timeout <= 0 {
        now.saturating_add(timeout.unsigned_abs().saturating_mul(UNIT))
    } else {
        (timeout as u64).saturating_sub(SYSTEM_TIME_AT_START).saturating_mul(UNIT)
    }
}
