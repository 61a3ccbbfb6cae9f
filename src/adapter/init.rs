//! MiniportInitializeEx, and beside it the same list backwards: MiniportHaltEx.
//!
//! Everything an adapter ever has is made here. A step that fails is followed by the undoing of those before it, in
//! reverse order: IBAL's objects do that among themselves ([`Resources::create`]), the rest is [`tear_down`], which
//! takes what there is, whole or half.

use super::config::MacScheme;
use super::control::{BroadcastMail, Control};
use super::event_code::EventCode;
use super::jobs::{Jobs, Pending};
use super::oid::{self, MULTICAST_LIST_SIZE};
use super::requests::Filters;
use super::resolver::{self, Resolver};
use super::stats::Statistics;
use super::worker::{self, TICK};
use super::{Adapter, Addresses, Machinery, registry};
use crate::datapath::rx::{self, Receiver};
use crate::datapath::tx::{self, Sender};
use crate::ib::interface::Interface;
use crate::ib::mcast::Memberships;
use crate::ib::pnp::Pnp;
use crate::ib::qp::QpConfig;
use crate::ib::query::Queries;
use crate::ib::resources::Resources;
use crate::ib::status::IbError;
use crate::ipoib::scheme::Scheme;
use crate::ipoib::scheme::guid::{self, GuidMask};
use crate::ipoib::scheme::laa::LaaCounter;
use crate::ipoib::{MacAddr, PKey, Qpn};
use crate::kernel::adapter::AdapterHandle;
use crate::kernel::arc::PoolArc;
use crate::kernel::attributes::{General, Registration};
use crate::kernel::event::{Event, Kind};
use crate::kernel::irql::Passive;
use crate::kernel::link::LinkState;
use crate::kernel::log::{Level, Log};
use crate::kernel::mutex::Mutex;
use crate::kernel::pool::{PoolBox, Tag};
use crate::kernel::set_once::SetOnce;
use crate::kernel::sg::SgDma;
use crate::kernel::status::Error;
use crate::kernel::timer::Timer;
use crate::kernel::work_item::WorkItem;
use core::mem::MaybeUninit;
use core::sync::atomic::AtomicBool;
use windows_kernel_sys as sys;

const TAG: Tag = Tag::new(*b"IbAd");
/// Seconds between two looks at whether the adapter hangs.
const CHECK_FOR_HANG_SECONDS: u32 = 4;
/// The fastest link there is: 12 lanes of EDR.
const MAX_LINK_SPEED: u64 = 300_000_000_000;
/// Queries and memberships beyond what the directory of peers has outstanding itself.
const SPARE_REQUESTS: usize = 4;

/// Why an adapter did not come up: what is left of it, to be released, and the status for NDIS.
pub type Failure = (Option<PoolArc<Adapter>>, sys::NDIS_STATUS);

/// MiniportInitializeEx. The adapter is returned with everything made and its port's events registered for.
///
/// # Errors
/// What MiniportInitializeEx returns. Nothing calls the adapter any more, but it is part of a circle that the caller
/// must cut.
pub fn initialize(ndis: AdapterHandle, at: &mut Passive<'_>) -> Result<PoolArc<Adapter>, Failure> {
    let adapter = create(ndis, at).map_err(|error| {
        report(ndis, Stage::Adapter, error.nt() as u32);
        (None, error.ndis())
    })?;
    let (interface, adapter) = adapter;
    let result = register(&adapter, at)
        .and_then(|()| equip(&adapter, &interface, at))
        .and_then(|()| start(&adapter, at));
    match result {
        Ok(()) => Ok(adapter),
        Err((stage, error)) => {
            report(ndis, stage, error.nt() as u32);
            if let Some(machinery) = adapter.machinery() {
                tear_down(machinery, at);
            }
            Err((Some(adapter), error.ndis()))
        }
    }
}

/// Where initialization failed, as the first word of the event-log entry.
#[derive(Clone, Copy, Debug)]
enum Stage {
    Adapter = 1,
    Resources = 2,
    DataPath = 3,
    Attributes = 4,
    Registration = 5,
}

fn report(ndis: AdapterHandle, stage: Stage, code: u32) {
    ndis.log_event(EventCode::InitializationFailed, [stage as u32, code]);
}

/// The adapter itself, without anything that calls it. A frame of its own: the adapter passes over the stack.
#[inline(never)]
fn create(ndis: AdapterHandle, at: &Passive<'_>) -> Result<(Interface, PoolArc<Adapter>), Error> {
    let config = registry::load(ndis, at);
    let interface = Interface::query(ndis, at)?;
    let identity = interface.identity();
    let pkey = match (config.pkey as u16, identity.pkey) {
        (0, None) => PKey::DEFAULT,
        (0, Some(pkey)) | (pkey, _) => PKey::new(pkey),
    };
    let adapter = PoolArc::try_new(
        TAG,
        Adapter {
            ndis,
            config,
            identity: *identity,
            pkey: pkey.full().get(),
            log: Log::try_new()?,
            statistics: Statistics::new(),
            filters: Filters::try_new()?,
            control: Mutex::try_new(Control::new())?,
            broadcast: BroadcastMail::default(),
            jobs: Pending::new(),
            resetting: AtomicBool::new(false),
            hung: AtomicBool::new(false),
            halted: Event::try_new(Kind::Notification, false)?,
            machinery: SetOnce::new(),
        },
    )?;
    Ok((interface, adapter))
}

/// The registration attributes: before anything else that NDIS is asked for
/// (ndis/nf-ndis-ndismsetminiportattributes).
fn register(adapter: &PoolArc<Adapter>, at: &Passive<'_>) -> Result<(), (Stage, Error)> {
    adapter
        .ndis
        .set_registration(
            Registration {
                context: adapter.as_ptr().cast(),
                flags: sys::NDIS_MINIPORT_ATTRIBUTES::HARDWARE_DEVICE
                    | sys::NDIS_MINIPORT_ATTRIBUTES::BUS_MASTER
                    | sys::NDIS_MINIPORT_ATTRIBUTES::SURPRISE_REMOVE_OK
                    | sys::NDIS_MINIPORT_ATTRIBUTES::NO_HALT_ON_SUSPEND,
                check_for_hang_seconds: CHECK_FOR_HANG_SECONDS,
            },
            at,
        )
        .map_err(|error| (Stage::Attributes, error))
}

/// Everything that calls the adapter back, or nothing.
#[inline(never)]
fn equip(
    adapter: &PoolArc<Adapter>,
    interface: &Interface,
    at: &mut Passive<'_>,
) -> Result<(), (Stage, Error)> {
    let config = &adapter.config;
    let place = PoolBox::<Machinery>::try_uninit(TAG).map_err(|error| (Stage::Adapter, error))?;
    let ib = |error: IbError| Error::from_status(error.to_ntstatus());
    let mut size = QpConfig {
        send_depth: config.sq_depth,
        receive_depth: config.rq_depth,
        send_segments: tx::SEGMENTS,
        receive_segments: rx::SEGMENTS,
    };
    let resources = Resources::create(
        interface,
        adapter,
        |limits| {
            let work_requests = limits.max_work_requests().min(limits.max_completions());
            size.send_depth = size.send_depth.min(work_requests);
            size.receive_depth = size.receive_depth.min(work_requests);
            size.send_segments = size.send_segments.min(limits.max_segments());
            size.receive_segments = size.receive_segments.min(limits.max_segments());
            size
        },
        at,
    )
    .map_err(|(step, error)| {
        adapter.log.line(Level::Error, format_args!("ipoib: {step:?}: {error}"));
        (Stage::Resources, ib(error))
    })?;
    match equip_with(adapter, &resources, size, at) {
        Ok(parts) => {
            // The place is empty: it is filled here only.
            let _ = adapter.machinery.set(assemble(place, parts, resources));
            Ok(())
        }
        Err(error) => {
            // What went wrong first is what counts.
            let _ = resources.destroy(at);
            Err((Stage::DataPath, error))
        }
    }
}

struct Parts {
    receiver: Receiver,
    sender: Sender,
    resolver: Resolver,
    memberships: Memberships<Adapter>,
    queries: Queries<Adapter>,
    worker: WorkItem<Adapter>,
    timer: Timer<Adapter>,
    dma: SgDma<Adapter>,
    addresses: Addresses,
}

/// A frame of its own: the whole passes over the stack once.
#[inline(never)]
fn assemble(
    place: PoolBox<MaybeUninit<Machinery>>,
    parts: Parts,
    resources: Resources,
) -> PoolBox<Machinery> {
    let Parts { receiver, sender, resolver, memberships, queries, worker, timer, dma, addresses } = parts;
    place.write(Machinery {
        receiver,
        sender,
        resolver,
        memberships,
        queries,
        worker,
        timer,
        dma,
        addresses,
        resources,
        pnp: SetOnce::new(),
    })
}

/// The DMA registration last but one and the rings that need it: what is made before is released by being dropped.
#[inline(never)]
fn equip_with(
    adapter: &PoolArc<Adapter>,
    resources: &Resources,
    size: QpConfig,
    at: &mut Passive<'_>,
) -> Result<Parts, Error> {
    let ib = |error: IbError| Error::from_status(error.to_ntstatus());
    let config = &adapter.config;
    let qpn = Qpn::new(resources.qp.number()).ok_or(Error::DEVICE)?;
    let guid = adapter.identity.port_guid.to_be_bytes();
    let mask = GuidMask::new(config.guid_mask).unwrap_or(GuidMask::DEFAULT);
    let scheme = match config.mac_scheme {
        MacScheme::QpnLid => Scheme::QpnLid,
        MacScheme::LaaCounter => Scheme::LaaCounter,
        MacScheme::Guid => Scheme::Guid(mask),
    };
    // Hosts count their peers from 1; an adapter's own address must not be one of those.
    let counter = LaaCounter::starting_after(u32::MAX - 1 - qpn.get());
    let addresses = Addresses {
        permanent: guid::mac_from_guid(guid, mask),
        current: config.network_address.map_or_else(|| scheme.local(qpn, guid, &counter), MacAddr::new),
    };
    let resolver = Resolver::try_new(config, scheme, addresses.current, qpn)?;
    let memberships =
        Memberships::new(&resources.qp, adapter, resolver::GROUPS + SPARE_REQUESTS).map_err(ib)?;
    let queries = Queries::new(&resources.al, adapter, resolver::QUERIES + SPARE_REQUESTS).map_err(ib)?;
    let worker = WorkItem::try_new(adapter.ndis, adapter.clone(), worker::work)?;
    let timer = Timer::try_new(adapter.ndis, adapter.clone(), worker::tick)?;
    let receiver =
        Receiver::try_new(adapter, size.receive_depth, qpn, addresses.current, resources.mr.lkey(), at)?;
    let dma = SgDma::register(adapter.ndis, tx::MAX_BYTES, adapter.clone(), tx::mapped, at);
    let made = dma.and_then(|dma| match Sender::try_new(config, &dma, &size, resources) {
        Ok(sender) => Ok((dma, sender)),
        Err(error) => {
            dma.deregister(at);
            Err(error)
        }
    });
    let (dma, sender) = match made {
        Ok(made) => made,
        Err(error) => {
            receiver.free(at);
            return Err(error);
        }
    };
    Ok(Parts { receiver, sender, resolver, memberships, queries, worker, timer, dma, addresses })
}

/// Tells NDIS, then IBAL.
fn start(adapter: &PoolArc<Adapter>, at: &mut Passive<'_>) -> Result<(), (Stage, Error)> {
    let Some(machinery) = adapter.machinery() else { return Err((Stage::Adapter, Error::INVALID_STATE)) };
    let ndis = adapter.ndis;
    let attributes = |error| (Stage::Attributes, error);
    ndis.set_general(
        &General {
            mtu: adapter.config.payload_mtu,
            lookahead: adapter.config.payload_mtu,
            link: LinkState::Down,
            max_link_speed: MAX_LINK_SPEED,
            mac_options: sys::NDIS_MAC_OPTION::from_bits_retain(oid::MAC_OPTIONS),
            packet_filters: sys::NDIS_PACKET_TYPE::from_bits_retain(oid::SUPPORTED_FILTERS),
            multicast_list_size: MULTICAST_LIST_SIZE as u32,
            permanent_address: machinery.addresses.permanent.to_bytes(),
            current_address: machinery.addresses.current.to_bytes(),
            statistics: sys::NDIS_STATISTICS_FLAGS::from_bits_retain(oid::SUPPORTED_STATISTICS),
            oids: &oid::SUPPORTED,
        },
        at,
    )
    .map_err(attributes)?;
    machinery.timer.set(TICK);
    let pnp = Pnp::register(&machinery.resources.al, adapter.identity.port_guid, adapter, at)
        .map_err(|error| (Stage::Registration, Error::from_status(error.to_ntstatus())))?;
    // The place is empty: it is filled here only.
    let _ = machinery.pnp.set(pnp);
    Ok(())
}

impl Adapter {
    /// MiniportHaltEx, up to where nothing calls the adapter any more.
    pub fn halt(&self, at: &mut Passive<'_>) {
        let Some(machinery) = self.machinery() else { return };
        // The port's events first, so that the port cannot come up again behind our back.
        destroy_pnp(machinery, at);
        // The QP is taken down where a reset does it: by the worker.
        if self.ask(Jobs::HALT) {
            self.halted.wait(at);
        }
        tear_down(machinery, at);
    }
}

impl Machinery {
    /// Frees the memory, after everything was stopped and destroyed, and with it the references to the adapter.
    pub(crate) fn free(self, at: &Passive<'_>) {
        let Self { receiver, sender, dma, .. } = self;
        // The storage for scatter/gather lists before what it was made for; receive buffers before their pool.
        drop(sender);
        dma.deregister(at);
        receiver.free(at);
    }
}

fn destroy_pnp(machinery: &Machinery, at: &Passive<'_>) {
    if let Some(pnp) = machinery.pnp.get() {
        // Fails only for a handle that is gone.
        let _ = pnp.destroy(at);
    }
}

/// Releases what an adapter has, in reverse order of its making. The QP is in RESET, or never left it.
fn tear_down(machinery: &Machinery, at: &mut Passive<'_>) {
    destroy_pnp(machinery, at);
    machinery.timer.stop(at);
    // Memberships and queries wait for their last callback, which asks the worker: so the worker goes after them.
    machinery.memberships.destroy(at);
    machinery.queries.destroy(at);
    machinery.worker.stop(at);
    machinery.sender.wait_idle(at);
    machinery.receiver.wait_idle(at);
    machinery.resolver.destroy_handles(at);
    machinery.dma.stop(at);
    // Each object is destroyed, whatever the one before it says; there is nobody to tell.
    let _ = machinery.resources.destroy(at);
}
