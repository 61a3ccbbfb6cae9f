//! Sends and receives.

use std::ptr;

use windows_kernel_sys::*;

use super::{Device, MTU, Mapping, Misdeed, Sending, TAG, cable, device};

/// Something that a pause waits for has ended.
pub(super) fn less_busy(device: &Device, by: usize) {
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
pub(super) unsafe fn complete(device: &Device, list: *mut NET_BUFFER_LIST, status: NDIS_STATUS) {
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

pub(super) unsafe extern "win64" fn send(
    context: NDIS_HANDLE,
    first: *mut NET_BUFFER_LIST,
    _port: u32,
    flags: u32,
) {
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

pub(super) unsafe extern "win64" fn timer(_one: PVOID, context: PVOID, _two: PVOID, _three: PVOID) {
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
pub(super) fn drain(device: &Device) {
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

pub(super) fn raise() -> KIRQL {
    // SAFETY: raising from DISPATCH_LEVEL or below.
    unsafe { if KeGetCurrentIrql() < DISPATCH_LEVEL { KfRaiseIrql(DISPATCH_LEVEL) } else { DISPATCH_LEVEL } }
}

pub(super) fn lower(irql: KIRQL) {
    // SAFETY: to the level before `raise`.
    unsafe { KeLowerIrql(irql) };
}

pub(super) unsafe extern "win64" fn process_list(
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
pub(super) unsafe fn check_view(buffer: *mut NET_BUFFER, frame: &[u8]) {
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
pub(super) fn sent(sending: &Sending) {
    // SAFETY: the device lives while it is busy.
    let device = unsafe { &*sending.device };
    match cable::peer_of(device) {
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
pub(super) fn receive(device: &Device, frames: &[Vec<u8>]) {
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

pub(super) fn make_list(device: &Device, frame: &[u8]) -> *mut NET_BUFFER_LIST {
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

pub(super) unsafe extern "win64" fn give_back(
    context: NDIS_HANDLE,
    first: *mut NET_BUFFER_LIST,
    _flags: u32,
) {
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

pub(super) unsafe extern "win64" fn cancel_send(context: NDIS_HANDLE, id: PVOID) {
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
