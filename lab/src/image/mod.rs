//! Driver images: a Windows x64 `.sys` file as memory that runs.
//!
//! An [`ImageFile`] is read and checked once; each machine that loads it gets a [`Mapping`] of its own, so each has its
//! own variables, at its own address. Sections have the permissions they ask for; after the unload the address range
//! stays reserved and inaccessible, so that a pointer that the driver left somewhere faults instead of hitting what
//! came next, and the fault can be explained.
//!
//! The room knows the PE format ("PE Format", Microsoft; "x64 exception handling" for the unwind tables) and the host's
//! memory, nothing of the simulated kernel: what the imports are bound to is asked of a closure.

mod error;
mod file;
mod mapping;
mod memory;
mod modules;
mod symbols;
mod unwind;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use error::{ImageError, MissingImport};
pub use file::{ImageFile, Import};
pub use mapping::Mapping;
pub(crate) use modules::{Fault, explain_fault, place};
pub(crate) use symbols::describe;
pub(crate) use unwind::{Registers, callers};
