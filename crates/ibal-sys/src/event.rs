//! Asynchronous events of CA, CQ, QP and SRQ.
//!
//! Source: WinOFED `inc/iba/ib_types.h` (`ib_async_event_t`) and `inc/iba/ib_al.h` (`ib_async_event_rec_t`).

use core::ffi::c_void;

use crate::status::c_enum;
use crate::types::*;

c_enum! {
    /// `ib_async_event_t`.
    ib_async_event_t;
    /// Send queue error.
    IB_AE_SQ_ERROR = 1,
    /// Send queue drained.
    IB_AE_SQ_DRAINED = 2,
    /// Receive queue error.
    IB_AE_RQ_ERROR = 3,
    /// CQ error.
    IB_AE_CQ_ERROR = 4,
    /// QP error that no completion reports.
    IB_AE_QP_FATAL = 5,
    /// First packet on a QP in RTR.
    IB_AE_QP_COMM = 6,
    /// Path migrated.
    IB_AE_QP_APM = 7,
    /// The adapter is lost.
    IB_AE_LOCAL_FATAL = 8,
    /// P_Key violation.
    IB_AE_PKEY_TRAP = 9,
    /// Q_Key violation.
    IB_AE_QKEY_TRAP = 10,
    /// M_Key violation.
    IB_AE_MKEY_TRAP = 11,
    /// Port changed state.
    IB_AE_PORT_TRAP = 12,
    /// System image GUID changed.
    IB_AE_SYSIMG_GUID_TRAP = 13,
    /// Buffer overrun.
    IB_AE_BUF_OVERRUN = 14,
    /// Link integrity.
    IB_AE_LINK_INTEGRITY = 15,
    /// Flow control.
    IB_AE_FLOW_CTRL_ERROR = 16,
    /// B_Key violation.
    IB_AE_BKEY_TRAP = 17,
    /// Path migration failed.
    IB_AE_QP_APM_ERROR = 18,
    /// Invalid request on a QP.
    IB_AE_WQ_REQ_ERROR = 19,
    /// Access violation on a QP.
    IB_AE_WQ_ACCESS_ERROR = 20,
    /// Port became active.
    IB_AE_PORT_ACTIVE = 21,
    /// Port went down.
    IB_AE_PORT_DOWN = 22,
    /// The subnet manager asks to register again (it lost its memory).
    IB_AE_CLIENT_REREGISTER = 23,
    /// SRQ below its limit.
    IB_AE_SRQ_LIMIT_REACHED = 24,
    /// SRQ error.
    IB_AE_SRQ_CATAS_ERROR = 25,
    /// Last request of an SRQ consumed.
    IB_AE_SRQ_QP_LAST_WQE_REACHED = 26,
    /// Driver reset begins.
    IB_AE_RESET_DRIVER = 27,
    /// Clients have to release their resources.
    IB_AE_RESET_CLIENT = 28,
    /// Reset over.
    IB_AE_RESET_END = 29,
    /// Reset failed.
    IB_AE_RESET_FAILED = 30,
    /// LID changed.
    IB_AE_LID_CHANGE = 31,
    /// P_Key table changed.
    IB_AE_PKEY_CHANGE = 32,
    /// Subnet manager changed.
    IB_AE_SM_CHANGE = 33,
    /// GID table changed.
    IB_AE_GID_CHANGE = 34,
    /// Reset before removal.
    IB_AE_RESET_4_RMV = 35,
    /// CQ overflow.
    IB_AE_CQ_OVERFLOW = 36,
    /// End of the list.
    IB_AE_UNKNOWN = 37,
}

/// `ib_async_event_rec_t::handle`.
#[repr(C)]
#[derive(Clone, Copy)]
pub union ib_async_event_handle {
    /// CA.
    pub h_ca: ib_ca_handle_t,
    /// CQ.
    pub h_cq: ib_cq_handle_t,
    /// QP.
    pub h_qp: ib_qp_handle_t,
    /// SRQ.
    pub h_srq: ib_srq_handle_t,
}

/// `ib_async_event_rec_t`: 40 bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ib_async_event_rec_t {
    /// What happened.
    pub code: ib_async_event_t,
    /// Vendor's code.
    pub vendor_specific: u64,
    /// Context that the object was created with.
    pub context: *mut c_void,
    /// The object.
    pub handle: ib_async_event_handle,
    /// Port, for port events.
    pub port_number: u8,
}

/// `ib_pfn_event_cb_t`: an asynchronous event of an object.
///
/// Raised from the adapter's event DPC, the access layer hands it to its asynchronous-processing thread
/// (`core/al/kernel/al_ci_ca.c`), so it runs at PASSIVE_LEVEL.
pub type ib_pfn_event_cb_t = Option<unsafe extern "win64" fn(p_event_rec: *mut ib_async_event_rec_t)>;
