//! A simulated Windows kernel: one [`Machine`] is one Windows.
//!
//! Objects that a driver reads have their true layout (`windows-kernel-sys`); what only the kernel knows about
//! them is kept beside them, by address, in the machine. The functions a driver imports are written with
//! [`export!`](crate::export) in the files of `exports/`, one for each prefix of NT; each first checks its IRQL, then
//! passes a preemption point.

pub mod debug;
mod dispatcher;
mod driver;
mod export;
pub mod exports;
pub mod io;
pub mod irql;
mod machine;
pub mod mdl;
mod page_fault;
pub mod phys;
pub mod pool;
mod spin_lock;
pub mod time;

#[cfg(test)]
mod tests;

pub use driver::Driver;
pub use export::Export;
pub use io::{DeviceHandler, DeviceProperties};
pub use irql::preempt;
pub use machine::{Machine, MachineConfig};
pub use phys::DmaFault;
pub use pool::PoolStats;

/// Every function that a driver can import from the simulated kernel, for the image loader.
pub fn exports() -> impl Iterator<Item = &'static Export> {
    [
        exports::crt::EXPORTS,
        exports::ex::EXPORTS,
        exports::io::EXPORTS,
        exports::ke::EXPORTS,
        exports::mm::EXPORTS,
        exports::rtl::EXPORTS,
    ]
    .into_iter()
    .flatten()
}
