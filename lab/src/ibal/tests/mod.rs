//! The HCA and the access layer together, driven by fake drivers on coroutines of simulated machines.

mod behaviour;
mod bench;
mod connected;
mod rules;
