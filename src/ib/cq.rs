//! Completion queues.

use core::ptr;

use ibal_sys::*;

use crate::kernel::arc::PoolArc;
use crate::kernel::irql::Passive;

use super::ca::Ca;
use super::client::{Client, Context, RECEIVE_CQ_EVENT, SEND_CQ_EVENT, on_event, on_receive, on_send};
use super::handle::Handle;
use super::interface::Api;
use super::status::{IbError, check, failure};
use super::wc::CompletionBatch;

/// A completion queue.
pub struct Cq {
    api: Api,
    handle: Handle<_ib_cq>,
    entries: u32,
    /// Holds the client until the CQ can call no more.
    _client: Context,
}

// SAFETY: the access layer serialises what is done to its objects.
unsafe impl Send for Cq {}
// SAFETY: as above.
unsafe impl Sync for Cq {}

impl Cq {
    /// Creates the CQ of the receive queue, for at least `entries` completions (`ib_create_cq`). Not armed.
    pub fn create_receive<A: Client>(
        ca: &Ca,
        entries: u32,
        client: &PoolArc<A>,
        at: &Passive<'_>,
    ) -> Result<Self, IbError> {
        Self::create(ca, entries, client, Some(on_receive::<A>), Some(on_event::<A, RECEIVE_CQ_EVENT>), at)
    }

    /// As above, for the send queue.
    pub fn create_send<A: Client>(
        ca: &Ca,
        entries: u32,
        client: &PoolArc<A>,
        at: &Passive<'_>,
    ) -> Result<Self, IbError> {
        Self::create(ca, entries, client, Some(on_send::<A>), Some(on_event::<A, SEND_CQ_EVENT>), at)
    }

    fn create<A: Client>(
        ca: &Ca,
        entries: u32,
        client: &PoolArc<A>,
        on_completion: ib_pfn_comp_cb_t,
        on_event: ib_pfn_event_cb_t,
        _at: &Passive<'_>,
    ) -> Result<Self, IbError> {
        let api = ca.api.clone();
        let context = Context::new(client);
        let mut request =
            ib_cq_create_t { size: entries, pfn_comp_cb: on_completion, h_wait_obj: ptr::null_mut() };
        let mut raw = ptr::null_mut();
        // SAFETY: at PASSIVE_LEVEL, with an open CA, callbacks for this context, which lives as long as the
        // CQ, and places for the results.
        check(unsafe {
            (api.create_cq)(ca.handle(), &raw mut request, context.raw(), on_event, &raw mut raw)
        })?;
        Ok(Self { api, handle: Handle::new(raw)?, entries: request.size, _client: context })
    }

    pub(super) fn handle(&self) -> ib_cq_handle_t {
        self.handle.get()
    }

    /// How many completions it holds: at least as many as were asked for.
    pub const fn entries(&self) -> u32 {
        self.entries
    }

    /// Takes at most `N` completions (`ib_poll_cq`). An empty batch means that there were none.
    ///
    /// IRQL <= DISPATCH_LEVEL. One caller at a time for each CQ, or completions are seen out of order.
    pub fn poll<const N: usize>(&self, batch: &mut CompletionBatch<N>) -> Result<(), IbError> {
        let mut free = batch.free_list();
        let mut done = ptr::null_mut();
        // SAFETY: the lists are linked, end with null, and belong to this call.
        let status = unsafe { (self.api.poll_cq)(self.handle(), &raw mut free, &raw mut done) };
        match status {
            IB_SUCCESS => {
                batch.filled_from(done);
                Ok(())
            }
            // The queue is empty.
            IB_NOT_FOUND => Ok(()),
            status => Err(failure(status)),
        }
    }

    /// Arms it for one callback (`ib_rearm_cq`). Poll once more afterwards: a completion that came before may
    /// raise no callback. IRQL <= DISPATCH_LEVEL.
    pub fn rearm(&self) -> Result<(), IbError> {
        // SAFETY: callable to DISPATCH_LEVEL; a stale handle is null, which is rejected.
        check(unsafe { (self.api.rearm_cq)(self.handle(), FALSE) })
    }

    /// Destroys it (`ib_destroy_cq`), after its QP. Waits until no callback runs.
    pub fn destroy(&self, _at: &Passive<'_>) -> Result<(), IbError> {
        match self.handle.take() {
            // SAFETY: at PASSIVE_LEVEL, with a live handle that is not used again.
            Some(raw) => check(unsafe { (self.api.destroy_cq)(raw, ib_sync_destroy) }),
            None => Ok(()),
        }
    }
}
