//! The table of functions that a driver gets, every slot filled.
//!
//! A slot that an IPoIB driver has no business with leads to a function of its own that breaks
//! [`VERB_UNUSED_SLOT`] with the slot's name.

use std::ffi::c_void;

use ibal_sys::*;
use windows_kernel_sys::INTERFACE;

use super::verbs::{address, connection, general, memory, multicast, queue, sa, work};
use crate::hca::rules::VERB_UNUSED_SLOT;
use crate::{sim, verifier};

macro_rules! trap {
    ($slot:literal) => {{
        unsafe extern "win64" fn trap() -> ib_api_status_t {
            sim::contain(|| {
                verifier::violation(VERB_UNUSED_SLOT, $slot, "the driver has no business with this verb")
            })
        }
        trap as *mut c_void
    }};
}

/// The table with its standard head.
pub fn table(wdm: INTERFACE, ca_guid: u64) -> ib_al_ifc_t {
    ib_al_ifc_t {
        wdm,
        sync_destroy: ib_sync_destroy,
        open_ca: Some(general::open_ca),
        query_ca: Some(general::query_ca),
        modify_ca: trap!("modify_ca"),
        get_dev: trap!("get_dev"),
        close_ca: Some(general::close_ca),
        alloc_pd: Some(general::alloc_pd),
        dealloc_pd: Some(general::dealloc_pd),
        create_av: Some(address::create_av),
        query_av: Some(address::query_av),
        modify_av: Some(address::modify_av),
        destroy_av: Some(address::destroy_av),
        create_qp: Some(queue::create_qp),
        get_spl_qp: trap!("get_spl_qp"),
        query_qp: Some(queue::query_qp),
        modify_qp: Some(queue::modify_qp),
        destroy_qp: Some(queue::destroy_qp),
        create_cq: Some(queue::create_cq),
        modify_cq: Some(queue::modify_cq),
        query_cq: Some(queue::query_cq),
        destroy_cq: Some(queue::destroy_cq),
        reg_mem: Some(memory::reg_mem),
        reg_phys: Some(memory::reg_phys),
        query_mr: Some(memory::query_mr),
        rereg_mem: trap!("rereg_mem"),
        create_shmid: trap!("create_shmid"),
        reg_shmid: trap!("reg_shmid"),
        dereg_mr: Some(memory::dereg_mr),
        create_mw: trap!("create_mw"),
        query_mw: trap!("query_mw"),
        bind_mw: trap!("bind_mw"),
        destroy_mw: trap!("destroy_mw"),
        post_send: Some(work::post_send),
        post_recv: Some(work::post_recv),
        send_mad: trap!("send_mad"),
        cancel_mad: trap!("cancel_mad"),
        poll_cq: Some(work::poll_cq),
        rearm_cq: Some(work::rearm_cq),
        join_mcast: Some(multicast::join_mcast),
        join_mcast_no_qp: Some(multicast::join_mcast_no_qp),
        leave_mcast: Some(multicast::leave_mcast),
        local_mad: Some(sa::local_mad),
        cm_listen: Some(connection::cm_listen),
        cm_cancel: Some(connection::cm_cancel),
        cm_req: Some(connection::cm_req),
        cm_rep: Some(connection::cm_rep),
        cm_rtu: Some(connection::cm_rtu),
        cm_rej: Some(connection::cm_rej),
        cm_mra: trap!("cm_mra"),
        cm_lap: trap!("cm_lap"),
        cm_apr: trap!("cm_apr"),
        force_apm: trap!("force_apm"),
        cm_dreq: Some(connection::cm_dreq),
        cm_drep: Some(connection::cm_drep),
        cm_handoff: trap!("cm_handoff"),
        create_ioc: trap!("create_ioc"),
        destroy_ioc: trap!("destroy_ioc"),
        reg_ioc: trap!("reg_ioc"),
        add_svc_entry: trap!("add_svc_entry"),
        remove_svc_entry: trap!("remove_svc_entry"),
        get_ca_guids: trap!("get_ca_guids"),
        get_ca_by_gid: trap!("get_ca_by_gid"),
        get_port_by_gid: trap!("get_port_by_gid"),
        create_mad_pool: trap!("create_mad_pool"),
        destroy_mad_pool: trap!("destroy_mad_pool"),
        reg_mad_pool: trap!("reg_mad_pool"),
        dereg_mad_pool: trap!("dereg_mad_pool"),
        get_mad: trap!("get_mad"),
        put_mad: Some(sa::put_mad),
        init_dgrm_svc: Some(queue::init_dgrm_svc),
        reg_mad_svc: trap!("reg_mad_svc"),
        reg_svc: trap!("reg_svc"),
        dereg_svc: trap!("dereg_svc"),
        query: Some(sa::query),
        cancel_query: Some(sa::cancel_query),
        reg_pnp: Some(general::reg_pnp),
        dereg_pnp: Some(general::dereg_pnp),
        subscribe: trap!("subscribe"),
        unsubscribe: trap!("unsubscribe"),
        reject_ioc: trap!("reject_ioc"),
        ci_call: trap!("ci_call"),
        open_al: Some(general::open_al),
        close_al: Some(general::close_al),
        get_err_str: Some(general::get_err_str),
        get_wc_status_str: Some(general::get_wc_status_str),
        create_mlnx_fmr: trap!("create_mlnx_fmr"),
        map_phys_mlnx_fmr: trap!("map_phys_mlnx_fmr"),
        unmap_mlnx_fmr: trap!("unmap_mlnx_fmr"),
        destroy_mlnx_fmr: trap!("destroy_mlnx_fmr"),
        create_mlnx_fmr_pool: trap!("create_mlnx_fmr_pool"),
        destroy_mlnx_fmr_pool: trap!("destroy_mlnx_fmr_pool"),
        map_phys_mlnx_fmr_pool: trap!("map_phys_mlnx_fmr_pool"),
        unmap_mlnx_fmr_pool: trap!("unmap_mlnx_fmr_pool"),
        flush_mlnx_fmr_pool: trap!("flush_mlnx_fmr_pool"),
        create_srq: trap!("create_srq"),
        query_srq: trap!("query_srq"),
        modify_srq: trap!("modify_srq"),
        destroy_srq: trap!("destroy_srq"),
        post_srq_recv: trap!("post_srq_recv"),
        ca_guid: ib_net64_t::new(ca_guid),
        to_ntstatus: Some(general::to_ntstatus),
        ibat_register: trap!("ibat_register"),
        ibat_deregister: trap!("ibat_deregister"),
        ibat_update_reg: trap!("ibat_update_reg"),
        ibat_update_route: trap!("ibat_update_route"),
        ibat_clear_all_routes: trap!("ibat_clear_all_routes"),
        ibat_query_path: trap!("ibat_query_path"),
        ibat_cancel_query: trap!("ibat_cancel_query"),
        ib_ref_al_obj: Some(general::ib_ref_al_obj),
        ib_deref_al_obj: Some(general::ib_deref_al_obj),
        mcast_mgr_join_mcast: trap!("mcast_mgr_join_mcast"),
        mcast_mgr_leave_mcast: trap!("mcast_mgr_leave_mcast"),
        mcast_mgr_cancel_join: trap!("mcast_mgr_cancel_join"),
        mcast_mgr_request_add_ref: trap!("mcast_mgr_request_add_ref"),
        mcast_mgr_request_release: trap!("mcast_mgr_request_release"),
        open_al_trk: Some(general::open_al_trk),
    }
}

/// The entry points for Ethernet over InfiniBand that come with the port's data: none is an IPoIB driver's business.
pub fn eoib_traps() -> ipoib_ifc_func {
    ipoib_ifc_func {
        UpdateCheckForHang: trap!("UpdateCheckForHang"),
        RegisterEoibNotification: trap!("RegisterEoibNotification"),
        RemoveEoibNotification: trap!("RemoveEoibNotification"),
        GetVhubTableUpdate: trap!("GetVhubTableUpdate"),
        ReturnVhubTableUpdate: trap!("ReturnVhubTableUpdate"),
        GetLinkStatus: trap!("GetLinkStatus"),
        AcquireDataQpn: trap!("AcquireDataQpn"),
        ReleaseDataQpn: trap!("ReleaseDataQpn"),
        GetBroadcastMgidParams: trap!("GetBroadcastMgidParams"),
        GetEoIBMac: trap!("GetEoIBMac"),
    }
}
