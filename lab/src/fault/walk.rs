//! The call stack, through the lab and through a loaded image.
//!
//! The lab's frames are found by the host's unwinder. It knows nothing of images, so it stops at the first frame in one;
//! from there the walk goes on by the image's own unwind tables.

use std::ffi::c_void;

use crate::image::{self, Registers};

/// DWARF numbers of the nonvolatile registers that both calling conventions share (System V ABI, figure 3.36), each
/// with its number in Windows' unwind codes.
const NONVOLATILE: [(i32, usize); 6] = [(3, 3), (6, 5), (12, 12), (13, 13), (14, 14), (15, 15)];

/// `_URC_NO_REASON`: go on; any other value ends the walk.
const GO_ON: i32 = 0;
/// `_URC_END_OF_STACK`.
const STOP: i32 = 5;

// The host's unwinder, which every Rust program on Linux links (Itanium C++ ABI: Exception Handling, Level I).
unsafe extern "C" {
    fn _Unwind_Backtrace(
        callback: extern "C" fn(*mut c_void, *mut c_void) -> i32,
        argument: *mut c_void,
    ) -> i32;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
    fn _Unwind_GetCFA(context: *mut c_void) -> usize;
    fn _Unwind_GetGR(context: *mut c_void, register: i32) -> usize;
}

struct Walk<'a> {
    frame: &'a mut dyn FnMut(usize) -> bool,
    border: usize,
}

/// Calls `frame` with each return address on the stack, innermost first, up to the stack address `border` or until it
/// gives false.
#[inline(never)]
pub(super) fn walk(border: usize, frame: &mut dyn FnMut(usize) -> bool) {
    let mut walk = Walk { frame, border };
    // SAFETY: the callback gets this pointer back, during the call.
    unsafe { _Unwind_Backtrace(step, (&raw mut walk).cast()) };
}

extern "C" fn step(context: *mut c_void, argument: *mut c_void) -> i32 {
    // SAFETY: `walk` passed it, and nobody else uses it meanwhile.
    let walk = unsafe { &mut *argument.cast::<Walk<'_>>() };
    // SAFETY: the context of this callback.
    let (ip, sp) = unsafe { (_Unwind_GetIP(context), _Unwind_GetCFA(context)) };
    if sp >= walk.border {
        return STOP;
    }
    if image::place(ip).is_none() {
        return if (walk.frame)(ip) { GO_ON } else { STOP };
    }
    let mut registers = Registers::new(ip, sp);
    for (dwarf, code) in NONVOLATILE {
        // SAFETY: the context of this callback; the unwinder knows these registers in every frame.
        registers.general[code] = Some(unsafe { _Unwind_GetGR(context, dwarf) });
    }
    for ip in image::callers(&registers, &(sp..walk.border)) {
        if !(walk.frame)(ip) {
            break;
        }
    }
    STOP
}
