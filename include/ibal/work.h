/*
 * Work requests and completions.
 *
 * Our own statement of the ABI, in the names of the public headers of OpenFabrics for Windows, for x64.
 * The crate ibal-sys says the same in Rust; its test `abi` (feature abi-check) compiles both and compares
 * them.
 */
#ifndef IBAL_WORK_H
#define IBAL_WORK_H

#include "base.h"

typedef enum {
    WR_SEND = 0,
    WR_RDMA_WRITE = 1,
    WR_RDMA_READ = 2,
    WR_COMPARE_SWAP = 3,
    WR_FETCH_ADD = 4,
    WR_LSO = 5,
    WR_NOP = 6,
    WR_LOCAL_INV = 7,
    WR_FAST_REG_MR = 8,
    WR_UNKNOWN = 9
} ib_wr_type_t;

typedef struct {
    uint64_t vaddr;
    uint32_t length;
    uint32_t lkey;
} ib_local_ds_t;

typedef uint32_t ib_send_opt_t;
#define IB_SEND_OPT_IMMEDIATE 0x00000001u
#define IB_SEND_OPT_FENCE 0x00000002u
#define IB_SEND_OPT_SIGNALED 0x00000004u
#define IB_SEND_OPT_SOLICITED 0x00000008u
#define IB_SEND_OPT_INLINE 0x00000010u
#define IB_SEND_OPT_LOCAL 0x00000020u
#define IB_SEND_OPT_TX_IP_CSUM 0x00000040u
#define IB_SEND_OPT_TX_TCP_UDP_CSUM 0x00000080u

typedef struct _ib_send_wr {
    uint64_t wr_id;
    struct _ib_send_wr *p_next;
    ib_local_ds_t *ds_array;
    uint32_t num_ds;
    ib_wr_type_t wr_type;
    ib_send_opt_t send_opt;
    union {
        ib_net32_t immediate_data;
        ib_net32_t invalidate_rkey;
    };
    union {
        union {
            struct {
                ib_av_handle_t h_av;
                ib_net32_t remote_qp;
                ib_net32_t remote_qkey;
                void *rsvd;
                uint16_t pkey_index;
                void *header;
                int hlen;
                int mss;
            } ud;
            struct {
                ib_net32_t remote_qp;
                ib_net32_t remote_qkey;
                ib_net32_t eecn;
            } rd;
            struct {
                ib_net16_t dest_lid;
                uint8_t path_bits;
                uint8_t sl;
                uint8_t max_static_rate;
                ib_net16_t ether_type;
            } raw_ether;
            struct {
                ib_net16_t dest_lid;
                uint8_t path_bits;
                uint8_t sl;
                uint8_t max_static_rate;
            } raw_ipv6;
        } dgrm;
        struct {
            uint64_t vaddr;
            ib_net32_t rkey;
            ib_net64_t atomic1;
            ib_net64_t atomic2;
        } remote_ops;
        struct {
            uint64_t iova_start;
            void *page_list;
            unsigned int page_shift;
            unsigned int page_list_len;
            uint32_t length;
            int access_flags;
            ib_net32_t rkey;
            uint32_t fbo;
        } fast_reg;
    };
} ib_send_wr_t;

typedef struct _ib_recv_wr {
    IBAL_PTR64(struct _ib_recv_wr *p_next, p_next);
    uint64_t wr_id;
    uint32_t num_ds;
    IBAL_PTR64(ib_local_ds_t *ds_array, ds_array);
} ib_recv_wr_t;

typedef enum {
    IB_WCS_SUCCESS = 0,
    IB_WCS_LOCAL_LEN_ERR = 1,
    IB_WCS_LOCAL_OP_ERR = 2,
    IB_WCS_LOCAL_PROTECTION_ERR = 3,
    IB_WCS_WR_FLUSHED_ERR = 4,
    IB_WCS_MEM_WINDOW_BIND_ERR = 5,
    IB_WCS_REM_ACCESS_ERR = 6,
    IB_WCS_REM_OP_ERR = 7,
    IB_WCS_RNR_RETRY_ERR = 8,
    IB_WCS_TIMEOUT_RETRY_ERR = 9,
    IB_WCS_REM_INVALID_REQ_ERR = 10,
    IB_WCS_BAD_RESP_ERR = 11,
    IB_WCS_LOCAL_ACCESS_ERR = 12,
    IB_WCS_GENERAL_ERR = 13,
    IB_WCS_UNMATCHED_RESPONSE = 14,
    IB_WCS_CANCELED = 15,
    IB_WCS_REM_ABORT_ERR = 16,
    IB_WCS_UNKNOWN = 17
} ib_wc_status_t;

typedef enum {
    IB_WC_SEND = 0,
    IB_WC_RDMA_WRITE = 1,
    IB_WC_RDMA_READ = 2,
    IB_WC_COMPARE_SWAP = 3,
    IB_WC_FETCH_ADD = 4,
    IB_WC_MW_BIND = 5,
    IB_WC_NOP = 6,
    IB_WC_UNKNOWN1 = 7,
    IB_WC_RECV = 128,
    IB_WC_RECV_RDMA_WRITE = 129,
    IB_WC_LSO = 130,
    IB_WC_LOCAL_INV = 131,
    IB_WC_FAST_REG_MR = 132,
    IB_WC_UNKNOWN2 = 133
} ib_wc_type_t;

typedef uint32_t ib_recv_opt_t;
#define IB_RECV_OPT_IMMEDIATE 0x00000001u
#define IB_RECV_OPT_FORWARD 0x00000002u
#define IB_RECV_OPT_GRH_VALID 0x00000004u
#define IB_RECV_OPT_INVALIDATE 0x00000008u

typedef struct _ib_wc {
    IBAL_PTR64(struct _ib_wc *p_next, p_next);
    uint64_t wr_id;
    ib_wc_type_t wc_type;
    uint32_t length;
    uint64_t vendor_specific;
    ib_wc_status_t status;
    union {
        struct {
            ib_recv_opt_t recv_opt;
            ib_net32_t immediate_data;
        } conn;
        struct {
            ib_recv_opt_t recv_opt;
            ib_net32_t immediate_data;
            ib_net32_t remote_qp;
            uint16_t pkey_index;
            ib_net16_t remote_lid;
            uint8_t remote_sl;
            uint8_t path_bits;
        } ud;
        struct {
            ib_net32_t remote_eecn;
            ib_net32_t remote_qp;
            ib_net16_t remote_lid;
            uint8_t remote_sl;
            uint32_t free_cnt;
        } rd;
        struct {
            ib_net16_t remote_lid;
            uint8_t remote_sl;
            uint8_t path_bits;
        } raw_ipv6;
        struct {
            ib_net16_t remote_lid;
            uint8_t remote_sl;
            uint8_t path_bits;
            ib_net16_t ether_type;
        } raw_ether;
    } recv;
} ib_wc_t;

#endif
