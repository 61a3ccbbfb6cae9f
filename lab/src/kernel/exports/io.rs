//! `Io` and `Ob`: devices, IRPs, MDLs, driver object extensions.

use std::ptr;

use windows_kernel_sys::{
    BOOLEAN, DEVICE_OBJECT, DEVICE_REGISTRY_PROPERTY, DRIVER_OBJECT, IO_STATUS_BLOCK, IRP, IRP_MJ_PNP,
    KEVENT, MDL, NTSTATUS, PVOID, STATUS_BUFFER_TOO_SMALL, STATUS_INSUFFICIENT_RESOURCES,
    STATUS_INVALID_DEVICE_REQUEST, STATUS_OBJECT_NAME_COLLISION, STATUS_OBJECT_NAME_NOT_FOUND,
    STATUS_SUCCESS,
};

use crate::fault;
use crate::kernel::irql::{DISPATCH_LEVEL, PASSIVE_LEVEL};
use crate::kernel::mdl::MdlOwner;
use crate::kernel::{Machine, preempt};
use crate::verifier::irql;

crate::export! {
    "ntoskrnl.exe";

    /// Memory that belongs to a driver object, found again by the client's address. PASSIVE_LEVEL. Can fail.
    pub unsafe fn IoAllocateDriverObjectExtension(
        driver_object: *mut DRIVER_OBJECT,
        client: PVOID,
        size: u32,
        extension: *mut PVOID,
    ) -> NTSTATUS {
        let call = "IoAllocateDriverObjectExtension";
        irql(call, ..=PASSIVE_LEVEL);
        preempt(call);
        // SAFETY: the caller's variable.
        unsafe { *extension = ptr::null_mut() };
        if fault::should_fail(call) {
            return STATUS_INSUFFICIENT_RESOURCES;
        }
        let machine = Machine::current();
        let key = (driver_object as usize, client as usize);
        if machine.driver_extension(key).is_some() {
            return STATUS_OBJECT_NAME_COLLISION;
        }
        let memory = machine.add_driver_extension(key, size as usize);
        // SAFETY: the caller's variable.
        unsafe { *extension = memory.cast() };
        STATUS_SUCCESS
    }

    /// The extension of that client, or null. IRQL <= DISPATCH_LEVEL.
    pub unsafe fn IoGetDriverObjectExtension(driver_object: *mut DRIVER_OBJECT, client: PVOID) -> PVOID {
        irql("IoGetDriverObjectExtension", ..=DISPATCH_LEVEL);
        preempt("IoGetDriverObjectExtension");
        let key = (driver_object as usize, client as usize);
        Machine::current().driver_extension(key).map_or(ptr::null_mut(), |extension| extension as PVOID)
    }

    /// The top of a device's stack, referenced. IRQL <= DISPATCH_LEVEL.
    pub unsafe fn IoGetAttachedDeviceReference(device_object: *mut DEVICE_OBJECT) -> *mut DEVICE_OBJECT {
        irql("IoGetAttachedDeviceReference", ..=DISPATCH_LEVEL);
        preempt("IoGetAttachedDeviceReference");
        let mut top = device_object;
        // SAFETY: the caller's device, and those attached above it.
        unsafe {
            while !(*top).AttachedDevice.is_null() {
                top = (*top).AttachedDevice;
            }
        }
        Machine::current().reference_object(top as usize, "of IoGetAttachedDeviceReference");
        top
    }

    /// Gives a reference back. IRQL <= DISPATCH_LEVEL.
    pub unsafe fn ObfDereferenceObject(object: PVOID) -> isize {
        irql("ObfDereferenceObject", ..=DISPATCH_LEVEL);
        preempt("ObfDereferenceObject");
        Machine::current().dereference_object(object as usize, "ObfDereferenceObject") as isize
    }

    /// A request whose completion signals an event. PASSIVE_LEVEL. Can fail.
    pub unsafe fn IoBuildSynchronousFsdRequest(
        major_function: u32,
        device_object: *mut DEVICE_OBJECT,
        _buffer: PVOID,
        _length: u32,
        _starting_offset: *mut i64,
        event: *mut KEVENT,
        io_status_block: *mut IO_STATUS_BLOCK,
    ) -> *mut IRP {
        let call = "IoBuildSynchronousFsdRequest";
        irql(call, ..=PASSIVE_LEVEL);
        preempt(call);
        assert!(major_function == u32::from(IRP_MJ_PNP), "{call}: the lab has no major function {major_function:#x}");
        if fault::should_fail(call) {
            return ptr::null_mut();
        }
        let machine = Machine::current();
        // SAFETY: the caller's device, event and status block.
        unsafe { machine.build_synchronous_request(major_function as u8, device_object, event, io_status_block) }
    }

    /// An IRP. IRQL <= DISPATCH_LEVEL. Can fail.
    pub unsafe fn IoAllocateIrp(stack_size: i8, _charge_quota: BOOLEAN) -> *mut IRP {
        irql("IoAllocateIrp", ..=DISPATCH_LEVEL);
        preempt("IoAllocateIrp");
        if fault::should_fail("IoAllocateIrp") {
            return ptr::null_mut();
        }
        Machine::current().allocate_irp(stack_size, false, "IoAllocateIrp")
    }

    /// Frees an IRP of IoAllocateIrp. IRQL <= DISPATCH_LEVEL.
    pub unsafe fn IoFreeIrp(irp: *mut IRP) {
        irql("IoFreeIrp", ..=DISPATCH_LEVEL);
        preempt("IoFreeIrp");
        Machine::current().free_irp(irp, "IoFreeIrp");
    }

    /// Sends an IRP to a device. IRQL <= DISPATCH_LEVEL, PASSIVE_LEVEL for PnP.
    pub unsafe fn IofCallDriver(device_object: *mut DEVICE_OBJECT, irp: *mut IRP) -> NTSTATUS {
        irql("IofCallDriver", ..=DISPATCH_LEVEL);
        preempt("IofCallDriver");
        // SAFETY: the caller's device; the IRP is checked.
        unsafe { Machine::current().call_device(device_object, irp, "IofCallDriver") }
    }

    /// Completes an IRP. IRQL <= DISPATCH_LEVEL.
    pub unsafe fn IofCompleteRequest(irp: *mut IRP, _priority_boost: i8) {
        irql("IofCompleteRequest", ..=DISPATCH_LEVEL);
        preempt("IofCompleteRequest");
        // SAFETY: the IRP is checked.
        unsafe { Machine::current().complete_request(irp, "IofCompleteRequest") };
    }

    /// An MDL for a buffer. IRQL <= DISPATCH_LEVEL. Can fail.
    pub unsafe fn IoAllocateMdl(
        virtual_address: PVOID,
        length: u32,
        secondary_buffer: BOOLEAN,
        _charge_quota: BOOLEAN,
        irp: *mut IRP,
    ) -> *mut MDL {
        irql("IoAllocateMdl", ..=DISPATCH_LEVEL);
        preempt("IoAllocateMdl");
        if fault::should_fail("IoAllocateMdl") {
            return ptr::null_mut();
        }
        let mdl = Machine::current().allocate_mdl(virtual_address, length, MdlOwner::Driver);
        // SAFETY: the caller's IRP, if it gave one, and the MDLs chained to it.
        unsafe {
            if let Some(irp) = irp.as_mut() {
                let mut link = &raw mut irp.MdlAddress;
                while secondary_buffer != 0 && !(*link).is_null() {
                    link = &raw mut (**link).Next;
                }
                *link = mdl;
            }
        }
        mdl
    }

    /// Frees an MDL. IRQL <= DISPATCH_LEVEL.
    pub unsafe fn IoFreeMdl(mdl: *mut MDL) {
        irql("IoFreeMdl", ..=DISPATCH_LEVEL);
        preempt("IoFreeMdl");
        // SAFETY: the caller's MDL, which is checked.
        unsafe { Machine::current().free_mdl(mdl, MdlOwner::Driver, "IoFreeMdl") };
    }

    /// A property of a device. PASSIVE_LEVEL.
    pub unsafe fn IoGetDeviceProperty(
        device_object: *mut DEVICE_OBJECT,
        device_property: DEVICE_REGISTRY_PROPERTY,
        buffer_length: u32,
        property_buffer: PVOID,
        result_length: *mut u32,
    ) -> NTSTATUS {
        let call = "IoGetDeviceProperty";
        irql(call, ..=PASSIVE_LEVEL);
        preempt(call);
        let Some(properties) = Machine::current().device_properties(device_object) else {
            return STATUS_INVALID_DEVICE_REQUEST;
        };
        let Some(value) = properties.get(&device_property) else {
            return STATUS_OBJECT_NAME_NOT_FOUND;
        };
        // SAFETY: the caller's buffer of the length it gave, and its variable.
        unsafe {
            *result_length = value.len() as u32;
            if value.len() > buffer_length as usize {
                return STATUS_BUFFER_TOO_SMALL;
            }
            value.as_ptr().copy_to_nonoverlapping(property_buffer.cast(), value.len());
        }
        STATUS_SUCCESS
    }
}
