//! Who is out there: endpoints, paths to them, address handles, multicast groups.
//!
//! [`Directory`] is the room's one door. It lives under the adapter's spin lock, does no call into the kernel
//! or the access layer, and never waits: what must be done at PASSIVE_LEVEL is handed out as [`Work`] and its
//! outcome handed back. Its cost per packet does not depend on how many peers there are.
//!
//! # How it is driven
//! `A` is an address handle, `J` a multicast membership, `P` a packet that waits (all owned, moved in and
//! out).
//!
//! *A send* (DISPATCH, under the lock): [`Directory::send`] or [`Directory::send_group`] takes the packet and
//! answers [`Sent::Ready`] with the packet and an [`AvRef`] to post with, [`Sent::Queued`] (the directory has
//! the packet; if `kick`, the worker has something to do), or [`Sent::Refused`] with the packet and why.
//! Whoever got an [`AvRef`] calls [`Directory::release`] once, when the send has completed, flushed, or
//! failed to post.
//!
//! *A receive* (DISPATCH, under the lock): [`Directory::observe`] for every frame gives the Ethernet address
//! of its source; [`Directory::claim`] instead, for a frame whose payload (ARP, Neighbor Discovery) names its
//! sender's hardware address. [`Rejected`] means: drop and count.
//!
//! After either, [`Directory::has_work`] says whether to wake the worker.
//!
//! *The worker* (PASSIVE; takes the lock for each call, carries the work out without it):
//! ```text
//! directory.tick(now);
//! while let Some(work) = directory.next_work(now) {
//!     match work {
//!         Work::QueryPath { ticket, target } => start the query; its callback: path_answered(ticket, ..)
//!         Work::CreateAv { ticket, path }    => av_created(ticket, Ok(av) or Err(())),
//!         Work::DestroyAv(av)                => destroy it,
//!         Work::Join { ticket, .. }          => start the join; its callback: joined(ticket, ..)
//!         Work::Leave { ticket, membership } => start the leave; its callback: left(ticket)
//!     }
//! }
//! while let Some((packet, av)) = directory.next_ready() { post }
//! while let Some((packet, why)) = directory.next_refused() { complete with failure, count }
//! if let Some(wanted) = directory.wants_room() {
//!     // Without the lock:           Growth::prepare(&memory, wanted)
//!     // With it, one or the other:  directory.install(growth), directory.cannot_grow()
//! }
//! set the timer by directory.next_deadline()
//! ```
//! Packets of one peer leave in the order they came: while some wait, later ones queue behind them.
//!
//! *Changes of the subnet*: [`Directory::set_port`] when the port becomes active, [`Directory::revalidate`]
//! when LIDs may have changed, [`Directory::rejoin`] when the subnet administrator has lost its memberships,
//! [`Directory::set_broadcast`] and [`Directory::clear_broadcast`] as the link comes and goes.
//!
//! *Giving packets back*: [`Directory::cancel`] for MiniportCancelSend and for a pause.
//!
//! *A halt*: [`Directory::forget_peers`] and [`Directory::clear_broadcast`]; then, with every send completed,
//! the worker as above until [`Directory::has_memberships`] is false and [`Directory::address_handles`] is 0.
#![forbid(unsafe_code)]

pub mod av;
pub mod directory;
mod endpoint;
mod fifo;
pub mod group;
mod groups;
mod hash;
mod index;
pub mod learn;
pub mod listen;
pub mod memory;
mod multicast;
pub mod path;
pub mod pending;
pub mod pool;
pub mod resolve;
mod segments;
mod slab;
mod table;
#[cfg(test)]
mod testing;
pub mod time;
mod work;

pub use av::AvRef;
pub use directory::{Config, Directory, Growth, Local, Route, Sent, Ticket, Wanted, Work};
pub use endpoint::Target;
pub use group::{Record, Role};
pub use learn::{Rejected, Source};
pub use memory::{Memory, OutOfMemory};
pub use path::Path;
pub use pending::Refusal;
pub use resolve::{Failure, Policy};
pub use time::Time;
