//! One multicast group, and its membership as a pure state machine.

use super::av::AvId;
use super::fifo::Hook;
use super::path::Path;
use super::pending::Queue;
use super::resolve::Policy;
use super::time::Time;
use crate::ipoib::{Mgid, PKey};

/// What a port is in a group (IBTA volume 1, 15.2.5.17, JoinState).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Receives and sends. The group is created if it does not exist.
    Full,
    /// Only sends (SendOnlyNonMember): the switches route from here, not to here. A group that does not exist
    /// is not created: nobody listens.
    SendOnly,
}

impl Role {
    const fn covers(self, wanted: Self) -> bool {
        matches!((self, wanted), (Self::Full, _) | (Self::SendOnly, Self::SendOnly))
    }
}

/// What the subnet administrator says of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// How packets get there. The LID is the group's.
    pub path: Path,
    /// Q_Key of its packets.
    pub qkey: u32,
    /// Its partition.
    pub pkey: PKey,
}

/// Where membership stands. At most one operation of a group is outstanding: a leave that overtook the join
/// which replaced it would end the new membership.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No member, nothing outstanding.
    Out,
    /// The worker is to join.
    JoinDue(Role),
    /// A join is outstanding.
    Joining(Role),
    /// Joined; the worker is to make the address handle.
    AvDue(Role),
    /// The worker is making it.
    CreatingAv(Role),
    /// Packets can be sent, and come if the role is full.
    Joined(Role),
    /// The worker is to leave.
    LeaveDue,
    /// A leave is outstanding.
    Leaving,
    /// The last join failed; the next is at that time.
    Retry(Time),
}

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// What is wanted may have changed.
    Settle,
    /// The worker took the work that was due.
    Taken,
    /// The join succeeded.
    Joined,
    /// The join, or making the address handle, failed.
    Failed,
    /// The address handle is there.
    AvCreated,
    /// The leave is over, well or not.
    Left,
    /// Time has passed.
    Tick,
}

/// What the caller is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing.
    Nothing,
    /// Put the group on the worker's list.
    Work,
    /// Put it among those that wait for time to pass.
    Wait,
    /// The queue may be sent.
    Flush,
}

/// Membership of one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Membership {
    /// Where it stands.
    pub state: State,
    /// Somebody here listens.
    pub listening: bool,
    /// Somebody here sends.
    pub sending: bool,
    /// The membership that there is counts for nothing: the subnet administrator has forgotten it.
    pub lost: bool,
    /// Failures since the last success.
    pub failures: u8,
    /// Which piece of work is meant by an answer.
    pub round: u32,
}

impl Membership {
    /// No member, not wanted.
    pub const NEW: Self =
        Self { state: State::Out, listening: false, sending: false, lost: false, failures: 0, round: 0 };

    /// What is wanted.
    pub const fn wanted(&self) -> Option<Role> {
        if self.listening {
            Some(Role::Full)
        } else if self.sending {
            Some(Role::SendOnly)
        } else {
            None
        }
    }

    /// Whether nothing is due or outstanding.
    pub const fn is_quiet(&self) -> bool {
        matches!(self.state, State::Out | State::Joined(_))
    }

    /// When [`Event::Tick`] will change something.
    pub const fn deadline(&self) -> Option<Time> {
        if let State::Retry(at) = self.state { Some(at) } else { None }
    }

    /// Whether packets may be sent now.
    pub const fn is_open(&self) -> bool {
        matches!(self.state, State::Joined(_)) && !self.lost
    }

    fn taken(&mut self, state: State) -> Action {
        self.round = self.round.wrapping_add(1);
        self.state = state;
        Action::Nothing
    }

    /// Compares what is wanted with what is, where nothing is outstanding.
    fn settle(&mut self, otherwise: Action) -> Action {
        match (self.state, self.wanted()) {
            (State::Joined(role), wanted)
                if self.lost || wanted.is_none_or(|wanted| !role.covers(wanted)) =>
            {
                self.state = State::LeaveDue;
                Action::Work
            }
            (State::Out, Some(role)) => {
                self.lost = false;
                self.state = State::JoinDue(role);
                Action::Work
            }
            (State::JoinDue(_), Some(role)) => {
                self.state = State::JoinDue(role);
                otherwise
            }
            (State::JoinDue(_) | State::Retry(_), None) => {
                self.failures = 0;
                self.state = State::Out;
                otherwise
            }
            _ => otherwise,
        }
    }

    /// Takes an event. Events that the state does not expect change nothing.
    pub fn step(&mut self, event: Event, now: Time, policy: &Policy) -> Action {
        match (self.state, event) {
            (_, Event::Settle) => self.settle(Action::Nothing),
            (State::JoinDue(role), Event::Taken) => {
                self.lost = false;
                self.taken(State::Joining(role))
            }
            (State::AvDue(role), Event::Taken) => self.taken(State::CreatingAv(role)),
            (State::LeaveDue, Event::Taken) => self.taken(State::Leaving),
            (State::Joining(role), Event::Joined) => {
                let useless = self.lost || self.wanted().is_none();
                self.state = if useless { State::LeaveDue } else { State::AvDue(role) };
                Action::Work
            }
            (State::CreatingAv(role), Event::AvCreated) => {
                self.failures = 0;
                self.state = State::Joined(role);
                self.settle(Action::Flush)
            }
            (State::CreatingAv(_), Event::Failed) => {
                // Joined, but of no use without a handle: leave, and try again from the start.
                self.failures = self.failures.saturating_add(1);
                self.state = State::LeaveDue;
                Action::Work
            }
            (State::Joining(_), Event::Failed) => {
                self.failures = self.failures.saturating_add(1);
                self.after_failure(now, policy)
            }
            (State::Leaving, Event::Left) if self.failures > 0 => self.after_failure(now, policy),
            (State::Leaving, Event::Left) => {
                self.state = State::Out;
                self.settle(Action::Nothing)
            }
            (State::Retry(at), Event::Tick) if now >= at => {
                // A group that nobody listens to is asked for again when it is sent to again.
                self.sending = false;
                self.state = State::Out;
                self.settle(Action::Nothing)
            }
            _ => Action::Nothing,
        }
    }

    fn after_failure(&mut self, now: Time, policy: &Policy) -> Action {
        self.state = State::Retry(now + policy.backoff(self.failures));
        self.settle(Action::Wait)
    }
}

/// A group.
#[derive(Debug)]
pub(super) struct Group<J> {
    /// Its MGID.
    pub mgid: Mgid,
    /// The broadcast group, whose membership somebody else keeps.
    pub pinned: bool,
    /// Membership.
    pub membership: Membership,
    /// The access layer's handle of the membership.
    pub handle: Option<J>,
    /// The address handle.
    pub av: Option<AvId>,
    /// What the subnet administrator said.
    pub record: Option<Record>,
    /// Packets that wait.
    pub pending: Queue,
    /// When it was last sent to.
    pub last_sent: Time,
    /// Seen by the reconciliation under way.
    pub marked: bool,
    /// In the worker's list.
    pub work: Hook,
    /// In the list of those that wait for time to pass.
    pub waiting: Hook,
    /// In the list of those whose queue may be sent.
    pub ready: Hook,
}

impl<J> Group<J> {
    pub(super) const fn new(mgid: Mgid, now: Time) -> Self {
        Self {
            mgid,
            pinned: false,
            membership: Membership::NEW,
            handle: None,
            av: None,
            record: None,
            pending: Queue::NEW,
            last_sent: now,
            marked: false,
            work: Hook::NEW,
            waiting: Hook::NEW,
            ready: Hook::NEW,
        }
    }

    /// Whether it can be taken out of the pool.
    pub(super) const fn is_idle(&self) -> bool {
        !self.pinned
            && matches!(self.membership.state, State::Out)
            && self.membership.wanted().is_none()
            && self.handle.is_none()
            && self.pending.is_empty()
            && !self.work.is_listed()
            && !self.waiting.is_listed()
            && !self.ready.is_listed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: Policy = Policy { tries: 3, first_retry: 100, max_retry: 400, hold: 1000 };
    const T0: Time = Time::from_millis(1_000);

    fn run(membership: &mut Membership, events: &[(Event, Action, State)]) {
        for &(event, action, state) in events {
            assert_eq!(membership.step(event, T0, &POLICY), action, "{event:?}");
            assert_eq!(membership.state, state, "{event:?}");
        }
    }

    fn joined(role: Role) -> Membership {
        let listening = role == Role::Full;
        let mut membership = Membership { listening, sending: !listening, ..Membership::NEW };
        run(
            &mut membership,
            &[
                (Event::Settle, Action::Work, State::JoinDue(role)),
                (Event::Taken, Action::Nothing, State::Joining(role)),
                (Event::Joined, Action::Work, State::AvDue(role)),
                (Event::Taken, Action::Nothing, State::CreatingAv(role)),
                (Event::AvCreated, Action::Flush, State::Joined(role)),
            ],
        );
        assert!(membership.is_open());
        membership
    }

    const LEAVE: [(Event, Action, State); 2] =
        [(Event::Settle, Action::Work, State::LeaveDue), (Event::Taken, Action::Nothing, State::Leaving)];

    #[test]
    fn who_listens_to_a_group_it_sends_to_leaves_and_joins_for_both() {
        let mut membership = Membership { listening: true, ..joined(Role::SendOnly) };
        run(&mut membership, &LEAVE);
        run(&mut membership, &[(Event::Left, Action::Work, State::JoinDue(Role::Full))]);
    }

    #[test]
    fn a_full_member_may_send_and_one_that_only_sends_no_more_leaves() {
        let mut membership = Membership { sending: true, ..joined(Role::Full) };
        run(&mut membership, &[(Event::Settle, Action::Nothing, State::Joined(Role::Full))]);
        let mut membership = Membership { sending: false, ..joined(Role::SendOnly) };
        run(&mut membership, &LEAVE);
        run(&mut membership, &[(Event::Left, Action::Nothing, State::Out)]);
    }

    #[test]
    fn a_membership_that_was_lost_is_had_anew() {
        let mut membership = Membership { lost: true, ..joined(Role::Full) };
        assert!(!membership.is_open());
        run(&mut membership, &LEAVE);
        run(&mut membership, &[(Event::Left, Action::Work, State::JoinDue(Role::Full))]);
        assert!(!membership.lost);
    }

    #[test]
    fn a_join_that_nobody_wants_any_more_is_left_again() {
        let mut membership = Membership { listening: true, ..Membership::NEW };
        membership.step(Event::Settle, T0, &POLICY);
        membership.step(Event::Taken, T0, &POLICY);
        membership.listening = false;
        run(
            &mut membership,
            &[
                (Event::Settle, Action::Nothing, State::Joining(Role::Full)),
                (Event::Joined, Action::Work, State::LeaveDue),
            ],
        );
    }

    #[test]
    fn failed_joins_are_retried_for_listeners_and_await_the_next_packet_for_senders() {
        for (role, action, state) in [
            (Role::Full, Action::Work, State::JoinDue(Role::Full)),
            (Role::SendOnly, Action::Nothing, State::Out),
        ] {
            let listening = role == Role::Full;
            let mut membership = Membership { listening, sending: !listening, ..Membership::NEW };
            membership.step(Event::Settle, T0, &POLICY);
            membership.step(Event::Taken, T0, &POLICY);
            let retry = State::Retry(T0 + 100);
            run(
                &mut membership,
                &[(Event::Failed, Action::Wait, retry), (Event::Tick, Action::Nothing, retry)],
            );
            assert_eq!(membership.step(Event::Tick, T0 + 100, &POLICY), action);
            assert_eq!((membership.state, membership.failures), (state, 1), "patience grows all the same");
        }
    }

    #[test]
    fn a_handle_that_cannot_be_made_gives_the_membership_up_for_a_while() {
        let mut membership =
            Membership { state: State::CreatingAv(Role::Full), listening: true, ..Membership::NEW };
        run(
            &mut membership,
            &[
                (Event::Failed, Action::Work, State::LeaveDue),
                (Event::Taken, Action::Nothing, State::Leaving),
                (Event::Left, Action::Wait, State::Retry(T0 + 100)),
            ],
        );
    }
}
