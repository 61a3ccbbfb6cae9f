//! Vectors follow the figures of RFC 4861, section 4, RFC 2464, section 6, and RFC 4391, section 9.3.

extern crate std;
use super::super::translate::testing::{Fabric, alice, bob};
use super::*;
use proptest::prelude::*;
use std::vec;
use std::vec::Vec;

const SOURCE_IP: [u8; 16] = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
const TARGET_IP: [u8; 16] = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];
const MTU_OPTION: [u8; 8] = [5, 1, 0, 0, 0, 0, 5, 0xdc];

/// An IPv6 packet with this message and a right checksum. `extension` is put before the ICMPv6 header.
fn packet(message: Message, extension: &[u8], options: &[u8]) -> Vec<u8> {
    let mut icmp = vec![message as u8, 0, 0, 0];
    icmp.resize(message.fixed_len(), 0);
    if let Some(target) = icmp.get_mut(8..24) {
        target.copy_from_slice(&TARGET_IP);
    }
    icmp.extend(options);
    let sum = checksum::pseudo_v6(SOURCE_IP, TARGET_IP, ICMPV6, icmp.len() as u16).bytes(&icmp);
    icmp[2..4].copy_from_slice(&checksum::checksum(sum).to_be_bytes());
    let len = (extension.len() + icmp.len()) as u16;
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend(len.to_be_bytes());
    packet.extend([if extension.is_empty() { ICMPV6 } else { 60 }, 255]);
    packet.extend(SOURCE_IP);
    packet.extend(TARGET_IP);
    packet.extend(extension);
    packet.extend(icmp);
    packet
}

/// Zero if the checksum is right.
fn residual(packet: &[u8], icmp_at: usize) -> u16 {
    let header = Ipv6::parse(packet, packet.len()).unwrap();
    let icmp = &packet[icmp_at..header.total_len];
    checksum::checksum(
        checksum::pseudo_v6(header.source, header.destination, ICMPV6, icmp.len() as u16).bytes(icmp),
    )
}

fn ethernet_option(kind: u8, mac: MacAddr) -> Vec<u8> {
    let mut option = vec![kind, 1];
    option.extend(mac.to_bytes());
    option
}

fn infiniband_option(kind: u8, address: HwAddr) -> Vec<u8> {
    let mut option = vec![kind, 3, 0, 0];
    option.extend(address.to_bytes());
    option
}

fn down(packet: &[u8], icmp_at: usize) -> Result<Vec<u8>, Untranslatable> {
    let mut out = [0xee; 2048];
    to_infiniband(packet, icmp_at, &alice(), &Fabric, &mut out).map(|len| out[..len].to_vec())
}

/// At bob's, from alice.
fn up(mut packet: Vec<u8>, icmp_at: usize) -> Result<Vec<u8>, Untranslatable> {
    let sender = (&alice().address, Fabric::mac(&alice()));
    let len = to_ethernet(&mut packet, icmp_at, Some(sender), &bob(), &Fabric)?;
    packet.truncate(len);
    Ok(packet)
}

#[test]
fn a_solicitation_grows_by_16_bytes_with_length_and_checksum() {
    let sent = packet(Message::NeighborSolicitation, &[], &ethernet_option(SOURCE, alice().mac));
    assert_eq!((sent.len(), residual(&sent, 40)), (72, 0));
    let wire = down(&sent, 40).unwrap();
    let expected = packet(Message::NeighborSolicitation, &[], &infiniband_option(SOURCE, alice().address));
    assert_eq!(wire, expected);
    assert_eq!(wire.len(), 88);
    assert_eq!(wire[4..6], 48_u16.to_be_bytes());
    assert_eq!(wire[64..68], [1, 3, 0, 0], "type, 24 bytes, two of padding");
}

#[test]
fn every_message_names_its_own_address_in_its_own_option() {
    for (message, kind) in [
        (Message::RouterSolicitation, SOURCE),
        (Message::RouterAdvertisement, SOURCE),
        (Message::NeighborSolicitation, SOURCE),
        (Message::NeighborAdvertisement, TARGET),
    ] {
        let wire = down(&packet(message, &[], &ethernet_option(kind, alice().mac)), 40).unwrap();
        assert_eq!(claim(&wire, 40), Ok(Some(alice().address)), "{message:?}");
        let arrived = up(wire, 40).unwrap();
        assert_eq!(arrived, packet(message, &[], &ethernet_option(kind, Fabric::mac(&alice()))));
    }
    let silent = packet(Message::NeighborSolicitation, &[], &[]);
    assert_eq!(claim(&silent, 40), Ok(None), "duplicate address detection names nobody");
    let redirect = packet(Message::Redirect, &[], &infiniband_option(TARGET, bob().address));
    assert_eq!(claim(&redirect, 40), Ok(None), "a redirect names another host");
}

#[test]
fn other_options_stay_in_their_order() {
    let prefix = {
        let mut option = vec![3, 4];
        option.resize(32, 0x5a);
        option
    };
    let own = ethernet_option(SOURCE, alice().mac);
    let sent = packet(Message::RouterAdvertisement, &[], &[&MTU_OPTION[..], &own, &prefix].concat());
    let wire = down(&sent, 40).unwrap();
    let own = infiniband_option(SOURCE, alice().address);
    assert_eq!(wire, packet(Message::RouterAdvertisement, &[], &[&MTU_OPTION[..], &own, &prefix].concat()));
    let seen = ethernet_option(SOURCE, Fabric::mac(&alice()));
    assert_eq!(
        up(wire, 40).unwrap(),
        packet(Message::RouterAdvertisement, &[], &[&MTU_OPTION[..], &seen, &prefix].concat())
    );
}

#[test]
fn extension_headers_are_kept() {
    let extension = [ICMPV6, 0, 1, 4, 0, 0, 0, 0];
    let sent = packet(Message::NeighborSolicitation, &extension, &ethernet_option(SOURCE, alice().mac));
    let wire = down(&sent, 48).unwrap();
    assert_eq!(
        wire,
        packet(Message::NeighborSolicitation, &extension, &infiniband_option(SOURCE, alice().address))
    );
    assert_eq!(residual(&wire, 48), 0);
    let seen = ethernet_option(SOURCE, Fabric::mac(&alice()));
    assert_eq!(up(wire, 48).unwrap(), packet(Message::NeighborSolicitation, &extension, &seen));
}

#[test]
fn a_redirect_to_somebody_known_is_translated_and_to_somebody_unknown_loses_its_option() {
    let mac = ethernet_option(TARGET, Fabric::mac(&bob()));
    let wire = down(&packet(Message::Redirect, &[], &[&mac[..], &MTU_OPTION].concat()), 40).unwrap();
    let address = infiniband_option(TARGET, bob().address);
    assert_eq!(wire, packet(Message::Redirect, &[], &[&address[..], &MTU_OPTION].concat()));

    let stranger = ethernet_option(TARGET, MacAddr::new([2, 1, 1, 1, 1, 1]));
    let sent = packet(Message::Redirect, &[], &[&stranger[..], &MTU_OPTION].concat());
    assert_eq!(down(&sent, 40).unwrap(), packet(Message::Redirect, &[], &MTU_OPTION));
    let mut far = bob().address;
    far.gid = crate::ipoib::Gid::from_parts([0xfe, 0xc0, 0, 0, 0, 0, 0, 1], [9; 8]);
    let wire = packet(Message::Redirect, &[], &[&infiniband_option(TARGET, far)[..], &MTU_OPTION].concat());
    assert_eq!(up(wire, 40).unwrap(), packet(Message::Redirect, &[], &MTU_OPTION));
}

#[test]
fn nobody_unknown_is_spoken_for_and_nobody_unknown_is_passed_up() {
    let stranger = ethernet_option(SOURCE, MacAddr::new([2, 1, 1, 1, 1, 1]));
    let sent = packet(Message::NeighborSolicitation, &[], &stranger);
    assert_eq!(down(&sent, 40), Err(Untranslatable::Foreign));
    let mut far = alice().address;
    far.gid = crate::ipoib::Gid::from_parts([0xfe, 0xc0, 0, 0, 0, 0, 0, 1], [9; 8]);
    let wire = packet(Message::NeighborSolicitation, &[], &infiniband_option(SOURCE, far));
    assert_eq!(up(wire, 40), Err(Untranslatable::Unknown(far)));
}

/// RFC 4861, sections 6.1 and 7.1: an option of length zero makes the whole message invalid.
#[test]
fn malformed_messages_are_refused() {
    let own = ethernet_option(SOURCE, alice().mac);
    let good = packet(Message::NeighborSolicitation, &[], &own);
    let mut zero = good.clone();
    zero[65] = 0;
    let mut beyond = good.clone();
    beyond[65] = 2;
    let mut ragged = packet(Message::NeighborSolicitation, &[], &[&own[..], &[5]].concat());
    ragged[5] = 33;
    let short = packet(Message::RouterSolicitation, &[], &[]);
    let mut kind = short.clone();
    kind[40] = Message::Redirect as u8;
    for bad in [&zero, &beyond, &ragged, &kind, &good[..60].to_vec()] {
        assert_eq!(down(bad, 40), Err(Untranslatable::Malformed));
        assert_eq!(up(bad.clone(), 40), Err(Untranslatable::Malformed));
    }
    let misfit = packet(Message::NeighborSolicitation, &[], &infiniband_option(SOURCE, alice().address));
    assert_eq!(down(&misfit, 40), Err(Untranslatable::Malformed), "InfiniBand's option from Windows");
    assert_eq!(up(good, 40), Err(Untranslatable::Malformed), "Ethernet's option from the wire");
}

#[test]
fn a_buffer_that_is_too_small_is_an_error() {
    let sent = packet(Message::NeighborSolicitation, &[], &ethernet_option(SOURCE, alice().mac));
    for len in 0..88 {
        let mut out = vec![0; len];
        let result = to_infiniband(&sent, 40, &alice(), &Fabric, &mut out);
        assert_eq!(result, Err(Untranslatable::NoSpace), "{len}");
    }
    let mut out = [0; 88];
    assert_eq!(to_infiniband(&sent, 40, &alice(), &Fabric, &mut out), Ok(88));
}

fn any_message() -> impl Strategy<Value = Message> {
    prop::sample::select(vec![
        Message::RouterSolicitation,
        Message::RouterAdvertisement,
        Message::NeighborSolicitation,
        Message::NeighborAdvertisement,
        Message::Redirect,
    ])
}

/// Options that Windows may send: its own address, a known neighbor's, or anything else.
fn any_options() -> impl Strategy<Value = Vec<u8>> {
    let option = prop_oneof![
        (1_u8..3, any::<bool>()).prop_map(|(kind, own)| {
            ethernet_option(kind, if own { alice().mac } else { Fabric::mac(&bob()) })
        }),
        (3_u8.., 1_u8..4, any::<u8>()).prop_map(|(kind, units, fill)| {
            let mut option = vec![kind, units];
            option.resize(usize::from(units) * 8, fill);
            option
        }),
    ];
    prop::collection::vec(option, 0..5).prop_map(|options| options.concat())
}

proptest! {
    /// What alice's Windows says arrives at bob's with the addresses that hosts have for each other, and a
    /// checksum that was right is right, on the wire and after it; one that was wrong stays wrong by as much.
    #[test]
    fn up_undoes_down_and_the_checksum_keeps_its_error(
        message in any_message(),
        options in any_options(),
        error: u16,
    ) {
        let mut sent = packet(message, &[], &options);
        let sum = Sum::ZERO.word(u16::from_be_bytes([sent[42], sent[43]])).word(error).fold();
        sent[42..44].copy_from_slice(&sum.to_be_bytes());
        let is_right = |residual: u16| residual == 0 || residual == 0xffff;
        let right = is_right(residual(&sent, 40));
        prop_assert_eq!(right, error == 0 || error == 0xffff);

        let wire = down(&sent, 40).unwrap();
        prop_assert_eq!(is_right(residual(&wire, 40)), right);
        let arrived = up(wire, 40).unwrap();
        prop_assert_eq!(is_right(residual(&arrived, 40)), right);

        // The same options, hosts renamed.
        let mut expected = options;
        let mut at = 0;
        while at < expected.len() {
            let len = usize::from(expected[at + 1]) * 8;
            if let Some((kind, mac)) = ethernet_address(&expected[at..at + len]) {
                let seen = if mac == alice().mac { Fabric::mac(&alice()) } else { bob().mac };
                // Both hosts have the same local address here, so one that is bob's own reads like alice's.
                expected[at..at + len].copy_from_slice(&ethernet_option(kind, seen));
            }
            at += len;
        }
        let expected = packet(message, &[], &expected);
        prop_assert_eq!(&arrived[44..], &expected[44..]);
        prop_assert_eq!(&arrived[..42], &expected[..42]);
    }

    #[test]
    fn any_bytes_are_survived(
        mut bytes in prop::collection::vec(any::<u8>(), 0..160),
        message in any_message(),
        icmp_at in 40_usize..60,
        shape: bool,
    ) {
        if shape && bytes.len() > icmp_at {
            bytes[0] = 0x60;
            let len = (bytes.len() - 40) as u16;
            bytes[4..6].copy_from_slice(&len.to_be_bytes());
            bytes[icmp_at] = message as u8;
        }
        let _ = down(&bytes, icmp_at);
        let _ = claim(&bytes, icmp_at);
        let before = bytes.clone();
        let sender = (&alice().address, Fabric::mac(&alice()));
        if to_ethernet(&mut bytes, icmp_at, Some(sender), &bob(), &Fabric).is_err() {
            prop_assert_eq!(bytes, before, "an error changes nothing");
        }
    }
}
