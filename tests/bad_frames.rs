//! Single frames from the fabric that are wrong in one way each, made by hand: every one is counted under the cause that
//! its documentation names and under no other, and nothing of it comes up.

mod common;

use common::{Network, address};
use ipoib::adapter::oid::OID_IPOIB_DROPS;
use ipoib::adapter::stats::Drop;
use ipoib_lab::fabric::wire::bth::{Bth, OpCode};
use ipoib_lab::fabric::wire::extended::Deth;
use ipoib_lab::fabric::wire::grh::Grh;
use ipoib_lab::fabric::wire::lrh::Lrh;
use ipoib_lab::fabric::{Gid, Headers, Lid, PKey, Packet, QKey, Qpn};
use ipoib_lab::scenario::Host;
use ipoib_lab::sim::SECOND;
use ipoib_lab::stack::PingOptions;

/// The host that is lied to, and the one whose port the lies come from.
const VICTIM: usize = 1;
const SENDER: usize = 2;

/// IPoIB header: an ethertype and two reserved bytes (RFC 4391, section 6).
fn encapsulated(ethertype: u16, packet: &[u8]) -> Vec<u8> {
    [&ethertype.to_be_bytes(), &[0, 0], packet].concat()
}

/// A header of IPv4, checksum left out: the driver does not judge it.
fn ipv4(protocol: u8, total: u16, payload: &[u8]) -> Vec<u8> {
    let [high, low] = total.to_be_bytes();
    let mut packet = vec![0x45, 0, high, low, 0, 0, 0, 0, 64, protocol, 0, 0];
    packet.extend(address(SENDER).octets());
    packet.extend(address(VICTIM).octets());
    packet.extend(payload);
    packet
}

/// A header of IPv6 with ICMPv6 behind it.
fn icmpv6(length: u16, message: &[u8]) -> Vec<u8> {
    let [high, low] = length.to_be_bytes();
    let mut packet = vec![0x60, 0, 0, 0, high, low, 58, 255];
    for last in [2, 1] {
        packet.extend([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    }
    packet.extend(message);
    packet
}

/// A Neighbor Solicitation with these options (RFC 4861, section 4.3).
fn solicitation(options: &[u8]) -> Vec<u8> {
    let mut message = vec![135, 0, 0, 0, 0, 0, 0, 0];
    message.extend([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    message.extend(options);
    encapsulated(0x86dd, &icmpv6(message.len() as u16, &message))
}

struct Fixture {
    network: Network,
    headers: Headers,
    gids: [Gid; 3],
}

impl Fixture {
    /// Three hosts that know each other, and the headers of an honest frame from the sender to the victim.
    fn new(seed: u64) -> Self {
        let network = Network::new(3, seed);
        network.ping_all();
        let hosts = &network.subnet.hosts;
        let port = |host: usize| network.subnet.net.port(hosts[host].port);
        let qpn = |host: usize| Qpn::new(hosts[host].hca.queue_pairs()[0].qpn);
        let gids = [0, 1, 2].map(|host| port(host).default_gid());
        let headers = Headers {
            lrh: Lrh { dlid: port(VICTIM).lid, slid: port(SENDER).lid, ..Lrh::default() },
            bth: Bth {
                opcode: OpCode::UD_SEND_ONLY,
                pkey: PKey::DEFAULT,
                dest_qp: qpn(VICTIM),
                ..Bth::default()
            },
            deth: Some(Deth { qkey: QKey(0x0b1b), src_qp: qpn(SENDER) }),
            ..Headers::default()
        };
        Self { network, headers, gids }
    }

    fn grh(&self, source: Gid) -> Headers {
        let grh = Grh { sgid: source, dgid: self.gids[VICTIM], hop_limit: 1, ..Grh::default() };
        Headers { grh: Some(grh), ..self.headers }
    }

    fn headers_of(&self, qpn: u32) -> Headers {
        let deth = self.headers.deth.map(|deth| Deth { src_qp: Qpn::new(qpn), ..deth });
        Headers { deth, ..self.headers }
    }

    fn source_qp(&self) -> u32 {
        self.headers.deth.expect("a datagram").src_qp.get()
    }

    /// ARP of the sender, as it should be (RFC 4391, section 9.2).
    fn arp(&self) -> Vec<u8> {
        let mut packet = vec![0, 32, 8, 0, 20, 4, 0, 1];
        for (qpn, gid, host) in [(self.source_qp(), self.gids[SENDER].0, SENDER), (0, [0; 16], VICTIM)] {
            packet.extend(qpn.to_be_bytes());
            packet.extend(gid);
            packet.extend(address(host).octets());
        }
        encapsulated(0x0806, &packet)
    }

    /// A source link-layer address option (RFC 4391, section 9.3).
    fn option(qpn: u32, gid: Gid) -> Vec<u8> {
        [&[1, 3, 0, 0][..], &qpn.to_be_bytes(), &gid.0].concat()
    }

    /// The victim's counters by cause.
    fn drops(&self) -> Vec<u64> {
        let ask = |host: &Host| {
            host.adapter().expect("up").query(OID_IPOIB_DROPS, Drop::ALL.len() * 8).expect("counters")
        };
        let counters = self.network.subnet.on_host(VICTIM, "drops", ask).expect("a run");
        counters.chunks(8).map(|field| u64::from_le_bytes(field.try_into().expect("eight bytes"))).collect()
    }

    /// Puts a packet on the sender's link, and gives what the victim counted.
    fn inject(&self, headers: &Headers, payload: &[u8]) -> Vec<Drop> {
        let before = self.drops();
        let packet = Packet::build(headers, payload.len(), |space| space.copy_from_slice(payload));
        self.network.subnet.net.transmit(self.network.subnet.hosts[SENDER].port, packet);
        self.network.subnet.run_for(SECOND / 100).expect("a run");
        let after = self.drops();
        let more = |cause: &Drop| after[*cause as usize] - before[*cause as usize];
        Drop::ALL.iter().flat_map(|cause| std::iter::repeat_n(*cause, more(cause) as usize)).collect()
    }

    /// After all that, the hosts talk as before, and halt.
    fn end(self) {
        self.network.ping_all();
        self.network.stop();
    }
}

/// Frames whose lengths or protocol are wrong: [`Drop::ReceiveTooShort`], [`Drop::ReceiveEthertype`].
#[test]
fn short_frames_and_foreign_protocols_are_counted_as_such() {
    let fixture = Fixture::new(1);
    let cases: [(&str, Vec<u8>, Drop); 11] = [
        ("nothing", vec![], Drop::ReceiveTooShort),
        ("half a header", vec![8, 0, 0], Drop::ReceiveTooShort),
        ("a header alone", encapsulated(0x0800, &[]), Drop::ReceiveTooShort),
        ("half of IPv4", encapsulated(0x0800, &[0x45; 19]), Drop::ReceiveTooShort),
        ("IPv4 longer than the frame", encapsulated(0x0800, &ipv4(17, 100, &[0; 8])), Drop::ReceiveTooShort),
        ("IPv4 shorter than its header", encapsulated(0x0800, &ipv4(17, 19, &[0; 8])), Drop::ReceiveTooShort),
        ("half of IPv6", encapsulated(0x86dd, &[0x60; 39]), Drop::ReceiveTooShort),
        ("IPv6 longer than the frame", encapsulated(0x86dd, &icmpv6(100, &[128; 8])), Drop::ReceiveTooShort),
        ("ARP of Ethernet's length", fixture.arp()[..32].to_vec(), Drop::ReceiveTooShort),
        ("LLDP", encapsulated(0x88cc, &[0; 60]), Drop::ReceiveEthertype),
        ("a length field of IEEE 802.3", encapsulated(60, &[0; 60]), Drop::ReceiveEthertype),
    ];
    for (what, payload, cause) in cases {
        assert_eq!(fixture.inject(&fixture.headers, &payload), [cause], "{what}");
    }
    fixture.end();
}

/// RFC 4391, section 9.2, and RFC 826: types and lengths of ARP; sender as the frame's source (issue 2, "Bad input").
#[test]
fn arp_that_is_malformed_or_contradicts_its_source_is_counted_as_such() {
    let fixture = Fixture::new(2);
    let arp = fixture.arp();
    assert_eq!(fixture.inject(&fixture.headers, &arp), [], "as it should be");
    assert_eq!(fixture.inject(&fixture.grh(fixture.gids[SENDER]), &arp), [], "with a GRH, too");
    let with = |at: usize, value: u8| {
        let mut arp = arp.clone();
        arp[at] = value;
        arp
    };
    let cases = [
        ("Ethernet's hardware type", with(5, 1), Drop::ReceiveArp),
        ("a foreign protocol", with(6, 0x86), Drop::ReceiveArp),
        ("Ethernet's hardware length", with(8, 6), Drop::ReceiveArp),
        ("a hardware length of 0", with(8, 0), Drop::ReceiveArp),
        ("a hardware length of 255", with(8, 255), Drop::ReceiveArp),
        ("a protocol length of 16", with(9, 16), Drop::ReceiveArp),
        ("another QPN", with(15, arp[15] ^ 1), Drop::ReceiveSource),
        ("another GID", with(31, arp[31] ^ 1), Drop::ReceiveSource),
        ("a group's GID", with(16, 0xff), Drop::ReceiveSource),
    ];
    for (what, payload, cause) in cases {
        assert_eq!(fixture.inject(&fixture.headers, &payload), [cause], "{what}");
        assert_eq!(fixture.inject(&fixture.grh(fixture.gids[SENDER]), &payload), [cause], "{what}, GRH");
    }
    assert_eq!(fixture.inject(&fixture.grh(fixture.gids[0]), &arp), [Drop::ReceiveSource], "a forged GRH");
    fixture.end();
}

/// RFC 4861, sections 6.1 and 7.1, and RFC 4391, section 9.3: options of Neighbor Discovery.
#[test]
fn neighbor_discovery_that_is_malformed_or_contradicts_its_source_is_counted_as_such() {
    let fixture = Fixture::new(3);
    let (own, other) = (fixture.gids[SENDER], fixture.gids[0]);
    let qpn = fixture.source_qp();
    assert_eq!(fixture.inject(&fixture.headers, &solicitation(&Fixture::option(qpn, own))), []);
    let cases = [
        ("an option of length 0", solicitation(&[1, 0, 0, 0, 0, 0, 0, 0]), Drop::ReceiveNd),
        ("an option beyond the message", solicitation(&[1, 9, 0, 0, 0, 0, 0, 0]), Drop::ReceiveNd),
        ("half an option", solicitation(&[1]), Drop::ReceiveNd),
        ("Ethernet's option", solicitation(&[1, 1, 2, 0, 0, 0, 0, 1]), Drop::ReceiveNd),
        ("no target", encapsulated(0x86dd, &icmpv6(8, &[135, 0, 0, 0, 0, 0, 0, 0])), Drop::ReceiveNd),
        ("another QPN", solicitation(&Fixture::option(qpn ^ 1, own)), Drop::ReceiveSource),
        ("another GID", solicitation(&Fixture::option(qpn, other)), Drop::ReceiveSource),
        ("QPN 1", solicitation(&Fixture::option(1, own)), Drop::ReceiveSource),
    ];
    for (what, payload, cause) in cases {
        assert_eq!(fixture.inject(&fixture.headers, &payload), [cause], "{what}");
    }
    fixture.end();
}

/// DHCP without room for what it must have (RFC 2131, section 2): [`Drop::ReceiveDhcp`].
#[test]
fn short_dhcp_is_counted_as_such() {
    let fixture = Fixture::new(4);
    let udp = [0, 67, 0, 68, 0, 16, 0, 0, 2, 32, 0, 0, 0, 0, 0, 0];
    let payload = encapsulated(0x0800, &ipv4(17, 36, &udp));
    assert_eq!(fixture.inject(&fixture.headers, &payload), [Drop::ReceiveDhcp]);
    fixture.end();
}

/// A source that no interface can have (IBA 10.2.4 and 4.1.3: special QPNs, ranges of LIDs), or a GRH of another port
/// than is known at the LID.
#[test]
fn impossible_and_forged_sources_are_counted_as_such() {
    let fixture = Fixture::new(5);
    let payload = encapsulated(0x0800, &ipv4(17, 28, &[0x30, 0x39, 0x30, 0x39, 0, 8, 0, 0]));
    let from_lid = |lid| Headers { lrh: Lrh { slid: Lid(lid), ..fixture.headers.lrh }, ..fixture.headers };
    let mut group = fixture.gids[SENDER];
    group.0[0] = 0xff;
    let cases = [
        ("QP0", fixture.headers_of(0)),
        ("QP1", fixture.headers_of(1)),
        ("the multicast QPN", fixture.headers_of(0xff_ffff)),
        ("no LID", from_lid(0)),
        ("a multicast LID", from_lid(0xc001)),
        ("the permissive LID", from_lid(0xffff)),
        ("a group as source", fixture.grh(group)),
        ("another host's GID", fixture.grh(fixture.gids[0])),
    ];
    for (what, headers) in cases {
        assert_eq!(fixture.inject(&headers, &payload), [Drop::ReceiveSource], "{what}");
    }
    fixture.end();
}

/// A wrong Q_Key or P_Key never reaches a queue pair (IBA 10.2.4, 10.9.3): the port or the switch counts it.
#[test]
fn wrong_keys_are_the_ports_to_count() {
    let fixture = Fixture::new(6);
    let victim = fixture.network.subnet.hosts[VICTIM].port;
    let counters = || {
        let net = &fixture.network.subnet.net;
        let dropped = net.with(|fabric, _| fabric.drops().total());
        (net.port(victim).counters.qkey_violations, dropped)
    };
    let (qkeys, packets) = counters();
    for qkey in [0, 0x0b1a, 0x8000_0b1b, 0xffff_ffff] {
        let deth = fixture.headers.deth.map(|deth| Deth { qkey: QKey(qkey), ..deth });
        assert_eq!(fixture.inject(&Headers { deth, ..fixture.headers }, &fixture.arp()), []);
    }
    assert_eq!(counters(), (qkeys + 4, packets));
    for pkey in [0x8001, 0x1234, 0x0000] {
        let bth = Bth { pkey: PKey(pkey), ..fixture.headers.bth };
        assert_eq!(fixture.inject(&Headers { bth, ..fixture.headers }, &fixture.arp()), []);
    }
    assert_eq!(counters(), (qkeys + 4, packets + 3));
    fixture.end();
}

/// A datagram longer than the receive buffer puts a UD queue pair into ERROR (IBA 10.7.3.1): it is brought up again, with
/// its number.
#[test]
fn a_frame_longer_than_the_buffer_is_survived() {
    let fixture = Fixture::new(7);
    let qpn = fixture.headers.bth.dest_qp.get();
    for length in [2044, 2048, 2049, 3000, 4096] {
        let payload = encapsulated(0x0800, &ipv4(17, length, &vec![0; usize::from(length) - 20]));
        fixture.inject(&fixture.headers, &payload[..payload.len().min(4096)]);
        fixture.network.subnet.run_for(20 * SECOND).expect("a run");
        fixture.network.wait_up(&format!("{length} bytes"));
        assert_eq!(fixture.network.subnet.hosts[VICTIM].hca.queue_pairs()[0].qpn, qpn);
        fixture.network.ping_all_unchecked();
    }
    fixture.end();
}

/// Frames from interfaces that are none, more than any table has room for: hosts that are known stay reachable.
#[test]
fn a_flood_of_invented_senders_does_not_push_out_real_ones() {
    let fixture = Fixture::new(8);
    let payload = encapsulated(0x0800, &ipv4(17, 28, &[0x30, 0x39, 0x30, 0x39, 0, 8, 0, 0]));
    for round in 0..40_u32 {
        for number in 0..100 {
            let headers = fixture.headers_of(0x1_0000 + round * 100 + number);
            let packet = Packet::build(&headers, payload.len(), |space| space.copy_from_slice(&payload));
            let port = fixture.network.subnet.hosts[SENDER].port;
            fixture.network.subnet.net.transmit(port, packet);
        }
        fixture.network.subnet.run_for(SECOND / 1000).expect("a run");
    }
    fixture.network.ping(0, address(VICTIM), PingOptions::default());
    fixture.end();
}
