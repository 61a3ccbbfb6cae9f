//! In which of the driver's functions something happens: for logs, and for rules about what belongs where.
//!
//! [`call_driver`](super::call_driver) opens a scope for each call. The scopes of a thread nest, and go with the thread from
//! processor to processor; those of a DPC belong to its processor.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use crate::kernel::Machine;
use crate::sim::{self, Lock};

/// Keys of DPCs have this bit; those of threads are their numbers.
const DPC: u64 = 1 << 63;

#[derive(Default)]
struct Causes(Lock<BTreeMap<u64, Vec<&'static str>>>);

/// Ends the scope when dropped, in the context that entered it.
#[must_use = "the scope ends when this is dropped"]
pub struct Scope {
    key: Option<(Machine, u64)>,
    not_send: PhantomData<*const ()>,
}

fn key() -> Option<u64> {
    if let Some(thread) = sim::current_thread() {
        return Some(thread.id());
    }
    sim::current_cpu().map(|cpu| DPC | u64::from(cpu.id()))
}

/// The driver's function `name` is being called.
pub fn enter(name: &'static str) -> Scope {
    let key = Machine::try_current().zip(key());
    if let Some((machine, key)) = &key {
        let causes = machine.extension(|_| Causes::default());
        causes.0.lock().entry(*key).or_default().push(name);
    }
    Scope { key, not_send: PhantomData }
}

impl Drop for Scope {
    fn drop(&mut self) {
        if let Some((machine, key)) = &self.key
            && let Some(causes) = machine.find_extension::<Causes>()
        {
            let mut causes = causes.0.lock();
            if let Some(scopes) = causes.get_mut(key) {
                scopes.pop();
                if scopes.is_empty() {
                    causes.remove(key);
                }
            }
        }
    }
}

/// The driver's functions that the caller is inside of, innermost last.
pub fn scopes(machine: &Machine) -> Vec<&'static str> {
    let Some(key) = key() else { return Vec::new() };
    let Some(causes) = machine.find_extension::<Causes>() else { return Vec::new() };
    let causes = causes.0.lock();
    causes.get(&key).cloned().unwrap_or_default()
}

/// What to call the present context in a log: the driver's function, else the thread, else a DPC.
pub fn describe(machine: &Machine) -> String {
    if let Some(name) = scopes(machine).last() {
        return (*name).to_owned();
    }
    match sim::current_thread() {
        Some(thread) => thread.name().to_owned(),
        None if sim::in_hardware() => "hardware".to_owned(),
        None => "DPC".to_owned(),
    }
}
