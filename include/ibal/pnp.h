/*
 * PnP events of channel adapters and ports.
 *
 * Our own statement of the ABI, in the names of the public headers of OpenFabrics for Windows, for x64.
 * The crate ibal-sys says the same in Rust; its test `abi` (feature abi-check) compiles both and compares
 * them.
 */
#ifndef IBAL_PNP_H
#define IBAL_PNP_H

#include "ca.h"

typedef uint32_t ib_pnp_class_t;
#define IB_PNP_CA 0x00000001u
#define IB_PNP_PORT 0x00000002u
#define IB_PNP_FLAG_REG_SYNC 0x40000000u
#define IB_PNP_FLAG_REG_COMPLETE 0x80000000u

typedef uint32_t ib_pnp_event_t;
#define IB_PNP_EVENT_ADD 0x00001000u
#define IB_PNP_EVENT_REMOVE 0x00002000u
#define IB_PNP_EVENT_INIT 0x00008000u
#define IB_PNP_EVENT_ARMED 0x00010000u
#define IB_PNP_EVENT_ACTIVE 0x00020000u
#define IB_PNP_EVENT_DOWN 0x00040000u
#define IB_PNP_EVENT_PKEY 0x00080000u
#define IB_PNP_EVENT_SM 0x00100000u
#define IB_PNP_EVENT_GID 0x00200000u
#define IB_PNP_EVENT_LID 0x00400000u
#define IB_PNP_EVENT_SUBNET 0x00800000u

typedef struct {
    ib_pnp_event_t pnp_event;
    IBAL_PTR64(ib_pnp_handle_t h_pnp, h_pnp);
    IBAL_PTR64(ib_pnp_handle_t h_ioc_event, h_ioc_event);
    IBAL_PTR64(void *pnp_context, pnp_context);
    IBAL_PTR64(void *context, context);
    ib_net64_t guid;
    ib_net64_t ca_guid;
} ib_pnp_rec_t;

typedef struct {
    ib_pnp_rec_t pnp_rec;
    IBAL_PTR64(ib_ca_attr_t *p_ca_attr, p_ca_attr);
} ib_pnp_ca_rec_t;

typedef struct {
    ib_pnp_rec_t pnp_rec;
    IBAL_PTR64(ib_ca_attr_t *p_ca_attr, p_ca_attr);
    IBAL_PTR64(ib_port_attr_t *p_port_attr, p_port_attr);
} ib_pnp_port_rec_t;

typedef ib_api_status_t (*ib_pfn_pnp_cb_t)(ib_pnp_rec_t *p_pnp_rec);

typedef struct {
    ib_pnp_class_t pnp_class;
    const void *pnp_context;
    ib_pfn_pnp_cb_t pfn_pnp_cb;
} ib_pnp_req_t;

#endif
