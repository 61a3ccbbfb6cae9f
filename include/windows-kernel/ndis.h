/*
 * NDIS 6 structures that MinGW-w64 lacks: its ndis.h ends with NDIS 5 for miniports. Order and types of the members
 * follow the pages of the DDI reference (ndis, nbl, nblapi, oidrequest) for NDIS 6.80.
 */
#pragma once
#include "nt.h"

#define NDIS_MAX_PHYS_ADDRESS_LENGTH 32
#define MaxNetBufferListInfo 27

typedef struct NDIS_OBJECT_HEADER {
    UCHAR Type, Revision;
    USHORT Size;
} NDIS_OBJECT_HEADER;

/* --- NET_BUFFER_LIST --- */

typedef struct NET_BUFFER {
    union {
        struct {
            struct NET_BUFFER *Next;
            PVOID CurrentMdl;
            ULONG CurrentMdlOffset;
            union {
                ULONG DataLength;
                SIZE_T stDataLength;
            };
            PVOID MdlChain;
            ULONG DataOffset;
        };
        SLIST_HEADER Link;
    };
    USHORT ChecksumBias, Reserved;
    NDIS_HANDLE NdisPoolHandle;
    POOL_ALIGNED PVOID NdisReserved[2];
    POOL_ALIGNED PVOID ProtocolReserved[6];
    POOL_ALIGNED PVOID MiniportReserved[4];
    LONGLONG DataPhysicalAddress;
    union {
        PVOID SharedMemoryInfo;
        PVOID ScatterGatherList;
    };
} NET_BUFFER;

typedef struct NET_BUFFER_LIST_CONTEXT {
    struct NET_BUFFER_LIST_CONTEXT *Next;
    USHORT Size, Offset;
    POOL_ALIGNED UCHAR ContextData[];
} NET_BUFFER_LIST_CONTEXT;

typedef struct NET_BUFFER_LIST {
    union {
        struct {
            struct NET_BUFFER_LIST *Next;
            NET_BUFFER *FirstNetBuffer;
        };
        SLIST_HEADER Link;
    };
    NET_BUFFER_LIST_CONTEXT *Context;
    struct NET_BUFFER_LIST *ParentNetBufferList;
    NDIS_HANDLE NdisPoolHandle;
    POOL_ALIGNED PVOID NdisReserved[2];
    POOL_ALIGNED PVOID ProtocolReserved[4];
    POOL_ALIGNED PVOID MiniportReserved[2];
    PVOID Scratch;
    NDIS_HANDLE SourceHandle;
    ULONG NblFlags;
    LONG ChildRefCount;
    ULONG Flags;
    union {
        NDIS_STATUS Status;
        ULONG NdisReserved2;
    };
    PVOID NetBufferListInfo[MaxNetBufferListInfo];
} NET_BUFFER_LIST;

typedef struct NET_BUFFER_LIST_POOL_PARAMETERS {
    NDIS_OBJECT_HEADER Header;
    UCHAR ProtocolId;
    BOOLEAN fAllocateNetBuffer;
    USHORT ContextSize;
    ULONG PoolTag, DataSize, Flags;
} NET_BUFFER_LIST_POOL_PARAMETERS;

/* --- The miniport and what NDIS passes to it --- */

typedef struct NDIS_MINIPORT_DRIVER_CHARACTERISTICS {
    NDIS_OBJECT_HEADER Header;
    UCHAR MajorNdisVersion, MinorNdisVersion, MajorDriverVersion, MinorDriverVersion;
    ULONG Flags;
    ROUTINE SetOptionsHandler;
    ROUTINE InitializeHandlerEx;
    ROUTINE HaltHandlerEx;
    ROUTINE UnloadHandler;
    ROUTINE PauseHandler;
    ROUTINE RestartHandler;
    ROUTINE OidRequestHandler;
    ROUTINE SendNetBufferListsHandler;
    ROUTINE ReturnNetBufferListsHandler;
    ROUTINE CancelSendHandler;
    ROUTINE CheckForHangHandlerEx;
    ROUTINE ResetHandlerEx;
    ROUTINE DevicePnPEventNotifyHandler;
    ROUTINE ShutdownHandlerEx;
    ROUTINE CancelOidRequestHandler;
    ROUTINE DirectOidRequestHandler;
    ROUTINE CancelDirectOidRequestHandler;
    ROUTINE SynchronousOidRequestHandler;
} NDIS_MINIPORT_DRIVER_CHARACTERISTICS;

typedef struct NDIS_MINIPORT_INIT_PARAMETERS {
    NDIS_OBJECT_HEADER Header;
    ULONG Flags;
    PVOID AllocatedResources;
    NDIS_HANDLE IMDeviceInstanceContext, MiniportAddDeviceContext;
    ULONG IfIndex;
    NET_LUID NetLuid;
    PVOID DefaultPortAuthStates, PciDeviceCustomProperties;
} NDIS_MINIPORT_INIT_PARAMETERS;

typedef struct NDIS_MINIPORT_PAUSE_PARAMETERS {
    NDIS_OBJECT_HEADER Header;
    ULONG Flags, PauseReason;
} NDIS_MINIPORT_PAUSE_PARAMETERS;

typedef struct NDIS_RESTART_ATTRIBUTES {
    struct NDIS_RESTART_ATTRIBUTES *Next;
    ULONG Oid, DataLength;
    POOL_ALIGNED UCHAR Data[1];
} NDIS_RESTART_ATTRIBUTES;

typedef struct NDIS_MINIPORT_RESTART_PARAMETERS {
    NDIS_OBJECT_HEADER Header;
    NDIS_RESTART_ATTRIBUTES *RestartAttributes;
    ULONG Flags;
} NDIS_MINIPORT_RESTART_PARAMETERS;

typedef struct NDIS_RESTART_GENERAL_ATTRIBUTES {
    NDIS_OBJECT_HEADER Header;
    ULONG MtuSize;
    ULONG64 MaxXmitLinkSpeed, MaxRcvLinkSpeed;
    ULONG LookaheadSize, MacOptions, SupportedPacketFilters, MaxMulticastListSize;
    PVOID RecvScaleCapabilities;
    ENUM AccessType;
    ULONG Flags;
    ENUM ConnectionType;
    ULONG SupportedStatistics, DataBackFillSize, ContextBackFillSize;
    ULONG *SupportedOidList;
    ULONG SupportedOidListLength, MaxLookaheadSizeAccessed;
} NDIS_RESTART_GENERAL_ATTRIBUTES;

typedef struct NET_DEVICE_PNP_EVENT {
    NDIS_OBJECT_HEADER Header;
    ULONG PortNumber;
    ENUM DevicePnPEvent;
    PVOID InformationBuffer;
    ULONG InformationBufferLength;
    UCHAR NdisReserved[2 * sizeof(PVOID)];
} NET_DEVICE_PNP_EVENT;

typedef struct NDIS_OID_REQUEST {
    NDIS_OBJECT_HEADER Header;
    ENUM RequestType;
    ULONG PortNumber;
    UINT Timeout;
    PVOID RequestId;
    NDIS_HANDLE RequestHandle;
    union {
        struct {
            ULONG Oid;
            PVOID InformationBuffer;
            UINT InformationBufferLength, BytesWritten, BytesNeeded;
        } QUERY_INFORMATION;
        struct {
            ULONG Oid;
            PVOID InformationBuffer;
            UINT InformationBufferLength, BytesRead, BytesNeeded;
        } SET_INFORMATION;
        struct {
            ULONG Oid;
            PVOID InformationBuffer;
            ULONG InputBufferLength, OutputBufferLength, MethodId;
            UINT BytesWritten, BytesRead, BytesNeeded;
        } METHOD_INFORMATION;
    } DATA;
    UCHAR NdisReserved[16 * sizeof(PVOID)];
    UCHAR MiniportReserved[2 * sizeof(PVOID)];
    UCHAR SourceReserved[2 * sizeof(PVOID)];
    UCHAR SupportedRevision, Reserved1;
    USHORT Reserved2;
    ULONG SwitchId, VPortId, Flags;
} NDIS_OID_REQUEST;

/* --- What a miniport tells NDIS --- */

typedef struct NDIS_MINIPORT_ADAPTER_REGISTRATION_ATTRIBUTES {
    NDIS_OBJECT_HEADER Header;
    NDIS_HANDLE MiniportAdapterContext;
    ULONG AttributeFlags;
    UINT CheckForHangTimeInSeconds;
    ENUM InterfaceType;
} NDIS_MINIPORT_ADAPTER_REGISTRATION_ATTRIBUTES;

typedef struct NDIS_MINIPORT_ADAPTER_GENERAL_ATTRIBUTES {
    NDIS_OBJECT_HEADER Header;
    ULONG Flags;
    ENUM MediaType, PhysicalMediumType;
    ULONG MtuSize;
    ULONG64 MaxXmitLinkSpeed, XmitLinkSpeed, MaxRcvLinkSpeed, RcvLinkSpeed;
    ENUM MediaConnectState, MediaDuplexState;
    ULONG LookaheadSize;
    PVOID PowerManagementCapabilities;
    ULONG MacOptions, SupportedPacketFilters, MaxMulticastListSize;
    USHORT MacAddressLength;
    UCHAR PermanentMacAddress[NDIS_MAX_PHYS_ADDRESS_LENGTH], CurrentMacAddress[NDIS_MAX_PHYS_ADDRESS_LENGTH];
    PVOID RecvScaleCapabilities;
    ENUM AccessType, DirectionType, ConnectionType;
    USHORT IfType;
    BOOLEAN IfConnectorPresent;
    ULONG SupportedStatistics;
    ENUM SupportedPauseFunctions;
    ULONG DataBackFillSize, ContextBackFillSize;
    ULONG *SupportedOidList;
    ULONG SupportedOidListLength, AutoNegotiationFlags;
    PVOID PowerManagementCapabilitiesEx;
} NDIS_MINIPORT_ADAPTER_GENERAL_ATTRIBUTES;

typedef struct NDIS_MINIPORT_ADAPTER_OFFLOAD_ATTRIBUTES {
    NDIS_OBJECT_HEADER Header;
    PVOID DefaultOffloadConfiguration, HardwareOffloadCapabilities;
    PVOID DefaultTcpConnectionOffloadConfiguration, TcpConnectionOffloadHardwareCapabilities;
} NDIS_MINIPORT_ADAPTER_OFFLOAD_ATTRIBUTES;

typedef struct NDIS_STATUS_INDICATION {
    NDIS_OBJECT_HEADER Header;
    NDIS_HANDLE SourceHandle;
    ULONG PortNumber;
    NDIS_STATUS StatusCode;
    ULONG Flags;
    NDIS_HANDLE DestinationHandle;
    PVOID RequestId, StatusBuffer;
    ULONG StatusBufferSize;
    GUID Guid;
    PVOID NdisReserved[4];
} NDIS_STATUS_INDICATION;

typedef struct NDIS_TIMER_CHARACTERISTICS {
    NDIS_OBJECT_HEADER Header;
    ULONG AllocationTag;
    ROUTINE TimerFunction;
    PVOID FunctionContext;
} NDIS_TIMER_CHARACTERISTICS;

typedef struct NDIS_SG_DMA_DESCRIPTION {
    NDIS_OBJECT_HEADER Header;
    ULONG Flags, MaximumPhysicalMapping;
    ROUTINE ProcessSGListHandler, SharedMemAllocateCompleteHandler;
    ULONG ScatterGatherListSize;
} NDIS_SG_DMA_DESCRIPTION;

/* --- Configuration --- */

typedef struct NDIS_CONFIGURATION_OBJECT {
    NDIS_OBJECT_HEADER Header;
    NDIS_HANDLE NdisHandle;
    ULONG Flags;
} NDIS_CONFIGURATION_OBJECT;

typedef struct BINARY_DATA {
    USHORT Length;
    PVOID Buffer;
} BINARY_DATA;

typedef struct NDIS_CONFIGURATION_PARAMETER {
    ENUM ParameterType;
    union {
        ULONG IntegerData;
        UNICODE_STRING StringData;
        BINARY_DATA BinaryData;
    } ParameterData;
} NDIS_CONFIGURATION_PARAMETER;
