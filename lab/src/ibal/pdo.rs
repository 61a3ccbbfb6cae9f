//! The device of an IPoIB child: what the bus driver answers on it (`bus_port_mgr.c`, `bus_pnp.c`).

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use ibal_sys::*;
use windows_kernel_sys::{
    DEVICE_OBJECT, GUID, INTERFACE, IO_STACK_QUERY_INTERFACE, IRP, IRP_MJ_PNP, IRP_MN_QUERY_INTERFACE,
    IoGetCurrentIrpStackLocation, NTSTATUS, STATUS_BUFFER_TOO_SMALL, STATUS_NOT_SUPPORTED, STATUS_SUCCESS,
};

use super::{Ibal, interface};
use crate::kernel::{DeviceHandler, DeviceProperties, Machine};

/// P_Key that the bus driver gives for a child of the default partition.
pub const DEFAULT_PARTITION: u16 = 0xffff;

/// Which port a child stands for.
#[derive(Clone, Debug)]
pub struct ChildConfig {
    /// Port of the HCA, from 1.
    pub port: u8,
    /// Partition, host order; [`DEFAULT_PARTITION`] for the default one.
    pub pkey: u16,
    /// What `IoGetDeviceProperty` tells of the device.
    pub properties: DeviceProperties,
}

/// GUID of the HCA's driver: this lab's own.
const DRIVER_ID: GUID = GUID {
    Data1: 0x1b_a1_1a_b0,
    Data2: 0x5e1f,
    Data3: 0x4c4a,
    Data4: [0x9d, 0x06, 0x69, 0x70, 0x6f, 0x69, 0x62, 0x01],
};

struct Child {
    ibal: Arc<Ibal>,
    port: u8,
    pkey: u16,
}

/// Makes the device.
pub fn create(ibal: &Arc<Ibal>, config: ChildConfig) -> *mut DEVICE_OBJECT {
    let child = Child { ibal: Arc::clone(ibal), port: config.port, pkey: config.pkey };
    let device = ibal.machine.create_device(Arc::new(child), config.properties);
    // The interface names the bus's device as its context; one bus, so the first child's device serves.
    let _ = ibal.bus.set(device.expose_provenance());
    device
}

impl DeviceHandler for Child {
    fn dispatch(&self, machine: &Machine, _device: *mut DEVICE_OBJECT, irp: *mut IRP) -> NTSTATUS {
        // SAFETY: the kernel hands a live IRP with a current stack location.
        let location = unsafe { *IoGetCurrentIrpStackLocation(irp) };
        // SAFETY: as above.
        let unchanged = unsafe { (*irp).IoStatus.status() };
        let status =
            if location.MajorFunction == IRP_MJ_PNP && location.MinorFunction == IRP_MN_QUERY_INTERFACE {
                // SAFETY: the minor function says which of the parameters are meant; the sender fills them.
                match unsafe { self.query_interface(&location.Parameters.QueryInterface) } {
                    // Not ours: the status stays as it came (`port_query_interface`).
                    STATUS_NOT_SUPPORTED => unchanged,
                    status => status,
                }
            } else {
                unchanged
            };
        // SAFETY: a live IRP that this device holds, completed once.
        unsafe { machine.complete_irp(irp, status, 0) };
        status
    }
}

impl Child {
    /// # Safety
    /// The parameters' pointers must be null or lead to what their sizes say.
    unsafe fn query_interface(&self, query: &IO_STACK_QUERY_INTERFACE) -> NTSTATUS {
        if query.InterfaceType.is_null() || query.Interface.is_null() {
            return STATUS_NOT_SUPPORTED;
        }
        // SAFETY: the caller's contract.
        let wanted = unsafe { query.InterfaceType.read_unaligned() };
        if !same(&wanted, &GUID_IB_AL_INTERFACE) || query.Version != AL_INTERFACE_VERSION {
            return STATUS_NOT_SUPPORTED;
        }
        if usize::from(query.Size) < size_of::<ib_al_ifc_t>() {
            return STATUS_BUFFER_TOO_SMALL;
        }
        if crate::fault::should_fail("IRP_MN_QUERY_INTERFACE") {
            return windows_kernel_sys::STATUS_INSUFFICIENT_RESOURCES;
        }
        let data = query.InterfaceSpecificData.cast::<ib_al_ifc_data_t>();
        if !data.is_null() {
            // SAFETY: the caller's contract: interface-specific data of this interface.
            let status = unsafe { self.fill_data(&*data) };
            if status != STATUS_SUCCESS {
                return status;
            }
        }
        let context = std::ptr::with_exposed_provenance_mut(self.ibal.bus.get().copied().unwrap_or(0));
        let head = INTERFACE {
            Size: size_of::<ib_al_ifc_t>() as u16,
            Version: AL_INTERFACE_VERSION,
            Context: context,
            InterfaceReference: Some(reference),
            InterfaceDereference: Some(dereference),
        };
        let table = interface::table(head, self.ibal.hca.guid.0);
        // SAFETY: the caller's buffer was checked to be large enough.
        unsafe { query.Interface.cast::<ib_al_ifc_t>().write_unaligned(table) };
        self.ibal.interface_referenced();
        STATUS_SUCCESS
    }

    /// # Safety
    /// `data` must lead to what it says.
    unsafe fn fill_data(&self, data: &ib_al_ifc_data_t) -> NTSTATUS {
        // SAFETY: the caller's contract.
        let wanted = unsafe { data.r#type.read_unaligned() };
        if !same(&wanted, &GUID_IPOIB_INTERFACE_DATA) || data.version != IPOIB_INTERFACE_DATA_VERSION {
            return STATUS_NOT_SUPPORTED;
        }
        if usize::from(data.size) != size_of::<ipoib_ifc_data_t>() {
            return STATUS_BUFFER_TOO_SMALL;
        }
        let Some(port) = self.ibal.hca.port(self.port) else { return STATUS_NOT_SUPPORTED };
        let mut name: [c_char; MAX_USER_NAME_SIZE] = [0; MAX_USER_NAME_SIZE];
        for (place, byte) in name.iter_mut().zip(b"lab") {
            *place = *byte as c_char;
        }
        let answer = ipoib_ifc_data_t {
            driver_id: DRIVER_ID,
            ca_guid: ib_net64_t::new(self.ibal.hca.guid.0),
            port_guid: port_guid_pkey_t {
                guid: ib_net64_t::new(port.view().guid.0),
                pkey: self.pkey,
                IsEoib: FALSE,
                UniqueId: 0,
                Location: 0,
                name,
            },
            port_num: self.port,
            ibal_ipoib_ifc: interface::eoib_traps(),
        };
        // SAFETY: the caller's buffer, whose size was checked.
        unsafe { data.p_data.cast::<ipoib_ifc_data_t>().write_unaligned(answer) };
        STATUS_SUCCESS
    }
}

fn same(a: &GUID, b: &GUID) -> bool {
    (a.Data1, a.Data2, a.Data3, a.Data4) == (b.Data1, b.Data2, b.Data3, b.Data4)
}

/// `InterfaceReference` of the access layer.
unsafe extern "win64" fn reference(_context: *mut c_void) {
    crate::sim::contain(|| {
        if let Some(ibal) = Ibal::of(&Machine::current()) {
            ibal.interface_referenced();
        }
    });
}

/// `InterfaceDereference` of the access layer.
unsafe extern "win64" fn dereference(_context: *mut c_void) {
    crate::sim::contain(|| {
        if let Some(ibal) = Ibal::of(&Machine::current()) {
            ibal.interface_dereferenced();
        }
    });
}
