//! Peers: resolution, address handles, what is learned and what is rejected.

use super::*;

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
