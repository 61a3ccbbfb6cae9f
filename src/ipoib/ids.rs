//! Queue pair numbers, local and global identifiers, partition keys.

use super::wire;
use core::fmt;

/// A queue pair number, 24 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Qpn(u32);

impl Qpn {
    /// The destination QPN of every multicast packet (IBTA volume 1, 10.5).
    pub const MULTICAST: Self = Self(0x00ff_ffff);

    /// QP0, the subnet management interface.
    pub const ZERO: Self = Self(0);

    /// `None` if `number` has more than 24 bits.
    pub const fn new(number: u32) -> Option<Self> {
        if number <= 0x00ff_ffff { Some(Self(number)) } else { None }
    }

    /// From the three bytes on the wire.
    pub const fn from_bytes([high, middle, low]: [u8; 3]) -> Self {
        Self(u32::from_be_bytes([0, high, middle, low]))
    }

    /// The three bytes on the wire.
    pub const fn to_bytes(self) -> [u8; 3] {
        let [_, high, middle, low] = self.0.to_be_bytes();
        [high, middle, low]
    }

    /// The number.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Whether an IPoIB interface can have it: neither QP0 and QP1, which are for management (IBTA volume 1,
    /// chapter 3), nor the multicast QPN.
    pub const fn is_interface(self) -> bool {
        self.0 > 1 && self.0 != Self::MULTICAST.0
    }
}

/// A local identifier, 16 bits (IBTA volume 1, 4.1.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lid(u16);

impl Lid {
    /// Reserved: not assigned yet.
    pub const UNASSIGNED: Self = Self(0);
    /// Accepted by every port; used by management before LIDs are assigned.
    pub const PERMISSIVE: Self = Self(0xffff);

    /// Of any value; see [`Self::is_unicast`] and [`Self::is_multicast`].
    pub const fn new(lid: u16) -> Self {
        Self(lid)
    }

    /// The number.
    pub const fn get(self) -> u16 {
        self.0
    }

    /// 0x0001 to 0xBFFF: of a port.
    pub const fn is_unicast(self) -> bool {
        self.0 >= 0x0001 && self.0 <= 0xbfff
    }

    /// 0xC000 to 0xFFFE: of a group.
    pub const fn is_multicast(self) -> bool {
        self.0 >= 0xc000 && self.0 <= 0xfffe
    }

    /// The base LID of a port with LID mask control `lmc` (0 to 7): the low `lmc` bits choose a path.
    pub const fn base(self, lmc: u8) -> Self {
        let bits = if lmc > 7 { 7 } else { lmc };
        Self(self.0 & (0xffff << bits))
    }
}

/// A global identifier: an IPv6 address in form (IBTA volume 1, 4.1.1).
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Gid([u8; 16]);

impl Gid {
    /// The reserved GID, all zero.
    pub const UNSPECIFIED: Self = Self([0; 16]);
    /// The default subnet prefix, fe80::/64.
    pub const DEFAULT_PREFIX: [u8; 8] = [0xfe, 0x80, 0, 0, 0, 0, 0, 0];

    /// From its bytes.
    pub const fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// From a subnet prefix and a port GUID, both as on the wire.
    pub const fn from_parts(prefix: [u8; 8], guid: [u8; 8]) -> Self {
        let mut bytes = [0; 16];
        wire::set::<0, 8, 16>(&mut bytes, prefix);
        wire::set::<8, 8, 16>(&mut bytes, guid);
        Self(bytes)
    }

    /// Its bytes.
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0
    }

    /// The subnet prefix.
    pub const fn prefix(self) -> [u8; 8] {
        wire::field::<0, 8, 16>(&self.0)
    }

    /// The interface identifier: the port GUID.
    pub const fn guid(self) -> [u8; 8] {
        wire::field::<8, 8, 16>(&self.0)
    }

    /// Whether it names a group.
    pub const fn is_multicast(self) -> bool {
        self.0[0] == 0xff
    }

    /// Whether a port can have it: not multicast, and with an interface identifier other than zero. That also
    /// excludes the reserved GID (IBTA volume 1, 4.1.1); the loopback GID ::1 is excluded by name.
    pub fn is_unicast(self) -> bool {
        !self.is_multicast()
            && self.guid() != [0; 8]
            && self.0 != [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]
    }
}

impl fmt::Display for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (groups, _) = self.0.as_chunks::<2>();
        for (index, &group) in groups.iter().enumerate() {
            if index != 0 {
                f.write_str(":")?;
            }
            write!(f, "{:04x}", u16::from_be_bytes(group))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gid({self})")
    }
}

/// A partition key: 15 bits and the membership bit on top.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PKey(u16);

impl PKey {
    /// The default partition, full member.
    pub const DEFAULT: Self = Self(0xffff);

    /// Of any value.
    pub const fn new(key: u16) -> Self {
        Self(key)
    }

    /// The number, with its membership bit.
    pub const fn get(self) -> u16 {
        self.0
    }

    /// The number with the full-membership bit set, as multicast GIDs carry it (RFC 4391, section 4).
    pub const fn full(self) -> Self {
        Self(self.0 | 0x8000)
    }

    /// Whether two members may talk: the same partition, and not both limited members (IBTA volume 1,
    /// 10.9.3).
    pub const fn matches(self, other: Self) -> bool {
        self.full().0 == other.full().0 && (self.0 | other.0) & 0x8000 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn management_and_multicast_qpns_are_no_interface() {
        for (qpn, interface) in [(0, false), (1, false), (2, true), (0xfffffe, true), (0xffffff, false)] {
            assert_eq!(Qpn::new(qpn).unwrap().is_interface(), interface, "{qpn:#x}");
        }
        assert_eq!(Qpn::new(0x0100_0000), None);
    }

    #[test]
    fn lid_ranges_are_those_of_the_architecture() {
        for (lid, unicast, multicast) in [
            (0x0000, false, false),
            (0x0001, true, false),
            (0xbfff, true, false),
            (0xc000, false, true),
            (0xfffe, false, true),
            (0xffff, false, false),
        ] {
            let lid = Lid::new(lid);
            assert_eq!((lid.is_unicast(), lid.is_multicast()), (unicast, multicast), "{lid:?}");
        }
    }

    #[test]
    fn a_base_lid_has_no_path_bits() {
        assert_eq!(Lid::new(0x1237).base(0), Lid::new(0x1237));
        assert_eq!(Lid::new(0x1237).base(3), Lid::new(0x1230));
        assert_eq!(Lid::new(0x12ff).base(200), Lid::new(0x1280));
    }

    #[test]
    fn two_limited_members_do_not_talk() {
        let (full, limited) = (PKey::new(0x8001), PKey::new(0x0001));
        assert!(full.matches(limited) && limited.matches(full) && full.matches(full));
        assert!(!limited.matches(limited));
        assert!(!full.matches(PKey::new(0x8002)));
    }

    #[test]
    fn reserved_loopback_and_multicast_gids_are_no_ports() {
        let mut bytes = [0; 16];
        assert!(!Gid::new(bytes).is_unicast());
        bytes[15] = 1;
        assert!(!Gid::new(bytes).is_unicast());
        bytes[0] = 0xff;
        assert!(!Gid::new(bytes).is_unicast());
        bytes[0] = 0xfe;
        assert!(Gid::new(bytes).is_unicast());
    }
}
