//! Properties: whatever happens, in any order.

use super::*;
use proptest::prelude::*;
use std::collections::HashMap;
use std::vec;

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

    /// Whatever happens in whatever order: a packet comes out once, in order for its destination; a handle is
    /// destroyed once, and never under a send; memberships are left; and afterwards nothing is left over.
    #[test]
    fn nothing_is_lost_doubled_or_leaked(
        scheme in any_scheme(),
        steps in prop::collection::vec(step(), 0..200),
    ) {
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
                    let route = table.find_route(endpoint.lid, endpoint.qpn);
                    prop_assert_eq!(endpoint.by_route, route == Some(slot));
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

    /// Against a map: under the QPN+LID scheme a source's address is a function of QPN and LID, and who is
    /// where is what was last heard.
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
