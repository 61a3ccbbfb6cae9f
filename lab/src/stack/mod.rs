//! What sits above the adapter in a simulated host: a whole IP host on smoltcp.

pub mod ip;
