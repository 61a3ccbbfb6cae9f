//! PathRecord: IBA 15.2.5.16 and what OpenSM makes of it.

use super::bench::{Bench, mgid};
use crate::fabric::FabricConfig;
use crate::fabric::ids::{Gid, Guid, Lid, PKey};
use crate::fabric::manager::{ManagerConfig, Members, Partition};
use crate::fabric::rate::{LinkSpeed, LinkWidth, Mtu, Rate};
use crate::fabric::topology::Topology;
use crate::fabric::topology::builder::LinkSettings;
use crate::fabric::wire::mad::{Method, Status};
use crate::fabric::wire::sa::path::{PathRecord, mask};
use crate::fabric::wire::sa::selector::Selector;

/// The path between two ports, by GIDs, by LIDs, and by one of each, is the same.
#[test]
fn by_gid_and_by_lid() {
    let mut bench = Bench::new(3);
    let expected = PathRecord {
        dgid: bench.gid(2),
        sgid: bench.gid(0),
        dlid: bench.lid(2),
        slid: bench.lid(0),
        reversible: true,
        pkey: PKey::DEFAULT,
        mtu_selector: Selector::EXACTLY,
        mtu: Mtu::B4096.code(),
        rate_selector: Selector::EXACTLY,
        rate: Rate::of(LinkWidth::X4, LinkSpeed::Edr).code(),
        packet_lifetime_selector: Selector::EXACTLY,
        packet_lifetime: 18,
        ..PathRecord::default()
    };
    for bits in [
        mask::DGID | mask::SGID,
        mask::DLID | mask::SLID,
        mask::DGID | mask::SLID,
        mask::DLID | mask::SGID,
        mask::DGID | mask::DLID | mask::SGID | mask::SLID,
        mask::DGID | mask::SGID | mask::REVERSIBLE | mask::NUM_PATHS,
    ] {
        let wanted = PathRecord { num_paths: 1, ..expected };
        let paths = bench.paths(0, Method::GET, wanted, bits).unwrap();
        assert_eq!(paths, [expected], "mask {bits:#x}");
    }
}

/// GIDs and LIDs that nobody has find no records; a GID of one port with the LID of another is invalid
/// (OpenSM).
#[test]
fn unknown_ends() {
    let mut bench = Bench::new(2);
    let wanted =
        PathRecord { dgid: bench.gid(1), sgid: bench.gid(0), dlid: Lid(0x999), ..PathRecord::default() };
    let mut status = |wanted, bits| bench.paths(0, Method::GET, wanted, bits).map(|paths| paths.len());
    let nobody = PathRecord { dgid: Gid::new(Gid::LINK_LOCAL_PREFIX, Guid(1)), ..wanted };
    assert_eq!(status(nobody, mask::DGID | mask::SGID), Err(Status::NO_RECORDS));
    let elsewhere = PathRecord { dgid: Gid::new(0x20, wanted.dgid.guid()), ..wanted };
    assert_eq!(status(elsewhere, mask::DGID | mask::SGID), Err(Status::NO_RECORDS));
    assert_eq!(status(wanted, mask::DLID | mask::SGID), Err(Status::NO_RECORDS));
    let contradiction = PathRecord { slid: bench.lid(1), ..wanted };
    let paths = bench.paths(0, Method::GET, contradiction, mask::DGID | mask::SGID | mask::SLID);
    assert_eq!(paths, Err(Status::REQ_INVALID), "GID of one port, LID of another");
}

/// MTU, rate and lifetime selectors (IBA 15.2.5.16; settled as OpenSM does). A selector without a value says
/// nothing.
#[test]
fn selectors() {
    let mut bench = Bench::new(2);
    let base = PathRecord { dgid: bench.gid(1), sgid: bench.gid(0), ..PathRecord::default() };
    let ends = mask::DGID | mask::SGID;
    let mut ask = |wanted, bits| {
        bench
            .paths(0, Method::GET, wanted, ends | bits)
            .map(|paths| (paths[0].mtu, paths[0].rate, paths[0].packet_lifetime))
    };
    let edr = Rate::of(LinkWidth::X4, LinkSpeed::Edr).code();
    let mtu = |mtu_selector, mtu: Mtu| PathRecord { mtu_selector, mtu: mtu.code(), ..base };
    let both = mask::MTU_SELECTOR | mask::MTU;
    assert_eq!(ask(mtu(Selector::EXACTLY, Mtu::B2048), both), Ok((4, edr, 18)));
    assert_eq!(ask(mtu(Selector::LESS, Mtu::B4096), both), Ok((4, edr, 18)));
    assert_eq!(ask(mtu(Selector::GREATER, Mtu::B4096), both), Err(Status::NO_RECORDS));
    assert_eq!(ask(mtu(Selector::GREATER, Mtu::B4096), mask::MTU_SELECTOR), Ok((5, edr, 18)));
    let rate = |rate_selector, rate| PathRecord { rate_selector, rate, ..base };
    let both = mask::RATE_SELECTOR | mask::RATE;
    assert_eq!(ask(rate(Selector::EXACTLY, edr), both), Ok((5, edr, 18)));
    assert_eq!(ask(rate(Selector::EXACTLY, 3), both), Err(Status::NO_RECORDS));
    assert_eq!(ask(rate(Selector::GREATER, 3), both), Ok((5, edr, 18)));
    let life = |packet_lifetime_selector, packet_lifetime| PathRecord {
        packet_lifetime_selector,
        packet_lifetime,
        ..base
    };
    let both = mask::PACKET_LIFETIME_SELECTOR | mask::PACKET_LIFETIME;
    assert_eq!(ask(life(Selector::LESS, 18), both), Ok((5, edr, 17)));
    assert_eq!(ask(life(Selector::GREATER, 18), both), Err(Status::NO_RECORDS));
}

/// The MTU and rate of a path are the least on the way.
#[test]
fn least_of_the_way() {
    let settings = LinkSettings::default();
    let slow = LinkSettings { width: LinkWidth::X1, speed: LinkSpeed::Sdr, ..settings };
    let mut topology = Topology::new();
    let a = topology.add_channel_adapter("a", Guid(0x100), 1, Mtu::B4096).unwrap();
    let b = topology.add_channel_adapter("b", Guid(0x200), 1, Mtu::B4096).unwrap();
    let manager = topology.add_manager("manager", Guid(0x300), Mtu::B4096).unwrap();
    let left = topology.add_switch("left", Guid(0x400), 4, settings).unwrap();
    let right =
        topology.add_switch("right", Guid(0x500), 4, LinkSettings { mtu: Mtu::B1024, ..settings }).unwrap();
    topology.connect((a, 1), (left, 1), settings).unwrap();
    topology.connect((manager, 1), (left, 2), settings).unwrap();
    topology.connect((left, 3), (right, 3), slow).unwrap();
    topology.connect((b, 1), (right, 1), settings).unwrap();
    let mut bench = Bench::on(topology, FabricConfig::default());
    let wanted = PathRecord { dgid: bench.gid(1), sgid: bench.gid(0), ..PathRecord::default() };
    let path = bench.paths(0, Method::GET, wanted, mask::DGID | mask::SGID).unwrap()[0];
    assert_eq!(path.mtu, Mtu::B1024.code());
    assert_eq!(path.rate, Rate::of(LinkWidth::X1, LinkSpeed::Sdr).code());
}

/// A path to oneself exists and has lifetime 0 (IBA 1.2 table of PathRecord, PacketLifeTime).
#[test]
fn loopback_path() {
    let mut bench = Bench::new(1);
    let wanted = PathRecord { dgid: bench.gid(0), sgid: bench.gid(0), ..PathRecord::default() };
    let path = bench.paths(0, Method::GET, wanted, mask::DGID | mask::SGID).unwrap()[0];
    assert_eq!((path.slid, path.dlid, path.packet_lifetime), (bench.lid(0), bench.lid(0), 0));
}

/// Ports without a common partition have no path, nor in a partition that one of them is not in (OpenSM).
#[test]
fn partitions_of_paths() {
    let topology = Topology::default_for(3, LinkSettings::default()).unwrap();
    let guids: Vec<Guid> = topology.hosts().iter().map(|&id| topology.port(id).guid).collect();
    let partitions = vec![
        Partition { members: Members::All { full: false }, ipoib: None, ..Partition::default() },
        Partition {
            pkey: PKey(1),
            members: Members::Ports(vec![(guids[0], true), (guids[1], true)]),
            ipoib: None,
        },
    ];
    let manager = ManagerConfig { partitions, ..ManagerConfig::default() };
    let mut bench = Bench::on(topology, FabricConfig { seed: 0, manager });
    let to = |bench: &Bench, host| PathRecord {
        dgid: bench.gid(host),
        sgid: bench.gid(0),
        pkey: PKey(0x8001),
        ..PathRecord::default()
    };
    let ends = mask::DGID | mask::SGID;
    let wanted = to(&bench, 1);
    assert_eq!(bench.paths(0, Method::GET, wanted, ends).unwrap()[0].pkey, PKey(0x8001));
    assert_eq!(bench.paths(0, Method::GET, wanted, ends | mask::PKEY).unwrap()[0].pkey, PKey(0x8001));
    let limited = PathRecord { pkey: PKey::DEFAULT_LIMITED, ..wanted };
    assert_eq!(bench.paths(0, Method::GET, limited, ends | mask::PKEY), Err(Status::NO_RECORDS));
    let wanted = to(&bench, 2);
    assert_eq!(bench.paths(0, Method::GET, wanted, ends), Err(Status::NO_RECORDS), "both limited");
}

/// With LMC, GetTable gives every pair of LIDs, independent ones first; NumbPath bounds them, Get takes the
/// best.
#[test]
fn lmc_gives_many_paths() {
    let mut bench = Bench::with(2, ManagerConfig { lmc: 1, ..ManagerConfig::default() });
    let wanted = PathRecord { dgid: bench.gid(1), sgid: bench.gid(0), num_paths: 3, ..PathRecord::default() };
    let ends = mask::DGID | mask::SGID;
    let all = bench.paths(0, Method::GET_TABLE, wanted, ends).unwrap();
    let offsets: Vec<_> = all
        .iter()
        .map(|path| (path.slid.0 - bench.lid(0).0, path.dlid.0 - bench.lid(1).0, path.preference))
        .collect();
    assert_eq!(offsets, [(0, 0, 0), (1, 1, 0), (0, 1, 2), (1, 0, 2)]);
    assert_eq!(bench.paths(0, Method::GET_TABLE, wanted, ends | mask::NUM_PATHS).unwrap().len(), 3);
    assert_eq!(bench.paths(0, Method::GET, wanted, ends | mask::NUM_PATHS).unwrap().len(), 1);
}

/// A table from one port to all: one path to each port that has a LID, over several segments.
#[test]
fn half_of_the_world() {
    let mut bench = Bench::new(20);
    let wanted = PathRecord { sgid: bench.gid(0), ..PathRecord::default() };
    let paths = bench.paths(0, Method::GET_TABLE, wanted, mask::SGID).unwrap();
    let ends: std::collections::BTreeSet<Lid> = paths.iter().map(|path| path.dlid).collect();
    assert_eq!((paths.len(), ends.len()), (22, 22), "20 hosts, the manager, the switch");
}

/// The path to a group has its MLID and attributes; a DLID that is not its own finds nothing.
#[test]
fn multicast_path() {
    let mut bench = Bench::new(2);
    let group = bench.create(0, mgid(1), 1).unwrap();
    let wanted = PathRecord { dgid: mgid(1), sgid: bench.gid(0), dlid: Lid(0xC999), ..PathRecord::default() };
    let path = bench.paths(0, Method::GET, wanted, mask::DGID | mask::SGID).unwrap()[0];
    assert_eq!((path.dlid, path.pkey, path.mtu), (group.mlid, group.pkey, group.mtu));
    assert_eq!(bench.paths(0, Method::GET, wanted, mask::DGID | mask::DLID), Err(Status::NO_RECORDS));
    let stranger = PathRecord { sgid: bench.gid(1), ..wanted };
    assert_eq!(bench.paths(1, Method::GET, stranger, mask::DGID | mask::SGID), Err(Status::NO_RECORDS));
    let unknown = PathRecord { dgid: mgid(9), ..wanted };
    assert_eq!(bench.paths(0, Method::GET, unknown, mask::DGID), Err(Status::NO_RECORDS));
}
