//! PortInfoRecord, NodeRecord, ClassPortInfo, and what the administrator does with any MAD.

use proptest::prelude::*;

use super::bench::Bench;
use crate::fabric::administrator::Source;
use crate::fabric::ids::{Gid, Lid, Qpn};
use crate::fabric::manager::ManagerConfig;
use crate::fabric::topology::PortState;
use crate::fabric::wire::mad::{Attribute, Method, Status};
use crate::fabric::wire::sa::node::{NodeInfoRecord, NodeRecord};
use crate::fabric::wire::sa::port_info::{PortInfo, PortInfoRecord, PortInfoRecordKey, mask};
use crate::fabric::wire::sa::{ClassPortInfo, SaMad, class_port_info, node};

/// The record of a port says what the port is.
#[test]
fn port_info_by_lid() {
    let mut bench = Bench::with(2, ManagerConfig { lmc: 1, ..ManagerConfig::default() });
    for offset in 0..2 {
        let key = PortInfoRecordKey { lid: Lid(bench.lid(1).0 + offset), ..Default::default() };
        let record = PortInfoRecord { key, ..PortInfoRecord::default() };
        let got =
            bench.query(0, Method::GET, Attribute::PORT_INFO_RECORD, mask::LID, &record.to_bytes()).unwrap();
        let got = PortInfoRecord::parse_slice(&got[0]).unwrap();
        let port = bench.fabric.port(bench.host(1));
        assert_eq!(got.key, PortInfoRecordKey { lid: port.lid, port_num: 1, options: 0 });
        assert_eq!(got.info.port_state, PortState::Active as u8);
        assert_eq!(got.info.port_physical_state, 5);
        assert_eq!((got.info.lid, got.info.lmc, got.info.master_sm_lid), (port.lid, 1, port.sm_lid));
        assert_eq!(got.info.gid_prefix, Gid::LINK_LOCAL_PREFIX);
        assert_eq!((got.info.neighbor_mtu, got.info.mtu_cap), (5, 5));
        assert_eq!((got.info.link_width_active, got.info.link_speed_ext_active), (2, 2));
        assert_eq!(got.info.m_key, 0, "hidden");
    }
}

/// A table can be narrowed by attributes; a switch's ports have its LID.
#[test]
fn port_info_tables() {
    let mut bench = Bench::new(3);
    let active = PortInfoRecord {
        info: PortInfo { port_state: 4, capability_mask: 1 << 1, ..PortInfo::default() },
        ..PortInfoRecord::default()
    };
    let ask = |bench: &mut Bench, bits| {
        bench
            .query(0, Method::GET_TABLE, Attribute::PORT_INFO_RECORD, bits, &active.to_bytes())
            .unwrap()
            .len()
    };
    assert_eq!(ask(&mut bench, 0), 3 + 1 + 37, "hosts, manager, switch");
    assert_eq!(
        ask(&mut bench, mask::PORT_STATE),
        3 + 1 + 1 + 4,
        "ends, the switch's port 0, its ports in use"
    );
    // Who is a subnet manager? The way a client finds out: by the IsSM bit alone (IBA 15.2.5.3).
    let mut request = bench.request(
        Method::GET_TABLE,
        Attribute::PORT_INFO_RECORD,
        mask::CAPABILITY_MASK,
        &active.to_bytes(),
    );
    request.header.attribute_modifier = 1 << 31;
    let answers = bench.ask(0, &request);
    let found = crate::fabric::wire::sa::reassemble(&answers).unwrap();
    assert_eq!(found.len(), 1);
    let found = PortInfoRecord::parse_slice(&found[0]).unwrap();
    assert_eq!(found.key.lid, bench.fabric.port(bench.host(0)).sm_lid);
    // Two Get answers are one too many.
    assert_eq!(
        bench.query(0, Method::GET, Attribute::PORT_INFO_RECORD, 0, &[]),
        Err(Status::TOO_MANY_RECORDS)
    );
}

/// A node is found by its port GUID, with its description.
#[test]
fn node_by_guid() {
    let mut bench = Bench::new(2);
    let info = NodeInfoRecord { port_guid: bench.guid(1), ..NodeInfoRecord::default() };
    let record = NodeRecord { info, description: [0; 64] };
    let bits = node::mask::PORT_GUID;
    let got = bench.query(0, Method::GET, Attribute::NODE_RECORD, bits, &record.to_bytes()).unwrap();
    let got = NodeRecord::parse_slice(&got[0]).unwrap();
    assert_eq!((got.info.lid, got.info.node_type, got.info.num_ports), (bench.lid(1), 1, 1));
    assert!(got.description.starts_with(b"host1 HCA-1\0"));
}

/// ClassPortInfo says that groups can be joined, also as send-only full member, and how long an answer may
/// take.
#[test]
fn class_port_info_says_what_there_is() {
    let mut bench = Bench::new(1);
    let got = bench.query(0, Method::GET, Attribute::CLASS_PORT_INFO, 0, &[]).unwrap();
    let got = ClassPortInfo::parse_slice(&got[0]).unwrap();
    assert_ne!(got.capability_mask & class_port_info::capability::UD_MULTICAST, 0);
    assert_ne!(got.capability_mask2 & class_port_info::capability2::SEND_ONLY_FULL_MEMBER, 0);
    assert_eq!((got.class_version, got.response_time_value), (2, 16));
}

/// IBA 13.4.7: what is not supported is said to be so.
#[test]
fn unsupported() {
    let mut bench = Bench::new(1);
    let status = |bench: &mut Bench, mad: &SaMad| bench.ask(0, mad).first().map(|mad| mad.header.status);
    let request = bench.request(Method::GET, Attribute::SERVICE_RECORD, 0, &[]);
    assert_eq!(status(&mut bench, &request), Some(Status::UNSUPPORTED_METHOD_ATTRIBUTE));
    let request = bench.request(Method::DELETE, Attribute::PATH_RECORD, 0, &[]);
    assert_eq!(status(&mut bench, &request), Some(Status::REQ_INVALID));
    let mut request = bench.request(Method::GET, Attribute::CLASS_PORT_INFO, 0, &[]);
    request.header.class_version = 1;
    assert_eq!(status(&mut bench, &request), Some(Status::UNSUPPORTED_VERSION));
    // No answers to answers, nor to another class.
    let request = bench.request(Method::GET_RESP, Attribute::PATH_RECORD, 0, &[]);
    assert_eq!(status(&mut bench, &request), None);
    let mut request = bench.request(Method::GET, Attribute::CLASS_PORT_INFO, 0, &[]);
    request.header.class = 4;
    assert_eq!(status(&mut bench, &request), None);
}

/// More requests at once than may wait: the rest is answered BUSY, at once; later there is room again.
#[test]
fn busy() {
    let config = ManagerConfig { queue_limit: Some(2), service_time: 1_000_000, ..ManagerConfig::default() };
    let mut bench = Bench::with(1, config);
    let port = bench.fabric.manager().port().unwrap();
    let source = Source { lid: bench.lid(0), qpn: Qpn::GSI, ..Source::default() };
    let mut statuses = Vec::new();
    for _ in 0..5 {
        let request = bench.request(Method::GET, Attribute::CLASS_PORT_INFO, 0, &[]);
        for reply in bench.fabric.administer(bench.now, port, &source, &request.to_bytes()) {
            statuses.push(SaMad::parse(&reply.mad).unwrap().header.status);
        }
    }
    assert_eq!(statuses, [Status::OK, Status::OK, Status::OK, Status::BUSY, Status::BUSY]);
    bench.now += 10_000_000;
    assert!(bench.query(0, Method::GET, Attribute::CLASS_PORT_INFO, 0, &[]).is_ok());
}

/// Requests are answered one after the other: each waits for those before it.
#[test]
fn requests_queue() {
    let mut bench = Bench::new(1);
    let port = bench.fabric.manager().port().unwrap();
    let source = Source { lid: bench.lid(0), qpn: Qpn::GSI, ..Source::default() };
    let request = bench.request(Method::GET, Attribute::CLASS_PORT_INFO, 0, &[]).to_bytes();
    let config = bench.fabric.manager().config().clone();
    for waiting in 1..10 {
        let at = bench.fabric.administer(bench.now, port, &source, &request)[0].at;
        let least = bench.now + waiting * config.service_time + config.response_time;
        assert!((least..=least + config.response_jitter).contains(&at));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever bytes come to QP1, the administrator answers with at most an error and stays sound.
    #[test]
    fn arbitrary_mads(
        mut bytes in prop::collection::vec(any::<u8>(), 256),
        method in prop::sample::select(vec![1u8, 2, 6, 0x12, 0x15]),
        attribute in prop::sample::select(vec![1u8, 2, 3, 0x11, 0x12, 0x35, 0x38]),
        trusted: bool,
    ) {
        let mut bench = Bench::new(2);
        bytes[..4].copy_from_slice(&[1, 3, 2, method]);
        bytes[16..18].copy_from_slice(&[0, attribute]);
        bytes[24..36].fill(0);
        bytes[36..44].copy_from_slice(&u64::from(trusted).to_be_bytes());
        let mad = SaMad::parse(&bytes).unwrap();
        let port = bench.fabric.manager().port().unwrap();
        let source = Source { lid: bench.lid(0), qpn: Qpn::GSI, ..Source::default() };
        let replies = bench.fabric.administer(bench.now, port, &source, &bytes);
        prop_assert!(!replies.is_empty());
        for reply in &replies {
            let answer = SaMad::parse(&reply.mad).unwrap();
            prop_assert_eq!(answer.header.transaction_id, mad.header.transaction_id);
            prop_assert_eq!(answer.header.method, mad.header.method.response());
        }
        bench.settle();
        super::invariants::check(&bench.fabric);
    }
}
