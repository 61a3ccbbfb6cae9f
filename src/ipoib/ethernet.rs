//! The Ethernet header that Windows puts on frames and expects on them.

use super::mac::MacAddr;
use super::wire;

/// What is in a frame (IEEE 802 numbers; the same values stand in an IPoIB header, RFC 4391, section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EtherType(u16);

impl EtherType {
    /// IPv4.
    pub const IPV4: Self = Self(0x0800);
    /// ARP.
    pub const ARP: Self = Self(0x0806);
    /// Reverse ARP.
    pub const RARP: Self = Self(0x8035);
    /// IPv6.
    pub const IPV6: Self = Self(0x86dd);

    /// Of any value.
    pub const fn new(value: u16) -> Self {
        Self(value)
    }

    /// The number.
    pub const fn get(self) -> u16 {
        self.0
    }

    /// Whether IPoIB carries it: RFC 4391, section 6, lists IPv4, IPv6, ARP and RARP, and no other.
    pub const fn is_carried(self) -> bool {
        matches!(self, Self::IPV4 | Self::ARP | Self::RARP | Self::IPV6)
    }
}

/// An Ethernet II header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// To.
    pub destination: MacAddr,
    /// From.
    pub source: MacAddr,
    /// The protocol; below 0x0600 the length of an IEEE 802.3 frame, which IPoIB does not carry.
    pub ethertype: EtherType,
}

impl Header {
    /// Bytes on the wire.
    pub const LEN: usize = 14;

    /// From its bytes.
    pub const fn from_bytes(bytes: &[u8; Self::LEN]) -> Self {
        Self {
            destination: MacAddr::new(wire::field::<0, 6, 14>(bytes)),
            source: MacAddr::new(wire::field::<6, 6, 14>(bytes)),
            ethertype: EtherType(u16::from_be_bytes(wire::field::<12, 2, 14>(bytes))),
        }
    }

    /// From the beginning of a frame; `None` if it is shorter than a header.
    pub fn parse(frame: &[u8]) -> Option<Self> {
        frame.first_chunk().map(Self::from_bytes)
    }

    /// The bytes on the wire.
    pub const fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        wire::set::<0, 6, 14>(&mut bytes, self.destination.to_bytes());
        wire::set::<6, 6, 14>(&mut bytes, self.source.to_bytes());
        wire::set::<12, 2, 14>(&mut bytes, self.ethertype.0.to_be_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_what_rfc_4391_lists_is_carried() {
        let carried = (0..=u16::MAX).filter(|&value| EtherType::new(value).is_carried());
        assert!(carried.eq([0x0800, 0x0806, 0x8035, 0x86dd]));
    }

    proptest! {
        #[test]
        fn emit_undoes_parse(bytes: [u8; 14]) {
            prop_assert_eq!(Header::from_bytes(&bytes).to_bytes(), bytes);
        }

        #[test]
        fn parse_refuses_only_what_is_short(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(Header::parse(&bytes).is_some(), bytes.len() >= 14);
        }
    }
}
