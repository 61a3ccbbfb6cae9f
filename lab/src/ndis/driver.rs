//! A miniport driver: loading, registration, devices, unloading.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use windows_kernel_sys::{
    DEVICE_OBJECT, DRIVER_OBJECT, IRP, NDIS_HANDLE, NDIS_MINIPORT_DRIVER_CHARACTERISTICS, NDIS_OBJECT_HEADER,
    NDIS_OBJECT_TYPE_MINIPORT_DRIVER_CHARACTERISTICS, NDIS_SIZEOF_MINIPORT_DRIVER_CHARACTERISTICS_REVISION_2,
    NDIS_SIZEOF_MINIPORT_DRIVER_CHARACTERISTICS_REVISION_3, NDIS_STATUS, NDIS_STATUS_BAD_CHARACTERISTICS,
    NDIS_STATUS_BAD_VERSION, NDIS_STATUS_RESOURCES, NDIS_STATUS_SUCCESS, NTSTATUS, PDRIVER_INITIALIZE,
    STATUS_INVALID_DEVICE_REQUEST, UNICODE_STRING, Zeroable,
};

use super::adapter::{Adapter, AdapterConfig, Devices};
use super::attributes::header;
use super::call::{PASSIVE, entered, entered_or_fails};
use super::event_log::EventLog;
use super::handle::{self, Handle, Object};
use super::misc::NDIS_VERSION;
use super::registry::RegistryKey;
use super::rules::{self, broken};
use super::signal::Signal;
use crate::export;
use crate::kernel::irql::PASSIVE_LEVEL;
use crate::kernel::{self, DeviceHandler, Machine};
use crate::sim::Lock;
use crate::verifier::call_driver;

/// The size of revision 1 of the characteristics: all up to `CancelOidRequestHandler`.
const REVISION_1_SIZE: u16 = 136;

/// `NDIS_WDM_DRIVER` and `NDIS_INTERMEDIATE_DRIVER` (ndis/ns-ndis-_ndis_miniport_driver_characteristics).
const KNOWN_FLAGS: u32 = 0x0000_0002 | 0x0000_0001;

/// The inside of a [`Driver`].
pub(super) struct DriverCore {
    pub handle: Handle,
    pub machine: Machine,
    pub name: String,
    pub registry: Lock<RegistryKey>,
    pub log: EventLog,
    object: kernel::Driver,
    registered: Lock<Option<Registered>>,
    /// Work item functions under way.
    work: AtomicUsize,
    idle: Signal,
}

#[derive(Clone, Copy)]
struct Registered {
    characteristics: NDIS_MINIPORT_DRIVER_CHARACTERISTICS,
    context: usize,
}

/// Drivers of a machine, by driver object: how NDIS finds out whose DriverEntry calls it.
#[derive(Default)]
struct Loading(Lock<Vec<(usize, Arc<DriverCore>)>>);

/// A loaded miniport driver. Cheap to clone.
#[derive(Clone)]
pub struct Driver(Arc<DriverCore>);

/// What a driver is made from.
#[derive(Clone, Debug)]
pub struct DriverConfig {
    /// The service name, e.g. `"ipoib"`.
    pub service: String,
    /// The service's `Parameters` key.
    pub registry: RegistryKey,
}

impl DriverConfig {
    /// A driver with no registry values.
    pub fn named(service: impl Into<String>) -> Self {
        Self { service: service.into(), registry: RegistryKey::new() }
    }
}

impl DriverCore {
    /// The registered handlers.
    pub fn handlers(&self) -> NDIS_MINIPORT_DRIVER_CHARACTERISTICS {
        let registered = *self.registered.lock();
        registered.map_or_else(NDIS_MINIPORT_DRIVER_CHARACTERISTICS::zeroed, |registered| {
            registered.characteristics
        })
    }

    /// `MiniportDriverContext`.
    pub fn context(&self) -> NDIS_HANDLE {
        self.registered.lock().map_or(0, |registered| registered.context) as *mut c_void
    }

    /// The NDIS version the driver was written for.
    pub fn version(&self) -> (u8, u8) {
        let handlers = self.handlers();
        (handlers.MajorNdisVersion, handlers.MinorNdisVersion)
    }

    pub fn work_began(&self) {
        self.work.fetch_add(1, Ordering::AcqRel);
    }

    pub fn work_ended(&self) {
        if self.work.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.idle.set();
        }
    }
}

impl Driver {
    /// Loads a driver: makes its object and calls DriverEntry, which registers the miniport driver. From a thread at
    /// PASSIVE_LEVEL. Fails with what DriverEntry returned.
    pub fn load(
        machine: &Machine,
        config: DriverConfig,
        entry: PDRIVER_INITIALIZE,
    ) -> Result<Self, NTSTATUS> {
        let object = machine.create_driver(&config.service);
        let core = Arc::new(DriverCore {
            handle: handle::reserve(),
            machine: machine.clone(),
            name: config.service,
            registry: Lock::new(config.registry),
            log: machine.extension(|_| EventLog::default()).as_ref().clone(),
            object,
            registered: Lock::default(),
            work: AtomicUsize::new(0),
            idle: Signal::default(),
        });
        let loading = machine.extension(|_| Loading::default());
        loading.0.lock().push((object.object as usize, Arc::clone(&core)));
        let Some(entry) = entry else { return Err(windows_kernel_sys::STATUS_INVALID_PARAMETER) };
        let status = call_driver("DriverEntry", PASSIVE_LEVEL, || {
            // SAFETY: the arguments are what DriverEntry expects and live as long as the driver.
            unsafe { entry(object.object, object.registry_path) }
        });
        let registered = core.registered.lock().is_some();
        if status < 0 {
            if registered {
                broken(
                    &rules::NDIS_DRIVER_ENTRY,
                    "DriverEntry",
                    format!("failed with {status:#010x}, registered"),
                );
            }
            forget(machine, &core);
            // Frees the extensions of the object; there is no unload routine to call.
            machine.unload_driver(object);
            return Err(status);
        }
        if !registered {
            broken(
                &rules::NDIS_DRIVER_ENTRY,
                "DriverEntry",
                "succeeded without registering a miniport driver",
            );
        }
        Ok(Self(core))
    }

    /// AddDevice: NDIS makes a device for the adapter and puts it on top of the stack of `physical`.
    ///
    /// # Safety
    /// `physical` must be a device of the driver's machine.
    pub unsafe fn add_device(&self, physical: *mut DEVICE_OBJECT, config: AdapterConfig) -> Adapter {
        let machine = &self.0.machine;
        let functional = machine.create_device(Arc::new(RefusesIrps), kernel::DeviceProperties::default());
        // SAFETY: the caller's contract; the attached devices of a device are devices.
        let next = unsafe {
            let mut top = physical;
            while !(*top).AttachedDevice.is_null() {
                top = (*top).AttachedDevice;
            }
            machine.attach_device(functional, top);
            (*functional).DriverObject = self.0.object.object;
            top
        };
        let devices =
            Devices { physical: physical as usize, functional: functional as usize, next: next as usize };
        Adapter::add(&self.0, devices, config)
    }

    /// Unloads the driver: its adapters are halted. Calls MiniportDriverUnload and looks for what is left behind.
    /// From a thread at PASSIVE_LEVEL.
    pub fn unload(&self) {
        let core = &self.0;
        while core.work.load(Ordering::Acquire) > 0 {
            core.idle.wait("work items to end", false);
        }
        core.machine.unload_driver(core.object);
        if core.registered.lock().is_some() {
            broken(&rules::NDIS_NOT_DEREGISTERED, "MiniportDriverUnload", "returned, still registered");
        }
        let left: Vec<_> =
            handle::owned_by(core.handle).into_iter().filter(|kind| *kind != "an adapter").collect();
        if !left.is_empty() {
            broken(&rules::NDIS_LEAK, "MiniportDriverUnload", format!("left behind: {}", left.join(", ")));
        }
        handle::close_owned_by(core.handle);
        forget(&core.machine, core);
    }

    /// The host's event log.
    pub fn event_log(&self) -> &EventLog {
        &self.0.log
    }

    /// Its machine.
    pub fn machine(&self) -> &Machine {
        &self.0.machine
    }
}

fn forget(machine: &Machine, core: &Arc<DriverCore>) {
    let loading = machine.extension(|_| Loading::default());
    loading.0.lock().retain(|(_, other)| !Arc::ptr_eq(other, core));
}

/// The functional device of an adapter: nobody sends it IRPs in the lab.
struct RefusesIrps;

impl DeviceHandler for RefusesIrps {
    fn dispatch(&self, machine: &Machine, _device: *mut DEVICE_OBJECT, irp: *mut IRP) -> NTSTATUS {
        // SAFETY: the IRP was sent to this device, which holds it now.
        unsafe { machine.complete_irp(irp, STATUS_INVALID_DEVICE_REQUEST, 0) };
        STATUS_INVALID_DEVICE_REQUEST
    }
}

/// NDIS's own unload routine, which it puts into the driver object.
unsafe extern "win64" fn ndis_unload(object: *mut DRIVER_OBJECT) {
    let driver = find(object);
    let Some(unload) = driver.as_ref().and_then(|driver| driver.handlers().UnloadHandler) else { return };
    call_driver("MiniportDriverUnload", PASSIVE_LEVEL, || {
        // SAFETY: the handler the driver registered, with its own object.
        unsafe { unload(object) };
    });
}

fn find(object: *mut DRIVER_OBJECT) -> Option<Arc<DriverCore>> {
    let loading = Machine::current().extension(|_| Loading::default());
    let drivers = loading.0.lock();
    drivers.iter().find(|(address, _)| *address == object as usize).map(|(_, core)| Arc::clone(core))
}

/// The required handlers that are missing, and the pairs of which one is.
fn missing_handlers(handlers: &NDIS_MINIPORT_DRIVER_CHARACTERISTICS, revision: u8) -> Vec<&'static str> {
    let mut missing: Vec<&'static str> = [
        ("InitializeHandlerEx", handlers.InitializeHandlerEx.is_none()),
        ("HaltHandlerEx", handlers.HaltHandlerEx.is_none()),
        ("UnloadHandler", handlers.UnloadHandler.is_none()),
        ("PauseHandler", handlers.PauseHandler.is_none()),
        ("RestartHandler", handlers.RestartHandler.is_none()),
        ("OidRequestHandler", handlers.OidRequestHandler.is_none()),
        ("SendNetBufferListsHandler", handlers.SendNetBufferListsHandler.is_none()),
        ("ReturnNetBufferListsHandler", handlers.ReturnNetBufferListsHandler.is_none()),
        ("CancelSendHandler", handlers.CancelSendHandler.is_none()),
        ("DevicePnPEventNotifyHandler", handlers.DevicePnPEventNotifyHandler.is_none()),
        ("ShutdownHandlerEx", handlers.ShutdownHandlerEx.is_none()),
        ("CancelOidRequestHandler", handlers.CancelOidRequestHandler.is_none()),
    ]
    .into_iter()
    .filter_map(|(name, missing)| missing.then_some(name))
    .collect();
    if handlers.CheckForHangHandlerEx.is_some() && handlers.ResetHandlerEx.is_none() {
        missing.push("ResetHandlerEx, required with CheckForHangHandlerEx");
    }
    let direct =
        (handlers.DirectOidRequestHandler.is_some(), handlers.CancelDirectOidRequestHandler.is_some());
    if revision >= 2 && direct.0 != direct.1 {
        missing.push("one of DirectOidRequestHandler and CancelDirectOidRequestHandler");
    }
    missing
}

export! { "ndis.sys";
    /// PASSIVE_LEVEL, in DriverEntry (ndis/nf-ndis-ndismregisterminiportdriver).
    pub unsafe fn NdisMRegisterMiniportDriver(
        DriverObject: *mut DRIVER_OBJECT, RegistryPath: *mut UNICODE_STRING, MiniportDriverContext: NDIS_HANDLE,
        MiniportDriverCharacteristics: *mut NDIS_MINIPORT_DRIVER_CHARACTERISTICS,
        NdisMiniportDriverHandle: *mut NDIS_HANDLE,
    ) -> NDIS_STATUS {
        const CALL: &str = "NdisMRegisterMiniportDriver";
        if entered_or_fails(CALL, PASSIVE) {
            return NDIS_STATUS_RESOURCES;
        }
        let Some(core) = find(DriverObject) else {
            broken(&rules::NDIS_BAD_HANDLE, CALL, "the driver object is not one that is being loaded");
        };
        if RegistryPath != core.object.registry_path {
            broken(&rules::NDIS_BAD_HANDLE, CALL, "the registry path is not the one DriverEntry was given");
        }
        // SAFETY: every revision begins with the header.
        let head: NDIS_OBJECT_HEADER = unsafe { (*MiniportDriverCharacteristics).Header };
        let sizes = [
            (1, REVISION_1_SIZE),
            (2, NDIS_SIZEOF_MINIPORT_DRIVER_CHARACTERISTICS_REVISION_2),
            (3, NDIS_SIZEOF_MINIPORT_DRIVER_CHARACTERISTICS_REVISION_3),
        ];
        let Ok(revision) = header(head, NDIS_OBJECT_TYPE_MINIPORT_DRIVER_CHARACTERISTICS, &sizes) else {
            return NDIS_STATUS_BAD_CHARACTERISTICS;
        };
        let mut characteristics = NDIS_MINIPORT_DRIVER_CHARACTERISTICS::zeroed();
        let size = sizes.iter().find(|(number, _)| *number == revision).map_or(0, |(_, size)| usize::from(*size));
        // SAFETY: the header says that the revision's members are there; the rest stays zero.
        unsafe {
            std::ptr::copy_nonoverlapping(
                MiniportDriverCharacteristics.cast::<u8>(), (&raw mut characteristics).cast::<u8>(), size,
            );
        }
        let version = u32::from(characteristics.MajorNdisVersion) << 16 | u32::from(characteristics.MinorNdisVersion);
        if characteristics.MajorNdisVersion != 6 || version > NDIS_VERSION {
            return NDIS_STATUS_BAD_VERSION;
        }
        if characteristics.Flags & !KNOWN_FLAGS != 0 {
            return NDIS_STATUS_BAD_CHARACTERISTICS;
        }
        let missing = missing_handlers(&characteristics, revision);
        if !missing.is_empty() {
            broken(&rules::NDIS_HANDLER_MISSING, CALL, format!("missing: {}", missing.join(", ")));
        }
        let registered = Registered { characteristics, context: MiniportDriverContext as usize };
        let before = core.registered.lock().replace(registered);
        if before.is_some() {
            broken(&rules::NDIS_DRIVER_ENTRY, CALL, "registered twice");
        }
        // SAFETY: the object of a driver that is being loaded, and the driver's variable.
        unsafe {
            (*DriverObject).DriverUnload = Some(ndis_unload);
            *NdisMiniportDriverHandle = core.handle.raw();
        }
        handle::bind(core.handle, None, Object::Driver(Arc::clone(&core)));
        if let Some(set_options) = characteristics.SetOptionsHandler {
            let status = call_driver("MiniportSetOptions", PASSIVE_LEVEL, || {
                // SAFETY: the handler of the driver that registers, with its new handle and own context.
                unsafe { set_options(core.handle.raw(), MiniportDriverContext) }
            });
            if status != NDIS_STATUS_SUCCESS {
                handle::close(core.handle);
                *core.registered.lock() = None;
                return status;
            }
        }
        NDIS_STATUS_SUCCESS
    }

    /// PASSIVE_LEVEL (ndis/nf-ndis-ndismderegisterminiportdriver).
    pub unsafe fn NdisMDeregisterMiniportDriver(NdisMiniportDriverHandle: NDIS_HANDLE) {
        const CALL: &str = "NdisMDeregisterMiniportDriver";
        entered(CALL, PASSIVE);
        let core: Arc<DriverCore> = handle::get(NdisMiniportDriverHandle, CALL);
        *core.registered.lock() = None;
        handle::close(core.handle);
    }
}
