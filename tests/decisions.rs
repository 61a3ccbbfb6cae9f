//! The fixed decisions, each watched from outside: what the HCA saw of the driver.

mod common;

use common::{Network, address};
use ipoib_lab::fabric::manager::{LidPolicy, Restart};
use ipoib_lab::hca::Kind;
use ipoib_lab::hca::log::Event;
use ipoib_lab::scenario::{Host, Subnet, SubnetConfig};
use ipoib_lab::sim::SECOND;
use ipoib_lab::stack::PingOptions;

const PASSIVE: u8 = 0;
/// What decision 1 names.
const DECIDED: [Kind; 4] = [Kind::Pd, Kind::Cq, Kind::Qp, Kind::Mr];
const ONCE: [Kind; 6] = [Kind::Al, Kind::Ca, Kind::Pd, Kind::Qp, Kind::Mr, Kind::Pnp];

/// What must not change while an adapter lives: QPN and both Ethernet addresses.
fn identity(host: &Host) -> (Vec<u32>, [u8; 6], [u8; 6]) {
    let general = host.adapter().expect("up").attributes();
    let qpns = host
        .ibal
        .log()
        .entries()
        .iter()
        .filter_map(|entry| match entry.event {
            Event::Transition { qpn, .. } => Some(qpn),
            _ => None,
        })
        .fold(Vec::new(), |mut seen, qpn| {
            if !seen.contains(&qpn) {
                seen.push(qpn);
            }
            seen
        });
    (qpns, general.permanent_address, general.current_address)
}

/// Decision 1: PD, CQs, QP and MR are created once and destroyed once, whatever happens in between.
#[test]
fn resources_are_made_once_and_released_once() {
    let network = Network::new(2, 3);
    network.ping(0, address(1), PingOptions::default());
    let subnet = &network.subnet;
    let port = subnet.hosts[0].port;
    for _ in 0..3 {
        subnet.net.with(|fabric, now| fabric.set_link(now, port, false));
        subnet.wait_for("down", |subnet| !subnet.hosts[0].link_is_up()).expect("down");
        subnet.net.with(|fabric, now| fabric.set_link(now, port, true));
        subnet.wait_for("up", |subnet| subnet.hosts[0].link_is_up()).expect("up");
        subnet
            .on_host(0, "reset", |host| host.adapter().expect("up").reset())
            .expect("a run")
            .expect("reset");
        subnet.wait_for("up", |subnet| subnet.hosts[0].link_is_up()).expect("up");
    }
    for host in &subnet.hosts {
        let log = host.ibal.log();
        for kind in ONCE {
            assert_eq!((log.created(kind), log.destroyed(kind)), (1, 0), "{kind:?} of {}", host.name);
        }
        assert_eq!((log.created(Kind::Cq), log.destroyed(Kind::Cq)), (2, 0));
    }
    let hosts = subnet.hosts.clone();
    network.ping(0, address(1), PingOptions::default());
    network.stop();
    for host in hosts {
        let log = host.ibal.log();
        for kind in Kind::ALL {
            assert_eq!(log.created(kind), log.destroyed(kind), "{kind:?} of {}", host.name);
        }
        let destroyed = log.entries().into_iter().filter(
            |entry| matches!(entry.event, Event::Destroyed(handle) if DECIDED.contains(&handle.kind)),
        );
        for entry in destroyed {
            assert!(entry.cause.contains("MiniportHaltEx"), "{entry:?}");
        }
    }
}

/// Decisions 2 and 3: the QP changes state at PASSIVE_LEVEL only, in a PnP callback or in the adapter's worker.
#[test]
fn the_qp_is_moved_by_pnp_callbacks_and_the_worker_alone() {
    let network = Network::new(2, 4);
    let subnet = &network.subnet;
    let port = subnet.hosts[1].port;
    subnet.net.with(|fabric, now| fabric.set_link(now, port, false));
    subnet.wait_for("down", |subnet| !subnet.hosts[1].link_is_up()).expect("down");
    subnet.net.with(|fabric, now| fabric.set_link(now, port, true));
    subnet.wait_for("up", |subnet| subnet.hosts[1].link_is_up()).expect("up");
    subnet.on_host(1, "reset", |host| host.adapter().expect("up").reset()).expect("a run").expect("reset");
    subnet.wait_for("up", |subnet| subnet.hosts[1].link_is_up()).expect("up");
    let hosts = subnet.hosts.clone();
    network.stop();
    for host in hosts {
        let mut moves = 0;
        for entry in host.ibal.log().entries() {
            if let Event::Transition { asked: true, .. } = entry.event {
                moves += 1;
                assert_eq!(entry.irql, PASSIVE, "{entry:?}");
                let allowed = ["PnP ", "NDIS_IO_WORKITEM_FUNCTION"];
                assert!(allowed.iter().any(|cause| entry.cause.contains(cause)), "{entry:?}");
            }
        }
        assert!(moves >= 3, "{moves}");
        for ((verb, irql), calls) in host.ibal.log().verbs() {
            let data_path = matches!(verb, "post_send" | "post_recv" | "poll_cq" | "rearm_cq");
            assert!(irql == PASSIVE || data_path, "{verb} at {irql}, {calls} times");
        }
    }
}

/// Decision 6: whatever LIDs the SM assigns, the local address and the QPN stay.
#[test]
fn addresses_survive_flaps_lid_changes_and_resets() {
    let network = Network::new(2, 6);
    let subnet = &network.subnet;
    let before: Vec<_> = subnet.hosts.iter().map(|host| identity(host)).collect();
    let port = subnet.hosts[0].port;
    for round in 0..1000 {
        let up = |subnet: &Subnet| subnet.hosts.iter().all(|host| host.link_is_up());
        match round % 10 {
            3 => subnet.net.with(|fabric, now| fabric.reassign_lids(now, LidPolicy::Random)),
            7 => subnet
                .on_host(0, "reset", |host| host.adapter().expect("up").reset())
                .expect("a run")
                .expect("reset"),
            _ => {
                subnet.net.with(|fabric, now| fabric.set_link(now, port, false));
                subnet.wait_for("down", |subnet| !subnet.hosts[0].link_is_up()).expect("down");
                subnet.net.with(|fabric, now| fabric.set_link(now, port, true));
            }
        }
        subnet.wait_for("up", up).expect("up again");
    }
    let after: Vec<_> = subnet.hosts.iter().map(|host| identity(host)).collect();
    assert_eq!(before, after);
    for (qpns, permanent, current) in &after {
        assert_eq!(qpns.len(), 1);
        let [_, a, b, c] = qpns[0].to_be_bytes();
        assert_eq!(*current, [0x02, a, b, c, 0, 0]);
        assert_ne!(permanent, current);
    }
    subnet.run_for(5 * SECOND).expect("settled");
    network.ping(0, address(1), PingOptions::default());
    network.stop();
}

/// A peer's address is QPN and LID, the same on every host.
#[test]
fn every_host_sees_a_peer_under_the_same_address() {
    let network = Network::new(4, 8);
    network.ping_all();
    for peer in 0..4 {
        let host = &network.subnet.hosts[peer];
        let (qpns, _, _) = identity(host);
        let [_, a, b, c] = qpns[0].to_be_bytes();
        let [high, low] = network.subnet.net.port(host.port).lid.0.to_be_bytes();
        for from in (0..4).filter(|&from| from != peer) {
            let seen = network.stacks[from].neighbour(address(peer).into());
            assert_eq!(seen, [[0x02, a, b, c, high, low]], "host {peer} as host {from} sees it");
        }
    }
    network.stop();
}

/// The SM goes away and comes back with nothing remembered: traffic flows again without a hand on the hosts.
#[test]
fn an_sm_that_forgot_everything_is_told_again() {
    for restart in [Restart::Remember, Restart::ForgetGroups, Restart::ForgetAll] {
        let network = Network::new(3, 9);
        network.ping_all();
        let subnet = &network.subnet;
        subnet.net.with(|fabric, now| fabric.restart_manager(now, restart, 2 * SECOND));
        subnet.run_for(20 * SECOND).expect("settled");
        subnet.wait_for("up", |subnet| subnet.hosts.iter().all(|host| host.link_is_up())).expect("up");
        network.ping_all();
        network.stop();
    }
}

/// Decision 8: what flows all the time allocates nothing.
#[test]
fn the_steady_state_allocates_nothing() {
    let network = Network::new(2, 10);
    let options = PingOptions { count: 20, size: 1400, ..PingOptions::default() };
    network.ping(0, address(1), options);
    let allocations = || -> Vec<u64> {
        network.subnet.hosts.iter().map(|host| host.machine.pool_stats().driver_allocations).collect()
    };
    let before = allocations();
    network.ping(0, address(1), options);
    network.ping(1, address(0), options);
    assert_eq!(before, allocations());
    network.stop();
}

/// The same seed gives the same run, to the last transition and the last nanosecond.
#[test]
fn a_seed_replays() {
    let run = || {
        let network = Network::with(&SubnetConfig::new(2, 77));
        network.ping_all();
        let subnet = &network.subnet;
        let log: Vec<_> =
            subnet.hosts.iter().map(|host| format!("{:?}", host.ibal.log().entries())).collect();
        let now = subnet.sim.now();
        network.stop();
        (log, now)
    };
    assert_eq!(run(), run());
}
