//! Multicast: joined as hosts listen, sent to without listening, left in the end.

mod common;

use common::Network;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use ipoib_lab::fabric::manager::Restart;
use ipoib_lab::sim::SECOND;
use ipoib_lab::stack::ip::UdpOptions;

const V4: IpAddr = IpAddr::V4(Ipv4Addr::new(239, 1, 2, 3));
const V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0x1234, 0x5678));

/// Sends from host 0 to a group that hosts 1 and 2 listen to; counts what each of four hosts receives.
fn heard(network: &Network, group: IpAddr, port: u16) -> Vec<u64> {
    let ends: Vec<_> = network.stacks.iter().map(|stack| stack.udp_receive(port, 200)).collect();
    let options = UdpOptions { count: 20, size: 100, interval: 10_000_000 };
    let _sender = network.stacks[0].udp_send(SocketAddr::new(group, port), options);
    network.subnet.run_for(2 * SECOND).expect("a run");
    ends.iter().map(|end| end.report().datagrams).collect()
}

#[test]
fn listeners_hear_a_sender_that_does_not_listen() {
    let network = Network::new(4, 5);
    for group in [V4, V6] {
        for stack in &network.stacks[1..3] {
            stack.join(group).expect("joined");
        }
    }
    network.subnet.run_for(5 * SECOND).expect("joined");
    for (group, port) in [(V4, 7001), (V6, 7002)] {
        let heard = heard(&network, group, port);
        assert_eq!((heard[0], heard[3]), (0, 0), "{group}: who does not listen hears nothing");
        // The first frames may wait for the send-only join; none is lost after it.
        assert!(heard[1] >= 19 && heard[2] >= 19, "{group}: {heard:?}");
    }
    network.stop();
}

#[test]
fn a_group_that_is_left_is_heard_no_more() {
    let network = Network::new(3, 6);
    network.stacks[1].join(V4).expect("joined");
    network.subnet.run_for(5 * SECOND).expect("joined");
    assert!(heard(&network, V4, 7001)[1] >= 19);
    network.stacks[1].leave(V4).expect("left");
    network.subnet.run_for(5 * SECOND).expect("left");
    let members = network.subnet.net.with(|fabric, _| fabric.manager().groups().len());
    assert_eq!(heard(&network, V4, 7003)[1], 0);
    assert!(members < 10);
    network.stop();
}

#[test]
fn memberships_come_back_after_the_sm_forgot_them() {
    let network = Network::new(3, 7);
    network.stacks[1].join(V4).expect("joined");
    network.subnet.run_for(5 * SECOND).expect("joined");
    network.subnet.net.with(|fabric, now| fabric.restart_manager(now, Restart::ForgetGroups, SECOND));
    network.subnet.run_for(20 * SECOND).expect("settled");
    assert!(heard(&network, V4, 7001)[1] >= 19);
    network.stop();
}
