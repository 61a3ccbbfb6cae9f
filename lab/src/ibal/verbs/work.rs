//! Work requests and completions: the verbs of the data path.

use std::sync::Arc;

use ibal_sys::*;

use super::{DISPATCH, fails, give, verbs};
use crate::hca::cq::{Arm, Completion, CompletionKind, Cq, Status};
use crate::hca::mem::{Element, Fault, Physical};
use crate::hca::qp::{PostError, Qp, RecvRequest, SendRequest};
use crate::hca::qp_state::Service;
use crate::hca::rules::{QP_STATE, QP_TOO_MANY_ELEMENTS};
use crate::hca::{Kind, memory_violation};
use crate::ibal::Ibal;
use crate::ibal::objects::Object;
use crate::verifier;

verbs! {
    /// DISPATCH_LEVEL or below (`ib_post_send`).
    [DISPATCH] fn post_send(ibal, h_qp: ib_qp_handle_t, p_send_wr: *mut ib_send_wr_t,
        pp_send_failure: *mut *mut ib_send_wr_t) -> ib_api_status_t
    {
        let (_, qp) = ibal.qp(h_qp, "post_send");
        if p_send_wr.is_null() {
            return IB_INVALID_PARAMETER;
        }
        let mut at = p_send_wr;
        while !at.is_null() {
            // SAFETY: a request of the caller's list, which is his until this returns.
            let request = unsafe { at.read_unaligned() };
            if at == p_send_wr && !request.p_next.is_null() && pp_send_failure.is_null() {
                return IB_INVALID_PARAMETER;
            }
            // SAFETY: as above, with its elements.
            let status = unsafe { send_one(&ibal, &qp, &request) };
            if status != IB_SUCCESS {
                // SAFETY: the caller's pointer.
                unsafe { give(pp_send_failure, at) };
                return status;
            }
            at = request.p_next;
        }
        IB_SUCCESS
    }

    /// DISPATCH_LEVEL or below (`ib_post_recv`).
    [DISPATCH] fn post_recv(ibal, h_qp: ib_qp_handle_t, p_recv_wr: *mut ib_recv_wr_t,
        pp_recv_failure: *mut *mut ib_recv_wr_t) -> ib_api_status_t
    {
        let (_, qp) = ibal.qp(h_qp, "post_recv");
        if p_recv_wr.is_null() {
            return IB_INVALID_PARAMETER;
        }
        let mut at = p_recv_wr;
        while !at.is_null() {
            // SAFETY: a request of the caller's list, which is his until this returns.
            let request = unsafe { at.read_unaligned() };
            if at == p_recv_wr && !request.p_next.is_null() && pp_recv_failure.is_null() {
                return IB_INVALID_PARAMETER;
            }
            // SAFETY: as above, with its elements.
            let status = unsafe { recv_one(&ibal, &qp, &request) };
            if status != IB_SUCCESS {
                // SAFETY: the caller's pointer.
                unsafe { give(pp_recv_failure, at) };
                return status;
            }
            at = request.p_next;
        }
        IB_SUCCESS
    }

    /// DISPATCH_LEVEL or below (`ib_poll_cq`).
    [DISPATCH] fn poll_cq(ibal, h_cq: ib_cq_handle_t, pp_free_wclist: *mut *mut ib_wc_t,
        pp_done_wclist: *mut *mut ib_wc_t) -> ib_api_status_t
    {
        let (_, cq) = ibal.cq(h_cq, "poll_cq");
        if pp_free_wclist.is_null() || pp_done_wclist.is_null() {
            return IB_INVALID_PARAMETER;
        }
        // SAFETY: the caller's pointers, checked not to be null, and the list of entries that he gives.
        unsafe { poll(&ibal, &cq, pp_free_wclist, pp_done_wclist) }
    }

    /// DISPATCH_LEVEL or below (`ib_rearm_cq`).
    [DISPATCH] fn rearm_cq(ibal, h_cq: ib_cq_handle_t, solicited: boolean_t) -> ib_api_status_t {
        let (_, cq) = ibal.cq(h_cq, "rearm_cq");
        cq.arm(if solicited == FALSE { Arm::Next } else { Arm::Solicited });
        IB_SUCCESS
    }
}

/// # Safety
/// `array` must lead to `count` elements.
unsafe fn elements(array: *const ib_local_ds_t, count: u32) -> Vec<Element> {
    let element = |index| {
        // SAFETY: the caller's contract.
        let ds = unsafe { array.add(index).read_unaligned() };
        Element { address: ds.vaddr, length: ds.length, lkey: ds.lkey }
    };
    (0..count as usize).map(element).collect()
}

fn posted(qp: &Qp, verb: &'static str, result: Result<(), PostError>) -> ib_api_status_t {
    match result {
        Ok(()) => IB_SUCCESS,
        Err(PostError::Full) => IB_INSUFFICIENT_RESOURCES,
        Err(PostError::State(state)) => {
            verifier::violation(QP_STATE, verb, format!("QP {:#x} is in {state}", qp.qpn))
        }
        Err(why @ (PostError::TooManyElements | PostError::InlineTooLong)) => {
            verifier::violation(QP_TOO_MANY_ELEMENTS, verb, format!("QP {:#x}: {why:?}", qp.qpn))
        }
    }
}

/// # Safety
/// The request's elements must be there.
unsafe fn send_one(ibal: &Ibal, qp: &Arc<Qp>, wr: &ib_send_wr_t) -> ib_api_status_t {
    if wr.wr_type != WR_SEND {
        return IB_INVALID_WR_TYPE;
    }
    if fails("post_send") {
        return IB_INSUFFICIENT_RESOURCES;
    }
    // SAFETY: the caller's contract.
    let list = unsafe { elements(wr.ds_array, wr.num_ds) };
    let inline = if wr.send_opt.contains(ib_send_opt_t::IB_SEND_OPT_INLINE) {
        match copy_inline(ibal, &list) {
            Ok(data) => Some(data),
            Err(fault) => memory_violation("post_send", qp, wr.wr_id, &fault),
        }
    } else {
        if let Err(fault) = ibal.hca.check_elements(qp.pd, &list, false) {
            memory_violation("post_send", qp, wr.wr_id, &fault);
        }
        None
    };
    // SAFETY: every member of the unions is plain data; for a datagram it is this one that counts.
    let (ud, immediate) = unsafe { (wr.op.dgrm.ud, wr.data.immediate_data) };
    let av = match qp.service {
        Service::Ud => match ibal.resolve(ud.h_av, Kind::Av, "post_send") {
            (handle, Object::Av(av)) => {
                if av.pd != qp.pd {
                    let detail = format!("{handle} belongs to another protection domain than the queue pair");
                    verifier::violation(crate::hca::rules::VERB_BAD_HANDLE, "post_send", detail);
                }
                Some(av)
            }
            (handle, _) => unreachable!("{handle} is entered as what it is"),
        },
        Service::Rc => None,
    };
    let has = |option| wr.send_opt.contains(option);
    let request = SendRequest {
        wr_id: wr.wr_id,
        elements: list,
        inline,
        signaled: qp.caps.all_signaled || has(ib_send_opt_t::IB_SEND_OPT_SIGNALED),
        solicited: has(ib_send_opt_t::IB_SEND_OPT_SOLICITED),
        immediate: has(ib_send_opt_t::IB_SEND_OPT_IMMEDIATE).then(|| immediate.get()),
        av,
        remote_qpn: ud.remote_qp.get(),
        remote_qkey: ud.remote_qkey.get(),
    };
    posted(qp, "post_send", ibal.hca.post_send(qp, request))
}

/// The payload of an inline send. Its elements hold physical addresses like any others of this driver, but no key is
/// read, so any memory will do.
fn copy_inline(ibal: &Ibal, list: &[Element]) -> Result<Vec<u8>, Fault> {
    let mut data = Vec::new();
    let memory = ibal.hca.memory();
    for &element in list {
        let mut done = 0;
        while done < element.length {
            let pa = element.address + u64::from(done);
            let n = (4096 - (pa % 4096) as u32).min(element.length - done);
            let from = memory.locate(pa, n as usize).map_err(|why| Fault::NoMemory { element, pa, why })?;
            // SAFETY: `locate` vouches for `n` bytes at `from`.
            data.extend_from_slice(unsafe { std::slice::from_raw_parts(from.as_ptr(), n as usize) });
            done += n;
        }
    }
    Ok(data)
}

/// # Safety
/// The request's elements must be there.
unsafe fn recv_one(ibal: &Ibal, qp: &Arc<Qp>, wr: &ib_recv_wr_t) -> ib_api_status_t {
    if fails("post_recv") {
        return IB_INSUFFICIENT_RESOURCES;
    }
    // SAFETY: the caller's contract.
    let list = unsafe { elements(wr.ds_array, wr.num_ds) };
    if let Err(fault) = ibal.hca.check_elements(qp.pd, &list, true) {
        memory_violation("post_recv", qp, wr.wr_id, &fault);
    }
    posted(qp, "post_recv", ibal.hca.post_recv(qp, RecvRequest { wr_id: wr.wr_id, elements: list }))
}

/// # Safety
/// The pointers must be valid, and the free list a list of entries that the caller owns.
unsafe fn poll(
    ibal: &Ibal,
    cq: &Cq,
    pp_free_wclist: *mut *mut ib_wc_t,
    pp_done_wclist: *mut *mut ib_wc_t,
) -> ib_api_status_t {
    // SAFETY: the caller's contract.
    let mut free = unsafe { pp_free_wclist.read_unaligned() };
    let mut first: *mut ib_wc_t = std::ptr::null_mut();
    let mut last: *mut ib_wc_t = std::ptr::null_mut();
    while !free.is_null() {
        let Some(completion) = cq.poll() else { break };
        if let Some(qp) = ibal.hca.qp_by_number(completion.qpn) {
            qp.polled(&completion);
        }
        // SAFETY: the caller's contract: an entry of his list.
        unsafe {
            let next = (*free).p_next;
            free.write(work_completion(&completion));
            if last.is_null() {
                first = free;
            } else {
                (*last).p_next = free;
            }
            last = free;
            free = next;
        }
    }
    // SAFETY: the caller's contract.
    unsafe {
        pp_free_wclist.write_unaligned(free);
        pp_done_wclist.write_unaligned(first);
    }
    if first.is_null() { IB_NOT_FOUND } else { IB_SUCCESS }
}

fn work_completion(completion: &Completion) -> ib_wc_t {
    let from = &completion.receive;
    let mut recv_opt = ib_recv_opt_t::empty();
    recv_opt.set(ib_recv_opt_t::IB_RECV_OPT_GRH_VALID, from.grh);
    recv_opt.set(ib_recv_opt_t::IB_RECV_OPT_IMMEDIATE, from.immediate.is_some());
    ib_wc_t {
        p_next: std::ptr::null_mut(),
        wr_id: completion.wr_id,
        wc_type: match completion.kind {
            CompletionKind::Send => IB_WC_SEND,
            CompletionKind::Recv => IB_WC_RECV,
        },
        length: completion.length,
        vendor_specific: 0,
        status: match completion.status {
            Status::Success => IB_WCS_SUCCESS,
            Status::LocalLength => IB_WCS_LOCAL_LEN_ERR,
            Status::LocalOperation => IB_WCS_LOCAL_OP_ERR,
            Status::LocalProtection => IB_WCS_LOCAL_PROTECTION_ERR,
            Status::Flushed => IB_WCS_WR_FLUSHED_ERR,
            Status::Timeout => IB_WCS_TIMEOUT_RETRY_ERR,
            Status::ReceiverNotReady => IB_WCS_RNR_RETRY_ERR,
            Status::RemoteInvalidRequest => IB_WCS_REM_INVALID_REQ_ERR,
            Status::General => IB_WCS_GENERAL_ERR,
        },
        recv: ib_wc_recv {
            ud: ib_wc_ud {
                recv_opt,
                immediate_data: ib_net32_t::new(from.immediate.unwrap_or(0)),
                remote_qp: ib_net32_t::new(from.src_qpn),
                pkey_index: from.pkey_index,
                remote_lid: ib_net16_t::new(from.slid),
                remote_sl: from.sl,
                path_bits: from.path_bits,
            },
        },
    }
}
