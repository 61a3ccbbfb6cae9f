//! Every layout, once: asserted at compile time, and listed for the tests that compare it with the layout
//! table of the public headers and with C.

use windows_kernel_sys::Zeroable;

use crate::*;

/// A member as the compiler lays it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Path of the member in the Rust type, as `op.dgrm.ud.h_av`. Two unions that C leaves without a name
    /// have one in it: `op` and `data` of [`ib_send_wr_t`].
    pub path: &'static str,
    /// Bytes from the start of the structure.
    pub offset: usize,
    /// Bytes.
    pub size: usize,
}

/// A structure as the compiler lays it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Name in Rust and in C.
    pub name: &'static str,
    /// Bytes.
    pub size: usize,
    /// Alignment in bytes.
    pub align: usize,
    /// Its members, those of nested unnamed types as well.
    pub fields: &'static [Field],
}

const fn pointee_size<T>(_: *const T) -> usize {
    size_of::<T>()
}

macro_rules! layouts {
    ($($name:ident: $size:literal, $align:literal { $($($part:ident).+ @ $offset:literal),* $(,)? })*) => {
        $(
            static_assertions::const_assert_eq!(size_of::<$name>(), $size);
            static_assertions::const_assert_eq!(align_of::<$name>(), $align);
            $(static_assertions::const_assert_eq!(core::mem::offset_of!($name, $($part).+), $offset);)*
            // SAFETY: integers, raw pointers, optional function pointers, and unions and arrays of them.
            unsafe impl Zeroable for $name {}
        )*

        /// Every structure of the crate.
        pub const LAYOUTS: &[Layout] = &[$(Layout {
            name: stringify!($name),
            size: size_of::<$name>(),
            align: align_of::<$name>(),
            fields: &[$(Field {
                path: layouts!(@path $($part).+),
                offset: core::mem::offset_of!($name, $($part).+),
                size: {
                    let place = core::mem::MaybeUninit::<$name>::uninit();
                    // SAFETY: the place is within `place`; its address is taken and nothing is read.
                    pointee_size(unsafe { &raw const (*place.as_ptr()).$($part).+ })
                },
            }),*],
        }),*];
    };
    (@path $first:ident $(. $rest:ident)*) => { concat!(stringify!($first) $(, ".", stringify!($rest))*) };
}

layouts! {
    ib_gid_t: 16, 1 {
        raw @ 0,
    }
    ib_grh_t: 40, 1 {
        ver_class_flow @ 0, resv1 @ 4, resv2 @ 6, hop_limit @ 7, src_gid @ 8, dest_gid @ 24,
    }
    ib_av_attr_t: 56, 4 {
        port_num @ 0, sl @ 1, dlid @ 2, grh_valid @ 4, grh @ 8, static_rate @ 48, path_bits @ 49, conn @ 50,
        conn.path_mtu @ 50, conn.local_ack_timeout @ 51, conn.seq_err_retry_cnt @ 52,
        conn.rnr_retry_cnt @ 53,
    }
    ib_port_cap_t: 104, 4 {
        cm @ 0, snmp @ 4, dev_mgmt @ 8, vend @ 12, sm @ 16, sm_disable @ 20, qkey_ctr @ 24, pkey_ctr @ 28,
        notice @ 32, trap @ 36, apm @ 40, slmap @ 44, pkey_nvram @ 48, mkey_nvram @ 52, sysguid @ 56,
        dr_notice @ 60, boot_mgmt @ 64, capm_notice @ 68, reinit @ 72, ledinfo @ 76, port_active @ 80,
        ipd @ 84, pkey_switch_ext_port @ 88, bm @ 92, link_rtl @ 96, client_reregister @ 100,
    }
    ib_port_attr_t: 168, 8 {
        port_guid @ 0, port_num @ 8, mtu @ 9, transport @ 12, max_msg_size @ 16, lid @ 24, lmc @ 26,
        active_width @ 27, max_vls @ 28, sm_lid @ 30, sm_sl @ 32, link_state @ 33, init_type_reply @ 34,
        subnet_timeout @ 35, active_speed @ 36, phys_state @ 37, ext_active_speed @ 38, link_encoding @ 39,
        cap @ 40, pkey_ctr @ 144, qkey_ctr @ 146, num_gids @ 148, num_pkeys @ 150, p_gid_table @ 152,
        p_pkey_table @ 160,
    }
    ib_ca_attr_t: 248, 8 {
        ca_guid @ 0, vend_id @ 8, dev_id @ 12, revision @ 14, fw_ver @ 16, size @ 24, max_qps @ 28,
        max_wrs @ 32, max_sges @ 36, max_rd_sges @ 40, max_cqs @ 44, max_cqes @ 48, max_pds @ 52,
        init_regions @ 56, init_region_size @ 64, init_windows @ 72, max_addr_handles @ 80,
        max_partitions @ 88, atomicity @ 92, max_qp_resp_res @ 96, max_resp_res @ 97,
        max_qp_init_depth @ 98, max_ipv6_qps @ 100, max_ether_qps @ 104, max_mcast_grps @ 108,
        max_mcast_qps @ 112, max_qps_per_mcast_grp @ 116, max_fmr @ 120, max_map_per_fmr @ 124,
        max_srq @ 128, max_srq_wrs @ 132, max_srq_sges @ 136, bf_reg_size @ 140, bf_regs_per_page @ 144,
        max_sq_desc_sz @ 148, local_ack_delay @ 152, bad_pkey_ctr_support @ 156, bad_qkey_ctr_support @ 160,
        raw_mcast_support @ 164, apm_support @ 168, av_port_check @ 172, change_primary_port @ 176,
        modify_wr_depth @ 180, modify_srq_depth @ 184, current_qp_state_support @ 188,
        shutdown_port_capability @ 192, init_type_support @ 196, port_active_event_support @ 200,
        system_image_guid_support @ 204, hw_agents @ 208, ipoib_csum @ 212, system_image_guid @ 216,
        num_page_sizes @ 224, num_ports @ 228, p_page_size @ 232, p_port_attr @ 240,
    }
    ib_cq_create_t: 24, 8 {
        size @ 0, pfn_comp_cb @ 8, h_wait_obj @ 16,
    }
    ib_async_event_rec_t: 40, 8 {
        code @ 0, vendor_specific @ 8, context @ 16, handle @ 24, handle.h_ca @ 24, handle.h_cq @ 24,
        handle.h_qp @ 24, handle.h_srq @ 24, port_number @ 32,
    }
    ib_al_ifc_data_t: 24, 8 {
        r#type @ 0, size @ 8, version @ 10, p_data @ 16,
    }
    ib_al_ifc_t: 960, 8 {
        wdm @ 0, sync_destroy @ 32, open_ca @ 40, query_ca @ 48, modify_ca @ 56, get_dev @ 64,
        close_ca @ 72, alloc_pd @ 80, dealloc_pd @ 88, create_av @ 96, query_av @ 104, modify_av @ 112,
        destroy_av @ 120, create_qp @ 128, get_spl_qp @ 136, query_qp @ 144, modify_qp @ 152,
        destroy_qp @ 160, create_cq @ 168, modify_cq @ 176, query_cq @ 184, destroy_cq @ 192, reg_mem @ 200,
        reg_phys @ 208, query_mr @ 216, rereg_mem @ 224, create_shmid @ 232, reg_shmid @ 240,
        dereg_mr @ 248, create_mw @ 256, query_mw @ 264, bind_mw @ 272, destroy_mw @ 280, post_send @ 288,
        post_recv @ 296, send_mad @ 304, cancel_mad @ 312, poll_cq @ 320, rearm_cq @ 328, join_mcast @ 336,
        join_mcast_no_qp @ 344, leave_mcast @ 352, local_mad @ 360, cm_listen @ 368, cm_cancel @ 376,
        cm_req @ 384, cm_rep @ 392, cm_rtu @ 400, cm_rej @ 408, cm_mra @ 416, cm_lap @ 424, cm_apr @ 432,
        force_apm @ 440, cm_dreq @ 448, cm_drep @ 456, cm_handoff @ 464, create_ioc @ 472,
        destroy_ioc @ 480, reg_ioc @ 488, add_svc_entry @ 496, remove_svc_entry @ 504, get_ca_guids @ 512,
        get_ca_by_gid @ 520, get_port_by_gid @ 528, create_mad_pool @ 536, destroy_mad_pool @ 544,
        reg_mad_pool @ 552, dereg_mad_pool @ 560, get_mad @ 568, put_mad @ 576, init_dgrm_svc @ 584,
        reg_mad_svc @ 592, reg_svc @ 600, dereg_svc @ 608, query @ 616, cancel_query @ 624, reg_pnp @ 632,
        dereg_pnp @ 640, subscribe @ 648, unsubscribe @ 656, reject_ioc @ 664, ci_call @ 672, open_al @ 680,
        close_al @ 688, get_err_str @ 696, get_wc_status_str @ 704, create_mlnx_fmr @ 712,
        map_phys_mlnx_fmr @ 720, unmap_mlnx_fmr @ 728, destroy_mlnx_fmr @ 736, create_mlnx_fmr_pool @ 744,
        destroy_mlnx_fmr_pool @ 752, map_phys_mlnx_fmr_pool @ 760, unmap_mlnx_fmr_pool @ 768,
        flush_mlnx_fmr_pool @ 776, create_srq @ 784, query_srq @ 792, modify_srq @ 800, destroy_srq @ 808,
        post_srq_recv @ 816, ca_guid @ 824, to_ntstatus @ 832, ibat_register @ 840, ibat_deregister @ 848,
        ibat_update_reg @ 856, ibat_update_route @ 864, ibat_clear_all_routes @ 872, ibat_query_path @ 880,
        ibat_cancel_query @ 888, ib_ref_al_obj @ 896, ib_deref_al_obj @ 904, mcast_mgr_join_mcast @ 912,
        mcast_mgr_leave_mcast @ 920, mcast_mgr_cancel_join @ 928, mcast_mgr_request_add_ref @ 936,
        mcast_mgr_request_release @ 944, open_al_trk @ 952,
    }
    port_guid_pkey_t: 48, 8 {
        guid @ 0, pkey @ 8, IsEoib @ 12, UniqueId @ 16, Location @ 24, name @ 28,
    }
    ipoib_ifc_func: 80, 8 {
        UpdateCheckForHang @ 0, RegisterEoibNotification @ 8, RemoveEoibNotification @ 16,
        GetVhubTableUpdate @ 24, ReturnVhubTableUpdate @ 32, GetLinkStatus @ 40, AcquireDataQpn @ 48,
        ReleaseDataQpn @ 56, GetBroadcastMgidParams @ 64, GetEoIBMac @ 72,
    }
    ipoib_ifc_data_t: 160, 8 {
        driver_id @ 0, ca_guid @ 16, port_guid @ 24, port_num @ 72, ibal_ipoib_ifc @ 80,
    }
    ib_mad_t: 24, 1 {
        base_ver @ 0, mgmt_class @ 1, class_ver @ 2, method @ 3, status @ 4, class_spec @ 6, trans_id @ 8,
        attr_id @ 16, resv @ 18, attr_mod @ 20,
    }
    ib_sa_mad_t: 256, 1 {
        base_ver @ 0, mgmt_class @ 1, class_ver @ 2, method @ 3, status @ 4, resv @ 6, trans_id @ 8,
        attr_id @ 16, resv1 @ 18, attr_mod @ 20, rmpp_version @ 24, rmpp_type @ 25, rmpp_flags @ 26,
        rmpp_status @ 27, seg_num @ 28, paylen_newwin @ 32, sm_key @ 36, attr_offset @ 44, resv3 @ 46,
        comp_mask @ 48, data @ 56,
    }
    ib_class_port_info_t: 72, 1 {
        base_ver @ 0, class_ver @ 1, cap_mask @ 2, cap_mask2_resp_time @ 4, redir_gid @ 8,
        redir_tc_sl_fl @ 24, redir_lid @ 28, redir_pkey @ 30, redir_qp @ 32, redir_qkey @ 36, trap_gid @ 40,
        trap_tc_sl_fl @ 56, trap_lid @ 60, trap_pkey @ 62, trap_hop_qp @ 64, trap_qkey @ 68,
    }
    ib_mad_element_t: 128, 8 {
        p_next @ 0, context1 @ 8, context2 @ 16, p_mad_buf @ 24, size @ 32, immediate_data @ 36,
        remote_qp @ 40, h_av @ 48, send_opt @ 56, remote_qkey @ 60, resp_expected @ 64, timeout_ms @ 68,
        retry_cnt @ 72, rmpp_version @ 76, status @ 80, grh_valid @ 84, p_grh @ 88, recv_opt @ 96,
        remote_lid @ 100, remote_sl @ 102, pkey_index @ 104, path_bits @ 106, send_context1 @ 112,
        send_context2 @ 120,
    }
    ib_mcast_rec_t: 32, 8 {
        mcast_context @ 0, status @ 8, error_status @ 12, h_mcast @ 16, p_member_rec @ 24,
    }
    ib_mcast_req_t: 112, 8 {
        create @ 0, member_rec @ 4, mcast_context @ 64, pfn_mcast_cb @ 72, timeout_ms @ 80, retry_cnt @ 84,
        flags @ 88, port_guid @ 96, pkey_index @ 104,
    }
    ib_mr_create_t: 24, 8 {
        vaddr @ 0, length @ 8, access_ctrl @ 16,
    }
    ib_phys_range_t: 16, 8 {
        base_addr @ 0, size @ 8,
    }
    ib_phys_create_t: 40, 8 {
        length @ 0, num_ranges @ 8, range_array @ 16, buf_offset @ 24, hca_page_size @ 28, access_ctrl @ 32,
    }
    ib_mr_attr_t: 56, 8 {
        h_pd @ 0, local_lb @ 8, local_ub @ 16, remote_lb @ 24, remote_ub @ 32, access_ctrl @ 40, lkey @ 44,
        rkey @ 48,
    }
    ib_pnp_rec_t: 56, 8 {
        pnp_event @ 0, h_pnp @ 8, h_ioc_event @ 16, pnp_context @ 24, context @ 32, guid @ 40, ca_guid @ 48,
    }
    ib_pnp_ca_rec_t: 64, 8 {
        pnp_rec @ 0, p_ca_attr @ 56,
    }
    ib_pnp_port_rec_t: 72, 8 {
        pnp_rec @ 0, p_ca_attr @ 56, p_port_attr @ 64,
    }
    ib_pnp_req_t: 24, 8 {
        pnp_class @ 0, pnp_context @ 8, pfn_pnp_cb @ 16,
    }
    ib_qp_create_t: 56, 8 {
        qp_type @ 0, sq_max_inline @ 4, sq_depth @ 8, rq_depth @ 12, sq_sge @ 16, rq_sge @ 20, h_sq_cq @ 24,
        h_rq_cq @ 32, h_srq @ 40, sq_signaled @ 48,
    }
    ib_qp_mod_t: 164, 4 {
        req_state @ 0, state @ 4, state.init @ 4, state.init.primary_port @ 4, state.init.qkey @ 8,
        state.init.pkey_index @ 12, state.init.access_ctrl @ 16, state.rtr @ 4, state.rtr.rq_psn @ 4,
        state.rtr.dest_qp @ 8, state.rtr.primary_av @ 12, state.rtr.resp_res @ 68,
        state.rtr.rnr_nak_timeout @ 69, state.rtr.opts @ 72, state.rtr.alternate_av @ 76,
        state.rtr.qkey @ 132, state.rtr.pkey_index @ 136, state.rtr.access_ctrl @ 140,
        state.rtr.sq_depth @ 144, state.rtr.rq_depth @ 148, state.rts @ 4, state.rts.sq_psn @ 4,
        state.rts.retry_cnt @ 8, state.rts.rnr_retry_cnt @ 9, state.rts.local_ack_timeout @ 10,
        state.rts.init_depth @ 11, state.rts.opts @ 12, state.rts.rnr_nak_timeout @ 16,
        state.rts.current_state @ 20, state.rts.qkey @ 24, state.rts.access_ctrl @ 28,
        state.rts.resp_res @ 32, state.rts.primary_av @ 36, state.rts.alternate_av @ 92,
        state.rts.sq_depth @ 148, state.rts.rq_depth @ 152, state.rts.apm_state @ 156,
        state.rts.primary_port @ 160, state.rts.pkey_index @ 162, state.sqd @ 4, state.sqd.sqd_event @ 4,
    }
    ib_qp_attr_t: 224, 8 {
        h_pd @ 0, qp_type @ 8, access_ctrl @ 12, pkey_index @ 16, sq_max_inline @ 20, sq_depth @ 24,
        rq_depth @ 28, sq_sge @ 32, rq_sge @ 36, init_depth @ 40, resp_res @ 41, h_sq_cq @ 48, h_rq_cq @ 56,
        h_srq @ 64, sq_signaled @ 72, state @ 76, num @ 80, dest_num @ 84, qkey @ 88, sq_psn @ 92,
        rq_psn @ 96, primary_port @ 100, alternate_port @ 101, primary_av @ 104, alternate_av @ 160,
        apm_state @ 216,
    }
    ib_dgrm_info_t: 16, 8 {
        port_guid @ 0, qkey @ 8, pkey_index @ 12,
    }
    ib_user_query_t: 24, 8 {
        method @ 0, attr_id @ 2, attr_size @ 4, comp_mask @ 8, p_attr @ 16,
    }
    ib_gid_pair_t: 32, 1 {
        src_gid @ 0, dest_gid @ 16,
    }
    ib_lid_pair_t: 4, 2 {
        src_lid @ 0, dest_lid @ 2,
    }
    ib_guid_pair_t: 16, 8 {
        src_guid @ 0, dest_guid @ 8,
    }
    ib_query_rec_t: 32, 8 {
        query_context @ 0, status @ 8, query_type @ 12, result_cnt @ 16, p_result_mad @ 24,
    }
    ib_query_req_t: 56, 8 {
        query_type @ 0, p_query_input @ 8, port_guid @ 16, timeout_ms @ 24, retry_cnt @ 28, flags @ 32,
        query_context @ 40, pfn_query_cb @ 48,
    }
    ib_path_rec_t: 64, 1 {
        service_id @ 0, dgid @ 8, sgid @ 24, dlid @ 40, slid @ 42, hop_flow_raw @ 44, tclass @ 48,
        num_path @ 49, pkey @ 50, qos_class_sl @ 52, mtu @ 54, rate @ 55, pkt_life @ 56, preference @ 57,
        resv2 @ 58,
    }
    ib_member_rec_t: 56, 1 {
        mgid @ 0, port_gid @ 16, qkey @ 32, mlid @ 36, mtu @ 38, tclass @ 39, pkey @ 40, rate @ 42,
        pkt_life @ 43, sl_flow_hop @ 44, scope_state @ 48, proxy_join @ 49, reserved @ 50, pad @ 52,
    }
    ib_port_info_t: 64, 1 {
        m_key @ 0, subnet_prefix @ 8, base_lid @ 16, master_sm_base_lid @ 18, capability_mask @ 20,
        diag_code @ 24, m_key_lease_period @ 26, local_port_num @ 28, link_width_enabled @ 29,
        link_width_supported @ 30, link_width_active @ 31, state_info1 @ 32, state_info2 @ 33,
        mkey_lmc @ 34, link_speed @ 35, mtu_smsl @ 36, vl_cap @ 37, vl_high_limit @ 38,
        vl_arb_high_cap @ 39, vl_arb_low_cap @ 40, mtu_cap @ 41, vl_stall_life @ 42, vl_enforce @ 43,
        m_key_violations @ 44, p_key_violations @ 46, q_key_violations @ 48, guid_cap @ 50,
        subnet_timeout @ 51, resp_time_value @ 52, error_threshold @ 53, max_credit_hint @ 54,
        link_rt_latency @ 56, capability_mask2 @ 60, link_speed_ext @ 62, link_speed_ext_enabled @ 63,
    }
    ib_portinfo_record_t: 72, 1 {
        lid @ 0, port_num @ 2, options @ 3, port_info @ 4, pad @ 68,
    }
    ib_service_record_t: 176, 1 {
        service_id @ 0, service_gid @ 8, service_pkey @ 24, resv @ 26, service_lease @ 28, service_key @ 32,
        service_name @ 48, service_data8 @ 112, service_data16 @ 128, service_data32 @ 144,
        service_data64 @ 160,
    }
    ib_wc_t: 56, 8 {
        p_next @ 0, wr_id @ 8, wc_type @ 16, length @ 20, vendor_specific @ 24, status @ 32, recv @ 36,
        recv.conn @ 36, recv.conn.recv_opt @ 36, recv.conn.immediate_data @ 40, recv.ud @ 36,
        recv.ud.recv_opt @ 36, recv.ud.immediate_data @ 40, recv.ud.remote_qp @ 44, recv.ud.pkey_index @ 48,
        recv.ud.remote_lid @ 50, recv.ud.remote_sl @ 52, recv.ud.path_bits @ 53, recv.rd @ 36,
        recv.rd.remote_eecn @ 36, recv.rd.remote_qp @ 40, recv.rd.remote_lid @ 44, recv.rd.remote_sl @ 46,
        recv.rd.free_cnt @ 48, recv.raw_ipv6 @ 36, recv.raw_ipv6.remote_lid @ 36,
        recv.raw_ipv6.remote_sl @ 38, recv.raw_ipv6.path_bits @ 39, recv.raw_ether @ 36,
        recv.raw_ether.remote_lid @ 36, recv.raw_ether.remote_sl @ 38, recv.raw_ether.path_bits @ 39,
        recv.raw_ether.ether_type @ 40,
    }
    ib_local_ds_t: 16, 8 {
        vaddr @ 0, length @ 8, lkey @ 12,
    }
    ib_send_wr_t: 88, 8 {
        wr_id @ 0, p_next @ 8, ds_array @ 16, num_ds @ 24, wr_type @ 28, send_opt @ 32, data @ 36,
        data.immediate_data @ 36, data.invalidate_rkey @ 36, op @ 40, op.dgrm @ 40, op.dgrm.ud @ 40,
        op.dgrm.ud.h_av @ 40, op.dgrm.ud.remote_qp @ 48, op.dgrm.ud.remote_qkey @ 52, op.dgrm.ud.rsvd @ 56,
        op.dgrm.ud.pkey_index @ 64, op.dgrm.ud.header @ 72, op.dgrm.ud.hlen @ 80, op.dgrm.ud.mss @ 84,
        op.dgrm.rd @ 40, op.dgrm.rd.remote_qp @ 40, op.dgrm.rd.remote_qkey @ 44, op.dgrm.rd.eecn @ 48,
        op.dgrm.raw_ether @ 40, op.dgrm.raw_ether.dest_lid @ 40, op.dgrm.raw_ether.path_bits @ 42,
        op.dgrm.raw_ether.sl @ 43, op.dgrm.raw_ether.max_static_rate @ 44,
        op.dgrm.raw_ether.ether_type @ 46, op.dgrm.raw_ipv6 @ 40, op.dgrm.raw_ipv6.dest_lid @ 40,
        op.dgrm.raw_ipv6.path_bits @ 42, op.dgrm.raw_ipv6.sl @ 43, op.dgrm.raw_ipv6.max_static_rate @ 44,
        op.remote_ops @ 40, op.remote_ops.vaddr @ 40, op.remote_ops.rkey @ 48, op.remote_ops.atomic1 @ 56,
        op.remote_ops.atomic2 @ 64, op.fast_reg @ 40, op.fast_reg.iova_start @ 40,
        op.fast_reg.page_list @ 48, op.fast_reg.page_shift @ 56, op.fast_reg.page_list_len @ 60,
        op.fast_reg.length @ 64, op.fast_reg.access_flags @ 68, op.fast_reg.rkey @ 72, op.fast_reg.fbo @ 76,
    }
    ib_recv_wr_t: 32, 8 {
        p_next @ 0, wr_id @ 8, num_ds @ 16, ds_array @ 24,
    }
    ib_cm_handle_t: 24, 8 {
        h_al @ 0, h_qp @ 8, cid @ 16,
    }
    ib_cm_req_rec_t: 200, 8 {
        context @ 0, h_cm_req @ 8, h_cm_listen @ 32, p_req_pdata @ 40, qp_type @ 48, resp_res @ 52,
        flow_ctrl @ 56, rnr_retry_cnt @ 60, primary_path @ 61, alt_path @ 125, pkey @ 190,
        sidr_context @ 192,
    }
    ib_cm_rep_rec_t: 160, 8 {
        p_rep_pdata @ 0, qp_type @ 8, h_cm_rep @ 16, qp_context @ 40, resp_res @ 48, flow_ctrl @ 52,
        apr_status @ 56, sidr_context @ 64, status @ 72, remote_qp @ 76, remote_qkey @ 80, class_info @ 84,
    }
    ib_cm_rtu_rec_t: 24, 8 {
        p_rtu_pdata @ 0, h_qp @ 8, qp_context @ 16,
    }
    ib_cm_rej_rec_t: 48, 8 {
        rej_status @ 0, p_ari @ 8, ari_length @ 16, p_rej_pdata @ 24, h_qp @ 32, qp_context @ 40,
    }
    ib_cm_mra_rec_t: 24, 8 {
        p_mra_pdata @ 0, h_qp @ 8, qp_context @ 16,
    }
    ib_cm_dreq_rec_t: 40, 8 {
        h_cm_dreq @ 0, p_dreq_pdata @ 24, qp_context @ 32,
    }
    ib_cm_drep_rec_t: 32, 8 {
        cm_status @ 0, p_drep_pdata @ 8, h_qp @ 16, qp_context @ 24,
    }
    ib_cm_listen_t: 72, 8 {
        svc_id @ 0, ca_guid @ 8, port_guid @ 16, lid @ 24, pkey @ 26, p_compare_buffer @ 32,
        compare_offset @ 40, compare_length @ 41, pfn_cm_req_cb @ 48, qp_type @ 56, sidr_context @ 64,
    }
    ib_cm_req_t: 136, 8 {
        svc_id @ 0, flags @ 8, max_cm_retries @ 12, p_primary_path @ 16, pfn_cm_rep_cb @ 24,
        p_req_pdata @ 32, req_length @ 40, qp_type @ 44, h_qp @ 48, p_compare_buffer @ 56,
        compare_offset @ 64, compare_length @ 65, resp_res @ 66, init_depth @ 67, remote_resp_timeout @ 68,
        flow_ctrl @ 72, local_resp_timeout @ 76, rnr_nak_timeout @ 77, rnr_retry_cnt @ 78, retry_cnt @ 79,
        p_alt_path @ 80, pfn_cm_req_cb @ 88, pfn_cm_mra_cb @ 96, pfn_cm_rej_cb @ 104, h_al @ 112,
        sidr_context @ 120, timeout_ms @ 128, pkey @ 132,
    }
    ib_cm_rep_t: 200, 8 {
        flags @ 0, p_rep_pdata @ 8, rep_length @ 16, h_qp @ 24, qp_type @ 32, access_ctrl @ 36,
        sq_depth @ 40, rq_depth @ 44, init_depth @ 48, target_ack_delay @ 49, failover_accepted @ 50,
        flow_ctrl @ 52, rnr_nak_timeout @ 56, rnr_retry_cnt @ 57, pfn_cm_rej_cb @ 64, pfn_cm_mra_cb @ 72,
        pfn_cm_rtu_cb @ 80, pfn_cm_lap_cb @ 88, pfn_cm_dreq_cb @ 96, p_recv_wr @ 104, pp_recv_failure @ 112,
        status @ 120, class_info @ 121,
    }
    ib_cm_rtu_t: 48, 8 {
        access_ctrl @ 0, sq_depth @ 4, rq_depth @ 8, p_rtu_pdata @ 16, rtu_length @ 24, pfn_cm_apr_cb @ 32,
        pfn_cm_dreq_cb @ 40,
    }
    ib_cm_rej_t: 40, 8 {
        rej_status @ 0, p_ari @ 8, ari_length @ 16, p_rej_pdata @ 24, rej_length @ 32,
    }
    ib_cm_dreq_t: 40, 8 {
        flags @ 0, p_dreq_pdata @ 8, dreq_length @ 16, qp_type @ 20, h_qp @ 24, pfn_cm_drep_cb @ 32,
    }
    ib_cm_drep_t: 16, 8 {
        p_drep_pdata @ 0, drep_length @ 8,
    }
}
