/*
 * Subnet administration: MADs, records, queries, multicast membership.
 *
 * Our own statement of the ABI, in the names of the public headers of OpenFabrics for Windows, for x64.
 * The crate ibal-sys says the same in Rust; its test `abi` (feature abi-check) compiles both and compares
 * them.
 */
#ifndef IBAL_SA_H
#define IBAL_SA_H

#include "qp.h"
#include "work.h"

#pragma pack(push, 1)
typedef struct {
    uint8_t base_ver;
    uint8_t mgmt_class;
    uint8_t class_ver;
    uint8_t method;
    ib_net16_t status;
    ib_net16_t class_spec;
    ib_net64_t trans_id;
    ib_net16_t attr_id;
    ib_net16_t resv;
    ib_net32_t attr_mod;
} ib_mad_t;

#define IB_SA_DATA_SIZE 200
typedef struct {
    uint8_t base_ver;
    uint8_t mgmt_class;
    uint8_t class_ver;
    uint8_t method;
    ib_net16_t status;
    ib_net16_t resv;
    ib_net64_t trans_id;
    ib_net16_t attr_id;
    ib_net16_t resv1;
    ib_net32_t attr_mod;
    uint8_t rmpp_version;
    uint8_t rmpp_type;
    uint8_t rmpp_flags;
    uint8_t rmpp_status;
    ib_net32_t seg_num;
    ib_net32_t paylen_newwin;
    ib_net64_t sm_key;
    ib_net16_t attr_offset;
    ib_net16_t resv3;
    ib_net64_t comp_mask;
    uint8_t data[IB_SA_DATA_SIZE];
} ib_sa_mad_t;

typedef struct {
    uint8_t base_ver;
    uint8_t class_ver;
    ib_net16_t cap_mask;
    ib_net32_t cap_mask2_resp_time;
    ib_gid_t redir_gid;
    ib_net32_t redir_tc_sl_fl;
    ib_net16_t redir_lid;
    ib_net16_t redir_pkey;
    ib_net32_t redir_qp;
    ib_net32_t redir_qkey;
    ib_gid_t trap_gid;
    ib_net32_t trap_tc_sl_fl;
    ib_net16_t trap_lid;
    ib_net16_t trap_pkey;
    ib_net32_t trap_hop_qp;
    ib_net32_t trap_qkey;
} ib_class_port_info_t;

typedef struct {
    ib_net64_t service_id;
    ib_gid_t dgid;
    ib_gid_t sgid;
    ib_net16_t dlid;
    ib_net16_t slid;
    ib_net32_t hop_flow_raw;
    uint8_t tclass;
    uint8_t num_path;
    ib_net16_t pkey;
    ib_net16_t qos_class_sl;
    uint8_t mtu;
    uint8_t rate;
    uint8_t pkt_life;
    uint8_t preference;
    uint8_t resv2[6];
} ib_path_rec_t;

typedef struct {
    ib_gid_t mgid;
    ib_gid_t port_gid;
    ib_net32_t qkey;
    ib_net16_t mlid;
    uint8_t mtu;
    uint8_t tclass;
    ib_net16_t pkey;
    uint8_t rate;
    uint8_t pkt_life;
    ib_net32_t sl_flow_hop;
    uint8_t scope_state;
    uint8_t proxy_join;
    uint8_t reserved[2];
    uint8_t pad[4];
} ib_member_rec_t;

typedef struct {
    ib_net64_t m_key;
    ib_net64_t subnet_prefix;
    ib_net16_t base_lid;
    ib_net16_t master_sm_base_lid;
    ib_net32_t capability_mask;
    ib_net16_t diag_code;
    ib_net16_t m_key_lease_period;
    uint8_t local_port_num;
    uint8_t link_width_enabled;
    uint8_t link_width_supported;
    uint8_t link_width_active;
    uint8_t state_info1;
    uint8_t state_info2;
    uint8_t mkey_lmc;
    uint8_t link_speed;
    uint8_t mtu_smsl;
    uint8_t vl_cap;
    uint8_t vl_high_limit;
    uint8_t vl_arb_high_cap;
    uint8_t vl_arb_low_cap;
    uint8_t mtu_cap;
    uint8_t vl_stall_life;
    uint8_t vl_enforce;
    ib_net16_t m_key_violations;
    ib_net16_t p_key_violations;
    ib_net16_t q_key_violations;
    uint8_t guid_cap;
    uint8_t subnet_timeout;
    uint8_t resp_time_value;
    uint8_t error_threshold;
    ib_net16_t max_credit_hint;
    ib_net32_t link_rt_latency;
    ib_net16_t capability_mask2;
    uint8_t link_speed_ext;
    uint8_t link_speed_ext_enabled;
} ib_port_info_t;

typedef struct {
    ib_net16_t lid;
    uint8_t port_num;
    uint8_t options;
    ib_port_info_t port_info;
    uint8_t pad[4];
} ib_portinfo_record_t;

typedef struct {
    ib_net64_t service_id;
    ib_gid_t service_gid;
    ib_net16_t service_pkey;
    ib_net16_t resv;
    ib_net32_t service_lease;
    uint8_t service_key[16];
    uint8_t service_name[64];
    uint8_t service_data8[16];
    ib_net16_t service_data16[8];
    ib_net32_t service_data32[4];
    ib_net64_t service_data64[2];
} ib_service_record_t;
#pragma pack(pop)

typedef struct _ib_mad_element {
    IBAL_PTR64(struct _ib_mad_element *p_next, p_next);
    IBAL_PTR64(const void *context1, context1);
    IBAL_PTR64(const void *context2, context2);
    IBAL_PTR64(ib_mad_t *p_mad_buf, p_mad_buf);
    uint32_t size;
    uint32_t immediate_data;
    ib_net32_t remote_qp;
    IBAL_PTR64(ib_av_handle_t h_av, h_av);
    ib_send_opt_t send_opt;
    ib_net32_t remote_qkey;
    boolean_t resp_expected;
    uint32_t timeout_ms;
    uint32_t retry_cnt;
    uint8_t rmpp_version;
    ib_wc_status_t status;
    boolean_t grh_valid;
    IBAL_PTR64(ib_grh_t *p_grh, p_grh);
    uint32_t recv_opt;
    ib_net16_t remote_lid;
    uint8_t remote_sl;
    uint16_t pkey_index;
    uint8_t path_bits;
    IBAL_PTR64(void *send_context1, send_context1);
    IBAL_PTR64(void *send_context2, send_context2);
} ib_mad_element_t;

typedef enum {
    IB_QUERY_USER_DEFINED = 0,
    IB_QUERY_ALL_SVC_RECS = 1,
    IB_QUERY_SVC_REC_BY_NAME = 2,
    IB_QUERY_SVC_REC_BY_ID = 3,
    IB_QUERY_CLASS_PORT_INFO = 4,
    IB_QUERY_NODE_REC_BY_NODE_GUID = 5,
    IB_QUERY_PORT_REC_BY_LID = 6,
    IB_QUERY_VLARB_BY_LID_PORT_BLOCK = 7,
    IB_QUERY_SLVL_BY_LID_AND_PORTS = 8,
    IB_QUERY_PATH_REC_BY_PORT_GUIDS = 9,
    IB_QUERY_PATH_REC_BY_GIDS = 10,
    IB_QUERY_PATH_REC_BY_LIDS = 11
} ib_query_type_t;

typedef struct {
    uint8_t method;
    ib_net16_t attr_id;
    uint32_t attr_size;
    ib_net64_t comp_mask;
    IBAL_PTR64(void *p_attr, p_attr);
} ib_user_query_t;

typedef struct {
    ib_gid_t src_gid;
    ib_gid_t dest_gid;
} ib_gid_pair_t;

typedef struct {
    ib_net16_t src_lid;
    ib_net16_t dest_lid;
} ib_lid_pair_t;

typedef struct {
    ib_net64_t src_guid;
    ib_net64_t dest_guid;
} ib_guid_pair_t;

typedef struct {
    const void *query_context;
    ib_api_status_t status;
    ib_query_type_t query_type;
    uint32_t result_cnt;
    ib_mad_element_t *p_result_mad;
} ib_query_rec_t;

typedef void (*ib_pfn_query_cb_t)(ib_query_rec_t *p_query_rec);

typedef struct {
    ib_query_type_t query_type;
    const void *p_query_input;
    ib_net64_t port_guid;
    uint32_t timeout_ms;
    uint32_t retry_cnt;
    ib_al_flags_t flags;
    const void *query_context;
    ib_pfn_query_cb_t pfn_query_cb;
} ib_query_req_t;

typedef struct {
    IBAL_PTR64(const void *mcast_context, mcast_context);
    ib_api_status_t status;
    ib_net16_t error_status;
    IBAL_PTR64(ib_mcast_handle_t h_mcast, h_mcast);
    IBAL_PTR64(ib_member_rec_t *p_member_rec, p_member_rec);
} ib_mcast_rec_t;

typedef void (*ib_pfn_mcast_cb_t)(ib_mcast_rec_t *p_mcast_rec);

typedef struct {
    boolean_t create;
    ib_member_rec_t member_rec;
    const void *mcast_context;
    ib_pfn_mcast_cb_t pfn_mcast_cb;
    uint32_t timeout_ms;
    uint32_t retry_cnt;
    ib_al_flags_t flags;
    ib_net64_t port_guid;
    uint16_t pkey_index;
} ib_mcast_req_t;

#endif
