//! Whole IP hosts on adapters of two machines, with a cable between them.

use core::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::fake::Misdeed;
use super::load_with;
use crate::kernel::{Machine, MachineConfig};
use crate::ndis::{Adapter, AdapterConfig, Driver, RegistryKey};
use crate::sim::{Lock, Outcome, OwnedSim, SECOND, Sim, SimConfig};
use crate::stack::ip::UdpOptions;
use crate::stack::{HostStack, PingOptions, StackConfig, TcpOptions};

static NEXT_WIRE: AtomicU32 = AtomicU32::new(1);

struct Host {
    driver: Driver,
    adapter: Adapter,
    stack: HostStack,
}

fn start(machine: &Machine, wire: u32, number: u8) -> Host {
    let mut config = AdapterConfig::named(format!("host {number}"));
    config.registry = RegistryKey::new()
        .with("Number", 42)
        .with("Wire", wire)
        .with("NetworkAddress", &*format!("02000000000{number}"));
    let (driver, adapter) = load_with(machine, Misdeed::None, config);
    adapter.initialize().expect("the fake miniport initialises");
    adapter.restart().expect("the fake miniport restarts");
    let stack_config = StackConfig { ipv4: Some(([10, 0, 0, number].into(), 24)), ipv6: vec![] };
    let stack = HostStack::start(&adapter, &stack_config).expect("the stack binds");
    Host { driver, adapter, stack }
}

/// Two hosts on a cable, up and running.
fn pair(config: SimConfig) -> (OwnedSim, [Machine; 2], [Arc<Host>; 2]) {
    let sim = Sim::owned(config);
    let wire = NEXT_WIRE.fetch_add(1, Ordering::Relaxed);
    let machines = [1, 2].map(|number| Machine::new(&sim, MachineConfig::named(format!("host{number}"))));
    let hosts = [0, 1].map(|index| {
        let number = index as u8 + 1;
        let host =
            machines[index].run("start", 60 * SECOND, move || start(&Machine::current(), wire, number));
        Arc::new(host.expect("the host starts"))
    });
    (sim, machines, hosts)
}

fn stop(machines: &[Machine; 2], hosts: &[Arc<Host>; 2]) {
    for (machine, host) in machines.iter().zip(hosts) {
        let host = Arc::clone(host);
        let stopped = machine.run("stop", 60 * SECOND, move || {
            host.stack.stop();
            host.adapter.halt();
            host.driver.unload();
        });
        assert_eq!(stopped, Ok(()));
        assert!(machine.outstanding().is_empty(), "{:?}", machine.outstanding());
    }
}

fn traffic(config: SimConfig) {
    let (sim, machines, hosts) = pair(config);
    let [first, second] = [&hosts[0].stack, &hosts[1].stack];
    let v4 = IpAddr::from(second.ipv4().expect("the host has an IPv4 address"));
    let v6 = IpAddr::from(second.link_local());
    let pings = [v4, v6]
        .map(|target| first.ping(target, PingOptions { interval: 1_000_000, ..PingOptions::default() }));
    let transfers = [v4, v6].map(|target| {
        let port = if target.is_ipv4() { 5001 } else { 5002 };
        first.tcp_transfer(second, SocketAddr::new(target, port), 300_000, 9, TcpOptions::default())
    });
    let counted = second.udp_receive(7, 512);
    let sent = first.udp_send(SocketAddr::new(v4, 7), UdpOptions { count: 50, size: 512, interval: 100_000 });
    let done = |_: &Sim| {
        pings.iter().all(|ping| ping.report().done)
            && transfers.iter().all(crate::stack::Transfer::is_done)
            && sent.report().done
            && counted.report().datagrams == 50
    };
    assert_eq!(
        sim.run_until(sim.now() + 60 * SECOND, done),
        Outcome::Done,
        "{pings:?} {transfers:?} {counted:?}"
    );
    assert!(pings.iter().all(|ping| ping.report().is_perfect()), "{pings:?}");
    assert!(transfers.iter().all(crate::stack::Transfer::is_intact), "{transfers:?}");
    stop(&machines, &hosts);
}

#[test]
fn hosts_ping_and_transfer_over_both_families() {
    for seed in 1..4 {
        traffic(SimConfig::seeded(seed));
    }
}

#[test]
fn hosts_do_the_same_on_real_cores() {
    traffic(SimConfig::threaded(1));
}

#[test]
fn a_transfer_survives_a_reset_and_a_pause_of_the_adapter() {
    let (sim, machines, hosts) = pair(SimConfig::seeded(5));
    let [first, second] = [&hosts[0].stack, &hosts[1].stack];
    let target = SocketAddr::new(second.link_local().into(), 5001);
    let transfer = first.tcp_transfer(second, target, 2_000_000, 9, TcpOptions::default());
    let disturbed = Arc::new(Lock::new(false));
    let (host, flag) = (Arc::clone(&hosts[0]), Arc::clone(&disturbed));
    machines[0].spawn_thread("administrator", move || {
        crate::sim::sleep(2_000_000);
        host.adapter.reset().expect("the fake miniport resets");
        crate::sim::sleep(2_000_000);
        host.adapter.pause();
        crate::sim::sleep(500_000_000);
        host.adapter.restart().expect("the fake miniport restarts");
        *flag.lock() = true;
    });
    let done = |_: &Sim| transfer.is_done() && *disturbed.lock();
    assert_eq!(sim.run_until(sim.now() + 60 * SECOND, done), Outcome::Done);
    assert!(transfer.is_intact(), "{transfer:?}");
    assert!(
        transfer.duration().is_some_and(|duration| duration > SECOND / 2),
        "the pause fell into the transfer"
    );
    stop(&machines, &hosts);
}

#[test]
fn multicast_reaches_a_host_that_joined_and_no_other() {
    let (sim, machines, hosts) = pair(SimConfig::seeded(2));
    let group = IpAddr::from([239, 1, 2, 3]);
    let receiver = hosts[1].stack.udp_receive(9, 64);
    let send = || {
        let options = UdpOptions { count: 5, size: 64, interval: 1_000_000 };
        let end = hosts[0].stack.udp_send(SocketAddr::new(group, 9), options);
        assert_eq!(sim.run_until(sim.now() + SECOND, |_| end.report().done), Outcome::Done);
        assert_eq!(sim.run_for(SECOND / 10), Outcome::Deadline);
    };
    send();
    assert_eq!(receiver.report().datagrams, 0);
    hosts[1].stack.join(group).expect("the group can be joined");
    assert_eq!(sim.run_for(SECOND / 10), Outcome::Deadline);
    send();
    assert_eq!(receiver.report().datagrams, 5);
    stop(&machines, &hosts);
}
