//! Between a frame as Windows has it and a packet as IPoIB has it: [`crate::ipoib::translate`] applied to NDIS's
//! buffers and to the directory of peers.

use super::rx::rejection;
use crate::adapter::stats::Drop;
use crate::adapter::{Directory, Peers};
use crate::ipoib::translate::{Down, LOOKAHEAD, Refused, Untranslatable, Up, reports};
use crate::ipoib::{IpGroup, MacAddr, ethernet};
use crate::kernel::nbl::SendBuffer;
use crate::peers::{Source, Time};

/// An IGMP or MLD message that is looked into: larger ones exist, but not on a host's few groups.
const REPORT: usize = 512;
/// Changes of membership that are taken from one message.
const CHANGES: usize = 32;

/// What the head of a frame says about how it is to be sent.
pub(crate) fn plan_of(buffer: &SendBuffer, ip_mtu: usize) -> Result<Down, Drop> {
    let mut copy = [0; LOOKAHEAD];
    let length = buffer.data_length();
    let head = if let Some(head) = buffer.contiguous(LOOKAHEAD.min(length)) {
        head
    } else {
        let copied = buffer.copy_to(0, &mut copy);
        copy.get(..copied).unwrap_or_default()
    };
    Down::new(head, length, ip_mtu).map_err(|refused| match refused {
        Refused::TooShort => Drop::SendTooShort,
        Refused::TooLong => Drop::SendTooLong,
        Refused::EtherType => Drop::SendEthertype,
        Refused::NoGroup => Drop::SendNoPeer,
    })
}

/// Rewrites a frame into `memory`, IPoIB header first. `scratch` takes the frame if it does not lie in one piece.
/// Answers the length.
pub(crate) fn rewrite(
    plan: &Down,
    buffer: &SendBuffer,
    peers: &Peers,
    memory: &mut [u8],
    scratch: &mut [u8],
) -> Result<usize, Drop> {
    let length = buffer.data_length();
    let frame = if let Some(frame) = buffer.contiguous(length) {
        frame
    } else {
        let place = scratch.get_mut(..length).ok_or(Drop::SendTooLong)?;
        if buffer.copy_to(0, place) != length {
            return Err(Drop::SendNoList);
        }
        place
    };
    let context = peers.context.as_ref().ok_or(Drop::SendNotReady)?;
    plan.rewrite(frame, context, &peers.directory, memory).map_err(|error| match error {
        Untranslatable::NoSpace => Drop::SendTooLong,
        Untranslatable::Malformed | Untranslatable::Foreign | Untranslatable::Unknown(_) => {
            Drop::SendMalformed
        }
    })
}

/// Calls `change` for each group that the frame says this host joined or left, as IGMP and MLD do.
pub(crate) fn listen(plan: &Down, buffer: &SendBuffer, mut change: impl FnMut(&[(IpGroup, bool)])) {
    let mut copy = [0; REPORT];
    let length = buffer.data_length();
    let frame = if let Some(frame) = buffer.contiguous(length) {
        frame
    } else {
        let copied = buffer.copy_to(0, &mut copy);
        copy.get(..copied).unwrap_or_default()
    };
    let mut changes = [(IpGroup::ALL_HOSTS, false); CHANGES];
    let mut count = 0;
    reports(plan.kind, frame.get(ethernet::Header::LEN..).unwrap_or_default(), |group, joined| {
        if let Some(place) = changes.get_mut(count) {
            *place = (group, joined);
            count += 1;
        }
    });
    if let Some(changes) = changes.get(..count).filter(|changes| !changes.is_empty()) {
        change(changes);
    }
}

/// Learns from a received packet, and translates it in place. `packet` is what follows the IPoIB header. Answers the
/// sender's Ethernet address and the packet's new length.
pub(crate) fn up(
    peers: &mut Peers,
    plan: Up,
    source: &Source,
    packet: &mut [u8],
    now: Time,
) -> Result<(MacAddr, usize), Drop> {
    let malformed = malformed(plan);
    let claim = plan.claim(packet).map_err(|_| malformed)?;
    let Peers { directory, context } = peers;
    let sender = match &claim {
        Some(claim) => directory.claim(source, claim, now),
        None => Directory::observe(directory, source, now),
    }
    .map_err(rejection)?;
    if !plan.kind.is_rewritten() {
        return Ok((sender, packet.len()));
    }
    let context = context.as_ref().ok_or(Drop::ReceivePaused)?;
    let length = plan.rewrite(packet, sender, claim.as_ref(), context, directory).map_err(|_| malformed)?;
    Ok((sender, length))
}

/// What a packet of this kind is counted as when it makes no sense.
fn malformed(plan: Up) -> Drop {
    use crate::ipoib::translate::Kind;
    match plan.kind {
        Kind::Arp => Drop::ReceiveArp,
        Kind::Neighbor { .. } => Drop::ReceiveNd,
        Kind::Dhcp(_) => Drop::ReceiveDhcp,
        Kind::Plain | Kind::Igmp { .. } | Kind::Mld { .. } => Drop::ReceiveTooShort,
    }
}
