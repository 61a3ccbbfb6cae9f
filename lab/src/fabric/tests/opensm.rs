//! The administrator against answers recorded from a real one.

use super::bench::Bench;
use crate::fabric::ids::Guid;
use crate::fabric::rate::{LinkSpeed, Mtu};
use crate::fabric::topology::Topology;
use crate::fabric::topology::builder::LinkSettings;
use crate::fabric::wire::mad::{Attribute, Method, Status};
use crate::fabric::{FabricConfig, Lid};

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap()).collect()
}

/// The fabric on which the answers were recorded, with the same LIDs.
fn fabric() -> Bench {
    let settings = LinkSettings { speed: LinkSpeed::Sdr, mtu: Mtu::B2048, ..LinkSettings::default() };
    let mut topology = Topology::new();
    let manager = topology.add_manager("H1", Guid(0x10_0000), settings.mtu).unwrap();
    let switch = topology.add_switch("S1", Guid(0x20_0000), 8, settings).unwrap();
    let second = topology.add_channel_adapter("H2", Guid(0x10_0002), 1, settings.mtu).unwrap();
    let third = topology.add_channel_adapter("H3", Guid(0x10_0004), 1, settings.mtu).unwrap();
    for (node, port) in [(manager, 1), (second, 2), (third, 3)] {
        topology.connect((node, 1), (switch, port), settings).unwrap();
    }
    let bench = Bench::on(topology, FabricConfig::default());
    assert_eq!((bench.lid(0), bench.lid(1)), (Lid(3), Lid(4)));
    bench
}

/// The same questions in the same order: the same statuses and, byte for byte, the same records.
#[test]
fn answers_as_opensm_does() {
    let mut bench = fabric();
    let mut asked = 0;
    for line in include_str!("opensm.txt").lines().filter(|line| !line.starts_with('#')) {
        let [name, request, status, record] = line.splitn(4, " |").collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let [method, attribute, mask, asked_record] = request.split_whitespace().collect::<Vec<_>>()[..]
        else {
            panic!("{line}");
        };
        let answer = bench.query(
            0,
            Method(u8::from_str_radix(method, 16).unwrap()),
            Attribute(u16::from_str_radix(attribute, 16).unwrap()),
            u64::from_str_radix(mask, 16).unwrap(),
            &bytes(asked_record),
        );
        let expected = match u16::from_str_radix(status.trim(), 16).unwrap() {
            0 => Ok(bytes(record.trim())),
            status => Err(Status(status)),
        };
        let answer = answer.map(|records| records[0][..bytes(record.trim()).len()].to_vec());
        assert_eq!(answer, expected, "{name}");
        asked += 1;
    }
    assert!(asked > 150, "the whole record");
}
