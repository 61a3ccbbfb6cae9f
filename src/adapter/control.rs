//! Carries out what the lifecycle decides, one event at a time, at PASSIVE_LEVEL.
//!
//! [`Adapter::handle`] is called from PnP callbacks, from the worker and from NDIS's handlers. The control mutex
//! lets one of them at a time in; what an action reports back (a QP that would not come up, a join that could not
//! even be started) is the next event, handled before the mutex is given up.

use super::event_code::EventCode;
use super::jobs::Jobs;
use super::lifecycle::{self, Action, Event, Group, Link, State};
use super::port::PortFacts;
use super::resolver::BROADCAST;
use super::{Adapter, Machinery};
use crate::ib::mcast::{GroupParameters, JoinError, JoinRequest, JoinState, Member, MembershipId};
use crate::ib::qp::QpState;
use crate::ib::query::Patience;
use crate::ib::status::IbError;
use crate::ipoib::PKey;
use crate::ipoib::mgid::{Link as IpoibLink, Mgid};
use crate::ipoib::mtu::Mtu;
use crate::kernel::irql::Passive;
use crate::kernel::link::LinkState;
use crate::kernel::log::Level;
use crate::kernel::spinlock::SpinLock;
use crate::kernel::time;
use core::sync::atomic::Ordering;
use core::time::Duration;
use windows_kernel_sys as sys;

/// How long flushed completions may take to come. The HCA needs microseconds; what is not back by then never comes.
const DRAIN: Duration = Duration::from_secs(2);
/// How long to wait before looking at the queues oneself.
const DRAIN_STEP: Duration = Duration::from_millis(20);
/// Between two attempts to join the broadcast group, while there are retries left and after.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(16));

/// What is protected by the control mutex.
#[derive(Debug)]
pub(super) struct Control {
    state: State,
    pub(super) port: PortFacts,
    /// The broadcast group, once joined.
    group: Option<Member>,
    membership: Option<MembershipId>,
    /// The next attempt creates the group: the last one was told that there is none.
    create: bool,
    /// Failed attempts since the last success.
    attempts: u32,
    /// When the next attempt is due.
    retry_at: Option<Duration>,
    /// Speed last indicated with a link that is up.
    speed: u64,
}

impl Control {
    pub(super) const fn new() -> Self {
        Self {
            state: State::INITIAL,
            port: PortFacts {
                lid: 0,
                lmc: 0,
                gid: [0; 16],
                pkey_index: None,
                pkey: 0,
                rate_code: 0,
                mtu_code: 0,
                data_rate: 0,
            },
            group: None,
            membership: None,
            create: false,
            attempts: 0,
            retry_at: None,
            speed: 0,
        }
    }
}

/// Ends of the broadcast group's operations, from IBAL's threads to the worker.
#[derive(Debug, Default)]
pub(super) struct BroadcastMail(SpinLock<Mail>);

#[derive(Debug, Default)]
struct Mail {
    joined: Option<Result<Member, JoinError>>,
    left: bool,
}

impl BroadcastMail {
    pub(super) fn joined(&self, result: Result<Member, JoinError>, at: &mut Passive<'_>) {
        self.0.lock(at).joined = Some(result);
    }

    pub(super) fn left(&self, at: &mut Passive<'_>) {
        self.0.lock(at).left = true;
    }

    fn take(&self, at: &mut Passive<'_>) -> Mail {
        core::mem::take(&mut *self.0.lock(at))
    }
}

/// Events that actions give rise to. An action reports at most one, and a list has few that can.
#[derive(Default)]
struct FollowUps {
    events: [Option<Event>; 4],
}

impl FollowUps {
    fn push(&mut self, event: Event) {
        if let Some(place) = self.events.iter_mut().find(|place| place.is_none()) {
            *place = Some(event);
        }
    }

    fn pop(&mut self) -> Option<Event> {
        let first = self.events.first_mut()?.take();
        self.events.rotate_left(1);
        first
    }
}

impl Adapter {
    /// Handles an event and all that follows from it.
    pub(super) fn handle(&self, event: Event, at: &mut Passive<'_>) {
        let mut control = self.control.lock(at);
        self.settle(&mut control, event, at);
    }

    /// Handles an event of the port, which may come with what is known of the port now.
    pub(super) fn handle_port(&self, event: Event, port: Option<PortFacts>, at: &mut Passive<'_>) {
        let mut control = self.control.lock(at);
        if let Some(port) = port {
            control.port = port;
        }
        self.settle(&mut control, event, at);
    }

    /// Hands the ends of the broadcast group's operations to the lifecycle.
    pub(super) fn handle_broadcast(&self, at: &mut Passive<'_>) {
        let mut control = self.control.lock(at);
        let Mail { joined, left } = self.broadcast.take(at);
        // At most one operation is outstanding, so at most one of the two has come.
        if left {
            control.membership = None;
            self.settle(&mut control, Event::LeaveDone, at);
        }
        if let Some(result) = joined {
            let event = match (self.broadcast_joined(&mut control, result), self.machinery()) {
                (Some(event), _) => Some(event),
                (None, Some(machinery)) => self.join_broadcast(machinery, &mut control, at),
                (None, None) => Some(Event::JoinRefused),
            };
            if let Some(event) = event {
                self.settle(&mut control, event, at);
            }
        }
    }

    /// Whether the retry of the broadcast join is due, by the tick that the worker serves.
    pub(super) fn handle_retry(&self, at: &mut Passive<'_>) {
        let mut control = self.control.lock(at);
        if control.retry_at.is_some_and(|due| time::now() >= due) {
            control.retry_at = None;
            self.settle(&mut control, Event::RetryDue, at);
        }
    }

    fn settle(&self, control: &mut Control, event: Event, at: &mut Passive<'_>) {
        let Some(machinery) = self.machinery() else { return };
        let mut follow_ups = FollowUps::default();
        let mut next = Some(event);
        while let Some(event) = next {
            let (state, actions) = lifecycle::step(control.state, event);
            if state != control.state || !actions.is_empty() {
                self.log.line(Level::Info, format_args!("ipoib: {event:?} -> {state:?}"));
            }
            control.state = state;
            self.hung.store(state.is_hung(), Ordering::Relaxed);
            for action in actions.iter() {
                if let Some(follow_up) = self.carry_out(machinery, control, action, at) {
                    follow_ups.push(follow_up);
                }
            }
            next = follow_ups.pop();
        }
    }

    fn carry_out(
        &self,
        machinery: &Machinery,
        control: &mut Control,
        action: Action,
        at: &mut Passive<'_>,
    ) -> Option<Event> {
        match action {
            Action::CloseSends => machinery.sender.close(self, machinery, sys::NDIS_STATUS_PAUSED, at),
            Action::OpenSends => machinery.sender.open(),
            Action::CloseReceives => machinery.receiver.close(),
            Action::OpenReceives => machinery.receiver.open(),
            Action::IndicateLinkDown => {
                machinery.sender.set_link(self, machinery, false, at);
                self.ndis.indicate_link(LinkState::Down);
            }
            Action::IndicateLinkUp => {
                control.speed = control.port.data_rate;
                self.ndis.indicate_link(LinkState::Up { speed: control.speed });
                machinery.sender.set_link(self, machinery, true, at);
            }
            Action::RefreshPort => self.refresh_port(machinery, control, at),
            Action::ExpirePaths => {
                machinery.resolver.revalidate(at);
                self.ask(Jobs::PATHS);
            }
            Action::LeaveGroups => return self.leave_groups(machinery, control, at),
            Action::CancelRetry => control.retry_at = None,
            Action::StartRetry => {
                let (quick, slow) = RETRY;
                let wait = if control.attempts <= self.config.bc_join_retries { quick } else { slow };
                control.retry_at = Some(time::now().saturating_add(wait));
            }
            Action::TakeQpDown => self.take_qp_down(machinery, at),
            Action::BringQpUp => {
                if let Err(error) = self.bring_qp_up(machinery, control, at) {
                    self.log.line(Level::Error, format_args!("ipoib: QP not up: {error}"));
                    self.ndis.log_event(EventCode::QueuePairFailed, [error.code(), 0]);
                    return Some(Event::QpFailed);
                }
            }
            Action::JoinBroadcast => return self.join_broadcast(machinery, control, at),
            Action::ApplyGroup => return self.apply_group(machinery, control, at),
            Action::CompleteReset => {
                self.statistics.resets.increment();
                self.resetting.store(false, Ordering::Release);
                self.ndis.reset_complete(Ok(()), false);
            }
            Action::ReportHung => self.ndis.log_event(EventCode::Hung, [0, 0]),
        }
        None
    }

    /// RESET -> INIT -> RTR -> RTS. Receives are posted in INIT, so that the first message finds one.
    fn bring_qp_up(
        &self,
        machinery: &Machinery,
        control: &Control,
        at: &mut Passive<'_>,
    ) -> Result<(), IbError> {
        let resources = &machinery.resources;
        let qp = &resources.qp;
        let pkey_index = control.port.pkey_index.ok_or(IbError::PARAMETER)?;
        qp.to_init(self.identity.port_number, self.config.qkey, pkey_index, at)?;
        at.raised(|at| machinery.receiver.start(machinery, at));
        qp.to_ready_to_receive(at)?;
        resources.receive_cq.rearm()?;
        resources.send_cq.rearm()?;
        // Any number will do: a UD QP's peers do not check it (IBTA volume 1, 9.8.3).
        qp.to_ready_to_send(0, at)?;
        at.raised(|at| machinery.sender.start(at));
        Ok(())
    }

    /// ERROR, drain, RESET. Ends with nothing posted, whatever the HCA does.
    fn take_qp_down(&self, machinery: &Machinery, at: &mut Passive<'_>) {
        let qp = &machinery.resources.qp;
        at.raised(|at| {
            machinery.sender.stop(self, machinery, at);
            machinery.receiver.stop(at);
        });
        // From RESET, where a QP stays whose way up failed at once, there is no way to ERROR.
        if qp.state() != QpState::Reset
            && let Err(error) = qp.to_error(at)
        {
            self.log.line(Level::Error, format_args!("ipoib: QP not to ERROR: {error}"));
        }
        let drained = self.drain(machinery, at);
        if qp.state() != QpState::Reset
            && let Err(error) = qp.to_reset(at)
        {
            self.log.line(Level::Error, format_args!("ipoib: QP not to RESET: {error}"));
        }
        let lost =
            at.raised(|at| machinery.sender.reclaim(self, machinery, at) + machinery.receiver.reclaim(at));
        if !drained || lost != 0 {
            self.log.line(Level::Error, format_args!("ipoib: {lost} requests never completed"));
            self.ndis.log_event(EventCode::RequestsLost, [lost as u32, 0]);
        }
    }

    /// Waits until nothing is posted. Looks at the queues itself, too: this may be the worker, to which a busy queue
    /// is left, or a queue may have lost its event.
    fn drain(&self, machinery: &Machinery, at: &mut Passive<'_>) -> bool {
        let end = time::now().saturating_add(DRAIN);
        loop {
            let sends = machinery.sender.wait_drained(at, DRAIN_STEP);
            if sends && machinery.receiver.wait_drained(at, DRAIN_STEP) {
                return true;
            }
            if time::now() >= end {
                return false;
            }
            at.raised(|at| machinery.serve_queues(self, at));
        }
    }

    /// Reads the port again, and tells the room of the peers.
    fn refresh_port(&self, machinery: &Machinery, control: &mut Control, at: &mut Passive<'_>) {
        match machinery.resources.ca.query(at) {
            Ok(attributes) => {
                if let Some(port) = attributes.port(self.identity.port_number) {
                    control.port = PortFacts::read(port, self.pkey);
                }
            }
            // What the last event brought has to do.
            Err(error) => self.log.line(Level::Warning, format_args!("ipoib: query_ca: {error}")),
        }
        machinery.receiver.set_port(&control.port);
        machinery.resolver.set_port(&control.port, at);
        if control.state.link == Link::Up && control.speed != control.port.data_rate {
            control.speed = control.port.data_rate;
            self.ndis.indicate_link(LinkState::Up { speed: control.speed });
        }
    }

    fn join_broadcast(
        &self,
        machinery: &Machinery,
        control: &mut Control,
        at: &mut Passive<'_>,
    ) -> Option<Event> {
        let mtu = Mtu::carrying(self.config.payload_mtu as usize).unwrap_or(Mtu::B2048);
        let create = control.create.then_some(GroupParameters {
            qkey: self.config.qkey,
            mtu_code: Some(mtu.code()),
            rate_code: None,
            packet_life: None,
            sl: 0,
            flow_label: 0,
            hop_limit: 0,
            traffic_class: 0,
        });
        let request = JoinRequest {
            mgid: self.broadcast_group().gid().to_bytes(),
            port_guid: self.identity.port_guid,
            pkey: control.port.pkey,
            pkey_index: control.port.pkey_index.unwrap_or(0),
            state: JoinState::Full,
            create,
        };
        let patience = self.patience();
        match machinery.memberships.join(&machinery.resources.qp, &request, patience, BROADCAST, at) {
            Ok(membership) => {
                control.membership = Some(membership);
                None
            }
            Err(error) => {
                control.attempts = control.attempts.saturating_add(1);
                self.log.line(Level::Warning, format_args!("ipoib: join not sent: {error}"));
                Some(Event::JoinRefused)
            }
        }
    }

    /// The broadcast group of the adapter's link.
    fn broadcast_group(&self) -> Mgid {
        Mgid::broadcast(IpoibLink::new(PKey::new(self.pkey)))
    }

    /// How long to wait for the subnet administrator.
    pub(super) fn patience(&self) -> Patience {
        Patience { timeout_ms: self.config.sa_timeout_ms, retries: self.config.sa_retries }
    }

    /// What a finished join means. `None`: there is no such group, and it is to be created, which is still the same
    /// join to the lifecycle.
    fn broadcast_joined(&self, control: &mut Control, result: Result<Member, JoinError>) -> Option<Event> {
        let error = match result {
            Ok(member) => {
                control.group = Some(member);
                control.attempts = 0;
                control.create = false;
                return Some(Event::JoinDone);
            }
            Err(error) => error,
        };
        control.membership = None;
        self.log.line(Level::Warning, format_args!("ipoib: broadcast group: {error:?}"));
        if matches!(error, JoinError::Refused(_)) && !control.create && control.state.group == Group::Joining
        {
            // Administrators differ in the status by which they refuse to join what does not exist. If the group
            // exists after all, or somebody creates it meanwhile, creating is refused and joining tried again.
            control.create = true;
            return None;
        }
        control.create = false;
        control.attempts = control.attempts.saturating_add(1);
        if control.attempts == 1 || control.attempts == self.config.bc_join_retries {
            let status = if let JoinError::Refused(status) = error { u32::from(status) } else { 0 };
            self.ndis.log_event(EventCode::BroadcastGroupNotJoined, [status, control.attempts]);
        }
        Some(if error == JoinError::TimedOut { Event::JoinTimedOut } else { Event::JoinRefused })
    }

    /// Takes the group's Q_Key, MTU, SL and rate over, and lets the other groups be joined with them.
    fn apply_group(&self, machinery: &Machinery, control: &Control, at: &mut Passive<'_>) -> Option<Event> {
        let Some(member) = &control.group else { return Some(Event::QpFailed) };
        if let Err(error) = machinery.resources.qp.set_qkey(member.qkey, at) {
            self.log.line(Level::Error, format_args!("ipoib: Q_Key not set: {error}"));
            return Some(Event::QpFailed);
        }
        let group = Mtu::from_code(member.mtu_code).unwrap_or(Mtu::B2048);
        let mtu = crate::ipoib::mtu::link_ip_mtu(group, self.config.payload_mtu as usize);
        if mtu < self.config.payload_mtu as usize {
            // NDIS was told the configured MTU. Frames between the two are dropped and counted.
            self.ndis.log_event(EventCode::GroupMtuTooSmall, [mtu as u32, self.config.payload_mtu]);
        }
        machinery.sender.set_mtu(mtu);
        if !machinery.resolver.set_broadcast(self.broadcast_group(), member, at) {
            // A record that no administrator should give: not the group that was asked for, or reserved codes.
            self.log.line(Level::Error, format_args!("ipoib: broadcast group: {member:?}"));
            return Some(Event::QpFailed);
        }
        self.ask(Jobs::PATHS);
        None
    }

    fn leave_groups(
        &self,
        machinery: &Machinery,
        control: &mut Control,
        at: &mut Passive<'_>,
    ) -> Option<Event> {
        if control.state.link == Link::Up {
            // Frames flow on by what is known; the administrator is told of us anew.
            machinery.resolver.rejoin(at);
        } else {
            machinery.resolver.clear_broadcast(at);
        }
        self.ask(Jobs::PATHS);
        control.group = None;
        let left = control.membership.take().map(|membership| machinery.memberships.leave(membership, at));
        match left {
            Some(Ok(())) => None,
            // Nothing is outstanding: it is over.
            Some(Err(_)) | None => Some(Event::LeaveDone),
        }
    }
}
