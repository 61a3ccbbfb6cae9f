//! Fault rules on the wire.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::bench::{Bench, mgid};
use crate::fabric::drops::DropReason;
use crate::fabric::fault::{self, Effect, on_receive, on_send};
use crate::fabric::ids::PKey;
use crate::fabric::wire::mad::{Attribute, Status};
use crate::fabric::wire::sa::SaMad;

/// A rule is there as long as its guard, and counts what it drops.
#[test]
fn drop_while_guarded() {
    let mut bench = Bench::new(2);
    let guard = bench.fabric.add_fault(on_send, Effect::Drop);
    assert!(bench.send(0, bench.lid(1)).is_empty());
    assert_eq!(bench.fabric.drops().get(DropReason::Fault), 1);
    drop(guard);
    assert_eq!(bench.send(0, bench.lid(1)), [bench.host(1)]);
}

/// A rule for receivers is asked once for each of them, so it can lose one copy of a multicast packet.
#[test]
fn one_receiver_of_many() {
    let mut bench = Bench::new(4);
    let group = bench.create(0, mgid(1), 1).unwrap();
    for host in 1..4 {
        bench.create(host, mgid(1), 1).unwrap();
    }
    let victim = bench.host(2);
    let _guard = bench.fabric.add_fault(move |transit| transit.to == Some(victim), Effect::Drop);
    assert_eq!(bench.send(0, group.mlid), [bench.host(1), bench.host(3)]);
}

/// Delays reorder: a delayed packet is overtaken by the next.
#[test]
fn delay_reorders() {
    let mut bench = Bench::new(2);
    let _guard = bench.fabric.add_fault(fault::nth(1, on_send), Effect::Delay(1_000_000));
    let (host, lid, now) = (bench.host(0), bench.lid(1), bench.now);
    let first = bench.datagram(0, lid, PKey::DEFAULT, 8);
    let first = bench.fabric.transmit(now, host, first)[0].at;
    let second = bench.datagram(0, lid, PKey::DEFAULT, 8);
    let second = bench.fabric.transmit(now, host, second)[0].at;
    assert!(first > second + 900_000, "{first} {second}");
}

/// Duplicates arrive twice, the copy later.
#[test]
fn duplicate() {
    let mut bench = Bench::new(2);
    for matcher in [on_send, on_receive] {
        let _guard = bench.fabric.add_fault(matcher, Effect::Duplicate(500));
        let packet = bench.datagram(0, bench.lid(1), PKey::DEFAULT, 8);
        let deliveries = bench.fabric.transmit(bench.now, bench.host(0), packet);
        assert_eq!(deliveries.len(), 2);
        assert!(deliveries[1].at >= deliveries[0].at + 500);
    }
}

/// A flipped bit and a cut are seen by the next port; a change of the payload with right CRCs is not.
#[test]
fn corruption() {
    let mut bench = Bench::new(2);
    {
        let _guard = bench.fabric.add_fault(on_send, Effect::FlipBit(400));
        assert!(bench.send(0, bench.lid(1)).is_empty());
        assert_eq!(bench.fabric.drops().get(DropReason::BadVcrc), 1);
    }
    for (matcher, count) in [(on_send as fn(&fault::Transit<'_>) -> bool, 1), (on_receive, 2)] {
        let _guard = bench.fabric.add_fault(matcher, Effect::Truncate(40));
        assert!(bench.send(0, bench.lid(1)).is_empty());
        assert_eq!(bench.fabric.drops().get(DropReason::Malformed), count);
    }
    let _guard = bench.fabric.add_fault(on_receive, Effect::CorruptPayload(8));
    let packet = bench.datagram(0, bench.lid(1), PKey::DEFAULT, 8);
    let delivery = bench.fabric.transmit(bench.now, bench.host(0), packet).remove(0);
    assert_eq!(delivery.packet.parse().unwrap().1, [0, 0x81, 2, 3, 4, 5, 6, 7]);
    assert!(delivery.packet.icrc_ok());
}

/// Rules are stacked: each works on what those before it left.
#[test]
fn stacked_rules() {
    let mut bench = Bench::new(2);
    let _duplicate = bench.fabric.add_fault(on_receive, Effect::Duplicate(10));
    let _drop_second = bench.fabric.add_fault(fault::nth(2, on_receive), Effect::Drop);
    assert_eq!(bench.send(0, bench.lid(1)).len(), 1);
    assert_eq!(bench.send(0, bench.lid(1)).len(), 2);
}

/// Probabilities draw only from what the caller gives, once for each packet sent.
#[test]
fn probability_uses_the_callers_numbers() {
    let mut bench = Bench::new(2);
    let draws = Arc::new(AtomicU64::new(0));
    let count = draws.clone();
    let random = move || if count.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) { 0 } else { u64::MAX };
    let _guard = bench.fabric.add_fault(fault::with_probability(0.5, random), Effect::Drop);
    let reached: Vec<usize> = (0..6).map(|_| bench.send(0, bench.lid(1)).len()).collect();
    assert_eq!(reached, [0, 1, 0, 1, 0, 1]);
    assert_eq!(draws.load(Ordering::Relaxed), 6);
}

/// Probability 0 never matches, 1 always.
#[test]
fn probability_bounds() {
    let mut bench = Bench::new(2);
    {
        let _guard = bench.fabric.add_fault(fault::with_probability(0.0, || 0), Effect::Drop);
        assert_eq!(bench.send(0, bench.lid(1)).len(), 1);
    }
    let _guard = bench.fabric.add_fault(fault::with_probability(1.0, || u64::MAX), Effect::Drop);
    assert_eq!(bench.send(0, bench.lid(1)).len(), 0);
}

/// Answers of the administrator can be lost, be late, or be wrong, and nothing else is touched.
#[test]
fn administrator_answers() {
    let mut bench = Bench::new(2);
    let join = bench.creation(0, mgid(1), 1);
    let mask = crate::fabric::wire::sa::mcmember::mask::CREATE;
    let request = bench.request(
        crate::fabric::wire::mad::Method::SET,
        Attribute::MC_MEMBER_RECORD,
        mask,
        &join.to_bytes(),
    );
    {
        let _lost = bench.fabric.add_fault(fault::sa_response(Attribute::MC_MEMBER_RECORD), Effect::Drop);
        assert!(bench.ask(0, &request).is_empty());
        assert_eq!(bench.send(0, bench.lid(1)).len(), 1);
    }
    {
        let before = bench.now;
        let _late = bench
            .fabric
            .add_fault(fault::sa_response(Attribute::MC_MEMBER_RECORD), Effect::Delay(5_000_000_000));
        assert_eq!(bench.ask(0, &request).len(), 1);
        assert!(bench.now - before >= 5_000_000_000);
    }
    let forged = Effect::Forge(Box::new(|transit| {
        vec![fault::rewrite(transit.packet, |payload| {
            let mut mad = SaMad::parse(payload).unwrap();
            mad.header.status = Status::BUSY;
            payload.copy_from_slice(&mad.to_bytes());
        })]
    }));
    let _wrong = bench.fabric.add_fault(fault::sa_response(Attribute::MC_MEMBER_RECORD), forged);
    assert_eq!(bench.ask(0, &request)[0].header.status, Status::BUSY);
}

/// A forging rule may send whatever it likes, also garbage, and the ports sort it out.
#[test]
fn forged_garbage_is_refused() {
    let mut bench = Bench::new(2);
    let seen = Arc::new(Mutex::new(0u8));
    let count = seen.clone();
    let forge = Effect::Forge(Box::new(move |_| {
        *count.lock().unwrap() += 1;
        vec![crate::fabric::Packet::from_bytes(vec![0xFF; 60]), crate::fabric::Packet::from_bytes(vec![])]
    }));
    let _guard = bench.fabric.add_fault(on_send, forge);
    assert!(bench.send(0, bench.lid(1)).is_empty());
    assert_eq!(*seen.lock().unwrap(), 1);
    assert_eq!(bench.fabric.drops().get(DropReason::Malformed), 2);
}
