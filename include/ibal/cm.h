/*
 * Communication manager, for connected mode.
 *
 * Our own statement of the ABI, in the names of the public headers of OpenFabrics for Windows, for x64.
 * The crate ibal-sys says the same in Rust; its test `abi` (feature abi-check) compiles both and compares
 * them.
 *
 * Records that hold a path record by value have it without alignment, as the layout table of ibal-sys does.
 */
#ifndef IBAL_CM_H
#define IBAL_CM_H

#include "sa.h"

typedef ib_net16_t ib_rej_status_t;
typedef uint8_t ib_apr_status_t;
typedef uint8_t ib_sidr_status_t;
typedef uint8_t ib_cm_failover_t;

typedef struct {
    ib_al_handle_t h_al;
    ib_qp_handle_t h_qp;
    ib_net32_t cid;
} ib_cm_handle_t;

typedef struct {
    const void *context;
    ib_cm_handle_t h_cm_req;
    ib_listen_handle_t h_cm_listen;
    const uint8_t *p_req_pdata;
    ib_qp_type_t qp_type;
    uint8_t resp_res;
    boolean_t flow_ctrl;
    uint8_t rnr_retry_cnt;
    ib_path_rec_t primary_path;
    ib_path_rec_t alt_path;
    ib_net16_t pkey;
    const void *sidr_context;
} ib_cm_req_rec_t;

typedef struct {
    const uint8_t *p_rep_pdata;
    ib_qp_type_t qp_type;
    ib_cm_handle_t h_cm_rep;
    const void *qp_context;
    uint8_t resp_res;
    boolean_t flow_ctrl;
    ib_apr_status_t apr_status;
    const void *sidr_context;
    ib_sidr_status_t status;
    ib_net32_t remote_qp;
    ib_net32_t remote_qkey;
    ib_class_port_info_t class_info;
} ib_cm_rep_rec_t;

typedef struct {
    const uint8_t *p_rtu_pdata;
    ib_qp_handle_t h_qp;
    const void *qp_context;
} ib_cm_rtu_rec_t;

typedef struct {
    ib_rej_status_t rej_status;
    const uint8_t *p_ari;
    uint8_t ari_length;
    const uint8_t *p_rej_pdata;
    ib_qp_handle_t h_qp;
    const void *qp_context;
} ib_cm_rej_rec_t;

typedef struct {
    const uint8_t *p_mra_pdata;
    ib_qp_handle_t h_qp;
    const void *qp_context;
} ib_cm_mra_rec_t;

typedef struct {
    ib_cm_handle_t h_cm_dreq;
    const uint8_t *p_dreq_pdata;
    const void *qp_context;
} ib_cm_dreq_rec_t;

typedef struct {
    ib_api_status_t cm_status;
    const uint8_t *p_drep_pdata;
    ib_qp_handle_t h_qp;
    const void *qp_context;
} ib_cm_drep_rec_t;

typedef void (*ib_pfn_cm_req_cb_t)(ib_cm_req_rec_t *p_cm_req_rec);

typedef void (*ib_pfn_cm_rep_cb_t)(ib_cm_rep_rec_t *p_cm_rep_rec);

typedef void (*ib_pfn_cm_rtu_cb_t)(ib_cm_rtu_rec_t *p_cm_rtu_rec);

typedef void (*ib_pfn_cm_rej_cb_t)(ib_cm_rej_rec_t *p_cm_rej_rec);

typedef void (*ib_pfn_cm_mra_cb_t)(ib_cm_mra_rec_t *p_cm_mra_rec);

typedef void (*ib_pfn_cm_dreq_cb_t)(ib_cm_dreq_rec_t *p_cm_dreq_rec);

typedef void (*ib_pfn_cm_drep_cb_t)(ib_cm_drep_rec_t *p_cm_drep_rec);

typedef void (*ib_pfn_cm_lap_cb_t)(void *p_cm_lap_rec);

typedef void (*ib_pfn_cm_apr_cb_t)(void *p_cm_apr_rec);

typedef struct {
    ib_net64_t svc_id;
    ib_net64_t ca_guid;
    ib_net64_t port_guid;
    ib_net16_t lid;
    ib_net16_t pkey;
    uint8_t *p_compare_buffer;
    uint8_t compare_offset;
    uint8_t compare_length;
    ib_pfn_cm_req_cb_t pfn_cm_req_cb;
    ib_qp_type_t qp_type;
    const void *sidr_context;
} ib_cm_listen_t;

typedef struct {
    ib_net64_t svc_id;
    ib_al_flags_t flags;
    uint8_t max_cm_retries;
    IBAL_PTR64(ib_path_rec_t *p_primary_path, p_primary_path);
    IBAL_PTR64(ib_pfn_cm_rep_cb_t pfn_cm_rep_cb, pfn_cm_rep_cb);
    IBAL_PTR64(const uint8_t *p_req_pdata, p_req_pdata);
    uint8_t req_length;
    ib_qp_type_t qp_type;
    IBAL_PTR64(ib_qp_handle_t h_qp, h_qp);
    IBAL_PTR64(uint8_t *p_compare_buffer, p_compare_buffer);
    uint8_t compare_offset;
    uint8_t compare_length;
    uint8_t resp_res;
    uint8_t init_depth;
    uint8_t remote_resp_timeout;
    boolean_t flow_ctrl;
    uint8_t local_resp_timeout;
    uint8_t rnr_nak_timeout;
    uint8_t rnr_retry_cnt;
    uint8_t retry_cnt;
    IBAL_PTR64(ib_path_rec_t *p_alt_path, p_alt_path);
    IBAL_PTR64(ib_pfn_cm_req_cb_t pfn_cm_req_cb, pfn_cm_req_cb);
    IBAL_PTR64(ib_pfn_cm_mra_cb_t pfn_cm_mra_cb, pfn_cm_mra_cb);
    IBAL_PTR64(ib_pfn_cm_rej_cb_t pfn_cm_rej_cb, pfn_cm_rej_cb);
    IBAL_PTR64(ib_al_handle_t h_al, h_al);
    IBAL_PTR64(const void *sidr_context, sidr_context);
    uint32_t timeout_ms;
    ib_net16_t pkey;
} ib_cm_req_t;

typedef struct {
    ib_al_flags_t flags;
    IBAL_PTR64(const uint8_t *p_rep_pdata, p_rep_pdata);
    uint8_t rep_length;
    IBAL_PTR64(ib_qp_handle_t h_qp, h_qp);
    ib_qp_type_t qp_type;
    ib_access_t access_ctrl;
    uint32_t sq_depth;
    uint32_t rq_depth;
    uint8_t init_depth;
    uint8_t target_ack_delay;
    ib_cm_failover_t failover_accepted;
    boolean_t flow_ctrl;
    uint8_t rnr_nak_timeout;
    uint8_t rnr_retry_cnt;
    IBAL_PTR64(ib_pfn_cm_rej_cb_t pfn_cm_rej_cb, pfn_cm_rej_cb);
    IBAL_PTR64(ib_pfn_cm_mra_cb_t pfn_cm_mra_cb, pfn_cm_mra_cb);
    IBAL_PTR64(ib_pfn_cm_rtu_cb_t pfn_cm_rtu_cb, pfn_cm_rtu_cb);
    IBAL_PTR64(ib_pfn_cm_lap_cb_t pfn_cm_lap_cb, pfn_cm_lap_cb);
    IBAL_PTR64(ib_pfn_cm_dreq_cb_t pfn_cm_dreq_cb, pfn_cm_dreq_cb);
    IBAL_PTR64(ib_recv_wr_t *p_recv_wr, p_recv_wr);
    IBAL_PTR64(ib_recv_wr_t **pp_recv_failure, pp_recv_failure);
    ib_sidr_status_t status;
    ib_class_port_info_t class_info;
} ib_cm_rep_t;

typedef struct {
    ib_access_t access_ctrl;
    uint32_t sq_depth;
    uint32_t rq_depth;
    const uint8_t *p_rtu_pdata;
    uint8_t rtu_length;
    ib_pfn_cm_apr_cb_t pfn_cm_apr_cb;
    ib_pfn_cm_dreq_cb_t pfn_cm_dreq_cb;
} ib_cm_rtu_t;

typedef struct {
    ib_rej_status_t rej_status;
    void *p_ari;
    uint8_t ari_length;
    const uint8_t *p_rej_pdata;
    uint8_t rej_length;
} ib_cm_rej_t;

typedef struct {
    ib_al_flags_t flags;
    uint8_t *p_dreq_pdata;
    uint8_t dreq_length;
    ib_qp_type_t qp_type;
    ib_qp_handle_t h_qp;
    ib_pfn_cm_drep_cb_t pfn_cm_drep_cb;
} ib_cm_dreq_t;

typedef struct {
    uint8_t *p_drep_pdata;
    uint8_t drep_length;
} ib_cm_drep_t;

#endif
