//! The part of the C runtime that the kernel exports, for images: compilers call it without being asked to.
//!
//! Not written with `export!`: natively linked drivers get these from the host's own runtime, and none of them is a
//! preemption point.

use std::arch::naked_asm;
use std::ffi::c_void;
use std::ptr;

use crate::kernel::Export;
use crate::sim;
use crate::verifier::rules::BUG_CHECK;
use crate::verifier::violation;

/// The functions of this file, for the image loader.
pub const EXPORTS: &[Export] = &[
    export("memcpy", memcpy as *const ()),
    export("memmove", memmove as *const ()),
    export("memset", memset as *const ()),
    export("memcmp", memcmp as *const ()),
    export("RtlCopyMemory", memcpy as *const ()),
    export("RtlMoveMemory", memmove as *const ()),
    export("RtlFillMemory", rtl_fill_memory as *const ()),
    export("RtlZeroMemory", rtl_zero_memory as *const ()),
    export("RtlCompareMemory", rtl_compare_memory as *const ()),
    export("__chkstk", chkstk as *const ()),
    export("__C_specific_handler", c_specific_handler as *const ()),
];

const fn export(name: &'static str, address: *const ()) -> Export {
    Export { module: "ntoskrnl.exe", name, address }
}

unsafe extern "win64" fn memcpy(to: *mut u8, from: *const u8, size: usize) -> *mut u8 {
    // A copy that overlaps works in Windows, whatever C says.
    // SAFETY: the caller's buffers.
    unsafe { ptr::copy(from, to, size) };
    to
}

unsafe extern "win64" fn memmove(to: *mut u8, from: *const u8, size: usize) -> *mut u8 {
    // SAFETY: the caller's buffers.
    unsafe { ptr::copy(from, to, size) };
    to
}

unsafe extern "win64" fn memset(to: *mut u8, value: i32, size: usize) -> *mut u8 {
    // SAFETY: the caller's buffer.
    unsafe { ptr::write_bytes(to, value as u8, size) };
    to
}

unsafe extern "win64" fn memcmp(a: *const u8, b: *const u8, size: usize) -> i32 {
    // SAFETY: the caller's buffers.
    unsafe { libc::memcmp(a.cast(), b.cast(), size) }
}

unsafe extern "win64" fn rtl_fill_memory(to: *mut u8, size: usize, value: u8) {
    // SAFETY: the caller's buffer.
    unsafe { ptr::write_bytes(to, value, size) };
}

unsafe extern "win64" fn rtl_zero_memory(to: *mut u8, size: usize) {
    // SAFETY: the caller's buffer.
    unsafe { ptr::write_bytes(to, 0, size) };
}

/// How many bytes are equal before the first that is not (wdm/nf-wdm-rtlcomparememory).
unsafe extern "win64" fn rtl_compare_memory(a: *const u8, b: *const u8, size: usize) -> usize {
    // SAFETY: the caller's buffers.
    (0..size).take_while(|&at| unsafe { *a.add(at) == *b.add(at) }).count()
}

/// Touches each page of a frame of RAX bytes, from the top down, and changes no register ("x64 prolog and epilog").
/// The stack of a coroutine is mapped in full, with a guard page below: the last byte is enough to find an overflow
/// that is smaller than that page, and each page finds every other.
#[unsafe(naked)]
unsafe extern "win64" fn chkstk() {
    naked_asm!(
        "push rcx",
        "push rax",
        "lea rcx, [rsp + 24]",
        "2:",
        "cmp rax, 0x1000",
        "jb 3f",
        "sub rcx, 0x1000",
        "test byte ptr [rcx], 0",
        "sub rax, 0x1000",
        "jmp 2b",
        "3:",
        "sub rcx, rax",
        "test byte ptr [rcx], 0",
        "pop rax",
        "pop rcx",
        "ret",
    )
}

/// The handler of `__try` blocks. The lab raises no exceptions: what would be one in Windows ends the run.
unsafe extern "win64" fn c_specific_handler(
    _record: *mut c_void,
    _frame: *mut c_void,
    _context: *mut c_void,
    _dispatcher: *mut c_void,
) -> i32 {
    sim::contain(|| violation(BUG_CHECK, "__C_specific_handler", "an exception in the driver"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_compared_up_to_the_first_difference() {
        // SAFETY: both arrays have the length given.
        unsafe {
            assert_eq!(rtl_compare_memory([1, 2, 3].as_ptr(), [1, 2, 4].as_ptr(), 3), 2);
            assert_eq!(rtl_compare_memory([1, 2, 3].as_ptr(), [1, 2, 3].as_ptr(), 3), 3);
            assert!(memcmp([1u8, 2].as_ptr(), [1u8, 3].as_ptr(), 2) < 0);
        }
    }

    #[test]
    fn overlapping_copies_keep_their_bytes() {
        let mut bytes = [1u8, 2, 3, 4, 5];
        // SAFETY: both ranges are in the array.
        unsafe { memcpy(bytes.as_mut_ptr().add(1), bytes.as_ptr(), 4) };
        assert_eq!(bytes, [1, 1, 2, 3, 4]);
    }

    #[test]
    fn a_stack_probe_changes_no_register_it_may_not() {
        let (rax, rcx): (usize, usize);
        // SAFETY: probes 12 KiB of this thread's stack, far from its end.
        unsafe {
            std::arch::asm!(
                "call {probe}",
                probe = sym chkstk,
                inout("rax") 0x3008usize => rax,
                inout("rcx") 7usize => rcx,
            );
        }
        assert_eq!((rax, rcx), (0x3008, 7));
    }
}
