//! Every function that NDIS calls, and DriverEntry.
//!
//! A handler turns what it is given into safe types and a proof of the level it runs at, then calls one method of
//! the adapter. What IBAL calls is turned the same way in `ib` ([`crate::ib::client::Client`]).
//!
//! The MiniportAdapterContext is a counted reference to the [`Adapter`], given up to a raw pointer by
//! MiniportInitializeEx and taken back by MiniportHaltEx.

use crate::adapter::{Adapter, initialize};
use crate::kernel::adapter::AdapterHandle;
use crate::kernel::arc::PoolArc;
use crate::kernel::driver_object::{DriverObject, MiniportDriver};
use crate::kernel::irql::{Passive, at_dispatch};
use crate::kernel::nbl::{ReturnedChain, SendChain};
use crate::kernel::oid_request::OidRequest;
use core::ptr;
use windows_kernel_sys as sys;
use windows_kernel_sys::Zeroable as _;

/// The address of this is what the driver's extension of its driver object is known by.
static EXTENSION: u8 = 0;

/// The driver's entry point (wdm/nc-wdm-driver_initialize). PASSIVE_LEVEL.
///
/// # Safety
/// Called by the I/O manager, with the driver object and registry path that it made for this driver.
#[unsafe(no_mangle)]
pub unsafe extern "win64" fn DriverEntry(
    driver_object: *mut sys::DRIVER_OBJECT,
    registry_path: *mut sys::UNICODE_STRING,
) -> sys::NTSTATUS {
    // SAFETY: the I/O manager calls at PASSIVE_LEVEL.
    let at = unsafe { Passive::assume() };
    // SAFETY: the driver object of this driver.
    let Some(driver) = (unsafe { DriverObject::from_raw(driver_object) }) else {
        return sys::STATUS_INVALID_PARAMETER;
    };
    // SAFETY: DriverEntry's registry path; each handler below takes what its documentation says.
    let miniport = match unsafe { driver.register_miniport(registry_path, ptr::null_mut(), handlers(), &at) }
    {
        Ok(miniport) => miniport,
        Err(error) => return error.nt(),
    };
    match driver.set_extension(&EXTENSION, miniport, &at) {
        Ok(()) => sys::STATUS_SUCCESS,
        Err(error) => {
            // SAFETY: the registration is not used afterwards.
            unsafe { miniport.deregister(&at) };
            error.nt()
        }
    }
}

/// The handler table. Direct and synchronous OID requests are not taken: their handlers stay empty.
fn handlers() -> sys::NDIS_MINIPORT_DRIVER_CHARACTERISTICS {
    let mut handlers = sys::NDIS_MINIPORT_DRIVER_CHARACTERISTICS::zeroed();
    handlers.MajorDriverVersion = 0;
    handlers.MinorDriverVersion = 1;
    handlers.InitializeHandlerEx = Some(miniport_initialize_ex);
    handlers.HaltHandlerEx = Some(miniport_halt_ex);
    handlers.UnloadHandler = Some(miniport_unload);
    handlers.PauseHandler = Some(miniport_pause);
    handlers.RestartHandler = Some(miniport_restart);
    handlers.OidRequestHandler = Some(miniport_oid_request);
    handlers.SendNetBufferListsHandler = Some(miniport_send_net_buffer_lists);
    handlers.ReturnNetBufferListsHandler = Some(miniport_return_net_buffer_lists);
    handlers.CancelSendHandler = Some(miniport_cancel_send);
    handlers.CheckForHangHandlerEx = Some(miniport_check_for_hang_ex);
    handlers.ResetHandlerEx = Some(miniport_reset_ex);
    handlers.DevicePnPEventNotifyHandler = Some(miniport_device_pnp_event_notify);
    handlers.ShutdownHandlerEx = Some(miniport_shutdown_ex);
    handlers.CancelOidRequestHandler = Some(miniport_cancel_oid_request);
    handlers
}

/// The adapter behind a context.
///
/// # Safety
/// `context` is a MiniportAdapterContext, between MiniportInitializeEx and the end of MiniportHaltEx.
unsafe fn adapter<'a>(context: sys::NDIS_HANDLE) -> &'a Adapter {
    // SAFETY: the caller's contract.
    unsafe { &*context.cast_const().cast::<Adapter>() }
}

/// MINIPORT_DRIVER_UNLOAD, PASSIVE_LEVEL: every adapter is halted.
unsafe extern "win64" fn miniport_unload(driver_object: *mut sys::DRIVER_OBJECT) {
    // SAFETY: documented to run at PASSIVE_LEVEL.
    let at = unsafe { Passive::assume() };
    // SAFETY: the driver object of this driver, which lives until this returns.
    let Some(driver) = (unsafe { DriverObject::from_raw(driver_object) }) else { return };
    // SAFETY: only DriverEntry puts an extension under this address, of this type.
    if let Some(miniport) = unsafe { driver.extension::<MiniportDriver>(&EXTENSION) } {
        // SAFETY: the driver is going, and with it every copy.
        unsafe { miniport.deregister(&at) };
    }
}

/// MINIPORT_INITIALIZE, PASSIVE_LEVEL.
unsafe extern "win64" fn miniport_initialize_ex(
    handle: sys::NDIS_HANDLE,
    _driver_context: sys::NDIS_HANDLE,
    _parameters: *mut sys::NDIS_MINIPORT_INIT_PARAMETERS,
) -> sys::NDIS_STATUS {
    // SAFETY: documented to run at PASSIVE_LEVEL.
    let mut at = unsafe { Passive::assume() };
    // SAFETY: the handle that this call gives; what holds it is gone when MiniportHaltEx returns.
    let handle = unsafe { AdapterHandle::from_raw(handle) };
    match initialize(handle, &mut at) {
        Ok(adapter) => {
            // NDIS was told this address as MiniportAdapterContext; MiniportHaltEx takes the reference back.
            let _ = adapter.into_raw();
            sys::NDIS_STATUS_SUCCESS
        }
        Err((adapter, status)) => {
            if let Some(adapter) = adapter {
                // SAFETY: `initialize` stopped everything; NDIS knows nothing of a failed adapter.
                unsafe { release(adapter, &at) };
            }
            status
        }
    }
}

/// MINIPORT_HALT, PASSIVE_LEVEL. Not before the adapter is paused and everything it indicated came back.
unsafe extern "win64" fn miniport_halt_ex(context: sys::NDIS_HANDLE, _action: sys::NDIS_HALT_ACTION) {
    // SAFETY: documented to run at PASSIVE_LEVEL.
    let mut at = unsafe { Passive::assume() };
    // SAFETY: given up by MiniportInitializeEx, and taken back once: NDIS halts an adapter once.
    let adapter = unsafe { PoolArc::from_raw(context.cast_const().cast::<Adapter>()) };
    adapter.halt(&mut at);
    // SAFETY: `halt` stopped everything.
    unsafe { release(adapter, &at) };
}

/// Cuts the circle of the adapter and what it is called back by, and with it frees both.
///
/// # Safety
/// Nothing calls the adapter any more.
unsafe fn release(adapter: PoolArc<Adapter>, at: &Passive<'_>) {
    // SAFETY: the caller's contract.
    if let Some(machinery) = unsafe { adapter.machinery_place().take_shared() } {
        machinery.into_inner().free(at);
    }
    drop(adapter);
}

/// MINIPORT_PAUSE, PASSIVE_LEVEL.
unsafe extern "win64" fn miniport_pause(
    context: sys::NDIS_HANDLE,
    _parameters: *mut sys::NDIS_MINIPORT_PAUSE_PARAMETERS,
) -> sys::NDIS_STATUS {
    // SAFETY: documented to run at PASSIVE_LEVEL, on a live adapter.
    let (adapter, mut at) = unsafe { (adapter(context), Passive::assume()) };
    adapter.pause(&mut at);
    sys::NDIS_STATUS_SUCCESS
}

/// MINIPORT_RESTART, PASSIVE_LEVEL.
unsafe extern "win64" fn miniport_restart(
    context: sys::NDIS_HANDLE,
    _parameters: *mut sys::NDIS_MINIPORT_RESTART_PARAMETERS,
) -> sys::NDIS_STATUS {
    // SAFETY: documented to run at PASSIVE_LEVEL, on a live adapter.
    let (adapter, mut at) = unsafe { (adapter(context), Passive::assume()) };
    adapter.restart(&mut at);
    sys::NDIS_STATUS_SUCCESS
}

/// MINIPORT_OID_REQUEST, PASSIVE_LEVEL.
unsafe extern "win64" fn miniport_oid_request(
    context: sys::NDIS_HANDLE,
    request: *mut sys::NDIS_OID_REQUEST,
) -> sys::NDIS_STATUS {
    // SAFETY: documented to run at PASSIVE_LEVEL, on a live adapter.
    let (adapter, mut at) = unsafe { (adapter(context), Passive::assume()) };
    // SAFETY: the request of this call, answered by what it returns.
    match unsafe { OidRequest::from_raw(request) } {
        Some(request) => adapter.oid_request(request, &mut at),
        None => sys::NDIS_STATUS_INVALID_DATA,
    }
}

/// MINIPORT_CANCEL_OID_REQUEST, IRQL <= DISPATCH_LEVEL. Requests are answered before their handler returns, so
/// there is none to cancel.
unsafe extern "win64" fn miniport_cancel_oid_request(_context: sys::NDIS_HANDLE, _request_id: sys::PVOID) {}

/// MINIPORT_SEND_NET_BUFFER_LISTS, IRQL <= DISPATCH_LEVEL.
unsafe extern "win64" fn miniport_send_net_buffer_lists(
    context: sys::NDIS_HANDLE,
    lists: *mut sys::NET_BUFFER_LIST,
    _port: sys::NDIS_PORT_NUMBER,
    _flags: u32,
) {
    // SAFETY: a live adapter, and the chain of this call.
    let (adapter, chain) = unsafe { (adapter(context), SendChain::from_raw(lists)) };
    // SAFETY: documented to run at IRQL <= DISPATCH_LEVEL.
    unsafe { at_dispatch(|at| adapter.send(chain, at)) };
}

/// MINIPORT_CANCEL_SEND, IRQL <= DISPATCH_LEVEL.
unsafe extern "win64" fn miniport_cancel_send(context: sys::NDIS_HANDLE, cancel_id: sys::PVOID) {
    // SAFETY: a live adapter.
    let adapter = unsafe { adapter(context) };
    // SAFETY: documented to run at IRQL <= DISPATCH_LEVEL.
    unsafe { at_dispatch(|at| adapter.cancel_send(cancel_id.cast_const().cast(), at)) };
}

/// MINIPORT_RETURN_NET_BUFFER_LISTS, IRQL <= DISPATCH_LEVEL.
unsafe extern "win64" fn miniport_return_net_buffer_lists(
    context: sys::NDIS_HANDLE,
    lists: *mut sys::NET_BUFFER_LIST,
    _flags: u32,
) {
    // SAFETY: a live adapter, and the chain of this call, of lists that it indicated.
    let (adapter, chain) = unsafe { (adapter(context), ReturnedChain::from_raw(lists)) };
    // SAFETY: documented to run at IRQL <= DISPATCH_LEVEL.
    unsafe { at_dispatch(|at| adapter.take_back(chain, at)) };
}

/// MINIPORT_CHECK_FOR_HANG, IRQL <= DISPATCH_LEVEL.
unsafe extern "win64" fn miniport_check_for_hang_ex(context: sys::NDIS_HANDLE) -> sys::BOOLEAN {
    // SAFETY: a live adapter.
    sys::BOOLEAN::from(unsafe { adapter(context) }.is_hung())
}

/// MINIPORT_RESET, IRQL <= DISPATCH_LEVEL. Marks and queues only: verbs need PASSIVE_LEVEL.
unsafe extern "win64" fn miniport_reset_ex(
    context: sys::NDIS_HANDLE,
    addressing_reset: *mut sys::BOOLEAN,
) -> sys::NDIS_STATUS {
    // SAFETY: a live adapter, and a place for the answer.
    unsafe {
        // Packet filter and multicast list survive a reset.
        addressing_reset.write(sys::FALSE);
        adapter(context).request_reset()
    }
}

/// MINIPORT_DEVICE_PNP_EVENT_NOTIFY, PASSIVE_LEVEL.
unsafe extern "win64" fn miniport_device_pnp_event_notify(
    context: sys::NDIS_HANDLE,
    event: *mut sys::NET_DEVICE_PNP_EVENT,
) {
    // SAFETY: documented to run at PASSIVE_LEVEL, on a live adapter, with a valid event.
    let (adapter, mut at, event) = unsafe { (adapter(context), Passive::assume(), (*event).DevicePnPEvent) };
    if event == sys::NdisDevicePnPEventSurpriseRemoved {
        adapter.surprise_removed(&mut at);
    }
}

/// MINIPORT_SHUTDOWN. PASSIVE_LEVEL for NdisShutdownPowerOff; any level, with nothing to rely on, for a bug check.
unsafe extern "win64" fn miniport_shutdown_ex(context: sys::NDIS_HANDLE, action: sys::NDIS_SHUTDOWN_ACTION) {
    if action == sys::NdisShutdownPowerOff {
        // SAFETY: documented to run at PASSIVE_LEVEL for this action, on a live adapter.
        let (adapter, mut at) = unsafe { (adapter(context), Passive::assume()) };
        adapter.shutdown(&mut at);
    }
}
