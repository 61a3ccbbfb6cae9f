//! Scatter/gather DMA (`ndis.h`).

use super::{NDIS_HANDLE, NDIS_OBJECT_HEADER};
use crate::nt::{DEVICE_OBJECT, PHYSICAL_ADDRESS, PVOID, SCATTER_GATHER_LIST};

/// ndis/nf-ndis-ndismregisterscattergatherdma, parameter DmaDescription.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct NDIS_SG_DMA_DESCRIPTION {
    pub Header: NDIS_OBJECT_HEADER,
    pub Flags: u32,
    pub MaximumPhysicalMapping: u32,
    pub ProcessSGListHandler: MINIPORT_PROCESS_SG_LIST_HANDLER,
    pub SharedMemAllocateCompleteHandler: MINIPORT_ALLOCATE_SHARED_MEM_COMPLETE_HANDLER,
    /// Out: bytes a scatter/gather list takes.
    pub ScatterGatherListSize: u32,
}
pub const NDIS_SG_DMA_DESCRIPTION_REVISION_1: u8 = 1;
pub const NDIS_SIZEOF_SG_DMA_DESCRIPTION_REVISION_1: u16 = 36;

/// The adapter can address 64 bits.
pub const NDIS_SG_DMA_64_BIT_ADDRESS: u32 = 0x0000_0001;

/// Flags of `NdisMAllocateNetBufferSGList`: data goes to the device, as for a send.
pub const NDIS_SG_LIST_WRITE_TO_DEVICE: u32 = 0x0000_0001;

/// DISPATCH_LEVEL (ndis/nc-ndis-miniport_process_sg_list).
pub type MINIPORT_PROCESS_SG_LIST_HANDLER = Option<
    unsafe extern "win64" fn(
        pDO: *mut DEVICE_OBJECT,
        Reserved: PVOID,
        pSGL: *mut SCATTER_GATHER_LIST,
        Context: PVOID,
    ),
>;
/// PASSIVE_LEVEL (ndis/nc-ndis-miniport_allocate_shared_mem_complete).
pub type MINIPORT_ALLOCATE_SHARED_MEM_COMPLETE_HANDLER = Option<
    unsafe extern "win64" fn(
        MiniportAdapterContext: NDIS_HANDLE,
        VirtualAddress: PVOID,
        PhysicalAddress: *mut PHYSICAL_ADDRESS,
        Length: u32,
        Context: PVOID,
    ),
>;

layout! {
    NDIS_SG_DMA_DESCRIPTION: 40, 8 {
        Header @ 0, Flags @ 4, MaximumPhysicalMapping @ 8, ProcessSGListHandler @ 16,
        SharedMemAllocateCompleteHandler @ 24, ScatterGatherListSize @ 32
    }
}
