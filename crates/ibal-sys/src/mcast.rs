//! Multicast groups.
//!
//! Source: WinOFED `inc/iba/ib_al.h` (`ib_mcast_req_t`, `ib_mcast_rec_t`); behaviour from
//! `core/al/al_mcast.c`.

use core::ffi::c_void;

use crate::sa::ib_member_rec_t;
use crate::status::ib_api_status_t;
use crate::types::*;

/// `ib_mcast_rec_t`: the outcome of a join, 32 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ib_mcast_rec_t {
    /// Context of the request.
    pub mcast_context: *const c_void,
    /// Success; `IB_REMOTE_ERROR` (see `error_status`), `IB_TIMEOUT`, `IB_CANCELED`, or what attaching the QP
    /// gave.
    pub status: ib_api_status_t,
    /// Status of the answering MAD.
    pub error_status: ib_net16_t,
    /// The membership; null unless the administrator accepted the join.
    pub h_mcast: ib_mcast_handle_t,
    /// The group's record. Valid during the call.
    pub p_member_rec: *mut ib_member_rec_t,
}

/// `ib_pfn_mcast_cb_t`: the end of a join, exactly once for each that `join_mcast` accepted.
///
/// Runs at PASSIVE_LEVEL on the asynchronous-processing thread of the access layer, since attaching the QP to
/// the group is a verb. With success the membership lasts until `leave_mcast`; otherwise the access layer
/// destroys the object after the call by itself.
pub type ib_pfn_mcast_cb_t = Option<unsafe extern "win64" fn(p_mcast_rec: *mut ib_mcast_rec_t)>;

/// `ib_mcast_req_t`: 112 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ib_mcast_req_t {
    /// Whether to create the group if there is none; then the record has the group's parameters.
    pub create: boolean_t,
    /// The group. The member's GID is filled in by the access layer (default prefix, `port_guid`).
    pub member_rec: ib_member_rec_t,
    /// Comes back in the record, and in the destroy callback of the membership.
    pub mcast_context: *const c_void,
    /// Called at the end.
    pub pfn_mcast_cb: ib_pfn_mcast_cb_t,
    /// For an answer, each time, in milliseconds.
    pub timeout_ms: u32,
    /// Times to send again.
    pub retry_cnt: u32,
    /// `IB_FLAGS_SYNC` or zero.
    pub flags: ib_al_flags_t,
    /// Port to join from.
    pub port_guid: ib_net64_t,
    /// P_Key index.
    pub pkey_index: u16,
}
