extern crate std;
use super::testing::{Fabric, alice, bob};
use super::*;
use crate::ipoib::mgid::Link;
use crate::ipoib::{Gid, PKey};
use proptest::prelude::*;
use std::vec;
use std::vec::Vec;

const MTU: usize = 2044;

fn frame(destination: [u8; 6], ethertype: EtherType, payload: &[u8]) -> Vec<u8> {
    let header = ethernet::Header { destination: MacAddr::new(destination), source: alice().mac, ethertype };
    [&header.to_bytes()[..], payload].concat()
}

fn plan(frame: &[u8]) -> Result<Down, Refused> {
    Down::new(&frame[..frame.len().min(LOOKAHEAD)], frame.len(), MTU)
}

fn ipv4(protocol: u8, destination: [u8; 4], payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend((20 + payload.len() as u16).to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1]);
    packet.extend(destination);
    packet.extend(payload);
    packet
}

fn ipv6(next_header: u8, destination: [u8; 16], payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend((payload.len() as u16).to_be_bytes());
    packet.extend([next_header, 255]);
    packet.extend([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    packet.extend(destination);
    packet.extend(payload);
    packet
}

/// The point of looking at the IP header: 32 IPv4 groups share an Ethernet address, and 2^80 IPv6 groups.
#[test]
fn a_group_is_taken_from_the_ip_header_not_from_the_ethernet_address() {
    let mac = [0x01, 0x00, 0x5e, 1, 2, 3];
    for group in [[224, 1, 2, 3], [239, 1, 2, 3], [239, 129, 2, 3]] {
        let plan = plan(&frame(mac, EtherType::IPV4, &ipv4(ip::UDP, group, &[0; 8]))).unwrap();
        assert_eq!(plan.destination, Destination::Group(IpGroup::V4(group)));
    }
    let group = [0xff, 0x05, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1];
    let plan =
        plan(&frame([0x33, 0x33, 0, 0, 0, 1], EtherType::IPV6, &ipv6(ip::UDP, group, &[0; 8]))).unwrap();
    assert_eq!(plan.destination, Destination::Group(IpGroup::V6(group)));
}

#[test]
fn unicast_and_broadcast_are_told_by_the_ethernet_address() {
    let packet = ipv4(6, [10, 0, 0, 2], &[0; 20]);
    let station = Fabric::mac(&bob());
    let down = plan(&frame(station.to_bytes(), EtherType::IPV4, &packet)).unwrap();
    assert_eq!((down.destination, down.kind), (Destination::Station(station), Kind::Plain));
    assert_eq!(down.header(), [0x08, 0x00, 0, 0]);
    let down = plan(&frame([0xff; 6], EtherType::IPV4, &packet)).unwrap();
    assert_eq!(down.destination, Destination::Broadcast);
}

#[test]
fn a_unicast_packet_to_a_group_address_goes_to_the_assumed_group() {
    let packet = ipv4(6, [10, 0, 0, 2], &[0; 20]);
    let down = plan(&frame([0x01, 0, 0x5e, 0x7f, 1, 1], EtherType::IPV4, &packet)).unwrap();
    assert_eq!(down.destination, Destination::Group(IpGroup::V4([224, 0x7f, 1, 1])));
    let nlb = frame([0x03, 0xbf, 10, 0, 0, 2], EtherType::IPV4, &packet);
    assert_eq!(plan(&nlb), Err(Refused::NoGroup));
}

#[test]
fn what_must_be_rewritten_or_listened_to_is_recognized() {
    let mut dhcp = vec![0, 68, 0, 67, 0, 8, 0, 0];
    dhcp.resize(248, 0);
    let to_group = [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x16];
    let hop_by_hop = [58, 0, 5, 2, 0, 0, 1, 0, 143, 0, 0, 0, 0, 0, 0, 0];
    let cases: [(EtherType, Vec<u8>, Kind); 8] = [
        (EtherType::ARP, vec![0; 28], Kind::Arp),
        (EtherType::RARP, vec![0; 46], Kind::Arp),
        (EtherType::IPV4, ipv4(ip::UDP, [255; 4], &dhcp), Kind::Dhcp(dhcp::Speaker::Client)),
        (EtherType::IPV4, ipv4(ip::UDP, [255; 4], &[0, 53, 0, 67, 0, 8, 0, 0]), Kind::Plain),
        (EtherType::IPV4, ipv4(ip::IGMP, [224, 0, 0, 22], &[0x22; 8]), Kind::Igmp { at: 20 }),
        (EtherType::IPV6, ipv6(ip::ICMPV6, to_group, &[135; 24]), Kind::Neighbor { icmp_at: 40 }),
        (EtherType::IPV6, ipv6(ip::ICMPV6, to_group, &[128; 24]), Kind::Plain),
        (EtherType::IPV6, ipv6(0, to_group, &hop_by_hop), Kind::Mld { at: 48 }),
    ];
    for (ethertype, packet, kind) in cases {
        assert_eq!(plan(&frame([0xff; 6], ethertype, &packet)).map(|plan| plan.kind), Ok(kind));
    }
    let mut fragment = ipv4(ip::UDP, [255; 4], &dhcp);
    fragment[6] = 0x20;
    assert_eq!(plan(&frame([0xff; 6], EtherType::IPV4, &fragment)).unwrap().kind, Kind::Plain);
}

#[test]
fn frames_that_cannot_be_carried_are_refused_with_their_reason() {
    let packet = ipv4(6, [10, 0, 0, 2], &[0; 20]);
    let good = frame(Fabric::mac(&bob()).to_bytes(), EtherType::IPV4, &packet);
    assert_eq!(plan(&good[..13]), Err(Refused::TooShort));
    assert_eq!(plan(&good[..good.len() - 1]), Err(Refused::TooShort), "shorter than its header says");
    assert_eq!(plan(&frame([0xff; 6], EtherType::new(0x88cc), &packet)), Err(Refused::EtherType));
    assert_eq!(plan(&frame([0xff; 6], EtherType::new(0x0040), &packet)), Err(Refused::EtherType));
    assert_eq!(plan(&frame([0xff; 6], EtherType::ARP, &[0; 27])), Err(Refused::TooShort));
    let mut long = ipv4(6, [10, 0, 0, 2], &vec![0; MTU - 20]);
    assert!(plan(&frame([0xff; 6], EtherType::IPV4, &long)).is_ok());
    long.push(0);
    assert_eq!(plan(&frame([0xff; 6], EtherType::IPV4, &long)), Err(Refused::TooLong));
}

#[test]
fn reports_name_exact_groups() {
    let packet = ipv4(ip::IGMP, [224, 0, 0, 22], &[0x22, 0, 0, 0, 0, 0, 0, 1, 4, 0, 0, 0, 239, 129, 2, 3]);
    let plan = plan(&frame([0x01, 0, 0x5e, 0, 0, 22], EtherType::IPV4, &packet)).unwrap();
    let mut told = Vec::new();
    reports(plan.kind, &packet, |group, joined| told.push((group, joined)));
    assert_eq!(told, [(IpGroup::V4([239, 129, 2, 3]), true)]);
}

fn arp_request() -> Vec<u8> {
    let packet = arp::Packet {
        operation: 1,
        sender: alice().mac,
        sender_ip: [10, 0, 0, 1],
        target: MacAddr::ZERO,
        target_ip: [10, 0, 0, 2],
    };
    let mut bytes = vec![0; 46];
    packet.emit(&mut bytes);
    frame([0xff; 6], EtherType::ARP, &bytes)
}

#[test]
fn an_arp_request_goes_down_here_and_up_there() {
    let sent = arp_request();
    let mut wire = [0; 100];
    let len = plan(&sent).unwrap().rewrite(&sent, &alice(), &Fabric, &mut wire).unwrap();
    assert_eq!(len, 60);
    let wire = &mut wire[..len];
    assert_eq!(wire[..4], [0x08, 0x06, 0, 0]);

    let plan = Up::new(wire).unwrap();
    let claim = plan.claim(&wire[4..]).unwrap();
    assert_eq!(claim, Some(alice().address));
    let sender = Fabric::mac(&alice());
    let len = plan.rewrite(&mut wire[4..], sender, claim.as_ref(), &bob(), &Fabric).unwrap();
    let arrived = arp::Packet::<MacAddr>::parse(&wire[4..4 + len]).unwrap();
    assert_eq!((len, arrived.sender, arrived.target), (28, sender, MacAddr::ZERO));
    assert_eq!((arrived.sender_ip, arrived.target_ip), ([10, 0, 0, 1], [10, 0, 0, 2]));
}

#[test]
fn received_frames_must_be_what_their_headers_say() {
    assert_eq!(Up::new(&[8, 0, 0]), Err(Refused::TooShort));
    assert_eq!(Up::new(&[0x88, 0xcc, 0, 0, 1, 2]), Err(Refused::EtherType));
    let packet = ipv4(6, [10, 0, 0, 2], &[0; 20]);
    let wire = [&[8, 0, 0, 0][..], &packet].concat();
    assert_eq!(Up::new(&wire).map(|up| up.kind), Ok(Kind::Plain));
    assert_eq!(Up::new(&wire[..wire.len() - 1]), Err(Refused::TooShort));
    assert_eq!(Up::new(&[&[8, 6, 0, 0][..], &[0; 55]].concat()), Err(Refused::TooShort));
    let ethernet_arp = [&[8, 6, 0, 0][..], &arp_request()[14..], &[0; 20]].concat();
    let up = Up::new(&ethernet_arp).unwrap();
    assert_eq!(up.claim(&ethernet_arp[4..]), Err(Untranslatable::Malformed), "hardware type 1");
}

#[test]
fn the_destination_is_ours_or_the_groups() {
    let grh = |destination| Grh {
        traffic_class: 0,
        flow_label: 0,
        payload_len: 0,
        hop_limit: 0,
        source: alice().address.gid,
        destination,
    };
    let link = Link::new(PKey::DEFAULT);
    assert_eq!(destination_of(None, &bob()), Some(bob().mac));
    assert_eq!(destination_of(Some(&grh(bob().address.gid)), &bob()), Some(bob().mac));
    assert_eq!(destination_of(Some(&grh(alice().address.gid)), &bob()), None);
    let broadcast = Mgid::broadcast(link).gid();
    assert_eq!(destination_of(Some(&grh(broadcast)), &bob()), Some(MacAddr::BROADCAST));
    let group = Mgid::of(IpGroup::ALL_NODES, link).gid();
    assert_eq!(destination_of(Some(&grh(group)), &bob()), Some(IpGroup::ALL_NODES.to_mac()));
    let mut foreign = broadcast.to_bytes();
    foreign[2] = 0xa0;
    assert_eq!(destination_of(Some(&grh(Gid::new(foreign))), &bob()), None);
}

proptest! {
    #[test]
    fn any_frame_down_is_planned_or_refused(
        mut bytes in prop::collection::vec(any::<u8>(), 0..400),
        ethertype in prop::sample::select(vec![0x0800_u16, 0x0806, 0x8035, 0x86dd]),
        version: bool,
    ) {
        if bytes.len() > 20 {
            bytes[12..14].copy_from_slice(&ethertype.to_be_bytes());
            if version {
                bytes[14] = if ethertype == 0x0800 { 0x45 } else { 0x60 };
                bytes[16..18].copy_from_slice(&[0, 20]);
                bytes[18] = 0;
            }
        }
        if let Ok(down) = plan(&bytes) {
            let mut out = [0; 2048];
            if let Ok(len) = down.rewrite(&bytes, &alice(), &Fabric, &mut out) {
                prop_assert_eq!(&out[..4], &down.header());
                prop_assert!(down.kind.is_rewritten() || out[4..len] == bytes[14..]);
            }
            reports(down.kind, &bytes[14..], |_, _| ());
        }
    }

    #[test]
    fn any_frame_up_is_planned_or_refused(
        mut bytes in prop::collection::vec(any::<u8>(), 0..400),
        ethertype in prop::sample::select(vec![0x0800_u16, 0x0806, 0x8035, 0x86dd]),
        version: bool,
    ) {
        if bytes.len() > 20 {
            bytes[..2].copy_from_slice(&ethertype.to_be_bytes());
            if version {
                bytes[4] = if ethertype == 0x0800 { 0x45 } else { 0x60 };
                bytes[6..8].copy_from_slice(&[0, 20]);
            }
        }
        if let Ok(up) = Up::new(&bytes) {
            let claim = up.claim(&bytes[4..]).unwrap_or(None);
            let sender = Fabric::mac(&alice());
            let before = bytes.clone();
            let rewritten = up.rewrite(&mut bytes[4..], sender, claim.as_ref(), &bob(), &Fabric);
            if let Ok(len) = rewritten {
                prop_assert!(len <= before.len() - 4);
            } else {
                prop_assert_eq!(bytes, before);
            }
        }
    }
}
