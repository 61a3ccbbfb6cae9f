//! Connection management: not in this access layer. Each slot answers IB_UNSUPPORTED, as an HCA without connected
//! services would, so that a driver can find out and go on with datagrams.

use std::ffi::c_void;

use ibal_sys::*;

use super::{DISPATCH, PASSIVE, verbs};

verbs! {
    /// PASSIVE_LEVEL (`ib_cm_listen`). Always IB_UNSUPPORTED.
    [PASSIVE] fn cm_listen(_ibal, _h_al: ib_al_handle_t, _p_cm_listen: *const ib_cm_listen_t,
        _listen_context: *const c_void, _ph_cm_listen: *mut ib_listen_handle_t) -> ib_api_status_t
    {
        IB_UNSUPPORTED
    }

    /// PASSIVE_LEVEL (`ib_cm_cancel`). Always IB_UNSUPPORTED.
    [PASSIVE] fn cm_cancel(_ibal, _h_cm_listen: ib_listen_handle_t, _destroy_cb: ib_pfn_destroy_cb_t)
        -> ib_api_status_t
    {
        IB_UNSUPPORTED
    }

    /// DISPATCH_LEVEL or below (`ib_cm_req`). Always IB_UNSUPPORTED.
    [DISPATCH] fn cm_req(_ibal, _p_cm_req: *const ib_cm_req_t) -> ib_api_status_t {
        IB_UNSUPPORTED
    }

    /// PASSIVE_LEVEL (`ib_cm_rep`). Always IB_UNSUPPORTED.
    [PASSIVE] fn cm_rep(_ibal, _h_cm_req: ib_cm_handle_t, _p_cm_rep: *const ib_cm_rep_t) -> ib_api_status_t {
        IB_UNSUPPORTED
    }

    /// PASSIVE_LEVEL (`ib_cm_rtu`). Always IB_UNSUPPORTED.
    [PASSIVE] fn cm_rtu(_ibal, _h_cm_rep: ib_cm_handle_t, _p_cm_rtu: *const ib_cm_rtu_t) -> ib_api_status_t {
        IB_UNSUPPORTED
    }

    /// DISPATCH_LEVEL or below (`ib_cm_rej`). Always IB_UNSUPPORTED.
    [DISPATCH] fn cm_rej(_ibal, _h_cm: ib_cm_handle_t, _p_cm_rej: *const ib_cm_rej_t) -> ib_api_status_t {
        IB_UNSUPPORTED
    }

    /// DISPATCH_LEVEL or below (`ib_cm_dreq`). Always IB_UNSUPPORTED.
    [DISPATCH] fn cm_dreq(_ibal, _p_cm_dreq: *const ib_cm_dreq_t) -> ib_api_status_t {
        IB_UNSUPPORTED
    }

    /// DISPATCH_LEVEL or below (`ib_cm_drep`). Always IB_UNSUPPORTED.
    [DISPATCH] fn cm_drep(_ibal, _h_cm_dreq: ib_cm_handle_t, _p_cm_drep: *const ib_cm_drep_t)
        -> ib_api_status_t
    {
        IB_UNSUPPORTED
    }
}
