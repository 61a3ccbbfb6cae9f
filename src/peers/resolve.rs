//! Path resolution of one destination, as a pure state machine.

use super::time::Time;

/// How patient resolution is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Failures after which the waiting packets are refused.
    pub tries: u8,
    /// Milliseconds from the first failure to the next try; doubled with each further failure.
    pub first_retry: u32,
    /// The longest such time, in milliseconds.
    pub max_retry: u32,
    /// Milliseconds for which a destination that failed is not tried again.
    pub hold: u32,
}

impl Policy {
    /// The access layer repeats a query by itself; these are tries beyond that.
    pub const DEFAULT: Self = Self { tries: 3, first_retry: 250, max_retry: 4_000, hold: 1_000 };

    /// The time to wait after failure number `failures`, from 1.
    pub const fn backoff(&self, failures: u8) -> u32 {
        let doubled =
            self.first_retry.saturating_mul(1 << if failures > 16 { 15 } else { failures.saturating_sub(1) });
        if doubled < self.max_retry { doubled } else { self.max_retry }
    }
}

/// Where resolution stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing is known and nobody asks.
    Idle,
    /// The worker is to ask.
    QueryDue,
    /// A query is outstanding.
    Querying,
    /// The path is known; the worker is to make the address handle.
    AvDue,
    /// The worker is making it.
    CreatingAv,
    /// Packets can be sent.
    Resolved,
    /// The last try failed; the next is at that time. Packets wait.
    Retry(Time),
    /// Given up until that time. Packets are refused.
    Failed(Time),
}

/// Resolution of one destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resolution {
    /// Where it stands.
    pub state: State,
    /// Failures since the last success.
    pub failures: u8,
    /// Which piece of work is meant by an answer. An answer to an earlier one is late.
    pub round: u32,
}

/// Why a query gave no path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Failure {
    /// The subnet administrator says that there is none.
    NoRecord,
    /// No answer, or the request could not be made.
    NoAnswer,
    /// An answer that is not to the question, or makes no sense.
    Wrong,
}

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A packet wants to go there.
    Wanted,
    /// What is known may be wrong: LIDs changed, or the peer contradicted it.
    Doubted,
    /// The worker took the work that was due.
    Taken,
    /// A path that is not the one the address handle was made from.
    NewPath,
    /// The path that the address handle was made from.
    SamePath,
    /// No path, or no address handle.
    Failed(Failure),
    /// The address handle is there.
    AvCreated,
    /// Time has passed.
    Tick,
    /// Forget everything; whatever is outstanding is late.
    Reset,
}

/// What the caller is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing.
    Nothing,
    /// Put the destination on the worker's list.
    Work,
    /// Put it among those that wait for time to pass.
    Wait,
    /// The queue may be sent.
    Flush,
    /// Refuse the queue.
    Refuse {
        /// The address handle, if there is one, leads nowhere.
        drop_av: bool,
    },
}

impl Resolution {
    /// Nothing known.
    pub const NEW: Self = Self { state: State::Idle, failures: 0, round: 0 };

    /// Whether packets queue rather than being refused, given that there is no address handle.
    pub const fn queues(&self) -> bool {
        !matches!(self.state, State::Failed(_) | State::Idle)
    }

    /// Whether nothing is due or outstanding.
    pub const fn is_quiet(&self) -> bool {
        matches!(self.state, State::Idle | State::Resolved | State::Failed(_))
    }

    /// When [`Event::Tick`] will change something.
    pub const fn deadline(&self) -> Option<Time> {
        if let State::Retry(at) = self.state { Some(at) } else { None }
    }

    const fn to(&mut self, state: State, action: Action) -> Action {
        self.state = state;
        action
    }

    /// Takes an event. Events that the state does not expect change nothing.
    pub fn step(&mut self, event: Event, now: Time, policy: &Policy) -> Action {
        match (self.state, event) {
            (State::Failed(until), Event::Wanted) if now < until => Action::Refuse { drop_av: false },
            (State::Idle | State::Failed(_), Event::Wanted) => {
                self.failures = 0;
                self.to(State::QueryDue, Action::Work)
            }
            (State::Retry(at), Event::Tick) if now >= at => self.to(State::QueryDue, Action::Work),
            (State::Idle, Event::Doubted) => Action::Nothing,
            (_, Event::Doubted) => {
                self.failures = 0;
                self.round = self.round.wrapping_add(1);
                self.to(State::QueryDue, Action::Work)
            }
            (State::QueryDue, Event::Taken) => {
                self.round = self.round.wrapping_add(1);
                self.to(State::Querying, Action::Nothing)
            }
            (State::AvDue, Event::Taken) => {
                self.round = self.round.wrapping_add(1);
                self.to(State::CreatingAv, Action::Nothing)
            }
            (State::Querying, Event::NewPath) => self.to(State::AvDue, Action::Work),
            (State::Querying, Event::SamePath) | (State::CreatingAv, Event::AvCreated) => {
                self.failures = 0;
                self.to(State::Resolved, Action::Flush)
            }
            (State::Querying | State::CreatingAv, Event::Failed(failure)) => {
                self.failures = self.failures.saturating_add(1);
                if self.failures < policy.tries {
                    self.to(State::Retry(now + policy.backoff(self.failures)), Action::Wait)
                } else {
                    let drop_av = matches!(failure, Failure::NoRecord);
                    self.to(State::Failed(now + policy.hold), Action::Refuse { drop_av })
                }
            }
            (_, Event::Reset) => {
                self.round = self.round.wrapping_add(1);
                self.failures = 0;
                self.to(State::Idle, Action::Nothing)
            }
            _ => Action::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: Policy = Policy { tries: 3, first_retry: 100, max_retry: 300, hold: 1000 };
    const T0: Time = Time::from_millis(5_000);

    fn at(millis: u32) -> Time {
        T0 + millis
    }

    fn run(resolution: &mut Resolution, events: &[(Event, Action, State)]) {
        for &(event, action, state) in events {
            assert_eq!(resolution.step(event, T0, &POLICY), action, "{event:?}");
            assert_eq!(resolution.state, state, "{event:?}");
        }
    }

    fn querying() -> Resolution {
        let mut resolution = Resolution::NEW;
        run(
            &mut resolution,
            &[
                (Event::Wanted, Action::Work, State::QueryDue),
                (Event::Taken, Action::Nothing, State::Querying),
            ],
        );
        resolution
    }

    #[test]
    fn a_path_then_a_handle_then_the_queue() {
        run(
            &mut querying(),
            &[
                (Event::Wanted, Action::Nothing, State::Querying),
                (Event::NewPath, Action::Work, State::AvDue),
                (Event::Taken, Action::Nothing, State::CreatingAv),
                (Event::AvCreated, Action::Flush, State::Resolved),
                (Event::Wanted, Action::Nothing, State::Resolved),
            ],
        );
    }

    #[test]
    fn failures_are_retried_with_growing_patience_then_refused() {
        let mut resolution = querying();
        let failed = Event::Failed(Failure::NoAnswer);
        assert_eq!(resolution.step(failed, T0, &POLICY), Action::Wait);
        assert_eq!(resolution.deadline(), Some(at(100)));
        assert_eq!(resolution.step(Event::Tick, at(99), &POLICY), Action::Nothing);
        assert_eq!(resolution.step(Event::Tick, at(100), &POLICY), Action::Work);
        resolution.step(Event::Taken, at(100), &POLICY);
        assert_eq!(resolution.step(failed, at(100), &POLICY), Action::Wait);
        assert_eq!(resolution.deadline(), Some(at(300)), "twice as long");
        resolution.step(Event::Tick, at(300), &POLICY);
        resolution.step(Event::Taken, at(300), &POLICY);
        assert_eq!(resolution.step(failed, at(300), &POLICY), Action::Refuse { drop_av: false });
        assert_eq!(resolution.step(Event::Wanted, at(1299), &POLICY), Action::Refuse { drop_av: false });
        assert_eq!(resolution.step(Event::Wanted, at(1300), &POLICY), Action::Work);
    }

    #[test]
    fn only_an_administrator_that_says_no_takes_a_working_handle_away() {
        for (failure, drop_av) in
            [(Failure::NoRecord, true), (Failure::NoAnswer, false), (Failure::Wrong, false)]
        {
            let mut resolution = Resolution { failures: POLICY.tries - 1, ..querying() };
            assert_eq!(resolution.step(Event::Failed(failure), T0, &POLICY), Action::Refuse { drop_av });
        }
    }

    #[test]
    fn doubt_makes_outstanding_answers_late() {
        let mut resolution = querying();
        let round = resolution.round;
        run(&mut resolution, &[(Event::Doubted, Action::Work, State::QueryDue)]);
        assert_ne!(resolution.round, round);
        let mut unknown = Resolution::NEW;
        run(&mut unknown, &[(Event::Doubted, Action::Nothing, State::Idle)]);
    }

    #[test]
    fn backoff_has_a_ceiling_and_does_not_overflow() {
        assert_eq!([1, 2, 3, 200].map(|failures| POLICY.backoff(failures)), [100, 200, 300, 300]);
        let steep = Policy { first_retry: u32::MAX, max_retry: u32::MAX, ..POLICY };
        assert_eq!(steep.backoff(u8::MAX), u32::MAX);
    }

    /// From every state, answers that nobody asked for change nothing.
    #[test]
    fn unexpected_answers_are_ignored() {
        for state in
            [State::Idle, State::QueryDue, State::AvDue, State::Resolved, State::Retry(T0), State::Failed(T0)]
        {
            for event in [Event::NewPath, Event::SamePath, Event::AvCreated, Event::Failed(Failure::NoRecord)]
            {
                let before = Resolution { state, failures: 1, round: 7 };
                let mut after = before;
                assert_eq!(after.step(event, T0, &POLICY), Action::Nothing);
                assert_eq!(after, before);
            }
        }
    }
}
