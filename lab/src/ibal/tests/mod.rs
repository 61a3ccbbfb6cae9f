//! The HCA and the access layer together, driven by fake drivers on coroutines of simulated machines.

mod bench;
mod connected;
mod datagrams;
mod modes;
mod multicast;
mod plug_and_play;
mod queries;
mod queues;
mod rules;
