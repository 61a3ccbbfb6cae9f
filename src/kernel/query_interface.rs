//! Asking the bus driver for an interface: IRP_MN_QUERY_INTERFACE (kernel/irp-mn-query-interface).

use super::adapter::AdapterHandle;
use super::event::wait_forever;
use super::irql::Passive;
use super::status::{Error, Result, check};
use core::mem::MaybeUninit;
use core::ptr;
use windows_kernel_sys as sys;

impl AdapterHandle {
    /// Asks the devices below the adapter for the interface `guid` in `version`, and has it filled into `interface`
    /// (`size` bytes that begin with an INTERFACE). `specific` is the InterfaceSpecificData, null if there is none.
    ///
    /// A driver that answers has referenced the interface; it is dereferenced through its own members.
    ///
    /// # Safety
    /// `interface` and `specific` are what the interface's definition asks for, valid until this returns.
    pub unsafe fn query_interface(
        self,
        guid: &sys::GUID,
        version: u16,
        interface: *mut sys::INTERFACE,
        size: u16,
        specific: sys::PVOID,
        at: &Passive<'_>,
    ) -> Result<()> {
        // The miniport's stack begins above the physical device: filters in between see the request too.
        let (physical, next) = self.devices(at);
        let device = if next.is_null() { physical } else { next };
        if device.is_null() {
            return Err(Error::from_status(sys::STATUS_NO_SUCH_DEVICE));
        }
        let mut event = MaybeUninit::<sys::KEVENT>::uninit();
        let event = event.as_mut_ptr();
        let mut result = sys::IO_STATUS_BLOCK::new(sys::STATUS_SUCCESS, 0);
        // SAFETY: memory for an event that stays here until the request is complete.
        unsafe { sys::KeInitializeEvent(event, sys::NotificationEvent, sys::FALSE) };
        // SAFETY: a live device at PASSIVE_LEVEL; event and status block live until the request is complete.
        let irp = unsafe {
            sys::IoBuildSynchronousFsdRequest(
                u32::from(sys::IRP_MJ_PNP),
                device,
                ptr::null_mut(),
                0,
                ptr::null_mut(),
                event,
                &raw mut result,
            )
        };
        if irp.is_null() {
            return Err(Error::RESOURCES);
        }
        // SAFETY: a fresh IRP with a stack location for the device.
        unsafe {
            let location = sys::IoGetNextIrpStackLocation(irp);
            (*location).MinorFunction = sys::IRP_MN_QUERY_INTERFACE;
            (*location).Parameters.QueryInterface = sys::IO_STACK_QUERY_INTERFACE {
                InterfaceType: guid,
                Size: size,
                Version: version,
                Interface: interface,
                InterfaceSpecificData: specific,
            };
            // A PnP request that nobody answers must complete with this.
            (*irp).IoStatus = sys::IO_STATUS_BLOCK::new(sys::STATUS_NOT_SUPPORTED, 0);
        }
        // SAFETY: the IRP is given up; the I/O manager frees it.
        let mut status = unsafe { sys::IofCallDriver(device, irp) };
        if status == sys::STATUS_PENDING {
            // SAFETY: an initialised event, at PASSIVE_LEVEL; completion sets it after it wrote the result.
            unsafe { wait_forever(event) };
            // SAFETY: written by the I/O manager, behind the compiler's back.
            status = unsafe { ptr::read_volatile(&raw const result) }.status();
        }
        check(status)
    }
}
