//! Receiving: from a completion to an indicated frame, in the buffer the HCA filled.

use super::polling::Polling;
use super::rx_ring::{Arrival, Arrivals, BATCH, RxRing};
use crate::adapter::jobs::Jobs;
use crate::adapter::stats::{Cast, Drop};
use crate::adapter::{Adapter, Machinery, PortFacts};
use crate::ib::wc::Received;
use crate::ipoib::encap::{self, ETHERNET_OFFSET, GRH_LEN, HEADER_LEN, PAYLOAD_OFFSET};
use crate::ipoib::ethernet;
use crate::ipoib::grh::Grh;
use crate::ipoib::translate::{Refused, Up};
use crate::ipoib::{Lid, MacAddr, Mgid, Qpn};
use crate::kernel::event::{Event, Kind};
use crate::kernel::gate::Gate;
use crate::kernel::irql::{Dispatch, Passive};
use crate::kernel::nbl::{ReceiveBuffer, ReceiveChain, ReceivePool, ReturnedChain, Verified};
use crate::kernel::status::Result;
use crate::peers::{Rejected, Source, Time};
use core::sync::atomic::{AtomicU8, AtomicU16, Ordering};
use core::time::Duration;

/// Segments of a receive: a buffer of an IB MTU of 4,096 and a GRH crosses at most two page boundaries.
pub const SEGMENTS: u32 = 3;
/// The receive side of an adapter.
pub struct Receiver {
    ring: RxRing,
    pool: ReceivePool,
    /// A ticket for each frame with NDIS.
    gate: Gate,
    /// Set by the last frame that comes back behind the closed gate.
    idle: Event,
    /// One processor indicates at a time, so that frames stay in order.
    polling: Polling,
    low_watermark: usize,
    qpn: Qpn,
    current: MacAddr,
    /// Base LID and LMC of the port, to know our own frames by.
    lid: AtomicU16,
    lmc: AtomicU8,
}

impl Receiver {
    /// Everything the receive side will ever use.
    pub fn try_new(
        adapter: &Adapter,
        depth: u32,
        qpn: Qpn,
        current: MacAddr,
        lkey: u32,
        at: &Passive<'_>,
    ) -> Result<Self> {
        let config = &adapter.config;
        let pool = ReceivePool::try_new(adapter.ndis, at)?;
        let size = PAYLOAD_OFFSET as u32 + config.payload_mtu;
        let made = RxRing::try_new(&pool, depth, depth.saturating_mul(config.recv_ratio), size, lkey)
            .and_then(|ring| Ok((ring, Event::try_new(Kind::Notification, true)?)));
        match made {
            Ok((ring, idle)) => Ok(Self {
                ring,
                pool,
                gate: Gate::new(),
                idle,
                polling: Polling::new(),
                low_watermark: config.rq_low_watermark as usize,
                qpn,
                current,
                lid: AtomicU16::new(0),
                lmc: AtomicU8::new(0),
            }),
            Err(error) => {
                pool.free(at);
                Err(error)
            }
        }
    }

    /// Frees the buffers, then their pool. Every frame has come back.
    pub fn free(self, at: &Passive<'_>) {
        let Self { ring, pool, .. } = self;
        drop(ring);
        pool.free(at);
    }

    /// What is known of the port changed.
    pub fn set_port(&self, port: &PortFacts) {
        self.lid.store(port.lid, Ordering::Relaxed);
        self.lmc.store(port.lmc, Ordering::Relaxed);
    }

    /// Frames may be indicated.
    pub fn open(&self) {
        self.idle.clear();
        self.gate.open();
    }

    /// Frames are dropped from now on.
    pub fn close(&self) {
        if self.gate.close() {
            self.idle.set();
        }
    }

    /// Waits until NDIS has returned every frame, once closed.
    pub fn wait_idle(&self, at: &Passive<'_>) {
        self.close();
        self.idle.wait(at);
    }

    /// The QP takes receives.
    pub fn start(&self, machinery: &Machinery, at: Dispatch<'_>) {
        self.ring.start(&machinery.resources.qp, at);
    }

    /// Nothing is posted any more.
    pub fn stop(&self, at: Dispatch<'_>) {
        self.ring.stop(at);
    }

    /// As [`RxRing::wait_drained`].
    #[must_use]
    pub fn wait_drained(&self, at: &Passive<'_>, timeout: Duration) -> bool {
        self.ring.wait_drained(at, timeout)
    }

    /// As [`RxRing::reclaim`].
    pub fn reclaim(&self, at: Dispatch<'_>) -> usize {
        self.ring.reclaim(at)
    }

    /// As [`RxRing::refill`].
    pub fn refill(&self, machinery: &Machinery, at: Dispatch<'_>) {
        self.ring.refill(&machinery.resources.qp, at);
    }

    /// MiniportReturnNetBufferLists.
    pub fn take_back(&self, machinery: &Machinery, chain: ReturnedChain, at: Dispatch<'_>) {
        let count = chain.len() as usize;
        self.ring.put(chain, &machinery.resources.qp, at);
        self.leave(count);
    }

    fn leave(&self, count: usize) {
        if count != 0 && self.gate.leave(count) {
            self.idle.set();
        }
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
        let cq = &machinery.resources.receive_cq;
        let mut armed = false;
        // Taken from in place, here and below: it is large, and most polls find little.
        let mut arrivals: Arrivals = [const { None }; BATCH];
        while *budget != 0 {
            *budget -= 1;
            match self.ring.poll(cq, &mut arrivals, at) {
                Ok(0) if armed => return true,
                Ok(0) if cq.rearm().is_ok() => armed = true,
                Ok(0) | Err(_) => {
                    adapter.ask(Jobs::CQ_ERROR);
                    return true;
                }
                Ok(_) => self.deliver(adapter, machinery, &mut arrivals, at),
            }
        }
        false
    }

    /// Indicates what is to be indicated, and gives the rest back to the ring.
    fn deliver(&self, adapter: &Adapter, machinery: &Machinery, arrivals: &mut Arrivals, at: Dispatch<'_>) {
        let mut chain = ReceiveChain::new();
        let mut rejected = [const { None }; BATCH];
        for (Arrival { mut buffer, received, flushed }, place) in
            arrivals.iter_mut().filter_map(Option::take).zip(rejected.iter_mut())
        {
            let accepted = match received {
                Some(received) => self.accept(adapter, machinery, &mut buffer, &received, at),
                None if flushed => Err(None),
                None => {
                    // A receive that fails takes the QP to ERROR: a datagram longer than the buffer, for one (IBTA
                    // volume 1, 10.10.3.1, local length error). No asynchronous event tells of it.
                    adapter.ask(Jobs::QP_ERROR);
                    Err(Some(Drop::ReceiveFailed))
                }
            };
            match accepted {
                Ok((cast, length)) if self.gate.enter() => {
                    adapter.statistics.received.count(cast, length);
                    chain.push_back(buffer);
                }
                Ok(_) => {
                    adapter.statistics.drop_frame(Drop::ReceivePaused);
                    *place = Some(buffer);
                }
                Err(cause) => {
                    if let Some(cause) = cause {
                        adapter.statistics.drop_frame(cause);
                    }
                    *place = Some(buffer);
                }
            }
        }
        let qp = &machinery.resources.qp;
        self.ring.put(rejected.iter_mut().filter_map(Option::take), qp, at);
        if machinery.resolver.has_work(at) {
            adapter.ask(Jobs::PATHS);
        }
        if chain.is_empty() {
            return;
        }
        if self.ring.available(at) > self.low_watermark {
            chain.indicate(adapter.ndis, at);
        } else {
            adapter.statistics.low_resources.add(u64::from(chain.len()));
            let returned = chain.indicate_for_now(adapter.ndis, at);
            self.take_back(machinery, returned, at);
        }
    }

    /// Makes an Ethernet frame of what was received. Answers its address kind and length, or why it is dropped.
    fn accept(
        &self,
        adapter: &Adapter,
        machinery: &Machinery,
        buffer: &mut ReceiveBuffer,
        received: &Received,
        at: Dispatch<'_>,
    ) -> core::result::Result<(Cast, usize), Option<Drop>> {
        let total = received.length as usize;
        let bytes = buffer.bytes_mut().get_mut(..total).ok_or(Some(Drop::ReceiveTooLong))?;
        let (grh, payload) = bytes.split_first_chunk_mut::<GRH_LEN>().ok_or(Some(Drop::ReceiveTooShort))?;
        let grh = if received.has_grh { Some(Grh::parse(grh).ok_or(Some(Drop::ReceiveGrh))?) } else { None };
        let plan = Up::new(payload).map_err(|refused| {
            Some(match refused {
                Refused::TooShort | Refused::NoGroup => Drop::ReceiveTooShort,
                Refused::TooLong => Drop::ReceiveTooLong,
                Refused::EtherType => Drop::ReceiveEthertype,
            })
        })?;
        let source = Source {
            qpn: Qpn::new(received.remote_qpn).ok_or(Some(Drop::ReceiveSource))?,
            lid: Lid::new(received.remote_lid),
            gid: grh.map(|grh| grh.source),
        };
        let lmc = self.lmc.load(Ordering::Relaxed);
        if source.qpn == self.qpn && source.lid.base(lmc).get() == self.lid.load(Ordering::Relaxed) {
            return Err(Some(Drop::ReceiveOwn));
        }
        let destination = match grh {
            Some(grh) if grh.destination.is_multicast() => {
                Mgid::parse(grh.destination).ok_or(Some(Drop::ReceiveGrh))?.to_mac()
            }
            // The HCA takes only what is for this port.
            _ => self.current,
        };
        if !adapter.filters.wants(destination, self.current, at) {
            return Err(Some(Drop::ReceiveFiltered));
        }
        let now = Time::from_uptime(crate::kernel::time::now());
        let packet = payload.get_mut(HEADER_LEN..).ok_or(Some(Drop::ReceiveTooShort))?;
        let (sender, length) = machinery.resolver.receive(plan, &source, packet, now, at)?;
        let frame = ethernet::Header { destination, source: sender, ethertype: plan.ethertype };
        let length = ethernet::Header::LEN + length;
        let written = encap::write_ethernet(buffer.bytes_mut(), &frame).is_some()
            && buffer.set_frame(ETHERNET_OFFSET, length, Verified::default());
        if written {
            Ok((Cast::of(&destination.to_bytes()), length))
        } else {
            Err(Some(Drop::ReceiveTooShort))
        }
    }
}

/// What it means for a frame that its source is not accepted.
pub(crate) const fn rejection(rejected: Rejected) -> Drop {
    match rejected {
        Rejected::Own => Drop::ReceiveOwn,
        Rejected::Invalid | Rejected::Contradiction => Drop::ReceiveSource,
        Rejected::NoAddress | Rejected::NoRoom => Drop::ReceiveNoPeer,
    }
}
