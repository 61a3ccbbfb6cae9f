//! The state machine against a model of the world that it drives: every reachable pair of machine and world,
//! times every event, so the rules hold over event sequences of any length.

extern crate std;
use super::*;
use std::collections::{HashMap, HashSet, VecDeque};
use std::vec::Vec;

/// What the actions did so far, as a mock executor sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct World {
    qp_up: bool,
    /// A join or a leave whose end has not been reported.
    outstanding: Outstanding,
    member: bool,
    link_up: bool,
    retry_armed: bool,
    sends_open: bool,
    receives_open: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Outstanding {
    None,
    Join,
    Leave,
}

impl World {
    const INITIAL: Self = Self {
        qp_up: false,
        outstanding: Outstanding::None,
        member: false,
        link_up: false,
        retry_armed: false,
        sends_open: false,
        receives_open: false,
    };

    /// Carries one action out and checks that it was allowed.
    fn carry_out(&mut self, action: Action, trail: &str) {
        match action {
            Action::CloseSends => self.sends_open = false,
            Action::OpenSends => self.sends_open = true,
            Action::CloseReceives => self.receives_open = false,
            Action::OpenReceives => self.receives_open = true,
            Action::IndicateLinkDown => self.link_up = false,
            Action::IndicateLinkUp => {
                assert!(self.qp_up && self.member, "link up without QP or group: {trail}");
                assert!(!self.link_up, "link indicated up twice: {trail}");
                self.link_up = true;
            }
            Action::LeaveGroups => {
                assert_eq!(self.outstanding, Outstanding::None, "leave over an open operation: {trail}");
                assert!(self.member, "left a group that was not joined: {trail}");
                self.member = false;
                self.outstanding = Outstanding::Leave;
            }
            Action::JoinBroadcast => {
                assert_eq!(self.outstanding, Outstanding::None, "join over an open operation: {trail}");
                assert!(self.qp_up && !self.member && !self.retry_armed, "join out of order: {trail}");
                self.outstanding = Outstanding::Join;
            }
            Action::StartRetry => {
                assert!(!self.retry_armed, "timer set twice: {trail}");
                self.retry_armed = true;
            }
            Action::CancelRetry => {
                assert!(self.retry_armed, "timer cancelled that was not set: {trail}");
                self.retry_armed = false;
            }
            Action::TakeQpDown => {
                assert!(!self.link_up, "QP taken down under a live link: {trail}");
                assert!(!self.member, "QP taken down while a member: {trail}");
                self.qp_up = false;
            }
            Action::BringQpUp => {
                assert!(!self.qp_up, "QP brought up twice: {trail}");
                self.qp_up = true;
            }
            Action::ApplyGroup => assert!(self.member, "group parameters of no group: {trail}"),
            Action::RefreshPort | Action::ExpirePaths | Action::CompleteReset | Action::ReportHung => {}
        }
    }

    /// Whether the world can produce this event now; `None` where it cannot.
    fn receive(mut self, event: Event) -> Option<Self> {
        match event {
            Event::JoinDone => (self.outstanding == Outstanding::Join).then(|| {
                self.outstanding = Outstanding::None;
                self.member = true;
                self
            }),
            Event::JoinRefused | Event::JoinTimedOut => (self.outstanding == Outstanding::Join).then(|| {
                self.outstanding = Outstanding::None;
                self
            }),
            Event::LeaveDone => (self.outstanding == Outstanding::Leave).then(|| {
                self.outstanding = Outstanding::None;
                self
            }),
            Event::RetryDue => self.retry_armed.then(|| {
                self.retry_armed = false;
                self
            }),
            _ => Some(self),
        }
    }
}

/// All reachable (machine, world) pairs with the event that led to each.
fn explore(mut visit: impl FnMut(State, World, Event, State, World, &Actions)) -> HashSet<(State, World)> {
    let start = (State::INITIAL, World::INITIAL);
    let mut seen = HashSet::from([start]);
    let mut queue = VecDeque::from([start]);
    while let Some((state, world)) = queue.pop_front() {
        for event in Event::ALL {
            let Some(mut after) = world.receive(event) else { continue };
            let (next, actions) = step(state, event);
            let trail = std::format!("{state:?} + {event:?} -> {:?}", actions.iter().collect::<Vec<_>>());
            for action in actions.iter() {
                after.carry_out(action, &trail);
            }
            visit(state, world, event, next, after, &actions);
            if seen.insert((next, after)) {
                queue.push_back((next, after));
            }
        }
    }
    seen
}

fn run(events: &[Event]) -> (State, Vec<Action>) {
    events.iter().fold((State::INITIAL, Vec::new()), |(state, _), &event| {
        let (next, actions) = step(state, event);
        (next, actions.iter().collect())
    })
}

#[test]
fn machine_and_world_agree_in_every_reachable_state() {
    let mut pairs = 0usize;
    let seen = explore(|_, _, event, next, world, _| {
        pairs += 1;
        assert_eq!(world.link_up, next.link == Link::Up, "{event:?} {next:?}");
        assert_eq!(world.qp_up, next.qp != Qp::Reset, "{event:?} {next:?}");
        assert_eq!(world.member, next.group == Group::Joined, "{event:?} {next:?}");
        assert_eq!(world.retry_armed, next.group == Group::Backoff, "{event:?} {next:?}");
        let outstanding = match next.group {
            Group::Joining | Group::Stale => Outstanding::Join,
            Group::Leaving => Outstanding::Leave,
            Group::Idle | Group::Joined | Group::Backoff => Outstanding::None,
        };
        assert_eq!(world.outstanding, outstanding, "{event:?} {next:?}");
        if next.ndis != Ndis::Shutdown {
            assert_eq!(world.sends_open, next.ndis == Ndis::Running, "{event:?} {next:?}");
            assert_eq!(world.receives_open, next.ndis == Ndis::Running, "{event:?} {next:?}");
        }
    });
    assert!(seen.len() > 100 && pairs > 2_000, "the exploration is not trivial: {} {pairs}", seen.len());
}

#[test]
fn action_lists_never_overflow() {
    explore(|_, _, _, _, _, actions| assert!(actions.len() < Actions::CAPACITY));
}

#[test]
fn every_pair_of_state_and_event_is_defined() {
    // Also the pairs that no sequence reaches: a callback out of order must not break the invariants that the
    // executor relies on.
    let mut count = 0u32;
    for ndis in [Ndis::Paused, Ndis::Running, Ndis::Halted, Ndis::Shutdown] {
        for port in [Port::Absent, Port::Down, Port::Active] {
            for qp in [Qp::Reset, Qp::Ready, Qp::Error] {
                for group in
                    [Group::Idle, Group::Joining, Group::Stale, Group::Joined, Group::Leaving, Group::Backoff]
                {
                    for link in [Link::Down, Link::Up] {
                        for power in [Power::Working, Power::Sleeping] {
                            for removed in [false, true] {
                                let state = State { ndis, port, qp, group, link, power, removed };
                                for event in Event::ALL {
                                    count += 1;
                                    let (next, actions) = step(state, event);
                                    assert!(actions.len() < Actions::CAPACITY);
                                    if next.ndis != Ndis::Shutdown && !next.is_wanted_up() && next != state {
                                        assert_eq!(next.qp, Qp::Reset, "{state:?} {event:?}");
                                        assert_ne!(next.group, Group::Joined, "{state:?} {event:?}");
                                    }
                                    if next.link == Link::Up && state.link == Link::Down {
                                        assert!(next.is_wanted_up(), "{state:?} {event:?}");
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
    assert_eq!(count, 4 * 3 * 3 * 6 * 2 * 2 * 2 * 30);
}

/// All sequences to this depth, without merging states: the same rules by brute force.
#[test]
fn every_sequence_to_depth_four_keeps_the_rules() {
    fn descend(state: State, world: World, depth: u32, count: &mut u64) {
        *count += 1;
        if depth == 0 {
            return;
        }
        for event in Event::ALL {
            let Some(mut after) = world.receive(event) else { continue };
            let (next, actions) = step(state, event);
            for action in actions.iter() {
                after.carry_out(action, "depth-first");
            }
            descend(next, after, depth - 1, count);
        }
    }
    let mut count = 0;
    descend(State::INITIAL, World::INITIAL, 4, &mut count);
    assert!(count > 400_000, "{count}");
}

#[test]
fn only_port_and_reset_events_move_the_qp() {
    // Fixed decision 2: IBAL PnP callbacks and the work item of a reset; power and halt take it down there too.
    explore(|state, _, event, next, _, actions| {
        let moved = actions.iter().any(|action| matches!(action, Action::TakeQpDown | Action::BringQpUp));
        if moved {
            assert!(
                !matches!(
                    event,
                    Event::Pause
                        | Event::Restart
                        | Event::JoinDone
                        | Event::JoinRefused
                        | Event::JoinTimedOut
                        | Event::LeaveDone
                        | Event::RetryDue
                        | Event::SmChange
                        | Event::LidChange
                        | Event::GidChange
                        | Event::ClientReregister
                        | Event::SubnetTimeoutChange
                        | Event::CqError
                        | Event::QpError
                        | Event::QpFailed
                ),
                "{state:?} {event:?} {next:?}"
            );
        }
    });
}

#[test]
fn a_reset_is_completed_exactly_once_in_every_state() {
    explore(|state, _, event, _, _, actions| {
        let completions = actions.iter().filter(|action| *action == Action::CompleteReset).count();
        let expected = usize::from(event == Event::Reset);
        assert_eq!(completions, expected, "{state:?} {event:?}");
    });
}

#[test]
fn a_wanted_adapter_always_finds_its_way_up() {
    // From every reachable pair, answering each outstanding operation well and resetting a hung QP leads to a
    // link that is up, if the facts want it up.
    let pairs = explore(|_, _, _, _, _, _| {});
    for (mut state, mut world) in pairs {
        if !state.is_wanted_up() {
            continue;
        }
        let mut steps = 0;
        while state.link == Link::Down || state.group != Group::Joined {
            let event = match state.group {
                _ if state.qp == Qp::Error => Event::Reset,
                Group::Joining | Group::Stale => Event::JoinDone,
                Group::Leaving => Event::LeaveDone,
                Group::Backoff => Event::RetryDue,
                Group::Idle | Group::Joined => panic!("stuck in {state:?}"),
            };
            world = world.receive(event).expect("the world can answer");
            let (next, actions) = step(state, event);
            for action in actions.iter() {
                world.carry_out(action, "recovery");
            }
            state = next;
            steps += 1;
            assert!(steps < 10, "no progress from {state:?}");
        }
    }
}

#[test]
fn a_halted_adapter_comes_to_rest() {
    let pairs = explore(|_, _, _, _, _, _| {});
    for (state, world) in pairs.into_iter().filter(|(state, _)| state.ndis != Ndis::Shutdown) {
        let mut world = world;
        let (mut state, actions) = step(state, Event::Halt);
        for action in actions.iter() {
            world.carry_out(action, "halt");
        }
        for _ in 0..3 {
            let event = match state.group {
                Group::Stale => Event::JoinDone,
                Group::Leaving => Event::LeaveDone,
                _ => break,
            };
            world = world.receive(event).expect("the world can answer");
            let (next, actions) = step(state, event);
            for action in actions.iter() {
                world.carry_out(action, "halt");
            }
            state = next;
        }
        assert_eq!((state.qp, state.group, state.link), (Qp::Reset, Group::Idle, Link::Down), "{state:?}");
        assert!(!world.member && !world.qp_up && !world.retry_armed, "{world:?}");
    }
}

#[test]
fn port_active_brings_the_qp_up_before_the_join() {
    let (state, actions) = run(&[Event::PortAdd, Event::PortActive]);
    assert_eq!(actions, [Action::RefreshPort, Action::BringQpUp, Action::JoinBroadcast]);
    let (state, actions) = step(state, Event::JoinDone);
    assert_eq!(actions.iter().collect::<Vec<_>>(), [Action::ApplyGroup, Action::IndicateLinkUp]);
    assert_eq!((state.qp, state.group, state.link), (Qp::Ready, Group::Joined, Link::Up));
}

#[test]
fn port_down_indicates_then_leaves_then_drains() {
    let (_, actions) =
        run(&[Event::PortAdd, Event::PortActive, Event::JoinDone, Event::Restart, Event::PortDown]);
    assert_eq!(
        actions,
        [Action::IndicateLinkDown, Action::LeaveGroups, Action::TakeQpDown, Action::ExpirePaths]
    );
}

#[test]
fn a_flap_during_a_join_waits_for_the_old_join() {
    let (state, actions) = run(&[Event::PortAdd, Event::PortActive, Event::PortDown, Event::PortActive]);
    assert_eq!(state.group, Group::Stale);
    assert!(!actions.contains(&Action::JoinBroadcast));
    let (state, actions) = step(state, Event::JoinDone);
    assert_eq!(actions.iter().collect::<Vec<_>>(), [Action::LeaveGroups]);
    let (state, actions) = step(state, Event::LeaveDone);
    assert_eq!(actions.iter().collect::<Vec<_>>(), [Action::JoinBroadcast]);
    assert_eq!(state.group, Group::Joining);
}

#[test]
fn an_sm_change_rejoins_under_a_live_link() {
    let (state, actions) = run(&[Event::PortAdd, Event::PortActive, Event::JoinDone, Event::SmChange]);
    assert_eq!(actions, [Action::RefreshPort, Action::ExpirePaths, Action::LeaveGroups]);
    assert_eq!((state.link, state.qp), (Link::Up, Qp::Ready));
    let (state, _) = step(state, Event::LeaveDone);
    assert_eq!(state.group, Group::Joining);
    let (state, actions) = step(state, Event::JoinRefused);
    assert_eq!(actions.iter().collect::<Vec<_>>(), [Action::IndicateLinkDown, Action::StartRetry]);
    assert_eq!(state.link, Link::Down);
}

#[test]
fn a_failed_qp_is_hung_until_a_reset() {
    let (state, _) = run(&[Event::PortAdd, Event::PortActive, Event::JoinDone, Event::QpError]);
    assert!(state.is_hung());
    let (state, actions) = step(state, Event::Reset);
    assert!(!state.is_hung());
    assert_eq!(
        actions.iter().collect::<Vec<_>>(),
        [
            Action::TakeQpDown,
            Action::ExpirePaths,
            Action::RefreshPort,
            Action::BringQpUp,
            Action::CompleteReset
        ]
    );
}

#[test]
fn sends_pass_only_when_running_and_up() {
    let mut allowed: HashMap<bool, usize> = HashMap::new();
    explore(|_, _, _, next, world, _| {
        *allowed.entry(next.can_send()).or_default() += 1;
        if next.can_send() {
            assert!(world.qp_up && world.link_up && world.sends_open);
        }
    });
    assert!(allowed.contains_key(&true) && allowed.contains_key(&false));
}
