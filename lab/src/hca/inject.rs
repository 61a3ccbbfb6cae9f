//! Errors that the hardware is told to have.
//!
//! Packets are lost, changed and forged by the rules of [`crate::fabric::fault`]; what is here goes wrong inside the
//! adapter.

use std::sync::Arc;

use super::cq::Status;
use super::listener::AsyncEvent;
use super::qp_state::QpState;
use super::{Hca, Qp, read};

impl Hca {
    /// The next send of a queue pair that the engine takes up ends with `status`, and the queue pair goes to the error
    /// state that this status leads to. Gives false if there is no such queue pair.
    pub fn fail_next_send(&self, qpn: u32, status: Status) -> bool {
        self.qp_by_number(qpn).map(|qp| qp.send().inject = Some(status)).is_some()
    }

    /// A queue pair breaks: it goes to ERROR by itself, everything it holds is flushed, and its client gets the event
    /// [`AsyncEvent::QpFatal`]. Gives false if there is no such queue pair, or it is in RESET.
    pub fn break_qp(self: &Arc<Self>, qpn: u32) -> bool {
        let Some(qp) = self.qp_by_number(qpn) else { return false };
        let epoch = qp.attrs().epoch;
        if qp.attrs().state == QpState::Reset {
            return false;
        }
        self.fail(&qp, epoch, QpState::Error);
        self.report(qp.handle, AsyncEvent::QpFatal);
        true
    }

    /// Every queue pair, by number.
    pub fn queue_pairs(&self) -> Vec<Arc<Qp>> {
        read(&self.qps).values().cloned().collect()
    }
}
