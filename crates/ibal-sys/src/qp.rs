//! Queue pairs: types, states, creation, modification, attributes.
//!
//! Source: WinOFED `inc/iba/ib_types.h` (`ib_qp_create_t`, `ib_qp_mod_t`, `ib_qp_attr_t`) and
//! `inc/iba/ib_al.h` (`ib_dgrm_info_t`).

use crate::av::ib_av_attr_t;
use crate::mr::ib_access_t;
use crate::status::c_enum;
use crate::types::*;

c_enum! {
    /// `ib_qp_type_t`: the transport service of a QP.
    ib_qp_type_t;
    /// Reliable connection.
    IB_QPT_RELIABLE_CONN = 0,
    /// Unreliable connection.
    IB_QPT_UNRELIABLE_CONN = 1,
    /// Reliable datagram.
    IB_QPT_RELIABLE_DGRM = 2,
    /// Unreliable datagram.
    IB_QPT_UNRELIABLE_DGRM = 3,
    /// Subnet management.
    IB_QPT_QP0 = 4,
    /// General services.
    IB_QPT_QP1 = 5,
    /// Raw IPv6.
    IB_QPT_RAW_IPV6 = 6,
    /// Raw Ethertype.
    IB_QPT_RAW_ETHER = 7,
    /// MADs with segmentation by the access layer.
    IB_QPT_MAD = 8,
    /// Client's view of QP0.
    IB_QPT_QP0_ALIAS = 9,
    /// Client's view of QP1.
    IB_QPT_QP1_ALIAS = 10,
    /// End of the list.
    IB_QPT_UNKNOWN = 11,
}

bitflags::bitflags! {
    /// `ib_qp_state_t`: one bit a state, except that the two drain states share that of [`Self::IB_QPS_SQD`].
    #[repr(transparent)]
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct ib_qp_state_t: u32 {
        /// Reset: nothing can be posted.
        const IB_QPS_RESET = 0x0000_0001;
        /// Initialized: receives can be posted.
        const IB_QPS_INIT = 0x0000_0002;
        /// Ready to receive.
        const IB_QPS_RTR = 0x0000_0004;
        /// Ready to send.
        const IB_QPS_RTS = 0x0000_0008;
        /// Send queue drain.
        const IB_QPS_SQD = 0x0000_0010;
        /// Draining.
        const IB_QPS_SQD_DRAINING = 0x0000_0030;
        /// Drained.
        const IB_QPS_SQD_DRAINED = 0x0000_0050;
        /// Send queue error.
        const IB_QPS_SQERR = 0x0000_0080;
        /// Error: everything posted completes as flushed.
        const IB_QPS_ERROR = 0x0000_0100;
        /// Time-wait, inside the access layer only.
        const IB_QPS_TIME_WAIT = 0xDEAD_0000;
    }
}

c_enum! {
    /// `ib_apm_state_t`: automatic path migration.
    ib_apm_state_t;
    /// Migrated.
    IB_APM_MIGRATED = 1,
    /// Rearm.
    IB_APM_REARM = 2,
    /// Armed.
    IB_APM_ARMED = 3,
}

bitflags::bitflags! {
    /// `ib_qp_opts_t`: which optional fields of an [`ib_qp_mod_t`] are to be used.
    #[repr(transparent)]
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct ib_qp_opts_t: u32 {
        /// Alternate path.
        const IB_MOD_QP_ALTERNATE_AV = 0x0000_0001;
        /// P_Key index.
        const IB_MOD_QP_PKEY = 0x0000_0002;
        /// Path migration state.
        const IB_MOD_QP_APM_STATE = 0x0000_0004;
        /// Primary path.
        const IB_MOD_QP_PRIMARY_AV = 0x0000_0008;
        /// Receiver-not-ready timeout.
        const IB_MOD_QP_RNR_NAK_TIMEOUT = 0x0000_0010;
        /// Responder resources.
        const IB_MOD_QP_RESP_RES = 0x0000_0020;
        /// Initiator depth.
        const IB_MOD_QP_INIT_DEPTH = 0x0000_0040;
        /// Primary port.
        const IB_MOD_QP_PRIMARY_PORT = 0x0000_0080;
        /// Access rights.
        const IB_MOD_QP_ACCESS_CTRL = 0x0000_0100;
        /// Q_Key.
        const IB_MOD_QP_QKEY = 0x0000_0200;
        /// Send queue depth.
        const IB_MOD_QP_SQ_DEPTH = 0x0000_0400;
        /// Receive queue depth.
        const IB_MOD_QP_RQ_DEPTH = 0x0000_0800;
        /// Only if the QP is in `current_state`.
        const IB_MOD_QP_CURRENT_STATE = 0x0000_1000;
        /// Retry count.
        const IB_MOD_QP_RETRY_CNT = 0x0000_2000;
        /// Local ACK timeout.
        const IB_MOD_QP_LOCAL_ACK_TIMEOUT = 0x0000_4000;
        /// Receiver-not-ready retry count.
        const IB_MOD_QP_RNR_RETRY_CNT = 0x0000_8000;
        /// Priority tags.
        const IB_MOD_QP_GENERATE_PRIO_TAG = 0x0001_0000;
    }
}

/// `ib_qp_create_t`: 56 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ib_qp_create_t {
    /// Transport service.
    pub qp_type: ib_qp_type_t,
    /// Largest inline send in bytes.
    pub sq_max_inline: u32,
    /// Outstanding sends.
    pub sq_depth: u32,
    /// Outstanding receives.
    pub rq_depth: u32,
    /// Elements in a send.
    pub sq_sge: u32,
    /// Elements in a receive.
    pub rq_sge: u32,
    /// CQ of the send queue.
    pub h_sq_cq: ib_cq_handle_t,
    /// CQ of the receive queue.
    pub h_rq_cq: ib_cq_handle_t,
    /// Shared receive queue, or null.
    pub h_srq: ib_srq_handle_t,
    /// Whether every send makes a completion.
    pub sq_signaled: boolean_t,
}

/// `ib_qp_mod_t`: a transition and its attributes, 164 bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ib_qp_mod_t {
    /// State to go to.
    pub req_state: ib_qp_state_t,
    /// Attributes by state; RESET and ERROR have none.
    pub state: ib_qp_mod_state,
}

/// `ib_qp_mod_t::state`.
#[repr(C)]
#[derive(Clone, Copy)]
pub union ib_qp_mod_state {
    /// To INIT.
    pub init: ib_qp_mod_init,
    /// To RTR.
    pub rtr: ib_qp_mod_rtr,
    /// To RTS.
    pub rts: ib_qp_mod_rts,
    /// To SQD.
    pub sqd: ib_qp_mod_sqd,
}

/// Attributes of RESET -> INIT.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ib_qp_mod_init {
    /// Port, from 1.
    pub primary_port: u8,
    /// Q_Key.
    pub qkey: ib_net32_t,
    /// Index into the port's P_Key table.
    pub pkey_index: u16,
    /// Remote access rights.
    pub access_ctrl: ib_access_t,
}

/// Attributes of INIT -> RTR.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ib_qp_mod_rtr {
    /// First PSN expected. Connected QPs.
    pub rq_psn: ib_net32_t,
    /// QPN of the peer. Connected QPs.
    pub dest_qp: ib_net32_t,
    /// Path to the peer. Connected QPs.
    pub primary_av: ib_av_attr_t,
    /// Responder resources.
    pub resp_res: u8,
    /// Receiver-not-ready timeout.
    pub rnr_nak_timeout: u8,
    /// Optional fields in use.
    pub opts: ib_qp_opts_t,
    /// Alternate path.
    pub alternate_av: ib_av_attr_t,
    /// Q_Key.
    pub qkey: ib_net32_t,
    /// P_Key index.
    pub pkey_index: u16,
    /// Remote access rights.
    pub access_ctrl: ib_access_t,
    /// New send depth.
    pub sq_depth: u32,
    /// New receive depth.
    pub rq_depth: u32,
}

/// Attributes of RTR -> RTS and RTS -> RTS.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ib_qp_mod_rts {
    /// First PSN sent.
    pub sq_psn: ib_net32_t,
    /// Retries.
    pub retry_cnt: u8,
    /// Receiver-not-ready retries.
    pub rnr_retry_cnt: u8,
    /// Local ACK timeout.
    pub local_ack_timeout: u8,
    /// Outstanding RDMA reads.
    pub init_depth: u8,
    /// Optional fields in use.
    pub opts: ib_qp_opts_t,
    /// Receiver-not-ready timeout.
    pub rnr_nak_timeout: u8,
    /// State that the QP must be in.
    pub current_state: ib_qp_state_t,
    /// Q_Key.
    pub qkey: ib_net32_t,
    /// Remote access rights.
    pub access_ctrl: ib_access_t,
    /// Responder resources.
    pub resp_res: u8,
    /// Primary path.
    pub primary_av: ib_av_attr_t,
    /// Alternate path.
    pub alternate_av: ib_av_attr_t,
    /// New send depth.
    pub sq_depth: u32,
    /// New receive depth.
    pub rq_depth: u32,
    /// Path migration state.
    pub apm_state: ib_apm_state_t,
    /// Primary port.
    pub primary_port: u8,
    /// P_Key index.
    pub pkey_index: u16,
}

/// Attributes of RTS -> SQD.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ib_qp_mod_sqd {
    /// Whether to raise an event when drained.
    pub sqd_event: boolean_t,
}

/// `ib_qp_attr_t`: what `query_qp` returns, 224 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ib_qp_attr_t {
    /// Protection domain.
    pub h_pd: ib_pd_handle_t,
    /// Transport service.
    pub qp_type: ib_qp_type_t,
    /// Remote access rights.
    pub access_ctrl: ib_access_t,
    /// P_Key index.
    pub pkey_index: u16,
    /// Largest inline send.
    pub sq_max_inline: u32,
    /// Outstanding sends.
    pub sq_depth: u32,
    /// Outstanding receives.
    pub rq_depth: u32,
    /// Elements in a send.
    pub sq_sge: u32,
    /// Elements in a receive.
    pub rq_sge: u32,
    /// Outstanding RDMA reads as initiator.
    pub init_depth: u8,
    /// Outstanding RDMA reads as responder.
    pub resp_res: u8,
    /// CQ of the send queue.
    pub h_sq_cq: ib_cq_handle_t,
    /// CQ of the receive queue.
    pub h_rq_cq: ib_cq_handle_t,
    /// Shared receive queue.
    pub h_srq: ib_srq_handle_t,
    /// Whether every send makes a completion.
    pub sq_signaled: boolean_t,
    /// State.
    pub state: ib_qp_state_t,
    /// QPN, 24 bits.
    pub num: ib_net32_t,
    /// QPN of the peer.
    pub dest_num: ib_net32_t,
    /// Q_Key.
    pub qkey: ib_net32_t,
    /// Next PSN sent.
    pub sq_psn: ib_net32_t,
    /// Next PSN expected.
    pub rq_psn: ib_net32_t,
    /// Primary port.
    pub primary_port: u8,
    /// Alternate port.
    pub alternate_port: u8,
    /// Primary path.
    pub primary_av: ib_av_attr_t,
    /// Alternate path.
    pub alternate_av: ib_av_attr_t,
    /// Path migration state.
    pub apm_state: ib_apm_state_t,
}

/// `ib_dgrm_info_t`: what `init_dgrm_svc` needs to take a UD QP from RESET to RTS, 16 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ib_dgrm_info_t {
    /// Port.
    pub port_guid: ib_net64_t,
    /// Q_Key; the header declares it without byte order, and `core/al/al_qp.c` hands it on unchanged to a
    /// field in network order.
    pub qkey: u32,
    /// P_Key index.
    pub pkey_index: u16,
}
