//! The table of multicast groups, and what the worker does with it.

use super::av::{AvId, AvPool};
use super::directory::{Kind, Ticket, Work};
use super::fifo::Fifo;
use super::group::{Action, Event, Group, Membership, Record, Role, State};
use super::hash::HashKey;
use super::index::{self, Index};
use super::memory::{Memory, OutOfMemory};
use super::pending::{Pending, Refusal};
use super::resolve::Policy;
use super::slab::{Slab, Slot};
use super::time::Time;
use crate::ipoib::{Mgid, Qpn};

/// Groups that one tick looks at in search of unused ones, and waiting ones that it looks at.
const BUDGET: u32 = 256;

/// The table.
pub(super) struct Groups<J, M: Memory> {
    pub(super) slots: Slab<Group<J>, M>,
    by_mgid: Index<M>,
    work: Fifo,
    waiting: Fifo,
    ready: Fifo,
    hash: HashKey,
    hand: u32,
    /// The broadcast group's slot and record; `None` while the link is down. Then nothing is joined.
    pub(super) broadcast: Option<(u32, Record)>,
}

/// Memory for [`Groups::grow`].
pub(super) struct Growth<J, M: Memory> {
    slots: M::Array<Slot<Group<J>>>,
    by_mgid: index::Growth<M>,
}

impl<J, M: Memory> Groups<J, M> {
    pub(super) fn new(memory: &M, limit: u32, hash: HashKey) -> Result<Self, OutOfMemory> {
        Ok(Self {
            slots: Slab::new(memory, limit)?,
            by_mgid: Index::new(memory, limit)?,
            work: Fifo::NEW,
            waiting: Fifo::NEW,
            ready: Fifo::NEW,
            hash,
            hand: 0,
            broadcast: None,
        })
    }

    pub(super) fn prepare(memory: &M) -> Result<Growth<J, M>, OutOfMemory> {
        Ok(Growth { slots: Slab::segment(memory)?, by_mgid: Index::prepare(memory)? })
    }

    pub(super) fn grow(&mut self, growth: Growth<J, M>) {
        if !self.slots.is_at_limit() {
            self.by_mgid.grow(growth.by_mgid);
            let _ = self.slots.grow(growth.slots);
        }
    }

    pub(super) fn len(&self) -> u32 {
        self.slots.len()
    }

    pub(super) fn capacity(&self) -> u32 {
        self.slots.capacity()
    }

    pub(super) fn is_at_limit(&self) -> bool {
        self.slots.is_at_limit()
    }

    /// The Q_Key of the link: that of the broadcast group (RFC 4391, section 4.1).
    #[inline]
    pub(super) fn qkey(&self) -> u32 {
        self.broadcast.map_or(0, |(_, record)| record.qkey)
    }

    fn mgid_hash(&self, mgid: Mgid) -> u32 {
        let gid = mgid.gid();
        self.hash.three(u64::from_be_bytes(gid.prefix()), u64::from_be_bytes(gid.guid()), 0)
    }

    pub(super) fn find(&self, mgid: Mgid) -> Option<u32> {
        self.by_mgid
            .find(self.mgid_hash(mgid), |slot| self.slots.get(slot).is_some_and(|group| group.mgid == mgid))
    }

    pub(super) fn find_or_insert(&mut self, mgid: Mgid, now: Time) -> Option<u32> {
        if let Some(slot) = self.find(mgid) {
            return Some(slot);
        }
        let slot = self.slots.insert(Group::new(mgid, now)).ok()?.slot();
        self.by_mgid.insert(self.mgid_hash(mgid), slot);
        Some(slot)
    }

    fn remove(&mut self, slot: u32) {
        self.by_mgid.remove(slot);
        self.slots.remove(slot);
    }

    pub(super) fn has_work(&self) -> bool {
        !self.work.is_empty() || !self.ready.is_empty()
    }

    /// Feeds an event to a group's membership and does what that asks for.
    pub(super) fn step(&mut self, slot: u32, event: Event, now: Time, policy: &Policy) {
        let Some(group) = self.slots.get_mut(slot) else { return };
        let action = group.membership.step(event, now, policy);
        match action {
            Action::Nothing => {}
            Action::Work => self.work.push(&mut self.slots, |group| &mut group.work, slot),
            Action::Wait => self.waiting.push(&mut self.slots, |group| &mut group.waiting, slot),
            Action::Flush => self.ready.push(&mut self.slots, |group| &mut group.ready, slot),
        }
    }

    /// The next packet whose group is joined by now, and how it goes.
    pub(super) fn next_ready<P>(&mut self, pending: &mut Pending<P, M>) -> Option<(P, &AvId, Qpn, u32)> {
        let (slot, packet) = loop {
            let slot = self.ready.first()?;
            if let Some(group) = self.slots.get_mut(slot)
                && group.membership.is_open()
                && group.av.is_some()
                && let Some(packet) = pending.pop(&mut group.pending)
            {
                break (slot, packet);
            }
            self.ready.pop(&mut self.slots, |group| &mut group.ready);
        };
        let group = self.slots.get(slot)?;
        Some((packet, group.av.as_ref()?, Qpn::MULTICAST, group.record.map_or(0, |record| record.qkey)))
    }

    pub(super) fn next_work<A>(&mut self, now: Time, policy: &Policy) -> Option<Work<A, J>> {
        while let Some(slot) = self.work.pop(&mut self.slots, |group| &mut group.work) {
            let Some(key) = self.slots.key(slot) else { continue };
            let broadcast = self.broadcast;
            let Some(group) = self.slots.get_mut(slot) else { continue };
            let state = group.membership.state;
            let prepared = match state {
                State::JoinDue(role) => broadcast.map(|(_, template)| Prepared::Join(role, template)),
                State::AvDue(_) => group.record.map(|record| Prepared::CreateAv(record)),
                State::LeaveDue => group.handle.take().map(Prepared::Leave),
                _ => continue,
            };
            let Some(prepared) = prepared else {
                // Nothing to leave, no record to make a handle from, or no link to join on.
                let event = if state == State::LeaveDue { Event::Left } else { Event::Failed };
                self.step(slot, Event::Taken, now, policy);
                self.step(slot, event, now, policy);
                continue;
            };
            let mgid = group.mgid;
            group.membership.step(Event::Taken, now, policy);
            let ticket = Ticket { kind: Kind::Group, key, round: group.membership.round };
            return Some(match prepared {
                Prepared::Join(role, template) => Work::Join { ticket, mgid, role, template },
                Prepared::CreateAv(record) => Work::CreateAv { ticket, path: record.path },
                Prepared::Leave(membership) => Work::Leave { ticket, membership },
            });
        }
        None
    }

    /// The group that a ticket means, unless it is late.
    pub(super) fn punctual(&self, ticket: Ticket) -> Option<u32> {
        let slot = self.slots.resolve(ticket.key)?;
        (self.slots.get(slot)?.membership.round == ticket.round).then_some(slot)
    }

    pub(super) fn av_created<A>(
        &mut self,
        ticket: Ticket,
        outcome: Result<A, ()>,
        avs: &mut AvPool<A, M>,
        now: Time,
        policy: &Policy,
    ) -> Option<A> {
        let Some(slot) = self.punctual(ticket) else { return outcome.ok() };
        let Some(group) = self.slots.get_mut(slot) else { return outcome.ok() };
        if !matches!(group.membership.state, State::CreatingAv(_)) {
            return outcome.ok();
        }
        let (event, unwanted) = match outcome.map(|handle| avs.insert(handle)) {
            Ok(Ok(id)) => {
                if let Some(old) = group.av.replace(id) {
                    avs.doom(old);
                }
                (Event::AvCreated, None)
            }
            Ok(Err(handle)) => (Event::Failed, Some(handle)),
            Err(()) => (Event::Failed, None),
        };
        self.step(slot, event, now, policy);
        unwanted
    }

    /// Lets time pass. Answers when something is due next.
    pub(super) fn tick(&mut self, now: Time, idle: u64, policy: &Policy) -> Option<Time> {
        let mut deadline: Option<Time> = None;
        let mut last = None;
        for _ in 0..BUDGET {
            let Some(slot) = self.waiting.first().filter(|&slot| last != Some(slot)) else { break };
            self.waiting.pop(&mut self.slots, |group| &mut group.waiting);
            self.step(slot, Event::Tick, now, policy);
            if let Some(State::Retry(at)) = self.slots.get(slot).map(|group| group.membership.state) {
                deadline = Some(deadline.map_or(at, |deadline| deadline.min(at)));
                self.waiting.push(&mut self.slots, |group| &mut group.waiting, slot);
                last = last.or(Some(slot));
            }
        }
        for _ in 0..BUDGET.min(self.slots.capacity()) {
            let slot = self.hand;
            self.hand = if slot + 1 < self.slots.capacity() { slot + 1 } else { 0 };
            let Some(group) = self.slots.get_mut(slot) else { continue };
            if group.membership.sending && now.millis_since(group.last_sent) >= idle {
                group.membership.sending = false;
                self.step(slot, Event::Settle, now, policy);
            } else if group.is_idle() && group.av.is_none() {
                self.remove(slot);
            }
        }
        deadline
    }

    /// After a membership ended, or could not be had: nothing may be sent by its address handle.
    pub(super) fn disarm<A, P>(
        &mut self,
        slot: u32,
        avs: &mut AvPool<A, M>,
        pending: Option<(&mut Pending<P, M>, Refusal)>,
    ) {
        let Some(group) = self.slots.get_mut(slot) else { return };
        group.record = None;
        if let Some(id) = group.av.take() {
            avs.doom(id);
        }
        if let Some((pending, why)) = pending {
            pending.refuse(&mut group.pending, why);
        }
    }

    /// How a group's membership stands, for reports and tests.
    pub(super) fn membership(&self, mgid: Mgid) -> Option<Membership> {
        self.slots.get(self.find(mgid)?).map(|group| group.membership)
    }
}

enum Prepared<J> {
    Join(Role, Record),
    CreateAv(Record),
    Leave(J),
}
