//! Simulated Windows hosts on a simulated InfiniBand fabric, running the real ipoib driver.

pub mod sim;
