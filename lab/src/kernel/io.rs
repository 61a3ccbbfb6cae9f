//! Devices and the IRPs that travel down and up their stacks.

use std::collections::HashMap;
use std::sync::Arc;

use windows_kernel_sys::{
    DEVICE_OBJECT, DEVICE_REGISTRY_PROPERTY, DRIVER_OBJECT, IO_STACK_LOCATION, IO_STATUS_BLOCK,
    IO_TYPE_DEVICE, IO_TYPE_IRP, IRP, IRP_MJ_PNP, KEVENT, NTSTATUS, SL_ERROR_RETURNED, SL_INVOKE_ON_ERROR,
    SL_INVOKE_ON_SUCCESS, SL_PENDING_RETURNED, STATUS_INVALID_DEVICE_REQUEST,
    STATUS_MORE_PROCESSING_REQUIRED, STATUS_NOT_SUPPORTED, STATUS_PENDING,
};

use super::Machine;
use super::pool::{Owner, PoolKind};
use crate::sim::{self, Lock};
use crate::verifier::rules::{
    IRP_BAD_STATUS, IRP_COMPLETED_TWICE, IRP_NOT_OWNED, IRP_PNP_STATUS, IRP_STACK_EXHAUSTED,
    OBJECT_OVER_DEREFERENCED,
};
use crate::verifier::{self, call_driver, violation};

const DEVICE_TAG: [u8; 4] = *b"Devi";
const IRP_TAG: u32 = u32::from_le_bytes(*b"Irp ");
const IRP_KIND: &str = "IRP";
const REFERENCE_KIND: &str = "object reference";

/// `IRP::AllocationFlags` of an IRP that the I/O manager frees when it is complete; the bit is the lab's own choice.
const FREED_BY_IO_MANAGER: u8 = 0x80;

/// What a device of the lab does with an IRP that reaches it.
pub trait DeviceHandler: Send + Sync {
    /// Handles the IRP, at the IRQL of its sender. Must complete it ([`Machine::complete_irp`]) and return the status
    /// it completed it with, or mark it pending, return STATUS_PENDING and complete it later.
    fn dispatch(&self, machine: &Machine, device: *mut DEVICE_OBJECT, irp: *mut IRP) -> NTSTATUS;
}

/// What `IoGetDeviceProperty` tells of a device, by property: the bytes as the caller gets them.
pub type DeviceProperties = HashMap<DEVICE_REGISTRY_PROPERTY, Vec<u8>>;

/// Devices, references and driver objects of a machine.
#[derive(Default)]
pub(super) struct IoManager {
    devices: Lock<HashMap<usize, Device>>,
    references: Lock<HashMap<usize, usize>>,
    pub extensions: Lock<HashMap<(usize, usize), usize>>,
}

struct Device {
    handler: Arc<dyn DeviceHandler>,
    properties: Arc<DeviceProperties>,
}

impl Machine {
    /// Makes a device of the lab that handles IRPs itself. It lives as long as the machine.
    pub fn create_device(
        &self,
        handler: Arc<dyn DeviceHandler>,
        properties: DeviceProperties,
    ) -> *mut DEVICE_OBJECT {
        let device = self.allocate_system(size_of::<DEVICE_OBJECT>(), DEVICE_TAG).cast::<DEVICE_OBJECT>();
        // SAFETY: freshly allocated, zeroed, large enough and aligned.
        unsafe {
            (*device).Type = IO_TYPE_DEVICE;
            (*device).Size = size_of::<DEVICE_OBJECT>() as u16;
            (*device).ReferenceCount = 1;
            (*device).StackSize = 1;
        }
        let entry = Device { handler, properties: Arc::new(properties) };
        self.0.io.devices.lock().insert(device as usize, entry);
        device
    }

    /// Puts `upper` on top of `lower`, which must be the top of its stack.
    ///
    /// # Safety
    /// Both must be devices of this machine.
    pub unsafe fn attach_device(&self, upper: *mut DEVICE_OBJECT, lower: *mut DEVICE_OBJECT) {
        // SAFETY: the caller's contract.
        unsafe {
            (*lower).AttachedDevice = upper;
            (*upper).StackSize = (*lower).StackSize + 1;
        }
    }

    /// The properties of a device of the lab.
    pub fn device_properties(&self, device: *mut DEVICE_OBJECT) -> Option<Arc<DeviceProperties>> {
        self.0.io.devices.lock().get(&(device as usize)).map(|device| Arc::clone(&device.properties))
    }

    /// Counts a reference that the driver took to an object.
    pub fn reference_object(&self, object: usize, tag: &str) {
        let count = {
            let mut references = self.0.io.references.lock();
            let count = references.entry(object).or_insert(0);
            *count += 1;
            *count
        };
        if count == 1 {
            self.acquire(REFERENCE_KIND, object, tag);
        }
    }

    /// Counts a reference that the driver gave back; gives how many it still has.
    pub fn dereference_object(&self, object: usize, call: &str) -> usize {
        let left = {
            let mut references = self.0.io.references.lock();
            let left = references.get(&object).and_then(|count| count.checked_sub(1));
            match left {
                Some(0) => {
                    references.remove(&object);
                }
                Some(count) => {
                    references.insert(object, count);
                }
                None => {}
            }
            left
        };
        let Some(left) = left else {
            violation(OBJECT_OVER_DEREFERENCED, call, "the driver holds no reference to the object");
        };
        if left == 0 {
            self.try_release(REFERENCE_KIND, object);
        }
        left
    }

    /// Makes an IRP with `stack_size` locations. With `automatic` the I/O manager frees it on completion.
    pub fn allocate_irp(&self, stack_size: i8, automatic: bool, tag: &str) -> *mut IRP {
        let locations = stack_size.max(1) as usize;
        let size = size_of::<IRP>() + locations * size_of::<IO_STACK_LOCATION>();
        let irp = self.allocate(size, IRP_TAG, PoolKind::SYSTEM, Owner::System).cast::<IRP>();
        // SAFETY: freshly allocated, zeroed, large enough and aligned; the locations lie behind the header.
        unsafe {
            (*irp).Type = IO_TYPE_IRP;
            (*irp).Size = size as u16;
            (*irp).StackCount = locations as i8;
            (*irp).CurrentLocation = locations as i8 + 1;
            (*irp).AllocationFlags = if automatic { FREED_BY_IO_MANAGER } else { 0 };
            let first = irp.add(1).cast::<IO_STACK_LOCATION>();
            (*irp).Tail.Overlay.CurrentStackLocation = first.add(locations);
        }
        self.acquire(IRP_KIND, irp as usize, tag);
        irp
    }

    /// Frees an IRP.
    pub fn free_irp(&self, irp: *mut IRP, call: &str) {
        self.release(IRP_KIND, irp as usize, call, Some(IRP_NOT_OWNED));
        self.free(irp.cast(), IRP_TAG, Owner::System, call);
    }

    /// Builds a request of the kind that signals `event` when complete (IoBuildSynchronousFsdRequest).
    ///
    /// # Safety
    /// `event` and `status` must stay valid until the request is complete, `device` be a device.
    pub unsafe fn build_synchronous_request(
        &self,
        major: u8,
        device: *mut DEVICE_OBJECT,
        event: *mut KEVENT,
        status: *mut IO_STATUS_BLOCK,
    ) -> *mut IRP {
        // SAFETY: the caller's contract.
        let stack_size = unsafe { (*device).StackSize };
        let irp = self.allocate_irp(stack_size, true, "IoBuildSynchronousFsdRequest");
        // SAFETY: a fresh IRP, with at least one location left.
        unsafe {
            (*irp).UserEvent = event;
            (*irp).UserIosb = status;
            (*windows_kernel_sys::IoGetNextIrpStackLocation(irp)).MajorFunction = major;
        }
        irp
    }

    /// Sends an IRP to a device (IofCallDriver).
    ///
    /// # Safety
    /// `device` must be a device of this machine; `irp` is checked to be a live IRP.
    pub unsafe fn call_device(
        &self,
        device: *mut DEVICE_OBJECT,
        irp: *mut IRP,
        call: &'static str,
    ) -> NTSTATUS {
        self.check_irp(irp, call);
        // SAFETY: checked to be a live IRP; the caller's contract for the device.
        let major = unsafe {
            if (*irp).CurrentLocation <= 1 {
                violation(IRP_STACK_EXHAUSTED, call, "the IRP has no stack location left");
            }
            (*irp).CurrentLocation -= 1;
            (*irp).Tail.Overlay.CurrentStackLocation = (*irp).Tail.Overlay.CurrentStackLocation.sub(1);
            let location = (*irp).Tail.Overlay.CurrentStackLocation;
            (*location).DeviceObject = device;
            (*location).MajorFunction
        };
        if major == IRP_MJ_PNP {
            verifier::irql("IofCallDriver(IRP_MJ_PNP)", ..=super::irql::PASSIVE_LEVEL);
            // SAFETY: checked to be a live IRP.
            let status = unsafe { (*irp).IoStatus.status() };
            if status != STATUS_NOT_SUPPORTED {
                violation(IRP_PNP_STATUS, call, format!("the IRP's status is {status:#x}"));
            }
        }
        let handler =
            self.0.io.devices.lock().get(&(device as usize)).map(|device| Arc::clone(&device.handler));
        if let Some(handler) = handler {
            return handler.dispatch(self, device, irp);
        }
        // SAFETY: the caller's contract: a device, whose driver object is valid if it has one.
        let routine = unsafe {
            let driver: *mut DRIVER_OBJECT = (*device).DriverObject;
            if driver.is_null() {
                None
            } else {
                (*driver).MajorFunction.get(major as usize).copied().flatten()
            }
        };
        let Some(routine) = routine else {
            // SAFETY: checked to be a live IRP.
            unsafe { self.complete_irp(irp, STATUS_INVALID_DEVICE_REQUEST, 0) };
            return STATUS_INVALID_DEVICE_REQUEST;
        };
        // SAFETY: the driver's own dispatch routine, with its device and a live IRP.
        call_driver("DispatchRoutine", sim::level(), || unsafe { routine(device, irp) })
    }

    /// Completes an IRP with a status, as a device of the lab does.
    ///
    /// # Safety
    /// `irp` must be a live IRP that the caller holds.
    pub unsafe fn complete_irp(&self, irp: *mut IRP, status: NTSTATUS, information: usize) {
        // SAFETY: the caller's contract.
        unsafe {
            (*irp).IoStatus = IO_STATUS_BLOCK::new(status, information);
            self.complete_request(irp, "complete_irp");
        }
    }

    /// Completes an IRP with the status it holds (IofCompleteRequest): the completion routines run from the bottom
    /// up, until one keeps the IRP.
    ///
    /// # Safety
    /// `irp` is checked to be live; its status block must be filled in.
    pub unsafe fn complete_request(&self, irp: *mut IRP, call: &'static str) {
        self.check_irp(irp, call);
        // SAFETY: checked to be a live IRP, whose locations are its own.
        unsafe {
            let status = (*irp).IoStatus.status();
            if status == STATUS_PENDING {
                violation(IRP_BAD_STATUS, call, "completed with STATUS_PENDING");
            }
            if (*irp).CurrentLocation > (*irp).StackCount {
                violation(IRP_COMPLETED_TWICE, call, "no driver holds the IRP");
            }
            while (*irp).CurrentLocation <= (*irp).StackCount {
                let location = (*irp).Tail.Overlay.CurrentStackLocation;
                let IO_STACK_LOCATION {
                    Control: control, CompletionRoutine: routine, Context: context, ..
                } = *location;
                (*irp).PendingReturned = u8::from(control & SL_PENDING_RETURNED != 0);
                (*irp).CurrentLocation += 1;
                (*irp).Tail.Overlay.CurrentStackLocation = location.add(1);
                // The routine belongs to the driver above, whose device is in its own location; the one that made
                // the IRP has none.
                let device = if (*irp).CurrentLocation > (*irp).StackCount {
                    std::ptr::null_mut()
                } else {
                    (*location.add(1)).DeviceObject
                };
                let wanted = if status >= 0 { SL_INVOKE_ON_SUCCESS } else { SL_INVOKE_ON_ERROR };
                if let Some(routine) = routine.filter(|_| control & wanted != 0) {
                    let result = call_driver("IoCompletion", sim::level(), || routine(device, irp, context));
                    if result == STATUS_MORE_PROCESSING_REQUIRED {
                        return;
                    }
                } else if (*irp).PendingReturned != 0 && (*irp).CurrentLocation <= (*irp).StackCount {
                    (*location.add(1)).Control |= SL_PENDING_RETURNED;
                }
                if status < 0 && (*irp).CurrentLocation <= (*irp).StackCount {
                    (*location.add(1)).Control |= SL_ERROR_RETURNED;
                }
            }
            if (*irp).AllocationFlags & FREED_BY_IO_MANAGER == 0 {
                let detail = "the IRP went past its maker, who must keep it in a completion routine";
                violation(IRP_NOT_OWNED, call, detail);
            }
            let (block, event, result) = ((*irp).UserIosb, (*irp).UserEvent, (*irp).IoStatus);
            self.free_irp(irp, call);
            if !block.is_null() {
                *block = result;
            }
            if !event.is_null() {
                self.set_event(event, call);
            }
        }
    }

    fn check_irp(&self, irp: *mut IRP, call: &str) {
        if !self.holds(IRP_KIND, irp as usize) {
            violation(IRP_NOT_OWNED, call, "the IRP is not live: freed, completed, or none");
        }
    }
}
