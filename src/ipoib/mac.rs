//! The 6-byte address that Windows sees.

use super::wire;
use core::fmt;

/// An Ethernet address (IEEE 802-2014, 8.2).
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MacAddr([u8; 6]);

impl MacAddr {
    /// Bytes on the wire.
    pub const LEN: usize = 6;
    /// All zero: no address.
    pub const ZERO: Self = Self([0; 6]);
    /// Every station.
    pub const BROADCAST: Self = Self([0xff; 6]);

    /// From its bytes.
    pub const fn new(bytes: [u8; 6]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub const fn to_bytes(self) -> [u8; 6] {
        self.0
    }

    /// The group bit: multicast or broadcast.
    pub const fn is_group(self) -> bool {
        self.0[0] & 0x01 != 0
    }

    /// The broadcast address.
    pub fn is_broadcast(self) -> bool {
        self == Self::BROADCAST
    }

    /// The U/L bit: not from a vendor's range.
    pub const fn is_local(self) -> bool {
        self.0[0] & 0x02 != 0
    }

    /// Whether a station can have it: individual and not zero.
    pub fn is_station(self) -> bool {
        !self.is_group() && self != Self::ZERO
    }

    /// As an integer below 2^48, for hashing.
    pub const fn to_u64(self) -> u64 {
        let mut bytes = [0; 8];
        wire::set::<2, 6, 8>(&mut bytes, self.0);
        u64::from_be_bytes(bytes)
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}-{b:02x}-{c:02x}-{d:02x}-{e:02x}-{g:02x}")
    }
}

impl fmt::Debug for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MacAddr({self})")
    }
}
