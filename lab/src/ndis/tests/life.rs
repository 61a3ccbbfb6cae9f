//! What a miniport that keeps the rules sees of NDIS.

use windows_kernel_sys::{
    NDIS_STATUS_NOT_SUPPORTED, NDIS_STATUS_PAUSED, NDIS_STATUS_RESET_END, NDIS_STATUS_RESET_IN_PROGRESS,
    NDIS_STATUS_RESET_START, NDIS_STATUS_SEND_ABORTED, NDIS_STATUS_SUCCESS, OID_GEN_RESET_COUNTS,
    OID_GEN_STATISTICS, OID_GEN_VENDOR_DESCRIPTION, OID_GEN_VENDOR_ID,
};

use super::fake::{DESCRIPTION, MAC, MTU, Misdeed, VENDOR};
use super::{load, machine, run};
use crate::kernel::Machine;
use crate::ndis::{
    Adapter, Cast, DIRECTED, MULTICAST, MediaConnect, OidKind, OidRequest, Phase, Returns, SendList, cast,
};
use crate::sim::{self, MILLISECOND, Nanos, SECOND};
use crate::stack::RawStack;

/// A frame of `length` bytes to `destination`.
pub(super) fn frame(destination: [u8; 6], length: usize) -> Vec<u8> {
    let mut frame: Vec<u8> = (0..length).map(|index| (index * 7 + length) as u8).collect();
    frame[..6].copy_from_slice(&destination);
    frame
}

/// Waits until `done`, at most for `limit`.
pub(super) fn wait(limit: Nanos, done: impl Fn() -> bool) {
    let end = Machine::current().sim().now() + limit;
    while !done() && Machine::current().sim().now() < end {
        sim::sleep(MILLISECOND / 10);
    }
}

/// Everything that a miniport's life has in it, with a driver that may do wrong.
pub(super) fn exercise(machine: &Machine, misdeed: Misdeed, returns: Returns) {
    let (driver, adapter) = load(machine, misdeed, returns);
    adapter.initialize().expect("the fake miniport initialises");
    adapter.restart().expect("the fake miniport restarts");
    let stack = RawStack::bind(&adapter).expect("the fake miniport takes a packet filter");
    queries(&adapter);
    if !matches!(misdeed, Misdeed::PauseWithSends | Misdeed::ResetWithSends) {
        traffic(&stack);
    }
    resets(&adapter, &stack);
    stack.send(frame(MAC, 62), 6);
    adapter.pause();
    // Sends to a paused adapter fail in NDIS.
    let before = stack.completed();
    stack.send(frame(MAC, 60), 7);
    assert_eq!(stack.seen().completions[before].status, NDIS_STATUS_PAUSED);
    sim::sleep(MILLISECOND);
    adapter.restart().expect("the fake miniport restarts");
    pauses_under_load(&adapter, &stack);
    stack.binding().close();
    adapter.halt();
    sim::sleep(10 * MILLISECOND);
    driver.unload();
}

fn queries(adapter: &Adapter) {
    assert_eq!(adapter.query_u32(OID_GEN_VENDOR_ID), Ok(VENDOR));
    assert_eq!(adapter.query(OID_GEN_VENDOR_ID, 1), Ok(VENDOR.to_ne_bytes().to_vec()));
    assert_eq!(adapter.query(OID_GEN_VENDOR_DESCRIPTION, 64), Ok(DESCRIPTION.to_vec()));
    assert_eq!(adapter.query(OID_GEN_STATISTICS, 152), Err(NDIS_STATUS_NOT_SUPPORTED));
}

/// Sends of every shape, each of which comes back.
fn traffic(stack: &RawStack) {
    let lengths = [18, 60, 61, 1514, MTU as usize + 14];
    let mut expected = Vec::new();
    let mut lists = Vec::new();
    for (index, length) in lengths.into_iter().enumerate() {
        let frames: Vec<_> = (0..=index % 3).map(|_| frame(MAC, length)).collect();
        expected.extend(frames.clone());
        lists.push(SendList { frames, tag: index as u64, cancel_id: 0 });
    }
    stack.send_lists(lists);
    wait(40 * SECOND, || stack.completed() == lengths.len() && stack.received() == expected.len());
    let completions = stack.take_completions();
    assert_eq!(completions.len(), lengths.len());
    assert!(completions.iter().all(|completion| completion.status == NDIS_STATUS_SUCCESS), "{completions:?}");
    let mut frames = stack.take_frames();
    frames.sort();
    expected.sort();
    assert!(frames == expected, "other frames came back than were sent");
}

/// A reset with sends and an OID request under way.
fn resets(adapter: &Adapter, stack: &RawStack) {
    stack.send(frame(MAC, 100), 1);
    let query = OidRequest { oid: OID_GEN_VENDOR_DESCRIPTION, kind: OidKind::Query, input: vec![], room: 64 };
    adapter.request_async(query, |_| {});
    wait(MILLISECOND / 2, || adapter.state().oid_pending);
    adapter.reset().expect("the fake miniport resets");
    wait(SECOND, || stack.completed() == 1 && !adapter.state().oid_pending);
    let status = stack.take_completions()[0].status;
    assert!(matches!(status, NDIS_STATUS_SUCCESS | NDIS_STATUS_RESET_IN_PROGRESS), "{status:#x}");
}

/// Pauses while another thread sends: every send ends, with success or as paused.
fn pauses_under_load(adapter: &Adapter, stack: &RawStack) {
    stack.take_completions();
    for round in 0..3 {
        let sender = stack.clone();
        adapter.machine().spawn_thread("sender", move || {
            for number in 0..20 {
                sender.send(frame(MAC, 60 + number), number as u64);
                sim::sleep(10_000);
            }
        });
        sim::sleep(60_000 * round);
        adapter.pause();
        assert_eq!((adapter.state().sends_outstanding, adapter.state().receives_outstanding), (0, 0));
        wait(SECOND, || stack.completed() == 20 * (round as usize + 1));
        adapter.restart().expect("the fake miniport restarts");
    }
    let completions = stack.take_completions();
    assert_eq!(completions.len(), 60);
    let known = [NDIS_STATUS_SUCCESS, NDIS_STATUS_PAUSED];
    assert!(completions.iter().all(|completion| known.contains(&completion.status)), "{completions:x?}");
}

#[test]
fn a_good_miniport_breaks_no_rule_whatever_the_seed() {
    for seed in 0..40 {
        let returns = match seed % 4 {
            0 => Returns::AtOnce,
            1 => Returns::After(200_000),
            _ => Returns::Mixed(200_000),
        };
        let outcome = run(seed, move |machine| exercise(machine, Misdeed::None, returns));
        assert_eq!(outcome, Ok(()), "seed {seed}");
    }
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    let trace = |seed| {
        let (sim, machine) = machine(seed);
        machine
            .run("test", 600 * SECOND, || {
                exercise(&Machine::current(), Misdeed::None, Returns::Mixed(100_000));
            })
            .expect("a good miniport breaks no rule");
        (sim.trace_hash(), sim.trace_count(), sim.now())
    };
    assert_eq!(trace(5), trace(5));
    assert_ne!(trace(5), trace(6));
}

#[test]
fn nothing_is_left_after_unload() {
    let (_sim, machine) = machine(3);
    machine
        .run("test", 600 * SECOND, || exercise(&Machine::current(), Misdeed::None, Returns::AtOnce))
        .expect("no rule is broken");
    assert!(machine.outstanding().is_empty(), "{:?}", machine.outstanding());
}

#[test]
fn states_follow_the_documented_table() {
    let outcome = run(1, |machine| {
        let (driver, adapter) = load(machine, Misdeed::None, Returns::AtOnce);
        assert_eq!(adapter.state().phase, Phase::Halted);
        adapter.initialize().unwrap();
        assert_eq!(adapter.state().phase, Phase::Paused);
        assert_eq!(adapter.link().connect, MediaConnect::Disconnected);
        adapter.restart().unwrap();
        assert_eq!(adapter.state().phase, Phase::Running);
        assert!(adapter.link().is_up());
        adapter.pause();
        assert_eq!(adapter.state().phase, Phase::Paused);
        adapter.restart().unwrap();
        adapter.surprise_remove();
        let state = adapter.state();
        assert_eq!((state.phase, state.removed), (Phase::Halted, true));
        driver.unload();
    });
    assert_eq!(outcome, Ok(()));
}

#[test]
fn a_miniport_without_power_management_is_halted_for_sleep_and_hears_its_filter_again() {
    let outcome = run(1, |machine| {
        let (_driver, adapter) = load(machine, Misdeed::None, Returns::AtOnce);
        adapter.initialize().unwrap();
        adapter.restart().unwrap();
        let stack = RawStack::bind(&adapter).unwrap();
        adapter.suspend().unwrap();
        assert_eq!(adapter.state().phase, Phase::Halted);
        let oids = adapter.counters().oids;
        adapter.resume().unwrap();
        assert_eq!(adapter.state().phase, Phase::Running);
        assert_eq!(adapter.counters().oids, oids + 1, "the packet filter is set again");
        stack.send(frame(MAC, 80), 1);
        wait(SECOND, || stack.received() == 1);
        assert_eq!(stack.received(), 1);
        adapter.halt();
    });
    assert_eq!(outcome, Ok(()));
}

#[test]
fn bindings_hear_what_their_filters_pass() {
    let outcome = run(1, |machine| {
        let (_driver, adapter) = load(machine, Misdeed::None, Returns::AtOnce);
        adapter.initialize().unwrap();
        adapter.restart().unwrap();
        let group = [1, 0, 0x5e, 0, 0, 9];
        assert_eq!(cast(group), Cast::Multicast);
        let (directed, multicast) =
            (RawStack::bind_deaf(&adapter).unwrap(), RawStack::bind_deaf(&adapter).unwrap());
        directed.binding().set_filter(DIRECTED, &[]).unwrap();
        multicast.binding().set_filter(MULTICAST, &[group]).unwrap();
        for destination in [MAC, group, [1, 0, 0x5e, 0, 0, 8], [2, 9, 9, 9, 9, 9], [0xFF; 6]] {
            directed.send(frame(destination, 60), 0);
        }
        wait(SECOND, || directed.completed() == 5);
        sim::sleep(MILLISECOND);
        assert_eq!(directed.take_frames(), [frame(MAC, 60)]);
        assert_eq!(multicast.take_frames(), [frame(group, 60)]);
        assert_eq!(multicast.completed(), 0, "completions go to the sender alone");
        adapter.halt();
    });
    assert_eq!(outcome, Ok(()));
}

#[test]
fn a_cancelled_send_comes_back_as_aborted() {
    let outcome = run(2, |machine| {
        let (_driver, adapter) = load(machine, Misdeed::ResetWithSends, Returns::AtOnce);
        adapter.initialize().unwrap();
        adapter.restart().unwrap();
        let stack = RawStack::bind(&adapter).unwrap();
        // This one keeps what it is given in its queue.
        for (tag, cancel_id) in [(1, 0x100), (2, 0x200), (3, 0x100)] {
            stack.send_lists(vec![SendList { frames: vec![frame(MAC, 60)], tag, cancel_id }]);
        }
        assert_eq!(adapter.outstanding_with(0x100), 2);
        adapter.cancel_sends(0x100);
        assert_eq!(adapter.outstanding_with(0x100), 0);
        let mut aborted: Vec<_> = stack.seen().completions.iter().map(|c| (c.tag, c.status)).collect();
        aborted.sort_unstable();
        assert_eq!(aborted, [(1, NDIS_STATUS_SEND_ABORTED), (3, NDIS_STATUS_SEND_ABORTED)]);
        adapter.pause();
        adapter.halt();
    });
    assert_eq!(outcome, Ok(()));
}

#[test]
fn a_direct_request_does_not_wait_for_its_turn() {
    let outcome = run(1, |machine| {
        let (_driver, adapter) = load(machine, Misdeed::OidNever, Returns::AtOnce);
        adapter.initialize().unwrap();
        let stuck =
            OidRequest { oid: OID_GEN_VENDOR_DESCRIPTION, kind: OidKind::Query, input: vec![], room: 64 };
        adapter.request_async(stuck, |_| {});
        wait(MILLISECOND, || adapter.state().oid_pending);
        let direct = OidRequest { oid: OID_GEN_VENDOR_ID, kind: OidKind::Query, input: vec![], room: 4 };
        let reply = adapter.direct_request(&direct);
        assert_eq!((reply.status, reply.output), (NDIS_STATUS_SUCCESS, VENDOR.to_ne_bytes().to_vec()));
        assert!(adapter.state().oid_pending);
    });
    assert_eq!(outcome, Ok(()));
}

#[test]
fn a_miniport_that_asks_for_a_reset_gets_one() {
    let outcome = run(1, |machine| {
        let (_driver, adapter) = load(machine, Misdeed::None, Returns::AtOnce);
        adapter.initialize().unwrap();
        adapter.restart().unwrap();
        let stack = RawStack::bind(&adapter).unwrap();
        adapter.set(OID_GEN_RESET_COUNTS, &[]).unwrap();
        wait(SECOND, || adapter.counters().resets == 1 && !adapter.state().resetting);
        assert_eq!(adapter.counters().resets, 1);
        wait(SECOND, || stack.seen().statuses.len() == 2);
        let told: Vec<_> = stack.seen().statuses.iter().map(|(status, _)| *status).collect();
        assert_eq!(told, [NDIS_STATUS_RESET_START, NDIS_STATUS_RESET_END]);
        adapter.halt();
    });
    assert_eq!(outcome, Ok(()));
}

#[test]
fn no_handler_is_called_after_shutdown() {
    let outcome = run(1, |machine| {
        let (_driver, adapter) = load(machine, Misdeed::None, Returns::AtOnce);
        adapter.initialize().unwrap();
        adapter.restart().unwrap();
        let stack = RawStack::bind(&adapter).unwrap();
        adapter.shutdown();
        assert_eq!(adapter.state().phase, Phase::Shutdown);
        stack.send(frame(MAC, 60), 1);
        assert_eq!(stack.take_completions()[0].status, NDIS_STATUS_PAUSED);
        assert_eq!(adapter.query_u32(OID_GEN_VENDOR_ID), Err(NDIS_STATUS_PAUSED));
        let calls = machine.driver_calls();
        adapter.pause();
        adapter.halt();
        sim::sleep(10 * SECOND);
        assert_eq!(machine.driver_calls(), calls);
    });
    assert_eq!(outcome, Ok(()));
}
