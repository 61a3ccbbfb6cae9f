//! NDIS for miniports of version 6: the functions such a driver imports from `ndis.sys`, and the calls that NDIS makes
//! to it, written to the documents and not to one driver's habits.
//!
//! A [`Driver`] is loaded, gets an [`Adapter`] for each device, and protocols ([`Protocol`]) bind to that. Whatever a
//! protocol or NDIS may do in more than one way (the IRQL of a send, how a frame lies in its MDLs, when a received
//! buffer is returned) is drawn from the simulation's generator. The rules in [`rules`] say what a miniport must do.
//!
//! Methods of [`Adapter`], [`Binding`] and [`Driver`] that change something are called from a thread of the machine.

mod adapter;
mod attributes;
mod binding;
mod call;
mod configuration;
mod direct_oid;
mod dma;
mod driver;
mod event_log;
mod filter;
mod fragments;
mod handle;
mod life;
mod link;
mod mandatory;
mod memory;
mod misc;
mod nbl;
mod net_buffer;
mod oid;
mod outgoing;
mod protocol;
mod receive;
mod registry;
pub mod rules;
mod send;
mod signal;
mod state;
mod status;
mod sync;
mod timer;
mod watchdog;
mod work_item;

#[cfg(test)]
mod tests;

pub use adapter::{Adapter, AdapterConfig, AdapterOptions, Returns};
pub use binding::Binding;
pub use driver::{Driver, DriverConfig};
pub use event_log::{EventLog, EventLogEntry};
pub use filter::{
    ALL_MULTICAST, BROADCAST, Cast, DIRECTED, Filter, MULTICAST, MacAddress, PROMISCUOUS, cast,
};
pub use fragments::{Fragmentation, Plan};
pub use link::{LinkState, MediaConnect};
pub use mandatory::{MANDATORY_QUERIES, MANDATORY_SETS};
pub use misc::NDIS_VERSION;
pub use oid::{OidKind, OidReply, OidRequest};
pub use protocol::{Frame, Protocol, SendCompletion, SendList, SendRequest, Status};
pub use registry::{ConfigurationValue, RegistryKey, RegistryValue, Wanted};
pub use signal::{Completion, Signal, Turn, TurnGuard};
pub use state::{AdapterState, Counters, General, Phase, Registration};

use crate::kernel::Export;

/// Every function that a driver can import from the simulated NDIS, for the image loader.
pub fn exports() -> impl Iterator<Item = &'static Export> {
    [
        adapter::EXPORTS,
        attributes::EXPORTS,
        configuration::EXPORTS,
        direct_oid::EXPORTS,
        dma::EXPORTS,
        driver::EXPORTS,
        life::EXPORTS,
        misc::EXPORTS,
        nbl::EXPORTS,
        net_buffer::EXPORTS,
        oid::EXPORTS,
        receive::EXPORTS,
        send::EXPORTS,
        status::EXPORTS,
        sync::EXPORTS,
        timer::EXPORTS,
        watchdog::EXPORTS,
        work_item::EXPORTS,
    ]
    .into_iter()
    .flatten()
}
