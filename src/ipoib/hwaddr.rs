//! The 20-byte IPoIB hardware address (RFC 4391, section 9.1.1).

use super::ids::{Gid, Qpn};
use super::wire;
use core::fmt;

/// What ARP and Neighbor Discovery call the link-layer address of an IPoIB interface.
///
/// ```text
/// | flags, 1 byte | QPN, 3 bytes | GID, 16 bytes |
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HwAddr {
    /// RFC 4391 reserves the first byte: zero when sent, ignored when received. RFC 4755, section 3.1, puts
    /// the connected modes there; this driver offers none.
    pub flags: u8,
    /// The UD QP of the interface.
    pub qpn: Qpn,
    /// The port.
    pub gid: Gid,
}

impl HwAddr {
    /// Bytes on the wire.
    pub const LEN: usize = 20;
    /// The ARP hardware type, ARPHRD_INFINIBAND (IANA ARP parameters).
    pub const ARP_TYPE: u16 = 32;

    /// No address: what ARP carries where it has none.
    pub const ZERO: Self = Self { flags: 0, qpn: Qpn::ZERO, gid: Gid::UNSPECIFIED };

    /// An address without connected modes.
    pub const fn new(qpn: Qpn, gid: Gid) -> Self {
        Self { flags: 0, qpn, gid }
    }

    /// Any 20 bytes are an address; see [`Self::is_interface`].
    pub const fn parse(bytes: &[u8; Self::LEN]) -> Self {
        Self {
            flags: bytes[0],
            qpn: Qpn::from_bytes(wire::field::<1, 3, 20>(bytes)),
            gid: Gid::new(wire::field::<4, 16, 20>(bytes)),
        }
    }

    /// The bytes on the wire.
    pub const fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[0] = self.flags;
        wire::set::<1, 3, 20>(&mut bytes, self.qpn.to_bytes());
        wire::set::<4, 16, 20>(&mut bytes, self.gid.to_bytes());
        bytes
    }

    /// Whether it is that of an interface: a QPN and a GID that one can have.
    pub fn is_interface(&self) -> bool {
        self.qpn.is_interface() && self.gid.is_unicast()
    }

    /// Whether both name the same interface, whatever modes they offer.
    pub fn same_interface(&self, other: &Self) -> bool {
        self.qpn == other.qpn && self.gid == other.gid
    }
}

impl fmt::Display for HwAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02x}:{:06x}:{}", self.flags, self.qpn.get(), self.gid)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    /// Linux net/ethtool and `ip link` show an interface's address in this order: flags, QPN, GID.
    const BYTES: [u8; 20] = [
        0x80, 0x00, 0x02, 0x08, 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x00, 0x02, 0xc9, 0x03, 0x00, 0x1b, 0x2c, 0x3d,
    ];

    #[test]
    fn fields_are_where_rfc_4391_puts_them() {
        let address = HwAddr::parse(&BYTES);
        assert_eq!(address.flags, 0x80);
        assert_eq!(address.qpn.get(), 0x208);
        assert_eq!(address.gid.prefix(), Gid::DEFAULT_PREFIX);
        assert_eq!(address.gid.guid(), [0x00, 0x02, 0xc9, 0x03, 0x00, 0x1b, 0x2c, 0x3d]);
        assert_eq!(address.to_string(), "80:000208:fe80:0000:0000:0000:0002:c903:001b:2c3d");
    }

    #[test]
    fn connected_modes_do_not_make_another_interface() {
        let address = HwAddr::parse(&BYTES);
        assert!(address.same_interface(&HwAddr::new(address.qpn, address.gid)));
        assert!(address.is_interface());
        assert!(!HwAddr::new(Qpn::MULTICAST, address.gid).is_interface());
    }

    proptest! {
        #[test]
        fn emit_undoes_parse(bytes: [u8; 20]) {
            prop_assert_eq!(HwAddr::parse(&bytes).to_bytes(), bytes);
        }
    }
}
