//! Base Transport Header and its operation codes (IBA 9.2).

use super::bits::{newtype_field, wire_format};
use crate::fabric::ids::{PKey, Qpn};

/// Operation code: three bits of transport, five of operation (IBA 9.2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpCode(pub u8);

newtype_field!(OpCode);

/// Headers that may stand between the BTH and the payload, in the order in which they do (IBA 5.2, table 38).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extensions {
    /// Datagram extended transport header, 8 bytes.
    pub deth: bool,
    /// RDMA extended transport header, 16 bytes.
    pub reth: bool,
    /// Acknowledge extended transport header, 4 bytes.
    pub aeth: bool,
    /// Immediate data, 4 bytes.
    pub immediate: bool,
}

impl OpCode {
    /// Reliable connection: first packet of a send.
    pub const RC_SEND_FIRST: Self = Self(0x00);
    /// Reliable connection: middle packet of a send.
    pub const RC_SEND_MIDDLE: Self = Self(0x01);
    /// Reliable connection: last packet of a send.
    pub const RC_SEND_LAST: Self = Self(0x02);
    /// Reliable connection: last packet of a send, with immediate data.
    pub const RC_SEND_LAST_IMMEDIATE: Self = Self(0x03);
    /// Reliable connection: the one packet of a send.
    pub const RC_SEND_ONLY: Self = Self(0x04);
    /// Reliable connection: the one packet of a send, with immediate data.
    pub const RC_SEND_ONLY_IMMEDIATE: Self = Self(0x05);
    /// Reliable connection: first packet of an RDMA write.
    pub const RC_WRITE_FIRST: Self = Self(0x06);
    /// Reliable connection: middle packet of an RDMA write.
    pub const RC_WRITE_MIDDLE: Self = Self(0x07);
    /// Reliable connection: last packet of an RDMA write.
    pub const RC_WRITE_LAST: Self = Self(0x08);
    /// Reliable connection: last packet of an RDMA write, with immediate data.
    pub const RC_WRITE_LAST_IMMEDIATE: Self = Self(0x09);
    /// Reliable connection: the one packet of an RDMA write.
    pub const RC_WRITE_ONLY: Self = Self(0x0A);
    /// Reliable connection: the one packet of an RDMA write, with immediate data.
    pub const RC_WRITE_ONLY_IMMEDIATE: Self = Self(0x0B);
    /// Reliable connection: RDMA read request.
    pub const RC_READ_REQUEST: Self = Self(0x0C);
    /// Reliable connection: first packet of an RDMA read response.
    pub const RC_READ_RESPONSE_FIRST: Self = Self(0x0D);
    /// Reliable connection: middle packet of an RDMA read response.
    pub const RC_READ_RESPONSE_MIDDLE: Self = Self(0x0E);
    /// Reliable connection: last packet of an RDMA read response.
    pub const RC_READ_RESPONSE_LAST: Self = Self(0x0F);
    /// Reliable connection: the one packet of an RDMA read response.
    pub const RC_READ_RESPONSE_ONLY: Self = Self(0x10);
    /// Reliable connection: acknowledge.
    pub const RC_ACKNOWLEDGE: Self = Self(0x11);
    /// Unreliable datagram.
    pub const UD_SEND_ONLY: Self = Self(0x64);
    /// Unreliable datagram with immediate data.
    pub const UD_SEND_ONLY_IMMEDIATE: Self = Self(0x65);

    /// The headers that this operation has, `None` for an operation that this fabric does not know (IBA table
    /// 38; atomics, RD, UC and XRC are not here since nothing above uses them).
    pub const fn extensions(self) -> Option<Extensions> {
        let none = Extensions { deth: false, reth: false, aeth: false, immediate: false };
        Some(match self.0 {
            0x00..=0x02 | 0x04 | 0x07 | 0x08 | 0x0E => none,
            0x03 | 0x05 | 0x09 => Extensions { immediate: true, ..none },
            0x06 | 0x0A | 0x0C => Extensions { reth: true, ..none },
            0x0B => Extensions { reth: true, immediate: true, ..none },
            0x0D | 0x0F..=0x11 => Extensions { aeth: true, ..none },
            0x64 => Extensions { deth: true, ..none },
            0x65 => Extensions { deth: true, immediate: true, ..none },
            _ => return None,
        })
    }
}

wire_format! {
    /// Base Transport Header, in every IBA transport packet.
    pub struct Bth, BthView [12] {
        /// Operation.
        opcode / set_opcode: OpCode = 0, 8;
        /// The receiver should raise a solicited event.
        solicited / set_solicited: bool = 8, 1;
        /// Migration state.
        migrated / set_migrated: bool = 9, 1;
        /// Bytes of padding after the payload, to a multiple of 4.
        pad_count / set_pad_count: u8 = 10, 2;
        /// Transport version, 0.
        version / set_version: u8 = 12, 4;
        /// Partition.
        pkey / set_pkey: PKey = 16, 16;
        /// Congestion bits FECN and BECN, then reserved. A switch may change them, so the ICRC takes them as
        /// ones.
        congestion / set_congestion: u8 = 32, 8;
        /// Destination QP.
        dest_qp / set_dest_qp: Qpn = 40, 24;
        /// The responder should acknowledge.
        ack_request / set_ack_request: bool = 64, 1;
        /// Packet sequence number.
        psn / set_psn: u32 = 72, 24;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::wire::bits::wire_format_tests;

    wire_format_tests! { bth_both_ways: Bth, BthView; }

    /// The header of the sample packets of IBA vol. 1, 7.8.3: an RDMA write only.
    #[test]
    fn sample_packet() {
        let bytes = [0x0a, 0x20, 0x24, 0x87, 0x00, 0x87, 0xb1, 0xb3, 0x00, 0x0d, 0xec, 0x2a];
        let bth = Bth::parse_slice(&bytes).unwrap();
        assert_eq!(bth.opcode, OpCode::RC_WRITE_ONLY);
        assert_eq!(bth.pad_count, 2);
        assert_eq!(bth.pkey, PKey(0x2487));
        assert_eq!(bth.dest_qp, Qpn::new(0x87b1b3));
        assert_eq!(bth.psn, 0x0dec2a);
        assert_eq!(bth.to_bytes(), bytes);
    }
}
