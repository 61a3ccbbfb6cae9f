//! Requests to the subnet administrator that wait for an answer: transaction ids, retries, timeouts and the
//! reassembly of answers of several segments.
//!
//! Pure: the caller says what time it is and moves the datagrams. Sources: IBA vol. 1 §13.4 (MADs), §13.6 (reliable
//! multi-packet protocol, the receiving side), §15.2 (subnet administration); for retries and timeouts the access
//! layer's `al_mad.c`: a request is sent once and then `retries` times more, `timeout` apart.

use std::collections::BTreeMap;

use crate::fabric::wire::mad::{
    MAD_LEN, MadHeader, Method, RmppHeader, SA_DATA_LEN, SA_DATA_OFFSET, SaHeader, Status, rmpp,
};

/// A datagram.
pub type Mad = [u8; MAD_LEN];

/// The common header of a datagram, which is always long enough to have one.
pub fn header(mad: &Mad) -> MadHeader {
    MadHeader::parse_slice(mad).unwrap_or_default()
}

/// Writes the common header of a datagram.
pub fn set_header(mad: &mut Mad, header: &MadHeader) {
    mad[..MadHeader::LEN].copy_from_slice(&header.to_bytes());
}

/// The header of the multi-packet protocol.
fn segment_header(mad: &Mad) -> RmppHeader {
    RmppHeader::parse_slice(&mad[MadHeader::LEN..]).unwrap_or_default()
}

fn set_segment_header(mad: &mut Mad, header: &RmppHeader) {
    mad[MadHeader::LEN..MadHeader::LEN + RmppHeader::LEN].copy_from_slice(&header.to_bytes());
}

/// Segments that the receiver lets the sender have in flight.
const WINDOW: u32 = 5;

/// What a timer of a transaction leads to.
#[derive(Debug, PartialEq, Eq)]
pub enum Expiry {
    /// Nothing: the transaction is over, or was sent again since the timer was set.
    Stale,
    /// Send again, and set the timer of this attempt again.
    Resend {
        /// The request.
        mad: Box<Mad>,
        /// Number of this attempt, from 1.
        attempt: u32,
    },
    /// The last attempt went unanswered; the transaction is over.
    TimedOut {
        /// Requests sent.
        sent: u32,
    },
}

/// What an arriving datagram leads to.
#[derive(Debug, PartialEq, Eq)]
pub enum Arrival {
    /// No transaction waits for it: late, duplicate, forged, or no response at all.
    Unmatched,
    /// A segment; more are to come.
    Partial {
        /// Acknowledgement to send.
        ack: Box<Mad>,
    },
    /// The transaction is over.
    Done {
        /// Its id.
        id: u64,
        /// Header of the answer, then all of its records.
        answer: Vec<u8>,
        /// Acknowledgement to send.
        ack: Option<Box<Mad>>,
        /// Requests sent.
        sent: u32,
    },
}

#[derive(Debug)]
struct Transaction {
    request: Box<Mad>,
    attempt: u32,
    retries: u32,
    /// Segments so far: the next number expected, and header and data.
    next_segment: u32,
    assembled: Vec<u8>,
}

/// The transactions of one port.
#[derive(Debug, Default)]
pub struct Transactions {
    next: u64,
    waiting: BTreeMap<u64, Transaction>,
}

impl Transactions {
    /// Starts a transaction: gives the request its id. The caller sends it and sets a timer for attempt 1.
    pub fn begin(&mut self, mut request: Mad, retries: u32) -> (u64, Box<Mad>) {
        self.next += 1;
        let id = self.next;
        let numbered = MadHeader { transaction_id: id, ..header(&request) };
        set_header(&mut request, &numbered);
        let request = Box::new(request);
        let transaction = Transaction {
            request: request.clone(),
            attempt: 1,
            retries,
            next_segment: 1,
            assembled: Vec::new(),
        };
        self.waiting.insert(id, transaction);
        (id, request)
    }

    /// The timer of attempt `attempt` went off.
    pub fn expire(&mut self, id: u64, attempt: u32) -> Expiry {
        let Some(transaction) = self.waiting.get_mut(&id) else { return Expiry::Stale };
        if transaction.attempt != attempt {
            return Expiry::Stale;
        }
        if transaction.attempt > transaction.retries {
            self.waiting.remove(&id);
            return Expiry::TimedOut { sent: attempt };
        }
        transaction.attempt += 1;
        // An answer that broke off in the middle starts anew.
        transaction.next_segment = 1;
        transaction.assembled.clear();
        Expiry::Resend { mad: transaction.request.clone(), attempt: transaction.attempt }
    }

    /// A datagram of the subnet administration class arrived.
    pub fn arrive(&mut self, mad: &Mad) -> Arrival {
        let MadHeader { transaction_id: id, method, attribute, status, .. } = header(mad);
        // A responder that is busy has not answered: the request is sent again when its time is up (`al_mad.c`).
        if status.0 & Status::BUSY.0 != 0 {
            return Arrival::Unmatched;
        }
        let Some(transaction) = self.waiting.get_mut(&id) else { return Arrival::Unmatched };
        let asked = header(&transaction.request);
        if method != asked.method.response() || attribute != asked.attribute {
            return Arrival::Unmatched;
        }
        let segment = segment_header(mad);
        if segment.flags & rmpp::ACTIVE == 0 {
            return self.finish(id, mad.to_vec(), None);
        }
        if segment.kind != rmpp::DATA {
            // STOP or ABORT: the sender gave up, so the timer of this attempt decides.
            return Arrival::Unmatched;
        }
        if segment.segment == transaction.next_segment {
            let last = segment.flags & rmpp::LAST != 0;
            let counted = (segment.payload_length as usize).saturating_sub(SaHeader::LEN);
            let len = if last { counted.min(SA_DATA_LEN) } else { SA_DATA_LEN };
            if transaction.next_segment == 1 {
                transaction.assembled = mad[..SA_DATA_OFFSET].to_vec();
            }
            transaction.assembled.extend_from_slice(&mad[SA_DATA_OFFSET..SA_DATA_OFFSET + len]);
            transaction.next_segment += 1;
            let ack = acknowledge(mad, transaction.next_segment - 1);
            if last {
                let answer = std::mem::take(&mut transaction.assembled);
                return self.finish(id, answer, Some(ack));
            }
            return Arrival::Partial { ack };
        }
        Arrival::Partial { ack: acknowledge(mad, transaction.next_segment - 1) }
    }

    fn finish(&mut self, id: u64, answer: Vec<u8>, ack: Option<Box<Mad>>) -> Arrival {
        let sent = self.waiting.remove(&id).map_or(0, |transaction| transaction.attempt);
        Arrival::Done { id, answer, ack, sent }
    }

    /// Forgets a transaction. `Some`: it was waiting; the number of requests sent.
    pub fn cancel(&mut self, id: u64) -> Option<u32> {
        self.waiting.remove(&id).map(|transaction| transaction.attempt)
    }

    /// Transactions that wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// None waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

/// The acknowledgement of everything up to `segment` (§13.6.2.3): the headers of the segment, as a request again.
fn acknowledge(mad: &Mad, segment: u32) -> Box<Mad> {
    let mut ack = Box::new([0; MAD_LEN]);
    let of = header(mad);
    set_header(&mut ack, &MadHeader { method: Method(of.method.0 & 0x7f), ..of });
    set_segment_header(
        &mut ack,
        &RmppHeader {
            version: rmpp::VERSION,
            kind: rmpp::ACK,
            response_time: 31,
            flags: rmpp::ACTIVE,
            segment,
            payload_length: segment + WINDOW,
            ..RmppHeader::default()
        },
    );
    ack
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::wire::mad::Attribute;

    fn request(method: Method) -> Mad {
        let mut mad = [0; MAD_LEN];
        set_header(
            &mut mad,
            &MadHeader { method, attribute: Attribute::PATH_RECORD, ..MadHeader::default() },
        );
        mad
    }

    fn answer(id: u64, method: Method) -> Mad {
        let mut mad = request(method);
        let numbered = MadHeader { transaction_id: id, ..header(&mad) };
        set_header(&mut mad, &numbered);
        mad
    }

    fn segment(id: u64, number: u32, flags: u8, payload: u32, fill: u8) -> Mad {
        let mut mad = answer(id, Method::GET_TABLE_RESP);
        set_segment_header(
            &mut mad,
            &RmppHeader {
                version: 1,
                kind: rmpp::DATA,
                flags: flags | rmpp::ACTIVE,
                segment: number,
                payload_length: payload,
                ..RmppHeader::default()
            },
        );
        mad[SA_DATA_OFFSET..].fill(fill);
        mad
    }

    /// `al_mad.c`: one send and `retries` more, then IB_TIMEOUT; a timer of an older attempt does nothing.
    #[test]
    fn retries_then_times_out() {
        let mut t = Transactions::default();
        let (id, _) = t.begin(request(Method::GET), 2);
        assert!(matches!(t.expire(id, 1), Expiry::Resend { attempt: 2, .. }));
        assert_eq!(t.expire(id, 1), Expiry::Stale);
        assert!(matches!(t.expire(id, 2), Expiry::Resend { attempt: 3, .. }));
        assert_eq!(t.expire(id, 3), Expiry::TimedOut { sent: 3 });
        assert!(t.is_empty());
    }

    /// A retry repeats the request with the same transaction id (§13.4.6.4), so that any answer serves.
    #[test]
    fn a_retry_keeps_its_transaction_id() {
        let mut t = Transactions::default();
        let (id, first) = t.begin(request(Method::GET), 1);
        let Expiry::Resend { mad, .. } = t.expire(id, 1) else { panic!("no retry") };
        assert_eq!(first, mad);
        assert!(matches!(t.arrive(&answer(id, Method::GET_RESP)), Arrival::Done { sent: 2, .. }));
    }

    /// Answers without a request, of another method or attribute, and second answers, are not taken.
    #[test]
    fn only_the_right_answer_counts_and_once() {
        let mut t = Transactions::default();
        let (id, _) = t.begin(request(Method::GET), 0);
        assert_eq!(t.arrive(&answer(id + 1, Method::GET_RESP)), Arrival::Unmatched);
        assert_eq!(t.arrive(&answer(id, Method::GET)), Arrival::Unmatched);
        assert_eq!(t.arrive(&answer(id, Method::DELETE_RESP)), Arrival::Unmatched);
        let mut other = answer(id, Method::GET_RESP);
        let renamed = MadHeader { attribute: Attribute::NODE_RECORD, ..header(&other) };
        set_header(&mut other, &renamed);
        assert_eq!(t.arrive(&other), Arrival::Unmatched);
        assert!(matches!(t.arrive(&answer(id, Method::GET_RESP)), Arrival::Done { .. }));
        assert_eq!(t.arrive(&answer(id, Method::GET_RESP)), Arrival::Unmatched);
    }

    /// §13.6: segments are put together in order, duplicates and gaps are acknowledged and dropped, and the last
    /// one says how much of it is data.
    #[test]
    fn segments_are_put_together() {
        let mut t = Transactions::default();
        let (id, _) = t.begin(request(Method::GET_TABLE), 0);
        let acked = |arrival| match arrival {
            Arrival::Partial { ack } => segment_header(&ack).segment,
            other => panic!("{other:?}"),
        };
        assert_eq!(acked(t.arrive(&segment(id, 1, rmpp::FIRST, 0, 0xa))), 1);
        assert_eq!(acked(t.arrive(&segment(id, 1, rmpp::FIRST, 0, 0xa))), 1);
        assert_eq!(acked(t.arrive(&segment(id, 3, rmpp::LAST, 28, 0xc))), 1);
        assert_eq!(acked(t.arrive(&segment(id, 2, 0, 0, 0xb))), 2);
        let Arrival::Done { answer, ack: Some(ack), .. } = t.arrive(&segment(id, 3, rmpp::LAST, 28, 0xc))
        else {
            panic!("not done")
        };
        assert_eq!(answer.len(), SA_DATA_OFFSET + 200 + 200 + 8);
        assert_eq!(answer[SA_DATA_OFFSET..][..200], [0xa; 200]);
        assert_eq!(answer[SA_DATA_OFFSET + 400..], [0xc; 8]);
        assert_eq!(header(&ack).method, Method::GET_TABLE);
    }

    /// `al_mad.c`: "busy" is no answer; the retry may get one.
    #[test]
    fn busy_is_no_answer() {
        let mut t = Transactions::default();
        let (id, _) = t.begin(request(Method::GET), 1);
        let mut busy = answer(id, Method::GET_RESP);
        let header = MadHeader { status: Status::BUSY, ..header(&busy) };
        set_header(&mut busy, &header);
        assert_eq!(t.arrive(&busy), Arrival::Unmatched);
        assert!(matches!(t.expire(id, 1), Expiry::Resend { .. }));
        assert!(matches!(t.arrive(&answer(id, Method::GET_RESP)), Arrival::Done { sent: 2, .. }));
    }

    /// A cancelled transaction takes no answer.
    #[test]
    fn cancelled_is_over() {
        let mut t = Transactions::default();
        let (id, _) = t.begin(request(Method::GET), 3);
        assert_eq!(t.cancel(id), Some(1));
        assert_eq!(t.cancel(id), None);
        assert_eq!(t.arrive(&answer(id, Method::GET_RESP)), Arrival::Unmatched);
        assert_eq!(t.expire(id, 1), Expiry::Stale);
    }
}
