//! The access layer interface: the table of functions behind `IRP_MN_QUERY_INTERFACE`.
//!
//! Source: WinOFED `inc/kernel/iba/ib_al_ifc.h`. The bus driver fills the table in
//! `core/bus/kernel/bus_pnp.c`. In the table's types a slot may be null (`Option`); the bus driver fills all.
//!
//! # IRQL
//!
//! The headers state none for most calls. What holds is seen from `core/al`: whatever issues a command to the
//! adapter, waits, or destroys runs at PASSIVE_LEVEL; what only touches a queue, or only sends a MAD, may run
//! at DISPATCH_LEVEL. Each slot names its limit.

use core::ffi::{c_char, c_void};

use windows_kernel_sys::{GUID, INTERFACE, NTSTATUS};

use crate::av::ib_av_attr_t;
use crate::ca::ib_ca_attr_t;
use crate::cm::*;
use crate::cq::ib_cq_create_t;
use crate::event::ib_pfn_event_cb_t;
use crate::mad::ib_mad_element_t;
use crate::mcast::ib_mcast_req_t;
use crate::mr::{ib_mr_attr_t, ib_mr_create_t, ib_phys_create_t};
use crate::pd::ib_pd_type_t;
use crate::pnp::ib_pnp_req_t;
use crate::qp::{ib_dgrm_info_t, ib_qp_attr_t, ib_qp_create_t, ib_qp_mod_t};
use crate::query::ib_query_req_t;
use crate::status::ib_api_status_t;
use crate::types::*;
use crate::wc::{ib_wc_status_t, ib_wc_t};
use crate::wr::{ib_recv_wr_t, ib_send_wr_t};

/// `GUID_IB_AL_INTERFACE`.
pub const GUID_IB_AL_INTERFACE: GUID = GUID {
    Data1: 0x9623_4e89,
    Data2: 0x496f,
    Data3: 0x4dfb,
    Data4: [0xaa, 0x90, 0xfc, 0xe8, 0x2b, 0xce, 0xc8, 0xa8],
};
/// `AL_INTERFACE_VERSION`.
pub const AL_INTERFACE_VERSION: u16 = 19;

/// `ib_al_ifc_data_t`: the interface-specific data of the query, 24 bytes. The caller says what it wants to
/// know and where to put it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ib_al_ifc_data_t {
    /// Type of the data.
    pub r#type: *const GUID,
    /// Bytes at `p_data`.
    pub size: u16,
    /// Version of the data.
    pub version: u16,
    /// Where to put it.
    pub p_data: *mut c_void,
}

/// A slot that nothing here calls.
pub type unused_slot = *mut c_void;

macro_rules! slots {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)?;)*) => {$(
        $(#[$doc])*
        pub type $name = Option<unsafe extern "win64" fn($($arg: $ty),*) $(-> $ret)?>;
    )*};
}

slots! {
    /// Opens a CA: a handle through which its resources are made. PASSIVE_LEVEL.
    ib_pfn_open_ca_t(h_al: ib_al_handle_t, ca_guid: ib_net64_t, ca_event_cb: ib_pfn_event_cb_t,
        ca_context: *const c_void, ph_ca: *mut ib_ca_handle_t) -> ib_api_status_t;
    /// Attributes of a CA with its ports, GIDs and P_Keys. With a buffer that is null or too small it returns
    /// `IB_INSUFFICIENT_MEMORY` and the size needed. PASSIVE_LEVEL.
    ib_pfn_query_ca_t(h_ca: ib_ca_handle_t, p_ca_attr: *mut ib_ca_attr_t, p_size: *mut u32) -> ib_api_status_t;
    /// Closes a CA, with everything still below it. PASSIVE_LEVEL.
    ib_pfn_close_ca_t(h_ca: ib_ca_handle_t, destroy_cb: ib_pfn_destroy_cb_t) -> ib_api_status_t;
    /// Allocates a protection domain. PASSIVE_LEVEL.
    ib_pfn_alloc_pd_t(h_ca: ib_ca_handle_t, pd_type: ib_pd_type_t, pd_context: *const c_void,
        ph_pd: *mut ib_pd_handle_t) -> ib_api_status_t;
    /// Releases a protection domain, with everything still below it. PASSIVE_LEVEL.
    ib_pfn_dealloc_pd_t(h_pd: ib_pd_handle_t, destroy_cb: ib_pfn_destroy_cb_t) -> ib_api_status_t;
    /// Makes an address vector. PASSIVE_LEVEL: an adapter may need a command for it.
    ib_pfn_create_av_t(h_pd: ib_pd_handle_t, p_av_attr: *const ib_av_attr_t, ph_av: *mut ib_av_handle_t)
        -> ib_api_status_t;
    /// Reads an address vector. PASSIVE_LEVEL.
    ib_pfn_query_av_t(h_av: ib_av_handle_t, p_av_attr: *mut ib_av_attr_t, ph_pd: *mut ib_pd_handle_t)
        -> ib_api_status_t;
    /// Changes an address vector. PASSIVE_LEVEL.
    ib_pfn_modify_av_t(h_av: ib_av_handle_t, p_av_attr: *const ib_av_attr_t) -> ib_api_status_t;
    /// Destroys an address vector. No send that names it may be outstanding. PASSIVE_LEVEL.
    ib_pfn_destroy_av_t(h_av: ib_av_handle_t) -> ib_api_status_t;
    /// Creates a QP in RESET. PASSIVE_LEVEL.
    ib_pfn_create_qp_t(h_pd: ib_pd_handle_t, p_qp_create: *mut ib_qp_create_t, qp_context: *const c_void,
        qp_event_cb: ib_pfn_event_cb_t, ph_qp: *mut ib_qp_handle_t) -> ib_api_status_t;
    /// Attributes of a QP. PASSIVE_LEVEL.
    ib_pfn_query_qp_t(h_qp: ib_qp_handle_t, p_qp_attr: *mut ib_qp_attr_t) -> ib_api_status_t;
    /// Moves a QP to another state. PASSIVE_LEVEL.
    ib_pfn_modify_qp_t(h_qp: ib_qp_handle_t, p_qp_mod: *const ib_qp_mod_t) -> ib_api_status_t;
    /// Destroys a QP. Memberships below it are left first. PASSIVE_LEVEL.
    ib_pfn_destroy_qp_t(h_qp: ib_qp_handle_t, destroy_cb: ib_pfn_destroy_cb_t) -> ib_api_status_t;
    /// Creates a CQ, not armed. PASSIVE_LEVEL.
    ib_pfn_create_cq_t(h_ca: ib_ca_handle_t, p_cq_create: *mut ib_cq_create_t, cq_context: *const c_void,
        cq_event_cb: ib_pfn_event_cb_t, ph_cq: *mut ib_cq_handle_t) -> ib_api_status_t;
    /// Resizes a CQ. PASSIVE_LEVEL.
    ib_pfn_modify_cq_t(h_cq: ib_cq_handle_t, p_size: *mut u32) -> ib_api_status_t;
    /// Size of a CQ. PASSIVE_LEVEL.
    ib_pfn_query_cq_t(h_cq: ib_cq_handle_t, p_size: *mut u32) -> ib_api_status_t;
    /// Destroys a CQ, and QPs still bound to it before. PASSIVE_LEVEL.
    ib_pfn_destroy_cq_t(h_cq: ib_cq_handle_t, destroy_cb: ib_pfn_destroy_cb_t) -> ib_api_status_t;
    /// Registers virtual memory. PASSIVE_LEVEL.
    ib_pfn_reg_mem_t(h_pd: ib_pd_handle_t, p_mr_create: *const ib_mr_create_t, p_lkey: *mut u32,
        p_rkey: *mut u32, ph_mr: *mut ib_mr_handle_t) -> ib_api_status_t;
    /// Registers physical memory; `p_vaddr` is the address wanted in, and given out. PASSIVE_LEVEL.
    ib_pfn_reg_phys_t(h_pd: ib_pd_handle_t, p_phys_create: *const ib_phys_create_t, p_vaddr: *mut u64,
        p_lkey: *mut u32, p_rkey: *mut u32, ph_mr: *mut ib_mr_handle_t) -> ib_api_status_t;
    /// Attributes of a region. PASSIVE_LEVEL.
    ib_pfn_query_mr_t(h_mr: ib_mr_handle_t, p_mr_attr: *mut ib_mr_attr_t) -> ib_api_status_t;
    /// Removes a region. PASSIVE_LEVEL.
    ib_pfn_dereg_mr_t(h_mr: ib_mr_handle_t) -> ib_api_status_t;
    /// Posts a list of sends. On failure the first not posted is at `pp_send_failure`; those before it are.
    /// DISPATCH_LEVEL or below.
    ib_pfn_post_send_t(h_qp: ib_qp_handle_t, p_send_wr: *mut ib_send_wr_t, pp_send_failure: *mut *mut ib_send_wr_t)
        -> ib_api_status_t;
    /// Posts a list of receives, as above. DISPATCH_LEVEL or below.
    ib_pfn_post_recv_t(h_qp: ib_qp_handle_t, p_recv_wr: *mut ib_recv_wr_t, pp_recv_failure: *mut *mut ib_recv_wr_t)
        -> ib_api_status_t;
    /// Takes completions: fills entries off the free list, moves them to the done list. `IB_NOT_FOUND` when
    /// there was none. DISPATCH_LEVEL or below.
    ib_pfn_poll_cq_t(h_cq: ib_cq_handle_t, pp_free_wclist: *mut *mut ib_wc_t, pp_done_wclist: *mut *mut ib_wc_t)
        -> ib_api_status_t;
    /// Arms a CQ for one callback. A completion already there may or may not raise it, so poll once more
    /// after this. DISPATCH_LEVEL or below.
    ib_pfn_rearm_cq_t(h_cq: ib_cq_handle_t, solicited: boolean_t) -> ib_api_status_t;
    /// Joins a group and attaches the QP for a full member. A handle taken through `p_h_mcast` has a
    /// reference of its own, which `ib_deref_al_obj` returns; with null there the handle comes with the
    /// callback only. PASSIVE_LEVEL here; without `IB_FLAGS_SYNC` it only sends a MAD.
    ib_pfn_join_mcast_t(h_qp: ib_qp_handle_t, p_mcast_req: *const ib_mcast_req_t,
        p_h_mcast: *mut ib_mcast_handle_t) -> ib_api_status_t;
    /// As above, without a QP to attach. PASSIVE_LEVEL.
    ib_pfn_join_mcast_no_qp_t(p_mcast_req: *const ib_mcast_req_t, p_h_mcast: *mut ib_mcast_handle_t)
        -> ib_api_status_t;
    /// Leaves a group: tells the subnet administrator (without waiting for its word beyond half a second),
    /// detaches the QP. A join that is still out is cancelled. PASSIVE_LEVEL.
    ib_pfn_leave_mcast_t(h_mcast: ib_mcast_handle_t, destroy_cb: ib_pfn_destroy_cb_t) -> ib_api_status_t;
    /// Has the adapter answer a MAD of 256 bytes itself. PASSIVE_LEVEL.
    ib_pfn_local_mad_t(h_ca: ib_ca_handle_t, port_num: u8, p_mad_in: *const c_void, p_mad_out: *mut c_void)
        -> ib_api_status_t;
    /// Listens. PASSIVE_LEVEL.
    ib_pfn_cm_listen_t(h_al: ib_al_handle_t, p_cm_listen: *const ib_cm_listen_t, listen_context: *const c_void,
        ph_cm_listen: *mut ib_listen_handle_t) -> ib_api_status_t;
    /// Stops listening. PASSIVE_LEVEL.
    ib_pfn_cm_cancel_t(h_cm_listen: ib_listen_handle_t, destroy_cb: ib_pfn_destroy_cb_t) -> ib_api_status_t;
    /// Connects. DISPATCH_LEVEL or below without `IB_FLAGS_SYNC`.
    ib_pfn_cm_req_t(p_cm_req: *const ib_cm_req_t) -> ib_api_status_t;
    /// Accepts; changes the QP. PASSIVE_LEVEL.
    ib_pfn_cm_rep_t(h_cm_req: ib_cm_handle_t, p_cm_rep: *const ib_cm_rep_t) -> ib_api_status_t;
    /// Confirms; changes the QP. PASSIVE_LEVEL.
    ib_pfn_cm_rtu_t(h_cm_rep: ib_cm_handle_t, p_cm_rtu: *const ib_cm_rtu_t) -> ib_api_status_t;
    /// Refuses. DISPATCH_LEVEL or below.
    ib_pfn_cm_rej_t(h_cm: ib_cm_handle_t, p_cm_rej: *const ib_cm_rej_t) -> ib_api_status_t;
    /// Disconnects. DISPATCH_LEVEL or below without `IB_FLAGS_SYNC`.
    ib_pfn_cm_dreq_t(p_cm_dreq: *const ib_cm_dreq_t) -> ib_api_status_t;
    /// Answers a disconnect. DISPATCH_LEVEL or below.
    ib_pfn_cm_drep_t(h_cm_dreq: ib_cm_handle_t, p_cm_drep: *const ib_cm_drep_t) -> ib_api_status_t;
    /// Returns a MAD. The C caller passes its file and line. DISPATCH_LEVEL or below.
    ib_pfn_put_mad_t(file: *const c_char, line: i32, p_mad_element_list: *const ib_mad_element_t)
        -> ib_api_status_t;
    /// Takes a datagram QP from any state through RESET, INIT and RTR to RTS. PASSIVE_LEVEL.
    ib_pfn_init_dgrm_svc_t(h_qp: ib_qp_handle_t, p_dgrm_info: *const ib_dgrm_info_t) -> ib_api_status_t;
    /// Sends a query. `IB_INVALID_GUID` when the port is unknown or has no subnet manager yet. The query's
    /// structures are copied. DISPATCH_LEVEL or below without `IB_FLAGS_SYNC`.
    ib_pfn_query_t(h_al: ib_al_handle_t, p_query_req: *const ib_query_req_t, ph_query: *mut ib_query_handle_t)
        -> ib_api_status_t;
    /// Asks that a query end soon; its callback still comes, unless it has. The handle of one that is over is
    /// only compared, never read. DISPATCH_LEVEL or below.
    ib_pfn_cancel_query_t(h_al: ib_al_handle_t, query_hndl: ib_query_handle_t);
    /// Registers for PnP events. Events that tell the present state follow at once. PASSIVE_LEVEL.
    ib_pfn_reg_pnp_t(h_al: ib_al_handle_t, p_pnp_req: *const ib_pnp_req_t, ph_pnp: *mut ib_pnp_handle_t)
        -> ib_api_status_t;
    /// Ends a registration. With [`ib_sync_destroy`] no callback runs once it has returned; from inside a
    /// callback that would wait for itself. PASSIVE_LEVEL.
    ib_pfn_dereg_pnp_t(h_pnp: ib_pnp_handle_t, destroy_cb: ib_pfn_destroy_cb_t) -> ib_api_status_t;
    /// Opens the access layer. PASSIVE_LEVEL.
    ib_pfn_open_al_t(ph_al: *mut ib_al_handle_t) -> ib_api_status_t;
    /// As above, with a tag for the log, terminated by a zero. PASSIVE_LEVEL.
    ib_pfn_open_al_trk_t(tag: *mut u16, ph_al: *mut ib_al_handle_t) -> ib_api_status_t;
    /// Closes the access layer, with everything still below it; waits. PASSIVE_LEVEL.
    ib_pfn_close_al_t(h_al: ib_al_handle_t) -> ib_api_status_t;
    /// Text of a status, static. Any IRQL.
    ib_pfn_get_err_str_t(status: ib_api_status_t) -> *const c_char;
    /// Text of a completion status, static. Any IRQL.
    ib_pfn_get_wc_status_str_t(wc_status: ib_wc_status_t) -> *const c_char;
    /// Nearest NTSTATUS. Any IRQL.
    ib_pfn_to_ntstatus_t(ib_status: ib_api_status_t) -> NTSTATUS;
    /// Takes or returns a reference on any object of the access layer. DISPATCH_LEVEL or below.
    ib_ref_al_obj_t(p_obj: *mut c_void);
}

/// `ib_al_ifc_t`: 960 bytes, interface version 19.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)] // A slot is documented at its type.
pub struct ib_al_ifc_t {
    /// The standard head: size, version, context, reference, dereference.
    pub wdm: INTERFACE,
    /// The marker [`ib_sync_destroy`].
    pub sync_destroy: ib_pfn_destroy_cb_t,
    pub open_ca: ib_pfn_open_ca_t,
    pub query_ca: ib_pfn_query_ca_t,
    pub modify_ca: unused_slot,
    pub get_dev: unused_slot,
    pub close_ca: ib_pfn_close_ca_t,
    pub alloc_pd: ib_pfn_alloc_pd_t,
    pub dealloc_pd: ib_pfn_dealloc_pd_t,
    pub create_av: ib_pfn_create_av_t,
    pub query_av: ib_pfn_query_av_t,
    pub modify_av: ib_pfn_modify_av_t,
    pub destroy_av: ib_pfn_destroy_av_t,
    pub create_qp: ib_pfn_create_qp_t,
    pub get_spl_qp: unused_slot,
    pub query_qp: ib_pfn_query_qp_t,
    pub modify_qp: ib_pfn_modify_qp_t,
    pub destroy_qp: ib_pfn_destroy_qp_t,
    pub create_cq: ib_pfn_create_cq_t,
    pub modify_cq: ib_pfn_modify_cq_t,
    pub query_cq: ib_pfn_query_cq_t,
    pub destroy_cq: ib_pfn_destroy_cq_t,
    pub reg_mem: ib_pfn_reg_mem_t,
    pub reg_phys: ib_pfn_reg_phys_t,
    pub query_mr: ib_pfn_query_mr_t,
    pub rereg_mem: unused_slot,
    pub create_shmid: unused_slot,
    pub reg_shmid: unused_slot,
    pub dereg_mr: ib_pfn_dereg_mr_t,
    pub create_mw: unused_slot,
    pub query_mw: unused_slot,
    pub bind_mw: unused_slot,
    pub destroy_mw: unused_slot,
    pub post_send: ib_pfn_post_send_t,
    pub post_recv: ib_pfn_post_recv_t,
    pub send_mad: unused_slot,
    pub cancel_mad: unused_slot,
    pub poll_cq: ib_pfn_poll_cq_t,
    pub rearm_cq: ib_pfn_rearm_cq_t,
    pub join_mcast: ib_pfn_join_mcast_t,
    pub join_mcast_no_qp: ib_pfn_join_mcast_no_qp_t,
    pub leave_mcast: ib_pfn_leave_mcast_t,
    pub local_mad: ib_pfn_local_mad_t,
    pub cm_listen: ib_pfn_cm_listen_t,
    pub cm_cancel: ib_pfn_cm_cancel_t,
    pub cm_req: ib_pfn_cm_req_t,
    pub cm_rep: ib_pfn_cm_rep_t,
    pub cm_rtu: ib_pfn_cm_rtu_t,
    pub cm_rej: ib_pfn_cm_rej_t,
    pub cm_mra: unused_slot,
    pub cm_lap: unused_slot,
    pub cm_apr: unused_slot,
    pub force_apm: unused_slot,
    pub cm_dreq: ib_pfn_cm_dreq_t,
    pub cm_drep: ib_pfn_cm_drep_t,
    pub cm_handoff: unused_slot,
    pub create_ioc: unused_slot,
    pub destroy_ioc: unused_slot,
    pub reg_ioc: unused_slot,
    pub add_svc_entry: unused_slot,
    pub remove_svc_entry: unused_slot,
    pub get_ca_guids: unused_slot,
    pub get_ca_by_gid: unused_slot,
    pub get_port_by_gid: unused_slot,
    pub create_mad_pool: unused_slot,
    pub destroy_mad_pool: unused_slot,
    pub reg_mad_pool: unused_slot,
    pub dereg_mad_pool: unused_slot,
    pub get_mad: unused_slot,
    pub put_mad: ib_pfn_put_mad_t,
    pub init_dgrm_svc: ib_pfn_init_dgrm_svc_t,
    pub reg_mad_svc: unused_slot,
    pub reg_svc: unused_slot,
    pub dereg_svc: unused_slot,
    pub query: ib_pfn_query_t,
    pub cancel_query: ib_pfn_cancel_query_t,
    pub reg_pnp: ib_pfn_reg_pnp_t,
    pub dereg_pnp: ib_pfn_dereg_pnp_t,
    pub subscribe: unused_slot,
    pub unsubscribe: unused_slot,
    pub reject_ioc: unused_slot,
    pub ci_call: unused_slot,
    pub open_al: ib_pfn_open_al_t,
    pub close_al: ib_pfn_close_al_t,
    pub get_err_str: ib_pfn_get_err_str_t,
    pub get_wc_status_str: ib_pfn_get_wc_status_str_t,
    pub create_mlnx_fmr: unused_slot,
    pub map_phys_mlnx_fmr: unused_slot,
    pub unmap_mlnx_fmr: unused_slot,
    pub destroy_mlnx_fmr: unused_slot,
    pub create_mlnx_fmr_pool: unused_slot,
    pub destroy_mlnx_fmr_pool: unused_slot,
    pub map_phys_mlnx_fmr_pool: unused_slot,
    pub unmap_mlnx_fmr_pool: unused_slot,
    pub flush_mlnx_fmr_pool: unused_slot,
    pub create_srq: unused_slot,
    pub query_srq: unused_slot,
    pub modify_srq: unused_slot,
    pub destroy_srq: unused_slot,
    pub post_srq_recv: unused_slot,
    /// CA that the interface belongs to.
    pub ca_guid: ib_net64_t,
    pub to_ntstatus: ib_pfn_to_ntstatus_t,
    pub ibat_register: unused_slot,
    pub ibat_deregister: unused_slot,
    pub ibat_update_reg: unused_slot,
    pub ibat_update_route: unused_slot,
    pub ibat_clear_all_routes: unused_slot,
    pub ibat_query_path: unused_slot,
    pub ibat_cancel_query: unused_slot,
    pub ib_ref_al_obj: ib_ref_al_obj_t,
    pub ib_deref_al_obj: ib_ref_al_obj_t,
    pub mcast_mgr_join_mcast: unused_slot,
    pub mcast_mgr_leave_mcast: unused_slot,
    pub mcast_mgr_cancel_join: unused_slot,
    pub mcast_mgr_request_add_ref: unused_slot,
    pub mcast_mgr_request_release: unused_slot,
    pub open_al_trk: ib_pfn_open_al_trk_t,
}
