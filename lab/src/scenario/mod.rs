//! Whole subnets: hosts assembled from every room below, the main job on them, and its report.

pub mod driver_source;
pub mod host;
pub mod main_job;
pub mod render;
pub mod report;
pub mod subnet;

pub use driver_source::{DriverCode, DriverSource, IMAGE_VARIABLE};
pub use host::Host;
pub use main_job::{MainJob, Observer, Part};
pub use subnet::{Subnet, SubnetConfig, Unfinished};
