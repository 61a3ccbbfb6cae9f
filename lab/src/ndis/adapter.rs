//! An adapter: the device that NDIS made for a miniport, and what is known of it. Its life is in `life.rs`.

use std::ffi::c_void;
use std::sync::Arc;

use windows_kernel_sys::{
    BOOLEAN, DEVICE_OBJECT, NDIS_HANDLE, NDIS_STATUS, NDIS_STATUS_NOT_ACCEPTED, NDIS_STATUS_PAUSED, PVOID,
};

use super::binding::BindingCore;
use super::call::{PASSIVE, entered};
use super::direct_oid::DirectRequests;
use super::dma::DmaTable;
use super::driver::DriverCore;
use super::event_log::EventLog;
use super::filter::Filter;
use super::fragments::Fragmentation;
use super::handle::{self, Handle, Object};
use super::link::LinkState;
use super::oid::Requests;
use super::receive::Receives;
use super::registry::RegistryKey;
use super::rules::{self, broken};
use super::send::Sends;
use super::signal::{Completion, Turn};
use super::state::{AdapterState, Counters, General, Phase, Registration};
use super::watchdog::Watchdog;
use crate::export;
use crate::kernel::Machine;
use crate::sim::{Lock, Nanos, TraceEvent};

/// When the protocols return received buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returns {
    /// Before NdisMIndicateReceiveNetBufferLists returns.
    AtOnce,
    /// At once, from a DPC, or after up to this time, drawn for each indication, and not necessarily together.
    Mixed(Nanos),
    /// After this time.
    After(Nanos),
}

/// How NDIS and the protocols above treat an adapter.
#[derive(Clone, Copy, Debug)]
pub struct AdapterOptions {
    /// How frames are laid out in MDLs.
    pub fragmentation: Fragmentation,
    /// When received buffers are returned.
    pub returns: Returns,
    /// Scatter/gather lists built later than the call that asks for one, in parts of 65536.
    pub late_dma: u16,
    /// Whether NDIS resets an adapter that does not complete an OID request in two hang checks.
    pub reset_on_slow_oid: bool,
}

impl Default for AdapterOptions {
    fn default() -> Self {
        Self {
            fragmentation: Fragmentation::Seeded,
            returns: Returns::Mixed(50_000),
            late_dma: 1 << 12,
            reset_on_slow_oid: true,
        }
    }
}

/// What an adapter is made from.
#[derive(Clone, Debug)]
pub struct AdapterConfig {
    /// The name in the event log and in reports.
    pub name: String,
    /// Its registry key (`Class\{4d36e972-...}\nnnn`).
    pub registry: RegistryKey,
    /// How it is treated.
    pub options: AdapterOptions,
}

impl AdapterConfig {
    /// An adapter with no registry values.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), registry: RegistryKey::new(), options: AdapterOptions::default() }
    }
}

/// The device objects of an adapter's stack, by address.
#[derive(Clone, Copy, Debug)]
pub(super) struct Devices {
    pub physical: usize,
    pub functional: usize,
    pub next: usize,
}

/// What changes over an adapter's life.
#[derive(Default)]
pub(super) struct Life {
    pub phase: Phase,
    /// `MiniportAdapterContext`.
    pub context: usize,
    pub registration: Option<Registration>,
    pub general: Option<General>,
    pub link: LinkState,
    pub removed: bool,
    pub low_power: bool,
    pub resetting: bool,
    /// MiniportPause returned NDIS_STATUS_PENDING: from now on the miniport fails new sends.
    pub pause_pending: bool,
}

/// The inside of an [`Adapter`].
pub(super) struct Core {
    pub handle: Handle,
    pub machine: Machine,
    pub driver: Arc<DriverCore>,
    pub name: String,
    pub options: AdapterOptions,
    pub devices: Devices,
    pub registry: Lock<RegistryKey>,
    pub life: Lock<Life>,
    /// PnP, power, pause, restart and reset happen one at a time, except that a reset may be under way.
    pub transition: Turn,
    pub pausing: Completion<()>,
    pub restarting: Completion<NDIS_STATUS>,
    pub resetting: Completion<(NDIS_STATUS, BOOLEAN)>,
    pub requests: Requests,
    pub direct: DirectRequests,
    pub sends: Sends,
    pub receives: Receives,
    pub dma: DmaTable,
    pub bindings: Lock<Vec<Arc<BindingCore>>>,
    /// What the miniport was told last.
    pub applied: Lock<Filter>,
    pub watchdog: Watchdog,
    pub counters: Lock<Counters>,
    pub log: EventLog,
}

/// A miniport adapter. Cheap to clone. The methods that change its state block: they are called from a thread of its
/// machine.
#[derive(Clone)]
pub struct Adapter(pub(super) Arc<Core>);

impl Core {
    /// `MiniportAdapterContext`, as handlers take it.
    pub fn context(&self) -> NDIS_HANDLE {
        self.life.lock().context as *mut c_void
    }

    pub fn phase(&self) -> Phase {
        self.life.lock().phase
    }

    pub fn set_phase(&self, phase: Phase) {
        self.life.lock().phase = phase;
        self.trace("ndis phase", phase as u64);
    }

    pub fn trace(&self, kind: &'static str, value: u64) {
        self.machine.sim().trace(TraceEvent::new(kind, u64::from(self.machine.id()), value));
    }

    pub fn count(&self, change: impl FnOnce(&mut Counters)) {
        change(&mut self.counters.lock());
    }

    /// The general attributes; every caller runs after initialisation, which checked that they were set.
    pub fn general(&self) -> General {
        self.life.lock().general.clone().unwrap_or_default()
    }

    /// Ends the run if a function that depends on the registration attributes is called before they are set.
    pub fn needs_registration(&self, call: &str) {
        if self.life.lock().registration.is_none() {
            broken(&rules::NDIS_BEFORE_ATTRIBUTES, call, "the registration attributes are not set yet");
        }
    }
}

impl Adapter {
    /// AddDevice: a functional device above `physical`, not yet initialised.
    pub(super) fn add(driver: &Arc<DriverCore>, devices: Devices, config: AdapterConfig) -> Self {
        let handle = handle::reserve();
        let core = Arc::new(Core {
            handle,
            machine: driver.machine.clone(),
            driver: Arc::clone(driver),
            name: config.name,
            options: config.options,
            devices,
            registry: Lock::new(config.registry),
            life: Lock::default(),
            transition: Turn::default(),
            pausing: Completion::default(),
            restarting: Completion::default(),
            resetting: Completion::default(),
            requests: Requests::default(),
            direct: DirectRequests::default(),
            sends: Sends::default(),
            receives: Receives::default(),
            dma: DmaTable::default(),
            bindings: Lock::default(),
            applied: Lock::default(),
            watchdog: Watchdog::default(),
            counters: Lock::default(),
            log: driver.log.clone(),
        });
        handle::bind(handle, Some(driver.handle), Object::Adapter(Arc::clone(&core)));
        Self(core)
    }

    /// The handle that the driver has; for tests of what happens to wrong ones.
    pub fn raw_handle(&self) -> NDIS_HANDLE {
        self.0.handle.raw()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Its machine.
    pub fn machine(&self) -> &Machine {
        &self.0.machine
    }

    /// What the miniport said in its general attributes.
    pub fn attributes(&self) -> General {
        self.0.general()
    }

    /// The link as last indicated.
    pub fn link(&self) -> LinkState {
        self.0.life.lock().link
    }

    /// What NDIS counted.
    pub fn counters(&self) -> Counters {
        *self.0.counters.lock()
    }

    /// The host's event log.
    pub fn event_log(&self) -> &EventLog {
        &self.0.log
    }

    /// Changes its registry key; the driver sees it at the next initialisation.
    pub fn configure(&self, change: impl FnOnce(&mut RegistryKey)) {
        change(&mut self.0.registry.lock());
    }

    /// How it stands.
    pub fn state(&self) -> AdapterState {
        let (phase, link, removed, resetting) = {
            let life = self.0.life.lock();
            (life.phase, life.link, life.removed, life.resetting)
        };
        AdapterState {
            phase,
            link,
            sends_outstanding: self.0.sends.outstanding(),
            receives_outstanding: self.0.receives.outstanding(),
            resetting,
            oid_pending: self.0.requests.is_pending(),
            removed,
        }
    }
}

/// The status with which NDIS itself refuses what an adapter in this state cannot do.
pub(super) fn refusal(removed: bool) -> NDIS_STATUS {
    if removed { NDIS_STATUS_NOT_ACCEPTED } else { NDIS_STATUS_PAUSED }
}
export! { "ndis.sys";
    /// PASSIVE_LEVEL (ndis/nf-ndis-ndismgetdeviceproperty). The resource lists of a device without resources are null.
    pub unsafe fn NdisMGetDeviceProperty(
        MiniportAdapterHandle: NDIS_HANDLE, PhysicalDeviceObject: *mut *mut DEVICE_OBJECT,
        FunctionalDeviceObject: *mut *mut DEVICE_OBJECT, NextDeviceObject: *mut *mut DEVICE_OBJECT,
        AllocatedResources: *mut PVOID, AllocatedResourcesTranslated: *mut PVOID,
    ) {
        const CALL: &str = "NdisMGetDeviceProperty";
        entered(CALL, PASSIVE);
        let core = handle::get::<Core>(MiniportAdapterHandle, CALL);
        let devices = core.devices;
        let out = [
            (PhysicalDeviceObject, devices.physical),
            (FunctionalDeviceObject, devices.functional),
            (NextDeviceObject, devices.next),
        ];
        for (pointer, device) in out {
            if !pointer.is_null() {
                // SAFETY: the caller's pointers are null or valid for writing.
                unsafe { *pointer = device as *mut DEVICE_OBJECT };
            }
        }
        for pointer in [AllocatedResources, AllocatedResourcesTranslated] {
            if !pointer.is_null() {
                // SAFETY: as above.
                unsafe { *pointer = std::ptr::null_mut() };
            }
        }
    }
}
