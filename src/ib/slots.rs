//! Places for requests in flight: how a late callback finds nothing freed.
//!
//! The access layer gives a callback one pointer. It is the address of a slot, and a slot that is in use holds a
//! reference to the table that it lies in, so the table, and the client that the table holds, live until the last
//! callback of the last request. Memory is safe whatever order things are dropped in; [`Table::drain`] is for those
//! who must know that no callback will come, as MiniportHaltEx must before the driver can be unloaded.

use core::marker::PhantomData;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU64, Ordering, fence};

use crate::kernel::arc::PoolArc;
use crate::kernel::event::{Event, Kind};
use crate::kernel::gate::Gate;
use crate::kernel::irql::Passive;
use crate::kernel::pool::PoolVec;

use super::interface::TAG;
use super::status::IbError;

const FREE: u8 = 0;
const USED: u8 = 1;

/// One request in flight.
pub(super) struct Slot<A, H> {
    used: AtomicU8,
    /// Counts requests that used the slot, so that an id of an old one is known.
    generation: AtomicU64,
    token: AtomicU64,
    /// The handle of the request, once the access layer gave it.
    pub(super) handle: AtomicPtr<H>,
    /// A reference to the table, given up to a raw pointer, while the slot is used.
    owner: AtomicPtr<Table<A, H>>,
    /// The client was told that it is over before it was.
    pub(super) quiet: AtomicBool,
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
    gate: Gate,
    /// Set by the last request behind the closed gate.
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
                used: AtomicU8::new(FREE),
                generation: AtomicU64::new(0),
                token: AtomicU64::new(0),
                handle: AtomicPtr::new(ptr::null_mut()),
                owner: AtomicPtr::new(ptr::null_mut()),
                quiet: AtomicBool::new(false),
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
    pub(super) fn take(table: &PoolArc<Self>, token: u64) -> Result<(&Slot<A, H>, SlotId), IbError> {
        if !table.gate.enter() {
            return Err(IbError::STATE);
        }
        for (index, slot) in table.slots.iter().enumerate() {
            if slot.used.compare_exchange(FREE, USED, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                let generation = slot.generation.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
                slot.token.store(token, Ordering::Relaxed);
                slot.handle.store(ptr::null_mut(), Ordering::Relaxed);
                slot.quiet.store(false, Ordering::Relaxed);
                slot.owner.store(table.clone().into_raw().cast_mut(), Ordering::Release);
                return Ok((slot, SlotId { index, generation }));
            }
        }
        table.leave();
        Err(IbError::NO_RESOURCES)
    }

    /// The slot of a request, if that has not ended.
    pub(super) fn find(&self, id: SlotId) -> Option<&Slot<A, H>> {
        self.slots.get(id.index).filter(|slot| slot.is(id))
    }

    /// The slots that are in use now.
    pub(super) fn in_use(&self) -> impl Iterator<Item = &Slot<A, H>> {
        self.slots.iter().filter(|slot| slot.used.load(Ordering::Acquire) == USED)
    }

    fn leave(&self) {
        if self.gate.leave(1) {
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
    /// The slot is in use, and stays so while the reference lives.
    pub(super) unsafe fn table<'a>(&self) -> Option<&'a Table<A, H>> {
        // SAFETY: the slot holds a reference to the table until it is released.
        unsafe { self.owner.load(Ordering::Acquire).as_ref() }
    }

    /// Whether a request with this id uses it.
    pub(super) fn is(&self, id: SlotId) -> bool {
        self.generation.load(Ordering::Relaxed) == id.generation && self.used.load(Ordering::Acquire) == USED
    }

    /// Frees the slot, and gives back the table that it held. Nothing of the request may come after; the table
    /// must be told ([`Ended::report`]) or it never becomes idle.
    pub(super) fn release(&self) -> Option<Ended<A, H>> {
        let token = self.token();
        let owner = self.owner.swap(ptr::null_mut(), Ordering::AcqRel);
        if owner.is_null() {
            return None;
        }
        // SAFETY: given up by `take` for this use of the slot, and taken back once, since it was swapped out.
        let table = unsafe { PoolArc::from_raw(owner.cast_const()) };
        self.used.store(FREE, Ordering::Release);
        Some(Ended { table, token })
    }
}

/// A request that is over, and keeps its table alive while that is reported.
pub(super) struct Ended<A: Send + Sync, H> {
    table: PoolArc<Table<A, H>>,
    pub(super) token: u64,
}

impl<A: Send + Sync, H> Ended<A, H> {
    /// Tells the client, then counts the request out. The client may start another one from inside.
    pub(super) fn report(self, tell: impl FnOnce(&A, u64)) {
        tell(&self.table.client, self.token);
        self.table.leave();
    }

    /// Counts a request out of which the client knows already.
    pub(super) fn forget(self) {
        self.table.leave();
    }
}
