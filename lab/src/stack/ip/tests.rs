//! Two engines on a wire, with a clock that jumps.

use core::net::{IpAddr, SocketAddr};

use super::address::link_local;
use super::engine::{Engine, EngineConfig};
use super::ping::{PingJob, PingOptions};
use super::tcp::{TcpOptions, TcpReceiver, TcpSender, TcpState, Transfer};
use super::udp::{UdpOptions, UdpReceiver, UdpSender};
use crate::sim::Nanos;

const LATENCY: Nanos = 10_000;
const MTU: usize = 2044;

struct Wire {
    now: Nanos,
    hosts: Vec<Engine>,
    next: [Option<Nanos>; 2],
    flying: Vec<(Nanos, usize, Vec<u8>)>,
    /// Drops the frames whose number this says.
    drop: fn(u64) -> bool,
    carried: u64,
}

fn mac(host: u8) -> [u8; 6] {
    [2, 0, 0, host, 0, 0]
}

fn v4(host: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, host])
}

impl Wire {
    fn new() -> Self {
        let host = |number: u8| {
            let addresses = vec![(v4(number), 24), (link_local(mac(number)).into(), 64)];
            Engine::new(&EngineConfig { mac: mac(number), mtu: MTU, addresses, seed: 1 }, 0)
        };
        Self {
            now: 0,
            hosts: vec![host(1), host(2)],
            next: [Some(0); 2],
            flying: Vec::new(),
            drop: |_| false,
            carried: 0,
        }
    }

    fn start(&mut self, host: usize, job: Box<dyn super::engine::Job>) {
        self.hosts[host].start(job, self.now);
        self.next[host] = Some(self.now);
    }

    fn run(&mut self, limit: Nanos, done: impl Fn() -> bool) {
        while !done() {
            let arrival = self.flying.iter().map(|(when, ..)| *when).min();
            let when =
                self.next.iter().copied().flatten().chain(arrival).min().expect("somebody has work to do");
            self.now = self.now.max(when);
            assert!(self.now < limit, "not done at {} ns", self.now);
            for host in 0..2 {
                let mut due = self.next[host].is_some_and(|when| when <= self.now);
                let arrived = self.flying.extract_if(.., |(when, to, _)| *to == host && *when <= self.now);
                for (_, _, frame) in arrived {
                    assert!(frame.len() <= MTU + 14);
                    self.hosts[host].receive(frame);
                    due = true;
                }
                if !due {
                    continue;
                }
                self.next[host] = self.hosts[host].poll(self.now, 32).map(|when| when.max(self.now + 1));
                for frame in self.hosts[host].take_outgoing() {
                    self.carried += 1;
                    if !(self.drop)(self.carried) {
                        self.flying.push((self.now + LATENCY, 1 - host, frame));
                    }
                }
            }
        }
    }
}

#[test]
fn ping_is_answered_over_both_families_at_full_size() {
    let mut wire = Wire::new();
    let size = MTU - 48;
    let mut pings = Vec::new();
    for target in [v4(2), link_local(mac(2)).into()] {
        let (job, ping) = PingJob::new(target, PingOptions { size, ..PingOptions::default() });
        wire.start(0, Box::new(job));
        pings.push(ping);
    }
    wire.run(60_000_000_000, || pings.iter().all(|ping| ping.report().done));
    for ping in pings {
        let report = ping.report();
        assert!(report.is_perfect(), "{report:?}");
        assert_eq!(report.shortest, 2 * LATENCY);
    }
}

#[test]
fn a_ping_of_nobody_counts_every_request_as_lost() {
    let mut wire = Wire::new();
    let (job, ping) = PingJob::new(v4(9), PingOptions::default());
    wire.start(0, Box::new(job));
    wire.run(60_000_000_000, || ping.report().done);
    assert_eq!((ping.report().received, ping.report().lost), (0, 4));
    assert_eq!(wire.hosts[0].jobs(), 0);
}

fn transfer(wire: &mut Wire, size: u64) -> Transfer {
    let (receive, receiver) = TcpReceiver::new(5001, TcpOptions::default());
    wire.start(1, Box::new(receive));
    let (send, sender) = TcpSender::new(SocketAddr::new(v4(2), 5001), size, 3, TcpOptions::default());
    wire.start(0, Box::new(send));
    Transfer { sender, receiver, size }
}

#[test]
fn a_transfer_arrives_with_the_senders_hash() {
    let mut wire = Wire::new();
    let transfer = transfer(&mut wire, 1_000_003);
    wire.run(60_000_000_000, || transfer.is_done());
    assert!(transfer.is_intact(), "{transfer:?}");
}

#[test]
fn a_transfer_survives_loss() {
    let mut wire = Wire::new();
    wire.drop = |number| number % 37 == 0;
    let transfer = transfer(&mut wire, 500_000);
    wire.run(600_000_000_000, || transfer.is_done());
    assert!(transfer.is_intact(), "{transfer:?}");
}

#[test]
fn a_connection_to_a_closed_port_fails() {
    let mut wire = Wire::new();
    let (send, sender) = TcpSender::new(SocketAddr::new(v4(2), 5002), 10, 3, TcpOptions::default());
    wire.start(0, Box::new(send));
    wire.run(60_000_000_000, || sender.report().is_done());
    assert_eq!(sender.report().state, TcpState::Failed);
}

#[test]
fn datagrams_are_counted_once_each() {
    let mut wire = Wire::new();
    let (receive, receiver) = UdpReceiver::new(7, 1000);
    wire.start(1, Box::new(receive));
    let options = UdpOptions { count: 100, size: 1000, interval: 1_000_000 };
    let (send, sender) = UdpSender::new(SocketAddr::new(v4(2), 7), options);
    wire.start(0, Box::new(send));
    wire.run(60_000_000_000, || sender.report().done && receiver.report().datagrams == 100);
    assert_eq!((receiver.report().corrupt, receiver.report().duplicates), (0, 0));
}
