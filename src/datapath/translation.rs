//! Between a frame as Windows has it and a packet as IPoIB has it.

use super::rx::rejection;
use crate::adapter::stats::Drop;
use crate::adapter::{Directory, Whither};
use crate::ipoib::ethernet::{self, EtherType};
use crate::ipoib::{IpGroup, MacAddr};
use crate::kernel::nbl::SendBuffer;
use crate::peers::{Source, Time};

/// Bytes at the head of a frame that tell how it is to be sent.
const HEAD: usize = 96;

/// How a frame is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Where it goes.
    pub destination: Whither,
    /// What it carries.
    pub ethertype: EtherType,
    /// Whether it names hardware addresses, and must be rewritten.
    pub rewrite: bool,
}

/// What the head of a frame says about how it is to be sent.
pub(crate) fn plan_of(buffer: &SendBuffer) -> Result<Plan, Drop> {
    let mut copy = [0; HEAD];
    let length = buffer.data_length();
    let head = match buffer.contiguous(HEAD.min(length)) {
        Some(head) => head,
        None => {
            let copied = buffer.copy_to(0, &mut copy);
            copy.get(..copied).unwrap_or_default()
        }
    };
    let header = ethernet::Header::parse(head).ok_or(Drop::SendTooShort)?;
    if !header.ethertype.is_carried() {
        return Err(Drop::SendEthertype);
    }
    let _: Option<IpGroup> = None;
    Ok(Plan {
        destination: if header.destination.is_broadcast() {
            Whither::Everybody
        } else {
            Whither::Station(header.destination)
        },
        ethertype: header.ethertype,
        rewrite: false,
    })
}

/// Rewrites a frame into `memory`, IPoIB header first. Answers the length.
pub(crate) fn rewrite(
    _plan: &Plan,
    _buffer: &SendBuffer,
    _directory: &Directory,
    _memory: &mut [u8],
) -> Result<usize, Drop> {
    Err(Drop::SendMalformed)
}

/// Learns from a received packet, and translates it in place. Answers the sender's Ethernet address and the length.
pub(crate) fn up(
    directory: &mut Directory,
    source: &Source,
    _ethertype: EtherType,
    payload: &mut [u8],
    _mac: MacAddr,
    now: Time,
) -> Result<(MacAddr, usize), Drop> {
    let mac = directory.observe(source, now).map_err(rejection)?;
    Ok((mac, payload.len()))
}
