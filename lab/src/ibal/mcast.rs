//! Multicast memberships: joining through the subnet administrator, attaching the queue pair, leaving
//! (`al_mcast.c`).
//!
//! A join goes out as a Set of MCMemberRecord; its answer comes at DISPATCH_LEVEL, and the asynchronous thread does
//! the rest at PASSIVE_LEVEL: it attaches the queue pair of a full member and calls the client. A leave sends a
//! Delete, waits for its answer no longer than half a second, detaches, and reports.
//!
//! Every leave sends a Delete, and so does the end of a join that failed, since the administrator may have granted it
//! (`__destroying_mcast`). The administrator counts ports, not memberships: a client that joins a group again before it
//! has left it loses both with the one leave.

use std::sync::Arc;

use ibal_sys::*;

use super::Ibal;
use super::latch::Latch;
use super::query::{SaRequest, bytes_of};
use super::sa::{Answer, Outcome};
use crate::fabric::ids::{Gid, Lid};
use crate::fabric::wire::mad::SA_DATA_OFFSET;
use crate::hca::Handle;
use crate::hca::log::Event;
use crate::hca::qp::Qp;
use crate::kernel::irql::PASSIVE_LEVEL;
use crate::sim::Lock;
use crate::verifier::call_driver;

/// How long a leave waits for the administrator, in milliseconds.
const LEAVE_TIMEOUT_MS: u32 = 500;

/// Where a membership is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The join is out.
    Starting,
    /// The administrator agreed.
    Active,
    /// The join was refused, or has no answer.
    Failed,
    /// The client left before the answer came.
    Canceling,
}

struct State {
    phase: Phase,
    record: ib_member_rec_t,
    transaction: Option<u64>,
    attached: bool,
    /// The join failed, and the access layer destroys the membership by itself.
    abandoned: bool,
}

/// A membership of a port, and perhaps of a queue pair, in a group.
pub struct Membership {
    /// Its handle.
    pub handle: Handle,
    qp: Option<Arc<Qp>>,
    port: u8,
    callback: ib_pfn_mcast_cb_t,
    context: usize,
    done: Option<Arc<Latch>>,
    state: Lock<State>,
}

/// The components that a join names (`send_join`).
fn components(request: &ib_mcast_req_t) -> u64 {
    let mut mask =
        IB_MCR_COMPMASK_MGID.get() | IB_MCR_COMPMASK_PORT_GID.get() | IB_MCR_COMPMASK_JOIN_STATE.get();
    if request.create == FALSE {
        return mask;
    }
    for bit in [
        IB_MCR_COMPMASK_QKEY,
        IB_MCR_COMPMASK_TCLASS,
        IB_MCR_COMPMASK_PKEY,
        IB_MCR_COMPMASK_FLOW,
        IB_MCR_COMPMASK_SL,
    ] {
        mask |= bit.get();
    }
    let record = &request.member_rec;
    for (value, selector, exact) in [
        (record.mtu, IB_MCR_COMPMASK_MTU_SEL, IB_MCR_COMPMASK_MTU),
        (record.rate, IB_MCR_COMPMASK_RATE_SEL, IB_MCR_COMPMASK_RATE),
        (record.pkt_life, IB_MCR_COMPMASK_LIFE_SEL, IB_MCR_COMPMASK_LIFE),
    ] {
        if value != 0 {
            mask |= selector.get();
            if value >> 6 != IB_PATH_SELECTOR_LARGEST {
                mask |= exact.get();
            }
        }
    }
    mask
}

impl Membership {
    /// A membership about to be asked for.
    pub fn new(
        handle: Handle,
        qp: Option<Arc<Qp>>,
        port: u8,
        request: &ib_mcast_req_t,
        done: Option<Arc<Latch>>,
    ) -> Self {
        let mut record = request.member_rec;
        record.port_gid = ib_gid_t::unicast(IB_DEFAULT_SUBNET_PREFIX, request.port_guid);
        Self {
            handle,
            qp,
            port,
            callback: request.pfn_mcast_cb,
            context: request.mcast_context as usize,
            done,
            state: Lock::new(State {
                phase: Phase::Starting,
                record,
                transaction: None,
                attached: false,
                abandoned: false,
            }),
        }
    }

    /// Has the access layer given it up? A client that holds a reference may leave it all the same, as it cannot know.
    pub fn is_abandoned(&self) -> bool {
        self.state.lock().abandoned
    }
}

impl Ibal {
    /// Sends the join.
    ///
    /// # Errors
    /// The status that `join_mcast` returns: no administrator, or an attribute that cannot be sent.
    pub(super) fn start_join(
        self: &Arc<Self>,
        membership: &Arc<Membership>,
        request: &ib_mcast_req_t,
    ) -> Result<(), ib_api_status_t> {
        let record = membership.state.lock().record;
        let mad = SaRequest {
            method: IB_MAD_METHOD_SET,
            attribute: IB_MAD_ATTR_MCMEMBER_RECORD.get(),
            components: components(request),
            data: bytes_of(&record),
        }
        .mad()
        .ok_or(IB_INVALID_PARAMETER)?;
        let sa = self.sa(membership.port).ok_or(IB_INVALID_GUID)?;
        let (ibal, joining) = (Arc::clone(self), Arc::clone(membership));
        // The membership lives until the answer: this reference is dropped by `finish_join`.
        self.objects.reference(membership.handle);
        let sent = sa.request(mad, request.timeout_ms, request.retry_cnt, move |answer| {
            let queue = Arc::clone(&ibal);
            queue.worker.queue(move || ibal.finish_join(&joining, &answer));
        });
        let Ok(id) = sent else {
            self.release(membership.handle, "join_mcast");
            return Err(IB_INVALID_GUID);
        };
        membership.state.lock().transaction = Some(id);
        Ok(())
    }

    /// The answer to a join, on the asynchronous thread.
    fn finish_join(self: &Arc<Self>, membership: &Arc<Membership>, answer: &Answer) {
        let mut status = match answer.outcome {
            Outcome::Success => IB_SUCCESS,
            Outcome::Remote(_) => IB_REMOTE_ERROR,
            Outcome::Timeout => IB_TIMEOUT,
            Outcome::Canceled => IB_CANCELED,
        };
        let error_status = match answer.outcome {
            Outcome::Remote(status) => ib_net16_t::new(status.0),
            _ => ib_net16_t::ZERO,
        };
        let (phase, mut record) = {
            let mut state = membership.state.lock();
            state.transaction = None;
            if status == IB_SUCCESS {
                if let Some(fresh) = answer.mad.as_deref().and_then(member_record) {
                    state.record = fresh;
                }
                if state.phase == Phase::Starting {
                    state.phase = Phase::Active;
                } else {
                    status = IB_CANCELED;
                }
            } else if state.phase == Phase::Starting {
                state.phase = Phase::Failed;
            }
            (state.phase, state.record)
        };
        if phase == Phase::Active
            && record.join_state() & IB_JOIN_STATE_FULL != 0
            && let Some(qp) = &membership.qp
        {
            let (gid, lid) = (Gid(record.mgid.raw), Lid(record.mlid.get()));
            if !crate::fault::should_fail("attach_mcast") && self.hca.attach(membership.port, gid, lid, qp) {
                membership.state.lock().attached = true;
            } else {
                status = IB_INSUFFICIENT_RESOURCES;
            }
        }
        self.hca.note(Event::Joined {
            mgid: record.mgid.raw,
            mlid: if status == IB_SUCCESS { record.mlid.get() } else { 0 },
            status: status.0,
        });
        let mut result = ib_mcast_rec_t {
            mcast_context: std::ptr::with_exposed_provenance(membership.context),
            status,
            error_status,
            h_mcast: if phase == Phase::Active { membership.handle.to_ptr() } else { std::ptr::null_mut() },
            p_member_rec: &raw mut record,
        };
        if let Some(callback) = membership.callback {
            call_driver("multicast join callback", PASSIVE_LEVEL, || {
                // SAFETY: the driver's own callback; the record and what it points to live for the call.
                unsafe { callback(&raw mut result) };
            });
        }
        if let Some(done) = &membership.done {
            done.open();
        }
        if status != IB_SUCCESS {
            self.abandon(membership);
        }
        self.release(membership.handle, "join_mcast");
    }

    /// A join that failed destroys its membership, unless the client already does.
    pub(super) fn abandon(self: &Arc<Self>, membership: &Arc<Membership>) {
        let notice = super::objects::Notice::None;
        membership.state.lock().abandoned = true;
        if self.objects.begin_destroy(membership.handle, notice).is_ok() {
            self.start_leave(membership);
        }
    }

    /// A client leaves: the membership is marked as going already.
    pub(super) fn start_leave(self: &Arc<Self>, membership: &Arc<Membership>) {
        let (phase, transaction, record) = {
            let mut state = membership.state.lock();
            if state.phase == Phase::Starting {
                state.phase = Phase::Canceling;
            }
            (state.phase, state.transaction, state.record)
        };
        if phase == Phase::Canceling
            && let (Some(id), Some(sa)) = (transaction, self.sa(membership.port))
        {
            sa.cancel(id);
        }
        if !self.send_delete(membership, &record) {
            self.finish_leave_later(membership);
        }
    }

    fn send_delete(self: &Arc<Self>, membership: &Arc<Membership>, record: &ib_member_rec_t) -> bool {
        let components =
            IB_MCR_COMPMASK_MGID.get() | IB_MCR_COMPMASK_PORT_GID.get() | IB_MCR_COMPMASK_JOIN_STATE.get();
        let request = SaRequest {
            method: IB_MAD_METHOD_DELETE,
            attribute: IB_MAD_ATTR_MCMEMBER_RECORD.get(),
            components,
            data: bytes_of(record),
        };
        let (Some(mad), Some(sa)) = (request.mad(), self.sa(membership.port)) else { return false };
        let (ibal, leaving) = (Arc::clone(self), Arc::clone(membership));
        sa.request(mad, LEAVE_TIMEOUT_MS, 0, move |_| ibal.finish_leave_later(&leaving)).is_ok()
    }

    fn finish_leave_later(self: &Arc<Self>, membership: &Arc<Membership>) {
        let (ibal, leaving) = (Arc::clone(self), Arc::clone(membership));
        self.worker.queue(move || ibal.finish_leave(&leaving));
    }

    fn finish_leave(&self, membership: &Membership) {
        let (record, attached) = {
            let mut state = membership.state.lock();
            (state.record, std::mem::take(&mut state.attached))
        };
        if attached && let Some(qp) = &membership.qp {
            self.hca.detach(membership.port, Gid(record.mgid.raw), Lid(record.mlid.get()), qp);
        }
        self.hca.note(Event::Left { mgid: record.mgid.raw });
        self.release(membership.handle, "leave_mcast");
    }
}

/// The record of an answer. The attribute has 52 bytes; the structure that drivers see is padded.
fn member_record(answer: &[u8]) -> Option<ib_member_rec_t> {
    let data = answer.get(SA_DATA_OFFSET..SA_DATA_OFFSET + size_of::<ib_member_rec_t>())?;
    // SAFETY: as many bytes as the packed structure has, for which any bytes are a value.
    Some(unsafe { data.as_ptr().cast::<ib_member_rec_t>().read_unaligned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(create: boolean_t, member_rec: ib_member_rec_t) -> ib_mcast_req_t {
        ib_mcast_req_t {
            create,
            member_rec,
            mcast_context: std::ptr::null(),
            pfn_mcast_cb: None,
            timeout_ms: 0,
            retry_cnt: 0,
            flags: 0,
            port_guid: ib_net64_t::ZERO,
            pkey_index: 0,
        }
    }

    /// `send_join`: a plain join names the group, the port and the state; a creating one also the parameters, with
    /// selectors only where a value is given, and no value behind the selector "largest".
    #[test]
    fn component_masks() {
        let join = (1 << 0) | (1 << 1) | (1 << 16);
        assert_eq!(components(&request(FALSE, ib_member_rec_t { mtu: 4, ..Default::default() })), join);
        let create = join | (1 << 2) | (1 << 6) | (1 << 7) | (1 << 13) | (1 << 12);
        assert_eq!(components(&request(TRUE, ib_member_rec_t::default())), create);
        let exact = ib_member_rec_t { mtu: (IB_PATH_SELECTOR_EXACTLY << 6) | 4, ..Default::default() };
        assert_eq!(components(&request(TRUE, exact)), create | (1 << 4) | (1 << 5));
        let largest = ib_member_rec_t { rate: IB_PATH_SELECTOR_LARGEST << 6, ..Default::default() };
        assert_eq!(components(&request(TRUE, largest)), create | (1 << 8));
    }
}
