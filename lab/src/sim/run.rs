//! The loop that runs a simulation until a condition, a deadline or its end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

use super::cpu;
use super::current::{self, Context};
use super::events::Event;
use super::threaded;
use super::{Mode, Nanos, Outcome, Sim};

/// The CPUs that may have something to run: a random one in constant time.
#[derive(Default)]
pub(super) struct RunSet {
    members: Vec<u32>,
    /// For each CPU its place in `members`.
    places: Vec<Option<usize>>,
}

impl RunSet {
    pub fn insert(&mut self, cpu: u32) {
        let index = cpu as usize;
        if self.places.len() <= index {
            self.places.resize(index + 1, None);
        }
        if self.places[index].is_none() {
            self.places[index] = Some(self.members.len());
            self.members.push(cpu);
        }
    }

    pub fn remove(&mut self, cpu: u32) {
        let Some(place) = self.places.get_mut(cpu as usize).and_then(Option::take) else { return };
        self.members.swap_remove(place);
        if let Some(&moved) = self.members.get(place) {
            self.places[moved as usize] = Some(place);
        }
    }

    pub fn len(&self) -> usize {
        self.members.len()
    }

    fn get(&self, place: usize) -> Option<u32> {
        self.members.get(place).copied()
    }
}

impl Sim {
    /// Runs until `done` is true (looked at between steps, so keep it cheap), time reaches `deadline`, nothing is
    /// left to do, or the run fails. After a failure every call returns it again.
    ///
    /// # Panics
    /// If called from inside a simulation.
    pub fn run_until(&self, deadline: Nanos, mut done: impl FnMut(&Sim) -> bool) -> Outcome {
        assert!(current::current().is_none(), "run_until is called from inside a simulation");
        match self.mode() {
            Mode::Deterministic => self.run_deterministic(deadline, &mut done),
            Mode::Threaded => threaded::run(self, deadline, &mut done),
        }
    }

    /// Runs for `duration` unless there is nothing left to do before.
    pub fn run_for(&self, duration: Nanos) -> Outcome {
        self.run_until(self.now().saturating_add(duration), |_| false)
    }

    /// Runs until nothing is left to do or time reaches `deadline`.
    pub fn run_to_idle(&self, deadline: Nanos) -> Outcome {
        self.run_until(deadline, |_| false)
    }

    fn run_deterministic(&self, deadline: Nanos, done: &mut dyn FnMut(&Sim) -> bool) -> Outcome {
        let world = self.world();
        loop {
            if world.failed.load(Ordering::Relaxed)
                && let Some(failure) = self.failure()
            {
                return failure;
            }
            if done(self) {
                return Outcome::Done;
            }
            let now = self.now();
            let due = world.events.lock().pop_due(now);
            if let Some(event) = due {
                self.fire(event);
                continue;
            }
            if now >= deadline {
                return Outcome::Deadline;
            }
            if self.step_one() {
                if world.idle_steps.fetch_add(1, Ordering::Relaxed) > world.config.livelock_steps {
                    let waiting = self.describe_waiting().join("; ");
                    self.fail(Outcome::Livelock(format!(
                        "no progress in {} steps; {waiting}",
                        world.config.livelock_steps
                    )));
                }
                continue;
            }
            if world.any_spinner() {
                // A lock's holder never gives up its CPU, so if no CPU can run, no holder ever will.
                self.fail(Outcome::Deadlock(self.describe_waiting().join("; ")));
                continue;
            }
            let next = world.events.lock().next_time();
            match next {
                Some(when) if when <= deadline => world.clock.store(when.max(now), Ordering::Relaxed),
                Some(_) => world.clock.store(deadline, Ordering::Relaxed),
                None => return self.quiescent(),
            }
        }
    }

    /// Runs one CPU up to its next yield point; false if none has anything to run.
    fn step_one(&self) -> bool {
        let world = self.world();
        loop {
            let count = world.runset.lock().len();
            let place = match count {
                0 => return false,
                1 => 0,
                _ => self.rng(|rng| rng.below(count as u64)) as usize,
            };
            let Some(id) = world.runset.lock().get(place) else { return false };
            let cpu = world.cpus.lock().get(id as usize).cloned();
            let Some(cpu) = cpu else { return false };
            if let Some(points) = cpu::step(self, &cpu) {
                self.charge(points, count);
                return true;
            }
            world.runset.lock().remove(id);
        }
    }

    /// Advances the clock by the CPU time of a step, which ran beside `parallel - 1` other CPUs.
    fn charge(&self, points: u32, parallel: usize) {
        let world = self.world();
        let picoseconds = world.config.point_cost * 1000 * u64::from(points) / parallel as u64
            + world.clock_rest.load(Ordering::Relaxed);
        world.clock_rest.store(picoseconds % 1000, Ordering::Relaxed);
        world.clock.fetch_add(picoseconds / 1000, Ordering::Relaxed);
    }

    /// Runs an event in hardware context.
    pub(super) fn fire(&self, event: Event) {
        let Event { id, name, action } = event;
        self.world().trace_mix(name, id.sequence(), 0);
        self.world().progress();
        let context = Context::new(self, None, None, name);
        current::with_context(&context, || {
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| action(self))) {
                current::record_panic(&*payload);
            }
        });
    }

    /// Nothing runs and nothing will: idle if nobody minds.
    pub(super) fn quiescent(&self) -> Outcome {
        let waiting = self.describe_waiting();
        if waiting.is_empty() {
            return Outcome::Idle;
        }
        let outcome = Outcome::Deadlock(waiting.join("; "));
        self.fail(outcome.clone());
        outcome
    }
}
