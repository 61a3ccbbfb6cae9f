//! Which driver the hosts load.

use std::collections::HashMap;
use std::path::Path;
use std::sync::LazyLock;

use windows_kernel_sys::PDRIVER_INITIALIZE;

use crate::image::{ImageError, ImageFile, Mapping};
use crate::{kernel, ndis};

/// Where a host's driver comes from.
#[derive(Clone, Debug, Default)]
pub enum DriverSource {
    /// The driver's source, linked into this program.
    #[default]
    Native,
    /// An image, as Windows would load it; each host maps it for itself.
    Image(ImageFile),
}

/// The environment variable that names an image for [`DriverSource::of_environment`].
pub const IMAGE_VARIABLE: &str = "IPOIB_IMAGE";

/// A driver that can be called. Dropping it takes its code away.
pub struct DriverCode {
    entry: PDRIVER_INITIALIZE,
    mapping: Option<Mapping>,
}

impl DriverSource {
    /// The image in this file: any NDIS 6 miniport for x64.
    ///
    /// # Errors
    /// If it is no such image, or imports what the lab lacks: then with all of that by name.
    pub fn image(path: &Path) -> Result<Self, ImageError> {
        Self::of_file(ImageFile::open(path)?)
    }

    /// An image that has been read.
    ///
    /// # Errors
    /// If it imports what the lab lacks.
    pub fn of_file(file: ImageFile) -> Result<Self, ImageError> {
        file.check_imports(resolve)?;
        Ok(Self::Image(file))
    }

    /// The image that the environment variable `IPOIB_IMAGE` names, the linked driver if it is not set: so that one
    /// suite of tests serves both.
    ///
    /// # Panics
    /// If the image cannot be used. Tests that were to run on it must not pass without it.
    pub fn of_environment() -> Self {
        static SOURCE: LazyLock<DriverSource> = LazyLock::new(|| {
            let Some(path) = std::env::var_os(IMAGE_VARIABLE) else { return DriverSource::Native };
            let path = Path::new(&path);
            DriverSource::image(path).unwrap_or_else(|error| panic!("{} {error}", path.display()))
        });
        SOURCE.clone()
    }

    /// Makes the driver callable, with variables of its own if it is an image.
    ///
    /// # Errors
    /// If an image cannot be mapped.
    pub fn load(&self) -> Result<DriverCode, ImageError> {
        match self {
            Self::Native => Ok(DriverCode { entry: Some(ipoib::entry::DriverEntry), mapping: None }),
            Self::Image(file) => {
                let mapping = Mapping::new(file, resolve)?;
                // SAFETY: the entry point of a kernel driver is its DriverEntry (wdm/nc-wdm-driver_initialize).
                let entry = unsafe { std::mem::transmute::<*const (), PDRIVER_INITIALIZE>(mapping.entry()) };
                Ok(DriverCode { entry, mapping: Some(mapping) })
            }
        }
    }
}

impl DriverCode {
    /// The driver's entry point.
    pub fn entry(&self) -> PDRIVER_INITIALIZE {
        self.entry
    }

    /// DriverEntry has returned: what only that needs goes.
    pub fn entered(&self) {
        if let Some(mapping) = &self.mapping {
            mapping.discard_init();
        }
    }
}

/// What the simulated kernel and NDIS export, by module in lower case and name.
static EXPORTS: LazyLock<HashMap<(&str, &str), usize>> = LazyLock::new(|| {
    let exports = kernel::exports().chain(ndis::exports());
    exports.map(|export| ((export.module, export.name), export.address as usize)).collect()
});

fn resolve(module: &str, name: &str) -> Option<*const ()> {
    let module = module.to_ascii_lowercase();
    // Since Windows 10 2004 hal.dll has no code of its own: it forwards to the kernel.
    let module = if module == "hal.dll" { "ntoskrnl.exe" } else { &module };
    EXPORTS.get(&(module, name)).map(|address| *address as *const ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_known_in_any_case_and_hal_is_the_kernel() {
        let address = resolve("ntoskrnl.exe", "KeLowerIrql").expect("an export of the kernel");
        assert_eq!(resolve("NTOSKRNL.EXE", "KeLowerIrql"), Some(address));
        assert_eq!(resolve("HAL.dll", "KeLowerIrql"), Some(address));
        assert_eq!(resolve("ndis.sys", "KeLowerIrql"), None);
        assert!(resolve("NDIS.SYS", "NdisMRegisterMiniportDriver").is_some());
    }

    #[test]
    fn names_are_case_sensitive() {
        assert_eq!(resolve("ntoskrnl.exe", "kelowerirql"), None);
    }
}
