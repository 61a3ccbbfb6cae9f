//! The memory manager, `Mm`: memory descriptor lists (`wdm.h`; wdm/ns-wdm-_mdl).

use super::PVOID;

pub const PAGE_SIZE: usize = 4096;
pub const PAGE_SHIFT: u32 = 12;

/// `MEMORY_CACHING_TYPE`.
pub type MEMORY_CACHING_TYPE = i32;
pub const MmNonCached: MEMORY_CACHING_TYPE = 0;
pub const MmCached: MEMORY_CACHING_TYPE = 1;

/// `MM_PAGE_PRIORITY`, with flags that may be or'ed in.
pub type MM_PAGE_PRIORITY = u32;
pub const LowPagePriority: MM_PAGE_PRIORITY = 0;
pub const NormalPagePriority: MM_PAGE_PRIORITY = 16;
pub const HighPagePriority: MM_PAGE_PRIORITY = 32;
pub const MdlMappingNoWrite: MM_PAGE_PRIORITY = 0x8000_0000;
pub const MdlMappingNoExecute: MM_PAGE_PRIORITY = 0x4000_0000;

bitflags::bitflags! {
    /// `MDL::MdlFlags`.
    #[repr(transparent)]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct MdlFlags: i16 {
        const MAPPED_TO_SYSTEM_VA = 0x0001;
        const PAGES_LOCKED = 0x0002;
        const SOURCE_IS_NONPAGED_POOL = 0x0004;
        const ALLOCATED_FIXED_SIZE = 0x0008;
        const PARTIAL = 0x0010;
        const PARTIAL_HAS_BEEN_MAPPED = 0x0020;
        const IO_PAGE_READ = 0x0040;
        const WRITE_OPERATION = 0x0080;
        const LOCKED_PAGE_TABLES = 0x0100;
        const FREE_EXTRA_PTES = 0x0200;
        const DESCRIBES_AWE = 0x0400;
        const IO_SPACE = 0x0800;
        const NETWORK_HEADER = 0x1000;
        const MAPPING_CAN_FAIL = 0x2000;
        const PAGE_CONTENTS_INVARIANT = 0x4000;
        const _ = !0;
    }
}

/// Describes the pages behind a buffer; an array of page frame numbers (8 bytes each) follows the header.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MDL {
    pub Next: *mut MDL,
    pub Size: i16,
    pub MdlFlags: i16,
    pub Process: PVOID,
    pub MappedSystemVa: PVOID,
    pub StartVa: PVOID,
    pub ByteCount: u32,
    pub ByteOffset: u32,
}

layout! {
    MDL: 48, 8 {
        Next @ 0, Size @ 8, MdlFlags @ 10, Process @ 16, MappedSystemVa @ 24, StartVa @ 32, ByteCount @ 40,
        ByteOffset @ 44
    }
}

/// Bytes the list describes (`MmGetMdlByteCount`).
///
/// # Safety
/// `mdl` must point to an MDL.
pub unsafe fn MmGetMdlByteCount(mdl: *const MDL) -> u32 {
    // SAFETY: the caller's contract.
    unsafe { (*mdl).ByteCount }
}

/// Offset of the first byte in its page (`MmGetMdlByteOffset`).
///
/// # Safety
/// `mdl` must point to an MDL.
pub unsafe fn MmGetMdlByteOffset(mdl: *const MDL) -> u32 {
    // SAFETY: the caller's contract.
    unsafe { (*mdl).ByteOffset }
}

/// Virtual address of the buffer in the address space it was described in (`MmGetMdlVirtualAddress`).
///
/// # Safety
/// `mdl` must point to an MDL. The address need not be valid in the current context.
pub unsafe fn MmGetMdlVirtualAddress(mdl: *const MDL) -> PVOID {
    // SAFETY: the caller's contract.
    unsafe { (*mdl).StartVa.wrapping_byte_add((*mdl).ByteOffset as usize) }
}

/// The page frame numbers that follow the header (`MmGetMdlPfnArray`).
///
/// # Safety
/// `mdl` must point to an MDL.
pub unsafe fn MmGetMdlPfnArray(mdl: *mut MDL) -> *mut u64 {
    mdl.wrapping_add(1).cast()
}

/// A system address for the buffer, mapped now if it is not yet; null if there are no resources
/// (`MmGetSystemAddressForMdlSafe`). IRQL <= DISPATCH_LEVEL.
///
/// # Safety
/// `mdl` must point to an MDL whose pages are locked or nonpaged.
pub unsafe fn MmGetSystemAddressForMdlSafe(mdl: *mut MDL, priority: MM_PAGE_PRIORITY) -> PVOID {
    // SAFETY: the caller's contract.
    unsafe {
        let mapped = MdlFlags::MAPPED_TO_SYSTEM_VA | MdlFlags::SOURCE_IS_NONPAGED_POOL;
        if MdlFlags::from_bits_retain((*mdl).MdlFlags).intersects(mapped) {
            (*mdl).MappedSystemVa
        } else {
            super::MmMapLockedPagesSpecifyCache(
                mdl,
                super::KernelMode,
                MmCached,
                core::ptr::null_mut(),
                0,
                priority,
            )
        }
    }
}

/// Pages that `length` bytes at `address` touch (`ADDRESS_AND_SIZE_TO_SPAN_PAGES`).
pub const fn ADDRESS_AND_SIZE_TO_SPAN_PAGES(address: usize, length: usize) -> usize {
    ((address & (PAGE_SIZE - 1)) + length).div_ceil(PAGE_SIZE)
}
