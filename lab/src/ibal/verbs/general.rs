//! Instances, adapters, protection domains, registrations, references and names.

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use ibal_sys::*;
use windows_kernel_sys::{
    NTSTATUS, STATUS_CANCELLED, STATUS_INSUFFICIENT_RESOURCES, STATUS_INVALID_PARAMETER, STATUS_IO_TIMEOUT,
    STATUS_NOT_FOUND, STATUS_NOT_SUPPORTED, STATUS_PENDING, STATUS_SUCCESS, STATUS_UNSUCCESSFUL,
};

use super::{DISPATCH, NO_RESOURCES, PASSIVE, fails, give, notice, verbs};
use crate::hca::rules::{VERB_AL_LEAK, VERB_BAD_HANDLE};
use crate::hca::{Handle, Kind};
use crate::ibal::latch::Latch;
use crate::ibal::objects::{Client, NotNow, Notice, Object};
use crate::ibal::pnp::Registration;
use crate::ibal::{Ibal, attributes, strings};
use crate::verifier;

/// Opens an instance.
fn open(ibal: &Arc<Ibal>, ph_al: *mut ib_al_handle_t) -> ib_api_status_t {
    if ph_al.is_null() {
        return IB_INVALID_PARAMETER;
    }
    if fails("open_al") {
        return IB_INSUFFICIENT_MEMORY;
    }
    let handle = ibal.hca.new_handle(Kind::Al);
    ibal.enter(handle, None, Object::Al, Client::quiet::<()>(std::ptr::null()));
    // SAFETY: the caller's pointer, checked not to be null.
    unsafe { give(ph_al, handle.to_ptr()) };
    IB_SUCCESS
}

verbs! {
    /// PASSIVE_LEVEL (`ib_open_al`).
    [PASSIVE] fn open_al(ibal, ph_al: *mut ib_al_handle_t) -> ib_api_status_t {
        open(&ibal, ph_al)
    }

    /// PASSIVE_LEVEL (`ib_open_al_trk`).
    [PASSIVE] fn open_al_trk(ibal, _tag: *mut u16, ph_al: *mut ib_al_handle_t) -> ib_api_status_t {
        open(&ibal, ph_al)
    }

    /// PASSIVE_LEVEL (`ib_close_al`). Waits for what is still going.
    [PASSIVE] fn close_al(ibal, h_al: ib_al_handle_t) -> ib_api_status_t {
        let (handle, _) = ibal.resolve(h_al, Kind::Al, "close_al");
        let mads = ibal.mads.held_by(handle);
        if mads > 0 {
            verifier::violation(VERB_AL_LEAK, "close_al", format!("{mads} result MAD(s) not put back"));
        }
        let latch = Arc::new(Latch::default());
        match ibal.objects.begin_destroy(handle, Notice::Latch(Arc::clone(&latch))) {
            Ok(_) => {}
            Err(NotNow::Children(children)) => {
                let list: Vec<_> = children.iter().map(ToString::to_string).collect();
                verifier::violation(VERB_AL_LEAK, "close_al", format!("still open: {}", list.join(", ")))
            }
            Err(why) => verifier::violation(VERB_BAD_HANDLE, "close_al", format!("{handle}: {why:?}")),
        }
        ibal.release(handle, "close_al");
        latch.wait("close_al");
        IB_SUCCESS
    }

    /// PASSIVE_LEVEL (`ib_open_ca`).
    [PASSIVE] fn open_ca(ibal, h_al: ib_al_handle_t, ca_guid: ib_net64_t, ca_event_cb: ib_pfn_event_cb_t,
        ca_context: *const c_void, ph_ca: *mut ib_ca_handle_t) -> ib_api_status_t
    {
        let (al, _) = ibal.resolve(h_al, Kind::Al, "open_ca");
        if ph_ca.is_null() {
            return IB_INVALID_PARAMETER;
        }
        if ca_guid.get() != ibal.hca.guid.0 {
            return IB_INVALID_GUID;
        }
        if fails("open_ca") {
            return IB_INSUFFICIENT_MEMORY;
        }
        let handle = ibal.hca.new_handle(Kind::Ca);
        let client = Client { context: ca_context.expose_provenance(), event: ca_event_cb };
        ibal.enter(handle, Some(al), Object::Ca, client);
        // SAFETY: the caller's pointer, checked not to be null.
        unsafe { give(ph_ca, handle.to_ptr()) };
        IB_SUCCESS
    }

    /// PASSIVE_LEVEL (`ib_query_ca`). A buffer that is null or too small: IB_INSUFFICIENT_MEMORY, and the size.
    [PASSIVE] fn query_ca(ibal, h_ca: ib_ca_handle_t, p_ca_attr: *mut ib_ca_attr_t, p_size: *mut u32)
        -> ib_api_status_t
    {
        ibal.resolve(h_ca, Kind::Ca, "query_ca");
        if p_size.is_null() {
            return IB_INVALID_PARAMETER;
        }
        let count = ibal.hca.ports().len() as u8;
        let ports: Vec<_> = (1..=count).filter_map(|number| ibal.hca.refresh(number)).collect();
        let needed = attributes::size(&ports) as u32;
        // SAFETY: checked not to be null; the caller's pointer.
        let given = unsafe { p_size.read_unaligned() };
        // SAFETY: as above.
        unsafe { give(p_size, needed) };
        if p_ca_attr.is_null() || given < needed {
            return IB_INSUFFICIENT_MEMORY;
        }
        if fails("query_ca") {
            return IB_INSUFFICIENT_RESOURCES;
        }
        // SAFETY: the caller's buffer of as many bytes as it says, and no less than needed. The structure has the
        // alignment of pool memory, which is 16.
        unsafe { attributes::write(&ibal.hca, &ports, p_ca_attr) };
        IB_SUCCESS
    }

    /// PASSIVE_LEVEL (`ib_close_ca`).
    [PASSIVE] fn close_ca(ibal, h_ca: ib_ca_handle_t, destroy_cb: ib_pfn_destroy_cb_t) -> ib_api_status_t {
        destroy_plain(&ibal, h_ca, Kind::Ca, destroy_cb, "close_ca")
    }

    /// PASSIVE_LEVEL (`ib_alloc_pd`).
    [PASSIVE] fn alloc_pd(ibal, h_ca: ib_ca_handle_t, pd_type: ib_pd_type_t, pd_context: *const c_void,
        ph_pd: *mut ib_pd_handle_t) -> ib_api_status_t
    {
        let (ca, _) = ibal.resolve(h_ca, Kind::Ca, "alloc_pd");
        if ph_pd.is_null() || !matches!(pd_type, IB_PDT_NORMAL | IB_PDT_UD) {
            return IB_INVALID_PARAMETER;
        }
        ibal.check_lifetime(Kind::Pd, crate::ibal::MAKES_RESOURCES, "made", "alloc_pd");
        if fails("alloc_pd") || ibal.objects.count(Kind::Pd) >= ibal.hca.limits.pds as usize {
            return NO_RESOURCES;
        }
        let handle = ibal.hca.new_handle(Kind::Pd);
        ibal.enter(handle, Some(ca), Object::Pd, Client::quiet(pd_context));
        // SAFETY: the caller's pointer, checked not to be null.
        unsafe { give(ph_pd, handle.to_ptr()) };
        IB_SUCCESS
    }

    /// PASSIVE_LEVEL (`ib_dealloc_pd`).
    [PASSIVE] fn dealloc_pd(ibal, h_pd: ib_pd_handle_t, destroy_cb: ib_pfn_destroy_cb_t) -> ib_api_status_t {
        destroy_plain(&ibal, h_pd, Kind::Pd, destroy_cb, "dealloc_pd")
    }

    /// PASSIVE_LEVEL (`ib_reg_pnp`). The present state is reported on the PnP thread; with the synchronous flag
    /// before this returns.
    [PASSIVE] fn reg_pnp(ibal, h_al: ib_al_handle_t, p_pnp_req: *const ib_pnp_req_t,
        ph_pnp: *mut ib_pnp_handle_t) -> ib_api_status_t
    {
        let (al, _) = ibal.resolve(h_al, Kind::Al, "reg_pnp");
        if p_pnp_req.is_null() || ph_pnp.is_null() {
            return IB_INVALID_PARAMETER;
        }
        // SAFETY: the caller's request, checked not to be null.
        let request = unsafe { p_pnp_req.read_unaligned() };
        if !matches!(request.pnp_class & IB_PNP_CLASS_MASK, IB_PNP_CA | IB_PNP_PORT) {
            return IB_UNSUPPORTED;
        }
        if request.pfn_pnp_cb.is_none() {
            return IB_INVALID_CALLBACK;
        }
        if fails("reg_pnp") {
            return IB_INSUFFICIENT_MEMORY;
        }
        let handle = ibal.hca.new_handle(Kind::Pnp);
        let sync = request.pnp_class & IB_PNP_FLAG_REG_SYNC != 0;
        let complete = sync.then(|| Arc::new(Latch::default()));
        let registration = Arc::new(Registration::new(handle, &request, complete.clone()));
        ibal.enter(handle, Some(al), Object::Pnp(Arc::clone(&registration)), Client::quiet(request.pnp_context));
        // The thread holds a reference until it has reported the present state.
        ibal.objects.reference(handle);
        // SAFETY: the caller's pointer, checked not to be null. Written before the first callback can run.
        unsafe { give(ph_pnp, handle.to_ptr()) };
        let reporter = Arc::clone(&ibal);
        ibal.pnp_worker.queue(move || reporter.process_registration(&registration));
        if let Some(latch) = complete {
            refuse_to_wait_for_itself(&ibal, "reg_pnp");
            latch.wait("reg_pnp");
        }
        IB_SUCCESS
    }

    /// PASSIVE_LEVEL (`ib_dereg_pnp`). No callback runs once it is reported as done.
    [PASSIVE] fn dereg_pnp(ibal, h_pnp: ib_pnp_handle_t, destroy_cb: ib_pfn_destroy_cb_t) -> ib_api_status_t {
        let (notice, latch) = notice(destroy_cb);
        let (_, object) = ibal.begin_destroy(h_pnp, Kind::Pnp, notice, "dereg_pnp");
        if let Object::Pnp(registration) = object {
            let remover = Arc::clone(&ibal);
            ibal.pnp_worker.queue(move || remover.process_deregistration(&registration));
        }
        if let Some(latch) = latch {
            refuse_to_wait_for_itself(&ibal, "dereg_pnp");
            latch.wait("dereg_pnp");
        }
        IB_SUCCESS
    }

    /// Any IRQL up to DISPATCH_LEVEL (`ib_get_err_str`).
    [DISPATCH] fn get_err_str(_ibal, status: ib_api_status_t) -> *const c_char {
        strings::status(status)
    }

    /// Any IRQL up to DISPATCH_LEVEL (`ib_get_wc_status_str`).
    [DISPATCH] fn get_wc_status_str(_ibal, wc_status: ib_wc_status_t) -> *const c_char {
        strings::completion(wc_status)
    }

    /// Any IRQL up to DISPATCH_LEVEL (`ib_to_ntstatus`).
    [DISPATCH] fn to_ntstatus(_ibal, ib_status: ib_api_status_t) -> NTSTATUS {
        match ib_status {
            IB_SUCCESS => STATUS_SUCCESS,
            IB_INSUFFICIENT_RESOURCES | IB_INSUFFICIENT_MEMORY | IB_MAX_MCAST_QPS_REACHED => {
                STATUS_INSUFFICIENT_RESOURCES
            }
            IB_NOT_FOUND => STATUS_NOT_FOUND,
            IB_TIMEOUT => STATUS_IO_TIMEOUT,
            IB_CANCELED => STATUS_CANCELLED,
            IB_UNSUPPORTED => STATUS_NOT_SUPPORTED,
            IB_PENDING => STATUS_PENDING,
            ib_api_status_t(3..=4 | 18..=42 | 46 | 49 | 51) => STATUS_INVALID_PARAMETER,
            _ => STATUS_UNSUCCESSFUL,
        }
    }

    /// DISPATCH_LEVEL or below (`ib_ref_al_obj`).
    [DISPATCH] fn ib_ref_al_obj(ibal, p_obj: *mut c_void) -> () {
        let handle = any_handle(&ibal, p_obj, "ib_ref_al_obj");
        if !ibal.objects.reference(handle) {
            verifier::violation(VERB_BAD_HANDLE, "ib_ref_al_obj", format!("{handle} is gone"));
        }
    }

    /// DISPATCH_LEVEL or below (`ib_deref_al_obj`).
    [DISPATCH] fn ib_deref_al_obj(ibal, p_obj: *mut c_void) -> () {
        let handle = any_handle(&ibal, p_obj, "ib_deref_al_obj");
        ibal.release(handle, "ib_deref_al_obj");
    }
}

/// A handle of this machine, of whatever kind.
fn any_handle(ibal: &Ibal, p_obj: *mut c_void, verb: &str) -> Handle {
    match Handle::from_ptr(p_obj) {
        Some(handle) if handle.hca == ibal.hca.number => handle,
        _ => verifier::violation(VERB_BAD_HANDLE, verb, "no handle of this machine's access layer"),
    }
}

/// Destroys an object behind which there is nothing but its place in the tree.
fn destroy_plain<T>(
    ibal: &Ibal,
    handle: *mut T,
    kind: Kind,
    callback: ib_pfn_destroy_cb_t,
    verb: &'static str,
) -> ib_api_status_t {
    let (notice, latch) = notice(callback);
    let (handle, _) = ibal.begin_destroy(handle, kind, notice, verb);
    ibal.release(handle, verb);
    if let Some(latch) = latch {
        latch.wait(verb);
    }
    IB_SUCCESS
}

/// A callback that waits for its own thread waits for ever.
fn refuse_to_wait_for_itself(ibal: &Ibal, verb: &str) {
    if ibal.pnp_worker.is_current() {
        let detail = "waits on the PnP thread, in a PnP callback, for that thread";
        verifier::violation(crate::hca::rules::VERB_WAITS_FOR_ITSELF, verb, detail);
    }
}
