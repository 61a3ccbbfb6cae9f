//! The OID protocol against every buffer length.

extern crate std;
use super::*;
use std::collections::HashSet;
use std::vec;
use std::vec::Vec;

const LIST: [[u8; 6]; 2] = [[0x01, 0, 0x5e, 0, 0, 1], [0x33, 0x33, 0, 0, 0, 1]];

fn view(statistics: &Statistics) -> View<'_> {
    View {
        statistics,
        mtu: 2044,
        sends: 512,
        receives: 1024,
        permanent_address: [0x00, 2, 3, 4, 5, 6],
        current_address: [0x02, 0, 4, 8, 0, 0],
        packet_filter: 0x0b,
        lookahead: 256,
        multicast_list: &LIST,
    }
}

fn ask(oid: u32, statistics: &Statistics) -> Vec<u8> {
    let mut out = vec![0; 1024];
    let written = query(oid, &view(statistics), &mut out).expect("served");
    out.truncate(written as usize);
    out
}

#[test]
fn the_supported_list_names_each_oid_once() {
    let distinct: HashSet<u32> = SUPPORTED.iter().copied().collect();
    assert_eq!(distinct.len(), SUPPORTED.len());
}

#[test]
fn every_listed_oid_is_served_as_its_access_says() {
    let statistics = Statistics::new();
    for &(oid, access) in TABLE {
        let queried = query(oid, &view(&statistics), &mut [0; 1024]) != Err(OidError::NotSupported);
        let set = parse_set(oid, &[]) != Err(OidError::NotSupported);
        assert_eq!(
            (queried, set),
            match access {
                Access::Query => (true, false),
                Access::Set => (false, true),
                Access::Both => (true, true),
            },
            "{oid:#x}"
        );
    }
    assert_eq!(query(0x0123_4567, &view(&statistics), &mut [0; 8]), Err(OidError::NotSupported));
}

#[test]
fn short_buffers_are_told_what_would_do_and_stay_untouched() {
    let statistics = Statistics::new();
    for &(oid, access) in TABLE.iter().filter(|(_, access)| *access != Access::Set) {
        let full = query(oid, &view(&statistics), &mut [0; 1024]).expect("served");
        for length in 0..full as usize {
            let mut out = vec![0xa5; length];
            match query(oid, &view(&statistics), &mut out) {
                Err(OidError::BufferTooShort { needed }) => {
                    assert_eq!(needed, full, "{oid:#x} {access:?}");
                    assert!(out.iter().all(|byte| *byte == 0xa5), "{oid:#x}");
                }
                // Counters may be read into 4 bytes.
                Ok(written) => assert_eq!((full, written), (8, 4), "{oid:#x}"),
                Err(other) => panic!("{oid:#x}: {other:?}"),
            }
        }
    }
}

#[test]
fn statistics_have_the_layout_of_ntddndis() {
    let statistics = Statistics::new();
    statistics.received.count(Cast::Unicast, 100);
    statistics.sent.count(Cast::Broadcast, 60);
    statistics.drop_frame(Drop::SendFailed);
    let info = ask(sys::OID_GEN_STATISTICS, &statistics);
    let field = |index: usize| {
        let at = 8 + index * 8;
        u64::from_le_bytes(info[at..at + 8].try_into().expect("eight bytes"))
    };
    assert_eq!(info.len(), core::mem::size_of::<sys::NDIS_STATISTICS_INFO>());
    assert_eq!(u16::from_le_bytes([info[2], info[3]]) as usize, info.len());
    assert_eq!(field(core::mem::offset_of!(sys::NDIS_STATISTICS_INFO, ifHCInUcastPkts) / 8 - 1), 1);
    assert_eq!(field(core::mem::offset_of!(sys::NDIS_STATISTICS_INFO, ifHCInUcastOctets) / 8 - 1), 100);
    assert_eq!(field(core::mem::offset_of!(sys::NDIS_STATISTICS_INFO, ifHCOutBroadcastOctets) / 8 - 1), 60);
    assert_eq!(field(core::mem::offset_of!(sys::NDIS_STATISTICS_INFO, ifOutErrors) / 8 - 1), 1);
}

#[test]
fn a_packet_filter_beyond_what_is_supported_is_refused() {
    let set = |filter: u32| parse_set(sys::OID_GEN_CURRENT_PACKET_FILTER, &filter.to_le_bytes()).is_ok();
    assert!(set(0) && set(SUPPORTED_FILTERS));
    assert!(!set(sys::NDIS_PACKET_TYPE::SOURCE_ROUTING.bits()));
    assert_eq!(
        parse_set(sys::OID_GEN_CURRENT_PACKET_FILTER, &[1, 0, 0]),
        Err(OidError::InvalidLength { needed: 4 })
    );
}

#[test]
fn a_multicast_list_holds_whole_group_addresses_up_to_its_size() {
    let set = |list: &[u8]| parse_set(sys::OID_802_3_MULTICAST_LIST, list).map(|_| ());
    assert_eq!(set(&[]), Ok(()));
    assert_eq!(set(LIST.as_flattened()), Ok(()));
    assert_eq!(set(&[1, 0, 0x5e, 0, 0]), Err(OidError::InvalidLength { needed: 0 }));
    assert_eq!(set(&[0x02, 0, 0, 0, 0, 1]), Err(OidError::InvalidData));
    let full = vec![0x33; MULTICAST_LIST_SIZE * 6];
    assert_eq!(set(&full), Ok(()));
    let over = vec![0x33; MULTICAST_LIST_SIZE * 6 + 6];
    assert_eq!(set(&over), Err(OidError::MulticastFull { needed: (MULTICAST_LIST_SIZE * 6) as u32 }));
}

#[test]
fn only_the_four_device_states_are_power_states() {
    let set = |state: u32| match parse_set(sys::OID_PNP_SET_POWER, &state.to_le_bytes()) {
        Ok(Setting::Power { working }) => Some(working),
        _ => None,
    };
    assert_eq!([0, 1, 2, 3, 4, 5].map(set), [None, Some(true), Some(false), Some(false), Some(false), None]);
}

#[test]
fn drop_counters_follow_the_order_of_their_causes() {
    let statistics = Statistics::new();
    statistics.drop_frames(Drop::SendCancelled, 7);
    let answer = ask(OID_IPOIB_DROPS, &statistics);
    let counts: Vec<u64> =
        answer.chunks(8).map(|field| u64::from_le_bytes(field.try_into().expect("eight"))).collect();
    assert_eq!(counts.len(), Drop::ALL.len());
    for (count, cause) in counts.iter().zip(Drop::ALL) {
        assert_eq!(*count, if *cause == Drop::SendCancelled { 7 } else { 0 });
    }
}
