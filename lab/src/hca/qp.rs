//! Queue pairs: the two work queues, their slots, and what each transition does to them.
//!
//! The queue pair holds what is posted; the engine of the HCA moves it. A slot of a queue is taken when a request is
//! posted and comes back when its completion is *polled*, or, for an unsignaled send, when a later completion of the
//! same queue is (IBA vol. 1 §10.8.5.1): a consumer that never signals fills its send queue.
//!
//! Lock order: attributes, send queue, receive queue, completion queue.

use std::collections::VecDeque;
use std::sync::{Arc, RwLock};

use super::av::Av;
use super::cq::{Completion, CompletionKind, Cq, Pushed, Receive, Status};
use super::handle::Handle;
use super::mem::Element;
use super::qp_state::{self, Modify, PathAttr, QpState, Refused, Retry, Service};
use super::rc::{Expected, Flights};
use super::{read, write};
use crate::sim::{Lock, LockGuard};

/// Sizes that a queue pair was created with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    /// Send requests outstanding.
    pub sq_depth: u32,
    /// Receive requests outstanding.
    pub rq_depth: u32,
    /// Elements of a send.
    pub sq_sge: u32,
    /// Elements of a receive.
    pub rq_sge: u32,
    /// Longest inline send in bytes.
    pub max_inline: u32,
    /// Does every send complete with an entry?
    pub all_signaled: bool,
}

/// What a transition sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attrs {
    /// State.
    pub state: QpState,
    /// Port, from 1; 0 before INIT.
    pub port: u8,
    /// Index in the port's P_Key table.
    pub pkey_index: u16,
    /// Q_Key.
    pub qkey: u32,
    /// Access flags.
    pub access: u32,
    /// Initial or last given send PSN.
    pub sq_psn: u32,
    /// Initial or last given receive PSN of a connected queue pair.
    pub rq_psn: u32,
    /// Peer of a connected queue pair.
    pub dest_qpn: u32,
    /// Path of a connected queue pair.
    pub path: PathAttr,
    /// Retries of a connected queue pair.
    pub retry: Retry,
    /// RNR timer code of a connected queue pair.
    pub rnr_timer: u8,
    /// How often it was reset: completions and deliveries of an older life are void.
    pub epoch: u32,
    /// With SQD: an event was asked for.
    pub notify_drained: bool,
}

impl Attrs {
    fn reset(epoch: u32) -> Self {
        Self {
            state: QpState::Reset,
            port: 0,
            pkey_index: 0,
            qkey: 0,
            access: 0,
            sq_psn: 0,
            rq_psn: 0,
            dest_qpn: 0,
            path: PathAttr::default(),
            retry: Retry::default(),
            rnr_timer: 0,
            epoch,
            notify_drained: false,
        }
    }
}

/// A posted send.
#[derive(Clone, Debug)]
pub struct SendRequest {
    /// Consumer's id.
    pub wr_id: u64,
    /// What to gather.
    pub elements: Vec<Element>,
    /// Payload copied when it was posted (inline sends).
    pub inline: Option<Vec<u8>>,
    /// Complete with an entry on success?
    pub signaled: bool,
    /// Set the solicited event bit.
    pub solicited: bool,
    /// Immediate data.
    pub immediate: Option<u32>,
    /// Path of a datagram.
    pub av: Option<Arc<Av>>,
    /// Destination queue pair of a datagram.
    pub remote_qpn: u32,
    /// Q_Key of the request; with the top bit set the queue pair's own is used (§10.2.5).
    pub remote_qkey: u32,
}

/// A posted receive.
#[derive(Clone, Debug)]
pub struct RecvRequest {
    /// Consumer's id.
    pub wr_id: u64,
    /// Where to scatter.
    pub elements: Vec<Element>,
}

/// Why a request is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostError {
    /// The state does not allow it.
    State(QpState),
    /// All slots are taken.
    Full,
    /// More elements than the queue was created for.
    TooManyElements,
    /// An inline send longer than the queue was created for.
    InlineTooLong,
}

/// Requests of the send queue.
#[derive(Debug, Default)]
pub struct SendQueue {
    /// Posted, not started.
    pub requests: VecDeque<SendRequest>,
    /// Slots taken, by requests here and by completions that nobody polled.
    pub used: u32,
    /// Unsignaled requests done since the last entry: the next one gives their slots back.
    pub silent: u32,
    /// PSN of the next packet.
    pub psn: u32,
    /// Has the engine an event to come back to this queue?
    pub scheduled: bool,
    /// Connected services: sent, not acknowledged.
    pub flights: Flights,
    /// How the next send is to end, if a test said so.
    pub inject: Option<Status>,
    /// No packet before this time (static rate control).
    pub not_before: u64,
    /// Life of the queue pair, as in [`Attrs::epoch`].
    pub epoch: u32,
}

/// Requests of the receive queue.
#[derive(Debug, Default)]
pub struct RecvQueue {
    /// Posted, empty.
    pub requests: VecDeque<RecvRequest>,
    /// Slots taken.
    pub used: u32,
    /// Connected services: what comes next.
    pub expected: Expected,
    /// Life of the queue pair, as in [`Attrs::epoch`].
    pub epoch: u32,
}

/// What pushing completions calls for, each with its queue: done after the locks are gone.
pub type Notices = Vec<(Arc<Cq>, Pushed)>;

/// What a transition did.
#[derive(Debug)]
pub struct Moved {
    /// State before.
    pub from: QpState,
    /// State after.
    pub to: QpState,
    /// The Q_Key, if it changed.
    pub qkey: Option<u32>,
    /// The send queue may have work to start.
    pub kick: bool,
}

/// A queue pair.
#[derive(Debug)]
pub struct Qp {
    /// Its handle.
    pub handle: Handle,
    /// Its number, fixed for its life.
    pub qpn: u32,
    /// Transport service.
    pub service: Service,
    /// Protection domain.
    pub pd: Handle,
    /// Queue of send completions.
    pub send_cq: Arc<Cq>,
    /// Queue of receive completions.
    pub recv_cq: Arc<Cq>,
    /// Sizes.
    pub caps: Caps,
    attrs: RwLock<Attrs>,
    send: Lock<SendQueue>,
    recv: Lock<RecvQueue>,
}

impl Qp {
    /// A queue pair in RESET.
    pub fn new(
        handle: Handle,
        qpn: u32,
        service: Service,
        pd: Handle,
        send_cq: Arc<Cq>,
        recv_cq: Arc<Cq>,
        caps: Caps,
    ) -> Self {
        Self {
            handle,
            qpn,
            service,
            pd,
            send_cq,
            recv_cq,
            caps,
            attrs: RwLock::new(Attrs::reset(0)),
            send: Lock::default(),
            recv: Lock::default(),
        }
    }

    /// Its attributes now.
    pub fn attrs(&self) -> Attrs {
        *read(&self.attrs)
    }

    /// The send queue.
    pub fn send(&self) -> LockGuard<'_, SendQueue> {
        self.send.lock()
    }

    /// The receive queue.
    pub fn recv(&self) -> LockGuard<'_, RecvQueue> {
        self.recv.lock()
    }

    /// Requests posted and not completed, sends then receives.
    pub fn outstanding(&self) -> (usize, usize) {
        (self.send().requests.len(), self.recv().requests.len())
    }

    /// Does a posted request name any byte of [`start`, `start + length`) of physical memory through one of the
    /// regions in `lkeys`? Used to find buffers that are freed while the HCA owns them.
    pub fn owns(&self, start: u64, length: u64, is_physical: impl Fn(u32) -> bool) -> Option<u64> {
        let hit = |elements: &[Element]| {
            elements.iter().any(|e| {
                e.length > 0
                    && is_physical(e.lkey)
                    && e.address < start.saturating_add(length)
                    && start < e.address.saturating_add(u64::from(e.length))
            })
        };
        let send = self.send();
        if let Some(wr) = send.requests.iter().find(|wr| wr.inline.is_none() && hit(&wr.elements)) {
            return Some(wr.wr_id);
        }
        drop(send);
        self.recv().requests.iter().find(|wr| hit(&wr.elements)).map(|wr| wr.wr_id)
    }

    /// Posts a send.
    ///
    /// # Errors
    /// [`PostError`]; the request is dropped, and its address vector with it.
    pub fn post_send(&self, request: SendRequest) -> Result<(), PostError> {
        let attrs = read(&self.attrs);
        if !attrs.state.accepts_send() {
            return Err(PostError::State(attrs.state));
        }
        if request.elements.len() > self.caps.sq_sge as usize && request.inline.is_none() {
            return Err(PostError::TooManyElements);
        }
        if request.inline.as_ref().is_some_and(|data| data.len() > self.caps.max_inline as usize) {
            return Err(PostError::InlineTooLong);
        }
        let mut send = self.send();
        if send.used >= self.caps.sq_depth {
            return Err(PostError::Full);
        }
        if let Some(av) = &request.av {
            av.acquire();
        }
        send.used += 1;
        send.requests.push_back(request);
        Ok(())
    }

    /// Posts a receive.
    ///
    /// # Errors
    /// [`PostError`].
    pub fn post_recv(&self, request: RecvRequest) -> Result<(), PostError> {
        let attrs = read(&self.attrs);
        if !attrs.state.accepts_recv() {
            return Err(PostError::State(attrs.state));
        }
        if request.elements.len() > self.caps.rq_sge as usize {
            return Err(PostError::TooManyElements);
        }
        let mut recv = self.recv();
        if recv.used >= self.caps.rq_depth {
            return Err(PostError::Full);
        }
        recv.used += 1;
        recv.requests.push_back(request);
        Ok(())
    }

    /// A completion was polled: its slots are free again.
    pub fn polled(&self, completion: &Completion) {
        if read(&self.attrs).epoch != completion.epoch {
            return;
        }
        match completion.kind {
            CompletionKind::Send => {
                let mut send = self.send();
                send.used = send.used.saturating_sub(completion.slots);
            }
            CompletionKind::Recv => {
                let mut recv = self.recv();
                recv.used = recv.used.saturating_sub(completion.slots);
            }
        }
    }

    /// Completes a send that was taken out of `queue` in life `epoch`: pushes an entry if it is signaled or failed,
    /// unless the queue pair was reset meanwhile.
    pub fn complete_send(
        &self,
        queue: &mut SendQueue,
        epoch: u32,
        request: &SendRequest,
        status: Status,
        length: u32,
    ) -> Pushed {
        if let Some(av) = &request.av {
            av.release();
        }
        if queue.epoch != epoch {
            return Pushed::Quiet;
        }
        if status == Status::Success && !request.signaled {
            queue.silent += 1;
            return Pushed::Quiet;
        }
        let slots = 1 + std::mem::take(&mut queue.silent);
        self.send_cq.push(Completion {
            wr_id: request.wr_id,
            kind: CompletionKind::Send,
            status,
            length,
            qpn: self.qpn,
            epoch,
            slots,
            solicited: false,
            receive: Receive::default(),
        })
    }

    /// Completes a receive that was taken out of `queue`.
    pub fn complete_recv(
        &self,
        queue: &RecvQueue,
        wr_id: u64,
        status: Status,
        length: u32,
        solicited: bool,
        receive: Receive,
    ) -> Pushed {
        self.recv_cq.push(Completion {
            wr_id,
            kind: CompletionKind::Recv,
            status,
            length,
            qpn: self.qpn,
            epoch: queue.epoch,
            slots: 1,
            solicited,
            receive,
        })
    }

    /// Completes every send as flushed.
    pub fn flush_sends(&self, notices: &mut Notices) {
        let mut send = self.send();
        let epoch = send.epoch;
        let flights = send.flights.take();
        for request in flights {
            let pushed = self.complete_send(&mut send, epoch, &request, Status::Flushed, 0);
            note(notices, &self.send_cq, pushed);
        }
        while let Some(request) = send.requests.pop_front() {
            let pushed = self.complete_send(&mut send, epoch, &request, Status::Flushed, 0);
            note(notices, &self.send_cq, pushed);
        }
    }

    /// Completes every receive as flushed.
    pub fn flush_recvs(&self, notices: &mut Notices) {
        let mut recv = self.recv();
        // A message that was coming in has a receive already.
        if let Some(request) = recv.expected.abandon() {
            recv.requests.push_front(request);
        }
        while let Some(request) = recv.requests.pop_front() {
            let pushed =
                self.complete_recv(&recv, request.wr_id, Status::Flushed, 0, false, Receive::default());
            note(notices, &self.recv_cq, pushed);
        }
    }

    /// Carries out a request to change state.
    ///
    /// RESET drops everything, posted requests and the entries of this queue pair in its completion queues alike
    /// (§10.3.1.1); ERROR leaves the requests for the engine to flush.
    ///
    /// # Errors
    /// [`Refused`]; nothing has changed then.
    pub fn modify(&self, modify: &Modify) -> Result<Moved, Refused> {
        let mut attrs = write(&self.attrs);
        let from = attrs.state;
        qp_state::check(self.service, from, modify)?;
        if modify.to == QpState::Reset {
            let mut send = self.send();
            // Messages of a connected queue pair have no address vector, so what is in flight just goes.
            for request in send.requests.drain(..) {
                if let Some(av) = request.av {
                    av.release();
                }
            }
            let epoch = attrs.epoch + 1;
            *send = SendQueue { scheduled: send.scheduled, epoch, ..SendQueue::default() };
            let mut recv = self.recv();
            *recv = RecvQueue { epoch, ..RecvQueue::default() };
            *attrs = Attrs::reset(epoch);
            self.send_cq.purge(self.qpn);
            self.recv_cq.purge(self.qpn);
            return Ok(Moved { from, to: QpState::Reset, qkey: None, kick: false });
        }
        let a = &modify.attributes;
        attrs.state = modify.to;
        attrs.notify_drained = modify.to == QpState::Sqd && modify.notify_drained;
        attrs.port = a.port.unwrap_or(attrs.port);
        attrs.pkey_index = a.pkey_index.unwrap_or(attrs.pkey_index);
        attrs.access = a.access.unwrap_or(attrs.access);
        attrs.rq_psn = a.rq_psn.unwrap_or(attrs.rq_psn);
        attrs.dest_qpn = a.dest_qpn.unwrap_or(attrs.dest_qpn);
        attrs.path = a.path.unwrap_or(attrs.path);
        attrs.retry = a.retry.unwrap_or(attrs.retry);
        attrs.rnr_timer = a.rnr_timer.unwrap_or(attrs.rnr_timer);
        if let Some(psn) = a.rq_psn {
            self.recv().expected = Expected::from(psn);
        }
        if let Some(retry) = a.retry {
            self.send().flights.arm(retry);
        }
        let qkey = a.qkey.filter(|qkey| *qkey != attrs.qkey);
        attrs.qkey = a.qkey.unwrap_or(attrs.qkey);
        if let Some(psn) = a.sq_psn {
            attrs.sq_psn = psn;
            self.send().psn = psn;
        }
        Ok(Moved {
            from,
            to: modify.to,
            qkey,
            kick: matches!(modify.to, QpState::Rts | QpState::Error | QpState::Sqd),
        })
    }

    /// The hardware itself moves the queue pair to SQE or ERROR. `None` if it is there, or was reset meanwhile.
    pub fn fail(&self, epoch: u32, to: QpState) -> Option<QpState> {
        let mut attrs = write(&self.attrs);
        let from = attrs.state;
        if attrs.epoch != epoch || matches!(from, QpState::Reset | QpState::Error) || from == to {
            return None;
        }
        attrs.state = to;
        Some(from)
    }

    /// Was an event asked for when the send queue has drained? Asked once only.
    pub fn take_drained_notice(&self) -> bool {
        std::mem::take(&mut write(&self.attrs).notify_drained)
    }
}

fn note(notices: &mut Notices, cq: &Arc<Cq>, pushed: Pushed) {
    if pushed != Pushed::Quiet {
        notices.push((Arc::clone(cq), pushed));
    }
}

#[cfg(test)]
mod tests {
    use super::super::av::AvAttr;
    use super::super::handle::Kind;
    use super::*;

    fn handle(kind: Kind) -> Handle {
        Handle { hca: 0, kind, serial: 1 }
    }

    fn qp(all_signaled: bool) -> Qp {
        let cq = Arc::new(Cq::new(handle(Kind::Cq), 64, Box::new(|_| ())));
        let caps = Caps { sq_depth: 4, rq_depth: 4, sq_sge: 2, rq_sge: 2, max_inline: 16, all_signaled };
        Qp::new(handle(Kind::Qp), 0x48, Service::Ud, handle(Kind::Pd), Arc::clone(&cq), cq, caps)
    }

    fn up(qp: &Qp) {
        let mut init = Modify::to(QpState::Init);
        init.attributes.pkey_index = Some(0);
        init.attributes.port = Some(1);
        init.attributes.qkey = Some(0xb1b);
        qp.modify(&init).unwrap();
        qp.modify(&Modify::to(QpState::Rtr)).unwrap();
        let mut rts = Modify::to(QpState::Rts);
        rts.attributes.sq_psn = Some(5);
        qp.modify(&rts).unwrap();
    }

    fn send(wr_id: u64, signaled: bool) -> SendRequest {
        SendRequest {
            wr_id,
            elements: Vec::new(),
            inline: None,
            signaled,
            solicited: false,
            immediate: None,
            av: None,
            remote_qpn: 1,
            remote_qkey: 0,
        }
    }

    fn recv(wr_id: u64) -> RecvRequest {
        RecvRequest { wr_id, elements: Vec::new() }
    }

    /// Completes the oldest send and polls.
    fn run_one(qp: &Qp) -> Option<Completion> {
        let mut queue = qp.send();
        let request = queue.requests.pop_front().unwrap();
        let epoch = queue.epoch;
        qp.complete_send(&mut queue, epoch, &request, Status::Success, 0);
        drop(queue);
        qp.send_cq.poll()
    }

    /// §10.8.5.1: slots of unsignaled sends come back with the next polled completion, not before.
    #[test]
    fn unsignaled_sends_hold_their_slots_until_a_later_completion_is_polled() {
        let qp = qp(false);
        up(&qp);
        for wr in 0..3 {
            qp.post_send(send(wr, false)).unwrap();
            assert_eq!(run_one(&qp), None);
        }
        qp.post_send(send(3, true)).unwrap();
        assert_eq!(qp.post_send(send(4, true)), Err(PostError::Full));
        let completion = run_one(&qp).unwrap();
        assert_eq!(completion.slots, 4);
        assert_eq!(qp.post_send(send(4, true)), Err(PostError::Full));
        qp.polled(&completion);
        assert_eq!(qp.post_send(send(4, true)), Ok(()));
    }

    /// §10.3.1: RESET refuses both queues, INIT takes receives only, RTS takes both.
    #[test]
    fn posting_follows_the_state() {
        let qp = qp(true);
        assert_eq!(qp.post_recv(recv(1)), Err(PostError::State(QpState::Reset)));
        assert_eq!(qp.post_send(send(1, true)), Err(PostError::State(QpState::Reset)));
        up(&qp);
        assert_eq!(qp.post_recv(recv(1)), Ok(()));
        assert_eq!(qp.post_send(send(1, true)), Ok(()));
    }

    /// §10.3.1.7: in ERROR everything posted comes out flushed, unsignaled sends too.
    #[test]
    fn error_flushes_both_queues_in_order() {
        let qp = qp(false);
        up(&qp);
        qp.post_send(send(1, false)).unwrap();
        qp.post_send(send(2, true)).unwrap();
        qp.post_recv(recv(3)).unwrap();
        qp.modify(&Modify::to(QpState::Error)).unwrap();
        qp.post_recv(recv(4)).unwrap();
        let mut notices = Notices::new();
        qp.flush_sends(&mut notices);
        qp.flush_recvs(&mut notices);
        let ids: Vec<_> =
            std::iter::from_fn(|| qp.send_cq.poll()).map(|entry| (entry.wr_id, entry.status)).collect();
        assert_eq!(ids, [1, 2, 3, 4].map(|id| (id, Status::Flushed)));
    }

    /// §10.3.1.1: RESET forgets requests and entries, gives every slot back, and voids what is still to be polled.
    #[test]
    fn reset_forgets_everything() {
        let qp = qp(true);
        up(&qp);
        for wr in 0..4 {
            qp.post_send(send(wr, true)).unwrap();
        }
        let completion = run_one(&qp).unwrap();
        qp.send_cq.push(completion);
        qp.modify(&Modify::to(QpState::Error)).unwrap();
        qp.modify(&Modify::to(QpState::Reset)).unwrap();
        assert!(qp.send_cq.is_empty());
        assert_eq!(qp.outstanding(), (0, 0));
        up(&qp);
        for wr in 0..4 {
            qp.post_send(send(wr, true)).unwrap();
        }
        qp.polled(&completion);
        assert_eq!(qp.post_send(send(9, true)), Err(PostError::Full));
    }

    /// §11.2.2.4: an address vector knows the posted sends that use it, however they end.
    #[test]
    fn sends_hold_their_address_vector() {
        let attr = AvAttr { port: 1, sl: 0, dlid: 1, path_bits: 0, static_rate: 0, grh: None };
        let av = Arc::new(Av::new(handle(Kind::Av), handle(Kind::Pd), attr));
        let qp = qp(true);
        up(&qp);
        qp.post_send(SendRequest { av: Some(Arc::clone(&av)), ..send(1, true) }).unwrap();
        qp.post_send(SendRequest { av: Some(Arc::clone(&av)), ..send(2, true) }).unwrap();
        assert_eq!(av.users(), 2);
        run_one(&qp);
        assert_eq!(av.users(), 1);
        qp.modify(&Modify::to(QpState::Reset)).unwrap();
        assert_eq!(av.users(), 0);
    }

    /// A posted buffer is found by the memory it covers, until its request is gone.
    #[test]
    fn posted_buffers_are_owned() {
        let qp = qp(true);
        up(&qp);
        let element = Element { address: 0x5000, length: 0x100, lkey: 1 };
        qp.post_recv(RecvRequest { wr_id: 7, elements: vec![element] }).unwrap();
        assert_eq!(qp.owns(0x50ff, 1, |_| true), Some(7));
        assert_eq!(qp.owns(0x5100, 1, |_| true), None);
        assert_eq!(qp.owns(0x50ff, 1, |_| false), None);
    }

    /// Limits that the queue pair was created with.
    #[test]
    fn limits() {
        let qp = qp(true);
        up(&qp);
        let element = Element { address: 0, length: 1, lkey: 1 };
        let three = SendRequest { elements: vec![element; 3], ..send(1, true) };
        assert_eq!(qp.post_send(three), Err(PostError::TooManyElements));
        let long = SendRequest { inline: Some(vec![0; 17]), ..send(1, true) };
        assert_eq!(qp.post_send(long), Err(PostError::InlineTooLong));
    }
}
