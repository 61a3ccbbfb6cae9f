//! Which groups this host listens to.
//!
//! Windows tells Ethernet addresses (OID_802_3_MULTICAST_LIST), which say less than groups; the host's own
//! IGMP and MLD reports say exactly which. So a listed address stands for the groups that were reported under
//! it, and only where none was, for the group that [`IpGroup::assumed`] takes it for: at once where hosts
//! join without a report or the assumption is as good as certain (IPv6), after a grace period elsewhere.

use super::memory::{Memory, OutOfMemory};
use super::time::Time;
use crate::ipoib::{IpGroup, MacAddr};

/// Addresses in the list: as many as OID_802_3_MAXIMUM_LIST_SIZE says.
pub const MAX_LIST: usize = 128;
/// Reported groups remembered.
const MAX_REPORTED: usize = 512;
/// Milliseconds for a report to come before the likeliest group is assumed.
const GRACE: u32 = 2_000;

/// A listed Ethernet address.
#[derive(Clone, Copy, Debug)]
struct Listed {
    mac: MacAddr,
    since: Time,
    /// A group with this address was reported since it is listed.
    reported: bool,
}

/// What this host listens to.
pub(super) struct Listeners<M: Memory> {
    listed: M::Array<Option<Listed>>,
    reported: M::Array<Option<IpGroup>>,
    /// Every reported group is wanted, listed or not: the packet filter asks for all multicast.
    all: bool,
}

impl<M: Memory> Listeners<M> {
    pub(super) fn new(memory: &M) -> Result<Self, OutOfMemory> {
        Ok(Self {
            listed: memory.array(MAX_LIST, |_| None)?,
            reported: memory.array(MAX_REPORTED, |_| None)?,
            all: false,
        })
    }

    /// Replaces the list. Addresses that stay keep their history. What does not fit is left out.
    pub(super) fn set_list(&mut self, list: &[MacAddr], now: Time) {
        for place in self.listed.iter_mut() {
            if place.is_some_and(|listed| !list.contains(&listed.mac)) {
                *place = None;
            }
        }
        for &mac in list {
            if self.listed.iter().flatten().any(|listed| listed.mac == mac) {
                continue;
            }
            let reported = self.reported.iter().flatten().any(|group| group.to_mac() == mac);
            if let Some(free) = self.listed.iter_mut().find(|place| place.is_none()) {
                *free = Some(Listed { mac, since: now, reported });
            }
        }
    }

    /// Sets whether every reported group is wanted.
    pub(super) fn set_all(&mut self, all: bool) {
        self.all = all;
    }

    /// The host reported that it joined a group, or left it.
    pub(super) fn report(&mut self, group: IpGroup, joined: bool) {
        let known = self.reported.iter_mut().find(|place| **place == Some(group));
        match (known, joined) {
            (Some(place), false) => *place = None,
            (None, true) => {
                if let Some(free) = self.reported.iter_mut().find(|place| place.is_none()) {
                    *free = Some(group);
                }
            }
            _ => {}
        }
        if joined {
            let mac = group.to_mac();
            for listed in self.listed.iter_mut().flatten().filter(|listed| listed.mac == mac) {
                listed.reported = true;
            }
        }
    }

    fn is_listed(&self, mac: MacAddr) -> bool {
        self.listed.iter().flatten().any(|listed| listed.mac == mac)
    }

    /// Whether the host wants frames to this group passed up.
    pub(super) fn wants(&self, mac: MacAddr) -> bool {
        self.is_listed(mac)
    }

    /// Calls `want` for each group that is listened to; for some of them more than once.
    pub(super) fn each(&self, now: Time, mut want: impl FnMut(IpGroup)) {
        let reported = self.reported.iter().flatten().copied();
        reported.filter(|group| self.all || self.is_listed(group.to_mac())).for_each(&mut want);
        for listed in self.listed.iter().flatten().filter(|listed| !listed.reported) {
            if let Some(group) = IpGroup::assumed(listed.mac)
                && (is_assumed_at_once(group) || now >= listed.since + GRACE)
            {
                want(group);
            }
        }
    }

    /// When a grace period ends next; also if it has ended and nobody has looked since.
    pub(super) fn deadline(&self, now: Time) -> Option<Time> {
        self.listed
            .iter()
            .flatten()
            .filter(|listed| {
                !listed.reported
                    && IpGroup::assumed(listed.mac).is_some_and(|group| !is_assumed_at_once(group))
                    // A tick may be late by as much again.
                    && now < listed.since + 2 * GRACE
            })
            .map(|listed| listed.since + GRACE)
            .min()
    }
}

fn is_assumed_at_once(group: IpGroup) -> bool {
    group.is_unreported() || matches!(group, IpGroup::V6(_))
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::super::testing::Heap;
    use super::*;
    use std::collections::BTreeSet;
    use std::vec::Vec;

    const T0: Time = Time::from_millis(10_000);

    fn listeners() -> Listeners<Heap> {
        Listeners::new(&Heap::plenty()).unwrap()
    }

    fn wanted(listeners: &Listeners<Heap>, now: Time) -> Vec<IpGroup> {
        let mut wanted = BTreeSet::new();
        listeners.each(now, |group| {
            wanted.insert(group);
        });
        wanted.into_iter().collect()
    }

    const VIDEO: IpGroup = IpGroup::V4([239, 129, 2, 3]);
    const TWIN: IpGroup = IpGroup::V4([224, 1, 2, 3]);

    #[test]
    fn a_report_says_which_group_an_address_stands_for() {
        let mut listeners = listeners();
        assert_eq!(VIDEO.to_mac(), TWIN.to_mac());
        listeners.set_list(&[VIDEO.to_mac()], T0);
        assert!(wanted(&listeners, T0).is_empty(), "no group before a report or the end of grace");
        listeners.report(VIDEO, true);
        assert_eq!(wanted(&listeners, T0 + 10 * GRACE), [VIDEO], "and the twin is never assumed");
        listeners.report(TWIN, true);
        assert_eq!(wanted(&listeners, T0), [TWIN, VIDEO]);
        listeners.report(TWIN, false);
        assert_eq!(wanted(&listeners, T0), [VIDEO]);
        listeners.set_list(&[], T0);
        assert!(wanted(&listeners, T0).is_empty(), "the list has the last word");
    }

    #[test]
    fn without_a_report_the_likeliest_group_is_assumed_after_a_while() {
        let mut listeners = listeners();
        listeners.set_list(&[TWIN.to_mac()], T0);
        assert_eq!(listeners.deadline(T0), Some(T0 + GRACE));
        assert!(wanted(&listeners, T0).is_empty());
        assert_eq!(wanted(&listeners, T0 + GRACE), [TWIN]);
        assert_eq!(listeners.deadline(T0 + 3 * GRACE), None);
    }

    #[test]
    fn groups_that_hosts_join_in_silence_are_assumed_at_once() {
        let mut listeners = listeners();
        let solicited = IpGroup::V6([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 1, 2, 3]);
        let list = [IpGroup::ALL_HOSTS, IpGroup::ALL_NODES, solicited].map(IpGroup::to_mac);
        listeners.set_list(&list, T0);
        assert_eq!(wanted(&listeners, T0), [IpGroup::ALL_HOSTS, IpGroup::ALL_NODES, solicited]);
        assert_eq!(listeners.deadline(T0), None);
    }

    #[test]
    fn a_report_before_the_list_counts_once_the_list_comes() {
        let mut listeners = listeners();
        listeners.report(VIDEO, true);
        assert!(wanted(&listeners, T0).is_empty());
        listeners.set_list(&[VIDEO.to_mac()], T0);
        assert_eq!(wanted(&listeners, T0 + 10 * GRACE), [VIDEO]);
    }

    #[test]
    fn all_multicast_wants_whatever_is_reported() {
        let mut listeners = listeners();
        listeners.report(VIDEO, true);
        listeners.set_all(true);
        assert_eq!(wanted(&listeners, T0), [VIDEO]);
    }

    #[test]
    fn what_does_not_fit_is_left_out() {
        let mut listeners = listeners();
        let list: Vec<_> = (0..200).map(|last| MacAddr::new([0x33, 0x33, 0, 0, 0, last])).collect();
        listeners.set_list(&list, T0);
        assert_eq!(wanted(&listeners, T0).len(), MAX_LIST);
        for last in 0..=255 {
            listeners.report(IpGroup::V4([239, 0, 0, last]), true);
            listeners.report(IpGroup::V4([239, 0, 1, last]), true);
            listeners.report(IpGroup::V4([239, 0, 2, last]), true);
        }
    }
}
