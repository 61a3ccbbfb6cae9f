//! Wire formats: packet headers, CRCs, management datagrams and subnet administration records.
//!
//! Every format is a table of bit fields out of the InfiniBand Architecture Specification (IBA), volume 1,
//! from which [`bits`] makes a view over a buffer (`LrhView`) and an owned representation (`Lrh`).

pub mod bits;
pub mod bth;
pub mod crc;
pub mod extended;
pub mod grh;
pub mod lrh;
pub mod mad;
pub mod packet;
pub mod sa;

pub use bits::Truncated;
pub use bth::{Bth, OpCode};
pub use extended::{Aeth, Deth, Reth};
pub use grh::Grh;
pub use lrh::Lrh;
pub use packet::{Headers, Malformed, Packet};
