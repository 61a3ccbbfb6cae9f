//! What an address handle is made from.

use crate::ipoib::mtu::Mtu;
use crate::ipoib::rate::Rate;
use crate::ipoib::{Gid, Lid};

/// A path to a port (from a path record) or to a group (from its member record).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// The port's or the group's GID. [`Gid::UNSPECIFIED`] if a query by LID was not told.
    pub destination: Gid,
    /// The port's or the group's LID.
    pub lid: Lid,
    /// Service level.
    pub sl: u8,
    /// Static rate.
    pub rate: Rate,
    /// The largest packet on the path.
    pub mtu: Mtu,
    /// Hop limit of the GRH.
    pub hop_limit: u8,
    /// Flow label of the GRH, 20 bits.
    pub flow_label: u32,
    /// Traffic class of the GRH.
    pub traffic_class: u8,
}

impl Path {
    /// Whether packets carry a GRH: always to a group (IBTA volume 1, 9.6.1), and over a router, which a
    /// hop limit above 1 tells of (IBTA volume 1, 8.3).
    pub const fn needs_grh(&self) -> bool {
        self.destination.is_multicast() || self.hop_limit > 1
    }
}
