//! Invariant and variant CRC (IBA 7.8).
//!
//! The ICRC is the CRC-32 of Ethernet over everything a switch or router leaves alone, with the fields they
//! may change taken as ones. The VCRC is a CRC-16 (generator 0x100B) over the whole packet including the
//! ICRC, and is made anew at each hop. Both are sent least significant bit first, hence least significant
//! byte first.

use super::{bth, grh, lrh};

/// Generator 0x04C11DB7, reflected.
const ICRC_POLY: u32 = 0xEDB8_8320;
/// Generator 0x100B, reflected.
const VCRC_POLY: u32 = 0xD008;

/// Tables for eight bytes at a time: `table[k][b]` is the CRC of byte `b` followed by `k` zero bytes.
const fn tables(poly: u32) -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ poly } else { crc >> 1 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut k = 1;
    while k < 8 {
        let mut byte = 0;
        while byte < 256 {
            let crc = tables[k - 1][byte];
            tables[k][byte] = (crc >> 8) ^ tables[0][(crc & 0xFF) as usize];
            byte += 1;
        }
        k += 1;
    }
    tables
}

static ICRC_TABLES: [[u32; 256]; 8] = tables(ICRC_POLY);
static VCRC_TABLES: [[u32; 256]; 8] = tables(VCRC_POLY);

/// Continues a reflected CRC of at most 32 bits over `bytes`.
fn update(tables: &[[u32; 256]; 8], mut crc: u32, bytes: &[u8]) -> u32 {
    let (chunks, rest) = bytes.as_chunks::<8>();
    for &[a, b, c, d, e, f, g, h] in chunks {
        let [s, t, u, v] = crc.to_le_bytes();
        let at = |k: usize, byte: u8| tables[k][usize::from(byte)];
        crc = at(7, a ^ s)
            ^ at(6, b ^ t)
            ^ at(5, c ^ u)
            ^ at(4, d ^ v)
            ^ at(3, e)
            ^ at(2, f)
            ^ at(1, g)
            ^ at(0, h);
    }
    for &byte in rest {
        crc = (crc >> 8) ^ tables[0][usize::from(byte ^ crc as u8)];
    }
    crc
}

/// The ICRC of a packet, which runs from the first byte of its LRH to the last before the ICRC, as it goes on
/// the wire. `None` for a raw packet, which has no ICRC, and for one too short for its headers.
///
/// Taken as ones (IBA 7.8.1): without a GRH, the VL of the LRH; with one, the whole LRH and the GRH's traffic
/// class, flow label and hop limit; in both, the congestion byte of the BTH.
pub fn icrc(packet: &[u8]) -> Option<[u8; 4]> {
    const WITH_GRH: usize = lrh::Lrh::LEN + grh::Grh::LEN + bth::Bth::LEN;
    const WITHOUT_GRH: usize = lrh::Lrh::LEN + bth::Bth::LEN;
    let mut masked = [0; WITH_GRH];
    let len = match packet.get(1)? & 0b11 {
        lrh::next::GRH => {
            masked.copy_from_slice(packet.get(..WITH_GRH)?);
            masked[..lrh::Lrh::LEN].fill(0xFF);
            masked[8] |= 0x0F;
            masked[9..12].fill(0xFF);
            masked[15] = 0xFF;
            WITH_GRH
        }
        lrh::next::BTH => {
            masked[..WITHOUT_GRH].copy_from_slice(packet.get(..WITHOUT_GRH)?);
            masked[0] |= 0xF0;
            WITHOUT_GRH
        }
        _ => return None,
    };
    masked[len - bth::Bth::LEN + 4] = 0xFF;
    let crc = update(&ICRC_TABLES, u32::MAX, &masked[..len]);
    Some((!update(&ICRC_TABLES, crc, &packet[len..])).to_le_bytes())
}

/// The VCRC of a packet from the first byte of its LRH to the last of its ICRC, as it goes on the wire (IBA
/// 7.8.2).
pub fn vcrc(packet: &[u8]) -> [u8; 2] {
    (!(update(&VCRC_TABLES, 0xFFFF, packet) as u16)).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sample local packet of IBA vol. 1, 7.8.3, without its CRCs.
    const LOCAL: [u8; 52] = [
        0x70, 0x12, 0x37, 0x5c, 0x00, 0x0e, 0x17, 0xd2, 0x0a, 0x20, 0x24, 0x87, 0x00, 0x87, 0xb1, 0xb3, 0x00,
        0x0d, 0xec, 0x2a, 0x01, 0x71, 0x0a, 0x1c, 0x01, 0x5d, 0x40, 0x02, 0x38, 0xf2, 0x7a, 0x05, 0x00, 0x00,
        0x00, 0x0e, 0xbb, 0x88, 0x4d, 0x85, 0xfd, 0x5c, 0xfb, 0xa4, 0x72, 0x8b, 0xc0, 0x69, 0x0e, 0xd4, 0x00,
        0x00,
    ];

    /// A CRC bit by bit, straight from the definition in IBA 7.8.
    fn bitwise(poly: u32, init: u32, bytes: &[u8]) -> u32 {
        bytes.iter().fold(init, |crc, &byte| {
            (0..8).fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ (poly * (crc & 1)))
        })
    }

    /// The ICRC that IBA vol. 1, 7.8.3 prints for its sample local packet.
    #[test]
    fn icrc_of_sample_packet() {
        assert_eq!(icrc(&LOCAL), Some([0x96, 0x25, 0xb7, 0x5a]));
    }

    /// The VCRC of that packet, as the bitwise definition gives it.
    #[test]
    fn vcrc_of_sample_packet() {
        let mut packet = LOCAL.to_vec();
        packet.extend([0x96, 0x25, 0xb7, 0x5a]);
        assert_eq!(vcrc(&packet), [0x45, 0xfa]);
    }

    /// IBA 7.8.1: a switch may rewrite VL and congestion bits, a router the whole LRH and three GRH fields,
    /// and the ICRC still holds; any other bit breaks it.
    #[test]
    fn icrc_ignores_exactly_the_variant_fields() {
        let mut global = LOCAL[..8].to_vec();
        global[1] |= 0b11;
        global.extend([0x60, 0, 0, 0, 0, 0x32, 0x1B, 0x10]);
        global.extend([0x25; 32]);
        global.extend(&LOCAL[8..]);
        for (packet, variant) in [
            (LOCAL.to_vec(), vec![0..4, 96..104]),
            (global, vec![0..64, 68..96, 120..128, 64 + 320 + 32..64 + 320 + 40]),
        ] {
            let crc = icrc(&packet).unwrap();
            for bit in 0..packet.len() * 8 {
                if bit / 8 == 1 && bit % 8 >= 6 {
                    continue; // LNH decides what is masked
                }
                let mut changed = packet.clone();
                changed[bit / 8] ^= 0x80 >> (bit % 8);
                let is_variant = variant.iter().any(|range| range.contains(&bit));
                assert_eq!(icrc(&changed).unwrap() == crc, is_variant, "bit {bit}");
            }
        }
    }

    /// IBA 7.8: raw packets have no ICRC.
    #[test]
    fn raw_packets_have_none() {
        assert_eq!(icrc(&[0, lrh::next::RAW, 0, 0, 0, 0, 0, 0]), None);
        assert_eq!(icrc(&[0, lrh::next::BTH, 0]), None);
        assert_eq!(icrc(&[]), None);
    }

    proptest::proptest! {
        /// Eight bytes at a time or bit by bit: the same CRC.
        #[test]
        fn tables_match_definition(bytes: Vec<u8>) {
            proptest::prop_assert_eq!(
                update(&ICRC_TABLES, u32::MAX, &bytes),
                bitwise(ICRC_POLY, u32::MAX, &bytes)
            );
            proptest::prop_assert_eq!(
                update(&VCRC_TABLES, 0xFFFF, &bytes),
                bitwise(VCRC_POLY, 0xFFFF, &bytes)
            );
        }
    }
}
