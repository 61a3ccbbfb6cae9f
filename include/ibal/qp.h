/*
 * Address vectors, completion queues, queue pairs, protection domains and memory.
 *
 * Our own statement of the ABI, in the names of the public headers of OpenFabrics for Windows, for x64.
 * The crate ibal-sys says the same in Rust; its test `abi` (feature abi-check) compiles both and compares
 * them.
 */
#ifndef IBAL_QP_H
#define IBAL_QP_H

#include "base.h"

#pragma pack(push, 1)
typedef struct {
    ib_net32_t ver_class_flow;
    uint16_t resv1;
    uint8_t resv2;
    uint8_t hop_limit;
    ib_gid_t src_gid;
    ib_gid_t dest_gid;
} ib_grh_t;
#pragma pack(pop)

typedef struct {
    uint8_t port_num;
    uint8_t sl;
    ib_net16_t dlid;
    boolean_t grh_valid;
    ib_grh_t grh;
    uint8_t static_rate;
    uint8_t path_bits;
    struct {
        uint8_t path_mtu;
        uint8_t local_ack_timeout;
        uint8_t seq_err_retry_cnt;
        uint8_t rnr_retry_cnt;
    } conn;
} ib_av_attr_t;

typedef void (*ib_pfn_comp_cb_t)(ib_cq_handle_t h_cq, void *cq_context);

typedef struct {
    uint32_t size;
    ib_pfn_comp_cb_t pfn_comp_cb;
    cl_waitobj_handle_t h_wait_obj;
} ib_cq_create_t;

typedef enum {
    IB_PDT_NORMAL = 0,
    IB_PDT_ALIAS = 1,
    IB_PDT_SQP = 2,
    IB_PDT_UD = 3
} ib_pd_type_t;

typedef uint32_t ib_access_t;
#define IB_AC_RDMA_READ 0x00000001u
#define IB_AC_RDMA_WRITE 0x00000002u
#define IB_AC_ATOMIC 0x00000004u
#define IB_AC_LOCAL_WRITE 0x00000008u
#define IB_AC_MW_BIND 0x00000010u

typedef struct {
    IBAL_PTR64(void *vaddr, vaddr);
    uint64_t length;
    ib_access_t access_ctrl;
} ib_mr_create_t;

typedef struct {
    uint64_t base_addr;
    uint64_t size;
} ib_phys_range_t;

typedef struct {
    uint64_t length;
    uint32_t num_ranges;
    ib_phys_range_t *range_array;
    uint32_t buf_offset;
    uint32_t hca_page_size;
    ib_access_t access_ctrl;
} ib_phys_create_t;

typedef struct {
    IBAL_PTR64(ib_pd_handle_t h_pd, h_pd);
    uint64_t local_lb;
    uint64_t local_ub;
    uint64_t remote_lb;
    uint64_t remote_ub;
    ib_access_t access_ctrl;
    ib_net32_t lkey;
    ib_net32_t rkey;
} ib_mr_attr_t;

typedef enum {
    IB_QPT_RELIABLE_CONN = 0,
    IB_QPT_UNRELIABLE_CONN = 1,
    IB_QPT_RELIABLE_DGRM = 2,
    IB_QPT_UNRELIABLE_DGRM = 3,
    IB_QPT_QP0 = 4,
    IB_QPT_QP1 = 5,
    IB_QPT_RAW_IPV6 = 6,
    IB_QPT_RAW_ETHER = 7,
    IB_QPT_MAD = 8,
    IB_QPT_QP0_ALIAS = 9,
    IB_QPT_QP1_ALIAS = 10,
    IB_QPT_UNKNOWN = 11
} ib_qp_type_t;

typedef uint32_t ib_qp_state_t;
#define IB_QPS_RESET 0x00000001u
#define IB_QPS_INIT 0x00000002u
#define IB_QPS_RTR 0x00000004u
#define IB_QPS_RTS 0x00000008u
#define IB_QPS_SQD 0x00000010u
#define IB_QPS_SQERR 0x00000080u
#define IB_QPS_ERROR 0x00000100u

typedef enum {
    IB_APM_MIGRATED = 1,
    IB_APM_REARM = 2,
    IB_APM_ARMED = 3
} ib_apm_state_t;

typedef uint32_t ib_qp_opts_t;
#define IB_MOD_QP_PKEY 0x00000002u
#define IB_MOD_QP_QKEY 0x00000200u
#define IB_MOD_QP_CURRENT_STATE 0x00001000u

typedef struct {
    ib_qp_type_t qp_type;
    uint32_t sq_max_inline;
    uint32_t sq_depth;
    uint32_t rq_depth;
    uint32_t sq_sge;
    uint32_t rq_sge;
    IBAL_PTR64(ib_cq_handle_t h_sq_cq, h_sq_cq);
    IBAL_PTR64(ib_cq_handle_t h_rq_cq, h_rq_cq);
    IBAL_PTR64(ib_srq_handle_t h_srq, h_srq);
    boolean_t sq_signaled;
} ib_qp_create_t;

typedef struct {
    ib_qp_state_t req_state;
    union {
        struct {
            uint8_t primary_port;
            ib_net32_t qkey;
            uint16_t pkey_index;
            ib_access_t access_ctrl;
        } init;
        struct {
            ib_net32_t rq_psn;
            ib_net32_t dest_qp;
            ib_av_attr_t primary_av;
            uint8_t resp_res;
            uint8_t rnr_nak_timeout;
            ib_qp_opts_t opts;
            ib_av_attr_t alternate_av;
            ib_net32_t qkey;
            uint16_t pkey_index;
            ib_access_t access_ctrl;
            uint32_t sq_depth;
            uint32_t rq_depth;
        } rtr;
        struct {
            ib_net32_t sq_psn;
            uint8_t retry_cnt;
            uint8_t rnr_retry_cnt;
            uint8_t local_ack_timeout;
            uint8_t init_depth;
            ib_qp_opts_t opts;
            uint8_t rnr_nak_timeout;
            ib_qp_state_t current_state;
            ib_net32_t qkey;
            ib_access_t access_ctrl;
            uint8_t resp_res;
            ib_av_attr_t primary_av;
            ib_av_attr_t alternate_av;
            uint32_t sq_depth;
            uint32_t rq_depth;
            ib_apm_state_t apm_state;
            uint8_t primary_port;
            uint16_t pkey_index;
        } rts;
        struct {
            boolean_t sqd_event;
        } sqd;
    } state;
} ib_qp_mod_t;

typedef struct {
    IBAL_PTR64(ib_pd_handle_t h_pd, h_pd);
    ib_qp_type_t qp_type;
    ib_access_t access_ctrl;
    uint16_t pkey_index;
    uint32_t sq_max_inline;
    uint32_t sq_depth;
    uint32_t rq_depth;
    uint32_t sq_sge;
    uint32_t rq_sge;
    uint8_t init_depth;
    uint8_t resp_res;
    IBAL_PTR64(ib_cq_handle_t h_sq_cq, h_sq_cq);
    IBAL_PTR64(ib_cq_handle_t h_rq_cq, h_rq_cq);
    IBAL_PTR64(ib_srq_handle_t h_srq, h_srq);
    boolean_t sq_signaled;
    ib_qp_state_t state;
    ib_net32_t num;
    ib_net32_t dest_num;
    ib_net32_t qkey;
    ib_net32_t sq_psn;
    ib_net32_t rq_psn;
    uint8_t primary_port;
    uint8_t alternate_port;
    ib_av_attr_t primary_av;
    ib_av_attr_t alternate_av;
    ib_apm_state_t apm_state;
} ib_qp_attr_t;

typedef struct {
    ib_net64_t port_guid;
    uint32_t qkey;
    uint16_t pkey_index;
} ib_dgrm_info_t;

#endif
