//! IP over InfiniBand for Windows: an NDIS 6 miniport on the IBAL access layer.
//!
//! One module a room, each knowing only those below it (docs/architecture.md):
//!
//! | room | what it holds |
//! |---|---|
//! | [`entry`] | every function that NDIS or IBAL calls: raw pointer to safe type, IRQL proof, one method call |
//! | [`entry`] | every function that NDIS or IBAL calls: raw pointer to safe type, IRQL proof, one method call |
//! | [`adapter`] | the adapter and its life |
//! | [`datapath`] | a frame's way down and up |
//! | [`peers`] | who is out there: endpoints, paths, address handles, groups |
//! | [`ipoib`] | the protocol, pure |
//! | [`ib`] | safe IBAL |
//! | [`kernel`] | safe NT and NDIS |
//!
//! Memory is allocated fallibly ([`kernel`]'s pool), there is no global state, and nothing on the data path can
//! panic.
#![no_std]

// Off Windows the driver is a library inside the lab, a std program: std brings the panic handler that the
// cdylib needs. Nothing of std is used.
#[cfg(not(target_os = "windows"))]
extern crate std as _;

// The kernel's imports of the unit tests come from the lab.
#[cfg(all(test, not(target_os = "windows")))]
extern crate ipoib_lab as _;

pub mod adapter;
pub mod datapath;
pub mod entry;
pub mod ib;
pub mod ipoib;
pub mod kernel;
pub mod peers;
