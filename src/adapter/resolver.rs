//! The directory of peers at work: the lock around it, and what it hands out to be done at PASSIVE_LEVEL.
//!
//! Path queries and joins are answered by IBAL on other threads, under a token. [`Tickets`] keeps which piece of the
//! directory's work a token means.

use super::{Adapter, Machinery, PortFacts};
use crate::adapter::config::Config;
use crate::adapter::stats::Drop;
use crate::datapath::translation;
use crate::datapath::tx_ring::Route;
use crate::ib::av::{Av, AvAttributes, Grh};
use crate::ib::mcast::{GroupParameters, JoinError, JoinRequest, JoinState, Member, MembershipId};
use crate::ib::query::{Destination, PathRecord, PathRequest, QueryError};
use crate::ipoib::mgid::Link;
use crate::ipoib::mtu::Mtu;
use crate::ipoib::rate::Rate;
use crate::ipoib::scheme::Scheme;
use crate::ipoib::translate::{self, Context, Up};
use crate::ipoib::{Gid, HwAddr, IpGroup, Lid, MacAddr, Mgid, PKey, Qpn};
use crate::kernel::arc::PoolArc;
use crate::kernel::irql::{Dispatch, Passive};
use crate::kernel::log::Level;
use crate::kernel::nbl::{SendBuffer, SendQueue};
use crate::kernel::pool::{PoolBox, PoolVec, Tag};
use crate::kernel::set_once::SetOnce;
use crate::kernel::spinlock::SpinLock;
use crate::kernel::status::{Error, Result};
use crate::kernel::time;
use crate::peers::pool::Pool;
use crate::peers::{
    self, AvRef, Failure, Growth, Local, Path, Record, Refusal, Role, Sent, Source, Target, Ticket, Time,
    Work,
};

const TAG: Tag = Tag::new(*b"IbRs");
/// Path queries in flight.
pub(super) const QUERIES: usize = 32;
/// Multicast groups, memberships in all their stages.
pub(super) const GROUPS: usize = 512;
/// The token of the broadcast group, which the lifecycle keeps.
pub(super) const BROADCAST: u64 = u64::MAX;

/// The directory of peers, as this driver instantiates it: a membership is a token.
pub(crate) type Directory = peers::Directory<PoolArc<SetOnce<Av>>, u64, SendBuffer, Pool>;

/// The directory, and this adapter as translation must know it.
pub(crate) struct Peers {
    /// Who is out there.
    pub directory: Directory,
    /// Known once the port was active.
    pub context: Option<Context>,
}

/// What became of a frame.
pub(crate) enum Routed {
    /// Post it.
    Ready(SendBuffer, Route),
    /// The directory has it.
    Queued,
    /// Complete it.
    Refused(SendBuffer, Refusal),
}

/// A membership on its way in or out, by its token.
#[derive(Clone, Copy, Debug)]
struct Membership {
    /// Of the join, later of the leave.
    ticket: Ticket,
    /// Known once the join was accepted.
    id: Option<MembershipId>,
}

/// Which work an answer belongs to: a token is an index here.
struct Tickets<T>(SpinLock<PoolVec<Option<T>>>);

impl<T: Copy> Tickets<T> {
    fn try_new(count: usize) -> Result<Self> {
        Ok(Self(SpinLock::new(PoolVec::try_from_fn(TAG, count, |_| Ok(None))?)))
    }

    fn put(&self, value: T, at: &mut Passive<'_>) -> Option<u64> {
        let mut places = self.0.lock(at);
        let (token, place) = places.iter_mut().enumerate().find(|(_, place)| place.is_none())?;
        *place = Some(value);
        Some(token as u64)
    }

    /// Forgets a token.
    fn take(&self, token: u64, at: Dispatch<'_>) -> Option<T> {
        self.0.lock_at(at).get_mut(usize::try_from(token).ok()?)?.take()
    }

    fn get(&self, token: u64, at: Dispatch<'_>) -> Option<T> {
        *self.0.lock_at(at).get(usize::try_from(token).ok()?)?
    }

    fn update(&self, token: u64, change: impl FnOnce(&mut T), at: Dispatch<'_>) {
        let mut places = self.0.lock_at(at);
        if let Some(Some(value)) = usize::try_from(token).ok().and_then(|token| places.get_mut(token)) {
            change(value);
        }
    }
}

/// Everything about peers.
pub(crate) struct Resolver {
    /// In pool of its own: too large to pass over a kernel stack with its owner.
    peers: SpinLock<PoolBox<Peers>>,
    queries: Tickets<Ticket>,
    memberships: Tickets<Membership>,
    local: SpinLock<Port>,
    mac: MacAddr,
    qpn: Qpn,
}

/// What queries and address handles need to know of the port.
#[derive(Clone, Copy, Debug, Default)]
struct Port {
    gid: [u8; 16],
    pkey: u16,
    pkey_index: u16,
}

/// A frame of its own: the directory passes over the stack.
#[inline(never)]
fn peers(limits: peers::Config) -> Result<PoolBox<Peers>> {
    let place = PoolBox::try_uninit(TAG)?;
    let directory = Directory::new(&Pool, limits).map_err(|_| Error::RESOURCES)?;
    Ok(place.write(Peers { directory, context: None }))
}

fn now() -> Time {
    Time::from_uptime(time::now())
}

impl Resolver {
    #[inline(never)]
    pub(super) fn try_new(config: &Config, scheme: Scheme, mac: MacAddr, qpn: Qpn) -> Result<Self> {
        let limits = peers::Config {
            scheme,
            // The time since boot is nothing that a peer knows to the tenth of a microsecond.
            hash_seed: time::now().as_nanos() as u64 ^ u64::from(qpn.get()).rotate_left(40),
            groups: GROUPS as u32,
            queries: QUERIES as u32,
            idle: config.aging_seconds.saturating_mul(1000),
            ..peers::Config::DEFAULT
        };
        Ok(Self {
            peers: SpinLock::new(peers(limits)?),
            queries: Tickets::try_new(QUERIES)?,
            memberships: Tickets::try_new(GROUPS)?,
            local: SpinLock::new(Port::default()),
            mac,
            qpn,
        })
    }

    /// Has `f` work with what is known of peers, with the lock held.
    pub(crate) fn with_peers<R>(&self, at: Dispatch<'_>, f: impl FnOnce(&Peers, Dispatch<'_>) -> R) -> R {
        let mut guard = self.peers.lock_at(at);
        let (peers, at) = guard.parts();
        f(peers, at)
    }

    /// Whether the worker has something to do here.
    pub(crate) fn has_work(&self, at: Dispatch<'_>) -> bool {
        self.peers.lock_at(at).directory.has_work()
    }

    /// Sends a frame on its way.
    pub(crate) fn route(
        &self,
        destination: translate::Destination,
        buffer: SendBuffer,
        now: Time,
        at: Dispatch<'_>,
    ) -> Routed {
        let mut peers = self.peers.lock_at(at);
        let sent = match destination {
            translate::Destination::Station(mac) => peers.directory.send(mac, buffer, now),
            translate::Destination::Broadcast => peers.directory.send_broadcast(buffer),
            translate::Destination::Group(group) => peers.directory.send_group(group, buffer, now),
        };
        match sent {
            Sent::Ready(buffer, route) => Routed::Ready(buffer, keep(route)),
            Sent::Queued => Routed::Queued,
            Sent::Refused(buffer, refusal) => Routed::Refused(buffer, refusal),
        }
    }

    /// A send is over, or was never posted.
    pub(crate) fn release(&self, lease: AvRef, at: Dispatch<'_>) {
        self.peers.lock_at(at).directory.release(lease);
    }

    /// Moves the frames that wait with their peers and are meant to `into`.
    pub(crate) fn cancel(
        &self,
        is_meant: impl Fn(&SendBuffer) -> bool,
        into: &mut SendQueue,
        at: Dispatch<'_>,
    ) {
        self.peers.lock_at(at).directory.cancel(is_meant, |buffer| into.push_back(buffer));
    }

    /// The host says which groups it joined or left.
    pub(crate) fn reported(&self, changes: &[(IpGroup, bool)], now: Time, at: Dispatch<'_>) {
        let mut peers = self.peers.lock_at(at);
        for &(group, joined) in changes {
            peers.directory.reported(group, joined, now);
        }
    }

    /// Learns from a received packet, and translates it in place. Answers the sender's Ethernet address and the
    /// packet's new length.
    pub(crate) fn receive(
        &self,
        plan: Up,
        source: &Source,
        packet: &mut [u8],
        now: Time,
        at: Dispatch<'_>,
    ) -> core::result::Result<(MacAddr, usize), Drop> {
        translation::up(&mut self.peers.lock_at(at), plan, source, packet, now)
    }

    /// What is known of the port changed.
    pub(super) fn set_port(&self, port: &PortFacts, at: &mut Passive<'_>) {
        *self.local.lock(at) =
            Port { gid: port.gid, pkey: port.pkey, pkey_index: port.pkey_index.unwrap_or(0) };
        let local = Local {
            mac: self.mac,
            qpn: self.qpn,
            gid: Gid::new(port.gid),
            lid: Lid::new(port.lid),
            lmc: port.lmc,
        };
        let broadcast = Mgid::broadcast(Link::new(PKey::new(port.pkey))).gid();
        let mut peers = self.peers.lock(at);
        peers.directory.set_port(local);
        peers.context = Some(Context {
            mac: self.mac,
            address: HwAddr::new(self.qpn, local.gid),
            broadcast: Some(HwAddr::new(Qpn::MULTICAST, broadcast)),
        });
    }

    /// Paths are asked for anew when they are used next.
    pub(super) fn revalidate(&self, at: &mut Passive<'_>) {
        self.peers.lock(at).directory.revalidate();
    }

    /// The broadcast group is joined: the other groups can be, too.
    pub(super) fn set_broadcast(&self, mgid: Mgid, member: &Member, at: &mut Passive<'_>) -> bool {
        // The group that was asked for, and joined in earnest: an access layer attaches the QP to no other.
        let asked = |record: &Record| record.path.destination == mgid.gid() && member.is_full();
        let Some(record) = record(member).filter(asked) else { return false };
        self.peers.lock(at).directory.set_broadcast(mgid, record, now()).is_ok()
    }

    /// The link is down: no group is left.
    pub(super) fn clear_broadcast(&self, at: &mut Passive<'_>) {
        self.peers.lock(at).directory.clear_broadcast(now());
    }

    /// The subnet administrator has forgotten us.
    pub(super) fn rejoin(&self, at: &mut Passive<'_>) {
        self.peers.lock(at).directory.rejoin(now());
    }

    /// Takes over what NDIS wants to receive.
    pub(super) fn set_listened(&self, adapter: &Adapter, at: &mut Passive<'_>) {
        let mut list = [MacAddr::ZERO; super::oid::MULTICAST_LIST_SIZE];
        let mut count = 0;
        adapter.filters.for_each_listened(at, |mac| {
            if let Some(place) = list.get_mut(count) {
                *place = mac;
                count += 1;
            }
        });
        let all = adapter.filters.wants_all_multicast();
        let mut peers = self.peers.lock(at);
        peers.directory.set_multicast_list(list.get(..count).unwrap_or_default(), now());
        peers.directory.set_all_multicast(all, now());
    }

    /// IBAL answered a path query.
    pub(super) fn path_answered(
        &self,
        token: u64,
        result: core::result::Result<PathRecord, QueryError>,
        at: Dispatch<'_>,
    ) {
        let Some(ticket) = self.queries.take(token, at) else { return };
        let answer = match result {
            Ok(record) => path(&record).ok_or(Failure::Wrong),
            Err(QueryError::NoRecord) => Err(Failure::NoRecord),
            Err(QueryError::Malformed) => Err(Failure::Wrong),
            Err(
                QueryError::TimedOut | QueryError::Cancelled | QueryError::Refused(_) | QueryError::Failed(_),
            ) => Err(Failure::NoAnswer),
        };
        self.peers.lock_at(at).directory.path_answered(ticket, answer, now());
    }

    /// A join ended.
    pub(super) fn joined(
        &self,
        token: u64,
        result: core::result::Result<Member, JoinError>,
        at: Dispatch<'_>,
    ) -> Option<u64> {
        let outcome = result.ok().and_then(|member| record(&member)).map(|record| (token, record)).ok_or(());
        let membership =
            if outcome.is_ok() { self.memberships.get(token, at) } else { self.memberships.take(token, at) };
        let ticket = membership?.ticket;
        self.peers.lock_at(at).directory.joined(ticket, outcome, now())
    }

    /// A leave ended.
    pub(super) fn left(&self, token: u64, at: Dispatch<'_>) {
        if let Some(membership) = self.memberships.take(token, at) {
            self.peers.lock_at(at).directory.left(membership.ticket, now());
        }
    }

    /// Does what the directory wants done, and sends what can be sent by now.
    pub(super) fn serve(&self, adapter: &Adapter, machinery: &Machinery, at: &mut Passive<'_>) {
        let now = now();
        self.peers.lock(at).directory.tick(now);
        self.grow(adapter, at);
        loop {
            let work = self.peers.lock(at).directory.next_work(now);
            match work {
                Some(work) => self.carry_out(adapter, machinery, work, at),
                None => break,
            }
        }
        loop {
            let ready =
                self.peers.lock(at).directory.next_ready().map(|(buffer, route)| (buffer, keep(route)));
            let Some((buffer, route)) = ready else { break };
            at.raised(|at| machinery.sender.resume(adapter, machinery, buffer, route, at));
        }
        loop {
            let refused = self.peers.lock(at).directory.next_refused();
            let Some((buffer, refusal)) = refused else { break };
            at.raised(|at| machinery.sender.give_up(adapter, machinery, buffer, refusal, at));
        }
    }

    /// Gives tables that are nearly full more memory, allocated without the lock.
    fn grow(&self, adapter: &Adapter, at: &mut Passive<'_>) {
        let wanted = self.peers.lock(at).directory.wants_room();
        if let Some(wanted) = wanted {
            if let Ok(growth) = Growth::prepare(&Pool, wanted) {
                self.peers.lock(at).directory.install(growth);
            } else {
                self.peers.lock(at).directory.cannot_grow();
                adapter.log.limited(Level::Warning, format_args!("ipoib: no memory for more peers"));
            }
        }
    }

    fn carry_out(
        &self,
        adapter: &Adapter,
        machinery: &Machinery,
        work: Work<PoolArc<SetOnce<Av>>, u64>,
        at: &mut Passive<'_>,
    ) {
        match work {
            Work::QueryPath { ticket, target } => self.query(adapter, machinery, ticket, target, at),
            Work::CreateAv { ticket, path } => {
                let made = self.create_av(adapter, machinery, &path, at);
                let unwanted = self.peers.lock(at).directory.av_created(ticket, made.ok_or(()), now());
                if let Some(av) = unwanted {
                    destroy(&av, at);
                }
            }
            Work::DestroyAv(av) => destroy(&av, at),
            Work::Join { ticket, mgid, role, template } => {
                self.join(adapter, machinery, Join { ticket, mgid, role, template }, at);
            }
            Work::Leave { ticket, membership } => self.leave(machinery, ticket, membership, at),
        }
    }

    fn query(
        &self,
        adapter: &Adapter,
        machinery: &Machinery,
        ticket: Ticket,
        target: Target,
        at: &mut Passive<'_>,
    ) {
        let port = *self.local.lock(at);
        let request = PathRequest {
            port_guid: adapter.identity.port_guid,
            source: port.gid,
            destination: match target {
                Target::Gid(gid) => Destination::Gid(gid.to_bytes()),
                Target::Lid(lid) => Destination::Lid(lid.get()),
            },
            pkey: port.pkey,
        };
        adapter.statistics.path_queries.increment();
        // The directory has at most as many queries outstanding as there are places.
        let token = self.queries.put(ticket, at);
        let sent = token
            .is_some_and(|token| machinery.queries.path(&request, adapter.patience(), token, at).is_ok());
        if !sent {
            if let Some(token) = token {
                at.raised(|at| self.queries.take(token, at));
            }
            self.peers.lock(at).directory.path_answered(ticket, Err(Failure::NoAnswer), now());
        }
    }

    fn create_av(
        &self,
        adapter: &Adapter,
        machinery: &Machinery,
        path: &Path,
        at: &mut Passive<'_>,
    ) -> Option<PoolArc<SetOnce<Av>>> {
        let port = *self.local.lock(at);
        let attributes = AvAttributes {
            port_number: adapter.identity.port_number,
            dlid: path.lid.get(),
            sl: path.sl,
            rate: path.rate.code(),
            path_bits: 0,
            grh: path.needs_grh().then(|| Grh {
                destination: path.destination.to_bytes(),
                source: port.gid,
                flow_label: path.flow_label,
                traffic_class: path.traffic_class,
                hop_limit: path.hop_limit,
            }),
        };
        // The place before the handle: a handle without a place could only be destroyed again.
        let place = PoolArc::try_new(TAG, SetOnce::new()).ok()?;
        match Av::create(&machinery.resources.pd, &attributes, at) {
            Ok(av) => place.set(av).is_ok().then_some(place),
            Err(error) => {
                adapter.log.limited(Level::Warning, format_args!("ipoib: create_av: {error}"));
                None
            }
        }
    }

    fn join(&self, adapter: &Adapter, machinery: &Machinery, join: Join, at: &mut Passive<'_>) {
        let Join { ticket, mgid, role, template } = join;
        let port = *self.local.lock(at);
        let state = match role {
            Role::Full => JoinState::Full,
            Role::SendOnly => JoinState::SendOnly,
        };
        // A group that nobody listens to is not made by sending to it.
        let create = (role == Role::Full).then(|| GroupParameters {
            qkey: template.qkey,
            mtu_code: Some(template.path.mtu.code()),
            rate_code: Some(template.path.rate.code()),
            packet_life: None,
            sl: template.path.sl,
            flow_label: template.path.flow_label,
            hop_limit: template.path.hop_limit,
            traffic_class: template.path.traffic_class,
        });
        let request = JoinRequest {
            mgid: mgid.gid().to_bytes(),
            port_guid: adapter.identity.port_guid,
            pkey: port.pkey,
            pkey_index: port.pkey_index,
            state,
            create,
        };
        let token = self.memberships.put(Membership { ticket, id: None }, at);
        let joined = token.and_then(|token| {
            let qp = &machinery.resources.qp;
            machinery.memberships.join(qp, &request, adapter.patience(), token, at).ok()
        });
        match (token, joined) {
            (Some(token), Some(id)) => {
                at.raised(|at| self.memberships.update(token, |membership| membership.id = Some(id), at));
            }
            (token, _) => {
                if let Some(token) = token {
                    at.raised(|at| self.memberships.take(token, at));
                }
                // Nothing was joined that could be left over.
                let _ = self.peers.lock(at).directory.joined(ticket, Err(()), now());
            }
        }
    }

    /// Leaves a group for the directory, which hears of the end under `ticket`.
    fn leave(&self, machinery: &Machinery, ticket: Ticket, token: u64, at: &mut Passive<'_>) {
        let id = at.raised(|at| {
            self.memberships.update(token, |membership| membership.ticket = ticket, at);
            self.memberships.get(token, at).and_then(|membership| membership.id)
        });
        if id.is_none_or(|id| machinery.memberships.leave(id, at).is_err()) {
            // It is gone already.
            at.raised(|at| self.left(token, at));
        }
    }

    /// Leaves a group that the directory does not want, nor to hear of again.
    pub(super) fn leave_unwanted(&self, machinery: &Machinery, token: u64, at: &mut Passive<'_>) {
        let id = at.raised(|at| self.memberships.get(token, at).and_then(|membership| membership.id));
        if id.is_none_or(|id| machinery.memberships.leave(id, at).is_err()) {
            at.raised(|at| self.memberships.take(token, at));
        }
    }

    /// Destroys every address handle, when nothing is sent, asked or joined any more.
    pub(super) fn destroy_handles(&self, at: &mut Passive<'_>) {
        {
            let mut peers = self.peers.lock(at);
            peers.directory.clear_broadcast(now());
            peers.directory.forget_peers();
        }
        loop {
            let work = self.peers.lock(at).directory.next_work(now());
            match work {
                None => return,
                Some(Work::DestroyAv(av)) => destroy(&av, at),
                // Refused: there is nothing to do it with any more.
                Some(Work::QueryPath { ticket, .. }) => {
                    self.peers.lock(at).directory.path_answered(ticket, Err(Failure::NoAnswer), now());
                }
                Some(Work::CreateAv { ticket, .. }) => {
                    let _ = self.peers.lock(at).directory.av_created(ticket, Err(()), now());
                }
                Some(Work::Join { ticket, .. }) => {
                    let _ = self.peers.lock(at).directory.joined(ticket, Err(()), now());
                }
                Some(Work::Leave { ticket, .. }) => self.peers.lock(at).directory.left(ticket, now()),
            }
        }
    }
}

/// The work of joining.
#[derive(Clone, Copy)]
struct Join {
    ticket: Ticket,
    mgid: Mgid,
    role: Role,
    template: Record,
}

/// A route without the borrow of the directory.
fn keep(route: peers::Route<'_, PoolArc<SetOnce<Av>>>) -> Route {
    let peers::Route { av, handle, qpn, qkey } = route;
    Route { av: handle.clone(), qpn: qpn.get(), qkey, lease: av }
}

fn destroy(av: &SetOnce<Av>, at: &Passive<'_>) {
    if let Some(av) = av.get() {
        // Fails only for a handle that is gone.
        let _ = av.destroy(at);
    }
}

/// The path of a path record; `None` if it has a code that is reserved.
fn path(record: &PathRecord) -> Option<Path> {
    Some(Path {
        destination: Gid::new(record.destination),
        lid: Lid::new(record.dlid),
        sl: record.sl,
        rate: Rate::from_code(record.rate_code)?,
        mtu: Mtu::from_code(record.mtu_code)?,
        hop_limit: record.hop_limit,
        flow_label: record.flow_label,
        traffic_class: record.traffic_class,
    })
}

/// The record of a group that was joined; `None` if it has a code that is reserved, or a LID that is no group's.
fn record(member: &Member) -> Option<Record> {
    let lid = Lid::new(member.mlid);
    if !lid.is_multicast() {
        return None;
    }
    Some(Record {
        path: Path {
            destination: Gid::new(member.mgid),
            lid,
            sl: member.sl,
            rate: Rate::from_code(member.rate_code)?,
            mtu: Mtu::from_code(member.mtu_code)?,
            hop_limit: member.hop_limit,
            flow_label: member.flow_label,
            traffic_class: member.traffic_class,
        },
        qkey: member.qkey,
        pkey: PKey::new(member.pkey),
    })
}
