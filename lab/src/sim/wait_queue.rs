//! Threads that wait for something of the lab's own to come true.

use super::sync::Lock;
use super::{Sim, ThreadHandle, current_thread, park};

/// Threads waiting for a condition that whoever changes the state behind it announces.
#[derive(Default)]
pub struct WaitQueue(Lock<Vec<ThreadHandle>>);

impl WaitQueue {
    /// Blocks the current thread until `condition` gives a value. `condition` takes the locks it needs itself. An
    /// `idle` wait may last for ever without being a deadlock.
    ///
    /// # Panics
    /// Outside a thread of a simulation.
    pub fn wait<T>(&self, what: &'static str, idle: bool, mut condition: impl FnMut() -> Option<T>) -> T {
        let thread = current_thread().expect("only a thread of the simulation can wait");
        loop {
            // Registered before looking: a notice between the look and the park is then a permit to go on.
            self.0.lock().push(thread.clone());
            let value = condition();
            if let Some(value) = value {
                self.0.lock().retain(|waiting| waiting.id() != thread.id());
                return value;
            }
            park(what, idle);
            self.0.lock().retain(|waiting| waiting.id() != thread.id());
        }
    }

    /// Lets every waiter look again.
    pub fn notify_all(&self, sim: &Sim) {
        let waiting = std::mem::take(&mut *self.0.lock());
        for thread in &waiting {
            sim.unpark(thread);
        }
    }
}
