//! The send side: what it is, how it opens and closes, how completions are served.
//!
//! What cannot be sent yet waits in one of two places: with its peer, while that is being resolved
//! ([`crate::peers`]), or in [`Sender`]'s own queue, while every slot of the ring is in use. A NET_BUFFER_LIST holds a
//! ticket of the gate until it is completed, so that a pause can wait for all. How one frame is sent is in
//! `tx_frame`.

use super::polling::Polling;
use super::tx_frame::Visit;
use super::tx_ring::{BATCH, FinishedBatch, HEADER, Route, SEGMENTS as RING_SEGMENTS, TxRing};
use crate::adapter::config::Config;
use crate::adapter::jobs::Jobs;
use crate::adapter::stats::Drop;
use crate::adapter::{Adapter, Machinery};
use crate::ib::qp::QpConfig;
use crate::ib::resources::Resources;
use crate::kernel::event::{Event, Kind};
use crate::kernel::gate::Gate;
use crate::kernel::irql::{Dispatch, Passive};
use crate::kernel::nbl::{SendBuffer, SendChain, SendQueue};
use crate::kernel::sg::{MappedBuffer, SgDma};
use crate::kernel::spinlock::SpinLock;
use crate::kernel::status::Result;
use crate::peers::Refusal;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use windows_kernel_sys as sys;

/// Segments of a send.
pub const SEGMENTS: u32 = RING_SEGMENTS as u32;

/// Bytes that are mapped at once. More than a frame has: what is mapped begins with the first byte of the frame's
/// first MDL and ends with the last of its last, and how much room a protocol left there is its own affair. A frame
/// that cannot be mapped is copied, so this is not to be stingy with; nor is it a cost, with 64-bit addresses. With it,
/// a slot has room for the list of a frame in as many pieces as a send can have ([`SEGMENTS`]).
pub const MAX_BYTES: u32 = 1 << 16;

/// The send side of an adapter.
pub struct Sender {
    pub(super) ring: TxRing,
    /// A ticket for each NET_BUFFER_LIST of NDIS's.
    gate: Gate,
    /// Set by the last list that is completed behind the closed gate.
    idle: Event,
    /// Frames for which there is no slot.
    waiting: SpinLock<SendQueue>,
    /// Whether there may be any: written with the queue locked, read without.
    has_waiting: AtomicBool,
    /// Whether the link is up: frames are refused while it is not.
    up: AtomicBool,
    /// The largest payload of a frame.
    mtu: AtomicUsize,
    polling: Polling,
}

impl Sender {
    /// Everything the send side will ever use.
    pub fn try_new(
        config: &Config,
        dma: &SgDma<Adapter>,
        size: &QpConfig,
        resources: &Resources,
    ) -> Result<Self> {
        // A slot takes a whole frame, for those that are rewritten or lie in too many pieces.
        let slot_size = (config.payload_mtu as usize + HEADER).next_power_of_two();
        let ring = TxRing::try_new(
            dma,
            size.send_depth,
            slot_size,
            size.send_segments as usize,
            resources.mr.lkey(),
        )?;
        Ok(Self {
            ring,
            gate: Gate::new(),
            idle: Event::try_new(Kind::Notification, true)?,
            waiting: SpinLock::new(SendQueue::new()),
            has_waiting: AtomicBool::new(false),
            up: AtomicBool::new(false),
            mtu: AtomicUsize::new(config.payload_mtu as usize),
            polling: Polling::new(),
        })
    }

    /// Lists may be sent.
    pub fn open(&self) {
        self.idle.clear();
        self.gate.open();
    }

    /// Lists are refused from now on; those that wait are completed with `status`.
    pub fn close(
        &self,
        adapter: &Adapter,
        machinery: &Machinery,
        status: sys::NDIS_STATUS,
        at: &mut Passive<'_>,
    ) {
        self.close_gate();
        at.raised(|at| self.abort_waiting(adapter, machinery, status, |_| true, at));
    }

    fn close_gate(&self) {
        if self.gate.close() {
            self.idle.set();
        }
    }

    /// Waits until every list is completed, once closed.
    pub fn wait_idle(&self, at: &Passive<'_>) {
        self.close_gate();
        self.idle.wait(at);
    }

    /// A ticket for a list; `false` while closed.
    pub(super) fn enter(&self) -> bool {
        self.gate.enter()
    }

    /// Gives lists back to NDIS, and their tickets to the gate.
    pub(super) fn complete(&self, adapter: &Adapter, lists: SendChain, at: Dispatch<'_>) {
        let count = lists.len() as usize;
        lists.complete(adapter.ndis, at);
        if count != 0 && self.gate.leave(count) {
            self.idle.set();
        }
    }

    /// The link went up or down. Down, frames that wait are completed.
    pub fn set_link(&self, adapter: &Adapter, machinery: &Machinery, up: bool, at: &mut Passive<'_>) {
        self.up.store(up, Ordering::Release);
        if !up {
            let status = sys::NDIS_STATUS_MEDIA_DISCONNECTED;
            at.raised(|at| self.abort_waiting(adapter, machinery, status, |_| true, at));
        }
    }

    pub(super) fn is_up(&self) -> bool {
        self.up.load(Ordering::Acquire)
    }

    /// The largest payload of a frame, by the broadcast group's MTU.
    pub fn set_mtu(&self, mtu: usize) {
        self.mtu.store(mtu, Ordering::Relaxed);
    }

    /// The largest IP packet.
    pub(super) fn ip_mtu(&self) -> usize {
        self.mtu.load(Ordering::Relaxed)
    }

    /// The QP takes sends.
    pub fn start(&self, at: Dispatch<'_>) {
        self.ring.start(at);
    }

    /// Nothing is posted any more.
    pub fn stop(&self, adapter: &Adapter, machinery: &Machinery, at: Dispatch<'_>) {
        self.ring.stop(at);
        self.abort_waiting(adapter, machinery, sys::NDIS_STATUS_MEDIA_DISCONNECTED, |_| true, at);
    }

    /// As [`TxRing::wait_drained`].
    #[must_use]
    pub fn wait_drained(&self, at: &Passive<'_>, timeout: Duration) -> bool {
        self.ring.wait_drained(at, timeout)
    }

    /// Completes what the HCA still had, after the QP was put in RESET. Returns how many frames those were.
    pub fn reclaim(&self, adapter: &Adapter, machinery: &Machinery, at: Dispatch<'_>) -> usize {
        let mut visit = Visit::new(adapter, machinery, at);
        let mut count = 0;
        while let Some(finished) = self.ring.reclaim(at) {
            count += 1;
            visit.retire(finished);
        }
        visit.end();
        count
    }

    /// MiniportCancelSend: completes what waits under this id. What is with the HCA completes by itself.
    pub fn cancel(&self, adapter: &Adapter, machinery: &Machinery, cancel_id: *const (), at: Dispatch<'_>) {
        let is_meant = |buffer: &SendBuffer| core::ptr::eq(buffer.cancel_id(), cancel_id);
        self.abort_waiting(adapter, machinery, sys::NDIS_STATUS_SEND_ABORTED, is_meant, at);
    }

    /// Completes the frames that wait, here or with their peers, and are meant.
    fn abort_waiting(
        &self,
        adapter: &Adapter,
        machinery: &Machinery,
        status: sys::NDIS_STATUS,
        is_meant: impl Fn(&SendBuffer) -> bool,
        at: Dispatch<'_>,
    ) {
        let mut aborted = {
            let mut waiting = self.waiting.lock_at(at);
            let aborted = waiting.extract(&is_meant);
            self.has_waiting.store(!waiting.is_empty(), Ordering::Release);
            aborted
        };
        machinery.resolver.cancel(&is_meant, &mut aborted, at);
        let cause =
            if status == sys::NDIS_STATUS_SEND_ABORTED { Drop::SendCancelled } else { Drop::SendNotReady };
        let mut visit = Visit::new(adapter, machinery, at);
        while let Some(buffer) = aborted.pop_front() {
            visit.refuse(buffer, status, cause);
        }
        visit.end();
    }

    /// MiniportSendNetBufferLists.
    pub fn send(&self, adapter: &Adapter, machinery: &Machinery, mut chain: SendChain, at: Dispatch<'_>) {
        let mut refused = SendChain::new();
        let mut visit = Visit::new(adapter, machinery, at);
        while let Some(list) = chain.pop_front() {
            if self.enter() {
                visit.send(list);
            } else {
                adapter.statistics.drop_frame(Drop::SendNotReady);
                refused.push_back(list);
            }
        }
        visit.end();
        refused.abort(sys::NDIS_STATUS_PAUSED, adapter.ndis, at);
        self.pump(adapter, machinery, at);
        if machinery.resolver.has_work(at) {
            adapter.ask(Jobs::PATHS);
        }
    }

    /// A frame that waited with its peer, and can be sent by now.
    pub fn resume(
        &self,
        adapter: &Adapter,
        machinery: &Machinery,
        buffer: SendBuffer,
        route: Route,
        at: Dispatch<'_>,
    ) {
        let mut visit = Visit::new(adapter, machinery, at);
        visit.resume(buffer, route);
        visit.end();
        self.pump(adapter, machinery, at);
    }

    /// A frame that waited with its peer, and will not be sent.
    pub fn give_up(
        &self,
        adapter: &Adapter,
        machinery: &Machinery,
        buffer: SendBuffer,
        refusal: Refusal,
        at: Dispatch<'_>,
    ) {
        let mut visit = Visit::new(adapter, machinery, at);
        visit.refuse_unroutable(buffer, refusal);
        visit.end();
    }

    /// Whether a frame has to go behind others that wait for a slot.
    pub(super) fn must_wait(&self) -> bool {
        self.has_waiting.load(Ordering::Acquire)
    }

    /// Lets a frame wait for a slot. The caller pumps afterwards: the last slot may have been freed meanwhile.
    pub(super) fn wait(&self, buffer: SendBuffer, at: Dispatch<'_>) {
        let mut waiting = self.waiting.lock_at(at);
        waiting.push_back(buffer);
        self.has_waiting.store(true, Ordering::Release);
    }

    /// Sends from the queue of those that had no slot, while there are slots.
    pub fn pump(&self, adapter: &Adapter, machinery: &Machinery, at: Dispatch<'_>) {
        if !self.must_wait() {
            return;
        }
        let mut visit = Visit::new(adapter, machinery, at);
        while let Some(claim) = self.ring.claim(at) {
            let next = {
                let mut waiting = self.waiting.lock_at(at);
                let next = waiting.pop_front();
                self.has_waiting.store(!waiting.is_empty(), Ordering::Release);
                next
            };
            if let Some(buffer) = next {
                visit.dispatch(buffer, claim);
            } else {
                self.ring.unclaim(claim, at);
                break;
            }
        }
        visit.end();
    }

    /// The CQ has, or may have, completions.
    pub fn serve(&self, adapter: &Adapter, machinery: &Machinery, at: Dispatch<'_>) {
        let left = self.polling.run(|budget| self.drain(adapter, machinery, budget, at));
        if left {
            adapter.ask(Jobs::POLL);
        }
    }

    /// Polls until the CQ is empty, arms it, and polls once more: what came in between raises no event. `false` if
    /// the budget is used up.
    fn drain(&self, adapter: &Adapter, machinery: &Machinery, budget: &mut usize, at: Dispatch<'_>) -> bool {
        let cq = &machinery.resources.send_cq;
        let mut armed = false;
        // Taken from in place, here and below: it is large, and most polls find little.
        let mut batch: FinishedBatch = [const { None }; BATCH];
        while *budget != 0 {
            *budget -= 1;
            match self.ring.poll(cq, &mut batch, at) {
                Ok(0) if armed => return true,
                Ok(0) if cq.rearm().is_ok() => armed = true,
                Ok(0) | Err(_) => {
                    adapter.ask(Jobs::CQ_ERROR);
                    return true;
                }
                Ok(_) => {
                    let mut visit = Visit::new(adapter, machinery, at);
                    for finished in batch.iter_mut().filter_map(Option::take) {
                        visit.retire(finished);
                    }
                    visit.end();
                    self.pump(adapter, machinery, at);
                }
            }
        }
        false
    }
}

/// MiniportProcessSGList.
pub fn mapped(adapter: &Adapter, frame: MappedBuffer, at: Dispatch<'_>) {
    // A frame can only be mapped through the machinery, which lives until none is.
    if let Some(machinery) = adapter.machinery() {
        let mut visit = Visit::new(adapter, machinery, at);
        visit.mapped(frame);
        visit.end();
    }
}
