/*
 * The access layer interface and the identity of an IPoIB port.
 *
 * Our own statement of the ABI, in the names of the public headers of OpenFabrics for Windows, for x64.
 * The crate ibal-sys says the same in Rust; its test `abi` (feature abi-check) compiles both and compares
 * them.
 */
#ifndef IBAL_IFC_H
#define IBAL_IFC_H

#include "cm.h"
#include "pnp.h"

/* {96234E89-496F-4dfb-AA90-FCE82BCEC8A8} */
#define GUID_IB_AL_INTERFACE_INIT \
    { 0x96234e89, 0x496f, 0x4dfb, { 0xaa, 0x90, 0xfc, 0xe8, 0x2b, 0xce, 0xc8, 0xa8 } }
#define AL_INTERFACE_VERSION 19

/* {B40DDB48-5710-487a-B812-6DAF56C7F423} */
#define GUID_IPOIB_INTERFACE_DATA_INIT \
    { 0xb40ddb48, 0x5710, 0x487a, { 0xb8, 0x12, 0x6d, 0xaf, 0x56, 0xc7, 0xf4, 0x23 } }
#define IPOIB_INTERFACE_DATA_VERSION 10
#define MAX_USER_NAME_SIZE 17

typedef struct {
    const GUID *type;
    uint16_t size;
    uint16_t version;
    void *p_data;
} ib_al_ifc_data_t;

/* A slot that nothing here calls. */
typedef void *unused_slot;

typedef ib_api_status_t (*ib_pfn_open_ca_t)(
    ib_al_handle_t h_al, ib_net64_t ca_guid, ib_pfn_event_cb_t ca_event_cb, const void *ca_context,
    ib_ca_handle_t *ph_ca);
typedef ib_api_status_t (*ib_pfn_query_ca_t)(ib_ca_handle_t h_ca, ib_ca_attr_t *p_ca_attr, uint32_t *p_size);
typedef ib_api_status_t (*ib_pfn_close_ca_t)(ib_ca_handle_t h_ca, ib_pfn_destroy_cb_t destroy_cb);
typedef ib_api_status_t (*ib_pfn_alloc_pd_t)(
    ib_ca_handle_t h_ca, ib_pd_type_t pd_type, const void *pd_context, ib_pd_handle_t *ph_pd);
typedef ib_api_status_t (*ib_pfn_dealloc_pd_t)(ib_pd_handle_t h_pd, ib_pfn_destroy_cb_t destroy_cb);
typedef ib_api_status_t (*ib_pfn_create_av_t)(
    ib_pd_handle_t h_pd, const ib_av_attr_t *p_av_attr, ib_av_handle_t *ph_av);
typedef ib_api_status_t (*ib_pfn_query_av_t)(
    ib_av_handle_t h_av, ib_av_attr_t *p_av_attr, ib_pd_handle_t *ph_pd);
typedef ib_api_status_t (*ib_pfn_modify_av_t)(ib_av_handle_t h_av, const ib_av_attr_t *p_av_attr);
typedef ib_api_status_t (*ib_pfn_destroy_av_t)(ib_av_handle_t h_av);
typedef ib_api_status_t (*ib_pfn_create_qp_t)(
    ib_pd_handle_t h_pd, ib_qp_create_t *p_qp_create, const void *qp_context,
    ib_pfn_event_cb_t qp_event_cb, ib_qp_handle_t *ph_qp);
typedef ib_api_status_t (*ib_pfn_query_qp_t)(ib_qp_handle_t h_qp, ib_qp_attr_t *p_qp_attr);
typedef ib_api_status_t (*ib_pfn_modify_qp_t)(ib_qp_handle_t h_qp, const ib_qp_mod_t *p_qp_mod);
typedef ib_api_status_t (*ib_pfn_destroy_qp_t)(ib_qp_handle_t h_qp, ib_pfn_destroy_cb_t destroy_cb);
typedef ib_api_status_t (*ib_pfn_create_cq_t)(
    ib_ca_handle_t h_ca, ib_cq_create_t *p_cq_create, const void *cq_context,
    ib_pfn_event_cb_t cq_event_cb, ib_cq_handle_t *ph_cq);
typedef ib_api_status_t (*ib_pfn_modify_cq_t)(ib_cq_handle_t h_cq, uint32_t *p_size);
typedef ib_api_status_t (*ib_pfn_query_cq_t)(ib_cq_handle_t h_cq, uint32_t *p_size);
typedef ib_api_status_t (*ib_pfn_destroy_cq_t)(ib_cq_handle_t h_cq, ib_pfn_destroy_cb_t destroy_cb);
typedef ib_api_status_t (*ib_pfn_reg_mem_t)(
    ib_pd_handle_t h_pd, const ib_mr_create_t *p_mr_create, uint32_t *p_lkey, uint32_t *p_rkey,
    ib_mr_handle_t *ph_mr);
typedef ib_api_status_t (*ib_pfn_reg_phys_t)(
    ib_pd_handle_t h_pd, const ib_phys_create_t *p_phys_create, uint64_t *p_vaddr, uint32_t *p_lkey,
    uint32_t *p_rkey, ib_mr_handle_t *ph_mr);
typedef ib_api_status_t (*ib_pfn_query_mr_t)(ib_mr_handle_t h_mr, ib_mr_attr_t *p_mr_attr);
typedef ib_api_status_t (*ib_pfn_dereg_mr_t)(ib_mr_handle_t h_mr);
typedef ib_api_status_t (*ib_pfn_post_send_t)(
    ib_qp_handle_t h_qp, ib_send_wr_t *p_send_wr, ib_send_wr_t **pp_send_failure);
typedef ib_api_status_t (*ib_pfn_post_recv_t)(
    ib_qp_handle_t h_qp, ib_recv_wr_t *p_recv_wr, ib_recv_wr_t **pp_recv_failure);
typedef ib_api_status_t (*ib_pfn_poll_cq_t)(
    ib_cq_handle_t h_cq, ib_wc_t **pp_free_wclist, ib_wc_t **pp_done_wclist);
typedef ib_api_status_t (*ib_pfn_rearm_cq_t)(ib_cq_handle_t h_cq, boolean_t solicited);
typedef ib_api_status_t (*ib_pfn_join_mcast_t)(
    ib_qp_handle_t h_qp, const ib_mcast_req_t *p_mcast_req, ib_mcast_handle_t *p_h_mcast);
typedef ib_api_status_t (*ib_pfn_join_mcast_no_qp_t)(
    const ib_mcast_req_t *p_mcast_req, ib_mcast_handle_t *p_h_mcast);
typedef ib_api_status_t (*ib_pfn_leave_mcast_t)(ib_mcast_handle_t h_mcast, ib_pfn_destroy_cb_t destroy_cb);
typedef ib_api_status_t (*ib_pfn_local_mad_t)(
    ib_ca_handle_t h_ca, uint8_t port_num, const void *p_mad_in, void *p_mad_out);
typedef ib_api_status_t (*ib_pfn_cm_listen_t)(
    ib_al_handle_t h_al, const ib_cm_listen_t *p_cm_listen, const void *listen_context,
    ib_listen_handle_t *ph_cm_listen);
typedef ib_api_status_t (*ib_pfn_cm_cancel_t)(ib_listen_handle_t h_cm_listen, ib_pfn_destroy_cb_t destroy_cb);
typedef ib_api_status_t (*ib_pfn_cm_req_t)(const ib_cm_req_t *p_cm_req);
typedef ib_api_status_t (*ib_pfn_cm_rep_t)(ib_cm_handle_t h_cm_req, const ib_cm_rep_t *p_cm_rep);
typedef ib_api_status_t (*ib_pfn_cm_rtu_t)(ib_cm_handle_t h_cm_rep, const ib_cm_rtu_t *p_cm_rtu);
typedef ib_api_status_t (*ib_pfn_cm_rej_t)(ib_cm_handle_t h_cm, const ib_cm_rej_t *p_cm_rej);
typedef ib_api_status_t (*ib_pfn_cm_dreq_t)(const ib_cm_dreq_t *p_cm_dreq);
typedef ib_api_status_t (*ib_pfn_cm_drep_t)(ib_cm_handle_t h_cm_dreq, const ib_cm_drep_t *p_cm_drep);
typedef ib_api_status_t (*ib_pfn_put_mad_t)(
    const char *file, int32_t line, const ib_mad_element_t *p_mad_element_list);
typedef ib_api_status_t (*ib_pfn_init_dgrm_svc_t)(ib_qp_handle_t h_qp, const ib_dgrm_info_t *p_dgrm_info);
typedef ib_api_status_t (*ib_pfn_query_t)(
    ib_al_handle_t h_al, const ib_query_req_t *p_query_req, ib_query_handle_t *ph_query);
typedef void (*ib_pfn_cancel_query_t)(ib_al_handle_t h_al, ib_query_handle_t query_hndl);
typedef ib_api_status_t (*ib_pfn_reg_pnp_t)(
    ib_al_handle_t h_al, const ib_pnp_req_t *p_pnp_req, ib_pnp_handle_t *ph_pnp);
typedef ib_api_status_t (*ib_pfn_dereg_pnp_t)(ib_pnp_handle_t h_pnp, ib_pfn_destroy_cb_t destroy_cb);
typedef ib_api_status_t (*ib_pfn_open_al_t)(ib_al_handle_t *ph_al);
typedef ib_api_status_t (*ib_pfn_open_al_trk_t)(uint16_t *tag, ib_al_handle_t *ph_al);
typedef ib_api_status_t (*ib_pfn_close_al_t)(ib_al_handle_t h_al);
typedef const char *(*ib_pfn_get_err_str_t)(ib_api_status_t status);
typedef const char *(*ib_pfn_get_wc_status_str_t)(ib_wc_status_t wc_status);
typedef NTSTATUS (*ib_pfn_to_ntstatus_t)(ib_api_status_t ib_status);
typedef void (*ib_ref_al_obj_t)(void *p_obj);

typedef struct {
    INTERFACE wdm;
    ib_pfn_destroy_cb_t sync_destroy;
    ib_pfn_open_ca_t open_ca;
    ib_pfn_query_ca_t query_ca;
    unused_slot modify_ca;
    unused_slot get_dev;
    ib_pfn_close_ca_t close_ca;
    ib_pfn_alloc_pd_t alloc_pd;
    ib_pfn_dealloc_pd_t dealloc_pd;
    ib_pfn_create_av_t create_av;
    ib_pfn_query_av_t query_av;
    ib_pfn_modify_av_t modify_av;
    ib_pfn_destroy_av_t destroy_av;
    ib_pfn_create_qp_t create_qp;
    unused_slot get_spl_qp;
    ib_pfn_query_qp_t query_qp;
    ib_pfn_modify_qp_t modify_qp;
    ib_pfn_destroy_qp_t destroy_qp;
    ib_pfn_create_cq_t create_cq;
    ib_pfn_modify_cq_t modify_cq;
    ib_pfn_query_cq_t query_cq;
    ib_pfn_destroy_cq_t destroy_cq;
    ib_pfn_reg_mem_t reg_mem;
    ib_pfn_reg_phys_t reg_phys;
    ib_pfn_query_mr_t query_mr;
    unused_slot rereg_mem;
    unused_slot create_shmid;
    unused_slot reg_shmid;
    ib_pfn_dereg_mr_t dereg_mr;
    unused_slot create_mw;
    unused_slot query_mw;
    unused_slot bind_mw;
    unused_slot destroy_mw;
    ib_pfn_post_send_t post_send;
    ib_pfn_post_recv_t post_recv;
    unused_slot send_mad;
    unused_slot cancel_mad;
    ib_pfn_poll_cq_t poll_cq;
    ib_pfn_rearm_cq_t rearm_cq;
    ib_pfn_join_mcast_t join_mcast;
    ib_pfn_join_mcast_no_qp_t join_mcast_no_qp;
    ib_pfn_leave_mcast_t leave_mcast;
    ib_pfn_local_mad_t local_mad;
    ib_pfn_cm_listen_t cm_listen;
    ib_pfn_cm_cancel_t cm_cancel;
    ib_pfn_cm_req_t cm_req;
    ib_pfn_cm_rep_t cm_rep;
    ib_pfn_cm_rtu_t cm_rtu;
    ib_pfn_cm_rej_t cm_rej;
    unused_slot cm_mra;
    unused_slot cm_lap;
    unused_slot cm_apr;
    unused_slot force_apm;
    ib_pfn_cm_dreq_t cm_dreq;
    ib_pfn_cm_drep_t cm_drep;
    unused_slot cm_handoff;
    unused_slot create_ioc;
    unused_slot destroy_ioc;
    unused_slot reg_ioc;
    unused_slot add_svc_entry;
    unused_slot remove_svc_entry;
    unused_slot get_ca_guids;
    unused_slot get_ca_by_gid;
    unused_slot get_port_by_gid;
    unused_slot create_mad_pool;
    unused_slot destroy_mad_pool;
    unused_slot reg_mad_pool;
    unused_slot dereg_mad_pool;
    unused_slot get_mad;
    ib_pfn_put_mad_t put_mad;
    ib_pfn_init_dgrm_svc_t init_dgrm_svc;
    unused_slot reg_mad_svc;
    unused_slot reg_svc;
    unused_slot dereg_svc;
    ib_pfn_query_t query;
    ib_pfn_cancel_query_t cancel_query;
    ib_pfn_reg_pnp_t reg_pnp;
    ib_pfn_dereg_pnp_t dereg_pnp;
    unused_slot subscribe;
    unused_slot unsubscribe;
    unused_slot reject_ioc;
    unused_slot ci_call;
    ib_pfn_open_al_t open_al;
    ib_pfn_close_al_t close_al;
    ib_pfn_get_err_str_t get_err_str;
    ib_pfn_get_wc_status_str_t get_wc_status_str;
    unused_slot create_mlnx_fmr;
    unused_slot map_phys_mlnx_fmr;
    unused_slot unmap_mlnx_fmr;
    unused_slot destroy_mlnx_fmr;
    unused_slot create_mlnx_fmr_pool;
    unused_slot destroy_mlnx_fmr_pool;
    unused_slot map_phys_mlnx_fmr_pool;
    unused_slot unmap_mlnx_fmr_pool;
    unused_slot flush_mlnx_fmr_pool;
    unused_slot create_srq;
    unused_slot query_srq;
    unused_slot modify_srq;
    unused_slot destroy_srq;
    unused_slot post_srq_recv;
    ib_net64_t ca_guid;
    ib_pfn_to_ntstatus_t to_ntstatus;
    unused_slot ibat_register;
    unused_slot ibat_deregister;
    unused_slot ibat_update_reg;
    unused_slot ibat_update_route;
    unused_slot ibat_clear_all_routes;
    unused_slot ibat_query_path;
    unused_slot ibat_cancel_query;
    ib_ref_al_obj_t ib_ref_al_obj;
    ib_ref_al_obj_t ib_deref_al_obj;
    unused_slot mcast_mgr_join_mcast;
    unused_slot mcast_mgr_leave_mcast;
    unused_slot mcast_mgr_cancel_join;
    unused_slot mcast_mgr_request_add_ref;
    unused_slot mcast_mgr_request_release;
    ib_pfn_open_al_trk_t open_al_trk;
} ib_al_ifc_t;

typedef struct {
    ib_net64_t guid;
    ib_net16_t pkey;
    boolean_t IsEoib;
    uint64_t UniqueId;
    uint32_t Location;
    char name[MAX_USER_NAME_SIZE];
} port_guid_pkey_t;

/* Ethernet over InfiniBand; IPoIB calls none of these. */
typedef struct {
    void *UpdateCheckForHang;
    void *RegisterEoibNotification;
    void *RemoveEoibNotification;
    void *GetVhubTableUpdate;
    void *ReturnVhubTableUpdate;
    void *GetLinkStatus;
    void *AcquireDataQpn;
    void *ReleaseDataQpn;
    void *GetBroadcastMgidParams;
    void *GetEoIBMac;
} ipoib_ifc_func;

typedef struct {
    GUID driver_id;
    ib_net64_t ca_guid;
    port_guid_pkey_t port_guid;
    uint8_t port_num;
    ipoib_ifc_func ibal_ipoib_ifc;
} ipoib_ifc_data_t;

#endif
