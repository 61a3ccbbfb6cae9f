//! A frame's way down and up.
//!
//! ```text
//! down: NDIS -> tx -> tx_frame (plan, route, rewrite) -> tx_ring (post) -> HCA -> tx_ring (completion) -> NDIS
//! up:   HCA -> rx_ring (completion) -> rx (check, learn, translate, filter) -> NDIS -> rx_ring (repost)
//! ```
//! Nothing here allocates, waits, or can panic, and no cost depends on the number of peers. Everything runs at
//! DISPATCH_LEVEL; no two spin locks are held at once.
#![forbid(unsafe_code)]

mod polling;
pub mod rx;
pub mod rx_ring;
pub(crate) mod translation;
pub mod tx;
mod tx_frame;
pub mod tx_ring;
