//! Every image that is or was loaded in this process, by address.
//!
//! Kept process-wide since a signal handler and a stack walk have nothing but an address; ranges are never reused.

use std::sync::{PoisonError, RwLock};

use super::file::ImageFile;

static MODULES: RwLock<Vec<Module>> = RwLock::new(Vec::new());

struct Module {
    file: ImageFile,
    base: usize,
    loaded: bool,
}

/// A place in an image.
pub(crate) struct Place {
    /// The image.
    pub file: ImageFile,
    /// The address, relative to the image.
    pub offset: u32,
    /// False after the unload.
    pub loaded: bool,
}

/// What a fault in the range of an image means.
pub(crate) enum Fault {
    /// The image was unloaded.
    Unloaded(String),
    /// The section does not allow the access.
    Protected(String),
}

/// Enters an image that has just been mapped.
pub(super) fn add(file: &ImageFile, base: usize) {
    let mut modules = MODULES.write().unwrap_or_else(PoisonError::into_inner);
    modules.push(Module { file: file.clone(), base, loaded: true });
    modules.sort_by_key(|module| module.base);
}

/// Notes that the image is unloaded.
pub(super) fn unload(base: usize) {
    let mut modules = MODULES.write().unwrap_or_else(PoisonError::into_inner);
    if let Ok(index) = modules.binary_search_by_key(&base, |module| module.base) {
        modules[index].loaded = false;
    }
}

/// The image that the address lies in, loaded or not.
pub(crate) fn place(address: usize) -> Option<Place> {
    let modules = MODULES.read().unwrap_or_else(PoisonError::into_inner);
    let index = modules.partition_point(|module| module.base <= address).checked_sub(1)?;
    let module = &modules[index];
    let offset = u32::try_from(address - module.base).ok()?;
    (offset < module.file.0.size).then(|| Place { file: module.file.clone(), offset, loaded: module.loaded })
}

/// What an access to `address` did wrong, if that lies in an image.
pub(crate) fn explain_fault(address: usize) -> Option<Fault> {
    let place = place(address)?;
    let at = format!("{}+{:#x}", place.file.name(), place.offset);
    if !place.loaded {
        return Some(Fault::Unloaded(format!("{at} is in an image that was unloaded")));
    }
    let section = place.file.0.sections.iter().find(|section| section.contains(place.offset));
    let what = section.map_or_else(
        || "between its sections".to_owned(),
        |section| {
            let flag = |set, letter| if set { letter } else { '-' };
            let name = section.name.trim_end_matches('\0');
            let flags: String =
                [flag(section.read, 'r'), flag(section.write, 'w'), flag(section.execute, 'x')]
                    .iter()
                    .collect();
            let discarded = if section.discardable { ", discarded after DriverEntry" } else { "" };
            format!("in section {name} ({flags}{discarded})")
        },
    );
    Some(Fault::Protected(format!("{at} is {what}")))
}
