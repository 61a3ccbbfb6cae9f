//! Which driver the hosts load.

use windows_kernel_sys::PDRIVER_INITIALIZE;

/// Where a host's driver comes from.
#[derive(Clone, Debug, Default)]
pub enum DriverSource {
    /// The driver's source, linked into this program.
    #[default]
    Native,
}

impl DriverSource {
    /// The driver's entry point.
    pub fn entry(&self) -> PDRIVER_INITIALIZE {
        match self {
            Self::Native => Some(ipoib::entry::DriverEntry),
        }
    }
}
