//! Address vectors and the global route header.
//!
//! Source: WinOFED `inc/iba/ib_types.h` (`ib_grh_t`, `ib_av_attr_t`).

use crate::types::*;

/// `ib_grh_t`: a global route header, 40 bytes, packed.
#[repr(C, packed)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ib_grh_t {
    /// Version (4 bits, 6), traffic class (8), flow label (20).
    pub ver_class_flow: ib_net32_t,
    /// Payload length on the wire; not read from an AV.
    pub resv1: u16,
    /// Next header on the wire (0x1B); not read from an AV.
    pub resv2: u8,
    /// Hop limit.
    pub hop_limit: u8,
    /// Source GID. The adapter takes the one of the port; the first entry of its table.
    pub src_gid: ib_gid_t,
    /// Destination GID.
    pub dest_gid: ib_gid_t,
}

impl ib_grh_t {
    /// `ib_grh_set_ver_class_flow`, with the flow label in host order.
    #[must_use]
    pub const fn ver_class_flow(version: u8, traffic_class: u8, flow_label: u32) -> ib_net32_t {
        ib_net32_t::new(
            ((version as u32) << 28) | ((traffic_class as u32) << 20) | (flow_label & 0x000F_FFFF),
        )
    }
}

/// `ib_av_attr_t::conn`: fields that only connected QPs read.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ib_av_conn {
    /// Path MTU, `IB_MTU_LEN_*`.
    pub path_mtu: u8,
    /// Local ACK timeout: 4.096 us times two to this power.
    pub local_ack_timeout: u8,
    /// Retries after a sequence error.
    pub seq_err_retry_cnt: u8,
    /// Retries after receiver not ready; 7 is for ever.
    pub rnr_retry_cnt: u8,
}

/// `ib_av_attr_t`: where datagrams of an address vector go, 56 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ib_av_attr_t {
    /// Port to send from, from 1.
    pub port_num: u8,
    /// Service level.
    pub sl: u8,
    /// Destination LID.
    pub dlid: ib_net16_t,
    /// Whether `grh` is to be sent.
    pub grh_valid: boolean_t,
    /// The GRH.
    pub grh: ib_grh_t,
    /// Rate limit, `IB_PATH_RECORD_RATE_*`.
    pub static_rate: u8,
    /// Source path bits, below the port's LMC.
    pub path_bits: u8,
    /// Connected QPs only.
    pub conn: ib_av_conn,
}
