//! Joining and leaving multicast groups.

use std::sync::Arc;

use ibal_sys::*;

use super::{PASSIVE, fails, give, notice, verbs};
use crate::hca::qp::Qp;
use crate::hca::qp_state::Service;
use crate::hca::{Handle, Kind};
use crate::ibal::Ibal;
use crate::ibal::latch::Latch;
use crate::ibal::mcast::Membership;
use crate::ibal::objects::{Client, Notice, Object};

verbs! {
    /// PASSIVE_LEVEL (`ib_join_mcast`). The outcome comes by callback; with the synchronous flag before this returns.
    [PASSIVE] fn join_mcast(ibal, h_qp: ib_qp_handle_t, p_mcast_req: *const ib_mcast_req_t,
        p_h_mcast: *mut ib_mcast_handle_t) -> ib_api_status_t
    {
        let (handle, object) = ibal.resolve(h_qp, Kind::Qp, "join_mcast");
        let Object::Qp(qp) = object else { return IB_INVALID_QP_HANDLE };
        if qp.service != Service::Ud {
            return IB_INVALID_PARAMETER;
        }
        // SAFETY: the caller's pointers.
        unsafe { join(&ibal, Some((handle, qp)), p_mcast_req, p_h_mcast) }
    }

    /// PASSIVE_LEVEL (`ib_join_mcast_no_qp`): a membership of the port alone.
    [PASSIVE] fn join_mcast_no_qp(ibal, p_mcast_req: *const ib_mcast_req_t, p_h_mcast: *mut ib_mcast_handle_t)
        -> ib_api_status_t
    {
        // SAFETY: the caller's pointers.
        unsafe { join(&ibal, None, p_mcast_req, p_h_mcast) }
    }

    /// PASSIVE_LEVEL (`ib_leave_mcast`).
    [PASSIVE] fn leave_mcast(ibal, h_mcast: ib_mcast_handle_t, destroy_cb: ib_pfn_destroy_cb_t)
        -> ib_api_status_t
    {
        if let Some(handle) = Handle::from_ptr(h_mcast).filter(|handle| handle.hca == ibal.hca.number)
            && let Some((Object::Mcast(membership), true)) = ibal.objects.get(handle)
            && membership.is_abandoned()
        {
            // Being destroyed already, because its join failed: nothing happens, and no callback comes
            // (`al_common.c`, `destroy_obj`).
            return IB_SUCCESS;
        }
        let (notice, latch) = notice(destroy_cb);
        let (_, object) = ibal.begin_destroy(h_mcast, Kind::Mcast, notice, "leave_mcast");
        if let Object::Mcast(membership) = object {
            ibal.start_leave(&membership);
        }
        if let Some(latch) = latch {
            refuse_to_wait_for_itself(&ibal, "leave_mcast");
            latch.wait("leave_mcast");
        }
        IB_SUCCESS
    }
}

/// # Safety
/// The pointers must be null or lead to what their types say.
unsafe fn join(
    ibal: &Arc<Ibal>,
    qp: Option<(Handle, Arc<Qp>)>,
    p_mcast_req: *const ib_mcast_req_t,
    p_h_mcast: *mut ib_mcast_handle_t,
) -> ib_api_status_t {
    // SAFETY: the caller's contract.
    unsafe { give(p_h_mcast, std::ptr::null_mut()) };
    if p_mcast_req.is_null() {
        return IB_INVALID_PARAMETER;
    }
    // SAFETY: the caller's request, checked not to be null.
    let request = unsafe { p_mcast_req.read_unaligned() };
    if request.pfn_mcast_cb.is_none() {
        return IB_INVALID_CALLBACK;
    }
    let Some(port) = ibal.port_of(request.port_guid.get()) else { return IB_INVALID_GUID };
    if fails("join_mcast") {
        return IB_INSUFFICIENT_MEMORY;
    }
    let handle = ibal.hca.new_handle(Kind::Mcast);
    let sync = request.flags & IB_FLAGS_SYNC != 0;
    let done = sync.then(|| Arc::new(Latch::default()));
    let parent = qp.as_ref().map(|(handle, _)| *handle);
    let membership = Arc::new(Membership::new(handle, qp.map(|(_, qp)| qp), port, &request, done.clone()));
    ibal.enter(handle, parent, Object::Mcast(Arc::clone(&membership)), Client::quiet(request.mcast_context));
    if !p_h_mcast.is_null() {
        // A handle given out here has a reference of its own, which the client drops.
        ibal.objects.reference(handle);
        // SAFETY: the caller's pointer, checked not to be null.
        unsafe { give(p_h_mcast, handle.to_ptr()) };
    }
    if let Err(status) = ibal.start_join(&membership, &request) {
        if !p_h_mcast.is_null() {
            ibal.release(handle, "join_mcast");
            // SAFETY: as above.
            unsafe { give(p_h_mcast, std::ptr::null_mut()) };
        }
        if ibal.objects.begin_destroy(handle, Notice::None).is_ok() {
            ibal.release(handle, "join_mcast");
        }
        return status;
    }
    if let Some(done) = done {
        refuse_to_wait_for_itself(ibal, "join_mcast");
        done.wait("join_mcast");
    }
    IB_SUCCESS
}

/// A callback that waits for its own thread waits for ever.
fn refuse_to_wait_for_itself(ibal: &Ibal, verb: &str) {
    if ibal.worker.is_current() {
        let detail = "waits on the asynchronous thread, in one of its callbacks, for that thread";
        crate::verifier::violation(crate::hca::rules::VERB_WAITS_FOR_ITSELF, verb, detail);
    }
}
