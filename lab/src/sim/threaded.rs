//! Threaded mode: an OS thread for each CPU and one for the events.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use super::cpu::{self, CpuHandle};
use super::{Nanos, Outcome, Sim};

/// How long a thread sleeps before it looks again, should it have missed a notice.
const POLL: Duration = Duration::from_millis(1);

/// Runs until `done`, `deadline` or the end; the OS threads go on running in between calls.
pub(super) fn run(sim: &Sim, deadline: Nanos, done: &mut dyn FnMut(&Sim) -> bool) -> Outcome {
    start(sim);
    let mut quiet = 0;
    loop {
        if sim.world().failed.load(Ordering::Acquire)
            && let Some(failure) = sim.failure()
        {
            return failure;
        }
        if done(sim) {
            return Outcome::Done;
        }
        if sim.now() >= deadline {
            return Outcome::Deadline;
        }
        // Work moves from queue to queue, so quiet is believed only when seen several times in a row.
        quiet = if is_quiet(sim) { quiet + 1 } else { 0 };
        if quiet > 5 {
            return sim.quiescent();
        }
        thread::sleep(if quiet > 0 { POLL } else { POLL / 4 });
    }
}

fn is_quiet(sim: &Sim) -> bool {
    if sim.world().busy.load(Ordering::Acquire) != 0 || sim.world().events.lock().next_time().is_some() {
        return false;
    }
    let cpus = sim.world().cpus.lock().clone();
    cpus.iter().all(|cpu| !cpu.0.has_work())
}

fn start(sim: &Sim) {
    if sim.world().running.swap(true, Ordering::AcqRel) {
        return;
    }
    let cpus = sim.world().cpus.lock().clone();
    for cpu in &cpus {
        start_cpu(sim, cpu);
    }
    let events = sim.clone();
    spawn(sim, "lab events".into(), move || run_events(&events));
}

pub(super) fn start_cpu(sim: &Sim, cpu: &CpuHandle) {
    if sim.mode() == super::Mode::Deterministic {
        return;
    }
    let (sim_of_thread, cpu) = (sim.clone(), cpu.clone());
    spawn(sim, format!("lab {}", cpu.name()), move || run_cpu(&sim_of_thread, &cpu));
}

fn spawn(sim: &Sim, name: String, body: impl FnOnce() + Send + 'static) {
    let thread = thread::Builder::new().name(name).spawn(body).expect("no OS thread for a simulated CPU");
    sim.world().os_threads.lock().push(thread);
}

fn run_cpu(sim: &Sim, cpu: &CpuHandle) {
    let world = sim.world();
    while !world.stopping.load(Ordering::Acquire) {
        world.busy.fetch_add(1, Ordering::AcqRel);
        while cpu::step(sim, cpu).is_some() && !world.stopping.load(Ordering::Relaxed) {}
        world.busy.fetch_sub(1, Ordering::AcqRel);
        cpu.0.wait_for_work(POLL * 50);
    }
}

fn run_events(sim: &Sim) {
    let world = sim.world();
    while !world.stopping.load(Ordering::Acquire) {
        let now = sim.now();
        let mut events = world.events.lock();
        if let Some(event) = events.pop_due(now) {
            // Under the lock: an event that is neither queued nor busy would look like quiet.
            world.busy.fetch_add(1, Ordering::AcqRel);
            drop(events);
            sim.fire(event);
            world.busy.fetch_sub(1, Ordering::AcqRel);
            continue;
        }
        let wait = events.next_time().map_or(POLL * 50, |when| Duration::from_nanos(when - now));
        // A condition variable wakes some 50 us late; the last stretch is spun out.
        if wait > Duration::from_micros(60) {
            events.wait(&world.events_changed, wait.checked_sub(Duration::from_micros(55)).unwrap_or(wait));
        } else {
            drop(events);
            std::hint::spin_loop();
        }
    }
}
