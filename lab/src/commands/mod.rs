//! The subcommands of `ipoib-lab`, one a file.

pub mod driver;
pub mod run;
pub mod tap;
