//! Sends: from a protocol to the miniport and back through `NdisMSendNetBufferListsComplete`.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::Arc;

use windows_kernel_sys::{
    NDIS_DEFAULT_PORT_NUMBER, NDIS_HANDLE, NDIS_SEND_COMPLETE_FLAGS, NDIS_SEND_FLAGS, NDIS_STATUS,
    NDIS_STATUS_PENDING, NDIS_STATUS_SUCCESS, NET_BUFFER_LIST,
};

use super::adapter::{Adapter, Core, refusal};
use super::binding::BindingCore;
use super::call::{UP_TO_DISPATCH, dispatch_flag, entered, some_level};
use super::handle;
use super::outgoing::Outgoing;
use super::protocol::{SendCompletion, SendRequest};
use super::rules::{self, broken};
use super::state::Phase;
use crate::export;
use crate::kernel::irql::DISPATCH_LEVEL;
use crate::sim::border::{self, Side};
use crate::sim::{Lock, Nanos, SECOND};
use crate::verifier::call_driver;

/// devtest/ndis-ndistimeddatasend.
pub(super) const TIME_LIMIT: Nanos = 30 * SECOND;

/// Where a send is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// MiniportSendNetBufferLists has it and has not returned.
    Calling,
    /// The miniport has it.
    Delivered,
}

struct Outstanding {
    list: Outgoing,
    binding: Arc<BindingCore>,
    tag: u64,
    sequence: u64,
    since: Nanos,
    cancel_id: usize,
    stage: Stage,
    /// Handed down after MiniportPause had returned NDIS_STATUS_PENDING.
    while_pausing: bool,
}

#[derive(Default)]
struct State {
    lists: HashMap<usize, Outstanding>,
    next_sequence: u64,
    /// Sends up to this number were outstanding when the reset in progress began.
    reset_mark: u64,
}

/// The sends of an adapter that the miniport has.
#[derive(Default)]
pub(super) struct Sends(Lock<State>);

impl Sends {
    /// How many the miniport has, without those whose handler call is still under way.
    pub fn outstanding(&self) -> usize {
        self.0.lock().lists.values().filter(|send| send.stage == Stage::Delivered).count()
    }

    /// When the oldest was handed down.
    pub fn oldest(&self) -> Option<Nanos> {
        self.0.lock().lists.values().map(|send| send.since).min()
    }

    /// Notes which are outstanding as a reset begins.
    pub fn mark_reset(&self) {
        let mut state = self.0.lock();
        state.reset_mark = state.next_sequence;
    }

    /// How many of those are outstanding still.
    pub fn before_reset(&self) -> usize {
        let state = self.0.lock();
        let old = |send: &&Outstanding| send.sequence < state.reset_mark && send.stage == Stage::Delivered;
        state.lists.values().filter(old).count()
    }
}

/// NET_BUFFER_LISTs of one call, linked, and what is known of each.
type Chain = Vec<(usize, Outstanding)>;

impl Core {
    /// Sends what a protocol asks for. Ends in `send_complete` of the protocol for every list, now or later.
    pub(super) fn send(&self, binding: &Arc<BindingCore>, request: &SendRequest) {
        if request.lists.is_empty() {
            return;
        }
        let (phase, removed) = self.phase_for_send();
        if !phase.may_send() {
            self.refuse(binding, request, refusal(removed));
            return;
        }
        let chain = self.build(binding, request);
        let frames: usize = chain.iter().map(|(_, send)| send.list.frames()).sum();
        let count = chain.len() as u64;
        let first = chain[0].0 as *mut NET_BUFFER_LIST;
        let addresses: Vec<usize> = chain.iter().map(|(address, _)| *address).collect();
        let level = some_level();
        let flags =
            if level == DISPATCH_LEVEL { NDIS_SEND_FLAGS::DISPATCH_LEVEL } else { NDIS_SEND_FLAGS::empty() };
        let Some(handler) = self.driver.handlers().SendNetBufferListsHandler else {
            unreachable!("checked at registration")
        };
        let mut undelivered = Some(chain);
        call_driver("MiniportSendNetBufferLists", level, || {
            // The adapter may have begun to pause since: looked at again with nothing in between that could yield.
            let Some(context) = border::on(Side::Lab, || self.deliver(&mut undelivered)) else { return };
            // SAFETY: the handler of the initialised miniport, with its own context and a chain that lives until it
            // is completed.
            unsafe { handler(context as NDIS_HANDLE, first, NDIS_DEFAULT_PORT_NUMBER, flags.bits()) };
        });
        if undelivered.is_some() {
            drop(undelivered);
            self.refuse(binding, request, refusal(removed));
            return;
        }
        {
            let mut state = self.sends.0.lock();
            for address in &addresses {
                if let Some(send) = state.lists.get_mut(address) {
                    send.stage = Stage::Delivered;
                }
            }
        }
        self.watchdog.call_ended();
        self.count(|counters| {
            counters.sends += count;
            counters.frames_sent += frames as u64;
        });
    }

    /// The phase as far as a new send is concerned: while pausing it is passed on or refused by chance, since a
    /// protocol's send may come at any time.
    fn phase_for_send(&self) -> (Phase, bool) {
        let (phase, removed) = {
            let life = self.life.lock();
            (life.phase, life.removed)
        };
        if phase == Phase::Pausing && self.machine.sim().rng(|rng| rng.chance(1 << 15)) {
            return (Phase::Paused, removed);
        }
        (phase, removed)
    }

    /// Enters a chain as the miniport's; its adapter context. `None` leaves the chain where it is: the adapter does
    /// not take sends any more.
    fn deliver(&self, chain: &mut Option<Chain>) -> Option<usize> {
        let life = self.life.lock();
        // Between MiniportPause's call and its return nothing is sent: it could complete the pause before it can
        // know of a send that is on its way.
        if !(life.phase == Phase::Running || life.phase == Phase::Pausing && life.pause_pending) {
            return None;
        }
        let mut state = self.sends.0.lock();
        for (address, mut send) in chain.take()? {
            send.while_pausing = life.pause_pending;
            send.sequence = state.next_sequence;
            state.next_sequence += 1;
            state.lists.insert(address, send);
        }
        self.watchdog.call_began();
        Some(life.context)
    }

    fn build(&self, binding: &Arc<BindingCore>, request: &SendRequest) -> Chain {
        let sim = self.machine.sim();
        let since = sim.now();
        let mut chain: Chain = Vec::with_capacity(request.lists.len());
        for list in &request.lists {
            let source = binding.handle.raw();
            let random = |bound: usize| sim.rng(|rng| rng.below(bound as u64)) as usize;
            let outgoing = Outgoing::build(&self.machine, list, self.options.fragmentation, source, random);
            let address = outgoing.list() as usize;
            if let Some((previous, _)) = chain.last() {
                // SAFETY: the list before in the same chain, still this function's.
                unsafe { (*(*previous as *mut NET_BUFFER_LIST)).Next = address as *mut NET_BUFFER_LIST };
            }
            let send = Outstanding {
                list: outgoing,
                binding: Arc::clone(binding),
                tag: list.tag,
                sequence: 0,
                since,
                cancel_id: list.cancel_id,
                stage: Stage::Calling,
                while_pausing: false,
            };
            chain.push((address, send));
        }
        chain
    }

    fn refuse(&self, binding: &Arc<BindingCore>, request: &SendRequest, status: NDIS_STATUS) {
        self.count(|counters| counters.sends_refused += request.lists.len() as u64);
        let completions: Vec<_> =
            request.lists.iter().map(|list| SendCompletion { tag: list.tag, status }).collect();
        binding.protocol.send_complete(&completions);
    }

    /// Takes back one list that the miniport completes.
    fn complete_one(&self, address: usize, call: &str) -> (Outstanding, NDIS_STATUS, usize) {
        let entry = self.sends.0.lock().lists.remove(&address);
        let Some(send) = entry else {
            broken(&rules::NDIS_SEND_DOUBLE_COMPLETE, call, "the list is not outstanding on this adapter");
        };
        // SAFETY: the list is in the block that `send` holds.
        let (status, next) = unsafe {
            let list = &*send.list.list();
            (list.Status, list.Next as usize)
        };
        if status == NDIS_STATUS_PENDING {
            broken(&rules::NDIS_SEND_STATUS, call, "the Status member was not set");
        }
        if send.while_pausing && status == NDIS_STATUS_SUCCESS {
            broken(&rules::NDIS_SEND_AFTER_PAUSE, call, "sent although MiniportPause had been called before");
        }
        if send.list.buffers().any(|buffer| self.dma.has_list(buffer)) {
            broken(&rules::NDIS_DMA_OUTSTANDING, call, "a scatter/gather list for its data is still held");
        }
        if let Some(what) = send.list.difference() {
            broken(&rules::NDIS_SEND_MODIFIED, call, what);
        }
        (send, status, next)
    }

    fn complete_chain(&self, first: usize, call: &str) {
        let mut ended: Vec<(Outstanding, NDIS_STATUS)> = Vec::new();
        let mut next = first;
        while next != 0 {
            let (send, status, after) = self.complete_one(next, call);
            ended.push((send, status));
            next = after;
        }
        self.count(|counters| {
            let succeeded = ended.iter().filter(|(_, status)| *status == NDIS_STATUS_SUCCESS).count() as u64;
            counters.sends_succeeded += succeeded;
            counters.sends_failed += ended.len() as u64 - succeeded;
        });
        // One notice for each run of lists of the same protocol, in the order of the chain.
        for run in ended.chunk_by(|a, b| Arc::ptr_eq(&a.0.binding, &b.0.binding)) {
            let completions: Vec<_> =
                run.iter().map(|(send, status)| SendCompletion { tag: send.tag, status: *status }).collect();
            run[0].0.binding.protocol.send_complete(&completions);
        }
    }
}

impl Adapter {
    /// Calls MiniportCancelSend for everything sent with this cancel id, and checks that what the miniport still
    /// queues of it comes back as aborted: a list completed otherwise had left the queue before.
    pub fn cancel_sends(&self, cancel_id: usize) {
        let core = &self.0;
        let Some(handler) = core.driver.handlers().CancelSendHandler.filter(|_| core.phase().may_send())
        else {
            return;
        };
        let context = core.context();
        call_driver("MiniportCancelSend", some_level(), || {
            // SAFETY: the handler of the initialised miniport, with its own context; the id is a number to compare.
            unsafe { handler(context, cancel_id as *mut c_void) };
        });
    }

    /// How many sends with this cancel id the miniport still has.
    pub fn outstanding_with(&self, cancel_id: usize) -> usize {
        self.0.sends.0.lock().lists.values().filter(|send| send.cancel_id == cancel_id).count()
    }
}

export! { "ndis.sys";
    /// IRQL <= DISPATCH_LEVEL (ndis/nf-ndis-ndismsendnetbufferlistscomplete).
    pub unsafe fn NdisMSendNetBufferListsComplete(
        MiniportAdapterHandle: NDIS_HANDLE, NetBufferList: *mut NET_BUFFER_LIST, SendCompleteFlags: u32,
    ) {
        const CALL: &str = "NdisMSendNetBufferListsComplete";
        entered(CALL, UP_TO_DISPATCH);
        let flags = NDIS_SEND_COMPLETE_FLAGS::from_bits_retain(SendCompleteFlags);
        dispatch_flag(CALL, flags.contains(NDIS_SEND_COMPLETE_FLAGS::DISPATCH_LEVEL));
        let core: Arc<Core> = handle::get(MiniportAdapterHandle, CALL);
        core.complete_chain(NetBufferList as usize, CALL);
    }
}
