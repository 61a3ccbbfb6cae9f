//! Safe NT and NDIS: proofs of IRQL, locks, pool, events, timers, work items, NET_BUFFER_LISTs, MDLs,
//! scatter/gather DMA, configuration, indications, logging.
//!
//! Knows nothing of InfiniBand or of the adapter. The rooms above it have no `unsafe`: what the kernel calls back
//! comes as a trait method with a safe type and a proof of the level it runs at ([`irql`]).

pub mod arc;
pub mod event;
pub mod irql;
pub mod pool;
pub mod set_once;
pub mod spinlock;
pub mod status;
