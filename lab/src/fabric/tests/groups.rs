//! MCMemberRecord: IBA 15.2.5.17 and what OpenSM makes of it.

use super::bench::{Bench, ipoib_mgid, mgid};
use crate::fabric::FabricConfig;
use crate::fabric::ids::{Gid, Guid, Lid, PKey, QKey};
use crate::fabric::manager::{IpoibGroup, ManagerConfig, Members, Partition};
use crate::fabric::rate::{LinkSpeed, LinkWidth, Mtu, Rate};
use crate::fabric::topology::Topology;
use crate::fabric::topology::builder::LinkSettings;
use crate::fabric::wire::mad::{Attribute, Method, Status};
use crate::fabric::wire::sa::inform::InformInfo;
use crate::fabric::wire::sa::mcmember::{McMemberRecord, mask};
use crate::fabric::wire::sa::selector::Selector;
use crate::fabric::wire::sa::{Notice, SaMad, Trap};

fn broadcast() -> Gid {
    ipoib_mgid(0x401B, 0xFFFF_FFFF)
}

/// RFC 4391 section 4, and OpenSM's partitions.conf: the broadcast group is there, and a join without
/// attributes gets them.
#[test]
fn broadcast_group_exists_and_can_be_joined() {
    let mut bench = Bench::new(2);
    assert_eq!(IpoibGroup::default().mgid(PKey(0x7FFF)), broadcast());
    let wanted = McMemberRecord {
        mgid: broadcast(),
        port_gid: bench.gid(0),
        join_state: 1,
        ..McMemberRecord::default()
    };
    let got = bench.join(0, wanted, mask::JOIN).unwrap();
    assert_eq!((got.mgid, got.port_gid, got.join_state), (broadcast(), bench.gid(0), 1));
    assert_eq!((got.qkey, got.pkey, got.mlid), (QKey(0xB1B), PKey::DEFAULT, Lid(0xC000)));
    assert_eq!((got.mtu, got.mtu_selector), (Mtu::B2048.code(), Selector::EXACTLY));
    assert_eq!((got.rate, got.scope), (Rate::of(LinkWidth::X4, LinkSpeed::Sdr).code(), 2));
    // It stays when the last member leaves.
    bench.leave(0, broadcast(), 1).unwrap();
    assert!(bench.fabric.manager().groups().contains_key(&broadcast()));
}

/// Without the flag `ipoib` the first who joins creates it, with a full set of components.
#[test]
fn first_joiner_creates_the_broadcast_group() {
    let partitions = vec![Partition { ipoib: None, ..Partition::default() }];
    let mut bench = Bench::with(2, ManagerConfig { partitions, ..ManagerConfig::default() });
    assert!(bench.fabric.manager().groups().is_empty());
    let record = bench.creation(0, broadcast(), 1);
    assert_eq!(bench.join(0, record, mask::JOIN), Err(Status::REQ_INSUFFICIENT_COMPONENTS));
    let got = bench.create(0, broadcast(), 1).unwrap();
    assert_eq!(got.mtu, Mtu::B4096.code(), "what the creator's port can do");
    assert_eq!(got.rate, Rate::of(LinkWidth::X4, LinkSpeed::Edr).code());
    bench.leave(0, broadcast(), 1).unwrap();
    assert!(bench.fabric.manager().groups().is_empty(), "nobody is left");
}

/// IBA o15-0.2.3: each component that creating needs is needed.
#[test]
fn creation_needs_every_component() {
    let mut bench = Bench::new(1);
    for bit in [mask::QKEY, mask::TRAFFIC_CLASS, mask::PKEY, mask::FLOW_LABEL, mask::SL] {
        let record = bench.creation(0, mgid(1), 1);
        let result = bench.join(0, record, mask::CREATE & !bit);
        assert_eq!(result, Err(Status::REQ_INSUFFICIENT_COMPONENTS), "without {bit:#x}");
    }
    for bit in [mask::MGID, mask::PORT_GID, mask::JOIN_STATE] {
        let record = bench.creation(0, broadcast(), 1);
        let result = bench.join(0, record, mask::JOIN & !bit);
        assert_eq!(result, Err(Status::REQ_INSUFFICIENT_COMPONENTS), "without {bit:#x}");
    }
    assert!(bench.create(0, mgid(1), 1).is_ok());
}

/// IBA o15-0.1.9: only a full member (or send-only full member) creates a group.
#[test]
fn only_full_members_create() {
    let mut bench = Bench::new(1);
    for (state, result) in
        [(2, Err(Status::REQ_INVALID)), (4, Err(Status::REQ_INVALID)), (1, Ok(())), (8, Ok(()))]
    {
        assert_eq!(bench.create(0, mgid(state), state).map(|_| ()), result, "join state {state}");
    }
    assert_eq!(bench.create(0, mgid(1), 0).map(|_| ()), Err(Status::REQ_INVALID), "no join state");
}

/// A group lives as long as a member that keeps it alive; others go with it (OpenSM, osm_mgrp_remove_port).
#[test]
fn group_dies_with_its_last_full_member() {
    let mut bench = Bench::new(3);
    let group = bench.create(0, mgid(1), 1).unwrap();
    bench.create(1, mgid(1), 2).unwrap();
    bench.create(2, mgid(1), 4).unwrap();
    assert_eq!(bench.send(2, group.mlid), [bench.host(0), bench.host(1)]);
    bench.leave(0, mgid(1), 1).unwrap();
    assert!(!bench.fabric.manager().groups().contains_key(&mgid(1)));
    assert!(bench.send(2, group.mlid).is_empty(), "switches forget it too");
    assert_eq!(bench.leave(1, mgid(1), 2), Err(Status::REQ_INVALID));
    // Its LID is free again.
    assert_eq!(bench.create(1, mgid(2), 1).unwrap().mlid, group.mlid);
}

/// IBA o15-0.1.11, o15-0.1.14: join states add up; leaving takes away what it names, which must be there.
#[test]
fn join_states_add_up() {
    let mut bench = Bench::new(2);
    bench.create(0, mgid(1), 1).unwrap();
    assert_eq!(bench.create(1, mgid(1), 4).unwrap().join_state, 4);
    assert_eq!(bench.create(1, mgid(1), 1).unwrap().join_state, 5);
    assert_eq!(bench.leave(1, mgid(1), 2), Err(Status::REQ_INVALID), "never joined that way");
    assert_eq!(bench.leave(1, mgid(1), 3), Err(Status::REQ_INVALID), "only partly");
    assert_eq!(bench.leave(1, mgid(1), 0), Err(Status::REQ_INVALID), "in no way");
    assert_eq!(bench.leave(1, mgid(1), 1).unwrap().join_state, 4);
    assert_eq!(bench.leave(1, mgid(1), 4).unwrap().join_state, 0);
    assert_eq!(bench.leave(1, mgid(1), 4), Err(Status::REQ_INVALID), "not a member");
}

/// IBA o15-0.2.4: every attribute that a join names must be the group's.
#[test]
fn join_must_match_the_group() {
    let mut bench = Bench::new(2);
    let group = bench.create(0, mgid(1), 1).unwrap();
    let right = McMemberRecord { port_gid: bench.gid(1), join_state: 1, ..group };
    let cases = [
        (mask::QKEY, McMemberRecord { qkey: QKey(1), ..right }),
        (mask::PKEY, McMemberRecord { pkey: PKey(0x8001), ..right }),
        (mask::TRAFFIC_CLASS, McMemberRecord { traffic_class: 1, ..right }),
        (mask::SL, McMemberRecord { sl: 1, ..right }),
        (mask::FLOW_LABEL, McMemberRecord { flow_label: 1, ..right }),
        (mask::HOP_LIMIT, McMemberRecord { hop_limit: 1, ..right }),
        (mask::MTU_SELECTOR | mask::MTU, McMemberRecord { mtu: Mtu::B256.code(), ..right }),
        (mask::RATE_SELECTOR | mask::RATE, McMemberRecord { rate: 2, ..right }),
    ];
    for (bits, wrong) in cases {
        assert_eq!(bench.join(1, wrong, mask::JOIN | bits), Err(Status::REQ_INVALID), "mask {bits:#x}");
        assert!(bench.join(1, wrong, mask::JOIN).is_ok(), "not named, not looked at");
        assert!(bench.join(1, right, mask::JOIN | bits).is_ok(), "mask {bits:#x}");
    }
}

/// MTU and rate selectors of a join: greater, less, exactly, best (IBA 15.2.5.17).
#[test]
fn join_selectors() {
    let mut bench = Bench::new(2);
    let record = |mtu_selector, mtu: Mtu, port_gid| McMemberRecord {
        mgid: broadcast(),
        port_gid,
        join_state: 1,
        mtu_selector,
        mtu: mtu.code(),
        ..McMemberRecord::default()
    };
    let bits = mask::JOIN | mask::MTU_SELECTOR | mask::MTU;
    let gid = bench.gid(0);
    for (selector, mtu, fits) in [
        (Selector::GREATER, Mtu::B1024, true),
        (Selector::GREATER, Mtu::B2048, false),
        (Selector::LESS, Mtu::B4096, true),
        (Selector::LESS, Mtu::B2048, false),
        (Selector::EXACTLY, Mtu::B2048, true),
        (Selector::EXACTLY, Mtu::B4096, false),
        (Selector::BEST, Mtu::B256, true),
    ] {
        assert_eq!(bench.join(0, record(selector, mtu, gid), bits).is_ok(), fits, "{selector:?} {mtu:?}");
    }
    let reserved = McMemberRecord { mtu: 0, ..record(Selector::EXACTLY, Mtu::B256, gid) };
    assert_eq!(bench.join(0, reserved, bits), Err(Status::REQ_INVALID));
    let reserved = McMemberRecord { rate: 63, ..record(Selector::EXACTLY, Mtu::B2048, gid) };
    let rate_bits = mask::JOIN | mask::RATE_SELECTOR | mask::RATE;
    assert_eq!(bench.join(0, reserved, rate_bits), Err(Status::REQ_INVALID));
}

/// A port that cannot do the group's MTU or rate cannot join (OpenSM, validate_port_caps).
#[test]
fn port_must_be_able() {
    for group in [
        IpoibGroup { mtu: Mtu::B4096, ..IpoibGroup::default() },
        IpoibGroup { rate: Rate::from_code(17).unwrap(), ..IpoibGroup::default() },
    ] {
        let settings = LinkSettings { mtu: Mtu::B2048, ..LinkSettings::default() };
        let topology = Topology::default_for(1, settings).unwrap();
        let partitions = vec![Partition { ipoib: Some(group), ..Partition::default() }];
        let manager = ManagerConfig { partitions, ..ManagerConfig::default() };
        let mut bench = Bench::on(topology, FabricConfig { seed: 0, manager });
        let record = bench.creation(0, broadcast(), 1);
        assert_eq!(bench.join(0, record, mask::JOIN), Err(Status::REQ_INVALID));
    }
}

/// The joining port must be in the group's partition (IBA 15.2.5.17; OpenSM ERR 1B14).
#[test]
fn port_must_be_in_the_partition() {
    let topology = Topology::default_for(2, LinkSettings::default()).unwrap();
    let first = topology.port(topology.host(0).unwrap()).guid;
    let partitions = vec![
        Partition::default(),
        Partition {
            pkey: PKey(0x8001),
            members: Members::Ports(vec![(first, true)]),
            ipoib: Some(IpoibGroup::default()),
        },
    ];
    let manager = ManagerConfig { partitions, ..ManagerConfig::default() };
    let mut bench = Bench::on(topology, FabricConfig { seed: 0, manager });
    let group = IpoibGroup::default().mgid(PKey(0x8001));
    for (host, fits) in [(0, true), (1, false)] {
        let record = McMemberRecord {
            mgid: group,
            port_gid: bench.gid(host),
            join_state: 1,
            ..McMemberRecord::default()
        };
        assert_eq!(bench.join(host, record, mask::JOIN).is_ok(), fits);
    }
    let zero = McMemberRecord { pkey: PKey(0x8000), ..bench.creation(0, mgid(9), 1) };
    assert_eq!(bench.join(0, zero, mask::CREATE), Err(Status::REQ_INVALID), "partition 0 is none");
}

/// A port GID of another subnet is an invalid GID; the default prefix stands for the subnet's; a port that is
/// not there is an invalid request (OpenSM ERR 1B40).
#[test]
fn port_gid_is_checked() {
    let prefix = 0xFEC0_0000_0000_0001;
    let mut bench = Bench::with(1, ManagerConfig { subnet_prefix: prefix, ..ManagerConfig::default() });
    assert_eq!(bench.gid(0).prefix(), prefix);
    let with_prefix = |prefix| Gid::new(prefix, bench.guid(0));
    let (own, default, foreign) = (with_prefix(prefix), with_prefix(Gid::LINK_LOCAL_PREFIX), with_prefix(77));
    for (port_gid, result) in [
        (own, Ok(own)),
        (default, Ok(default)),
        (foreign, Err(Status::REQ_INVALID_GID)),
        (Gid::new(prefix, Guid(0xDEAD)), Err(Status::REQ_INVALID)),
    ] {
        let record = McMemberRecord { port_gid, ..bench.creation(0, broadcast(), 1) };
        assert_eq!(bench.join(0, record, mask::JOIN).map(|record| record.port_gid), result);
    }
    assert_eq!(bench.fabric.manager().groups()[&broadcast()].members.len(), 1, "one port, however named");
}

/// IBA o15-0.1.5: reserved flags, no multicast prefix, and the administrator's own signature are refused; a
/// zero MGID gets one with that signature.
#[test]
fn mgids_are_checked() {
    let mut bench = Bench::new(1);
    let mut flags = mgid(1);
    flags.0[1] = 0x42;
    let mut own = mgid(1);
    own.0[2..4].copy_from_slice(&[0xA0, 0x1B]);
    for bad in [bench.gid(0), flags, own] {
        assert_eq!(bench.create(0, bad, 1), Err(Status::REQ_INVALID), "{bad}");
    }
    let first = bench.create(0, Gid::NONE, 1).unwrap();
    let second = bench.create(0, Gid::NONE, 1).unwrap();
    assert_eq!(first.mgid.0[..4], [0xFF, 0x12, 0xA0, 0x1B]);
    assert_ne!(first.mgid, second.mgid);
}

/// OpenSM, ipoib_mcgroup_creation_validation: an IPoIB group needs its broadcast group, and its attributes.
#[test]
fn ipoib_groups_follow_the_broadcast_group() {
    let partitions = vec![Partition { ipoib: None, ..Partition::default() }];
    let mut bench = Bench::with(2, ManagerConfig { partitions, ..ManagerConfig::default() });
    let all_hosts = ipoib_mgid(0x401B, 1);
    assert_eq!(bench.create(0, all_hosts, 1), Err(Status::REQ_INVALID), "no broadcast group yet");
    bench.create(0, broadcast(), 1).unwrap();
    assert!(bench.create(0, all_hosts, 1).is_ok());
    assert!(bench.create(0, ipoib_mgid(0x601B, 1), 1).is_ok());
    let other_key = McMemberRecord { qkey: QKey(5), ..bench.creation(0, ipoib_mgid(0x401B, 2), 1) };
    assert_eq!(bench.join(0, other_key, mask::CREATE), Err(Status::REQ_INVALID));
}

/// No multicast LID left: ERR_NO_RESOURCES. Creating forbidden: ERR_REQ_DENIED.
#[test]
fn resources_and_denial() {
    let config = ManagerConfig { multicast_lids: (Lid(0xC000), Lid(0xC001)), ..ManagerConfig::default() };
    let mut bench = Bench::with(1, config);
    bench.create(0, mgid(1), 1).unwrap();
    assert_eq!(bench.create(0, mgid(2), 1), Err(Status::NO_RESOURCES));
    bench.leave(0, mgid(1), 1).unwrap();
    assert!(bench.create(0, mgid(2), 1).is_ok());

    let config = ManagerConfig { may_create_groups: false, ..ManagerConfig::default() };
    let mut bench = Bench::with(1, config);
    assert_eq!(bench.create(0, mgid(1), 1), Err(Status::REQ_DENIED));
}

/// IBA o15-0.2.1: nobody changes another port's membership, unless it was joined by proxy.
#[test]
fn others_memberships_are_protected() {
    let mut bench = Bench::new(3);
    bench.create(0, mgid(1), 1).unwrap();
    let leave =
        McMemberRecord { mgid: mgid(1), port_gid: bench.gid(0), join_state: 1, ..McMemberRecord::default() };
    assert_eq!(bench.member(1, Method::DELETE, leave, mask::JOIN), Err(Status::REQ_INVALID));
    // Host 1 joins host 2 by proxy; then host 0 may take it out again.
    let proxy = McMemberRecord { port_gid: bench.gid(2), ..leave };
    assert!(bench.join(1, proxy, mask::JOIN).is_ok());
    assert!(bench.member(0, Method::DELETE, proxy, mask::JOIN).is_ok());
}

/// IBA 15.2.5.17.2: who asks sees groups, not members; a trusted request sees those too.
#[test]
fn queries_hide_members_from_the_untrusted() {
    let mut bench = Bench::new(3);
    bench.create(0, mgid(1), 1).unwrap();
    bench.create(1, mgid(1), 4).unwrap();
    let wanted = McMemberRecord { mgid: mgid(1), ..McMemberRecord::default() };
    let got = bench.member(2, Method::GET, wanted, mask::MGID).unwrap();
    assert_eq!((got.port_gid, got.join_state), (Gid::NONE, 0));
    let attribute = Attribute::MC_MEMBER_RECORD;
    let all = bench.query(2, Method::GET_TABLE, attribute, 0, &[]).unwrap();
    assert_eq!(all.len(), 2, "this group and the broadcast group");

    let mut request = bench.request(Method::GET_TABLE, attribute, mask::MGID, &wanted.to_bytes());
    request.sa.sm_key = bench.fabric.manager().config().sm_key;
    let answers = bench.ask(2, &request);
    let members: Vec<McMemberRecord> = crate::fabric::wire::sa::reassemble(&answers)
        .unwrap()
        .iter()
        .map(|bytes| McMemberRecord::parse_slice(bytes).unwrap())
        .collect();
    assert_eq!(
        members.iter().map(|m| (m.port_gid, m.join_state)).collect::<Vec<_>>(),
        [(bench.gid(0), 1), (bench.gid(1), 4)]
    );
    request.sa.sm_key += 1;
    assert!(bench.ask(2, &request).is_empty(), "C15-0.1.5: a wrong key gets no answer");
    // No such group.
    let wanted = McMemberRecord { mgid: mgid(7), ..McMemberRecord::default() };
    assert_eq!(bench.member(2, Method::GET, wanted, mask::MGID), Err(Status::NO_RECORDS));
    // A Get that finds two.
    assert_eq!(bench.query(2, Method::GET, attribute, 0, &[]), Err(Status::TOO_MANY_RECORDS), "C15-0.1.30");
}

/// Traps 66 and 67 reach who subscribed, on its own QP, and stop when it unsubscribes.
#[test]
fn group_reports() {
    let mut bench = Bench::new(3);
    let info = InformInfo {
        lid_range_begin: Lid(0xFFFF),
        is_generic: 1,
        subscribe: 1,
        notice_type: InformInfo::ANY,
        trap_number: 66,
        producer_type: 0xFF_FFFF,
        ..InformInfo::default()
    };
    let subscribe = |bench: &mut Bench, info: InformInfo| {
        bench.query(1, Method::SET, Attribute::INFORM_INFO, 0, &info.to_bytes())
    };
    assert!(subscribe(&mut bench, info).is_ok());
    assert!(subscribe(&mut bench, info).is_ok(), "once more is the same");
    assert!(subscribe(&mut bench, InformInfo { trap_number: 67, ..info }).is_ok());
    let reports = |bench: &mut Bench| -> Vec<Trap> {
        let arrived = std::mem::take(&mut bench.arrived);
        arrived
            .iter()
            .filter(|delivery| delivery.port == bench.host(1))
            .filter_map(|delivery| {
                let mad = SaMad::parse(delivery.packet.parse().ok()?.1).ok()?;
                (mad.header.method == Method::REPORT).then_some(mad)
            })
            .map(|mad| Trap::of(&Notice::parse_slice(&mad.data).unwrap()).unwrap())
            .collect()
    };
    let change = |bench: &mut Bench, method, record: McMemberRecord| {
        // The answer goes to host 0; what arrives at host 1 is the report.
        let request =
            SaMad::request(method, Attribute::MC_MEMBER_RECORD, 1, mask::CREATE, &record.to_bytes());
        let source = crate::fabric::administrator::Source {
            lid: bench.lid(0),
            qpn: crate::fabric::Qpn::GSI,
            ..Default::default()
        };
        let port = bench.fabric.manager().port().unwrap();
        assert_eq!(bench.fabric.administer(bench.now, port, &source, &request.to_bytes()).len(), 1);
        bench.settle();
    };
    let record = bench.creation(0, mgid(1), 1);
    change(&mut bench, Method::SET, record);
    assert_eq!(reports(&mut bench), [Trap::GroupCreated(mgid(1))]);
    change(&mut bench, Method::DELETE, record);
    assert_eq!(reports(&mut bench), [Trap::GroupDeleted(mgid(1))]);
    assert!(subscribe(&mut bench, InformInfo { subscribe: 0, ..info }).is_ok());
    assert_eq!(subscribe(&mut bench, InformInfo { subscribe: 0, ..info }), Err(Status::REQ_INVALID));
    change(&mut bench, Method::SET, record);
    assert_eq!(reports(&mut bench), []);
}
