//! What a subnet administrator may do wrong: answer late, never, with an error or with nonsense; refuse joins; have
//! groups with other properties; go away in the middle. The driver lives with it, and once answers are good again hosts
//! reach each other.

mod common;

use common::{Network, address};
use ipoib::adapter::event_code::EventCode;
use ipoib_lab::fabric::fault::{Effect, FaultGuard, Transit, rewrite, sa_response};
use ipoib_lab::fabric::manager::Restart;
use ipoib_lab::fabric::manager::config::{IpoibGroup, Partition};
use ipoib_lab::fabric::wire::mad::{Attribute, SA_DATA_OFFSET, Status};
use ipoib_lab::fabric::{LinkSpeed, LinkWidth, Mtu, Packet, QKey, Rate};
use ipoib_lab::scenario::{Host, Subnet, SubnetConfig};
use ipoib_lab::sim::{Nanos, SECOND};
use ipoib_lab::stack::PingOptions;

/// Where the status is in a MAD, and the end of a transaction ID (IBA 13.4.3).
const STATUS: usize = 4;
const TRANSACTION: usize = 15;

/// An administrator that answers wrongly.
type Answer = (&'static str, fn() -> Effect);

/// The answer with bytes of its MAD changed. CRCs are right: only its content can tell.
fn changed(change: impl Fn(&mut [u8]) + Send + 'static) -> Effect {
    Effect::Forge(Box::new(move |transit: &Transit<'_>| vec![rewrite(transit.packet, &change)]))
}

fn status(status: Status) -> Effect {
    changed(move |mad| mad[STATUS..STATUS + 2].copy_from_slice(&status.0.to_be_bytes()))
}

/// The answer with bytes of its record changed.
fn record(at: usize, bytes: &'static [u8]) -> Effect {
    changed(move |mad| mad[SA_DATA_OFFSET + at..][..bytes.len()].copy_from_slice(bytes))
}

/// Wrong in the same way for every attribute.
const ANY: [Answer; 14] = [
    ("absent", || Effect::Drop),
    ("later than the timeout", || Effect::Delay(3 * SECOND)),
    ("twice", || Effect::Duplicate(1000)),
    ("twice, the second time late", || Effect::Duplicate(2 * SECOND)),
    ("cut short", || Effect::Truncate(100)),
    ("busy", || status(Status::BUSY)),
    ("no resources", || status(Status::NO_RESOURCES)),
    ("invalid request", || status(Status::REQ_INVALID)),
    ("no records", || status(Status::NO_RECORDS)),
    ("denied", || status(Status::REQ_DENIED)),
    ("a status that does not exist", || status(Status(0xff00))),
    ("for another transaction", || changed(|mad| mad[TRANSACTION] ^= 1)),
    ("all zero", || changed(|mad| mad[SA_DATA_OFFSET..].fill(0))),
    ("all ones", || changed(|mad| mad[SA_DATA_OFFSET..].fill(0xff))),
];

/// Wrong in what a PathRecord says (offsets: IBA 15.2.5.16).
const PATH: [Answer; 10] = [
    ("to no LID", || record(40, &[0, 0])),
    ("to a multicast LID", || record(40, &[0xc0, 0x01])),
    ("to the permissive LID", || record(40, &[0xff, 0xff])),
    ("to a LID that nobody has", || record(40, &[0x12, 0x34])),
    ("to another GID", || record(8, &[0x20, 0x01, 0x0d, 0xb8])),
    ("to a group", || record(8, &[0xff, 0x12])),
    ("from another GID", || record(24, &[0x20, 0x01, 0x0d, 0xb8])),
    ("in a foreign partition", || record(50, &[0x12, 0x34])),
    ("with a reserved MTU", || record(54, &[0x80 | 0x3f])),
    ("with a reserved rate", || record(55, &[0x80 | 0x3f])),
];

/// Wrong in what an MCMemberRecord says (offsets: IBA 15.2.5.17).
const MEMBER: [Answer; 7] = [
    ("of another group", || record(0, &[0xff, 0x15])),
    ("of no group", || record(0, &[0xfe, 0x80])),
    ("at a unicast LID", || record(36, &[0x00, 0x01])),
    ("at no LID", || record(36, &[0, 0])),
    ("with a reserved MTU", || record(38, &[0x80 | 0x3f])),
    ("with a reserved rate", || record(42, &[0x80 | 0x3f])),
    ("for nothing joined", || record(48, &[0x20])),
];

fn misanswer(subnet: &Subnet, attribute: Attribute, effect: Effect) -> FaultGuard {
    subnet.net.with(|fabric, _| fabric.add_fault(sa_response(attribute), effect))
}

/// Event-log entries of a host with this code.
fn logged(subnet: &Subnet, host: usize, code: EventCode) -> usize {
    let adapter = subnet.hosts[host].adapter().expect("up");
    adapter.event_log().entries().iter().filter(|entry| entry.code == code as u32).count()
}

/// How long `answer` lasts: longer than some queries wait, shorter than they are repeated for.
const BAD_TIME: Nanos = 8 * SECOND;

/// Issue 2, "Bad input", PathRecord: a frame whose path cannot be had is a counted drop, never a queue that nobody
/// empties; with good answers the peer is reached.
#[test]
fn bad_path_records_cost_frames_and_no_more() {
    for (seed, &(what, answer)) in (1..).zip(ANY.iter().chain(&PATH)) {
        let network = Network::new(3, seed);
        let guard = misanswer(&network.subnet, Attribute::PATH_RECORD, answer());
        let options = PingOptions { count: 20, ..PingOptions::default() };
        let pings: Vec<_> = (0..3)
            .flat_map(|from| [1, 2].map(|step| (from, (from + step) % 3)))
            .map(|(from, to)| network.stacks[from].ping(address(to).into(), options))
            .collect();
        network.subnet.run_for(BAD_TIME).unwrap_or_else(|error| panic!("{what}: {error}"));
        drop(guard);
        network
            .subnet
            .wait_for("pings", |_| pings.iter().all(|ping| ping.report().done))
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        network.subnet.run_for(30 * SECOND).unwrap_or_else(|error| panic!("{what}: {error}"));
        // Who was said to be nowhere has lost its place in the table: the first frame may find that out.
        network.ping_all_unchecked();
        for (from, to) in [(0, 1), (1, 2), (2, 0)] {
            network.ping_after(from, address(to), PingOptions { count: 2, ..PingOptions::default() }, what);
        }
        network.stop();
    }
}

/// Issue 2, "Bad input", MCMemberRecord: the broadcast group is asked for until it is had, and what is no answer to the
/// question is not taken for one.
#[test]
fn bad_member_records_delay_the_link_and_no_more() {
    for (seed, &(what, answer)) in (1..).zip(ANY.iter().chain(&MEMBER)) {
        let subnet = Subnet::new(&SubnetConfig::new(2, seed)).expect("a topology");
        let guard = misanswer(&subnet, Attribute::MC_MEMBER_RECORD, answer());
        subnet.boot().unwrap_or_else(|error| panic!("{what}: {error}"));
        subnet.run_for(BAD_TIME).unwrap_or_else(|error| panic!("{what}: {error}"));
        drop(guard);
        subnet
            .wait_for("links", |subnet| subnet.hosts.iter().all(|host| host.link_is_up()))
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        let network = Network::above(subnet);
        network.ping_after(0, address(1), PingOptions::default(), what);
        network.stop();
    }
}

/// A host halts in time whatever the administrator owes it: an answer that comes after that finds nobody.
#[test]
fn a_halt_does_not_wait_for_answers() {
    for attribute in [Attribute::PATH_RECORD, Attribute::MC_MEMBER_RECORD] {
        for effect in [Effect::Drop, Effect::Delay(3 * SECOND), Effect::Duplicate(2 * SECOND)] {
            let network = Network::new(2, 5);
            let guard = misanswer(&network.subnet, attribute, effect);
            let ping = network.stacks[0].ping(address(1).into(), PingOptions::default());
            network.stacks[1].join([239, 9, 9, 9].into()).expect("joined");
            network.subnet.run_for(SECOND / 10).expect("a run");
            drop(ping);
            let since = network.subnet.sim.now();
            let sim = network.subnet.sim.clone();
            network.stop();
            // The longest that a query in flight may keep a halt: one timeout of it, were it not cancelled.
            assert!(sim.now() - since < 5 * SECOND, "{attribute:?}: {}", sim.now() - since);
            drop(guard);
        }
    }
}

/// RFC 4391, section 5: the group's own MTU, SL, rate and Q_Key are what members use, whatever was configured.
#[test]
fn the_groups_own_parameters_are_used() {
    let rate = Rate::of(LinkWidth::X1, LinkSpeed::Sdr);
    let usual = IpoibGroup::default();
    let groups = [
        IpoibGroup { qkey: QKey(0x1234_5678), ..usual },
        IpoibGroup { qkey: QKey(0x8000_0001), ..usual },
        IpoibGroup { mtu: Mtu::B4096, ..usual },
        IpoibGroup { mtu: Mtu::B1024, ..usual },
        IpoibGroup { mtu: Mtu::B256, ..usual },
        IpoibGroup { rate, ..usual },
        IpoibGroup { sl: 3, ..usual },
        IpoibGroup { qkey: QKey(0x0c0c), mtu: Mtu::B1024, rate, sl: 1, ..usual },
    ];
    for group in groups {
        let mut config = SubnetConfig::new(2, 11);
        config.manager.partitions = vec![Partition { ipoib: Some(group), ..Partition::default() }];
        let network = Network::with(&config);
        network.ping_after(0, address(1), PingOptions::default(), &format!("{group:?}"));
        // Four bytes of IPoIB header, 28 of IPv4 and ICMP; the configured MTU of 2,044 is the other limit.
        let largest = (128_usize << group.mtu as u8).min(2048) - 4 - 28;
        let options = PingOptions { size: largest, count: 2, ..PingOptions::default() };
        network.ping_after(1, address(0), options, &format!("{group:?}"));
        let small = group.mtu < Mtu::B2048;
        for host in 0..2 {
            assert_eq!(logged(&network.subnet, host, EventCode::GroupMtuTooSmall) > 0, small, "{group:?}");
        }
        network.stop();
    }
}

/// Where no group exists, the first host creates it (RFC 4391, section 5), if it may.
#[test]
fn a_group_that_does_not_exist_is_created() {
    let mut config = SubnetConfig::new(3, 12);
    config.manager.partitions = vec![Partition { ipoib: None, ..Partition::default() }];
    let network = Network::with(&config);
    network.ping_all();
    network.stop();
}

/// A refused join leaves the link down, is reported once and not at every attempt, and does not hold up a halt.
#[test]
fn a_refused_join_is_reported_and_retried() {
    let mut config = SubnetConfig::new(2, 13);
    config.manager.partitions = vec![Partition { ipoib: None, ..Partition::default() }];
    config.manager.may_create_groups = false;
    let subnet = Subnet::new(&config).expect("a topology");
    subnet.boot().expect("a driver that loads");
    subnet.run_for(100 * SECOND).expect("a run");
    for host in 0..2 {
        assert!(!subnet.hosts[host].link_is_up());
        let logged = logged(&subnet, host, EventCode::BroadcastGroupNotJoined);
        assert!((1..=2).contains(&logged), "{logged}");
    }
    subnet
        .on_host(0, "reset", |host: &Host| host.adapter().expect("up").reset())
        .expect("a run")
        .expect("reset");
    subnet.stop().expect("halted");
}

/// The subnet manager restarts while hosts join and ask for paths, at many moments of that.
#[test]
fn a_manager_that_restarts_in_the_midst_is_survived() {
    for (seed, restart) in
        (1..).zip([Restart::Remember, Restart::ForgetGroups, Restart::ForgetAll].into_iter().cycle().take(9))
    {
        let subnet = Subnet::new(&SubnetConfig::new(3, seed)).expect("a topology");
        subnet.boot().expect("loaded");
        subnet.run_for(seed * 4_000_000).expect("a run");
        subnet.net.with(|fabric, now| fabric.restart_manager(now, restart, SECOND));
        subnet
            .wait_for("links", |subnet| subnet.hosts.iter().all(|host| host.link_is_up()))
            .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let network = Network::above(subnet);
        let ping = network.stacks[0].ping(
            address(1).into(),
            PingOptions { count: 20, interval: 5_000_000, ..PingOptions::default() },
        );
        network.subnet.run_for(seed * 3_000_000).expect("a run");
        network.subnet.net.with(|fabric, now| fabric.restart_manager(now, restart, SECOND));
        network.subnet.run_for(20 * SECOND).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        drop(ping);
        network.wait_up(&format!("seed {seed}"));
        network.ping_all_unchecked();
        network.ping_all();
        network.stop();
    }
}

/// Random bytes in place of an answer's record: nothing that they say may break a rule or outlive them.
#[test]
fn records_of_random_bytes_break_nothing() {
    for seed in 1..=6_u64 {
        let network = Network::new(2, seed);
        let mut state = seed;
        let mut roll = move || {
            // Knuth's MMIX constants.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize
        };
        let noise = move |packet: &Packet| {
            rewrite(packet, |mad| {
                for _ in 0..=(roll() % 16) {
                    let at = SA_DATA_OFFSET + roll() % 64;
                    mad[at] = roll() as u8;
                }
            })
        };
        let noise = std::sync::Arc::new(std::sync::Mutex::new(noise));
        let guards: Vec<_> = [Attribute::PATH_RECORD, Attribute::MC_MEMBER_RECORD]
            .into_iter()
            .map(|attribute| {
                let noise = std::sync::Arc::clone(&noise);
                let forge =
                    move |transit: &Transit<'_>| vec![(noise.lock().expect("no panic"))(transit.packet)];
                misanswer(&network.subnet, attribute, Effect::Forge(Box::new(forge)))
            })
            .collect();
        network.subnet.net.with(|fabric, now| {
            fabric.reassign_lids(now, ipoib_lab::fabric::manager::LidPolicy::Random);
            fabric.request_reregistration(now);
        });
        let pings = [(0, 1), (1, 0)].map(|(from, to)| {
            network.stacks[from].ping(address(to).into(), PingOptions { count: 30, ..PingOptions::default() })
        });
        network.subnet.run_for(20 * SECOND).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        drop((guards, pings));
        // A wrong path that looks right is used until something casts doubt on it: here, that the manager says so.
        network.subnet.net.with(ipoib_lab::fabric::Fabric::request_reregistration);
        network.subnet.run_for(60 * SECOND).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        network.wait_up(&format!("seed {seed}"));
        network.ping_all_unchecked();
        network.ping_after(0, address(1), PingOptions::default(), &format!("seed {seed}"));
        network.stop();
    }
}
