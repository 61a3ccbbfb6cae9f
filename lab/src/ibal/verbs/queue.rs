//! Queue pairs and completion queues: their life and their states.

use std::ffi::c_void;
use std::sync::Arc;

use ibal_sys::*;

use super::{NO_RESOURCES, PASSIVE, address, fails, give, notice, verbs};
use crate::hca::cq::Cq;
use crate::hca::qp::{Caps, Qp};
use crate::hca::qp_state::{Attributes, Modify, PathAttr, QpState, Refused, Retry, Service};
use crate::hca::rules::QP_STATE;
use crate::hca::{Handle, Kind};
use crate::ibal::objects::{Client, Object};
use crate::ibal::{Ibal, MAKES_RESOURCES};
use crate::kernel::irql::DISPATCH_LEVEL;
use crate::verifier::{self, call_driver};

impl Ibal {
    pub(super) fn cq<T>(&self, handle: *mut T, verb: &str) -> (Handle, Arc<Cq>) {
        match self.resolve(handle, Kind::Cq, verb) {
            (handle, Object::Cq(cq)) => (handle, cq),
            (handle, _) => unreachable!("{handle} is entered as what it is"),
        }
    }

    pub(super) fn qp<T>(&self, handle: *mut T, verb: &str) -> (Handle, Arc<Qp>) {
        match self.resolve(handle, Kind::Qp, verb) {
            (handle, Object::Qp(qp)) => (handle, qp),
            (handle, _) => unreachable!("{handle} is entered as what it is"),
        }
    }
}

verbs! {
    /// PASSIVE_LEVEL (`ib_create_cq`). The queue is not armed.
    [PASSIVE] fn create_cq(ibal, h_ca: ib_ca_handle_t, p_cq_create: *mut ib_cq_create_t,
        cq_context: *const c_void, cq_event_cb: ib_pfn_event_cb_t, ph_cq: *mut ib_cq_handle_t) -> ib_api_status_t
    {
        let (ca, _) = ibal.resolve(h_ca, Kind::Ca, "create_cq");
        if p_cq_create.is_null() || ph_cq.is_null() {
            return IB_INVALID_PARAMETER;
        }
        // SAFETY: the caller's request, checked not to be null.
        let create = unsafe { p_cq_create.read_unaligned() };
        // A wait object instead of a callback is for user mode; an IPoIB driver has no thread to wait.
        let Some(callback) = create.pfn_comp_cb else { return IB_INVALID_SETTING };
        if !create.h_wait_obj.is_null() {
            return IB_INVALID_SETTING;
        }
        if create.size == 0 || create.size > ibal.hca.limits.cqes {
            return IB_INVALID_CQ_SIZE;
        }
        ibal.check_lifetime(Kind::Cq, MAKES_RESOURCES, "made", "create_cq");
        if fails("create_cq") {
            return NO_RESOURCES;
        }
        let context = cq_context.expose_provenance();
        let notify = move |cq: Handle| {
            call_driver("completion callback", DISPATCH_LEVEL, || {
                // SAFETY: the driver's own callback, with its queue and its context.
                unsafe { callback(cq.to_ptr(), std::ptr::with_exposed_provenance_mut(context)) };
            });
        };
        let Some(cq) = ibal.hca.create_cq(create.size, Box::new(notify)) else { return NO_RESOURCES };
        let (handle, depth) = (cq.handle, cq.depth);
        ibal.enter(handle, Some(ca), Object::Cq(cq), Client { context, event: cq_event_cb });
        // SAFETY: the caller's pointers, checked not to be null.
        unsafe {
            give(&raw mut (*p_cq_create).size, depth as u32);
            give(ph_cq, handle.to_ptr());
        }
        IB_SUCCESS
    }

    /// PASSIVE_LEVEL (`ib_modify_cq`). This adapter does not resize.
    [PASSIVE] fn modify_cq(ibal, h_cq: ib_cq_handle_t, _p_size: *mut u32) -> ib_api_status_t {
        ibal.cq(h_cq, "modify_cq");
        IB_UNSUPPORTED
    }

    /// PASSIVE_LEVEL (`ib_query_cq`).
    [PASSIVE] fn query_cq(ibal, h_cq: ib_cq_handle_t, p_size: *mut u32) -> ib_api_status_t {
        let (_, cq) = ibal.cq(h_cq, "query_cq");
        if p_size.is_null() {
            return IB_INVALID_PARAMETER;
        }
        // SAFETY: the caller's pointer, checked not to be null.
        unsafe { give(p_size, cq.depth as u32) };
        IB_SUCCESS
    }

    /// PASSIVE_LEVEL (`ib_destroy_cq`). It is gone when no callback runs any longer.
    [PASSIVE] fn destroy_cq(ibal, h_cq: ib_cq_handle_t, destroy_cb: ib_pfn_destroy_cb_t) -> ib_api_status_t {
        let (notice, latch) = notice(destroy_cb);
        let (handle, object) = ibal.begin_destroy(h_cq, Kind::Cq, notice, "destroy_cq");
        if let Object::Cq(cq) = object
            && ibal.hca.close_cq(&cq)
        {
            ibal.release(handle, "destroy_cq");
        }
        if let Some(latch) = latch {
            latch.wait("destroy_cq");
        }
        IB_SUCCESS
    }

    /// PASSIVE_LEVEL (`ib_create_qp`). The queue pair is in RESET.
    [PASSIVE] fn create_qp(ibal, h_pd: ib_pd_handle_t, p_qp_create: *mut ib_qp_create_t,
        qp_context: *const c_void, qp_event_cb: ib_pfn_event_cb_t, ph_qp: *mut ib_qp_handle_t) -> ib_api_status_t
    {
        let (pd, _) = ibal.resolve(h_pd, Kind::Pd, "create_qp");
        if p_qp_create.is_null() || ph_qp.is_null() {
            return IB_INVALID_PARAMETER;
        }
        // SAFETY: the caller's request, checked not to be null.
        let create = unsafe { p_qp_create.read_unaligned() };
        let service = match create.qp_type {
            IB_QPT_UNRELIABLE_DGRM => Service::Ud,
            IB_QPT_RELIABLE_CONN => Service::Rc,
            _ => return IB_INVALID_SETTING,
        };
        if !create.h_srq.is_null() {
            return IB_UNSUPPORTED;
        }
        let (_, send_cq) = ibal.cq(create.h_sq_cq, "create_qp");
        let (_, recv_cq) = ibal.cq(create.h_rq_cq, "create_qp");
        let limits = &ibal.hca.limits;
        if create.sq_depth > limits.wrs || create.rq_depth > limits.wrs {
            return IB_INVALID_MAX_WRS;
        }
        if create.sq_sge > limits.sges || create.rq_sge > limits.sges {
            return IB_INVALID_MAX_SGE;
        }
        if create.sq_max_inline > limits.inline {
            return IB_INVALID_SETTING;
        }
        ibal.check_lifetime(Kind::Qp, MAKES_RESOURCES, "made", "create_qp");
        if fails("create_qp") {
            return NO_RESOURCES;
        }
        let caps = Caps {
            sq_depth: create.sq_depth,
            rq_depth: create.rq_depth,
            sq_sge: create.sq_sge,
            rq_sge: create.rq_sge,
            max_inline: create.sq_max_inline,
            all_signaled: create.sq_signaled != FALSE,
        };
        let Some(qp) = ibal.hca.create_qp(service, pd, send_cq, recv_cq, caps) else { return NO_RESOURCES };
        let handle = qp.handle;
        let client = Client { context: qp_context.expose_provenance(), event: qp_event_cb };
        ibal.enter(handle, Some(pd), Object::Qp(qp), client);
        // SAFETY: the caller's pointer, checked not to be null.
        unsafe { give(ph_qp, handle.to_ptr()) };
        IB_SUCCESS
    }

    /// PASSIVE_LEVEL (`ib_query_qp`).
    [PASSIVE] fn query_qp(ibal, h_qp: ib_qp_handle_t, p_qp_attr: *mut ib_qp_attr_t) -> ib_api_status_t {
        let (_, qp) = ibal.qp(h_qp, "query_qp");
        if p_qp_attr.is_null() {
            return IB_INVALID_PARAMETER;
        }
        if fails("query_qp") {
            return IB_INSUFFICIENT_RESOURCES;
        }
        // SAFETY: the caller's pointer, checked not to be null.
        unsafe { give(p_qp_attr, described(&qp)) };
        IB_SUCCESS
    }

    /// PASSIVE_LEVEL (`ib_modify_qp`).
    [PASSIVE] fn modify_qp(ibal, h_qp: ib_qp_handle_t, p_qp_mod: *const ib_qp_mod_t) -> ib_api_status_t {
        let (_, qp) = ibal.qp(h_qp, "modify_qp");
        if p_qp_mod.is_null() {
            return IB_INVALID_PARAMETER;
        }
        // SAFETY: the caller's request, checked not to be null.
        match unsafe { wanted(&ibal, &qp, &p_qp_mod.read_unaligned()) } {
            Ok(modify) => change(&ibal, &qp, &modify, "modify_qp"),
            Err(status) => status,
        }
    }

    /// PASSIVE_LEVEL (`ib_init_dgrm_svc`): RESET, INIT, RTR, RTS in one call.
    [PASSIVE] fn init_dgrm_svc(ibal, h_qp: ib_qp_handle_t, p_dgrm_info: *const ib_dgrm_info_t) -> ib_api_status_t {
        let (_, qp) = ibal.qp(h_qp, "init_dgrm_svc");
        if p_dgrm_info.is_null() {
            return IB_INVALID_PARAMETER;
        }
        // SAFETY: the caller's data, checked not to be null.
        let info = unsafe { p_dgrm_info.read_unaligned() };
        let Some(port) = ibal.port_of(info.port_guid.get()) else { return IB_INVALID_GUID };
        let mut init = Modify::to(QpState::Init);
        init.attributes = Attributes {
            port: Some(port),
            // The header gives no byte order; the original passes the number on to a field in network order.
            qkey: Some(u32::from_be(info.qkey)),
            pkey_index: Some(info.pkey_index),
            ..Attributes::default()
        };
        let mut rts = Modify::to(QpState::Rts);
        rts.attributes.sq_psn = Some(0);
        for step in [Modify::to(QpState::Reset), init, Modify::to(QpState::Rtr), rts] {
            let status = change(&ibal, &qp, &step, "init_dgrm_svc");
            if status != IB_SUCCESS {
                return status;
            }
        }
        IB_SUCCESS
    }

    /// PASSIVE_LEVEL (`ib_destroy_qp`).
    [PASSIVE] fn destroy_qp(ibal, h_qp: ib_qp_handle_t, destroy_cb: ib_pfn_destroy_cb_t) -> ib_api_status_t {
        let (notice, latch) = notice(destroy_cb);
        let (handle, object) = ibal.begin_destroy(h_qp, Kind::Qp, notice, "destroy_qp");
        if let Object::Qp(qp) = object {
            ibal.hca.destroy_qp(&qp);
        }
        ibal.release(handle, "destroy_qp");
        if let Some(latch) = latch {
            latch.wait("destroy_qp");
        }
        IB_SUCCESS
    }
}

/// A request to change state, as the specification sees it.
///
/// # Errors
/// The status of `ib_modify_qp` for what this adapter cannot do or the request contradicts.
///
/// # Safety
/// The union of the request must hold what its state says; every member is plain data, so reading is always sound.
unsafe fn wanted(ibal: &Ibal, qp: &Qp, modify: &ib_qp_mod_t) -> Result<Modify, ib_api_status_t> {
    let to = match modify.req_state {
        ib_qp_state_t::IB_QPS_RESET => QpState::Reset,
        ib_qp_state_t::IB_QPS_INIT => QpState::Init,
        ib_qp_state_t::IB_QPS_RTR => QpState::Rtr,
        ib_qp_state_t::IB_QPS_RTS => QpState::Rts,
        ib_qp_state_t::IB_QPS_SQD
        | ib_qp_state_t::IB_QPS_SQD_DRAINED
        | ib_qp_state_t::IB_QPS_SQD_DRAINING => QpState::Sqd,
        ib_qp_state_t::IB_QPS_ERROR => QpState::Error,
        _ => return Err(IB_INVALID_SETTING),
    };
    let ud = qp.service == Service::Ud;
    let mut wanted = Modify::to(to);
    let depths = ib_qp_opts_t::IB_MOD_QP_SQ_DEPTH | ib_qp_opts_t::IB_MOD_QP_RQ_DEPTH;
    match to {
        QpState::Init => {
            // SAFETY: the caller's contract.
            let init = unsafe { modify.state.init };
            wanted.attributes = Attributes {
                port: Some(init.primary_port),
                pkey_index: Some(init.pkey_index),
                qkey: ud.then(|| init.qkey.get()),
                access: (!ud).then(|| init.access_ctrl.bits()),
                ..Attributes::default()
            };
        }
        QpState::Rtr => {
            // SAFETY: the caller's contract.
            let rtr = unsafe { modify.state.rtr };
            let has = |option| rtr.opts.contains(option);
            if rtr.opts.intersects(depths) {
                return Err(IB_UNSUPPORTED);
            }
            wanted.attributes.pkey_index = has(ib_qp_opts_t::IB_MOD_QP_PKEY).then_some(rtr.pkey_index);
            wanted.attributes.qkey = has(ib_qp_opts_t::IB_MOD_QP_QKEY).then(|| rtr.qkey.get());
            wanted.attributes.access =
                has(ib_qp_opts_t::IB_MOD_QP_ACCESS_CTRL).then(|| rtr.access_ctrl.bits());
            if !ud {
                let av = address::attributes(&ibal.hca, &rtr.primary_av)?;
                wanted.attributes.rq_psn = Some(rtr.rq_psn.get());
                wanted.attributes.dest_qpn = Some(rtr.dest_qp.get());
                wanted.attributes.rnr_timer = Some(rtr.rnr_nak_timeout);
                wanted.attributes.path = Some(PathAttr {
                    port: av.port,
                    dlid: av.dlid,
                    sl: av.sl,
                    path_bits: av.path_bits,
                    mtu: rtr.primary_av.conn.path_mtu,
                });
            }
        }
        QpState::Rts => {
            // SAFETY: the caller's contract.
            let rts = unsafe { modify.state.rts };
            let has = |option| rts.opts.contains(option);
            if rts.opts.intersects(depths) {
                return Err(IB_UNSUPPORTED);
            }
            let state = qp.attrs().state;
            if has(ib_qp_opts_t::IB_MOD_QP_CURRENT_STATE) && rts.current_state != state_bits(state) {
                return Err(IB_INVALID_QP_STATE);
            }
            // The PSN is a required field of RTR to RTS alone; elsewhere the structure has it, unread.
            wanted.attributes.sq_psn = (state == QpState::Rtr).then(|| rts.sq_psn.get());
            wanted.attributes.qkey = has(ib_qp_opts_t::IB_MOD_QP_QKEY).then(|| rts.qkey.get());
            wanted.attributes.pkey_index = has(ib_qp_opts_t::IB_MOD_QP_PKEY).then_some(rts.pkey_index);
            wanted.attributes.port = has(ib_qp_opts_t::IB_MOD_QP_PRIMARY_PORT).then_some(rts.primary_port);
            wanted.attributes.access =
                has(ib_qp_opts_t::IB_MOD_QP_ACCESS_CTRL).then(|| rts.access_ctrl.bits());
            wanted.attributes.rnr_timer =
                has(ib_qp_opts_t::IB_MOD_QP_RNR_NAK_TIMEOUT).then_some(rts.rnr_nak_timeout);
            if !ud && state == QpState::Rtr {
                wanted.attributes.retry = Some(Retry {
                    timeout: rts.local_ack_timeout,
                    count: rts.retry_cnt,
                    rnr: rts.rnr_retry_cnt,
                });
            }
        }
        QpState::Sqd => {
            // SAFETY: the caller's contract.
            wanted.notify_drained = unsafe { modify.state.sqd.sqd_event } != FALSE;
        }
        QpState::Reset | QpState::Error | QpState::Sqe => {}
    }
    Ok(wanted)
}

/// Carries out a change of state; one that the specification does not know breaks a rule.
fn change(ibal: &Ibal, qp: &Arc<Qp>, modify: &Modify, verb: &'static str) -> ib_api_status_t {
    if fails("modify_qp") {
        return IB_INSUFFICIENT_RESOURCES;
    }
    match ibal.hca.modify_qp(qp, modify) {
        Ok(_) => IB_SUCCESS,
        // What the port has now is not the driver's to know: a P_Key table can shrink at any time.
        Err(Refused::OutOfRange("the P_Key index")) => IB_INVALID_PKEY,
        Err(Refused::OutOfRange("the port")) => IB_INVALID_PORT,
        Err(why) => {
            let from = qp.attrs().state;
            verifier::violation(QP_STATE, verb, format!("QP {:#x}, {from} to {}: {why}", qp.qpn, modify.to))
        }
    }
}

fn state_bits(state: QpState) -> ib_qp_state_t {
    match state {
        QpState::Reset => ib_qp_state_t::IB_QPS_RESET,
        QpState::Init => ib_qp_state_t::IB_QPS_INIT,
        QpState::Rtr => ib_qp_state_t::IB_QPS_RTR,
        QpState::Rts => ib_qp_state_t::IB_QPS_RTS,
        QpState::Sqd => ib_qp_state_t::IB_QPS_SQD,
        QpState::Sqe => ib_qp_state_t::IB_QPS_SQERR,
        QpState::Error => ib_qp_state_t::IB_QPS_ERROR,
    }
}

fn described(qp: &Qp) -> ib_qp_attr_t {
    let attrs = qp.attrs();
    ib_qp_attr_t {
        h_pd: qp.pd.to_ptr(),
        qp_type: match qp.service {
            Service::Ud => IB_QPT_UNRELIABLE_DGRM,
            Service::Rc => IB_QPT_RELIABLE_CONN,
        },
        access_ctrl: ib_access_t::from_bits_retain(attrs.access),
        pkey_index: attrs.pkey_index,
        sq_max_inline: qp.caps.max_inline,
        sq_depth: qp.caps.sq_depth,
        rq_depth: qp.caps.rq_depth,
        sq_sge: qp.caps.sq_sge,
        rq_sge: qp.caps.rq_sge,
        init_depth: 0,
        resp_res: 0,
        h_sq_cq: qp.send_cq.handle.to_ptr(),
        h_rq_cq: qp.recv_cq.handle.to_ptr(),
        h_srq: std::ptr::null_mut(),
        sq_signaled: boolean_t::from(qp.caps.all_signaled),
        state: state_bits(attrs.state),
        num: ib_net32_t::new(qp.qpn),
        dest_num: ib_net32_t::new(attrs.dest_qpn),
        qkey: ib_net32_t::new(attrs.qkey),
        sq_psn: ib_net32_t::new(qp.send().psn),
        rq_psn: ib_net32_t::new(qp.recv().expected.psn()),
        primary_port: attrs.port,
        alternate_port: 0,
        primary_av: ib_av_attr_t::default(),
        alternate_av: ib_av_attr_t::default(),
        apm_state: IB_APM_MIGRATED,
    }
}
