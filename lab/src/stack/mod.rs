//! What sits above the adapter in a simulated host: a protocol that only takes notes, a whole IP host,
//! and real Linux programs.

pub mod ip;
pub mod raw;
pub mod tap;

pub use ip::{HostStack, PingOptions, StackConfig, TcpOptions, Transfer};
pub use raw::RawStack;
