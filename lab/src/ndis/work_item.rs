//! NDIS I/O work items (ndis/nf-ndis-ndisallocateioworkitem and its neighbours).

use std::ptr;
use std::sync::Arc;

use windows_kernel_sys::{NDIS_HANDLE, NDIS_IO_WORKITEM_FUNCTION, PVOID};

use super::call::{UP_TO_DISPATCH, entered, entered_or_fails};
use super::driver::DriverCore;
use super::handle::{self, Handle, Object, Owner};
use super::rules::{self, broken};
use crate::export;
use crate::kernel::irql::PASSIVE_LEVEL;
use crate::sim::Lock;
use crate::verifier::call_driver;

/// A work item.
pub(super) struct WorkItem {
    handle: Handle,
    driver: Arc<DriverCore>,
    queued: Lock<bool>,
}

export! { "ndis.sys";
    /// IRQL <= DISPATCH_LEVEL (ndis/nf-ndis-ndisallocateioworkitem). Null if there is no memory.
    pub unsafe fn NdisAllocateIoWorkItem(NdisObjectHandle: NDIS_HANDLE) -> NDIS_HANDLE {
        const CALL: &str = "NdisAllocateIoWorkItem";
        if entered_or_fails(CALL, UP_TO_DISPATCH) {
            return ptr::null_mut();
        }
        let owner = Owner::of(NdisObjectHandle, CALL);
        let number = handle::reserve();
        let item = WorkItem { handle: number, driver: owner.driver(), queued: Lock::new(false) };
        handle::bind(number, Some(owner.handle()), Object::WorkItem(Arc::new(item)));
        number.raw()
    }

    /// IRQL <= DISPATCH_LEVEL (ndis/nf-ndis-ndisqueueioworkitem). The function runs at PASSIVE_LEVEL; the driver is
    /// not unloaded before it has returned.
    pub unsafe fn NdisQueueIoWorkItem(
        NdisIoWorkItemHandle: NDIS_HANDLE, Routine: NDIS_IO_WORKITEM_FUNCTION, WorkItemContext: PVOID,
    ) {
        const CALL: &str = "NdisQueueIoWorkItem";
        entered(CALL, UP_TO_DISPATCH);
        let item: Arc<WorkItem> = handle::get(NdisIoWorkItemHandle, CALL);
        let Some(routine) = Routine else { broken(&rules::NDIS_WORK_ITEM, CALL, "the routine is null") };
        let queued = std::mem::replace(&mut *item.queued.lock(), true);
        if queued {
            broken(&rules::NDIS_WORK_ITEM, CALL, "the work item is queued already");
        }
        let context = WorkItemContext as usize;
        let driver = Arc::clone(&item.driver);
        driver.work_began();
        let machine = driver.machine.clone();
        machine.queue_work("NDIS work item", move || {
            *item.queued.lock() = false;
            let number = item.handle.raw();
            call_driver("NDIS_IO_WORKITEM_FUNCTION", PASSIVE_LEVEL, || {
                // SAFETY: the function the driver queued, with its context and the item's handle.
                unsafe { routine(context as PVOID, number) };
            });
            driver.work_ended();
        });
    }

    /// IRQL <= DISPATCH_LEVEL (ndis/nf-ndis-ndisfreeioworkitem). Its own function may free it.
    pub unsafe fn NdisFreeIoWorkItem(NdisIoWorkItemHandle: NDIS_HANDLE) {
        const CALL: &str = "NdisFreeIoWorkItem";
        entered(CALL, UP_TO_DISPATCH);
        let item: Arc<WorkItem> = handle::get(NdisIoWorkItemHandle, CALL);
        let queued = *item.queued.lock();
        if queued {
            broken(&rules::NDIS_WORK_ITEM, CALL, "the work item is queued and has not begun");
        }
        handle::close(item.handle);
    }
}
