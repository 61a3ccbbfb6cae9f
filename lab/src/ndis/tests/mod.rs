//! NDIS with a made-up miniport: what a good one sees, and each rule broken on purpose by a bad one.

mod fake;
mod hosts;
mod life;
mod misdeeds;

use std::sync::Arc;

use fake::Misdeed;
use windows_kernel_sys::{DEVICE_OBJECT, IRP, NTSTATUS, STATUS_NOT_SUPPORTED};

use super::{Adapter, AdapterConfig, Driver, DriverConfig, RegistryKey, Returns};
use crate::kernel::{DeviceHandler, DeviceProperties, Machine, MachineConfig};
use crate::sim::{Outcome, OwnedSim, SECOND, Sim, SimConfig};

/// A physical device that answers nothing.
struct Silent;

impl DeviceHandler for Silent {
    fn dispatch(&self, machine: &Machine, _device: *mut DEVICE_OBJECT, irp: *mut IRP) -> NTSTATUS {
        // SAFETY: the IRP was sent to this device, which holds it now.
        unsafe { machine.complete_irp(irp, STATUS_NOT_SUPPORTED, 0) };
        STATUS_NOT_SUPPORTED
    }
}

fn machine(seed: u64) -> (OwnedSim, Machine) {
    let sim = Sim::owned(SimConfig::seeded(seed));
    let machine = Machine::new(&sim, MachineConfig::default());
    (sim, machine)
}

/// Loads the fake miniport and adds an adapter, in a thread of its machine.
fn load(machine: &Machine, misdeed: Misdeed, returns: Returns) -> (Driver, Adapter) {
    let mut config = AdapterConfig::named("fake");
    config.registry = RegistryKey::new().with("Number", 42);
    config.options.returns = returns;
    // A reset would end the request that this one never ends.
    config.options.reset_on_slow_oid = misdeed != Misdeed::OidNever;
    load_with(machine, misdeed, config)
}

/// As [`load`], with an adapter of this configuration.
fn load_with(machine: &Machine, misdeed: Misdeed, adapter: AdapterConfig) -> (Driver, Adapter) {
    let config = DriverConfig::named(format!("fake-{}", misdeed as u32));
    let driver = Driver::load(machine, config, Some(fake::entry)).expect("the fake miniport loads");
    let device = machine.create_device(Arc::new(Silent), DeviceProperties::default());
    // SAFETY: a device of the machine.
    let adapter = unsafe { driver.add_device(device, adapter) };
    (driver, adapter)
}

/// Runs `body` in a thread of a fresh machine and gives how that ended.
fn run(seed: u64, body: impl FnOnce(&Machine) + Send + 'static) -> Result<(), Outcome> {
    let (_sim, machine) = machine(seed);
    machine.run("test", 600 * SECOND, || body(&Machine::current()))
}
