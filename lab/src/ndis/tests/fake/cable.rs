//! A cable between two devices of different machines.

use std::sync::PoisonError;

use super::Device;
use super::data::{lower, raise, receive};
use crate::kernel::Machine;

#[derive(Clone)]
pub(super) struct End {
    wire: u32,
    device: usize,
    machine: Machine,
}

static ENDS: std::sync::Mutex<Vec<End>> = std::sync::Mutex::new(Vec::new());

pub(super) fn plug(device: *const Device, wire: u32) {
    let end = End { wire, device: device as usize, machine: Machine::current() };
    ENDS.lock().unwrap_or_else(PoisonError::into_inner).push(end);
}

pub(super) fn unplug(device: *const Device) {
    ENDS.lock().unwrap_or_else(PoisonError::into_inner).retain(|end| end.device != device as usize);
}

pub(super) fn peer_of(device: *const Device) -> Option<End> {
    let ends = ENDS.lock().unwrap_or_else(PoisonError::into_inner);
    let wire = ends.iter().find(|end| end.device == device as usize)?.wire;
    ends.iter().find(|end| end.wire == wire && end.device != device as usize).cloned()
}

impl End {
    /// Hands frames to this end's device, if it is plugged in and runs by then.
    pub fn deliver(&self, frames: Vec<Vec<u8>>) {
        let (device, machine) = (self.device, self.machine.clone());
        let sim = machine.sim().clone();
        sim.after(2_000, "cable", move |_| {
            machine.queue_dpc_on(0, "cable", move || {
                let device = device as *const Device;
                if peer_of(device).is_none() {
                    return;
                }
                // SAFETY: an end that is plugged in is not halted.
                let device = unsafe { &*device };
                if device.state.lock().running && !frames.is_empty() {
                    let irql = raise();
                    receive(device, &frames);
                    lower(irql);
                }
            });
        });
    }
}
