//! NDIS for miniports of version 6.

mod event_log;
mod filter;
mod fragments;
mod link;
mod protocol;
mod registry;
mod signal;
