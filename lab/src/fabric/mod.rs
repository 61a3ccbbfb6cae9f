//! An InfiniBand fabric without a clock: wire formats, ports, switches, subnet management and capture.
//!
//! Everything here is a function of its arguments and of what was called before: the caller says what time it
//! is, and gets back what happens and when. Equal calls give equal results, byte for byte.
//!
//! ```text
//!  HCA ── transmit(now, port, packet) ──► Fabric ──► Vec<Delivery { at, port, packet }>
//!  caller ── poll_at() / poll(now) ─────►        ──► Vec<Output>: deliveries and port events
//!  HCA ── receive(at, delivery) ────────►        ──► the packet is there, or was lost with the link
//! ```
//!
//! Packets are real: LRH, GRH, BTH, DETH and so on, with right CRCs wherever somebody can see them (see
//! [`wire::Packet`]). Management of subnets by SMPs on VL 15 is not on the wire: the [`manager`] writes port
//! and switch attributes directly, after the time that a sweep takes. Subnet administration is on the wire.

pub mod administrator;
pub mod capture;
mod core;
pub mod counters;
pub mod drops;
pub mod event;
pub mod fault;
pub mod ids;
pub mod manager;
pub mod rate;
pub mod topology;
mod transit;
pub mod wire;

#[cfg(test)]
mod tests;

pub use self::core::{Delivery, Fabric, FabricConfig, Output, PacketTap};
pub use event::PortEvent;
pub use ids::{Gid, Guid, Lid, Nanos, PKey, QKey, Qpn};
pub use rate::{LinkSpeed, LinkWidth, Mtu, Rate};
pub use topology::{Port, PortId, PortState, Topology};
pub use wire::{Headers, Packet};
