//! Global Route Header (IBA 8.3).

use super::bits::wire_format;
use crate::fabric::ids::Gid;

/// IPVer of every GRH (IBA 8.3.1).
pub const IP_VERSION: u8 = 6;
/// NxtHdr that says a BTH follows (IBA 8.3.5).
pub const NEXT_HEADER_IBA: u8 = 0x1B;

wire_format! {
    /// Global Route Header: how a packet crosses subnets; also in every multicast packet (IBA 8.3).
    pub struct Grh, GrhView [40] {
        /// [`IP_VERSION`].
        ip_version / set_ip_version: u8 = 0, 4;
        /// Traffic class.
        traffic_class / set_traffic_class: u8 = 4, 8;
        /// Flow label.
        flow_label / set_flow_label: u32 = 12, 20;
        /// Bytes from the end of this header to the last before the VCRC (so ICRC counts, VCRC does not).
        payload_length / set_payload_length: u16 = 32, 16;
        /// [`NEXT_HEADER_IBA`].
        next_header / set_next_header: u8 = 48, 8;
        /// Hop limit; 0 and 1 stay in the subnet.
        hop_limit / set_hop_limit: u8 = 56, 8;
        /// Source.
        sgid / set_sgid: Gid = 64, 128;
        /// Destination.
        dgid / set_dgid: Gid = 192, 128;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::ids::Guid;
    use crate::fabric::wire::bits::wire_format_tests;

    wire_format_tests! { grh_both_ways: Grh, GrhView; }

    /// The header of the sample global packet of IBA vol. 1, 7.8.3.
    #[test]
    fn sample_packet() {
        let bytes = [
            0x60, 0x00, 0x00, 0x00, 0x00, 0x32, 0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x25,
            0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x26, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x17,
            0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x96,
        ];
        let grh = Grh::parse_slice(&bytes).unwrap();
        assert_eq!(grh.ip_version, IP_VERSION);
        assert_eq!(grh.payload_length, 0x32);
        assert_eq!(grh.hop_limit, 0x10);
        assert_eq!(grh.sgid, Gid::new(0x125, Guid(0x26)));
        assert_eq!(grh.dgid, Gid::new(0x117, Guid(0x96)));
        assert_eq!(grh.to_bytes(), bytes);
    }
}
