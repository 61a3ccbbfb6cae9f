//! Every keyword with every kind of bad value: the adapter comes up as with its default, and says so in the event log,
//! once for each.

mod common;

use common::{Network, address};
use ipoib::adapter::config::{Keyword, keyword};
use ipoib::adapter::event_code::EventCode;
use ipoib_lab::ndis::RegistryValue;
use ipoib_lab::scenario::SubnetConfig;
use ipoib_lab::stack::PingOptions;

/// Event-log entries of a host that come from the registry: code and the data that the driver gave.
fn complaints(network: &Network, host: usize) -> usize {
    let adapter = network.subnet.hosts[host].adapter().expect("up");
    let codes = [EventCode::KeywordRejected, EventCode::NetworkAddressRejected].map(|code| code as u32);
    adapter.event_log().entries().iter().filter(|entry| codes.contains(&entry.code)).count()
}

fn network(values: &[(&str, RegistryValue)]) -> Network {
    let mut config = SubnetConfig::new(2, 21);
    for (name, value) in values {
        config.adapter.registry.set(name, value.clone());
    }
    Network::with(&config)
}

/// What of the configuration shows from outside.
fn visible(network: &Network) -> (u32, [u8; 6], [u8; 6]) {
    let general = network.subnet.hosts[0].adapter().expect("up").attributes();
    (general.mtu, general.current_address, general.permanent_address)
}

/// Issue 2, "Bad input": a value out of range or of the wrong type is the default with an event logged. All keywords have
/// one kind of bad value at a time, so each kind is one subnet.
#[test]
fn every_keyword_falls_back_to_its_default_and_says_so() {
    let plain = network(&[]);
    let expected = visible(&plain);
    assert_eq!(complaints(&plain, 0), 0, "no values, no complaints");
    plain.stop();
    type Bad = fn(&Keyword) -> Option<RegistryValue>;
    let kinds: [(&str, Bad); 9] = [
        ("below", |keyword| keyword.min.checked_sub(1).map(RegistryValue::Dword)),
        ("above", |keyword| keyword.max.checked_add(1).map(RegistryValue::Dword)),
        ("largest", |keyword| (keyword.max != u32::MAX).then_some(RegistryValue::Dword(u32::MAX))),
        ("above as text", |keyword| Some(RegistryValue::String((u64::from(keyword.max) + 1).to_string()))),
        ("empty text", |_| Some(RegistryValue::String(String::new()))),
        ("no number", |_| Some(RegistryValue::String("on".into()))),
        ("negative", |_| Some(RegistryValue::String("-1".into()))),
        ("binary", |_| Some(RegistryValue::Binary(vec![1, 0, 0, 0]))),
        ("list", |_| Some(RegistryValue::MultiString(vec!["1".into(), "2".into()]))),
    ];
    for (what, bad) in kinds {
        let values: Vec<_> =
            keyword::ALL.iter().filter_map(|keyword| Some((keyword.name, bad(keyword)?))).collect();
        let network = network(&values);
        assert_eq!(visible(&network), expected, "{what}");
        for host in 0..2 {
            assert_eq!(complaints(&network, host), values.len(), "{what}");
        }
        network.ping_after(0, address(1), PingOptions::default(), what);
        network.stop();
    }
}

/// `NetworkAddress`: not six bytes, a group's or a globally administered one is refused (IEEE 802, 8.2), and the scheme's
/// address used.
#[test]
fn a_network_address_that_cannot_be_is_refused() {
    let plain = network(&[]);
    let expected = visible(&plain);
    plain.stop();
    for text in ["FFFFFFFFFFFF", "030000000001", "000000000001", "001122334455", "0200", "020000000001FF"] {
        let network = network(&[("NetworkAddress", RegistryValue::String(text.into()))]);
        assert_eq!(visible(&network), expected, "{text}");
        assert_eq!(complaints(&network, 0), 1, "{text}");
        network.ping_after(1, address(0), PingOptions::default(), text);
        network.stop();
    }
}
