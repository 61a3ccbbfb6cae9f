//! What is imported from `ndis.sys`. The page of a function is ndis/nf-ndis- with its name in lower case
//! (nblapi/nf-nblapi- for those of NET_BUFFERs); the IRQL is the page's.

use super::*;
use crate::nt::{
    BOOLEAN, DEVICE_OBJECT, DRIVER_OBJECT, MDL, PHYSICAL_ADDRESS, PVOID, SCATTER_GATHER_LIST, UNICODE_STRING,
};

imports! {
    /// Names imported from `ndis.sys`.
    NDIS_IMPORTS from "ndis.sys";

    /// PASSIVE_LEVEL.
    fn NdisMRegisterMiniportDriver(
        DriverObject: *mut DRIVER_OBJECT, RegistryPath: *mut UNICODE_STRING, MiniportDriverContext: NDIS_HANDLE,
        MiniportDriverCharacteristics: *mut NDIS_MINIPORT_DRIVER_CHARACTERISTICS,
        NdisMiniportDriverHandle: *mut NDIS_HANDLE,
    ) -> NDIS_STATUS;
    /// PASSIVE_LEVEL.
    fn NdisMDeregisterMiniportDriver(NdisMiniportDriverHandle: NDIS_HANDLE);
    /// PASSIVE_LEVEL; only in MiniportInitializeEx.
    fn NdisMSetMiniportAttributes(
        NdisMiniportHandle: NDIS_HANDLE, MiniportAttributes: *mut NDIS_MINIPORT_ADAPTER_ATTRIBUTES,
    ) -> NDIS_STATUS;
    /// PASSIVE_LEVEL. Each out pointer may be null.
    fn NdisMGetDeviceProperty(
        MiniportAdapterHandle: NDIS_HANDLE, PhysicalDeviceObject: *mut *mut DEVICE_OBJECT,
        FunctionalDeviceObject: *mut *mut DEVICE_OBJECT, NextDeviceObject: *mut *mut DEVICE_OBJECT,
        AllocatedResources: *mut PVOID, AllocatedResourcesTranslated: *mut PVOID,
    );
    /// PASSIVE_LEVEL.
    fn NdisOpenConfigurationEx(
        ConfigObject: *mut NDIS_CONFIGURATION_OBJECT, ConfigurationHandle: *mut NDIS_HANDLE,
    ) -> NDIS_STATUS;
    /// PASSIVE_LEVEL. The value lives until the configuration is closed.
    fn NdisReadConfiguration(
        Status: *mut NDIS_STATUS, ParameterValue: *mut *mut NDIS_CONFIGURATION_PARAMETER,
        ConfigurationHandle: NDIS_HANDLE, Keyword: *mut UNICODE_STRING, ParameterType: NDIS_PARAMETER_TYPE,
    );
    /// PASSIVE_LEVEL. The address lives until the configuration is closed.
    fn NdisReadNetworkAddress(
        Status: *mut NDIS_STATUS, NetworkAddress: *mut PVOID, NetworkAddressLength: *mut u32,
        ConfigurationHandle: NDIS_HANDLE,
    );
    /// PASSIVE_LEVEL.
    fn NdisCloseConfiguration(ConfigurationHandle: NDIS_HANDLE);
    /// PASSIVE_LEVEL.
    fn NdisMRegisterScatterGatherDma(
        MiniportAdapterHandle: NDIS_HANDLE, DmaDescription: *mut NDIS_SG_DMA_DESCRIPTION,
        NdisMiniportDmaHandle: *mut NDIS_HANDLE,
    ) -> NDIS_STATUS;
    /// PASSIVE_LEVEL.
    fn NdisMDeregisterScatterGatherDma(NdisMiniportDmaHandle: NDIS_HANDLE);
    /// DISPATCH_LEVEL. The handler may run before this returns.
    fn NdisMAllocateNetBufferSGList(
        NdisMiniportDmaHandle: NDIS_HANDLE, NetBuffer: *mut NET_BUFFER, Context: PVOID, Flags: u32,
        ScatterGatherListBuffer: PVOID, ScatterGatherListBufferSize: u32,
    ) -> NDIS_STATUS;
    /// DISPATCH_LEVEL.
    fn NdisMFreeNetBufferSGList(
        NdisMiniportDmaHandle: NDIS_HANDLE, pSGL: *mut SCATTER_GATHER_LIST, NetBuffer: *mut NET_BUFFER,
    );
    /// PASSIVE_LEVEL.
    fn NdisMAllocateSharedMemory(
        MiniportAdapterHandle: NDIS_HANDLE, Length: u32, Cached: BOOLEAN, VirtualAddress: *mut PVOID,
        PhysicalAddress: *mut PHYSICAL_ADDRESS,
    );
    /// PASSIVE_LEVEL.
    fn NdisMFreeSharedMemory(
        MiniportAdapterHandle: NDIS_HANDLE, Length: u32, Cached: BOOLEAN, VirtualAddress: PVOID,
        PhysicalAddress: PHYSICAL_ADDRESS,
    );
    /// PASSIVE_LEVEL.
    fn NdisAllocateNetBufferListPool(
        NdisHandle: NDIS_HANDLE, Parameters: *const NET_BUFFER_LIST_POOL_PARAMETERS,
    ) -> NDIS_HANDLE;
    /// PASSIVE_LEVEL.
    fn NdisFreeNetBufferListPool(PoolHandle: NDIS_HANDLE);
    /// IRQL <= DISPATCH_LEVEL.
    fn NdisAllocateNetBufferAndNetBufferList(
        PoolHandle: NDIS_HANDLE, ContextSize: u16, ContextBackFill: u16, MdlChain: *mut MDL, DataOffset: u32,
        DataLength: usize,
    ) -> *mut NET_BUFFER_LIST;
    /// IRQL <= DISPATCH_LEVEL.
    fn NdisFreeNetBufferList(NetBufferList: *mut NET_BUFFER_LIST);
    /// IRQL <= DISPATCH_LEVEL. The memory must be nonpaged.
    fn NdisAllocateMdl(NdisHandle: NDIS_HANDLE, VirtualAddress: PVOID, Length: u32) -> *mut MDL;
    /// IRQL <= DISPATCH_LEVEL.
    fn NdisFreeMdl(Mdl: *mut MDL);
    /// IRQL <= DISPATCH_LEVEL.
    fn NdisAdvanceNetBufferDataStart(
        NetBuffer: *mut NET_BUFFER, DataOffsetDelta: u32, FreeMdl: BOOLEAN, FreeMdlHandler: PVOID,
    );
    /// IRQL <= DISPATCH_LEVEL.
    fn NdisRetreatNetBufferDataStart(
        NetBuffer: *mut NET_BUFFER, DataOffsetDelta: u32, DataBackFill: u32, AllocateMdlHandler: PVOID,
    ) -> NDIS_STATUS;
    /// IRQL <= DISPATCH_LEVEL. Null if the bytes are not contiguous and no storage was given.
    fn NdisGetDataBuffer(
        NetBuffer: *mut NET_BUFFER, BytesNeeded: u32, Storage: PVOID, AlignMultiple: u32, AlignOffset: u32,
    ) -> PVOID;
    /// IRQL <= DISPATCH_LEVEL.
    fn NdisMSendNetBufferListsComplete(
        MiniportAdapterHandle: NDIS_HANDLE, NetBufferList: *mut NET_BUFFER_LIST, SendCompleteFlags: u32,
    );
    /// IRQL <= DISPATCH_LEVEL.
    fn NdisMIndicateReceiveNetBufferLists(
        MiniportAdapterHandle: NDIS_HANDLE, NetBufferLists: *mut NET_BUFFER_LIST, PortNumber: NDIS_PORT_NUMBER,
        NumberOfNetBufferLists: u32, ReceiveFlags: u32,
    );
    /// IRQL <= DISPATCH_LEVEL.
    fn NdisMIndicateStatusEx(MiniportAdapterHandle: NDIS_HANDLE, StatusIndication: *mut NDIS_STATUS_INDICATION);
    /// IRQL <= DISPATCH_LEVEL.
    fn NdisMOidRequestComplete(
        MiniportAdapterHandle: NDIS_HANDLE, OidRequest: *mut NDIS_OID_REQUEST, Status: NDIS_STATUS,
    );
    /// IRQL <= DISPATCH_LEVEL.
    fn NdisMPauseComplete(MiniportAdapterHandle: NDIS_HANDLE);
    /// IRQL <= DISPATCH_LEVEL.
    fn NdisMRestartComplete(MiniportAdapterHandle: NDIS_HANDLE, Status: NDIS_STATUS);
    /// IRQL <= DISPATCH_LEVEL.
    fn NdisMResetComplete(MiniportAdapterHandle: NDIS_HANDLE, Status: NDIS_STATUS, AddressingReset: BOOLEAN);
    /// IRQL <= DISPATCH_LEVEL.
    fn NdisAllocateTimerObject(
        NdisHandle: NDIS_HANDLE, TimerCharacteristics: *mut NDIS_TIMER_CHARACTERISTICS,
        pTimerObject: *mut NDIS_HANDLE,
    ) -> NDIS_STATUS;
    /// IRQL <= DISPATCH_LEVEL. `DueTime` in 100 ns, negative is relative; `MillisecondsPeriod` zero is one shot.
    /// Returns whether the timer was already set.
    fn NdisSetTimerObject(
        TimerObject: NDIS_HANDLE, DueTime: i64, MillisecondsPeriod: u32, FunctionContext: PVOID,
    ) -> BOOLEAN;
    /// IRQL <= DISPATCH_LEVEL. Returns whether a set timer was cancelled; if not, its function may be running.
    fn NdisCancelTimerObject(TimerObject: NDIS_HANDLE) -> BOOLEAN;
    /// IRQL <= DISPATCH_LEVEL.
    fn NdisFreeTimerObject(TimerObject: NDIS_HANDLE);
    /// IRQL <= DISPATCH_LEVEL.
    fn NdisAllocateIoWorkItem(NdisObjectHandle: NDIS_HANDLE) -> NDIS_HANDLE;
    /// IRQL <= DISPATCH_LEVEL. Must not be queued again before its function has begun.
    fn NdisQueueIoWorkItem(
        NdisIoWorkItemHandle: NDIS_HANDLE, Routine: NDIS_IO_WORKITEM_FUNCTION, WorkItemContext: PVOID,
    );
    /// IRQL <= DISPATCH_LEVEL.
    fn NdisFreeIoWorkItem(NdisIoWorkItemHandle: NDIS_HANDLE);
    /// Any level.
    fn NdisGetVersion() -> u32;
    /// PASSIVE_LEVEL. Unit microseconds.
    fn NdisMSleep(MicrosecondsToSleep: u32);
    /// IRQL <= DISPATCH_LEVEL. Unit milliseconds.
    fn NdisGetSystemUpTimeEx(pSystemUpTime: *mut i64);
    /// IRQL <= DISPATCH_LEVEL. `NumberOfErrorValues` words follow.
    fn NdisWriteErrorLogEntry(
        NdisAdapterHandle: NDIS_HANDLE, ErrorCode: NDIS_ERROR_CODE, NumberOfErrorValues: u32, ...
    );
}
