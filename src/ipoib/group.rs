//! IP multicast groups and their Ethernet addresses.
//!
//! An Ethernet address says less than a group: 01-00-5E has room for 23 of IPv4's 28 bits, 33-33 for 32 of
//! IPv6's 112. A frame's own IP header says which group it is sent to. Which group a *listener* wants is told
//! by its IGMP or MLD reports; where there are none, [`IpGroup::assumed`] takes the one group that is by far
//! the likeliest.

use super::mac::MacAddr;
use super::wire;

/// An IP multicast address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum IpGroup {
    /// 224.0.0.0/4.
    V4([u8; 4]),
    /// ff00::/8.
    V6([u8; 16]),
}

impl IpGroup {
    /// 224.0.0.1, every IPv4 host. Never reported (RFC 2236, section 6).
    pub const ALL_HOSTS: Self = Self::V4([224, 0, 0, 1]);
    /// ff02::1, every IPv6 node. Never reported (RFC 2710, section 5).
    pub const ALL_NODES: Self = Self::V6([0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);

    /// `None` unless `address` is in 224.0.0.0/4.
    pub const fn v4(address: [u8; 4]) -> Option<Self> {
        if address[0] & 0xf0 == 0xe0 { Some(Self::V4(address)) } else { None }
    }

    /// `None` unless `address` is in ff00::/8.
    pub const fn v6(address: [u8; 16]) -> Option<Self> {
        if address[0] == 0xff { Some(Self::V6(address)) } else { None }
    }

    /// Its Ethernet address (RFC 1112, section 6.4; RFC 2464, section 7).
    pub const fn to_mac(self) -> MacAddr {
        match self {
            Self::V4([_, b, c, d]) => MacAddr::new([0x01, 0x00, 0x5e, b & 0x7f, c, d]),
            Self::V6(address) => {
                let [a, b, c, d] = wire::field::<12, 4, 16>(&address);
                MacAddr::new([0x33, 0x33, a, b, c, d])
            }
        }
    }

    /// The likeliest group behind an Ethernet address; `None` if no IP group has that address.
    ///
    /// Of 32 IPv4 groups, the one whose lost bits are zero: 224.0.0.0/9, where every group lives that hosts
    /// join without a report. Of the IPv6 groups, a solicited-node group (RFC 4291, section 2.7.1) if the
    /// address is that of one, else the link-local group with that group ID.
    pub const fn assumed(mac: MacAddr) -> Option<Self> {
        match mac.to_bytes() {
            [0x01, 0x00, 0x5e, b, c, d] if b < 0x80 => Some(Self::V4([224, b, c, d])),
            [0x33, 0x33, 0xff, b, c, d] => {
                Some(Self::V6([0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, b, c, d]))
            }
            [0x33, 0x33, a, b, c, d] => {
                Some(Self::V6([0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d]))
            }
            _ => None,
        }
    }

    /// Whether hosts join it without a report, so that its Ethernet address alone must do: 224.0.0.0/24 (RFC
    /// 3376 exempts 224.0.0.1 alone, older hosts the whole block) and ff02::1.
    pub fn is_unreported(self) -> bool {
        matches!(self, Self::V4([224, 0, 0, _])) || self == Self::ALL_NODES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 2464, section 7, and RFC 4291, section 2.7.1: ff02::1:ff0e:8c6c.
    #[test]
    fn a_solicited_node_group_is_recognized() {
        let group = IpGroup::v6([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0x0e, 0x8c, 0x6c]).unwrap();
        assert_eq!(group.to_mac().to_bytes(), [0x33, 0x33, 0xff, 0x0e, 0x8c, 0x6c]);
        assert_eq!(IpGroup::assumed(group.to_mac()), Some(group));
    }

    #[test]
    fn well_known_groups_are_found_from_their_address() {
        for group in [IpGroup::ALL_HOSTS, IpGroup::ALL_NODES, IpGroup::V4([224, 0, 0, 251])] {
            assert_eq!(IpGroup::assumed(group.to_mac()), Some(group));
            assert!(group.is_unreported());
        }
        assert_eq!(IpGroup::assumed(MacAddr::BROADCAST), None);
        assert_eq!(IpGroup::assumed(MacAddr::new([0x01, 0x80, 0xc2, 0, 0, 0])), None);
        assert_eq!(IpGroup::assumed(MacAddr::new([0x01, 0, 0x5e, 0x80, 0, 1])), None);
    }

    proptest! {
        #[test]
        fn the_assumed_group_has_the_address_it_was_made_from(mac: [u8; 6], kind in 0..3) {
            let [a, b, c, d, e, f] = mac;
            let mac = MacAddr::new(match kind {
                0 => [0x01, 0x00, 0x5e, d & 0x7f, e, f],
                1 => [0x33, 0x33, c, d, e, f],
                _ => [a, b, c, d, e, f],
            });
            if let Some(group) = IpGroup::assumed(mac) {
                prop_assert_eq!(group.to_mac(), mac);
            } else {
                prop_assert_eq!(kind, 2);
            }
        }
    }
}
