//! NDIS 6: what `ndis.sys` defines for a miniport.

mod attributes;
mod configuration;
mod imports;
mod miniport;
mod nbl;
mod offload;
mod oid;
mod pnp;
mod sg_dma;
mod statistics;
mod status;
mod timer;
mod types;

pub use attributes::*;
pub use configuration::*;
pub use imports::*;
pub use miniport::*;
pub use nbl::*;
pub use offload::*;
pub use oid::*;
pub use pnp::*;
pub use sg_dma::*;
pub use statistics::*;
pub use status::*;
pub use timer::*;
pub use types::*;

#[cfg(feature = "abi-check")]
pub(crate) const LAYOUTS: &[&[crate::Layout]] = &[
    types::LAYOUTS,
    attributes::LAYOUTS,
    configuration::LAYOUTS,
    miniport::LAYOUTS,
    nbl::LAYOUTS,
    offload::LAYOUTS,
    oid::LAYOUTS,
    pnp::LAYOUTS,
    sg_dma::LAYOUTS,
    statistics::LAYOUTS,
    timer::LAYOUTS,
];
