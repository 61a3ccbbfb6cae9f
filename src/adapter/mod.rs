//! The adapter and its life.
//!
//! | file | what it holds |
//! |---|---|
//! | [`lifecycle`] | the pure state machine: what follows from each event |
//! | `control` | carries the machine's actions out, at PASSIVE_LEVEL, one event at a time |
//! | `init` | MiniportInitializeEx and, beside it, the same list backwards: MiniportHaltEx |
//! | `client` | what IBAL calls |
//! | `worker` | what needs PASSIVE_LEVEL and begins at DISPATCH_LEVEL |
//! | `resolver` | the work that the peers' directory hands out: queries, address handles, groups |
//! | `requests`, [`oid`] | OID requests: applied here, understood there |
//! | [`config`], `registry` | keywords, and where they come from |
//! | `port` | what is known of the port |
//! | [`stats`], [`jobs`] | counters; what the worker is asked |
//!
//! Lock order: the control mutex, then any one spin lock; no two spin locks are held at once.
#![forbid(unsafe_code)]

mod client;
pub mod config;
mod control;
pub mod event_code;
mod init;
pub mod jobs;
pub mod lifecycle;
pub mod oid;
mod port;
mod registry;
mod requests;
mod resolver;
pub mod stats;
mod worker;

pub use init::initialize;
pub(crate) use port::PortFacts;
pub(crate) use resolver::{Directory, Peers, Routed};

use crate::datapath::rx::Receiver;
use crate::datapath::tx::Sender;
use crate::ib::interface::PortIdentity;
use crate::ib::mcast::Memberships;
use crate::ib::pnp::Pnp;
use crate::ib::query::Queries;
use crate::ib::resources::Resources;
use crate::ipoib::MacAddr;
use crate::kernel::adapter::AdapterHandle;
use crate::kernel::event::Event;
use crate::kernel::irql::{Dispatch, Passive};
use crate::kernel::log::Log;
use crate::kernel::mutex::Mutex;
use crate::kernel::nbl::{ReturnedChain, SendChain};
use crate::kernel::pool::PoolBox;
use crate::kernel::set_once::SetOnce;
use crate::kernel::sg::SgDma;
use crate::kernel::timer::Timer;
use crate::kernel::work_item::WorkItem;
use config::Config;
use control::Control;
use core::sync::atomic::{AtomicBool, Ordering};
use jobs::{Jobs, Pending};
use requests::Filters;
use resolver::Resolver;
use stats::Statistics;
use windows_kernel_sys as sys;

/// One adapter: what the C driver split into adapter and port.
pub struct Adapter {
    pub(crate) ndis: AdapterHandle,
    pub(crate) config: Config,
    pub(crate) identity: PortIdentity,
    /// The P_Key of the partition, as configured or as the bus driver says, with the full-membership bit.
    pub(crate) pkey: u16,
    pub(crate) log: Log,
    pub(crate) statistics: Statistics,
    pub(crate) filters: Filters,
    control: Mutex<Control>,
    /// Results of the broadcast group's operations, on their way to the worker.
    broadcast: control::BroadcastMail,
    jobs: Pending,
    /// A reset was asked for and is not complete.
    resetting: AtomicBool,
    /// What MiniportCheckForHangEx answers.
    hung: AtomicBool,
    /// Set by the worker when it has served a halt.
    halted: Event,
    /// What is made once the adapter has an address that it can be called back by.
    machinery: SetOnce<PoolBox<Machinery>>,
}

/// What calls the adapter back, and what the data path uses.
///
/// Everything in it holds a reference to the adapter it is part of. MiniportHaltEx destroys what it stands for, and
/// then takes it out, which ends the circle.
pub struct Machinery {
    pub(crate) receiver: Receiver,
    pub(crate) sender: Sender,
    pub(crate) resolver: Resolver,
    pub(crate) resources: Resources,
    pub(crate) memberships: Memberships<Adapter>,
    pub(crate) queries: Queries<Adapter>,
    pub(crate) worker: WorkItem<Adapter>,
    pub(crate) timer: Timer<Adapter>,
    pub(crate) dma: SgDma<Adapter>,
    pub(crate) addresses: Addresses,
    pnp: SetOnce<Pnp<Adapter>>,
}

impl Machinery {
    /// Looks at both completion queues, whether or not they said anything.
    pub(crate) fn serve_queues(&self, adapter: &Adapter, at: Dispatch<'_>) {
        self.receiver.serve(adapter, self, at);
        self.sender.serve(adapter, self, at);
    }
}

/// The adapter's Ethernet addresses: fixed from MiniportInitializeEx to MiniportHaltEx.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// OID_802_3_PERMANENT_ADDRESS: from the port GUID, the same after every boot.
    pub permanent: MacAddr,
    /// OID_802_3_CURRENT_ADDRESS: `NetworkAddress`, or what the scheme makes.
    pub current: MacAddr,
}

impl Adapter {
    /// What is made last in MiniportInitializeEx and gone first in MiniportHaltEx; `None` outside of that.
    pub(crate) fn machinery(&self) -> Option<&Machinery> {
        self.machinery.get().map(|machinery| &**machinery)
    }

    /// The place that the machinery lies in, for the end of MiniportHaltEx.
    pub(crate) fn machinery_place(&self) -> &SetOnce<PoolBox<Machinery>> {
        &self.machinery
    }

    /// The counters, for whoever looks at an adapter from outside.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// MiniportSendNetBufferLists.
    pub fn send(&self, chain: SendChain, at: Dispatch<'_>) {
        match self.machinery() {
            Some(machinery) => machinery.sender.send(self, machinery, chain, at),
            None => chain.abort(sys::NDIS_STATUS_ADAPTER_NOT_READY, self.ndis, at),
        }
    }

    /// MiniportCancelSend.
    pub fn cancel_send(&self, cancel_id: *const (), at: Dispatch<'_>) {
        if let Some(machinery) = self.machinery() {
            machinery.sender.cancel(self, machinery, cancel_id, at);
        }
    }

    /// MiniportReturnNetBufferLists.
    pub fn take_back(&self, chain: ReturnedChain, at: Dispatch<'_>) {
        match self.machinery() {
            Some(machinery) => machinery.receiver.take_back(machinery, chain, at),
            // Buffers freed one by one: nothing is left to receive into.
            None => chain.for_each(drop),
        }
    }

    /// MiniportCheckForHangEx.
    pub fn is_hung(&self) -> bool {
        self.hung.load(Ordering::Relaxed)
    }

    /// MiniportResetEx: the worker does it.
    pub fn request_reset(&self) -> sys::NDIS_STATUS {
        if self.resetting.swap(true, Ordering::AcqRel) {
            return sys::NDIS_STATUS_RESET_IN_PROGRESS;
        }
        if self.ask(Jobs::RESET) {
            sys::NDIS_STATUS_PENDING
        } else {
            self.resetting.store(false, Ordering::Release);
            sys::NDIS_STATUS_FAILURE
        }
    }

    /// MiniportPause: stops the flow, and waits until nothing of it is under way.
    pub fn pause(&self, at: &mut Passive<'_>) {
        self.handle(lifecycle::Event::Pause, at);
        if let Some(machinery) = self.machinery() {
            machinery.sender.wait_idle(at);
            machinery.receiver.wait_idle(at);
        }
    }

    /// MiniportRestart.
    pub fn restart(&self, at: &mut Passive<'_>) {
        self.handle(lifecycle::Event::Restart, at);
    }

    /// NdisDevicePnPEventSurpriseRemoved.
    pub fn surprise_removed(&self, at: &mut Passive<'_>) {
        self.handle(lifecycle::Event::SurpriseRemoval, at);
    }

    /// MiniportShutdownEx, when the system is powered off.
    pub fn shutdown(&self, at: &mut Passive<'_>) {
        self.handle(lifecycle::Event::Shutdown, at);
    }

    /// Asks the worker. `false` if there is none any more. IRQL <= DISPATCH_LEVEL.
    pub(crate) fn ask(&self, jobs: Jobs) -> bool {
        self.jobs.add(jobs);
        self.machinery().is_some_and(|machinery| machinery.worker.queue())
    }
}
