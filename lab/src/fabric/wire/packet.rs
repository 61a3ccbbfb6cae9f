//! A whole packet: LRH, optional GRH, BTH, extended headers, payload, padding, ICRC, VCRC.

use std::sync::Arc;

use super::bits::Truncated;
use super::bth::{Bth, OpCode};
use super::extended::{Aeth, Deth, Reth};
use super::grh::{self, Grh};
use super::lrh::{self, Lrh, LrhView};
use super::{bth, crc};
use crate::fabric::ids::{Lid, PKey};

/// Bytes of the invariant CRC.
pub const ICRC_LEN: usize = 4;
/// Bytes of the variant CRC, which the length in the LRH does not count.
pub const VCRC_LEN: usize = 2;

/// Why bytes are not a packet of the IBA transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Shorter than its headers say, or than a header.
    Truncated,
    /// The length in the LRH is not that of the bytes.
    Length,
    /// A raw packet: no BTH.
    Raw,
    /// Link version, IP version, next header or transport version is not the one there is.
    Version,
    /// An operation this fabric does not know.
    OpCode(OpCode),
}

impl From<Truncated> for Malformed {
    fn from(_: Truncated) -> Self {
        Self::Truncated
    }
}

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Truncated => f.write_str("truncated"),
            Self::Length => f.write_str("length differs from that in the LRH"),
            Self::Raw => f.write_str("raw packet"),
            Self::Version => f.write_str("wrong version or next header"),
            Self::OpCode(opcode) => write!(f, "unknown operation {:#04x}", opcode.0),
        }
    }
}

impl std::error::Error for Malformed {}

/// The headers of a packet.
///
/// [`Packet::build`] fills in what follows from the rest (LNH, lengths, padding, IP version and next header),
/// so a sender need not. Which of `deth`, `reth`, `aeth` and `immediate` are there must be what the operation
/// in the BTH has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    /// Local route.
    pub lrh: Lrh,
    /// Global route, if any.
    pub grh: Option<Grh>,
    /// Base transport.
    pub bth: Bth,
    /// Datagram extension (UD).
    pub deth: Option<Deth>,
    /// RDMA extension.
    pub reth: Option<Reth>,
    /// Acknowledge extension.
    pub aeth: Option<Aeth>,
    /// Immediate data.
    pub immediate: Option<u32>,
}

impl Headers {
    /// Bytes of the headers on the wire.
    pub fn len(&self) -> usize {
        Lrh::LEN
            + self.grh.map_or(0, |_| Grh::LEN)
            + Bth::LEN
            + self.deth.map_or(0, |_| Deth::LEN)
            + self.reth.map_or(0, |_| Reth::LEN)
            + self.aeth.map_or(0, |_| Aeth::LEN)
            + self.immediate.map_or(0, |_| 4)
    }

    /// Never: a packet has at least two headers.
    pub fn is_empty(&self) -> bool {
        false
    }
}

/// State of the two CRCs at the end of a packet's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Crc {
    /// The bytes hold the CRCs; whether they are right is for a receiver to check.
    Written,
    /// The last six bytes are zero and stand for the right CRCs.
    Implied,
}

/// A packet as it travels: whole, shared and immutable. A clone costs a reference count, so a switch
/// replicates a multicast packet without copying it.
///
/// # When CRCs are computed
/// A packet made by [`Packet::build`] has right CRCs by construction, and nothing on the fabric but a fault
/// rule changes a packet, so computing them at the sender and checking them at each hop would cost two passes
/// over each packet to learn nothing (about 2 µs for 2 KiB, where carrying it over a switch takes 0.1 µs).
/// Such a packet carries the *promise* of right CRCs; they become bytes only where somebody could see them:
/// in [`Packet::sealed`], which the capture writer and the fault rules use. So a capture is true, and a
/// corrupted packet is seen to be one. A packet made of bytes ([`Packet::from_bytes`]), as a fault or a test
/// does, promises nothing and is checked at every port.
#[derive(Clone, Debug)]
pub struct Packet {
    bytes: Arc<[u8]>,
    crc: Crc,
}

impl Packet {
    /// Makes a packet of `headers` and a payload of `payload_len` bytes, which `fill` writes into the zeroed
    /// space it is given. One allocation, no copy.
    pub fn build(headers: &Headers, payload_len: usize, fill: impl FnOnce(&mut [u8])) -> Self {
        let pad = payload_len.wrapping_neg() % 4;
        let header_len = headers.len();
        let counted = header_len + payload_len + pad + ICRC_LEN;
        let mut bytes: Arc<[u8]> = std::iter::repeat_n(0, counted + VCRC_LEN).collect();
        let Some(buffer) = Arc::get_mut(&mut bytes) else { unreachable!("just made, so not shared") };
        let lnh = if headers.grh.is_some() { lrh::next::GRH } else { lrh::next::BTH };
        let (head, tail) = buffer.split_at_mut(header_len);
        let mut rest = head;
        let mut put = |header: &[u8]| {
            let (place, after) = std::mem::take(&mut rest).split_at_mut(header.len());
            place.copy_from_slice(header);
            rest = after;
        };
        put(&Lrh { lnh, packet_length: (counted / 4) as u16, ..headers.lrh }.to_bytes());
        if let Some(grh) = headers.grh {
            put(&Grh {
                ip_version: grh::IP_VERSION,
                next_header: grh::NEXT_HEADER_IBA,
                payload_length: (counted - Lrh::LEN - Grh::LEN) as u16,
                ..grh
            }
            .to_bytes());
        }
        put(&Bth { pad_count: pad as u8, ..headers.bth }.to_bytes());
        if let Some(deth) = headers.deth {
            put(&deth.to_bytes());
        }
        if let Some(reth) = headers.reth {
            put(&reth.to_bytes());
        }
        if let Some(aeth) = headers.aeth {
            put(&aeth.to_bytes());
        }
        if let Some(immediate) = headers.immediate {
            put(&immediate.to_be_bytes());
        }
        fill(&mut tail[..payload_len]);
        Self { bytes, crc: Crc::Implied }
    }

    /// A packet of bytes as they would be on the wire, CRCs included. Nothing is checked here: a receiver
    /// does.
    pub fn from_bytes(bytes: impl Into<Arc<[u8]>>) -> Self {
        Self { bytes: bytes.into(), crc: Crc::Written }
    }

    /// The bytes up to the ICRC, which are true for every packet.
    pub fn without_crcs(&self) -> &[u8] {
        &self.bytes[..self.bytes.len().saturating_sub(ICRC_LEN + VCRC_LEN)]
    }

    /// Length on the wire, with both CRCs.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there are no bytes at all.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The bytes as they are on the wire, with the CRCs computed now if they were only implied.
    pub fn sealed(&self) -> Arc<[u8]> {
        match self.crc {
            Crc::Written => self.bytes.clone(),
            Crc::Implied => {
                let mut bytes = self.bytes.to_vec();
                seal(&mut bytes);
                bytes.into()
            }
        }
    }

    /// Whether the ICRC is right. A packet without one (raw) has nothing that could be wrong.
    pub fn icrc_ok(&self) -> bool {
        self.crc == Crc::Implied || {
            let (body, icrc) = self.bytes.split_at(self.without_crcs().len());
            crc::icrc(body).is_none_or(|right| icrc.starts_with(&right))
        }
    }

    /// Whether the VCRC is right.
    pub fn vcrc_ok(&self) -> bool {
        self.crc == Crc::Implied || {
            let (body, vcrc) = self.bytes.split_at(self.bytes.len().saturating_sub(VCRC_LEN));
            crc::vcrc(body) == vcrc
        }
    }

    /// The local route header.
    pub fn lrh(&self) -> Result<LrhView<&[u8]>, Truncated> {
        LrhView::new_checked(&self.bytes)
    }

    /// Destination LID, if there is a whole LRH.
    pub fn dlid(&self) -> Option<Lid> {
        self.lrh().ok().map(|lrh| lrh.dlid())
    }

    /// Partition key, if there is a BTH.
    pub fn pkey(&self) -> Option<PKey> {
        let lrh = self.lrh().ok()?;
        let offset = match lrh.lnh() {
            lrh::next::BTH => Lrh::LEN,
            lrh::next::GRH => Lrh::LEN + Grh::LEN,
            _ => return None,
        };
        bth::BthView::new_checked(self.bytes.get(offset..)?).ok().map(|bth| bth.pkey())
    }

    /// Takes the packet apart: its headers and its payload without padding. Lengths and versions are checked,
    /// CRCs are not.
    pub fn parse(&self) -> Result<(Headers, &[u8]), Malformed> {
        parse(&self.bytes)
    }
}

/// Takes apart the bytes of a packet, CRCs included.
pub fn parse(bytes: &[u8]) -> Result<(Headers, &[u8]), Malformed> {
    let lrh = Lrh::parse_slice(bytes)?;
    if lrh.version != 0 {
        return Err(Malformed::Version);
    }
    let body_len = bytes.len().checked_sub(ICRC_LEN + VCRC_LEN).ok_or(Malformed::Truncated)?;
    if usize::from(lrh.packet_length) * 4 != body_len + ICRC_LEN {
        return Err(Malformed::Length);
    }
    let mut rest = bytes.get(Lrh::LEN..body_len).ok_or(Malformed::Truncated)?;
    let mut take = |len: usize| {
        let (header, after) = rest.split_at_checked(len).ok_or(Malformed::Truncated)?;
        rest = after;
        Ok::<_, Malformed>(header)
    };
    let grh = match lrh.lnh {
        lrh::next::BTH => None,
        lrh::next::GRH => {
            let grh = Grh::parse_slice(take(Grh::LEN)?)?;
            if grh.ip_version != grh::IP_VERSION || grh.next_header != grh::NEXT_HEADER_IBA {
                return Err(Malformed::Version);
            }
            Some(grh)
        }
        _ => return Err(Malformed::Raw),
    };
    let bth = Bth::parse_slice(take(Bth::LEN)?)?;
    if bth.version != 0 {
        return Err(Malformed::Version);
    }
    let has = bth.opcode.extensions().ok_or(Malformed::OpCode(bth.opcode))?;
    let deth = if has.deth { Some(Deth::parse_slice(take(Deth::LEN)?)?) } else { None };
    let reth = if has.reth { Some(Reth::parse_slice(take(Reth::LEN)?)?) } else { None };
    let aeth = if has.aeth { Some(Aeth::parse_slice(take(Aeth::LEN)?)?) } else { None };
    let immediate = if has.immediate {
        let bytes = take(4)?.first_chunk().ok_or(Malformed::Truncated)?;
        Some(u32::from_be_bytes(*bytes))
    } else {
        None
    };
    let payload_len = rest.len().checked_sub(bth.pad_count.into()).ok_or(Malformed::Truncated)?;
    Ok((Headers { lrh, grh, bth, deth, reth, aeth, immediate }, &rest[..payload_len]))
}

/// Writes the right CRCs into the last six bytes of a packet, which must be there. A raw packet gets only a
/// VCRC.
pub fn seal(bytes: &mut [u8]) {
    let Some(body_len) = bytes.len().checked_sub(ICRC_LEN + VCRC_LEN) else { return };
    let (body, crcs) = bytes.split_at_mut(body_len);
    if let Some(icrc) = crc::icrc(body) {
        crcs[..ICRC_LEN].copy_from_slice(&icrc);
    }
    let (body, vcrc) = bytes.split_at_mut(body_len + ICRC_LEN);
    vcrc.copy_from_slice(&crc::vcrc(body));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::ids::{Gid, Guid, QKey, Qpn};
    use proptest::prelude::*;

    fn headers(opcode: OpCode, grh: bool) -> Headers {
        let has = opcode.extensions().unwrap();
        Headers {
            lrh: Lrh { dlid: Lid(0xC001), slid: Lid(5), sl: 3, ..Lrh::default() },
            grh: grh.then(|| Grh {
                sgid: Gid::new(1, Guid(2)),
                dgid: Gid::new(3, Guid(4)),
                hop_limit: 1,
                ..Grh::default()
            }),
            bth: Bth { opcode, pkey: PKey::DEFAULT, dest_qp: Qpn::MULTICAST, psn: 77, ..Bth::default() },
            deth: has.deth.then_some(Deth { qkey: QKey(0xB1B), src_qp: Qpn::new(0x48) }),
            reth: has.reth.then_some(Reth { address: 1, rkey: 2, dma_length: 3 }),
            aeth: has.aeth.then_some(Aeth { syndrome: 0x1F, msn: 9 }),
            immediate: has.immediate.then_some(0xDEAD_BEEF),
        }
    }

    fn known_opcodes() -> Vec<OpCode> {
        (0..=u8::MAX).map(OpCode).filter(|opcode| opcode.extensions().is_some()).collect()
    }

    proptest! {
        /// What is built is parsed back for every operation, with or without a GRH, and its CRCs hold.
        #[test]
        fn build_then_parse(
            opcode in prop::sample::select(known_opcodes()),
            grh: bool,
            payload in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            let sent = headers(opcode, grh);
            let packet = Packet::build(&sent, payload.len(), |space| space.copy_from_slice(&payload));
            let wire = Packet::from_bytes(packet.sealed());
            prop_assert!(wire.icrc_ok() && wire.vcrc_ok());
            prop_assert_eq!(wire.len() % 4, 2);
            for packet in [&packet, &wire] {
                let (received, body) = packet.parse().unwrap();
                prop_assert_eq!(body, &payload[..]);
                prop_assert_eq!(received.lrh.packet_length as usize * 4 + VCRC_LEN, packet.len());
                if let Some(grh) = received.grh {
                    prop_assert_eq!(grh.payload_length as usize, packet.len() - VCRC_LEN - 48);
                }
                prop_assert_eq!(received.bth.dest_qp, sent.bth.dest_qp);
                prop_assert_eq!(
                    (received.deth, received.reth, received.aeth, received.immediate),
                    (sent.deth, sent.reth, sent.aeth, sent.immediate)
                );
                prop_assert_eq!(packet.pkey(), Some(PKey::DEFAULT));
                prop_assert_eq!(packet.dlid(), Some(Lid(0xC001)));
            }
        }

        /// One wrong bit anywhere is seen by the VCRC (IBA 7.8.2).
        #[test]
        fn one_flipped_bit_is_seen(len in 0usize..100, at: prop::sample::Index) {
            let packet = Packet::build(&headers(OpCode::UD_SEND_ONLY, true), len, |_| ());
            let mut bytes = packet.sealed().to_vec();
            let bit = at.index(bytes.len() * 8);
            bytes[bit / 8] ^= 0x80 >> (bit % 8);
            prop_assert!(!Packet::from_bytes(bytes).vcrc_ok());
        }

        /// No bytes whatever make a parser or a check panic.
        #[test]
        fn arbitrary_bytes(bytes: Vec<u8>) {
            let packet = Packet::from_bytes(bytes);
            let _ = (packet.parse(), packet.icrc_ok(), packet.vcrc_ok());
            let _ = (packet.pkey(), packet.dlid(), packet.sealed());
        }
    }

    /// Each check of the parser refuses what it should.
    #[test]
    fn refusals() {
        let good = Packet::build(&headers(OpCode::UD_SEND_ONLY, true), 8, |_| ()).sealed().to_vec();
        let with = |at: usize, value: u8| {
            let mut bytes = good.clone();
            bytes[at] = value;
            parse(&bytes).map(|_| ())
        };
        assert_eq!(parse(&good).map(|_| ()), Ok(()));
        assert_eq!(parse(&good[..20]).map(|_| ()), Err(Malformed::Length));
        assert_eq!(parse(&good[..4]).map(|_| ()), Err(Malformed::Truncated));
        assert_eq!(with(0, 0x01), Err(Malformed::Version), "link version");
        assert_eq!(with(1, 0x00), Err(Malformed::Raw));
        assert_eq!(with(8, 0x40), Err(Malformed::Version), "IP version 4");
        assert_eq!(with(14, 0x11), Err(Malformed::Version), "next header");
        assert_eq!(with(48, 0xC0), Err(Malformed::OpCode(OpCode(0xC0))));
        assert_eq!(with(49, 0x01), Err(Malformed::Version), "transport version");
    }
}
