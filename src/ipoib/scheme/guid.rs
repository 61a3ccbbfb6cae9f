//! Addresses from a GUID: the vendors' own conversions, then a mask of bytes.
//!
//! The conversions are those of the Windows OpenFabrics driver, so that an upgrade keeps its permanent
//! address.

use crate::ipoib::mac::MacAddr;

/// Which six of a GUID's eight bytes make the address. Bit 7 stands for the first byte on the wire, bit 0 for
/// the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuidMask(u8);

impl GuidMask {
    /// Every byte but the two in the middle, which are FF-FE in an EUI-64 made of an Ethernet address.
    pub const DEFAULT: Self = Self(0xe7);

    /// `None` unless exactly six bits are set.
    pub const fn new(mask: u8) -> Option<Self> {
        if mask.count_ones() == 6 { Some(Self(mask)) } else { None }
    }

    /// The bits.
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl Default for GuidMask {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The address of the port with this GUID. Vendors whose GUIDs are not made of an Ethernet address have their
/// own conversion; where that does not know the GUID's form, and for everybody else, `mask` chooses the
/// bytes.
///
/// The answer is always one that a station can have: a GUID that would give a group address, or zero, loses
/// the group bit and becomes locally administered.
pub const fn mac_from_guid(guid: [u8; 8], mask: GuidMask) -> MacAddr {
    let converted = match guid {
        [0x00, 0x02, 0xc9, ..] => mellanox(guid),
        [0x00, 0x08, 0xf1, ..] => Some(voltaire(guid)),
        [0x00, 0x06, 0x6a, ..] => silverstorm(guid),
        _ => None,
    };
    let [first, b, c, d, e, f] = match converted {
        Some(mac) => mac,
        None => masked(guid, mask),
    };
    let zero = matches!([first, b, c, d, e, f], [0, 0, 0, 0, 0, 0]);
    let first = if first & 1 != 0 || zero { first & !1 | 2 } else { first };
    MacAddr::new([first, b, c, d, e, f])
}

/// Mellanox: bytes 3 and 4 tell the generation. 02-00 keeps the vendor's first byte, 03-00 sets the local bit
/// so that both may count through the same 24 bits.
const fn mellanox([_, b, c, d, e, f, g, h]: [u8; 8]) -> Option<[u8; 6]> {
    let first = match (d, e) {
        (2, 0) => 0x00,
        (3, 0) => 0x02,
        _ => return None,
    };
    Some([first, b, c, f, g, h])
}

/// Voltaire: the low bytes folded into three.
const fn voltaire([a, b, c, _, e, f, g, h]: [u8; 8]) -> [u8; 6] {
    [a, b, c, e ^ g, f ^ h, f.wrapping_add(g).wrapping_add(h)]
}

/// SilverStorm: numbered downwards from a fixed address, two for each HCA, less the port number in byte 3.
/// Only GUIDs whose bits 23 to 26 are clear have this form.
const fn silverstorm(guid: [u8; 8]) -> Option<[u8; 6]> {
    const TOP: u32 = 0x00ff_f000;
    const FIRST: u32 = 0x101;
    const NOT_OURS: u32 = 0x0780_0000;
    let [a, b, c, port, e, f, g, h] = guid;
    let low = u32::from_be_bytes([e, f, g, h]);
    if low & NOT_OURS != 0 {
        return None;
    }
    let serial = (low & 0x00ff_ffff).wrapping_sub(FIRST).wrapping_mul(2);
    let [_, x, y, z] = TOP.wrapping_sub(serial).wrapping_sub(port as u32).to_be_bytes();
    Some([a, b, c, x, y, z])
}

const fn masked(guid: [u8; 8], mask: GuidMask) -> [u8; 6] {
    // Shifts the chosen bytes, first to last, into an integer: no index that could fail.
    let mut rest = u64::from_be_bytes(guid);
    let mut bits = mask.0;
    let mut mac = 0_u64;
    let mut count = 0;
    while count < 8 {
        if bits & 0x80 != 0 {
            mac = mac << 8 | rest >> 56;
        }
        bits <<= 1;
        rest <<= 8;
        count += 1;
    }
    let [_, _, a, b, c, d, e, f] = mac.to_be_bytes();
    [a, b, c, d, e, f]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mac(guid: u64, mask: u8) -> [u8; 6] {
        mac_from_guid(guid.to_be_bytes(), GuidMask::new(mask).unwrap()).to_bytes()
    }

    #[test]
    fn a_mask_has_six_bits() {
        let valid = (0..=u8::MAX).filter(|&mask| GuidMask::new(mask).is_some()).count();
        assert_eq!(valid, 28, "8 over 6");
        assert!(GuidMask::new(0xe7).is_some() && GuidMask::new(0).is_none() && GuidMask::new(0xff).is_none());
    }

    #[test]
    fn the_default_mask_undoes_the_making_of_an_eui_64() {
        assert_eq!(mac(0x0011_22ff_fe33_4455, 0xe7), [0x00, 0x11, 0x22, 0x33, 0x44, 0x55]);
        assert_eq!(mac(0x0011_22ff_fe33_4455, 0xfc), [0x00, 0x11, 0x22, 0xff, 0xfe, 0x33]);
        assert_eq!(mac(0x0011_22ff_fe33_4455, 0x3f), [0x22, 0xff, 0xfe, 0x33, 0x44, 0x55]);
    }

    /// Values computed by hand from the conversions of the Windows OpenFabrics driver (ipoib_xfr_mgr.h).
    #[test]
    fn vendors_have_their_own_conversion() {
        assert_eq!(mac(0x0002_c902_0020_1d3d, 0xe7), [0x00, 0x02, 0xc9, 0x20, 0x1d, 0x3d]);
        assert_eq!(mac(0x0002_c903_0020_1d3d, 0xe7), [0x02, 0x02, 0xc9, 0x20, 0x1d, 0x3d]);
        assert_eq!(mac(0x0008_f104_0398_1a2b, 0xe7), [0x00, 0x08, 0xf1, 0x03 ^ 0x1a, 0x98 ^ 0x2b, 0xdd]);
        assert_eq!(mac(0x0006_6a01_a000_0101, 0xe7), [0x00, 0x06, 0x6a, 0xff, 0xef, 0xff]);
        assert_eq!(mac(0x0006_6a00_a000_0102, 0xe7), [0x00, 0x06, 0x6a, 0xff, 0xef, 0xfe]);
    }

    #[test]
    fn a_vendor_guid_of_another_form_falls_to_the_mask() {
        assert_eq!(mac(0x0002_c9ff_fe20_1d3d, 0xe7), [0x00, 0x02, 0xc9, 0x20, 0x1d, 0x3d]);
        assert_eq!(mac(0x0006_6a01_0780_0101, 0xe7), [0x00, 0x06, 0x6a, 0x80, 0x01, 0x01]);
    }

    proptest! {
        #[test]
        fn every_guid_gives_an_address_that_a_station_can_have(guid: [u8; 8]) {
            for mask in (0..=u8::MAX).filter_map(GuidMask::new) {
                prop_assert!(mac_from_guid(guid, mask).is_station());
            }
        }
    }
}
