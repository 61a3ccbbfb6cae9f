//! One frame on its way down: planned, routed, given a slot, posted.
//!
//! ```text
//! send -> submit -> dispatch -> launch -> map ... mapped -> post_mapped
//!                                     \-> post_rewritten, post_bounced -> post_copy
//! ```
//! A [`Visit`] is one stay in the driver: it collects the lists that become complete and gives them back together.
//!
//! Lock order: peers, then the ring, for rewriting into a slot's memory. Elsewhere no two are held
//! at once.

use super::translation::{listen, plan_of, rewrite};
use super::tx::Sender;
use super::tx_ring::{Claim, Finished, HEADER, Outcome, Route};
use crate::adapter::jobs::Jobs;
use crate::adapter::stats::{Cast, Drop};
use crate::adapter::{Adapter, Machinery, Routed};
use crate::ipoib::translate::{Down, Kind};
use crate::ipoib::{MacAddr, ethernet};
use crate::kernel::irql::Dispatch;
use crate::kernel::nbl::{SendBuffer, SendChain, SendNbl};
use crate::kernel::sg::MappedBuffer;
use crate::kernel::time;
use crate::peers::{AvRef, Refusal, Time};
use windows_kernel_sys as sys;

/// Bytes of a frame that are not part of the packet.
const SKIP: usize = ethernet::Header::LEN;

/// One stay in the send side.
#[must_use = "the lists must be completed"]
pub(super) struct Visit<'a> {
    adapter: &'a Adapter,
    machinery: &'a Machinery,
    sender: &'a Sender,
    at: Dispatch<'a>,
    now: Time,
    done: SendChain,
}

impl<'a> Visit<'a> {
    pub(super) fn new(adapter: &'a Adapter, machinery: &'a Machinery, at: Dispatch<'a>) -> Self {
        Self {
            adapter,
            machinery,
            sender: &machinery.sender,
            at,
            now: Time::from_uptime(time::now()),
            done: SendChain::new(),
        }
    }

    /// Gives the lists that became complete back to NDIS.
    pub(super) fn end(self) {
        self.sender.complete(self.adapter, self.done, self.at);
    }

    fn finished(&mut self, list: Option<SendNbl>) {
        if let Some(list) = list {
            self.done.push_back(list);
        }
    }

    /// Completes a frame that was not sent.
    pub(super) fn refuse(&mut self, buffer: SendBuffer, status: sys::NDIS_STATUS, cause: Drop) {
        self.adapter.statistics.drop_frame(cause);
        self.finished(buffer.finish(status));
    }

    /// Completes a frame whose destination cannot be reached.
    pub(super) fn refuse_unroutable(&mut self, buffer: SendBuffer, refusal: Refusal) {
        let cause = match refusal {
            Refusal::NoPeer => Drop::SendNoPeer,
            Refusal::QueueFull | Refusal::Unreachable | Refusal::NoRoom | Refusal::Forgotten => {
                Drop::SendUnresolved
            }
        };
        // An Ethernet adapter would have sent the frame, to nobody: no failure that a protocol should act on.
        self.refuse(buffer, sys::NDIS_STATUS_SUCCESS, cause);
    }

    /// A list that has its ticket.
    pub(super) fn send(&mut self, list: SendNbl) {
        let mut buffers = list.into_buffers();
        for buffer in &mut buffers {
            self.submit(buffer);
        }
        let empty = buffers.take_empty();
        self.finished(empty);
    }

    fn submit(&mut self, buffer: SendBuffer) {
        if !self.sender.is_up() {
            self.refuse(buffer, sys::NDIS_STATUS_MEDIA_DISCONNECTED, Drop::SendNotReady);
            return;
        }
        let claim = if self.sender.must_wait() { None } else { self.sender.ring.claim(self.at) };
        match claim {
            Some(claim) => self.dispatch(buffer, claim),
            None => self.sender.wait(buffer, self.at),
        }
    }

    /// A frame with its slot: finds its way, and posts it or has it mapped.
    pub(super) fn dispatch(&mut self, buffer: SendBuffer, claim: Claim) {
        let plan = match plan_of(&buffer, self.sender.ip_mtu()) {
            Ok(plan) => plan,
            Err(cause) => {
                self.sender.ring.unclaim(claim, self.at);
                self.refuse(buffer, sys::NDIS_STATUS_INVALID_PACKET, cause);
                return;
            }
        };
        if matches!(plan.kind, Kind::Igmp { .. } | Kind::Mld { .. }) {
            listen(&plan, &buffer, |changes| self.machinery.resolver.reported(changes, self.now, self.at));
        }
        match self.machinery.resolver.route(plan.destination, buffer, self.now, self.at) {
            Routed::Ready(buffer, route) => self.launch(buffer, claim, route, &plan),
            Routed::Queued => self.sender.ring.unclaim(claim, self.at),
            Routed::Refused(buffer, refusal) => {
                self.sender.ring.unclaim(claim, self.at);
                self.refuse_unroutable(buffer, refusal);
            }
        }
    }

    /// A frame that waited with its peer, and can be sent by now.
    pub(super) fn resume(&mut self, buffer: SendBuffer, route: Route) {
        match (self.sender.ring.claim(self.at), plan_of(&buffer, self.sender.ip_mtu())) {
            (Some(claim), Ok(plan)) => self.launch(buffer, claim, route, &plan),
            (claim, plan) => {
                self.machinery.resolver.release(route.lease, self.at);
                if let Some(claim) = claim {
                    self.sender.ring.unclaim(claim, self.at);
                }
                match plan {
                    Ok(_) => self.sender.wait(buffer, self.at),
                    Err(cause) => self.refuse(buffer, sys::NDIS_STATUS_INVALID_PACKET, cause),
                }
            }
        }
    }

    /// Posts a frame that has slot and route: rewritten into the slot, or read where it lies.
    fn launch(&mut self, buffer: SendBuffer, claim: Claim, route: Route, plan: &Down) {
        if plan.kind.is_rewritten() {
            self.post_rewritten(buffer, claim, route, plan);
            return;
        }
        let header = plan.header();
        let Claim { slot, storage } = claim;
        self.sender.ring.plan(slot, route, header, self.at);
        if let Err((buffer, storage, _)) = self.machinery.dma.map(buffer, storage, slot, self.at)
            && let Some((route, header)) = self.sender.ring.planned(slot, self.at)
        {
            // No list to be had: the frame's bytes fit into the slot.
            self.post_bounced(buffer, Claim { slot, storage }, route, header);
        }
    }

    /// NDIS has the scatter/gather list of a frame.
    pub(super) fn mapped(&mut self, frame: MappedBuffer) {
        let slot = frame.cookie();
        let Some((route, header)) = self.sender.ring.planned(slot, self.at) else {
            debug_assert!(false, "a mapped frame without a plan");
            let (buffer, storage) = self.machinery.dma.unmap(frame, self.at);
            self.sender.ring.unclaim(Claim { slot, storage }, self.at);
            self.refuse(buffer, sys::NDIS_STATUS_FAILURE, Drop::SendNoList);
            return;
        };
        if !self.sender.ring.fits(&frame, SKIP) {
            let (buffer, storage) = self.machinery.dma.unmap(frame, self.at);
            self.post_bounced(buffer, Claim { slot, storage }, route, header);
            return;
        }
        let qp = &self.machinery.resources.qp;
        if let Err((frame, route)) = self.sender.ring.post_mapped(frame, header, SKIP, route, qp, self.at) {
            let (buffer, storage) = self.machinery.dma.unmap(frame, self.at);
            self.not_posted(buffer, Claim { slot, storage }, route.lease);
        }
    }

    /// Posts a copy of a frame, made in its slot.
    fn post_bounced(&mut self, buffer: SendBuffer, claim: Claim, route: Route, header: [u8; HEADER]) {
        let payload = buffer.data_length().saturating_sub(SKIP);
        let copied = self.sender.ring.write(
            &claim,
            |memory, _| {
                let (place, rest) = memory.split_first_chunk_mut::<HEADER>()?;
                *place = header;
                let rest = rest.get_mut(..payload)?;
                (buffer.copy_to(SKIP, rest) == payload).then_some(HEADER + payload)
            },
            self.at,
        );
        self.post_copy(buffer, claim, route, copied.flatten().ok_or(Drop::SendNoList));
    }

    /// Posts what was made of a frame in its slot: an ARP, Neighbor Discovery or DHCP packet as IPoIB has it.
    fn post_rewritten(&mut self, buffer: SendBuffer, claim: Claim, route: Route, plan: &Down) {
        let ring = &self.sender.ring;
        let written = self.machinery.resolver.with_peers(self.at, |peers, at| {
            ring.write(&claim, |memory, scratch| rewrite(plan, &buffer, peers, memory, scratch), at)
        });
        self.post_copy(buffer, claim, route, written.unwrap_or(Err(Drop::SendMalformed)));
    }

    fn post_copy(&mut self, buffer: SendBuffer, claim: Claim, route: Route, length: Result<usize, Drop>) {
        let qp = &self.machinery.resources.qp;
        match length {
            Ok(length) => {
                let posted = self.sender.ring.post_copied(claim, buffer, length, route, qp, self.at);
                if let Err((buffer, claim, lease)) = posted {
                    self.not_posted(buffer, claim, lease);
                }
            }
            Err(cause) => {
                self.machinery.resolver.release(route.lease, self.at);
                self.sender.ring.unclaim(claim, self.at);
                self.refuse(buffer, sys::NDIS_STATUS_INVALID_PACKET, cause);
            }
        }
    }

    /// The QP did not take it: it is not up any more, or broken.
    fn not_posted(&mut self, buffer: SendBuffer, claim: Claim, lease: AvRef) {
        self.machinery.resolver.release(lease, self.at);
        self.sender.ring.unclaim(claim, self.at);
        self.refuse(buffer, sys::NDIS_STATUS_MEDIA_DISCONNECTED, Drop::SendNotReady);
    }

    /// A send is over.
    pub(super) fn retire(&mut self, finished: Finished) {
        let (lease, outcome, buffer) = self.sender.ring.retire(finished, &self.machinery.dma, self.at);
        self.machinery.resolver.release(lease, self.at);
        match outcome {
            Outcome::Sent => {
                let destination = buffer.contiguous(MacAddr::LEN).and_then(<[u8]>::first_chunk);
                let cast = destination.map_or(Cast::Unicast, Cast::of);
                self.adapter.statistics.sent.count(cast, buffer.data_length());
                self.finished(buffer.finish(sys::NDIS_STATUS_SUCCESS));
            }
            Outcome::Flushed => {
                self.refuse(buffer, sys::NDIS_STATUS_MEDIA_DISCONNECTED, Drop::SendFlushed);
            }
            Outcome::Failed => {
                self.refuse(buffer, sys::NDIS_STATUS_FAILURE, Drop::SendFailed);
                // A UD QP that fails a send goes to SQ error (IBTA volume 1, 10.3.1.7).
                self.adapter.ask(Jobs::QP_ERROR);
            }
        }
    }
}
