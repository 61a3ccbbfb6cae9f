//! Neighbor Discovery (RFC 4861): its link-layer address options, over Ethernet and over InfiniBand.
//!
//! ```text
//! Ethernet (RFC 2464, section 6):      | type 1 | 1 1 | MAC 6 |
//! InfiniBand (RFC 4391, section 9.3):  | type 1 | 3 1 | 0 2 | IPoIB address 20 |
//! ```
//!
//! Rewriting an option changes the length of the message by 16 bytes, so the IPv6 payload length and the
//! ICMPv6 checksum follow. All other options are carried as they are, in their order.

use super::checksum::{self, Sum};
use super::hwaddr::HwAddr;
use super::ip::{ICMPV6, Ipv6};
use super::mac::MacAddr;
use super::translate::{Context, Neighbors, Untranslatable};
use super::wire;

/// Bytes of a link-layer address option over Ethernet.
pub const ETHERNET_OPTION: usize = 8;
/// Bytes of a link-layer address option over InfiniBand.
pub const INFINIBAND_OPTION: usize = 24;
const SOURCE: u8 = 1;
const TARGET: u8 = 2;
/// Where the address is in an InfiniBand option (Linux include/net/ndisc.h, ndisc_addr_option_pad, has the
/// same pad).
const INFINIBAND_ADDRESS: usize = 4;
const CHECKSUM: usize = 2;

/// The messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Message {
    /// Router Solicitation.
    RouterSolicitation = 133,
    /// Router Advertisement.
    RouterAdvertisement = 134,
    /// Neighbor Solicitation.
    NeighborSolicitation = 135,
    /// Neighbor Advertisement.
    NeighborAdvertisement = 136,
    /// Redirect.
    Redirect = 137,
}

impl Message {
    /// From the ICMPv6 type; `None` if it is none of Neighbor Discovery's.
    pub const fn from_type(value: u8) -> Option<Self> {
        match value {
            133 => Some(Self::RouterSolicitation),
            134 => Some(Self::RouterAdvertisement),
            135 => Some(Self::NeighborSolicitation),
            136 => Some(Self::NeighborAdvertisement),
            137 => Some(Self::Redirect),
            _ => None,
        }
    }

    /// Bytes before the options, ICMPv6's four included (RFC 4861, section 4).
    pub const fn fixed_len(self) -> usize {
        match self {
            Self::RouterSolicitation => 8,
            Self::RouterAdvertisement => 16,
            Self::NeighborSolicitation | Self::NeighborAdvertisement => 24,
            Self::Redirect => 40,
        }
    }

    /// The type of the option that names the sender itself; a redirect names another host.
    const fn own_option(self) -> Option<u8> {
        match self {
            Self::RouterSolicitation | Self::RouterAdvertisement | Self::NeighborSolicitation => Some(SOURCE),
            Self::NeighborAdvertisement => Some(TARGET),
            Self::Redirect => None,
        }
    }
}

/// A message in an IPv6 packet, its lengths checked.
struct View<'a> {
    header: Ipv6,
    message: Message,
    /// IPv6 header, extension headers, and the message's fixed part.
    before: &'a [u8],
    options: &'a [u8],
    icmp_at: usize,
}

impl<'a> View<'a> {
    fn new(packet: &'a [u8], icmp_at: usize) -> Result<Self, Untranslatable> {
        const BAD: Untranslatable = Untranslatable::Malformed;
        let header = Ipv6::parse(packet, packet.len()).ok_or(BAD)?;
        let packet = packet.get(..header.total_len).ok_or(BAD)?;
        let [kind, _code] = wire::array(packet, icmp_at).ok_or(BAD)?;
        let message = Message::from_type(kind).ok_or(BAD)?;
        let (before, options) = packet.split_at_checked(icmp_at + message.fixed_len()).ok_or(BAD)?;
        let view = Self { header, message, before, options, icmp_at };
        // RFC 4861, section 6.1 and 7.1: an option of length 0 makes the whole message invalid.
        if Options(options).any(|option| option.is_none()) { Err(BAD) } else { Ok(view) }
    }

    /// The sum of the message with these options.
    fn sum(&self, options: &[u8]) -> Sum {
        sum(&self.header, self.before.get(self.icmp_at..).unwrap_or(&[]), options)
    }
}

/// The sum of a message, its checksum field taken as zero, with the pseudo header.
fn sum(header: &Ipv6, fixed: &[u8], options: &[u8]) -> Sum {
    let (kind, rest) = fixed.split_at_checked(CHECKSUM).unwrap_or((fixed, &[]));
    let len = (fixed.len() + options.len()) as u16;
    checksum::pseudo_v6(header.source, header.destination, ICMPV6, len)
        .bytes(kind)
        .bytes(rest.get(2..).unwrap_or(&[]))
        .bytes(options)
}

/// Writes payload length and checksum of a packet of `len` bytes whose options were rewritten.
fn fix_up(packet: &mut [u8], icmp_at: usize, len: usize, before: Sum, after: Sum) -> Option<()> {
    let payload = u16::try_from(len.checked_sub(Ipv6::LEN)?).ok()?;
    let old = wire::be16(packet, icmp_at + CHECKSUM)?;
    wire::put(packet, PAYLOAD_LEN, &payload.to_be_bytes())?;
    wire::put(packet, icmp_at + CHECKSUM, &checksum::carry_over(old, before, after).to_be_bytes())
}

const PAYLOAD_LEN: usize = 4;

/// Options in order; `None` for one that is malformed, which is the last.
struct Options<'a>(&'a [u8]);

impl<'a> Iterator for Options<'a> {
    type Item = Option<&'a [u8]>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let split = match *self.0 {
            [_, units, ..] if units != 0 => self.0.split_at_checked(usize::from(units) * 8),
            _ => None,
        };
        let (option, rest) = split.unwrap_or_default();
        self.0 = rest;
        Some(split.map(|_| option))
    }
}

/// An option with a link-layer address over Ethernet.
fn ethernet_address(option: &[u8]) -> Option<(u8, MacAddr)> {
    match *option {
        [kind @ (SOURCE | TARGET), 1, a, b, c, d, e, f] => Some((kind, MacAddr::new([a, b, c, d, e, f]))),
        _ => None,
    }
}

/// An option with a link-layer address over InfiniBand.
fn infiniband_address(option: &[u8]) -> Option<(u8, HwAddr)> {
    match *option {
        [kind @ (SOURCE | TARGET), 3, ..] => {
            wire::array(option, INFINIBAND_ADDRESS).map(|address| (kind, HwAddr::parse(&address)))
        }
        _ => None,
    }
}

/// Whether an option has the type of a link-layer address but not the length that the medium gives it.
fn is_misfit(option: &[u8], units: u8) -> bool {
    matches!(*option, [SOURCE | TARGET, len, ..] if len != units)
}

/// From Windows to the wire: `packet` is an IPv6 packet whose ICMPv6 header is at `icmp_at`. Writes the
/// packet to `out`, and answers its length.
///
/// A redirect's target that is not known is left out: the option is not mandatory (RFC 4861, section 4.5).
pub fn to_infiniband(
    packet: &[u8],
    icmp_at: usize,
    context: &Context,
    neighbors: &impl Neighbors,
    out: &mut [u8],
) -> Result<usize, Untranslatable> {
    let view = View::new(packet, icmp_at)?;
    let start = view.before.len();
    wire::put(out, 0, view.before).ok_or(Untranslatable::NoSpace)?;
    let mut end = start;
    for option in Options(view.options).flatten() {
        if is_misfit(option, 1) {
            return Err(Untranslatable::Malformed);
        }
        let Some((kind, mac)) = ethernet_address(option) else {
            wire::put(out, end, option).ok_or(Untranslatable::NoSpace)?;
            end += option.len();
            continue;
        };
        let address = if mac == context.mac { Some(context.address) } else { neighbors.address_of(mac) };
        let Some(address) = address else {
            if view.message == Message::Redirect {
                continue;
            }
            return Err(Untranslatable::Foreign);
        };
        wire::put(out, end, &[kind, 3, 0, 0]).ok_or(Untranslatable::NoSpace)?;
        wire::put(out, end + INFINIBAND_ADDRESS, &address.to_bytes()).ok_or(Untranslatable::NoSpace)?;
        end += INFINIBAND_OPTION;
    }
    let after = view.sum(out.get(start..end).ok_or(Untranslatable::NoSpace)?);
    fix_up(out, icmp_at, end, view.sum(view.options), after).ok_or(Untranslatable::Malformed)?;
    Ok(end)
}

/// The hardware address that a message on the wire gives as its sender's own, if it gives one.
pub fn claim(packet: &[u8], icmp_at: usize) -> Result<Option<HwAddr>, Untranslatable> {
    let view = View::new(packet, icmp_at)?;
    if Options(view.options).flatten().any(|option| is_misfit(option, 3)) {
        return Err(Untranslatable::Malformed);
    }
    let own = view.message.own_option();
    let found = Options(view.options).flatten().filter_map(infiniband_address);
    Ok(found.into_iter().find(|&(kind, _)| Some(kind) == own).map(|(_, address)| address))
}

/// From the wire to Windows, in place: the message only becomes shorter. `sender` is the Ethernet address of
/// whoever sent it, whose IPoIB address is `claim`. Answers the packet's length; on an error nothing has
/// changed.
///
/// A redirect's target that is not known is left out, and Windows then asks for it itself.
pub fn to_ethernet(
    packet: &mut [u8],
    icmp_at: usize,
    sender: Option<(&HwAddr, MacAddr)>,
    context: &Context,
    neighbors: &impl Neighbors,
) -> Result<usize, Untranslatable> {
    let view = View::new(packet, icmp_at)?;
    let mac_of = |address: &HwAddr| match sender {
        Some((own, mac)) if own.same_interface(address) => Some(mac),
        _ if address.same_interface(&context.address) => Some(context.mac),
        _ => neighbors.mac_of(address),
    };
    for option in Options(view.options).flatten() {
        if is_misfit(option, 3) {
            return Err(Untranslatable::Malformed);
        }
        if let Some((_, address)) = infiniband_address(option)
            && view.message != Message::Redirect
            && mac_of(&address).is_none()
        {
            return Err(Untranslatable::Unknown(address));
        }
    }
    // From here on nothing fails.
    let (header, start, total) = (view.header, view.before.len(), view.header.total_len);
    let before = view.sum(view.options);
    let (mut read, mut write) = (start, start);
    while read < total {
        let Some(len) = packet.get(read + 1).map(|&units| usize::from(units) * 8).filter(|&len| len != 0)
        else {
            break;
        };
        if let Some((kind, address)) = packet.get(read..read + len).and_then(infiniband_address) {
            if let Some(mac) = mac_of(&address) {
                let [a, b, c, d, e, f] = mac.to_bytes();
                wire::put(packet, write, &[kind, 1, a, b, c, d, e, f]);
                write += ETHERNET_OPTION;
            }
        } else {
            wire::move_down(packet, read, write, len);
            write += len;
        }
        read += len;
    }
    let fixed = packet.get(icmp_at..start).unwrap_or(&[]);
    let after = sum(&header, fixed, packet.get(start..write).unwrap_or(&[]));
    fix_up(packet, icmp_at, write, before, after);
    Ok(write)
}

#[cfg(test)]
#[path = "ndisc_tests.rs"]
mod tests;
