//! CPUs, the threads and DPCs on them, and the step that runs one of them to its next yield point.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, OnceLock, Weak};
use std::time::Duration;

use super::current::Context;
use super::fiber::{Body, Fiber, Suspend};
use super::sync::Lock;
use super::{Mode, Nanos, Sim};

/// The level from which a CPU takes no interrupts: no DPC begins and no thread is switched.
pub const LEVEL_MASKED: u8 = 2;

/// A simulated processor.
#[derive(Clone)]
pub struct CpuHandle(pub(super) Arc<Cpu>);

/// A simulated thread.
#[derive(Clone)]
pub struct ThreadHandle(pub(super) Arc<Thread>);

pub(super) struct Cpu {
    pub id: u32,
    pub name: String,
    pub level: AtomicU8,
    /// Set while a DPC waits, for preemption points to look at without a lock.
    pub dpc_waiting: AtomicBool,
    /// Set while a thread waits for this CPU.
    pub thread_waiting: AtomicBool,
    pub state: Lock<CpuState>,
    /// Threaded mode: told when work arrives.
    pub work: Condvar,
    owner: OnceLock<Weak<dyn Any + Send + Sync>>,
    /// Position among the CPUs of its owner.
    index: AtomicU32,
}

#[derive(Default)]
pub(super) struct CpuState {
    dpcs: VecDeque<(&'static str, Body)>,
    dpc: Option<RunningDpc>,
    thread: Option<Arc<Thread>>,
    ready: VecDeque<Arc<Thread>>,
    pub spinning: Option<Spinning>,
    /// Something on this CPU broke a rule: it never runs again.
    pub halted: bool,
    /// What was suspended for ever.
    abandoned: Vec<Fiber>,
}

struct RunningDpc {
    name: &'static str,
    fiber: Fiber,
    interrupted_level: u8,
}

#[derive(Clone, Copy)]
pub(super) struct Spinning {
    pub key: usize,
    pub since: Nanos,
}

pub(super) struct Thread {
    pub id: u64,
    pub name: String,
    /// Where it may run: anywhere of these in deterministic mode, always on the first in threaded mode.
    pub cpus: Vec<Arc<Cpu>>,
    pub state: Lock<ThreadState>,
}

pub(super) struct ThreadState {
    pub run: Run,
    /// Unparked while not parked: the next park returns at once.
    pub permit: bool,
    pub fiber: Option<Fiber>,
    /// The level to go on at: threads may park at any below [`LEVEL_MASKED`].
    level: u8,
    body: Option<Body>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Run {
    Ready,
    Running,
    Parked { what: &'static str, idle: bool, since: Nanos },
    Ended,
}

impl CpuState {
    fn has_work(&self, level: u8) -> bool {
        let idle = self.halted || self.spinning.is_some();
        let held = self.dpc.is_some() || self.thread.is_some();
        let waiting = !self.dpcs.is_empty() || !self.ready.is_empty();
        !idle && (held || (waiting && level < LEVEL_MASKED))
    }
}

impl CpuHandle {
    /// Number of the CPU in the whole simulation.
    pub fn id(&self) -> u32 {
        self.0.id
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Its level now.
    pub fn level(&self) -> u8 {
        self.0.level.load(Ordering::Relaxed)
    }

    /// Says whose CPU this is, once, and its index there; the model above finds itself this way from any context.
    pub fn set_owner(&self, owner: Weak<dyn Any + Send + Sync>, index: u32) {
        assert!(self.0.owner.set(owner).is_ok(), "the owner of {} was already set", self.0.name);
        self.0.index.store(index, Ordering::Relaxed);
    }

    /// Its owner, if that is a `T` and still there.
    pub fn owner<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.0.owner.get().and_then(Weak::upgrade).and_then(|owner| owner.downcast().ok())
    }

    /// Its position among the owner's CPUs.
    pub fn index(&self) -> u32 {
        self.0.index.load(Ordering::Relaxed)
    }
}

impl PartialEq for CpuHandle {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl ThreadHandle {
    /// Number of the thread in the whole simulation, in order of creation.
    pub fn id(&self) -> u64 {
        self.0.id
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// True once its body has returned.
    pub fn ended(&self) -> bool {
        self.0.state.lock().run == Run::Ended
    }
}

impl Cpu {
    pub fn new(id: u32, name: String) -> Self {
        Self {
            id,
            name,
            level: AtomicU8::new(0),
            dpc_waiting: AtomicBool::new(false),
            thread_waiting: AtomicBool::new(false),
            state: Lock::new(CpuState::default()),
            work: Condvar::new(),
            owner: OnceLock::new(),
            index: AtomicU32::new(0),
        }
    }

    pub fn push_dpc(&self, name: &'static str, body: Body) {
        let mut state = self.state.lock();
        state.dpcs.push_back((name, body));
        self.dpc_waiting.store(true, Ordering::Release);
        self.work.notify_one();
    }

    fn push_ready(&self, thread: Arc<Thread>) {
        let mut state = self.state.lock();
        state.ready.push_back(thread);
        self.thread_waiting.store(true, Ordering::Release);
        self.work.notify_one();
    }

    /// Ends a spin on `key`; false if the CPU was not spinning on it.
    pub fn stop_spinning(&self, key: usize) -> bool {
        let mut state = self.state.lock();
        let was = state.spinning.is_some_and(|spinning| spinning.key == key);
        if was {
            state.spinning = None;
        }
        was
    }

    /// What runs or waits here, for a report.
    pub fn describe(&self) -> Option<String> {
        let state = self.state.lock();
        let spinning = state.spinning?;
        let who = match (&state.dpc, &state.thread) {
            (Some(dpc), _) => format!("DPC {}", dpc.name),
            (None, Some(thread)) => format!("thread {}", thread.name),
            (None, None) => "nothing".into(),
        };
        Some(format!("{}: {who} spins on a lock since {} ns", self.name, spinning.since))
    }

    /// True if there is something to run.
    pub fn has_work(&self) -> bool {
        self.state.lock().has_work(self.level.load(Ordering::Relaxed))
    }

    /// Threaded mode: sleeps until work arrives, at most for `timeout`.
    pub fn wait_for_work(&self, timeout: Duration) {
        let mut state = self.state.lock();
        if !state.has_work(self.level.load(Ordering::Relaxed)) {
            state.wait(&self.work, timeout);
        }
    }

    /// Drops everything that never ran and abandons what did; gives up the owner's work, not the owner.
    pub fn clear(&self) {
        let (dpcs, dpc, thread, ready, abandoned) = {
            let mut state = self.state.lock();
            state.halted = true;
            (
                std::mem::take(&mut state.dpcs),
                state.dpc.take(),
                state.thread.take(),
                std::mem::take(&mut state.ready),
                std::mem::take(&mut state.abandoned),
            )
        };
        drop((dpcs, dpc, thread, ready, abandoned));
    }
}

impl Thread {
    pub fn new(id: u64, name: String, cpus: Vec<Arc<Cpu>>, body: Body) -> Self {
        let state = ThreadState { run: Run::Ready, permit: false, fiber: None, level: 0, body: Some(body) };
        Self { id, name, cpus, state: Lock::new(state) }
    }

    /// Puts a thread that became ready on a CPU.
    pub fn make_ready(self: &Arc<Self>, sim: &Sim) {
        let choice = match sim.mode() {
            Mode::Deterministic if self.cpus.len() > 1 => {
                sim.rng(|rng| rng.below(self.cpus.len() as u64)) as usize
            }
            _ => 0,
        };
        let cpu = &self.cpus[choice];
        cpu.push_ready(Arc::clone(self));
        sim.world().runnable(cpu);
    }

    pub fn unpark(self: &Arc<Self>, sim: &Sim) {
        {
            let mut state = self.state.lock();
            match state.run {
                Run::Parked { .. } => state.run = Run::Ready,
                Run::Ended => return,
                Run::Ready | Run::Running => {
                    state.permit = true;
                    return;
                }
            }
        }
        sim.world().progress();
        self.make_ready(sim);
    }

    /// Drops what has not run and abandons what has.
    pub fn clear(&self) {
        let (fiber, body) = {
            let mut state = self.state.lock();
            state.run = Run::Ended;
            (state.fiber.take(), state.body.take())
        };
        drop((fiber, body));
    }
}

/// What a step took up.
enum Chosen {
    Dpc(RunningDpc),
    Thread(Arc<Thread>),
}

/// Runs what is due on `cpu` up to its next yield point; `None` if there is nothing to run, else the preemption
/// points passed.
pub(super) fn step(sim: &Sim, cpu: &CpuHandle) -> Option<u32> {
    let world = sim.world();
    let chosen = choose(sim, &cpu.0)?;
    match chosen {
        Chosen::Dpc(mut dpc) => {
            world.trace_mix("dpc", u64::from(cpu.0.id), 0);
            let context = Context::new(sim, Some(cpu), None, dpc.name);
            let suspend = dpc.fiber.resume(&context);
            let points = context.points();
            settle_dpc(sim, &cpu.0, dpc, suspend);
            Some(points)
        }
        Chosen::Thread(thread) => {
            world.trace_mix("thread", u64::from(cpu.0.id), thread.id);
            let fiber = {
                let mut state = thread.state.lock();
                state.run = Run::Running;
                let level = std::mem::take(&mut state.level);
                if level > 0 {
                    cpu.0.level.store(level, Ordering::Relaxed);
                }
                match state.fiber.take() {
                    Some(fiber) => Ok(fiber),
                    None => Err(state.body.take()),
                }
            };
            let mut fiber = match fiber {
                Ok(fiber) => fiber,
                Err(Some(body)) => Fiber::new(&world.stacks, body),
                // Ended by a shutdown.
                Err(None) => return Some(0),
            };
            let handle = ThreadHandle(Arc::clone(&thread));
            let context = Context::new(sim, Some(cpu), Some(&handle), &thread.name);
            let suspend = fiber.resume(&context);
            let points = context.points();
            settle_thread(sim, &cpu.0, &thread, fiber, suspend);
            Some(points)
        }
    }
}

fn choose(sim: &Sim, cpu: &Cpu) -> Option<Chosen> {
    let mut state = cpu.state.lock();
    if state.halted || state.spinning.is_some() {
        return None;
    }
    if let Some(dpc) = state.dpc.take() {
        return Some(Chosen::Dpc(dpc));
    }
    let level = cpu.level.load(Ordering::Relaxed);
    if level < LEVEL_MASKED
        && let Some((name, body)) = state.dpcs.pop_front()
    {
        cpu.dpc_waiting.store(!state.dpcs.is_empty(), Ordering::Release);
        cpu.level.store(LEVEL_MASKED, Ordering::Relaxed);
        drop(state);
        sim.world().progress();
        let fiber = Fiber::new(&sim.world().stacks, body);
        return Some(Chosen::Dpc(RunningDpc { name, fiber, interrupted_level: level }));
    }
    if level == 0 && state.thread.is_some() && !state.ready.is_empty() {
        // The end of a time slice: sometimes in deterministic mode, always in threaded mode, whose preemption
        // points yield for this only now and then.
        let rotate = match sim.mode() {
            Mode::Deterministic => sim.rng(|rng| rng.chance(1 << 14)),
            Mode::Threaded => true,
        };
        if rotate && let Some(thread) = state.thread.take() {
            thread.state.lock().run = Run::Ready;
            state.ready.push_back(thread);
        }
    }
    if state.thread.is_none() && level == 0 {
        let pick = match sim.mode() {
            Mode::Deterministic if state.ready.len() > 1 => {
                sim.rng(|rng| rng.below(state.ready.len() as u64))
            }
            _ => 0,
        };
        state.thread = state.ready.remove(pick as usize);
        cpu.thread_waiting.store(!state.ready.is_empty(), Ordering::Release);
    }
    state.thread.clone().map(Chosen::Thread)
}

fn settle_dpc(sim: &Sim, cpu: &Cpu, dpc: RunningDpc, suspend: Option<Suspend>) {
    match suspend {
        None => {
            cpu.level.store(dpc.interrupted_level, Ordering::Relaxed);
            dpc.fiber.recycle(&sim.world().stacks);
            sim.world().progress();
        }
        Some(Suspend::Preempt) => cpu.state.lock().dpc = Some(dpc),
        Some(Suspend::Spin(key)) => {
            let mut state = cpu.state.lock();
            state.spinning = Some(Spinning { key, since: sim.now() });
            state.dpc = Some(dpc);
            drop(state);
            sim.world().add_spinner(cpu.id, key);
        }
        Some(Suspend::Park { what, .. }) => {
            halt(cpu, dpc.fiber);
            sim.fail(super::Outcome::Panic(format!("DPC {} parked on {what}", dpc.name)));
        }
        Some(Suspend::ForEver) => halt(cpu, dpc.fiber),
    }
}

fn settle_thread(sim: &Sim, cpu: &Cpu, thread: &Arc<Thread>, fiber: Fiber, suspend: Option<Suspend>) {
    match suspend {
        None => {
            {
                let mut state = cpu.state.lock();
                state.thread = None;
            }
            cpu.level.store(0, Ordering::Relaxed);
            thread.state.lock().run = Run::Ended;
            fiber.recycle(&sim.world().stacks);
            sim.world().forget_thread(thread.id);
            sim.world().progress();
        }
        Some(Suspend::Preempt) => thread.state.lock().fiber = Some(fiber),
        Some(Suspend::Spin(key)) => {
            thread.state.lock().fiber = Some(fiber);
            cpu.state.lock().spinning = Some(Spinning { key, since: sim.now() });
            sim.world().add_spinner(cpu.id, key);
        }
        Some(Suspend::Park { what, idle }) => {
            cpu.state.lock().thread = None;
            let mut state = thread.state.lock();
            state.fiber = Some(fiber);
            state.level = cpu.level.swap(0, Ordering::Relaxed);
            if state.permit {
                state.permit = false;
                state.run = Run::Ready;
                drop(state);
                thread.make_ready(sim);
            } else {
                state.run = Run::Parked { what, idle, since: sim.now() };
            }
        }
        Some(Suspend::ForEver) => {
            thread.state.lock().fiber = Some(fiber);
            cpu.state.lock().halted = true;
        }
    }
}

fn halt(cpu: &Cpu, fiber: Fiber) {
    let mut state = cpu.state.lock();
    state.halted = true;
    state.abandoned.push(fiber);
}
