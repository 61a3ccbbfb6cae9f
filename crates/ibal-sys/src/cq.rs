//! Completion queues.
//!
//! Source: WinOFED `inc/iba/ib_al.h` (`ib_cq_create_t`, `ib_pfn_comp_cb_t`).

use core::ffi::c_void;

use crate::types::*;

/// `ib_pfn_comp_cb_t`: a completion was added to an armed CQ.
///
/// Runs at DISPATCH_LEVEL, in the DPC of the adapter's event queue. The CQ is disarmed by then: one call for
/// each `rearm_cq`. Calls for different CQs may overlap on different processors; two for the same CQ may not
/// unless the first has rearmed it.
pub type ib_pfn_comp_cb_t = Option<unsafe extern "win64" fn(h_cq: ib_cq_handle_t, cq_context: *mut c_void)>;

/// `ib_cq_create_t`: 24 bytes. Exactly one of the callback and the wait object is given.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ib_cq_create_t {
    /// In: entries wanted. Out: entries that the CQ holds, at least as many.
    pub size: u32,
    /// Called for a completion.
    pub pfn_comp_cb: ib_pfn_comp_cb_t,
    /// Signalled for a completion.
    pub h_wait_obj: cl_waitobj_handle_t,
}
