//! A reserved range of the host's address space, opened page by page.

use std::io;
use std::ptr;

/// A range of pages. Inaccessible until opened; never given back to the host, so that no stale pointer into it can
/// ever reach anything else.
pub(super) struct Pages {
    start: usize,
    size: usize,
}

impl Pages {
    /// Reserves `size` bytes, whole pages, readable and writable until [`Pages::protect`] says otherwise.
    pub fn reserve(size: usize) -> io::Result<Self> {
        // SAFETY: a new anonymous mapping, at a place of the host's choice.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                size,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { start: start as usize, size })
    }

    /// The first address.
    pub fn start(&self) -> usize {
        self.start
    }

    /// Copies into pages that are still writable.
    ///
    /// # Panics
    /// If the bytes do not fit.
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= self.size, "a write past the end of an image");
        // SAFETY: in the range, which is writable and which nobody else has seen yet.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), (self.start + offset) as *mut u8, bytes.len()) };
    }

    /// Reads an eight-byte word, of any alignment.
    ///
    /// # Panics
    /// If it is not in the range.
    pub fn read_word(&self, offset: usize) -> u64 {
        assert!(offset + 8 <= self.size, "a read past the end of an image");
        // SAFETY: in the range, which is readable.
        unsafe { ptr::read_unaligned((self.start + offset) as *const u64) }
    }

    /// Sets the permissions (`PROT_*`) of some of the pages.
    pub fn protect(&self, offset: usize, size: usize, protection: i32) -> io::Result<()> {
        assert!(offset + size <= self.size, "permissions past the end of an image");
        // SAFETY: pages of this range; who accesses them without permission gets a fault, as wanted.
        match unsafe { libc::mprotect((self.start + offset) as *mut libc::c_void, size, protection) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Gives the memory of some of the pages back and leaves them inaccessible.
    pub fn discard(&self, offset: usize, size: usize) {
        assert!(offset + size <= self.size, "a discard past the end of an image");
        // SAFETY: replaces pages of this range by inaccessible ones; the driver that they belonged to is done with them.
        let result = unsafe {
            libc::mmap(
                (self.start + offset) as *mut libc::c_void,
                size,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED,
                -1,
                0,
            )
        };
        assert!(result != libc::MAP_FAILED, "the host refuses to take pages back");
    }
}
