//! OID requests: one at a time to the miniport, at PASSIVE_LEVEL, each completed once
//! (network/miniport-adapter-oid-request-serialization, ndis/nc-ndis-miniport_oid_request).

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use windows_kernel_sys::{
    NDIS_HANDLE, NDIS_OBJECT_HEADER, NDIS_OBJECT_TYPE_OID_REQUEST, NDIS_OID, NDIS_OID_METHOD_INFORMATION,
    NDIS_OID_QUERY_INFORMATION, NDIS_OID_REQUEST, NDIS_OID_REQUEST_REVISION_2, NDIS_OID_SET_INFORMATION,
    NDIS_SIZEOF_OID_REQUEST_REVISION_2, NDIS_STATUS, NDIS_STATUS_BUFFER_OVERFLOW,
    NDIS_STATUS_BUFFER_TOO_SHORT, NDIS_STATUS_INVALID_LENGTH, NDIS_STATUS_PENDING, NDIS_STATUS_SUCCESS,
    NdisRequestMethod, NdisRequestQueryInformation, NdisRequestQueryStatistics, NdisRequestSetInformation,
    Zeroable,
};

use super::adapter::{Adapter, Core, refusal};
use super::call::{UP_TO_DISPATCH, entered};
use super::handle;
use super::memory::Block;
use super::rules::{self, broken};
use super::signal::{Completion, Turn};
use crate::export;
use crate::kernel::irql::PASSIVE_LEVEL;
use crate::sim::{Lock, Nanos, SECOND};
use crate::verifier::call_driver;

/// devtest/ndis-ndistimedoidcomplete.
pub(super) const TIME_LIMIT: Nanos = 12 * SECOND;

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OidKind {
    /// `NdisRequestQueryInformation`.
    Query,
    /// `NdisRequestQueryStatistics`.
    QueryStatistics,
    /// `NdisRequestSetInformation`.
    Set,
    /// `NdisRequestMethod`.
    Method,
}

/// A request.
#[derive(Clone, Debug)]
pub struct OidRequest {
    /// The object.
    pub oid: NDIS_OID,
    /// What to do with it.
    pub kind: OidKind,
    /// Bytes for the miniport to read; they stand at the start of the buffer.
    pub input: Vec<u8>,
    /// Bytes of buffer for the miniport to write into.
    pub room: usize,
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OidReply {
    /// The final status.
    pub status: NDIS_STATUS,
    /// What the miniport wrote, as far as it says it did.
    pub output: Vec<u8>,
    /// `BytesNeeded`.
    pub needed: u32,
}

/// A request under way.
pub(super) struct Requests {
    /// Whose request is with the miniport.
    pub turn: Turn,
    completion: Completion<NDIS_STATUS>,
    current: Lock<Option<Current>>,
    /// The request that was with the miniport when the last reset began.
    at_reset: Lock<Option<usize>>,
    next_id: AtomicUsize,
}

#[derive(Clone, Copy)]
struct Current {
    request: usize,
    id: usize,
    oid: NDIS_OID,
    since: Nanos,
}

impl Default for Requests {
    fn default() -> Self {
        Self {
            turn: Turn::default(),
            completion: Completion::default(),
            current: Lock::default(),
            at_reset: Lock::default(),
            next_id: AtomicUsize::new(1),
        }
    }
}

impl Requests {
    /// Whether a request is with the miniport.
    pub fn is_pending(&self) -> bool {
        self.current.lock().is_some()
    }

    /// A `RequestId` that no other request of the adapter has.
    pub fn new_id(&self) -> usize {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Notes which request is with the miniport as a reset begins.
    pub fn mark_reset(&self) {
        let id = self.pending().map(|(id, ..)| id);
        *self.at_reset.lock() = id;
    }

    /// Whether that request is still with the miniport, not completed.
    pub fn before_reset(&self) -> bool {
        let id = *self.at_reset.lock();
        id.is_some() && id == self.pending().map(|(id, ..)| id) && self.completion.is_open()
    }

    /// The identity of the request that is with the miniport, its OID and since when.
    pub fn pending(&self) -> Option<(usize, NDIS_OID, Nanos)> {
        self.current.lock().map(|current| (current.id, current.oid, current.since))
    }
}

/// A request in memory, as the miniport sees it: the buffer is a block of its own, so that a byte too many is found.
pub(super) struct InMemory {
    request: Box<NDIS_OID_REQUEST>,
    buffer: Option<Block>,
    kind: OidKind,
    input: usize,
    room: usize,
}

impl InMemory {
    pub fn new(asked: &OidRequest, id: usize) -> Self {
        let length = asked.input.len().max(asked.room);
        let buffer = (length > 0).then(|| Block::new(length));
        let pointer = buffer.as_ref().map_or(ptr::null_mut(), Block::pointer);
        if !asked.input.is_empty() {
            // SAFETY: the block holds at least the input.
            unsafe { ptr::copy_nonoverlapping(asked.input.as_ptr(), pointer, asked.input.len()) };
        }
        let mut request = Box::new(NDIS_OID_REQUEST::zeroed());
        request.Header = NDIS_OBJECT_HEADER::new(
            NDIS_OBJECT_TYPE_OID_REQUEST,
            NDIS_OID_REQUEST_REVISION_2,
            NDIS_SIZEOF_OID_REQUEST_REVISION_2,
        );
        request.RequestId = id as *mut c_void;
        let (oid, buffer_pointer) = (asked.oid, pointer.cast::<c_void>());
        match asked.kind {
            OidKind::Query | OidKind::QueryStatistics => {
                request.RequestType = match asked.kind {
                    OidKind::Query => NdisRequestQueryInformation,
                    _ => NdisRequestQueryStatistics,
                };
                request.DATA.QUERY_INFORMATION = NDIS_OID_QUERY_INFORMATION {
                    Oid: oid,
                    InformationBuffer: buffer_pointer,
                    InformationBufferLength: asked.room as u32,
                    BytesWritten: 0,
                    BytesNeeded: 0,
                };
            }
            OidKind::Set => {
                request.RequestType = NdisRequestSetInformation;
                request.DATA.SET_INFORMATION = NDIS_OID_SET_INFORMATION {
                    Oid: oid,
                    InformationBuffer: buffer_pointer,
                    InformationBufferLength: asked.input.len() as u32,
                    BytesRead: 0,
                    BytesNeeded: 0,
                };
            }
            OidKind::Method => {
                request.RequestType = NdisRequestMethod;
                request.DATA.METHOD_INFORMATION = NDIS_OID_METHOD_INFORMATION {
                    Oid: oid,
                    InformationBuffer: buffer_pointer,
                    InputBufferLength: asked.input.len() as u32,
                    OutputBufferLength: asked.room as u32,
                    MethodId: 0,
                    BytesWritten: 0,
                    BytesRead: 0,
                    BytesNeeded: 0,
                };
            }
        }
        Self { request, buffer, kind: asked.kind, input: asked.input.len(), room: asked.room }
    }

    /// As the miniport gets it.
    pub fn pointer(&mut self) -> *mut NDIS_OID_REQUEST {
        &raw mut *self.request
    }

    /// `BytesWritten`, `BytesRead`, `BytesNeeded`.
    fn lengths(&self) -> (u32, u32, u32) {
        match self.kind {
            OidKind::Query | OidKind::QueryStatistics => {
                // SAFETY: the member that `RequestType` names was written by `new`.
                let data = unsafe { self.request.DATA.QUERY_INFORMATION };
                (data.BytesWritten, 0, data.BytesNeeded)
            }
            OidKind::Set => {
                // SAFETY: as above.
                let data = unsafe { self.request.DATA.SET_INFORMATION };
                (0, data.BytesRead, data.BytesNeeded)
            }
            OidKind::Method => {
                // SAFETY: as above.
                let data = unsafe { self.request.DATA.METHOD_INFORMATION };
                (data.BytesWritten, data.BytesRead, data.BytesNeeded)
            }
        }
    }

    pub fn reply(&self, status: NDIS_STATUS, call: &str) -> OidReply {
        let (written, read, needed) = self.lengths();
        let wrong = if written as usize > self.room {
            Some(format!("BytesWritten {written} exceeds the buffer of {}", self.room))
        } else if read as usize > self.input {
            Some(format!("BytesRead {read} exceeds the buffer of {}", self.input))
        } else if status == NDIS_STATUS_BUFFER_TOO_SHORT
            || status == NDIS_STATUS_INVALID_LENGTH && self.is_query()
        {
            let length = if self.is_query() { self.room } else { self.input };
            (needed as usize <= length && status == NDIS_STATUS_BUFFER_TOO_SHORT)
                .then(|| format!("too short, but BytesNeeded {needed} is not above the length {length}"))
        } else {
            None
        };
        if let Some(wrong) = wrong {
            // SAFETY: every member of the union begins with the OID.
            let oid = unsafe { self.request.DATA.Oid };
            broken(&rules::NDIS_OID_LENGTH, call, format!("OID {oid:#010x}: {wrong}"));
        }
        let output = match &self.buffer {
            // SAFETY: the block holds `room` bytes, and `written` is no more.
            Some(block) => unsafe { std::slice::from_raw_parts(block.pointer(), written as usize) }.to_vec(),
            None => Vec::new(),
        };
        OidReply { status, output, needed }
    }

    fn is_query(&self) -> bool {
        self.kind != OidKind::Set
    }
}

/// Statuses with which an OID request may end are errors, or these.
pub(super) fn is_final(status: NDIS_STATUS) -> bool {
    status < 0
        || matches!(
            status,
            NDIS_STATUS_SUCCESS
                | windows_kernel_sys::NDIS_STATUS_NOT_ACCEPTED
                | windows_kernel_sys::NDIS_STATUS_NOT_RECOGNIZED
                | windows_kernel_sys::NDIS_STATUS_INDICATION_REQUIRED
                | NDIS_STATUS_BUFFER_OVERFLOW
        )
}

impl Core {
    /// Sends a request to the miniport and waits for its end. `holding` says that the caller has the requests' turn.
    fn request(&self, asked: &OidRequest) -> OidReply {
        let call = "MiniportOidRequest";
        let _turn = self.requests.turn.take("the turn of an OID request");
        let (may, removed) = {
            let life = self.life.lock();
            (life.phase.may_request(), life.removed)
        };
        let Some(handler) = self.driver.handlers().OidRequestHandler.filter(|_| may) else {
            return OidReply { status: refusal(removed), output: Vec::new(), needed: 0 };
        };
        let id = self.requests.new_id();
        let mut memory = InMemory::new(asked, id);
        let pointer = memory.pointer();
        let since = self.machine.sim().now();
        *self.requests.current.lock() =
            Some(Current { request: pointer as usize, id, oid: asked.oid, since });
        self.requests.completion.ask();
        self.count(|counters| counters.oids += 1);
        let context = self.context();
        let status = call_driver(call, PASSIVE_LEVEL, || {
            // SAFETY: the handler of the initialised miniport, with its own context and a request that lives until it
            // is completed.
            unsafe { handler(context, pointer) }
        });
        let status = if status == NDIS_STATUS_PENDING {
            match self.requests.completion.wait(call, since + TIME_LIMIT) {
                Some(status) => status,
                None => broken(
                    &rules::NDIS_OID_NEVER_COMPLETED,
                    call,
                    format!("OID {:#010x} pending for {} s", asked.oid, TIME_LIMIT / SECOND),
                ),
            }
        } else {
            if self.requests.completion.withdraw().is_some() {
                let detail =
                    format!("OID {:#010x}: completed, and returned {status:#010x} as well", asked.oid);
                broken(&rules::NDIS_OID_DOUBLE_COMPLETE, call, detail);
            }
            status
        };
        *self.requests.current.lock() = None;
        if !is_final(status) {
            broken(
                &rules::NDIS_OID_STATUS,
                call,
                format!("OID {:#010x} ended with {status:#010x}", asked.oid),
            );
        }
        self.trace("oid", u64::from(asked.oid) << 32 | u64::from(status as u32));
        memory.reply(status, call)
    }
}

impl Adapter {
    /// Sends a request to the miniport and waits for its end.
    pub fn request(&self, request: &OidRequest) -> OidReply {
        self.0.request(request)
    }

    /// Queries an object, growing the buffer once if it is too short.
    pub fn query(&self, oid: NDIS_OID, room: usize) -> Result<Vec<u8>, NDIS_STATUS> {
        let ask = |room| self.request(&OidRequest { oid, kind: OidKind::Query, input: Vec::new(), room });
        let mut reply = ask(room);
        let short = matches!(
            reply.status,
            NDIS_STATUS_BUFFER_TOO_SHORT | NDIS_STATUS_INVALID_LENGTH | NDIS_STATUS_BUFFER_OVERFLOW
        );
        if short && reply.needed as usize > room {
            reply = ask(reply.needed as usize);
        }
        if reply.status == NDIS_STATUS_SUCCESS { Ok(reply.output) } else { Err(reply.status) }
    }

    /// Queries a 32-bit number.
    pub fn query_u32(&self, oid: NDIS_OID) -> Result<u32, NDIS_STATUS> {
        let bytes = self.query(oid, 4)?;
        bytes.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes)).ok_or(NDIS_STATUS_INVALID_LENGTH)
    }

    /// Queries a counter that a miniport may answer in 32 or 64 bits.
    pub fn query_counter(&self, oid: NDIS_OID) -> Result<u64, NDIS_STATUS> {
        let bytes = self.query(oid, 8)?;
        match (bytes.first_chunk::<8>(), bytes.first_chunk::<4>()) {
            (Some(bytes), _) => Ok(u64::from_ne_bytes(*bytes)),
            (None, Some(bytes)) => Ok(u32::from_ne_bytes(*bytes).into()),
            _ => Err(NDIS_STATUS_INVALID_LENGTH),
        }
    }

    /// Sets an object.
    pub fn set(&self, oid: NDIS_OID, value: &[u8]) -> Result<(), NDIS_STATUS> {
        let reply = self.request(&OidRequest { oid, kind: OidKind::Set, input: value.to_vec(), room: 0 });
        if reply.status == NDIS_STATUS_SUCCESS { Ok(()) } else { Err(reply.status) }
    }

    /// Sends a request from a thread of its own and calls `done` there with the reply.
    pub fn request_async(&self, request: OidRequest, done: impl FnOnce(OidReply) + Send + 'static) {
        let adapter = self.clone();
        self.0.machine.spawn_thread("OID request", move || done(adapter.request(&request)));
    }

    /// Calls MiniportCancelOidRequest for the request that is with the miniport, if there is one.
    pub fn cancel_pending_request(&self) -> bool {
        let Some((id, ..)) = self.0.requests.pending() else { return false };
        let Some(cancel) = self.0.driver.handlers().CancelOidRequestHandler else { return false };
        let context = self.0.context();
        call_driver("MiniportCancelOidRequest", super::call::some_level(), || {
            // SAFETY: the handler of the initialised miniport, with its own context; the id is a number to compare.
            unsafe { cancel(context, id as *mut c_void) };
        });
        true
    }
}

export! { "ndis.sys";
    /// IRQL <= DISPATCH_LEVEL (ndis/nf-ndis-ndismoidrequestcomplete).
    pub unsafe fn NdisMOidRequestComplete(
        MiniportAdapterHandle: NDIS_HANDLE, OidRequest: *mut NDIS_OID_REQUEST, Status: NDIS_STATUS,
    ) {
        const CALL: &str = "NdisMOidRequestComplete";
        entered(CALL, UP_TO_DISPATCH);
        let core: Arc<Core> = handle::get(MiniportAdapterHandle, CALL);
        let current = *core.requests.current.lock();
        if current.is_none_or(|current| current.request != OidRequest as usize) {
            broken(&rules::NDIS_OID_DOUBLE_COMPLETE, CALL, "this request is not with the miniport");
        }
        if Status == NDIS_STATUS_PENDING {
            broken(&rules::NDIS_OID_STATUS, CALL, "completed with NDIS_STATUS_PENDING");
        }
        if !core.requests.completion.give(Status) {
            broken(&rules::NDIS_OID_DOUBLE_COMPLETE, CALL, "the request has already been completed");
        }
    }
}
