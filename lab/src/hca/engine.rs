//! Moving work requests: the send engine of a queue pair, and what becomes of an arriving packet.
//!
//! Rules: IBA vol. 1 §9.6 (packet checks), §9.8.3 (unreliable datagram), §10.2.5 (Q_Keys), §10.5 (multicast),
//! §10.8 (work requests). What the link and the port check (lengths, CRCs, LIDs, the port's partitions) the fabric
//! has done.

use std::sync::Arc;

use super::Hca;
use super::av::AvAttr;
use super::cq::{Receive, Status};
use super::listener::AsyncEvent;
use super::mem::{self, Fault};
use super::qp::{Notices, Qp, SendRequest};
use super::qp_state::{QpState, Service};
use super::rules::{QP_MEMORY_FREED, QP_MEMORY_NOT_REGISTERED};
use crate::fabric::ids::{Gid, Lid, Nanos, PKey, QKey, Qpn};
use crate::fabric::rate::Rate;
use crate::fabric::topology::{Port, PortState};
use crate::fabric::wire::lrh::Lrh;
use crate::fabric::wire::mad::MAD_LEN;
use crate::fabric::wire::{Bth, Deth, Grh, Headers, OpCode, Packet};
use crate::sim::{Mode, Sim};
use crate::verifier;

/// From the doorbell to the first byte on the link.
const DOORBELL: Nanos = 300;
/// Through the HCA and back, for a packet to its own port.
const LOOPBACK: Nanos = 600;
/// What lies in the GRH space of a receive buffer when the packet had none: anything, so never zeros.
const NO_GRH: [u8; Grh::LEN] = [0xa5; Grh::LEN];

/// Why a packet that reached the HCA was not received by a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ignored {
    /// Not a packet of the services that this HCA has.
    Malformed,
    /// No queue pair has this number, or no queue pair is attached to the group.
    NoQueuePair,
    /// The queue pair does not receive in its state, or not on this port.
    State,
    /// The queue pair is in another partition.
    PKey,
    /// The Q_Key differs.
    QKey,
    /// No receive was posted.
    NoReceive,
}

impl Hca {
    /// Starts the send engine of a queue pair, if it has work and is not running.
    pub(super) fn kick(self: &Arc<Self>, qp: &Arc<Qp>) {
        let state = qp.attrs().state;
        {
            let mut send = qp.send();
            if send.scheduled || (send.requests.is_empty() && !matches!(state, QpState::Error | QpState::Sqd))
            {
                return;
            }
            send.scheduled = true;
        }
        if self.sim().mode() == Mode::Threaded {
            return self.run(qp);
        }
        self.come_back(qp, self.sim().now() + DOORBELL);
    }

    fn come_back(self: &Arc<Self>, qp: &Arc<Qp>, at: Nanos) {
        let (hca, qp) = (Arc::clone(self), Arc::clone(qp));
        self.sim().at(at, "hca send", move |_: &Sim| hca.run(&qp));
    }

    /// The send engine: one request after the other, as fast as the link takes them.
    fn run(self: &Arc<Self>, qp: &Arc<Qp>) {
        loop {
            let attrs = qp.attrs();
            self.flush(qp, attrs.state);
            let (request, epoch) = {
                let mut send = qp.send();
                if !send.requests.is_empty() && attrs.state.flushes_sends() {
                    // It came between the flush and this lock.
                    continue;
                }
                if attrs.state != QpState::Rts || send.requests.is_empty() {
                    send.scheduled = false;
                    drop(send);
                    let drained = attrs.state == QpState::Sqd && attrs.notify_drained;
                    if drained && qp.take_drained_notice() {
                        self.report(qp.handle, AsyncEvent::SqDrained);
                    }
                    // A transition that found the engine still scheduled relied on it.
                    if qp.attrs().state != attrs.state {
                        self.kick(qp);
                    }
                    return;
                }
                if self.sim().mode() == Mode::Deterministic {
                    let free = self.free_at(attrs.port).max(send.not_before);
                    if free > self.sim().now() {
                        drop(send);
                        return self.come_back(qp, free);
                    }
                }
                (send.requests.pop_front(), send.epoch)
            };
            match request {
                Some(request) if qp.service == Service::Rc => self.start_message(qp, epoch, request),
                Some(request) => self.send_one(qp, epoch, &request),
                None => {}
            }
        }
    }

    /// Flushes what the state flushes.
    fn flush(self: &Arc<Self>, qp: &Arc<Qp>, state: QpState) {
        let mut notices = Notices::new();
        if state.flushes_sends() {
            qp.flush_sends(&mut notices);
        }
        if state == QpState::Error {
            qp.flush_recvs(&mut notices);
        }
        for (cq, pushed) in notices {
            self.pushed(&cq, pushed);
        }
    }

    /// Sends one request and completes it.
    fn send_one(self: &Arc<Self>, qp: &Arc<Qp>, epoch: u32, request: &SendRequest) {
        let injected = qp.send().inject.take();
        let outcome = injected.map_or_else(|| self.send_datagram(qp, request), Err);
        let (status, length) = match outcome {
            Ok(length) => (Status::Success, length),
            Err(status) => (status, 0),
        };
        self.end_one(qp, epoch, request, status, length);
    }

    /// Starts a message of a connected queue pair, which completes when it is acknowledged.
    fn start_message(self: &Arc<Self>, qp: &Arc<Qp>, epoch: u32, request: SendRequest) {
        let injected = qp.send().inject.take();
        let started = match injected {
            Some(status) => Err((request, status)),
            None => self.send_message(qp, epoch, request),
        };
        if let Err((request, status)) = started {
            self.end_one(qp, epoch, &request, status, 0);
        }
    }

    fn end_one(
        self: &Arc<Self>,
        qp: &Arc<Qp>,
        epoch: u32,
        request: &SendRequest,
        status: Status,
        length: u32,
    ) {
        let pushed = {
            let mut send = qp.send();
            qp.complete_send(&mut send, epoch, request, status, length)
        };
        self.pushed(&qp.send_cq, pushed);
        if status != Status::Success {
            let to = if qp.service == Service::Ud { QpState::Sqe } else { QpState::Error };
            self.fail(qp, epoch, to);
        }
    }

    fn send_datagram(self: &Arc<Self>, qp: &Arc<Qp>, request: &SendRequest) -> Result<u32, Status> {
        let attrs = qp.attrs();
        let av = request.av.as_ref().ok_or(Status::LocalOperation)?.attr();
        let port = self.port(av.port).ok_or(Status::LocalOperation)?.view();
        let length =
            request.inline.as_ref().map_or_else(|| mem::total(&request.elements), |data| data.len() as u64);
        if length > port.mtu.bytes() as u64 {
            return Err(Status::LocalLength);
        }
        // With the top bit set in the request, the queue pair's own key goes out (§10.2.5).
        let qkey = if QKey(request.remote_qkey).is_controlled() { attrs.qkey } else { request.remote_qkey };
        let psn = {
            let mut send = qp.send();
            let psn = send.psn;
            send.psn = (psn + 1) & 0xff_ffff;
            psn
        };
        let headers = datagram_headers(
            &av,
            &port,
            Bth {
                opcode: if request.immediate.is_some() {
                    OpCode::UD_SEND_ONLY_IMMEDIATE
                } else {
                    OpCode::UD_SEND_ONLY
                },
                solicited: request.solicited,
                migrated: true,
                pkey: port.pkeys.get(usize::from(attrs.pkey_index)).copied().unwrap_or(PKey(0)),
                dest_qp: Qpn::new(request.remote_qpn),
                psn,
                ..Bth::default()
            },
            Deth { qkey: QKey(qkey), src_qp: Qpn::new(qp.qpn) },
            request.immediate,
        );
        let mut fault = None;
        let packet = Packet::build(&headers, length as usize, |space| match &request.inline {
            Some(data) => space.copy_from_slice(data),
            None => fault = mem::gather(self.as_ref(), &self.memory(), qp.pd, &request.elements, space).err(),
        });
        if let Some(fault) = fault {
            memory_violation("send", qp, request.wr_id, &fault);
        }
        self.pace(qp, av.static_rate, packet.len());
        let port = av.port;
        self.transmit(port, packet, headers.lrh.dlid);
        Ok(length as u32)
    }

    /// A static rate below the link's holds the next packet of this queue pair back (§9.11).
    fn pace(&self, qp: &Qp, static_rate: u8, bytes: usize) {
        let Some(rate) = Rate::from_code(static_rate) else { return };
        if self.sim().mode() == Mode::Deterministic {
            let time = bytes as u64 * 8_000 / u64::from(rate.megabits().max(1));
            qp.send().not_before = self.sim().now() + time;
        }
    }

    /// Sends a packet out of a port; to a LID of its own it comes back, and to a group it also goes to the queue
    /// pairs of this port (§10.5.2.1), the sender's own included.
    pub(super) fn transmit(self: &Arc<Self>, port: u8, packet: Packet, dlid: Lid) {
        let Some(own) = self.port(port) else { return };
        let view = own.view();
        let to_self = dlid.is_unicast() && dlid.base(view.lmc) == view.lid;
        if view.state == PortState::Active && (to_self || (dlid.is_multicast() && self.has_group(port, dlid)))
        {
            self.loop_back(port, packet.clone());
        }
        if !to_self {
            self.net.transmit(own.id, packet);
        }
    }

    fn loop_back(self: &Arc<Self>, port: u8, packet: Packet) {
        if self.sim().mode() == Mode::Threaded {
            return self.receive(port, &packet);
        }
        let hca = Arc::clone(self);
        self.sim().after(LOOPBACK, "hca loopback", move |_: &Sim| hca.receive(port, &packet));
    }

    /// A packet arrived at a port, or came back to it.
    pub(super) fn receive(self: &Arc<Self>, port: u8, packet: &Packet) {
        if let Err(ignored) = self.try_receive(port, packet) {
            self.ignored(ignored);
        }
    }

    fn try_receive(self: &Arc<Self>, port: u8, packet: &Packet) -> Result<(), Ignored> {
        let (headers, payload) = packet.parse().map_err(|_| Ignored::Malformed)?;
        let dest = headers.bth.dest_qp;
        let Some(deth) = headers.deth else {
            let qp = self.qp_by_number(dest.get()).filter(|qp| qp.service == Service::Rc);
            return self.receive_connected(port, &qp.ok_or(Ignored::NoQueuePair)?, &headers, payload);
        };
        if dest == Qpn::MULTICAST {
            let grh = headers.grh.filter(|grh| grh.dgid.is_multicast() && headers.lrh.dlid.is_multicast());
            let group = grh.ok_or(Ignored::Malformed)?.dgid;
            let attached = self.attached(port, group, headers.lrh.dlid);
            if attached.is_empty() {
                return Err(Ignored::NoQueuePair);
            }
            for qp in attached {
                if let Err(ignored) = self.deliver_datagram(port, &qp, &headers, deth, payload) {
                    self.ignored(ignored);
                }
            }
            return Ok(());
        }
        if headers.lrh.dlid.is_multicast() {
            return Err(Ignored::Malformed);
        }
        if dest == Qpn::GSI {
            return self.deliver_mad(port, deth, payload);
        }
        let qp = self.qp_by_number(dest.get()).ok_or(Ignored::NoQueuePair)?;
        self.deliver_datagram(port, &qp, &headers, deth, payload)
    }

    fn deliver_mad(&self, port: u8, deth: Deth, payload: &[u8]) -> Result<(), Ignored> {
        if deth.qkey != QKey::GSI {
            self.count_qkey_violation(port);
            return Err(Ignored::QKey);
        }
        let mad: &[u8; MAD_LEN] = payload.try_into().map_err(|_| Ignored::Malformed)?;
        if let Some(listener) = self.listener() {
            listener.mad(port, Box::new(*mad));
        }
        Ok(())
    }

    fn deliver_datagram(
        self: &Arc<Self>,
        port: u8,
        qp: &Arc<Qp>,
        headers: &Headers,
        deth: Deth,
        payload: &[u8],
    ) -> Result<(), Ignored> {
        let attrs = qp.attrs();
        if qp.service != Service::Ud || !attrs.state.receives() || attrs.port != port {
            return Err(Ignored::State);
        }
        let view = self.port(port).ok_or(Ignored::State)?.view();
        let own = view.pkeys.get(usize::from(attrs.pkey_index)).copied().unwrap_or(PKey(0));
        if !own.matches(headers.bth.pkey) {
            self.count_pkey_violation(port);
            return Err(Ignored::PKey);
        }
        if deth.qkey.0 != attrs.qkey {
            self.count_qkey_violation(port);
            return Err(Ignored::QKey);
        }
        let length = (Grh::LEN + payload.len()) as u64;
        let from = Receive {
            grh: headers.grh.is_some(),
            immediate: headers.immediate,
            src_qpn: deth.src_qp.get(),
            pkey_index: attrs.pkey_index,
            slid: headers.lrh.slid.0,
            sl: headers.lrh.sl,
            path_bits: if headers.lrh.dlid.is_unicast() {
                (headers.lrh.dlid.0 & !(u16::MAX << view.lmc)) as u8
            } else {
                0
            },
        };
        // The receive queue stays locked until its completion is in, so completions keep the order of requests.
        let outcome = {
            let mut recv = qp.recv();
            let request = recv.requests.pop_front().ok_or(Ignored::NoReceive)?;
            let wr_id = request.wr_id;
            if mem::total(&request.elements) < length {
                let pushed =
                    qp.complete_recv(&recv, wr_id, Status::LocalLength, 0, false, Receive::default());
                Ok((pushed, false))
            } else {
                let grh = headers.grh.map_or(NO_GRH, |grh| grh.to_bytes());
                let parts: [&[u8]; 2] = [&grh, payload];
                let solicited = headers.bth.solicited;
                let completed =
                    || qp.complete_recv(&recv, wr_id, Status::Success, length as u32, solicited, from);
                mem::scatter(self.as_ref(), &self.memory(), qp.pd, &request.elements, &parts)
                    .map(|()| (completed(), true))
                    .map_err(|fault| (wr_id, fault))
            }
        };
        match outcome {
            Err((wr_id, fault)) => memory_violation("receive", qp, wr_id, &fault),
            Ok((pushed, fits)) => {
                self.pushed(&qp.recv_cq, pushed);
                if !fits {
                    self.fail(qp, attrs.epoch, QpState::Error);
                }
            }
        }
        Ok(())
    }

    /// The hardware moves a queue pair into an error state and flushes what that state flushes.
    pub(super) fn fail(self: &Arc<Self>, qp: &Arc<Qp>, epoch: u32, to: QpState) {
        if let Some(from) = qp.fail(epoch, to) {
            self.note_transition(qp.qpn, from, to, false);
            self.flush(qp, to);
        }
    }
}

/// Ends the run: a request names memory that the HCA must not touch.
pub(crate) fn memory_violation(what: &str, qp: &Qp, wr_id: u64, fault: &Fault) -> ! {
    let rule = match fault {
        Fault::NoMemory { .. } => QP_MEMORY_FREED,
        _ => QP_MEMORY_NOT_REGISTERED,
    };
    verifier::violation(rule, what, format!("QP {:#x}, wr_id {wr_id:#x}: {fault}", qp.qpn))
}

/// The headers of a datagram along the path of an address vector.
pub(super) fn datagram_headers(
    av: &AvAttr,
    port: &Port,
    bth: Bth,
    deth: Deth,
    immediate: Option<u32>,
) -> Headers {
    let path_bits = u16::from(av.path_bits) & !(u16::MAX << port.lmc);
    Headers {
        lrh: Lrh { sl: av.sl, dlid: Lid(av.dlid), slid: Lid(port.lid.0 | path_bits), ..Lrh::default() },
        grh: av.grh.map(|route| Grh {
            traffic_class: route.traffic_class,
            flow_label: route.flow_label,
            hop_limit: route.hop_limit,
            sgid: port.gid(usize::from(route.sgid_index)).unwrap_or(Gid::NONE),
            dgid: route.dgid,
            ..Grh::default()
        }),
        bth,
        deth: Some(deth),
        immediate,
        ..Headers::default()
    }
}
