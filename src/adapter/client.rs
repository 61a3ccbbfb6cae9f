//! What IBAL calls: each call becomes an event, a job, or a look at a queue.

use super::Adapter;
use super::jobs::Jobs;
use super::lifecycle::Event;
use super::port::PortFacts;
use super::resolver::BROADCAST;
use crate::ib::client::{AsyncEvent, Client, Source};
use crate::ib::mcast::{JoinError, Member};
use crate::ib::pnp::{PortEvent, PortEventKind};
use crate::ib::query::{PathRecord, QueryError};
use crate::kernel::irql::{Dispatch, Passive};
use crate::kernel::log::Level;

impl Client for Adapter {
    fn receive_ready(&self, at: Dispatch<'_>) {
        if let Some(machinery) = self.machinery() {
            machinery.receiver.serve(self, machinery, at);
        }
    }

    fn send_ready(&self, at: Dispatch<'_>) {
        if let Some(machinery) = self.machinery() {
            machinery.sender.serve(self, machinery, at);
        }
    }

    fn port_event(&self, event: PortEvent<'_>, at: &mut Passive<'_>) {
        self.log.line(Level::Info, format_args!("ipoib: port event {:?}", event.kind));
        let port = event.port.map(|port| PortFacts::read(port, self.pkey));
        self.handle_port(lifecycle_event(event.kind), port, at);
    }

    fn resource_event(&self, event: AsyncEvent, _at: &mut Passive<'_>) {
        self.log.line(Level::Error, format_args!("ipoib: asynchronous event {event:?}"));
        if event.is_fatal() {
            // Not here: this is not a PnP callback, and what follows may wait for completions.
            self.ask(match event.source {
                Source::SendCq | Source::ReceiveCq => Jobs::CQ_ERROR,
                Source::Qp | Source::Ca => Jobs::QP_ERROR,
            });
        }
    }

    fn query_done(&self, token: u64, result: Result<PathRecord, QueryError>, at: Dispatch<'_>) {
        if let Some(machinery) = self.machinery() {
            machinery.resolver.path_answered(token, result, at);
            self.ask(Jobs::PATHS);
        }
    }

    fn join_done(&self, token: u64, result: Result<Member, JoinError>, at: &mut Passive<'_>) {
        if token == BROADCAST {
            self.broadcast.joined(result, at);
            self.ask(Jobs::BROADCAST);
        } else if let Some(machinery) = self.machinery() {
            if let Some(unwanted) = at.raised(|at| machinery.resolver.joined(token, result, at)) {
                machinery.resolver.leave_unwanted(machinery, unwanted, at);
            }
            self.ask(Jobs::PATHS);
        }
    }

    fn leave_done(&self, token: u64, at: &mut Passive<'_>) {
        if token == BROADCAST {
            self.broadcast.left(at);
            self.ask(Jobs::BROADCAST);
        } else if let Some(machinery) = self.machinery() {
            at.raised(|at| machinery.resolver.left(token, at));
            self.ask(Jobs::PATHS);
        }
    }
}

const fn lifecycle_event(kind: PortEventKind) -> Event {
    match kind {
        PortEventKind::Add => Event::PortAdd,
        PortEventKind::Remove => Event::PortRemove,
        PortEventKind::Init => Event::PortInit,
        PortEventKind::Armed => Event::PortArmed,
        PortEventKind::Active => Event::PortActive,
        PortEventKind::Down => Event::PortDown,
        PortEventKind::PkeyChange => Event::PkeyChange,
        PortEventKind::SmChange => Event::SmChange,
        PortEventKind::GidChange => Event::GidChange,
        PortEventKind::LidChange => Event::LidChange,
        PortEventKind::SubnetTimeoutChange => Event::SubnetTimeoutChange,
        PortEventKind::RegistrationComplete => Event::RegistrationComplete,
    }
}
