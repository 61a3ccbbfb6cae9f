//! What the compiler expects of a runtime library, in an image that has none.
//!
//! Not here is `__chkstk`: a function whose frame is larger than a page would need it, and is not to exist in a
//! driver. Linking fails if one does.

use core::panic::PanicInfo;
use windows_kernel_sys as sys;

/// The bug check's code: "IPoI" in ASCII, which no Windows component uses.
const IPOIB_PANIC: u32 = u32::from_be_bytes(*b"IPoI");

/// A panic is a bug check: there is nothing to unwind to, and state that broke an invariant is not to be trusted. The
/// parameters are the address and length of the source file's name, the line, and the column.
#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    let (file, line, column) =
        info.location().map_or(("", 0, 0), |location| (location.file(), location.line(), location.column()));
    // SAFETY: any level; does not return.
    unsafe {
        sys::KeBugCheckEx(IPOIB_PANIC, file.as_ptr() as usize, file.len(), line as usize, column as usize)
    }
}

/// Objects that contain floating point refer to this; compiler-builtins has some, which the linker drops. The driver
/// uses none.
// SAFETY: the C runtime, which would define the same name, is not linked.
#[unsafe(no_mangle)]
static _fltused: i32 = 0;
