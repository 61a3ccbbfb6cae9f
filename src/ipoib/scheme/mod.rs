//! The ways to make a 6-byte address out of an InfiniBand one.
//!
//! | scheme | local address | a peer's address | the same on every host |
//! |---|---|---|---|
//! | [`Scheme::QpnLid`] | `02-QQ-QQ-QQ-00-00` | `02-QQ-QQ-QQ-LL-LL` | yes |
//! | [`Scheme::LaaCounter`] | `02-00-NN-NN-NN-NN` | the same, next number | no |
//! | [`Scheme::Guid`] | from the port GUID | from the GUID in its GID | yes, if the masks are |
//!
//! Under [`Scheme::QpnLid`] two hosts whose QPs have the same number have the same *local* address, each
//! seeing the other under an address with its LID in it. What must be unique on the wire (a DHCP client
//! identifier, an IPv6 interface identifier) is therefore made from the GUID, never from the local address.

pub mod guid;
pub mod laa;
pub mod qpn_lid;

use super::ids::{Gid, Lid, Qpn};
use super::mac::MacAddr;
use guid::GuidMask;
use laa::LaaCounter;

/// How Ethernet addresses are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// QPN and LID, the local LID taken as zero.
    QpnLid,
    /// Locally administered addresses out of a counter.
    LaaCounter,
    /// Vendor conversions of the GUID, then the mask.
    Guid(GuidMask),
}

impl Scheme {
    /// The address of this adapter. It depends on nothing that changes while the adapter lives.
    pub fn local(self, qpn: Qpn, port_guid: [u8; 8], counter: &LaaCounter) -> MacAddr {
        match self {
            Self::QpnLid => qpn_lid::local(qpn),
            Self::LaaCounter => counter.next(),
            Self::Guid(mask) => guid::mac_from_guid(port_guid, mask),
        }
    }

    /// The address of a peer that is new to the endpoint table. `None` if what the scheme needs is not known:
    /// [`Scheme::Guid`] wants a GID.
    pub fn remote(self, qpn: Qpn, lid: Lid, gid: Option<Gid>, counter: &LaaCounter) -> Option<MacAddr> {
        match self {
            Self::QpnLid => Some(qpn_lid::remote(qpn, lid)),
            Self::LaaCounter => Some(counter.next()),
            Self::Guid(mask) => gid.map(|gid| guid::mac_from_guid(gid.guid(), mask)),
        }
    }

    /// QPN and LID of a peer that is not in the table, if its address tells them.
    pub fn decode(self, mac: MacAddr) -> Option<(Qpn, Lid)> {
        match self {
            Self::QpnLid => qpn_lid::decode(mac),
            Self::LaaCounter | Self::Guid(_) => None,
        }
    }

    /// Whether a peer's address changes with its LID.
    pub const fn follows_lid(self) -> bool {
        matches!(self, Self::QpnLid)
    }
}
