//! Direct OID requests: not serialised, at IRQL <= DISPATCH_LEVEL, for miniports that register handlers for them
//! (network/miniport-adapter-direct-oid-requests).

use std::collections::HashMap;
use std::sync::Arc;

use windows_kernel_sys::{
    NDIS_HANDLE, NDIS_OID_REQUEST, NDIS_STATUS, NDIS_STATUS_NOT_SUPPORTED, NDIS_STATUS_PENDING,
};

use super::adapter::{Adapter, Core, refusal};
use super::call::{UP_TO_DISPATCH, entered, some_level};
use super::handle;
use super::oid::{InMemory, OidReply, OidRequest, TIME_LIMIT, is_final};
use super::rules::{self, broken};
use super::signal::Completion;
use crate::export;
use crate::sim::{Lock, SECOND};
use crate::verifier::call_driver;

/// The direct requests that the miniport has.
#[derive(Default)]
pub(super) struct DirectRequests(Lock<HashMap<usize, Arc<Completion<NDIS_STATUS>>>>);

impl Adapter {
    /// Sends a direct request to the miniport and waits for its end. From a thread at PASSIVE_LEVEL.
    pub fn direct_request(&self, asked: &OidRequest) -> OidReply {
        let call = "MiniportDirectOidRequest";
        let core = &self.0;
        let (may, removed) = {
            let life = core.life.lock();
            (life.phase.may_request(), life.removed)
        };
        let none = |status| OidReply { status, output: Vec::new(), needed: 0 };
        if !may {
            return none(refusal(removed));
        }
        let Some(handler) = core.driver.handlers().DirectOidRequestHandler else {
            return none(NDIS_STATUS_NOT_SUPPORTED);
        };
        let mut memory = InMemory::new(asked, core.requests.new_id());
        let pointer = memory.pointer();
        let completion: Arc<Completion<NDIS_STATUS>> = Arc::default();
        completion.ask();
        core.direct.0.lock().insert(pointer as usize, Arc::clone(&completion));
        let since = core.machine.sim().now();
        let context = core.context();
        // A call at DISPATCH_LEVEL cannot wait, this thread can once the handler has returned.
        let status = call_driver(call, some_level(), || {
            // SAFETY: the handler of the initialised miniport, with its own context and a request that lives until
            // it is completed.
            unsafe { handler(context, pointer) }
        });
        let status = if status == NDIS_STATUS_PENDING {
            completion.wait(call, since + TIME_LIMIT).unwrap_or_else(|| {
                let detail = format!("OID {:#010x} pending for {} s", asked.oid, TIME_LIMIT / SECOND);
                broken(&rules::NDIS_OID_NEVER_COMPLETED, call, detail)
            })
        } else {
            if completion.withdraw().is_some() {
                let detail =
                    format!("OID {:#010x}: completed, and returned {status:#010x} as well", asked.oid);
                broken(&rules::NDIS_OID_DOUBLE_COMPLETE, call, detail);
            }
            status
        };
        core.direct.0.lock().remove(&(pointer as usize));
        if !is_final(status) {
            broken(
                &rules::NDIS_OID_STATUS,
                call,
                format!("OID {:#010x} ended with {status:#010x}", asked.oid),
            );
        }
        memory.reply(status, call)
    }
}

export! { "ndis.sys";
    /// IRQL <= DISPATCH_LEVEL (ndis/nf-ndis-ndismdirectoidrequestcomplete).
    pub unsafe fn NdisMDirectOidRequestComplete(
        MiniportAdapterHandle: NDIS_HANDLE, OidRequest: *mut NDIS_OID_REQUEST, Status: NDIS_STATUS,
    ) {
        const CALL: &str = "NdisMDirectOidRequestComplete";
        entered(CALL, UP_TO_DISPATCH);
        let core: Arc<Core> = handle::get(MiniportAdapterHandle, CALL);
        let completion = core.direct.0.lock().get(&(OidRequest as usize)).cloned();
        let given = completion.is_some_and(|completion| completion.give(Status));
        if !given {
            broken(&rules::NDIS_OID_DOUBLE_COMPLETE, CALL, "this request is not with the miniport, or completed before");
        }
    }
}
