//! Work requests with their storage: built on the stack or kept by their owner, posted without allocation.
//!
//! `post_send` and `post_recv` copy the request into the queue before they return (`ib_al.h`,
//! `ib_post_send`), so a request can be reused at once. What its segments name belongs to the adapter until
//! the completion: whoever posts keeps that memory, by giving its owner the `wr_id` and getting it back with
//! the completion.

use core::ptr;

use ibal_sys::*;
use windows_kernel_sys::Zeroable;

use crate::kernel::physical::Segment;

use super::av::Av;
use super::status::IbError;

/// The QPN that addresses a multicast group (InfiniBand Architecture volume 1, 10.5.2).
pub const MULTICAST_QPN: u32 = 0x00FF_FFFF;

/// A list of at most `N` segments.
#[derive(Clone, Copy)]
struct Segments<const N: usize> {
    list: [ib_local_ds_t; N],
    used: u32,
}

impl<const N: usize> Segments<N> {
    const fn new() -> Self {
        Self { list: [ib_local_ds_t { vaddr: 0, length: 0, lkey: 0 }; N], used: 0 }
    }

    fn push(&mut self, segment: Segment, lkey: u32) -> Result<(), IbError> {
        let slot = self.list.get_mut(self.used as usize).ok_or(IbError::NO_RESOURCES)?;
        *slot = ib_local_ds_t { vaddr: segment.address, length: segment.length, lkey };
        self.used += 1;
        Ok(())
    }
}

/// A send on a UD QP, of at most `N` segments.
pub struct SendRequest<const N: usize> {
    raw: ib_send_wr_t,
    segments: Segments<N>,
}

impl<const N: usize> SendRequest<N> {
    /// A send without segments. `qpn` and `qkey` are in host order.
    ///
    /// The address handle must not be destroyed before the completion: the adapter reads it then.
    pub fn new(wr_id: u64, av: &Av, qpn: u32, qkey: u32) -> Self {
        let mut raw = ib_send_wr_t::zeroed();
        raw.wr_id = wr_id;
        raw.wr_type = WR_SEND;
        raw.send_opt = ib_send_opt_t::IB_SEND_OPT_SIGNALED;
        raw.op = ib_send_wr_op {
            dgrm: ib_send_dgrm {
                ud: ib_send_ud {
                    h_av: av.handle(),
                    remote_qp: ib_net32_t::new(qpn),
                    remote_qkey: ib_net32_t::new(qkey),
                    rsvd: ptr::null_mut(),
                    pkey_index: 0,
                    header: ptr::null_mut(),
                    hlen: 0,
                    mss: 0,
                },
            },
        };
        Self { raw, segments: Segments::new() }
    }

    /// Adds a segment. `Err` when there are `N`.
    pub fn push(&mut self, segment: Segment, lkey: u32) -> Result<(), IbError> {
        self.segments.push(segment, lkey)
    }

    /// How many segments there are.
    pub fn len(&self) -> usize {
        self.segments.used as usize
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.segments.used == 0
    }

    /// Asks for a solicited event at the receiver.
    pub fn solicited(mut self) -> Self {
        self.raw.send_opt |= ib_send_opt_t::IB_SEND_OPT_SOLICITED;
        self
    }

    /// Asks the adapter to fill in checksums.
    pub fn checksums(mut self, ipv4_header: bool, tcp_udp: bool) -> Self {
        self.raw.send_opt.set(ib_send_opt_t::IB_SEND_OPT_TX_IP_CSUM, ipv4_header);
        self.raw.send_opt.set(ib_send_opt_t::IB_SEND_OPT_TX_TCP_UDP_CSUM, tcp_udp);
        self
    }

    /// The request as the access layer wants it: valid while `self` is neither moved nor changed.
    pub(super) fn prepare(&mut self, next: *mut ib_send_wr_t) -> *mut ib_send_wr_t {
        self.raw.p_next = next;
        self.raw.ds_array = self.segments.list.as_mut_ptr();
        self.raw.num_ds = self.segments.used;
        &raw mut self.raw
    }
}

/// A receive on a UD QP, of at most `N` segments, of which the first 40 bytes take the GRH.
pub struct RecvRequest<const N: usize> {
    raw: ib_recv_wr_t,
    segments: Segments<N>,
}

impl<const N: usize> RecvRequest<N> {
    /// A receive without segments.
    pub const fn new(wr_id: u64) -> Self {
        Self {
            raw: ib_recv_wr_t { p_next: ptr::null_mut(), wr_id, num_ds: 0, ds_array: ptr::null_mut() },
            segments: Segments::new(),
        }
    }

    /// Adds a segment. `Err` when there are `N`.
    pub fn push(&mut self, segment: Segment, lkey: u32) -> Result<(), IbError> {
        self.segments.push(segment, lkey)
    }

    /// What comes back in the completion.
    pub const fn wr_id(&self) -> u64 {
        self.raw.wr_id
    }

    /// As [`SendRequest::prepare`].
    pub(super) fn prepare(&mut self, next: *mut ib_recv_wr_t) -> *mut ib_recv_wr_t {
        self.raw.p_next = next;
        self.raw.ds_array = self.segments.list.as_mut_ptr();
        self.raw.num_ds = self.segments.used;
        &raw mut self.raw
    }
}

/// A list of which a part was posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostError {
    /// Requests posted, the first of the list: their completions will come. The others were not.
    pub posted: usize,
    /// Why the next one was not.
    pub error: IbError,
}
