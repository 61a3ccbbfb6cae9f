//! The names of things on a fabric, one type each so that they cannot be mixed up.

use std::fmt;

/// Virtual time in nanoseconds since the start of the run. The fabric has no clock of its own: its caller
/// says what time it is.
pub type Nanos = u64;

/// A local identifier: the 16-bit address that switches forward by (IBA 4.1.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lid(pub u16);

impl Lid {
    /// Reserved: no LID assigned.
    pub const NONE: Self = Self(0);
    /// The permissive LID, which directed-route packets use.
    pub const PERMISSIVE: Self = Self(0xFFFF);
    /// First unicast LID.
    pub const UNICAST_MIN: Self = Self(0x0001);
    /// Last unicast LID.
    pub const UNICAST_MAX: Self = Self(0xBFFF);
    /// First multicast LID.
    pub const MULTICAST_MIN: Self = Self(0xC000);
    /// Last multicast LID.
    pub const MULTICAST_MAX: Self = Self(0xFFFE);

    /// Whether this names one port.
    pub const fn is_unicast(self) -> bool {
        self.0 >= Self::UNICAST_MIN.0 && self.0 <= Self::UNICAST_MAX.0
    }

    /// Whether this names a multicast group.
    pub const fn is_multicast(self) -> bool {
        self.0 >= Self::MULTICAST_MIN.0 && self.0 <= Self::MULTICAST_MAX.0
    }

    /// The LID with its `lmc` low bits cleared, which is what a port with that LMC is known by (IBA 4.1.3).
    pub const fn base(self, lmc: u8) -> Self {
        Self(self.0 & (u16::MAX << lmc))
    }
}

impl fmt::Display for Lid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#06x}", self.0)
    }
}

/// An EUI-64 that names a node, a port or a system for its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Guid(pub u64);

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quarter = |shift: u32| (self.0 >> shift) & 0xFFFF;
        write!(f, "{:04x}:{:04x}:{:04x}:{:04x}", quarter(48), quarter(32), quarter(16), quarter(0))
    }
}

/// A global identifier: 64 bits of subnet prefix, 64 bits of interface identifier (IBA 4.1.1), in network
/// order.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gid(pub [u8; 16]);

impl Gid {
    /// The prefix that every subnet has until its manager gives it another.
    pub const LINK_LOCAL_PREFIX: u64 = 0xFE80_0000_0000_0000;

    /// All zero: no GID.
    pub const NONE: Self = Self([0; 16]);

    /// The GID of `guid` in the subnet of `prefix`.
    pub const fn new(prefix: u64, guid: Guid) -> Self {
        Self((((prefix as u128) << 64) | guid.0 as u128).to_be_bytes())
    }

    /// The upper 64 bits.
    pub const fn prefix(self) -> u64 {
        (u128::from_be_bytes(self.0) >> 64) as u64
    }

    /// The lower 64 bits.
    pub const fn guid(self) -> Guid {
        Guid(u128::from_be_bytes(self.0) as u64)
    }

    /// Whether this names a multicast group (first byte 0xFF).
    pub const fn is_multicast(self) -> bool {
        self.0[0] == 0xFF
    }

    /// The four flag bits of a multicast GID (0000 permanent, 0001 transient).
    pub const fn flags(self) -> u8 {
        self.0[1] >> 4
    }

    /// The four scope bits of a multicast GID (2 link-local, 5 site-local, 8 organisation-local, 0xE global).
    pub const fn scope(self) -> u8 {
        self.0[1] & 0xF
    }

    /// Whether every byte is zero.
    pub fn is_none(self) -> bool {
        self == Self::NONE
    }
}

impl fmt::Display for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        std::net::Ipv6Addr::from(self.0).fmt(f)
    }
}

impl fmt::Debug for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gid({self})")
    }
}

/// A queue pair number; only the low 24 bits exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Qpn(u32);

impl Qpn {
    /// Subnet management interface.
    pub const SMI: Self = Self(0);
    /// General services interface, where a subnet administrator listens.
    pub const GSI: Self = Self(1);
    /// Destination of every multicast packet (IBA 10.5).
    pub const MULTICAST: Self = Self(0xFF_FFFF);

    /// The low 24 bits of `value`.
    pub const fn new(value: u32) -> Self {
        Self(value & 0xFF_FFFF)
    }

    /// The number.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Qpn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#08x}", self.0)
    }
}

/// A partition key: 15 bits of partition, and the top bit set for a full member (IBA 10.9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PKey(pub u16);

impl PKey {
    /// Full member of the default partition.
    pub const DEFAULT: Self = Self(0xFFFF);
    /// Limited member of the default partition.
    pub const DEFAULT_LIMITED: Self = Self(0x7FFF);

    /// The partition, without the membership bit.
    pub const fn partition(self) -> u16 {
        self.0 & 0x7FFF
    }

    /// Whether the membership bit is set.
    pub const fn is_full(self) -> bool {
        self.0 & 0x8000 != 0
    }

    /// Partition 0 is no partition: an invalid table entry.
    pub const fn is_valid(self) -> bool {
        self.partition() != 0
    }

    /// Whether a packet with one key reaches a holder of the other: the same valid partition, and not two
    /// limited members (IBA 10.9.3).
    pub const fn matches(self, other: Self) -> bool {
        self.is_valid() && self.partition() == other.partition() && (self.is_full() || other.is_full())
    }
}

impl fmt::Display for PKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#06x}", self.0)
    }
}

/// A queue key, which an unreliable datagram must carry to be accepted by its QP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QKey(pub u32);

impl QKey {
    /// The well-known key of QP1 (IBA 10.2.5).
    pub const GSI: Self = Self(0x8001_0000);

    /// A key with its top bit set may be sent only from a QP that itself holds it (IBA 10.2.5).
    pub const fn is_controlled(self) -> bool {
        self.0 & 0x8000_0000 != 0
    }
}

impl fmt::Display for QKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#010x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// IBA 10.9.3: two limited members of a partition do not talk; partition 0 matches nothing.
    #[test]
    fn pkey_match_needs_one_full_member() {
        assert!(PKey(0xFFFF).matches(PKey(0x7FFF)));
        assert!(PKey(0x7FFF).matches(PKey(0xFFFF)));
        assert!(!PKey(0x7FFF).matches(PKey(0x7FFF)));
        assert!(!PKey(0x8001).matches(PKey(0x8002)));
        assert!(!PKey(0x8000).matches(PKey(0x8000)));
    }

    /// IBA 4.1.3: the ranges of LIDs do not overlap and leave out 0 and 0xFFFF.
    #[test]
    fn lid_ranges() {
        for lid in 0..=u16::MAX {
            let lid = Lid(lid);
            assert!(!(lid.is_unicast() && lid.is_multicast()));
            assert_eq!(lid.is_unicast() || lid.is_multicast(), lid != Lid::NONE && lid != Lid::PERMISSIVE);
        }
        assert_eq!(Lid(0x17).base(2), Lid(0x14));
    }

    /// IBA 4.1.1: prefix first, interface identifier second, network order.
    #[test]
    fn gid_layout() {
        let gid = Gid::new(Gid::LINK_LOCAL_PREFIX, Guid(0x0002_c903_0012_3457));
        assert_eq!(gid.to_string(), "fe80::2:c903:12:3457");
        assert_eq!((gid.prefix(), gid.guid()), (Gid::LINK_LOCAL_PREFIX, Guid(0x0002_c903_0012_3457)));
        assert!(!gid.is_multicast());
    }
}
