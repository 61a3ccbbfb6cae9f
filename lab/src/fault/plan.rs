//! Which calls fail.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Site;
use crate::sim::{Lock, Sim};

/// A plan of failures.
#[derive(Clone, Default)]
pub enum Plan {
    /// Nothing fails.
    #[default]
    Never,
    /// The calls of `call` numbered `from..from + count` fail, counted from 0 when the plan is set.
    Count {
        /// Name of the export.
        call: &'static str,
        /// First call that fails.
        from: u64,
        /// How many fail.
        count: u64,
    },
    /// Each call fails with this probability, in parts of 65536; only those of `call` if one is given.
    Chance {
        /// Parts of 65536.
        parts: u16,
        /// Name of the only export that fails.
        call: Option<&'static str>,
    },
    /// The first call from this site fails: what a sweep found, again. [`SiteReport::id`] names it.
    Site(u64),
    /// One call in the run fails: the first whose site the sweep has not failed before.
    Sweep(Sweep),
}

/// Fails every site once, one in each run, over as many runs as there are sites. Shared by those runs.
#[derive(Clone, Default)]
pub struct Sweep(Arc<Lock<SweepState>>);

#[derive(Default)]
struct SweepState {
    sites: BTreeMap<u64, SiteReport>,
    failed: BTreeSet<u64>,
    failed_in_this_run: Option<u64>,
}

/// A fallible call site that a run has reached.
#[derive(Clone, Debug)]
pub struct SiteReport {
    /// Name of the export.
    pub call: &'static str,
    /// Times it was reached.
    pub hits: u64,
    /// Whether it was made to fail.
    pub failed: bool,
    site: Site,
}

impl SiteReport {
    /// A number for the site that is the same in every run of the same executable.
    pub fn id(&self) -> u64 {
        self.site.id()
    }

    /// The call stack, innermost first.
    pub fn stack(&self) -> Vec<String> {
        self.site.frames()
    }
}

impl Sweep {
    /// An empty sweep.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins the next run; gives true if the run before failed a site, so that another is worth making.
    pub fn next_run(&self) -> bool {
        self.0.lock().failed_in_this_run.take().is_some()
    }

    /// The site that failed in this run.
    pub fn failed_site(&self) -> Option<SiteReport> {
        let state = self.0.lock();
        state.failed_in_this_run.and_then(|id| state.sites.get(&id).cloned())
    }

    /// All sites reached so far.
    pub fn sites(&self) -> Vec<SiteReport> {
        self.0.lock().sites.values().cloned().collect()
    }

    fn decide(&self, call: &'static str, site: Site) -> bool {
        let id = site.id();
        let mut state = self.0.lock();
        let report = state.sites.entry(id).or_insert(SiteReport { call, hits: 0, failed: false, site });
        report.hits += 1;
        let fail = state.failed_in_this_run.is_none() && state.failed.insert(id);
        if fail {
            state.failed_in_this_run = Some(id);
            if let Some(report) = state.sites.get_mut(&id) {
                report.failed = true;
            }
        }
        fail
    }
}

/// The failures of one machine.
#[derive(Default)]
pub struct Faults(Lock<State>);

#[derive(Default)]
struct State {
    plan: Plan,
    calls: BTreeMap<&'static str, u64>,
    injected: u64,
}

impl Faults {
    /// Sets the plan and starts counting anew.
    pub fn set(&self, plan: Plan) {
        *self.0.lock() = State { plan, ..State::default() };
    }

    /// Failures injected since the plan was set.
    pub fn injected(&self) -> u64 {
        self.0.lock().injected
    }

    /// Fallible calls made since the plan was set, by name.
    pub fn calls(&self) -> BTreeMap<&'static str, u64> {
        self.0.lock().calls.clone()
    }

    pub(super) fn decide(&self, sim: &Sim, call: &'static str) -> bool {
        let mut state = self.0.lock();
        // Taken at one place for every plan, so that a site has the same frames whichever plan asks.
        let site = matches!(state.plan, Plan::Site(_) | Plan::Sweep(_)).then(Site::here);
        let count = state.calls.entry(call).or_insert(0);
        let number = *count;
        *count += 1;
        let fail = match &state.plan {
            Plan::Never => false,
            Plan::Count { call: only, from, count } => {
                *only == call && number >= *from && number - from < *count
            }
            Plan::Chance { parts, call: only } => {
                only.is_none_or(|only| only == call) && sim.rng(|rng| rng.chance(*parts))
            }
            Plan::Site(id) => state.injected == 0 && site.is_some_and(|site| site.id() == *id),
            Plan::Sweep(sweep) => site.is_some_and(|site| sweep.decide(call, site)),
        };
        state.injected += u64::from(fail);
        fail
    }
}
