//! The send queue: one slot for each send that may be under way.
//!
//! A slot has what a send needs and is made in `try_new`: storage for a scatter/gather list, and a piece of DMA
//! memory. The memory takes the 4-byte IPoIB header that stands before a payload sent in place, or a whole packet
//! when that was rewritten or lies in too many pieces.
//!
//! ```text
//! claim -> Claim -> post_copied                       (packet in the slot's memory)
//!                \-> SgDma::map ... -> post_mapped    (header in the slot's memory, payload where it lies)
//! completion -> Finished -> retire                    (slot free again)
//! ```
//! The CQ is polled and the QP posted to with the ring locked: see `rx_ring` for why polling is; posting is so
//! that after [`TxRing::stop`] nothing can be posted that a reset of the QP would forget.

use crate::ib::av::Av;
use crate::ib::cq::Cq;
use crate::ib::qp::Qp;
use crate::ib::status::IbError;
use crate::ib::wc::{Completion, CompletionBatch, Done};
use crate::ib::wr::SendRequest;
use crate::kernel::arc::PoolArc;
use crate::kernel::event::{Event, Kind};
use crate::kernel::irql::{Dispatch, Passive};
use crate::kernel::nbl::SendBuffer;
use crate::kernel::physical::DmaBuffer;
use crate::kernel::pool::{PoolVec, Tag};
use crate::kernel::set_once::SetOnce;
use crate::kernel::sg::{MappedBuffer, SgDma, SgStorage};
use crate::kernel::spinlock::SpinLock;
use crate::kernel::status::{Error, Result};
use crate::peers::AvRef;
use core::time::Duration;

const TAG: Tag = Tag::new(*b"IbTr");
/// Completions of one poll: as many as a frame of less than 2 KiB holds.
pub const BATCH: usize = 12;
/// Segments of a send: the header and the pieces of the payload.
pub const SEGMENTS: usize = 18;
/// The header that IPoIB puts before a payload, at the start of a slot's memory.
pub const HEADER: usize = 4;

/// Where a send goes.
pub struct Route {
    /// The address handle.
    pub av: PoolArc<SetOnce<Av>>,
    /// Destination QPN.
    pub qpn: u32,
    /// Q_Key.
    pub qkey: u32,
    /// What has to be released when the send is over.
    pub lease: AvRef,
}

/// What a slot holds while a send is under way.
enum Held {
    /// The frame is read where it lies.
    Mapped(MappedBuffer),
    /// The slot's memory has a copy, and this is completed when that was sent.
    Copied(SendBuffer, SgStorage),
}

/// A send that is with the HCA.
struct Posted {
    held: Held,
    lease: AvRef,
}

struct Slot {
    /// At rest here; elsewhere while the slot is claimed.
    storage: Option<SgStorage>,
    /// Where the frame goes that is being mapped.
    planned: Option<(Route, [u8; HEADER])>,
    posted: Option<Posted>,
}

struct State {
    slots: PoolVec<Slot>,
    /// Slots that are not claimed.
    free: PoolVec<u16>,
    memory: DmaBuffer,
    /// For a frame that must be seen whole and lies in pieces.
    scratch: PoolVec<u8>,
    posted: usize,
    /// Whether the QP takes sends.
    posting: bool,
}

/// A slot of one's own, with its storage.
pub struct Claim {
    /// The slot.
    pub slot: usize,
    /// For the scatter/gather list.
    pub storage: SgStorage,
}

/// How a send ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The message is out.
    Sent,
    /// The QP went to ERROR before.
    Flushed,
    /// The HCA failed it.
    Failed,
}

/// A send that is over, still with its slot.
pub struct Finished {
    slot: usize,
    held: Held,
    lease: AvRef,
    outcome: Outcome,
}

/// The sends of one poll that are over.
pub type FinishedBatch = [Option<Finished>; BATCH];

/// The send queue of an adapter.
pub struct TxRing {
    state: SpinLock<State>,
    /// Set when no slot is in use while posting is stopped: nothing is with the HCA, and nothing is being mapped.
    drained: Event,
    slot_size: usize,
    /// Segments that the QP takes.
    max_segments: usize,
    lkey: u32,
}

impl TxRing {
    /// A ring of `depth` slots with `slot_size` bytes each: a power of two up to a page, so that none crosses one.
    pub fn try_new<T: Send + Sync>(
        dma: &SgDma<T>,
        depth: u32,
        slot_size: usize,
        max_segments: usize,
        lkey: u32,
    ) -> Result<Self> {
        let depth = u16::try_from(depth).map_err(|_| Error::INVALID_PARAMETER)?;
        let count = usize::from(depth);
        let state = State {
            slots: PoolVec::try_from_fn(TAG, count, |_| {
                Ok(Slot { storage: Some(dma.allocate_storage()?), planned: None, posted: None })
            })?,
            free: PoolVec::try_from_fn(TAG, count, |index| Ok(depth - 1 - index as u16))?,
            memory: DmaBuffer::try_new(TAG, count * slot_size)?,
            // An Ethernet frame is longer than the packet it carries by more than IPoIB's header.
            scratch: PoolVec::try_from_fn(TAG, slot_size + 16, |_| Ok(0))?,
            posted: 0,
            posting: false,
        };
        let drained = Event::try_new(Kind::Notification, true)?;
        Ok(Self { state: SpinLock::new(state), drained, slot_size, max_segments, lkey })
    }

    /// The QP takes sends.
    pub fn start(&self, at: Dispatch<'_>) {
        self.drained.clear();
        self.state.lock_at(at).posting = true;
    }

    /// Posts nothing any more. What is posted comes back when the QP is in ERROR, what is being mapped when it is.
    pub fn stop(&self, at: Dispatch<'_>) {
        let mut state = self.state.lock_at(at);
        state.posting = false;
        self.note_drained(&state);
    }

    fn note_drained(&self, state: &State) {
        if !state.posting && state.free.len() == state.slots.len() {
            self.drained.set();
        }
    }

    /// Waits until every slot is free. `false` if the time is over.
    #[must_use]
    pub fn wait_drained(&self, at: &Passive<'_>, timeout: Duration) -> bool {
        self.drained.wait_timeout(at, timeout)
    }

    /// A free slot, if there is one.
    pub fn claim(&self, at: Dispatch<'_>) -> Option<Claim> {
        let mut state = self.state.lock_at(at);
        let state = &mut *state;
        let slot = usize::from(*state.free.last()?);
        let storage = state.slots.get_mut(slot)?.storage.take()?;
        state.free.pop();
        Some(Claim { slot, storage })
    }

    /// Gives a slot back that nothing was posted from.
    pub fn unclaim(&self, claim: Claim, at: Dispatch<'_>) {
        let mut state = self.state.lock_at(at);
        state.rest(claim.slot, claim.storage);
        self.note_drained(&state);
    }

    /// Keeps route and header of a claimed slot while its frame is being mapped.
    pub fn plan(&self, slot: usize, route: Route, header: [u8; HEADER], at: Dispatch<'_>) {
        if let Some(place) = self.state.lock_at(at).slots.get_mut(slot) {
            place.planned = Some((route, header));
        }
    }

    /// Takes them back.
    pub fn planned(&self, slot: usize, at: Dispatch<'_>) -> Option<(Route, [u8; HEADER])> {
        self.state.lock_at(at).slots.get_mut(slot)?.planned.take()
    }

    /// How large a packet a slot's memory takes.
    pub const fn slot_size(&self) -> usize {
        self.slot_size
    }

    /// Has `write` put a packet into the memory of a claimed slot, which it is given together with scratch memory of
    /// the same size.
    pub fn write<R>(
        &self,
        claim: &Claim,
        write: impl FnOnce(&mut [u8], &mut [u8]) -> R,
        at: Dispatch<'_>,
    ) -> Option<R> {
        let mut state = self.state.lock_at(at);
        let state = &mut *state;
        let start = claim.slot.checked_mul(self.slot_size)?;
        let memory = state.memory.bytes_mut().get_mut(start..start.checked_add(self.slot_size)?)?;
        Some(write(memory, &mut state.scratch))
    }

    /// Posts the first `length` bytes of the slot's memory, on behalf of `buffer`. On failure nothing is posted and
    /// everything comes back.
    pub fn post_copied(
        &self,
        claim: Claim,
        buffer: SendBuffer,
        length: usize,
        route: Route,
        qp: &Qp,
        at: Dispatch<'_>,
    ) -> core::result::Result<(), (SendBuffer, Claim, AvRef)> {
        let Route { av, qpn, qkey, lease } = route;
        let mut state = self.state.lock_at(at);
        let Some(av) = av.get() else { return Err((buffer, claim, lease)) };
        let mut request = SendRequest::<2>::new(claim.slot as u64, av, qpn, qkey);
        let start = claim.slot.saturating_mul(self.slot_size);
        let complete = length <= self.slot_size
            && state
                .memory
                .segments(start..start.saturating_add(length))
                .all(|segment| request.push(segment, self.lkey).is_ok());
        if !complete || !state.posting || qp.post_send(&mut request).is_err() {
            return Err((buffer, claim, lease));
        }
        let Claim { slot, storage } = claim;
        state.hold(slot, Posted { held: Held::Copied(buffer, storage), lease });
        Ok(())
    }

    /// Whether a frame's pieces, with the header before them, fit into one request.
    pub fn fits(&self, mapped: &MappedBuffer, skip: usize) -> bool {
        mapped.segments(skip).count() < self.max_segments.min(SEGMENTS)
    }

    /// Posts the header in the slot's memory and, behind it, the frame without its Ethernet header where it lies.
    /// On failure nothing is posted and everything comes back.
    pub fn post_mapped(
        &self,
        mapped: MappedBuffer,
        header: [u8; HEADER],
        skip: usize,
        route: Route,
        qp: &Qp,
        at: Dispatch<'_>,
    ) -> core::result::Result<(), (MappedBuffer, Route)> {
        let slot = mapped.cookie();
        let start = slot.saturating_mul(self.slot_size);
        let mut state = self.state.lock_at(at);
        let Some(av) = route.av.get() else { return Err((mapped, route)) };
        let mut request = SendRequest::<SEGMENTS>::new(slot as u64, av, route.qpn, route.qkey);
        let Some(place) = state.memory.bytes_mut().get_mut(start..start.saturating_add(HEADER)) else {
            return Err((mapped, route));
        };
        place.copy_from_slice(&header);
        let complete = state
            .memory
            .segments(start..start.saturating_add(HEADER))
            .chain(mapped.segments(skip))
            .all(|segment| request.push(segment, self.lkey).is_ok());
        if !complete || !state.posting || qp.post_send(&mut request).is_err() {
            return Err((mapped, route));
        }
        state.hold(slot, Posted { held: Held::Mapped(mapped), lease: route.lease });
        Ok(())
    }

    /// Polls once. `Err` if the CQ cannot be polled.
    pub fn poll(
        &self,
        cq: &Cq,
        finished: &mut FinishedBatch,
        at: Dispatch<'_>,
    ) -> core::result::Result<usize, IbError> {
        let mut batch = CompletionBatch::<BATCH>::new();
        let mut state = self.state.lock_at(at);
        cq.poll(&mut batch)?;
        let mut count = 0;
        for (completion, place) in batch.iter().zip(finished.iter_mut()) {
            *place = state.finish(completion);
            count += 1;
        }
        Ok(count)
    }

    /// Takes back one send that the HCA still had, after the QP was put in RESET, where it has forgotten it.
    pub fn reclaim(&self, at: Dispatch<'_>) -> Option<Finished> {
        let mut state = self.state.lock_at(at);
        let state = &mut *state;
        let found = state.slots.iter_mut().enumerate().find_map(|(slot, held)| {
            held.posted.take().map(|posted| Finished {
                slot,
                held: posted.held,
                lease: posted.lease,
                outcome: Outcome::Flushed,
            })
        });
        if found.is_some() {
            state.posted = state.posted.saturating_sub(1);
        }
        found
    }

    /// Ends the mapping of a finished send, frees its slot, and gives back what has to be released, how it ended, and
    /// the buffer to complete.
    pub fn retire<T: Send + Sync>(
        &self,
        finished: Finished,
        dma: &SgDma<T>,
        at: Dispatch<'_>,
    ) -> (AvRef, Outcome, SendBuffer) {
        let Finished { slot, held, lease, outcome } = finished;
        let (buffer, storage) = match held {
            Held::Mapped(mapped) => dma.unmap(mapped, at),
            Held::Copied(buffer, storage) => (buffer, storage),
        };
        let mut state = self.state.lock_at(at);
        state.rest(slot, storage);
        self.note_drained(&state);
        (lease, outcome, buffer)
    }

    /// Sends that are with the HCA.
    pub fn posted(&self, at: Dispatch<'_>) -> usize {
        self.state.lock_at(at).posted
    }
}

impl State {
    fn hold(&mut self, slot: usize, posted: Posted) {
        if let Some(place) = self.slots.get_mut(slot) {
            debug_assert!(place.posted.is_none(), "two sends in one slot");
            place.posted = Some(posted);
            self.posted += 1;
        }
    }

    fn rest(&mut self, slot: usize, storage: SgStorage) {
        if let Some(place) = self.slots.get_mut(slot) {
            place.storage = Some(storage);
            // There is room for every slot.
            let _ = self.free.push(slot as u16);
        }
    }

    fn finish(&mut self, completion: Completion) -> Option<Finished> {
        let slot = usize::try_from(completion.wr_id).ok()?;
        let posted = self.slots.get_mut(slot)?.posted.take()?;
        self.posted = self.posted.saturating_sub(1);
        let outcome = match completion.outcome {
            Ok(Done::Sent | Done::Received(_)) => Outcome::Sent,
            Err(error) if error.is_flush() => Outcome::Flushed,
            Err(_) => Outcome::Failed,
        };
        Some(Finished { slot, held: posted.held, lease: posted.lease, outcome })
    }
}
