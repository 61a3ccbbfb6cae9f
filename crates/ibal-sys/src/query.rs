//! Queries to the subnet administrator.
//!
//! Source: WinOFED `inc/iba/ib_al.h` (`ib_query_req_t`, `ib_query_rec_t`, `ib_user_query_t`); behaviour from
//! `core/al/al_query.c` and `core/al/kernel/al_sa_req.c`.

use core::ffi::c_void;

use crate::mad::ib_mad_element_t;
use crate::status::{c_enum, ib_api_status_t};
use crate::types::*;

c_enum! {
    /// `ib_query_type_t`: what `p_query_input` is.
    ib_query_type_t;
    /// An [`ib_user_query_t`].
    IB_QUERY_USER_DEFINED = 0,
    /// Nothing.
    IB_QUERY_ALL_SVC_RECS = 1,
    /// A service name.
    IB_QUERY_SVC_REC_BY_NAME = 2,
    /// A service id.
    IB_QUERY_SVC_REC_BY_ID = 3,
    /// Nothing.
    IB_QUERY_CLASS_PORT_INFO = 4,
    /// A node GUID.
    IB_QUERY_NODE_REC_BY_NODE_GUID = 5,
    /// A LID.
    IB_QUERY_PORT_REC_BY_LID = 6,
    /// A user query of a virtual lane arbitration table.
    IB_QUERY_VLARB_BY_LID_PORT_BLOCK = 7,
    /// A user query of a service level table.
    IB_QUERY_SLVL_BY_LID_AND_PORTS = 8,
    /// An [`ib_guid_pair_t`].
    IB_QUERY_PATH_REC_BY_PORT_GUIDS = 9,
    /// An [`ib_gid_pair_t`].
    IB_QUERY_PATH_REC_BY_GIDS = 10,
    /// An [`ib_lid_pair_t`].
    IB_QUERY_PATH_REC_BY_LIDS = 11,
}

/// `ib_user_query_t`: a query in full, 24 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ib_user_query_t {
    /// `IB_MAD_METHOD_*`.
    pub method: u8,
    /// `IB_MAD_ATTR_*`.
    pub attr_id: ib_net16_t,
    /// Bytes at `p_attr`.
    pub attr_size: u32,
    /// Components that `p_attr` gives.
    pub comp_mask: ib_net64_t,
    /// The attribute, copied before the call returns.
    pub p_attr: *mut c_void,
}

/// `ib_gid_pair_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ib_gid_pair_t {
    /// Source.
    pub src_gid: ib_gid_t,
    /// Destination.
    pub dest_gid: ib_gid_t,
}

/// `ib_lid_pair_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ib_lid_pair_t {
    /// Source.
    pub src_lid: ib_net16_t,
    /// Destination.
    pub dest_lid: ib_net16_t,
}

/// `ib_guid_pair_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ib_guid_pair_t {
    /// Source.
    pub src_guid: ib_net64_t,
    /// Destination.
    pub dest_guid: ib_net64_t,
}

/// `ib_query_rec_t`: the answer, 32 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ib_query_rec_t {
    /// Context of the request.
    pub query_context: *const c_void,
    /// Success; `IB_REMOTE_ERROR` (the MAD's status says why), `IB_TIMEOUT`, `IB_CANCELED` or `IB_ERROR`.
    pub status: ib_api_status_t,
    /// Type of the request.
    pub query_type: ib_query_type_t,
    /// Records in the answer; only with success.
    pub result_cnt: u32,
    /// The answer; null when none came. The callback owns it and returns it with `put_mad`.
    pub p_result_mad: *mut ib_mad_element_t,
}

/// `ib_pfn_query_cb_t`: the end of a query, exactly once for each that `query` accepted, cancelled ones too.
///
/// Runs at DISPATCH_LEVEL (the receive DPC of QP1, or the timer DPC for timeouts and cancels), and possibly
/// before `query` has returned. The record is gone when it returns.
pub type ib_pfn_query_cb_t = Option<unsafe extern "win64" fn(p_query_rec: *mut ib_query_rec_t)>;

/// `ib_query_req_t`: 56 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ib_query_req_t {
    /// What `p_query_input` is.
    pub query_type: ib_query_type_t,
    /// Input, copied before the call returns.
    pub p_query_input: *const c_void,
    /// Port to send from.
    pub port_guid: ib_net64_t,
    /// For an answer, each time, in milliseconds.
    pub timeout_ms: u32,
    /// Times to send again.
    pub retry_cnt: u32,
    /// `IB_FLAGS_SYNC` or zero.
    pub flags: ib_al_flags_t,
    /// Comes back in the record.
    pub query_context: *const c_void,
    /// Called at the end.
    pub pfn_query_cb: ib_pfn_query_cb_t,
}
