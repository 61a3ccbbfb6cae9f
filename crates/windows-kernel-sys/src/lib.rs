//! The raw ABI of the Windows kernel for an NDIS 6 miniport on x64: NT types, NDIS types, constants and imports.
//!
//! Layouts are those of the WDK's headers for NDIS 6.80 (`NDIS680_MINIPORT`) as an x64 compiler lays them out.
//! Each structure names the header it comes from and the page of the Windows driver documentation (DDI reference,
//! `learn.microsoft.com/windows-hardware/drivers/ddi/<header>/...`) that gives its members their meaning. Sizes and
//! offsets are asserted at compile time; the test `layout` (feature `abi-check`) compares the same numbers with C.
//!
//! Kernel functions and callbacks are `extern "win64"`. On Windows the imports are `raw-dylib`, so that no import
//! library is needed; elsewhere they are plain externs that whoever links the driver defines.
#![no_std]
#![allow(non_camel_case_types, non_snake_case, non_upper_case_globals, clippy::upper_case_acronyms)]
#![allow(
    missing_docs,
    reason = "names, members and constants are the WDK's; the page each type cites documents them"
)]

#[cfg(not(target_arch = "x86_64"))]
compile_error!("layouts and calling convention are those of x64");

#[macro_use]
mod macros;
pub mod ndis;
pub mod nt;

pub use macros::Zeroable;
#[cfg(feature = "abi-check")]
pub use macros::{Field, Layout};
pub use ndis::*;
pub use nt::*;

/// Every layout asserted in this crate, for comparison with C.
#[cfg(feature = "abi-check")]
pub fn layouts() -> impl Iterator<Item = &'static Layout> {
    nt::LAYOUTS.iter().chain(ndis::LAYOUTS).copied().flatten()
}
