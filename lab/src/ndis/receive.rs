//! Receives: from the miniport through `NdisMIndicateReceiveNetBufferLists` to the bindings, and back.

use std::collections::HashMap;
use std::sync::Arc;

use windows_kernel_sys::{
    NDIS_DEFAULT_PORT_NUMBER, NDIS_HANDLE, NDIS_PORT_NUMBER, NDIS_RECEIVE_FLAGS, NDIS_RETURN_FLAGS,
    NET_BUFFER_LIST,
};

use super::adapter::{Core, Returns};
use super::call::{UP_TO_DISPATCH, dispatch_flag, entered, some_level};
use super::filter::MacAddress;
use super::handle;
use super::nbl;
use super::net_buffer::{self, Piece};
use super::protocol::Frame;
use super::rules::{self, broken};
use crate::export;
use crate::kernel::irql::DISPATCH_LEVEL;
use crate::sim::border::{self, Side};
use crate::sim::{Lock, Nanos};
use crate::verifier::call_driver;

/// Bytes of an Ethernet header.
const HEADER: usize = 14;

/// A receive that NDIS has.
struct Held {
    pieces: Vec<(usize, usize)>,
    fingerprint: u64,
}

/// The receives of an adapter that the miniport has not got back.
#[derive(Default)]
pub(super) struct Receives(Lock<HashMap<usize, Held>>);

impl Receives {
    /// How many the miniport has not got back.
    pub fn outstanding(&self) -> usize {
        self.0.lock().len()
    }

    /// Whether NDIS has this list.
    pub fn holds(&self, list: usize) -> bool {
        self.0.lock().contains_key(&list)
    }
}

/// An indicated list that was found in order.
struct Checked {
    address: usize,
    pieces: Vec<Piece>,
    bytes: Vec<u8>,
}

impl Core {
    /// The lists of an indicated chain. A list that NDIS has, or that was never allocated, is not looked into.
    fn indicated(&self, first: *mut NET_BUFFER_LIST, call: &str) -> Vec<usize> {
        let mut chain = Vec::new();
        let mut next = first as usize;
        while next != 0 {
            if self.receives.holds(next) || chain.contains(&next) {
                broken(
                    &rules::NDIS_RECEIVE_TWICE,
                    call,
                    format!("list {} was indicated before", chain.len()),
                );
            }
            if !nbl::is_live(&self.machine, next) {
                broken(&rules::NDIS_RECEIVE_LIST, call, format!("list {} is of no pool", chain.len()));
            }
            chain.push(next);
            // SAFETY: a live list of one of the driver's pools.
            next = unsafe { (*(next as *mut NET_BUFFER_LIST)).Next } as usize;
        }
        chain
    }

    fn check(&self, address: usize, mtu: usize, call: &str) -> Checked {
        let list = address as *mut NET_BUFFER_LIST;
        // SAFETY: a live list of one of the driver's pools.
        let (source, buffers) = unsafe { ((*list).SourceHandle, net_buffer::buffers(list, call)) };
        if source != self.handle.raw() {
            broken(&rules::NDIS_RECEIVE_LIST, call, "SourceHandle is not the adapter's handle");
        }
        let [buffer] = buffers[..] else {
            let detail = format!("{} NET_BUFFERs in a list, an Ethernet receive has one", buffers.len());
            broken(&rules::NDIS_RECEIVE_LIST, call, detail);
        };
        // SAFETY: the NET_BUFFER of a live list, whose chain the driver has initialised.
        let pieces =
            unsafe { net_buffer::check_mdls((*buffer).MdlChain).and_then(|()| net_buffer::pieces(buffer)) };
        let pieces = pieces.unwrap_or_else(|what| broken(&rules::NDIS_MDL_CHAIN, call, what));
        let length: usize = pieces.iter().map(|piece| piece.length).sum();
        if !(HEADER..=mtu + HEADER).contains(&length) {
            let detail = format!("{length} bytes, allowed are {HEADER} to {}", mtu + HEADER);
            broken(&rules::NDIS_RECEIVE_LENGTH, call, detail);
        }
        // A protocol reads the link header in place (network/indicating-received-data-from-a-miniport-driver).
        if pieces[0].length < HEADER {
            broken(&rules::NDIS_RECEIVE_LIST, call, "the Ethernet header is not contiguous");
        }
        // SAFETY: the pieces lie in MDLs that describe their memory.
        let bytes = unsafe { net_buffer::gather(&pieces) };
        Checked { address, pieces, bytes }
    }

    /// Hands frames to the bindings whose filters they pass.
    fn hand_up(&self, frames: &[Checked], station: MacAddress, resources: bool) {
        let bindings = self.bindings.lock().clone();
        let mut heard = vec![false; frames.len()];
        for binding in bindings {
            let filter = binding.filter.lock().clone();
            let mut passed = Vec::with_capacity(frames.len());
            for (index, frame) in frames.iter().enumerate() {
                let Some(destination) = frame.bytes.first_chunk() else { continue };
                if filter.passes(station, *destination) {
                    passed.push(Frame { bytes: &frame.bytes, resources });
                    heard[index] = true;
                }
            }
            if !passed.is_empty() {
                binding.protocol.receive(&passed);
            }
        }
        let filtered = heard.iter().filter(|heard| !**heard).count() as u64;
        self.count(|counters| {
            counters.receives += frames.len() as u64;
            counters.receives_filtered += filtered;
            if resources {
                counters.receives_low_on_resources += frames.len() as u64;
            }
        });
    }

    /// Keeps lists for as long as some protocol would, then returns them.
    fn keep(self: &Arc<Self>, mut lists: Vec<usize>) {
        let sim = self.machine.sim();
        let hold = match self.options.returns {
            Returns::AtOnce => return self.give_back(&lists),
            Returns::After(hold) => return self.give_back_after(hold, lists),
            Returns::Mixed(hold) => hold,
        };
        while !lists.is_empty() {
            let (how, part) = sim.rng(|rng| {
                let all = lists.len() as u64;
                let part = if rng.chance(1 << 14) { 1 + rng.below(all) } else { all };
                (rng.below(4), part as usize)
            });
            let rest = lists.split_off(part);
            let now = std::mem::replace(&mut lists, rest);
            match how {
                0 | 1 => self.give_back(&now),
                2 => {
                    let core = Arc::clone(self);
                    self.machine.queue_dpc("NDIS returns receives", move || core.give_back(&now));
                }
                _ => self.give_back_after(sim.rng(|rng| rng.below(hold + 1)), now),
            }
        }
    }

    fn give_back_after(self: &Arc<Self>, delay: Nanos, lists: Vec<usize>) {
        let core = Arc::clone(self);
        self.machine.sim().after(delay, "NDIS returns receives", move |_| {
            let machine = core.machine.clone();
            machine.queue_dpc("NDIS returns receives", move || core.give_back(&lists));
        });
    }

    /// Calls MiniportReturnNetBufferLists.
    fn give_back(&self, lists: &[usize]) {
        let call = "MiniportReturnNetBufferLists";
        for (index, address) in lists.iter().enumerate() {
            let changed = {
                let held = self.receives.0.lock();
                held.get(address).map(|held| self.changed(*address, held))
            };
            match changed {
                None => broken(&rules::NDIS_NBL_FREED, call, "a list that NDIS has is gone"),
                Some(Some(what)) => broken(&rules::NDIS_RECEIVE_MODIFIED, call, what),
                Some(None) => {}
            }
            let next = lists.get(index + 1).copied().unwrap_or(0);
            // SAFETY: a live list that NDIS has.
            unsafe { (*(*address as *mut NET_BUFFER_LIST)).Next = next as *mut NET_BUFFER_LIST };
        }
        let level = some_level();
        let flags = if level == DISPATCH_LEVEL {
            NDIS_RETURN_FLAGS::DISPATCH_LEVEL
        } else {
            NDIS_RETURN_FLAGS::empty()
        };
        let Some(handler) = self.driver.handlers().ReturnNetBufferListsHandler else {
            unreachable!("checked at registration")
        };
        let context = self.context();
        self.watchdog.call_began();
        call_driver(call, level, || {
            // From here on they are the miniport's; nothing yields in between.
            border::on(Side::Lab, || {
                for address in lists {
                    self.receives.0.lock().remove(address);
                    nbl::set_held(&self.machine, *address, false);
                }
            });
            // SAFETY: the handler of the initialised miniport, with its own context and lists it indicated.
            unsafe { handler(context, lists[0] as *mut NET_BUFFER_LIST, flags.bits()) };
        });
        self.watchdog.call_ended();
    }

    /// What the driver changed of a list that NDIS has.
    fn changed(&self, address: usize, held: &Held) -> Option<String> {
        if !nbl::is_live(&self.machine, address) {
            return Some("the list was freed".into());
        }
        let list = address as *mut NET_BUFFER_LIST;
        // SAFETY: a live list with the one NET_BUFFER it was indicated with.
        let pieces = unsafe {
            let first = (*list).FirstNetBuffer;
            if first.is_null() { Err("the NET_BUFFER is gone".into()) } else { net_buffer::pieces(first) }
        };
        match pieces {
            Err(what) => Some(what),
            Ok(pieces) => {
                let same = pieces
                    .iter()
                    .map(|piece| (piece.start as usize, piece.length))
                    .eq(held.pieces.iter().copied());
                // SAFETY: the pieces are those that were checked at the indication.
                let intact = same && unsafe { net_buffer::fingerprint(&pieces) } == held.fingerprint;
                (!intact).then(|| "the data of a list that NDIS has changed".into())
            }
        }
    }

    fn indicate(self: &Arc<Self>, first: *mut NET_BUFFER_LIST, count: u32, resources: bool, call: &str) {
        let chain = self.indicated(first, call);
        if chain.len() != count as usize {
            let detail = format!("{} lists, NumberOfNetBufferLists is {count}", chain.len());
            broken(&rules::NDIS_RECEIVE_LIST, call, detail);
        }
        if chain.is_empty() {
            return;
        }
        let general = self.general();
        let frames: Vec<_> =
            chain.iter().map(|address| self.check(*address, general.mtu as usize, call)).collect();
        if resources {
            self.hand_up(&frames, general.current_address, true);
            return;
        }
        {
            let mut held = self.receives.0.lock();
            for frame in &frames {
                // SAFETY: the pieces were checked just now.
                let fingerprint = unsafe { net_buffer::fingerprint(&frame.pieces) };
                let pieces = frame.pieces.iter().map(|piece| (piece.start as usize, piece.length)).collect();
                held.insert(frame.address, Held { pieces, fingerprint });
            }
        }
        for address in &chain {
            nbl::set_held(&self.machine, *address, true);
        }
        self.hand_up(&frames, general.current_address, false);
        self.keep(chain);
    }
}

export! { "ndis.sys";
    /// IRQL <= DISPATCH_LEVEL (ndis/nf-ndis-ndismindicatereceivenetbufferlists).
    pub unsafe fn NdisMIndicateReceiveNetBufferLists(
        MiniportAdapterHandle: NDIS_HANDLE, NetBufferLists: *mut NET_BUFFER_LIST, PortNumber: NDIS_PORT_NUMBER,
        NumberOfNetBufferLists: u32, ReceiveFlags: u32,
    ) {
        const CALL: &str = "NdisMIndicateReceiveNetBufferLists";
        entered(CALL, UP_TO_DISPATCH);
        let flags = NDIS_RECEIVE_FLAGS::from_bits_retain(ReceiveFlags);
        dispatch_flag(CALL, flags.contains(NDIS_RECEIVE_FLAGS::DISPATCH_LEVEL));
        let core: Arc<Core> = handle::get(MiniportAdapterHandle, CALL);
        let phase = core.phase();
        if !phase.may_receive() {
            broken(&rules::NDIS_RECEIVE_STATE, CALL, format!("the adapter is {phase:?}"));
        }
        if PortNumber != NDIS_DEFAULT_PORT_NUMBER {
            broken(&rules::NDIS_RECEIVE_LIST, CALL, format!("port {PortNumber} was not allocated"));
        }
        let resources = flags.contains(NDIS_RECEIVE_FLAGS::RESOURCES);
        core.indicate(NetBufferLists, NumberOfNetBufferLists, resources, CALL);
    }
}
