//! `02-QQ-QQ-QQ-LL-LL`: a locally administered address of QPN and LID, big-endian.
//!
//! The layout that eIPoIB and iPXE use. The local LID is taken as zero, so that the address is known before
//! the subnet manager assigns one and stays when it assigns another.

use crate::ipoib::ids::{Lid, Qpn};
use crate::ipoib::mac::MacAddr;

const LOCALLY_ADMINISTERED: u8 = 0x02;

/// The address of this adapter.
pub const fn local(qpn: Qpn) -> MacAddr {
    remote(qpn, Lid::UNASSIGNED)
}

/// The address of a peer; `lid` is its base LID.
pub const fn remote(qpn: Qpn, lid: Lid) -> MacAddr {
    let [q2, q1, q0] = qpn.to_bytes();
    let [l1, l0] = lid.get().to_be_bytes();
    MacAddr::new([LOCALLY_ADMINISTERED, q2, q1, q0, l1, l0])
}

/// QPN and LID of a peer; `None` if no peer can have that address.
pub const fn decode(mac: MacAddr) -> Option<(Qpn, Lid)> {
    let [first, q2, q1, q0, l1, l0] = mac.to_bytes();
    let (qpn, lid) = (Qpn::from_bytes([q2, q1, q0]), Lid::new(u16::from_be_bytes([l1, l0])));
    if first == LOCALLY_ADMINISTERED && qpn.is_interface() && lid.is_unicast() {
        Some((qpn, lid))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn qpn_then_lid_and_the_local_lid_is_zero() {
        let qpn = Qpn::new(0x0a0b0c).unwrap();
        assert_eq!(local(qpn).to_bytes(), [0x02, 0x0a, 0x0b, 0x0c, 0, 0]);
        assert_eq!(remote(qpn, Lid::new(0x1234)).to_bytes(), [0x02, 0x0a, 0x0b, 0x0c, 0x12, 0x34]);
    }

    #[test]
    fn only_a_peers_address_decodes() {
        let qpn = Qpn::new(0x48).unwrap();
        assert_eq!(decode(local(qpn)), None);
        assert_eq!(decode(remote(qpn, Lid::new(0xc001))), None);
        assert_eq!(decode(remote(Qpn::MULTICAST, Lid::new(1))), None);
        assert_eq!(decode(MacAddr::new([0x06, 0, 0, 0x48, 0, 1])), None);
    }

    proptest! {
        #[test]
        fn decode_undoes_remote(qpn in 2_u32..0xff_ffff, lid in 1_u16..0xc000) {
            let (qpn, lid) = (Qpn::new(qpn).unwrap(), Lid::new(lid));
            prop_assert_eq!(decode(remote(qpn, lid)), Some((qpn, lid)));
            prop_assert!(remote(qpn, lid).is_local() && remote(qpn, lid).is_station());
        }
    }
}
