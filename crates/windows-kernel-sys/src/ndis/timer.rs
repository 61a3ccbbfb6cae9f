//! NDIS timers and I/O work items (`ndis.h`).

use super::{NDIS_HANDLE, NDIS_OBJECT_HEADER};
use crate::nt::PVOID;

/// ndis/ns-ndis-_ndis_timer_characteristics.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct NDIS_TIMER_CHARACTERISTICS {
    pub Header: NDIS_OBJECT_HEADER,
    pub AllocationTag: u32,
    pub TimerFunction: NDIS_TIMER_FUNCTION,
    pub FunctionContext: PVOID,
}
pub const NDIS_TIMER_CHARACTERISTICS_REVISION_1: u8 = 1;
pub const NDIS_SIZEOF_TIMER_CHARACTERISTICS_REVISION_1: u16 = 24;

/// DISPATCH_LEVEL (ndis/nc-ndis-ndis_timer_function).
pub type NDIS_TIMER_FUNCTION = Option<
    unsafe extern "win64" fn(
        SystemSpecific1: PVOID,
        FunctionContext: PVOID,
        SystemSpecific2: PVOID,
        SystemSpecific3: PVOID,
    ),
>;

/// PASSIVE_LEVEL (ndis/nc-ndis-ndis_io_workitem_function).
pub type NDIS_IO_WORKITEM_FUNCTION =
    Option<unsafe extern "win64" fn(WorkItemContext: PVOID, NdisIoWorkItemHandle: NDIS_HANDLE)>;

layout! {
    NDIS_TIMER_CHARACTERISTICS: 24, 8 {
        Header @ 0, AllocationTag @ 4, TimerFunction @ 8, FunctionContext @ 16
    }
}
