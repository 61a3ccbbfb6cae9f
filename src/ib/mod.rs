//! Safe IBAL: the access layer of OpenFabrics for Windows, as far as IP over InfiniBand needs it.
//!
//! * [`interface`]: asking the bus driver for the functions; [`client`]: whom they call back.
//! * [`resources`]: what lives from MiniportInitializeEx to MiniportHaltEx ([`al`], [`ca`], [`pd`], [`cq`], [`mr`],
//!   [`qp`]), made in order and released in reverse.
//! * [`av`]: address handles; [`query`]: paths; [`mcast`]: multicast groups; [`pnp`]: events of the port.
//! * [`wr`], [`wc`]: work requests and completions, in storage of their owner.
//! * [`mod@status`] has the errors.
//!
//! # Levels
//!
//! A verb, that is a call that has the adapter execute a command, waits: it takes a proof of PASSIVE_LEVEL.
//! Only [`qp::Qp::post_send`], [`qp::Qp::post_sends`], [`qp::Qp::post_receives`], [`cq::Cq::poll`],
//! [`cq::Cq::rearm`], and cancelling a query may run at DISPATCH_LEVEL, and take none. At which
//! level each callback comes is said at its method of [`client::Client`], with the source that shows it.
//!
//! # Lifetimes
//!
//! An object that can call back holds a reference to its client until it is dropped, after its `destroy`,
//! which waits until no callback runs. The circle of references ends when the client gives its objects up. A
//! request that calls back once ([`query`], [`mcast`]) lies in a place that lives until then. `destroy` takes
//! `&self`, since the adapter shares its objects with its callbacks until the last of them is gone; it is
//! idempotent, and afterwards every call fails as the access layer fails calls with a null handle. There is
//! no verb in any `Drop`; a debug build asserts that nothing is dropped undestroyed.

pub mod al;
pub mod av;
pub mod ca;
pub mod client;
pub mod cq;
mod handle;
pub mod interface;
pub mod mcast;
pub mod mr;
pub mod pd;
pub mod pnp;
pub mod qp;
pub mod query;
pub mod resources;
mod slots;
pub mod status;
pub mod wc;
pub mod wr;
