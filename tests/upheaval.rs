//! Everything that can happen to an adapter, in any order, under traffic: afterwards it works, and nothing was broken
//! on the way.

mod common;

use common::{Network, address};
use core::net::{IpAddr, SocketAddr};
use ipoib_lab::fabric::Fabric;
use ipoib_lab::fabric::manager::{LidPolicy, Restart};
use ipoib_lab::fault::{Plan, Sweep};
use ipoib_lab::scenario::{Host, SubnetConfig};
use ipoib_lab::sim::{Nanos, SECOND};
use ipoib_lab::stack::{PingOptions, TcpOptions};

const MILLISECOND: Nanos = 1_000_000;

/// A small generator of its own, so that what happens does not depend on what the simulation draws.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        // Knuth's MMIX constants.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

fn upset(network: &Network, dice: &mut Dice) {
    let subnet = &network.subnet;
    let host = dice.roll(network.stacks.len() as u64) as usize;
    let port = subnet.hosts[host].port;
    match dice.roll(10) {
        0 => subnet.net.with(|fabric, now| fabric.set_link(now, port, false)),
        1 | 2 => subnet.net.with(|fabric, now| fabric.set_link(now, port, true)),
        3 => subnet.net.with(|fabric, now| fabric.reassign_lids(now, LidPolicy::Random)),
        4 => {
            let restart =
                [Restart::Remember, Restart::ForgetGroups, Restart::ForgetAll][dice.roll(3) as usize];
            subnet.net.with(|fabric, now| fabric.restart_manager(now, restart, 500 * MILLISECOND));
        }
        5 => subnet.net.with(Fabric::request_reregistration),
        6 => {
            let lmc = dice.roll(3) as u8;
            subnet.net.with(|fabric, now| fabric.set_lmc(now, lmc));
        }
        7 => {
            // A reset that finds another in progress is refused; both ends of that are fine.
            let _ = subnet.on_host(host, "reset", |host| host.adapter().expect("up").reset());
        }
        8 => {
            subnet
                .on_host(host, "pause", |host| {
                    let adapter = host.adapter().expect("up");
                    adapter.pause();
                    adapter.restart().expect("restarted");
                })
                .expect("a pause that ends");
        }
        _ => {
            let qpns: Vec<u32> = subnet.hosts[host].hca.queue_pairs().iter().map(|qp| qp.qpn).collect();
            subnet.hosts[host].hca.break_qp(qpns[0]);
        }
    }
}

#[test]
fn any_order_of_events_under_traffic_ends_well() {
    for seed in 1..=12 {
        let network = Network::with(&SubnetConfig::new(3, seed));
        let mut dice = Dice(seed);
        let subnet = &network.subnet;
        let forever = PingOptions { count: 400, interval: 20 * MILLISECOND, ..PingOptions::default() };
        let pings: Vec<_> =
            (0..3).map(|from| network.stacks[from].ping(address((from + 1) % 3).into(), forever)).collect();
        let target = SocketAddr::new(IpAddr::V4(address(1)), 4000);
        let transfer = network.stacks[0].tcp_transfer(
            &network.stacks[1],
            target,
            256 << 10,
            seed,
            TcpOptions::default(),
        );
        for _ in 0..30 {
            upset(&network, &mut dice);
            let pause = dice.roll(300) * MILLISECOND;
            subnet.run_for(pause).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        }
        for host in &subnet.hosts {
            subnet.net.with(|fabric, now| fabric.set_link(now, host.port, true));
        }
        subnet.run_for(40 * SECOND).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        network.wait_up(&format!("seed {seed}"));
        let done = subnet.wait_for("transfer", |_| transfer.is_done());
        assert!(done.is_ok() && transfer.is_intact(), "seed {seed}: {done:?}");
        drop(pings);
        // A path that changed is asked for with the first packet that still takes the old one.
        network.ping_all_unchecked();
        network.ping_all();
        network.stop();
    }
}

/// Each fallible call is failed once after the link is up, wherever it is made from.
#[test]
fn a_failure_of_any_call_at_run_time_is_survived() {
    let sweep = Sweep::new();
    let mut runs = 0;
    loop {
        let network = Network::new(2, 21);
        let subnet = &network.subnet;
        let machine = &subnet.hosts[0].machine;
        machine.faults().set(Plan::Sweep(sweep.clone()));
        let pings = PingOptions { count: 10, interval: 50 * MILLISECOND, ..PingOptions::default() };
        let running = network.stacks[0].ping(address(1).into(), pings);
        subnet.run_for(SECOND / 4).expect("a run");
        let port = subnet.hosts[0].port;
        subnet.net.with(|fabric, now| fabric.set_link(now, port, false));
        subnet.run_for(SECOND / 4).expect("a run");
        subnet.net.with(|fabric, now| fabric.set_link(now, port, true));
        subnet.net.with(Fabric::request_reregistration);
        subnet.run_for(2 * SECOND).expect("a run");
        let site = sweep.failed_site().map(|site| format!("{} from {:?}", site.call, site.stack()));
        machine.faults().set(Plan::Never);
        // A QP that could not be brought up waits for NDIS to find it hung.
        subnet.run_for(60 * SECOND).unwrap_or_else(|error| panic!("{error} after {site:?}"));
        network.wait_up(&format!("after {site:?}"));
        drop(running);
        network.ping_after(0, address(1), PingOptions::default(), &format!("after {site:?}"));
        network.stop();
        runs += 1;
        if !sweep.next_run() {
            break;
        }
    }
    assert!(runs > 10, "{runs}");
}

#[test]
fn sleep_and_wake_keep_qpn_and_address() {
    let network = Network::new(2, 31);
    let subnet = &network.subnet;
    let before = subnet.hosts[0].hca.queue_pairs()[0].qpn;
    subnet
        .on_host(0, "suspend", |host| host.adapter().expect("up").suspend())
        .expect("a run")
        .expect("asleep");
    assert!(!subnet.hosts[0].link_is_up());
    subnet.run_for(SECOND).expect("a run");
    subnet.on_host(0, "resume", |host| host.adapter().expect("up").resume()).expect("a run").expect("awake");
    subnet.wait_for("up", |subnet| subnet.hosts[0].link_is_up()).expect("up again");
    assert_eq!(subnet.hosts[0].hca.queue_pairs()[0].qpn, before);
    network.ping(0, address(1), PingOptions::default());
    network.stop();
}

#[test]
fn a_surprise_removal_ends_in_a_clean_halt() {
    let network = Network::new(2, 41);
    let subnet = &network.subnet;
    let _ping =
        network.stacks[0].ping(address(1).into(), PingOptions { count: 100, ..PingOptions::default() });
    subnet.run_for(SECOND / 2).expect("a run");
    subnet.hosts[0].ibal.remove_ca();
    subnet.run_for(SECOND / 10).expect("a run");
    let stack = network.stacks[0].clone();
    subnet.on_host(0, "unbind", move |_| stack.stop()).expect("unbound");
    subnet.on_host(0, "remove", |host| host.adapter().expect("up").surprise_remove()).expect("removed");
    let stack = network.stacks[1].clone();
    subnet.on_host(1, "unbind", move |_| stack.stop()).expect("unbound");
    subnet.on_host(1, "stop", Host::stop).expect("halted");
}
