//! The room's one door: see the room's description for how it is driven.

use super::av::{self, AvPool, AvRef};
use super::endpoint::{Endpoint, Target};
use super::fifo::Fifo;
use super::group::{Record, Role};
use super::groups::{self, Groups};
use super::hash::HashKey;
use super::listen::Listeners;
use super::memory::{Memory, OutOfMemory};
use super::path::Path;
use super::pending::{Pending, Refusal};
use super::resolve::{Action, Event, Policy, Resolution, State};
use super::slab::Key;
use super::table::{self, Table};
use super::time::Time;
use crate::ipoib::scheme::Scheme;
use crate::ipoib::scheme::laa::LaaCounter;
use crate::ipoib::{Gid, Lid, MacAddr, Mgid, Qpn};

/// How large things may grow and how long they live.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// How Ethernet addresses of peers are made.
    pub scheme: Scheme,
    /// A number that others cannot guess.
    pub hash_seed: u64,
    /// Peers at most.
    pub peers: u32,
    /// Multicast groups at most.
    pub groups: u32,
    /// Packets that may wait for resolution, in all.
    pub pending: u32,
    /// Packets that may wait for one destination.
    pub pending_each: u16,
    /// Queries to the subnet administrator outstanding at a time.
    pub queries: u32,
    /// Patience with the subnet administrator.
    pub policy: Policy,
    /// Milliseconds after which an unused peer is forgotten, and a group that is only sent to is left.
    pub idle: u32,
}

impl Config {
    /// For a subnet of any size: a segment of memory at first, 131,072 peers at most.
    pub const DEFAULT: Self = Self {
        scheme: Scheme::QpnLid,
        hash_seed: 0,
        peers: 1 << 17,
        groups: 1 << 12,
        pending: 1 << 10,
        pending_each: 64,
        queries: 32,
        policy: Policy::DEFAULT,
        idle: 260_000,
    };
}

/// This adapter, as the directory must know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Local {
    /// The current Ethernet address.
    pub mac: MacAddr,
    /// The UD QP.
    pub qpn: Qpn,
    /// GID 0 of the port.
    pub gid: Gid,
    /// Base LID of the port; [`Lid::UNASSIGNED`] while it has none.
    pub lid: Lid,
    /// LID mask control of the port, taken to be every port's.
    pub lmc: u8,
}

/// How to post to a destination.
#[derive(Debug)]
pub struct Route<'a, A> {
    /// To be given back with [`Directory::release`].
    pub av: AvRef,
    /// The address handle.
    pub handle: &'a A,
    /// Destination QPN.
    pub qpn: Qpn,
    /// Q_Key.
    pub qkey: u32,
}

/// What became of a packet.
#[derive(Debug)]
pub enum Sent<'a, A, P> {
    /// Post it.
    Ready(P, Route<'a, A>),
    /// It waits for its destination to be resolved.
    Queued,
    /// Complete it with failure.
    Refused(P, Refusal),
}

/// Which piece of work an answer belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    pub(super) kind: Kind,
    pub(super) key: Key,
    pub(super) round: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Peer,
    Group,
}

/// Work for PASSIVE_LEVEL.
#[derive(Debug)]
pub enum Work<A, J> {
    /// Ask the subnet administrator for a path, and call [`Directory::path_answered`] exactly once.
    QueryPath {
        /// For the answer.
        ticket: Ticket,
        /// Whom to ask for.
        target: Target,
    },
    /// Make an address handle, and call [`Directory::av_created`] exactly once.
    CreateAv {
        /// For the answer.
        ticket: Ticket,
        /// What to make it from.
        path: Path,
    },
    /// Destroy an address handle; no send names it any more.
    DestroyAv(A),
    /// Join a group, and call [`Directory::joined`] exactly once.
    Join {
        /// For the answer.
        ticket: Ticket,
        /// The group.
        mgid: Mgid,
        /// As what.
        role: Role,
        /// The broadcast group's record: whose partition, Q_Key, MTU, rate and service level a group that is
        /// created gets (RFC 4391, section 4.1).
        template: Record,
    },
    /// Leave a group, and call [`Directory::left`] exactly once.
    Leave {
        /// For the answer.
        ticket: Ticket,
        /// What the join gave.
        membership: J,
    },
}

/// Who is out there.
///
/// `A` is an address handle, `J` a multicast membership, `P` a packet, `M` where memory comes from.
pub struct Directory<A, J, P, M: Memory> {
    pub(super) config: Config,
    pub(super) local: Option<Local>,
    pub(super) counter: LaaCounter,
    pub(super) table: Table<M>,
    /// Peers to ask the subnet administrator for.
    pub(super) queries: Fifo,
    /// Peers with other work.
    pub(super) work: Fifo,
    pub(super) waiting: Fifo,
    pub(super) ready: Fifo,
    pub(super) queries_outstanding: u32,
    /// Raised when every path is to be asked for anew; a peer whose own is lower does so when next sent to.
    pub(super) epoch: u32,
    /// Where the sweep for unused peers stands.
    pub(super) hand: u32,
    pub(super) deadline: Option<Time>,
    /// Memory ran out; not asked for again before the next tick.
    pub(super) growth_failed: bool,
    pub(super) groups: Groups<J, M>,
    pub(super) listeners: Listeners<M>,
    pub(super) avs: AvPool<A, M>,
    pub(super) pending: Pending<P, M>,
}

/// Which tables want memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    peers: bool,
    groups: bool,
    avs: bool,
}

/// Memory for tables to grow.
pub struct Growth<A, J, M: Memory> {
    peers: Option<table::Growth<M>>,
    groups: Option<groups::Growth<J, M>>,
    avs: Option<av::Growth<A, M>>,
}

impl<A, J, M: Memory> Growth<A, J, M> {
    /// Allocates what is wanted; without the lock.
    pub fn prepare(memory: &M, wanted: Wanted) -> Result<Self, OutOfMemory> {
        Ok(Self {
            peers: if wanted.peers { Some(Table::prepare(memory)?) } else { None },
            groups: if wanted.groups { Some(Groups::prepare(memory)?) } else { None },
            avs: if wanted.avs { Some(AvPool::<A, M>::prepare(memory)?) } else { None },
        })
    }
}

impl<A, J, P, M: Memory> Directory<A, J, P, M> {
    /// An empty directory, with memory for a first segment of peers, groups and address handles.
    // A frame of its own, and one for what it calls: a kernel stack is small, and this is not.
    #[inline(never)]
    pub fn new(memory: &M, config: Config) -> Result<Self, OutOfMemory> {
        // The result is filled where the caller wants it, rather than moved there.
        let mut directory = Self::without_memory(memory, config);
        if let Ok(directory) = &mut directory {
            directory.first_segments(memory)?;
        }
        directory
    }

    #[inline(never)]
    fn first_segments(&mut self, memory: &M) -> Result<(), OutOfMemory> {
        let all = Wanted { peers: true, groups: true, avs: true };
        self.install(Growth::prepare(memory, all)?);
        Ok(())
    }

    /// Its parts put together.
    #[inline(never)]
    fn without_memory(memory: &M, config: Config) -> Result<Self, OutOfMemory> {
        let hash = HashKey::new(config.hash_seed);
        Ok(Self {
            config,
            local: None,
            counter: LaaCounter::new(),
            table: Table::new(memory, config.peers, hash)?,
            queries: Fifo::NEW,
            work: Fifo::NEW,
            waiting: Fifo::NEW,
            ready: Fifo::NEW,
            queries_outstanding: 0,
            epoch: 0,
            hand: 0,
            deadline: None,
            growth_failed: false,
            groups: Groups::new(memory, config.groups, hash)?,
            listeners: Listeners::new(memory)?,
            // As many again as destinations: a handle that was replaced lives until its sends are complete.
            avs: AvPool::new(memory, config.peers.saturating_add(config.groups).saturating_mul(2))?,
            pending: Pending::new(memory, config.pending, config.pending_each)?,
        })
    }

    /// Which tables are nearly full and may grow; `None` if none is.
    pub fn wants_room(&self) -> Option<Wanted> {
        const SPARE: u32 = 64;
        if self.growth_failed {
            return None;
        }
        let wanted = Wanted {
            peers: self.table.slots.len() + SPARE > self.table.slots.capacity()
                && !self.table.slots.is_at_limit(),
            groups: self.groups.len() + SPARE > self.groups.capacity() && !self.groups.is_at_limit(),
            avs: self.avs.count() + SPARE > self.avs.capacity() && !self.avs.is_at_limit(),
        };
        (wanted.peers || wanted.groups || wanted.avs).then_some(wanted)
    }

    /// Takes the memory that [`Growth::prepare`] allocated.
    pub fn install(&mut self, growth: Growth<A, J, M>) {
        if let Some(growth) = growth.peers {
            self.table.grow(growth);
        }
        if let Some(growth) = growth.groups {
            self.groups.grow(growth);
        }
        if let Some(growth) = growth.avs {
            self.avs.grow(growth);
        }
    }

    /// There was no memory to grow: [`Self::wants_room`] is quiet until the next tick.
    pub fn cannot_grow(&mut self) {
        self.growth_failed = true;
    }

    /// Says who we are: when the port becomes active, and whenever its LID or GID changes. If they did
    /// change, peers' may have too, so every path is asked for anew.
    pub fn set_port(&mut self, local: Local) {
        if self.local.replace(local).is_some_and(|before| before != local) {
            self.revalidate();
        }
    }

    /// Every path is asked for anew before, or while, it is used next: LIDs may have changed, or the subnet
    /// administrator was replaced. Address handles stay in use until their paths turn out to be others.
    pub fn revalidate(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
    }

    /// Peers known.
    pub fn peers(&self) -> u32 {
        self.table.slots.len()
    }

    /// Address handles not yet destroyed.
    pub fn address_handles(&self) -> u32 {
        self.avs.count()
    }

    /// Sends a packet to one station.
    pub fn send(&mut self, mac: MacAddr, packet: P, now: Time) -> Sent<'_, A, P> {
        let Some(slot) = self.table.find_mac(mac).or_else(|| self.derive(mac, now)) else {
            let full = self.config.scheme.decode(mac).is_some_and(|(qpn, lid)| !self.is_own(qpn, lid, None));
            return Sent::Refused(packet, if full { Refusal::NoRoom } else { Refusal::NoPeer });
        };
        let epoch = self.epoch;
        let Some(endpoint) = self.table.slots.get_mut(slot) else {
            return Sent::Refused(packet, Refusal::NoPeer);
        };
        endpoint.last_used = now;
        let event =
            if endpoint.epoch == epoch || endpoint.av.is_none() { Event::Wanted } else { Event::Doubted };
        endpoint.epoch = epoch;
        if (event, endpoint.resolution.state) != (Event::Wanted, State::Resolved) {
            let action = endpoint.resolution.step(event, now, &self.config.policy);
            self.follow(slot, action);
        }
        let Some(endpoint) = self.table.slots.get_mut(slot) else {
            return Sent::Refused(packet, Refusal::NoPeer);
        };
        if let Some(id) = &endpoint.av
            && endpoint.pending.is_empty()
        {
            let (qpn, qkey) = (endpoint.qpn, self.groups.qkey());
            return match self.avs.acquire(id) {
                Some((av, handle)) => Sent::Ready(packet, Route { av, handle, qpn, qkey }),
                None => Sent::Refused(packet, Refusal::QueueFull),
            };
        }
        if endpoint.av.is_none() && !endpoint.resolution.queues() {
            return Sent::Refused(packet, Refusal::Unreachable);
        }
        match self.pending.push(&mut endpoint.pending, packet) {
            Ok(()) => Sent::Queued,
            Err(packet) => Sent::Refused(packet, Refusal::QueueFull),
        }
    }

    /// A new peer of whom only the Ethernet address is known, if that tells QPN and LID.
    fn derive(&mut self, mac: MacAddr, now: Time) -> Option<u32> {
        let (qpn, lid) = self.config.scheme.decode(mac)?;
        if self.is_own(qpn, lid, None) {
            return None;
        }
        self.insert(Endpoint::new(mac, qpn, lid, self.epoch, now), now)
    }

    /// Adds a peer, after making room if there is none.
    pub(super) fn insert(&mut self, endpoint: Endpoint, now: Time) -> Option<u32> {
        if self.table.slots.len() >= self.table.slots.capacity() {
            self.evict(now);
        }
        self.table.insert(endpoint)
    }

    pub(super) fn is_own(&self, qpn: Qpn, lid: Lid, gid: Option<Gid>) -> bool {
        self.local.is_some_and(|local| qpn == local.qpn && (lid == local.lid || gid == Some(local.gid)))
    }

    /// Does what a peer's resolution asks for.
    pub(super) fn follow(&mut self, slot: u32, action: Action) {
        match action {
            Action::Nothing => {}
            Action::Work => {
                let due = self.table.slots.get(slot).map(|endpoint| endpoint.resolution.state);
                let list = if due == Some(State::QueryDue) { &mut self.queries } else { &mut self.work };
                list.push(&mut self.table.slots, |endpoint| &mut endpoint.work, slot);
            }
            Action::Wait => {
                let deadline = self.table.slots.get(slot).and_then(|endpoint| endpoint.resolution.deadline());
                self.note_deadline(deadline);
                self.waiting.push(&mut self.table.slots, |endpoint| &mut endpoint.waiting, slot);
            }
            Action::Flush => self.ready.push(&mut self.table.slots, |endpoint| &mut endpoint.ready, slot),
            Action::Refuse { drop_av } => {
                if let Some(endpoint) = self.table.slots.get_mut(slot) {
                    let doomed = if drop_av { endpoint.av.take() } else { None };
                    if endpoint.av.is_none() {
                        self.pending.refuse(&mut endpoint.pending, Refusal::Unreachable);
                    }
                    if let Some(id) = doomed {
                        endpoint.path = None;
                        self.avs.doom(id);
                    }
                }
            }
        }
    }

    pub(super) fn note_deadline(&mut self, deadline: Option<Time>) {
        self.deadline = match (self.deadline, deadline) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }

    /// Gives back the reference of a send that has completed, flushed, or failed to post.
    #[inline]
    pub fn release(&mut self, av: AvRef) {
        self.avs.release(av);
    }

    /// Whether the worker has something to do: after each call from DISPATCH, this says whether to wake it.
    pub fn has_work(&self) -> bool {
        let may_query = self.queries_outstanding < self.config.queries && !self.queries.is_empty();
        may_query
            || !self.work.is_empty()
            || !self.ready.is_empty()
            || self.groups.has_work()
            || self.avs.has_dead()
            || self.pending.has_refused()
            || self.wants_room().is_some()
    }

    /// The next packet whose destination is resolved by now.
    pub fn next_ready(&mut self) -> Option<(P, Route<'_, A>)> {
        let peer = loop {
            let Some(slot) = self.ready.first() else { break None };
            if let Some(endpoint) = self.table.slots.get_mut(slot)
                && endpoint.av.is_some()
                && let Some(packet) = self.pending.pop(&mut endpoint.pending)
            {
                break Some((slot, packet));
            }
            self.ready.pop(&mut self.table.slots, |endpoint| &mut endpoint.ready);
        };
        let (packet, id, qpn, qkey) = match peer {
            Some((slot, packet)) => {
                let endpoint = self.table.slots.get(slot)?;
                (packet, endpoint.av.as_ref()?, endpoint.qpn, self.groups.qkey())
            }
            None => self.groups.next_ready(&mut self.pending)?,
        };
        // 2^32 sends in flight are more than any queue holds.
        let (av, handle) = self.avs.acquire(id)?;
        Some((packet, Route { av, handle, qpn, qkey }))
    }

    /// The next packet that will not be sent.
    pub fn next_refused(&mut self) -> Option<(P, Refusal)> {
        self.pending.next_refused()
    }

    /// Takes the waiting packets for which `is_it` says yes, wherever they wait, and gives them to `taken`:
    /// for MiniportCancelSend, for a pause, and (with a constant yes) when the link goes down.
    pub fn cancel(&mut self, is_it: impl FnMut(&P) -> bool, taken: impl FnMut(P)) {
        self.pending.cancel(is_it, taken);
    }

    /// Forgets every peer: their packets are refused, their address handles doomed, answers outstanding late.
    /// Groups stay; see [`Self::clear_broadcast`].
    pub fn forget_peers(&mut self) {
        for slot in 0..self.table.slots.capacity() {
            self.retire(slot, Refusal::Forgotten);
        }
    }

    /// Takes a peer out of every index. It leaves the pool with the sweep, once it is in no list.
    pub(super) fn retire(&mut self, slot: u32, why: Refusal) {
        self.table.unlink(slot);
        if let Some(endpoint) = self.table.slots.get_mut(slot) {
            endpoint.resolution.step(Event::Reset, Time::default(), &self.config.policy);
            endpoint.path = None;
            self.pending.refuse(&mut endpoint.pending, why);
            if let Some(id) = endpoint.av.take() {
                self.avs.doom(id);
            }
            if endpoint.is_idle() {
                self.table.remove(slot);
            }
        }
    }

    /// Makes room for one peer: forgets the one unused for the longest time among the next few, if that is
    /// long.
    fn evict(&mut self, now: Time) {
        const CANDIDATES: u32 = 32;
        const UNUSED: u64 = 1_000;
        let mut oldest: Option<(u32, u64)> = None;
        for _ in 0..CANDIDATES {
            let slot = self.advance_hand();
            if let Some(endpoint) = self.table.slots.get(slot)
                && endpoint.is_idle()
            {
                let age = now.millis_since(endpoint.last_used);
                if age >= UNUSED && oldest.is_none_or(|(_, oldest)| age > oldest) {
                    oldest = Some((slot, age));
                }
            }
        }
        if let Some((slot, _)) = oldest {
            self.retire(slot, Refusal::Forgotten);
        }
    }

    pub(super) fn advance_hand(&mut self) -> u32 {
        let slot = self.hand;
        self.hand = if slot + 1 < self.table.slots.capacity() { slot + 1 } else { 0 };
        slot
    }

    /// Resolution of a peer, for reports and tests.
    pub fn resolution(&self, mac: MacAddr) -> Option<Resolution> {
        self.table.slots.get(self.table.find_mac(mac)?).map(|endpoint| endpoint.resolution)
    }
}

#[cfg(test)]
#[path = "directory_tests/mod.rs"]
mod tests;
