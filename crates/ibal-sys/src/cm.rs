//! Communication manager: listening, connecting, disconnecting. For connected mode (RFC 4755).
//!
//! Source: WinOFED `inc/iba/ib_al.h` (`ib_cm_*`). Callbacks run at PASSIVE_LEVEL on the
//! asynchronous-processing thread (`core/al/al_cm_qp.c` under `core/al/kernel/al_cm_cep.c`).
//!
//! The layouts of records that hold a path record by value are those of the layout table, which gives the
//! path record no alignment; see [`ib_path_rec_t`].

use core::ffi::c_void;

use crate::mad::ib_class_port_info_t;
use crate::mr::ib_access_t;
use crate::qp::ib_qp_type_t;
use crate::sa::ib_path_rec_t;
use crate::status::ib_api_status_t;
use crate::types::*;
use crate::wr::ib_recv_wr_t;

/// `IB_REQ_PDATA_SIZE` for RC, UC and RD: private data of a REQ.
pub const IB_REQ_PDATA_SIZE: usize = 92;
/// `IB_REP_PDATA_SIZE`.
pub const IB_REP_PDATA_SIZE: usize = 196;
/// `IB_REJ_PDATA_SIZE`.
pub const IB_REJ_PDATA_SIZE: usize = 148;
/// `IB_RTU_PDATA_SIZE`.
pub const IB_RTU_PDATA_SIZE: usize = 224;
/// `IB_DREQ_PDATA_SIZE`.
pub const IB_DREQ_PDATA_SIZE: usize = 220;
/// `IB_DREP_PDATA_SIZE`.
pub const IB_DREP_PDATA_SIZE: usize = 224;

/// `ib_rej_status_t`: reason of a REJ.
pub type ib_rej_status_t = ib_net16_t;
/// `IB_REJ_TIMEOUT`.
pub const IB_REJ_TIMEOUT: ib_rej_status_t = ib_net16_t::new(4);
/// `IB_REJ_INVALID_SID`: nobody listens.
pub const IB_REJ_INVALID_SID: ib_rej_status_t = ib_net16_t::new(8);
/// `IB_REJ_STALE_CONN`.
pub const IB_REJ_STALE_CONN: ib_rej_status_t = ib_net16_t::new(10);
/// `IB_REJ_USER_DEFINED`.
pub const IB_REJ_USER_DEFINED: ib_rej_status_t = ib_net16_t::new(28);

/// `ib_apr_status_t`.
pub type ib_apr_status_t = u8;
/// `ib_sidr_status_t`.
pub type ib_sidr_status_t = u8;
/// `ib_cm_failover_t`.
pub type ib_cm_failover_t = u8;

/// `ib_cm_handle_t`: a connection, by value. 24 bytes, so passed by address in the x64 convention.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ib_cm_handle_t {
    /// Access layer.
    pub h_al: ib_al_handle_t,
    /// QP, once there is one.
    pub h_qp: ib_qp_handle_t,
    /// Connection id.
    pub cid: ib_net32_t,
}

/// `ib_cm_req_rec_t`: a REQ came in, 200 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ib_cm_req_rec_t {
    /// Context of the listen.
    pub context: *const c_void,
    /// The connection, to answer with REP or REJ.
    pub h_cm_req: ib_cm_handle_t,
    /// The listen.
    pub h_cm_listen: ib_listen_handle_t,
    /// Private data.
    pub p_req_pdata: *const u8,
    /// Transport service.
    pub qp_type: ib_qp_type_t,
    /// RDMA reads the other side answers.
    pub resp_res: u8,
    /// End-to-end flow control.
    pub flow_ctrl: boolean_t,
    /// Retries after receiver not ready.
    pub rnr_retry_cnt: u8,
    /// Path.
    pub primary_path: ib_path_rec_t,
    /// Alternate path.
    pub alt_path: ib_path_rec_t,
    /// P_Key.
    pub pkey: ib_net16_t,
    /// Context of a SIDR listen.
    pub sidr_context: *const c_void,
}

/// `ib_cm_rep_rec_t`: a REP came in, 160 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ib_cm_rep_rec_t {
    /// Private data.
    pub p_rep_pdata: *const u8,
    /// Transport service.
    pub qp_type: ib_qp_type_t,
    /// The connection, to answer with RTU or REJ.
    pub h_cm_rep: ib_cm_handle_t,
    /// Context of the QP.
    pub qp_context: *const c_void,
    /// RDMA reads the other side answers.
    pub resp_res: u8,
    /// End-to-end flow control.
    pub flow_ctrl: boolean_t,
    /// Whether the alternate path was taken.
    pub apr_status: ib_apr_status_t,
    /// SIDR: context.
    pub sidr_context: *const c_void,
    /// SIDR: status.
    pub status: ib_sidr_status_t,
    /// SIDR: QPN.
    pub remote_qp: ib_net32_t,
    /// SIDR: Q_Key.
    pub remote_qkey: ib_net32_t,
    /// SIDR: redirection.
    pub class_info: ib_class_port_info_t,
}

/// `ib_cm_rtu_rec_t`: an RTU came in.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ib_cm_rtu_rec_t {
    /// Private data.
    pub p_rtu_pdata: *const u8,
    /// QP.
    pub h_qp: ib_qp_handle_t,
    /// Context of the QP.
    pub qp_context: *const c_void,
}

/// `ib_cm_rej_rec_t`: a REJ came in, or time ran out.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ib_cm_rej_rec_t {
    /// Reason.
    pub rej_status: ib_rej_status_t,
    /// Additional information.
    pub p_ari: *const u8,
    /// Its bytes.
    pub ari_length: u8,
    /// Private data.
    pub p_rej_pdata: *const u8,
    /// QP.
    pub h_qp: ib_qp_handle_t,
    /// Context of the QP.
    pub qp_context: *const c_void,
}

/// `ib_cm_mra_rec_t`: an MRA came in.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ib_cm_mra_rec_t {
    /// Private data.
    pub p_mra_pdata: *const u8,
    /// QP.
    pub h_qp: ib_qp_handle_t,
    /// Context of the QP.
    pub qp_context: *const c_void,
}

/// `ib_cm_dreq_rec_t`: a DREQ came in.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ib_cm_dreq_rec_t {
    /// The connection, to answer with DREP.
    pub h_cm_dreq: ib_cm_handle_t,
    /// Private data.
    pub p_dreq_pdata: *const u8,
    /// Context of the QP.
    pub qp_context: *const c_void,
}

/// `ib_cm_drep_rec_t`: a DREP came in, or time ran out.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ib_cm_drep_rec_t {
    /// Success or timeout.
    pub cm_status: ib_api_status_t,
    /// Private data.
    pub p_drep_pdata: *const u8,
    /// QP.
    pub h_qp: ib_qp_handle_t,
    /// Context of the QP.
    pub qp_context: *const c_void,
}

/// `ib_pfn_cm_req_cb_t`.
pub type ib_pfn_cm_req_cb_t = Option<unsafe extern "win64" fn(p_cm_req_rec: *mut ib_cm_req_rec_t)>;
/// `ib_pfn_cm_rep_cb_t`.
pub type ib_pfn_cm_rep_cb_t = Option<unsafe extern "win64" fn(p_cm_rep_rec: *mut ib_cm_rep_rec_t)>;
/// `ib_pfn_cm_rtu_cb_t`.
pub type ib_pfn_cm_rtu_cb_t = Option<unsafe extern "win64" fn(p_cm_rtu_rec: *mut ib_cm_rtu_rec_t)>;
/// `ib_pfn_cm_rej_cb_t`.
pub type ib_pfn_cm_rej_cb_t = Option<unsafe extern "win64" fn(p_cm_rej_rec: *mut ib_cm_rej_rec_t)>;
/// `ib_pfn_cm_mra_cb_t`.
pub type ib_pfn_cm_mra_cb_t = Option<unsafe extern "win64" fn(p_cm_mra_rec: *mut ib_cm_mra_rec_t)>;
/// `ib_pfn_cm_dreq_cb_t`.
pub type ib_pfn_cm_dreq_cb_t = Option<unsafe extern "win64" fn(p_cm_dreq_rec: *mut ib_cm_dreq_rec_t)>;
/// `ib_pfn_cm_drep_cb_t`.
pub type ib_pfn_cm_drep_cb_t = Option<unsafe extern "win64" fn(p_cm_drep_rec: *mut ib_cm_drep_rec_t)>;
/// `ib_pfn_cm_lap_cb_t`; path migration is not used, so the record stays opaque.
pub type ib_pfn_cm_lap_cb_t = Option<unsafe extern "win64" fn(p_cm_lap_rec: *mut c_void)>;
/// `ib_pfn_cm_apr_cb_t`; path migration is not used, so the record stays opaque.
pub type ib_pfn_cm_apr_cb_t = Option<unsafe extern "win64" fn(p_cm_apr_rec: *mut c_void)>;

/// `ib_cm_listen_t`: 72 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ib_cm_listen_t {
    /// Service id to answer to.
    pub svc_id: ib_net64_t,
    /// CA, or zero for all.
    pub ca_guid: ib_net64_t,
    /// Port, or zero for all.
    pub port_guid: ib_net64_t,
    /// LID, or zero for all.
    pub lid: ib_net16_t,
    /// P_Key, or zero for all.
    pub pkey: ib_net16_t,
    /// Private data that a REQ must have, or null.
    pub p_compare_buffer: *mut u8,
    /// Where in the private data.
    pub compare_offset: u8,
    /// Bytes.
    pub compare_length: u8,
    /// Called for each REQ.
    pub pfn_cm_req_cb: ib_pfn_cm_req_cb_t,
    /// Transport service.
    pub qp_type: ib_qp_type_t,
    /// Context of a SIDR listen.
    pub sidr_context: *const c_void,
}

/// `ib_cm_req_t`: connect, 136 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ib_cm_req_t {
    /// Service id.
    pub svc_id: ib_net64_t,
    /// `IB_FLAGS_SYNC` or zero.
    pub flags: ib_al_flags_t,
    /// Retries.
    pub max_cm_retries: u8,
    /// Path.
    pub p_primary_path: *mut ib_path_rec_t,
    /// Called for the REP.
    pub pfn_cm_rep_cb: ib_pfn_cm_rep_cb_t,
    /// Private data.
    pub p_req_pdata: *const u8,
    /// Bytes.
    pub req_length: u8,
    /// Transport service.
    pub qp_type: ib_qp_type_t,
    /// QP to connect.
    pub h_qp: ib_qp_handle_t,
    /// Peer to peer: private data that the other REQ must have.
    pub p_compare_buffer: *mut u8,
    /// Where in the private data.
    pub compare_offset: u8,
    /// Bytes.
    pub compare_length: u8,
    /// RDMA reads answered.
    pub resp_res: u8,
    /// RDMA reads started.
    pub init_depth: u8,
    /// Time the other side has to answer: 4.096 us times two to this power.
    pub remote_resp_timeout: u8,
    /// End-to-end flow control.
    pub flow_ctrl: boolean_t,
    /// Time this side takes to answer.
    pub local_resp_timeout: u8,
    /// Receiver-not-ready timeout.
    pub rnr_nak_timeout: u8,
    /// Receiver-not-ready retries.
    pub rnr_retry_cnt: u8,
    /// Retries of the QP.
    pub retry_cnt: u8,
    /// Alternate path, or null.
    pub p_alt_path: *mut ib_path_rec_t,
    /// Peer to peer: called for the other REQ.
    pub pfn_cm_req_cb: ib_pfn_cm_req_cb_t,
    /// Called for an MRA.
    pub pfn_cm_mra_cb: ib_pfn_cm_mra_cb_t,
    /// Called for a REJ.
    pub pfn_cm_rej_cb: ib_pfn_cm_rej_cb_t,
    /// SIDR: access layer.
    pub h_al: ib_al_handle_t,
    /// SIDR: context.
    pub sidr_context: *const c_void,
    /// SIDR: for an answer.
    pub timeout_ms: u32,
    /// SIDR: P_Key.
    pub pkey: ib_net16_t,
}

/// `ib_cm_rep_t`: accept, 200 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ib_cm_rep_t {
    /// `IB_FLAGS_SYNC` or zero.
    pub flags: ib_al_flags_t,
    /// Private data.
    pub p_rep_pdata: *const u8,
    /// Bytes.
    pub rep_length: u8,
    /// QP.
    pub h_qp: ib_qp_handle_t,
    /// Transport service.
    pub qp_type: ib_qp_type_t,
    /// Remote access rights.
    pub access_ctrl: ib_access_t,
    /// New send depth.
    pub sq_depth: u32,
    /// New receive depth.
    pub rq_depth: u32,
    /// RDMA reads started.
    pub init_depth: u8,
    /// ACK delay of this side.
    pub target_ack_delay: u8,
    /// Whether the alternate path is taken.
    pub failover_accepted: ib_cm_failover_t,
    /// End-to-end flow control.
    pub flow_ctrl: boolean_t,
    /// Receiver-not-ready timeout.
    pub rnr_nak_timeout: u8,
    /// Receiver-not-ready retries.
    pub rnr_retry_cnt: u8,
    /// Called for a REJ.
    pub pfn_cm_rej_cb: ib_pfn_cm_rej_cb_t,
    /// Called for an MRA.
    pub pfn_cm_mra_cb: ib_pfn_cm_mra_cb_t,
    /// Called for the RTU.
    pub pfn_cm_rtu_cb: ib_pfn_cm_rtu_cb_t,
    /// Called for a LAP.
    pub pfn_cm_lap_cb: ib_pfn_cm_lap_cb_t,
    /// Called for a DREQ.
    pub pfn_cm_dreq_cb: ib_pfn_cm_dreq_cb_t,
    /// Receives to post before the answer goes out.
    pub p_recv_wr: *mut ib_recv_wr_t,
    /// Where to put the first that could not be posted.
    pub pp_recv_failure: *mut *mut ib_recv_wr_t,
    /// SIDR: status.
    pub status: ib_sidr_status_t,
    /// SIDR: redirection.
    pub class_info: ib_class_port_info_t,
}

/// `ib_cm_rtu_t`: confirm a REP.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ib_cm_rtu_t {
    /// Remote access rights.
    pub access_ctrl: ib_access_t,
    /// New send depth.
    pub sq_depth: u32,
    /// New receive depth.
    pub rq_depth: u32,
    /// Private data.
    pub p_rtu_pdata: *const u8,
    /// Bytes.
    pub rtu_length: u8,
    /// Called for an APR.
    pub pfn_cm_apr_cb: ib_pfn_cm_apr_cb_t,
    /// Called for a DREQ.
    pub pfn_cm_dreq_cb: ib_pfn_cm_dreq_cb_t,
}

/// `ib_cm_rej_t`: refuse.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ib_cm_rej_t {
    /// Reason.
    pub rej_status: ib_rej_status_t,
    /// Additional information.
    pub p_ari: *mut c_void,
    /// Bytes.
    pub ari_length: u8,
    /// Private data.
    pub p_rej_pdata: *const u8,
    /// Bytes.
    pub rej_length: u8,
}

/// `ib_cm_dreq_t`: disconnect.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ib_cm_dreq_t {
    /// `IB_FLAGS_SYNC` or zero.
    pub flags: ib_al_flags_t,
    /// Private data.
    pub p_dreq_pdata: *mut u8,
    /// Bytes.
    pub dreq_length: u8,
    /// Transport service.
    pub qp_type: ib_qp_type_t,
    /// QP.
    pub h_qp: ib_qp_handle_t,
    /// Called for the DREP.
    pub pfn_cm_drep_cb: ib_pfn_cm_drep_cb_t,
}

/// `ib_cm_drep_t`: answer a disconnect.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ib_cm_drep_t {
    /// Private data.
    pub p_drep_pdata: *mut u8,
    /// Bytes.
    pub drep_length: u8,
}
