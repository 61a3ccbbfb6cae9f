//! Raw IBAL ABI: the InfiniBand access layer of OpenFabrics for Windows, as its bus driver hands it to client
//! drivers (interface version 19, ipoib data version 10), for x64.
//!
//! Names, order and types are those of the public headers (`inc/iba/ib_al.h`, `inc/iba/ib_types.h`,
//! `inc/kernel/iba/ib_al_ifc.h`, `inc/kernel/iba/ipoib_ifc.h` of OpenFabrics for Windows); what a call does
//! and at which IRQL is from the sources under `core/al`. C spelling ends here: the driver's `ib` module has
//! the safe types.
//!
//! `tests/layout.rs` checks every offset against the table in `tests/data`, `tests/abi.rs` (feature
//! `abi-check`) against what clang makes of `include/ibal` for the Windows target.
//!
//! Two kinds of change from C: a pointer that the header wraps in a union with 64 bits of padding
//! (`TO_LONG_PTR`) is the plain pointer, and anonymous unions have a name.
#![no_std]
#![allow(non_camel_case_types, non_upper_case_globals, non_snake_case)]

mod av;
mod ca;
mod cm;
mod cq;
mod event;
mod ifc;
mod ipoib;
pub mod layout;
mod mad;
mod mcast;
mod mr;
mod pd;
mod pnp;
mod qp;
mod query;
mod sa;
mod status;
mod types;
mod wc;
mod wr;

pub use av::*;
pub use ca::*;
pub use cm::*;
pub use cq::*;
pub use event::*;
pub use ifc::*;
pub use ipoib::*;
pub use mad::*;
pub use mcast::*;
pub use mr::*;
pub use pd::*;
pub use pnp::*;
pub use qp::*;
pub use query::*;
pub use sa::*;
pub use status::*;
pub use types::*;
pub use wc::*;
pub use wr::*;
