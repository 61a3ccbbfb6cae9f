//! The two system threads of the access layer: one for Plug and Play, one for everything else that it does for its
//! clients at PASSIVE_LEVEL (`al_mgr.c`: `gp_async_pnp_mgr`, `gp_async_proc_mgr`). Each does one thing after the
//! other, in order.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use crate::kernel::Machine;
use crate::sim::{self, Lock, ThreadHandle};

type Job = Box<dyn FnOnce() + Send>;

/// A thread with a queue of jobs.
pub struct Worker {
    machine: Machine,
    jobs: Lock<VecDeque<Job>>,
    thread: OnceLock<ThreadHandle>,
}

impl Worker {
    /// Starts the thread.
    pub fn start(machine: &Machine, name: &'static str) -> Arc<Self> {
        let worker =
            Arc::new(Self { machine: machine.clone(), jobs: Lock::default(), thread: OnceLock::new() });
        let run = Arc::clone(&worker);
        let thread = machine.spawn_thread(name, move || run.run());
        // The thread itself never reads this, so it may run before it is set.
        let _ = worker.thread.set(thread);
        worker
    }

    fn run(&self) -> ! {
        loop {
            let job = self.jobs.lock().pop_front();
            match job {
                Some(job) => job(),
                None => sim::park("work for the access layer", true),
            }
        }
    }

    /// Adds a job. May be called in any context.
    pub fn queue(&self, job: impl FnOnce() + Send + 'static) {
        self.jobs.lock().push_back(Box::new(job));
        if let Some(thread) = self.thread.get() {
            self.machine.sim().unpark(thread);
        }
    }

    /// Is the caller this thread? Then it must not wait for one of its jobs.
    pub fn is_current(&self) -> bool {
        match (self.thread.get(), sim::current_thread()) {
            (Some(own), Some(current)) => own.id() == current.id(),
            _ => false,
        }
    }
}
