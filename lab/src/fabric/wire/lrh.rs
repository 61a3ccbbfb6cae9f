//! Local Route Header (IBA 7.7).

use super::bits::wire_format;
use crate::fabric::ids::Lid;

/// What follows the LRH (IBA 7.7.5, LNH): the low bit says IBA transport, the high bit a global header.
pub mod next {
    /// Raw packet with an Ethertype.
    pub const RAW: u8 = 0b00;
    /// Raw packet with an IPv6 header.
    pub const IPV6: u8 = 0b01;
    /// BTH, without a GRH.
    pub const BTH: u8 = 0b10;
    /// GRH, then BTH.
    pub const GRH: u8 = 0b11;
}

wire_format! {
    /// Local Route Header: how a packet crosses one subnet.
    pub struct Lrh, LrhView [8] {
        /// Virtual lane, rewritten at each hop by SL-to-VL mapping.
        vl / set_vl: u8 = 0, 4;
        /// Link version, 0.
        version / set_version: u8 = 4, 4;
        /// Service level.
        sl / set_sl: u8 = 8, 4;
        /// What follows, one of [`next`].
        lnh / set_lnh: u8 = 14, 2;
        /// Destination LID.
        dlid / set_dlid: Lid = 16, 16;
        /// Length in 4-byte words, from the first byte of this header to the last before the VCRC.
        packet_length / set_packet_length: u16 = 37, 11;
        /// Source LID.
        slid / set_slid: Lid = 48, 16;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::wire::bits::wire_format_tests;

    wire_format_tests! { lrh_both_ways: Lrh, LrhView; }

    /// The header of the sample local packet of IBA vol. 1, 7.8.3.
    #[test]
    fn sample_packet() {
        let lrh = Lrh {
            vl: 7,
            version: 0,
            sl: 1,
            lnh: next::BTH,
            dlid: Lid(0x375c),
            packet_length: 14,
            slid: Lid(0x17d2),
        };
        assert_eq!(lrh.to_bytes(), [0x70, 0x12, 0x37, 0x5c, 0x00, 0x0e, 0x17, 0xd2]);
    }
}
