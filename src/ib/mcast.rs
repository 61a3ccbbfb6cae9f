//! Membership of multicast groups.

use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::Ordering;

use ibal_sys::*;
use windows_kernel_sys::Zeroable;

use crate::kernel::arc::PoolArc;
use crate::kernel::irql::Passive;

use super::client::Client;
use super::interface::{Api, TAG};
use super::qp::Qp;
use super::query::Patience;
use super::slots::{Slot, SlotId, Table};
use super::status::{IbError, check, failure};

/// How to be a member (InfiniBand Architecture volume 1, 15.2.5.17, JoinState).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinState {
    /// Send and receive. The group exists while it has a full member.
    Full,
    /// Send only: the switches route to the group, nothing comes back. The QP is not attached.
    SendOnly,
}

/// The parameters of a group to create. Numbers in host order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupParameters {
    /// Q_Key.
    pub qkey: u32,
    /// Code of the MTU, `IB_MTU_LEN_*`; `None` leaves it to the administrator.
    pub mtu_code: Option<u8>,
    /// Code of the rate, `IB_PATH_RECORD_RATE_*`; `None` leaves it to the administrator.
    pub rate_code: Option<u8>,
    /// Packet lifetime; `None` leaves it to the administrator.
    pub packet_life: Option<u8>,
    /// Service level.
    pub sl: u8,
    /// Flow label.
    pub flow_label: u32,
    /// Hop limit.
    pub hop_limit: u8,
    /// Traffic class.
    pub traffic_class: u8,
}

/// Which group to join, and how. Numbers in host order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoinRequest {
    /// The group.
    pub mgid: [u8; 16],
    /// Port to join from.
    pub port_guid: u64,
    /// Partition.
    pub pkey: u16,
    /// Its index in the port's table.
    pub pkey_index: u16,
    /// How.
    pub state: JoinState,
    /// Create the group, with these parameters, if there is none.
    pub create: Option<GroupParameters>,
}

/// A group as the administrator describes it to a member. Numbers in host order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// The group.
    pub mgid: [u8; 16],
    /// Multicast LID.
    pub mlid: u16,
    /// Q_Key.
    pub qkey: u32,
    /// Partition.
    pub pkey: u16,
    /// Code of the MTU, `IB_MTU_LEN_*`.
    pub mtu_code: u8,
    /// Code of the rate, `IB_PATH_RECORD_RATE_*`.
    pub rate_code: u8,
    /// Packet lifetime.
    pub packet_life: u8,
    /// Service level.
    pub sl: u8,
    /// Flow label.
    pub flow_label: u32,
    /// Hop limit.
    pub hop_limit: u8,
    /// Traffic class.
    pub traffic_class: u8,
    /// Scope of the group.
    pub scope: u8,
    /// How the port is in the group: a set of `IB_JOIN_STATE_*`.
    pub join_state: u8,
}

impl Member {
    fn from_raw(raw: &ib_member_rec_t) -> Self {
        Self {
            mgid: raw.mgid.raw,
            mlid: { raw.mlid }.get(),
            qkey: { raw.qkey }.get(),
            pkey: { raw.pkey }.get(),
            mtu_code: raw.mtu_code(),
            rate_code: raw.rate_code(),
            packet_life: raw.pkt_life & IB_PATH_REC_BASE_MASK,
            sl: raw.sl(),
            flow_label: raw.flow_label(),
            hop_limit: raw.hop_limit(),
            traffic_class: raw.tclass,
            scope: raw.scope(),
            join_state: raw.join_state(),
        }
    }

    /// Whether packets of the group reach the port, and its own keep the group alive.
    pub const fn is_full(&self) -> bool {
        self.join_state & IB_JOIN_STATE_FULL != 0
    }
}

/// Why a join failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinError {
    /// The administrator did not answer in time.
    TimedOut,
    /// The QP is being destroyed.
    Cancelled,
    /// The administrator refused, with this MAD status (`IB_SA_MAD_STATUS_*`), in host order. For a group
    /// that does not exist and was not to be created, `IB_SA_MAD_STATUS_REQ_INVALID`.
    Refused(u16),
    /// The administrator accepted, but the access layer failed, as in attaching the QP.
    Failed(IbError),
}

/// A join in flight, a membership, or a leave in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MembershipId(SlotId);

/// Memberships, a fixed number.
pub struct Memberships<A> {
    api: Api,
    table: PoolArc<Groups<A>>,
}

/// Whom the callbacks are for, and the functions that they need.
struct Joiner<A> {
    client: PoolArc<A>,
    api: Api,
}

/// Phases of a join: the call that starts it has not returned.
const STARTING: u8 = 0;
/// It has, and the slot has a referenced handle.
const JOINING: u8 = 1;
/// The callback has come.
const ANSWERED: u8 = 2;
/// Cancelled before the callback came.
const CANCELLED: u8 = 3;

type Groups<A> = Table<Joiner<A>, _ib_mcast>;
type Membership<A> = Slot<Joiner<A>, _ib_mcast>;

impl<A: Client> Memberships<A> {
    /// Room for `capacity` memberships at once. IRQL <= DISPATCH_LEVEL.
    pub fn new(qp: &Qp, client: &PoolArc<A>, capacity: usize) -> Result<Self, IbError> {
        let joiner = Joiner { client: client.clone(), api: qp.api.clone() };
        let joiner = PoolArc::try_new(TAG, joiner).map_err(|_| IbError::NO_MEMORY)?;
        Ok(Self { api: qp.api.clone(), table: Table::try_new(&joiner, capacity)? })
    }

    /// Joins a group (`ib_join_mcast`). If this succeeds, [`Client::join_done`] follows with `token`, once,
    /// possibly before this returns. With success there, the id is a membership until it is left.
    ///
    /// # Errors
    /// `NO_RESOURCES` when all places are taken, `STATE` after [`Memberships::close`]; `IB_INVALID_GUID`
    /// while the port has no subnet manager; memory.
    pub fn join(
        &self,
        qp: &Qp,
        request: &JoinRequest,
        patience: Patience,
        token: u64,
        _at: &Passive<'_>,
    ) -> Result<MembershipId, IbError> {
        let starting = Groups::start(&self.table, token)?;
        let slot = starting.slot;
        let mut raw = ib_mcast_req_t::zeroed();
        raw.create = boolean_t::from(request.create.is_some());
        raw.member_rec = member_record(request);
        raw.mcast_context = slot.context();
        raw.pfn_mcast_cb = Some(on_join::<A>);
        raw.timeout_ms = patience.timeout_ms;
        raw.retry_cnt = patience.retries;
        raw.port_guid = ib_net64_t::new(request.port_guid);
        raw.pkey_index = request.pkey_index;
        let mut handle = ptr::null_mut();
        // SAFETY: at PASSIVE_LEVEL, with a live QP and a request that is copied before the call returns; the
        // context is a slot in use, which keeps its table until the last callback; a place for the handle.
        let status = unsafe { (self.api.join_mcast)(qp.handle(), &raw const raw, &raw mut handle) };
        if !status.is_success() {
            starting.reject();
            return Err(failure(status));
        }
        // The handle comes with a reference of its own, which makes it safe to cancel the join by. Whoever
        // ends the join returns the reference.
        slot.pending.store(handle, Ordering::Release);
        if slot.phase.compare_exchange(STARTING, JOINING, Ordering::AcqRel, Ordering::Acquire).is_err() {
            // The outcome came before the handle.
            self.api.dereference(handle);
        } else if self.table.is_closed() {
            self.cancel(slot);
        }
        Ok(MembershipId(starting.id))
    }

    /// Ends a join that is out, as cancelled; the caller uses the slot. The access layer takes back what the
    /// administrator may have granted.
    fn cancel(&self, slot: &Membership<A>) {
        // Once this succeeds the reference is ours, and the callback, which still comes, leaves the handle
        // alone.
        if slot.phase.compare_exchange(JOINING, CANCELLED, Ordering::AcqRel, Ordering::Acquire).is_err() {
            return;
        }
        let handle = slot.pending.load(Ordering::Acquire);
        // SAFETY: at PASSIVE_LEVEL, which the callers' proof shows; the reference keeps the object, whatever
        // became of the join meanwhile (`al_common.c`, `destroy_obj` on one that is being destroyed).
        let _ = unsafe { (self.api.leave_mcast)(handle, ib_pfn_destroy_cb_t::NONE) };
        self.api.dereference(handle);
    }

    /// Leaves a group (`ib_leave_mcast`). If this succeeds, [`Client::leave_done`] follows with the token of
    /// the join, once, possibly before this returns.
    ///
    /// # Errors
    /// `STATE` unless the id is a membership: not joined yet, already being left, or gone.
    pub fn leave(&self, id: MembershipId, _at: &Passive<'_>) -> Result<(), IbError> {
        let slot = self.table.find(id.0).ok_or(IbError::STATE)?;
        self.leave_slot(&slot)
    }

    fn leave_slot(&self, slot: &Membership<A>) -> Result<(), IbError> {
        // Whoever takes the handle leaves; the other one finds it gone.
        let handle = slot.handle.swap(ptr::null_mut(), Ordering::AcqRel);
        if handle.is_null() {
            return Err(IbError::STATE);
        }
        // SAFETY: at PASSIVE_LEVEL, which the callers' proof shows, with a live membership that is not used
        // again; the callback's context is that of the join.
        let status = unsafe { (self.api.leave_mcast)(handle, ib_pfn_destroy_cb_t::from_fn(on_leave::<A>)) };
        check(status).inspect_err(|_| {
            // The access layer does not know the handle: there is no membership and no callback will come.
            // SAFETY: so it is ended here, once, since the handle was taken.
            if let Some(ended) = unsafe { slot.end() } {
                ended.forget();
            }
        })
    }

    /// Takes no more joins, cancels those that are out, and leaves every group.
    pub fn close(&self, _at: &Passive<'_>) {
        self.table.close();
        for slot in self.table.in_use() {
            self.cancel(&slot);
            // `STATE` for those that are not joined.
            let _ = self.leave_slot(&slot);
        }
    }

    /// Closes, and waits until there is neither a join, a membership nor a leave: no callback will come.
    /// Before the QP is destroyed. Leaves wait for the administrator no longer than half a second
    /// (`al_mcast.c`).
    pub fn destroy(&self, at: &Passive<'_>) {
        self.close(at);
        self.table.drain(at);
    }
}

/// A byte of an MTU, rate or lifetime that must be exactly this; zero leaves it open.
const fn exactly(code: Option<u8>) -> u8 {
    match code {
        Some(code) => (IB_PATH_SELECTOR_EXACTLY << 6) | (code & IB_PATH_REC_BASE_MASK),
        None => 0,
    }
}

fn member_record(request: &JoinRequest) -> ib_member_rec_t {
    let state = match request.state {
        JoinState::Full => IB_JOIN_STATE_FULL,
        JoinState::SendOnly => IB_JOIN_STATE_SEND_ONLY,
    };
    // The scope is in the group's own address (RFC 4291, 2.7).
    let [_, flags_scope, ..] = request.mgid;
    let mut record = ib_member_rec_t {
        mgid: ib_gid_t { raw: request.mgid },
        pkey: ib_net16_t::new(request.pkey),
        scope_state: (flags_scope << 4) | state,
        ..Default::default()
    };
    if let Some(group) = &request.create {
        record.qkey = ib_net32_t::new(group.qkey);
        record.mtu = exactly(group.mtu_code);
        record.rate = exactly(group.rate_code);
        record.pkt_life = exactly(group.packet_life);
        record.tclass = group.traffic_class;
        record.sl_flow_hop = ib_member_rec_t::sl_flow_hop(group.sl, group.flow_label, group.hop_limit);
    }
    record
}

/// `ib_pfn_mcast_cb_t`.
unsafe extern "win64" fn on_join<A: Client>(record: *mut ib_mcast_rec_t) {
    // SAFETY: the access layer passes a valid record.
    let record = unsafe { &*record };
    // SAFETY: the context is a slot in use, whose join this ends.
    let slot = unsafe { &*record.mcast_context.cast::<Membership<A>>() };
    // SAFETY: join callbacks run on a thread at PASSIVE_LEVEL.
    let mut at = unsafe { Passive::assume() };
    // SAFETY: the slot is in use until `end` below, or until `on_leave`, which the access layer does not call
    // before this returns (`al_mcast.c` holds a reference for it).
    let Some(table) = (unsafe { slot.table() }) else {
        return;
    };
    let Joiner { client, api } = &*table.client;
    let before = slot.phase.swap(ANSWERED, Ordering::AcqRel);
    if before == JOINING {
        api.dereference(slot.pending.load(Ordering::Acquire));
    }
    // SAFETY: null, or a record that is valid during the callback.
    let group = unsafe { record.p_member_rec.as_ref() };
    let mut result = match (record.status, group) {
        // Who cancelled has left, whatever the administrator says.
        _ if before == CANCELLED => Err(JoinError::Cancelled),
        (IB_SUCCESS, Some(group)) if !record.h_mcast.is_null() => Ok(Member::from_raw(group)),
        (IB_REMOTE_ERROR, _) => Err(JoinError::Refused(record.error_status.get())),
        (IB_TIMEOUT, _) => Err(JoinError::TimedOut),
        (IB_CANCELED, _) => Err(JoinError::Cancelled),
        (status, _) => Err(JoinError::Failed(failure(status))),
    };
    if result.is_ok() {
        slot.handle.store(record.h_mcast, Ordering::Release);
        if table.is_closed() && !slot.handle.swap(ptr::null_mut(), Ordering::AcqRel).is_null() {
            // Nobody wants it any more, and `close` did not see it.
            // SAFETY: at PASSIVE_LEVEL, with a live membership that is not used again.
            let _ = unsafe { (api.leave_mcast)(record.h_mcast, ib_pfn_destroy_cb_t::NONE) };
            result = Err(JoinError::Cancelled);
        }
    }
    if result.is_ok() {
        client.join_done(slot.token(), result, &mut at);
        return;
    }
    // The access layer destroys the object by itself, without a callback.
    // SAFETY: this was the request's last callback.
    if let Some(ended) = unsafe { slot.end() } {
        ended.report(|joiner, token| joiner.client.join_done(token, result, &mut at));
    }
}

/// `ib_pfn_destroy_cb_t` of a membership.
unsafe extern "win64" fn on_leave<A: Client>(context: *mut c_void) {
    // SAFETY: the context is a slot in use, whose membership this ends.
    let slot = unsafe { &*context.cast_const().cast::<Membership<A>>() };
    // SAFETY: destroy callbacks run on a thread at PASSIVE_LEVEL.
    let mut at = unsafe { Passive::assume() };
    // SAFETY: it is the request's last callback.
    if let Some(ended) = unsafe { slot.end() } {
        ended.report(|joiner, token| joiner.client.leave_done(token, &mut at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> JoinRequest {
        let mut mgid = [0; 16];
        mgid[..4].copy_from_slice(&[0xFF, 0x12, 0x40, 0x1B]);
        JoinRequest { mgid, port_guid: 1, pkey: 0xFFFF, pkey_index: 0, state: JoinState::Full, create: None }
    }

    #[test]
    fn a_join_names_group_scope_and_state_only() {
        let record = member_record(&request());
        assert_eq!((record.scope(), record.join_state()), (2, IB_JOIN_STATE_FULL));
        assert_eq!(({ record.qkey }.get(), record.mtu, record.rate, record.pkt_life), (0, 0, 0, 0));
        let record = member_record(&JoinRequest { state: JoinState::SendOnly, ..request() });
        assert_eq!(record.join_state(), IB_JOIN_STATE_SEND_ONLY);
    }

    #[test]
    fn a_creation_says_exactly_what_it_wants_and_leaves_the_rest() {
        let group = GroupParameters {
            qkey: 0x0B1B,
            mtu_code: Some(IB_MTU_LEN_2048),
            rate_code: Some(IB_PATH_RECORD_RATE_10_GBS),
            packet_life: None,
            sl: 1,
            flow_label: 0x000F_FFFF,
            hop_limit: 0xFE,
            traffic_class: 7,
        };
        let record = member_record(&JoinRequest { create: Some(group), ..request() });
        assert_eq!({ record.qkey }.to_wire(), [0, 0, 0x0B, 0x1B]);
        assert_eq!((record.mtu, record.rate, record.pkt_life, record.tclass), (0x84, 0x83, 0, 7));
        assert_eq!({ record.sl_flow_hop }.to_wire(), [0x1F, 0xFF, 0xFF, 0xFE]);
    }

    #[test]
    fn a_member_record_is_read_as_it_was_written() {
        let mut record = member_record(&request());
        record.sl_flow_hop = ib_member_rec_t::sl_flow_hop(9, 0x0001_2345, 3);
        (record.mlid, record.mtu, record.rate) = (ib_net16_t::new(0xC007), 0x84, 0x87);
        let member = Member::from_raw(&record);
        assert_eq!((member.sl, member.flow_label, member.hop_limit), (9, 0x0001_2345, 3));
        assert_eq!((member.mlid, member.mtu_code, member.rate_code, member.scope), (0xC007, 4, 7, 2));
    }
}
