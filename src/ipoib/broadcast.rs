//! What the broadcast group of a link, and the groups made after it, look like to the subnet administrator.

use super::mgid::{Link, Mgid};
use super::mtu::Mtu;
use super::rate::Rate;

/// The Q_Key that OpenSM gives the group unless told otherwise, and that the C driver joined with.
pub const DEFAULT_QKEY: u32 = 0x0000_0b1b;

/// What is asked for when a group has to be created (RFC 4391, section 4.1, Broadcast-GID Parameters).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// The group.
    pub mgid: Mgid,
    /// Q_Key of the link.
    pub qkey: u32,
    /// Its MTU.
    pub mtu: Mtu,
    /// Its rate.
    pub rate: Rate,
    /// Service level.
    pub sl: u8,
    /// Flow label, 20 bits.
    pub flow_label: u32,
    /// Traffic class.
    pub traffic_class: u8,
    /// Hop limit: 0 within a subnet.
    pub hop_limit: u8,
}

impl Parameters {
    /// Those of a link's broadcast group. `mtu` and `rate` are what the port can do; a group must not ask for
    /// more than every member can, so both are limited to what OpenSM gives the group: 2048 bytes, 10 Gb/s.
    pub fn broadcast(link: Link, qkey: u32, mtu: Mtu, rate: Rate) -> Self {
        let rate = if rate.bits_per_second() < Rate::GROUP_DEFAULT.bits_per_second() {
            rate
        } else {
            Rate::GROUP_DEFAULT
        };
        Self {
            mgid: Mgid::broadcast(link),
            qkey,
            mtu: mtu.min(Mtu::B2048),
            rate,
            sl: 0,
            flow_label: 0,
            traffic_class: 0,
            hop_limit: 0,
        }
    }

    /// Those of another group of the same link: all but the MGID are the broadcast group's (RFC 4391, section
    /// 4.1).
    #[must_use]
    pub const fn of(self, mgid: Mgid) -> Self {
        Self { mgid, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipoib::PKey;

    #[test]
    fn a_fast_port_does_not_shut_slow_ones_out() {
        let link = Link::new(PKey::DEFAULT);
        let fast = Rate::fastest_within(100_000_000_000);
        let group = Parameters::broadcast(link, DEFAULT_QKEY, Mtu::B4096, fast);
        assert_eq!((group.mtu, group.rate), (Mtu::B2048, Rate::GROUP_DEFAULT));
        let slow = Parameters::broadcast(link, DEFAULT_QKEY, Mtu::B1024, Rate::LOWEST);
        assert_eq!((slow.mtu, slow.rate), (Mtu::B1024, Rate::LOWEST));
        assert!(group.mgid.is_broadcast());
    }
}
