/*
 * Base types, statuses and handles.
 *
 * Our own statement of the ABI, in the names of the public headers of OpenFabrics for Windows, for x64.
 * The crate ibal-sys says the same in Rust; its test `abi` (feature abi-check) compiles both and compares
 * them.
 *
 * With the WDK included before, its GUID and INTERFACE are used.
 */
#ifndef IBAL_BASE_H
#define IBAL_BASE_H

#include <stddef.h>
#include <stdint.h>

#if !defined(_WDMDDK_) && !defined(_NTDDK_)
typedef struct _GUID {
    uint32_t Data1;
    uint16_t Data2;
    uint16_t Data3;
    uint8_t Data4[8];
} GUID;

typedef struct _INTERFACE {
    uint16_t Size;
    uint16_t Version;
    void *Context;
    void (*InterfaceReference)(void *Context);
    void (*InterfaceDereference)(void *Context);
} INTERFACE;

typedef int32_t NTSTATUS;
#endif

/* Big-endian in memory. */
typedef uint16_t ib_net16_t;
typedef uint32_t ib_net32_t;
typedef uint64_t ib_net64_t;

typedef int32_t boolean_t;

/* A pointer that takes eight bytes on every target. */
#define IBAL_PTR64(declaration, name) \
    union { \
        declaration; \
        uint64_t name##_padding; \
    }

#pragma pack(push, 1)
typedef union {
    uint8_t raw[16];
    struct {
        ib_net64_t prefix;
        ib_net64_t interface_id;
    } unicast;
} ib_gid_t;
#pragma pack(pop)

typedef struct _ib_al *ib_al_handle_t;
typedef struct _al_pnp *ib_pnp_handle_t;
typedef struct _al_query *ib_query_handle_t;
typedef struct _al_listen *ib_listen_handle_t;
typedef struct _ib_ca *ib_ca_handle_t;
typedef struct _ib_pd *ib_pd_handle_t;
typedef struct _ib_mr *ib_mr_handle_t;
typedef struct _ib_qp *ib_qp_handle_t;
typedef struct _ib_srq *ib_srq_handle_t;
typedef struct _ib_cq *ib_cq_handle_t;
typedef struct _ib_av *ib_av_handle_t;
typedef struct _ib_mcast *ib_mcast_handle_t;
typedef struct _cl_waitobj *cl_waitobj_handle_t;

typedef uint32_t ib_al_flags_t;
#define IB_FLAGS_SYNC 0x00000001u

typedef void (*ib_pfn_destroy_cb_t)(void *context);
#define ib_sync_destroy ((ib_pfn_destroy_cb_t)(intptr_t)-1)

typedef enum {
    IB_SUCCESS = 0,
    IB_INSUFFICIENT_RESOURCES = 1,
    IB_INSUFFICIENT_MEMORY = 2,
    IB_INVALID_PARAMETER = 3,
    IB_INVALID_SETTING = 4,
    IB_NOT_FOUND = 5,
    IB_TIMEOUT = 6,
    IB_CANCELED = 7,
    IB_INTERRUPTED = 8,
    IB_INVALID_PERMISSION = 9,
    IB_UNSUPPORTED = 10,
    IB_OVERFLOW = 11,
    IB_MAX_MCAST_QPS_REACHED = 12,
    IB_INVALID_QP_STATE = 13,
    IB_INVALID_APM_STATE = 14,
    IB_INVALID_PORT_STATE = 15,
    IB_INVALID_STATE = 16,
    IB_RESOURCE_BUSY = 17,
    IB_INVALID_PKEY = 18,
    IB_INVALID_LKEY = 19,
    IB_INVALID_RKEY = 20,
    IB_INVALID_MAX_WRS = 21,
    IB_INVALID_MAX_SGE = 22,
    IB_INVALID_CQ_SIZE = 23,
    IB_INVALID_SRQ_SIZE = 24,
    IB_INVALID_SERVICE_TYPE = 25,
    IB_INVALID_GID = 26,
    IB_INVALID_LID = 27,
    IB_INVALID_GUID = 28,
    IB_INVALID_GUID_MASK = 29,
    IB_INVALID_CA_HANDLE = 30,
    IB_INVALID_AV_HANDLE = 31,
    IB_INVALID_CQ_HANDLE = 32,
    IB_INVALID_QP_HANDLE = 33,
    IB_INVALID_SRQ_HANDLE = 34,
    IB_INVALID_PD_HANDLE = 35,
    IB_INVALID_MR_HANDLE = 36,
    IB_INVALID_FMR_HANDLE = 37,
    IB_INVALID_MW_HANDLE = 38,
    IB_INVALID_MCAST_HANDLE = 39,
    IB_INVALID_CALLBACK = 40,
    IB_INVALID_AL_HANDLE = 41,
    IB_INVALID_HANDLE = 42,
    IB_ERROR = 43,
    IB_REMOTE_ERROR = 44,
    IB_VERBS_PROCESSING_DONE = 45,
    IB_INVALID_WR_TYPE = 46,
    IB_QP_IN_TIMEWAIT = 47,
    IB_EE_IN_TIMEWAIT = 48,
    IB_INVALID_PORT = 49,
    IB_NOT_DONE = 50,
    IB_INVALID_INDEX = 51,
    IB_NO_MATCH = 52,
    IB_PENDING = 53,
    IB_UNKNOWN_ERROR = 54
} ib_api_status_t;

#endif
