//! From DriverEntry to halt: what the miniport registers, obtains and gives back.

use std::ffi::c_void;
use std::ptr;

use windows_kernel_sys::*;

use super::control::*;
use super::data::*;
use super::{Device, Driver, MAC, MTU, Misdeed, TAG, cable, header};
use crate::sim::Lock;

/// DriverEntry.
pub(in crate::ndis::tests) unsafe extern "win64" fn entry(
    object: *mut DRIVER_OBJECT,
    path: *mut UNICODE_STRING,
) -> NTSTATUS {
    let driver = Box::into_raw(Box::new(Driver { handle: ptr::null_mut(), misdeed: Misdeed::None }));
    let mut table = NDIS_MINIPORT_DRIVER_CHARACTERISTICS::zeroed();
    table.Header = header(
        NDIS_OBJECT_TYPE_MINIPORT_DRIVER_CHARACTERISTICS,
        NDIS_MINIPORT_DRIVER_CHARACTERISTICS_REVISION_2,
        NDIS_SIZEOF_MINIPORT_DRIVER_CHARACTERISTICS_REVISION_2,
    );
    (table.MajorNdisVersion, table.MinorNdisVersion) = (6, 50);
    table.SetOptionsHandler = Some(set_options);
    table.InitializeHandlerEx = Some(initialize);
    table.HaltHandlerEx = Some(halt);
    table.UnloadHandler = Some(unload);
    table.PauseHandler = Some(pause);
    table.RestartHandler = Some(restart);
    table.OidRequestHandler = Some(oid_request);
    table.SendNetBufferListsHandler = Some(send);
    table.ReturnNetBufferListsHandler = Some(give_back);
    table.CancelSendHandler = Some(cancel_send);
    table.CheckForHangHandlerEx = Some(check_for_hang);
    table.ResetHandlerEx = Some(reset);
    table.DevicePnPEventNotifyHandler = Some(pnp_event);
    table.ShutdownHandlerEx = Some(shutdown);
    table.CancelOidRequestHandler = Some(cancel_oid);
    table.DirectOidRequestHandler = Some(oid_request);
    table.CancelDirectOidRequestHandler = Some(cancel_oid);
    // SAFETY: the arguments of DriverEntry; the structures live for the call, the context until unload.
    unsafe {
        // Before registration there is no handle to read the registry with: the context tells through the service's name.
        let units = std::slice::from_raw_parts((*path).Buffer, usize::from((*path).Length) / 2);
        let name = String::from_utf16_lossy(units);
        let number = name.rsplit('-').next().and_then(|number| number.parse().ok()).unwrap_or(0);
        (*driver).misdeed = Misdeed::from_number(number);
        match (*driver).misdeed {
            Misdeed::HandlerMissing => table.PauseHandler = None,
            Misdeed::RegistersNothing => return STATUS_SUCCESS,
            _ => {}
        }
        (*object).DriverStart = driver.cast();
        let (context, handle) = (driver.cast::<c_void>(), &raw mut (*driver).handle);
        NdisMRegisterMiniportDriver(object, path, context, &raw mut table, handle)
    }
}

pub(super) unsafe extern "win64" fn set_options(handle: NDIS_HANDLE, context: NDIS_HANDLE) -> NDIS_STATUS {
    assert!(!handle.is_null() && !context.is_null());
    NDIS_STATUS_SUCCESS
}

pub(super) unsafe extern "win64" fn unload(object: *mut DRIVER_OBJECT) {
    // SAFETY: `entry` left the context there.
    let driver = unsafe { Box::from_raw((*object).DriverStart.cast::<Driver>()) };
    if driver.misdeed != Misdeed::StaysRegistered {
        // SAFETY: the handle of the registration.
        unsafe { NdisMDeregisterMiniportDriver(driver.handle) };
    }
}

/// Sets the registration attributes.
pub(super) unsafe fn register(handle: NDIS_HANDLE, context: *mut Device) {
    let mut attributes: NDIS_MINIPORT_ADAPTER_REGISTRATION_ATTRIBUTES = Zeroable::zeroed();
    attributes.Header = header(
        NDIS_OBJECT_TYPE_MINIPORT_ADAPTER_REGISTRATION_ATTRIBUTES,
        NDIS_MINIPORT_ADAPTER_REGISTRATION_ATTRIBUTES_REVISION_2,
        NDIS_SIZEOF_MINIPORT_ADAPTER_REGISTRATION_ATTRIBUTES_REVISION_2,
    );
    attributes.MiniportAdapterContext = context.cast();
    attributes.AttributeFlags =
        (NDIS_MINIPORT_ATTRIBUTES::NDIS_WDM | NDIS_MINIPORT_ATTRIBUTES::BUS_MASTER).bits();
    let mut union = NDIS_MINIPORT_ADAPTER_ATTRIBUTES { RegistrationAttributes: attributes };
    // SAFETY: the handle of MiniportInitializeEx.
    assert_eq!(unsafe { NdisMSetMiniportAttributes(handle, &raw mut union) }, NDIS_STATUS_SUCCESS);
}

/// Sets the general attributes.
pub(super) unsafe fn describe(handle: NDIS_HANDLE, host: u8) {
    let mut oids = [OID_GEN_CURRENT_PACKET_FILTER, OID_802_3_MULTICAST_LIST, OID_GEN_VENDOR_ID];
    let mut attributes: NDIS_MINIPORT_ADAPTER_GENERAL_ATTRIBUTES = Zeroable::zeroed();
    attributes.Header = header(
        NDIS_OBJECT_TYPE_MINIPORT_ADAPTER_GENERAL_ATTRIBUTES,
        NDIS_MINIPORT_ADAPTER_GENERAL_ATTRIBUTES_REVISION_2,
        NDIS_SIZEOF_MINIPORT_ADAPTER_GENERAL_ATTRIBUTES_REVISION_2,
    );
    attributes.MediaType = NdisMedium802_3;
    attributes.MtuSize = MTU;
    attributes.LookaheadSize = MTU;
    attributes.MaxMulticastListSize = 16;
    attributes.MacAddressLength = 6;
    attributes.CurrentMacAddress[..6].copy_from_slice(&MAC);
    attributes.CurrentMacAddress[5] = host;
    attributes.PermanentMacAddress[..6].copy_from_slice(&MAC);
    attributes.MediaConnectState = MediaConnectStateDisconnected;
    attributes.SupportedOidList = oids.as_mut_ptr();
    attributes.SupportedOidListLength = size_of_val(&oids) as u32;
    let mut union = NDIS_MINIPORT_ADAPTER_ATTRIBUTES { GeneralAttributes: attributes };
    // SAFETY: the handle of MiniportInitializeEx.
    assert_eq!(unsafe { NdisMSetMiniportAttributes(handle, &raw mut union) }, NDIS_STATUS_SUCCESS);
}

pub(super) unsafe fn register_dma(handle: NDIS_HANDLE) -> NDIS_HANDLE {
    let mut description = NDIS_SG_DMA_DESCRIPTION::zeroed();
    description.Header = header(
        NDIS_OBJECT_TYPE_SG_DMA_DESCRIPTION,
        NDIS_SG_DMA_DESCRIPTION_REVISION_1,
        NDIS_SIZEOF_SG_DMA_DESCRIPTION_REVISION_1,
    );
    description.Flags = NDIS_SG_DMA_64_BIT_ADDRESS;
    description.MaximumPhysicalMapping = 64 * 1024;
    description.ProcessSGListHandler = Some(process_list);
    let mut dma = ptr::null_mut();
    // SAFETY: the handle of MiniportInitializeEx.
    let status = unsafe { NdisMRegisterScatterGatherDma(handle, &raw mut description, &raw mut dma) };
    assert_eq!(status, NDIS_STATUS_SUCCESS);
    assert_eq!(description.ScatterGatherListSize, 16 + 17 * 24);
    dma
}

pub(super) fn new_timer(handle: NDIS_HANDLE, context: *mut Device) -> NDIS_HANDLE {
    let mut characteristics = NDIS_TIMER_CHARACTERISTICS::zeroed();
    characteristics.Header = header(
        NDIS_OBJECT_TYPE_TIMER_CHARACTERISTICS,
        NDIS_TIMER_CHARACTERISTICS_REVISION_1,
        NDIS_SIZEOF_TIMER_CHARACTERISTICS_REVISION_1,
    );
    characteristics.AllocationTag = TAG;
    characteristics.TimerFunction = Some(timer);
    characteristics.FunctionContext = context.cast();
    let mut object = ptr::null_mut();
    // SAFETY: a live handle and structure.
    let status = unsafe { NdisAllocateTimerObject(handle, &raw mut characteristics, &raw mut object) };
    assert_eq!(status, NDIS_STATUS_SUCCESS);
    object
}

/// The adapter's cable and the last byte of its address.
pub(super) unsafe fn read_registry(handle: NDIS_HANDLE, leak: bool) -> (u32, u8) {
    let mut object = NDIS_CONFIGURATION_OBJECT::zeroed();
    object.Header = header(
        NDIS_OBJECT_TYPE_CONFIGURATION_OBJECT,
        NDIS_CONFIGURATION_OBJECT_REVISION_1,
        NDIS_SIZEOF_CONFIGURATION_OBJECT_REVISION_1,
    );
    object.NdisHandle = handle;
    let mut configuration = ptr::null_mut();
    let (mut address, mut length, mut status) = (ptr::null_mut(), 0, 0);
    // SAFETY: live handles and structures.
    unsafe {
        assert_eq!(NdisOpenConfigurationEx(&raw mut object, &raw mut configuration), NDIS_STATUS_SUCCESS);
        assert_eq!(read_number(configuration, "Number"), Some(42));
        let wire = read_number(configuration, "Wire").unwrap_or(0);
        NdisReadNetworkAddress(&raw mut status, &raw mut address, &raw mut length, configuration);
        let host = if status == NDIS_STATUS_SUCCESS {
            assert_eq!(length, 6);
            *address.cast::<u8>().add(5)
        } else {
            MAC[5]
        };
        if !leak {
            NdisCloseConfiguration(configuration);
        }
        (wire, host)
    }
}

pub(super) unsafe fn read_number(configuration: NDIS_HANDLE, name: &str) -> Option<u32> {
    let mut units: Vec<u16> = name.encode_utf16().collect();
    let length = (units.len() * 2) as u16;
    let mut keyword = UNICODE_STRING { Length: length, MaximumLength: length, Buffer: units.as_mut_ptr() };
    let (mut status, mut value) = (0, ptr::null_mut());
    // SAFETY: an open configuration; a returned value lives until it is closed.
    unsafe {
        NdisReadConfiguration(
            &raw mut status,
            &raw mut value,
            configuration,
            &raw mut keyword,
            NdisParameterInteger,
        );
        (status == NDIS_STATUS_SUCCESS).then(|| {
            assert_eq!((*value).ParameterType, NdisParameterInteger);
            (*value).ParameterData.IntegerData
        })
    }
}

pub(super) unsafe extern "win64" fn initialize(
    handle: NDIS_HANDLE,
    context: NDIS_HANDLE,
    _parameters: *mut NDIS_MINIPORT_INIT_PARAMETERS,
) -> NDIS_STATUS {
    // SAFETY: the context that was registered.
    let misdeed = unsafe { (*context.cast::<Driver>()).misdeed };
    let device = Box::into_raw(Box::new(Device {
        misdeed,
        handle,
        dma: ptr::null_mut(),
        pool: ptr::null_mut(),
        timer: ptr::null_mut(),
        work: ptr::null_mut(),
        shared: (ptr::null_mut(), 0),
        wire: 0,
        state: Lock::default(),
    }));
    let mut parameters = NET_BUFFER_LIST_POOL_PARAMETERS::zeroed();
    let pool_type = if misdeed == Misdeed::WrongPoolHeader { 0x81 } else { NDIS_OBJECT_TYPE_DEFAULT };
    parameters.Header = header(
        pool_type,
        NET_BUFFER_LIST_POOL_PARAMETERS_REVISION_1,
        NDIS_SIZEOF_NET_BUFFER_LIST_POOL_PARAMETERS_REVISION_1,
    );
    parameters.fAllocateNetBuffer = TRUE;
    parameters.PoolTag = TAG;
    // SAFETY: the handle that NDIS passed, and the device made above.
    unsafe {
        match misdeed {
            Misdeed::GeneralFirst => describe(handle, MAC[5]),
            Misdeed::DmaFirst => drop(register_dma(handle)),
            Misdeed::StatusTooEarly => indicate_link(handle, misdeed, true),
            _ => {}
        }
        register(handle, device);
        let (wire, host) = read_registry(handle, misdeed == Misdeed::LeaksConfiguration);
        if misdeed != Misdeed::NoGeneral {
            describe(handle, host);
        }
        if wire != 0 {
            (*device).wire = wire;
            cable::plug(device, wire);
        }
        (*device).pool = NdisAllocateNetBufferListPool(handle, &raw const parameters);
        (*device).dma = register_dma(handle);
        (*device).timer = new_timer(handle, device);
        (*device).work = NdisAllocateIoWorkItem(handle);
        let shared = &raw mut (*device).shared;
        NdisMAllocateSharedMemory(handle, 64, TRUE, &raw mut (*shared).0, &raw mut (*shared).1);
        assert!(!(*device).shared.0.is_null());
    }
    NDIS_STATUS_SUCCESS
}

pub(super) unsafe extern "win64" fn halt(context: NDIS_HANDLE, _action: NDIS_HALT_ACTION) {
    // SAFETY: the device made in `initialize`; nothing calls the miniport any more.
    let device = unsafe { Box::from_raw(context.cast::<Device>()) };
    cable::unplug(&raw const *device);
    let misdeed = device.misdeed;
    // SAFETY: what `initialize` obtained.
    unsafe {
        if misdeed == Misdeed::TimerFreedWhileSet {
            NdisSetTimerObject(device.timer, -10_000_000, 0, ptr::null_mut());
        } else if NdisCancelTimerObject(device.timer) == FALSE {
            // It may have expired and wait for a processor.
            while device.state.lock().timer_set {
                NdisMSleep(10);
            }
        }
        if misdeed != Misdeed::LeaksTimer {
            NdisFreeTimerObject(device.timer);
        }
        if misdeed == Misdeed::WorkItemFreedWhileQueued {
            NdisQueueIoWorkItem(device.work, Some(idle_work), ptr::null_mut());
        }
        NdisFreeIoWorkItem(device.work);
        NdisMDeregisterScatterGatherDma(device.dma);
        if misdeed != Misdeed::LeaksPool {
            NdisFreeNetBufferListPool(device.pool);
        }
        let length = if misdeed == Misdeed::SharedMemoryLength { 32 } else { 64 };
        if misdeed != Misdeed::LeaksSharedMemory {
            NdisMFreeSharedMemory(device.handle, length, TRUE, device.shared.0, device.shared.1);
        }
    }
    if misdeed == Misdeed::StatusAfterHalt {
        // A timer of NDIS's own could do this; here another thread does, which outlives the halt.
        let handle = device.handle as usize;
        crate::kernel::Machine::current().spawn_thread("late status", move || {
            crate::sim::sleep(1_000_000);
            // SAFETY: none; that is the point.
            unsafe { indicate_link(handle as NDIS_HANDLE, misdeed, false) };
        });
    }
}

pub(super) unsafe extern "win64" fn idle_work(_context: PVOID, _item: NDIS_HANDLE) {}

/// Indicates the link up or down.
pub(super) unsafe fn indicate_link(handle: NDIS_HANDLE, misdeed: Misdeed, up: bool) {
    let mut link = NDIS_LINK_STATE::zeroed();
    let revision = if misdeed == Misdeed::LinkStateHeader { 9 } else { NDIS_LINK_STATE_REVISION_1 };
    link.Header = header(NDIS_OBJECT_TYPE_DEFAULT, revision, NDIS_SIZEOF_LINK_STATE_REVISION_1);
    link.MediaConnectState = if up { MediaConnectStateConnected } else { MediaConnectStateDisconnected };
    link.XmitLinkSpeed = 10_000_000_000;
    link.RcvLinkSpeed = 10_000_000_000;
    let mut indication = NDIS_STATUS_INDICATION::zeroed();
    let revision = if misdeed == Misdeed::StatusHeader { 9 } else { NDIS_STATUS_INDICATION_REVISION_1 };
    indication.Header =
        header(NDIS_OBJECT_TYPE_STATUS_INDICATION, revision, NDIS_SIZEOF_STATUS_INDICATION_REVISION_1);
    indication.SourceHandle = handle;
    indication.StatusCode = NDIS_STATUS_LINK_STATE;
    indication.StatusBuffer = (&raw mut link).cast();
    indication.StatusBufferSize = size_of::<NDIS_LINK_STATE>() as u32;
    // SAFETY: structures that live for the call.
    unsafe { NdisMIndicateStatusEx(handle, &raw mut indication) };
}
