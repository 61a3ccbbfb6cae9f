//! The scheduler's own rules.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::*;

type Log = Arc<Mutex<Vec<&'static str>>>;

fn pair(sim: &Sim) -> Vec<CpuHandle> {
    vec![sim.add_cpu("a"), sim.add_cpu("b")]
}

/// Two threads that each note two steps with a preemption point between.
fn interleaving(seed: u64) -> (Vec<&'static str>, u64) {
    let sim = Sim::owned(SimConfig { preemption: 1 << 15, ..SimConfig::seeded(seed) });
    let cpus = pair(&sim);
    let log = Log::default();
    for names in [["a1", "a2", "a3"], ["b1", "b2", "b3"]] {
        let log = Arc::clone(&log);
        sim.spawn(&cpus, names[0], move || {
            for name in names {
                log.lock().unwrap().push(name);
                preempt();
            }
        });
    }
    assert_eq!(sim.run_to_idle(SECOND), Outcome::Idle);
    let order = log.lock().unwrap().clone();
    (order, sim.trace_hash())
}

#[test]
fn equal_seeds_give_equal_traces_and_seeds_differ() {
    let mut orders = BTreeSet::new();
    let mut hashes = BTreeSet::new();
    for seed in 0..64 {
        let first = interleaving(seed);
        let other_thread = std::thread::spawn(move || interleaving(seed)).join().unwrap();
        assert_eq!(first, other_thread);
        orders.insert(first.0);
        hashes.insert(first.1);
    }
    // 20 interleavings exist; 64 seeds should find many of them.
    assert!(orders.len() > 6, "only {} interleavings", orders.len());
    assert!(hashes.len() > 60, "only {} traces", hashes.len());
}

#[test]
fn events_fire_in_time_order_and_ties_in_order_of_scheduling() {
    let sim = Sim::owned(SimConfig::default());
    let log = Log::default();
    for (when, name) in [(30, "c"), (10, "a"), (30, "d"), (20, "b")] {
        let log = Arc::clone(&log);
        sim.at(when, name, move |sim| {
            assert_eq!(sim.now(), when);
            log.lock().unwrap().push(name);
        });
    }
    let cancelled = sim.at(15, "x", |_| panic!("was cancelled"));
    assert!(sim.cancel(cancelled));
    assert!(!sim.cancel(cancelled));
    assert_eq!(sim.run_to_idle(SECOND), Outcome::Idle);
    assert_eq!(*log.lock().unwrap(), ["a", "b", "c", "d"]);
    assert_eq!(sim.now(), 30);
}

#[test]
fn a_dpc_interrupts_a_thread_below_the_masked_level_only() {
    let sim = Sim::owned(SimConfig { preemption: 0, ..SimConfig::default() });
    let cpu = sim.add_cpu("cpu");
    let log = Log::default();
    let (thread_log, thread_cpu) = (Arc::clone(&log), cpu.clone());
    sim.spawn(&[cpu], "t", move || {
        let queue = |name| {
            let log = Arc::clone(&thread_log);
            current().unwrap().queue_dpc(&thread_cpu, name, move || {
                assert_eq!(level(), LEVEL_MASKED);
                assert!(current_thread().is_none());
                log.lock().unwrap().push(name);
            });
        };
        set_level(LEVEL_MASKED);
        queue("masked");
        preempt();
        thread_log.lock().unwrap().push("before");
        set_level(0);
        thread_log.lock().unwrap().push("after");
        queue("open");
        preempt();
        thread_log.lock().unwrap().push("last");
        assert_eq!(level(), 0);
    });
    assert_eq!(sim.run_to_idle(SECOND), Outcome::Idle);
    assert_eq!(*log.lock().unwrap(), ["before", "masked", "after", "open", "last"]);
}

#[test]
fn a_thread_nobody_wakes_is_a_deadlock_and_an_idle_one_is_not() {
    for (idle, deadlock) in [(true, false), (false, true)] {
        let sim = Sim::owned(SimConfig::default());
        let cpus = pair(&sim);
        sim.spawn(&cpus, "waiter", move || park("a word", idle));
        let outcome = sim.run_to_idle(SECOND);
        assert_eq!(
            matches!(&outcome, Outcome::Deadlock(what) if what.contains("waiter")),
            deadlock,
            "{outcome}"
        );
        assert_eq!(outcome == Outcome::Idle, !deadlock);
    }
}

#[test]
fn spinning_on_a_lock_nobody_releases_is_a_deadlock_even_with_events_pending() {
    let sim = Sim::owned(SimConfig::default());
    let cpus = pair(&sim);
    sim.at(SECOND, "later", |_| ());
    sim.spawn(&cpus, "spinner", || spin_wait(7));
    assert!(matches!(sim.run_to_idle(2 * SECOND), Outcome::Deadlock(_)));
}

#[test]
fn a_spinner_goes_on_when_woken() {
    let sim = Sim::owned(SimConfig::default());
    let cpus = pair(&sim);
    let done = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&done);
    sim.spawn(&cpus[..1], "spinner", move || {
        spin_wait(7);
        seen.store(1, Ordering::Relaxed);
    });
    sim.spawn(&cpus[1..], "releaser", || {
        while current().unwrap().now() < MILLISECOND {
            preempt();
        }
        spin_wake(7);
    });
    assert_eq!(sim.run_to_idle(SECOND), Outcome::Idle);
    assert_eq!(done.load(Ordering::Relaxed), 1);
}

#[test]
fn burning_a_cpu_for_nothing_is_a_livelock() {
    let sim = Sim::owned(SimConfig { livelock_steps: 1000, ..SimConfig::default() });
    let cpus = pair(&sim);
    sim.spawn(&cpus, "burner", || {
        loop {
            preempt();
        }
    });
    assert!(matches!(sim.run_to_idle(SECOND), Outcome::Livelock(_)));
}

#[test]
fn polling_passes_time_and_ends_at_the_deadline() {
    let sim = Sim::owned(SimConfig::default());
    let cpus = pair(&sim);
    sim.spawn(&cpus, "poller", || {
        while current().unwrap().now() < MILLISECOND {
            preempt();
        }
    });
    assert_eq!(sim.run_until(MILLISECOND / 2, |_| false), Outcome::Deadline);
    assert_eq!(sim.run_to_idle(SECOND), Outcome::Idle);
    assert!(sim.now() >= MILLISECOND && sim.now() < 2 * MILLISECOND);
}

#[test]
fn a_panic_is_the_outcome_from_a_thread_and_from_an_event() {
    let sim = Sim::owned(SimConfig::default());
    let cpus = pair(&sim);
    sim.spawn(&cpus, "t", || contain(|| panic!("lab bug 1")));
    assert!(matches!(sim.run_to_idle(SECOND), Outcome::Panic(what) if what.contains("lab bug 1")));

    let sim = Sim::owned(SimConfig::default());
    sim.at(1, "e", |_| panic!("lab bug 2"));
    assert!(matches!(sim.run_to_idle(SECOND), Outcome::Panic(what) if what.contains("lab bug 2")));
}

#[test]
fn a_lab_lock_held_over_a_yield_point_is_a_panic() {
    let sim = Sim::owned(SimConfig::default());
    let cpus = pair(&sim);
    sim.spawn(&cpus, "t", || {
        let lock = Lock::new(());
        let _held = lock.lock();
        park("x", false);
    });
    assert!(matches!(sim.run_to_idle(SECOND), Outcome::Panic(what) if what.contains("held over")));
}

#[test]
fn a_violation_ends_the_run_and_stays() {
    let sim = Sim::owned(SimConfig::seeded(9));
    let cpus = pair(&sim);
    let dropped = Arc::new(());
    let witness = Arc::clone(&dropped);
    sim.spawn(&cpus, "bad", move || {
        let on_the_abandoned_stack = witness;
        current().unwrap().record_violation("SomeRule", "SomeCall", "because");
        if Arc::strong_count(&on_the_abandoned_stack) > 0 {
            suspend_for_ever()
        }
    });
    for _ in 0..2 {
        let Outcome::Violation(violation) = sim.run_to_idle(SECOND) else { panic!("no violation") };
        assert_eq!((violation.rule, violation.seed), ("SomeRule", 9));
        assert!(violation.context.contains("thread bad"));
    }
    sim.shutdown();
    // Abandoned, not unwound: the frame's reference is leaked.
    assert_eq!(Arc::strong_count(&dropped), 2);
}

#[test]
fn shutdown_drops_what_never_ran() {
    let sim = Sim::new(SimConfig::default());
    let cpus = pair(&sim);
    let token = Arc::new(());
    let held = [(); 3].map(|()| Arc::clone(&token));
    let [a, b, c] = held;
    sim.spawn(&cpus, "t", move || drop(a));
    sim.queue_dpc(&cpus[0], "d", move || drop(b));
    sim.at(5, "e", move |_| drop(c));
    drop(cpus);
    sim.shutdown();
    assert_eq!(Arc::strong_count(&token), 1);
}

#[test]
fn many_threads_share_few_stacks() {
    let sim = Sim::owned(SimConfig::default());
    let cpus = pair(&sim);
    let sum = Arc::new(AtomicU64::new(0));
    for i in 0..10_000u64 {
        let sum = Arc::clone(&sum);
        sim.queue_dpc(&cpus[(i % 2) as usize], "d", move || {
            sum.fetch_add(i, Ordering::Relaxed);
        });
    }
    assert_eq!(sim.run_to_idle(SECOND), Outcome::Idle);
    assert_eq!(sum.load(Ordering::Relaxed), 49_995_000);
}

#[test]
fn threaded_mode_runs_threads_dpcs_and_events_on_real_cores() {
    let sim = Sim::owned(SimConfig::threaded(1));
    let cpus = pair(&sim);
    let count = Arc::new(AtomicU32::new(0));
    let threads: Vec<_> = (0..4)
        .map(|i| {
            let count = Arc::clone(&count);
            sim.spawn(&cpus[i % 2..=i % 2], format!("t{i}"), move || {
                for _ in 0..10 {
                    sleep(100 * MICROSECOND);
                    count.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for _ in 0..100 {
        let count = Arc::clone(&count);
        sim.queue_dpc(&cpus[1], "d", move || {
            count.fetch_add(1, Ordering::Relaxed);
        });
    }
    let outcome = sim.run_until(20 * SECOND, |_| threads.iter().all(ThreadHandle::ended));
    assert_eq!(outcome, Outcome::Done);
    assert_eq!(sim.run_to_idle(30 * SECOND), Outcome::Idle);
    assert_eq!(count.load(Ordering::Relaxed), 140);
}

#[test]
fn a_thread_that_parks_raised_leaves_its_cpu_to_others_and_goes_on_raised() {
    let sim = Sim::owned(SimConfig::default());
    let cpu = sim.add_cpu("cpu");
    let log = Log::default();
    let raised = Arc::clone(&log);
    sim.spawn(std::slice::from_ref(&cpu), "raised", move || {
        set_level(1);
        sleep(MILLISECOND);
        assert_eq!(level(), 1);
        raised.lock().unwrap().push("raised");
        set_level(0);
    });
    let other = Arc::clone(&log);
    sim.spawn(&[cpu], "other", move || {
        assert_eq!(level(), 0);
        other.lock().unwrap().push("other");
    });
    assert_eq!(sim.run_to_idle(SECOND), Outcome::Idle);
    assert_eq!(*log.lock().unwrap(), ["other", "raised"]);
}

#[test]
fn a_wait_queue_wakes_who_waits_for_what_came_true() {
    for mode in [Mode::Deterministic, Mode::Threaded] {
        let sim = Sim::owned(SimConfig { mode, ..SimConfig::default() });
        let cpus = pair(&sim);
        let shared = Arc::new((WaitQueue::default(), AtomicU32::new(0)));
        let waiting = Arc::clone(&shared);
        let waiter = sim.spawn(&cpus[..1], "waiter", move || {
            let (queue, value) = &*waiting;
            let seen = queue.wait("a value of 3", false, || {
                let value = value.load(Ordering::Relaxed);
                (value >= 3).then_some(value)
            });
            assert_eq!(seen, 3);
        });
        sim.spawn(&cpus[1..], "setter", move || {
            for value in 1..=3 {
                sleep(100 * MICROSECOND);
                shared.1.store(value, Ordering::Relaxed);
                shared.0.notify_all(&current().unwrap());
            }
        });
        assert_eq!(sim.run_until(20 * SECOND, |_| waiter.ended()), Outcome::Done);
    }
}

#[test]
fn a_threaded_run_ends_though_a_cpu_spins_on_the_lock_of_one_that_broke_a_rule() {
    let sim = Sim::owned(SimConfig::threaded(1));
    let cpus = pair(&sim);
    sim.spawn(&cpus[..1], "spinner", || {
        loop {
            spin_wait(7);
        }
    });
    sim.spawn(&cpus[1..], "bad", || {
        sleep(MILLISECOND);
        current().unwrap().record_violation("SomeRule", "SomeCall", "because");
        suspend_for_ever()
    });
    assert_eq!(sim.run_to_idle(20 * SECOND).rule(), Some("SomeRule"));
}

#[test]
fn threaded_mode_finds_a_deadlock() {
    let sim = Sim::owned(SimConfig::threaded(1));
    let cpus = pair(&sim);
    sim.spawn(&cpus, "waiter", || park("a word", false));
    assert!(matches!(sim.run_to_idle(20 * SECOND), Outcome::Deadlock(_)));
}

#[test]
fn threaded_mode_is_not_idle_while_an_event_takes_its_time() {
    let sim = Sim::owned(SimConfig::threaded(1));
    let ended = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&ended);
    sim.after(MICROSECOND, "slow", move |_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        counted.store(1, Ordering::Release);
    });
    assert_eq!(sim.run_to_idle(20 * SECOND), Outcome::Idle);
    assert_eq!(ended.load(Ordering::Acquire), 1);
}
