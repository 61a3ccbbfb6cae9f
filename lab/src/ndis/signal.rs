//! How NDIS and the stacks above wait: for something to happen, for an answer, and for their turn. All of it blocks
//! the calling thread of the simulation, so only PASSIVE_LEVEL code waits; anybody may signal.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::sim::{self, Lock, Nanos, Sim, ThreadHandle};

fn here(what: &str) -> (Sim, ThreadHandle) {
    match (sim::current(), sim::current_thread()) {
        (Some(sim), Some(thread)) => (sim, thread),
        _ => panic!("only a thread of the simulation can wait for {what}"),
    }
}

fn unpark(threads: impl IntoIterator<Item = (Sim, ThreadHandle)>) {
    for (sim, thread) in threads {
        sim.unpark(&thread);
    }
}

#[derive(Default)]
struct SignalState {
    set: bool,
    waiting: Vec<(Sim, ThreadHandle)>,
}

/// Something happened. Setting it twice before anybody looks is setting it once.
#[derive(Clone, Default)]
pub struct Signal(Arc<Lock<SignalState>>);

impl Signal {
    /// Sets it and wakes who waits. Any context.
    pub fn set(&self) {
        let waiting = {
            let mut state = self.0.lock();
            state.set = true;
            std::mem::take(&mut state.waiting)
        };
        unpark(waiting);
    }

    /// Takes it if it is set.
    fn take(&self) -> bool {
        std::mem::take(&mut self.0.lock().set)
    }

    /// Waits until it is set, and clears it. An `idle` wait may last for ever without that being a deadlock.
    pub fn wait(&self, what: &'static str, idle: bool) {
        while !self.park_unless_set(what, idle) {}
    }

    /// Waits until it is set, and clears it, or until `deadline`; false in the latter case.
    pub fn wait_until(&self, what: &'static str, deadline: Nanos) -> bool {
        let (sim, thread) = here(what);
        let wake = sim.at(deadline, "wait", move |sim| sim.unpark(&thread));
        loop {
            if self.park_unless_set(what, true) {
                sim.cancel(wake);
                return true;
            }
            if sim.now() >= deadline {
                return self.take();
            }
        }
    }

    fn park_unless_set(&self, what: &'static str, idle: bool) -> bool {
        let me = here(what);
        {
            let mut state = self.0.lock();
            if std::mem::take(&mut state.set) {
                return true;
            }
            let id = me.1.id();
            if state.waiting.iter().all(|(_, thread)| thread.id() != id) {
                state.waiting.push(me);
            }
        }
        sim::park(what, idle);
        self.take()
    }
}

enum Answer<T> {
    /// Nobody has asked.
    Idle,
    /// Asked, not answered.
    Asked,
    /// Answered, not read.
    Given(T),
}

/// One question at a time and its answer, which may come from any context and before the asker waits for it.
pub struct Completion<T> {
    answer: Lock<Answer<T>>,
    given: Signal,
}

impl<T> Default for Completion<T> {
    fn default() -> Self {
        Self { answer: Lock::new(Answer::Idle), given: Signal::default() }
    }
}

impl<T> Completion<T> {
    /// Asks. Whoever asks has its turn (see [`Turn`]), so nothing is open.
    pub fn ask(&self) {
        *self.answer.lock() = Answer::Asked;
    }

    /// Answers; false if nothing was asked, or it was answered before.
    pub fn give(&self, value: T) -> bool {
        {
            let mut answer = self.answer.lock();
            if !matches!(*answer, Answer::Asked) {
                return false;
            }
            *answer = Answer::Given(value);
        }
        self.given.set();
        true
    }

    /// Takes the question back; the answer if one was given already.
    pub fn withdraw(&self) -> Option<T> {
        match std::mem::replace(&mut *self.answer.lock(), Answer::Idle) {
            Answer::Given(value) => Some(value),
            Answer::Idle | Answer::Asked => None,
        }
    }

    /// Whether an answer is awaited.
    pub fn is_open(&self) -> bool {
        matches!(*self.answer.lock(), Answer::Asked)
    }

    /// Waits for the answer; `None` at the deadline, with the question still open.
    pub fn wait(&self, what: &'static str, deadline: Nanos) -> Option<T> {
        loop {
            {
                let mut answer = self.answer.lock();
                if matches!(*answer, Answer::Given(_))
                    && let Answer::Given(value) = std::mem::replace(&mut *answer, Answer::Idle)
                {
                    return Some(value);
                }
            }
            if !self.given.wait_until(what, deadline) && !matches!(*self.answer.lock(), Answer::Given(_)) {
                return None;
            }
        }
    }
}

#[derive(Default)]
struct TurnState {
    /// The thread whose turn it is.
    holder: Option<u64>,
    queue: VecDeque<(Sim, ThreadHandle)>,
}

/// First come, first served: what NDIS does one at a time.
#[derive(Default)]
pub struct Turn(Lock<TurnState>);

/// The turn, until dropped.
pub struct TurnGuard<'a>(&'a Turn);

impl Turn {
    /// Waits for the turn.
    pub fn take(&self, what: &'static str) -> TurnGuard<'_> {
        let me = here(what);
        let id = me.1.id();
        {
            let mut state = self.0.lock();
            if state.holder.is_none() {
                state.holder = Some(id);
                return TurnGuard(self);
            }
            state.queue.push_back(me);
        }
        while self.0.lock().holder != Some(id) {
            sim::park(what, false);
        }
        TurnGuard(self)
    }

    /// Whether somebody has the turn.
    pub fn is_taken(&self) -> bool {
        self.0.lock().holder.is_some()
    }
}

impl Drop for TurnGuard<'_> {
    fn drop(&mut self) {
        let next = {
            let mut state = self.0.0.lock();
            let next = state.queue.pop_front();
            state.holder = next.as_ref().map(|(_, thread)| thread.id());
            next
        };
        unpark(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::{MILLISECOND, Outcome, SimConfig};

    #[test]
    fn a_completion_given_before_the_wait_is_not_lost() {
        let sim = Sim::owned(SimConfig::seeded(1));
        let cpu = sim.add_cpu("cpu");
        let got = Arc::new(Lock::new(None));
        let result = Arc::clone(&got);
        sim.spawn(&[cpu], "asker", move || {
            let completion = Completion::default();
            assert!(!completion.give(0), "nobody asked");
            completion.ask();
            assert!(completion.give(7));
            assert!(!completion.give(8), "already answered");
            *result.lock() = completion.wait("answer", MILLISECOND);
        });
        assert_eq!(sim.run_until(MILLISECOND, |_| got.lock().is_some()), Outcome::Done);
        assert_eq!(*got.lock(), Some(7));
    }

    #[test]
    fn turns_are_taken_in_the_order_of_asking_and_one_at_a_time() {
        let sim = Sim::owned(SimConfig::seeded(3));
        let cpus = [sim.add_cpu("a"), sim.add_cpu("b")];
        let turn: Arc<Turn> = Arc::default();
        let inside = Arc::new(Lock::new(0));
        let order = Arc::new(Lock::new(Vec::new()));
        for number in 0..4 {
            let (turn, inside, order) = (Arc::clone(&turn), Arc::clone(&inside), Arc::clone(&order));
            sim.spawn(&cpus, format!("worker {number}"), move || {
                sim::sleep(number * 10_000);
                let _turn = turn.take("turn");
                *inside.lock() += 1;
                assert_eq!(*inside.lock(), 1);
                sim::sleep(100_000);
                order.lock().push(number);
                *inside.lock() -= 1;
            });
        }
        assert_eq!(sim.run_until(MILLISECOND, |_| order.lock().len() == 4), Outcome::Done);
        assert_eq!(*order.lock(), [0, 1, 2, 3]);
    }

    #[test]
    fn a_wait_ends_at_its_deadline() {
        let sim = Sim::owned(SimConfig::seeded(1));
        let cpu = sim.add_cpu("cpu");
        let ended = Arc::new(Lock::new(None));
        let result = Arc::clone(&ended);
        sim.spawn(&[cpu], "waiter", move || {
            *result.lock() = Some(Signal::default().wait_until("nothing", 500_000));
        });
        assert_eq!(sim.run_until(MILLISECOND, |_| ended.lock().is_some()), Outcome::Done);
        assert_eq!(*ended.lock(), Some(false));
    }
}
