//! DHCP over InfiniBand (RFC 4390), towards a client or a server that believes in Ethernet.
//!
//! An IPoIB address does not fit a DHCP message. So on the wire a client's message has hardware type 32,
//! length 0 and a zero `chaddr`, asks for broadcast answers (nobody could resolve it yet), and is told from
//! others by its client identifier alone. What Windows or dhclient say instead is Ethernet's: type 1, the
//! MAC, and often a client identifier that is the MAC again. The local MAC is no identifier, since under the
//! QPN+LID scheme hosts share it ([`super::scheme`]); so it is replaced by one made from the port GUID, in
//! the form that InfiniBand hosts are configured with everywhere: type 255, IAID 0, DUID-EN of enterprise 713
//! and the GUID (RFC 4361, section 6.1). A client identifier of any other form is its owner's choice and is
//! carried as it is.
//!
//! | | down | up |
//! |---|---|---|
//! | client's message | type 32, length 0, broadcast, identifier | type 1, the sender's MAC |
//! | server's message | type 32, length 0 | type 1, our MAC, our identifier turned back into the MAC |
//!
//! Messages of relay agents (from port 67 to port 67) belong to the networks behind them and are left alone.

use super::checksum::{self, Sum};
use super::hwaddr::HwAddr;
use super::ip::{self, Ipv4};
use super::mac::MacAddr;
use super::translate::{Context, Untranslatable};
use super::wire;

/// Which side speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// A client, to a server's port or that of a PXE boot server.
    Client,
    /// A server.
    Server,
}

const CLIENT_PORT: u16 = 68;
const SERVER_PORT: u16 = 67;
const BOOT_SERVER_PORT: u16 = 4011;

impl Speaker {
    /// From the UDP ports; `None` if this is no DHCP between client and server.
    pub const fn from_ports(source: u16, destination: u16) -> Option<Self> {
        match (source, destination) {
            (CLIENT_PORT, SERVER_PORT | BOOT_SERVER_PORT) => Some(Self::Client),
            (SERVER_PORT | BOOT_SERVER_PORT, CLIENT_PORT) => Some(Self::Server),
            _ => None,
        }
    }
}

const UDP_LEN: usize = 8;
/// Offsets in the message (RFC 2131, section 2).
const OP: usize = 0;
const HTYPE: usize = 1;
const FLAGS: usize = 10;
const CIADDR: usize = 12;
const CHADDR: usize = 28;
const OPTIONS: usize = 240;
const COOKIE: [u8; 4] = [99, 130, 83, 99];
const BROADCAST: u8 = 0x80;
const PAD: u8 = 0;
const END: u8 = 255;
const CLIENT_ID: u8 = 61;
const ETHERNET: u8 = 1;

/// Bytes of the client identifier, type included.
pub const IDENTIFIER_LEN: usize = 20;
const IDENTIFIER_PREFIX: [u8; 12] = [0xff, 0, 0, 0, 0, 0x00, 0x02, 0x00, 0x00, 0x02, 0xc9, 0x00];

/// The client identifier of the port with this GUID.
pub const fn identifier(guid: [u8; 8]) -> [u8; IDENTIFIER_LEN] {
    let mut identifier = [0; IDENTIFIER_LEN];
    wire::set::<0, 12, 20>(&mut identifier, IDENTIFIER_PREFIX);
    wire::set::<12, 8, 20>(&mut identifier, guid);
    identifier
}

/// A message in an IPv4 packet, its lengths checked.
struct View<'a> {
    header: Ipv4,
    /// IPv4 and UDP headers and the message up to its options.
    fixed: &'a [u8],
    options: &'a [u8],
    message_at: usize,
}

impl<'a> View<'a> {
    fn new(packet: &'a [u8], speaker: Speaker) -> Result<Self, Untranslatable> {
        const BAD: Untranslatable = Untranslatable::Malformed;
        let header = Ipv4::parse(packet, packet.len()).ok_or(BAD)?;
        let udp_at = header.header_len;
        let udp_len = usize::from(wire::be16(packet, udp_at + 4).ok_or(BAD)?);
        if udp_len < UDP_LEN + OPTIONS || udp_at + udp_len > header.total_len {
            return Err(BAD);
        }
        let packet = packet.get(..udp_at + udp_len).ok_or(BAD)?;
        let message_at = udp_at + UDP_LEN;
        let (fixed, options) = packet.split_at_checked(message_at + OPTIONS).ok_or(BAD)?;
        let [op] = wire::array(fixed, message_at + OP).ok_or(BAD)?;
        let cookie = wire::array(fixed, message_at + OPTIONS - 4).ok_or(BAD)?;
        let expected = match speaker {
            Speaker::Client => 1,
            Speaker::Server => 2,
        };
        if op == expected && cookie == COOKIE && Options(options).all(|option| option.is_some()) {
            Ok(Self { header, fixed, options, message_at })
        } else {
            Err(BAD)
        }
    }

    /// The sum of UDP header and message, the checksum field taken as zero, with the pseudo header.
    fn sum(&self, fixed: &[u8], options: &[u8]) -> Sum {
        let udp = fixed.get(self.header.header_len..).unwrap_or(&[]);
        let (before, rest) = udp.split_at_checked(6).unwrap_or((udp, &[]));
        let len = (udp.len() + options.len()) as u16;
        checksum::pseudo_v4(self.header.source, self.header.destination, ip::UDP, len)
            .bytes(before)
            .bytes(rest.get(2..).unwrap_or(&[]))
            .bytes(options)
    }
}

/// Options in order, padding left out; `None` for one that is cut off, which is the last. A missing end is
/// tolerated.
struct Options<'a>(&'a [u8]);

impl<'a> Iterator for Options<'a> {
    type Item = Option<(u8, &'a [u8])>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match *self.0 {
                [] | [END, ..] => return None,
                [PAD, ref rest @ ..] => self.0 = rest,
                [code, len, ref rest @ ..] => {
                    let split = rest.split_at_checked(usize::from(len));
                    let (value, rest) = split.unwrap_or_default();
                    self.0 = rest;
                    return Some(split.map(|_| (code, value)));
                }
                [_] => {
                    self.0 = &[];
                    return Some(None);
                }
            }
        }
    }
}

/// The client identifier that Windows makes of a MAC.
fn is_mac_identifier(value: &[u8], mac: MacAddr) -> bool {
    matches!(*value, [ETHERNET, a, b, c, d, e, f] if mac == MacAddr::new([a, b, c, d, e, f]))
}

/// From Windows to the wire. Writes the packet to `out`, and answers its length.
pub fn to_infiniband(
    packet: &[u8],
    speaker: Speaker,
    context: &Context,
    out: &mut [u8],
) -> Result<usize, Untranslatable> {
    const FULL: Untranslatable = Untranslatable::NoSpace;
    let view = View::new(packet, speaker)?;
    let at = view.message_at;
    let start = view.fixed.len();
    wire::put(out, 0, view.fixed).ok_or(FULL)?;
    wire::put(out, at + HTYPE, &[HwAddr::ARP_TYPE as u8, 0]).ok_or(FULL)?;
    wire::put(out, at + CHADDR, &[0; 16]).ok_or(FULL)?;
    let end = if speaker == Speaker::Server {
        wire::put(out, start, view.options).ok_or(FULL)?;
        start + view.options.len()
    } else {
        // RFC 4390, section 2.2. A client that has an address is answered at it.
        if wire::array(view.fixed, at + CIADDR) == Some([0; 4])
            && let Some(flags) = out.get_mut(at + FLAGS)
        {
            *flags |= BROADCAST;
        }
        client_options(view.options, start, context, out)?
    };
    // BOOTP relays may drop what is shorter than before; padding follows the end option.
    let padded = end.max(start + view.options.len());
    out.get_mut(end..padded).ok_or(FULL)?.fill(PAD);
    let after = view.sum_of(out, start, padded).ok_or(FULL)?;
    fix_up(out, &view.header, padded, view.sum(view.fixed, view.options), after).ok_or(FULL)?;
    Ok(padded)
}

/// The options of a client's message with an identifier that is unique on the wire. Answers where they end.
fn client_options(
    options: &[u8],
    start: usize,
    context: &Context,
    out: &mut [u8],
) -> Result<usize, Untranslatable> {
    const FULL: Untranslatable = Untranslatable::NoSpace;
    let mut end = start;
    let mut append = |bytes: &[u8]| {
        wire::put(out, end, bytes).ok_or(FULL)?;
        end += bytes.len();
        Ok(())
    };
    let own = identifier(context.address.gid.guid());
    let mut identified = false;
    for (code, value) in Options(options).flatten() {
        let value = match code {
            CLIENT_ID if is_mac_identifier(value, context.mac) => own.as_slice(),
            _ => value,
        };
        identified |= code == CLIENT_ID;
        append(&[code, value.len() as u8])?;
        append(value)?;
    }
    if !identified {
        append(&[CLIENT_ID, IDENTIFIER_LEN as u8])?;
        append(&own)?;
    }
    append(&[END])?;
    Ok(end)
}

impl View<'_> {
    /// The sum of a rewritten packet of `len` bytes whose options begin at `start`. The UDP length in it is
    /// still the old one, so the new one is put in its place.
    fn sum_of(&self, packet: &[u8], start: usize, len: usize) -> Option<Sum> {
        let fixed = packet.get(..start)?;
        let udp_len = u16::try_from(len.checked_sub(self.header.header_len)?).ok()?;
        let old_len = wire::be16(fixed, self.header.header_len + 4)?;
        Some(self.sum(fixed, packet.get(start..len)?).word(!old_len).word(udp_len))
    }
}

/// Writes lengths and checksums of a packet of `len` bytes that was rewritten behind its IPv4 header.
fn fix_up(packet: &mut [u8], header: &Ipv4, len: usize, before: Sum, after: Sum) -> Option<()> {
    const IP_SUM: usize = 10;
    let udp_at = header.header_len;
    let total_len = u16::try_from(len).ok()?;
    let udp_len = u16::try_from(len.checked_sub(udp_at)?).ok()?;
    let old_total = wire::be16(packet, 2)?;
    let ip_sum = checksum::carry_over(
        wire::be16(packet, IP_SUM)?,
        Sum::ZERO.word(old_total),
        Sum::ZERO.word(total_len),
    );
    wire::put(packet, 2, &total_len.to_be_bytes())?;
    wire::put(packet, IP_SUM, &ip_sum.to_be_bytes())?;
    wire::put(packet, udp_at + 4, &udp_len.to_be_bytes())?;
    // Zero means that there is none (RFC 768), and so never comes out of a sum.
    let udp_sum = match wire::be16(packet, udp_at + 6)? {
        0 => 0,
        old => match checksum::carry_over(old, before, after) {
            0 => 0xffff,
            sum => sum,
        },
    };
    wire::put(packet, udp_at + 6, &udp_sum.to_be_bytes())
}

/// From the wire to Windows, in place: nothing becomes longer. `sender` is the Ethernet address of whoever
/// sent it. Answers the packet's length; on an error nothing has changed.
///
/// An answer whose identifier is another port's is left as it is: it reaches every host, and ours must not
/// take it.
pub fn to_ethernet(
    packet: &mut [u8],
    speaker: Speaker,
    sender: MacAddr,
    context: &Context,
) -> Result<usize, Untranslatable> {
    let view = View::new(packet, speaker)?;
    let (at, start, len) = (view.message_at, view.fixed.len(), view.fixed.len() + view.options.len());
    let total_len = view.header.total_len;
    let [hardware] = wire::array(view.fixed, at + HTYPE).ok_or(Untranslatable::Malformed)?;
    let own = identifier(context.address.gid.guid());
    let identifiers = || Options(view.options).flatten().filter(|&(code, _)| code == CLIENT_ID);
    let others = |value: &[u8]| {
        value.len() == IDENTIFIER_LEN && value.starts_with(&IDENTIFIER_PREFIX) && *value != own
    };
    if u16::from(hardware) != HwAddr::ARP_TYPE
        || speaker == Speaker::Server && identifiers().any(|(_, value)| others(value))
    {
        return Ok(total_len);
    }
    let is_ours = speaker == Speaker::Server && identifiers().any(|(_, value)| *value == own);
    let before = view.sum(view.fixed, view.options);
    let header = view.header;
    let mac = if speaker == Speaker::Client { sender } else { context.mac };
    wire::put(packet, at + HTYPE, &[ETHERNET, MacAddr::LEN as u8]);
    wire::put(packet, at + CHADDR, &mac.to_bytes());
    if is_ours {
        restore_identifier(packet, start, len, context);
    }
    // Lengths are as they were: what the identifier leaves behind is padding.
    let after = sum_after(&header, packet, start, len);
    if let Some(old) = wire::be16(packet, header.header_len + 6).filter(|&old| old != 0) {
        let sum = match checksum::carry_over(old, before, after) {
            0 => 0xffff,
            sum => sum,
        };
        wire::put(packet, header.header_len + 6, &sum.to_be_bytes());
    }
    Ok(total_len)
}

fn sum_after(header: &Ipv4, packet: &[u8], start: usize, len: usize) -> Sum {
    let (fixed, options) =
        packet.get(..len).and_then(|packet| packet.split_at_checked(start)).unwrap_or((&[], &[]));
    View { header: *header, fixed, options, message_at: 0 }.sum(fixed, options)
}

/// Turns our client identifier, among the options between `start` and `end`, back into Windows's, and pads at
/// the end.
fn restore_identifier(packet: &mut [u8], start: usize, end: usize, context: &Context) {
    let own = identifier(context.address.gid.guid());
    let [a, b, c, d, e, f] = context.mac.to_bytes();
    let (mut read, mut write) = (start, start);
    while read < end {
        let len = match packet.get(read..end) {
            Some([PAD, ..]) => 1,
            None | Some([] | [END, ..] | [_]) => break,
            Some([_, len, ..]) => 2 + usize::from(*len),
        };
        if let Some([CLIENT_ID, _, value @ ..]) = packet.get(read..read + len)
            && *value == own
        {
            let restored = [CLIENT_ID, 7, ETHERNET, a, b, c, d, e, f];
            wire::put(packet, write, &restored);
            write += restored.len();
        } else {
            wire::move_down(packet, read, write, len);
            write += len;
        }
        read += len;
    }
    let rest = end.saturating_sub(read);
    wire::move_down(packet, read, write, rest);
    if let Some(padding) = packet.get_mut(write + rest..end) {
        padding.fill(PAD);
    }
}

#[cfg(test)]
#[path = "dhcp_tests.rs"]
mod tests;
