//! An IP host on smoltcp.

pub mod address;
pub mod device;
pub mod discovery;
pub mod engine;
pub mod pattern;
pub mod ping;
pub mod tcp;
pub mod udp;

#[cfg(test)]
mod tests;
