//! A panic is a bug check. There is nothing to unwind to, and state that broke an invariant is not to be trusted.

use core::panic::PanicInfo;
use windows_kernel_sys as sys;

/// The bug check's code: "IPoI" in ASCII, which no Windows component uses.
const IPOIB_PANIC: u32 = u32::from_be_bytes(*b"IPoI");

/// Stops the system. The parameters are the address and length of the source file's name, the line, and the column.
#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    let (file, line, column) =
        info.location().map_or(("", 0, 0), |location| (location.file(), location.line(), location.column()));
    // SAFETY: any level; does not return.
    unsafe {
        sys::KeBugCheckEx(IPOIB_PANIC, file.as_ptr() as usize, file.len(), line as usize, column as usize)
    }
}
