//! The directory against a subnet administrator that is a map, and a worker that is a loop.

mod any_order;
mod groups;
mod peers;

extern crate std;
use super::super::group::State as Membership;
use super::super::learn::{Rejected, Source};
use super::super::resolve::Failure;
use super::super::testing::Heap;
use super::*;
use crate::ipoib::mgid::Link;
use crate::ipoib::mtu::Mtu;
use crate::ipoib::rate::Rate;
use crate::ipoib::scheme::guid::GuidMask;
use crate::ipoib::scheme::qpn_lid;
use crate::ipoib::translate::Neighbors;
use crate::ipoib::{HwAddr, IpGroup, PKey};
use std::collections::{BTreeMap, BTreeSet};
use std::vec::Vec;

type Under = Directory<u32, u64, u32, Heap>;

const QPN: Qpn = match Qpn::new(0x48) {
    Some(qpn) => qpn,
    None => panic!(),
};
const LINK: Link = Link::new(PKey::DEFAULT);

fn gid(host: u8) -> Gid {
    Gid::from_parts(Gid::DEFAULT_PREFIX, [0x00, 0x30, 0x48, 0xff, 0xfe, 0, 0, host])
}

fn path(destination: Gid, lid: u16) -> Path {
    Path {
        destination,
        lid: Lid::new(lid),
        sl: 0,
        rate: Rate::GROUP_DEFAULT,
        mtu: Mtu::B2048,
        hop_limit: 0,
        flow_label: 0,
        traffic_class: 0,
    }
}

fn record(mgid: Mgid, mlid: u16) -> Record {
    Record { path: path(mgid.gid(), mlid), qkey: 0x0b1b, pkey: PKey::DEFAULT }
}

fn mac(lid: u16) -> MacAddr {
    qpn_lid::remote(QPN, Lid::new(lid))
}

fn source(lid: u16, host: Option<u8>) -> Source {
    Source { qpn: QPN, lid: Lid::new(lid), gid: host.map(gid) }
}

/// What the world outside knows and holds.
struct World {
    directory: Under,
    now: Time,
    /// GID to LID, as the subnet administrator has it. `None`: it does not answer at all.
    administrator: Option<BTreeMap<Gid, u16>>,
    groups_exist: BTreeSet<Mgid>,
    handles: BTreeMap<u32, u32>,
    memberships: BTreeMap<u64, (Mgid, Role)>,
    made: u32,
    in_flight: Vec<AvRef>,
    posted: Vec<u32>,
    refused: Vec<(u32, Refusal)>,
    queries: usize,
    /// Packets that one visit of the worker sends off.
    patience: usize,
    /// Answers that were not given yet.
    held: Option<Vec<(Ticket, Target)>>,
}

impl World {
    fn with(config: Config) -> Self {
        let mut directory = Directory::new(&Heap::plenty(), config).unwrap();
        directory.set_port(Local {
            mac: qpn_lid::local(QPN),
            qpn: QPN,
            gid: gid(0),
            lid: Lid::new(1000),
            lmc: 0,
        });
        Self {
            directory,
            now: Time::from_millis(1_000_000),
            administrator: Some((1..=200).map(|host| (gid(host), u16::from(host))).collect()),
            groups_exist: BTreeSet::new(),
            handles: BTreeMap::new(),
            memberships: BTreeMap::new(),
            made: 0,
            in_flight: Vec::new(),
            posted: Vec::new(),
            refused: Vec::new(),
            queries: 0,
            patience: usize::MAX,
            held: None,
        }
    }

    fn new() -> Self {
        Self::with(Config::DEFAULT)
    }

    fn up() -> Self {
        let mut world = Self::new();
        let broadcast = Mgid::broadcast(LINK);
        world.directory.set_broadcast(broadcast, record(broadcast, 0xc000), world.now).unwrap();
        world.work();
        world
    }

    fn send(&mut self, mac: MacAddr, packet: u32) {
        let sent = self.directory.send(mac, packet, self.now);
        match sent {
            Sent::Ready(packet, route) => {
                assert!(self.handles.contains_key(route.handle), "a handle that lives");
                self.posted.push(packet);
                self.in_flight.push(route.av);
            }
            Sent::Queued => {}
            Sent::Refused(packet, why) => self.refused.push((packet, why)),
        }
    }

    fn send_group(&mut self, group: IpGroup, packet: u32) {
        let sent = self.directory.send_group(group, packet, self.now);
        match sent {
            Sent::Ready(packet, route) => {
                assert_eq!((route.qpn, route.qkey), (Qpn::MULTICAST, 0x0b1b));
                self.posted.push(packet);
                self.in_flight.push(route.av);
            }
            Sent::Queued => {}
            Sent::Refused(packet, why) => self.refused.push((packet, why)),
        }
    }

    fn answer(&mut self, ticket: Ticket, target: Target) {
        let answer = match &self.administrator {
            None => Err(Failure::NoAnswer),
            Some(known) => match target {
                Target::Gid(gid) => known.get(&gid).map(|&lid| path(gid, lid)),
                Target::Lid(lid) => {
                    known.iter().find(|(_, at)| **at == lid.get()).map(|(&gid, &lid)| path(gid, lid))
                }
            }
            .ok_or(Failure::NoRecord),
        };
        self.directory.path_answered(ticket, answer, self.now);
    }

    fn answer_held(&mut self) {
        for (ticket, target) in self.held.take().unwrap_or_default() {
            self.answer(ticket, target);
        }
        self.work();
    }

    /// One visit of the worker.
    fn work(&mut self) {
        self.directory.tick(self.now);
        if let Some(wanted) = self.directory.wants_room() {
            self.directory.install(Growth::prepare(&Heap::plenty(), wanted).unwrap());
        }
        while let Some(work) = self.directory.next_work(self.now) {
            match work {
                Work::QueryPath { ticket, target } => {
                    self.queries += 1;
                    match &mut self.held {
                        Some(held) => held.push((ticket, target)),
                        None => self.answer(ticket, target),
                    }
                }
                Work::CreateAv { ticket, path } => {
                    self.made += 1;
                    self.handles.insert(self.made, u32::from(path.lid.get()));
                    if let Some(unwanted) = self.directory.av_created(ticket, Ok(self.made), self.now) {
                        assert!(self.handles.remove(&unwanted).is_some());
                    }
                }
                Work::DestroyAv(handle) => assert!(self.handles.remove(&handle).is_some(), "destroyed twice"),
                Work::Join { ticket, mgid, role, .. } => {
                    let exists = role == Role::Full || self.groups_exist.contains(&mgid);
                    let outcome = if exists && self.administrator.is_some() {
                        self.made += 1;
                        let handle = u64::from(self.made);
                        self.memberships.insert(handle, (mgid, role));
                        self.groups_exist.insert(mgid);
                        Ok((handle, record(mgid, 0xc001)))
                    } else {
                        Err(())
                    };
                    if let Some(unwanted) = self.directory.joined(ticket, outcome, self.now) {
                        assert!(self.memberships.remove(&unwanted).is_some());
                    }
                }
                Work::Leave { ticket, membership } => {
                    assert!(self.memberships.remove(&membership).is_some(), "left twice");
                    self.directory.left(ticket, self.now);
                }
            }
        }
        for _ in 0..self.patience {
            let Some((packet, route)) = self.directory.next_ready() else { break };
            self.posted.push(packet);
            self.in_flight.push(route.av);
        }
        while let Some(refused) = self.directory.next_refused() {
            self.refused.push(refused);
        }
    }

    fn complete(&mut self) {
        for av in core::mem::take(&mut self.in_flight) {
            self.directory.release(av);
        }
    }

    fn pass(&mut self, millis: u32) {
        self.now = self.now + millis;
    }

    /// As MiniportHaltEx does it.
    fn halt(&mut self) {
        self.patience = usize::MAX;
        self.directory.forget_peers();
        self.directory.clear_broadcast(self.now);
        self.complete();
        self.answer_held();
        self.work();
        self.work();
        assert!(!self.directory.has_memberships());
        assert_eq!(self.directory.address_handles(), 0);
        assert!(self.handles.is_empty() && self.memberships.is_empty());
    }

    /// Which LID a packet to `mac` goes to now.
    fn lid_of(&mut self, mac: MacAddr) -> Option<u32> {
        let sent = self.directory.send(mac, 0, self.now);
        let Sent::Ready(_, Route { av, handle, .. }) = sent else { return None };
        let lid = self.handles.get(handle).copied();
        self.directory.release(av);
        lid
    }
}

const VIDEO: IpGroup = IpGroup::V4([239, 1, 2, 3]);
