//! What a simulation is made from.

use super::Nanos;

/// How a simulation runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// One OS thread, virtual time, every interleaving drawn from the seed.
    Deterministic,
    /// An OS thread for each CPU, real monotonic time.
    Threaded,
}

/// Parameters of a simulation.
#[derive(Clone, Debug)]
pub struct SimConfig {
    /// Seed of the one generator; printed with every failure.
    pub seed: u64,
    /// Deterministic or threaded.
    pub mode: Mode,
    /// Probability, in parts of 65536, that a preemption point yields (deterministic mode).
    pub preemption: u16,
    /// CPU time that one preemption point stands for, shared by all CPUs that run (deterministic mode).
    pub point_cost: Nanos,
    /// Bytes of a coroutine's stack, without its guard page.
    pub stack_size: usize,
    /// Steps with no thread or DPC finished, woken or begun and no event fired before a run counts as livelocked.
    pub livelock_steps: u64,
    /// Trace records kept for a report; the hash covers all of them however few are kept.
    pub trace_capacity: usize,
}

impl Default for SimConfig {
    fn default() -> Self {
        Self {
            seed: 1,
            mode: Mode::Deterministic,
            preemption: 1 << 13,
            point_cost: 100,
            stack_size: 256 * 1024,
            livelock_steps: 5_000_000,
            trace_capacity: 4096,
        }
    }
}

impl SimConfig {
    /// The default, deterministic configuration with `seed`.
    pub fn seeded(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    /// The default configuration in threaded mode.
    pub fn threaded(seed: u64) -> Self {
        Self { seed, mode: Mode::Threaded, ..Self::default() }
    }
}
