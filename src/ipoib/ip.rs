//! IPv4 and IPv6 headers, as far as translation must know them.

use super::wire;

/// ICMPv6 (IANA protocol numbers).
pub const ICMPV6: u8 = 58;
/// IGMP.
pub const IGMP: u8 = 2;
/// UDP.
pub const UDP: u8 = 17;

/// An IPv4 header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4 {
    /// Bytes of the header, options included: where the payload begins.
    pub header_len: usize,
    /// Bytes of the packet, by its own header.
    pub total_len: usize,
    /// Not the first fragment, or not the last.
    pub is_fragment: bool,
    /// What the payload is.
    pub protocol: u8,
    /// From.
    pub source: [u8; 4],
    /// To.
    pub destination: [u8; 4],
}

impl Ipv4 {
    /// Bytes of a header without options.
    pub const MIN_LEN: usize = 20;

    /// From the beginning of a packet of `available` bytes, of which `head` may be but the first. `None` if
    /// the header is not one (version, lengths), or the packet is longer than what is available.
    pub fn parse(head: &[u8], available: usize) -> Option<Self> {
        let fixed: &[u8; Self::MIN_LEN] = head.first_chunk()?;
        let header_len = usize::from(fixed[0] & 0x0f) * 4;
        let total_len = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
        let valid = fixed[0] >> 4 == 4
            && header_len >= Self::MIN_LEN
            && header_len <= total_len
            && total_len <= available;
        // More-fragments, or an offset; the don't-fragment and the reserved bit do not matter.
        let is_fragment = u16::from_be_bytes([fixed[6], fixed[7]]) & 0x3fff != 0;
        valid.then(|| Self {
            header_len,
            total_len,
            is_fragment,
            protocol: fixed[9],
            source: wire::field::<12, 4, 20>(fixed),
            destination: wire::field::<16, 4, 20>(fixed),
        })
    }
}

/// An IPv6 header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6 {
    /// Bytes of the packet, by its own header.
    pub total_len: usize,
    /// What follows.
    pub next_header: u8,
    /// From.
    pub source: [u8; 16],
    /// To.
    pub destination: [u8; 16],
}

impl Ipv6 {
    /// Bytes of the header.
    pub const LEN: usize = 40;

    /// From the beginning of a packet of `available` bytes, of which `head` may be but the first. `None` if
    /// the header is not one, or the packet is longer than what is available.
    pub fn parse(head: &[u8], available: usize) -> Option<Self> {
        let fixed: &[u8; Self::LEN] = head.first_chunk()?;
        let total_len = Self::LEN + usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
        (fixed[0] >> 4 == 6 && total_len <= available).then(|| Self {
            total_len,
            next_header: fixed[6],
            source: wire::field::<8, 16, 40>(fixed),
            destination: wire::field::<24, 16, 40>(fixed),
        })
    }

    /// What the packet carries behind its extension headers, and where that begins. Hop-by-hop, routing and
    /// destination options are passed over; a fragment is its own payload (Neighbor Discovery must not be
    /// fragmented, RFC 6980). `None` if `head` ends before the extension headers do.
    pub fn payload(&self, head: &[u8]) -> Option<(u8, usize)> {
        const HOP_BY_HOP: u8 = 0;
        const ROUTING: u8 = 43;
        const DESTINATION: u8 = 60;
        let (mut kind, mut at) = (self.next_header, Self::LEN);
        // Each turn moves on by 8 bytes at least, so the loop ends with the head.
        while matches!(kind, HOP_BY_HOP | ROUTING | DESTINATION) {
            let [next, len] = wire::array(head, at)?;
            kind = next;
            at += 8 + usize::from(len) * 8;
        }
        Some((kind, at))
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;

    const V4: [u8; 20] = [0x45, 0, 0, 30, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 239, 1, 2, 3];

    #[test]
    fn an_ipv4_header_must_agree_with_what_is_there() {
        let header = Ipv4::parse(&V4, 30).unwrap();
        assert_eq!((header.header_len, header.total_len, header.protocol), (20, 30, UDP));
        assert!(!header.is_fragment, "don't-fragment is not a fragment");
        assert_eq!(header.destination, [239, 1, 2, 3]);
        assert_eq!(Ipv4::parse(&V4, 29), None, "longer than what is there");
        for (at, value) in [(0, 0x65), (0, 0x44), (3, 19)] {
            let mut bad = V4;
            bad[at] = value;
            assert_eq!(Ipv4::parse(&bad, 30), None);
        }
    }

    #[test]
    fn both_ends_of_a_fragmented_packet_are_fragments() {
        for flags in [[0x20, 0x00], [0x00, 0x10]] {
            let mut fragment = V4;
            fragment[6..8].copy_from_slice(&flags);
            assert!(Ipv4::parse(&fragment, 30).unwrap().is_fragment);
        }
    }

    #[test]
    fn extension_headers_are_passed_over() {
        let mut packet = [0_u8; 72];
        packet[0] = 0x60;
        packet[5] = 32;
        packet[40..42].copy_from_slice(&[60, 0]);
        packet[48..50].copy_from_slice(&[ICMPV6, 1]);
        let header = Ipv6::parse(&packet, 72).unwrap();
        assert_eq!(header.payload(&packet), Some((ICMPV6, 64)));
        assert_eq!(header.payload(&packet[..49]), None);
        packet[6] = 44;
        assert_eq!(Ipv6::parse(&packet, 72).unwrap().payload(&packet), Some((44, 40)), "a fragment");
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Some(header) = Ipv4::parse(&bytes, bytes.len()) {
                prop_assert!(header.header_len <= header.total_len && header.total_len <= bytes.len());
            }
            let mut bytes = bytes;
            if let Some(first) = bytes.first_mut() {
                *first = 0x60;
            }
            if let Some(header) = Ipv6::parse(&bytes, bytes.len()) {
                let _ = header.payload(&bytes);
            }
        }
    }
}
