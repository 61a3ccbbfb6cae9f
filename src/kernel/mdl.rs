//! The bytes behind a chain of MDLs.

use core::marker::PhantomData;
use core::slice;
use windows_kernel_sys as sys;

/// Iterator over the mapped pieces of `length` bytes that begin `offset` bytes into the MDL chain at `mdl`.
///
/// Ends early where a page cannot be mapped or the chain is too short: compare the sum of what it gave with what was
/// asked for. IRQL <= DISPATCH_LEVEL.
#[derive(Debug)]
pub struct Chunks<'a> {
    mdl: *mut sys::MDL,
    offset: usize,
    left: usize,
    _bytes: PhantomData<&'a [u8]>,
}

impl Chunks<'_> {
    /// # Safety
    /// `mdl` is null or heads a chain of MDLs that describe locked or nonpaged memory, which lives and is not written
    /// to for `'a`.
    pub(super) unsafe fn new(mdl: *mut sys::MDL, offset: usize, length: usize) -> Self {
        Self { mdl, offset, left: length, _bytes: PhantomData }
    }
}

impl<'a> Iterator for Chunks<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        /// Mapped for reading only, and never to be executed.
        const PRIORITY: sys::MM_PAGE_PRIORITY = sys::NormalPagePriority | sys::MdlMappingNoExecute;
        while self.left != 0 && !self.mdl.is_null() {
            let mdl = self.mdl;
            // SAFETY: by the contract of `new` an MDL of the chain.
            let (size, next) = unsafe { (sys::MmGetMdlByteCount(mdl) as usize, (*mdl).Next) };
            self.mdl = next;
            let Some(available) = size.checked_sub(self.offset).filter(|&available| available != 0) else {
                self.offset -= size;
                continue;
            };
            let offset = core::mem::take(&mut self.offset);
            let length = available.min(self.left);
            // SAFETY: as above; the memory is locked or nonpaged.
            let base = unsafe { sys::MmGetSystemAddressForMdlSafe(mdl, PRIORITY) };
            if base.is_null() {
                self.left = 0;
                return None;
            }
            self.left -= length;
            // SAFETY: `offset + length` lies within the bytes that the MDL describes, mapped at `base`, alive and
            // unwritten for `'a`.
            return Some(unsafe { slice::from_raw_parts(base.cast::<u8>().add(offset), length) });
        }
        None
    }
}
