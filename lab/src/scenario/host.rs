//! One simulated Windows host: machine, HCA, access layer, driver, adapter.

use std::sync::Arc;

use windows_kernel_sys::NTSTATUS;

use crate::fabric::PortId;
use crate::hca::log::Event;
use crate::hca::{Hca, HcaConfig, Net};
use crate::ibal::{ChildConfig, DEFAULT_PARTITION, Ibal};
use crate::kernel::{DeviceProperties, Machine, MachineConfig};
use crate::ndis::{Adapter, AdapterConfig, Driver, DriverConfig};
use crate::sim::Lock;
use crate::stack::ip::{HostStack, StackConfig};

use super::{DriverCode, DriverSource};

/// A host of a [`Subnet`](super::Subnet).
pub struct Host {
    /// `host1`, `host2`, ...
    pub name: String,
    /// The simulated Windows.
    pub machine: Machine,
    /// Its channel adapter.
    pub hca: Arc<Hca>,
    /// The access layer that the driver talks to.
    pub ibal: Arc<Ibal>,
    /// Its port on the fabric.
    pub port: PortId,
    source: DriverSource,
    adapter_config: AdapterConfig,
    running: Lock<Option<Running>>,
    stack: Lock<Option<HostStack>>,
}

/// What exists while the driver is loaded.
#[derive(Clone)]
struct Running {
    driver: Driver,
    adapter: Adapter,
    /// Goes last.
    code: Arc<DriverCode>,
}

/// Why a host did not come up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BootError {
    /// The driver's image cannot be mapped.
    Map,
    /// DriverEntry failed.
    Load(NTSTATUS),
    /// MiniportInitializeEx failed.
    Initialize(NTSTATUS),
    /// MiniportRestart failed.
    Restart(NTSTATUS),
}

impl Host {
    /// Plugs host number `number` (from 0) into `port`. Nothing of the driver runs yet.
    pub fn new(net: &Net, number: u16, port: PortId, machine: MachineConfig, host: HostConfig) -> Self {
        let machine = Machine::new(net.sim(), machine);
        let guid = net.with(|fabric, _| fabric.topology().node(fabric.port(port).node).guid);
        let config =
            HcaConfig { number, guid, ports: vec![port], first_qpn: host.first_qpn, limits: host.limits };
        let hca = Hca::new(net, &machine, &config);
        let ibal = Ibal::install(&hca);
        Self {
            name: machine.name().to_owned(),
            machine,
            hca,
            ibal,
            port,
            source: host.source,
            adapter_config: host.adapter,
            running: Lock::default(),
            stack: Lock::default(),
        }
    }

    /// Loads the driver, adds its adapter and starts it. From a thread of the host's machine.
    pub fn boot(&self) -> Result<(), BootError> {
        let code = Arc::new(self.source.load().map_err(|_| BootError::Map)?);
        let driver = Driver::load(&self.machine, DriverConfig::named("ipoib"), code.entry())
            .map_err(BootError::Load)?;
        code.entered();
        let child = ChildConfig { port: 1, pkey: DEFAULT_PARTITION, properties: DeviceProperties::default() };
        let device = self.ibal.create_child(child);
        // SAFETY: the device was made on this machine just now.
        let adapter = unsafe { driver.add_device(device, self.adapter_config.clone()) };
        let started = adapter
            .initialize()
            .map_err(BootError::Initialize)
            .and_then(|()| adapter.restart().map_err(BootError::Restart));
        if let Err(error) = started {
            if !matches!(error, BootError::Initialize(_)) {
                adapter.halt();
            }
            driver.unload();
            return Err(error);
        }
        *self.running.lock() = Some(Running { driver, adapter, code });
        Ok(())
    }

    /// Binds an IP stack to the adapter. From a thread of the host's machine.
    ///
    /// # Errors
    /// That of the binding; `NDIS_STATUS_ADAPTER_NOT_FOUND` if the driver is not loaded.
    pub fn start_stack(&self, config: &StackConfig) -> Result<(), NTSTATUS> {
        let adapter = self.adapter().ok_or(windows_kernel_sys::NDIS_STATUS_ADAPTER_NOT_FOUND)?;
        *self.stack.lock() = Some(HostStack::start(&adapter, config)?);
        Ok(())
    }

    /// The IP stack, while it is bound.
    pub fn stack(&self) -> Option<HostStack> {
        self.stack.lock().clone()
    }

    /// The number of the adapter's queue pair, once it has left RESET for the first time.
    pub fn qpn(&self) -> Option<u32> {
        self.hca.log().entries().iter().find_map(|entry| match entry.event {
            Event::Transition { qpn, .. } => Some(qpn),
            _ => None,
        })
    }

    /// Unbinds the IP stack, pauses and halts the adapter and unloads the driver. From a thread of the host's machine. Does nothing on a
    /// host that is not up.
    pub fn stop(&self) {
        let stack = self.stack.lock().take();
        if let Some(stack) = stack {
            stack.stop();
        }
        let Some(Running { driver, adapter, code }) = self.running.lock().take() else { return };
        adapter.pause();
        adapter.halt();
        driver.unload();
        drop(code);
    }

    /// The adapter, while the driver is loaded.
    pub fn adapter(&self) -> Option<Adapter> {
        self.running.lock().as_ref().map(|running| running.adapter.clone())
    }
}

/// What may differ between hosts.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// The driver it loads.
    pub source: DriverSource,
    /// Its adapter's registry and how NDIS treats it.
    pub adapter: AdapterConfig,
    /// Number of the first queue pair of its HCA.
    pub first_qpn: u32,
    /// What its HCA can hold.
    pub limits: crate::hca::Limits,
}
