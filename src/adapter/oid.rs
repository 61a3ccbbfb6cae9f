//! OID requests as a pure protocol: which ones there are, how an answer is written, how a set is understood.
//!
//! Nothing here changes the adapter: [`query`] writes into the caller's buffer from a [`View`], [`parse_set`]
//! turns the caller's bytes into a [`Setting`] which the adapter then applies. Buffers that are too small, and
//! values that make no sense, are the documented statuses, never a fault. Integers are in host order
//! (little-endian), as NDIS passes C structures.

use super::stats::{Cast, Drop, Statistics};
use windows_kernel_sys as sys;

/// What may be asked of an OID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Query only.
    Query,
    /// Set only.
    Set,
    /// Both.
    Both,
}

/// Every OID of the miniport, in the order of the supported list.
pub const TABLE: &[(u32, Access)] = &[
    (sys::OID_GEN_HARDWARE_STATUS, Access::Query),
    (sys::OID_GEN_MAXIMUM_LOOKAHEAD, Access::Query),
    (sys::OID_GEN_MAXIMUM_FRAME_SIZE, Access::Query),
    (sys::OID_GEN_TRANSMIT_BUFFER_SPACE, Access::Query),
    (sys::OID_GEN_RECEIVE_BUFFER_SPACE, Access::Query),
    (sys::OID_GEN_TRANSMIT_BLOCK_SIZE, Access::Query),
    (sys::OID_GEN_RECEIVE_BLOCK_SIZE, Access::Query),
    (sys::OID_GEN_VENDOR_ID, Access::Query),
    (sys::OID_GEN_VENDOR_DESCRIPTION, Access::Query),
    (sys::OID_GEN_CURRENT_PACKET_FILTER, Access::Both),
    (sys::OID_GEN_CURRENT_LOOKAHEAD, Access::Both),
    (sys::OID_GEN_DRIVER_VERSION, Access::Query),
    (sys::OID_GEN_MAXIMUM_TOTAL_SIZE, Access::Query),
    (sys::OID_GEN_MAC_OPTIONS, Access::Query),
    (sys::OID_GEN_MAXIMUM_SEND_PACKETS, Access::Query),
    (sys::OID_GEN_VENDOR_DRIVER_VERSION, Access::Query),
    (sys::OID_GEN_LINK_PARAMETERS, Access::Set),
    (sys::OID_GEN_INTERRUPT_MODERATION, Access::Both),
    (sys::OID_GEN_XMIT_OK, Access::Query),
    (sys::OID_GEN_RCV_OK, Access::Query),
    (sys::OID_GEN_XMIT_ERROR, Access::Query),
    (sys::OID_GEN_RCV_ERROR, Access::Query),
    (sys::OID_GEN_RCV_NO_BUFFER, Access::Query),
    (sys::OID_GEN_STATISTICS, Access::Query),
    (sys::OID_GEN_DIRECTED_BYTES_XMIT, Access::Query),
    (sys::OID_GEN_DIRECTED_FRAMES_XMIT, Access::Query),
    (sys::OID_GEN_MULTICAST_BYTES_XMIT, Access::Query),
    (sys::OID_GEN_MULTICAST_FRAMES_XMIT, Access::Query),
    (sys::OID_GEN_BROADCAST_BYTES_XMIT, Access::Query),
    (sys::OID_GEN_BROADCAST_FRAMES_XMIT, Access::Query),
    (sys::OID_GEN_DIRECTED_BYTES_RCV, Access::Query),
    (sys::OID_GEN_DIRECTED_FRAMES_RCV, Access::Query),
    (sys::OID_GEN_MULTICAST_BYTES_RCV, Access::Query),
    (sys::OID_GEN_MULTICAST_FRAMES_RCV, Access::Query),
    (sys::OID_GEN_BROADCAST_BYTES_RCV, Access::Query),
    (sys::OID_GEN_BROADCAST_FRAMES_RCV, Access::Query),
    (sys::OID_GEN_BYTES_RCV, Access::Query),
    (sys::OID_GEN_BYTES_XMIT, Access::Query),
    (sys::OID_GEN_RCV_DISCARDS, Access::Query),
    (sys::OID_GEN_XMIT_DISCARDS, Access::Query),
    (sys::OID_802_3_PERMANENT_ADDRESS, Access::Query),
    (sys::OID_802_3_CURRENT_ADDRESS, Access::Query),
    (sys::OID_802_3_MULTICAST_LIST, Access::Both),
    (sys::OID_802_3_MAXIMUM_LIST_SIZE, Access::Query),
    (sys::OID_802_3_RCV_ERROR_ALIGNMENT, Access::Query),
    (sys::OID_802_3_XMIT_ONE_COLLISION, Access::Query),
    (sys::OID_802_3_XMIT_MORE_COLLISIONS, Access::Query),
    (sys::OID_PNP_QUERY_POWER, Access::Query),
    (sys::OID_PNP_SET_POWER, Access::Set),
    (OID_IPOIB_DROPS, Access::Query),
];

/// A custom OID: one u64 for each [`Drop`], in the order of [`Drop::ALL`].
pub const OID_IPOIB_DROPS: u32 = 0xff49_4201;

/// The supported list as NDIS wants it: OIDs alone.
pub const SUPPORTED: [u32; TABLE.len()] = {
    let mut list = [0; TABLE.len()];
    let mut index = 0;
    while index < TABLE.len() {
        list[index] = TABLE[index].0;
        index += 1;
    }
    list
};

/// `SupportedStatistics` of NDIS_STATISTICS_INFO and of the general attributes: all that it has fields for.
pub const SUPPORTED_STATISTICS: u32 = sys::NDIS_STATISTICS_FLAGS::all().bits();

/// Packet filters that can be set. NDIS_PACKET_TYPE_PROMISCUOUS shows what reaches the port: its own traffic and
/// that of the groups it joined; a UD QP sees no other station's.
pub const SUPPORTED_FILTERS: u32 = sys::NDIS_PACKET_TYPE::DIRECTED.bits()
    | sys::NDIS_PACKET_TYPE::MULTICAST.bits()
    | sys::NDIS_PACKET_TYPE::ALL_MULTICAST.bits()
    | sys::NDIS_PACKET_TYPE::BROADCAST.bits()
    | sys::NDIS_PACKET_TYPE::PROMISCUOUS.bits();

/// Multicast addresses that NDIS may set.
pub const MULTICAST_LIST_SIZE: usize = 128;

/// Length of an Ethernet address.
const ADDRESS_LENGTH: usize = 6;
/// Length of an Ethernet header.
const HEADER_LENGTH: u32 = 14;
/// What the device list shows.
pub const VENDOR_DESCRIPTION: &[u8] = b"IP over InfiniBand\0";
/// Locally assigned, as no OUI is ours: the three bytes are those of the address scheme's prefix.
pub const VENDOR_ID: [u8; 4] = [0x02, 0x49, 0x42, 0x00];
/// Major in the high half, minor in the low half.
pub const DRIVER_VERSION: u32 = 0x0000_0001;
/// NDIS 6.50 as OID_GEN_DRIVER_VERSION wants it.
const NDIS_VERSION: u16 = 0x0632;

/// What answers are made of.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The counters.
    pub statistics: &'a Statistics,
    /// Largest IP packet.
    pub mtu: u32,
    /// Sends and receives in flight at most.
    pub sends: u32,
    /// Receive buffers.
    pub receives: u32,
    /// GUID-derived address.
    pub permanent_address: [u8; 6],
    /// The address in use.
    pub current_address: [u8; 6],
    /// As last set.
    pub packet_filter: u32,
    /// As last set.
    pub lookahead: u32,
    /// As last set.
    pub multicast_list: &'a [[u8; 6]],
}

/// Why an OID request was not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OidError {
    /// NDIS_STATUS_NOT_SUPPORTED.
    NotSupported,
    /// NDIS_STATUS_BUFFER_TOO_SHORT with BytesNeeded.
    BufferTooShort {
        /// The size that would do.
        needed: u32,
    },
    /// NDIS_STATUS_INVALID_LENGTH with BytesNeeded.
    InvalidLength {
        /// The size that would do.
        needed: u32,
    },
    /// NDIS_STATUS_INVALID_DATA.
    InvalidData,
    /// NDIS_STATUS_MULTICAST_FULL with the largest list.
    MulticastFull {
        /// The size that would do.
        needed: u32,
    },
}

/// What a set asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting<'a> {
    /// OID_GEN_CURRENT_PACKET_FILTER.
    PacketFilter(u32),
    /// OID_GEN_CURRENT_LOOKAHEAD.
    Lookahead(u32),
    /// OID_802_3_MULTICAST_LIST: whole addresses one after another.
    MulticastList(&'a [u8]),
    /// OID_PNP_SET_POWER: whether the device is to work (D0).
    Power {
        /// D0 rather than D1, D2 or D3.
        working: bool,
    },
    /// Understood, with no effect here.
    Nothing,
}

/// Bytes written, or why not.
pub type Written = Result<u32, OidError>;

/// Answers a query into `out`.
pub fn query(oid: u32, view: &View<'_>, out: &mut [u8]) -> Written {
    let statistics = view.statistics;
    let (sent, received) = (&statistics.sent, &statistics.received);
    let frame = view.mtu.saturating_add(HEADER_LENGTH);
    match oid {
        sys::OID_GEN_HARDWARE_STATUS => number(out, sys::NdisHardwareStatusReady as u32),
        sys::OID_GEN_MAXIMUM_LOOKAHEAD | sys::OID_GEN_MAXIMUM_FRAME_SIZE => number(out, view.mtu),
        sys::OID_GEN_CURRENT_LOOKAHEAD => number(out, view.lookahead),
        sys::OID_GEN_MAXIMUM_TOTAL_SIZE
        | sys::OID_GEN_TRANSMIT_BLOCK_SIZE
        | sys::OID_GEN_RECEIVE_BLOCK_SIZE => number(out, frame),
        sys::OID_GEN_TRANSMIT_BUFFER_SPACE => number(out, frame.saturating_mul(view.sends)),
        sys::OID_GEN_RECEIVE_BUFFER_SPACE => number(out, frame.saturating_mul(view.receives)),
        sys::OID_GEN_VENDOR_ID => bytes(out, &VENDOR_ID),
        sys::OID_GEN_VENDOR_DESCRIPTION => bytes(out, VENDOR_DESCRIPTION),
        sys::OID_GEN_VENDOR_DRIVER_VERSION => number(out, DRIVER_VERSION),
        sys::OID_GEN_DRIVER_VERSION => bytes(out, &NDIS_VERSION.to_le_bytes()),
        sys::OID_GEN_CURRENT_PACKET_FILTER => number(out, view.packet_filter),
        sys::OID_GEN_MAC_OPTIONS => number(out, MAC_OPTIONS),
        sys::OID_GEN_MAXIMUM_SEND_PACKETS => number(out, view.sends),
        sys::OID_GEN_XMIT_OK => counter(out, sent.all_frames()),
        sys::OID_GEN_RCV_OK => counter(out, received.all_frames()),
        sys::OID_GEN_XMIT_ERROR => counter(out, statistics.send_errors()),
        sys::OID_GEN_RCV_ERROR => counter(out, statistics.receive_errors()),
        sys::OID_GEN_RCV_NO_BUFFER => counter(out, statistics.dropped(Drop::ReceiveNoBuffer)),
        sys::OID_GEN_STATISTICS => bytes(out, &statistics_info(statistics)),
        sys::OID_GEN_DIRECTED_BYTES_XMIT => counter(out, sent.bytes(Cast::Unicast)),
        sys::OID_GEN_DIRECTED_FRAMES_XMIT => counter(out, sent.frames(Cast::Unicast)),
        sys::OID_GEN_MULTICAST_BYTES_XMIT => counter(out, sent.bytes(Cast::Multicast)),
        sys::OID_GEN_MULTICAST_FRAMES_XMIT => counter(out, sent.frames(Cast::Multicast)),
        sys::OID_GEN_BROADCAST_BYTES_XMIT => counter(out, sent.bytes(Cast::Broadcast)),
        sys::OID_GEN_BROADCAST_FRAMES_XMIT => counter(out, sent.frames(Cast::Broadcast)),
        sys::OID_GEN_DIRECTED_BYTES_RCV => counter(out, received.bytes(Cast::Unicast)),
        sys::OID_GEN_DIRECTED_FRAMES_RCV => counter(out, received.frames(Cast::Unicast)),
        sys::OID_GEN_MULTICAST_BYTES_RCV => counter(out, received.bytes(Cast::Multicast)),
        sys::OID_GEN_MULTICAST_FRAMES_RCV => counter(out, received.frames(Cast::Multicast)),
        sys::OID_GEN_BROADCAST_BYTES_RCV => counter(out, received.bytes(Cast::Broadcast)),
        sys::OID_GEN_BROADCAST_FRAMES_RCV => counter(out, received.frames(Cast::Broadcast)),
        sys::OID_GEN_BYTES_RCV => counter(out, received.all_bytes()),
        sys::OID_GEN_BYTES_XMIT => counter(out, sent.all_bytes()),
        sys::OID_GEN_RCV_DISCARDS => counter(out, statistics.receive_discards()),
        sys::OID_GEN_XMIT_DISCARDS => counter(out, statistics.send_discards()),
        sys::OID_GEN_INTERRUPT_MODERATION => bytes(out, &interrupt_moderation()),
        sys::OID_802_3_PERMANENT_ADDRESS => bytes(out, &view.permanent_address),
        sys::OID_802_3_CURRENT_ADDRESS => bytes(out, &view.current_address),
        sys::OID_802_3_MULTICAST_LIST => bytes(out, view.multicast_list.as_flattened()),
        sys::OID_802_3_MAXIMUM_LIST_SIZE => number(out, MULTICAST_LIST_SIZE as u32),
        sys::OID_802_3_RCV_ERROR_ALIGNMENT
        | sys::OID_802_3_XMIT_ONE_COLLISION
        | sys::OID_802_3_XMIT_MORE_COLLISIONS => number(out, 0),
        // A miniport that can go to the state answers NDIS_STATUS_SUCCESS (OID_PNP_QUERY_POWER).
        sys::OID_PNP_QUERY_POWER => Ok(0),
        OID_IPOIB_DROPS => drop_counters(out, statistics),
        _ => Err(OidError::NotSupported),
    }
}

/// `MacOptions` of the general attributes and OID_GEN_MAC_OPTIONS.
pub const MAC_OPTIONS: u32 = sys::NDIS_MAC_OPTION::COPY_LOOKAHEAD_DATA.bits()
    | sys::NDIS_MAC_OPTION::TRANSFERS_NOT_PEND.bits()
    | sys::NDIS_MAC_OPTION::NO_LOOPBACK.bits();

/// Understands a set. On success the whole buffer counts as read.
pub fn parse_set(oid: u32, input: &[u8]) -> Result<Setting<'_>, OidError> {
    match oid {
        sys::OID_GEN_CURRENT_PACKET_FILTER => {
            let filter = read_number(input)?;
            if filter & !SUPPORTED_FILTERS != 0 {
                return Err(OidError::NotSupported);
            }
            Ok(Setting::PacketFilter(filter))
        }
        sys::OID_GEN_CURRENT_LOOKAHEAD => Ok(Setting::Lookahead(read_number(input)?)),
        sys::OID_802_3_MULTICAST_LIST => {
            if !input.len().is_multiple_of(ADDRESS_LENGTH) {
                let whole = input.len() - input.len() % ADDRESS_LENGTH;
                return Err(OidError::InvalidLength { needed: whole as u32 });
            }
            if input.len() / ADDRESS_LENGTH > MULTICAST_LIST_SIZE {
                let needed = (MULTICAST_LIST_SIZE * ADDRESS_LENGTH) as u32;
                return Err(OidError::MulticastFull { needed });
            }
            if input
                .chunks_exact(ADDRESS_LENGTH)
                .any(|address| address.first().is_none_or(|byte| byte & 1 == 0))
            {
                return Err(OidError::InvalidData);
            }
            Ok(Setting::MulticastList(input))
        }
        sys::OID_PNP_SET_POWER => match read_number(input)? {
            // NDIS_DEVICE_POWER_STATE: D0 is 1, D3 is 4.
            1 => Ok(Setting::Power { working: true }),
            2..=4 => Ok(Setting::Power { working: false }),
            _ => Err(OidError::InvalidData),
        },
        sys::OID_GEN_LINK_PARAMETERS => Ok(Setting::Nothing),
        // The documented answer of a miniport without interrupt moderation.
        sys::OID_GEN_INTERRUPT_MODERATION => Err(OidError::InvalidData),
        _ => Err(OidError::NotSupported),
    }
}

fn read_number(input: &[u8]) -> Result<u32, OidError> {
    let bytes = input.first_chunk().ok_or(OidError::InvalidLength { needed: 4 })?;
    if input.len() != bytes.len() {
        return Err(OidError::InvalidLength { needed: 4 });
    }
    Ok(u32::from_le_bytes(*bytes))
}

fn bytes(out: &mut [u8], answer: &[u8]) -> Written {
    let needed = answer.len() as u32;
    let target = out.get_mut(..answer.len()).ok_or(OidError::BufferTooShort { needed })?;
    target.copy_from_slice(answer);
    Ok(needed)
}

fn number(out: &mut [u8], value: u32) -> Written {
    bytes(out, &value.to_le_bytes())
}

/// A counter that a caller may read into 4 or 8 bytes (OID_GEN_XMIT_OK and the like): a short buffer gets the
/// low half.
fn counter(out: &mut [u8], value: u64) -> Written {
    if out.len() >= 8 {
        bytes(out, &value.to_le_bytes())
    } else {
        number(out, value as u32).map_err(|_| OidError::BufferTooShort { needed: 8 })
    }
}

fn drop_counters(out: &mut [u8], statistics: &Statistics) -> Written {
    let needed = (Drop::ALL.len() * 8) as u32;
    let target = out.get_mut(..needed as usize).ok_or(OidError::BufferTooShort { needed })?;
    for (field, &cause) in target.chunks_exact_mut(8).zip(Drop::ALL) {
        field.copy_from_slice(&statistics.dropped(cause).to_le_bytes());
    }
    Ok(needed)
}

/// NDIS_OBJECT_HEADER of NDIS_OBJECT_TYPE_DEFAULT, revision 1.
const fn default_header(size: u16) -> [u8; 4] {
    let [low, high] = size.to_le_bytes();
    [sys::NDIS_OBJECT_TYPE_DEFAULT, 1, low, high]
}

const STATISTICS_INFO_SIZE: usize = 152;

/// NDIS_STATISTICS_INFO (`ntddndis.h`): header, SupportedStatistics, then eighteen u64.
fn statistics_info(statistics: &Statistics) -> [u8; STATISTICS_INFO_SIZE] {
    let (sent, received) = (&statistics.sent, &statistics.received);
    let values = [
        statistics.receive_discards(),
        statistics.receive_errors(),
        received.all_bytes(),
        received.frames(Cast::Unicast),
        received.frames(Cast::Multicast),
        received.frames(Cast::Broadcast),
        sent.all_bytes(),
        sent.frames(Cast::Unicast),
        sent.frames(Cast::Multicast),
        sent.frames(Cast::Broadcast),
        statistics.send_errors(),
        statistics.send_discards(),
        received.bytes(Cast::Unicast),
        received.bytes(Cast::Multicast),
        received.bytes(Cast::Broadcast),
        sent.bytes(Cast::Unicast),
        sent.bytes(Cast::Multicast),
        sent.bytes(Cast::Broadcast),
    ];
    let mut out = [0; STATISTICS_INFO_SIZE];
    let (head, fields) = out.split_at_mut(8);
    let (header, supported) = head.split_at_mut(4);
    header.copy_from_slice(&default_header(STATISTICS_INFO_SIZE as u16));
    supported.copy_from_slice(&SUPPORTED_STATISTICS.to_le_bytes());
    for (field, value) in fields.chunks_exact_mut(8).zip(values) {
        field.copy_from_slice(&value.to_le_bytes());
    }
    out
}

/// NDIS_INTERRUPT_MODERATION_PARAMETERS (`ntddndis.h`): header, Flags, NdisInterruptModerationNotSupported (0).
fn interrupt_moderation() -> [u8; 12] {
    let [a, b, c, d] = default_header(12);
    [a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0]
}

#[cfg(test)]
#[path = "oid_tests.rs"]
mod tests;
