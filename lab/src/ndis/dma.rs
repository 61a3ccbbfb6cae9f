//! Scatter/gather DMA and shared memory (ndis/nf-ndis-ndismregisterscattergatherdma and its neighbours).

use std::collections::HashMap;
use std::ptr;
use std::sync::Arc;

use windows_kernel_sys::{
    ADDRESS_AND_SIZE_TO_SPAN_PAGES, BOOLEAN, DEVICE_OBJECT, NDIS_HANDLE, NDIS_OBJECT_TYPE_SG_DMA_DESCRIPTION,
    NDIS_SG_DMA_DESCRIPTION, NDIS_SG_DMA_DESCRIPTION_REVISION_1, NDIS_SIZEOF_SG_DMA_DESCRIPTION_REVISION_1,
    NDIS_STATUS, NDIS_STATUS_BAD_CHARACTERISTICS, NDIS_STATUS_RESOURCES, NDIS_STATUS_SUCCESS, NET_BUFFER,
    PAGE_SIZE, PHYSICAL_ADDRESS, PVOID, SCATTER_GATHER_ELEMENT, SCATTER_GATHER_LIST,
};

use super::adapter::Core;
use super::attributes::header;
use super::call::{DISPATCH, PASSIVE, entered, entered_or_fails};
use super::handle::{self, Handle, Object};
use super::memory::Block;
use super::net_buffer;
use super::rules::{self, broken};
use crate::export;
use crate::kernel::Machine;
use crate::kernel::irql::DISPATCH_LEVEL;
use crate::sim::Lock;
use crate::verifier::call_driver;

type ProcessList = unsafe extern "win64" fn(*mut DEVICE_OBJECT, PVOID, *mut SCATTER_GATHER_LIST, PVOID);

/// A DMA channel of an adapter.
pub(super) struct ScatterGather {
    handle: Handle,
    core: Arc<Core>,
    process: ProcessList,
    maximum: usize,
}

/// A scatter/gather list that the miniport has.
struct List {
    address: usize,
    /// Memory that NDIS allocated because the miniport's was missing or too small.
    block: Option<Block>,
    /// MiniportProcessSGList was called.
    processed: bool,
    channel: Handle,
}

/// What an adapter has of DMA.
#[derive(Default)]
pub(super) struct DmaTable {
    lists: Lock<HashMap<usize, List>>,
    shared: Lock<HashMap<usize, (u32, Block)>>,
}

impl DmaTable {
    /// Whether the miniport has a list for the data of this NET_BUFFER.
    pub fn has_list(&self, buffer: usize) -> bool {
        self.lists.lock().contains_key(&buffer)
    }

    /// Blocks of shared memory that were not freed.
    pub fn shared_blocks(&self) -> usize {
        self.shared.lock().len()
    }
}

/// Bytes of a list of so many elements.
fn list_size(elements: usize) -> usize {
    size_of::<SCATTER_GATHER_LIST>() + elements * size_of::<SCATTER_GATHER_ELEMENT>()
}

/// The elements for the data of a NET_BUFFER: from the start of its current MDL, a page at a time
/// (ndis/nf-ndis-ndismallocatenetbuffersglist, remarks).
///
/// # Safety
/// `buffer` must point to a NET_BUFFER with a readable MDL chain.
unsafe fn elements(
    machine: &Machine,
    buffer: *const NET_BUFFER,
) -> Result<Vec<SCATTER_GATHER_ELEMENT>, String> {
    // SAFETY: the caller's contract.
    let header = unsafe { &*buffer };
    let length = header.CurrentMdlOffset as usize + header.data_length() as usize;
    let mut elements: Vec<SCATTER_GATHER_ELEMENT> = Vec::new();
    for piece in net_buffer::collect(header.CurrentMdl, 0, length)? {
        let (mut at, mut rest) = (piece.start, piece.length);
        while rest > 0 {
            let part = rest.min(PAGE_SIZE - at as usize % PAGE_SIZE);
            let physical = machine.to_phys(at);
            match elements.last_mut() {
                Some(last) if last.Address as u64 + u64::from(last.Length) == physical => {
                    last.Length += part as u32;
                }
                _ => elements.push(SCATTER_GATHER_ELEMENT {
                    Address: physical as PHYSICAL_ADDRESS,
                    Length: part as u32,
                    Reserved: 0,
                }),
            }
            at = at.wrapping_add(part);
            rest -= part;
        }
    }
    Ok(elements)
}

impl ScatterGather {
    /// Calls MiniportProcessSGList for the list of a NET_BUFFER.
    fn run(&self, buffer: usize, address: usize, context: usize) {
        if let Some(list) = self.core.dma.lists.lock().get_mut(&buffer) {
            list.processed = true;
        }
        let device = self.core.devices.functional as *mut DEVICE_OBJECT;
        call_driver("MiniportProcessSGList", DISPATCH_LEVEL, || {
            // SAFETY: the handler the miniport registered, with a list that lives until it is freed.
            unsafe {
                (self.process)(
                    device,
                    ptr::null_mut(),
                    address as *mut SCATTER_GATHER_LIST,
                    context as PVOID,
                );
            };
        });
    }
}

export! { "ndis.sys";
    /// PASSIVE_LEVEL, in MiniportInitializeEx (ndis/nf-ndis-ndismregisterscattergatherdma).
    pub unsafe fn NdisMRegisterScatterGatherDma(
        MiniportAdapterHandle: NDIS_HANDLE, DmaDescription: *mut NDIS_SG_DMA_DESCRIPTION,
        NdisMiniportDmaHandle: *mut NDIS_HANDLE,
    ) -> NDIS_STATUS {
        const CALL: &str = "NdisMRegisterScatterGatherDma";
        if entered_or_fails(CALL, PASSIVE) {
            return NDIS_STATUS_RESOURCES;
        }
        let core: Arc<Core> = handle::get(MiniportAdapterHandle, CALL);
        core.needs_registration(CALL);
        // SAFETY: the driver's structure, valid for the call.
        let description = unsafe { &mut *DmaDescription };
        let sizes = [(NDIS_SG_DMA_DESCRIPTION_REVISION_1, NDIS_SIZEOF_SG_DMA_DESCRIPTION_REVISION_1)];
        if let Err(what) = header(description.Header, NDIS_OBJECT_TYPE_SG_DMA_DESCRIPTION, &sizes) {
            broken(&rules::NDIS_OBJECT_HEADER, CALL, what);
        }
        let Some(process) = description.ProcessSGListHandler else { return NDIS_STATUS_BAD_CHARACTERISTICS };
        let maximum = description.MaximumPhysicalMapping as usize;
        if maximum == 0 {
            broken(&rules::NDIS_DMA, CALL, "MaximumPhysicalMapping is 0");
        }
        // Enough for a buffer of that size that begins at the end of a page.
        description.ScatterGatherListSize =
            list_size(ADDRESS_AND_SIZE_TO_SPAN_PAGES(PAGE_SIZE - 1, maximum)) as u32;
        let number = handle::reserve();
        let owner = core.handle;
        let channel = ScatterGather { handle: number, core, process, maximum };
        handle::bind(number, Some(owner), Object::ScatterGather(Arc::new(channel)));
        // SAFETY: the driver's variable.
        unsafe { *NdisMiniportDmaHandle = number.raw() };
        NDIS_STATUS_SUCCESS
    }

    /// PASSIVE_LEVEL (ndis/nf-ndis-ndismderegisterscattergatherdma).
    pub unsafe fn NdisMDeregisterScatterGatherDma(NdisMiniportDmaHandle: NDIS_HANDLE) {
        const CALL: &str = "NdisMDeregisterScatterGatherDma";
        entered(CALL, PASSIVE);
        let channel: Arc<ScatterGather> = handle::get(NdisMiniportDmaHandle, CALL);
        let left = channel.core.dma.lists.lock().values().filter(|list| list.channel == channel.handle).count();
        if left > 0 {
            broken(&rules::NDIS_DMA, CALL, format!("{left} scatter/gather list(s) are not freed"));
        }
        handle::close(channel.handle);
    }

    /// DISPATCH_LEVEL (ndis/nf-ndis-ndismallocatenetbuffersglist). The handler is called before or after this returns.
    pub unsafe fn NdisMAllocateNetBufferSGList(
        NdisMiniportDmaHandle: NDIS_HANDLE, NetBuffer: *mut NET_BUFFER, Context: PVOID, Flags: u32,
        ScatterGatherListBuffer: PVOID, ScatterGatherListBufferSize: u32,
    ) -> NDIS_STATUS {
        const CALL: &str = "NdisMAllocateNetBufferSGList";
        if entered_or_fails(CALL, DISPATCH) {
            return NDIS_STATUS_RESOURCES;
        }
        let channel: Arc<ScatterGather> = handle::get(NdisMiniportDmaHandle, CALL);
        if Flags & !windows_kernel_sys::NDIS_SG_LIST_WRITE_TO_DEVICE != 0 {
            broken(&rules::NDIS_DMA, CALL, format!("unknown flags {Flags:#x}"));
        }
        if channel.core.dma.has_list(NetBuffer as usize) {
            broken(&rules::NDIS_DMA, CALL, "the NET_BUFFER has a list already");
        }
        let machine = &channel.core.machine;
        // SAFETY: the driver owns the NET_BUFFER.
        let elements = match unsafe { elements(machine, NetBuffer) } {
            Ok(elements) => elements,
            Err(what) => broken(&rules::NDIS_MDL_CHAIN, CALL, what),
        };
        if elements.iter().map(|element| element.Length as usize).sum::<usize>() > channel.maximum {
            // More than the map registers that were reserved for the channel.
            return NDIS_STATUS_RESOURCES;
        }
        let needed = list_size(elements.len());
        let fits = !ScatterGatherListBuffer.is_null() && ScatterGatherListBufferSize as usize >= needed;
        let block = (!fits).then(|| Block::on(machine, needed));
        let list: *mut SCATTER_GATHER_LIST =
            block.as_ref().map_or(ScatterGatherListBuffer.cast(), |block| block.pointer().cast());
        // SAFETY: the memory, the driver's or NDIS's, holds a list of that many elements.
        unsafe {
            (*list).NumberOfElements = elements.len() as u32;
            (*list).Reserved = 0;
            let first = list.add(1).cast::<SCATTER_GATHER_ELEMENT>();
            ptr::copy_nonoverlapping(elements.as_ptr(), first, elements.len());
        }
        let (buffer, address, context) = (NetBuffer as usize, list as usize, Context as usize);
        let entry = List { address, block, processed: false, channel: channel.handle };
        channel.core.dma.lists.lock().insert(buffer, entry);
        let parts = channel.core.options.late_dma;
        if machine.sim().rng(|rng| rng.chance(parts)) {
            let later = Arc::clone(&channel);
            machine.queue_dpc("HAL builds a list", move || later.run(buffer, address, context));
        } else {
            channel.run(buffer, address, context);
        }
        NDIS_STATUS_SUCCESS
    }

    /// DISPATCH_LEVEL (ndis/nf-ndis-ndismfreenetbuffersglist).
    pub unsafe fn NdisMFreeNetBufferSGList(
        NdisMiniportDmaHandle: NDIS_HANDLE, pSGL: *mut SCATTER_GATHER_LIST, NetBuffer: *mut NET_BUFFER,
    ) {
        const CALL: &str = "NdisMFreeNetBufferSGList";
        entered(CALL, DISPATCH);
        let channel: Arc<ScatterGather> = handle::get(NdisMiniportDmaHandle, CALL);
        let list = channel.core.dma.lists.lock().remove(&(NetBuffer as usize));
        let Some(list) = list else {
            broken(&rules::NDIS_DMA, CALL, "the NET_BUFFER has no list: freed before, or never allocated");
        };
        if list.address != pSGL as usize || list.channel != channel.handle {
            broken(&rules::NDIS_DMA, CALL, "the list is not the one that was allocated for this NET_BUFFER");
        }
        if !list.processed {
            broken(&rules::NDIS_DMA, CALL, "freed before MiniportProcessSGList was called");
        }
        drop(list.block);
    }

    /// PASSIVE_LEVEL (ndis/nf-ndis-ndismallocatesharedmemory). No block is larger than a page: the lab's physical
    /// pages are never contiguous.
    pub unsafe fn NdisMAllocateSharedMemory(
        MiniportAdapterHandle: NDIS_HANDLE, Length: u32, Cached: BOOLEAN, VirtualAddress: *mut PVOID,
        PhysicalAddress: *mut PHYSICAL_ADDRESS,
    ) {
        const CALL: &str = "NdisMAllocateSharedMemory";
        let fails = entered_or_fails(CALL, PASSIVE);
        let core: Arc<Core> = handle::get(MiniportAdapterHandle, CALL);
        core.needs_registration(CALL);
        let _ = Cached;
        let (virtual_address, physical) = if fails || Length == 0 || Length as usize > PAGE_SIZE {
            (ptr::null_mut(), 0)
        } else {
            let block = Block::on(&core.machine, Length as usize);
            let address = block.pointer();
            core.dma.shared.lock().insert(address as usize, (Length, block));
            (address.cast(), core.machine.to_phys(address) as PHYSICAL_ADDRESS)
        };
        // SAFETY: the driver's variables.
        unsafe {
            *VirtualAddress = virtual_address;
            *PhysicalAddress = physical;
        }
    }

    /// PASSIVE_LEVEL (ndis/nf-ndis-ndismfreesharedmemory).
    pub unsafe fn NdisMFreeSharedMemory(
        MiniportAdapterHandle: NDIS_HANDLE, Length: u32, Cached: BOOLEAN, VirtualAddress: PVOID,
        PhysicalAddress: PHYSICAL_ADDRESS,
    ) {
        const CALL: &str = "NdisMFreeSharedMemory";
        entered(CALL, PASSIVE);
        let core: Arc<Core> = handle::get(MiniportAdapterHandle, CALL);
        let _ = Cached;
        let entry = core.dma.shared.lock().remove(&(VirtualAddress as usize));
        let Some((length, block)) = entry else {
            broken(&rules::NDIS_MEMORY, CALL, "no such block of shared memory is allocated");
        };
        if length != Length || core.machine.to_phys(block.pointer()) != PhysicalAddress as u64 {
            broken(&rules::NDIS_MEMORY, CALL, "length or physical address differ from the allocation's");
        }
        drop(block);
    }
}
