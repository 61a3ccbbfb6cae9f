//! `Ex`: pool.

use windows_kernel_sys::{POOL_FLAGS, PVOID};

use crate::fault;
use crate::kernel::irql::{APC_LEVEL, DISPATCH_LEVEL};
use crate::kernel::pool::{Owner, PoolKind};
use crate::kernel::{Machine, preempt};
use crate::verifier::rules::POOL_BAD_REQUEST;
use crate::verifier::{irql, violation};

crate::export! {
    "ntoskrnl.exe";

    /// Allocates pool. IRQL <= DISPATCH_LEVEL for nonpaged pool, <= APC_LEVEL for paged. Can fail.
    pub unsafe fn ExAllocatePool2(flags: u64, number_of_bytes: usize, tag: u32) -> PVOID {
        let call = "ExAllocatePool2";
        let Some(flags) = POOL_FLAGS::from_bits(flags) else {
            violation(POOL_BAD_REQUEST, call, format!("unknown flags {flags:#x}"));
        };
        irql(call, ..=if flags.contains(POOL_FLAGS::PAGED) { APC_LEVEL } else { DISPATCH_LEVEL });
        preempt(call);
        let types = flags & (POOL_FLAGS::NON_PAGED | POOL_FLAGS::NON_PAGED_EXECUTE | POOL_FLAGS::PAGED);
        if types.bits().count_ones() != 1 || tag == 0 || number_of_bytes == 0 {
            violation(POOL_BAD_REQUEST, call, format!("{number_of_bytes} bytes, flags {flags:?}, tag {tag:#x}"));
        }
        if fault::should_fail(call) {
            return std::ptr::null_mut();
        }
        let kind = PoolKind {
            zero: !flags.contains(POOL_FLAGS::UNINITIALIZED),
            paged: flags.contains(POOL_FLAGS::PAGED),
        };
        Machine::current().allocate(number_of_bytes, tag, kind, Owner::Driver).cast()
    }

    /// Frees pool. IRQL <= DISPATCH_LEVEL.
    pub unsafe fn ExFreePoolWithTag(address: PVOID, tag: u32) {
        irql("ExFreePoolWithTag", ..=DISPATCH_LEVEL);
        preempt("ExFreePoolWithTag");
        Machine::current().free(address.cast(), tag, Owner::Driver, "ExFreePoolWithTag");
    }
}
