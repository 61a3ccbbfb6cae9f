//! ARP over Ethernet (RFC 826) and over InfiniBand (RFC 4391, sections 9.1 and 9.2), from one to the other.

use super::hwaddr::HwAddr;
use super::mac::MacAddr;
use super::translate::{Context, Neighbors};
use super::wire;

/// A kind of hardware address that ARP can carry.
pub trait Hardware: Copy {
    /// The hardware type.
    const TYPE: u16;
    /// Bytes of an address.
    const LEN: usize;

    /// From the bytes at `at`; `None` if they are not there.
    fn read(bytes: &[u8], at: usize) -> Option<Self>;
    /// To the bytes at `at`; `None` if they are not there.
    fn write(self, bytes: &mut [u8], at: usize) -> Option<()>;
}

impl Hardware for MacAddr {
    const TYPE: u16 = 1;
    const LEN: usize = Self::LEN;

    fn read(bytes: &[u8], at: usize) -> Option<Self> {
        wire::array(bytes, at).map(Self::new)
    }

    fn write(self, bytes: &mut [u8], at: usize) -> Option<()> {
        wire::put(bytes, at, &self.to_bytes())
    }
}

impl Hardware for HwAddr {
    const TYPE: u16 = Self::ARP_TYPE;
    const LEN: usize = Self::LEN;

    fn read(bytes: &[u8], at: usize) -> Option<Self> {
        wire::array(bytes, at).map(|address| Self::parse(&address))
    }

    fn write(self, bytes: &mut [u8], at: usize) -> Option<()> {
        wire::put(bytes, at, &self.to_bytes())
    }
}

/// An ARP packet for IPv4.
///
/// ```text
/// hardware type 2 | 0x0800 2 | hardware length 1 | 4 1 | operation 2 |
/// sender hardware | sender IPv4 4 | target hardware | target IPv4 4
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<H> {
    /// 1 request, 2 reply, 3 and 4 for reverse ARP; others are carried as they are.
    pub operation: u16,
    /// The sender's hardware address.
    pub sender: H,
    /// The sender's IPv4 address; 0.0.0.0 in a probe (RFC 5227, section 1.1).
    pub sender_ip: [u8; 4],
    /// The target's hardware address; nothing in a request (RFC 5227, section 2.1.1: zero).
    pub target: H,
    /// The target's IPv4 address; the sender's in an announcement (RFC 5227, section 1.1).
    pub target_ip: [u8; 4],
}

/// Bytes before the addresses.
const FIXED: usize = 8;
const IPV4: u16 = 0x0800;

impl<H: Hardware> Packet<H> {
    /// Bytes on the wire: 28 over Ethernet, 56 over InfiniBand.
    pub const LEN: usize = FIXED + 2 * (H::LEN + 4);

    /// From its bytes, padding after them ignored. `None` if they are too few, or the types or lengths are
    /// others.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let valid = wire::be16(bytes, 0)? == H::TYPE
            && wire::be16(bytes, 2)? == IPV4
            && wire::array(bytes, 4)? == [H::LEN as u8, 4];
        if !valid {
            return None;
        }
        let sender_ip = FIXED + H::LEN;
        Some(Self {
            operation: wire::be16(bytes, 6)?,
            sender: H::read(bytes, FIXED)?,
            sender_ip: wire::array(bytes, sender_ip)?,
            target: H::read(bytes, sender_ip + 4)?,
            target_ip: wire::array(bytes, sender_ip + 4 + H::LEN)?,
        })
    }

    /// Writes [`Self::LEN`] bytes at the beginning of `bytes`; `None`, with something or nothing written, if
    /// they do not fit.
    pub fn emit(&self, bytes: &mut [u8]) -> Option<usize> {
        let sender_ip = FIXED + H::LEN;
        wire::put(bytes, 0, &H::TYPE.to_be_bytes())?;
        wire::put(bytes, 2, &IPV4.to_be_bytes())?;
        wire::put(bytes, 4, &[H::LEN as u8, 4])?;
        wire::put(bytes, 6, &self.operation.to_be_bytes())?;
        self.sender.write(bytes, FIXED)?;
        wire::put(bytes, sender_ip, &self.sender_ip)?;
        self.target.write(bytes, sender_ip + 4)?;
        wire::put(bytes, sender_ip + 4 + H::LEN, &self.target_ip)?;
        Some(Self::LEN)
    }

    fn with<G>(&self, sender: G, target: G) -> Packet<G> {
        let Self { operation, sender_ip, target_ip, .. } = *self;
        Packet { operation, sender, sender_ip, target, target_ip }
    }
}

/// From Windows to the wire. `None` if the sender is not this adapter: a bridge cannot work over IPoIB, and
/// what it said in another's name would be false.
///
/// A target that is not known is left out, which no receiver minds: who the frame is for is said by where it
/// is sent, and RFC 826 has receivers look at the sender alone.
pub fn to_infiniband(
    packet: &Packet<MacAddr>,
    context: &Context,
    neighbors: &impl Neighbors,
) -> Option<Packet<HwAddr>> {
    if packet.sender != context.mac {
        return None;
    }
    let target = match packet.target {
        mac if mac == context.mac => context.address,
        MacAddr::BROADCAST => context.broadcast.unwrap_or(HwAddr::ZERO),
        mac => neighbors.address_of(mac).unwrap_or(HwAddr::ZERO),
    };
    Some(packet.with(context.address, target))
}

/// From the wire to Windows. `sender` is the Ethernet address of the packet's sender hardware address.
pub fn to_ethernet(
    packet: &Packet<HwAddr>,
    sender: MacAddr,
    context: &Context,
    neighbors: &impl Neighbors,
) -> Packet<MacAddr> {
    let target = match packet.target {
        address if address.same_interface(&context.address) => context.mac,
        address if address.same_interface(&packet.sender) => sender,
        address if address.gid.is_multicast() => MacAddr::BROADCAST,
        address => neighbors.mac_of(&address).unwrap_or(MacAddr::ZERO),
    };
    packet.with(sender, target)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::super::translate::testing::{Fabric, alice, bob};
    use super::*;
    use proptest::prelude::*;

    /// The layout of Linux drivers/infiniband/ulp/ipoib, as tcpdump shows a request: ARPHRD_INFINIBAND,
    /// ETH_P_IP, 20, 4.
    #[test]
    fn an_infiniband_request_has_56_bytes_in_rfc_4391_order() {
        let packet = Packet {
            operation: 1,
            sender: alice().address,
            sender_ip: [10, 0, 0, 1],
            target: HwAddr::ZERO,
            target_ip: [10, 0, 0, 2],
        };
        let mut bytes = [0xee; 60];
        assert_eq!(packet.emit(&mut bytes), Some(56));
        assert_eq!(bytes[..8], [0, 32, 8, 0, 20, 4, 0, 1]);
        assert_eq!(bytes[8..28], alice().address.to_bytes());
        assert_eq!(bytes[28..32], [10, 0, 0, 1]);
        assert_eq!(bytes[32..52], [0; 20]);
        assert_eq!(bytes[52..56], [10, 0, 0, 2]);
        assert_eq!(bytes[56..], [0xee; 4]);
        assert_eq!(Packet::<HwAddr>::parse(&bytes), Some(packet));
        assert_eq!(Packet::<HwAddr>::parse(&bytes[..55]), None);
        assert_eq!(Packet::<MacAddr>::parse(&bytes), None);
    }

    fn ethernet(operation: u16, sender_ip: [u8; 4], target: MacAddr, target_ip: [u8; 4]) -> Packet<MacAddr> {
        Packet { operation, sender: alice().mac, sender_ip, target, target_ip }
    }

    #[test]
    fn a_request_a_probe_and_an_announcement_name_their_sender_and_nobody_else() {
        for (sender_ip, target_ip) in
            [([10, 0, 0, 1], [10, 0, 0, 2]), ([0; 4], [10, 0, 0, 1]), ([10, 0, 0, 1], [10, 0, 0, 1])]
        {
            let packet = ethernet(1, sender_ip, MacAddr::ZERO, target_ip);
            let wire = to_infiniband(&packet, &alice(), &Fabric).unwrap();
            assert_eq!(wire.sender, alice().address);
            assert_eq!(wire.target, HwAddr::ZERO);
            assert_eq!((wire.sender_ip, wire.target_ip, wire.operation), (sender_ip, target_ip, 1));
        }
    }

    #[test]
    fn a_reply_names_the_peer_and_arrives_as_named() {
        let packet = ethernet(2, [10, 0, 0, 1], Fabric::mac(&bob()), [10, 0, 0, 2]);
        let wire = to_infiniband(&packet, &alice(), &Fabric).unwrap();
        assert_eq!(wire.target, bob().address);
        let arrived = to_ethernet(&wire, Fabric::mac(&alice()), &bob(), &Fabric);
        assert_eq!(arrived.sender, Fabric::mac(&alice()));
        assert_eq!(arrived.target, bob().mac, "the target is the receiver, under its own local address");
    }

    /// Linux net/ipv4/arp.c, arp_is_garp: a gratuitous reply has its sender's address as target too.
    #[test]
    fn a_gratuitous_reply_keeps_sender_and_target_equal() {
        let packet = ethernet(2, [10, 0, 0, 1], alice().mac, [10, 0, 0, 1]);
        let wire = to_infiniband(&packet, &alice(), &Fabric).unwrap();
        assert_eq!(wire.sender, wire.target);
        let arrived = to_ethernet(&wire, Fabric::mac(&alice()), &bob(), &Fabric);
        assert_eq!(arrived.sender, arrived.target);
    }

    #[test]
    fn a_broadcast_target_is_the_broadcast_group() {
        let packet = ethernet(2, [10, 0, 0, 1], MacAddr::BROADCAST, [10, 0, 0, 1]);
        let wire = to_infiniband(&packet, &alice(), &Fabric).unwrap();
        assert_eq!(Some(wire.target), alice().broadcast);
        assert_eq!(to_ethernet(&wire, alice().mac, &bob(), &Fabric).target, MacAddr::BROADCAST);
    }

    #[test]
    fn nobody_else_is_spoken_for() {
        let foreign =
            Packet { sender: MacAddr::new([2, 9, 9, 9, 9, 9]), ..ethernet(1, [0; 4], MacAddr::ZERO, [0; 4]) };
        assert_eq!(to_infiniband(&foreign, &alice(), &Fabric), None);
    }

    fn any_packet() -> impl Strategy<Value = Packet<MacAddr>> {
        (any::<u16>(), any::<[u8; 4]>(), any::<[u8; 4]>(), 0..4).prop_map(
            |(operation, sender_ip, target_ip, whom)| {
                let target = [MacAddr::ZERO, MacAddr::BROADCAST, alice().mac, Fabric::mac(&bob())];
                ethernet(operation, sender_ip, target[whom as usize], target_ip)
            },
        )
    }

    proptest! {
        #[test]
        fn emit_undoes_parse(bytes in prop::collection::vec(any::<u8>(), 0..80), infiniband: bool) {
            let mut bytes = bytes;
            let fixed: &[u8] = if infiniband { &[0, 32, 8, 0, 20, 4] } else { &[0, 1, 8, 0, 6, 4] };
            for (byte, fixed) in bytes.iter_mut().zip(fixed) {
                *byte = *fixed;
            }
            let mut out = [0; 80];
            let len = if infiniband {
                Packet::<HwAddr>::parse(&bytes).and_then(|packet| packet.emit(&mut out))
            } else {
                Packet::<MacAddr>::parse(&bytes).and_then(|packet| packet.emit(&mut out))
            };
            prop_assert_eq!(len.is_some(), bytes.len() >= if infiniband { 56 } else { 28 });
            let len = len.unwrap_or(0);
            prop_assert_eq!(&out[..len], &bytes[..len]);
        }

        /// What the sender's Windows said arrives at the receiver's, under the addresses that hosts have for
        /// each other.
        #[test]
        fn up_undoes_down(packet in any_packet()) {
            let wire = to_infiniband(&packet, &alice(), &Fabric).unwrap();
            let arrived = to_ethernet(&wire, Fabric::mac(&alice()), &bob(), &Fabric);
            let seen = |mac: MacAddr| {
                if mac == alice().mac {
                    Fabric::mac(&alice())
                } else if mac == Fabric::mac(&bob()) {
                    bob().mac
                } else {
                    mac
                }
            };
            let expected = Packet { sender: seen(packet.sender), target: seen(packet.target), ..packet };
            prop_assert_eq!(arrived, expected);
        }
    }
}
