//! Loading and unloading a driver.

use windows_kernel_sys::{
    DRIVER_OBJECT, IO_TYPE_DRIVER, NT_SUCCESS, NTSTATUS, PDRIVER_INITIALIZE, STATUS_INVALID_PARAMETER,
    UNICODE_STRING,
};

use super::Machine;
use super::irql::PASSIVE_LEVEL;
use crate::verifier::call_driver;

const TAG: [u8; 4] = *b"Driv";
const EXTENSION_TAG: [u8; 4] = *b"DrvE";

/// A driver object and its strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Driver {
    /// The driver object.
    pub object: *mut DRIVER_OBJECT,
    /// The path of its service key.
    pub registry_path: *mut UNICODE_STRING,
}

// SAFETY: the object lives in the machine's pool; the lab follows the pointers only in the machine's own contexts.
unsafe impl Send for Driver {}
// SAFETY: as above.
unsafe impl Sync for Driver {}

impl Machine {
    /// Makes a driver object, as the I/O manager does before it calls DriverEntry.
    pub fn create_driver(&self, service: &str) -> Driver {
        let object = self.allocate_system(size_of::<DRIVER_OBJECT>(), TAG).cast::<DRIVER_OBJECT>();
        let registry_path =
            self.system_string(&format!("\\REGISTRY\\MACHINE\\SYSTEM\\ControlSet001\\Services\\{service}"));
        let name = self.system_string(&format!("\\Driver\\{service}"));
        // SAFETY: freshly allocated, zeroed, large enough and aligned.
        unsafe {
            (*object).Type = IO_TYPE_DRIVER;
            (*object).Size = size_of::<DRIVER_OBJECT>() as i16;
            (*object).DriverName = *name;
        }
        Driver { object, registry_path }
    }

    /// Loads a driver: makes its object and calls `entry`. Call it in a thread at PASSIVE_LEVEL.
    pub fn load_driver(&self, service: &str, entry: PDRIVER_INITIALIZE) -> Result<Driver, NTSTATUS> {
        let driver = self.create_driver(service);
        // SAFETY: the object was just made.
        unsafe { (*driver.object).DriverInit = entry };
        let Some(entry) = entry else { return Err(STATUS_INVALID_PARAMETER) };
        // SAFETY: the arguments are what DriverEntry expects and live as long as the driver.
        let status = call_driver("DriverEntry", PASSIVE_LEVEL, || unsafe {
            entry(driver.object, driver.registry_path)
        });
        if NT_SUCCESS(status) {
            Ok(driver)
        } else {
            self.free_driver_extensions(driver);
            Err(status)
        }
    }

    /// Unloads a driver: calls its unload routine and frees the extensions of its object. What it still holds then
    /// is in [`Machine::outstanding`]. Call it in a thread at PASSIVE_LEVEL.
    pub fn unload_driver(&self, driver: Driver) {
        // SAFETY: the object lives until the machine ends.
        let unload = unsafe { (*driver.object).DriverUnload };
        if let Some(unload) = unload {
            // SAFETY: the driver's own unload routine with its own object.
            call_driver("DriverUnload", PASSIVE_LEVEL, || unsafe { unload(driver.object) });
        }
        self.free_driver_extensions(driver);
        self.check_pool();
    }

    /// A counted string in system memory, terminated too.
    pub fn system_string(&self, text: &str) -> *mut UNICODE_STRING {
        let units: Vec<u16> = text.encode_utf16().collect();
        let bytes = units.len() * 2;
        let string =
            self.allocate_system(size_of::<UNICODE_STRING>() + bytes + 2, TAG).cast::<UNICODE_STRING>();
        // SAFETY: freshly allocated and zeroed, with room for the header, the units and a terminator.
        unsafe {
            let buffer = string.add(1).cast::<u16>();
            units.as_ptr().copy_to_nonoverlapping(buffer, units.len());
            string.write(UNICODE_STRING {
                Length: bytes as u16,
                MaximumLength: bytes as u16 + 2,
                Buffer: buffer,
            });
        }
        string
    }

    /// The extension of a driver object that a client made.
    pub(super) fn driver_extension(&self, key: (usize, usize)) -> Option<usize> {
        self.0.io.extensions.lock().get(&key).copied()
    }

    pub(super) fn add_driver_extension(&self, key: (usize, usize), size: usize) -> *mut u8 {
        let memory = self.allocate_system(size, EXTENSION_TAG);
        self.0.io.extensions.lock().insert(key, memory as usize);
        memory
    }

    fn free_driver_extensions(&self, driver: Driver) {
        let object = driver.object as usize;
        let mut freed = Vec::new();
        self.0.io.extensions.lock().retain(|(owner, _), extension| {
            if *owner == object {
                freed.push(*extension);
            }
            *owner != object
        });
        for extension in freed {
            self.free_system(extension as *mut u8, EXTENSION_TAG);
        }
    }
}
