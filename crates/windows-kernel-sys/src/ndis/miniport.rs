//! The handler table, its callbacks, and what NDIS passes to them (`ndis.h`).

use super::{
    NDIS_HANDLE, NDIS_OBJECT_HEADER, NDIS_OID, NDIS_OID_REQUEST, NDIS_PORT_NUMBER, NDIS_STATUS,
    NET_BUFFER_LIST, NET_DEVICE_PNP_EVENT,
};
use crate::nt::{BOOLEAN, DRIVER_OBJECT, NET_LUID, PVOID};

/// ndis/ns-ndis-_ndis_miniport_driver_characteristics.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct NDIS_MINIPORT_DRIVER_CHARACTERISTICS {
    pub Header: NDIS_OBJECT_HEADER,
    pub MajorNdisVersion: u8,
    pub MinorNdisVersion: u8,
    pub MajorDriverVersion: u8,
    pub MinorDriverVersion: u8,
    pub Flags: u32,
    pub SetOptionsHandler: SET_OPTIONS_HANDLER,
    pub InitializeHandlerEx: MINIPORT_INITIALIZE_HANDLER,
    pub HaltHandlerEx: MINIPORT_HALT_HANDLER,
    pub UnloadHandler: MINIPORT_DRIVER_UNLOAD,
    pub PauseHandler: MINIPORT_PAUSE_HANDLER,
    pub RestartHandler: MINIPORT_RESTART_HANDLER,
    pub OidRequestHandler: MINIPORT_OID_REQUEST_HANDLER,
    pub SendNetBufferListsHandler: MINIPORT_SEND_NET_BUFFER_LISTS_HANDLER,
    pub ReturnNetBufferListsHandler: MINIPORT_RETURN_NET_BUFFER_LISTS_HANDLER,
    pub CancelSendHandler: MINIPORT_CANCEL_SEND_HANDLER,
    pub CheckForHangHandlerEx: MINIPORT_CHECK_FOR_HANG_HANDLER,
    pub ResetHandlerEx: MINIPORT_RESET_HANDLER,
    pub DevicePnPEventNotifyHandler: MINIPORT_DEVICE_PNP_EVENT_NOTIFY_HANDLER,
    pub ShutdownHandlerEx: MINIPORT_SHUTDOWN_HANDLER,
    pub CancelOidRequestHandler: MINIPORT_CANCEL_OID_REQUEST_HANDLER,
    /// Revision 2 (NDIS 6.1) and later.
    pub DirectOidRequestHandler: MINIPORT_OID_REQUEST_HANDLER,
    pub CancelDirectOidRequestHandler: MINIPORT_CANCEL_OID_REQUEST_HANDLER,
    /// Revision 3 (NDIS 6.80) and later.
    pub SynchronousOidRequestHandler: MINIPORT_OID_REQUEST_HANDLER,
}
pub const NDIS_MINIPORT_DRIVER_CHARACTERISTICS_REVISION_2: u8 = 2;
pub const NDIS_SIZEOF_MINIPORT_DRIVER_CHARACTERISTICS_REVISION_2: u16 = 152;
pub const NDIS_MINIPORT_DRIVER_CHARACTERISTICS_REVISION_3: u8 = 3;
pub const NDIS_SIZEOF_MINIPORT_DRIVER_CHARACTERISTICS_REVISION_3: u16 = 160;

/// ndis/ns-ndis-_ndis_miniport_init_parameters.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct NDIS_MINIPORT_INIT_PARAMETERS {
    pub Header: NDIS_OBJECT_HEADER,
    pub Flags: u32,
    pub AllocatedResources: PVOID,
    pub IMDeviceInstanceContext: NDIS_HANDLE,
    pub MiniportAddDeviceContext: NDIS_HANDLE,
    pub IfIndex: u32,
    pub NetLuid: NET_LUID,
    pub DefaultPortAuthStates: PVOID,
    pub PciDeviceCustomProperties: PVOID,
}
pub const NDIS_MINIPORT_INIT_PARAMETERS_REVISION_1: u8 = 1;
pub const NDIS_SIZEOF_MINIPORT_INIT_PARAMETERS_REVISION_1: u16 = 64;

/// ndis/ns-ndis-_ndis_miniport_pause_parameters.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct NDIS_MINIPORT_PAUSE_PARAMETERS {
    pub Header: NDIS_OBJECT_HEADER,
    pub Flags: u32,
    pub PauseReason: u32,
}
pub const NDIS_MINIPORT_PAUSE_PARAMETERS_REVISION_1: u8 = 1;
pub const NDIS_SIZEOF_MINIPORT_PAUSE_PARAMETERS_REVISION_1: u16 = 12;

pub const NDIS_PAUSE_NDIS_INTERNAL: u32 = 0x0000_0001;
pub const NDIS_PAUSE_LOW_POWER: u32 = 0x0000_0002;
pub const NDIS_PAUSE_BIND_PROTOCOL: u32 = 0x0000_0004;
pub const NDIS_PAUSE_UNBIND_PROTOCOL: u32 = 0x0000_0008;
pub const NDIS_PAUSE_ATTACH_FILTER: u32 = 0x0000_0010;
pub const NDIS_PAUSE_DETACH_FILTER: u32 = 0x0000_0020;
pub const NDIS_PAUSE_FILTER_RESTART_STACK: u32 = 0x0000_0040;
pub const NDIS_PAUSE_MINIPORT_DEVICE_REMOVE: u32 = 0x0000_0080;

/// ndis/ns-ndis-_ndis_miniport_restart_parameters.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct NDIS_MINIPORT_RESTART_PARAMETERS {
    pub Header: NDIS_OBJECT_HEADER,
    pub RestartAttributes: *mut NDIS_RESTART_ATTRIBUTES,
    pub Flags: u32,
}
pub const NDIS_MINIPORT_RESTART_PARAMETERS_REVISION_1: u8 = 1;
pub const NDIS_SIZEOF_MINIPORT_RESTART_PARAMETERS_REVISION_1: u16 = 20;

/// ndis/ns-ndis-_ndis_restart_attributes; `DataLength` bytes begin at `Data`.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug)]
pub struct NDIS_RESTART_ATTRIBUTES {
    pub Next: *mut NDIS_RESTART_ATTRIBUTES,
    pub Oid: NDIS_OID,
    pub DataLength: u32,
    pub Data: [u8; 16],
}

/// ndis/ns-ndis-_ndis_restart_general_attributes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct NDIS_RESTART_GENERAL_ATTRIBUTES {
    pub Header: NDIS_OBJECT_HEADER,
    pub MtuSize: u32,
    pub MaxXmitLinkSpeed: u64,
    pub MaxRcvLinkSpeed: u64,
    pub LookaheadSize: u32,
    pub MacOptions: u32,
    pub SupportedPacketFilters: u32,
    pub MaxMulticastListSize: u32,
    pub RecvScaleCapabilities: PVOID,
    pub AccessType: i32,
    pub Flags: u32,
    pub ConnectionType: i32,
    pub SupportedStatistics: u32,
    pub DataBackFillSize: u32,
    pub ContextBackFillSize: u32,
    pub SupportedOidList: *mut NDIS_OID,
    pub SupportedOidListLength: u32,
    pub MaxLookaheadSizeAccessed: u32,
}

/// Why MiniportHaltEx is called (ndis/nc-ndis-miniport_halt).
pub type NDIS_HALT_ACTION = i32;
pub const NdisHaltDeviceDisabled: NDIS_HALT_ACTION = 0;
pub const NdisHaltDeviceInstanceDeInitialized: NDIS_HALT_ACTION = 1;
pub const NdisHaltDevicePoweredDown: NDIS_HALT_ACTION = 2;
pub const NdisHaltDeviceSurpriseRemoved: NDIS_HALT_ACTION = 3;
pub const NdisHaltDeviceFailed: NDIS_HALT_ACTION = 4;
pub const NdisHaltDeviceInitializationFailed: NDIS_HALT_ACTION = 5;
pub const NdisHaltDeviceStopped: NDIS_HALT_ACTION = 6;

/// Why MiniportShutdownEx is called (ndis/nc-ndis-miniport_shutdown).
pub type NDIS_SHUTDOWN_ACTION = i32;
pub const NdisShutdownPowerOff: NDIS_SHUTDOWN_ACTION = 0;
pub const NdisShutdownBugCheck: NDIS_SHUTDOWN_ACTION = 1;

/// PASSIVE_LEVEL (ndis/nc-ndis-set_options).
pub type SET_OPTIONS_HANDLER = Option<
    unsafe extern "win64" fn(NdisDriverHandle: NDIS_HANDLE, DriverContext: NDIS_HANDLE) -> NDIS_STATUS,
>;
/// PASSIVE_LEVEL (ndis/nc-ndis-miniport_initialize).
pub type MINIPORT_INITIALIZE_HANDLER = Option<
    unsafe extern "win64" fn(
        NdisMiniportHandle: NDIS_HANDLE,
        MiniportDriverContext: NDIS_HANDLE,
        MiniportInitParameters: *mut NDIS_MINIPORT_INIT_PARAMETERS,
    ) -> NDIS_STATUS,
>;
/// PASSIVE_LEVEL (ndis/nc-ndis-miniport_halt).
pub type MINIPORT_HALT_HANDLER =
    Option<unsafe extern "win64" fn(MiniportAdapterContext: NDIS_HANDLE, HaltAction: NDIS_HALT_ACTION)>;
/// PASSIVE_LEVEL (ndis/nc-ndis-miniport_unload).
pub type MINIPORT_DRIVER_UNLOAD = Option<unsafe extern "win64" fn(DriverObject: *mut DRIVER_OBJECT)>;
/// PASSIVE_LEVEL (ndis/nc-ndis-miniport_pause).
pub type MINIPORT_PAUSE_HANDLER = Option<
    unsafe extern "win64" fn(
        MiniportAdapterContext: NDIS_HANDLE,
        PauseParameters: *mut NDIS_MINIPORT_PAUSE_PARAMETERS,
    ) -> NDIS_STATUS,
>;
/// PASSIVE_LEVEL (ndis/nc-ndis-miniport_restart).
pub type MINIPORT_RESTART_HANDLER = Option<
    unsafe extern "win64" fn(
        MiniportAdapterContext: NDIS_HANDLE,
        RestartParameters: *mut NDIS_MINIPORT_RESTART_PARAMETERS,
    ) -> NDIS_STATUS,
>;
/// PASSIVE_LEVEL; as direct or synchronous handler IRQL <= DISPATCH_LEVEL (ndis/nc-ndis-miniport_oid_request).
pub type MINIPORT_OID_REQUEST_HANDLER = Option<
    unsafe extern "win64" fn(
        MiniportAdapterContext: NDIS_HANDLE,
        OidRequest: *mut NDIS_OID_REQUEST,
    ) -> NDIS_STATUS,
>;
/// IRQL <= DISPATCH_LEVEL (ndis/nc-ndis-miniport_send_net_buffer_lists).
pub type MINIPORT_SEND_NET_BUFFER_LISTS_HANDLER = Option<
    unsafe extern "win64" fn(
        MiniportAdapterContext: NDIS_HANDLE,
        NetBufferList: *mut NET_BUFFER_LIST,
        PortNumber: NDIS_PORT_NUMBER,
        SendFlags: u32,
    ),
>;
/// IRQL <= DISPATCH_LEVEL (ndis/nc-ndis-miniport_return_net_buffer_lists).
pub type MINIPORT_RETURN_NET_BUFFER_LISTS_HANDLER = Option<
    unsafe extern "win64" fn(
        MiniportAdapterContext: NDIS_HANDLE,
        NetBufferLists: *mut NET_BUFFER_LIST,
        ReturnFlags: u32,
    ),
>;
/// IRQL <= DISPATCH_LEVEL (ndis/nc-ndis-miniport_cancel_send).
pub type MINIPORT_CANCEL_SEND_HANDLER =
    Option<unsafe extern "win64" fn(MiniportAdapterContext: NDIS_HANDLE, CancelId: PVOID)>;
/// IRQL <= DISPATCH_LEVEL (ndis/nc-ndis-miniport_check_for_hang).
pub type MINIPORT_CHECK_FOR_HANG_HANDLER =
    Option<unsafe extern "win64" fn(MiniportAdapterContext: NDIS_HANDLE) -> BOOLEAN>;
/// IRQL <= DISPATCH_LEVEL (ndis/nc-ndis-miniport_reset).
pub type MINIPORT_RESET_HANDLER = Option<
    unsafe extern "win64" fn(
        MiniportAdapterContext: NDIS_HANDLE,
        AddressingReset: *mut BOOLEAN,
    ) -> NDIS_STATUS,
>;
/// PASSIVE_LEVEL (ndis/nc-ndis-miniport_device_pnp_event_notify).
pub type MINIPORT_DEVICE_PNP_EVENT_NOTIFY_HANDLER = Option<
    unsafe extern "win64" fn(
        MiniportAdapterContext: NDIS_HANDLE,
        NetDevicePnPEvent: *mut NET_DEVICE_PNP_EVENT,
    ),
>;
/// PASSIVE_LEVEL for NdisShutdownPowerOff, HIGH_LEVEL for NdisShutdownBugCheck (ndis/nc-ndis-miniport_shutdown).
pub type MINIPORT_SHUTDOWN_HANDLER = Option<
    unsafe extern "win64" fn(MiniportAdapterContext: NDIS_HANDLE, ShutdownAction: NDIS_SHUTDOWN_ACTION),
>;
/// IRQL <= DISPATCH_LEVEL (ndis/nc-ndis-miniport_cancel_oid_request).
pub type MINIPORT_CANCEL_OID_REQUEST_HANDLER =
    Option<unsafe extern "win64" fn(MiniportAdapterContext: NDIS_HANDLE, RequestId: PVOID)>;

layout! {
    NDIS_MINIPORT_DRIVER_CHARACTERISTICS: 160, 8 {
        Header @ 0, MajorNdisVersion @ 4, MinorNdisVersion @ 5, MajorDriverVersion @ 6, MinorDriverVersion @ 7,
        Flags @ 8, SetOptionsHandler @ 16, InitializeHandlerEx @ 24, HaltHandlerEx @ 32, UnloadHandler @ 40,
        PauseHandler @ 48, RestartHandler @ 56, OidRequestHandler @ 64, SendNetBufferListsHandler @ 72,
        ReturnNetBufferListsHandler @ 80, CancelSendHandler @ 88, CheckForHangHandlerEx @ 96, ResetHandlerEx @ 104,
        DevicePnPEventNotifyHandler @ 112, ShutdownHandlerEx @ 120, CancelOidRequestHandler @ 128,
        DirectOidRequestHandler @ 136, CancelDirectOidRequestHandler @ 144, SynchronousOidRequestHandler @ 152
    }
    NDIS_MINIPORT_INIT_PARAMETERS: 64, 8 {
        Header @ 0, Flags @ 4, AllocatedResources @ 8, IMDeviceInstanceContext @ 16, MiniportAddDeviceContext @ 24,
        IfIndex @ 32, NetLuid @ 40, DefaultPortAuthStates @ 48, PciDeviceCustomProperties @ 56
    }
    NDIS_MINIPORT_PAUSE_PARAMETERS: 12, 4 { Header @ 0, Flags @ 4, PauseReason @ 8 }
    NDIS_MINIPORT_RESTART_PARAMETERS: 24, 8 { Header @ 0, RestartAttributes @ 8, Flags @ 16 }
    NDIS_RESTART_ATTRIBUTES: 32, 16 { Next @ 0, Oid @ 8, DataLength @ 12, Data @ 16 }
    NDIS_RESTART_GENERAL_ATTRIBUTES: 88, 8 {
        Header @ 0, MtuSize @ 4, MaxXmitLinkSpeed @ 8, MaxRcvLinkSpeed @ 16, LookaheadSize @ 24, MacOptions @ 28,
        SupportedPacketFilters @ 32, MaxMulticastListSize @ 36, RecvScaleCapabilities @ 40, AccessType @ 48,
        Flags @ 52, ConnectionType @ 56, SupportedStatistics @ 60, DataBackFillSize @ 64, ContextBackFillSize @ 68,
        SupportedOidList @ 72, SupportedOidListLength @ 80, MaxLookaheadSizeAccessed @ 84
    }
}
