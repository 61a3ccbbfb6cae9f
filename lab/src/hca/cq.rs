//! Completion queues: entries, arming, overrun, and the hand-over to the completion callback.
//!
//! Pure but for one mutex. Rules: IBA vol. 1 §11.4.2.1 (poll for completion) and §11.4.2.2 (request completion
//! notification): a notification is asked for the *next* entry. Entries that are already there when it is asked
//! for never cause one, so a consumer polls again after it rearms.

use crate::sim::Lock;
use std::collections::VecDeque;

use super::handle::Handle;

/// What a completion says, independent of the layout in which the driver reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The work request's own id.
    pub wr_id: u64,
    /// Sent or received.
    pub kind: CompletionKind,
    /// Outcome.
    pub status: Status,
    /// Bytes: of a datagram receive, the 40 bytes of GRH space included.
    pub length: u32,
    /// Queue pair that it belongs to.
    pub qpn: u32,
    /// How often that queue pair had been reset when the request was posted: entries of an older life vanish.
    pub epoch: u32,
    /// Send queue slots that a poll of this entry gives back (unsignaled requests before it included).
    pub slots: u32,
    /// Asked for with the solicited event bit (§9.2.3).
    pub solicited: bool,
    /// Receives only.
    pub receive: Receive,
}

/// Direction of a completed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CompletionKind {
    /// A send.
    Send,
    /// A receive.
    Recv,
}

/// Source of a received message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Receive {
    /// A GRH lies in the first 40 bytes of the buffer.
    pub grh: bool,
    /// Immediate data, as it was on the wire.
    pub immediate: Option<u32>,
    /// Queue pair of the sender.
    pub src_qpn: u32,
    /// Index of the P_Key that matched.
    pub pkey_index: u16,
    /// LID of the sender.
    pub slid: u16,
    /// Service level.
    pub sl: u8,
    /// Low bits (LMC) of the destination LID.
    pub path_bits: u8,
}

/// Outcome of a work request (§11.6.2, the subset that this HCA can produce).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// Done.
    Success,
    /// The message does not fit: longer than the MTU, or than the posted buffer.
    LocalLength,
    /// The request itself is malformed.
    LocalOperation,
    /// A scatter/gather element that no memory region covers.
    LocalProtection,
    /// The queue pair was in error before the request was started.
    Flushed,
    /// The peer did not acknowledge (connected services).
    Timeout,
    /// The peer had no receive posted (connected services).
    ReceiverNotReady,
    /// The peer refused the message (connected services).
    RemoteInvalidRequest,
    /// Anything else, for injected faults.
    General,
}

/// What a consumer armed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arm {
    /// Any next entry.
    Next,
    /// The next solicited entry, or one in error.
    Solicited,
}

/// What the caller of [`Cq::push`] has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// Nothing: the queue was not armed for this entry, or a callback is under way that will look again.
    Quiet,
    /// Queue the completion DPC.
    Notify,
    /// The queue was full and is now broken (§11.6.3.2, CQ error).
    Overrun,
}

/// What is to happen after a callback returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterCallback {
    /// Nothing.
    Rest,
    /// Queue the DPC once more: an entry for which the consumer had rearmed came meanwhile.
    Again,
    /// The queue was closed and nobody calls the consumer any longer.
    Closed,
}

/// Where the completion callback is. It never runs twice at once for one queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Callback {
    Idle,
    Queued,
    Running { again: bool },
}

#[derive(Debug)]
struct Inner {
    entries: VecDeque<Completion>,
    armed: Option<Arm>,
    callback: Callback,
    overrun: bool,
    closing: bool,
}

/// The consumer's completion callback, called from a DPC.
pub type Notify = Box<dyn Fn(Handle) + Send + Sync>;

/// A completion queue.
pub struct Cq {
    /// Its handle.
    pub handle: Handle,
    /// Entries that it holds.
    pub depth: usize,
    notify: Notify,
    inner: Lock<Inner>,
}

impl std::fmt::Debug for Cq {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cq").field("handle", &self.handle).field("depth", &self.depth).finish_non_exhaustive()
    }
}

impl Cq {
    /// An empty, unarmed queue for `depth` entries, whose consumer is called by `notify`.
    pub fn new(handle: Handle, depth: usize, notify: Notify) -> Self {
        Self {
            handle,
            depth,
            notify,
            inner: Lock::new(Inner {
                entries: VecDeque::new(),
                armed: None,
                callback: Callback::Idle,
                overrun: false,
                closing: false,
            }),
        }
    }

    /// Adds an entry.
    pub fn push(&self, completion: Completion) -> Pushed {
        let mut inner = self.inner.lock();
        if inner.overrun {
            return Pushed::Quiet;
        }
        if inner.entries.len() >= self.depth {
            inner.overrun = true;
            return Pushed::Overrun;
        }
        inner.entries.push_back(completion);
        let fires = match inner.armed {
            None => false,
            Some(Arm::Next) => true,
            Some(Arm::Solicited) => completion.solicited || completion.status != Status::Success,
        };
        if !fires || inner.closing {
            return Pushed::Quiet;
        }
        inner.armed = None;
        match inner.callback {
            Callback::Idle => {
                inner.callback = Callback::Queued;
                Pushed::Notify
            }
            Callback::Queued => Pushed::Quiet,
            Callback::Running { .. } => {
                inner.callback = Callback::Running { again: true };
                Pushed::Quiet
            }
        }
    }

    /// Takes the oldest entry.
    pub fn poll(&self) -> Option<Completion> {
        self.inner.lock().entries.pop_front()
    }

    /// Asks for a callback at the next entry.
    pub fn arm(&self, arm: Arm) {
        let mut inner = self.inner.lock();
        // Asking for any entry includes asking for solicited ones (§11.4.2.2).
        if inner.armed != Some(Arm::Next) {
            inner.armed = Some(arm);
        }
    }

    /// Drops the entries of one queue pair's older life, as a transition to RESET does. Returns how many.
    pub fn purge(&self, qpn: u32) -> usize {
        let mut inner = self.inner.lock();
        let before = inner.entries.len();
        inner.entries.retain(|entry| entry.qpn != qpn);
        before - inner.entries.len()
    }

    /// Entries that nobody polled yet.
    pub fn len(&self) -> usize {
        self.inner.lock().entries.len()
    }

    /// No entry waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Has the queue been overrun?
    pub fn is_overrun(&self) -> bool {
        self.inner.lock().overrun
    }

    /// The completion DPC: calls the consumer, unless the queue was closed meanwhile.
    pub fn run_callback(&self) -> AfterCallback {
        {
            let mut inner = self.inner.lock();
            if inner.closing {
                inner.callback = Callback::Idle;
                return AfterCallback::Closed;
            }
            inner.callback = Callback::Running { again: false };
        }
        (self.notify)(self.handle);
        let mut inner = self.inner.lock();
        let again = inner.callback == Callback::Running { again: true };
        if inner.closing {
            inner.callback = Callback::Idle;
            AfterCallback::Closed
        } else if again {
            inner.callback = Callback::Queued;
            AfterCallback::Again
        } else {
            inner.callback = Callback::Idle;
            AfterCallback::Rest
        }
    }

    /// No new callback from here on. `true`: none is queued or under way either, so the queue may go at once.
    pub fn close(&self) -> bool {
        let mut inner = self.inner.lock();
        inner.closing = true;
        inner.callback == Callback::Idle
    }
}

#[cfg(test)]
mod tests {
    use super::super::handle::Kind;
    use super::*;
    use std::sync::{Arc, Weak};

    fn cq(depth: usize) -> Cq {
        Cq::new(Handle { hca: 0, kind: Kind::Cq, serial: 1 }, depth, Box::new(|_| ()))
    }

    fn entry(wr_id: u64) -> Completion {
        Completion {
            wr_id,
            kind: CompletionKind::Recv,
            status: Status::Success,
            length: 0,
            qpn: 2,
            epoch: 0,
            slots: 1,
            solicited: false,
            receive: Receive::default(),
        }
    }

    /// §11.4.2.2: one notification for one request, at the next entry.
    #[test]
    fn an_armed_queue_notifies_once() {
        let cq = cq(8);
        assert_eq!(cq.push(entry(1)), Pushed::Quiet);
        cq.arm(Arm::Next);
        assert_eq!(cq.push(entry(2)), Pushed::Notify);
        assert_eq!(cq.push(entry(3)), Pushed::Quiet);
    }

    /// §11.4.2.2: an entry that was there when the consumer armed never notifies: the race that a consumer closes
    /// by polling after it rearms.
    #[test]
    fn an_entry_before_the_rearm_does_not_notify() {
        let cq = cq(8);
        assert_eq!(cq.push(entry(1)), Pushed::Quiet);
        cq.arm(Arm::Next);
        assert_eq!(cq.len(), 1);
        assert_eq!(cq.push(entry(2)), Pushed::Notify);
    }

    /// An entry that comes while the callback still runs, after it rearmed, makes it run again, not twice at once.
    #[test]
    fn a_rearm_inside_the_callback_runs_it_again_afterwards() {
        let cq = Arc::new_cyclic(|weak: &Weak<Cq>| {
            let weak = weak.clone();
            let notify = move |_| {
                let cq = weak.upgrade().unwrap();
                if cq.poll().is_some_and(|entry| entry.wr_id == 1) {
                    cq.arm(Arm::Next);
                    assert_eq!(cq.push(entry(2)), Pushed::Quiet);
                }
            };
            Cq::new(Handle { hca: 0, kind: Kind::Cq, serial: 1 }, 8, Box::new(notify))
        });
        cq.arm(Arm::Next);
        assert_eq!(cq.push(entry(1)), Pushed::Notify);
        assert_eq!(cq.run_callback(), AfterCallback::Again);
        assert_eq!(cq.run_callback(), AfterCallback::Rest);
        assert!(cq.is_empty());
    }

    /// §11.4.2.2: solicited notification ignores unsolicited success, and takes errors.
    #[test]
    fn solicited_arming_waits_for_a_solicited_or_failed_entry() {
        let cq = cq(8);
        cq.arm(Arm::Solicited);
        assert_eq!(cq.push(entry(1)), Pushed::Quiet);
        assert_eq!(cq.push(Completion { status: Status::Flushed, ..entry(2) }), Pushed::Notify);
        let cq = super::tests::cq(8);
        cq.arm(Arm::Solicited);
        assert_eq!(cq.push(Completion { solicited: true, ..entry(1) }), Pushed::Notify);
    }

    /// §11.6.3.2: a full queue breaks, and says so once.
    #[test]
    fn an_overrun_is_reported_once() {
        let cq = cq(1);
        assert_eq!(cq.push(entry(1)), Pushed::Quiet);
        assert_eq!(cq.push(entry(2)), Pushed::Overrun);
        assert_eq!(cq.push(entry(3)), Pushed::Quiet);
        assert!(cq.is_overrun());
    }

    /// A reset takes its queue pair's entries out of a shared queue, and no other's.
    #[test]
    fn purge_takes_one_queue_pair() {
        let cq = cq(8);
        cq.push(entry(1));
        cq.push(Completion { qpn: 3, ..entry(2) });
        assert_eq!(cq.purge(2), 1);
        assert_eq!(cq.poll().map(|c| c.wr_id), Some(2));
    }

    /// A queue that is being destroyed calls nobody.
    #[test]
    fn a_closing_queue_stays_quiet() {
        let cq = cq(8);
        cq.arm(Arm::Next);
        assert_eq!(cq.push(entry(1)), Pushed::Notify);
        assert!(!cq.close());
        assert_eq!(cq.run_callback(), AfterCallback::Closed);
        assert!(cq.close());
    }
}
