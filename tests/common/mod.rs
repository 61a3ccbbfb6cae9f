//! What the integration tests share: hosts with IP stacks on a fabric.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use core::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};

use ipoib_lab::scenario::{Subnet, SubnetConfig};
use ipoib_lab::stack::{HostStack, PingOptions, StackConfig};

/// IPv4 address of a host.
pub fn address(host: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, (host / 250) as u8, (host % 250) as u8 + 1)
}

/// Hosts that are up, each with an IP stack.
pub struct Network {
    /// Fabric and hosts.
    pub subnet: Subnet,
    /// Stacks, in the order of the hosts.
    pub stacks: Vec<HostStack>,
}

impl Network {
    /// Brings `hosts` hosts up.
    pub fn new(hosts: usize, seed: u64) -> Self {
        Self::with(&SubnetConfig::new(hosts, seed))
    }

    /// As configured.
    pub fn with(config: &SubnetConfig) -> Self {
        let subnet = Subnet::new(config).expect("a topology");
        subnet.bring_up().expect("links up");
        Self::above(subnet)
    }

    /// Binds an IP stack to each host of a subnet that is up.
    pub fn above(subnet: Subnet) -> Self {
        let stacks = (0..subnet.hosts.len())
            .map(|index| {
                let config = StackConfig { ipv4: Some((address(index), 16)), ..StackConfig::default() };
                subnet
                    .on_host(index, "bind", move |host| {
                        HostStack::start(&host.adapter().expect("up"), &config).expect("bound")
                    })
                    .expect("a stack")
            })
            .collect();
        Self { subnet, stacks }
    }

    /// Pings `target` from one host; panics unless every request is answered.
    pub fn ping(&self, from: usize, target: impl Into<IpAddr>, options: PingOptions) {
        self.ping_after(from, target, options, "");
    }

    /// As above; `what` happened before, for whoever reads that it failed.
    pub fn ping_after(&self, from: usize, target: impl Into<IpAddr>, options: PingOptions, what: &str) {
        let target = target.into();
        let ping = self.stacks[from].ping(target, options);
        let result = self.subnet.wait_for("ping", |_| ping.report().done);
        let report = ping.report();
        assert!(
            result.is_ok() && report.is_perfect(),
            "host {from} -> {target}: {result:?} {report:?} {what}\n{}",
            self.driver_log(from, 30)
        );
    }

    /// Pings from every host to every other, over IPv4 and IPv6.
    pub fn ping_all(&self) {
        for from in 0..self.stacks.len() {
            for to in (0..self.stacks.len()).filter(|&to| to != from) {
                self.ping(from, address(to), PingOptions { count: 2, ..PingOptions::default() });
                let link_local = self.stacks[to].link_local();
                self.ping(from, link_local, PingOptions { count: 2, ..PingOptions::default() });
            }
        }
    }

    /// As [`Self::ping_all`], whatever becomes of it.
    pub fn ping_all_unchecked(&self) {
        let mut pings = Vec::new();
        for (from, stack) in self.stacks.iter().enumerate() {
            for to in (0..self.stacks.len()).filter(|&to| to != from) {
                pings.push(stack.ping(address(to).into(), PingOptions::default()));
                pings.push(stack.ping(self.stacks[to].link_local().into(), PingOptions::default()));
            }
        }
        self.subnet.wait_for("pings", |_| pings.iter().all(|ping| ping.report().done)).expect("an end");
    }

    /// The last lines that a host's driver printed, for a test that fails.
    pub fn driver_log(&self, host: usize, count: usize) -> String {
        let lines = self.subnet.hosts[host].machine.debug_lines();
        let from = lines.len().saturating_sub(count);
        let text: Vec<_> =
            lines[from..].iter().map(|line| format!("{:>14} {}", line.at, line.text)).collect();
        text.join("\n")
    }

    /// Waits until every host's link is up; panics with what the drivers printed if one does not come up.
    pub fn wait_up(&self, what: &str) {
        let up = self.subnet.wait_for("up", |subnet| subnet.hosts.iter().all(|host| host.link_is_up()));
        if let Err(error) = up {
            let down: Vec<_> = (0..self.subnet.hosts.len())
                .filter(|&host| !self.subnet.hosts[host].link_is_up())
                .map(|host| format!("host{}:\n{}", host + 1, self.driver_log(host, 40)))
                .collect();
            panic!("{what}: {error}\n{}", down.join("\n"));
        }
    }

    /// Stops stacks and hosts. The verifier looks for leaks when the drivers unload.
    pub fn stop(self) {
        let stacks = Arc::new(Mutex::new(self.stacks));
        for index in 0..self.subnet.hosts.len() {
            let stacks = Arc::clone(&stacks);
            self.subnet
                .on_host(index, "unbind", move |_| {
                    let stack = stacks.lock().expect("no panic")[index].clone();
                    stack.stop();
                })
                .expect("unbound");
        }
        self.subnet.stop().expect("halted");
    }
}
