//! Places for requests in flight: how a late callback finds nothing freed.
//!
//! The access layer gives a callback one pointer. It is the address of a slot, and a slot that is in use
//! holds a reference to the table that it lies in, so the table, and the client that the table holds, live
//! until the last callback of the last request. Memory is safe whatever order things are dropped in;
//! [`Table::drain`] is for those who must know that no callback will come, as MiniportHaltEx must before the
//! driver can be unloaded.
//!
//! Several may need a slot: the request, until its last callback; the call that started it, which learns the
//! request's handle only when the access layer returns, perhaps after that callback; and whoever ends the
//! request early. The slot is free when all are done.

use core::marker::PhantomData;
use core::ops::Deref;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU64, AtomicUsize, Ordering, fence};

use crate::kernel::arc::PoolArc;
use crate::kernel::event::{Event, Kind};
use crate::kernel::gate::Gate;
use crate::kernel::irql::Passive;
use crate::kernel::pool::PoolVec;

use super::interface::TAG;
use super::status::IbError;

/// First users of a slot: the request and the call that starts it.
const USERS: usize = 2;
/// A slot whose last user is done, until it is free.
const FREEING: usize = usize::MAX;

/// One request in flight.
pub(super) struct Slot<A, H> {
    /// How many still use it; zero if it is free.
    users: AtomicUsize,
    /// Counts requests that used the slot, so that an id of an old one is known.
    generation: AtomicU64,
    token: AtomicU64,
    /// Where the request is, by its own numbering; zero at first.
    pub(super) phase: AtomicU8,
    /// The handle by which the client can end it; null at first.
    pub(super) handle: AtomicPtr<H>,
    /// A second handle; null at first.
    pub(super) pending: AtomicPtr<H>,
    /// A reference to the table, given up to a raw pointer, while the slot is used.
    owner: AtomicPtr<Table<A, H>>,
}

/// Which request: a slot and its generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SlotId {
    index: usize,
    generation: u64,
}

/// A fixed number of slots, with the client that their callbacks are for.
pub(super) struct Table<A, H> {
    pub(super) client: PoolArc<A>,
    slots: PoolVec<Slot<A, H>>,
    /// A ticket for each user of a slot.
    gate: Gate,
    /// Set by the last ticket behind the closed gate.
    idle: Event,
    _handles: PhantomData<*mut H>,
}

// SAFETY: slots are atomics; handles are opaque addresses.
unsafe impl<A: Send + Sync, H> Send for Table<A, H> {}
// SAFETY: as above.
unsafe impl<A: Send + Sync, H> Sync for Table<A, H> {}

impl<A: Send + Sync, H> Table<A, H> {
    pub(super) fn try_new(client: &PoolArc<A>, capacity: usize) -> Result<PoolArc<Self>, IbError> {
        let slots = PoolVec::try_from_fn(TAG, capacity, |_| {
            Ok(Slot {
                users: AtomicUsize::new(0),
                generation: AtomicU64::new(0),
                token: AtomicU64::new(0),
                phase: AtomicU8::new(0),
                handle: AtomicPtr::new(ptr::null_mut()),
                pending: AtomicPtr::new(ptr::null_mut()),
                owner: AtomicPtr::new(ptr::null_mut()),
            })
        })
        .map_err(|_| IbError::NO_MEMORY)?;
        let idle = Event::try_new(Kind::Notification, false).map_err(|_| IbError::NO_MEMORY)?;
        let gate = Gate::new();
        gate.open();
        let table = Self { client: client.clone(), slots, gate, idle, _handles: PhantomData };
        PoolArc::try_new(TAG, table).map_err(|_| IbError::NO_MEMORY)
    }

    /// Takes a free slot for a request. `NO_RESOURCES` when all are used, `STATE` once the table is closed.
    pub(super) fn start(table: &PoolArc<Self>, token: u64) -> Result<Starting<'_, A, H>, IbError> {
        if !table.gate.enter() {
            return Err(IbError::STATE);
        }
        if !table.gate.enter() {
            table.leave(1);
            return Err(IbError::STATE);
        }
        for (index, slot) in table.slots.iter().enumerate() {
            if slot.users.compare_exchange(0, USERS, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                let generation = slot.generation.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
                slot.token.store(token, Ordering::Relaxed);
                slot.owner.store(table.clone().into_raw().cast_mut(), Ordering::Release);
                return Ok(Starting { table, slot, id: SlotId { index, generation } });
            }
        }
        table.leave(2);
        Err(IbError::NO_RESOURCES)
    }

    /// The slot of a request, if that has not ended. It is not used for another one while it is held.
    pub(super) fn find(&self, id: SlotId) -> Option<Held<'_, A, H>> {
        let held = self.slots.get(id.index)?.hold()?;
        (held.generation.load(Ordering::Relaxed) == id.generation).then_some(held)
    }

    /// The slots that are in use now.
    pub(super) fn in_use(&self) -> impl Iterator<Item = Held<'_, A, H>> {
        self.slots.iter().filter_map(Slot::hold)
    }

    fn leave(&self, tickets: usize) {
        if self.gate.leave(tickets) {
            self.idle.set();
        }
    }

    /// Takes no more requests. What is in flight goes on. A handle stored before the other side's
    /// [`Table::is_closed`] said no is seen after this.
    pub(super) fn close(&self) {
        if self.gate.close() {
            self.idle.set();
        }
        fence(Ordering::SeqCst);
    }

    /// Whether [`Table::close`] was called. If not, its caller will see the handles stored before this.
    pub(super) fn is_closed(&self) -> bool {
        fence(Ordering::SeqCst);
        !self.gate.is_open()
    }

    /// Waits, once closed, until no request is in flight: no callback will come.
    pub(super) fn drain(&self, at: &Passive<'_>) {
        self.close();
        self.idle.wait(at);
    }
}

impl<A: Send + Sync, H> Slot<A, H> {
    /// What the access layer is to pass back.
    pub(super) fn context(&self) -> *const core::ffi::c_void {
        ptr::from_ref(self).cast()
    }

    pub(super) fn token(&self) -> u64 {
        self.token.load(Ordering::Relaxed)
    }

    /// The table, while the slot is used.
    ///
    /// # Safety
    /// The caller is a user of the slot, and stays one while the reference lives.
    pub(super) unsafe fn table<'a>(&self) -> Option<&'a Table<A, H>> {
        // SAFETY: the slot holds a reference to the table until its last user is done.
        unsafe { self.owner.load(Ordering::Acquire).as_ref() }
    }

    /// The request is over: its last callback has come, or it was never accepted. The slot may be used again,
    /// but the table waits until the end is reported.
    ///
    /// # Safety
    /// The caller is the request, and this is called once for it.
    pub(super) unsafe fn end(&self) -> Option<Ended<A, H>> {
        let token = self.token();
        // SAFETY: the request is a user until `done` below.
        let table = unsafe { self.table() }?;
        // SAFETY: the pointer is that of `into_raw`, whose reference stays the slot's: only a clone is taken.
        let shared = core::mem::ManuallyDrop::new(unsafe { PoolArc::from_raw(ptr::from_ref(table)) });
        let table = PoolArc::clone(&shared);
        self.done();
        Some(Ended { table, token })
    }

    /// One more user, unless the slot is free or about to be.
    fn hold(&self) -> Option<Held<'_, A, H>> {
        let more = |users: usize| if matches!(users, 0 | FREEING) { None } else { Some(users + 1) };
        self.users.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).ok()?;
        Some(Held(self))
    }

    /// One user less. The last one frees the slot.
    fn done(&self) {
        loop {
            let less = |users: usize| if users > 1 { Some(users - 1) } else { None };
            if self.users.fetch_update(Ordering::AcqRel, Ordering::Acquire, less).is_ok() {
                return;
            }
            // The last user, unless somebody held the slot meanwhile.
            if self.users.compare_exchange(1, FREEING, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                break;
            }
        }
        // Nobody else changes the slot until it is free.
        self.phase.store(0, Ordering::Relaxed);
        self.handle.store(ptr::null_mut(), Ordering::Relaxed);
        self.pending.store(ptr::null_mut(), Ordering::Relaxed);
        let owner = self.owner.swap(ptr::null_mut(), Ordering::AcqRel);
        self.users.store(0, Ordering::Release);
        if !owner.is_null() {
            // SAFETY: given up by `start` for this use of the slot, and taken back once, since it was swapped
            // out. With it the table may go, and this slot.
            drop(unsafe { PoolArc::from_raw(owner.cast_const()) });
        }
    }
}

/// A slot that is kept from being freed.
pub(super) struct Held<'a, A: Send + Sync, H>(&'a Slot<A, H>);

impl<A: Send + Sync, H> Deref for Held<'_, A, H> {
    type Target = Slot<A, H>;

    fn deref(&self) -> &Slot<A, H> {
        self.0
    }
}

impl<A: Send + Sync, H> Drop for Held<'_, A, H> {
    fn drop(&mut self) {
        self.0.done();
    }
}

/// A request that is being started: the starting call's use of the slot.
pub(super) struct Starting<'a, A: Send + Sync, H> {
    table: &'a PoolArc<Table<A, H>>,
    pub(super) slot: &'a Slot<A, H>,
    pub(super) id: SlotId,
}

impl<A: Send + Sync, H> Starting<'_, A, H> {
    /// The request was not accepted: no callback will come.
    pub(super) fn reject(self) {
        // SAFETY: there is no request, so it is ended in its place, once.
        if let Some(ended) = unsafe { self.slot.end() } {
            ended.forget();
        }
    }
}

impl<A: Send + Sync, H> Drop for Starting<'_, A, H> {
    fn drop(&mut self) {
        self.slot.done();
        self.table.leave(1);
    }
}

/// A request that is over, and keeps its table alive while that is reported.
pub(super) struct Ended<A: Send + Sync, H> {
    table: PoolArc<Table<A, H>>,
    token: u64,
}

impl<A: Send + Sync, H> Ended<A, H> {
    /// Tells the client, then counts the request out. The client may start another one from inside.
    pub(super) fn report(self, tell: impl FnOnce(&A, u64)) {
        tell(&self.table.client, self.token);
        self.table.leave(1);
    }

    /// Counts a request out of which the client knows already.
    pub(super) fn forget(self) {
        self.table.leave(1);
    }
}
