//! The context that runs on this OS thread now, and what it can do.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::Ordering;

use super::border::{self, Side};
use super::cpu::{CpuHandle, LEVEL_MASKED, ThreadHandle};
use super::fiber::{FiberYielder, Suspend};
use super::{Mode, Nanos, Outcome, Sim, sync};

/// Bytes of a stack's inaccessible page.
const GUARD: usize = 4096;

thread_local! {
    static SPINS: Cell<u32> = const { Cell::new(0) };
    static CURRENT: Cell<*const Context<'static>> = const { Cell::new(ptr::null()) };
}

/// A thread, a DPC or the hardware, while it runs.
pub(super) struct Context<'a> {
    sim: &'a Sim,
    cpu: Option<&'a CpuHandle>,
    thread: Option<&'a ThreadHandle>,
    name: &'a str,
    yielder: Cell<*const FiberYielder>,
    stack: Cell<StackUse>,
    points: Cell<u32>,
}

/// What is known about the stack of a coroutine, kept with it while it is suspended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StackUse {
    /// The lowest address, 0 outside a coroutine.
    pub limit: usize,
    /// Where the measured part begins, 0 if nothing is measured.
    pub mark: usize,
    /// Most bytes seen in use below the mark.
    pub deepest: usize,
}

impl<'a> Context<'a> {
    pub fn new(
        sim: &'a Sim,
        cpu: Option<&'a CpuHandle>,
        thread: Option<&'a ThreadHandle>,
        name: &'a str,
    ) -> Self {
        let yielder = Cell::new(ptr::null());
        Self { sim, cpu, thread, name, yielder, stack: Cell::default(), points: Cell::new(0) }
    }

    pub fn enter_fiber(&self, yielder: *const FiberYielder, stack: StackUse) {
        self.yielder.set(yielder);
        self.stack.set(stack);
    }

    pub fn stack(&self) -> StackUse {
        self.stack.get()
    }

    pub fn yielder(&self) -> *const FiberYielder {
        self.yielder.get()
    }

    pub fn points(&self) -> u32 {
        self.points.get()
    }

    /// Who this is, for a report.
    pub fn describe(&self) -> String {
        match (self.cpu, self.thread) {
            (Some(cpu), Some(_)) => format!("thread {} on {}", self.name, cpu.name()),
            (Some(cpu), None) => format!("DPC {} on {}", self.name, cpu.name()),
            (None, _) => format!("event {}", self.name),
        }
    }
}

/// Runs `f` with `context` as the current one.
pub(super) fn with_context<R>(context: &Context<'_>, f: impl FnOnce() -> R) -> R {
    let previous = swap(ptr::from_ref(context).cast());
    let result = f();
    swap(previous);
    result
}

// Not inlined, here and in `get`: a fiber may be resumed on another OS thread than it was suspended on, and the
// address of the thread-local must then be computed anew.
#[inline(never)]
fn swap(context: *const Context<'static>) -> *const Context<'static> {
    CURRENT.replace(context)
}

#[inline(never)]
fn get<'a>() -> Option<&'a Context<'a>> {
    // SAFETY: `with_context` sets the pointer to a context that outlives the closure it runs, and restores it
    // after. Code that yields holds no such reference over the yield: the functions below end their use first.
    unsafe { CURRENT.get().as_ref() }
}

pub(super) fn set_yielder(yielder: &FiberYielder) {
    if let Some(context) = get() {
        context.yielder.set(yielder);
    }
}

fn suspend(reason: Suspend) {
    sync::assert_none_held();
    let yielder = get().map_or(ptr::null(), |context| context.yielder.get());
    // SAFETY: the pointer was set by the fiber that runs now, and the yielder lives as long as the fiber's body.
    let yielder = unsafe { yielder.as_ref() }.expect("only a thread or a DPC of the simulation can yield");
    yielder.suspend(reason);
}

/// The simulation this code runs in, `None` outside any.
pub fn current() -> Option<Sim> {
    get().map(|context| context.sim.clone())
}

/// The CPU this code runs on, `None` in hardware context and outside.
pub fn current_cpu() -> Option<CpuHandle> {
    get().and_then(|context| context.cpu.cloned())
}

/// Calls `f` with the current CPU, if any, without counting a reference.
pub(crate) fn with_cpu<R>(f: impl FnOnce(&CpuHandle) -> R) -> Option<R> {
    get().and_then(|context| context.cpu).map(f)
}

/// The thread this code runs in, `None` in a DPC, in hardware context and outside.
pub fn current_thread() -> Option<ThreadHandle> {
    get().and_then(|context| context.thread.cloned())
}

/// True in the closure of an event.
pub fn in_hardware() -> bool {
    get().is_some_and(|context| context.cpu.is_none())
}

/// Who runs, for a report.
pub(super) fn describe_current() -> String {
    get().map_or_else(|| "outside the simulation".into(), Context::describe)
}

/// Bytes left on the coroutine's stack, `None` outside one. Notes how deep a measured call is.
pub fn stack_left() -> Option<usize> {
    let context = get()?;
    let mut stack = context.stack.get();
    if stack.limit == 0 {
        return None;
    }
    let here = stack_pointer();
    if stack.mark != 0 {
        stack.deepest = stack.deepest.max(stack.mark.saturating_sub(here));
        context.stack.set(stack);
    }
    Some(here.saturating_sub(stack.limit))
}

/// Calls `f` and gives, beside its result, the most stack below this call that was in use at any preemption point
/// in it. A measured call inside counts for itself only.
pub(crate) fn measure_stack<R>(f: impl FnOnce() -> R) -> (R, usize) {
    let exchange = |mark, deepest| {
        let Some(context) = get() else { return StackUse::default() };
        let before = context.stack.get();
        context.stack.set(StackUse { mark, deepest, ..before });
        before
    };
    let outer = exchange(stack_pointer(), 0);
    let result = f();
    let inner = exchange(outer.mark, outer.deepest);
    (result, inner.deepest)
}

/// Where the measured part of the stack begins: the border between the lab and the driver it called.
pub(crate) fn stack_mark() -> Option<usize> {
    get().map(|context| context.stack.get().mark).filter(|mark| *mark != 0)
}

/// About where the stack is now.
#[inline(never)]
fn stack_pointer() -> usize {
    let here = 0u8;
    std::hint::black_box(ptr::from_ref(&here)) as usize
}

/// Whether the address lies on the stack of the coroutine that runs now. Safe to call in a signal handler.
pub(crate) fn on_fiber_stack(address: usize) -> bool {
    let Some(context) = get() else { return false };
    let limit = context.stack.get().limit;
    limit != 0 && (limit..limit + context.sim.world().config.stack_size + GUARD).contains(&address)
}

/// The level of the current CPU; 0 outside.
pub fn level() -> u8 {
    with_cpu(CpuHandle::level).unwrap_or(0)
}

/// Sets the level of the current CPU. Lowering it below [`LEVEL_MASKED`] lets waiting DPCs run before this returns.
pub fn set_level(level: u8) {
    let interrupt = with_cpu(|cpu| {
        cpu.0.level.store(level, Ordering::Relaxed);
        level < LEVEL_MASKED && cpu.0.dpc_waiting.load(Ordering::Acquire)
    });
    if interrupt == Some(true) {
        suspend(Suspend::Preempt);
    }
}

/// A preemption point: here DPCs interrupt, other CPUs get their turn, and at level 0 other threads.
pub fn preempt() {
    let Some(context) = get() else { return };
    let Some(cpu) = context.cpu else { return };
    let points = context.points.get() + 1;
    context.points.set(points);
    let level = cpu.level();
    let interrupt = level < LEVEL_MASKED && cpu.0.dpc_waiting.load(Ordering::Acquire);
    let give_way = match context.sim.mode() {
        Mode::Deterministic => context.sim.world().preemption_draw(),
        Mode::Threaded => {
            end_if_stopping(context);
            level == 0 && points.is_multiple_of(64) && cpu.0.thread_waiting.load(Ordering::Relaxed)
        }
    };
    if interrupt || give_way {
        suspend(Suspend::Preempt);
    }
}

/// Blocks the current thread until [`Sim::unpark`]; returns at once if that came first. May return early too, so
/// callers loop. An `idle` wait is one that may last for ever, as a worker's for work.
///
/// # Panics
/// At [`LEVEL_MASKED`] or above, and in a DPC.
pub fn park(what: &'static str, idle: bool) {
    let level = level();
    assert!(level < LEVEL_MASKED, "a wait for {what} at level {level}");
    suspend(Suspend::Park { what, idle });
}

/// Blocks the current thread for `duration`.
pub fn sleep(duration: Nanos) {
    let (Some(sim), Some(thread)) = (current(), current_thread()) else {
        panic!("only a thread of the simulation can sleep");
    };
    let until = sim.now() + duration;
    sim.at(until, "sleep", move |sim| sim.unpark(&thread));
    while sim.now() < until {
        park("sleep", false);
    }
}

/// Gives way once while the lock named by `key` is held by another CPU. The caller tries again after.
pub fn spin_wait(key: usize) {
    let Some(context) = get() else {
        std::hint::spin_loop();
        return;
    };
    if context.sim.mode() == Mode::Deterministic {
        suspend(Suspend::Spin(key));
        return;
    }
    end_if_stopping(context);
    // The holder's OS thread may have been descheduled, with this one in its place.
    let spins = SPINS.get().wrapping_add(1);
    SPINS.set(spins);
    if spins.is_multiple_of(64) {
        std::thread::yield_now();
    } else {
        std::hint::spin_loop();
    }
}

/// Threaded mode: lets an OS thread out of code that would never end by itself, as a spin on the lock of a context
/// that broke a rule.
fn end_if_stopping(context: &Context<'_>) {
    if context.sim.world().stopping.load(Ordering::Relaxed) {
        suspend_for_ever();
    }
}

/// Lets the CPUs that spin on `key` try again.
pub fn spin_wake(key: usize) {
    if let Some(context) = get()
        && context.sim.mode() == Mode::Deterministic
    {
        context.sim.world().wake_spinners(key);
    }
}

/// Ends the current context for good: it broke a rule, and its frames cannot unwind.
pub fn suspend_for_ever() -> ! {
    let fiber = get().is_some_and(|context| !context.yielder.get().is_null());
    if !fiber {
        // An event's closure, or code outside the simulation: those frames are the lab's own and may unwind.
        std::panic::resume_unwind(Box::new(Halt));
    }
    loop {
        suspend(Suspend::ForEver);
    }
}

/// Payload of an unwinding that ends a context whose failure is already recorded.
struct Halt;

/// Runs lab code under a driver's frame: a panic in it must not unwind into the driver, so it ends the run as
/// [`Outcome::Panic`] and suspends the context instead.
pub fn contain<R>(f: impl FnOnce() -> R) -> R {
    border::on(Side::Lab, || match catch_unwind(AssertUnwindSafe(f)) {
        Ok(result) => result,
        Err(payload) => {
            record_panic(&*payload);
            suspend_for_ever()
        }
    })
}

/// Makes a caught panic the outcome of the run.
pub(super) fn record_panic(payload: &(dyn Any + Send)) {
    if payload.is::<Halt>() {
        return;
    }
    let text = payload
        .downcast_ref::<&str>()
        .map(ToString::to_string)
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "(no message)".into());
    if let Some(context) = get() {
        context.sim.fail(Outcome::Panic(format!("{text} [{}]", context.describe())));
    }
}
