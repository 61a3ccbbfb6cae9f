//! Frames that a healthy fabric would not carry: each is a counted drop or harmless, never a crash, a leak or a stuck
//! queue, and the hosts' own traffic flows on.

mod common;

use common::{Network, address};
use ipoib::adapter::oid::OID_IPOIB_DROPS;
use ipoib::adapter::stats::Drop;
use ipoib_lab::fabric::fault::{Effect, Transit, on_send};
use ipoib_lab::fabric::{Gid, Lid, Packet, Qpn};
use ipoib_lab::scenario::Host;
use ipoib_lab::sim::SECOND;
use ipoib_lab::stack::PingOptions;

/// Counters by cause, of a host that is up.
fn drops(network: &Network, host: usize) -> Vec<u64> {
    network
        .subnet
        .on_host(host, "drops", |host: &Host| {
            host.adapter().expect("up").query(OID_IPOIB_DROPS, Drop::ALL.len() * 8).expect("counters")
        })
        .expect("a run")
        .chunks(8)
        .map(|field| u64::from_le_bytes(field.try_into().expect("eight bytes")))
        .collect()
}

fn dropped(network: &Network, host: usize, cause: Drop) -> u64 {
    drops(network, host)[cause as usize]
}

/// A multiplicative generator (Lehmer), enough to choose what to spoil.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides.max(1)
    }
}

/// A datagram of the hosts, not of management.
fn is_ipoib(transit: &Transit<'_>) -> bool {
    on_send(transit)
        && transit
            .packet
            .parse()
            .is_ok_and(|(headers, _)| headers.deth.is_some() && headers.bth.dest_qp.get() > 1)
}

/// A packet with other headers or another payload, and CRCs that are right: a port accepts it.
fn spoil(packet: &Packet, dice: &mut Dice) -> Packet {
    let Ok((mut headers, payload)) = packet.parse() else { return packet.clone() };
    let mut payload = payload.to_vec();
    match dice.roll(8) {
        // Cut short, to nothing at all at times.
        0 => payload.truncate(dice.roll(payload.len() + 1)),
        // Another protocol.
        1 => {
            for byte in payload.iter_mut().take(2) {
                *byte = dice.roll(256) as u8;
            }
        }
        // Nonsense in the headers of ARP, IP, ICMPv6 or UDP.
        2 | 3 => {
            for _ in 0..4 {
                let at = dice.roll(payload.len().min(100));
                if let Some(byte) = payload.get_mut(at) {
                    *byte = dice.roll(256) as u8;
                }
            }
        }
        // From a QP that no host has, management's or the multicast one.
        4 => {
            if let Some(deth) = &mut headers.deth {
                deth.src_qp = Qpn::new([0, 1, 0xff_ffff, 0x0012_3456][dice.roll(4)]);
            }
        }
        // From a LID that no port has.
        5 => headers.lrh.slid = Lid([0, 0xffff, 0xc001, 0x4321][dice.roll(4)]),
        // From another port's GID, or a group's.
        6 => {
            if let Some(grh) = &mut headers.grh {
                let mut gid = [0; 16];
                gid.fill_with(|| dice.roll(256) as u8);
                grh.sgid = Gid(gid);
            }
        }
        // Longer than it says.
        _ => payload.extend(std::iter::repeat_n(0xa5, dice.roll(40))),
    }
    Packet::build(&headers, payload.len(), |space| space.copy_from_slice(&payload))
}

#[test]
fn forged_frames_are_dropped_and_counted() {
    for seed in 1..=8 {
        let network = Network::new(3, seed);
        let mut dice = Dice(seed);
        let guard = network.subnet.net.with(|fabric, _| {
            fabric.add_fault(
                is_ipoib,
                Effect::Forge(Box::new(move |transit| {
                    let mut packets = vec![transit.packet.clone()];
                    packets.extend((0..3).map(|_| spoil(transit.packet, &mut dice)));
                    packets
                })),
            )
        });
        for (from, to) in [(0, 1), (1, 2), (2, 0)] {
            let options = PingOptions { count: 30, interval: 20_000_000, ..PingOptions::default() };
            let ping = network.stacks[from].ping(address(to).into(), options);
            let result = network.subnet.wait_for("ping", |_| ping.report().done);
            assert!(result.is_ok(), "seed {seed}: {result:?}");
        }
        drop(guard);
        let counted: u64 = (0..3).flat_map(|host| drops(&network, host)).sum();
        assert!(counted > 50, "seed {seed}: {counted} drops");
        // What a forged frame taught is forgotten or corrected: by the driver within its retries, by the hosts above
        // when the lifetime of a neighbour is over, which is a minute in their stack.
        network.subnet.run_for(90 * SECOND).expect("settled");
        network.ping_all();
        network.stop();
    }
}

#[test]
fn a_frame_of_a_foreign_protocol_is_an_unknown_protocol() {
    let network = Network::new(2, 3);
    let before = dropped(&network, 1, Drop::ReceiveEthertype);
    let guard = network.subnet.net.with(|fabric, _| {
        fabric.add_fault(
            is_ipoib,
            Effect::Forge(Box::new(|transit| {
                let (headers, payload) = transit.packet.parse().expect("a datagram");
                let foreign = Packet::build(&headers, payload.len(), |space| {
                    space.copy_from_slice(payload);
                    space[..2].copy_from_slice(&[0x88, 0xcc]);
                });
                vec![transit.packet.clone(), foreign]
            })),
        )
    });
    network.ping(0, address(1), PingOptions { count: 5, ..PingOptions::default() });
    drop(guard);
    assert!(dropped(&network, 1, Drop::ReceiveEthertype) >= before + 5);
    network.stop();
}

/// An ARP packet whose sender hardware address is not that of the interface it came from teaches nothing.
#[test]
fn an_arp_packet_that_contradicts_its_source_is_dropped() {
    let network = Network::new(3, 4);
    network.ping_all();
    let seen = network.stacks[1].neighbour(address(0).into());
    let guard = network.subnet.net.with(|fabric, _| {
        fabric.add_fault(
            |transit: &Transit<'_>| {
                is_ipoib(transit)
                    && transit.packet.parse().is_ok_and(|(_, payload)| payload.starts_with(&[0x08, 0x06]))
            },
            Effect::Forge(Box::new(|transit| {
                let (headers, payload) = transit.packet.parse().expect("a datagram");
                // The QPN of the sender hardware address: 4 of IPoIB, 8 of ARP, 1 of flags.
                let liar = Packet::build(&headers, payload.len(), |space| {
                    space.copy_from_slice(payload);
                    space[13] ^= 0x01;
                });
                vec![liar, transit.packet.clone()]
            })),
        )
    });
    network.subnet.run_for(120 * SECOND).expect("a run");
    network.ping(0, address(1), PingOptions { count: 3, ..PingOptions::default() });
    drop(guard);
    assert_eq!(network.stacks[1].neighbour(address(0).into()), seen, "no other address was believed");
    network.stop();
}
