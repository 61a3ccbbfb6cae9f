//! Work requests: what is posted to a send or a receive queue.
//!
//! Source: WinOFED `inc/iba/ib_types.h` (`ib_send_wr_t`, `ib_recv_wr_t`, `ib_local_ds_t`).

use core::ffi::c_void;

use crate::status::c_enum;
use crate::types::*;

c_enum! {
    /// `ib_wr_type_t`: the operation of a send work request.
    ib_wr_type_t;
    /// Send.
    WR_SEND = 0,
    /// RDMA write.
    WR_RDMA_WRITE = 1,
    /// RDMA read.
    WR_RDMA_READ = 2,
    /// Atomic compare and swap.
    WR_COMPARE_SWAP = 3,
    /// Atomic fetch and add.
    WR_FETCH_ADD = 4,
    /// Large send: the adapter cuts the payload into segments, each behind a copy of the header.
    WR_LSO = 5,
    /// Nothing.
    WR_NOP = 6,
    /// Invalidate a local key.
    WR_LOCAL_INV = 7,
    /// Fast registration of memory.
    WR_FAST_REG_MR = 8,
    /// End of the list.
    WR_UNKNOWN = 9,
}

/// `ib_local_ds_t`: one element of a scatter/gather list, 16 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ib_local_ds_t {
    /// Address inside the memory region of `lkey`. For a region over all physical memory, a physical address.
    pub vaddr: u64,
    /// Bytes.
    pub length: u32,
    /// The key that registering the region returned, passed back unchanged.
    pub lkey: u32,
}

bitflags::bitflags! {
    /// `ib_send_opt_t`.
    #[repr(transparent)]
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct ib_send_opt_t: u32 {
        /// `IB_SEND_OPT_IMMEDIATE`: `immediate_data` travels with the message.
        const IB_SEND_OPT_IMMEDIATE = 0x0000_0001;
        /// `IB_SEND_OPT_FENCE`: wait for earlier RDMA reads.
        const IB_SEND_OPT_FENCE = 0x0000_0002;
        /// `IB_SEND_OPT_SIGNALED`: make a completion even though the QP does not signal every send.
        const IB_SEND_OPT_SIGNALED = 0x0000_0004;
        /// `IB_SEND_OPT_SOLICITED`: set the solicited event bit in the packet.
        const IB_SEND_OPT_SOLICITED = 0x0000_0008;
        /// `IB_SEND_OPT_INLINE`: copy the payload into the work queue; `lkey` is not read.
        const IB_SEND_OPT_INLINE = 0x0000_0010;
        /// `IB_SEND_OPT_LOCAL`: hand a MAD to the local agents.
        const IB_SEND_OPT_LOCAL = 0x0000_0020;
        /// `IB_SEND_OPT_TX_IP_CSUM`: the adapter fills in the IPv4 header checksum.
        const IB_SEND_OPT_TX_IP_CSUM = 0x0000_0040;
        /// `IB_SEND_OPT_TX_TCP_UDP_CSUM`: the adapter fills in the TCP or UDP checksum.
        const IB_SEND_OPT_TX_TCP_UDP_CSUM = 0x0000_0080;
        /// Bits of the adapter's vendor.
        const IB_SEND_OPT_VEND_MASK = 0xFFFF_0000;
    }
}

/// `ib_send_wr_t`: a send work request, 88 bytes.
///
/// The adapter has read the request and its scatter list when `post_send` returns; the memory that the
/// elements name stays the adapter's until the completion.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ib_send_wr_t {
    /// Comes back in the completion.
    pub wr_id: u64,
    /// Next request of the list, or null.
    pub p_next: *mut ib_send_wr_t,
    /// The scatter/gather list.
    pub ds_array: *mut ib_local_ds_t,
    /// Elements in `ds_array`.
    pub num_ds: u32,
    /// The operation.
    pub wr_type: ib_wr_type_t,
    /// Options.
    pub send_opt: ib_send_opt_t,
    /// Immediate data, or the key to invalidate.
    pub data: ib_send_wr_data,
    /// Addressing by transport and operation.
    pub op: ib_send_wr_op,
}

/// First anonymous union of [`ib_send_wr_t`].
#[repr(C)]
#[derive(Clone, Copy)]
pub union ib_send_wr_data {
    /// Four bytes that travel with the message.
    pub immediate_data: ib_net32_t,
    /// Key to invalidate.
    pub invalidate_rkey: ib_net32_t,
}

/// Second anonymous union of [`ib_send_wr_t`].
#[repr(C)]
#[derive(Clone, Copy)]
pub union ib_send_wr_op {
    /// Datagrams.
    pub dgrm: ib_send_dgrm,
    /// RDMA and atomics.
    pub remote_ops: ib_send_remote_ops,
    /// Fast registration.
    pub fast_reg: ib_send_fast_reg,
}

/// `ib_send_wr_t::dgrm`.
#[repr(C)]
#[derive(Clone, Copy)]
pub union ib_send_dgrm {
    /// Unreliable datagram.
    pub ud: ib_send_ud,
    /// Reliable datagram.
    pub rd: ib_send_rd,
    /// Raw Ethertype.
    pub raw_ether: ib_send_raw_ether,
    /// Raw IPv6.
    pub raw_ipv6: ib_send_raw_ipv6,
}

/// `dgrm.ud`: where an unreliable datagram goes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ib_send_ud {
    /// Address vector of the path.
    pub h_av: ib_av_handle_t,
    /// Destination QPN; 0xFFFFFF for a multicast group.
    pub remote_qp: ib_net32_t,
    /// Q_Key put into the DETH; with its top bit set, that of the QP is used instead.
    pub remote_qkey: ib_net32_t,
    /// Reserved.
    pub rsvd: *mut c_void,
    /// P_Key index; read for GSI QPs only.
    pub pkey_index: u16,
    /// [`WR_LSO`]: the header to repeat.
    pub header: *mut c_void,
    /// [`WR_LSO`]: bytes at `header`.
    pub hlen: i32,
    /// [`WR_LSO`]: bytes of payload in a segment.
    pub mss: i32,
}

/// `dgrm.rd`: reliable datagram.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ib_send_rd {
    /// Destination QPN.
    pub remote_qp: ib_net32_t,
    /// Q_Key.
    pub remote_qkey: ib_net32_t,
    /// Local end-to-end context.
    pub eecn: ib_net32_t,
}

/// `dgrm.raw_ether`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ib_send_raw_ether {
    /// Destination LID.
    pub dest_lid: ib_net16_t,
    /// Source path bits.
    pub path_bits: u8,
    /// Service level.
    pub sl: u8,
    /// Rate limit.
    pub max_static_rate: u8,
    /// Ethertype.
    pub ether_type: ib_net16_t,
}

/// `dgrm.raw_ipv6`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ib_send_raw_ipv6 {
    /// Destination LID.
    pub dest_lid: ib_net16_t,
    /// Source path bits.
    pub path_bits: u8,
    /// Service level.
    pub sl: u8,
    /// Rate limit.
    pub max_static_rate: u8,
}

/// `remote_ops`: RDMA and atomics.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ib_send_remote_ops {
    /// Address at the other side.
    pub vaddr: u64,
    /// Remote key.
    pub rkey: ib_net32_t,
    /// Value to add or to compare with.
    pub atomic1: ib_net64_t,
    /// Value to swap in.
    pub atomic2: ib_net64_t,
}

/// `fast_reg`: fast memory registration.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ib_send_fast_reg {
    /// First address of the region.
    pub iova_start: u64,
    /// List of pages (`ib_fast_reg_page_list_t`).
    pub page_list: *mut c_void,
    /// Page size as a power of two.
    pub page_shift: u32,
    /// Entries in the list.
    pub page_list_len: u32,
    /// Bytes.
    pub length: u32,
    /// Access rights.
    pub access_flags: i32,
    /// Key to give the region.
    pub rkey: ib_net32_t,
    /// Offset of the first byte in the first page.
    pub fbo: u32,
}

/// `ib_recv_wr_t`: a receive work request, 32 bytes.
///
/// On a UD QP the first 40 bytes of the scatter list take the GRH, whether or not the packet has one.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ib_recv_wr_t {
    /// Next request of the list, or null.
    pub p_next: *mut ib_recv_wr_t,
    /// Comes back in the completion.
    pub wr_id: u64,
    /// Elements in `ds_array`.
    pub num_ds: u32,
    /// The scatter list.
    pub ds_array: *mut ib_local_ds_t,
}
