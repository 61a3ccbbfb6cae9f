//! The global route header (IBTA volume 1, 8.3), laid out as an IPv6 header.

use super::ids::Gid;
use super::wire;

/// What a GRH says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grh {
    /// Traffic class.
    pub traffic_class: u8,
    /// Flow label, 20 bits.
    pub flow_label: u32,
    /// Bytes that follow, up to and with the invariant CRC.
    pub payload_len: u16,
    /// Hop limit.
    pub hop_limit: u8,
    /// From.
    pub source: Gid,
    /// To: a port or a group.
    pub destination: Gid,
}

impl Grh {
    /// Bytes on the wire.
    pub const LEN: usize = 40;
    /// IPVer: as in IPv6.
    pub const VERSION: u8 = 6;
    /// NxtHdr: an InfiniBand transport follows.
    pub const NEXT_HEADER: u8 = 0x1b;

    /// From its bytes; `None` unless version and next header are those of a GRH.
    pub const fn parse(bytes: &[u8; Self::LEN]) -> Option<Self> {
        let word = u32::from_be_bytes(wire::field::<0, 4, 40>(bytes));
        if word >> 28 != Self::VERSION as u32 || bytes[6] != Self::NEXT_HEADER {
            return None;
        }
        Some(Self {
            traffic_class: (word >> 20) as u8,
            flow_label: word & 0x000f_ffff,
            payload_len: u16::from_be_bytes(wire::field::<4, 2, 40>(bytes)),
            hop_limit: bytes[7],
            source: Gid::new(wire::field::<8, 16, 40>(bytes)),
            destination: Gid::new(wire::field::<24, 16, 40>(bytes)),
        })
    }

    /// The bytes on the wire. Bits of the flow label above the 20th are left out.
    pub const fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        let word =
            (Self::VERSION as u32) << 28 | (self.traffic_class as u32) << 20 | self.flow_label & 0x000f_ffff;
        wire::set::<0, 4, 40>(&mut bytes, word.to_be_bytes());
        wire::set::<4, 2, 40>(&mut bytes, self.payload_len.to_be_bytes());
        bytes[6] = Self::NEXT_HEADER;
        bytes[7] = self.hop_limit;
        wire::set::<8, 16, 40>(&mut bytes, self.source.to_bytes());
        wire::set::<24, 16, 40>(&mut bytes, self.destination.to_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parse_undoes_emit(
            traffic_class: u8,
            flow_label in 0_u32..1 << 20,
            payload_len: u16,
            hop_limit: u8,
            source: [u8; 16],
            destination: [u8; 16],
        ) {
            let (source, destination) = (Gid::new(source), Gid::new(destination));
            let grh = Grh { traffic_class, flow_label, payload_len, hop_limit, source, destination };
            prop_assert_eq!(Grh::parse(&grh.to_bytes()), Some(grh));
        }

        #[test]
        fn emit_undoes_parse(bytes in prop::array::uniform32(any::<u8>()), tail: [u8; 8]) {
            let mut all = [0; 40];
            all[..32].copy_from_slice(&bytes);
            all[32..].copy_from_slice(&tail);
            all[0] = 0x60 | all[0] & 0x0f;
            all[6] = Grh::NEXT_HEADER;
            prop_assert_eq!(Grh::parse(&all).unwrap().to_bytes(), all);
        }
    }

    #[test]
    fn another_version_or_next_header_is_no_grh() {
        let mut bytes = [0; 40];
        bytes[0] = 0x60;
        bytes[6] = 0x1b;
        assert!(Grh::parse(&bytes).is_some());
        bytes[6] = 0x11;
        assert!(Grh::parse(&bytes).is_none());
        bytes[6] = 0x1b;
        bytes[0] = 0x40;
        assert!(Grh::parse(&bytes).is_none());
    }
}
