//! Real Linux programs over the driver: each host's adapter as a TAP device in a network namespace of its own.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use ipoib_lab::scenario::{Subnet, SubnetConfig, Unfinished};
use ipoib_lab::sim::{MILLISECOND, Mode, Outcome, SimConfig};
use ipoib_lab::stack::tap::{DEVICE, Exclusive, PREFIX, TapStack};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::driver::DriverOptions;
use crate::Failure;

/// How the hosts are set up.
#[derive(Args, Clone)]
pub(crate) struct Options {
    /// Hosts on the fabric
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(2..=250))]
    hosts: u16,
    /// Seed of the choices the simulation makes
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    driver: DriverOptions,
}

fn ipv4(host: u16) -> Ipv4Addr {
    Ipv4Addr::new(10, 91, 0, host as u8)
}

fn ipv6(host: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, 0x1b, 0, 0, 0, 0, 0, host)
}

/// Brings the hosts up, keeps them until it is interrupted, and takes them down.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let source = options.driver.source()?;
    // Before anything is made: an interrupt from here on ends in an orderly way.
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&interrupted))
            .map_err(|error| Failure::Failed(format!("cannot wait for signals: {error}")))?;
    }
    let _exclusive = Exclusive::take().map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => Failure::Usage("another ipoib-lab keeps the namespaces".into()),
        _ => Failure::Usage(format!("network namespaces need root: {error}")),
    })?;
    let mut config = SubnetConfig::new(usize::from(options.hosts), options.seed);
    config.sim = SimConfig { mode: Mode::Threaded, ..config.sim };
    config.source = source;
    let subnet = Subnet::new(&config).map_err(|error| Failure::Usage(error.to_string()))?;
    let taps = start(&subnet)?;
    println!("ready: {} hosts, end with ctrl-c", options.hosts);
    let outcome = keep(&subnet, &taps, &interrupted);
    let stopped = stop(&subnet, taps);
    outcome.and(stopped)
}

fn failed(unfinished: &Unfinished) -> Failure {
    Failure::Failed(unfinished.to_string())
}

/// Brings the subnet up, puts a device on each adapter, and says how to use them.
fn start(subnet: &Subnet) -> Result<Vec<TapStack>, Failure> {
    println!("bringing up {} hosts", subnet.hosts.len());
    subnet.bring_up().map_err(|error| failed(&error))?;
    let mut taps = Vec::new();
    for index in 0..subnet.hosts.len() {
        let number = index as u16 + 1;
        let addresses: [(IpAddr, u8); 2] = [(ipv4(number).into(), 24), (ipv6(number).into(), 64)];
        let started = subnet.on_host(index, "start TAP", move |host| {
            let adapter = host.adapter().expect("the host is up");
            let mac = adapter.attributes().current_address;
            TapStack::start(&adapter, &format!("{PREFIX}{}", host.name), &addresses).map(|tap| (mac, tap))
        });
        let (mac, tap) =
            started.map_err(|error| failed(&error))?.map_err(|error| Failure::Failed(error.to_string()))?;
        let mac = mac.map(|byte| format!("{byte:02x}")).join(":");
        println!("  {:<14} {DEVICE}  {mac}  {:<12} {}", tap.namespace(), ipv4(number), ipv6(number));
        taps.push(tap);
    }
    subnet.wait_for("devices", |_| taps.iter().all(TapStack::is_ready)).map_err(|error| failed(&error))?;
    let [first, second] = [&taps[0], &taps[1]].map(TapStack::namespace);
    println!("for example:");
    println!("  ip netns exec {first} ping {}", ipv4(2));
    println!("  ip netns exec {second} iperf3 -s    ip netns exec {first} iperf3 -c {}", ipv4(2));
    println!("  ip netns exec {first} bash");
    Ok(taps)
}

/// Lets programs use the devices until the end.
fn keep(subnet: &Subnet, taps: &[TapStack], interrupted: &AtomicBool) -> Result<(), Failure> {
    while !interrupted.load(Ordering::Relaxed) {
        let deadline = subnet.sim.now() + 200 * MILLISECOND;
        let outcome = subnet.sim.run_until(deadline, |_| interrupted.load(Ordering::Relaxed));
        if outcome.is_failure() {
            return Err(Failure::Failed(outcome.to_string()));
        }
        if let Some(tap) = taps.iter().find(|tap| tap.has_ended()) {
            return Err(Failure::Failed(format!("the device in {} is gone", tap.namespace())));
        }
        if outcome == Outcome::Idle {
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
    Ok(())
}

/// Takes the devices and the hosts down and looks for what is left.
fn stop(subnet: &Subnet, taps: Vec<TapStack>) -> Result<(), Failure> {
    println!("stopping");
    if let Some(failure) = subnet.sim.failure() {
        // Nothing can be stopped in order any more; the devices go with their owners.
        return Err(Failure::Failed(failure.to_string()));
    }
    for (index, tap) in taps.into_iter().enumerate() {
        let counters = tap.counters();
        let name = tap.namespace().to_owned();
        println!(
            "  {name:<14} {} frames sent ({} failed), {} received ({} dropped)",
            counters.sent, counters.send_failures, counters.received, counters.receive_drops
        );
        let stopped =
            subnet.on_host(index, "stop TAP", move |_| tap.stop()).map_err(|error| failed(&error))?;
        stopped.map_err(|error| Failure::Failed(format!("{name}: {error}")))?;
    }
    subnet.stop().map_err(|error| failed(&error))?;
    let leaks: Vec<_> = subnet
        .hosts
        .iter()
        .flat_map(|host| host.machine.outstanding().into_iter().map(|leak| format!("{}: {leak}", host.name)))
        .collect();
    if leaks.is_empty() {
        println!("no rule broken, nothing left behind");
        Ok(())
    } else {
        Err(Failure::Failed(format!("left behind: {}", leaks.join("; "))))
    }
}
