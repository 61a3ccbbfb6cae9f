//! One entry for a frame on its way down, one for a frame on its way up.
//!
//! Almost every frame is carried as it is: only its Ethernet header and its IPoIB header change places, and
//! the plan ([`Down`], [`Up`]) says so after a look at the first bytes. ARP, Neighbor Discovery and DHCP name
//! link-layer addresses and are rewritten: on the way down into a buffer of the caller's, since they become
//! longer, on the way up in place, since they become shorter.
//!
//! On the way up, what a frame says of its sender ([`Up::claim`]) must first be compared with where it came
//! from; the peers' room does that and gives the sender's Ethernet address, with which [`Up::rewrite`] is
//! then called.

use super::arp;
use super::dhcp;
use super::encap;
use super::ethernet::{self, EtherType};
use super::grh::Grh;
use super::group::IpGroup;
use super::hwaddr::HwAddr;
use super::igmp;
use super::ip::{self, Ipv4, Ipv6};
use super::mac::MacAddr;
use super::mgid::Mgid;
use super::mld;
use super::ndisc;
use super::wire;

/// Bytes of a frame, Ethernet header included, that [`Down::new`] wants to see if the frame has as many.
pub const LOOKAHEAD: usize = 128;

/// This adapter, as translation must know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    /// The Ethernet address that Windows has for it.
    pub mac: MacAddr,
    /// Its IPoIB address.
    pub address: HwAddr,
    /// The IPoIB address of the broadcast group, while there is a link.
    pub broadcast: Option<HwAddr>,
}

/// Who knows both addresses of other hosts.
pub trait Neighbors {
    /// The IPoIB address behind an Ethernet address.
    fn address_of(&self, mac: MacAddr) -> Option<HwAddr>;
    /// The Ethernet address of an interface. It has a LID in it, which an IPoIB address does not.
    fn mac_of(&self, address: &HwAddr) -> Option<MacAddr>;
}

/// Why a frame cannot be rewritten. It is dropped and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untranslatable {
    /// It is not what its headers say.
    Malformed,
    /// Down: it speaks for a host that is neither this one nor known.
    Foreign,
    /// Up: it names a host whose Ethernet address is not known.
    Unknown(HwAddr),
    /// It does not fit the buffer, or the MTU.
    NoSpace,
}

/// Why a frame goes no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refused {
    /// Shorter than its headers, or than they say.
    TooShort,
    /// Longer than the MTU.
    TooLong,
    /// Of a protocol that IPoIB does not carry.
    EtherType,
    /// To an Ethernet group address behind which there is no IP group.
    NoGroup,
}

/// What must be done to a frame. Offsets are from the beginning of the IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Carried as it is.
    Plain,
    /// ARP or reverse ARP: rewritten.
    Arp,
    /// Neighbor Discovery: rewritten.
    Neighbor {
        /// Where the ICMPv6 header is.
        icmp_at: usize,
    },
    /// DHCP: rewritten.
    Dhcp(dhcp::Speaker),
    /// IGMP: carried as it is; on the way down [`reports`] tells what the host joins.
    Igmp {
        /// Where the IGMP header is.
        at: usize,
    },
    /// MLD: carried as it is; on the way down [`reports`] tells what the host joins.
    Mld {
        /// Where the ICMPv6 header is.
        at: usize,
    },
}

impl Kind {
    /// Whether the frame is rewritten rather than carried as it is.
    pub const fn is_rewritten(self) -> bool {
        matches!(self, Self::Arp | Self::Neighbor { .. } | Self::Dhcp(_))
    }

    /// Whether the whole frame must be seen: to be rewritten, or to be listened to.
    pub const fn needs_all(self) -> bool {
        !matches!(self, Self::Plain)
    }

    /// From the beginning of what follows the Ethernet or IPoIB header: `head` of `len` bytes. Also the IP
    /// destination, if that is a group. `None` if `len` is less than the headers say.
    fn of(ethertype: EtherType, head: &[u8], len: usize) -> Option<(Self, Option<IpGroup>)> {
        match ethertype {
            EtherType::IPV4 => {
                let header = Ipv4::parse(head, len)?;
                let kind = match header.protocol {
                    _ if header.is_fragment => Self::Plain,
                    ip::UDP => Self::of_udp(head, header.header_len),
                    ip::IGMP => Self::Igmp { at: header.header_len },
                    _ => Self::Plain,
                };
                Some((kind, IpGroup::v4(header.destination)))
            }
            EtherType::IPV6 => {
                let header = Ipv6::parse(head, len)?;
                let kind = match header.payload(head) {
                    Some((ip::ICMPV6, at)) => match head.get(at) {
                        Some(&kind) if ndisc::Message::from_type(kind).is_some() => {
                            Self::Neighbor { icmp_at: at }
                        }
                        Some(&kind) if mld::is_report(kind) => Self::Mld { at },
                        _ => Self::Plain,
                    },
                    // Extension headers that reach beyond the lookahead hide no message that RFC 4861 or RFC
                    // 3810 would have there.
                    _ => Self::Plain,
                };
                Some((kind, IpGroup::v6(header.destination)))
            }
            _ => (len >= arp::Packet::<MacAddr>::LEN).then_some((Self::Arp, None)),
        }
    }

    fn of_udp(head: &[u8], at: usize) -> Self {
        let ports = wire::be16(head, at).zip(wire::be16(head, at + 2));
        ports
            .and_then(|(source, destination)| dhcp::Speaker::from_ports(source, destination))
            .map_or(Self::Plain, Self::Dhcp)
    }
}

/// Where a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// To one station.
    Station(MacAddr),
    /// To every station.
    Broadcast,
    /// To an IP group.
    Group(IpGroup),
}

/// The plan for a frame on its way down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Down {
    /// To whom.
    pub destination: Destination,
    /// The protocol.
    pub ethertype: EtherType,
    /// What must be done.
    pub kind: Kind,
}

impl Down {
    /// From the first bytes of a frame of `len` bytes: [`LOOKAHEAD`] of them, or all. `ip_mtu` is the link's.
    pub fn new(head: &[u8], len: usize, ip_mtu: usize) -> Result<Self, Refused> {
        let (header, payload) = head.split_first_chunk().ok_or(Refused::TooShort)?;
        let header = ethernet::Header::from_bytes(header);
        if !header.ethertype.is_carried() {
            return Err(Refused::EtherType);
        }
        let len = len.checked_sub(ethernet::Header::LEN).ok_or(Refused::TooShort)?;
        if len > ip_mtu {
            return Err(Refused::TooLong);
        }
        let (kind, group) = Kind::of(header.ethertype, payload, len).ok_or(Refused::TooShort)?;
        let destination = if !header.destination.is_group() {
            Destination::Station(header.destination)
        } else if header.destination.is_broadcast() || kind == Kind::Arp {
            Destination::Broadcast
        } else {
            // Network load balancing sends unicast IP to a group address: then the address must do.
            let group = group.or_else(|| IpGroup::assumed(header.destination));
            Destination::Group(group.ok_or(Refused::NoGroup)?)
        };
        Ok(Self { destination, ethertype: header.ethertype, kind })
    }

    /// The IPoIB header.
    pub const fn header(&self) -> [u8; encap::HEADER_LEN] {
        encap::Header { ethertype: self.ethertype }.to_bytes()
    }

    /// Rewrites a frame, all of whose bytes are in `frame`, into `out`: IPoIB header and payload. Answers
    /// their length. `out` needs room for the link's MTU and 4 bytes to hold whatever can be sent. A frame
    /// that needs no rewriting is copied.
    pub fn rewrite(
        &self,
        frame: &[u8],
        context: &Context,
        neighbors: &impl Neighbors,
        out: &mut [u8],
    ) -> Result<usize, Untranslatable> {
        let packet = frame.get(ethernet::Header::LEN..).ok_or(Untranslatable::Malformed)?;
        let (header, body) = out.split_first_chunk_mut().ok_or(Untranslatable::NoSpace)?;
        *header = self.header();
        let len = match self.kind {
            Kind::Arp => {
                let packet = arp::Packet::parse(packet).ok_or(Untranslatable::Malformed)?;
                let packet =
                    arp::to_infiniband(&packet, context, neighbors).ok_or(Untranslatable::Foreign)?;
                packet.emit(body).ok_or(Untranslatable::NoSpace)?
            }
            Kind::Neighbor { icmp_at } => ndisc::to_infiniband(packet, icmp_at, context, neighbors, body)?,
            Kind::Dhcp(speaker) => dhcp::to_infiniband(packet, speaker, context, body)?,
            Kind::Plain | Kind::Igmp { .. } | Kind::Mld { .. } => {
                wire::put(body, 0, packet).ok_or(Untranslatable::NoSpace)?;
                packet.len()
            }
        };
        Ok(encap::HEADER_LEN + len)
    }
}

/// Calls `change` for each group that a frame of kind [`Kind::Igmp`] or [`Kind::Mld`] says this host joined
/// (`true`) or left (`false`). `packet` begins with the IP header.
pub fn reports(kind: Kind, packet: &[u8], change: impl FnMut(IpGroup, bool)) {
    match kind {
        Kind::Igmp { at } => {
            let end = Ipv4::parse(packet, packet.len()).map_or(0, |header| header.total_len);
            igmp::reports(packet.get(at..end).unwrap_or(&[]), change);
        }
        Kind::Mld { at } => {
            let end = Ipv6::parse(packet, packet.len()).map_or(0, |header| header.total_len);
            mld::reports(packet.get(at..end).unwrap_or(&[]), change);
        }
        _ => {}
    }
}

/// The plan for a frame on its way up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Up {
    /// The protocol.
    pub ethertype: EtherType,
    /// What must be done.
    pub kind: Kind,
}

impl Up {
    /// From a received payload: the IPoIB header and what follows, all of it.
    pub fn new(payload: &[u8]) -> Result<Self, Refused> {
        let (header, packet) = payload.split_first_chunk().ok_or(Refused::TooShort)?;
        let ethertype = encap::Header::from_bytes(header).ethertype;
        if !ethertype.is_carried() {
            return Err(Refused::EtherType);
        }
        let (kind, _) = Kind::of(ethertype, packet, packet.len()).ok_or(Refused::TooShort)?;
        if kind == Kind::Arp && packet.len() < arp::Packet::<HwAddr>::LEN {
            return Err(Refused::TooShort);
        }
        Ok(Self { ethertype, kind })
    }

    /// The hardware address that the frame gives as its sender's own, if it gives one. `packet` is what
    /// follows the IPoIB header.
    pub fn claim(&self, packet: &[u8]) -> Result<Option<HwAddr>, Untranslatable> {
        match self.kind {
            Kind::Arp => arp::Packet::<HwAddr>::parse(packet)
                .map(|packet| Some(packet.sender))
                .ok_or(Untranslatable::Malformed),
            Kind::Neighbor { icmp_at } => ndisc::claim(packet, icmp_at),
            _ => Ok(None),
        }
    }

    /// Rewrites what follows the IPoIB header, in place. `sender` is the Ethernet address of whoever sent the
    /// frame, `claim` what [`Self::claim`] gave. Answers the new length; a frame that needs no rewriting
    /// keeps its own. On an error the frame is as it was.
    pub fn rewrite(
        &self,
        packet: &mut [u8],
        sender: MacAddr,
        claim: Option<&HwAddr>,
        context: &Context,
        neighbors: &impl Neighbors,
    ) -> Result<usize, Untranslatable> {
        match self.kind {
            Kind::Arp => {
                let arp = arp::Packet::<HwAddr>::parse(packet).ok_or(Untranslatable::Malformed)?;
                arp::to_ethernet(&arp, sender, context, neighbors).emit(packet).ok_or(Untranslatable::NoSpace)
            }
            Kind::Neighbor { icmp_at } => {
                let own = claim.map(|claim| (claim, sender));
                ndisc::to_ethernet(packet, icmp_at, own, context, neighbors)
            }
            Kind::Dhcp(speaker) => dhcp::to_ethernet(packet, speaker, sender, context),
            Kind::Plain | Kind::Igmp { .. } | Kind::Mld { .. } => Ok(packet.len()),
        }
    }
}

/// The Ethernet destination of a received frame: ours if it has no GRH or one to our port, else its group's.
/// `None` if the GRH is to another port, or to a group that is none of an IPoIB link's.
pub fn destination_of(grh: Option<&Grh>, context: &Context) -> Option<MacAddr> {
    let Some(grh) = grh else { return Some(context.mac) };
    if grh.destination.is_multicast() {
        Mgid::parse(grh.destination).map(Mgid::to_mac)
    } else {
        // A port has several GIDs, but one GUID in those made from its prefix; others are not ours to judge.
        (grh.destination.guid() == context.address.gid.guid()).then_some(context.mac)
    }
}

#[cfg(test)]
pub(super) mod testing {
    //! Two hosts that know each other.

    use super::{Context, Neighbors};
    use crate::ipoib::mgid::{Link, Mgid};
    use crate::ipoib::scheme::qpn_lid;
    use crate::ipoib::{Gid, HwAddr, Lid, MacAddr, PKey, Qpn};

    fn host(qpn: u32, guid: u8) -> Context {
        let qpn = Qpn::new(qpn).unwrap();
        let gid = Gid::from_parts(Gid::DEFAULT_PREFIX, [0x00, 0x02, 0xc9, 0x03, 0, 0, 0x10, guid]);
        let broadcast = Mgid::broadcast(Link::new(PKey::DEFAULT)).gid();
        Context {
            mac: qpn_lid::local(qpn),
            address: HwAddr::new(qpn, gid),
            broadcast: Some(HwAddr::new(Qpn::MULTICAST, broadcast)),
        }
    }

    /// One.
    pub(crate) fn alice() -> Context {
        host(0x48, 1)
    }

    /// The other. Its QPN is the same, as it well may be, and so is its local MAC.
    pub(crate) fn bob() -> Context {
        host(0x48, 2)
    }

    /// Knows both.
    pub(crate) struct Fabric;

    impl Fabric {
        /// How others see a host: its LID is the last byte of its GUID.
        pub(crate) fn mac(host: &Context) -> MacAddr {
            qpn_lid::remote(host.address.qpn, Lid::new(u16::from(host.address.gid.guid()[7])))
        }
    }

    impl Neighbors for Fabric {
        fn address_of(&self, mac: MacAddr) -> Option<HwAddr> {
            [alice(), bob()].into_iter().find(|host| Self::mac(host) == mac).map(|host| host.address)
        }

        fn mac_of(&self, address: &HwAddr) -> Option<MacAddr> {
            [alice(), bob()]
                .into_iter()
                .find(|host| host.address.same_interface(address))
                .map(|host| Self::mac(&host))
        }
    }
}

#[cfg(test)]
#[path = "translate_tests.rs"]
mod tests;
