//! Queries of the subnet administrator, and datagrams.

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use ibal_sys::*;

use super::{DISPATCH, PASSIVE, fails, give, verbs};
use crate::fabric::wire::mad::{MAD_LEN, MadHeader};
use crate::hca::log::Event;
use crate::hca::rules::{MAD_PUT_TWICE, VERB_BAD_HANDLE};
use crate::hca::{Handle, Kind};
use crate::ibal::latch::Latch;
use crate::ibal::mads;
use crate::ibal::objects::{Client, Notice, Object};
use crate::ibal::query::{build, record_count};
use crate::ibal::sa::{Answer, Outcome};
use crate::ibal::{Ibal, transactions};
use crate::kernel::irql::DISPATCH_LEVEL;
use crate::verifier::{self, call_driver};

/// What of a request is needed at its end.
#[derive(Clone, Copy)]
struct Asked {
    al: Handle,
    query: Handle,
    port: u8,
    query_type: ib_query_type_t,
    attribute: u16,
    context: usize,
    callback: ib_pfn_query_cb_t,
}

verbs! {
    /// PASSIVE_LEVEL here (`ib_query`). The outcome comes by callback at DISPATCH_LEVEL, perhaps before this returns.
    [PASSIVE] fn query(ibal, h_al: ib_al_handle_t, p_query_req: *const ib_query_req_t,
        ph_query: *mut ib_query_handle_t) -> ib_api_status_t
    {
        let (al, _) = ibal.resolve(h_al, Kind::Al, "query");
        if p_query_req.is_null() {
            return IB_INVALID_PARAMETER;
        }
        // SAFETY: the caller's request, checked not to be null.
        let request = unsafe { p_query_req.read_unaligned() };
        if request.pfn_query_cb.is_none() {
            return IB_INVALID_CALLBACK;
        }
        // SAFETY: the caller's input, as its type says.
        let mad = match unsafe { build(&request) } {
            Ok(mad) => mad,
            Err(status) => return status,
        };
        let Some(port) = ibal.port_of(request.port_guid.get()) else { return IB_INVALID_GUID };
        let Some(sa) = ibal.sa(port) else { return IB_INVALID_GUID };
        if fails("query") {
            return IB_INSUFFICIENT_MEMORY;
        }
        let query = ibal.hca.new_handle(Kind::Query);
        let asked = Asked {
            al,
            query,
            port,
            query_type: request.query_type,
            attribute: transactions::header(&mad).attribute.0,
            context: request.query_context.expose_provenance(),
            callback: request.pfn_query_cb,
        };
        let sync = (request.flags & IB_FLAGS_SYNC != 0).then(|| Arc::new(Latch::default()));
        let client = Client::quiet(request.query_context);
        ibal.enter(query, Some(al), Object::Query { port, id: 0 }, client);
        // SAFETY: the caller's pointer; written before the callback can run.
        unsafe { give(ph_query, query.to_ptr()) };
        let (asker, latch) = (Arc::clone(&ibal), sync.clone());
        let sent = sa.request(mad, request.timeout_ms, request.retry_cnt, move |answer| {
            finish(&asker, &asked, &answer);
            if let Some(latch) = latch {
                latch.open();
            }
        });
        let Ok(id) = sent else {
            forget(&ibal, query);
            return IB_INVALID_GUID;
        };
        ibal.objects.replace(query, Object::Query { port, id });
        if let Some(latch) = sync {
            latch.wait("query");
        }
        IB_SUCCESS
    }

    /// DISPATCH_LEVEL or below (`ib_cancel_query`). A query that is over is no mistake: its handle is only compared.
    [DISPATCH] fn cancel_query(ibal, h_al: ib_al_handle_t, query_hndl: ib_query_handle_t) -> () {
        ibal.resolve(h_al, Kind::Al, "cancel_query");
        let known = Handle::from_ptr(query_hndl)
            .filter(|handle| handle.hca == ibal.hca.number && handle.kind == Kind::Query);
        let Some(handle) = known else {
            verifier::violation(VERB_BAD_HANDLE, "cancel_query", "no handle of a query of this machine")
        };
        if let Some((Object::Query { port, id }, _)) = ibal.objects.get(handle)
            && let Some(sa) = ibal.sa(port)
        {
            sa.cancel(id);
        }
    }

    /// DISPATCH_LEVEL or below (`ib_put_mad`).
    [DISPATCH] fn put_mad(ibal, _file: *const c_char, _line: i32, p_mad_element_list: *const ib_mad_element_t)
        -> ib_api_status_t
    {
        let mut next = p_mad_element_list.addr();
        if next == 0 {
            return IB_INVALID_PARAMETER;
        }
        while next != 0 {
            let Some(following) = ibal.mads.put_back(next) else {
                let detail = "not a MAD that was handed out, or put back before";
                verifier::violation(MAD_PUT_TWICE, "put_mad", detail)
            };
            ibal.machine.try_release(mads::LEDGER, next);
            next = following;
        }
        IB_SUCCESS
    }

    /// PASSIVE_LEVEL (`ib_local_mad`): the adapter's own agents answer. This one has no agent that a driver may
    /// ask, so every datagram is answered with the status "unsupported method".
    [PASSIVE] fn local_mad(ibal, h_ca: ib_ca_handle_t, port_num: u8, p_mad_in: *const c_void,
        p_mad_out: *mut c_void) -> ib_api_status_t
    {
        ibal.resolve(h_ca, Kind::Ca, "local_mad");
        if p_mad_in.is_null() || p_mad_out.is_null() {
            return IB_INVALID_PARAMETER;
        }
        if ibal.hca.port(port_num).is_none() {
            return IB_INVALID_PORT;
        }
        if fails("local_mad") {
            return IB_INSUFFICIENT_RESOURCES;
        }
        // SAFETY: the caller's datagrams of 256 bytes.
        let mut mad = unsafe { p_mad_in.cast::<[u8; MAD_LEN]>().read_unaligned() };
        let header = transactions::header(&mad);
        let answer = MadHeader {
            method: header.method.response(),
            status: crate::fabric::wire::mad::Status::UNSUPPORTED_METHOD,
            ..header
        };
        transactions::set_header(&mut mad, &answer);
        // SAFETY: as above.
        unsafe { p_mad_out.cast::<[u8; MAD_LEN]>().write_unaligned(mad) };
        IB_SUCCESS
    }
}

/// The query is over; in a DPC.
fn finish(ibal: &Arc<Ibal>, asked: &Asked, answer: &Answer) {
    let status = match answer.outcome {
        Outcome::Success => IB_SUCCESS,
        Outcome::Remote(_) => IB_REMOTE_ERROR,
        Outcome::Timeout => IB_TIMEOUT,
        Outcome::Canceled => IB_CANCELED,
    };
    ibal.hca.note(Event::Queried { attribute: asked.attribute, status: status.0, sent: answer.sent });
    let port = ibal.hca.port(asked.port).map(crate::hca::HcaPort::view);
    let from = port.map_or((0, 0), |port| (port.sm_lid.0, port.sm_sl));
    let p_result_mad = answer.mad.as_deref().map_or(std::ptr::null_mut(), |mad| {
        let element = ibal.mads.hand_out(asked.al, mad, from);
        ibal.machine.acquire(mads::LEDGER, element as usize, asked.query.to_string());
        element
    });
    let mut record = ib_query_rec_t {
        query_context: std::ptr::with_exposed_provenance(asked.context),
        status,
        query_type: asked.query_type,
        result_cnt: match (&answer.mad, status) {
            (Some(mad), IB_SUCCESS) => record_count(mad),
            _ => 0,
        },
        p_result_mad,
    };
    if let Some(callback) = asked.callback {
        call_driver("query callback", DISPATCH_LEVEL, || {
            // SAFETY: the driver's own callback, with a record that lives for the call.
            unsafe { callback(&raw mut record) };
        });
    }
    forget(ibal, asked.query);
}

fn forget(ibal: &Ibal, query: Handle) {
    if ibal.objects.begin_destroy(query, Notice::None).is_ok() {
        ibal.release(query, "query");
    }
}
