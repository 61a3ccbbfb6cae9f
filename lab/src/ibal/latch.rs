//! A thread that waits for one thing to have happened.

use crate::sim::{self, Lock, ThreadHandle};

#[derive(Default)]
struct State {
    open: bool,
    waiting: Vec<ThreadHandle>,
}

/// Opens once; whoever waits, or comes later, passes.
#[derive(Default)]
pub struct Latch(Lock<State>);

impl Latch {
    /// Opens it. May be called in any context.
    pub fn open(&self) {
        let waiting = {
            let mut state = self.0.lock();
            state.open = true;
            std::mem::take(&mut state.waiting)
        };
        if let Some(sim) = sim::current() {
            for thread in waiting {
                sim.unpark(&thread);
            }
        }
    }

    /// Waits until it is open. Only a thread of a machine can.
    pub fn wait(&self, what: &'static str) {
        loop {
            {
                let mut state = self.0.lock();
                if state.open {
                    return;
                }
                state.waiting.extend(sim::current_thread());
            }
            sim::park(what, false);
        }
    }
}
