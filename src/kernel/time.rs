//! The time since boot. Any IRQL.

use core::time::Duration;
use windows_kernel_sys as sys;

/// Time since boot, in steps of 100 ns (wdm/nf-wdm-kequeryinterrupttimeprecise).
pub fn now() -> Duration {
    let mut counter = 0;
    // SAFETY: any level, and a place for the performance counter.
    let time = unsafe { sys::KeQueryInterruptTimePrecise(&raw mut counter) };
    Duration::from_micros(time / 10) + Duration::from_nanos(time % 10 * 100)
}
