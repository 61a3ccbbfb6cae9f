//! Completions.
//!
//! Source: WinOFED `inc/iba/ib_types.h` (`ib_wc_t`, `ib_wc_status_t`, `ib_wc_type_t`).

use crate::status::c_enum;
use crate::types::*;

c_enum! {
    /// `ib_wc_status_t`: how a work request ended.
    ib_wc_status_t;
    /// Success.
    IB_WCS_SUCCESS = 0,
    /// The message did not fit the scatter list.
    IB_WCS_LOCAL_LEN_ERR = 1,
    /// Internal consistency error of the QP.
    IB_WCS_LOCAL_OP_ERR = 2,
    /// The scatter list names memory that its key does not cover.
    IB_WCS_LOCAL_PROTECTION_ERR = 3,
    /// The QP was in, or went to, the error state before the request ran.
    IB_WCS_WR_FLUSHED_ERR = 4,
    /// Memory window bind failed.
    IB_WCS_MEM_WINDOW_BIND_ERR = 5,
    /// Remote access violation.
    IB_WCS_REM_ACCESS_ERR = 6,
    /// The responder could not finish.
    IB_WCS_REM_OP_ERR = 7,
    /// Receiver-not-ready retries ran out.
    IB_WCS_RNR_RETRY_ERR = 8,
    /// Transport retries ran out.
    IB_WCS_TIMEOUT_RETRY_ERR = 9,
    /// The responder saw an invalid request.
    IB_WCS_REM_INVALID_REQ_ERR = 10,
    /// An unexpected response.
    IB_WCS_BAD_RESP_ERR = 11,
    /// Local access violation by an incoming request.
    IB_WCS_LOCAL_ACCESS_ERR = 12,
    /// Error of no other kind.
    IB_WCS_GENERAL_ERR = 13,
    /// A MAD response without its request.
    IB_WCS_UNMATCHED_RESPONSE = 14,
    /// A MAD was cancelled.
    IB_WCS_CANCELED = 15,
    /// The remote side aborted.
    IB_WCS_REM_ABORT_ERR = 16,
    /// End of the list.
    IB_WCS_UNKNOWN = 17,
}

c_enum! {
    /// `ib_wc_type_t`: the operation that completed.
    ib_wc_type_t;
    /// Send.
    IB_WC_SEND = 0,
    /// RDMA write.
    IB_WC_RDMA_WRITE = 1,
    /// RDMA read.
    IB_WC_RDMA_READ = 2,
    /// Atomic compare and swap.
    IB_WC_COMPARE_SWAP = 3,
    /// Atomic fetch and add.
    IB_WC_FETCH_ADD = 4,
    /// Memory window bind.
    IB_WC_MW_BIND = 5,
    /// No operation.
    IB_WC_NOP = 6,
    /// End of the send list.
    IB_WC_UNKNOWN1 = 7,
    /// Receive.
    IB_WC_RECV = 128,
    /// Receive of an RDMA write with immediate data.
    IB_WC_RECV_RDMA_WRITE = 129,
    /// Large send. The header's list puts it behind the receives, though it is a send.
    IB_WC_LSO = 130,
    /// Local invalidate.
    IB_WC_LOCAL_INV = 131,
    /// Fast registration.
    IB_WC_FAST_REG_MR = 132,
    /// End of the list.
    IB_WC_UNKNOWN2 = 133,
}

bitflags::bitflags! {
    /// `ib_recv_opt_t`.
    #[repr(transparent)]
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct ib_recv_opt_t: u32 {
        /// `IB_RECV_OPT_IMMEDIATE`: `immediate_data` is valid.
        const IB_RECV_OPT_IMMEDIATE = 0x0000_0001;
        /// `IB_RECV_OPT_FORWARD`: a MAD to be forwarded.
        const IB_RECV_OPT_FORWARD = 0x0000_0002;
        /// `IB_RECV_OPT_GRH_VALID`: the 40 bytes before the payload hold a GRH; without it they hold nothing.
        const IB_RECV_OPT_GRH_VALID = 0x0000_0004;
        /// `IB_RECV_OPT_INVALIDATE`: a key was invalidated.
        const IB_RECV_OPT_INVALIDATE = 0x0000_0008;
        /// `IB_RECV_OPT_CSUM_MASK`: checksum results of the adapter.
        const IB_RECV_OPT_CSUM_MASK = 0x0000_FF00;
        /// Bits of the adapter's vendor.
        const IB_RECV_OPT_VEND_MASK = 0xFFFF_0000;
    }
}

/// `ib_wc_t`: a completion, 56 bytes.
///
/// The caller owns the entries: `poll_cq` takes them off the free list it is given and returns those that it
/// filled on the done list.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ib_wc_t {
    /// Next entry of the list, or null.
    pub p_next: *mut ib_wc_t,
    /// `wr_id` of the work request.
    pub wr_id: u64,
    /// The operation. Not valid unless `status` is success.
    pub wc_type: ib_wc_type_t,
    /// Bytes received; on a UD QP they include the 40 of the GRH. Not valid unless `status` is success.
    pub length: u32,
    /// Vendor's error code.
    pub vendor_specific: u64,
    /// How it ended.
    pub status: ib_wc_status_t,
    /// What a receive says by transport.
    pub recv: ib_wc_recv,
}

/// `ib_wc_t::recv`.
#[repr(C)]
#[derive(Clone, Copy)]
pub union ib_wc_recv {
    /// Connected transports.
    pub conn: ib_wc_conn,
    /// Unreliable datagram.
    pub ud: ib_wc_ud,
    /// Reliable datagram.
    pub rd: ib_wc_rd,
    /// Raw IPv6.
    pub raw_ipv6: ib_wc_raw_ipv6,
    /// Raw Ethertype.
    pub raw_ether: ib_wc_raw_ether,
}

/// `recv.conn`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ib_wc_conn {
    /// Options.
    pub recv_opt: ib_recv_opt_t,
    /// Immediate data.
    pub immediate_data: ib_net32_t,
}

/// `recv.ud`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ib_wc_ud {
    /// Options.
    pub recv_opt: ib_recv_opt_t,
    /// Immediate data.
    pub immediate_data: ib_net32_t,
    /// Source QPN.
    pub remote_qp: ib_net32_t,
    /// P_Key index; for GSI QPs only.
    pub pkey_index: u16,
    /// Source LID.
    pub remote_lid: ib_net16_t,
    /// Service level.
    pub remote_sl: u8,
    /// Low bits of the destination LID.
    pub path_bits: u8,
}

/// `recv.rd`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ib_wc_rd {
    /// End-to-end context.
    pub remote_eecn: ib_net32_t,
    /// Source QPN.
    pub remote_qp: ib_net32_t,
    /// Source LID.
    pub remote_lid: ib_net16_t,
    /// Service level.
    pub remote_sl: u8,
    /// Freed requests.
    pub free_cnt: u32,
}

/// `recv.raw_ipv6`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ib_wc_raw_ipv6 {
    /// Source LID.
    pub remote_lid: ib_net16_t,
    /// Service level.
    pub remote_sl: u8,
    /// Low bits of the destination LID.
    pub path_bits: u8,
}

/// `recv.raw_ether`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ib_wc_raw_ether {
    /// Source LID.
    pub remote_lid: ib_net16_t,
    /// Service level.
    pub remote_sl: u8,
    /// Low bits of the destination LID.
    pub path_bits: u8,
    /// Ethertype.
    pub ether_type: ib_net16_t,
}
