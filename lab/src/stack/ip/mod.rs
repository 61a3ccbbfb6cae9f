//! An IP host on smoltcp: addresses, ARP and neighbour discovery, ping, TCP and UDP, multicast groups.
//!
//! The [`engine`] has no clock and no adapter; [`HostStack`] puts it on one, in virtual or in real time.

pub mod address;
pub mod device;
pub mod discovery;
pub mod engine;
mod host;
pub mod neighbours;
pub mod pattern;
pub mod ping;
pub mod tcp;
pub mod udp;

#[cfg(test)]
mod tests;

pub use host::{HostStack, StackConfig};
pub use ping::{Ping, PingOptions, PingReport};
pub use tcp::{Hash, TcpEnd, TcpOptions, TcpReport, TcpState, Transfer};
pub use udp::{UdpEnd, UdpOptions, UdpReport};
