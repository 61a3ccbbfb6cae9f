//! Completions: a batch of preallocated entries, and what each says.

use core::ptr;

use ibal_sys::*;
use windows_kernel_sys::Zeroable;

use super::status::WcError;

/// Bytes that a UD receive puts before the message (InfiniBand Architecture volume 1, 11.4.2.1).
pub const GRH_LENGTH: u32 = 40;

/// How a work request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// `wr_id` of the request.
    pub wr_id: u64,
    /// What it did. An error says no more than its kind: length and type are not valid then.
    pub outcome: Result<Done, WcError>,
}

/// What a work request did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// The message is out; the memory is the caller's again.
    Sent,
    /// A message came in.
    Received(Received),
}

/// A message that came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Bytes in the buffer, including the 40 before the message.
    pub length: u32,
    /// Whether those 40 are a GRH. If not, what they hold is undefined.
    pub has_grh: bool,
    /// Source QPN, host order.
    pub remote_qpn: u32,
    /// Source LID, host order.
    pub remote_lid: u16,
    /// Service level.
    pub sl: u8,
    /// Low bits of the destination LID.
    pub path_bits: u8,
    /// What the adapter's checksum engine said (`IB_RECV_OPT_CSUM_MASK`, moved to bit 0).
    pub checksum_status: u8,
}

/// Room for `N` completions of one poll.
pub struct CompletionBatch<const N: usize> {
    entries: [ib_wc_t; N],
    /// Indices of the entries that the last poll filled, in the order of the completions.
    order: [usize; N],
    filled: usize,
}

impl<const N: usize> Default for CompletionBatch<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> CompletionBatch<N> {
    /// An empty batch.
    pub fn new() -> Self {
        Self { entries: core::array::from_fn(|_| ib_wc_t::zeroed()), order: [0; N], filled: 0 }
    }

    /// Links all entries into the list that `poll_cq` fills from.
    pub(super) fn free_list(&mut self) -> *mut ib_wc_t {
        self.filled = 0;
        let mut next = ptr::null_mut();
        for entry in self.entries.iter_mut().rev() {
            entry.p_next = next;
            next = &raw mut *entry;
        }
        next
    }

    /// Notes which entries the poll filled: those of the list at `done`. Indices are kept instead of the
    /// list's pointers, so that the batch may move afterwards.
    pub(super) fn filled_from(&mut self, done: *const ib_wc_t) {
        let base = self.entries.as_ptr().addr();
        let mut next = done;
        self.filled = 0;
        while !next.is_null() {
            let index = next.addr().wrapping_sub(base) / size_of::<ib_wc_t>();
            // An entry that is not of this batch, or more than all of them: the access layer's list is
            // corrupt. What was sound of it is used.
            let (Some(entry), Some(slot)) = (self.entries.get(index), self.order.get_mut(self.filled)) else {
                debug_assert!(false, "poll_cq returned a list that is not ours");
                break;
            };
            *slot = index;
            self.filled += 1;
            next = entry.p_next;
        }
    }

    /// How many completions the last poll brought.
    pub const fn len(&self) -> usize {
        self.filled
    }

    /// Whether it brought none.
    pub const fn is_empty(&self) -> bool {
        self.filled == 0
    }

    /// Whether it brought as many as there is room for: there may be more.
    pub const fn is_full(&self) -> bool {
        self.filled == N
    }

    /// The completions of the last poll, in their order.
    pub fn iter(&self) -> impl Iterator<Item = Completion> + '_ {
        self.order.iter().take(self.filled).filter_map(|index| self.entries.get(*index)).map(decode)
    }
}

fn decode(entry: &ib_wc_t) -> Completion {
    let outcome = match WcError::new(entry.status) {
        Some(error) => Err(error),
        // The driver's QPs only send and receive; IB_WC_LSO is a send.
        None if entry.wc_type == IB_WC_RECV => {
            // SAFETY: `ud` is what a receive on a UD QP fills, and its fields are integers.
            let ud = unsafe { entry.recv.ud };
            Ok(Done::Received(Received {
                length: entry.length,
                has_grh: ud.recv_opt.contains(ib_recv_opt_t::IB_RECV_OPT_GRH_VALID),
                remote_qpn: ud.remote_qp.get() & 0x00FF_FFFF,
                remote_lid: ud.remote_lid.get(),
                sl: ud.remote_sl,
                path_bits: ud.path_bits,
                checksum_status: (ud.recv_opt.intersection(ib_recv_opt_t::IB_RECV_OPT_CSUM_MASK).bits() >> 8)
                    as u8,
            }))
        }
        None => Ok(Done::Sent),
    };
    Completion { wr_id: entry.wr_id, outcome }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receive(wr_id: u64, options: ib_recv_opt_t) -> ib_wc_t {
        let mut entry = ib_wc_t::zeroed();
        entry.wr_id = wr_id;
        entry.wc_type = IB_WC_RECV;
        entry.length = 140;
        entry.recv = ib_wc_recv {
            ud: ib_wc_ud {
                recv_opt: options,
                remote_qp: ib_net32_t::new(0x0012_3456),
                remote_lid: ib_net16_t::new(0x00AB),
                remote_sl: 3,
                path_bits: 1,
                ..Default::default()
            },
        };
        entry
    }

    #[test]
    fn a_receive_says_whether_there_is_a_grh() {
        let with = decode(&receive(1, ib_recv_opt_t::IB_RECV_OPT_GRH_VALID));
        let Ok(Done::Received(message)) = with.outcome else { panic!("{with:?}") };
        assert!(message.has_grh);
        assert_eq!((message.remote_qpn, message.remote_lid, message.sl), (0x0012_3456, 0x00AB, 3));
        let without = decode(&receive(1, ib_recv_opt_t::empty()));
        assert!(matches!(without.outcome, Ok(Done::Received(Received { has_grh: false, .. }))));
    }

    #[test]
    fn an_error_is_an_error_whatever_else_the_entry_holds() {
        let mut entry = receive(7, ib_recv_opt_t::IB_RECV_OPT_GRH_VALID);
        entry.status = IB_WCS_WR_FLUSHED_ERR;
        let completion = decode(&entry);
        assert_eq!(completion.wr_id, 7);
        assert!(completion.outcome.is_err_and(WcError::is_flush));
    }

    #[test]
    fn completions_come_in_the_order_of_the_done_list_even_after_a_move() {
        let mut batch = CompletionBatch::<4>::new();
        let first = batch.free_list();
        // An access layer that fills entries from the front but links them the other way round.
        // SAFETY: the free list has four entries.
        let done = unsafe {
            let second = (*first).p_next;
            (*first).wr_id = 1;
            (*first).p_next = ptr::null_mut();
            (*second).wr_id = 2;
            (*second).p_next = first;
            second
        };
        batch.filled_from(done);
        let moved = batch;
        assert_eq!((moved.len(), moved.is_full()), (2, false));
        let mut ids = moved.iter().map(|completion| completion.wr_id);
        assert_eq!((ids.next(), ids.next(), ids.next()), (Some(2), Some(1), None));
    }

    #[test]
    fn an_empty_done_list_is_an_empty_batch() {
        let mut batch = CompletionBatch::<2>::new();
        let _ = batch.free_list();
        batch.filled_from(ptr::null());
        assert!(batch.is_empty() && batch.iter().next().is_none());
    }
}
