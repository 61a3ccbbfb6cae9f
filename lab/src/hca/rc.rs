//! Reliable connections: messages in packets of one MTU, acknowledged, sent again when they were not.
//!
//! Rules: IBA vol. 1 §9.7 (reliable service): packet sequence numbers of 24 bits, acknowledgements that count for
//! everything before them, NAKs for a gap, for a receiver that is not ready and for a request that cannot be done, and
//! timeouts with a number of retries. Sends only; RDMA and atomics are not here.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Hca;
use super::cq::{Pushed, Receive, Status};
use super::engine::{Ignored, memory_violation};
use super::listener::AsyncEvent;
use super::mem::{self, Element};
use super::qp::{Attrs, Qp, RecvRequest, SendRequest};
use super::qp_state::{QpState, Retry};
use crate::fabric::ids::{Lid, PKey, Qpn};
use crate::fabric::rate::timeout;
use crate::fabric::topology::Port;
use crate::fabric::wire::lrh::Lrh;
use crate::fabric::wire::{Aeth, Bth, Headers, OpCode, Packet};
use crate::sim::{Nanos, Sim};

/// Retries that never end (§9.7.5.2.8).
const FOR_EVER: u8 = 7;

/// Kind of an acknowledgement: the top three bits of its syndrome (§9.7.5.2, table 42).
mod syndrome {
    /// Acknowledged; the rest counts credits, of which there are enough.
    pub const ACK: u8 = 0x1f;
    /// Receiver not ready; the rest is the timer.
    pub const RNR: u8 = 0x20;
    /// Sequence error: send again from here.
    pub const NAK_SEQUENCE: u8 = 0x60;
    /// The request cannot be carried out.
    pub const NAK_INVALID: u8 = 0x61;
    /// Bits that say what it is.
    pub const KIND: u8 = 0x60;
}

/// Distance from one sequence number to another, negative if the second lies behind (§9.7.2: half of the space).
fn distance(from: u32, to: u32) -> i32 {
    (((to.wrapping_sub(from)) << 8) as i32) >> 8
}

fn next(psn: u32) -> u32 {
    (psn + 1) & 0xff_ffff
}

/// How long an RNR timer code asks a requester to wait (§9.7.5.2.8, table 45), rounded to what matters here.
fn rnr_delay(code: u8) -> Nanos {
    match code & 0x1f {
        0 => 655_360_000,
        code => 10_000 << (code / 2).min(14),
    }
}

/// A message that was sent.
#[derive(Debug)]
struct Flight {
    request: SendRequest,
    length: u32,
    packets: Vec<(u32, Packet)>,
}

/// What a requester sent and what is acknowledged of it.
#[derive(Debug, Default)]
pub struct Flights {
    sent: VecDeque<Flight>,
    retry: Retry,
    left: u8,
    rnr_left: u8,
    /// Counts progress: a timer of an older count is stale.
    progress: u64,
    timing: bool,
}

impl Flights {
    /// Sets how often to retry.
    pub fn arm(&mut self, retry: Retry) {
        self.retry = retry;
        self.refill();
    }

    fn refill(&mut self) {
        self.left = self.retry.count;
        self.rnr_left = self.retry.rnr;
        self.progress += 1;
        self.timing = false;
    }

    /// Takes every message out, oldest first.
    pub fn take(&mut self) -> Vec<SendRequest> {
        self.progress += 1;
        self.timing = false;
        self.sent.drain(..).map(|flight| flight.request).collect()
    }

    /// Messages whose last packet `psn` acknowledges.
    fn acknowledge(&mut self, psn: u32) -> Vec<(SendRequest, u32)> {
        let mut done = Vec::new();
        while let Some(flight) = self.sent.front() {
            let last = flight.packets.last().map_or(psn, |(last, _)| *last);
            if distance(last, psn) < 0 {
                break;
            }
            if let Some(flight) = self.sent.pop_front() {
                done.push((flight.request, flight.length));
            }
        }
        if !done.is_empty() {
            self.refill();
        }
        done
    }

    /// Packets from `psn` on, or all.
    fn from(&self, psn: Option<u32>) -> Vec<Packet> {
        let wanted = |at: u32| psn.is_none_or(|psn| distance(psn, at) >= 0);
        let packets = self.sent.iter().flat_map(|flight| &flight.packets);
        packets.filter(|(at, _)| wanted(*at)).map(|(_, packet)| packet.clone()).collect()
    }
}

/// What a responder waits for.
#[derive(Debug, Default)]
pub struct Expected {
    psn: u32,
    msn: u32,
    nak_sent: bool,
    message: Option<(RecvRequest, u64)>,
}

impl From<u32> for Expected {
    fn from(psn: u32) -> Self {
        Self { psn, ..Self::default() }
    }
}

impl Expected {
    /// The next sequence number.
    pub fn psn(&self) -> u32 {
        self.psn
    }

    /// The receive of a message that is coming in, which will not end.
    pub fn abandon(&mut self) -> Option<RecvRequest> {
        self.message.take().map(|(request, _)| request)
    }
}

/// What is left of a list behind `offset` bytes.
fn behind(elements: &[Element], offset: u64) -> Vec<Element> {
    let mut skip = offset;
    let mut rest = Vec::new();
    for &element in elements {
        let length = u64::from(element.length);
        if skip >= length {
            skip -= length;
            continue;
        }
        rest.push(Element { address: element.address + skip, length: (length - skip) as u32, ..element });
        skip = 0;
    }
    rest
}

fn headers(attrs: &Attrs, port: &Port, bth: Bth) -> Headers {
    let path_bits = u16::from(attrs.path.path_bits) & !(u16::MAX << port.lmc);
    Headers {
        lrh: Lrh {
            sl: attrs.path.sl,
            dlid: Lid(attrs.path.dlid),
            slid: Lid(port.lid.0 | path_bits),
            ..Lrh::default()
        },
        bth: Bth {
            pkey: port.pkeys.get(usize::from(attrs.pkey_index)).copied().unwrap_or(PKey(0)),
            dest_qp: Qpn::new(attrs.dest_qpn),
            migrated: true,
            ..bth
        },
        ..Headers::default()
    }
}

/// What a packet of a message did.
enum Taken {
    /// Nothing comes of it.
    Nothing,
    /// It was taken; more are to come, or no acknowledgement was asked for.
    Quiet(Pushed),
    /// Answer so.
    Answer {
        /// Syndrome of the answer.
        syndrome: u8,
        /// Its sequence number.
        psn: u32,
        /// Messages done.
        msn: u32,
        /// From the completion that was pushed.
        pushed: Pushed,
        /// The queue pair is broken.
        broken: bool,
    },
}

impl Hca {
    /// Sends a message: all of its packets, which stay until they are acknowledged.
    ///
    /// # Errors
    /// A status with which the request fails locally.
    pub(super) fn send_message(
        self: &Arc<Self>,
        qp: &Arc<Qp>,
        epoch: u32,
        request: SendRequest,
    ) -> Result<(), (SendRequest, Status)> {
        let attrs = qp.attrs();
        let Some(port) = self.port(attrs.port).map(super::HcaPort::view) else {
            return Err((request, Status::LocalOperation));
        };
        let length =
            request.inline.as_ref().map_or_else(|| mem::total(&request.elements), |data| data.len() as u64);
        if length > 1 << 31 {
            return Err((request, Status::LocalLength));
        }
        let mut message = vec![0; length as usize];
        if let Some(data) = &request.inline {
            message.copy_from_slice(data);
        } else if let Err(fault) =
            mem::gather(self.as_ref(), &self.memory(), qp.pd, &request.elements, &mut message)
        {
            memory_violation("send", qp, request.wr_id, &fault);
        }
        let mtu = 128usize << attrs.path.mtu.clamp(1, 5);
        let count = message.len().div_ceil(mtu).max(1);
        let (packets, timed) = {
            let mut send = qp.send();
            if send.epoch != epoch {
                return Err((request, Status::Flushed));
            }
            let mut packets = Vec::with_capacity(count);
            for index in 0..count {
                let psn = send.psn;
                send.psn = next(psn);
                let last = index + 1 == count;
                let immediate = request.immediate.filter(|_| last);
                let bth = Bth {
                    opcode: match (index == 0, last, immediate.is_some()) {
                        (true, true, false) => OpCode::RC_SEND_ONLY,
                        (true, true, true) => OpCode::RC_SEND_ONLY_IMMEDIATE,
                        (true, false, _) => OpCode::RC_SEND_FIRST,
                        (false, false, _) => OpCode::RC_SEND_MIDDLE,
                        (false, true, false) => OpCode::RC_SEND_LAST,
                        (false, true, true) => OpCode::RC_SEND_LAST_IMMEDIATE,
                    },
                    solicited: last && request.solicited,
                    ack_request: last,
                    psn,
                    ..Bth::default()
                };
                let piece = message.chunks(mtu).nth(index).unwrap_or_default();
                let headers = Headers { immediate, ..headers(&attrs, &port, bth) };
                let packet = Packet::build(&headers, piece.len(), |space| space.copy_from_slice(piece));
                packets.push((psn, packet));
            }
            let to_send: Vec<_> = packets.iter().map(|(_, packet)| packet.clone()).collect();
            send.flights.sent.push_back(Flight { request, length: length as u32, packets });
            let progress = send.flights.progress;
            (to_send, (!std::mem::replace(&mut send.flights.timing, true)).then_some(progress))
        };
        for packet in packets {
            self.transmit(attrs.port, packet, Lid(attrs.path.dlid));
        }
        if let Some(progress) = timed {
            self.time_message(qp, &attrs, progress);
        }
        Ok(())
    }

    fn time_message(self: &Arc<Self>, qp: &Arc<Qp>, attrs: &Attrs, progress: u64) {
        if attrs.retry.timeout == 0 {
            return;
        }
        let (hca, qp, epoch) = (Arc::clone(self), Arc::clone(qp), attrs.epoch);
        self.sim().after(timeout(attrs.retry.timeout), "rc timeout", move |_: &Sim| {
            hca.message_timed_out(&qp, epoch, progress);
        });
    }

    fn message_timed_out(self: &Arc<Self>, qp: &Arc<Qp>, epoch: u32, progress: u64) {
        let attrs = qp.attrs();
        let packets = {
            let mut send = qp.send();
            let flights = &mut send.flights;
            if attrs.epoch != epoch || flights.progress != progress || flights.sent.is_empty() {
                return;
            }
            if flights.left == 0 {
                None
            } else {
                flights.left -= 1;
                Some(flights.from(None))
            }
        };
        let Some(packets) = packets else {
            return self.fail_message(qp, epoch, Status::Timeout);
        };
        for packet in packets {
            self.transmit(attrs.port, packet, Lid(attrs.path.dlid));
        }
        self.time_message(qp, &attrs, progress);
    }

    /// The oldest message fails, and the queue pair with it.
    fn fail_message(self: &Arc<Self>, qp: &Arc<Qp>, epoch: u32, status: Status) {
        let pushed = {
            let mut send = qp.send();
            match send.flights.sent.pop_front() {
                Some(flight) => qp.complete_send(&mut send, epoch, &flight.request, status, 0),
                None => Pushed::Quiet,
            }
        };
        self.pushed(&qp.send_cq, pushed);
        self.fail(qp, epoch, QpState::Error);
    }

    /// A packet of a reliable connection arrived.
    pub(super) fn receive_connected(
        self: &Arc<Self>,
        port: u8,
        qp: &Arc<Qp>,
        headers: &Headers,
        payload: &[u8],
    ) -> Result<(), Ignored> {
        let attrs = qp.attrs();
        let from_peer = headers.lrh.slid.0 == attrs.path.dlid;
        if !attrs.state.receives() || attrs.port != port || !from_peer {
            return Err(Ignored::State);
        }
        let view = self.port(port).ok_or(Ignored::State)?.view();
        let own = view.pkeys.get(usize::from(attrs.pkey_index)).copied().unwrap_or(PKey(0));
        if !own.matches(headers.bth.pkey) {
            self.count_pkey_violation(port);
            return Err(Ignored::PKey);
        }
        if let Some(aeth) = headers.aeth {
            self.answered(qp, &attrs, headers.bth.psn, aeth);
            return Ok(());
        }
        if attrs.state == QpState::Rtr {
            self.report_first_packet(qp);
        }
        let taken = self.take_packet(qp, &attrs, headers, payload);
        match taken {
            Taken::Nothing => {}
            Taken::Quiet(pushed) => self.pushed(&qp.recv_cq, pushed),
            Taken::Answer { syndrome, psn, msn, pushed, broken } => {
                let bth = Bth { opcode: OpCode::RC_ACKNOWLEDGE, psn, ..Bth::default() };
                let aeth = Some(Aeth { syndrome, msn });
                let answer = Headers { aeth, ..self::headers(&attrs, &view, bth) };
                self.transmit(port, Packet::build(&answer, 0, |_| ()), Lid(attrs.path.dlid));
                self.pushed(&qp.recv_cq, pushed);
                if broken {
                    self.fail(qp, attrs.epoch, QpState::Error);
                }
            }
        }
        Ok(())
    }

    fn report_first_packet(&self, qp: &Qp) {
        let first = {
            let recv = qp.recv();
            recv.expected.msn == 0 && recv.expected.message.is_none()
        };
        if first {
            self.report(qp.handle, AsyncEvent::CommunicationEstablished);
        }
    }

    fn take_packet(&self, qp: &Qp, attrs: &Attrs, headers: &Headers, payload: &[u8]) -> Taken {
        use Taken::{Answer, Nothing, Quiet};
        let opcode = headers.bth.opcode;
        let starts =
            matches!(opcode, OpCode::RC_SEND_FIRST | OpCode::RC_SEND_ONLY | OpCode::RC_SEND_ONLY_IMMEDIATE);
        let ends = matches!(
            opcode,
            OpCode::RC_SEND_LAST
                | OpCode::RC_SEND_LAST_IMMEDIATE
                | OpCode::RC_SEND_ONLY
                | OpCode::RC_SEND_ONLY_IMMEDIATE
        );
        let mut guard = qp.recv();
        let recv = &mut *guard;
        let psn = headers.bth.psn;
        let answer = |syndrome, psn, msn, pushed, broken| Answer { syndrome, psn, msn, pushed, broken };
        match distance(recv.expected.psn, psn) {
            // Seen before: its acknowledgement was lost.
            ..=-1 => {
                let last = recv.expected.psn.wrapping_sub(1) & 0xff_ffff;
                return answer(syndrome::ACK, last, recv.expected.msn, Pushed::Quiet, false);
            }
            0 => {}
            // A gap, complained of once.
            1.. => {
                if std::mem::replace(&mut recv.expected.nak_sent, true) {
                    return Nothing;
                }
                let (expected, msn) = (recv.expected.psn, recv.expected.msn);
                return answer(syndrome::NAK_SEQUENCE, expected, msn, Pushed::Quiet, false);
            }
        }
        if starts == recv.expected.message.is_some() || !(starts || ends || opcode == OpCode::RC_SEND_MIDDLE)
        {
            return answer(syndrome::NAK_INVALID, psn, recv.expected.msn, Pushed::Quiet, true);
        }
        if starts {
            let Some(request) = recv.requests.pop_front() else {
                let not_ready = syndrome::RNR | (attrs.rnr_timer & 0x1f);
                return answer(not_ready, psn, recv.expected.msn, Pushed::Quiet, false);
            };
            recv.expected.message = Some((request, 0));
        }
        let Some((request, offset)) = recv.expected.message.take() else { return Nothing };
        let rest = behind(&request.elements, offset);
        if mem::total(&rest) < payload.len() as u64 {
            let pushed =
                qp.complete_recv(recv, request.wr_id, Status::LocalLength, 0, false, Receive::default());
            return answer(syndrome::NAK_INVALID, psn, recv.expected.msn, pushed, true);
        }
        if let Err(fault) = mem::scatter(self, &self.memory(), qp.pd, &rest, &[payload]) {
            drop(guard);
            memory_violation("receive", qp, request.wr_id, &fault);
        }
        let length = offset + payload.len() as u64;
        recv.expected.psn = next(psn);
        recv.expected.nak_sent = false;
        let mut pushed = Pushed::Quiet;
        if ends {
            recv.expected.msn = next(recv.expected.msn);
            let from = Receive {
                immediate: headers.immediate,
                src_qpn: attrs.dest_qpn,
                pkey_index: attrs.pkey_index,
                slid: headers.lrh.slid.0,
                sl: headers.lrh.sl,
                ..Receive::default()
            };
            let solicited = headers.bth.solicited;
            pushed = qp.complete_recv(recv, request.wr_id, Status::Success, length as u32, solicited, from);
        } else {
            recv.expected.message = Some((request, length));
        }
        if headers.bth.ack_request {
            answer(syndrome::ACK, psn, recv.expected.msn, pushed, false)
        } else {
            Quiet(pushed)
        }
    }

    /// An acknowledgement, or the opposite.
    fn answered(self: &Arc<Self>, qp: &Arc<Qp>, attrs: &Attrs, psn: u32, aeth: Aeth) {
        let positive = aeth.syndrome & syndrome::KIND == 0;
        // A NAK acknowledges everything before what it is about (§9.7.5.1.1).
        let up_to = if positive { psn } else { psn.wrapping_sub(1) & 0xff_ffff };
        let mut notices = Vec::new();
        let (again, timed) = {
            let mut send = qp.send();
            if send.epoch != attrs.epoch {
                return;
            }
            for (request, length) in send.flights.acknowledge(up_to) {
                notices.push(qp.complete_send(&mut send, attrs.epoch, &request, Status::Success, length));
            }
            let flights = &mut send.flights;
            let restart = !flights.sent.is_empty() && !std::mem::replace(&mut flights.timing, true);
            let again = if flights.sent.is_empty() || positive {
                Ok(None)
            } else if aeth.syndrome & syndrome::KIND == syndrome::RNR {
                if flights.rnr_left == 0 {
                    Err(Status::ReceiverNotReady)
                } else {
                    flights.rnr_left -= u8::from(flights.retry.rnr != FOR_EVER);
                    Ok(Some(rnr_delay(aeth.syndrome)))
                }
            } else if aeth.syndrome == syndrome::NAK_SEQUENCE {
                if flights.left == 0 {
                    Err(Status::Timeout)
                } else {
                    flights.left -= 1;
                    Ok(Some(0))
                }
            } else {
                Err(Status::RemoteInvalidRequest)
            };
            (again, restart.then_some(flights.progress))
        };
        for pushed in notices {
            self.pushed(&qp.send_cq, pushed);
        }
        if let Some(progress) = timed {
            self.time_message(qp, attrs, progress);
        }
        match again {
            Err(status) => self.fail_message(qp, attrs.epoch, status),
            Ok(None) => {}
            Ok(Some(delay)) => {
                let (hca, qp, attrs) = (Arc::clone(self), Arc::clone(qp), *attrs);
                let resend = move |_: &Sim| {
                    let packets = {
                        let send = qp.send();
                        if send.epoch == attrs.epoch { send.flights.from(Some(psn)) } else { Vec::new() }
                    };
                    for packet in packets {
                        hca.transmit(attrs.port, packet, Lid(attrs.path.dlid));
                    }
                };
                // An event even without delay: in threaded mode an answer comes on the stack of the packet that it
                // answers, and a repetition must not grow it further.
                self.sim().after(delay, "rc retry", resend);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// §9.7.2: sequence numbers compare modulo 2^24, half of the space ahead and half behind.
    #[test]
    fn sequence_numbers_wrap() {
        assert_eq!(distance(5, 7), 2);
        assert_eq!(distance(7, 5), -2);
        assert_eq!(distance(0xff_ffff, 0), 1);
        assert_eq!(distance(0, 0xff_ffff), -1);
        assert_eq!(next(0xff_ffff), 0);
    }

    /// A message goes on where its last packet ended, over elements.
    #[test]
    fn the_rest_of_a_list() {
        let element = |address, length| Element { address, length, lkey: 1 };
        let list = [element(100, 10), element(200, 10)];
        assert_eq!(behind(&list, 0), list);
        assert_eq!(behind(&list, 4), [element(104, 6), element(200, 10)]);
        assert_eq!(behind(&list, 10), [element(200, 10)]);
        assert_eq!(behind(&list, 20), []);
    }
}
