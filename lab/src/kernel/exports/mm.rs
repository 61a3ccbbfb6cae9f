//! `Mm`: mapping MDLs, physical addresses.

use std::ptr;

use windows_kernel_sys::{KPROCESSOR_MODE, MDL, MEMORY_CACHING_TYPE, PHYSICAL_ADDRESS, PVOID};

use crate::fault;
use crate::kernel::irql::DISPATCH_LEVEL;
use crate::kernel::{Machine, preempt};
use crate::verifier::irql;

crate::export! {
    "ntoskrnl.exe";

    /// Fills in the pages of an MDL of nonpaged pool. IRQL <= DISPATCH_LEVEL.
    pub unsafe fn MmBuildMdlForNonPagedPool(mdl: *mut MDL) {
        irql("MmBuildMdlForNonPagedPool", ..=DISPATCH_LEVEL);
        preempt("MmBuildMdlForNonPagedPool");
        // SAFETY: the caller's MDL.
        unsafe { Machine::current().build_mdl_for_nonpaged_pool(mdl, "MmBuildMdlForNonPagedPool") };
    }

    /// Maps an MDL's locked pages. IRQL <= DISPATCH_LEVEL for kernel mode. Can fail.
    pub unsafe fn MmMapLockedPagesSpecifyCache(
        mdl: *mut MDL,
        _access_mode: KPROCESSOR_MODE,
        _cache_type: MEMORY_CACHING_TYPE,
        _requested_address: PVOID,
        _bug_check_on_failure: u32,
        _priority: u32,
    ) -> PVOID {
        let call = "MmMapLockedPagesSpecifyCache";
        irql(call, ..=DISPATCH_LEVEL);
        preempt(call);
        if fault::should_fail(call) {
            return ptr::null_mut();
        }
        // SAFETY: the caller's MDL.
        unsafe { Machine::current().map_mdl(mdl, call) }
    }

    /// The physical address behind a virtual one. Any level.
    pub unsafe fn MmGetPhysicalAddress(base_address: PVOID) -> PHYSICAL_ADDRESS {
        preempt("MmGetPhysicalAddress");
        Machine::current().to_phys(base_address.cast::<u8>()) as PHYSICAL_ADDRESS
    }
}
