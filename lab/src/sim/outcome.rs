//! How a run ends.

use std::fmt;

use super::Nanos;

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Name of the rule, as in the verifier's table.
    pub rule: &'static str,
    /// The kernel call or callback in which it was broken.
    pub call: String,
    /// What was wrong, with values.
    pub detail: String,
    /// When.
    pub at: Nanos,
    /// Thread or DPC and CPU that broke it.
    pub context: String,
    /// Seed that replays the run.
    pub seed: u64,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, call, detail, at, context, seed } = self;
        write!(f, "{rule} in {call}: {detail} [at {at} ns, {context}, seed {seed}]")
    }
}

/// Why `run_until` returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The condition came true.
    Done,
    /// Time reached the deadline first.
    Deadline,
    /// Nothing can run, no event is pending, and all that waits may wait for ever.
    Idle,
    /// Nothing can run, and something waits that must be woken, or spins on a lock nobody will release.
    Deadlock(String),
    /// Something runs and runs and nothing comes of it.
    Livelock(String),
    /// A rule was broken.
    Violation(Violation),
    /// The code of the lab itself panicked.
    Panic(String),
}

impl Outcome {
    /// True for the outcomes after which the simulation cannot go on.
    pub fn is_failure(&self) -> bool {
        matches!(self, Self::Deadlock(_) | Self::Livelock(_) | Self::Violation(_) | Self::Panic(_))
    }

    /// The name of the broken rule, if that is why the run ended.
    pub fn rule(&self) -> Option<&'static str> {
        match self {
            Self::Violation(violation) => Some(violation.rule),
            _ => None,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("done"),
            Self::Deadline => f.write_str("deadline reached"),
            Self::Idle => f.write_str("idle"),
            Self::Deadlock(what) => write!(f, "deadlock: {what}"),
            Self::Livelock(what) => write!(f, "livelock: {what}"),
            Self::Violation(violation) => write!(f, "violation: {violation}"),
            Self::Panic(what) => write!(f, "panic in the lab: {what}"),
        }
    }
}
