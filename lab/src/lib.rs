//! Simulated Windows hosts on a simulated InfiniBand fabric, running the real ipoib driver.
//!
//! One module a room, each knowing only those below it (docs/architecture.md):
//!
//! | room | what it holds |
//! |---|---|
//! | [`scenario`] | subnets of whole hosts, the main job, its report |
//! | [`stack`] | what sits above NDIS: an IP host, a TAP device, a test's notes |
//! | [`ndis`] | NDIS for miniports of version 6 |
//! | [`ibal`] | the access layer of OpenFabrics for Windows |
//! | [`hca`] | a host channel adapter: queue pairs, completion queues, memory |
//! | [`image`] | a loader for driver images |
//! | [`kernel`] | one simulated Windows: IRQL, locks, pool, DPCs, IRPs |
//! | [`verifier`], [`fault`] | rules and who breaks them; calls that fail on purpose |
//! | [`fabric`] | an InfiniBand fabric without a clock: wire formats, switches, subnet management |
//! | [`sim`] | one scheduler, one clock, one seed |

pub mod fabric;
pub mod fault;
pub mod hca;
pub mod ibal;
pub mod image;
pub mod kernel;
pub mod ndis;
pub mod scenario;
pub mod sim;
pub mod stack;
pub mod verifier;
