//! What NDIS and protocols may ask for that makes no sense: OID requests with buffers that do not fit, objects that are
//! unknown or of the other direction, values that cannot be, frames that are none. Each ends in its documented status,
//! changes nothing, and hosts reach each other afterwards.

mod common;

use common::{Network, address};
use ipoib::adapter::oid::{Access, MULTICAST_LIST_SIZE, OID_IPOIB_DROPS, TABLE};
use ipoib::adapter::stats::Drop;
use ipoib_lab::ndis::{Adapter, Fragmentation, OidKind, OidReply, OidRequest, SendCompletion};
use ipoib_lab::scenario::{Host, SubnetConfig};
use ipoib_lab::sim::SECOND;
use ipoib_lab::stack::PingOptions;
use ipoib_lab::stack::raw::RawStack;
use windows_kernel_sys as sys;

fn ask(adapter: &Adapter, oid: u32, room: usize) -> OidReply {
    adapter.request(&OidRequest { oid, kind: OidKind::Query, input: Vec::new(), room })
}

/// On the first of two hosts; then they ping each other and halt.
fn with_adapter(seed: u64, body: impl FnOnce(&Adapter) + Send + 'static) {
    let network = Network::new(2, seed);
    network
        .subnet
        .on_host(0, "requests", move |host: &Host| body(&host.adapter().expect("up")))
        .expect("no broken rule");
    network.ping(0, address(1), PingOptions::default());
    network.ping(1, address(0), PingOptions::default());
    network.stop();
}

/// MINIPORT_OID_REQUEST: a buffer that is too short is refused with the length that would do, and that length does; more
/// is not written to.
#[test]
fn queries_say_how_much_room_they_need() {
    with_adapter(1, |adapter| {
        for &(oid, access) in TABLE.iter().filter(|(_, access)| *access != Access::Set) {
            let whole = ask(adapter, oid, 4096);
            assert_eq!(whole.status, sys::NDIS_STATUS_SUCCESS, "{oid:#x} {access:?}");
            let length = whole.output.len();
            assert_eq!(ask(adapter, oid, length).output.len(), length, "{oid:#x}");
            for room in 0..length {
                let reply = ask(adapter, oid, room);
                // A counter of eight bytes may be read into four.
                if reply.status == sys::NDIS_STATUS_SUCCESS {
                    assert_eq!((length, reply.output.len()), (8, 4), "{oid:#x} in {room}");
                } else {
                    assert_eq!(reply.status, sys::NDIS_STATUS_BUFFER_TOO_SHORT, "{oid:#x} in {room}");
                    assert_eq!(reply.needed as usize, length, "{oid:#x} in {room}");
                    assert!(reply.output.is_empty());
                }
            }
        }
    });
}

/// Objects that are unknown, or of the other direction, or asked for by method: NDIS_STATUS_NOT_SUPPORTED.
#[test]
fn unknown_objects_and_wrong_directions_are_not_supported() {
    with_adapter(2, |adapter| {
        let unknown = [0, 1, u32::MAX, 0xff49_4200, 0xff49_4202, 0x0101_02ff, 0xfd01_0103];
        for oid in unknown {
            assert_eq!(ask(adapter, oid, 64).status, sys::NDIS_STATUS_NOT_SUPPORTED, "{oid:#x}");
            assert_eq!(adapter.set(oid, &[0; 64]), Err(sys::NDIS_STATUS_NOT_SUPPORTED), "{oid:#x}");
        }
        for &(oid, access) in TABLE {
            match access {
                Access::Query => {
                    for length in [0, 1, 4, 6, 200] {
                        let set = adapter.set(oid, &vec![1; length]);
                        assert_eq!(set, Err(sys::NDIS_STATUS_NOT_SUPPORTED), "{oid:#x}");
                    }
                }
                Access::Set => {
                    assert_eq!(ask(adapter, oid, 64).status, sys::NDIS_STATUS_NOT_SUPPORTED, "{oid:#x}");
                }
                Access::Both => {}
            }
            let method = OidRequest { oid, kind: OidKind::Method, input: vec![0; 8], room: 64 };
            assert_eq!(adapter.request(&method).status, sys::NDIS_STATUS_NOT_SUPPORTED, "{oid:#x}");
        }
    });
}

/// OID_GEN_CURRENT_PACKET_FILTER, OID_802_3_MULTICAST_LIST, OID_PNP_SET_POWER: lengths and values that cannot be are
/// refused, and what was set before stays.
#[test]
fn refused_sets_change_nothing() {
    with_adapter(3, |adapter| {
        const FILTER: u32 = sys::OID_GEN_CURRENT_PACKET_FILTER;
        const LIST: u32 = sys::OID_802_3_MULTICAST_LIST;
        let state =
            || [FILTER, LIST, sys::OID_GEN_CURRENT_LOOKAHEAD].map(|oid| ask(adapter, oid, 1024).output);
        let before = state();
        for oid in [FILTER, sys::OID_GEN_CURRENT_LOOKAHEAD, sys::OID_PNP_SET_POWER] {
            for length in [0, 1, 3, 5, 8, 100] {
                let set = adapter.set(oid, &vec![0; length]);
                assert_eq!(set, Err(sys::NDIS_STATUS_INVALID_LENGTH), "{oid:#x} of {length}");
            }
        }
        // NDIS_PACKET_TYPE_SMT, _SOURCE_ROUTING, _GROUP, _ALL_FUNCTIONAL, _FUNCTIONAL, _MAC_FRAME, and what is nothing.
        for filter in [0x40, 0x10, 0x1000, 0x2000, 0x4000, 0x8000, 0x8000_0000, u32::MAX] {
            let set = adapter.set(FILTER, &filter.to_le_bytes());
            assert_eq!(set, Err(sys::NDIS_STATUS_NOT_SUPPORTED), "{filter:#x}");
        }
        for length in [1, 5, 7, 6 * MULTICAST_LIST_SIZE + 1] {
            let set = adapter.set(LIST, &vec![1; length]);
            assert_eq!(set, Err(sys::NDIS_STATUS_INVALID_LENGTH), "list of {length}");
        }
        let many = vec![1; 6 * (MULTICAST_LIST_SIZE + 1)];
        assert_eq!(adapter.set(LIST, &many), Err(sys::NDIS_STATUS_MULTICAST_FULL));
        let unicast = [0x01, 0, 0x5e, 1, 1, 1, 0x02, 0, 0, 0, 0, 1];
        assert_eq!(adapter.set(LIST, &unicast), Err(sys::NDIS_STATUS_INVALID_DATA));
        for power in [0_u32, 5, u32::MAX] {
            let set = adapter.set(sys::OID_PNP_SET_POWER, &power.to_le_bytes());
            assert_eq!(set, Err(sys::NDIS_STATUS_INVALID_DATA), "{power}");
        }
        assert_eq!(state(), before);
    });
}

/// An Ethernet frame of IPv4 to everybody, this long.
fn frame(length: usize, ethertype: u16, mac: [u8; 6]) -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend(mac);
    frame.extend(ethertype.to_be_bytes());
    let [high, low] = ((length.max(14) - 14) as u16).to_be_bytes();
    frame.extend([0x45, 0, high, low, 0, 0, 0, 0, 64, 253, 0, 0, 10, 0, 0, 1, 10, 0, 255, 255]);
    frame.resize(length.max(34), 0x5a);
    frame.truncate(length);
    frame
}

/// Frames that are too short for their headers, too long for the link or of a foreign protocol, in MDLs cut anywhere:
/// each is completed at once with NDIS_STATUS_INVALID_PACKET and counted, and good ones between them are sent.
#[test]
fn frames_that_cannot_be_sent_are_completed_and_counted() {
    for fragmentation in [Fragmentation::Contiguous, Fragmentation::HeaderSplit, Fragmentation::Scattered] {
        let mut config = SubnetConfig::new(2, 4);
        config.adapter.options.fragmentation = fragmentation;
        let network = Network::with(&config);
        let raw = network
            .subnet
            .on_host(0, "bind", |host| RawStack::bind(&host.adapter().expect("up")).expect("bound"))
            .expect("a binding");
        let mac = network.stacks[0].mac();
        let largest = 14 + 2044;
        let cases: Vec<(usize, u16, Option<Drop>)> = vec![
            (1, 0x0800, Some(Drop::SendTooShort)),
            (13, 0x0800, Some(Drop::SendTooShort)),
            (14, 0x0800, Some(Drop::SendTooShort)),
            (33, 0x0800, Some(Drop::SendTooShort)),
            (34, 0x0800, None),
            (60, 0x88cc, Some(Drop::SendEthertype)),
            (60, 46, Some(Drop::SendEthertype)),
            (largest, 0x0800, None),
            (largest + 1, 0x0800, Some(Drop::SendTooLong)),
            (9000, 0x0800, Some(Drop::SendTooLong)),
            (41, 0x0806, Some(Drop::SendTooShort)),
            (60, 0x0806, Some(Drop::SendMalformed)),
        ];
        let drops = || {
            let counters = network
                .subnet
                .on_host(0, "drops", |host: &Host| {
                    host.adapter().expect("up").query(OID_IPOIB_DROPS, Drop::ALL.len() * 8).expect("counters")
                })
                .expect("a run");
            let number = |field: &[u8]| u64::from_le_bytes(field.try_into().expect("eight bytes"));
            counters.chunks(8).map(number).collect::<Vec<_>>()
        };
        for (tag, (length, ethertype, cause)) in (1..).zip(cases) {
            let before = drops();
            let sender = raw.clone();
            let bytes = frame(length, ethertype, mac);
            network.subnet.on_host(0, "send", move |_| sender.send(bytes, tag)).expect("sent");
            network.subnet.wait_for("completion", |_| raw.completed() > 0).expect("a completion");
            let [SendCompletion { tag: ended, status }] = raw.take_completions()[..] else {
                panic!("one completion");
            };
            let what = format!("{length} bytes of {ethertype:#x}, {fragmentation:?}");
            assert_eq!(
                (ended, status == sys::NDIS_STATUS_SUCCESS),
                (tag, cause.is_none()),
                "{what}: {status:#x}"
            );
            let after = drops();
            if let Some(cause) = cause {
                assert_eq!(after[cause as usize], before[cause as usize] + 1, "{what}");
            }
        }
        let unbind = raw.clone();
        network.subnet.on_host(0, "unbind", move |_| unbind.binding().close()).expect("closed");
        network.subnet.run_for(SECOND).expect("a run");
        network.ping_all();
        network.stop();
    }
}
