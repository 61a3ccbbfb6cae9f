//! The protocol, pure: no kernel, no allocation, no unsafe code, no panic.
//!
//! | file | what it holds |
//! |---|---|
//! | [`ids`], [`hwaddr`] | QPN, LID, GID, P_Key; the 20-byte IPoIB address |
//! | [`mac`], [`scheme`] | the 6-byte address that Windows wants, and the ways to make one |
//! | [`ethernet`], [`encap`], [`grh`] | headers above and below |
//! | [`mgid`], [`group`], [`broadcast`] | multicast addresses, Ethernet's, IP's and InfiniBand's |
//! | [`arp`], [`ndisc`], [`dhcp`] | what carries link-layer addresses and must be rewritten |
//! | [`igmp`], [`mld`] | what tells which groups a host is in |
//! | [`ip`], [`checksum`], [`mtu`], [`rate`] | IP headers; arithmetic of the Internet and of links |
//! | [`translate`] | one entry for a frame on its way down, one for a frame on its way up |
//!
//! Wire types come in two levels: a checked view over bytes (`new` refuses what is too short or inconsistent)
//! and a plain value (`Repr`) with `parse`, `emit` and `buffer_len`. All integers on the wire are big-endian.
#![forbid(unsafe_code)]
// The bytes of an address have no better names.
#![allow(clippy::many_single_char_names)]

pub mod arp;
pub mod broadcast;
pub mod checksum;
pub mod dhcp;
pub mod encap;
pub mod ethernet;
pub mod grh;
pub mod group;
pub mod hwaddr;
pub mod ids;
pub mod igmp;
pub mod ip;
pub mod mac;
pub mod mgid;
pub mod mld;
pub mod mtu;
pub mod ndisc;
pub mod rate;
pub mod scheme;
pub mod translate;
mod wire;

pub use group::IpGroup;
pub use hwaddr::HwAddr;
pub use ids::{Gid, Lid, PKey, Qpn};
pub use mac::MacAddr;
pub use mgid::Mgid;
