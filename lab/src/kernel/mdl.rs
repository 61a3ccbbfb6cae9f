//! Memory descriptor lists: the header with true layout, the frame numbers behind it.

use windows_kernel_sys::{ADDRESS_AND_SIZE_TO_SPAN_PAGES, MDL, MdlFlags, PAGE_SHIFT, PAGE_SIZE, PVOID};

use super::Machine;
use super::pool::{Owner, PoolKind};
use crate::verifier::rules::{MDL_NOT_NONPAGED_POOL, MDL_NOT_OWNED, MDL_STATE};
use crate::verifier::violation;

const TAG: u32 = u32::from_le_bytes(*b"Mdl ");
/// Resource kind of an MDL in the ledger.
const KIND: &str = "MDL";

/// Who an MDL belongs to: one of the driver's must be freed by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MdlOwner {
    /// Counted as the driver's until freed.
    Driver,
    /// The lab's own, as that of a packet that a protocol sends.
    System,
}

impl Machine {
    /// Allocates an MDL for `length` bytes at `address`, with no pages filled in.
    pub fn allocate_mdl(&self, address: PVOID, length: u32, owner: MdlOwner) -> *mut MDL {
        let pages = ADDRESS_AND_SIZE_TO_SPAN_PAGES(address as usize, length as usize);
        let size = size_of::<MDL>() + pages * size_of::<u64>();
        let mdl = self.allocate(size, TAG, PoolKind::SYSTEM, Owner::System).cast::<MDL>();
        let start = address as usize & !(PAGE_SIZE - 1);
        // SAFETY: freshly allocated, large enough and aligned.
        unsafe {
            (*mdl).Size = size as i16;
            (*mdl).StartVa = start as PVOID;
            (*mdl).ByteOffset = (address as usize - start) as u32;
            (*mdl).ByteCount = length;
        }
        if owner == MdlOwner::Driver {
            self.acquire(KIND, mdl as usize, format!("of {length} bytes"));
        }
        mdl
    }

    /// Frees an MDL.
    ///
    /// # Safety
    /// `mdl` must be an MDL, of this owner, that nobody uses any more; that it is one of ours is checked.
    pub unsafe fn free_mdl(&self, mdl: *mut MDL, owner: MdlOwner, call: &str) {
        if owner == MdlOwner::Driver {
            self.release(KIND, mdl as usize, call, Some(MDL_NOT_OWNED));
        }
        self.free(mdl.cast(), TAG, Owner::System, call);
    }

    /// Fills in the pages of an MDL of nonpaged pool.
    ///
    /// # Safety
    /// `mdl` must be a live MDL.
    pub unsafe fn build_mdl_for_nonpaged_pool(&self, mdl: *mut MDL, call: &str) {
        // SAFETY: the caller's contract.
        let (flags, start, offset, count) = unsafe {
            ((*mdl).MdlFlags, (*mdl).StartVa as usize, (*mdl).ByteOffset as usize, (*mdl).ByteCount as usize)
        };
        let built =
            MdlFlags::PAGES_LOCKED | MdlFlags::MAPPED_TO_SYSTEM_VA | MdlFlags::SOURCE_IS_NONPAGED_POOL;
        if MdlFlags::from_bits_retain(flags).intersects(built) {
            violation(MDL_STATE, call, format!("the MDL is built already (flags {flags:#x})"));
        }
        if !self.in_pool((start + offset) as *const u8, count) {
            violation(
                MDL_NOT_NONPAGED_POOL,
                call,
                format!("{count} bytes that are not in one live pool block"),
            );
        }
        // SAFETY: the caller's contract; the list has room for the frames of its own range.
        unsafe {
            self.fill_frames(mdl);
            (*mdl).MdlFlags |= MdlFlags::SOURCE_IS_NONPAGED_POOL.bits();
            (*mdl).MappedSystemVa = (start + offset) as PVOID;
        }
    }

    /// Makes an MDL as another driver's locked but unmapped buffer: who reads it must map it first.
    ///
    /// # Safety
    /// `mdl` must be a live MDL that is not built.
    pub unsafe fn lock_mdl_pages(&self, mdl: *mut MDL) {
        // SAFETY: the caller's contract.
        unsafe {
            self.fill_frames(mdl);
            (*mdl).MdlFlags |= MdlFlags::PAGES_LOCKED.bits();
        }
    }

    /// Maps an MDL's locked pages; in the lab they are where they always were.
    ///
    /// # Safety
    /// `mdl` must be a live MDL.
    pub unsafe fn map_mdl(&self, mdl: *mut MDL, call: &str) -> PVOID {
        // SAFETY: the caller's contract.
        let flags = MdlFlags::from_bits_retain(unsafe { (*mdl).MdlFlags });
        if !flags.contains(MdlFlags::PAGES_LOCKED) || flags.contains(MdlFlags::MAPPED_TO_SYSTEM_VA) {
            violation(
                MDL_STATE,
                call,
                format!("the MDL is not locked, or mapped already (flags {:#x})", flags.bits()),
            );
        }
        // SAFETY: the caller's contract.
        unsafe {
            let mapped = (*mdl).StartVa.wrapping_byte_add((*mdl).ByteOffset as usize);
            (*mdl).MappedSystemVa = mapped;
            (*mdl).MdlFlags |= MdlFlags::MAPPED_TO_SYSTEM_VA.bits();
            mapped
        }
    }

    unsafe fn fill_frames(&self, mdl: *mut MDL) {
        // SAFETY: the caller's contract: a live MDL with a frame for each of its pages.
        unsafe {
            let start = (*mdl).StartVa as usize;
            let bytes = (*mdl).ByteOffset as usize + (*mdl).ByteCount as usize;
            let frames = windows_kernel_sys::MmGetMdlPfnArray(mdl);
            for page in 0..bytes.div_ceil(PAGE_SIZE) {
                let address = (start + page * PAGE_SIZE) as *const u8;
                frames.add(page).write(self.to_phys(address) >> PAGE_SHIFT);
            }
        }
    }
}
