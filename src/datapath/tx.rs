//! Sending: from MiniportSendNetBufferLists to a posted request, and from its completion back to NDIS.
//!
//! What cannot be sent yet waits in one of two places: with its peer, while that is being resolved
//! ([`crate::peers`]), or in [`Sender`]'s own queue, while every slot of the ring is in use. A NET_BUFFER_LIST holds a
//! ticket of the gate until it is completed, so that a pause can wait for all.
//!
//! Lock order: the directory of peers, then the ring, for translating into a slot's memory. Elsewhere no two are
//! held at once.

use super::translation::{Plan, plan_of, rewrite};
use super::tx_ring::{
    BATCH, Claim, Finished, FinishedBatch, HEADER, Outcome, Route, SEGMENTS as RING_SEGMENTS, TxRing,
};
use crate::adapter::config::Config;
use crate::adapter::jobs::Jobs;
use crate::adapter::stats::{Cast, Drop, Statistics};
use crate::adapter::{Adapter, Machinery, Routed};
use crate::ib::qp::QpConfig;
use crate::ib::resources::Resources;
use crate::ipoib::{MacAddr, encap, ethernet};
use crate::kernel::event::{Event, Kind};
use crate::kernel::gate::Gate;
use crate::kernel::irql::{Dispatch, Passive};
use crate::kernel::nbl::{SendBuffer, SendChain, SendNbl, SendQueue};
use crate::kernel::sg::{MappedBuffer, SgDma};
use crate::kernel::spinlock::SpinLock;
use crate::kernel::status::Result;
use crate::peers::{AvRef, Refusal, Time};
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use core::time::Duration;
use windows_kernel_sys as sys;

/// Segments of a send.
pub const SEGMENTS: u32 = RING_SEGMENTS as u32;
/// Polls of one call before the rest is left to the worker.
const BUDGET: usize = 64;

const IDLE: u8 = 0;
const BUSY: u8 = 1;
const AGAIN: u8 = 2;

/// The largest frame that is mapped at once.
pub fn max_bytes(config: &Config) -> u32 {
    config.payload_mtu + ethernet::Header::LEN as u32
}

/// The send side of an adapter.
pub struct Sender {
    ring: TxRing,
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
    polling: AtomicU8,
}

/// Lists to be completed.
#[derive(Default)]
struct Done {
    chain: SendChain,
}

impl Done {
    fn push(&mut self, list: Option<SendNbl>) {
        if let Some(list) = list {
            self.chain.push_back(list);
        }
    }
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
            polling: AtomicU8::new(IDLE),
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
        if self.gate.close() {
            self.idle.set();
        }
        at.raised(|at| self.abort_waiting(adapter, machinery, status, |_| true, at));
    }

    /// Waits until every list is completed, once closed.
    pub fn wait_idle(&self, at: &Passive<'_>) {
        if self.gate.close() {
            self.idle.set();
        }
        self.idle.wait(at);
    }

    /// The link went up or down. Down, frames that wait are completed.
    pub fn set_link(&self, adapter: &Adapter, machinery: &Machinery, up: bool, at: &mut Passive<'_>) {
        self.up.store(up, Ordering::Release);
        if !up {
            let status = sys::NDIS_STATUS_MEDIA_DISCONNECTED;
            at.raised(|at| self.abort_waiting(adapter, machinery, status, |_| true, at));
        }
    }

    /// The largest payload of a frame, by the broadcast group's MTU.
    pub fn set_mtu(&self, mtu: usize) {
        self.mtu.store(mtu, Ordering::Relaxed);
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
        let mut done = Done::default();
        let mut count = 0;
        while let Some(finished) = self.ring.reclaim(at) {
            count += 1;
            self.retire(adapter, machinery, finished, &mut done, at);
        }
        self.complete(adapter, done, at);
        count
    }

    /// MiniportCancelSend: completes what waits under this id. What is with the HCA completes by itself.
    pub fn cancel(&self, adapter: &Adapter, machinery: &Machinery, cancel_id: *const (), at: Dispatch<'_>) {
        let status = sys::NDIS_STATUS_SEND_ABORTED;
        let is_meant = |buffer: &SendBuffer| core::ptr::eq(buffer.cancel_id(), cancel_id);
        self.abort_waiting(adapter, machinery, status, is_meant, at);
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
        let mut aborted = self.waiting.lock_at(at).extract(&is_meant);
        machinery.resolver.cancel(&is_meant, &mut aborted, at);
        let cause =
            if status == sys::NDIS_STATUS_SEND_ABORTED { Drop::SendCancelled } else { Drop::SendNotReady };
        let mut done = Done::default();
        while let Some(buffer) = aborted.pop_front() {
            refuse(&adapter.statistics, buffer, status, cause, &mut done);
        }
        self.complete(adapter, done, at);
    }

    /// Gives lists back to NDIS, and their tickets to the gate.
    fn complete(&self, adapter: &Adapter, done: Done, at: Dispatch<'_>) {
        let count = done.chain.len() as usize;
        done.chain.complete(adapter.ndis, at);
        if count != 0 && self.gate.leave(count) {
            self.idle.set();
        }
    }

    /// MiniportSendNetBufferLists.
    pub fn send(&self, adapter: &Adapter, machinery: &Machinery, mut chain: SendChain, at: Dispatch<'_>) {
        let mut refused = SendChain::new();
        let mut done = Done::default();
        let now = Time::from_uptime(crate::kernel::time::now());
        while let Some(list) = chain.pop_front() {
            if !self.gate.enter() {
                adapter.statistics.drop_frame(Drop::SendNotReady);
                refused.push_back(list);
                continue;
            }
            let mut buffers = list.into_buffers();
            for buffer in &mut buffers {
                self.submit(adapter, machinery, buffer, now, &mut done, at);
            }
            done.push(buffers.take_empty());
        }
        refused.abort(sys::NDIS_STATUS_PAUSED, adapter.ndis, at);
        self.complete(adapter, done, at);
        self.pump(adapter, machinery, at);
        if machinery.resolver.has_work(at) {
            adapter.ask(Jobs::PATHS);
        }
    }

    /// One frame, new or from the queue of those that had no slot.
    fn submit(
        &self,
        adapter: &Adapter,
        machinery: &Machinery,
        buffer: SendBuffer,
        now: Time,
        done: &mut Done,
        at: Dispatch<'_>,
    ) {
        let statistics = &adapter.statistics;
        if !self.up.load(Ordering::Acquire) {
            refuse(statistics, buffer, sys::NDIS_STATUS_MEDIA_DISCONNECTED, Drop::SendNotReady, done);
            return;
        }
        let length = buffer.data_length();
        if length > self.mtu.load(Ordering::Relaxed) + ethernet::Header::LEN {
            refuse(statistics, buffer, sys::NDIS_STATUS_INVALID_LENGTH, Drop::SendTooLong, done);
            return;
        }
        let claim = if self.has_waiting.load(Ordering::Acquire) { None } else { self.ring.claim(at) };
        match claim {
            Some(claim) => self.dispatch(adapter, machinery, buffer, claim, now, done, at),
            // Behind those that wait already.
            None => self.wait(buffer, at),
        }
    }

    /// Lets a frame wait for a slot. The caller pumps afterwards: the last slot may have been freed meanwhile.
    fn wait(&self, buffer: SendBuffer, at: Dispatch<'_>) {
        let mut waiting = self.waiting.lock_at(at);
        waiting.push_back(buffer);
        self.has_waiting.store(true, Ordering::Release);
    }

    /// A frame with its slot: finds its way, and posts it or has it mapped.
    #[allow(
        clippy::too_many_arguments,
        reason = "the context of one frame; a struct of them would only be unpacked"
    )]
    fn dispatch(
        &self,
        adapter: &Adapter,
        machinery: &Machinery,
        buffer: SendBuffer,
        claim: Claim,
        now: Time,
        done: &mut Done,
        at: Dispatch<'_>,
    ) {
        let plan = match plan_of(&buffer) {
            Ok(plan) => plan,
            Err(cause) => {
                self.ring.unclaim(claim, at);
                refuse(&adapter.statistics, buffer, sys::NDIS_STATUS_INVALID_PACKET, cause, done);
                return;
            }
        };
        match machinery.resolver.route(plan.destination, buffer, now, at) {
            Routed::Ready(buffer, route) => {
                self.launch(adapter, machinery, buffer, claim, route, &plan, done, at)
            }
            Routed::Queued => self.ring.unclaim(claim, at),
            Routed::Refused(buffer, refusal) => {
                self.ring.unclaim(claim, at);
                refuse_unroutable(&adapter.statistics, buffer, refusal, done);
            }
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
        let mut done = Done::default();
        match (self.ring.claim(at), plan_of(&buffer)) {
            (Some(claim), Ok(plan)) => {
                self.launch(adapter, machinery, buffer, claim, route, &plan, &mut done, at);
            }
            (claim, plan) => {
                machinery.resolver.release(route.lease, at);
                if let Some(claim) = claim {
                    self.ring.unclaim(claim, at);
                }
                match plan {
                    Ok(_) => {
                        self.wait(buffer, at);
                        self.pump(adapter, machinery, at);
                    }
                    Err(cause) => {
                        let status = sys::NDIS_STATUS_INVALID_PACKET;
                        refuse(&adapter.statistics, buffer, status, cause, &mut done);
                    }
                }
            }
        }
        self.complete(adapter, done, at);
    }

    /// A frame that waited with its peer, and will not be sent.
    pub fn give_up(&self, adapter: &Adapter, buffer: SendBuffer, refusal: Refusal, at: Dispatch<'_>) {
        let mut done = Done::default();
        refuse_unroutable(&adapter.statistics, buffer, refusal, &mut done);
        self.complete(adapter, done, at);
    }

    /// Posts a frame that has slot and route: rewritten or copied into the slot, or read where it lies.
    #[allow(
        clippy::too_many_arguments,
        reason = "the context of one frame; a struct of them would only be unpacked"
    )]
    fn launch(
        &self,
        adapter: &Adapter,
        machinery: &Machinery,
        buffer: SendBuffer,
        claim: Claim,
        route: Route,
        plan: &Plan,
        done: &mut Done,
        at: Dispatch<'_>,
    ) {
        let header = encap::Header { ethertype: plan.ethertype }.to_bytes();
        if plan.rewrite {
            self.post_rewritten(adapter, machinery, buffer, claim, route, plan, done, at);
            return;
        }
        let Claim { slot, storage } = claim;
        self.ring.plan(slot, route, header, at);
        if let Err((buffer, storage, _)) = machinery.dma.map(buffer, storage, slot, at)
            && let Some((route, header)) = self.ring.planned(slot, at)
        {
            // No list to be had, as for a frame in very many pieces: its bytes fit into the slot.
            self.post_bounced(adapter, machinery, buffer, Claim { slot, storage }, route, header, done, at);
        }
    }

    /// NDIS has the scatter/gather list of a frame.
    fn on_mapped(&self, adapter: &Adapter, machinery: &Machinery, frame: MappedBuffer, at: Dispatch<'_>) {
        const SKIP: usize = ethernet::Header::LEN;
        let mut done = Done::default();
        let slot = frame.cookie();
        if let Some((route, header)) = self.ring.planned(slot, at) {
            if self.ring.fits(&frame, SKIP) {
                let posted = self.ring.post_mapped(frame, header, SKIP, route, &machinery.resources.qp, at);
                if let Err((frame, route)) = posted {
                    let (buffer, storage) = machinery.dma.unmap(frame, at);
                    let claim = Claim { slot, storage };
                    self.not_posted(adapter, machinery, buffer, claim, route.lease, &mut done, at);
                }
            } else {
                let (buffer, storage) = machinery.dma.unmap(frame, at);
                let claim = Claim { slot, storage };
                self.post_bounced(adapter, machinery, buffer, claim, route, header, &mut done, at);
            }
        } else {
            debug_assert!(false, "a mapped frame without a plan");
            let (buffer, storage) = machinery.dma.unmap(frame, at);
            self.ring.unclaim(Claim { slot, storage }, at);
            let status = sys::NDIS_STATUS_FAILURE;
            refuse(&adapter.statistics, buffer, status, Drop::SendNoList, &mut done);
        }
        self.complete(adapter, done, at);
    }

    /// Posts a copy of a frame, made in its slot.
    #[allow(
        clippy::too_many_arguments,
        reason = "the context of one frame; a struct of them would only be unpacked"
    )]
    fn post_bounced(
        &self,
        adapter: &Adapter,
        machinery: &Machinery,
        buffer: SendBuffer,
        claim: Claim,
        route: Route,
        header: [u8; HEADER],
        done: &mut Done,
        at: Dispatch<'_>,
    ) {
        let payload = buffer.data_length().saturating_sub(ethernet::Header::LEN);
        let copied = self.ring.write(
            &claim,
            |memory| {
                let (place, rest) = memory.split_first_chunk_mut::<HEADER>()?;
                *place = header;
                let rest = rest.get_mut(..payload)?;
                (buffer.copy_to(ethernet::Header::LEN, rest) == payload).then_some(HEADER + payload)
            },
            at,
        );
        self.post_copy(
            adapter,
            machinery,
            buffer,
            claim,
            route,
            copied.flatten().ok_or(Drop::SendNoList),
            done,
            at,
        );
    }

    /// Posts what was made of a frame in its slot: an ARP, Neighbor Discovery or DHCP packet as IPoIB has it.
    #[allow(
        clippy::too_many_arguments,
        reason = "the context of one frame; a struct of them would only be unpacked"
    )]
    fn post_rewritten(
        &self,
        adapter: &Adapter,
        machinery: &Machinery,
        buffer: SendBuffer,
        claim: Claim,
        route: Route,
        plan: &Plan,
        done: &mut Done,
        at: Dispatch<'_>,
    ) {
        let written = machinery.resolver.with_directory(at, |directory, at| {
            self.ring.write(&claim, |memory| rewrite(plan, &buffer, directory, memory), at)
        });
        let written = written.unwrap_or(Err(Drop::SendMalformed));
        self.post_copy(adapter, machinery, buffer, claim, route, written, done, at);
    }

    #[allow(
        clippy::too_many_arguments,
        reason = "the context of one frame; a struct of them would only be unpacked"
    )]
    fn post_copy(
        &self,
        adapter: &Adapter,
        machinery: &Machinery,
        buffer: SendBuffer,
        claim: Claim,
        route: Route,
        length: core::result::Result<usize, Drop>,
        done: &mut Done,
        at: Dispatch<'_>,
    ) {
        match length {
            Ok(length) => {
                let qp = &machinery.resources.qp;
                if let Err((buffer, claim, lease)) =
                    self.ring.post_copied(claim, buffer, length, route, qp, at)
                {
                    self.not_posted(adapter, machinery, buffer, claim, lease, done, at);
                }
            }
            Err(cause) => {
                machinery.resolver.release(route.lease, at);
                self.ring.unclaim(claim, at);
                refuse(&adapter.statistics, buffer, sys::NDIS_STATUS_INVALID_PACKET, cause, done);
            }
        }
    }

    /// The QP did not take it: it is not up any more, or broken.
    #[allow(
        clippy::too_many_arguments,
        reason = "the context of one frame; a struct of them would only be unpacked"
    )]
    fn not_posted(
        &self,
        adapter: &Adapter,
        machinery: &Machinery,
        buffer: SendBuffer,
        claim: Claim,
        lease: AvRef,
        done: &mut Done,
        at: Dispatch<'_>,
    ) {
        machinery.resolver.release(lease, at);
        self.ring.unclaim(claim, at);
        let status = sys::NDIS_STATUS_MEDIA_DISCONNECTED;
        refuse(&adapter.statistics, buffer, status, Drop::SendNotReady, done);
    }

    /// The CQ has, or may have, completions.
    pub fn serve(&self, adapter: &Adapter, machinery: &Machinery, at: Dispatch<'_>) {
        if self.polling.fetch_update(Ordering::AcqRel, Ordering::Acquire, |state| {
            Some(if state == IDLE { BUSY } else { AGAIN })
        }) != Ok(IDLE)
        {
            return;
        }
        let mut budget = BUDGET;
        loop {
            self.polling.store(BUSY, Ordering::Release);
            if !self.drain(adapter, machinery, &mut budget, at) {
                self.polling.store(IDLE, Ordering::Release);
                adapter.ask(Jobs::POLL);
                return;
            }
            if self.polling.compare_exchange(BUSY, IDLE, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                return;
            }
        }
    }

    /// Polls until the CQ is empty, arms it, and polls once more: what came in between raises no event. `false` if
    /// the budget is used up.
    fn drain(&self, adapter: &Adapter, machinery: &Machinery, budget: &mut usize, at: Dispatch<'_>) -> bool {
        let cq = &machinery.resources.send_cq;
        let mut armed = false;
        loop {
            if *budget == 0 {
                return false;
            }
            *budget -= 1;
            let mut batch: FinishedBatch = [const { None }; BATCH];
            match self.ring.poll(cq, &mut batch, at) {
                Ok(0) if armed => return true,
                Ok(0) => {
                    if cq.rearm().is_err() {
                        adapter.ask(Jobs::CQ_ERROR);
                        return true;
                    }
                    armed = true;
                }
                Ok(_) => {
                    let mut done = Done::default();
                    for finished in batch.into_iter().flatten() {
                        self.retire(adapter, machinery, finished, &mut done, at);
                    }
                    self.complete(adapter, done, at);
                    self.pump(adapter, machinery, at);
                }
                Err(()) => {
                    adapter.ask(Jobs::CQ_ERROR);
                    return true;
                }
            }
        }
    }

    /// A send is over.
    fn retire(
        &self,
        adapter: &Adapter,
        machinery: &Machinery,
        finished: Finished,
        done: &mut Done,
        at: Dispatch<'_>,
    ) {
        let (lease, outcome, buffer) = self.ring.retire(finished, &machinery.dma, at);
        machinery.resolver.release(lease, at);
        match outcome {
            Outcome::Sent => {
                let cast = buffer
                    .contiguous(MacAddr::LEN)
                    .and_then(<[u8]>::first_chunk)
                    .map_or(Cast::Unicast, Cast::of);
                adapter.statistics.sent.count(cast, buffer.data_length());
                done.push(buffer.finish(sys::NDIS_STATUS_SUCCESS));
            }
            Outcome::Flushed => {
                let status = sys::NDIS_STATUS_MEDIA_DISCONNECTED;
                refuse(&adapter.statistics, buffer, status, Drop::SendFlushed, done);
            }
            Outcome::Failed => {
                refuse(&adapter.statistics, buffer, sys::NDIS_STATUS_FAILURE, Drop::SendFailed, done);
                // A UD QP that fails a send goes to SQ error (IBTA volume 1, 10.3.1.7).
                adapter.ask(Jobs::QP_ERROR);
            }
        }
    }

    /// Sends from the queue of those that had no slot, while there are slots.
    pub fn pump(&self, adapter: &Adapter, machinery: &Machinery, at: Dispatch<'_>) {
        if !self.has_waiting.load(Ordering::Acquire) {
            return;
        }
        let mut done = Done::default();
        let now = Time::from_uptime(crate::kernel::time::now());
        while let Some(claim) = self.ring.claim(at) {
            let next = {
                let mut waiting = self.waiting.lock_at(at);
                let next = waiting.pop_front();
                self.has_waiting.store(!waiting.is_empty(), Ordering::Release);
                next
            };
            match next {
                Some(buffer) => self.dispatch(adapter, machinery, buffer, claim, now, &mut done, at),
                None => {
                    self.ring.unclaim(claim, at);
                    break;
                }
            }
        }
        self.complete(adapter, done, at);
    }
}

/// MiniportProcessSGList.
pub fn mapped(adapter: &Adapter, frame: MappedBuffer, at: Dispatch<'_>) {
    // A frame can only be mapped through the machinery, which lives until none is.
    if let Some(machinery) = adapter.machinery() {
        machinery.sender.on_mapped(adapter, machinery, frame, at);
    }
}

/// Completes a frame that was not sent.
fn refuse(
    statistics: &Statistics,
    buffer: SendBuffer,
    status: sys::NDIS_STATUS,
    cause: Drop,
    done: &mut Done,
) {
    statistics.drop_frame(cause);
    done.push(buffer.finish(status));
}

fn refuse_unroutable(statistics: &Statistics, buffer: SendBuffer, refusal: Refusal, done: &mut Done) {
    let cause = match refusal {
        Refusal::NoPeer => Drop::SendNoPeer,
        Refusal::QueueFull | Refusal::Unreachable | Refusal::NoRoom | Refusal::Forgotten => {
            Drop::SendUnresolved
        }
    };
    // To NDIS an address that leads nowhere is a frame lost on the wire: no error that a protocol should act on.
    refuse(statistics, buffer, sys::NDIS_STATUS_SUCCESS, cause, done);
}
