//! The adapter's life as a pure function: `(state, event) -> (state, actions)`.
//!
//! Nothing here touches the kernel. The executor (`control`) feeds one event at a time at PASSIVE_LEVEL, under
//! the adapter's control mutex, and carries the actions out in the order they are listed. So every question
//! about ordering ("is the link down before the QP leaves RTS?") is answered, and tested, in this file.
//!
//! The function works in two halves. An event first changes the *facts* (what NDIS, the port, the power manager
//! and the subnet administrator said). Then `settle` compares what is wanted with what is, and lists the
//! actions that lead from one to the other: first everything that goes down, then everything that comes up.
//!
//! At most one operation on the broadcast group is outstanding at any time. A subnet administrator sees the
//! join and the leave of a port as separate transactions which may overtake each other; a leave that arrives
//! after the join that replaced it would silently end the membership. So a join that is no longer wanted is
//! awaited ([`Group::Stale`]) and left, and the next join waits for the end of that leave.

/// Where NDIS has the adapter (Windows driver docs, "Miniport Adapter States and Operations").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ndis {
    /// Initialized or paused: no data may cross NDIS.
    Paused,
    /// Restarted: data flows.
    Running,
    /// MiniportHaltEx has begun; nothing comes after.
    Halted,
    /// MiniportShutdownEx was called: the system is going down, resources stay as they are.
    Shutdown,
}

/// The port as IBAL last described it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Port {
    /// Not reported yet, or removed.
    Absent,
    /// Present, not ACTIVE (IBTA volume 1, 14.2.5.6 PortInfo, PortState: Down, Init or Armed).
    Down,
    /// ACTIVE: the SM has configured it.
    Active,
}

/// The UD QP. INIT and RTR are passed through within one action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Qp {
    /// RESET: created, or taken down and drained.
    Reset,
    /// RTS.
    Ready,
    /// An asynchronous error, or a verb that failed on the way up. Left by a reset, or with the port.
    Error,
}

/// Membership of the broadcast group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Group {
    /// Not a member, nothing outstanding.
    Idle,
    /// A get, create or join is outstanding.
    Joining,
    /// A join is outstanding whose result is to be left again.
    Stale,
    /// Full member.
    Joined,
    /// A leave is outstanding.
    Leaving,
    /// The last attempt failed; the retry timer is set.
    Backoff,
}

/// What was last indicated to NDIS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Link {
    /// MediaConnectStateDisconnected.
    Down,
    /// MediaConnectStateConnected.
    Up,
}

/// The device power state (OID_PNP_SET_POWER).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Power {
    /// D0.
    Working,
    /// D1 to D3.
    Sleeping,
}

/// Everything that decides what the adapter does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// NDIS's view.
    pub ndis: Ndis,
    /// IBAL's view.
    pub port: Port,
    /// The UD QP.
    pub qp: Qp,
    /// The broadcast group.
    pub group: Group,
    /// The link as indicated.
    pub link: Link,
    /// Device power.
    pub power: Power,
    /// The device is gone (surprise removal): it never comes up again.
    pub removed: bool,
}

impl State {
    /// The state at the end of MiniportInitializeEx: QP created in RESET, port not reported yet.
    pub const INITIAL: Self = Self {
        ndis: Ndis::Paused,
        port: Port::Absent,
        qp: Qp::Reset,
        group: Group::Idle,
        link: Link::Down,
        power: Power::Working,
        removed: false,
    };

    /// Whether the QP should be up and the broadcast group joined.
    pub const fn is_wanted_up(&self) -> bool {
        matches!(self.ndis, Ndis::Paused | Ndis::Running)
            && matches!(self.port, Port::Active)
            && matches!(self.power, Power::Working)
            && !self.removed
    }

    /// Whether frames may be handed to the QP.
    pub const fn can_send(&self) -> bool {
        matches!(self.ndis, Ndis::Running) && matches!(self.qp, Qp::Ready) && matches!(self.link, Link::Up)
    }

    /// What MiniportCheckForHangEx answers: only a reset leads out of this state.
    pub const fn is_hung(&self) -> bool {
        matches!(self.qp, Qp::Error) && self.is_wanted_up()
    }
}

/// What can happen to an adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// IB_PNP_PORT_ADD for our port.
    PortAdd,
    /// IB_PNP_PORT_REMOVE.
    PortRemove,
    /// IB_PNP_PORT_INIT: the SM took the port back without the physical link going down.
    PortInit,
    /// IB_PNP_PORT_ARMED.
    PortArmed,
    /// IB_PNP_PORT_ACTIVE.
    PortActive,
    /// IB_PNP_PORT_DOWN.
    PortDown,
    /// IB_PNP_PKEY_CHANGE.
    PkeyChange,
    /// IB_PNP_SM_CHANGE.
    SmChange,
    /// IB_PNP_GID_CHANGE.
    GidChange,
    /// IB_PNP_LID_CHANGE.
    LidChange,
    /// IB_PNP_SUBNET_TIMEOUT_CHANGE.
    SubnetTimeoutChange,
    /// The SM asked every client to register again (IBTA volume 1, 14.4.11 ClientReregister).
    ClientReregister,
    /// IB_PNP_REG_COMPLETE: every port known at registration has been reported.
    RegistrationComplete,
    /// IB_PNP_CA_REMOVE.
    CaRemove,
    /// The broadcast group was joined.
    JoinDone,
    /// The SA refused the join or the creation.
    JoinRefused,
    /// The SA did not answer.
    JoinTimedOut,
    /// A leave ended, answered or not.
    LeaveDone,
    /// The retry timer fired.
    RetryDue,
    /// MiniportResetEx, served by the worker.
    Reset,
    /// MiniportPause.
    Pause,
    /// MiniportRestart.
    Restart,
    /// MiniportHaltEx.
    Halt,
    /// MiniportShutdownEx at PASSIVE_LEVEL.
    Shutdown,
    /// NdisDevicePnPEventSurpriseRemoved.
    SurpriseRemoval,
    /// OID_PNP_SET_POWER to D1, D2 or D3.
    Sleep,
    /// OID_PNP_SET_POWER to D0.
    Wake,
    /// IBAL reported an asynchronous error of a CQ.
    CqError,
    /// IBAL reported an asynchronous error of the QP.
    QpError,
    /// [`Action::BringQpUp`] or a later verb on the QP failed.
    QpFailed,
}

impl Event {
    /// Every event, for tests and tables.
    pub const ALL: [Self; 30] = [
        Self::PortAdd,
        Self::PortRemove,
        Self::PortInit,
        Self::PortArmed,
        Self::PortActive,
        Self::PortDown,
        Self::PkeyChange,
        Self::SmChange,
        Self::GidChange,
        Self::LidChange,
        Self::SubnetTimeoutChange,
        Self::ClientReregister,
        Self::RegistrationComplete,
        Self::CaRemove,
        Self::JoinDone,
        Self::JoinRefused,
        Self::JoinTimedOut,
        Self::LeaveDone,
        Self::RetryDue,
        Self::Reset,
        Self::Pause,
        Self::Restart,
        Self::Halt,
        Self::Shutdown,
        Self::SurpriseRemoval,
        Self::Sleep,
        Self::Wake,
        Self::CqError,
        Self::QpError,
        Self::QpFailed,
    ];
}

/// What the executor has to do, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Let no send past the gate any more, and complete those that wait with the state's status.
    CloseSends,
    /// Let sends pass.
    OpenSends,
    /// Stop indicating, then wait until NDIS has returned every NET_BUFFER_LIST.
    CloseReceives,
    /// Indicate received frames again.
    OpenReceives,
    /// Tell NDIS that the link is down.
    IndicateLinkDown,
    /// Tell NDIS that the link is up, with its speed.
    IndicateLinkUp,
    /// Read LID, GIDs, P_Key table, rate and SM again, and whatever is derived from them.
    RefreshPort,
    /// Forget resolved paths; they are resolved again when needed.
    ExpirePaths,
    /// Leave the broadcast group and every other one. The end arrives as [`Event::LeaveDone`].
    LeaveGroups,
    /// Stop the retry timer.
    CancelRetry,
    /// Start the retry timer. Its end arrives as [`Event::RetryDue`].
    StartRetry,
    /// ERROR, wait for the flushed completions, RESET.
    TakeQpDown,
    /// RESET -> INIT -> RTR -> RTS, receives posted, CQs armed. Failure arrives as [`Event::QpFailed`].
    BringQpUp,
    /// Get or create the broadcast group and join it. The end arrives as one of the three join events.
    JoinBroadcast,
    /// Take over Q_Key, MTU, SL and rate of the group that was joined, and join the other groups.
    ApplyGroup,
    /// NdisMResetComplete.
    CompleteReset,
    /// An event-log entry: the QP cannot be used until a reset.
    ReportHung,
}

/// The actions of one step, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Actions {
    list: [Option<Action>; Self::CAPACITY],
    len: usize,
}

impl Actions {
    /// The longest list of any step is shorter; a test proves it over every reachable state.
    pub const CAPACITY: usize = 16;

    const fn new() -> Self {
        Self { list: [None; Self::CAPACITY], len: 0 }
    }

    fn push(&mut self, action: Action) {
        if let Some(slot) = self.list.get_mut(self.len) {
            *slot = Some(action);
            self.len += 1;
        }
    }

    /// The actions in the order to carry them out.
    pub fn iter(&self) -> impl Iterator<Item = Action> + '_ {
        self.list.iter().flatten().copied()
    }

    /// How many there are.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there is nothing to do.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// How much an event invalidates beyond the facts it changes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Upset {
    Nothing,
    /// What the SA told us is void: paths and memberships. The QP and the link stay up.
    Subnet,
    /// The QP must pass through RESET.
    Qp,
}

/// One step of the adapter's life.
#[must_use]
pub fn step(state: State, event: Event) -> (State, Actions) {
    let mut next = state;
    let mut actions = Actions::new();
    // Halt and shutdown are final: only the ends of outstanding operations still matter.
    if matches!(state.ndis, Ndis::Halted | Ndis::Shutdown)
        && !matches!(
            event,
            Event::JoinDone
                | Event::JoinRefused
                | Event::JoinTimedOut
                | Event::LeaveDone
                | Event::RetryDue
                | Event::Halt
                | Event::Reset
        )
    {
        return (next, actions);
    }
    let mut upset = Upset::Nothing;
    match event {
        Event::PortAdd => {
            if state.port == Port::Absent {
                next.port = Port::Down;
            }
        }
        Event::PortRemove | Event::CaRemove => next.port = Port::Absent,
        Event::PortInit | Event::PortDown | Event::PortArmed => {
            // ARMED and INIT are the SM's way to ACTIVE; until then data packets may be discarded.
            next.port = Port::Down;
        }
        Event::PortActive => {
            if state.port == Port::Active {
                // The port went through DOWN unseen: the SA may have dropped us.
                upset = Upset::Subnet;
            }
            next.port = Port::Active;
        }
        // The index of our P_Key may have moved, and it cannot be modified in RTS (IBTA volume 1, 11.2.5.2).
        Event::PkeyChange | Event::Reset => upset = Upset::Qp,
        Event::SmChange | Event::GidChange | Event::LidChange | Event::ClientReregister => {
            upset = Upset::Subnet;
        }
        Event::SubnetTimeoutChange => {
            if state.port == Port::Active {
                actions.push(Action::RefreshPort);
            }
        }
        Event::RegistrationComplete => {
            if state.link == Link::Down {
                actions.push(Action::IndicateLinkDown);
            }
        }
        Event::JoinDone => match state.group {
            Group::Joining => {
                next.group = Group::Joined;
                actions.push(Action::ApplyGroup);
            }
            Group::Stale => {
                next.group = Group::Leaving;
                actions.push(Action::LeaveGroups);
            }
            Group::Idle | Group::Joined | Group::Leaving | Group::Backoff => {}
        },
        Event::JoinRefused | Event::JoinTimedOut => match state.group {
            Group::Joining => {
                next.group = Group::Backoff;
                link_down(&mut next, &mut actions);
                actions.push(Action::StartRetry);
            }
            Group::Stale => next.group = Group::Idle,
            Group::Idle | Group::Joined | Group::Leaving | Group::Backoff => {}
        },
        Event::LeaveDone => {
            if state.group == Group::Leaving {
                next.group = Group::Idle;
            }
        }
        Event::RetryDue => {
            if state.group == Group::Backoff {
                next.group = Group::Idle;
            }
        }
        Event::Pause => {
            if state.ndis == Ndis::Running {
                next.ndis = Ndis::Paused;
                actions.push(Action::CloseSends);
                actions.push(Action::CloseReceives);
            }
        }
        Event::Restart => {
            if state.ndis == Ndis::Paused {
                next.ndis = Ndis::Running;
                actions.push(Action::OpenReceives);
                actions.push(Action::OpenSends);
            }
        }
        Event::Halt => {
            if matches!(state.ndis, Ndis::Running | Ndis::Shutdown) {
                // NDIS pauses before it halts; a halt without a pause is still served in order.
                actions.push(Action::CloseSends);
                actions.push(Action::CloseReceives);
            }
            next.ndis = Ndis::Halted;
        }
        Event::Shutdown => {
            next.ndis = Ndis::Shutdown;
            return (next, actions);
        }
        Event::SurpriseRemoval => next.removed = true,
        Event::Sleep => next.power = Power::Sleeping,
        Event::Wake => next.power = Power::Working,
        Event::CqError | Event::QpError | Event::QpFailed => {
            if state.qp == Qp::Ready {
                next.qp = Qp::Error;
                actions.push(Action::ReportHung);
            }
        }
    }
    settle(&mut next, &mut actions, upset);
    if event == Event::Reset {
        actions.push(Action::CompleteReset);
    }
    (next, actions)
}

/// Leads from what is to what is wanted: down first, then up.
fn settle(state: &mut State, actions: &mut Actions, upset: Upset) {
    if state.ndis == Ndis::Shutdown {
        return;
    }
    let wanted = state.is_wanted_up();

    let to_reset = state.qp != Qp::Reset && (!wanted || upset == Upset::Qp);
    if to_reset || !wanted || state.qp == Qp::Error {
        link_down(state, actions);
        leave(state, actions);
    }
    if to_reset {
        actions.push(Action::TakeQpDown);
        state.qp = Qp::Reset;
        actions.push(Action::ExpirePaths);
    }
    if upset == Upset::Subnet && state.qp == Qp::Ready {
        actions.push(Action::RefreshPort);
        actions.push(Action::ExpirePaths);
        leave(state, actions);
    }

    if !wanted {
        return;
    }
    if state.qp == Qp::Reset {
        actions.push(Action::RefreshPort);
        actions.push(Action::BringQpUp);
        state.qp = Qp::Ready;
    }
    if state.qp == Qp::Ready && state.group == Group::Idle {
        actions.push(Action::JoinBroadcast);
        state.group = Group::Joining;
    }
    if state.qp == Qp::Ready && state.group == Group::Joined && state.link == Link::Down {
        actions.push(Action::IndicateLinkUp);
        state.link = Link::Up;
    }
}

fn link_down(state: &mut State, actions: &mut Actions) {
    if state.link == Link::Up {
        state.link = Link::Down;
        actions.push(Action::IndicateLinkDown);
    }
}

/// Ends the membership, whatever stage it is in.
fn leave(state: &mut State, actions: &mut Actions) {
    match state.group {
        Group::Joined => {
            state.group = Group::Leaving;
            actions.push(Action::LeaveGroups);
        }
        Group::Joining => state.group = Group::Stale,
        Group::Backoff => {
            state.group = Group::Idle;
            actions.push(Action::CancelRetry);
        }
        Group::Idle | Group::Stale | Group::Leaving => {}
    }
}

#[cfg(test)]
#[path = "lifecycle_tests.rs"]
mod tests;
