//! The extended transport headers of UD and RC: DETH, RETH, AETH (IBA 9.3).

use super::bits::wire_format;
use crate::fabric::ids::{QKey, Qpn};

wire_format! {
    /// Datagram Extended Transport Header (IBA 9.3.2).
    pub struct Deth, DethView [8] {
        /// Queue key.
        qkey / set_qkey: QKey = 0, 32;
        /// Sending QP.
        src_qp / set_src_qp: Qpn = 40, 24;
    }
}

wire_format! {
    /// RDMA Extended Transport Header (IBA 9.3.3).
    pub struct Reth, RethView [16] {
        /// Virtual address.
        address / set_address: u64 = 0, 64;
        /// Remote key.
        rkey / set_rkey: u32 = 64, 32;
        /// Length of the whole RDMA operation in bytes.
        dma_length / set_dma_length: u32 = 96, 32;
    }
}

wire_format! {
    /// Acknowledge Extended Transport Header (IBA 9.3.5).
    pub struct Aeth, AethView [4] {
        /// Kind and value: ACK with credits, RNR NAK with timer, NAK with code (IBA 9.7.5.1).
        syndrome / set_syndrome: u8 = 0, 8;
        /// Message sequence number.
        msn / set_msn: u32 = 8, 24;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::wire::bits::wire_format_tests;

    wire_format_tests! {
        deth_both_ways: Deth, DethView;
        reth_both_ways: Reth, RethView;
        aeth_both_ways: Aeth, AethView;
    }

    /// The RETH of the sample packets of IBA vol. 1, 7.8.3.
    #[test]
    fn sample_packet() {
        let bytes =
            [0x01, 0x71, 0x0a, 0x1c, 0x01, 0x5d, 0x40, 0x02, 0x38, 0xf2, 0x7a, 0x05, 0x00, 0x00, 0x00, 0x0e];
        let reth = Reth::parse_slice(&bytes).unwrap();
        assert_eq!((reth.address, reth.rkey, reth.dma_length), (0x0171_0a1c_015d_4002, 0x38f2_7a05, 14));
        assert_eq!(reth.to_bytes(), bytes);
    }
}
