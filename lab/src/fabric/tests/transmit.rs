//! Packets from port to port.

use super::bench::{Bench, SMALL, mgid};
use crate::fabric::drops::DropReason;
use crate::fabric::ids::{Guid, Lid, PKey};
use crate::fabric::manager::{ManagerConfig, Members, Partition};
use crate::fabric::rate::{LinkSpeed, LinkWidth, Mtu, serialisation};
use crate::fabric::topology::builder::LinkSettings;
use crate::fabric::topology::{PortState, Topology};
use crate::fabric::wire::Packet;
use crate::fabric::{Fabric, FabricConfig};

/// A unicast packet reaches the port with its LID and no other, bytes unchanged.
#[test]
fn unicast_reaches_its_lid() {
    let mut bench = Bench::new(3);
    let packet = bench.datagram(0, bench.lid(2), PKey::DEFAULT, 100);
    let deliveries = bench.fabric.transmit(0, bench.host(0), packet.clone());
    assert_eq!(deliveries.iter().map(|d| d.port).collect::<Vec<_>>(), [bench.host(2)]);
    assert_eq!(deliveries[0].packet.sealed(), packet.sealed());
}

/// One link, one switch, one link: time of flight twice, switch latency once, and serialisation once, since a
/// switch passes a packet on as it comes in (cut-through).
#[test]
fn cut_through_timing() {
    let mut bench = Bench::new(2);
    let settings = LinkSettings::default();
    let packet = bench.datagram(0, bench.lid(1), PKey::DEFAULT, 2048);
    let time = serialisation(settings.width, settings.speed, packet.len());
    let now = bench.now + 1_000_000;
    let deliveries = bench.fabric.transmit(now, bench.host(0), packet);
    assert_eq!(deliveries[0].at, now + time + 2 * settings.latency + settings.switch_latency);
}

/// A port sends one packet after the other: throughput is the link's rate.
#[test]
fn link_serialises() {
    let mut bench = Bench::new(2);
    let now = bench.now + 1_000_000;
    let arrivals: Vec<u64> = (0..10)
        .map(|_| {
            let packet = bench.datagram(0, bench.lid(1), PKey::DEFAULT, 2048);
            bench.fabric.transmit(now, bench.host(0), packet)[0].at
        })
        .collect();
    let len = bench.datagram(0, bench.lid(1), PKey::DEFAULT, 2048).len();
    let time = serialisation(LinkWidth::X4, LinkSpeed::Edr, len);
    assert!(arrivals.windows(2).all(|pair| pair[1] - pair[0] == time), "{arrivals:?}");
    assert_eq!(bench.fabric.free_at(bench.host(0)), now + 10 * time);
}

/// Many senders to one receiver: nothing is lost (IBA 7.9, credits), the receiver's link is never used by two
/// packets at once, and the senders are held back to a share of its rate.
#[test]
fn incast_is_held_back_not_lost() {
    let mut bench = Bench::new(5);
    let now = bench.now + 1_000_000;
    let mut arrivals = Vec::new();
    for _ in 0..50 {
        for host in 1..5 {
            let packet = bench.datagram(host, bench.lid(0), PKey::DEFAULT, 2048);
            arrivals.extend(bench.fabric.transmit(now, bench.host(host), packet).iter().map(|d| d.at));
        }
    }
    assert_eq!(arrivals.len(), 200);
    arrivals.sort_unstable();
    let len = bench.datagram(0, bench.lid(1), PKey::DEFAULT, 2048).len();
    let time = serialisation(LinkWidth::X4, LinkSpeed::Edr, len);
    assert!(arrivals.windows(2).all(|pair| pair[1] - pair[0] >= time));
    for host in 1..5 {
        assert!(
            bench.fabric.free_at(bench.host(host)) > now + 3 * 50 * time,
            "host {host} was not held back"
        );
    }
    assert_eq!(bench.fabric.drops().total(), 0);
}

/// IBA 18.2.4.3: a multicast packet goes to every receiver but not back to its sender, nor to who did not
/// join.
#[test]
fn multicast_reaches_members_but_not_the_sender() {
    let mut bench = Bench::new(4);
    let group = bench.create(0, mgid(1), 1).unwrap();
    bench.create(1, mgid(1), 1).unwrap();
    bench.create(3, mgid(1), 1).unwrap();
    let reached = bench.send(0, group.mlid);
    assert_eq!(reached, [bench.host(1), bench.host(3)]);
}

/// IBA 15.2.5.17.1: a send-only non-member sends to the group and receives nothing of it.
#[test]
fn send_only_member_only_sends() {
    for hosts in [3, 100] {
        let mut bench = Bench::new(hosts);
        let last = hosts - 1;
        let group = bench.create(0, mgid(1), 1).unwrap();
        bench.create(1, mgid(1), 1).unwrap();
        bench.create(last, mgid(1), 4).unwrap();
        assert_eq!(bench.send(last, group.mlid), [bench.host(0), bench.host(1)], "{hosts} hosts");
        assert_eq!(bench.send(0, group.mlid), [bench.host(1)], "{hosts} hosts");
    }
}

/// A multicast LID without an entry is dropped where the packet enters (IBA 14.2.5.4: no default multicast
/// port).
#[test]
fn unknown_group_is_dropped() {
    let mut bench = Bench::new(2);
    assert!(bench.send(0, Lid(0xC123)).is_empty());
    assert_eq!(bench.fabric.drops().get(DropReason::NoRoute), 1);
}

/// In a two-level tree every host reaches every other, by unicast and by multicast, once.
#[test]
fn tree_reaches_everybody_once() {
    let mut bench = Bench::new(Topology::MAX_HOSTS);
    let broadcast = bench.fabric.manager().groups().values().next().unwrap().clone();
    for host in 0..Topology::MAX_HOSTS {
        assert_eq!(bench.state(host), PortState::Active);
        bench.create(host, broadcast.mgid, 1).unwrap();
    }
    for from in [0, 31, 32, 255] {
        let everybody_else: Vec<_> =
            (0..Topology::MAX_HOSTS).filter(|&host| host != from).map(|host| bench.host(host)).collect();
        assert_eq!(bench.send(from, broadcast.mlid), everybody_else);
        for to in (0..Topology::MAX_HOSTS).filter(|&to| to != from) {
            assert_eq!(bench.send(from, bench.lid(to)), [bench.host(to)]);
        }
    }
    assert_eq!(bench.fabric.drops().total(), 0);
}

/// LMC: a port answers to each of its LIDs (IBA 4.1.3).
#[test]
fn every_lid_of_a_port_reaches_it() {
    let mut bench = Bench::with(100, ManagerConfig { lmc: 2, ..ManagerConfig::default() });
    let base = bench.lid(99);
    assert_eq!(base.base(2), base);
    for offset in 0..4 {
        assert_eq!(bench.send(0, Lid(base.0 + offset)), [bench.host(99)]);
    }
}

/// IBA 7.2.7: no data leaves a port that is not Active, none passes a link that is down.
#[test]
fn port_states_gate_data() {
    let topology = Topology::default_for(2, LinkSettings::default()).unwrap();
    let mut fabric = Fabric::new(topology.clone(), FabricConfig::default());
    let bench = Bench::new(2);
    let packet = bench.datagram(0, bench.lid(1), PKey::DEFAULT, 8);
    assert!(fabric.transmit(0, bench.host(0), packet.clone()).is_empty());
    assert_eq!(fabric.drops().get(DropReason::SourceNotActive), 1);

    let mut bench = bench;
    bench.fabric.set_link(bench.now, bench.host(1), false);
    assert!(bench.send_packet(0, packet).is_empty());
    assert_eq!(bench.fabric.drops().get(DropReason::LinkNotActive), 1);
}

/// What is under way when a link goes down is lost, even if it is up again when it would have arrived.
#[test]
fn flap_loses_packets_in_flight() {
    let mut bench = Bench::new(2);
    let packet = bench.datagram(0, bench.lid(1), PKey::DEFAULT, 8);
    let delivery = bench.fabric.transmit(bench.now, bench.host(0), packet).remove(0);
    bench.fabric.set_link(bench.now, bench.host(1), false);
    bench.fabric.set_link(bench.now, bench.host(1), true);
    bench.settle();
    assert_eq!(bench.state(1), PortState::Active);
    assert_eq!(bench.fabric.receive(&delivery), Err(DropReason::LinkLostInFlight));
    assert_eq!(bench.fabric.drops().get(DropReason::LinkLostInFlight), 1);
    assert_eq!(bench.send(0, bench.lid(1)), [bench.host(1)]);
}

/// IBA 7.7.8: a packet longer than the MTU of a link on the way is dropped there; one of just the MTU passes.
#[test]
fn mtu_of_the_way() {
    let mut topology = Topology::new();
    let settings = LinkSettings::default();
    let switch = topology.add_switch("switch", Guid(0x100), 4, settings).unwrap();
    for (index, mtu) in [Mtu::B4096, SMALL].into_iter().enumerate() {
        let node = topology.add_channel_adapter("host", Guid(0x200 + 16 * index as u64), 1, mtu).unwrap();
        topology.connect((node, 1), (switch, index as u8 + 1), settings).unwrap();
    }
    let manager = topology.add_manager("manager", Guid(0x300), Mtu::B4096).unwrap();
    topology.connect((manager, 1), (switch, 4), settings).unwrap();
    let mut bench = Bench::on(topology, FabricConfig::default());
    let fits = bench.datagram(0, bench.lid(1), PKey::DEFAULT, SMALL.bytes());
    assert_eq!(bench.send_packet(0, fits), [bench.host(1)]);
    let too_long = bench.datagram(0, bench.lid(1), PKey::DEFAULT, SMALL.bytes() + 256);
    assert!(bench.send_packet(0, too_long).is_empty());
    assert_eq!(bench.fabric.drops().get(DropReason::TooLong), 1);
}

/// IBA 7.3 and 7.8: a port drops what has a wrong VCRC, a wrong length or a lane it does not have; an end
/// port also what has a wrong ICRC.
#[test]
fn link_checks() {
    let mut bench = Bench::new(2);
    let good = bench.datagram(0, bench.lid(1), PKey::DEFAULT, 64).sealed().to_vec();
    let mut cases = Vec::new();
    let mut bytes = good.clone();
    bytes[30] ^= 1;
    cases.push((bytes, DropReason::BadVcrc));
    let mut bytes = good.clone();
    bytes.truncate(good.len() - 4);
    cases.push((bytes, DropReason::Malformed));
    cases.push((vec![0; 5], DropReason::Malformed));
    let mut bytes = good.clone();
    bytes[0] = 0xE0; // VL 14: the ICRC does not cover it
    let body = bytes.len() - 2;
    let vcrc = crate::fabric::wire::crc::vcrc(&bytes[..body]);
    bytes[body..].copy_from_slice(&vcrc);
    cases.push((bytes, DropReason::BadVl));
    let mut bytes = good.clone();
    bytes[30] ^= 1;
    let vcrc = crate::fabric::wire::crc::vcrc(&bytes[..body]);
    bytes[body..].copy_from_slice(&vcrc);
    cases.push((bytes, DropReason::BadIcrc));
    for (bytes, reason) in cases {
        assert!(bench.send_packet(0, Packet::from_bytes(bytes)).is_empty(), "{reason:?}");
        assert!(bench.fabric.drops().get(reason) > 0, "{reason:?}");
    }
    assert_eq!(bench.fabric.drops().total(), 5, "each for its own reason");
    assert_eq!(bench.send_packet(0, Packet::from_bytes(good)), [bench.host(1)]);
}

/// A packet handed to the fabric for a LID of its own sender comes back nowhere: loopback is the HCA's.
#[test]
fn loopback_is_not_the_fabrics() {
    let mut bench = Bench::new(2);
    assert!(bench.send(0, bench.lid(0)).is_empty());
    assert_eq!(bench.fabric.drops().get(DropReason::RouteLeadsBack), 1);
}

/// IBA 10.9: a packet of a partition that the receiver is not in is dropped, by the switch before it if
/// switches enforce partitions, else by the port, which counts a violation.
#[test]
fn partitions_are_enforced() {
    for enforce_partitions in [false, true] {
        let topology = Topology::default_for(3, LinkSettings::default()).unwrap();
        let guids: Vec<Guid> = topology.hosts().iter().map(|&id| topology.port(id).guid).collect();
        let partitions = vec![
            Partition::default(),
            Partition {
                pkey: PKey(0x8001),
                members: Members::Ports(vec![(guids[0], true), (guids[1], false)]),
                ipoib: None,
            },
        ];
        let manager = ManagerConfig { partitions, enforce_partitions, ..ManagerConfig::default() };
        let mut bench = Bench::on(topology, FabricConfig { seed: 0, manager });
        let inside = bench.datagram(0, bench.lid(1), PKey(0x8001), 8);
        assert_eq!(bench.send_packet(0, inside), [bench.host(1)]);
        let outside = bench.datagram(0, bench.lid(2), PKey(0x8001), 8);
        assert!(bench.send_packet(0, outside).is_empty());
        let (reason, violations) =
            if enforce_partitions { (DropReason::PkeyAtSwitchOut, 0) } else { (DropReason::PkeyAtPort, 1) };
        assert_eq!(bench.fabric.drops().get(reason), 1);
        assert_eq!(bench.fabric.port(bench.host(2)).counters.pkey_violations, violations);
        let foreign = bench.datagram(2, bench.lid(0), PKey(0x8001), 8);
        assert!(bench.send_packet(2, foreign).is_empty() || !enforce_partitions);
        if enforce_partitions {
            assert_eq!(bench.fabric.drops().get(DropReason::PkeyAtSwitchIn), 1);
        }
    }
}

/// Limited members of a partition do not hear each other (IBA 10.9.3).
#[test]
fn limited_members_do_not_talk() {
    let partition = Partition { members: Members::All { full: false }, ..Partition::default() };
    let manager =
        ManagerConfig { partitions: vec![partition], enforce_partitions: false, ..ManagerConfig::default() };
    let mut bench = Bench::with(2, manager);
    let packet = bench.datagram(0, bench.lid(1), PKey::DEFAULT_LIMITED, 8);
    assert!(bench.send_packet(0, packet).is_empty());
    assert_eq!(bench.fabric.drops().get(DropReason::PkeyAtPort), 1);
}

/// IBA 16.1.3.5: data is counted in words without the VCRC, packets by kind.
#[test]
fn counters() {
    let mut bench = Bench::new(3);
    let group = bench.create(1, mgid(1), 1).unwrap();
    let before = (bench.fabric.port(bench.host(0)).counters, bench.fabric.port(bench.host(1)).counters);
    let packet = bench.datagram(0, bench.lid(1), PKey::DEFAULT, 64);
    let words = (packet.len() as u64 - 2) / 4;
    bench.send_packet(0, packet);
    bench.send(0, group.mlid);
    let after = (bench.fabric.port(bench.host(0)).counters, bench.fabric.port(bench.host(1)).counters);
    assert_eq!(after.0.xmit_packets - before.0.xmit_packets, 2);
    assert_eq!(after.0.multicast_xmit_packets - before.0.multicast_xmit_packets, 1);
    assert_eq!(after.0.xmit_data - before.0.xmit_data, 2 * words + 10, "a GRH is ten words");
    assert_eq!(after.1.rcv_packets - before.1.rcv_packets, 2);
    assert_eq!(after.1.unicast_rcv_packets - before.1.unicast_rcv_packets, 1);
    assert_eq!(after.1.rcv_data - before.1.rcv_data, 2 * words + 10);
}

/// The tap sees what end nodes send, in order, the manager included.
#[test]
fn tap_sees_requests_and_answers() {
    use std::sync::{Arc, Mutex};
    let mut bench = Bench::new(2);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    bench.fabric.set_tap(Some(Box::new(move |at, port, _| log.lock().unwrap().push((at, port)))));
    bench.create(0, mgid(1), 1).unwrap();
    bench.fabric.set_tap(None);
    bench.send(0, bench.lid(1));
    let seen = seen.lock().unwrap();
    let manager = bench.fabric.manager().port().unwrap();
    assert_eq!(seen.iter().map(|&(_, port)| port).collect::<Vec<_>>(), [bench.host(0), manager]);
    assert!(seen[0].0 < seen[1].0);
}
