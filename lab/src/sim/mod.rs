//! The scheduler of the lab: virtual time, CPUs, threads and DPCs, and every decision about their order.
//!
//! This room knows nothing of Windows. A [`CpuHandle`] has a *level*: below [`LEVEL_MASKED`] a queued DPC
//! interrupts what runs, from there on nothing does; only at level 0 is a thread switched for another.
//! Threads and DPCs are coroutines. Two modes run the same structures:
//!
//! * **Deterministic**: one OS thread. Each step a seeded generator picks a CPU that can run and resumes what
//!   it holds up to its next yield point. Events fire when their time has come; when nothing can run, time
//!   jumps to the next event. Equal seeds give equal traces, byte for byte.
//! * **Threaded**: an OS thread for each CPU and one for the events, real time.
//!
//! Model code runs in one of three contexts: a thread, a DPC, or *hardware* (the closure of an event, which
//! never calls a driver). The free functions of this module act on the context that calls them.

pub mod border;
mod config;
mod cpu;
mod current;
mod events;
mod fiber;
mod outcome;
mod rng;
mod run;
mod sync;
mod threaded;
mod trace;
mod wait_queue;
mod world;

#[cfg(test)]
mod tests;

pub use config::{Mode, SimConfig};
pub use cpu::{CpuHandle, LEVEL_MASKED, ThreadHandle};
pub use current::{
    contain, current, current_cpu, current_thread, in_hardware, level, park, preempt, set_level, sleep,
    spin_wait, spin_wake, stack_left, suspend_for_ever,
};
pub(crate) use current::{measure_stack, on_fiber_stack, stack_mark, with_cpu};
pub use events::EventId;
pub use outcome::{Outcome, Violation};
pub use rng::SimRng;
pub(crate) use sync::assert_none_held;
pub use sync::{Lock, LockGuard};
pub use trace::TraceEvent;
pub use wait_queue::WaitQueue;
pub use world::{OwnedSim, Sim};

/// Simulated time in nanoseconds since the simulation began.
pub type Nanos = u64;

/// Nanoseconds in a microsecond.
pub const MICROSECOND: Nanos = 1_000;
/// Nanoseconds in a millisecond.
pub const MILLISECOND: Nanos = 1_000_000;
/// Nanoseconds in a second.
pub const SECOND: Nanos = 1_000_000_000;
