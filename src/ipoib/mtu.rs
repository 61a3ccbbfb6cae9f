//! The MTU of an InfiniBand link or path, and of the IPoIB link on it.

use super::encap;
use super::ethernet;

/// The encoding in PortInfo, path and multicast records (IBTA volume 1, 14.2.5.6 and 15.2.5.16).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Mtu {
    /// 256 bytes.
    B256 = 1,
    /// 512 bytes.
    B512 = 2,
    /// 1024 bytes.
    B1024 = 3,
    /// 2048 bytes: what OpenSM gives an IPoIB broadcast group unless told otherwise.
    B2048 = 4,
    /// 4096 bytes.
    B4096 = 5,
}

impl Mtu {
    /// All of them, the smallest first.
    pub const ALL: [Self; 5] = [Self::B256, Self::B512, Self::B1024, Self::B2048, Self::B4096];

    /// From the code; `None` if it is reserved.
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::B256),
            2 => Some(Self::B512),
            3 => Some(Self::B1024),
            4 => Some(Self::B2048),
            5 => Some(Self::B4096),
            _ => None,
        }
    }

    /// The code.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Bytes of a packet's payload.
    pub const fn bytes(self) -> usize {
        128 << (self as u8)
    }

    /// The largest IP packet: the payload less the IPoIB header (RFC 4391, section 7).
    pub const fn ip_bytes(self) -> usize {
        self.bytes() - encap::HEADER_LEN
    }

    /// The largest MTU whose payload is at most `bytes`; `None` below 256.
    pub const fn largest_within(bytes: usize) -> Option<Self> {
        match bytes {
            0..256 => None,
            256..512 => Some(Self::B256),
            512..1024 => Some(Self::B512),
            1024..2048 => Some(Self::B1024),
            2048..4096 => Some(Self::B2048),
            _ => Some(Self::B4096),
        }
    }

    /// The smallest MTU that carries an IP packet of `ip_bytes`; `None` if none does.
    pub const fn carrying(ip_bytes: usize) -> Option<Self> {
        match ip_bytes {
            0..=252 => Some(Self::B256),
            253..=508 => Some(Self::B512),
            509..=1020 => Some(Self::B1024),
            1021..=2044 => Some(Self::B2048),
            2045..=4092 => Some(Self::B4096),
            _ => None,
        }
    }
}

/// The IP MTU of a link: that of the broadcast group (RFC 4391, section 7), no more than the configured
/// limit.
pub const fn link_ip_mtu(group: Mtu, configured: usize) -> usize {
    let group = group.ip_bytes();
    if configured < group { configured } else { group }
}

/// The Ethernet frame that an IP MTU makes.
pub const fn frame_len(ip_mtu: usize) -> usize {
    ethernet::Header::LEN + ip_mtu
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_bytes_are_those_of_the_architecture() {
        let bytes = Mtu::ALL.map(Mtu::bytes);
        assert_eq!(bytes, [256, 512, 1024, 2048, 4096]);
        for mtu in Mtu::ALL {
            assert_eq!(Mtu::from_code(mtu.code()), Some(mtu));
            assert_eq!(Mtu::largest_within(mtu.bytes()), Some(mtu));
            assert_eq!(Mtu::carrying(mtu.ip_bytes()), Some(mtu));
            assert_ne!(Mtu::carrying(mtu.ip_bytes() + 1), Some(mtu));
            assert_ne!(Mtu::largest_within(mtu.bytes() - 1), Some(mtu));
        }
        assert_eq!(Mtu::from_code(0), None);
        assert_eq!(Mtu::from_code(6), None);
    }

    #[test]
    fn a_link_of_2048_carries_ip_packets_of_2044() {
        assert_eq!(link_ip_mtu(Mtu::B2048, 4092), 2044);
        assert_eq!(link_ip_mtu(Mtu::B2048, 1500), 1500);
        assert_eq!(frame_len(2044), 2058);
    }
}
