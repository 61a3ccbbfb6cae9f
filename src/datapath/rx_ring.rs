//! The receive queue: buffers with the HCA, buffers with NDIS, and spare ones.
//!
//! Every buffer is made in `try_new`; afterwards they only change hands, so nothing here allocates. A buffer that
//! is posted lies in the slot whose index is the request's `wr_id`.
//!
//! The CQ is polled with the ring locked. So a completion and the buffer it belongs to are taken in one step, and
//! after a reset of the QP no completion can be under way that names a slot which was filled anew.

use crate::ib::cq::Cq;
use crate::ib::qp::Qp;
use crate::ib::status::IbError;
use crate::ib::wc::{Completion, CompletionBatch, Done, Received};
use crate::ib::wr::RecvRequest;
use crate::kernel::event::{Event, Kind};
use crate::kernel::irql::{Dispatch, Passive};
use crate::kernel::nbl::{ReceiveBuffer, ReceivePool};
use crate::kernel::pool::{PoolVec, Tag};
use crate::kernel::spinlock::SpinLock;
use crate::kernel::status::{Error, Result};
use core::time::Duration;

const TAG: Tag = Tag::new(*b"IbRr");
/// Completions of one poll, and requests of one post: as many as a frame of less than 2 KiB holds.
pub const BATCH: usize = 12;
/// A buffer that holds an IB MTU of 4,096 and a GRH crosses at most two page boundaries.
const SEGMENTS: usize = 3;

/// What a receive brought.
#[derive(Debug)]
pub struct Arrival {
    /// The buffer, which the caller owns now.
    pub buffer: ReceiveBuffer,
    /// What is in it; `None` if the receive failed or was flushed.
    pub received: Option<Received>,
    /// Whether it was flushed rather than failed.
    pub flushed: bool,
}

/// The arrivals of one poll.
pub type Arrivals = [Option<Arrival>; BATCH];

#[derive(Debug)]
struct State {
    /// Buffers with the HCA, by slot.
    posted: PoolVec<Option<ReceiveBuffer>>,
    /// Slots without a buffer.
    vacant: PoolVec<u16>,
    /// Buffers that are neither with the HCA nor with NDIS.
    spare: PoolVec<ReceiveBuffer>,
    /// Whether the QP takes receives.
    posting: bool,
}

impl State {
    fn posted_count(&self) -> usize {
        self.posted.len().saturating_sub(self.vacant.len())
    }
}

/// The receive queue of an adapter.
#[derive(Debug)]
pub struct RxRing {
    state: SpinLock<State>,
    /// Set when nothing is posted while posting is stopped.
    drained: Event,
    lkey: u32,
}

impl RxRing {
    /// A ring that posts up to `depth` receives out of `count` buffers of `size` bytes.
    pub fn try_new(pool: &ReceivePool, depth: u32, count: u32, size: u32, lkey: u32) -> Result<Self> {
        let depth = u16::try_from(depth).map_err(|_| Error::INVALID_PARAMETER)?;
        let count = count.max(u32::from(depth)) as usize;
        let state = State {
            posted: PoolVec::try_from_fn(TAG, usize::from(depth), |_| Ok(None))?,
            // The last element is taken first: slots are used in ascending order.
            vacant: PoolVec::try_from_fn(TAG, usize::from(depth), |index| Ok(depth - 1 - index as u16))?,
            spare: PoolVec::try_from_fn(TAG, count, |_| pool.allocate(size))?,
            posting: false,
        };
        Ok(Self { state: SpinLock::new(state), drained: Event::try_new(Kind::Notification, true)?, lkey })
    }

    /// The QP takes receives: posts as many as there are buffers.
    pub fn start(&self, qp: &Qp, at: Dispatch<'_>) {
        self.drained.clear();
        let mut state = self.state.lock_at(at);
        state.posting = true;
        self.fill(&mut state, qp);
    }

    /// Posts nothing any more. What is posted comes back when the QP is in ERROR.
    pub fn stop(&self, at: Dispatch<'_>) {
        let mut state = self.state.lock_at(at);
        state.posting = false;
        if state.posted_count() == 0 {
            self.drained.set();
        }
    }

    /// Waits until every posted buffer came back. `false` if the time is over.
    #[must_use]
    pub fn wait_drained(&self, at: &Passive<'_>, timeout: Duration) -> bool {
        self.drained.wait_timeout(at, timeout)
    }

    /// Takes back what the HCA still had, after the QP was put in RESET, where it has forgotten it. Returns how
    /// many those were.
    pub fn reclaim(&self, at: Dispatch<'_>) -> usize {
        let mut state = self.state.lock_at(at);
        let state = &mut *state;
        let mut count = 0;
        for (index, slot) in state.posted.iter_mut().enumerate() {
            if let Some(buffer) = slot.take() {
                count += 1;
                // There is room: the capacities are those of all slots and of all buffers.
                let _ = state.vacant.push(index as u16);
                let _ = state.spare.push(buffer);
            }
        }
        self.drained.set();
        count
    }

    /// Polls once. `Err` if the CQ cannot be polled.
    // A frame of its own: the batch is gone from the stack when its frames are delivered.
    #[inline(never)]
    pub fn poll(
        &self,
        cq: &Cq,
        arrivals: &mut Arrivals,
        at: Dispatch<'_>,
    ) -> core::result::Result<usize, IbError> {
        let mut batch = CompletionBatch::<BATCH>::new();
        let mut state = self.state.lock_at(at);
        cq.poll(&mut batch)?;
        let mut count = 0;
        for (completion, place) in batch.iter().zip(arrivals.iter_mut()) {
            *place = state.take(completion);
            count += 1;
        }
        if !state.posting && state.posted_count() == 0 {
            self.drained.set();
        }
        Ok(count)
    }

    /// Gives buffers back to the ring, which posts them if it can.
    pub fn put(&self, buffers: impl Iterator<Item = ReceiveBuffer>, qp: &Qp, at: Dispatch<'_>) {
        let mut state = self.state.lock_at(at);
        for buffer in buffers {
            // There is room for every buffer that exists.
            let _ = state.spare.push(buffer);
        }
        self.fill(&mut state, qp);
    }

    /// Posts what could not be posted before.
    pub fn refill(&self, qp: &Qp, at: Dispatch<'_>) {
        self.fill(&mut self.state.lock_at(at), qp);
    }

    /// Buffers that are with the HCA or could be: what is left for frames to come.
    pub fn available(&self, at: Dispatch<'_>) -> usize {
        let state = self.state.lock_at(at);
        state.posted_count() + state.spare.len()
    }

    /// Posts spare buffers to vacant slots.
    fn fill(&self, state: &mut State, qp: &Qp) {
        while state.posting && !state.spare.is_empty() && !state.vacant.is_empty() {
            let mut requests = [const { RecvRequest::<SEGMENTS>::new(0) }; BATCH];
            let mut count = 0;
            for request in &mut requests {
                let (Some(&slot), false) = (state.vacant.last(), state.spare.is_empty()) else { break };
                let Some(place) = state.posted.get_mut(usize::from(slot)) else { break };
                let Some(buffer) = state.spare.pop() else { break };
                let mut next = RecvRequest::new(u64::from(slot));
                // A buffer has at most as many segments as a request.
                let fits = buffer.segments().iter().all(|segment| next.push(*segment, self.lkey).is_ok());
                *place = Some(buffer);
                debug_assert!(fits, "a receive buffer in too many pieces");
                *request = next;
                state.vacant.pop();
                count += 1;
            }
            let Some(list) = requests.get_mut(..count).filter(|list| !list.is_empty()) else { return };
            if let Err(failed) = qp.post_receives(list) {
                // What is not posted now is tried again with the next buffer that comes back, or the next tick.
                for request in list.iter().skip(failed.posted).rev() {
                    state.give_back(request.wr_id());
                }
                return;
            }
        }
    }
}

impl State {
    fn take(&mut self, completion: Completion) -> Option<Arrival> {
        let index = usize::try_from(completion.wr_id).ok()?;
        let buffer = self.posted.get_mut(index)?.take()?;
        let _ = self.vacant.push(index as u16);
        Some(match completion.outcome {
            Ok(Done::Received(received)) => Arrival { buffer, received: Some(received), flushed: false },
            // A send cannot complete here; its buffer is as good as a failed receive's.
            Ok(Done::Sent) => Arrival { buffer, received: None, flushed: false },
            Err(error) => {
                // The QP is in ERROR: whatever is posted comes straight back, until it is started again.
                self.posting &= !error.is_flush();
                Arrival { buffer, received: None, flushed: error.is_flush() }
            }
        })
    }

    /// A buffer whose request was not taken becomes spare again.
    fn give_back(&mut self, wr_id: u64) {
        let Ok(index) = usize::try_from(wr_id) else { return };
        if let Some(buffer) = self.posted.get_mut(index).and_then(Option::take) {
            let _ = self.vacant.push(index as u16);
            let _ = self.spare.push(buffer);
        }
    }
}
