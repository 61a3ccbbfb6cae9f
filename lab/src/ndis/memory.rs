//! Memory that NDIS allocates for itself or hands to a driver: blocks of the machine's pool, so that a driver that
//! runs over one, or uses it too late, is found out as with its own.

use std::sync::PoisonError;

use windows_kernel_sys::{MDL, MdlFlags, PAGE_SIZE};

use crate::kernel::Machine;

/// NDIS's pool tag.
const TAG: [u8; 4] = *b"Ndis";

/// A zeroed block of nonpaged pool, freed when dropped.
pub(super) struct Block {
    machine: Machine,
    pointer: usize,
}

impl Block {
    /// A block of `length` bytes on the current machine, aligned to 16 bytes.
    pub fn new(length: usize) -> Self {
        Self::on(&Machine::current(), length)
    }

    /// A block of `length` bytes on `machine`.
    pub fn on(machine: &Machine, length: usize) -> Self {
        Self { pointer: machine.allocate_system(length, TAG) as usize, machine: machine.clone() }
    }

    /// Where it begins.
    pub fn pointer(&self) -> *mut u8 {
        self.pointer as *mut u8
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.machine.free_system(self.pointer as *mut u8, TAG);
    }
}

/// The physical address behind `address` on the current machine.
pub(super) fn physical(address: *const u8) -> u64 {
    Machine::current().to_phys(address)
}

/// Bytes of an MDL for `length` bytes at `address`.
pub(super) fn mdl_size(address: usize, length: usize) -> usize {
    size_of::<MDL>() + size_of::<u64>() * (address % PAGE_SIZE + length).div_ceil(PAGE_SIZE)
}

/// How a protocol's memory reaches a miniport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mapping {
    /// Nonpaged pool.
    Nonpaged,
    /// Locked pages with no system address yet: who wants to read them maps them.
    LockedOnly,
}

/// Writes an MDL (wdm/nf-wdm-mmbuildmdlfornonpagedpool, wdm/nf-wdm-mmprobeandlockpages).
///
/// # Safety
/// `mdl` must have room for [`mdl_size`] bytes and be nobody else's; the memory must be of `machine`'s pool.
pub(super) unsafe fn build_mdl(
    machine: &Machine,
    mdl: *mut MDL,
    address: *mut u8,
    length: usize,
    mapping: Mapping,
) {
    let (flags, mapped) = match mapping {
        Mapping::Nonpaged => (MdlFlags::SOURCE_IS_NONPAGED_POOL, address),
        Mapping::LockedOnly => (MdlFlags::PAGES_LOCKED, std::ptr::null_mut()),
    };
    let offset = address as usize % PAGE_SIZE;
    let pages = (offset + length).div_ceil(PAGE_SIZE);
    // SAFETY: the caller's contract.
    unsafe {
        mdl.write(MDL {
            Next: std::ptr::null_mut(),
            Size: mdl_size(address as usize, length) as i16,
            MdlFlags: flags.bits(),
            Process: std::ptr::null_mut(),
            MappedSystemVa: mapped.cast(),
            StartVa: address.wrapping_sub(offset).cast(),
            ByteCount: length as u32,
            ByteOffset: offset as u32,
        });
        let frames = windows_kernel_sys::MmGetMdlPfnArray(mdl);
        for page in 0..pages {
            let physical = machine.to_phys(address.wrapping_sub(offset).wrapping_add(page * PAGE_SIZE));
            frames.add(page).write(physical / PAGE_SIZE as u64);
        }
    }
}

/// MDLs that `NdisRetreatNetBufferDataStart` made, with their memory, by address.
static RETREATED: std::sync::Mutex<Vec<(usize, Block)>> = std::sync::Mutex::new(Vec::new());

/// An MDL with `length` bytes of its own.
pub(super) fn retreat_mdl(length: u32) -> *mut MDL {
    let length = length as usize;
    let machine = Machine::current();
    let header = mdl_size(PAGE_SIZE - 1, length).next_multiple_of(16);
    let block = Block::on(&machine, header + length);
    let mdl: *mut MDL = block.pointer().cast();
    // SAFETY: the block has room for the header and the bytes behind it.
    unsafe { build_mdl(&machine, mdl, block.pointer().wrapping_add(header), length, Mapping::Nonpaged) };
    RETREATED.lock().unwrap_or_else(PoisonError::into_inner).push((mdl as usize, block));
    mdl
}

/// Frees an MDL of [`retreat_mdl`]; others are their makers' and left alone.
pub(super) fn free_retreat_mdl(mdl: *mut MDL) {
    let mut retreated = RETREATED.lock().unwrap_or_else(PoisonError::into_inner);
    let found = retreated.iter().position(|(address, _)| *address == mdl as usize);
    let block = found.map(|index| retreated.swap_remove(index));
    drop(retreated);
    drop(block);
}
