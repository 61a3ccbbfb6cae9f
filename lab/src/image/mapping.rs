//! An image in memory.

use super::error::ImageError;
use super::file::{ImageFile, PAGE, Section};
use super::memory::Pages;
use super::modules;

/// An image that is loaded: at its own address, with its own variables. Dropping it unloads it: its pages become
/// inaccessible, and a later access to them is a fault that names the image.
pub struct Mapping {
    file: ImageFile,
    pages: Pages,
}

impl Mapping {
    /// Maps the image, moves it to where it lies, and binds its imports to what `resolve` gives for a module and a name.
    /// Nothing of it runs yet.
    pub fn new(
        file: &ImageFile,
        resolve: impl Fn(&str, &str) -> Option<*const ()>,
    ) -> Result<Self, ImageError> {
        let contents = &file.0;
        let bound = file.bind(resolve)?;
        let pages = Pages::reserve(contents.size as usize).map_err(ImageError::Memory)?;
        pages.write(0, &contents.bytes[..contents.headers as usize]);
        for section in &contents.sections {
            pages.write(section.address as usize, &contents.bytes[section.data.clone()]);
        }
        let moved = (pages.start() as u64).wrapping_sub(contents.preferred_base);
        for &place in &contents.relocations {
            let place = place as usize;
            pages.write(place, &pages.read_word(place).wrapping_add(moved).to_le_bytes());
        }
        for (slot, address) in bound {
            pages.write(slot, &address.to_le_bytes());
        }
        if let Some(place) = contents.cookie {
            pages.write(place as usize, &new_cookie(pages.start() as u64).to_le_bytes());
        }
        let mapping = Self { file: file.clone(), pages };
        mapping.protect().map_err(ImageError::Memory)?;
        modules::add(file, mapping.base());
        Ok(mapping)
    }

    /// Where it lies.
    pub fn base(&self) -> usize {
        self.pages.start()
    }

    /// Its entry point.
    pub fn entry(&self) -> *const () {
        (self.base() + self.file.0.entry as usize) as *const ()
    }

    /// The file it was made from.
    pub fn file(&self) -> &ImageFile {
        &self.file
    }

    /// Takes away what a driver does not need once DriverEntry has returned, as the kernel does: discardable sections.
    pub fn discard_init(&self) {
        for section in self.file.0.sections.iter().filter(|section| section.discardable) {
            self.pages.discard(section.address as usize, section.size as usize);
        }
    }

    /// Gives each section the permissions it asks for, and nothing to what lies between them.
    fn protect(&self) -> std::io::Result<()> {
        let contents = &self.file.0;
        let headers = contents.headers.next_multiple_of(PAGE) as usize;
        self.pages.protect(0, headers, libc::PROT_READ)?;
        let mut end = headers;
        for section in &contents.sections {
            let start = section.address as usize;
            self.pages.protect(end, start - end, libc::PROT_NONE)?;
            end = start + section.size as usize;
            self.pages.protect(start, section.size as usize, protection(section))?;
        }
        self.pages.protect(end, contents.size as usize - end, libc::PROT_NONE)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        self.pages.discard(0, self.file.0.size as usize);
        modules::unload(self.base());
    }
}

fn protection(section: &Section) -> i32 {
    let mut protection = libc::PROT_NONE;
    // x64 has no memory that is executable or writable but not readable.
    if section.read || section.write || section.execute {
        protection |= libc::PROT_READ;
    }
    if section.write {
        protection |= libc::PROT_WRITE;
    }
    if section.execute {
        protection |= libc::PROT_EXEC;
    }
    protection
}

/// A cookie as the kernel makes one: not the default, 48 bits, different wherever the image lies.
fn new_cookie(base: u64) -> u64 {
    (base.rotate_left(20) ^ 0x9E37_79B9_7F4A_7C15) & 0x0000_FFFF_FFFF_FFFF
}
