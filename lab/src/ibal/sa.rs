//! The client of the subnet administrator: sends requests through QP1 of a port, sends them again, and hands the
//! answer to whoever asked, at DISPATCH_LEVEL, as the completion of a management datagram comes (`al_sa_req.c`).

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use super::transactions::{Arrival, Expiry, Mad, Transactions, header};
use crate::fabric::ids::Lid;
use crate::fabric::topology::PortState;
use crate::fabric::wire::mad::Status;
use crate::hca::Hca;
use crate::sim::{Lock, MILLISECOND};

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Answered with success.
    Success,
    /// Answered with an error, which the answer's header tells.
    Remote(Status),
    /// Not answered, or too late.
    Timeout,
    /// Cancelled by the client.
    Canceled,
}

/// The end of a request.
#[derive(Debug)]
pub struct Answer {
    /// How it ended.
    pub outcome: Outcome,
    /// The answer, if one came: header and records.
    pub mad: Option<Vec<u8>>,
    /// Requests sent, retries included.
    pub sent: u32,
}

type Done = Box<dyn FnOnce(Answer) + Send>;

struct Waiting {
    timeout: u64,
    done: Done,
}

/// No subnet administrator can be reached through the port (`acquire_sa_req_svc`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoAdministrator;

/// The client at one port.
pub struct SaClient {
    hca: Arc<Hca>,
    port: u8,
    transactions: Lock<Transactions>,
    waiting: Lock<BTreeMap<u64, Waiting>>,
}

impl SaClient {
    /// The client at port `port`.
    pub fn new(hca: &Arc<Hca>, port: u8) -> Arc<Self> {
        Arc::new(Self { hca: Arc::clone(hca), port, transactions: Lock::default(), waiting: Lock::default() })
    }

    fn administrator(&self) -> Result<(Lid, u8), NoAdministrator> {
        let port = self.hca.port(self.port).ok_or(NoAdministrator)?.view();
        if port.state == PortState::Active && port.sm_lid.is_unicast() {
            Ok((port.sm_lid, port.sm_sl))
        } else {
            Err(NoAdministrator)
        }
    }

    /// Sends a request. `done` is called once, in a DPC, unless this fails.
    ///
    /// # Errors
    /// [`NoAdministrator`].
    pub fn request(
        self: &Arc<Self>,
        mad: Mad,
        timeout_ms: u32,
        retries: u32,
        done: impl FnOnce(Answer) + Send + 'static,
    ) -> Result<u64, NoAdministrator> {
        let to = self.administrator()?;
        let (id, mad) = self.transactions.lock().begin(mad, retries);
        let timeout = u64::from(timeout_ms).max(1) * MILLISECOND;
        self.waiting.lock().insert(id, Waiting { timeout, done: Box::new(done) });
        self.send(id, 1, timeout, to, &mad);
        Ok(id)
    }

    fn send(self: &Arc<Self>, id: u64, attempt: u32, timeout: u64, to: (Lid, u8), mad: &Mad) {
        self.hca.send_mad(self.port, to.0, to.1, mad);
        let client: Weak<Self> = Arc::downgrade(self);
        self.hca.sim().after(timeout, "sa timeout", move |_| {
            if let Some(client) = client.upgrade() {
                client.expire(id, attempt);
            }
        });
    }

    /// A timer went off; hardware context.
    fn expire(self: &Arc<Self>, id: u64, attempt: u32) {
        let expiry = self.transactions.lock().expire(id, attempt);
        match expiry {
            Expiry::Stale => {}
            Expiry::Resend { mad, attempt } => {
                let timeout = self.waiting.lock().get(&id).map(|waiting| waiting.timeout);
                if let Some(timeout) = timeout {
                    // Without an administrator the datagram goes nowhere, and the next timer decides.
                    let to = self.administrator().unwrap_or((Lid::NONE, 0));
                    self.send(id, attempt, timeout, to, &mad);
                }
            }
            Expiry::TimedOut { sent } => self.finish_later(id, Outcome::Timeout, sent),
        }
    }

    /// Ends a request early: its `done` is called with [`Outcome::Canceled`] soon. `false`: it is over already.
    pub fn cancel(self: &Arc<Self>, id: u64) -> bool {
        let canceled = self.transactions.lock().cancel(id);
        if let Some(sent) = canceled {
            self.finish_later(id, Outcome::Canceled, sent);
        }
        canceled.is_some()
    }

    fn finish_later(self: &Arc<Self>, id: u64, outcome: Outcome, sent: u32) {
        let client = Arc::clone(self);
        self.hca.machine().queue_dpc("sa timer", move || {
            client.finish(id, Answer { outcome, mad: None, sent });
        });
    }

    fn finish(&self, id: u64, answer: Answer) {
        let waiting = self.waiting.lock().remove(&id);
        if let Some(waiting) = waiting {
            (waiting.done)(answer);
        }
    }

    /// A datagram arrived at QP1; hardware context.
    pub fn arrived(self: &Arc<Self>, mad: Box<Mad>) {
        let client = Arc::clone(self);
        self.hca.machine().queue_dpc("qp1 receive", move || client.process(&mad));
    }

    fn process(self: &Arc<Self>, mad: &Mad) {
        let arrival = self.transactions.lock().arrive(mad);
        let ack = match arrival {
            Arrival::Unmatched => return,
            Arrival::Partial { ack } => Some(ack),
            Arrival::Done { id, answer, ack, sent } => {
                let status = header(mad).status;
                let outcome = if status == Status::OK { Outcome::Success } else { Outcome::Remote(status) };
                self.finish(id, Answer { outcome, mad: Some(answer), sent });
                ack
            }
        };
        if let (Some(ack), Ok((lid, sl))) = (ack, self.administrator()) {
            self.hca.send_mad(self.port, lid, sl, &ack);
        }
    }
}
