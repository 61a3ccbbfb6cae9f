//! The adapter and its life.
//!
//! [`lifecycle`] decides, as a pure function, what follows from each event; the other files carry it out.

pub mod config;
pub mod jobs;
pub mod lifecycle;
pub mod oid;
pub mod stats;
