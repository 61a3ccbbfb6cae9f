//! What a miniport tells NDIS about its adapter: `NdisMSetMiniportAttributes` (`ndis.h`).

use super::{
    NDIS_HANDLE, NDIS_INTERFACE_TYPE, NDIS_MAX_PHYS_ADDRESS_LENGTH, NDIS_MEDIA_CONNECT_STATE,
    NDIS_MEDIA_DUPLEX_STATE, NDIS_MEDIUM, NDIS_OBJECT_HEADER, NDIS_OFFLOAD, NDIS_OID, NDIS_PHYSICAL_MEDIUM,
    NDIS_PM_CAPABILITIES, NDIS_PNP_CAPABILITIES, NDIS_SUPPORTED_PAUSE_FUNCTIONS, NET_IF_ACCESS_TYPE,
    NET_IF_CONNECTION_TYPE, NET_IF_DIRECTION_TYPE, NET_IFTYPE,
};
use crate::nt::{BOOLEAN, PVOID};

bitflags::bitflags! {
    /// `AttributeFlags` of the registration attributes
    /// (ndis/ns-ndis-_ndis_miniport_adapter_registration_attributes).
    #[repr(transparent)]
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct NDIS_MINIPORT_ATTRIBUTES: u32 {
        const HARDWARE_DEVICE = 0x0000_0001;
        const NDIS_WDM = 0x0000_0002;
        const SURPRISE_REMOVE_OK = 0x0000_0004;
        const NOT_CO_NDIS = 0x0000_0008;
        const DO_NOT_BIND_TO_ALL_CO = 0x0000_0010;
        const NO_HALT_ON_SUSPEND = 0x0000_0020;
        const BUS_MASTER = 0x0000_0040;
        const CONTROLS_DEFAULT_PORT = 0x0000_0080;
        const NO_PAUSE_ON_SUSPEND = 0x0000_0100;
        const NO_OID_INTERCEPT_ON_NONDEFAULT_PORTS = 0x0000_0200;
        const REGISTER_BUGCHECK_CALLBACK = 0x0000_0400;
    }
}

/// ndis/ns-ndis-_ndis_miniport_adapter_registration_attributes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct NDIS_MINIPORT_ADAPTER_REGISTRATION_ATTRIBUTES {
    pub Header: NDIS_OBJECT_HEADER,
    pub MiniportAdapterContext: NDIS_HANDLE,
    pub AttributeFlags: u32,
    pub CheckForHangTimeInSeconds: u32,
    pub InterfaceType: NDIS_INTERFACE_TYPE,
}
/// Revision 2 (NDIS 6.30) has the members of revision 1.
pub const NDIS_MINIPORT_ADAPTER_REGISTRATION_ATTRIBUTES_REVISION_2: u8 = 2;
pub const NDIS_SIZEOF_MINIPORT_ADAPTER_REGISTRATION_ATTRIBUTES_REVISION_2: u16 = 28;

/// ndis/ns-ndis-_ndis_miniport_adapter_general_attributes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct NDIS_MINIPORT_ADAPTER_GENERAL_ATTRIBUTES {
    pub Header: NDIS_OBJECT_HEADER,
    pub Flags: u32,
    pub MediaType: NDIS_MEDIUM,
    pub PhysicalMediumType: NDIS_PHYSICAL_MEDIUM,
    pub MtuSize: u32,
    pub MaxXmitLinkSpeed: u64,
    pub XmitLinkSpeed: u64,
    pub MaxRcvLinkSpeed: u64,
    pub RcvLinkSpeed: u64,
    pub MediaConnectState: NDIS_MEDIA_CONNECT_STATE,
    pub MediaDuplexState: NDIS_MEDIA_DUPLEX_STATE,
    pub LookaheadSize: u32,
    pub PowerManagementCapabilities: *mut NDIS_PNP_CAPABILITIES,
    pub MacOptions: u32,
    pub SupportedPacketFilters: u32,
    pub MaxMulticastListSize: u32,
    pub MacAddressLength: u16,
    pub PermanentMacAddress: [u8; NDIS_MAX_PHYS_ADDRESS_LENGTH],
    pub CurrentMacAddress: [u8; NDIS_MAX_PHYS_ADDRESS_LENGTH],
    pub RecvScaleCapabilities: PVOID,
    pub AccessType: NET_IF_ACCESS_TYPE,
    pub DirectionType: NET_IF_DIRECTION_TYPE,
    pub ConnectionType: NET_IF_CONNECTION_TYPE,
    pub IfType: NET_IFTYPE,
    pub IfConnectorPresent: BOOLEAN,
    pub SupportedStatistics: u32,
    pub SupportedPauseFunctions: NDIS_SUPPORTED_PAUSE_FUNCTIONS,
    pub DataBackFillSize: u32,
    pub ContextBackFillSize: u32,
    pub SupportedOidList: *mut NDIS_OID,
    pub SupportedOidListLength: u32,
    pub AutoNegotiationFlags: u32,
    /// Revision 2 (NDIS 6.20) and later.
    pub PowerManagementCapabilitiesEx: *mut NDIS_PM_CAPABILITIES,
}
pub const NDIS_MINIPORT_ADAPTER_GENERAL_ATTRIBUTES_REVISION_2: u8 = 2;
pub const NDIS_SIZEOF_MINIPORT_ADAPTER_GENERAL_ATTRIBUTES_REVISION_2: u16 = 224;

/// ndis/ns-ndis-_ndis_miniport_adapter_offload_attributes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct NDIS_MINIPORT_ADAPTER_OFFLOAD_ATTRIBUTES {
    pub Header: NDIS_OBJECT_HEADER,
    pub DefaultOffloadConfiguration: *mut NDIS_OFFLOAD,
    pub HardwareOffloadCapabilities: *mut NDIS_OFFLOAD,
    pub DefaultTcpConnectionOffloadConfiguration: PVOID,
    pub TcpConnectionOffloadHardwareCapabilities: PVOID,
}
pub const NDIS_MINIPORT_ADAPTER_OFFLOAD_ATTRIBUTES_REVISION_1: u8 = 1;
pub const NDIS_SIZEOF_MINIPORT_ADAPTER_OFFLOAD_ATTRIBUTES_REVISION_1: u16 = 40;

/// Any of the attribute structures; `Header.Type` says which (ndis/ns-ndis-_ndis_miniport_adapter_attributes).
#[repr(C)]
#[derive(Clone, Copy)]
pub union NDIS_MINIPORT_ADAPTER_ATTRIBUTES {
    pub Header: NDIS_OBJECT_HEADER,
    pub RegistrationAttributes: NDIS_MINIPORT_ADAPTER_REGISTRATION_ATTRIBUTES,
    pub GeneralAttributes: NDIS_MINIPORT_ADAPTER_GENERAL_ATTRIBUTES,
    pub OffloadAttributes: NDIS_MINIPORT_ADAPTER_OFFLOAD_ATTRIBUTES,
}

layout! {
    NDIS_MINIPORT_ADAPTER_REGISTRATION_ATTRIBUTES: 32, 8 {
        Header @ 0, MiniportAdapterContext @ 8, AttributeFlags @ 16, CheckForHangTimeInSeconds @ 20,
        InterfaceType @ 24
    }
    NDIS_MINIPORT_ADAPTER_GENERAL_ATTRIBUTES: 224, 8 {
        Header @ 0, Flags @ 4, MediaType @ 8, PhysicalMediumType @ 12, MtuSize @ 16, MaxXmitLinkSpeed @ 24,
        XmitLinkSpeed @ 32, MaxRcvLinkSpeed @ 40, RcvLinkSpeed @ 48, MediaConnectState @ 56, MediaDuplexState @ 60,
        LookaheadSize @ 64, PowerManagementCapabilities @ 72, MacOptions @ 80, SupportedPacketFilters @ 84,
        MaxMulticastListSize @ 88, MacAddressLength @ 92, PermanentMacAddress @ 94, CurrentMacAddress @ 126,
        RecvScaleCapabilities @ 160, AccessType @ 168, DirectionType @ 172, ConnectionType @ 176, IfType @ 180,
        IfConnectorPresent @ 182, SupportedStatistics @ 184, SupportedPauseFunctions @ 188, DataBackFillSize @ 192,
        ContextBackFillSize @ 196, SupportedOidList @ 200, SupportedOidListLength @ 208, AutoNegotiationFlags @ 212,
        PowerManagementCapabilitiesEx @ 216
    }
    NDIS_MINIPORT_ADAPTER_OFFLOAD_ATTRIBUTES: 40, 8 {
        Header @ 0, DefaultOffloadConfiguration @ 8, HardwareOffloadCapabilities @ 16,
        DefaultTcpConnectionOffloadConfiguration @ 24, TcpConnectionOffloadHardwareCapabilities @ 32
    }
}
