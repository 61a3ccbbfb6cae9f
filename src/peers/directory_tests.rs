//! The directory against a subnet administrator that is a map, and a worker that is a loop.

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
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::vec;
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

#[test]
fn a_packet_waits_for_its_path_and_leaves_before_those_that_came_later() {
    let mut world = World::new();
    world.held = Some(Vec::new());
    for packet in 1..=3 {
        world.send(mac(7), packet);
    }
    assert!(world.directory.has_work());
    world.work();
    assert_eq!((world.queries, world.posted.len()), (1, 0), "one question for all three");
    world.answer_held();
    world.send(mac(7), 4);
    assert_eq!(world.posted, [1, 2, 3, 4]);
    assert_eq!(world.lid_of(mac(7)), Some(7));
    world.halt();
}

#[test]
fn a_packet_does_not_overtake_those_that_are_just_being_sent() {
    let mut world = World::new();
    world.patience = 1;
    world.send(mac(7), 1);
    world.send(mac(7), 2);
    world.work();
    assert_eq!(world.posted, [1]);
    world.send(mac(7), 3);
    assert_eq!(world.posted, [1], "2 is still waiting");
    world.patience = usize::MAX;
    world.work();
    world.send(mac(7), 4);
    assert_eq!(world.posted, [1, 2, 3, 4]);
    world.halt();
}

/// Fixed decision 6: the address of a peer tells QPN and LID, so nobody need be heard of first.
#[test]
fn a_peer_is_derived_from_its_address_and_others_are_refused() {
    let mut world = World::new();
    world.send(mac(7), 1);
    world.work();
    assert_eq!(world.posted, [1]);
    for stranger in [[2, 0, 0, 0x48, 0xc0, 0], [6, 0, 0, 0x48, 0, 7], [2, 0, 0, 0x48, 0, 0]] {
        world.send(MacAddr::new(stranger), 2);
    }
    world.send(mac(1000), 2);
    assert_eq!(world.refused, [(2, Refusal::NoPeer); 4], "the last is our own");
}

#[test]
fn the_queue_of_a_peer_is_bounded_and_the_newest_is_refused() {
    let mut world = World::with(Config { pending_each: 2, ..Config::DEFAULT });
    for packet in 1..=3 {
        world.send(mac(7), packet);
    }
    assert_eq!(world.refused, [(3, Refusal::QueueFull)]);
    world.work();
    assert_eq!(world.posted, [1, 2]);
    world.halt();
}

#[test]
fn an_administrator_that_does_not_answer_is_asked_again_and_then_the_queue_is_refused() {
    let mut world = World::new();
    world.administrator = None;
    world.send(mac(7), 1);
    for _ in 0..3 {
        world.work();
        world.pass(4_000);
    }
    assert_eq!((world.queries, world.refused.len()), (3, 1));
    assert_eq!(world.refused, [(1, Refusal::Unreachable)]);
    world.administrator = Some(BTreeMap::from([(gid(7), 7)]));
    world.send(mac(7), 2);
    world.work();
    assert_eq!(world.posted, [2]);
    world.halt();
}

#[test]
fn a_destination_that_failed_is_refused_at_once_for_a_while() {
    let mut world = World::new();
    world.administrator = Some(BTreeMap::new());
    world.send(mac(7), 1);
    for wait in [250, 500, 0] {
        world.work();
        world.pass(wait);
    }
    assert_eq!(world.refused, [(1, Refusal::Unreachable)]);
    let queries = world.queries;
    world.send(mac(7), 2);
    world.work();
    assert_eq!((world.queries, world.refused.len()), (queries, 2), "not asked for again so soon");
    world.halt();
}

#[test]
fn wrong_answers_are_failures() {
    let mut world = World::new();
    world.directory.observe(&source(7, Some(7)), world.now).unwrap();
    world.held = Some(Vec::new());
    world.send(mac(7), 1);
    world.work();
    let [(ticket, target)] = world.held.take().unwrap()[..] else { panic!("one query") };
    assert_eq!(target, Target::Gid(gid(7)));
    world.directory.path_answered(ticket, Ok(path(gid(8), 8)), world.now);
    assert_eq!(world.directory.resolution(mac(7)).unwrap().failures, 1, "another port's path");
    world.directory.path_answered(ticket, Ok(path(gid(7), 7)), world.now);
    world.work();
    assert!(world.posted.is_empty(), "a second answer to the same question is late");
    world.pass(250);
    world.work();
    assert_eq!(world.posted, [1]);
    world.halt();
}

#[test]
fn answers_for_a_peer_that_was_forgotten_are_late() {
    let mut world = World::new();
    world.held = Some(Vec::new());
    world.send(mac(7), 1);
    world.work();
    world.directory.forget_peers();
    world.work();
    assert_eq!(world.refused, [(1, Refusal::Forgotten)]);
    world.answer_held();
    assert!(world.handles.is_empty() && world.posted.is_empty());
    assert_eq!(world.directory.peers(), 0);
    world.halt();
}

#[test]
fn queries_outstanding_are_limited() {
    let mut world = World::with(Config { queries: 4, ..Config::DEFAULT });
    world.held = Some(Vec::new());
    for lid in 1..=10 {
        world.send(mac(lid), u32::from(lid));
    }
    world.work();
    assert_eq!(world.queries, 4);
    assert!(!world.directory.has_work());
    while world.posted.len() < 10 {
        assert!(world.held.as_ref().unwrap().len() <= 4);
        for (ticket, target) in world.held.replace(Vec::new()).unwrap() {
            world.answer(ticket, target);
        }
        world.work();
    }
    world.halt();
}

#[test]
fn a_handle_in_use_outlives_its_peer_until_the_send_completes() {
    let mut world = World::new();
    world.send(mac(7), 1);
    world.work();
    assert_eq!(world.in_flight.len(), 1);
    world.directory.forget_peers();
    world.work();
    assert_eq!(world.handles.len(), 1, "the adapter may still read it");
    world.complete();
    world.work();
    assert!(world.handles.is_empty());
}

#[test]
fn a_path_that_is_asked_for_anew_keeps_its_handle_if_nothing_changed() {
    let mut world = World::new();
    world.send(mac(7), 1);
    world.work();
    world.complete();
    let made = world.made;
    world.directory.revalidate();
    world.send(mac(7), 2);
    assert_eq!(world.posted, [1, 2], "the old handle serves meanwhile");
    world.work();
    assert_eq!((world.queries, world.made), (2, made));
    world.send(mac(7), 3);
    world.work();
    assert_eq!(world.queries, 2, "once for each change");
    world.halt();
}

/// A restart of the subnet manager must not cut peers off that can still be reached.
#[test]
fn an_administrator_that_is_away_takes_no_working_handle_with_it() {
    let mut world = World::new();
    world.send(mac(7), 1);
    world.work();
    world.administrator = None;
    world.directory.revalidate();
    for packet in 2..=10 {
        world.send(mac(7), packet);
        world.work();
        world.pass(500);
    }
    assert_eq!(world.posted, (1..=10).collect::<Vec<_>>());
    assert!(world.refused.is_empty());
    world.halt();
}

#[test]
fn a_peer_that_moved_is_reached_under_both_addresses() {
    let mut world = World::new();
    assert_eq!(world.directory.observe(&source(7, Some(7)), world.now), Ok(mac(7)));
    world.send(mac(7), 1);
    world.work();
    world.administrator = Some(BTreeMap::from([(gid(7), 70)]));
    assert_eq!(world.directory.observe(&source(70, Some(7)), world.now), Ok(mac(70)));
    world.send(mac(70), 2);
    world.work();
    assert_eq!(world.lid_of(mac(70)), Some(70));
    assert_eq!(world.lid_of(mac(7)), Some(70), "Windows may not have asked again yet");
    assert_eq!(world.directory.mac_of(&HwAddr::new(QPN, gid(7))), Some(mac(70)));
    world.halt();
}

#[test]
fn whoever_is_at_a_lid_now_has_the_address() {
    let mut world = World::new();
    world.directory.observe(&source(7, Some(7)), world.now).unwrap();
    world.send(mac(7), 1);
    world.work();
    // 7 and 8 change places.
    world.administrator = Some(BTreeMap::from([(gid(7), 8), (gid(8), 7)]));
    assert_eq!(world.directory.observe(&source(7, Some(8)), world.now), Err(Rejected::Contradiction));
    world.pass(2_000);
    assert_eq!(world.directory.observe(&source(7, Some(8)), world.now), Err(Rejected::Contradiction));
    world.work();
    assert_eq!(world.directory.observe(&source(7, Some(8)), world.now), Ok(mac(7)));
    assert_eq!(world.directory.address_of(mac(7)), Some(HwAddr::new(QPN, gid(8))));
    world.send(mac(7), 2);
    world.work();
    assert_eq!(world.lid_of(mac(7)), Some(7));
    world.halt();
}

/// Issue 2, bad input.
#[test]
fn claims_that_contradict_their_source_are_rejected() {
    let mut world = World::new();
    let now = world.now;
    let honest = HwAddr::new(QPN, gid(7));
    let other_qpn = HwAddr::new(Qpn::new(0x49).unwrap(), gid(7));
    let other_gid = HwAddr::new(QPN, gid(8));
    let group = HwAddr::new(QPN, Mgid::broadcast(LINK).gid());
    let directory = &mut world.directory;
    for (claim, from, expected) in [
        (honest, source(7, Some(7)), Ok(mac(7))),
        (other_qpn, source(7, Some(7)), Err(Rejected::Contradiction)),
        (other_gid, source(7, Some(7)), Err(Rejected::Contradiction)),
        (group, source(9, None), Err(Rejected::Contradiction)),
        // Without a GRH, what is known of the place is what there is to compare with.
        (other_gid, source(7, None), Err(Rejected::Contradiction)),
        (honest, source(7, None), Ok(mac(7))),
        (other_gid, source(8, None), Ok(mac(8))),
    ] {
        assert_eq!(directory.claim(&from, &claim, now), expected, "{claim} from {from:?}");
    }
    assert_eq!(directory.address_of(mac(8)), Some(other_gid));
}

#[test]
fn a_forger_is_not_worth_a_query_for_each_frame() {
    let mut world = World::new();
    world.directory.observe(&source(7, Some(7)), world.now).unwrap();
    for _ in 0..1_000 {
        assert_eq!(world.directory.observe(&source(7, Some(66)), world.now), Err(Rejected::Contradiction));
        world.work();
        world.pass(1);
    }
    assert!(world.queries <= 2, "{}", world.queries);
    assert_eq!(world.directory.observe(&source(7, Some(7)), world.now), Ok(mac(7)), "the honest one stays");
    world.halt();
}

#[test]
fn impossible_sources_and_our_own_frames_are_rejected() {
    let mut world = World::new();
    let now = world.now;
    let own = Source { gid: Some(gid(0)), ..source(1000, None) };
    for (from, why) in [
        (source(0, None), Rejected::Invalid),
        (source(0xc000, None), Rejected::Invalid),
        (source(0xffff, None), Rejected::Invalid),
        (Source { qpn: Qpn::MULTICAST, ..source(7, None) }, Rejected::Invalid),
        (Source { qpn: Qpn::new(1).unwrap(), ..source(7, None) }, Rejected::Invalid),
        (Source { gid: Some(Gid::UNSPECIFIED), ..source(7, None) }, Rejected::Invalid),
        (Source { gid: Some(Mgid::broadcast(LINK).gid()), ..source(7, None) }, Rejected::Invalid),
        (own, Rejected::Own),
        (Source { gid: None, ..own }, Rejected::Own),
    ] {
        assert_eq!(world.directory.observe(&from, now), Err(why), "{from:?}");
    }
    assert_eq!(world.directory.peers(), 0);
}

#[test]
fn path_bits_do_not_make_another_peer() {
    let mut world = World::new();
    world.directory.set_port(Local { lmc: 2, ..world.directory.local.unwrap() });
    for lid in 8..12 {
        assert_eq!(world.directory.observe(&source(lid, Some(8)), world.now), Ok(mac(8)));
    }
    assert_eq!(world.directory.peers(), 1);
}

#[test]
fn unused_peers_are_forgotten_and_used_ones_are_not() {
    let mut world = World::new();
    world.send(mac(7), 1);
    world.send(mac(8), 2);
    world.work();
    world.complete();
    for _ in 0..4 {
        world.pass(100_000);
        world.send(mac(8), 3);
        world.work();
        world.work();
        world.complete();
    }
    assert_eq!(world.directory.peers(), 1);
    assert_eq!(world.handles.len(), 1);
    assert!(world.directory.resolution(mac(8)).is_some());
    world.halt();
}

#[test]
fn a_full_table_forgets_whoever_is_unused_for_long_or_refuses() {
    let mut world = World::with(Config { peers: 512, ..Config::DEFAULT });
    for lid in 1..=512 {
        assert_eq!(world.directory.observe(&source(lid, None), world.now), Ok(mac(lid)));
    }
    assert_eq!(world.directory.observe(&source(513, None), world.now), Err(Rejected::NoRoom));
    world.send(mac(513), 1);
    assert_eq!(world.refused, [(1, Refusal::NoRoom)]);
    world.pass(2_000);
    assert_eq!(world.directory.observe(&source(513, None), world.now), Ok(mac(513)));
    assert_eq!(world.directory.peers(), 512);
}

#[test]
fn the_table_grows_to_100_000_peers() {
    let mut world = World::new();
    let qpn = |number: u32| Qpn::new(number / 1_000 + 0x100).unwrap();
    for number in 0..100_000_u32 {
        let source = Source { qpn: qpn(number), lid: Lid::new((number % 1_000) as u16 + 1), gid: None };
        world.directory.observe(&source, world.now).unwrap();
        if world.directory.wants_room().is_some() {
            world.work();
        }
    }
    assert_eq!(world.directory.peers(), 100_000);
    world.send(qpn_lid::remote(qpn(99_999), Lid::new(1_000)), 1);
    assert_eq!(world.directory.peers(), 100_000);
}

#[test]
fn no_memory_is_an_error_wherever_it_happens() {
    let needed = (0..200)
        .find(|&allocations| Under::new(&Heap::limited(allocations), Config::DEFAULT).is_ok())
        .unwrap();
    assert!(needed > 10);
    let mut directory = Under::new(&Heap::plenty(), Config::DEFAULT).unwrap();
    let all = Wanted { peers: true, groups: true, avs: true };
    assert!(Growth::<u32, u64, Heap>::prepare(&Heap::limited(5), all).is_err());
    directory.cannot_grow();
    assert_eq!(directory.wants_room(), None);
}

#[test]
fn a_counter_gives_each_peer_an_address_that_stays_when_it_moves() {
    let mut world = World::with(Config { scheme: Scheme::LaaCounter, ..Config::DEFAULT });
    world.directory.counter = LaaCounter::starting_after(u32::MAX - 1);
    let now = world.now;
    let first = world.directory.observe(&source(7, Some(7)), now).unwrap();
    let second = world.directory.observe(&source(8, Some(8)), now).unwrap();
    assert_ne!(first, second);
    assert_eq!(world.directory.observe(&source(70, Some(7)), now), Ok(first));
    assert_eq!(world.directory.observe(&source(70, None), now), Ok(first));
    // Round it goes, onto addresses in use.
    world.directory.counter = LaaCounter::starting_after(u32::MAX - 1);
    let third = world.directory.observe(&source(9, Some(9)), now).unwrap();
    assert!(third != first && third != second);
    world.send(MacAddr::new([2, 0, 0, 0, 0x99, 0x99]), 1);
    assert_eq!(world.refused, [(1, Refusal::NoPeer)], "such an address tells nothing");
}

#[test]
fn a_peer_known_by_lid_alone_turns_out_to_be_one_that_moved() {
    let mut world = World::with(Config { scheme: Scheme::LaaCounter, ..Config::DEFAULT });
    let now = world.now;
    let known = world.directory.observe(&source(7, Some(7)), now).unwrap();
    let passing = world.directory.observe(&source(70, None), now).unwrap();
    assert_ne!(known, passing);
    assert_eq!(world.directory.observe(&source(70, Some(7)), now), Ok(known));
    assert_eq!(world.directory.peers(), 1);
}

#[test]
fn under_the_guid_scheme_a_restarted_peer_keeps_its_address_and_a_stranger_does_not_get_it() {
    let scheme = Scheme::Guid(GuidMask::DEFAULT);
    let mut world = World::with(Config { scheme, ..Config::DEFAULT });
    let now = world.now;
    assert_eq!(world.directory.observe(&source(7, None), now), Err(Rejected::NoAddress));
    let known = world.directory.observe(&source(7, Some(7)), now).unwrap();
    assert_eq!(known.to_bytes(), [0x00, 0x30, 0x48, 0, 0, 7]);
    let reborn = Source { qpn: Qpn::new(0x50).unwrap(), ..source(7, Some(7)) };
    assert_eq!(world.directory.observe(&reborn, now), Ok(known));
    assert_eq!(world.directory.address_of(known), Some(HwAddr::new(reborn.qpn, gid(7))));
    let guid = [0x00, 0x30, 0x48, 0xaa, 0xaa, 0, 0, 7];
    let twin = Source { gid: Some(Gid::from_parts(Gid::DEFAULT_PREFIX, guid)), ..source(9, None) };
    assert_eq!(world.directory.observe(&twin, now), Err(Rejected::NoAddress));
}

const VIDEO: IpGroup = IpGroup::V4([239, 1, 2, 3]);

#[test]
fn a_group_is_joined_to_be_sent_to_and_left_when_it_is_not() {
    let mut world = World::up();
    let mgid = Mgid::of(VIDEO, LINK);
    world.groups_exist.insert(mgid);
    world.send_group(VIDEO, 1);
    world.send_group(VIDEO, 2);
    world.work();
    assert_eq!(world.posted, [1, 2]);
    assert_eq!(world.memberships.values().collect::<Vec<_>>(), [&(mgid, Role::SendOnly)]);
    world.complete();
    world.pass(300_000);
    for _ in 0..4 {
        world.work();
    }
    assert!(world.memberships.is_empty());
    assert_eq!((world.handles.len(), world.directory.group_count()), (1, 1), "the broadcast group's");
    world.halt();
}

#[test]
fn a_group_that_does_not_exist_is_not_made_by_sending_to_it() {
    let mut world = World::up();
    world.send_group(VIDEO, 1);
    world.work();
    assert_eq!(world.refused, [(1, Refusal::Unreachable)]);
    world.send_group(VIDEO, 2);
    assert_eq!(world.refused.len(), 2, "refused at once for a while");
    world.groups_exist.insert(Mgid::of(VIDEO, LINK));
    world.pass(300);
    world.work();
    world.send_group(VIDEO, 3);
    world.work();
    assert_eq!(world.posted, [3]);
    world.halt();
}

#[test]
fn listeners_join_what_was_reported_and_leave_what_is_listed_no_more() {
    let mut world = World::up();
    let mgid = Mgid::of(VIDEO, LINK);
    world.directory.set_multicast_list(&[IpGroup::ALL_HOSTS.to_mac(), VIDEO.to_mac()], world.now);
    world.directory.reported(VIDEO, true, world.now);
    world.work();
    let joined = |world: &World| world.memberships.values().copied().collect::<BTreeMap<_, _>>();
    let all_hosts = Mgid::of(IpGroup::ALL_HOSTS, LINK);
    assert_eq!(joined(&world), BTreeMap::from([(mgid, Role::Full), (all_hosts, Role::Full)]));
    world.pass(60_000);
    world.work();
    assert_eq!(joined(&world).len(), 2, "no twin is assumed");
    world.directory.set_multicast_list(&[IpGroup::ALL_HOSTS.to_mac()], world.now);
    world.work();
    assert_eq!(joined(&world), BTreeMap::from([(all_hosts, Role::Full)]));
    world.halt();
}

#[test]
fn a_listener_that_reports_nothing_gets_the_likeliest_group_in_time() {
    let mut world = World::up();
    let twin = IpGroup::V4([224, 1, 2, 3]);
    world.directory.set_multicast_list(&[VIDEO.to_mac()], world.now);
    world.work();
    assert!(world.memberships.is_empty());
    let deadline = world.directory.next_deadline().unwrap();
    world.pass(2_000);
    assert!(deadline <= world.now);
    world.work();
    assert_eq!(world.memberships.values().next(), Some(&(Mgid::of(twin, LINK), Role::Full)));
    world.halt();
}

#[test]
fn a_sender_that_begins_to_listen_becomes_a_full_member() {
    let mut world = World::up();
    let mgid = Mgid::of(VIDEO, LINK);
    world.groups_exist.insert(mgid);
    world.send_group(VIDEO, 1);
    world.work();
    world.complete();
    world.directory.set_multicast_list(&[VIDEO.to_mac()], world.now);
    world.directory.reported(VIDEO, true, world.now);
    world.send_group(VIDEO, 2);
    world.work();
    assert_eq!(world.posted, [1, 2]);
    assert_eq!(world.memberships.values().collect::<Vec<_>>(), [&(mgid, Role::Full)]);
    world.halt();
}

#[test]
fn a_link_that_goes_down_leaves_everything_and_comes_back_with_everything() {
    let mut world = World::up();
    world.directory.set_multicast_list(&[IpGroup::ALL_NODES.to_mac()], world.now);
    world.groups_exist.insert(Mgid::of(VIDEO, LINK));
    world.send_group(VIDEO, 1);
    world.work();
    world.complete();
    assert_eq!(world.memberships.len(), 2);
    world.directory.clear_broadcast(world.now);
    let sent = world.directory.send_broadcast(2);
    assert!(matches!(sent, Sent::Refused(2, Refusal::Unreachable)));
    world.send_group(VIDEO, 3);
    world.work();
    assert!(world.memberships.is_empty() && world.handles.is_empty());
    let broadcast = Mgid::broadcast(LINK);
    world.directory.set_broadcast(broadcast, record(broadcast, 0xc000), world.now).unwrap();
    world.work();
    let members: Vec<_> = world.memberships.values().copied().collect();
    assert_eq!(
        members,
        [(Mgid::of(IpGroup::ALL_NODES, LINK), Role::Full)],
        "who only sent waits for a packet"
    );
    let sent = world.directory.send_broadcast(4);
    let Sent::Ready(4, route) = sent else { panic!("{sent:?}") };
    world.in_flight.push(route.av);
    world.halt();
}

#[test]
fn an_administrator_that_forgot_us_is_joined_anew() {
    let mut world = World::up();
    world.directory.set_multicast_list(&[IpGroup::ALL_NODES.to_mac()], world.now);
    world.work();
    let before: Vec<_> = world.memberships.keys().copied().collect();
    world.directory.rejoin(world.now);
    world.work();
    assert_eq!(world.memberships.len(), 1);
    assert!(world.memberships.keys().all(|membership| !before.contains(membership)));
    let state = world.directory.membership(Mgid::of(IpGroup::ALL_NODES, LINK)).unwrap().state;
    assert_eq!(state, Membership::Joined(Role::Full));
    world.halt();
}

#[test]
fn waiting_packets_can_be_cancelled() {
    let mut world = World::new();
    for packet in 1..=4 {
        world.send(mac(7), packet);
    }
    let mut taken = Vec::new();
    world.directory.cancel(|packet| packet % 2 == 0, |packet| taken.push(packet));
    assert_eq!(taken, [2, 4]);
    world.work();
    assert_eq!(world.posted, [1, 3]);
    world.halt();
}

/// Things that happen in any order.
#[derive(Clone, Debug)]
enum Step {
    Send(u16),
    SendGroup(u8),
    Observe(u16, Option<u8>),
    Move(u8, u16),
    Listen(Vec<u8>),
    Report(u8, bool),
    Work(usize),
    Hold,
    AnswerHeld,
    Complete,
    Pass(u32),
    Revalidate,
    Rejoin,
    LinkDown,
    LinkUp,
    Administrator(bool),
    Cancel(u32),
    Forget,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1_u16..12).prop_map(Step::Send),
        3 => (0_u8..4).prop_map(Step::SendGroup),
        4 => (1_u16..12, prop::option::of(1_u8..12)).prop_map(|(lid, host)| Step::Observe(lid, host)),
        1 => (1_u8..12, 1_u16..12).prop_map(|(host, lid)| Step::Move(host, lid)),
        1 => prop::collection::vec(0_u8..4, 0..4).prop_map(Step::Listen),
        1 => (0_u8..4, any::<bool>()).prop_map(|(group, joined)| Step::Report(group, joined)),
        6 => (0_usize..4).prop_map(Step::Work),
        2 => Just(Step::Work(usize::MAX)),
        1 => Just(Step::Hold),
        2 => Just(Step::AnswerHeld),
        3 => Just(Step::Complete),
        3 => (1_u32..5_000).prop_map(Step::Pass),
        1 => Just(Step::Pass(300_000)),
        1 => Just(Step::Revalidate),
        1 => Just(Step::Rejoin),
        1 => Just(Step::LinkDown),
        1 => Just(Step::LinkUp),
        1 => any::<bool>().prop_map(Step::Administrator),
        1 => (0_u32..7).prop_map(Step::Cancel),
        1 => Just(Step::Forget),
    ]
}

fn group(number: u8) -> IpGroup {
    [VIDEO, IpGroup::V4([224, 1, 2, 3]), IpGroup::ALL_NODES, IpGroup::ALL_HOSTS][usize::from(number) % 4]
}

fn any_scheme() -> impl Strategy<Value = Scheme> {
    prop_oneof![Just(Scheme::QpnLid), Just(Scheme::LaaCounter), Just(Scheme::Guid(GuidMask::DEFAULT)),]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Whatever happens in whatever order: a packet comes out once, in order for its destination; a handle is destroyed
    /// once, and never under a send; memberships are left; and afterwards nothing is left over.
    #[test]
    fn nothing_is_lost_doubled_or_leaked(scheme in any_scheme(), steps in prop::collection::vec(step(), 0..200)) {
        let mut world = World::with(Config { scheme, pending_each: 5, queries: 3, ..Config::DEFAULT });
        let broadcast = Mgid::broadcast(LINK);
        let mut next = 0_u32;
        let mut destinations: HashMap<u32, (bool, MacAddr)> = HashMap::new();
        let mut cancelled = Vec::new();
        let mut known = vec![mac(3)];
        for step in steps {
            match step {
                Step::Send(lid) => {
                    let to = if scheme == Scheme::QpnLid {
                        mac(lid)
                    } else {
                        known[usize::from(lid) % known.len()]
                    };
                    destinations.insert(next, (false, to));
                    world.send(to, next);
                    next += 1;
                }
                Step::SendGroup(number) => {
                    // Two groups may share an Ethernet address, so the MGID's low bytes tell them apart.
                    let id = MacAddr::new([0, 0, 0, 0, 0, number % 4]);
                    destinations.insert(next, (true, id));
                    world.send_group(group(number), next);
                    next += 1;
                }
                Step::Observe(lid, host) => {
                    if let Ok(mac) = world.directory.observe(&source(lid, host), world.now) {
                        prop_assert!(mac.is_station());
                        if !known.contains(&mac) {
                            known.push(mac);
                        }
                    }
                }
                Step::Move(host, lid) => {
                    if let Some(administrator) = &mut world.administrator {
                        administrator.insert(gid(host), lid);
                    }
                }
                Step::Listen(numbers) => {
                    let list: Vec<_> = numbers.into_iter().map(|number| group(number).to_mac()).collect();
                    world.directory.set_multicast_list(&list, world.now);
                }
                Step::Report(number, joined) => world.directory.reported(group(number), joined, world.now),
                Step::Work(patience) => {
                    world.patience = patience;
                    world.work();
                }
                Step::Hold if world.held.is_none() => world.held = Some(Vec::new()),
                Step::Hold => {}
                Step::AnswerHeld => world.answer_held(),
                Step::Complete => world.complete(),
                Step::Pass(millis) => world.pass(millis),
                Step::Revalidate => world.directory.revalidate(),
                Step::Rejoin => world.directory.rejoin(world.now),
                Step::LinkDown => world.directory.clear_broadcast(world.now),
                Step::LinkUp => {
                    world.directory.set_broadcast(broadcast, record(broadcast, 0xc000), world.now).unwrap();
                }
                Step::Administrator(answers) => {
                    world.administrator =
                        answers.then(|| (1..=200).map(|host| (gid(host), u16::from(host))).collect());
                }
                Step::Cancel(modulus) => {
                    world.directory.cancel(|packet| packet % 7 == modulus, |packet| cancelled.push(packet));
                }
                Step::Forget => world.directory.forget_peers(),
            }
            // The table is consistent with itself.
            for slot in 0..world.directory.table.slots.capacity() {
                if let Some(endpoint) = world.directory.table.slots.get(slot) {
                    let table = &world.directory.table;
                    prop_assert_eq!(endpoint.by_mac, table.find_mac(endpoint.mac) == Some(slot));
                    prop_assert_eq!(endpoint.by_route, table.find_route(endpoint.lid, endpoint.qpn) == Some(slot));
                    let address = endpoint.gid.and_then(|gid| table.find_address(gid, endpoint.qpn));
                    prop_assert_eq!(endpoint.by_address, address == Some(slot));
                }
            }
        }
        world.administrator = None;
        world.halt();
        // Every packet once.
        let mut out: Vec<u32> = world.posted.clone();
        out.extend(world.refused.iter().map(|(packet, _)| *packet));
        out.extend(&cancelled);
        out.sort_unstable();
        prop_assert_eq!(out, (0..next).collect::<Vec<_>>());
        // In order for each destination.
        let mut last: HashMap<(bool, MacAddr), u32> = HashMap::new();
        for packet in &world.posted {
            let before = last.insert(destinations[packet], *packet);
            prop_assert!(before.is_none_or(|before| before < *packet), "{before:?} then {packet}");
        }
        // Unused and gone peers leave the table.
        world.pass(300_000);
        world.work();
        world.work();
        world.work();
        prop_assert_eq!(world.directory.peers(), 0);
        prop_assert_eq!(world.directory.group_count(), 0);
    }

    /// Against a map: under the QPN+LID scheme a source's address is a function of QPN and LID, and who is where is what
    /// was last heard.
    #[test]
    fn the_table_agrees_with_a_map(
        heard in prop::collection::vec((2_u32..6, 1_u16..40, prop::option::of(1_u8..250)), 0..300),
    ) {
        let mut world = World::new();
        let mut gids: HashMap<(u32, u16), u8> = HashMap::new();
        let mut places: HashMap<(u32, u8), u16> = HashMap::new();
        for (qpn, lid, host) in heard {
            let qpn = Qpn::new(qpn).unwrap();
            let source = Source { qpn, lid: Lid::new(lid), gid: host.map(gid) };
            let observed = world.directory.observe(&source, world.now);
            let at = gids.get(&(qpn.get(), lid)).copied();
            let contradicts = matches!((at, host), (Some(at), Some(host)) if at != host);
            if contradicts {
                prop_assert_eq!(observed, Err(Rejected::Contradiction));
                continue;
            }
            prop_assert_eq!(observed, Ok(qpn_lid::remote(qpn, Lid::new(lid))));
            if let Some(host) = host {
                if let Some(before) = places.insert((qpn.get(), host), lid).filter(|&before| before != lid) {
                    gids.remove(&(qpn.get(), before));
                }
                gids.insert((qpn.get(), lid), host);
            }
        }
        for (&(qpn, host), &lid) in &places {
            let address = HwAddr::new(Qpn::new(qpn).unwrap(), gid(host));
            let expected = qpn_lid::remote(address.qpn, Lid::new(lid));
            prop_assert_eq!(world.directory.mac_of(&address), Some(expected));
            prop_assert_eq!(world.directory.address_of(expected), Some(address));
        }
    }
}
