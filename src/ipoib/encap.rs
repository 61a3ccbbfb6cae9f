//! The 4-byte IPoIB header (RFC 4391, section 6), and where an Ethernet header takes its place.
//!
//! A UD receive leaves 40 bytes for the GRH in front of the payload, used or not (IBTA volume 1, 11.4.1).
//! So a received buffer is
//!
//! ```text
//! 0            30     40     44
//! |    GRH           |IPoIB | IP packet, ARP ...
//! |            | Ethernet   | IP packet, ARP ...
//! ```
//!
//! and the 14 bytes of the Ethernet header are written over the end of the GRH and the IPoIB header: the
//! frame that is indicated begins at [`ETHERNET_OFFSET`], and nothing of the payload moves.

use super::ethernet::{self, EtherType};
use super::wire;

/// Bytes of a GRH in front of every UD payload.
pub const GRH_LEN: usize = 40;
/// Bytes of the IPoIB header.
pub const HEADER_LEN: usize = 4;
/// Where the IP packet begins in a receive buffer.
pub const PAYLOAD_OFFSET: usize = GRH_LEN + HEADER_LEN;
/// Where the Ethernet header is written in a receive buffer.
pub const ETHERNET_OFFSET: usize = PAYLOAD_OFFSET - ethernet::Header::LEN;

/// An IPoIB header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The protocol.
    pub ethertype: EtherType,
}

impl Header {
    /// From its bytes. The reserved half is ignored (RFC 4391, section 6: zero when sent, ignored when
    /// received).
    pub const fn from_bytes(bytes: &[u8; HEADER_LEN]) -> Self {
        Self { ethertype: EtherType::new(u16::from_be_bytes(wire::field::<0, 2, 4>(bytes))) }
    }

    /// The bytes on the wire.
    pub const fn to_bytes(self) -> [u8; HEADER_LEN] {
        let [high, low] = self.ethertype.get().to_be_bytes();
        [high, low, 0, 0]
    }
}

/// Writes `header` over the end of the GRH and the IPoIB header. `None` if `buffer`, which begins with the
/// GRH, is shorter than both.
pub fn write_ethernet(buffer: &mut [u8], header: &ethernet::Header) -> Option<()> {
    wire::put(buffer, ETHERNET_OFFSET, &header.to_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipoib::mac::MacAddr;
    use proptest::prelude::*;

    #[test]
    fn reserved_bytes_are_ignored_and_sent_as_zero() {
        let header = Header::from_bytes(&[0x08, 0x06, 0xaa, 0xbb]);
        assert_eq!(header.ethertype, EtherType::ARP);
        assert_eq!(header.to_bytes(), [0x08, 0x06, 0, 0]);
    }

    proptest! {
        #[test]
        fn the_ethernet_header_ends_where_the_payload_begins(
            mut buffer in prop::collection::vec(any::<u8>(), 0..100),
            destination: [u8; 6],
        ) {
            let header = ethernet::Header {
                destination: MacAddr::new(destination),
                source: MacAddr::ZERO,
                ethertype: EtherType::IPV4,
            };
            let before = buffer.clone();
            let written = write_ethernet(&mut buffer, &header);
            prop_assert_eq!(written.is_some(), before.len() >= 44);
            if written.is_some() {
                prop_assert_eq!(ethernet::Header::parse(&buffer[30..]), Some(header));
                prop_assert_eq!(&buffer[..30], &before[..30]);
                prop_assert_eq!(&buffer[44..], &before[44..]);
            } else {
                prop_assert_eq!(buffer, before);
            }
        }
    }
}
