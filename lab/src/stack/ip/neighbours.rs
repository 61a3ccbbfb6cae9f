//! What a host believes about its neighbours: the Ethernet address behind each IP address, as its frames tell.

use core::net::IpAddr;
use std::collections::BTreeMap;

use smoltcp::wire::{
    ArpPacket, EthernetFrame, EthernetProtocol, Icmpv6Packet, IpProtocol, Ipv4Packet, Ipv6Packet, NdiscRepr,
    RawHardwareAddress,
};

use super::address::MacAddress;

/// Addresses by IP address. A second address for the same neighbour is kept beside the first: a subnet in which
/// that happens has not kept its promise.
#[derive(Clone, Debug, Default)]
pub struct Neighbours(BTreeMap<IpAddr, Vec<MacAddress>>);

impl Neighbours {
    /// Notes who sent a frame: by ARP and Neighbor Discovery, and by the source of any IP packet.
    pub fn note(&mut self, frame: &[u8]) {
        let Ok(frame) = EthernetFrame::new_checked(frame) else { return };
        let source = frame.src_addr().0;
        match frame.ethertype() {
            EthernetProtocol::Arp => {
                let Ok(arp) = ArpPacket::new_checked(frame.payload()) else { return };
                let (Ok(hardware), Ok(protocol)) =
                    (arp.source_hardware_addr().try_into(), to_ipv4(arp.source_protocol_addr()))
                else {
                    return;
                };
                self.insert(protocol, hardware);
                self.insert(protocol, source);
            }
            EthernetProtocol::Ipv4 => {
                if let Ok(packet) = Ipv4Packet::new_checked(frame.payload()) {
                    self.insert(packet.src_addr().into(), source);
                }
            }
            EthernetProtocol::Ipv6 => {
                let Ok(packet) = Ipv6Packet::new_checked(frame.payload()) else { return };
                self.insert(packet.src_addr().into(), source);
                if packet.next_header() == IpProtocol::Icmpv6
                    && let Ok(message) = Icmpv6Packet::new_checked(packet.payload())
                    && let Ok(message) = NdiscRepr::parse(&message)
                    && let Some((owner, address)) = told_by(&message, packet.src_addr().into())
                    && let Ok(address) = address.as_bytes().try_into()
                {
                    self.insert(owner, address);
                }
            }
            EthernetProtocol::Unknown(_) => {}
        }
    }

    fn insert(&mut self, owner: IpAddr, address: MacAddress) {
        if owner.is_unspecified() {
            return;
        }
        let known = self.0.entry(owner).or_default();
        if !known.contains(&address) {
            known.push(address);
        }
    }

    /// Every address under which a neighbour was seen, in the order of appearance.
    pub fn of(&self, neighbour: IpAddr) -> &[MacAddress] {
        self.0.get(&neighbour).map_or(&[], Vec::as_slice)
    }
}

fn to_ipv4(bytes: &[u8]) -> Result<IpAddr, ()> {
    <[u8; 4]>::try_from(bytes).map(IpAddr::from).map_err(|_| ())
}

/// Whose link-layer address a Neighbor Discovery message carries (RFC 4861, section 4), and which.
fn told_by<'a>(message: &'a NdiscRepr<'_>, sender: IpAddr) -> Option<(IpAddr, &'a RawHardwareAddress)> {
    match message {
        NdiscRepr::NeighborSolicit { lladdr, .. } => lladdr.as_ref().map(|address| (sender, address)),
        NdiscRepr::NeighborAdvert { target_addr, lladdr, .. } => {
            lladdr.as_ref().map(|address| ((*target_addr).into(), address))
        }
        _ => None,
    }
}
