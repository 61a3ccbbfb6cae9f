//! IP over InfiniBand for Windows: an NDIS 6 miniport on the IBAL access layer.
#![no_std]

// Off Windows the driver is a library inside the lab, a std program: std brings the panic handler that the
// cdylib needs. Nothing of std is used.
#[cfg(not(target_os = "windows"))]
extern crate std as _;
