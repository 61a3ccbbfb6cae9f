//! Handles, object headers, versions and the enumerations that several structures share (`ntddndis.h`,
//! `objectheader.h`, `ifdef.h`).

use core::ffi::c_void;

pub type NDIS_HANDLE = *mut c_void;
pub type NDIS_STATUS = i32;
pub type NDIS_OID = u32;
pub type NDIS_PORT_NUMBER = u32;
pub const NDIS_DEFAULT_PORT_NUMBER: NDIS_PORT_NUMBER = 0;

/// Bytes reserved for a link-layer address in NDIS structures (`NDIS_MAX_PHYS_ADDRESS_LENGTH`).
pub const NDIS_MAX_PHYS_ADDRESS_LENGTH: usize = 32;

/// Version word of `NdisGetVersion`: major in the high half, minor in the low half.
pub const fn NDIS_RUNTIME_VERSION(major: u16, minor: u16) -> u32 {
    ((major as u32) << 16) | minor as u32
}
pub const NDIS_RUNTIME_VERSION_630: u32 = NDIS_RUNTIME_VERSION(6, 30);
pub const NDIS_RUNTIME_VERSION_650: u32 = NDIS_RUNTIME_VERSION(6, 50);
pub const NDIS_RUNTIME_VERSION_670: u32 = NDIS_RUNTIME_VERSION(6, 70);
pub const NDIS_RUNTIME_VERSION_680: u32 = NDIS_RUNTIME_VERSION(6, 80);
/// Windows 10 version 2004.
pub const NDIS_RUNTIME_VERSION_683: u32 = NDIS_RUNTIME_VERSION(6, 83);
/// Windows Server 2022.
pub const NDIS_RUNTIME_VERSION_685: u32 = NDIS_RUNTIME_VERSION(6, 85);

/// What an NDIS structure is and how much of it is filled in (`objectheader.h`;
/// objectheader/ns-objectheader-ndis_object_header).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NDIS_OBJECT_HEADER {
    pub Type: u8,
    pub Revision: u8,
    pub Size: u16,
}

impl NDIS_OBJECT_HEADER {
    /// A header.
    pub const fn new(object_type: u8, revision: u8, size: u16) -> Self {
        Self { Type: object_type, Revision: revision, Size: size }
    }
}

layout! {
    NDIS_OBJECT_HEADER: 4, 2 { Type @ 0, Revision @ 1, Size @ 2 }
}

pub const NDIS_OBJECT_TYPE_DEFAULT: u8 = 0x80;
pub const NDIS_OBJECT_TYPE_MINIPORT_INIT_PARAMETERS: u8 = 0x81;
pub const NDIS_OBJECT_TYPE_SG_DMA_DESCRIPTION: u8 = 0x83;
pub const NDIS_OBJECT_TYPE_MINIPORT_DRIVER_CHARACTERISTICS: u8 = 0x8A;
pub const NDIS_OBJECT_TYPE_OID_REQUEST: u8 = 0x96;
pub const NDIS_OBJECT_TYPE_TIMER_CHARACTERISTICS: u8 = 0x97;
pub const NDIS_OBJECT_TYPE_STATUS_INDICATION: u8 = 0x98;
pub const NDIS_OBJECT_TYPE_PORT_CHARACTERISTICS: u8 = 0x9C;
pub const NDIS_OBJECT_TYPE_PORT_STATE: u8 = 0x9D;
pub const NDIS_OBJECT_TYPE_MINIPORT_ADAPTER_REGISTRATION_ATTRIBUTES: u8 = 0x9E;
pub const NDIS_OBJECT_TYPE_MINIPORT_ADAPTER_GENERAL_ATTRIBUTES: u8 = 0x9F;
pub const NDIS_OBJECT_TYPE_MINIPORT_ADAPTER_OFFLOAD_ATTRIBUTES: u8 = 0xA0;
pub const NDIS_OBJECT_TYPE_RESTART_GENERAL_ATTRIBUTES: u8 = 0xA2;
pub const NDIS_OBJECT_TYPE_OFFLOAD: u8 = 0xA7;
pub const NDIS_OBJECT_TYPE_OFFLOAD_ENCAPSULATION: u8 = 0xA8;
pub const NDIS_OBJECT_TYPE_CONFIGURATION_OBJECT: u8 = 0xA9;

/// `NDIS_MEDIUM`.
pub type NDIS_MEDIUM = i32;
pub const NdisMedium802_3: NDIS_MEDIUM = 0;
pub const NdisMediumInfiniBand: NDIS_MEDIUM = 14;
pub const NdisMediumIP: NDIS_MEDIUM = 19;

/// `NDIS_PHYSICAL_MEDIUM`.
pub type NDIS_PHYSICAL_MEDIUM = i32;
pub const NdisPhysicalMediumUnspecified: NDIS_PHYSICAL_MEDIUM = 0;
pub const NdisPhysicalMediumInfiniband: NDIS_PHYSICAL_MEDIUM = 11;
pub const NdisPhysicalMedium802_3: NDIS_PHYSICAL_MEDIUM = 14;

/// `NET_IF_MEDIA_CONNECT_STATE`.
pub type NDIS_MEDIA_CONNECT_STATE = i32;
pub const MediaConnectStateUnknown: NDIS_MEDIA_CONNECT_STATE = 0;
pub const MediaConnectStateConnected: NDIS_MEDIA_CONNECT_STATE = 1;
pub const MediaConnectStateDisconnected: NDIS_MEDIA_CONNECT_STATE = 2;

/// `NET_IF_MEDIA_DUPLEX_STATE`.
pub type NDIS_MEDIA_DUPLEX_STATE = i32;
pub const MediaDuplexStateUnknown: NDIS_MEDIA_DUPLEX_STATE = 0;
pub const MediaDuplexStateHalf: NDIS_MEDIA_DUPLEX_STATE = 1;
pub const MediaDuplexStateFull: NDIS_MEDIA_DUPLEX_STATE = 2;

/// `NDIS_MEDIA_STATE` (OID_GEN_MEDIA_CONNECT_STATUS).
pub type NDIS_MEDIA_STATE = i32;
pub const NdisMediaStateConnected: NDIS_MEDIA_STATE = 0;
pub const NdisMediaStateDisconnected: NDIS_MEDIA_STATE = 1;

/// `NDIS_SUPPORTED_PAUSE_FUNCTIONS`.
pub type NDIS_SUPPORTED_PAUSE_FUNCTIONS = i32;
pub const NdisPauseFunctionsUnsupported: NDIS_SUPPORTED_PAUSE_FUNCTIONS = 0;
pub const NdisPauseFunctionsSendOnly: NDIS_SUPPORTED_PAUSE_FUNCTIONS = 1;
pub const NdisPauseFunctionsReceiveOnly: NDIS_SUPPORTED_PAUSE_FUNCTIONS = 2;
pub const NdisPauseFunctionsSendAndReceive: NDIS_SUPPORTED_PAUSE_FUNCTIONS = 3;
pub const NdisPauseFunctionsUnknown: NDIS_SUPPORTED_PAUSE_FUNCTIONS = 4;

/// `NET_IF_ACCESS_TYPE`.
pub type NET_IF_ACCESS_TYPE = i32;
pub const NET_IF_ACCESS_LOOPBACK: NET_IF_ACCESS_TYPE = 1;
pub const NET_IF_ACCESS_BROADCAST: NET_IF_ACCESS_TYPE = 2;
pub const NET_IF_ACCESS_POINT_TO_POINT: NET_IF_ACCESS_TYPE = 3;

/// `NET_IF_DIRECTION_TYPE`.
pub type NET_IF_DIRECTION_TYPE = i32;
pub const NET_IF_DIRECTION_SENDRECEIVE: NET_IF_DIRECTION_TYPE = 0;

/// `NET_IF_CONNECTION_TYPE`.
pub type NET_IF_CONNECTION_TYPE = i32;
pub const NET_IF_CONNECTION_DEDICATED: NET_IF_CONNECTION_TYPE = 1;

/// Interface types (`ipifcons.h`, IANA ifType).
pub type NET_IFTYPE = u16;
pub const IF_TYPE_ETHERNET_CSMACD: NET_IFTYPE = 6;
pub const IF_TYPE_INFINIBAND: NET_IFTYPE = 199;

/// `NDIS_INTERFACE_TYPE`.
pub type NDIS_INTERFACE_TYPE = i32;
pub const NdisInterfaceInternal: NDIS_INTERFACE_TYPE = 0;
pub const NdisInterfacePci: NDIS_INTERFACE_TYPE = 5;
pub const NdisInterfacePNPBus: NDIS_INTERFACE_TYPE = 15;

/// `NDIS_HARDWARE_STATUS` (OID_GEN_HARDWARE_STATUS).
pub type NDIS_HARDWARE_STATUS = i32;
pub const NdisHardwareStatusReady: NDIS_HARDWARE_STATUS = 0;
pub const NdisHardwareStatusInitializing: NDIS_HARDWARE_STATUS = 1;
pub const NdisHardwareStatusReset: NDIS_HARDWARE_STATUS = 2;
pub const NdisHardwareStatusClosing: NDIS_HARDWARE_STATUS = 3;
pub const NdisHardwareStatusNotReady: NDIS_HARDWARE_STATUS = 4;

bitflags::bitflags! {
    /// OID_GEN_CURRENT_PACKET_FILTER bits (network/oid-gen-current-packet-filter).
    #[repr(transparent)]
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct NDIS_PACKET_TYPE: u32 {
        const DIRECTED = 0x0000_0001;
        const MULTICAST = 0x0000_0002;
        const ALL_MULTICAST = 0x0000_0004;
        const BROADCAST = 0x0000_0008;
        const SOURCE_ROUTING = 0x0000_0010;
        const PROMISCUOUS = 0x0000_0020;
        const SMT = 0x0000_0040;
        const ALL_LOCAL = 0x0000_0080;
        const GROUP = 0x0000_1000;
        const ALL_FUNCTIONAL = 0x0000_2000;
        const FUNCTIONAL = 0x0000_4000;
        const MAC_FRAME = 0x0000_8000;
    }

    /// OID_GEN_MAC_OPTIONS bits (network/oid-gen-mac-options).
    #[repr(transparent)]
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct NDIS_MAC_OPTION: u32 {
        const COPY_LOOKAHEAD_DATA = 0x0000_0001;
        const RECEIVE_SERIALIZED = 0x0000_0002;
        const TRANSFERS_NOT_PEND = 0x0000_0004;
        const NO_LOOPBACK = 0x0000_0008;
        const FULL_DUPLEX = 0x0000_0010;
        const EOTX_INDICATION = 0x0000_0020;
        const PRIORITY_8021P = 0x0000_0040;
        const SUPPORTS_MAC_ADDRESS_OVERWRITE = 0x0000_0080;
        const RECEIVE_AT_DPC = 0x0000_0100;
        const VLAN_8021Q = 0x0000_0200;
    }
}
