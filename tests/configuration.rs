//! Registry values: good ones are obeyed, bad ones are replaced by the default and reported.

mod common;

use common::{Network, address};
use ipoib::adapter::event_code::EventCode;
use ipoib_lab::ndis::RegistryValue;
use ipoib_lab::scenario::{Host, SubnetConfig};
use ipoib_lab::stack::PingOptions;

fn with(values: &[(&str, RegistryValue)]) -> SubnetConfig {
    let mut config = SubnetConfig::new(2, 15);
    for (name, value) in values {
        config.adapter.registry.set(name, value.clone());
    }
    config
}

fn attributes(network: &Network) -> ([u8; 6], u32) {
    let general = network.subnet.hosts[0].adapter().expect("up").attributes();
    (general.current_address, general.mtu)
}

/// Event-log entries of the first host with this code.
fn logged(network: &Network, code: EventCode) -> usize {
    let adapter = network.subnet.hosts[0].adapter().expect("up");
    adapter.event_log().entries().iter().filter(|entry| entry.code == code as u32).count()
}

#[test]
fn values_out_of_range_or_of_the_wrong_type_are_replaced_and_reported() {
    let network = Network::with(&with(&[
        ("RqDepth", RegistryValue::Dword(5)),
        ("PayloadMtu", RegistryValue::Dword(100_000)),
        ("SaTimeout", RegistryValue::Binary(vec![1, 2, 3])),
        ("SqDepth", RegistryValue::String("many".into())),
        ("NetworkAddress", RegistryValue::String("FFFFFFFFFFFF".into())),
    ]));
    let (current, mtu) = attributes(&network);
    assert_eq!(mtu, 2044);
    assert_eq!((current[0], current[4], current[5]), (0x02, 0, 0), "the scheme's address");
    assert!(logged(&network, EventCode::KeywordRejected) >= 4);
    assert_eq!(logged(&network, EventCode::NetworkAddressRejected), 1);
    network.ping(0, address(1), PingOptions::default());
    network.stop();
}

#[test]
fn good_values_are_obeyed() {
    let network = Network::with(&with(&[
        ("PayloadMtu", RegistryValue::Dword(1500)),
        ("RqDepth", RegistryValue::Dword(128)),
        ("SqDepth", RegistryValue::String("128".into())),
    ]));
    let (_, mtu) = attributes(&network);
    assert_eq!(mtu, 1500);
    network.ping(0, address(1), PingOptions { size: 1472, ..PingOptions::default() });
    network.stop();
}

/// The other schemes carry traffic, too.
#[test]
fn every_address_scheme_carries_traffic() {
    for scheme in 0..3 {
        let network = Network::with(&with(&[("MacScheme", RegistryValue::Dword(scheme))]));
        network.ping_all();
        network.stop();
    }
}

/// Queries with buffers of every length are answered or refused as documented, and change nothing.
#[test]
fn short_oid_buffers_are_refused_with_the_size_that_would_do() {
    let network = Network::new(1, 16);
    network
        .subnet
        .on_host(0, "oids", |host: &Host| {
            let adapter = host.adapter().expect("up");
            for oid in ipoib::adapter::oid::SUPPORTED {
                for room in [0, 1, 3, 4, 7, 8, 64, 1024] {
                    let _ = adapter.query(oid, room);
                }
                for size in [0, 1, 3, 4, 5, 6, 7, 12] {
                    let _ = adapter.set(oid, &vec![0x5a; size]);
                }
            }
        })
        .expect("no broken rule");
    network.stop();
}
