//! IP over the driver: what a user does with a network.

mod common;

use common::{Network, address};
use core::net::{IpAddr, SocketAddr};
use ipoib_lab::stack::{PingOptions, TcpOptions};

#[test]
fn ipv4_and_ipv6_ping_reaches_every_host() {
    let network = Network::new(3, 7);
    network.ping_all();
    network.stop();
}

#[test]
fn packets_up_to_the_mtu_pass_whole() {
    let network = Network::new(2, 11);
    // 2,044 bytes of IPv4: 20 of header, 8 of ICMP.
    for size in [0, 1, 1500, 2015, 2016] {
        network.ping(0, address(1), PingOptions { count: 2, size, ..PingOptions::default() });
    }
    network.stop();
}

#[test]
fn a_tcp_transfer_arrives_intact_each_way() {
    let network = Network::new(2, 5);
    for (from, to) in [(0, 1), (1, 0)] {
        let target = SocketAddr::new(IpAddr::V4(address(to)), 5000);
        let transfer = network.stacks[from].tcp_transfer(
            &network.stacks[to],
            target,
            1 << 20,
            99,
            TcpOptions::default(),
        );
        network.subnet.wait_for("transfer", |_| transfer.is_done()).expect("an end");
        assert!(transfer.is_intact(), "{from} -> {to}");
    }
    network.stop();
}
