//! Multicast: who listens, who sends, and which memberships follow from it.

use super::directory::{Directory, Route, Sent, Ticket};
use super::group::{Event, Membership, Record, State};
use super::memory::Memory;
use super::pending::{Pending, Refusal};
use super::time::Time;
use crate::ipoib::mgid::Link;
use crate::ipoib::{IpGroup, MacAddr, Mgid, Qpn};

impl<A, J, P, M: Memory> Directory<A, J, P, M> {
    /// The broadcast group is joined (by whoever brings the link up): the link exists. Its address handle is
    /// made like any other; the groups that are listened to are joined.
    pub fn set_broadcast(&mut self, mgid: Mgid, record: Record, now: Time) -> Result<(), Refusal> {
        let slot = self.groups.find_or_insert(mgid, now).ok_or(Refusal::NoRoom)?;
        self.groups.broadcast = Some((slot, record));
        if let Some(group) = self.groups.slots.get_mut(slot) {
            let same = group.record.is_some_and(|before| before.path == record.path) && group.av.is_some();
            group.pinned = true;
            group.record = Some(record);
            group.membership.listening = true;
            group.membership.lost = false;
            group.membership.state = if same {
                State::Joined(super::group::Role::Full)
            } else {
                State::Joining(super::group::Role::Full)
            };
            self.groups.step(slot, Event::Joined, now, &self.config.policy);
        }
        self.reconcile(now);
        Ok(())
    }

    /// The link is down: nothing is sent to any group, memberships are left, and packets that wait for a
    /// group are refused. The broadcast group's own membership is left by whoever joined it.
    pub fn clear_broadcast(&mut self, now: Time) {
        let Some((broadcast, _)) = self.groups.broadcast.take() else { return };
        if let Some(group) = self.groups.slots.get_mut(broadcast) {
            group.pinned = false;
            group.membership =
                Membership { round: group.membership.round.wrapping_add(1), ..Membership::NEW };
        }
        for slot in 0..self.groups.slots.capacity() {
            let Some(group) = self.groups.slots.get_mut(slot) else { continue };
            group.membership.listening = false;
            group.membership.sending = false;
            group.membership.lost = true;
            self.groups.step(slot, Event::Settle, now, &self.config.policy);
            self.groups.disarm(slot, &mut self.avs, Some((&mut self.pending, Refusal::Forgotten)));
        }
    }

    /// The subnet administrator has lost its memberships (it asked to register again, or was replaced): each
    /// is left and joined anew. Not the broadcast group's, whose keeper does the same and calls
    /// [`Self::set_broadcast`].
    pub fn rejoin(&mut self, now: Time) {
        for slot in 0..self.groups.slots.capacity() {
            let Some(group) = self.groups.slots.get_mut(slot) else { continue };
            if !group.pinned {
                group.membership.lost = true;
                self.groups.step(slot, Event::Settle, now, &self.config.policy);
            }
        }
    }

    /// Scope and partition of the link, while there is one.
    pub fn link(&self) -> Option<Link> {
        let (slot, _) = self.groups.broadcast?;
        self.groups.slots.get(slot).map(|group| group.mgid.link())
    }

    /// The broadcast group's record, while there is a link.
    pub fn broadcast(&self) -> Option<Record> {
        self.groups.broadcast.map(|(_, record)| record)
    }

    /// Sends a packet to every station.
    pub fn send_broadcast(&mut self, packet: P) -> Sent<'_, A, P> {
        match self.groups.broadcast {
            Some((slot, _)) => self.send_slot(slot, packet),
            None => Sent::Refused(packet, Refusal::Unreachable),
        }
    }

    /// Sends a packet to a group. A group that nobody here listens to is joined for sending only.
    pub fn send_group(&mut self, group: IpGroup, packet: P, now: Time) -> Sent<'_, A, P> {
        let Some(link) = self.link() else { return Sent::Refused(packet, Refusal::Unreachable) };
        let Some(slot) = self.groups.find_or_insert(Mgid::of(group, link), now) else {
            return Sent::Refused(packet, Refusal::NoRoom);
        };
        if let Some(group) = self.groups.slots.get_mut(slot) {
            group.last_sent = now;
            if !group.membership.sending {
                group.membership.sending = true;
                self.groups.step(slot, Event::Settle, now, &self.config.policy);
            }
        }
        self.send_slot(slot, packet)
    }

    fn send_slot(&mut self, slot: u32, packet: P) -> Sent<'_, A, P> {
        let Some(group) = self.groups.slots.get_mut(slot) else {
            return Sent::Refused(packet, Refusal::NoPeer);
        };
        if group.membership.is_open()
            && group.pending.is_empty()
            && let Some(id) = &group.av
        {
            let qkey = group.record.map_or(0, |record| record.qkey);
            return match self.avs.acquire(id) {
                Some((av, handle)) => Sent::Ready(packet, Route { av, handle, qpn: Qpn::MULTICAST, qkey }),
                None => Sent::Refused(packet, Refusal::QueueFull),
            };
        }
        if matches!(group.membership.state, State::Retry(_)) {
            return Sent::Refused(packet, Refusal::Unreachable);
        }
        match self.pending.push(&mut group.pending, packet) {
            Ok(()) => Sent::Queued,
            Err(packet) => Sent::Refused(packet, Refusal::QueueFull),
        }
    }

    /// Replaces the list of Ethernet multicast addresses that the host listens to (OID_802_3_MULTICAST_LIST).
    /// At most [`super::listen::MAX_LIST`] count.
    pub fn set_multicast_list(&mut self, list: &[MacAddr], now: Time) {
        self.listeners.set_list(list, now);
        let deadline = self.listeners.deadline(now);
        self.note_deadline(deadline);
        self.reconcile(now);
    }

    /// Whether every group that the host reports is joined, listed or not (NDIS_PACKET_TYPE_ALL_MULTICAST,
    /// NDIS_PACKET_TYPE_PROMISCUOUS).
    pub fn set_all_multicast(&mut self, all: bool, now: Time) {
        self.listeners.set_all(all);
        self.reconcile(now);
    }

    /// Whether the list has this address.
    pub fn is_listening(&self, mac: MacAddr) -> bool {
        self.listeners.wants(mac)
    }

    /// The host's own IGMP or MLD report, on its way down, says that it joined a group or left it. `false` if
    /// nothing came of it.
    pub fn reported(&mut self, group: IpGroup, joined: bool, now: Time) {
        self.listeners.report(group, joined);
        self.reconcile(now);
    }

    /// Compares the groups that are listened to with those that are joined.
    pub(super) fn reconcile(&mut self, now: Time) {
        let Some(link) = self.link() else { return };
        let (groups, policy) = (&mut self.groups, &self.config.policy);
        for slot in 0..groups.slots.capacity() {
            if let Some(group) = groups.slots.get_mut(slot) {
                group.marked = false;
            }
        }
        self.listeners.each(now, |group| {
            if let Some(slot) = groups.find_or_insert(Mgid::of(group, link), now)
                && let Some(group) = groups.slots.get_mut(slot)
            {
                group.marked = true;
            }
        });
        for slot in 0..groups.slots.capacity() {
            if let Some(group) = groups.slots.get_mut(slot)
                && !group.pinned
                && group.membership.listening != group.marked
            {
                group.membership.listening = group.marked;
                groups.step(slot, Event::Settle, now, policy);
            }
        }
    }

    /// The outcome of a [`super::directory::Work::Join`]. Called exactly once for each, at any level up to
    /// DISPATCH. Answers a membership that nobody wants: the caller leaves it.
    #[must_use = "an unwanted membership must be left"]
    pub fn joined(&mut self, ticket: Ticket, outcome: Result<(J, Record), ()>, now: Time) -> Option<J> {
        let Some(slot) = self.groups.punctual(ticket) else {
            return outcome.ok().map(|(membership, _)| membership);
        };
        let Some(group) = self.groups.slots.get_mut(slot) else {
            return outcome.ok().map(|(membership, _)| membership);
        };
        if let Ok((membership, record)) = outcome {
            group.handle = Some(membership);
            group.record = Some(record);
            self.groups.step(slot, Event::Joined, now, &self.config.policy);
        } else {
            self.groups.step(slot, Event::Failed, now, &self.config.policy);
            self.groups.disarm(slot, &mut self.avs, Some((&mut self.pending, Refusal::Unreachable)));
            let retry = self.groups.slots.get(slot).and_then(|group| group.membership.deadline());
            self.note_deadline(retry);
        }
        None
    }

    /// The end of a [`super::directory::Work::Leave`], well or not. Called exactly once for each, at any
    /// level up to DISPATCH.
    pub fn left(&mut self, ticket: Ticket, now: Time) {
        let Some(slot) = self.groups.punctual(ticket) else { return };
        self.groups.disarm(slot, &mut self.avs, None::<(&mut Pending<P, M>, Refusal)>);
        self.groups.step(slot, Event::Left, now, &self.config.policy);
        let Some(group) = self.groups.slots.get_mut(slot) else { return };
        let retry = group.membership.deadline();
        if group.membership.wanted().is_none() {
            self.pending.refuse(&mut group.pending, Refusal::Forgotten);
        }
        self.note_deadline(retry);
    }

    /// Whether a membership is held or being had; the broadcast group's does not count. A halt waits until
    /// not.
    pub fn has_memberships(&self) -> bool {
        (0..self.groups.slots.capacity()).filter_map(|slot| self.groups.slots.get(slot)).any(|group| {
            !group.pinned && (group.handle.is_some() || !matches!(group.membership.state, State::Out))
        })
    }

    /// How a group's membership stands, for reports and tests.
    pub fn membership(&self, mgid: Mgid) -> Option<Membership> {
        self.groups.membership(mgid)
    }

    /// Groups known, the broadcast group included.
    pub fn group_count(&self) -> u32 {
        self.groups.len()
    }
}
