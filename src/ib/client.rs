//! Whom the access layer calls back: one trait, and the functions that turn its raw calls into it.

use core::ffi::c_void;

use ibal_sys::*;

use crate::kernel::arc::PoolArc;
use crate::kernel::irql::{Dispatch, Passive};

use super::mcast::{JoinError, Member};
use super::pnp::PortEvent;
use super::query::{PathRecord, QueryError};

/// Receives what the access layer reports. The adapter implements it.
///
/// Every object that can call back holds a reference to its client until it is dropped, and every request
/// until its last callback, so the client outlives each call.
pub trait Client: Send + Sync + Sized + 'static {
    /// The receive CQ has completions. It is disarmed: poll until it is empty, rearm, poll once more.
    ///
    /// Runs in the DPC of the adapter's event queue (`ib_pfn_comp_cb_t`). Not again before a rearm.
    fn receive_ready(&self, at: Dispatch<'_>);

    /// The send CQ has completions, as above.
    fn send_ready(&self, at: Dispatch<'_>);

    /// Something happened to the port, or registration is complete. Only this client's port is reported.
    ///
    /// Runs on the one PnP thread of the access layer (`al_pnp.c`): never twice at once.
    fn port_event(&self, event: PortEvent<'_>, at: &mut Passive<'_>);

    /// An asynchronous event of the CA, a CQ or the QP.
    ///
    /// Runs on the access layer's thread for asynchronous processing (`al_ci_ca_shared.c`).
    fn resource_event(&self, event: AsyncEvent, at: &mut Passive<'_>);

    /// The end of the query with this token: once for each that was started.
    ///
    /// The access layer calls from a DPC, or, for a query that ends because its port goes, from a thread
    /// (`al_mad.c`); the level is raised for that case. May come before the call that started the query
    /// returned.
    fn query_done(&self, token: u64, result: Result<PathRecord, QueryError>, at: Dispatch<'_>);

    /// The end of the join with this token: once for each that was started.
    ///
    /// Runs on the access layer's thread for asynchronous processing (`al_mcast.c`). May come before the call
    /// that started the join returned.
    fn join_done(&self, token: u64, result: Result<Member, JoinError>, at: &mut Passive<'_>);

    /// The membership with this token is gone: the administrator answered the leave or did not, the QP is
    /// detached. Once for each leave that was started.
    ///
    /// Runs on the access layer's thread for the destruction of objects (`al_common.c`).
    fn leave_done(&self, token: u64, at: &mut Passive<'_>);
}

/// What an asynchronous event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The channel adapter.
    Ca,
    /// The send CQ.
    SendCq,
    /// The receive CQ.
    ReceiveCq,
    /// The QP.
    Qp,
}

/// An asynchronous event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsyncEvent {
    /// What it is about.
    pub source: Source,
    /// What happened.
    pub code: ib_async_event_t,
}

impl AsyncEvent {
    /// Whether the object cannot go on: a QP that left RTS, a CQ that lost completions, an adapter that is
    /// lost.
    pub const fn is_fatal(self) -> bool {
        matches!(
            self.code,
            IB_AE_SQ_ERROR
                | IB_AE_RQ_ERROR
                | IB_AE_CQ_ERROR
                | IB_AE_CQ_OVERFLOW
                | IB_AE_QP_FATAL
                | IB_AE_WQ_REQ_ERROR
                | IB_AE_WQ_ACCESS_ERROR
                | IB_AE_LOCAL_FATAL
        )
    }
}

/// A reference to the client in the keeping of an object of the access layer, whose type it does not know.
pub(super) struct Context {
    client: *const c_void,
    release: unsafe fn(*const c_void),
}

// SAFETY: a counted reference to a client, which is Send and Sync.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    pub(super) fn new<A: Client>(client: &PoolArc<A>) -> Self {
        /// # Safety
        /// `client` is from `PoolArc::<A>::into_raw`, and this is called once.
        unsafe fn release<A: Client>(client: *const c_void) {
            // SAFETY: the caller's contract.
            drop(unsafe { PoolArc::<A>::from_raw(client.cast()) });
        }
        Self { client: client.clone().into_raw().cast(), release: release::<A> }
    }

    /// What the access layer is to pass back.
    pub(super) const fn raw(&self) -> *const c_void {
        self.client
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: made by `new` with the function that belongs to the pointer; dropped once.
        unsafe { (self.release)(self.client) };
    }
}

/// The client behind a context.
///
/// # Safety
/// `context` is the `raw` of a `Context::new::<A>` that is not dropped while the reference lives.
pub(super) unsafe fn client<'a, A: Client>(context: *const c_void) -> &'a A {
    // SAFETY: the caller's contract.
    unsafe { &*context.cast::<A>() }
}

/// `ib_pfn_comp_cb_t` of the receive CQ.
pub(super) unsafe extern "win64" fn on_receive<A: Client>(_cq: ib_cq_handle_t, context: *mut c_void) {
    // SAFETY: the context of a CQ that is not destroyed yet: `destroy` waits for this call before it lets go.
    let client = unsafe { client::<A>(context) };
    // SAFETY: completion callbacks run in a DPC.
    client.receive_ready(unsafe { Dispatch::assume() });
}

/// `ib_pfn_comp_cb_t` of the send CQ.
pub(super) unsafe extern "win64" fn on_send<A: Client>(_cq: ib_cq_handle_t, context: *mut c_void) {
    // SAFETY: as in `on_receive`.
    let client = unsafe { client::<A>(context) };
    // SAFETY: completion callbacks run in a DPC.
    client.send_ready(unsafe { Dispatch::assume() });
}

/// `ib_pfn_event_cb_t` of an object whose kind is `SOURCE`, one of the `*_EVENT` constants.
pub(super) unsafe extern "win64" fn on_event<A: Client, const SOURCE: u8>(record: *mut ib_async_event_rec_t) {
    // SAFETY: the access layer passes a valid record.
    let (code, context) = unsafe { ((*record).code, (*record).context) };
    let source = match SOURCE {
        CA_EVENT => Source::Ca,
        SEND_CQ_EVENT => Source::SendCq,
        RECEIVE_CQ_EVENT => Source::ReceiveCq,
        _ => Source::Qp,
    };
    // SAFETY: the context of an object that is not destroyed yet; the access layer holds a reference to it
    // for the event and `destroy` waits for that (`al_ci_ca_shared.c`).
    let client = unsafe { client::<A>(context) };
    // SAFETY: asynchronous events come on a thread at PASSIVE_LEVEL.
    let mut at = unsafe { Passive::assume() };
    client.resource_event(AsyncEvent { source, code }, &mut at);
}

pub(super) const CA_EVENT: u8 = 0;
pub(super) const SEND_CQ_EVENT: u8 = 1;
pub(super) const RECEIVE_CQ_EVENT: u8 = 2;
pub(super) const QP_EVENT: u8 = 3;
