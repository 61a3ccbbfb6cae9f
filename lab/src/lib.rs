//! Simulated Windows hosts on a simulated InfiniBand fabric, running the real ipoib driver.

pub mod sim;

pub mod ndis;
pub mod stack;
pub mod fault;
pub mod image;
pub mod kernel;
pub mod verifier;
pub mod fabric;
pub mod hca;
pub mod ibal;
pub mod scenario;
