//! Management datagrams and the element in which the access layer hands them over.
//!
//! Source: WinOFED `inc/iba/ib_types.h` (`ib_mad_t`, `ib_sa_mad_t`, `ib_class_port_info_t`) and
//! `inc/iba/ib_al.h` (`ib_mad_element_t`). Field order is that of InfiniBand Architecture volume 1, chapters
//! 13 and 15.

use core::ffi::c_void;

use crate::av::ib_grh_t;
use crate::types::*;
use crate::wc::{ib_recv_opt_t, ib_wc_status_t};
use crate::wr::ib_send_opt_t;

/// `MAD_BLOCK_SIZE`: bytes of a MAD.
pub const MAD_BLOCK_SIZE: usize = 256;
/// `IB_SA_DATA_SIZE`: bytes of attribute data in one SA MAD.
pub const IB_SA_DATA_SIZE: usize = 200;
/// `IB_SA_MAD_HDR_SIZE`: bytes before the attribute data.
pub const IB_SA_MAD_HDR_SIZE: usize = 56;

/// `IB_MCLASS_SUBN_ADM`: management class of subnet administration.
pub const IB_MCLASS_SUBN_ADM: u8 = 0x03;

/// `IB_MAD_METHOD_GET`.
pub const IB_MAD_METHOD_GET: u8 = 0x01;
/// `IB_MAD_METHOD_SET`.
pub const IB_MAD_METHOD_SET: u8 = 0x02;
/// `IB_MAD_METHOD_REPORT`.
pub const IB_MAD_METHOD_REPORT: u8 = 0x06;
/// `IB_MAD_METHOD_GETTABLE`.
pub const IB_MAD_METHOD_GETTABLE: u8 = 0x12;
/// `IB_MAD_METHOD_DELETE`.
pub const IB_MAD_METHOD_DELETE: u8 = 0x15;
/// `IB_MAD_METHOD_GET_RESP`.
pub const IB_MAD_METHOD_GET_RESP: u8 = 0x81;
/// `IB_MAD_METHOD_GETTABLE_RESP`.
pub const IB_MAD_METHOD_GETTABLE_RESP: u8 = 0x92;
/// `IB_MAD_METHOD_RESP_MASK`: set in the method of every response.
pub const IB_MAD_METHOD_RESP_MASK: u8 = 0x80;

/// `IB_MAD_STATUS_BUSY`: MAD status, common part.
pub const IB_MAD_STATUS_BUSY: ib_net16_t = ib_net16_t::new(0x0001);
/// `IB_MAD_STATUS_REDIRECT`.
pub const IB_MAD_STATUS_REDIRECT: ib_net16_t = ib_net16_t::new(0x0002);
/// `IB_MAD_STATUS_UNSUP_CLASS_VER`.
pub const IB_MAD_STATUS_UNSUP_CLASS_VER: ib_net16_t = ib_net16_t::new(0x0004);
/// `IB_MAD_STATUS_UNSUP_METHOD`.
pub const IB_MAD_STATUS_UNSUP_METHOD: ib_net16_t = ib_net16_t::new(0x0008);
/// `IB_MAD_STATUS_UNSUP_METHOD_ATTR`.
pub const IB_MAD_STATUS_UNSUP_METHOD_ATTR: ib_net16_t = ib_net16_t::new(0x000C);
/// `IB_MAD_STATUS_INVALID_FIELD`.
pub const IB_MAD_STATUS_INVALID_FIELD: ib_net16_t = ib_net16_t::new(0x001C);
/// `IB_SA_MAD_STATUS_SUCCESS`: MAD status, part of subnet administration.
pub const IB_SA_MAD_STATUS_SUCCESS: ib_net16_t = ib_net16_t::new(0x0000);
/// `IB_SA_MAD_STATUS_NO_RESOURCES`.
pub const IB_SA_MAD_STATUS_NO_RESOURCES: ib_net16_t = ib_net16_t::new(0x0100);
/// `IB_SA_MAD_STATUS_REQ_INVALID`: for one, a join of a group that does not exist.
pub const IB_SA_MAD_STATUS_REQ_INVALID: ib_net16_t = ib_net16_t::new(0x0200);
/// `IB_SA_MAD_STATUS_NO_RECORDS`.
pub const IB_SA_MAD_STATUS_NO_RECORDS: ib_net16_t = ib_net16_t::new(0x0300);
/// `IB_SA_MAD_STATUS_TOO_MANY_RECORDS`.
pub const IB_SA_MAD_STATUS_TOO_MANY_RECORDS: ib_net16_t = ib_net16_t::new(0x0400);
/// `IB_SA_MAD_STATUS_INVALID_GID`.
pub const IB_SA_MAD_STATUS_INVALID_GID: ib_net16_t = ib_net16_t::new(0x0500);
/// `IB_SA_MAD_STATUS_INSUF_COMPS`: components are missing that creation needs.
pub const IB_SA_MAD_STATUS_INSUF_COMPS: ib_net16_t = ib_net16_t::new(0x0600);
/// `IB_SA_MAD_STATUS_DENIED`.
pub const IB_SA_MAD_STATUS_DENIED: ib_net16_t = ib_net16_t::new(0x0700);
/// `IB_SA_MAD_STATUS_PRIO_SUGGESTED`.
pub const IB_SA_MAD_STATUS_PRIO_SUGGESTED: ib_net16_t = ib_net16_t::new(0x0800);

/// `ib_mad_t`: the header of every MAD, 24 bytes, packed.
#[repr(C, packed)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ib_mad_t {
    /// 1.
    pub base_ver: u8,
    /// Management class.
    pub mgmt_class: u8,
    /// Version of the class; 2 for subnet administration.
    pub class_ver: u8,
    /// Method.
    pub method: u8,
    /// Status.
    pub status: ib_net16_t,
    /// By class.
    pub class_spec: ib_net16_t,
    /// Transaction.
    pub trans_id: ib_net64_t,
    /// Attribute.
    pub attr_id: ib_net16_t,
    /// Reserved.
    pub resv: ib_net16_t,
    /// Attribute modifier.
    pub attr_mod: ib_net32_t,
}

/// `ib_sa_mad_t`: a MAD of subnet administration, 256 bytes, packed.
///
/// A response of several segments arrives as one element: the header once, then all records, `attr_offset`
/// apart.
#[repr(C, packed)]
#[derive(Clone, Copy)]
pub struct ib_sa_mad_t {
    /// 1.
    pub base_ver: u8,
    /// [`IB_MCLASS_SUBN_ADM`].
    pub mgmt_class: u8,
    /// 2.
    pub class_ver: u8,
    /// Method.
    pub method: u8,
    /// Status.
    pub status: ib_net16_t,
    /// Reserved.
    pub resv: ib_net16_t,
    /// Transaction.
    pub trans_id: ib_net64_t,
    /// Attribute.
    pub attr_id: ib_net16_t,
    /// Reserved.
    pub resv1: ib_net16_t,
    /// Attribute modifier.
    pub attr_mod: ib_net32_t,
    /// Version of the segmentation protocol.
    pub rmpp_version: u8,
    /// Type of segment.
    pub rmpp_type: u8,
    /// Flags of the segment.
    pub rmpp_flags: u8,
    /// Status of the segment.
    pub rmpp_status: u8,
    /// Number of the segment.
    pub seg_num: ib_net32_t,
    /// Payload length, or new window.
    pub paylen_newwin: ib_net32_t,
    /// Key of the subnet manager.
    pub sm_key: ib_net64_t,
    /// Distance between records, in units of 8 bytes.
    pub attr_offset: ib_net16_t,
    /// Reserved.
    pub resv3: ib_net16_t,
    /// Which components of the attribute a query compares.
    pub comp_mask: ib_net64_t,
    /// Attribute.
    pub data: [u8; IB_SA_DATA_SIZE],
}

/// `ib_class_port_info_t`: 72 bytes, packed.
#[repr(C, packed)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ib_class_port_info_t {
    /// Base version.
    pub base_ver: u8,
    /// Class version.
    pub class_ver: u8,
    /// Capabilities.
    pub cap_mask: ib_net16_t,
    /// More capabilities (27 bits) and response time (5 bits).
    pub cap_mask2_resp_time: ib_net32_t,
    /// Redirection: GID.
    pub redir_gid: ib_gid_t,
    /// Redirection: traffic class, SL, flow label.
    pub redir_tc_sl_fl: ib_net32_t,
    /// Redirection: LID.
    pub redir_lid: ib_net16_t,
    /// Redirection: P_Key.
    pub redir_pkey: ib_net16_t,
    /// Redirection: QPN.
    pub redir_qp: ib_net32_t,
    /// Redirection: Q_Key.
    pub redir_qkey: ib_net32_t,
    /// Traps: GID.
    pub trap_gid: ib_gid_t,
    /// Traps: traffic class, SL, flow label.
    pub trap_tc_sl_fl: ib_net32_t,
    /// Traps: LID.
    pub trap_lid: ib_net16_t,
    /// Traps: P_Key.
    pub trap_pkey: ib_net16_t,
    /// Traps: hop limit, QPN.
    pub trap_hop_qp: ib_net32_t,
    /// Traps: Q_Key.
    pub trap_qkey: ib_net32_t,
}

/// `ib_mad_element_t`: a MAD with what belongs to it.
///
/// A client that is handed one owns it and returns it with `put_mad`, at DISPATCH_LEVEL or below.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ib_mad_element_t {
    /// Next of a list, or null.
    pub p_next: *mut ib_mad_element_t,
    /// Context of the client.
    pub context1: *const c_void,
    /// Context of the client.
    pub context2: *const c_void,
    /// The MAD.
    pub p_mad_buf: *mut ib_mad_t,
    /// Bytes at `p_mad_buf`: header and all records.
    pub size: u32,
    /// Immediate data.
    pub immediate_data: u32,
    /// QPN of the other side.
    pub remote_qp: ib_net32_t,
    /// Path of a send.
    pub h_av: ib_av_handle_t,
    /// Options of a send.
    pub send_opt: ib_send_opt_t,
    /// Q_Key of a send.
    pub remote_qkey: ib_net32_t,
    /// Whether an answer is awaited.
    pub resp_expected: boolean_t,
    /// For the answer, in milliseconds.
    pub timeout_ms: u32,
    /// Times to send again.
    pub retry_cnt: u32,
    /// Version of the segmentation protocol, zero for none.
    pub rmpp_version: u8,
    /// Of a send.
    pub status: ib_wc_status_t,
    /// Whether `p_grh` is valid.
    pub grh_valid: boolean_t,
    /// GRH of a received MAD.
    pub p_grh: *mut ib_grh_t,
    /// Options of a receive.
    pub recv_opt: ib_recv_opt_t,
    /// LID of the sender.
    pub remote_lid: ib_net16_t,
    /// SL of the sender.
    pub remote_sl: u8,
    /// P_Key index.
    pub pkey_index: u16,
    /// Path bits.
    pub path_bits: u8,
    /// Contexts of the request, in its response.
    pub send_context1: *mut c_void,
    /// As above.
    pub send_context2: *mut c_void,
}
