//! `Rtl`: strings.

use windows_kernel_sys::{UNICODE_STRING, WCHAR};

use crate::kernel::preempt;

crate::export! {
    "ntoskrnl.exe";

    /// Makes a counted string of a terminated one. Any level.
    pub unsafe fn RtlInitUnicodeString(destination: *mut UNICODE_STRING, source: *const WCHAR) {
        preempt("RtlInitUnicodeString");
        let mut units = 0;
        if !source.is_null() {
            // SAFETY: the caller's terminated string.
            while unsafe { *source.add(units) } != 0 {
                units += 1;
            }
        }
        let length = (units * 2).min(usize::from(u16::MAX) - 3) as u16;
        let maximum = if source.is_null() { 0 } else { length + 2 };
        // SAFETY: the caller's string.
        unsafe {
            destination.write(UNICODE_STRING { Length: length, MaximumLength: maximum, Buffer: source.cast_mut() });
        }
    }
}
