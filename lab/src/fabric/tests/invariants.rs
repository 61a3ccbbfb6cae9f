//! What always holds, whatever happened, and that equal calls give equal results.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::bench::{Bench, mgid};
use crate::fabric::ids::Lid;
use crate::fabric::manager::{LidPolicy, ManagerConfig, Restart};
use crate::fabric::topology::builder::LinkSettings;
use crate::fabric::topology::{NodeKind, PortState};
use crate::fabric::{Fabric, FabricConfig, Output, Topology};

/// What holds after any sweep.
pub fn check(fabric: &Fabric) {
    let topology = fabric.topology();
    let mut lids = BTreeSet::new();
    for id in topology.port_ids() {
        let port = topology.port(id);
        // No LID belongs to two ports; a base LID is aligned to its LMC.
        if port.lid != Lid::NONE && port.state == PortState::Active {
            assert_eq!(port.lid.base(port.lmc), port.lid);
            for lid in port.lid.0..port.lid.0 + (1 << port.lmc) {
                assert!(Lid(lid).is_unicast() && lids.insert(lid), "LID {lid:#x} twice");
            }
        }
        // Both ends of a cable agree that it is up, and a port without one is Down.
        if let Some(link) = port.link {
            let back = topology.port(link.peer).link.unwrap();
            assert_eq!((back.peer, back.up), (id, link.up));
            assert_eq!(port.state == PortState::Down, !link.up);
        } else {
            let is_switch = topology.node(port.node).switch().is_some();
            assert!(port.state == PortState::Down || is_switch && port.number == 0);
        }
    }
    // Every Active host is reached from every other by the forwarding tables, without a loop.
    let active: Vec<_> =
        topology.hosts().iter().copied().filter(|&id| topology.port(id).state == PortState::Active).collect();
    for &from in &active {
        for &to in &active {
            if from != to {
                assert!(reaches(fabric, from, topology.port(to).lid), "{from:?} {to:?}");
            }
        }
    }
    // Groups have a LID each, and only members that are reachable ports.
    let mut mlids = BTreeSet::new();
    for group in fabric.manager().groups().values() {
        assert!(group.mlid.is_multicast() && mlids.insert(group.mlid));
        assert!(group.is_alive());
        for member in group.members.values() {
            assert!(!member.state.is_empty());
            assert!(matches!(
                topology.node(topology.port(member.port).node).kind,
                NodeKind::ChannelAdapter | NodeKind::Manager
            ));
        }
    }
}

fn reaches(fabric: &Fabric, from: crate::fabric::PortId, lid: Lid) -> bool {
    let topology = fabric.topology();
    let mut out = from;
    for _ in 0..16 {
        let Some(link) = topology.port(out).link.filter(|link| link.up) else { return false };
        let peer = topology.port(link.peer);
        let Some(switch) = topology.node(peer.node).switch() else { return peer.has_lid(lid) };
        let Some(next) = switch.route(lid).and_then(|number| topology.port_of(peer.node, number)) else {
            return false;
        };
        out = next;
    }
    false
}

/// What may happen to a fabric.
#[derive(Clone, Debug)]
enum Step {
    Link(usize, bool),
    Join(usize, u8, u8),
    Leave(usize, u8, u8),
    Send(usize, u8),
    Restart(u8),
    Relid(bool),
    Lmc(u8),
    Wait(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0usize..6, any::<bool>()).prop_map(|(host, up)| Step::Link(host, up)),
        (0usize..6, 0u8..3, 1u8..16).prop_map(|(host, group, state)| Step::Join(host, group, state)),
        (0usize..6, 0u8..3, 1u8..16).prop_map(|(host, group, state)| Step::Leave(host, group, state)),
        (0usize..6, 0u8..3).prop_map(|(host, group)| Step::Send(host, group)),
        (0u8..3).prop_map(Step::Restart),
        any::<bool>().prop_map(Step::Relid),
        (0u8..4).prop_map(Step::Lmc),
        (0u32..50_000_000).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 1..40)
}

/// Runs the steps and writes down all that can be seen.
fn run(seed: u64, steps: &[Step]) -> (Vec<String>, Bench) {
    let manager = ManagerConfig { lid_policy: LidPolicy::Random, ..ManagerConfig::default() };
    let topology = Topology::default_for(6, LinkSettings::default()).unwrap();
    let mut bench = Bench::on(topology, FabricConfig { seed, manager });
    let mut log = Vec::new();
    for step in steps {
        let now = bench.now;
        match *step {
            Step::Link(host, up) => bench.fabric.set_link(now, bench.host(host), up),
            Step::Join(host, group, state) if bench.state(host) == PortState::Active => {
                let record = bench.creation(host, mgid(group), state);
                let mad = bench.request(
                    crate::fabric::wire::mad::Method::SET,
                    crate::fabric::wire::mad::Attribute::MC_MEMBER_RECORD,
                    crate::fabric::wire::sa::mcmember::mask::CREATE,
                    &record.to_bytes(),
                );
                log.push(format!("{:?}", bench.ask(host, &mad)));
            }
            Step::Leave(host, group, state) if bench.state(host) == PortState::Active => {
                let mut record = bench.creation(host, mgid(group), state);
                record.join_state = state;
                let mad = bench.request(
                    crate::fabric::wire::mad::Method::DELETE,
                    crate::fabric::wire::mad::Attribute::MC_MEMBER_RECORD,
                    crate::fabric::wire::sa::mcmember::mask::JOIN,
                    &record.to_bytes(),
                );
                log.push(format!("{:?}", bench.ask(host, &mad)));
            }
            Step::Join(..) | Step::Leave(..) => (),
            Step::Send(host, group) => {
                let known = bench.fabric.manager().groups().get(&mgid(group)).map(|group| group.mlid);
                if let Some(mlid) = known {
                    let packet = bench.datagram(host, mlid, crate::fabric::PKey::DEFAULT, 32);
                    let port = bench.host(host);
                    let deliveries = bench.fabric.transmit(now, port, packet);
                    assert!(deliveries.iter().all(|delivery| delivery.port != port), "own packet back");
                    let ports: BTreeSet<_> = deliveries.iter().map(|delivery| delivery.port).collect();
                    assert_eq!(ports.len(), deliveries.len(), "twice to one port");
                    log.push(format!("{:?}", deliveries.iter().map(|d| (d.at, d.port)).collect::<Vec<_>>()));
                }
            }
            Step::Restart(kind) => {
                let restart =
                    [Restart::Remember, Restart::ForgetGroups, Restart::ForgetAll][usize::from(kind)];
                bench.fabric.restart_manager(now, restart, 1_000);
            }
            Step::Relid(random) => {
                let policy = if random { LidPolicy::Random } else { LidPolicy::Sequential };
                bench.fabric.reassign_lids(now, policy);
            }
            Step::Lmc(lmc) => bench.fabric.set_lmc(now, lmc),
            Step::Wait(time) => {
                bench.now += u64::from(time);
                for output in bench.fabric.poll(bench.now) {
                    if let Output::Event { at, port, event } = output {
                        log.push(format!("{at} {port:?} {event:?}"));
                    }
                }
            }
        }
    }
    bench.settle();
    log.push(format!("{:?} {:?}", bench.fabric.manager().groups(), bench.fabric.topology().ports()));
    (log, bench)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Whatever happens, the invariants hold once the manager has come to rest, and the same seed and calls
    /// give the same log.
    #[test]
    fn any_history(seed: u64, steps in steps()) {
        let (log, bench) = run(seed, &steps);
        check(&bench.fabric);
        prop_assert_eq!(log, run(seed, &steps).0);
    }
}
