//! A made-up miniport that sends whatever it is given back to whoever gave it. It keeps every rule, except the one it
//! is told to break: the registry value `Misdeed` of its driver says which.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::ptr;

use windows_kernel_sys::*;

use crate::sim::Lock;

macro_rules! misdeeds {
    ($($name:ident),* $(,)?) => {
        /// What the miniport does wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Misdeed { None, $($name),* }

        impl Misdeed {
            pub const ALL: &[Misdeed] = &[$(Misdeed::$name),*];

            fn from_number(number: u32) -> Self {
                Self::ALL.iter().copied().find(|misdeed| *misdeed as u32 == number).unwrap_or(Self::None)
            }
        }
    };
}

misdeeds! {
    HandlerMissing, RegistersNothing, StaysRegistered, WrongPoolHeader, GeneralFirst, NoGeneral, DmaFirst,
    AttributesLate, PauseFails, PauseCompletedTwice, PauseNever, PauseWithSends, PauseWithReceives, ResetWithSends,
    ResetWithOid, SendCompletedTwice, SendNever, SendWithoutStatus, SendWrites, SendDropsBuffer, SendsWhilePaused,
    ReceivesWhilePaused, ReceivesTwice, ReceiveCountWrong, ReceiveSourceWrong, ReceiveTooLong, ReceiveTooShort,
    ReceiveLengthBeyondChain, ReceiveCurrentMdlWrong, ReceiveFramesWrong, ReceiveWrites, ReceiveFreed, NblFreedTwice,
    OidCompletedTwice, OidReturnedAndCompleted, OidNever, OidTooLong, OidNothingNeeded, OidPendingStatus,
    StatusAfterHalt, StatusTooEarly, StatusHeader, LinkStateHeader, SglFreedTwice, SglNotFreed, SglAtPassive,
    TimerFreedWhileSet, PeriodicTimerCancelledAtDispatch, WorkItemQueuedTwice, WorkItemFreedWhileQueued, LeaksTimer,
    LeaksPool, LeaksConfiguration, LeaksSharedMemory, SharedMemoryLength, DispatchFlagAtPassive, StaleHandle,
    SleepsAtDispatch,
}

pub(super) const MTU: u32 = 2044;
pub(super) const MAC: [u8; 6] = [2, 0, 0, 0, 0, 7];
/// Answer to OID_GEN_VENDOR_ID.
pub(super) const VENDOR: u32 = 0x00FF_FFFF;
/// Answer to OID_GEN_VENDOR_DESCRIPTION, which is given from a work item.
pub(super) const DESCRIPTION: &[u8] = b"fake\0";
const TAG: u32 = u32::from_le_bytes(*b"Fake");

struct Driver {
    handle: NDIS_HANDLE,
    misdeed: Misdeed,
}

#[derive(Default)]
struct State {
    running: bool,
    /// MiniportPause returned NDIS_STATUS_PENDING.
    pausing: bool,
    /// Lists in the queue, lists being mapped, and receives indicated.
    busy: usize,
    queue: VecDeque<usize>,
    oid: usize,
    /// The timer was set and its function has not begun.
    timer_set: bool,
    resetting: bool,
    work_queued: bool,
}

struct Device {
    misdeed: Misdeed,
    handle: NDIS_HANDLE,
    dma: NDIS_HANDLE,
    pool: NDIS_HANDLE,
    timer: NDIS_HANDLE,
    work: NDIS_HANDLE,
    shared: (PVOID, PHYSICAL_ADDRESS),
    /// The cable it is plugged into; with 0 what it sends comes back to it.
    wire: u32,
    state: Lock<State>,
}

/// A list on its way: its NET_BUFFERs are mapped one after the other, then it is completed and its frames come back.
struct Sending {
    device: *const Device,
    list: *mut NET_BUFFER_LIST,
    left: usize,
    frames: Vec<Vec<u8>>,
}

struct Mapping {
    sending: *mut Sending,
    buffer: *mut NET_BUFFER,
}

fn device<'a>(context: PVOID) -> &'a Device {
    // SAFETY: NDIS passes the context that was registered, which lives until halt.
    unsafe { &*context.cast::<Device>() }
}

fn header(object_type: u8, revision: u8, size: u16) -> NDIS_OBJECT_HEADER {
    NDIS_OBJECT_HEADER::new(object_type, revision, size)
}

/// DriverEntry.
pub(super) unsafe extern "win64" fn entry(object: *mut DRIVER_OBJECT, path: *mut UNICODE_STRING) -> NTSTATUS {
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

unsafe extern "win64" fn set_options(handle: NDIS_HANDLE, context: NDIS_HANDLE) -> NDIS_STATUS {
    assert!(!handle.is_null() && !context.is_null());
    NDIS_STATUS_SUCCESS
}

unsafe extern "win64" fn unload(object: *mut DRIVER_OBJECT) {
    // SAFETY: `entry` left the context there.
    let driver = unsafe { Box::from_raw((*object).DriverStart.cast::<Driver>()) };
    if driver.misdeed != Misdeed::StaysRegistered {
        // SAFETY: the handle of the registration.
        unsafe { NdisMDeregisterMiniportDriver(driver.handle) };
    }
}

/// Sets the registration attributes.
unsafe fn register(handle: NDIS_HANDLE, context: *mut Device) {
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
unsafe fn describe(handle: NDIS_HANDLE, host: u8) {
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

unsafe fn register_dma(handle: NDIS_HANDLE) -> NDIS_HANDLE {
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

fn new_timer(handle: NDIS_HANDLE, context: *mut Device) -> NDIS_HANDLE {
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
unsafe fn read_registry(handle: NDIS_HANDLE, leak: bool) -> (u32, u8) {
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

unsafe fn read_number(configuration: NDIS_HANDLE, name: &str) -> Option<u32> {
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

unsafe extern "win64" fn initialize(
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
            wire::plug(device, wire);
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

unsafe extern "win64" fn halt(context: NDIS_HANDLE, _action: NDIS_HALT_ACTION) {
    // SAFETY: the device made in `initialize`; nothing calls the miniport any more.
    let device = unsafe { Box::from_raw(context.cast::<Device>()) };
    wire::unplug(&raw const *device);
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

unsafe extern "win64" fn idle_work(_context: PVOID, _item: NDIS_HANDLE) {}

/// Indicates the link up or down.
unsafe fn indicate_link(handle: NDIS_HANDLE, misdeed: Misdeed, up: bool) {
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

unsafe extern "win64" fn restart(
    context: NDIS_HANDLE,
    _parameters: *mut NDIS_MINIPORT_RESTART_PARAMETERS,
) -> NDIS_STATUS {
    let device = device(context);
    device.state.lock().running = true;
    // SAFETY: the adapter is initialised.
    unsafe { indicate_link(device.handle, device.misdeed, true) };
    NDIS_STATUS_SUCCESS
}

unsafe extern "win64" fn pause(
    context: NDIS_HANDLE,
    _parameters: *mut NDIS_MINIPORT_PAUSE_PARAMETERS,
) -> NDIS_STATUS {
    let device = device(context);
    let queued = {
        let mut state = device.state.lock();
        state.running = device.misdeed == Misdeed::SendsWhilePaused;
        std::mem::take(&mut state.queue)
    };
    match device.misdeed {
        Misdeed::PauseFails => return NDIS_STATUS_FAILURE,
        Misdeed::PauseWithSends => {
            device.state.lock().queue = queued;
            return NDIS_STATUS_SUCCESS;
        }
        Misdeed::StaleHandle => {
            // SAFETY: none; that is the point.
            unsafe { NdisMPauseComplete(0xFFFF_8A00_0000_0000_usize as NDIS_HANDLE) };
        }
        _ => {}
    }
    for list in queued {
        // SAFETY: the list was in the queue, so it is the miniport's.
        unsafe { complete(device, list as *mut NET_BUFFER_LIST, NDIS_STATUS_PAUSED) };
    }
    match device.misdeed {
        Misdeed::PauseNever => return NDIS_STATUS_PENDING,
        Misdeed::PauseWithReceives => return NDIS_STATUS_SUCCESS,
        _ => {}
    }
    let mut state = device.state.lock();
    if state.busy > 0 {
        state.pausing = true;
        return NDIS_STATUS_PENDING;
    }
    drop(state);
    if device.misdeed == Misdeed::PauseCompletedTwice {
        // SAFETY: none; that is the point.
        unsafe { NdisMPauseComplete(device.handle) };
    }
    NDIS_STATUS_SUCCESS
}

/// Something that a pause waits for has ended.
fn less_busy(device: &Device, by: usize) {
    let paused = {
        let mut state = device.state.lock();
        state.busy -= by;
        state.busy == 0 && std::mem::take(&mut state.pausing)
    };
    if paused {
        // SAFETY: a pause is pending.
        unsafe { NdisMPauseComplete(device.handle) };
    }
}

/// Completes a list, which was counted as busy.
unsafe fn complete(device: &Device, list: *mut NET_BUFFER_LIST, status: NDIS_STATUS) {
    // SAFETY: the list is the miniport's until the call.
    unsafe {
        (*list).Next = ptr::null_mut();
        match device.misdeed {
            Misdeed::SendNever => return,
            Misdeed::SendWithoutStatus => {}
            _ => (*list).Status = status,
        }
        NdisMSendNetBufferListsComplete(device.handle, list, 0);
        if device.misdeed == Misdeed::SendCompletedTwice {
            NdisMSendNetBufferListsComplete(device.handle, list, 0);
        }
    }
    less_busy(device, 1);
}

/// A cable between two devices of different machines.
mod wire {
    use std::sync::PoisonError;

    use super::{Device, lower, raise, receive};
    use crate::kernel::Machine;

    #[derive(Clone)]
    pub(super) struct End {
        wire: u32,
        device: usize,
        machine: Machine,
    }

    static ENDS: std::sync::Mutex<Vec<End>> = std::sync::Mutex::new(Vec::new());

    pub(super) fn plug(device: *const Device, wire: u32) {
        let end = End { wire, device: device as usize, machine: Machine::current() };
        ENDS.lock().unwrap_or_else(PoisonError::into_inner).push(end);
    }

    pub(super) fn unplug(device: *const Device) {
        ENDS.lock().unwrap_or_else(PoisonError::into_inner).retain(|end| end.device != device as usize);
    }

    pub(super) fn peer_of(device: *const Device) -> Option<End> {
        let ends = ENDS.lock().unwrap_or_else(PoisonError::into_inner);
        let wire = ends.iter().find(|end| end.device == device as usize)?.wire;
        ends.iter().find(|end| end.wire == wire && end.device != device as usize).cloned()
    }

    impl End {
        /// Hands frames to this end's device, if it is plugged in and runs by then.
        pub fn deliver(&self, frames: Vec<Vec<u8>>) {
            let (device, machine) = (self.device, self.machine.clone());
            let sim = machine.sim().clone();
            sim.after(2_000, "cable", move |_| {
                machine.queue_dpc_on(0, "cable", move || {
                    let device = device as *const Device;
                    if peer_of(device).is_none() {
                        return;
                    }
                    // SAFETY: an end that is plugged in is not halted.
                    let device = unsafe { &*device };
                    if device.state.lock().running && !frames.is_empty() {
                        let irql = raise();
                        receive(device, &frames);
                        lower(irql);
                    }
                });
            });
        }
    }
}

unsafe extern "win64" fn send(context: NDIS_HANDLE, first: *mut NET_BUFFER_LIST, _port: u32, flags: u32) {
    let device = device(context);
    let mut next = first;
    let running = device.state.lock().running;
    if running && device.misdeed == Misdeed::SglAtPassive && flags == 0 {
        // SAFETY: none; that is the point.
        unsafe {
            NdisMAllocateNetBufferSGList(
                device.dma,
                (*first).FirstNetBuffer,
                ptr::null_mut(),
                1,
                ptr::null_mut(),
                0,
            )
        };
    }
    while !next.is_null() {
        let list = next;
        // SAFETY: the chain is the miniport's.
        next = unsafe { (*list).Next };
        device.state.lock().busy += 1;
        if !running {
            // SAFETY: as above.
            unsafe { complete(device, list, NDIS_STATUS_PAUSED) };
            continue;
        }
        if device.misdeed == Misdeed::DispatchFlagAtPassive && flags == 0 {
            // SAFETY: as above.
            unsafe {
                (*list).Next = ptr::null_mut();
                (*list).Status = NDIS_STATUS_SUCCESS;
                NdisMSendNetBufferListsComplete(
                    device.handle,
                    list,
                    NDIS_SEND_COMPLETE_FLAGS::DISPATCH_LEVEL.bits(),
                );
            }
        }
        device.state.lock().queue.push_back(list as usize);
        if device.misdeed == Misdeed::SendsWhilePaused {
            // At once: what waits for the timer would only be late.
            drain(device);
        }
    }
    device.state.lock().timer_set = true;
    // SAFETY: the device's timer.
    unsafe { NdisSetTimerObject(device.timer, -500, 0, ptr::null_mut()) };
}

unsafe extern "win64" fn timer(_one: PVOID, context: PVOID, _two: PVOID, _three: PVOID) {
    let device = device(context);
    device.state.lock().timer_set = false;
    match device.misdeed {
        // SAFETY: none; that is the point.
        Misdeed::SleepsAtDispatch => unsafe { NdisMSleep(10) },
        // SAFETY: none; that is the point.
        Misdeed::PeriodicTimerCancelledAtDispatch => unsafe {
            NdisSetTimerObject(device.timer, -10_000, 10, ptr::null_mut());
            NdisCancelTimerObject(device.timer);
        },
        _ => {}
    }
    if device.misdeed != Misdeed::PauseWithSends && device.misdeed != Misdeed::ResetWithSends {
        drain(device);
    }
}

/// Sends what is queued.
fn drain(device: &Device) {
    loop {
        let Some(list) = device.state.lock().queue.pop_front() else { return };
        let list = list as *mut NET_BUFFER_LIST;
        let mut buffers = Vec::new();
        // SAFETY: the list is the miniport's.
        unsafe {
            let mut next = (*list).FirstNetBuffer;
            while !next.is_null() {
                buffers.push(next);
                next = (*next).Next;
            }
        }
        let sending = Sending { device, list, left: buffers.len(), frames: Vec::new() };
        let sending = Box::into_raw(Box::new(sending));
        let irql = raise();
        for buffer in buffers {
            let context = Box::into_raw(Box::new(Mapping { sending, buffer }));
            // SAFETY: the NET_BUFFER is the miniport's; the context lives until the handler is called.
            let status = unsafe {
                let flags = NDIS_SG_LIST_WRITE_TO_DEVICE;
                NdisMAllocateNetBufferSGList(device.dma, buffer, context.cast(), flags, ptr::null_mut(), 0)
            };
            assert_eq!(status, NDIS_STATUS_SUCCESS);
        }
        lower(irql);
    }
}

fn raise() -> KIRQL {
    // SAFETY: raising from DISPATCH_LEVEL or below.
    unsafe { if KeGetCurrentIrql() < DISPATCH_LEVEL { KfRaiseIrql(DISPATCH_LEVEL) } else { DISPATCH_LEVEL } }
}

fn lower(irql: KIRQL) {
    // SAFETY: to the level before `raise`.
    unsafe { KeLowerIrql(irql) };
}

unsafe extern "win64" fn process_list(
    _object: *mut DEVICE_OBJECT,
    _reserved: PVOID,
    list: *mut SCATTER_GATHER_LIST,
    context: PVOID,
) {
    // SAFETY: the context of the allocation.
    let mapping = unsafe { Box::from_raw(context.cast::<Mapping>()) };
    // SAFETY: the sending lives until its last buffer is mapped; the list is the miniport's until freed.
    unsafe {
        let sending = &mut *mapping.sending;
        let device = &*sending.device;
        let machine = crate::kernel::Machine::current();
        let elements = std::slice::from_raw_parts(
            (&raw const (*list).Elements).cast::<SCATTER_GATHER_ELEMENT>(),
            (*list).NumberOfElements as usize,
        );
        let mut bytes = Vec::new();
        for element in elements {
            let mut part = vec![0; element.Length as usize];
            machine.dma_read(element.Address as u64, &mut part).expect("a list names valid memory");
            bytes.extend(part);
        }
        let offset = (*mapping.buffer).CurrentMdlOffset as usize;
        let frame = bytes.split_off(offset);
        check_view(mapping.buffer, &frame);
        sending.frames.push(frame);
        if device.misdeed == Misdeed::SendWrites {
            let first: *mut u8 =
                MmGetSystemAddressForMdlSafe((*mapping.buffer).CurrentMdl, NormalPagePriority).cast();
            *first.add(offset) ^= 1;
        }
        if device.misdeed != Misdeed::SglNotFreed {
            NdisMFreeNetBufferSGList(device.dma, list, mapping.buffer);
        }
        if device.misdeed == Misdeed::SglFreedTwice {
            NdisMFreeNetBufferSGList(device.dma, list, mapping.buffer);
        }
        sending.left -= 1;
        if sending.left == 0 {
            sent(&Box::from_raw(mapping.sending));
        }
    }
}

/// What DMA sees is what `NdisGetDataBuffer` shows, and moving the start back and forth changes nothing.
unsafe fn check_view(buffer: *mut NET_BUFFER, frame: &[u8]) {
    let mut storage = [0_u8; 14];
    // SAFETY: the NET_BUFFER is the miniport's, the storage is large enough.
    unsafe {
        assert_eq!((*buffer).data_length() as usize, frame.len());
        let view: *const u8 = NdisGetDataBuffer(buffer, 14, storage.as_mut_ptr().cast(), 1, 0).cast();
        assert_eq!(std::slice::from_raw_parts(view, 14), &frame[..14]);
        assert!(NdisGetDataBuffer(buffer, frame.len() as u32 + 1, ptr::null_mut(), 1, 0).is_null());
        NdisAdvanceNetBufferDataStart(buffer, 14, FALSE, ptr::null_mut());
        let view: *const u8 = NdisGetDataBuffer(buffer, 4, storage.as_mut_ptr().cast(), 1, 0).cast();
        assert_eq!(std::slice::from_raw_parts(view, 4), &frame[14..18]);
        assert_eq!(NdisRetreatNetBufferDataStart(buffer, 14, 0, ptr::null_mut()), NDIS_STATUS_SUCCESS);
    }
}

/// A list has been sent: it is completed, and its frames come back.
fn sent(sending: &Sending) {
    // SAFETY: the device lives while it is busy.
    let device = unsafe { &*sending.device };
    match wire::peer_of(device) {
        None if device.wire == 0 && !sending.frames.is_empty() => receive(device, &sending.frames),
        None => {}
        Some(peer) => peer.deliver(sending.frames.clone()),
    }
    if device.misdeed == Misdeed::SendDropsBuffer {
        // SAFETY: the list is the miniport's.
        unsafe { (*sending.list).FirstNetBuffer = ptr::null_mut() };
    }
    // SAFETY: the list is the miniport's.
    unsafe { complete(device, sending.list, NDIS_STATUS_SUCCESS) };
}

/// Indicates frames, one time in four as if short of buffers.
fn receive(device: &Device, frames: &[Vec<u8>]) {
    let mut chain: *mut NET_BUFFER_LIST = ptr::null_mut();
    for frame in frames.iter().rev() {
        let list = make_list(device, frame);
        // SAFETY: the list was made just now.
        unsafe { (*list).Next = chain };
        chain = list;
    }
    let resources = frames[0].len() % 4 == 1
        && !matches!(device.misdeed, Misdeed::ReceivesTwice | Misdeed::ReceiveWrites);
    let mut flags = NDIS_RECEIVE_FLAGS::DISPATCH_LEVEL;
    if resources {
        flags |= NDIS_RECEIVE_FLAGS::RESOURCES;
    }
    device.state.lock().busy += frames.len();
    let count = frames.len() as u32 + u32::from(device.misdeed == Misdeed::ReceiveCountWrong);
    // SAFETY: a chain of the miniport's own; with RESOURCES it is its own again when the call returns.
    unsafe {
        NdisMIndicateReceiveNetBufferLists(device.handle, chain, 0, count, flags.bits());
        match device.misdeed {
            Misdeed::ReceivesTwice => {
                NdisMIndicateReceiveNetBufferLists(device.handle, chain, 0, count, flags.bits());
            }
            Misdeed::ReceiveFreed => NdisFreeNetBufferList(chain),
            Misdeed::ReceiveWrites => {
                let data: *mut u8 = (*(*(*chain).FirstNetBuffer).MdlChain).MappedSystemVa.cast();
                *data.add(20) ^= 1;
            }
            _ => {}
        }
        if resources {
            give_back(ptr::from_ref(device).cast_mut().cast(), chain, 0);
        }
    }
}

fn make_list(device: &Device, frame: &[u8]) -> *mut NET_BUFFER_LIST {
    let room = MTU as usize + 64;
    // SAFETY: calls as documented; the memory is large enough.
    unsafe {
        let data: *mut u8 = ExAllocatePool2(POOL_FLAGS::NON_PAGED.bits(), room, TAG).cast();
        data.copy_from_nonoverlapping(frame.as_ptr(), frame.len());
        let mdl = NdisAllocateMdl(device.handle, data.cast(), room as u32);
        let length = match device.misdeed {
            Misdeed::ReceiveTooLong => MTU as usize + 15,
            Misdeed::ReceiveTooShort => 13,
            Misdeed::ReceiveLengthBeyondChain => room + 1,
            _ => frame.len(),
        };
        let list = NdisAllocateNetBufferAndNetBufferList(device.pool, 0, 0, mdl, 0, length);
        (*list).SourceHandle =
            if device.misdeed == Misdeed::ReceiveSourceWrong { device.pool } else { device.handle };
        match device.misdeed {
            Misdeed::ReceiveCurrentMdlWrong => (*(*list).FirstNetBuffer).CurrentMdlOffset = 4,
            Misdeed::ReceiveFramesWrong => *MmGetMdlPfnArray(mdl) ^= 1,
            _ => {}
        }
        list
    }
}

unsafe extern "win64" fn give_back(context: NDIS_HANDLE, first: *mut NET_BUFFER_LIST, _flags: u32) {
    let device = device(context);
    let (mut next, mut count) = (first, 0);
    while !next.is_null() {
        let list = next;
        // SAFETY: the lists are the miniport's again, each with the one MDL and the memory of `make_list`.
        unsafe {
            next = (*list).Next;
            let mdl = (*(*list).FirstNetBuffer).MdlChain;
            let data = (*mdl).MappedSystemVa;
            NdisFreeNetBufferList(list);
            if device.misdeed == Misdeed::NblFreedTwice {
                NdisFreeNetBufferList(list);
            }
            NdisFreeMdl(mdl);
            ExFreePoolWithTag(data, TAG);
        }
        count += 1;
    }
    less_busy(device, count);
    let idle = {
        let state = device.state.lock();
        !state.running && state.busy == 0
    };
    if device.misdeed == Misdeed::ReceivesWhilePaused && idle {
        let handle = context as usize;
        crate::kernel::Machine::current().spawn_thread("late receive", move || {
            crate::sim::sleep(100_000);
            let irql = raise();
            receive(self::device(handle as PVOID), &[vec![0xFF; 60]]);
            lower(irql);
        });
    }
}

unsafe extern "win64" fn cancel_send(context: NDIS_HANDLE, id: PVOID) {
    let device = device(context);
    let cancelled: Vec<usize> = {
        let mut state = device.state.lock();
        // SAFETY: the lists in the queue are the miniport's.
        let matches = |list: &usize| unsafe {
            NDIS_GET_NET_BUFFER_LIST_CANCEL_ID(*list as *const NET_BUFFER_LIST) == id
        };
        let (cancelled, kept): (Vec<_>, Vec<_>) = state.queue.iter().copied().partition(matches);
        state.queue = kept.into();
        cancelled
    };
    for list in cancelled {
        // SAFETY: as above.
        unsafe { complete(device, list as *mut NET_BUFFER_LIST, NDIS_STATUS_SEND_ABORTED) };
    }
}

unsafe extern "win64" fn oid_request(context: NDIS_HANDLE, request: *mut NDIS_OID_REQUEST) -> NDIS_STATUS {
    let device = device(context);
    // SAFETY: the request is the miniport's until it is completed.
    unsafe {
        if (*request).RequestType == NdisRequestSetInformation {
            let data = &mut (*request).DATA.SET_INFORMATION;
            data.BytesRead = data.InformationBufferLength;
            return match data.Oid {
                // The way this one is asked to ask for a reset.
                OID_GEN_RESET_COUNTS => {
                    crate::ndis::watchdog::NdisMResetMiniport(device.handle);
                    NDIS_STATUS_SUCCESS
                }
                OID_GEN_CURRENT_PACKET_FILTER | OID_802_3_MULTICAST_LIST | OID_GEN_CURRENT_LOOKAHEAD => {
                    if device.misdeed == Misdeed::AttributesLate {
                        register(device.handle, ptr::from_ref(device).cast_mut());
                    }
                    NDIS_STATUS_SUCCESS
                }
                _ => NDIS_STATUS_NOT_SUPPORTED,
            };
        }
        match (*request).DATA.Oid {
            OID_GEN_VENDOR_ID => {
                let status = answer(request, &VENDOR.to_ne_bytes(), device.misdeed);
                if device.misdeed == Misdeed::OidReturnedAndCompleted {
                    NdisMOidRequestComplete(device.handle, request, status);
                }
                if device.misdeed == Misdeed::OidPendingStatus { NDIS_STATUS_LINK_STATE } else { status }
            }
            OID_GEN_VENDOR_DESCRIPTION => {
                device.state.lock().oid = request as usize;
                if !matches!(device.misdeed, Misdeed::OidNever | Misdeed::ResetWithOid) {
                    queue_work(device);
                }
                NDIS_STATUS_PENDING
            }
            _ => NDIS_STATUS_NOT_SUPPORTED,
        }
    }
}

/// Answers a query.
unsafe fn answer(request: *mut NDIS_OID_REQUEST, value: &[u8], misdeed: Misdeed) -> NDIS_STATUS {
    // SAFETY: a query of the miniport's, with a buffer of the length it says.
    unsafe {
        let data = &mut (*request).DATA.QUERY_INFORMATION;
        if (data.InformationBufferLength as usize) < value.len() {
            data.BytesNeeded = if misdeed == Misdeed::OidNothingNeeded { 0 } else { value.len() as u32 };
            return NDIS_STATUS_BUFFER_TOO_SHORT;
        }
        data.InformationBuffer.cast::<u8>().copy_from_nonoverlapping(value.as_ptr(), value.len());
        data.BytesWritten = value.len() as u32;
        if misdeed == Misdeed::OidTooLong {
            data.BytesWritten = data.InformationBufferLength + 1;
        }
        NDIS_STATUS_SUCCESS
    }
}

fn queue_work(device: &Device) {
    let queue = !std::mem::replace(&mut device.state.lock().work_queued, true);
    if queue {
        let context: PVOID = ptr::from_ref(device).cast_mut().cast();
        // SAFETY: the device's work item, which is not queued.
        unsafe { NdisQueueIoWorkItem(device.work, Some(work), context) };
        if device.misdeed == Misdeed::WorkItemQueuedTwice {
            // SAFETY: none; that is the point.
            unsafe { NdisQueueIoWorkItem(device.work, Some(work), context) };
        }
    }
}

unsafe extern "win64" fn work(context: PVOID, _item: NDIS_HANDLE) {
    let device = device(context);
    let (oid, resetting, queued) = {
        let mut state = device.state.lock();
        state.work_queued = false;
        let resetting = std::mem::take(&mut state.resetting);
        let keeps_oid = resetting && device.misdeed == Misdeed::ResetWithOid;
        let oid = if keeps_oid { 0 } else { std::mem::take(&mut state.oid) };
        let keeps_sends = !resetting || device.misdeed == Misdeed::ResetWithSends;
        let queued = if keeps_sends { VecDeque::new() } else { std::mem::take(&mut state.queue) };
        (oid, resetting, queued)
    };
    // SAFETY: the request and the lists are the miniport's.
    unsafe {
        if oid != 0 {
            let request = oid as *mut NDIS_OID_REQUEST;
            let status = answer(request, DESCRIPTION, Misdeed::None);
            NdisMOidRequestComplete(device.handle, request, status);
            if device.misdeed == Misdeed::OidCompletedTwice {
                NdisMOidRequestComplete(device.handle, request, status);
            }
        }
        for list in queued {
            complete(device, list as *mut NET_BUFFER_LIST, NDIS_STATUS_RESET_IN_PROGRESS);
        }
        if resetting {
            NdisMResetComplete(device.handle, NDIS_STATUS_SUCCESS, TRUE);
        }
    }
}

unsafe extern "win64" fn check_for_hang(_context: NDIS_HANDLE) -> BOOLEAN {
    FALSE
}

unsafe extern "win64" fn reset(context: NDIS_HANDLE, _addressing: *mut BOOLEAN) -> NDIS_STATUS {
    let device = device(context);
    device.state.lock().resetting = true;
    queue_work(device);
    NDIS_STATUS_PENDING
}

unsafe extern "win64" fn pnp_event(_context: NDIS_HANDLE, _event: *mut NET_DEVICE_PNP_EVENT) {}

unsafe extern "win64" fn shutdown(_context: NDIS_HANDLE, _action: NDIS_SHUTDOWN_ACTION) {}

unsafe extern "win64" fn cancel_oid(_context: NDIS_HANDLE, _id: PVOID) {}
