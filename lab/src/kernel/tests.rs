//! The kernel's behaviour, and each of its rules broken on purpose by a made-up driver. The calls go through the
//! imports that the driver itself uses, so that they prove the linking too.

mod behaviour;
mod rules;

use windows_kernel_sys::*;

use super::*;
use crate::sim::{Outcome, OwnedSim, SECOND, Sim, SimConfig};

const TAG: u32 = u32::from_le_bytes(*b"Test");

fn machine(config: MachineConfig) -> (OwnedSim, Machine) {
    let sim = Sim::owned(SimConfig::seeded(7));
    let machine = Machine::new(&sim, config);
    (sim, machine)
}

/// Runs `driver` in a thread of a fresh machine and gives how that ended.
fn run(driver: impl FnOnce(&Machine) + Send + 'static) -> Result<(), Outcome> {
    run_on(MachineConfig::default(), driver)
}

fn run_on(config: MachineConfig, driver: impl FnOnce(&Machine) + Send + 'static) -> Result<(), Outcome> {
    let (_sim, machine) = machine(config);
    machine.run("driver", SECOND, || driver(&Machine::current()))
}

fn allocate(size: usize) -> PVOID {
    // SAFETY: the kernel checks the arguments.
    unsafe { ExAllocatePool2(POOL_FLAGS::NON_PAGED.bits(), size, TAG) }
}

fn free(block: PVOID) {
    // SAFETY: the kernel checks the arguments.
    unsafe { ExFreePoolWithTag(block, TAG) };
}
