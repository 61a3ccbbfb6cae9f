//! Physical memory: every page that a device may be told about gets a frame number, and neighbouring pages never
//! get neighbouring frames, so that a buffer across a page boundary needs an element for each page.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use windows_kernel_sys::{PAGE_SHIFT, PAGE_SIZE};

use super::Machine;

/// Bits of a frame number. 64 GiB: most addresses are above 4 GiB, where drivers that truncate fail.
const FRAME_BITS: u32 = 24;
/// Odd, so that counting in steps of it visits every frame once, and far from 1 and -1.
const FRAME_STEP: u64 = 0x9E_3779;

/// Why a device cannot access an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DmaFault {
    /// The physical address.
    pub address: u64,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl fmt::Display for DmaFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "physical address {:#x} {}", self.address, self.reason)
    }
}

/// The page tables of a machine.
#[derive(Default)]
pub(super) struct PhysMap {
    next: u64,
    frame_of: HashMap<usize, u64>,
    page_of: HashMap<u64, usize>,
    /// Memory outside the pool that devices may access: a loaded image's data, a host's own buffers.
    regions: Vec<Range<usize>>,
}

impl PhysMap {
    /// The frame of the page at `page` (an address divided by the page size).
    fn frame(&mut self, page: usize) -> u64 {
        if let Some(&frame) = self.frame_of.get(&page) {
            return frame;
        }
        let neighbours =
            [page.wrapping_sub(1), page.wrapping_add(1)].map(|page| self.frame_of.get(&page).copied());
        let frame = loop {
            self.next += 1;
            let frame = self.next.wrapping_mul(FRAME_STEP) & ((1 << FRAME_BITS) - 1);
            let adjacent = neighbours.iter().flatten().any(|other| frame.abs_diff(*other) <= 1);
            // Frame 0 is left out, so that no valid address is null.
            if frame != 0 && !adjacent && !self.page_of.contains_key(&frame) {
                break frame;
            }
        };
        self.frame_of.insert(page, frame);
        self.page_of.insert(frame, page);
        frame
    }

    /// Takes the frames of memory that is gone away.
    pub fn unmap(&mut self, memory: Range<usize>) {
        for page in memory.start >> PAGE_SHIFT..memory.end.div_ceil(PAGE_SIZE) {
            if let Some(frame) = self.frame_of.remove(&page) {
                self.page_of.remove(&frame);
            }
        }
    }

    fn virtual_address(&self, physical: u64) -> Option<usize> {
        let page = self.page_of.get(&(physical >> PAGE_SHIFT))?;
        Some((page << PAGE_SHIFT) | (physical as usize & (PAGE_SIZE - 1)))
    }
}

impl Machine {
    /// The physical address behind a virtual one. The next page's is unrelated.
    pub fn to_phys<T>(&self, address: *const T) -> u64 {
        let address = address as usize;
        let frame = self.0.phys.lock().frame(address >> PAGE_SHIFT);
        (frame << PAGE_SHIFT) | (address & (PAGE_SIZE - 1)) as u64
    }

    /// The virtual address behind a physical one, `None` if no page was ever there or it is gone.
    pub fn from_phys(&self, physical: u64) -> Option<*mut u8> {
        self.0.phys.lock().virtual_address(physical).map(|address| address as *mut u8)
    }

    /// Lets devices access memory that is not pool. It must stay valid for the machine's life.
    pub fn add_dma_region(&self, memory: Range<usize>) {
        self.0.phys.lock().regions.push(memory);
    }

    /// A device's access to `length` bytes at a physical address, page by page: the pieces as virtual addresses.
    /// Every byte must lie in a live pool block or in a region added for it.
    pub fn dma(&self, physical: u64, length: usize) -> Result<Vec<(*mut u8, usize)>, DmaFault> {
        let mut pieces = Vec::with_capacity(length.div_ceil(PAGE_SIZE) + 1);
        let mut done = 0;
        while done < length {
            let address = physical.wrapping_add(done as u64);
            let piece = (PAGE_SIZE - (address as usize & (PAGE_SIZE - 1))).min(length - done);
            pieces.push((self.dma_piece(address, piece)?, piece));
            done += piece;
        }
        Ok(pieces)
    }

    /// Reads as a device.
    pub fn dma_read(&self, physical: u64, into: &mut [u8]) -> Result<(), DmaFault> {
        let mut into = into;
        for (address, length) in self.dma(physical, into.len())? {
            let (piece, rest) = into.split_at_mut(length);
            // SAFETY: `dma` checked that the bytes lie in live memory; they are outside every Rust object of the lab.
            unsafe { address.copy_to_nonoverlapping(piece.as_mut_ptr(), length) };
            into = rest;
        }
        Ok(())
    }

    /// Writes as a device.
    pub fn dma_write(&self, physical: u64, from: &[u8]) -> Result<(), DmaFault> {
        let mut from = from;
        for (address, length) in self.dma(physical, from.len())? {
            let (piece, rest) = from.split_at(length);
            // SAFETY: as in `dma_read`.
            unsafe { address.copy_from_nonoverlapping(piece.as_ptr(), length) };
            from = rest;
        }
        Ok(())
    }

    /// As [`Machine::dma`], of bytes that lie in one page.
    pub fn dma_piece(&self, physical: u64, length: usize) -> Result<*mut u8, DmaFault> {
        let fault = |reason| DmaFault { address: physical, reason };
        let (address, in_region) = {
            let phys = self.0.phys.lock();
            let address = phys.virtual_address(physical).ok_or(fault("is no memory"))?;
            (
                address,
                phys.regions.iter().any(|region| region.start <= address && address + length <= region.end),
            )
        };
        if !in_region && !self.0.pool.lock().contains(address, length) {
            return Err(fault("is not in a live allocation, or runs past its end"));
        }
        Ok(address as *mut u8)
    }
}
