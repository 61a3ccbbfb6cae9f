//! One simulated Windows.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::debug::DebugLog;
use super::dispatcher::Dispatcher;
use super::io::IoManager;
use super::phys::PhysMap;
use super::pool::{Pool, PoolConfig};
use super::spin_lock::Processor;
use crate::fault::{Faults, Site};
use crate::sim::{self, CpuHandle, Lock, Mode, Sim, ThreadHandle};
use crate::verifier::rules::{
    LOCK_HELD_AT_RETURN, POOL_LEAK, RESOURCE_LEAK, RESOURCE_NOT_OWNED, THREAD_ENDS_RAISED,
};
use crate::verifier::{self, DriverCall, Leak, Ledger, LockOrder, Rule};

/// Parameters of a machine.
#[derive(Clone, Debug)]
pub struct MachineConfig {
    /// Its name, for people.
    pub name: String,
    /// Processors.
    pub cpus: u32,
    /// Each pool block in pages of its own, its end against an inaccessible one, freed blocks made inaccessible:
    /// finds every overrun and use after free at the instruction, at the price of memory.
    pub guard_pages: bool,
    /// Freed blocks kept from reuse, so that a late write to one is noticed.
    pub quarantine: usize,
    /// Record the call stack of every resource a driver obtains, for the report of a leak. Slow.
    pub record_stacks: bool,
}

impl Default for MachineConfig {
    fn default() -> Self {
        Self { name: "host".into(), cpus: 2, guard_pages: false, quarantine: 256, record_stacks: false }
    }
}

impl MachineConfig {
    /// The default configuration with a name.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }
}

/// One simulated Windows. Cheap to clone; all clones are the same machine.
#[derive(Clone)]
pub struct Machine(pub(super) Arc<Inner>);

pub(super) struct Inner {
    sim: Sim,
    id: u32,
    config: MachineConfig,
    cpus: Vec<CpuHandle>,
    pub processors: Vec<Processor>,
    next_cpu: AtomicU32,
    pub lock_order: Lock<LockOrder>,
    pub dispatcher: Dispatcher,
    pub pool: Lock<Pool>,
    pub phys: Lock<PhysMap>,
    pub io: IoManager,
    pub debug: DebugLog,
    ledger: Lock<Ledger>,
    faults: Faults,
    extensions: Lock<BTreeMap<TypeId, Arc<dyn Any + Send + Sync>>>,
    driver_calls: AtomicU64,
    free_watchers: Lock<Vec<FreeWatcher>>,
    driver_stack: AtomicUsize,
    pub has_paged_pool: AtomicBool,
}

/// Looks at memory that the driver is about to free, and says which rule that breaks.
type FreeWatcher = Arc<dyn Fn(&Machine, &Range<usize>) -> Option<(Rule, String)> + Send + Sync>;

impl Machine {
    /// A new machine in `sim`, with nothing running.
    pub fn new(sim: &Sim, config: MachineConfig) -> Self {
        assert!(config.cpus > 0, "a machine needs a processor");
        super::page_fault::install();
        let cpus: Vec<_> = (0..config.cpus).map(|i| sim.add_cpu(format!("{}.cpu{i}", config.name))).collect();
        let pool = PoolConfig { guard_pages: config.guard_pages, quarantine: config.quarantine };
        let inner = Inner {
            sim: sim.clone(),
            id: cpus[0].id(),
            processors: cpus.iter().map(|_| Processor::default()).collect(),
            next_cpu: AtomicU32::new(0),
            lock_order: Lock::default(),
            dispatcher: Dispatcher::default(),
            pool: Lock::new(Pool::new(pool)),
            phys: Lock::default(),
            io: IoManager::default(),
            debug: DebugLog::default(),
            ledger: Lock::default(),
            faults: Faults::default(),
            extensions: Lock::default(),
            driver_calls: AtomicU64::new(0),
            free_watchers: Lock::default(),
            driver_stack: AtomicUsize::new(0),
            has_paged_pool: AtomicBool::new(false),
            cpus,
            config,
        };
        let inner = Arc::new(inner);
        for (index, cpu) in inner.cpus.iter().enumerate() {
            let weak = Arc::downgrade(&inner);
            cpu.set_owner(weak, index as u32);
        }
        sim.keep(Arc::clone(&inner) as Arc<dyn Any + Send + Sync>);
        Self(inner)
    }

    /// The machine on which the current thread or DPC runs.
    ///
    /// # Panics
    /// Outside a thread or DPC of a machine: in hardware context or outside the simulation.
    pub fn current() -> Self {
        Self::try_current().expect("this code must run in a thread or DPC of a simulated machine")
    }

    /// The machine on which the current thread or DPC runs, if any.
    pub fn try_current() -> Option<Self> {
        sim::with_cpu(CpuHandle::owner::<Inner>).flatten().map(Self)
    }

    /// Its simulation.
    pub fn sim(&self) -> &Sim {
        &self.0.sim
    }

    /// Its number, unique in the simulation and the same in every run; the subject of its trace events.
    pub fn id(&self) -> u32 {
        self.0.id
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.config.name
    }

    /// Its parameters.
    pub fn config(&self) -> &MachineConfig {
        &self.0.config
    }

    /// Its processors.
    pub fn cpus(&self) -> &[CpuHandle] {
        &self.0.cpus
    }

    /// The index of the processor this code runs on; 0 outside.
    pub fn processor_index() -> u32 {
        sim::with_cpu(CpuHandle::index).unwrap_or(0)
    }

    /// The plan of failures.
    pub fn faults(&self) -> &Faults {
        &self.0.faults
    }

    /// Starts a system thread at PASSIVE_LEVEL. The lab's own threads are such threads too.
    pub fn spawn_thread(
        &self,
        name: impl Into<String>,
        body: impl FnOnce() + Send + 'static,
    ) -> ThreadHandle {
        let cpus = self.affinity();
        let machine = self.clone();
        self.0.sim.spawn(&cpus, name, move || {
            body();
            machine.check_end("thread", 0);
        })
    }

    /// Queues a DPC on one of the processors: it runs at DISPATCH_LEVEL, before any thread there. May be called from
    /// any context.
    pub fn queue_dpc(&self, name: &'static str, body: impl FnOnce() + Send + 'static) {
        let cpu = self.pick_cpu();
        self.queue_dpc_on(cpu, name, body);
    }

    /// Queues a DPC on the processor with this index (modulo their number).
    pub fn queue_dpc_on(&self, processor: usize, name: &'static str, body: impl FnOnce() + Send + 'static) {
        let machine = self.clone();
        let cpu = &self.0.cpus[processor % self.0.cpus.len()];
        self.0.sim.queue_dpc(cpu, name, move || {
            body();
            machine.check_end(name, super::irql::DISPATCH_LEVEL);
        });
    }

    /// Queues a work item: runs at PASSIVE_LEVEL in a system worker thread. May be called from any context.
    pub fn queue_work(&self, name: &'static str, body: impl FnOnce() + Send + 'static) {
        self.spawn_thread(name, body);
    }

    /// Runs `body` in a thread of its own and gives its result, or how the run ended instead. `deadline` is from now.
    pub fn run<T: Send + 'static>(
        &self,
        name: &str,
        deadline: sim::Nanos,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, sim::Outcome> {
        let slot = Arc::new(Lock::new(None));
        let result = Arc::clone(&slot);
        let thread = self.spawn_thread(name, move || {
            let value = body();
            *result.lock() = Some(value);
        });
        let end = self.0.sim.now().saturating_add(deadline);
        match self.0.sim.run_until(end, |_| thread.ended()) {
            sim::Outcome::Done => Ok(slot.lock().take().expect("the thread ended, so it left its result")),
            outcome => Err(outcome),
        }
    }

    /// State that another room keeps for this machine, made by `make` at the first request for its type.
    pub fn extension<T: Any + Send + Sync>(&self, make: impl FnOnce(&Self) -> T) -> Arc<T> {
        if let Some(found) = self.find_extension() {
            return found;
        }
        // Made outside the lock, which `make` may want itself; of two that race one wins.
        let made: Arc<dyn Any + Send + Sync> = Arc::new(make(self));
        let kept = Arc::clone(self.0.extensions.lock().entry(TypeId::of::<T>()).or_insert(made));
        kept.downcast().unwrap_or_else(|_| unreachable!("entries are keyed by their type"))
    }

    /// State that another room keeps for this machine, if it has been made.
    pub fn find_extension<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        let found = self.0.extensions.lock().get(&TypeId::of::<T>()).cloned();
        found.and_then(|found| found.downcast().ok())
    }

    /// Enters a resource that the driver obtained: `kind` such as `"MDL"`, its address or handle, and a tag.
    pub fn acquire(&self, kind: &'static str, id: usize, tag: impl Into<String>) {
        let site = self.0.config.record_stacks.then(Site::here);
        self.0.ledger.lock().acquire(kind, id, tag, site);
    }

    /// Strikes a resource that the driver gives back; if it holds no such resource, `rule` (or
    /// `RESOURCE_NOT_OWNED`) is broken.
    pub fn release(&self, kind: &'static str, id: usize, call: &str, rule: Option<verifier::Rule>) {
        let released = self.0.ledger.lock().release(kind, id);
        if !released {
            let rule = rule.unwrap_or(RESOURCE_NOT_OWNED);
            verifier::violation(rule, call, format!("no such {kind} is held by the driver"));
        }
    }

    /// Strikes a resource; false if the driver does not hold it. For rooms that report that themselves.
    pub fn try_release(&self, kind: &'static str, id: usize) -> bool {
        self.0.ledger.lock().release(kind, id)
    }

    /// True if the driver holds the resource.
    pub fn holds(&self, kind: &'static str, id: usize) -> bool {
        self.0.ledger.lock().holds(kind, id)
    }

    /// How many resources of this kind the driver holds.
    pub fn held(&self, kind: &'static str) -> usize {
        self.0.ledger.lock().count(kind)
    }

    /// Everything the driver holds now, pool included: after its unload, its leaks.
    pub fn outstanding(&self) -> Vec<Leak> {
        let mut leaks = self.0.ledger.lock().outstanding();
        leaks.extend(self.0.pool.lock().outstanding());
        leaks
    }

    /// Has `watcher` look at every pool block that the driver frees, before it is freed: a device model knows what it
    /// was given.
    pub fn watch_frees(
        &self,
        watcher: impl Fn(&Self, &Range<usize>) -> Option<(Rule, String)> + Send + Sync + 'static,
    ) {
        self.0.free_watchers.lock().push(Arc::new(watcher));
    }

    /// The rule that freeing this memory breaks, if a watcher knows one.
    pub(super) fn broken_by_free(&self, memory: &Range<usize>) -> Option<(Rule, String)> {
        let watchers = self.0.free_watchers.lock().clone();
        watchers.iter().find_map(|watcher| watcher(self, memory))
    }

    /// Calls into the driver so far.
    pub fn driver_calls(&self) -> u64 {
        self.0.driver_calls.load(Ordering::Relaxed)
    }

    /// Most bytes of stack that the driver had in use, in one call of it, when it called the kernel. A Windows kernel
    /// stack has 24 KiB in all.
    pub fn driver_stack_peak(&self) -> usize {
        self.0.driver_stack.load(Ordering::Relaxed)
    }

    pub(crate) fn note_driver_stack(&self, bytes: usize) {
        self.0.driver_stack.fetch_max(bytes, Ordering::Relaxed);
    }

    pub(crate) fn enter_driver(&self, call: DriverCall) -> Option<DriverCall> {
        self.0.driver_calls.fetch_add(1, Ordering::Relaxed);
        self.processor().enter_driver(Some(call))
    }

    pub(crate) fn leave_driver(&self, outer: Option<DriverCall>) {
        self.processor().enter_driver(outer);
    }

    /// The driver's callback that runs on the current processor.
    pub(super) fn driver_callback(&self) -> Option<&'static str> {
        self.processor().driver_call().map(|call| call.callback)
    }

    /// Ends the run if the driver still holds anything: call it after the unload.
    pub fn check_leaks(&self, call: &str) {
        let leaks = self.outstanding();
        let Some(first) = leaks.first() else { return };
        let rule = if first.kind == "pool" { POOL_LEAK } else { RESOURCE_LEAK };
        let list = leaks.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        verifier::violation(rule, call, format!("{} leak(s):\n{list}", leaks.len()));
    }

    /// Spin locks the current processor holds.
    pub(crate) fn held_locks(&self) -> usize {
        self.processor().held()
    }

    pub(super) fn processor(&self) -> &Processor {
        let index = Self::processor_index() as usize;
        &self.0.processors[index % self.0.processors.len()]
    }

    /// The end of a thread or DPC: at the level it began, with no lock held.
    fn check_end(&self, name: &'static str, level: u8) {
        let now = sim::level();
        if now != level {
            let detail = format!("ends at {}", verifier::irql_name(now));
            verifier::violation(THREAD_ENDS_RAISED, name, detail);
        }
        // Below DISPATCH_LEVEL no lock can be held, and the processor may be another one by now.
        if level >= super::irql::DISPATCH_LEVEL && self.held_locks() > 0 {
            verifier::violation(
                LOCK_HELD_AT_RETURN,
                name,
                format!("{} spin lock(s) held", self.held_locks()),
            );
        }
    }

    /// Where a new thread may run: anywhere, or in threaded mode on one processor, in turn.
    fn affinity(&self) -> Vec<CpuHandle> {
        match self.0.sim.mode() {
            Mode::Deterministic => self.0.cpus.clone(),
            Mode::Threaded => vec![self.0.cpus[self.pick_cpu()].clone()],
        }
    }

    fn pick_cpu(&self) -> usize {
        let count = self.0.cpus.len();
        match self.0.sim.mode() {
            _ if count == 1 => 0,
            Mode::Deterministic => self.0.sim.rng(|rng| rng.below(count as u64)) as usize,
            Mode::Threaded => self.0.next_cpu.fetch_add(1, Ordering::Relaxed) as usize % count,
        }
    }
}

impl PartialEq for Machine {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
