//! Whole subnets: hosts assembled from every room below, the main job on them, and its report.

pub mod driver_source;
pub mod host;
pub mod render;
pub mod report;
pub mod subnet;

pub use driver_source::DriverSource;
pub use host::Host;
pub use subnet::{Subnet, SubnetConfig, Unfinished};
