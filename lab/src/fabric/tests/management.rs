//! What the subnet manager does, and which events tell of it.

use super::bench::{Bench, ipoib_mgid, mgid};
use crate::fabric::FabricConfig;
use crate::fabric::event::PortEvent;
use crate::fabric::ids::{Gid, Guid, PKey};
use crate::fabric::manager::{LidPolicy, ManagerConfig, Members, Partition, Restart};
use crate::fabric::rate::Mtu;
use crate::fabric::topology::builder::LinkSettings;
use crate::fabric::topology::{PortState, Topology};
use crate::fabric::wire::mad::{Attribute, Method, Status};

/// A new port gets a LID and a master before it is Armed and Active, and is asked to reregister (OpenSM:
/// is_new).
#[test]
fn bring_up() {
    let mut bench = Bench::new(2);
    let lid = bench.lid(0);
    assert_eq!(
        bench.take_events(0),
        [
            PortEvent::LidChange { from: crate::fabric::Lid::NONE, to: lid },
            PortEvent::SmChange,
            PortEvent::ClientReregister,
            PortEvent::Armed,
            PortEvent::Active,
        ]
    );
    let port = bench.fabric.port(bench.host(0));
    let master = bench.fabric.port(bench.fabric.manager().port().unwrap());
    assert_eq!((port.state, port.sm_lid), (PortState::Active, master.lid));
    assert_eq!(port.subnet_timeout, 18);
}

/// A link flap: Down, Init, Armed, Active. The LID stays. Only the port concerned hears of it.
#[test]
fn link_flap() {
    let mut bench = Bench::new(2);
    bench.take_events(0);
    bench.take_events(1);
    let lid = bench.lid(1);
    bench.fabric.set_link(bench.now, bench.host(1), false);
    bench.settle();
    assert_eq!(bench.take_events(1), [PortEvent::Down]);
    assert_eq!(bench.state(1), PortState::Down);
    bench.fabric.set_link(bench.now, bench.host(1), true);
    bench.settle();
    let events = bench.take_events(1);
    assert_eq!(events, [PortEvent::Init, PortEvent::ClientReregister, PortEvent::Armed, PortEvent::Active]);
    assert_eq!((bench.lid(1), bench.fabric.port(bench.host(1)).counters.link_downed), (lid, 1));
    assert_eq!(bench.take_events(0), []);
}

/// Who goes out of service leaves its groups (OpenSM, osm_drop_mgr.c), unless it is back before the sweep.
#[test]
fn flap_and_groups() {
    let mut bench = Bench::new(3);
    let group = bench.create(1, mgid(1), 1).unwrap();
    bench.create(0, mgid(1), 1).unwrap();
    bench.fabric.set_link(bench.now, bench.host(1), false);
    bench.fabric.set_link(bench.now + 1, bench.host(1), true);
    bench.settle();
    assert_eq!(bench.send(0, group.mlid), [bench.host(1)], "too short for a sweep to see");
    bench.fabric.set_link(bench.now, bench.host(1), false);
    bench.settle();
    bench.fabric.set_link(bench.now, bench.host(1), true);
    bench.settle();
    assert!(bench.send(0, group.mlid).is_empty(), "it has to join again");
    bench.create(1, mgid(1), 1).unwrap();
    assert_eq!(bench.send(0, group.mlid), [bench.host(1)]);
}

/// A restarted manager answers nobody until it has swept, then asks everybody to reregister. What it forgets
/// depends.
#[test]
fn restart() {
    for (restart, groups_left) in
        [(Restart::Remember, true), (Restart::ForgetGroups, false), (Restart::ForgetAll, false)]
    {
        let mut bench = Bench::new(2);
        bench.create(0, mgid(1), 1).unwrap();
        bench.take_events(0);
        let lid = bench.lid(0);
        bench.fabric.restart_manager(bench.now, restart, 1_000_000_000);
        let port = bench.fabric.topology().nodes().iter().find(|node| node.description == "subnet manager");
        let port = port.unwrap().ports[0];
        let request = bench.request(Method::GET, Attribute::CLASS_PORT_INFO, 0, &[]).to_bytes();
        let source = crate::fabric::administrator::Source { lid, ..Default::default() };
        assert!(bench.fabric.administer(bench.now, port, &source, &request).is_empty(), "down");
        let before = bench.now;
        bench.settle();
        assert!(bench.now >= before + 1_000_000_000);
        assert_eq!(bench.take_events(0), [PortEvent::ClientReregister], "{restart:?}");
        assert_eq!(bench.lid(0), lid, "LIDs are found on the ports, or given in the same order");
        assert_eq!(bench.fabric.manager().groups().contains_key(&mgid(1)), groups_left, "{restart:?}");
        assert!(bench.fabric.manager().groups().contains_key(&ipoib_mgid(0x401B, 0xFFFF_FFFF)));
        assert_eq!(bench.state(0), PortState::Active, "data passes all the while");
        assert!(bench.query(0, Method::GET, Attribute::CLASS_PORT_INFO, 0, &[]).is_ok());
    }
}

/// Handover: another port is master; everybody hears of it and reaches it.
#[test]
fn handover() {
    let settings = LinkSettings::default();
    let mut topology = Topology::default_for(2, settings).unwrap();
    let standby = topology.add_manager("standby", Guid(0x77_0000), Mtu::B4096).unwrap();
    let switch = topology.node_ids().find(|&id| topology.node(id).switch().is_some()).unwrap();
    topology.connect((standby, 1), (switch, 20), settings).unwrap();
    let mut bench = Bench::on(topology, FabricConfig::default());
    bench.take_events(0);
    let old = bench.fabric.port(bench.host(0)).sm_lid;
    let group = bench.create(0, mgid(1), 1).unwrap();
    assert!(bench.fabric.hand_over(bench.now, true));
    bench.settle();
    assert_eq!(bench.take_events(0), [PortEvent::SmChange, PortEvent::ClientReregister]);
    assert_ne!(bench.fabric.port(bench.host(0)).sm_lid, old);
    assert_eq!(bench.create(1, mgid(1), 1).unwrap().mlid, group.mlid);
    assert!(bench.fabric.hand_over(bench.now, false));
    bench.settle();
    assert_eq!(bench.fabric.port(bench.host(0)).sm_lid, old);
    assert!(!bench.fabric.manager().groups().contains_key(&mgid(1)));
    let mut alone = Bench::new(1);
    assert!(!alone.fabric.hand_over(0, true), "nobody to hand over to");
}

/// Every LID changes; traffic goes on with the new ones and finds nobody at the old.
#[test]
fn lid_reassignment() {
    for policy in [LidPolicy::Sequential, LidPolicy::Random] {
        let mut bench = Bench::new(4);
        let before: Vec<_> = (0..4).map(|host| bench.lid(host)).collect();
        bench.take_events(2);
        bench.fabric.reassign_lids(bench.now, policy);
        bench.settle();
        let after: Vec<_> = (0..4).map(|host| bench.lid(host)).collect();
        assert!(before.iter().zip(&after).all(|(old, new)| old != new), "{policy:?} {before:?} {after:?}");
        let change = PortEvent::LidChange { from: before[2], to: after[2] };
        assert!(bench.take_events(2).contains(&change));
        assert_eq!(bench.send(0, after[2]), [bench.host(2)]);
        super::invariants::check(&bench.fabric);
    }
}

/// Random LIDs come from the seed.
#[test]
fn random_lids_by_seed() {
    let lids = |seed| {
        let manager = ManagerConfig { lid_policy: LidPolicy::Random, lmc: 3, ..ManagerConfig::default() };
        let topology = Topology::default_for(8, LinkSettings::default()).unwrap();
        let bench = Bench::on(topology, FabricConfig { seed, manager });
        super::invariants::check(&bench.fabric);
        (0..8).map(|host| bench.lid(host)).collect::<Vec<_>>()
    };
    assert_eq!(lids(1), lids(1));
    assert_ne!(lids(1), lids(2));
}

/// Changing LMC changes the number of LIDs a port has, and it hears of it.
#[test]
fn lmc_change() {
    let mut bench = Bench::new(2);
    bench.take_events(0);
    bench.fabric.set_lmc(bench.now, 2);
    bench.settle();
    assert!(matches!(bench.take_events(0)[..], [PortEvent::LidChange { .. }, ..]));
    assert_eq!(bench.fabric.port(bench.host(0)).lmc, 2);
    super::invariants::check(&bench.fabric);
}

/// Partitions decide P_Key tables; a table set by hand wins until it is given back.
#[test]
fn pkey_tables() {
    let mut bench = Bench::new(2);
    let guid = bench.guid(0);
    assert_eq!(bench.fabric.port(bench.host(0)).pkeys, [PKey::DEFAULT]);
    bench.take_events(0);
    bench.take_events(1);
    let more = vec![
        Partition::default(),
        Partition { pkey: PKey(5), members: Members::Ports(vec![(guid, false)]), ipoib: None },
    ];
    bench.fabric.set_partitions(bench.now, more);
    bench.settle();
    assert_eq!(bench.fabric.port(bench.host(0)).pkeys, [PKey::DEFAULT, PKey(5)]);
    assert_eq!((bench.take_events(0), bench.take_events(1)), (vec![PortEvent::PkeyChange], vec![]));
    bench.fabric.set_pkey_table(bench.now, bench.host(1), Some(vec![PKey(0x8009)]));
    bench.settle();
    assert_eq!(bench.take_events(1), [PortEvent::PkeyChange]);
    assert!(bench.send(0, bench.lid(1)).is_empty(), "no common partition");
    bench.fabric.set_pkey_table(bench.now, bench.host(1), None);
    bench.settle();
    assert_eq!(bench.fabric.port(bench.host(1)).pkeys, [PKey::DEFAULT]);
    assert_eq!(bench.send(0, bench.lid(1)), [bench.host(1)]);
}

/// Without a partition of its own for everybody, the default one has limited members and a full manager.
#[test]
fn default_partition_is_always_there() {
    let config = ManagerConfig { partitions: vec![], ..ManagerConfig::default() };
    let mut bench = Bench::with(1, config);
    assert_eq!(bench.fabric.port(bench.host(0)).pkeys, [PKey::DEFAULT_LIMITED]);
    assert!(bench.query(0, Method::GET, Attribute::CLASS_PORT_INFO, 0, &[]).is_ok());
}

/// Subnet timeout and GID prefix change, each with its event; the GID is the new one.
#[test]
fn timeout_and_prefix() {
    let mut bench = Bench::new(1);
    bench.take_events(0);
    bench.fabric.set_subnet_timeout(bench.now, 20);
    bench.settle();
    assert_eq!(bench.take_events(0), [PortEvent::SubnetTimeout]);
    assert_eq!(bench.fabric.port(bench.host(0)).subnet_timeout, 20);
    bench.fabric.set_subnet_prefix(bench.now, 0xFEC0_0000_0000_0002);
    bench.settle();
    assert_eq!(bench.take_events(0), [PortEvent::GidChange, PortEvent::ClientReregister]);
    assert_eq!(bench.gid(0), Gid::new(0xFEC0_0000_0000_0002, bench.guid(0)));
    bench.fabric.set_alias_guids(bench.now, bench.host(0), &[Guid(9)]);
    bench.settle();
    assert_eq!(bench.take_events(0), [PortEvent::GidChange]);
    let alias = bench.fabric.port(bench.host(0)).gid(1).unwrap();
    assert_eq!(alias, Gid::new(0xFEC0_0000_0000_0002, Guid(9)));
    assert_eq!(bench.fabric.port(bench.host(0)).gids().count(), 2);
}

/// Asked for, reregistration comes alone.
#[test]
fn reregistration() {
    let mut bench = Bench::new(1);
    bench.take_events(0);
    bench.fabric.request_reregistration(bench.now);
    bench.settle();
    assert_eq!(bench.take_events(0), [PortEvent::ClientReregister]);
}

/// No master: nobody answers, ports that come up stay in Init, data goes on where it was.
#[test]
fn no_master() {
    let mut bench = Bench::new(3);
    let manager = bench.fabric.stop_manager().unwrap();
    bench.fabric.set_link(bench.now, bench.host(2), false);
    bench.fabric.set_link(bench.now, bench.host(2), true);
    bench.settle();
    assert_eq!(bench.state(2), PortState::Init);
    assert_eq!(bench.send(0, bench.lid(1)), [bench.host(1)]);
    bench.fabric.start_manager(bench.now, manager);
    bench.settle();
    assert_eq!(bench.state(2), PortState::Active);
}

/// An uplink of the tree goes: the sweep finds another way.
#[test]
fn rerouting() {
    let mut bench = Bench::new(100);
    let topology = bench.fabric.topology();
    let spine = topology.nodes().iter().find(|node| node.description == "spine").unwrap();
    let first: Vec<_> = spine.ports[1..4].to_vec();
    for port in first {
        bench.fabric.set_link(bench.now, port, false);
    }
    bench.settle();
    super::invariants::check(&bench.fabric);
    for to in 1..100 {
        assert_eq!(bench.send(0, bench.lid(to)), [bench.host(to)]);
    }
    let broadcast = ipoib_mgid(0x401B, 0xFFFF_FFFF);
    let mut mlid = crate::fabric::Lid::NONE;
    for host in 0..100 {
        mlid = bench.create(host, broadcast, 1).unwrap().mlid;
    }
    assert_eq!(bench.send(0, mlid).len(), 99);
}

/// A switch that loses its last uplink is out of service with all behind it, and comes back whole.
#[test]
fn island() {
    let mut bench = Bench::new(100);
    let topology = bench.fabric.topology();
    let spine = topology.nodes().iter().find(|node| node.description == "spine").unwrap();
    let uplinks: Vec<_> = spine.ports[1..5].to_vec();
    for &port in &uplinks {
        bench.fabric.set_link(bench.now, port, false);
    }
    bench.settle();
    assert!(bench.send(99, bench.lid(0)).is_empty());
    for &port in &uplinks {
        bench.fabric.set_link(bench.now, port, true);
    }
    bench.settle();
    assert_eq!(bench.send(99, bench.lid(0)), [bench.host(0)]);
    super::invariants::check(&bench.fabric);
}

/// A host with two ports in one subnet has a LID for each, and a multicast packet of one reaches the other.
#[test]
fn two_ports() {
    let settings = LinkSettings::default();
    let mut topology = Topology::new();
    let switch = topology.add_switch("switch", Guid(0x100), 4, settings).unwrap();
    let host = topology.add_channel_adapter("host", Guid(0x200), 2, Mtu::B4096).unwrap();
    let manager = topology.add_manager("manager", Guid(0x300), Mtu::B4096).unwrap();
    topology.connect((host, 1), (switch, 1), settings).unwrap();
    topology.connect((host, 2), (switch, 2), settings).unwrap();
    topology.connect((manager, 1), (switch, 3), settings).unwrap();
    let mut bench = Bench::on(topology, FabricConfig::default());
    assert_ne!(bench.lid(0), bench.lid(1));
    let group = bench.create(0, mgid(1), 1).unwrap();
    bench.create(1, mgid(1), 1).unwrap();
    assert_eq!(bench.send(0, group.mlid), [bench.host(1)]);
}

/// Before the first sweep there is no answer (IBA C15-0.1.3).
#[test]
fn silent_before_the_first_sweep() {
    let mut bench = Bench::new(1);
    bench.fabric.request_reregistration(bench.now);
    let request = bench.request(Method::GET, Attribute::CLASS_PORT_INFO, 0, &[]).to_bytes();
    let port = bench.fabric.manager().port().unwrap();
    let source = crate::fabric::administrator::Source { lid: bench.lid(0), ..Default::default() };
    assert!(
        !bench.fabric.administer(bench.now, port, &source, &request).is_empty(),
        "a request for it is no restart"
    );
    bench.fabric.restart_manager(bench.now, Restart::Remember, 0);
    assert!(bench.fabric.administer(bench.now, port, &source, &request).is_empty());
    bench.settle();
    assert_eq!(bench.query(0, Method::SET, Attribute::CLASS_PORT_INFO, 0, &[]), Err(Status::REQ_INVALID));
}
