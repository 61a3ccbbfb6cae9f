//! Pause, restart, reset, OID requests.

use std::collections::VecDeque;
use std::ptr;

use windows_kernel_sys::*;

use super::data::complete;
use super::setup::{indicate_link, register};
use super::{DESCRIPTION, Device, Misdeed, VENDOR, device};

pub(super) unsafe extern "win64" fn restart(
    context: NDIS_HANDLE,
    _parameters: *mut NDIS_MINIPORT_RESTART_PARAMETERS,
) -> NDIS_STATUS {
    let device = device(context);
    device.state.lock().running = true;
    // SAFETY: the adapter is initialised.
    unsafe { indicate_link(device.handle, device.misdeed, true) };
    NDIS_STATUS_SUCCESS
}

pub(super) unsafe extern "win64" fn pause(
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

pub(super) unsafe extern "win64" fn oid_request(
    context: NDIS_HANDLE,
    request: *mut NDIS_OID_REQUEST,
) -> NDIS_STATUS {
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
pub(super) unsafe fn answer(request: *mut NDIS_OID_REQUEST, value: &[u8], misdeed: Misdeed) -> NDIS_STATUS {
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

pub(super) fn queue_work(device: &Device) {
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

pub(super) unsafe extern "win64" fn work(context: PVOID, _item: NDIS_HANDLE) {
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

pub(super) unsafe extern "win64" fn check_for_hang(_context: NDIS_HANDLE) -> BOOLEAN {
    FALSE
}

pub(super) unsafe extern "win64" fn reset(context: NDIS_HANDLE, _addressing: *mut BOOLEAN) -> NDIS_STATUS {
    let device = device(context);
    device.state.lock().resetting = true;
    queue_work(device);
    NDIS_STATUS_PENDING
}

pub(super) unsafe extern "win64" fn pnp_event(_context: NDIS_HANDLE, _event: *mut NET_DEVICE_PNP_EVENT) {}

pub(super) unsafe extern "win64" fn shutdown(_context: NDIS_HANDLE, _action: NDIS_SHUTDOWN_ACTION) {}

pub(super) unsafe extern "win64" fn cancel_oid(_context: NDIS_HANDLE, _id: PVOID) {}
