//! PnP events, power management, and what a miniport indicates about its link (`ndis.h`, `ntddndis.h`).

use super::{
    NDIS_HANDLE, NDIS_MEDIA_CONNECT_STATE, NDIS_MEDIA_DUPLEX_STATE, NDIS_OBJECT_HEADER, NDIS_PORT_NUMBER,
    NDIS_STATUS, NDIS_SUPPORTED_PAUSE_FUNCTIONS,
};
use crate::nt::{GUID, PVOID};

/// ndis/ns-ndis-_net_device_pnp_event.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct NET_DEVICE_PNP_EVENT {
    pub Header: NDIS_OBJECT_HEADER,
    pub PortNumber: NDIS_PORT_NUMBER,
    pub DevicePnPEvent: NDIS_DEVICE_PNP_EVENT,
    pub InformationBuffer: PVOID,
    pub InformationBufferLength: u32,
    pub NdisReserved: [u8; 16],
}
pub const NET_DEVICE_PNP_EVENT_REVISION_1: u8 = 1;
pub const NDIS_SIZEOF_NET_DEVICE_PNP_EVENT_REVISION_1: u16 = 44;

/// `NDIS_DEVICE_PNP_EVENT` (ndis/nc-ndis-miniport_device_pnp_event_notify).
pub type NDIS_DEVICE_PNP_EVENT = i32;
pub const NdisDevicePnPEventQueryRemoved: NDIS_DEVICE_PNP_EVENT = 0;
pub const NdisDevicePnPEventRemoved: NDIS_DEVICE_PNP_EVENT = 1;
pub const NdisDevicePnPEventSurpriseRemoved: NDIS_DEVICE_PNP_EVENT = 2;
pub const NdisDevicePnPEventQueryStopped: NDIS_DEVICE_PNP_EVENT = 3;
pub const NdisDevicePnPEventStopped: NDIS_DEVICE_PNP_EVENT = 4;
pub const NdisDevicePnPEventPowerProfileChanged: NDIS_DEVICE_PNP_EVENT = 5;
pub const NdisDevicePnPEventFilterListChanged: NDIS_DEVICE_PNP_EVENT = 6;

/// Payload of NdisDevicePnPEventPowerProfileChanged.
pub const NdisPowerProfileBattery: u32 = 0;
pub const NdisPowerProfileAcOnLine: u32 = 1;

/// ndis/ns-ndis-_ndis_status_indication.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct NDIS_STATUS_INDICATION {
    pub Header: NDIS_OBJECT_HEADER,
    pub SourceHandle: NDIS_HANDLE,
    pub PortNumber: NDIS_PORT_NUMBER,
    pub StatusCode: NDIS_STATUS,
    pub Flags: u32,
    pub DestinationHandle: NDIS_HANDLE,
    pub RequestId: PVOID,
    pub StatusBuffer: PVOID,
    pub StatusBufferSize: u32,
    pub Guid: GUID,
    pub NdisReserved: [PVOID; 4],
}
pub const NDIS_STATUS_INDICATION_REVISION_1: u8 = 1;
pub const NDIS_SIZEOF_STATUS_INDICATION_REVISION_1: u16 = 112;

/// ntddndis/ns-ntddndis-_ndis_link_state. Speeds are in bits per second.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NDIS_LINK_STATE {
    pub Header: NDIS_OBJECT_HEADER,
    pub MediaConnectState: NDIS_MEDIA_CONNECT_STATE,
    pub MediaDuplexState: NDIS_MEDIA_DUPLEX_STATE,
    pub XmitLinkSpeed: u64,
    pub RcvLinkSpeed: u64,
    pub PauseFunctions: NDIS_SUPPORTED_PAUSE_FUNCTIONS,
    pub AutoNegotiationFlags: u32,
}
pub const NDIS_LINK_STATE_REVISION_1: u8 = 1;
pub const NDIS_SIZEOF_LINK_STATE_REVISION_1: u16 = 40;

pub const NDIS_LINK_STATE_XMIT_LINK_SPEED_AUTO_NEGOTIATED: u32 = 0x0000_0001;
pub const NDIS_LINK_STATE_RCV_LINK_SPEED_AUTO_NEGOTIATED: u32 = 0x0000_0002;
pub const NDIS_LINK_STATE_DUPLEX_AUTO_NEGOTIATED: u32 = 0x0000_0004;
pub const NDIS_LINK_STATE_PAUSE_FUNCTIONS_AUTO_NEGOTIATED: u32 = 0x0000_0008;
/// `NDIS_LINK_SPEED_UNKNOWN` (`NET_IF_LINK_SPEED_UNKNOWN`).
pub const NDIS_LINK_SPEED_UNKNOWN: u64 = u64::MAX;

/// Set buffer of OID_GEN_LINK_PARAMETERS (`ntddndis.h`; network/oid-gen-link-parameters).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct NDIS_LINK_PARAMETERS {
    pub Header: NDIS_OBJECT_HEADER,
    pub MediaDuplexState: NDIS_MEDIA_DUPLEX_STATE,
    pub XmitLinkSpeed: u64,
    pub RcvLinkSpeed: u64,
    pub PauseFunctions: NDIS_SUPPORTED_PAUSE_FUNCTIONS,
    pub AutoNegotiationFlags: u32,
}
pub const NDIS_LINK_PARAMETERS_REVISION_1: u8 = 1;
pub const NDIS_SIZEOF_LINK_PARAMETERS_REVISION_1: u16 = 32;

/// Answer to OID_GEN_LINK_SPEED_EX (ntddndis/ns-ntddndis-_ndis_link_speed).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct NDIS_LINK_SPEED {
    pub XmitLinkSpeed: u64,
    pub RcvLinkSpeed: u64,
}

/// ntddndis/ns-ntddndis-_ndis_oper_state.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct NDIS_OPER_STATE {
    pub Header: NDIS_OBJECT_HEADER,
    pub OperationalStatus: i32,
    pub OperationalStatusFlags: u32,
}

/// `NDIS_DEVICE_POWER_STATE` (ntddndis/ne-ntddndis-_ndis_device_power_state).
pub type NDIS_DEVICE_POWER_STATE = i32;
pub const NdisDeviceStateUnspecified: NDIS_DEVICE_POWER_STATE = 0;
pub const NdisDeviceStateD0: NDIS_DEVICE_POWER_STATE = 1;
pub const NdisDeviceStateD1: NDIS_DEVICE_POWER_STATE = 2;
pub const NdisDeviceStateD2: NDIS_DEVICE_POWER_STATE = 3;
pub const NdisDeviceStateD3: NDIS_DEVICE_POWER_STATE = 4;

/// Answer to OID_PNP_CAPABILITIES (`ntddndis.h`; network/oid-pnp-capabilities).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct NDIS_PNP_CAPABILITIES {
    pub Flags: u32,
    pub WakeUpCapabilities: NDIS_PM_WAKE_UP_CAPABILITIES,
}

/// `ntddndis.h`; network/oid-pnp-capabilities.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct NDIS_PM_WAKE_UP_CAPABILITIES {
    pub MinMagicPacketWakeUp: NDIS_DEVICE_POWER_STATE,
    pub MinPatternWakeUp: NDIS_DEVICE_POWER_STATE,
    pub MinLinkChangeWakeUp: NDIS_DEVICE_POWER_STATE,
}

/// ntddndis/ns-ntddndis-_ndis_pm_capabilities.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct NDIS_PM_CAPABILITIES {
    pub Header: NDIS_OBJECT_HEADER,
    pub Flags: u32,
    pub SupportedWoLPacketPatterns: u32,
    pub NumTotalWoLPatterns: u32,
    pub MaxWoLPatternSize: u32,
    pub MaxWoLPatternOffset: u32,
    pub MaxWoLPacketSaveBuffer: u32,
    pub SupportedProtocolOffloads: u32,
    pub NumArpOffloadIPv4Addresses: u32,
    pub NumNSOffloadIPv6Addresses: u32,
    pub MinMagicPacketWakeUp: NDIS_DEVICE_POWER_STATE,
    pub MinPatternWakeUp: NDIS_DEVICE_POWER_STATE,
    pub MinLinkChangeWakeUp: NDIS_DEVICE_POWER_STATE,
    /// Revision 2 (NDIS 6.30) and later.
    pub SupportedWakeUpEvents: u32,
    pub MediaSpecificWakeUpEvents: u32,
}
pub const NDIS_PM_CAPABILITIES_REVISION_2: u8 = 2;
pub const NDIS_SIZEOF_NDIS_PM_CAPABILITIES_REVISION_2: u16 = 60;

/// Set buffer of OID_PM_PARAMETERS (ntddndis/ns-ntddndis-_ndis_pm_parameters).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct NDIS_PM_PARAMETERS {
    pub Header: NDIS_OBJECT_HEADER,
    pub EnabledWoLPacketPatterns: u32,
    pub EnabledProtocolOffloads: u32,
    pub WakeUpFlags: u32,
    /// Revision 2 (NDIS 6.30) and later.
    pub MediaSpecificWakeUpEvents: u32,
}

layout! {
    NET_DEVICE_PNP_EVENT: 48, 8 {
        Header @ 0, PortNumber @ 4, DevicePnPEvent @ 8, InformationBuffer @ 16, InformationBufferLength @ 24,
        NdisReserved @ 28
    }
    NDIS_STATUS_INDICATION: 112, 8 {
        Header @ 0, SourceHandle @ 8, PortNumber @ 16, StatusCode @ 20, Flags @ 24, DestinationHandle @ 32,
        RequestId @ 40, StatusBuffer @ 48, StatusBufferSize @ 56, Guid @ 60, NdisReserved @ 80
    }
    NDIS_LINK_STATE: 40, 8 {
        Header @ 0, MediaConnectState @ 4, MediaDuplexState @ 8, XmitLinkSpeed @ 16, RcvLinkSpeed @ 24,
        PauseFunctions @ 32, AutoNegotiationFlags @ 36
    }
    NDIS_LINK_PARAMETERS: 32, 8 {
        Header @ 0, MediaDuplexState @ 4, XmitLinkSpeed @ 8, RcvLinkSpeed @ 16, PauseFunctions @ 24,
        AutoNegotiationFlags @ 28
    }
    NDIS_LINK_SPEED: 16, 8 { XmitLinkSpeed @ 0, RcvLinkSpeed @ 8 }
    NDIS_OPER_STATE: 12, 4 { Header @ 0, OperationalStatus @ 4, OperationalStatusFlags @ 8 }
    NDIS_PNP_CAPABILITIES: 16, 4 { Flags @ 0, WakeUpCapabilities @ 4 }
    NDIS_PM_WAKE_UP_CAPABILITIES: 12, 4 { MinMagicPacketWakeUp @ 0, MinPatternWakeUp @ 4, MinLinkChangeWakeUp @ 8 }
    NDIS_PM_CAPABILITIES: 60, 4 {
        Header @ 0, Flags @ 4, SupportedWoLPacketPatterns @ 8, NumTotalWoLPatterns @ 12, MaxWoLPatternSize @ 16,
        MaxWoLPatternOffset @ 20, MaxWoLPacketSaveBuffer @ 24, SupportedProtocolOffloads @ 28,
        NumArpOffloadIPv4Addresses @ 32, NumNSOffloadIPv6Addresses @ 36, MinMagicPacketWakeUp @ 40,
        MinPatternWakeUp @ 44, MinLinkChangeWakeUp @ 48, SupportedWakeUpEvents @ 52, MediaSpecificWakeUpEvents @ 56
    }
    NDIS_PM_PARAMETERS: 20, 4 {
        Header @ 0, EnabledWoLPacketPatterns @ 4, EnabledProtocolOffloads @ 8, WakeUpFlags @ 12,
        MediaSpecificWakeUpEvents @ 16
    }
}
