//! Memory that the HCA reads and writes: nonpaged, with its physical addresses at hand.

use super::pool::{PoolVec, Tag};
use super::status::{Error, Result};
use core::fmt;
use core::ops::Range;
use windows_kernel_sys as sys;

/// A piece of physically contiguous memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Physical address of the first byte.
    pub address: u64,
    /// Bytes.
    pub length: u32,
}

/// Bytes in nonpaged pool whose pages' physical addresses were looked up when it was made. IRQL <= DISPATCH_LEVEL.
///
/// Neighbouring pages are not neighbours in physical memory: what crosses a page is two [`Segment`]s. A buffer of a
/// page or more begins at a page boundary, as pool memory does.
pub struct DmaBuffer {
    bytes: PoolVec<u8>,
    /// Physical address of the first byte in each page.
    pages: PoolVec<u64>,
    /// Offset of the first byte in its page.
    offset: usize,
}

impl DmaBuffer {
    /// `size` zeroed bytes; `size` is not zero.
    pub fn try_new(tag: Tag, size: usize) -> Result<Self> {
        if size == 0 {
            return Err(Error::INVALID_PARAMETER);
        }
        let bytes = PoolVec::try_zeroed(tag, size)?;
        let base = bytes.as_ptr() as usize;
        let offset = base % sys::PAGE_SIZE;
        let count = sys::ADDRESS_AND_SIZE_TO_SPAN_PAGES(base, size);
        let pages = PoolVec::try_from_fn(tag, count, |page| {
            let first = if page == 0 { base } else { base - offset + page * sys::PAGE_SIZE };
            // SAFETY: an address inside nonpaged memory that `bytes` owns.
            let address = unsafe { sys::MmGetPhysicalAddress(first as sys::PVOID) };
            Ok(address as u64)
        })?;
        Ok(Self { bytes, pages, offset })
    }

    /// All bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// All bytes, to write to.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// How many bytes.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// The physical segments of a part of the buffer. Empty if the range is outside of it.
    pub fn segments(&self, range: Range<usize>) -> Segments<'_> {
        let inside = range.start <= range.end && range.end <= self.bytes.len();
        Segments { buffer: self, next: if inside { range } else { 0..0 } }
    }

    /// Physical address of a byte.
    fn address(&self, at: usize) -> Option<u64> {
        let in_pages = self.offset + at;
        let first = self.pages.get(in_pages / sys::PAGE_SIZE).copied()?;
        let page_offset = in_pages % sys::PAGE_SIZE;
        // The first entry is the address of the first byte, the others begin a page.
        let delta = if in_pages < sys::PAGE_SIZE { page_offset - self.offset } else { page_offset };
        Some(first + delta as u64)
    }
}

impl fmt::Debug for DmaBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DmaBuffer").field("size", &self.size()).finish_non_exhaustive()
    }
}

/// Iterator over the physical segments of a range of a [`DmaBuffer`], in order.
#[derive(Clone, Debug)]
pub struct Segments<'a> {
    buffer: &'a DmaBuffer,
    next: Range<usize>,
}

impl Iterator for Segments<'_> {
    type Item = Segment;

    fn next(&mut self) -> Option<Segment> {
        if self.next.is_empty() {
            return None;
        }
        let address = self.buffer.address(self.next.start)?;
        let page_left = sys::PAGE_SIZE - (self.buffer.offset + self.next.start) % sys::PAGE_SIZE;
        let length = page_left.min(self.next.len());
        self.next.start += length;
        Some(Segment { address, length: length as u32 })
    }
}
