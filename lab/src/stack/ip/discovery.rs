//! Address resolution ahead of time. smoltcp limits an interface to one discovery a second, whoever asks; a host
//! that starts to talk to many peers at once would wait a second for each. So a job that opens a conversation first
//! asks for the peer itself, with a frame built here; smoltcp learns from the answer as from one of its own.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetAddress, EthernetFrame, EthernetProtocol, Icmpv6Packet,
    Icmpv6Repr, IpProtocol, Ipv6Packet, Ipv6Repr, NdiscRepr, RawHardwareAddress,
};

use super::address::{MacAddress, multicast_mac, solicited_node};

/// The request that asks for the Ethernet address of `target`: ARP (RFC 826) or a neighbour solicitation
/// (RFC 4861 section 4.3). `None` if source and target are not of one family.
pub fn request(mac: MacAddress, source: IpAddr, target: IpAddr) -> Option<Vec<u8>> {
    match (source, target) {
        (IpAddr::V4(source), IpAddr::V4(target)) => Some(arp_request(mac, source, target)),
        (IpAddr::V6(source), IpAddr::V6(target)) => Some(neighbour_solicitation(mac, source, target)),
        _ => None,
    }
}

fn ethernet(
    source: MacAddress,
    destination: MacAddress,
    protocol: EthernetProtocol,
    payload: usize,
) -> Vec<u8> {
    let mut buffer = vec![0; EthernetFrame::<&[u8]>::buffer_len(payload)];
    let mut frame = EthernetFrame::new_unchecked(&mut buffer);
    frame.set_src_addr(EthernetAddress(source));
    frame.set_dst_addr(EthernetAddress(destination));
    frame.set_ethertype(protocol);
    buffer
}

fn arp_request(mac: MacAddress, source: Ipv4Addr, target: Ipv4Addr) -> Vec<u8> {
    let request = ArpRepr::EthernetIpv4 {
        operation: ArpOperation::Request,
        source_hardware_addr: EthernetAddress(mac),
        source_protocol_addr: source,
        target_hardware_addr: EthernetAddress([0; 6]),
        target_protocol_addr: target,
    };
    let mut buffer = ethernet(mac, EthernetAddress::BROADCAST.0, EthernetProtocol::Arp, request.buffer_len());
    let mut frame = EthernetFrame::new_unchecked(&mut buffer);
    request.emit(&mut ArpPacket::new_unchecked(frame.payload_mut()));
    buffer
}

fn neighbour_solicitation(mac: MacAddress, source: Ipv6Addr, target: Ipv6Addr) -> Vec<u8> {
    let solicitation = Icmpv6Repr::Ndisc(NdiscRepr::NeighborSolicit {
        target_addr: target,
        lladdr: Some(RawHardwareAddress::from_bytes(&mac)),
    });
    let group = solicited_node(target);
    let header = Ipv6Repr {
        src_addr: source,
        dst_addr: group,
        next_header: IpProtocol::Icmpv6,
        payload_len: solicitation.buffer_len(),
        // RFC 4861 section 7.1.1: a receiver drops a solicitation whose hop limit is not 255.
        hop_limit: 255,
    };
    let destination = multicast_mac(group.into()).unwrap_or(EthernetAddress::BROADCAST.0);
    let length = header.buffer_len() + header.payload_len;
    let mut buffer = ethernet(mac, destination, EthernetProtocol::Ipv6, length);
    let mut frame = EthernetFrame::new_unchecked(&mut buffer);
    let mut packet = Ipv6Packet::new_unchecked(frame.payload_mut());
    header.emit(&mut packet);
    let mut message = Icmpv6Packet::new_unchecked(packet.payload_mut());
    solicitation.emit(&source, &group, &mut message, &ChecksumCapabilities::default());
    buffer
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: MacAddress = [2, 0, 0, 0, 0, 1];

    #[test]
    fn an_arp_request_is_broadcast_and_names_the_target() {
        let frame = request(MAC, [10, 0, 0, 1].into(), [10, 0, 0, 2].into()).unwrap();
        let frame = EthernetFrame::new_checked(frame.as_slice()).unwrap();
        assert!(frame.dst_addr().is_broadcast());
        let arp = ArpPacket::new_checked(frame.payload()).unwrap();
        assert_eq!(arp.operation(), ArpOperation::Request);
        assert_eq!(
            (arp.source_protocol_addr(), arp.target_protocol_addr()),
            (&[10, 0, 0, 1][..], &[10, 0, 0, 2][..])
        );
    }

    #[test]
    fn a_solicitation_goes_to_the_solicited_node_with_a_valid_checksum() {
        let (source, target): (Ipv6Addr, Ipv6Addr) =
            ("fe80::1".parse().unwrap(), "fe80::aa:bbcc".parse().unwrap());
        let frame = request(MAC, source.into(), target.into()).unwrap();
        let frame = EthernetFrame::new_checked(frame.as_slice()).unwrap();
        assert_eq!(frame.dst_addr().0, [0x33, 0x33, 0xff, 0xaa, 0xbb, 0xcc]);
        let packet = Ipv6Packet::new_checked(frame.payload()).unwrap();
        assert_eq!(packet.hop_limit(), 255);
        let message = Icmpv6Packet::new_checked(packet.payload()).unwrap();
        assert!(message.verify_checksum(&packet.src_addr(), &packet.dst_addr()));
    }

    #[test]
    fn families_do_not_mix() {
        assert!(request(MAC, [10, 0, 0, 1].into(), IpAddr::V6(Ipv6Addr::LOCALHOST)).is_none());
    }
}
