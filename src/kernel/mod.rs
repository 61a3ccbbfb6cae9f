//! Safe NT and NDIS: proofs of IRQL, locks, pool, events, timers, work items, NET_BUFFER_LISTs, MDLs,
//! scatter/gather DMA, configuration, indications, logging.
//!
//! Knows nothing of InfiniBand or of the adapter. The rooms above it have no `unsafe`: what the kernel calls back
//! comes as a call of a plain function with a safe type and a proof of the level it runs at ([`irql`]).

pub mod adapter;
pub mod arc;
pub mod attributes;
mod callback;
pub mod config;
pub mod driver_object;
pub mod event;
pub mod gate;
pub mod irql;
pub mod link;
pub mod log;
pub mod mdl;
pub mod mutex;
pub mod nbl;
pub mod oid_request;
// The lab is a std program, and the WDK's crate brings its own.
pub mod physical;
pub mod pool;
pub mod query_interface;
#[cfg(all(target_os = "windows", not(feature = "wdk")))]
mod runtime;
pub mod set_once;
pub mod sg;
pub mod spinlock;
pub mod status;
pub mod time;
pub mod timer;
pub mod work_item;
