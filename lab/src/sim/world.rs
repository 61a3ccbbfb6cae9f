//! The simulation itself: its shared state and the handle to it.

use std::any::Any;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar};
use std::thread::JoinHandle;
use std::time::Instant;

use super::cpu::{Cpu, CpuHandle, Run, Thread, ThreadHandle};
use super::current;
use super::events::{EventId, EventQueue};
use super::fiber::StackPool;
use super::rng::SimRng;
use super::run::RunSet;
use super::sync::Lock;
use super::threaded;
use super::trace::Trace;
use super::{Mode, Nanos, Outcome, SimConfig, TraceEvent, Violation};

/// A simulation. Cheap to clone; all clones are the same simulation.
///
/// Threads and events hold what they were given, often a `Sim` among it, so the last handle going away does not
/// end a simulation: [`Sim::shutdown`] does, or an [`OwnedSim`] when dropped.
#[derive(Clone)]
pub struct Sim(pub(super) Arc<World>);

/// A simulation that ends when this is dropped.
pub struct OwnedSim(Sim);

pub(super) struct World {
    pub config: SimConfig,
    /// Virtual time (deterministic mode).
    pub clock: AtomicU64,
    /// Picoseconds that `clock` does not show yet.
    pub clock_rest: AtomicU64,
    pub started: Instant,
    pub events: Lock<EventQueue>,
    /// Threaded mode: told when an earlier event was added.
    pub events_changed: Condvar,
    pub cpus: Lock<Vec<CpuHandle>>,
    pub threads: Lock<BTreeMap<u64, Arc<Thread>>>,
    next_thread: AtomicU64,
    pub runset: Lock<RunSet>,
    spinners: Lock<BTreeMap<usize, Vec<u32>>>,
    rng: Lock<SimRng>,
    trace: Lock<Trace>,
    pub failure: Lock<Option<Outcome>>,
    pub failed: AtomicBool,
    /// Steps since something last came of them.
    pub idle_steps: AtomicU64,
    pub stacks: StackPool,
    /// Threaded mode: CPUs that run something now.
    pub busy: AtomicUsize,
    pub stopping: AtomicBool,
    pub running: AtomicBool,
    pub os_threads: Lock<Vec<JoinHandle<()>>>,
    kept: Lock<Vec<Arc<dyn Any + Send + Sync>>>,
}

impl Sim {
    /// A new simulation with no CPU and nothing to do.
    pub fn new(config: SimConfig) -> Self {
        let world = World {
            clock: AtomicU64::new(0),
            clock_rest: AtomicU64::new(0),
            started: Instant::now(),
            events: Lock::default(),
            events_changed: Condvar::new(),
            cpus: Lock::default(),
            threads: Lock::default(),
            next_thread: AtomicU64::new(1),
            runset: Lock::default(),
            spinners: Lock::default(),
            rng: Lock::new(SimRng::new(config.seed)),
            trace: Lock::new(Trace::new(config.trace_capacity)),
            failure: Lock::new(None),
            failed: AtomicBool::new(false),
            idle_steps: AtomicU64::new(0),
            stacks: StackPool::new(config.stack_size),
            busy: AtomicUsize::new(0),
            stopping: AtomicBool::new(false),
            running: AtomicBool::new(false),
            os_threads: Lock::default(),
            kept: Lock::default(),
            config,
        };
        Self(Arc::new(world))
    }

    /// A new simulation that ends with the returned value.
    pub fn owned(config: SimConfig) -> OwnedSim {
        OwnedSim(Self::new(config))
    }

    pub(super) fn world(&self) -> &World {
        &self.0
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.0.config.seed
    }

    /// The mode.
    pub fn mode(&self) -> Mode {
        self.0.config.mode
    }

    /// Time since the start.
    pub fn now(&self) -> Nanos {
        match self.0.config.mode {
            Mode::Deterministic => self.0.clock.load(Ordering::Relaxed),
            Mode::Threaded => self.0.started.elapsed().as_nanos() as Nanos,
        }
    }

    /// Schedules `action` at the absolute time `when` (at once if that has passed), in hardware context: it may
    /// change models, queue DPCs and unpark threads, and never calls a driver. Same time: in order of scheduling.
    pub fn at(&self, when: Nanos, name: &'static str, action: impl FnOnce(&Sim) + Send + 'static) -> EventId {
        let when = when.max(self.now());
        let id = self.0.events.lock().push(when, name, Box::new(action));
        self.0.events_changed.notify_all();
        id
    }

    /// Schedules `action` after `delay`, as [`Sim::at`].
    pub fn after(
        &self,
        delay: Nanos,
        name: &'static str,
        action: impl FnOnce(&Sim) + Send + 'static,
    ) -> EventId {
        self.at(self.now().saturating_add(delay), name, action)
    }

    /// Cancels an event; false if it has fired or is firing.
    pub fn cancel(&self, id: EventId) -> bool {
        let action = self.0.events.lock().remove(id);
        action.is_some()
    }

    /// Draws from the one generator.
    pub fn rng<R>(&self, draw: impl FnOnce(&mut SimRng) -> R) -> R {
        draw(&mut self.0.rng.lock())
    }

    /// Adds to the trace.
    pub fn trace(&self, event: TraceEvent) {
        let now = self.now();
        self.0.trace.lock().push(now, event);
    }

    /// Hash over the whole trace, scheduling decisions included.
    pub fn trace_hash(&self) -> u64 {
        self.0.trace.lock().hash()
    }

    /// Records in the trace so far, scheduling decisions included.
    pub fn trace_count(&self) -> u64 {
        self.0.trace.lock().count()
    }

    /// The last records kept, a line each.
    pub fn trace_lines(&self) -> Vec<String> {
        self.0.trace.lock().records().map(ToString::to_string).collect()
    }

    /// Adds to the trace's hash alone: for what is too frequent to keep.
    pub fn note(&self, kind: &'static str, subject: u64, value: u64) {
        self.0.trace_mix(kind, subject, value);
    }

    /// Keeps `value` alive until the simulation ends; what CPUs, threads and events only weakly refer to.
    pub fn keep(&self, value: Arc<dyn Any + Send + Sync>) {
        self.0.kept.lock().push(value);
    }

    /// Adds a CPU.
    pub fn add_cpu(&self, name: impl Into<String>) -> CpuHandle {
        let cpu = {
            let mut cpus = self.0.cpus.lock();
            let cpu = CpuHandle(Arc::new(Cpu::new(cpus.len() as u32, name.into())));
            cpus.push(cpu.clone());
            cpu
        };
        if self.0.running.load(Ordering::Acquire) {
            threaded::start_cpu(self, &cpu);
        }
        cpu
    }

    /// Starts a thread that may run on any of `cpus` (threaded mode: always on the first).
    pub fn spawn(
        &self,
        cpus: &[CpuHandle],
        name: impl Into<String>,
        body: impl FnOnce() + Send + 'static,
    ) -> ThreadHandle {
        assert!(!cpus.is_empty(), "a thread needs a CPU");
        let id = self.0.next_thread.fetch_add(1, Ordering::Relaxed);
        let cpus = cpus.iter().map(|cpu| Arc::clone(&cpu.0)).collect();
        let thread = Arc::new(Thread::new(id, name.into(), cpus, Box::new(body)));
        self.0.threads.lock().insert(id, Arc::clone(&thread));
        self.0.progress();
        thread.make_ready(self);
        ThreadHandle(thread)
    }

    /// Queues a DPC on `cpu`: it runs there at [`super::LEVEL_MASKED`], before any thread, as soon as the level allows.
    pub fn queue_dpc(&self, cpu: &CpuHandle, name: &'static str, body: impl FnOnce() + Send + 'static) {
        cpu.0.push_dpc(name, Box::new(body));
        self.0.runnable(&cpu.0);
    }

    /// Wakes a parked thread, or lets its next park return at once.
    pub fn unpark(&self, thread: &ThreadHandle) {
        thread.0.unpark(self);
    }

    /// Ends the run with `outcome`; the first failure stands.
    pub fn fail(&self, outcome: Outcome) {
        let mut failure = self.0.failure.lock();
        if failure.is_none() {
            *failure = Some(outcome);
            self.0.failed.store(true, Ordering::Release);
        }
    }

    /// The failure that ended the run, if one did.
    pub fn failure(&self) -> Option<Outcome> {
        self.0.failure.lock().clone()
    }

    /// Records a broken rule; the caller then calls [`super::suspend_for_ever`].
    pub fn record_violation(&self, rule: &'static str, call: &str, detail: impl Into<String>) {
        let violation = Violation {
            rule,
            call: call.to_owned(),
            detail: detail.into(),
            at: self.now(),
            context: current::describe_current(),
            seed: self.seed(),
        };
        self.fail(Outcome::Violation(violation));
    }

    /// What waits, a line each: for the report of a deadlock or of a deadline.
    pub fn describe_waiting(&self) -> Vec<String> {
        let threads: Vec<_> = self.0.threads.lock().values().cloned().collect();
        let mut lines: Vec<String> = threads
            .iter()
            .filter_map(|thread| match thread.state.lock().run {
                Run::Parked { what, idle: false, since } => {
                    Some(format!("thread {} waits for {what} since {since} ns", thread.name))
                }
                _ => None,
            })
            .collect();
        let cpus = self.0.cpus.lock().clone();
        lines.extend(cpus.iter().filter_map(|cpu| cpu.0.describe()));
        lines
    }

    /// A report of how a run ended: the outcome, the seed that replays it, and the last of the trace.
    pub fn report(&self, outcome: &Outcome) -> String {
        let mut report = format!("{outcome}\nseed {}, {:?}, at {} ns", self.seed(), self.mode(), self.now());
        let lines = self.trace_lines();
        for line in &lines[lines.len().saturating_sub(40)..] {
            report.push('\n');
            report.push_str(line);
        }
        report
    }

    /// Ends the simulation: drops pending events and what never ran, abandons the coroutines that did, and joins
    /// the OS threads of threaded mode. Must not be called from inside it.
    pub fn shutdown(&self) {
        assert!(current::current().is_none(), "a simulation is not shut down from inside");
        self.0.stopping.store(true, Ordering::Release);
        self.0.events_changed.notify_all();
        let cpus = self.0.cpus.lock().clone();
        for cpu in &cpus {
            cpu.0.work.notify_all();
        }
        let os_threads = std::mem::take(&mut *self.0.os_threads.lock());
        for thread in os_threads {
            // A panic of such a thread is already the outcome of the run.
            let _ = thread.join();
        }
        for cpu in &cpus {
            cpu.0.clear();
        }
        let threads = std::mem::take(&mut *self.0.threads.lock());
        for thread in threads.values() {
            thread.clear();
        }
        let events = self.0.events.lock().take_all();
        drop(events);
        self.0.cpus.lock().clear();
        let kept = std::mem::take(&mut *self.0.kept.lock());
        drop(kept);
    }
}

impl World {
    /// Notes that `cpu` may have something to run.
    pub fn runnable(&self, cpu: &Cpu) {
        if self.config.mode == Mode::Deterministic {
            self.runset.lock().insert(cpu.id);
        }
    }

    /// Something came of the steps so far.
    pub fn progress(&self) {
        self.idle_steps.store(0, Ordering::Relaxed);
    }

    pub fn trace_mix(&self, kind: &'static str, subject: u64, value: u64) {
        // Real time differs from run to run anyway, so threaded mode need not pay for a shared hash.
        if self.config.mode == Mode::Deterministic {
            let now = self.clock.load(Ordering::Relaxed);
            self.trace.lock().mix(now, kind, subject, value);
        }
    }

    pub fn preemption_draw(&self) -> bool {
        self.rng.lock().chance(self.config.preemption)
    }

    pub fn forget_thread(&self, id: u64) {
        self.threads.lock().remove(&id);
    }

    pub fn add_spinner(&self, cpu: u32, key: usize) {
        self.spinners.lock().entry(key).or_default().push(cpu);
    }

    pub fn wake_spinners(&self, key: usize) {
        let Some(waiting) = self.spinners.lock().remove(&key) else { return };
        for id in waiting {
            let cpu = self.cpus.lock().get(id as usize).cloned();
            if let Some(cpu) = cpu
                && cpu.0.stop_spinning(key)
            {
                self.progress();
                self.runset.lock().insert(id);
            }
        }
    }

    pub fn any_spinner(&self) -> bool {
        !self.spinners.lock().is_empty()
    }
}

impl Deref for OwnedSim {
    type Target = Sim;

    fn deref(&self) -> &Sim {
        &self.0
    }
}

impl Drop for OwnedSim {
    fn drop(&mut self) {
        self.0.shutdown();
    }
}
