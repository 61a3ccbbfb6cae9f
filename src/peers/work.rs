//! What the worker does at PASSIVE_LEVEL: queries, address handles, time.

use super::directory::{Directory, Kind, Ticket, Work};
use super::memory::Memory;
use super::path::Path;
use super::pending::Refusal;
use super::resolve::{Action, Event, Failure, State};
use super::time::Time;

/// Slots that one tick looks at in search of unused peers.
const SWEEP: u32 = 256;
/// Waiting peers that one tick looks at; the others are looked at by the next.
const WAITING: u32 = 1_024;
/// Milliseconds between ticks while there are peers to be swept.
const SWEEP_INTERVAL: u32 = 1_000;

impl<A, J, P, M: Memory> Directory<A, J, P, M> {
    /// The next piece of work; `None` if there is none, or none that can begin now.
    pub fn next_work(&mut self, now: Time) -> Option<Work<A, J>> {
        if let Some(handle) = self.avs.take_dead() {
            return Some(Work::DestroyAv(handle));
        }
        self.next_peer_work(now).or_else(|| self.groups.next_work(now, &self.config.policy))
    }

    fn next_peer_work(&mut self, now: Time) -> Option<Work<A, J>> {
        while let Some(slot) = self.work.pop(&mut self.table.slots, |endpoint| &mut endpoint.work) {
            let Some(endpoint) = self.table.slots.get_mut(slot) else { continue };
            match (endpoint.resolution.state, endpoint.path) {
                (State::AvDue, Some(path)) => {
                    return self.take(slot, |ticket| Work::CreateAv { ticket, path }, now);
                }
                (State::QueryDue, _) => {
                    self.queries.push(&mut self.table.slots, |endpoint| &mut endpoint.work, slot);
                }
                _ => {}
            }
        }
        while self.queries_outstanding < self.config.queries {
            let slot = self.queries.pop(&mut self.table.slots, |endpoint| &mut endpoint.work)?;
            let Some(endpoint) = self.table.slots.get_mut(slot) else { continue };
            match (endpoint.resolution.state, endpoint.path) {
                (State::QueryDue, _) => {
                    let target = endpoint.target();
                    endpoint.asked = Some(now);
                    self.queries_outstanding += 1;
                    return self.take(slot, |ticket| Work::QueryPath { ticket, target }, now);
                }
                (State::AvDue, Some(path)) => {
                    return self.take(slot, |ticket| Work::CreateAv { ticket, path }, now);
                }
                _ => {}
            }
        }
        None
    }

    fn take(&mut self, slot: u32, work: impl FnOnce(Ticket) -> Work<A, J>, now: Time) -> Option<Work<A, J>> {
        let key = self.table.key(slot)?;
        let endpoint = self.table.slots.get_mut(slot)?;
        endpoint.resolution.step(Event::Taken, now, &self.config.policy);
        Some(work(Ticket { kind: Kind::Peer, key, round: endpoint.resolution.round }))
    }

    /// The peer that a ticket means, unless it is late.
    fn punctual(&self, ticket: Ticket) -> Option<u32> {
        let slot = self.table.slots.resolve(ticket.key)?;
        let endpoint = self.table.slots.get(slot)?;
        (endpoint.resolution.round == ticket.round).then_some(slot)
    }

    /// The answer to a [`Work::QueryPath`]. Called exactly once for each, at any level up to DISPATCH. An
    /// answer that is late is ignored; one that is not to the question counts as a failure.
    pub fn path_answered(&mut self, ticket: Ticket, answer: Result<Path, Failure>, now: Time) {
        self.queries_outstanding = self.queries_outstanding.saturating_sub(1);
        let Some(slot) = self.punctual(ticket) else { return };
        let Some(endpoint) = self.table.slots.get(slot) else { return };
        let lmc = self.local.map_or(0, |local| local.lmc);
        let (gid, lid) = (endpoint.gid, endpoint.lid);
        let answer = answer.and_then(|path| {
            let right = path.lid.is_unicast()
                && match gid {
                    Some(gid) => path.destination == gid,
                    None => path.lid.base(lmc) == lid,
                };
            if right { Ok(path) } else { Err(Failure::Wrong) }
        });
        let event = match answer {
            Err(failure) => Event::Failed(failure),
            Ok(path) => {
                self.placed(slot, path, lmc);
                let Some(endpoint) = self.table.slots.get_mut(slot) else { return };
                if endpoint.av.is_some() && endpoint.path == Some(path) {
                    Event::SamePath
                } else {
                    endpoint.path = Some(path);
                    Event::NewPath
                }
            }
        };
        let Some(endpoint) = self.table.slots.get_mut(slot) else { return };
        let action = endpoint.resolution.step(event, now, &self.config.policy);
        self.follow(slot, action);
        if action == (Action::Refuse { drop_av: true }) {
            // It is nowhere. Whoever is heard from its place is somebody else.
            self.table.unlink_address(slot);
            self.table.unlink_route(slot);
        }
    }

    /// The subnet administrator says where a peer is.
    fn placed(&mut self, slot: u32, path: Path, lmc: u8) {
        let base = path.lid.base(lmc);
        let Some(endpoint) = self.table.slots.get(slot) else { return };
        let (qpn, gid) = (endpoint.qpn, endpoint.gid);
        if gid.is_none()
            && path.destination.is_unicast()
            && self.table.find_address(path.destination, qpn).is_none()
        {
            self.table.set_gid(slot, path.destination);
        }
        if self.table.slots.get(slot).is_some_and(|endpoint| endpoint.by_route && endpoint.lid != base) {
            if self.config.scheme.follows_lid() {
                // It keeps its old Ethernet address for those who still use it, and gets the new one when
                // heard.
                self.table.unlink_address(slot);
                self.table.unlink_route(slot);
            } else if self.table.find_route(base, qpn).is_none() {
                self.table.set_route(slot, base, qpn);
            }
        }
    }

    /// The outcome of a [`Work::CreateAv`]. Called exactly once for each. Answers a handle that nobody wants
    /// (the work was late, or there is no room): the caller destroys it.
    #[must_use = "an unwanted address handle must be destroyed"]
    pub fn av_created(&mut self, ticket: Ticket, outcome: Result<A, ()>, now: Time) -> Option<A> {
        if ticket.kind == Kind::Group {
            return self.groups.av_created(ticket, outcome, &mut self.avs, now, &self.config.policy);
        }
        let Some(slot) = self.punctual(ticket) else { return outcome.ok() };
        let Some(endpoint) = self.table.slots.get_mut(slot) else { return outcome.ok() };
        let (event, unwanted) = match outcome.map(|handle| self.avs.insert(handle)) {
            Ok(Ok(id)) => {
                if let Some(old) = endpoint.av.replace(id) {
                    self.avs.doom(old);
                }
                (Event::AvCreated, None)
            }
            Ok(Err(handle)) => (Event::Failed(Failure::NoAnswer), Some(handle)),
            Err(()) => (Event::Failed(Failure::NoAnswer), None),
        };
        if unwanted.is_some() || event != Event::AvCreated {
            // The old handle, if any, was made from another path.
            endpoint.path = None;
        }
        let action = endpoint.resolution.step(event, now, &self.config.policy);
        self.follow(slot, action);
        unwanted
    }

    /// Lets time pass: retries that are due, peers and groups that nobody uses. Does a bounded amount of
    /// work.
    pub fn tick(&mut self, now: Time) {
        self.deadline = None;
        self.growth_failed = false;
        let mut last = None;
        for _ in 0..WAITING {
            let Some(slot) = self.waiting.first().filter(|&slot| last != Some(slot)) else { break };
            self.waiting.pop(&mut self.table.slots, |endpoint| &mut endpoint.waiting);
            let Some(endpoint) = self.table.slots.get_mut(slot) else { continue };
            let action = endpoint.resolution.step(Event::Tick, now, &self.config.policy);
            if let Some(deadline) = endpoint.resolution.deadline() {
                self.note_deadline(Some(deadline));
                self.waiting.push(&mut self.table.slots, |endpoint| &mut endpoint.waiting, slot);
                last = last.or(Some(slot));
            } else {
                self.follow(slot, action);
            }
        }
        for _ in 0..SWEEP.min(self.table.slots.capacity()) {
            let slot = self.advance_hand();
            if let Some(endpoint) = self.table.slots.get(slot)
                && endpoint.is_idle()
                && (endpoint.is_gone() || now.millis_since(endpoint.last_used) >= u64::from(self.config.idle))
            {
                self.retire(slot, Refusal::Forgotten);
            }
        }
        let deadline = self.groups.tick(now, u64::from(self.config.idle), &self.config.policy);
        self.note_deadline(deadline);
        if let Some(deadline) = self.listeners.deadline(now) {
            self.note_deadline(Some(deadline));
            self.reconcile(now);
        }
        if self.table.slots.len() != 0 || self.groups.len() != 0 {
            self.note_deadline(Some(now + SWEEP_INTERVAL));
        }
    }

    /// When [`Self::tick`] should be called next; `None` if there is nothing to wait for.
    pub fn next_deadline(&self) -> Option<Time> {
        self.deadline
    }
}
