//! What sits above the adapter in a simulated host: a protocol that only takes notes, and a whole IP host.

pub mod ip;
pub mod raw;

pub use ip::{HostStack, PingOptions, StackConfig, TcpOptions, Transfer};
pub use raw::RawStack;
