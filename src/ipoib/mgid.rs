//! Multicast GIDs of IP groups (RFC 4391, section 4).
//!
//! ```text
//! |   8    |  4 |  4 |    16     |   16   |    80 bits                              |
//! |11111111|0001|scop| signature | P_Key  | group                                   |
//!                      0x401b IPv4: 48 zero bits, 4 zero bits, low 28 bits of the address
//!                      0x601b IPv6: low 80 bits of the address
//! ```
//!
//! The IPv4 broadcast group has 32 one bits where a group has 4 zero bits and 28 of the address. It carries
//! ARP and IPv6's link-local needs too: it is the group of the whole IPoIB link.

use super::group::IpGroup;
use super::ids::{Gid, PKey};
use super::mac::MacAddr;
use super::wire;

/// What every MGID of an IPoIB link shares: its scope and its partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Link {
    /// The scope nibble; [`Link::LINK_LOCAL`] unless the administrator gave the link another (RFC 4391,
    /// section 4).
    pub scope: u8,
    /// The partition; MGIDs carry it with the full-membership bit set.
    pub pkey: PKey,
}

impl Link {
    /// The scope of a link within one InfiniBand subnet.
    pub const LINK_LOCAL: u8 = 0x2;

    /// A link of link-local scope.
    pub const fn new(pkey: PKey) -> Self {
        Self { scope: Self::LINK_LOCAL, pkey }
    }
}

/// Which IP a group belongs to, by the signature in its MGID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signature {
    /// 0x401B.
    Ipv4,
    /// 0x601B.
    Ipv6,
}

/// The MGID of a group of an IPoIB link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Mgid(Gid);

const IPV4: u16 = 0x401b;
const IPV6: u16 = 0x601b;

impl Mgid {
    /// The broadcast group of `link`.
    pub const fn broadcast(link: Link) -> Self {
        Self::build(link, IPV4, [0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff])
    }

    /// The group of an IP multicast address.
    pub const fn of(group: IpGroup, link: Link) -> Self {
        match group {
            IpGroup::V4(address) => {
                let [a, b, c, d] = address;
                Self::build(link, IPV4, [0, 0, 0, 0, 0, 0, a & 0x0f, b, c, d])
            }
            IpGroup::V6(address) => Self::build(link, IPV6, wire::field::<6, 10, 16>(&address)),
        }
    }

    const fn build(link: Link, signature: u16, group: [u8; 10]) -> Self {
        let mut bytes = [0; 16];
        bytes[0] = 0xff;
        bytes[1] = 0x10 | link.scope & 0x0f;
        wire::set::<2, 2, 16>(&mut bytes, signature.to_be_bytes());
        wire::set::<4, 2, 16>(&mut bytes, link.pkey.full().get().to_be_bytes());
        wire::set::<6, 10, 16>(&mut bytes, group);
        Self(Gid::new(bytes))
    }

    /// `None` unless `gid` is that of an IPoIB group: transient, with a signature.
    pub const fn parse(gid: Gid) -> Option<Self> {
        let bytes = gid.to_bytes();
        let signature = u16::from_be_bytes(wire::field::<2, 2, 16>(&bytes));
        let known = signature == IPV4 || signature == IPV6;
        if bytes[0] == 0xff && bytes[1] & 0xf0 == 0x10 && known { Some(Self(gid)) } else { None }
    }

    /// The GID.
    pub const fn gid(self) -> Gid {
        self.0
    }

    /// Scope and partition.
    pub const fn link(self) -> Link {
        let bytes = self.0.to_bytes();
        Link { scope: bytes[1] & 0x0f, pkey: PKey::new(u16::from_be_bytes(wire::field::<4, 2, 16>(&bytes))) }
    }

    /// Which IP it belongs to.
    pub const fn signature(self) -> Signature {
        let bytes = self.0.to_bytes();
        if u16::from_be_bytes(wire::field::<2, 2, 16>(&bytes)) == IPV6 {
            Signature::Ipv6
        } else {
            Signature::Ipv4
        }
    }

    /// Whether it is the broadcast group of its link.
    pub fn is_broadcast(self) -> bool {
        self == Self::broadcast(self.link())
    }

    /// The Ethernet address that a frame to this group has: broadcast, 01-00-5E and 23 bits of an IPv4 group
    /// (RFC 1112, section 6.4), or 33-33 and 32 bits of an IPv6 group (RFC 2464, section 7).
    pub fn to_mac(self) -> MacAddr {
        let [a, b, c, d] = wire::field::<12, 4, 16>(&self.0.to_bytes());
        if self.is_broadcast() {
            return MacAddr::BROADCAST;
        }
        match self.signature() {
            Signature::Ipv4 => MacAddr::new([0x01, 0x00, 0x5e, b & 0x7f, c, d]),
            Signature::Ipv6 => MacAddr::new([0x33, 0x33, a, b, c, d]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LINK: Link = Link::new(PKey::new(0x7fff));

    /// RFC 4391, section 4, figure of the broadcast-GID; Linux ipoib_main.c has the same bytes as
    /// ipv4_bcast_addr.
    #[test]
    fn the_broadcast_group_is_all_ones_in_its_low_32_bits() {
        let mgid = Mgid::broadcast(LINK);
        assert_eq!(
            mgid.gid().to_bytes(),
            [0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]
        );
        assert!(mgid.is_broadcast());
        assert_eq!(mgid.to_mac(), MacAddr::BROADCAST);
    }

    /// Linux include/net/ip.h, ip_ib_mc_map: 28 bits of the address.
    #[test]
    fn an_ipv4_group_keeps_28_bits() {
        let mgid = Mgid::of(IpGroup::V4([239, 129, 2, 3]), LINK);
        assert_eq!(
            mgid.gid().to_bytes(),
            [0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0x0f, 129, 2, 3]
        );
        assert_eq!(mgid.to_mac().to_bytes(), [0x01, 0x00, 0x5e, 1, 2, 3]);
        assert!(!mgid.is_broadcast());
    }

    /// Linux include/net/if_inet6.h, ipv6_ib_mc_map: 80 bits of the address.
    #[test]
    fn an_ipv6_group_keeps_80_bits() {
        let mut address = [0; 16];
        address[..2].copy_from_slice(&[0xff, 0x02]);
        address[6..].copy_from_slice(&[6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
        let mgid = Mgid::of(IpGroup::V6(address), Link::new(PKey::new(0x0001)));
        assert_eq!(
            mgid.gid().to_bytes(),
            [0xff, 0x12, 0x60, 0x1b, 0x80, 0x01, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]
        );
        assert_eq!(mgid.to_mac().to_bytes(), [0x33, 0x33, 12, 13, 14, 15]);
    }

    #[test]
    fn other_multicast_gids_are_no_ipoib_groups() {
        let mut bytes = Mgid::broadcast(LINK).gid().to_bytes();
        assert!(Mgid::parse(Gid::new(bytes)).is_some());
        bytes[2] = 0xa0;
        assert!(Mgid::parse(Gid::new(bytes)).is_none());
        bytes[2] = 0x40;
        bytes[1] = 0x02;
        assert!(Mgid::parse(Gid::new(bytes)).is_none());
    }

    proptest! {
        #[test]
        fn a_group_and_its_mgid_have_the_same_ethernet_address(
            v6: bool,
            mut address: [u8; 16],
            scope in 0_u8..16,
            pkey: u16,
        ) {
            address[0] = 0xff;
            let group = if v6 {
                IpGroup::V6(address)
            } else {
                IpGroup::V4([0xe0 | address[1] & 0x0f, address[2], address[3], address[4]])
            };
            let link = Link { scope, pkey: PKey::new(pkey) };
            let mgid = Mgid::of(group, link);
            prop_assert_eq!(mgid.to_mac(), group.to_mac());
            prop_assert_eq!(Mgid::parse(mgid.gid()), Some(mgid));
            prop_assert_eq!(mgid.link(), Link { scope, pkey: link.pkey.full() });
        }
    }
}
