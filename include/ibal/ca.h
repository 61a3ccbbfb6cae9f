/*
 * Channel adapters and ports; asynchronous events.
 *
 * Our own statement of the ABI, in the names of the public headers of OpenFabrics for Windows, for x64.
 * The crate ibal-sys says the same in Rust; its test `abi` (feature abi-check) compiles both and compares
 * them.
 */
#ifndef IBAL_CA_H
#define IBAL_CA_H

#include "base.h"

typedef enum {
    IB_ATOMIC_NONE = 0,
    IB_ATOMIC_LOCAL = 1,
    IB_ATOMIC_GLOBAL = 2
} ib_atomic_t;

enum rdma_transport_type {
    RDMA_TRANSPORT_IB = 0,
    RDMA_TRANSPORT_IWARP = 1,
    RDMA_TRANSPORT_RDMAOE = 2
};

#define IB_LINK_DOWN 1
#define IB_LINK_INIT 2
#define IB_LINK_ARMED 3
#define IB_LINK_ACTIVE 4

typedef struct {
    boolean_t cm;
    boolean_t snmp;
    boolean_t dev_mgmt;
    boolean_t vend;
    boolean_t sm;
    boolean_t sm_disable;
    boolean_t qkey_ctr;
    boolean_t pkey_ctr;
    boolean_t notice;
    boolean_t trap;
    boolean_t apm;
    boolean_t slmap;
    boolean_t pkey_nvram;
    boolean_t mkey_nvram;
    boolean_t sysguid;
    boolean_t dr_notice;
    boolean_t boot_mgmt;
    boolean_t capm_notice;
    boolean_t reinit;
    boolean_t ledinfo;
    boolean_t port_active;
    boolean_t ipd;
    boolean_t pkey_switch_ext_port;
    boolean_t bm;
    boolean_t link_rtl;
    boolean_t client_reregister;
} ib_port_cap_t;

typedef struct {
    ib_net64_t port_guid;
    uint8_t port_num;
    uint8_t mtu;
    enum rdma_transport_type transport;
    uint64_t max_msg_size;
    ib_net16_t lid;
    uint8_t lmc;
    uint8_t active_width;
    uint16_t max_vls;
    ib_net16_t sm_lid;
    uint8_t sm_sl;
    uint8_t link_state;
    uint8_t init_type_reply;
    uint8_t subnet_timeout;
    uint8_t active_speed;
    uint8_t phys_state;
    uint8_t ext_active_speed;
    uint8_t link_encoding;
    ib_port_cap_t cap;
    uint16_t pkey_ctr;
    uint16_t qkey_ctr;
    uint16_t num_gids;
    uint16_t num_pkeys;
    IBAL_PTR64(ib_gid_t *p_gid_table, p_gid_table);
    IBAL_PTR64(ib_net16_t *p_pkey_table, p_pkey_table);
} ib_port_attr_t;

typedef struct {
    ib_net64_t ca_guid;
    uint32_t vend_id;
    uint16_t dev_id;
    uint16_t revision;
    uint64_t fw_ver;
    uint32_t size;
    uint32_t max_qps;
    uint32_t max_wrs;
    uint32_t max_sges;
    uint32_t max_rd_sges;
    uint32_t max_cqs;
    uint32_t max_cqes;
    uint32_t max_pds;
    uint32_t init_regions;
    uint64_t init_region_size;
    uint32_t init_windows;
    uint64_t max_addr_handles;
    uint32_t max_partitions;
    ib_atomic_t atomicity;
    uint8_t max_qp_resp_res;
    uint8_t max_resp_res;
    uint8_t max_qp_init_depth;
    uint32_t max_ipv6_qps;
    uint32_t max_ether_qps;
    uint32_t max_mcast_grps;
    uint32_t max_mcast_qps;
    uint32_t max_qps_per_mcast_grp;
    uint32_t max_fmr;
    uint32_t max_map_per_fmr;
    uint32_t max_srq;
    uint32_t max_srq_wrs;
    uint32_t max_srq_sges;
    uint32_t bf_reg_size;
    uint32_t bf_regs_per_page;
    uint32_t max_sq_desc_sz;
    uint8_t local_ack_delay;
    boolean_t bad_pkey_ctr_support;
    boolean_t bad_qkey_ctr_support;
    boolean_t raw_mcast_support;
    boolean_t apm_support;
    boolean_t av_port_check;
    boolean_t change_primary_port;
    boolean_t modify_wr_depth;
    boolean_t modify_srq_depth;
    boolean_t current_qp_state_support;
    boolean_t shutdown_port_capability;
    boolean_t init_type_support;
    boolean_t port_active_event_support;
    boolean_t system_image_guid_support;
    boolean_t hw_agents;
    boolean_t ipoib_csum;
    ib_net64_t system_image_guid;
    uint32_t num_page_sizes;
    uint8_t num_ports;
    IBAL_PTR64(uint32_t *p_page_size, p_page_size);
    IBAL_PTR64(ib_port_attr_t *p_port_attr, p_port_attr);
} ib_ca_attr_t;

typedef enum {
    IB_AE_SQ_ERROR = 1,
    IB_AE_SQ_DRAINED = 2,
    IB_AE_RQ_ERROR = 3,
    IB_AE_CQ_ERROR = 4,
    IB_AE_QP_FATAL = 5,
    IB_AE_QP_COMM = 6,
    IB_AE_QP_APM = 7,
    IB_AE_LOCAL_FATAL = 8,
    IB_AE_PKEY_TRAP = 9,
    IB_AE_QKEY_TRAP = 10,
    IB_AE_MKEY_TRAP = 11,
    IB_AE_PORT_TRAP = 12,
    IB_AE_SYSIMG_GUID_TRAP = 13,
    IB_AE_BUF_OVERRUN = 14,
    IB_AE_LINK_INTEGRITY = 15,
    IB_AE_FLOW_CTRL_ERROR = 16,
    IB_AE_BKEY_TRAP = 17,
    IB_AE_QP_APM_ERROR = 18,
    IB_AE_WQ_REQ_ERROR = 19,
    IB_AE_WQ_ACCESS_ERROR = 20,
    IB_AE_PORT_ACTIVE = 21,
    IB_AE_PORT_DOWN = 22,
    IB_AE_CLIENT_REREGISTER = 23,
    IB_AE_SRQ_LIMIT_REACHED = 24,
    IB_AE_SRQ_CATAS_ERROR = 25,
    IB_AE_SRQ_QP_LAST_WQE_REACHED = 26,
    IB_AE_RESET_DRIVER = 27,
    IB_AE_RESET_CLIENT = 28,
    IB_AE_RESET_END = 29,
    IB_AE_RESET_FAILED = 30,
    IB_AE_LID_CHANGE = 31,
    IB_AE_PKEY_CHANGE = 32,
    IB_AE_SM_CHANGE = 33,
    IB_AE_GID_CHANGE = 34,
    IB_AE_RESET_4_RMV = 35,
    IB_AE_CQ_OVERFLOW = 36,
    IB_AE_UNKNOWN = 37
} ib_async_event_t;

typedef struct {
    ib_async_event_t code;
    uint64_t vendor_specific;
    IBAL_PTR64(void *context, context);
    union {
        IBAL_PTR64(ib_ca_handle_t h_ca, h_ca);
        IBAL_PTR64(ib_cq_handle_t h_cq, h_cq);
        IBAL_PTR64(ib_qp_handle_t h_qp, h_qp);
        IBAL_PTR64(ib_srq_handle_t h_srq, h_srq);
    } handle;
    uint8_t port_number;
} ib_async_event_rec_t;

typedef void (*ib_pfn_event_cb_t)(ib_async_event_rec_t *p_event_rec);

#endif
