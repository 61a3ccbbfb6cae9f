//! Options that say which driver the hosts load, the same on every command.

use std::path::PathBuf;

use clap::Args;
use ipoib_lab::scenario::DriverSource;

use crate::Failure;

/// Which driver.
#[derive(Args, Clone)]
pub(crate) struct DriverOptions {
    /// Load this driver image, any NDIS 6 miniport for x64, instead of the driver linked into the lab
    #[arg(long, value_name = "FILE")]
    image: Option<PathBuf>,
}

impl DriverOptions {
    /// Reads the image, if one is asked for.
    pub(crate) fn source(&self) -> Result<DriverSource, Failure> {
        let Some(path) = &self.image else { return Ok(DriverSource::of_environment()) };
        DriverSource::image(path).map_err(|error| Failure::Usage(format!("{} {error}", path.display())))
    }
}
