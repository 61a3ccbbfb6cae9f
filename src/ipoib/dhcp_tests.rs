//! Vectors follow RFC 2131, section 2, RFC 4390, section 2, and what a Windows client and ISC dhclient send.

extern crate std;
use super::super::translate::testing::{Fabric, alice, bob};
use super::*;
use proptest::prelude::*;
use std::vec;
use std::vec::Vec;

const AT: usize = 28;

/// A packet with right checksums, or without a UDP checksum.
fn packet(
    speaker: Speaker,
    hardware: [u8; 2],
    chaddr: &[u8],
    flags: u8,
    options: &[u8],
    udp_sum: bool,
) -> Vec<u8> {
    let (op, ports) = match speaker {
        Speaker::Client => (1, [0, 68, 0, 67]),
        Speaker::Server => (2, [0, 67, 0, 68]),
    };
    let mut message = vec![op, hardware[0], hardware[1], 0, 0xde, 0xad, 0xbe, 0xef, 0, 0, flags, 0];
    message.resize(OPTIONS, 0);
    message[CHADDR..CHADDR + chaddr.len()].copy_from_slice(chaddr);
    message[OPTIONS - 4..].copy_from_slice(&COOKIE);
    message.extend(options);
    let udp_len = (8 + message.len()) as u16;
    let (source, destination) = ([0, 0, 0, 0], [255; 4]);
    let mut udp = ports.to_vec();
    udp.extend(udp_len.to_be_bytes());
    udp.extend([0, 0]);
    udp.extend(message);
    if udp_sum {
        let sum = checksum::checksum(checksum::pseudo_v4(source, destination, ip::UDP, udp_len).bytes(&udp));
        udp[6..8].copy_from_slice(&if sum == 0 { 0xffff } else { sum }.to_be_bytes());
    }
    let mut packet = vec![0x45, 0];
    packet.extend((20 + udp_len).to_be_bytes());
    packet.extend([0, 1, 0, 0, 128, ip::UDP, 0, 0]);
    packet.extend(source);
    packet.extend(destination);
    let sum = checksum::checksum(Sum::ZERO.bytes(&packet));
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend(udp);
    packet
}

fn are_sums_right(packet: &[u8]) -> bool {
    let header = Ipv4::parse(packet, packet.len()).unwrap();
    let udp = &packet[20..header.total_len];
    let udp_sum = udp[6..8] == [0, 0]
        || checksum::pseudo_v4(header.source, header.destination, ip::UDP, udp.len() as u16)
            .bytes(udp)
            .fold()
            == 0xffff;
    udp_sum
        && Sum::ZERO.bytes(&packet[..20]).fold() == 0xffff
        && udp[4..6] == (udp.len() as u16).to_be_bytes()
}

fn down(packet: &[u8], speaker: Speaker) -> Result<Vec<u8>, Untranslatable> {
    let mut out = [0xee; 2048];
    to_infiniband(packet, speaker, &alice(), &mut out).map(|len| out[..len].to_vec())
}

fn up(mut packet: Vec<u8>, speaker: Speaker, sender: MacAddr, context: &Context) -> Vec<u8> {
    let len = to_ethernet(&mut packet, speaker, sender, context).unwrap();
    packet.truncate(len);
    packet
}

fn option(code: u8, value: &[u8]) -> Vec<u8> {
    let mut option = vec![code, value.len() as u8];
    option.extend(value);
    option
}

fn windows_identifier(mac: MacAddr) -> Vec<u8> {
    option(CLIENT_ID, &[&[ETHERNET][..], &mac.to_bytes()].concat())
}

fn own_identifier(context: &Context) -> Vec<u8> {
    option(CLIENT_ID, &identifier(context.address.gid.guid()))
}

const DISCOVER: [u8; 3] = [53, 1, 1];
const NAME: [u8; 6] = [12, 4, b'h', b'o', b's', b't'];

/// NVIDIA and Red Hat document this identifier for dhclient.conf on InfiniBand.
#[test]
fn the_identifier_is_the_one_infiniband_hosts_are_configured_with() {
    assert_eq!(
        identifier([0x00, 0x02, 0xc9, 0x03, 0x00, 0x00, 0x10, 0x01]),
        [0xff, 0, 0, 0, 0, 0, 2, 0, 0, 2, 0xc9, 0, 0x00, 0x02, 0xc9, 0x03, 0x00, 0x00, 0x10, 0x01]
    );
}

#[test]
fn a_windows_discover_becomes_rfc_4390() {
    let options = [&DISCOVER[..], &windows_identifier(alice().mac), &NAME, &[END]].concat();
    let sent = packet(Speaker::Client, [1, 6], &alice().mac.to_bytes(), 0, &options, true);
    let wire = down(&sent, Speaker::Client).unwrap();
    let expected = [&DISCOVER[..], &own_identifier(&alice()), &NAME, &[END]].concat();
    assert_eq!(wire, packet(Speaker::Client, [32, 0], &[], 0x80, &expected, true));
    assert!(are_sums_right(&wire));
}

/// ISC dhclient sends no identifier unless configured.
#[test]
fn a_client_without_an_identifier_gets_one() {
    let sent =
        packet(Speaker::Client, [1, 6], &alice().mac.to_bytes(), 0, &[&DISCOVER[..], &[END]].concat(), true);
    let wire = down(&sent, Speaker::Client).unwrap();
    let expected = [&DISCOVER[..], &own_identifier(&alice()), &[END]].concat();
    assert_eq!(wire, packet(Speaker::Client, [32, 0], &[], 0x80, &expected, true));
}

#[test]
fn an_identifier_of_the_clients_own_choice_is_kept() {
    let chosen = option(CLIENT_ID, b"\xff\x12\x34\x56\x78\x00\x01chosen");
    let options = [&DISCOVER[..], &chosen, &[END]].concat();
    let wire =
        down(&packet(Speaker::Client, [1, 6], &alice().mac.to_bytes(), 0, &options, true), Speaker::Client)
            .unwrap();
    assert_eq!(wire, packet(Speaker::Client, [32, 0], &[], 0x80, &options, true));
}

/// RFC 4390, section 2.2: the flag is for those who cannot be resolved yet.
#[test]
fn a_client_that_has_an_address_does_not_ask_for_broadcast() {
    let mut sent = packet(Speaker::Client, [1, 6], &alice().mac.to_bytes(), 0, &[END], false);
    sent[AT + CIADDR..AT + CIADDR + 4].copy_from_slice(&[10, 0, 0, 1]);
    let wire = down(&sent, Speaker::Client).unwrap();
    assert_eq!(wire[AT + FLAGS], 0);
}

#[test]
fn an_offer_comes_back_to_windows_as_it_expects_it() {
    let options = [&[53, 1, 2][..], &own_identifier(&alice()), &NAME, &[END]].concat();
    let wire = packet(Speaker::Server, [32, 0], &[], 0x80, &options, true);
    let arrived = up(wire.clone(), Speaker::Server, Fabric::mac(&bob()), &alice());
    let mut expected = [&[53, 1, 2][..], &windows_identifier(alice().mac), &NAME, &[END]].concat();
    expected.resize(options.len(), PAD);
    assert_eq!(
        arrived,
        packet(Speaker::Server, [1, 6], &alice().mac.to_bytes(), 0x80, &expected, true),
        "padded to the length it had"
    );
    let mut others = wire.clone();
    let len = to_ethernet(&mut others, Speaker::Server, Fabric::mac(&alice()), &bob()).unwrap();
    assert_eq!((others, len), (wire.clone(), wire.len()), "another host's answer is not made ours");
}

#[test]
fn padding_between_options_hides_nothing() {
    let options = [&[PAD, PAD][..], &own_identifier(&alice()), &[PAD], &NAME, &[END]].concat();
    let wire = packet(Speaker::Server, [32, 0], &[], 0x80, &options, true);
    let arrived = up(wire, Speaker::Server, Fabric::mac(&bob()), &alice());
    let mut expected = [&[PAD, PAD][..], &windows_identifier(alice().mac), &[PAD], &NAME, &[END]].concat();
    expected.resize(options.len(), PAD);
    assert_eq!(arrived, packet(Speaker::Server, [1, 6], &alice().mac.to_bytes(), 0x80, &expected, true));
}

#[test]
fn our_server_sees_a_client_by_the_address_it_answers_to_and_answers_it_on_the_wire() {
    let options = [&DISCOVER[..], &own_identifier(&alice()), &[END]].concat();
    let wire = packet(Speaker::Client, [32, 0], &[], 0x80, &options, true);
    let seen = up(wire, Speaker::Client, Fabric::mac(&alice()), &bob());
    assert_eq!(
        seen,
        packet(Speaker::Client, [1, 6], &Fabric::mac(&alice()).to_bytes(), 0x80, &options, true)
    );
    let offer = packet(Speaker::Server, [1, 6], &Fabric::mac(&alice()).to_bytes(), 0x80, &options, true);
    let wire = down(&offer, Speaker::Server).unwrap();
    assert_eq!(wire, packet(Speaker::Server, [32, 0], &[], 0x80, &options, true));
}

#[test]
fn a_packet_without_a_udp_checksum_stays_without() {
    let sent = packet(Speaker::Client, [1, 6], &alice().mac.to_bytes(), 0, &[END], false);
    let wire = down(&sent, Speaker::Client).unwrap();
    assert_eq!(wire[26..28], [0, 0]);
    let arrived = up(wire, Speaker::Client, Fabric::mac(&alice()), &bob());
    assert_eq!(arrived[26..28], [0, 0]);
    assert!(are_sums_right(&arrived));
}

#[test]
fn malformed_messages_are_refused() {
    let good = packet(Speaker::Client, [1, 6], &[], 0, &[END], true);
    let mut cookie = good.clone();
    cookie[AT + OPTIONS - 1] = 0;
    let mut op = good.clone();
    op[AT] = 2;
    let mut length = good.clone();
    length[25] = 200;
    let cut = packet(Speaker::Client, [1, 6], &[], 0, &[12, 9, 1], true);
    let lone = packet(Speaker::Client, [1, 6], &[], 0, &[12], true);
    for mut bad in [cookie, op, length, cut, lone, good[..100].to_vec()] {
        assert_eq!(down(&bad, Speaker::Client), Err(Untranslatable::Malformed));
        let result = to_ethernet(&mut bad, Speaker::Client, alice().mac, &bob());
        assert_eq!(result, Err(Untranslatable::Malformed));
    }
}

#[test]
fn only_talk_between_client_and_server_is_dhcp() {
    for (ports, speaker) in [
        ((68, 67), Some(Speaker::Client)),
        ((67, 68), Some(Speaker::Server)),
        ((68, 4011), Some(Speaker::Client)),
        ((4011, 68), Some(Speaker::Server)),
        ((67, 67), None),
        ((68, 68), None),
        ((53, 67), None),
    ] {
        assert_eq!(Speaker::from_ports(ports.0, ports.1), speaker, "{ports:?}");
    }
}

fn any_options() -> impl Strategy<Value = Vec<u8>> {
    let one = prop_oneof![
        (1_u8..61, prop::collection::vec(any::<u8>(), 0..20)).prop_map(|(code, value)| option(code, &value)),
        Just(vec![PAD]),
        Just(windows_identifier(alice().mac)),
        Just(own_identifier(&alice())),
    ];
    (prop::collection::vec(one, 0..6), any::<bool>()).prop_map(|(options, end)| {
        let mut options = options.concat();
        if end {
            options.push(END);
        }
        options
    })
}

proptest! {
    /// The client's message reaches a server, whose answer with the same options reaches the client: its
    /// identifier, if it is the MAC, comes back as it was, the other options too.
    #[test]
    fn a_round_trip_gives_the_client_its_own_words_back(options in any_options(), udp_sum: bool) {
        let sent = packet(Speaker::Client, [1, 6], &alice().mac.to_bytes(), 0, &options, udp_sum);
        let wire = down(&sent, Speaker::Client).unwrap();
        prop_assert!(are_sums_right(&wire));
        prop_assert_eq!(&wire[AT + 1..AT + 3], &[32, 0]);
        prop_assert_eq!(&wire[AT + CHADDR..AT + CHADDR + 16], &[0; 16]);
        let on_wire: Vec<_> =
            Options(&wire[AT + OPTIONS..]).flatten().filter(|&(code, _)| code == CLIENT_ID).collect();
        prop_assert!(!on_wire.is_empty());
        prop_assert!(on_wire.iter().all(|(_, value)| *value == identifier(alice().address.gid.guid())));

        let echoed = packet(Speaker::Server, [32, 0], &[], 0x80, &wire[AT + OPTIONS..], udp_sum);
        let arrived = up(echoed, Speaker::Server, Fabric::mac(&bob()), &alice());
        prop_assert!(are_sums_right(&arrived));
        let sorted = |options: &[u8]| {
            Options(options)
                .flatten()
                .map(|(code, value)| (code, value.to_vec()))
                .map(|(code, value)| {
                    // Sent as either form, it comes back as Windows's.
                    let own = code == CLIENT_ID;
                    (code, if own { windows_identifier(alice().mac)[2..].to_vec() } else { value })
                })
                .collect::<Vec<_>>()
        };
        let mut expected = sorted(&options);
        if !expected.iter().any(|&(code, _)| code == CLIENT_ID) {
            expected.push((CLIENT_ID, windows_identifier(alice().mac)[2..].to_vec()));
        }
        let found: Vec<_> =
            Options(&arrived[AT + OPTIONS..]).flatten().map(|(code, value)| (code, value.to_vec())).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn any_bytes_are_survived(
        mut bytes in prop::collection::vec(any::<u8>(), 0..400),
        server: bool,
        shape: bool,
    ) {
        let speaker = if server { Speaker::Server } else { Speaker::Client };
        if shape && bytes.len() >= AT + OPTIONS {
            let len = bytes.len() as u16;
            bytes[0] = 0x45;
            bytes[2..4].copy_from_slice(&len.to_be_bytes());
            bytes[24..26].copy_from_slice(&(len - 20).to_be_bytes());
            bytes[AT] = if server { 2 } else { 1 };
            bytes[AT + 1] = 32;
            bytes[AT + OPTIONS - 4..AT + OPTIONS].copy_from_slice(&COOKIE);
        }
        let _ = down(&bytes, speaker);
        let before = bytes.clone();
        if to_ethernet(&mut bytes, speaker, alice().mac, &bob()).is_err() {
            prop_assert_eq!(bytes, before, "an error changes nothing");
        }
    }
}
