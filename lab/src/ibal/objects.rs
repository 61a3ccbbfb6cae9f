//! The objects that a driver holds handles of: their table, their tree, and how they go.
//!
//! Destruction follows the access layer's (`al_common.c`): a destroy call marks the object, its work is wound up,
//! and when the last reference is gone the caller is told in the way it chose: not at all, by the destroy call
//! returning ([`ibal_sys::ib_sync_destroy`]), or by a callback at PASSIVE_LEVEL.

use std::collections::BTreeMap;
use std::sync::{Arc, RwLock};

use ibal_sys::ib_pfn_event_cb_t;

use super::latch::Latch;
use super::mcast::Membership;
use super::pnp::Registration;
use crate::hca::av::Av;
use crate::hca::cq::Cq;
use crate::hca::mem::Region;
use crate::hca::qp::Qp;
use crate::hca::{Handle, Kind, read, write};

/// What is behind a handle.
#[derive(Clone)]
pub enum Object {
    /// An instance of the access layer.
    Al,
    /// An open channel adapter.
    Ca,
    /// A protection domain.
    Pd,
    /// A completion queue.
    Cq(Arc<Cq>),
    /// A queue pair.
    Qp(Arc<Qp>),
    /// A memory region.
    Mr(Arc<Region>),
    /// An address vector.
    Av(Arc<Av>),
    /// A multicast membership.
    Mcast(Arc<Membership>),
    /// A Plug and Play registration.
    Pnp(Arc<Registration>),
    /// A query: the id of its transaction and the port it went out of.
    Query {
        /// Port, from 1.
        port: u8,
        /// Transaction id.
        id: u64,
    },
}

/// How a destroyer wants to be told.
#[derive(Clone)]
pub enum Notice {
    /// Not at all.
    None,
    /// By this latch.
    Latch(Arc<Latch>),
    /// By a call of the function at this address with the object's context.
    Callback(usize),
}

/// Asynchronous event callback of an object, and the context that it was made with.
#[derive(Clone, Copy)]
pub struct Client {
    /// Context pointer of the driver, never dereferenced here.
    pub context: usize,
    /// Event callback.
    pub event: ib_pfn_event_cb_t,
}

impl Client {
    /// A client that hears of no events.
    pub fn quiet<T>(context: *const T) -> Self {
        Self { context: context as usize, event: None }
    }
}

struct Entry {
    parent: Option<Handle>,
    object: Object,
    client: Client,
    references: u32,
    going: Option<Notice>,
}

/// Why an object cannot be destroyed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotNow {
    /// It is gone.
    Gone,
    /// It is being destroyed.
    Going,
    /// Others depend on it.
    Children(Vec<Handle>),
}

/// An object whose last reference is gone.
pub struct Gone {
    /// Its handle.
    pub handle: Handle,
    /// The object that it held a reference of.
    pub parent: Option<Handle>,
    /// Context of the driver.
    pub context: usize,
    /// How to tell.
    pub notice: Notice,
}

/// The table.
#[derive(Default)]
pub struct Objects(RwLock<BTreeMap<u32, Entry>>);

impl Objects {
    /// Enters a new object. It holds a reference of its parent, which therefore goes after it.
    pub fn insert(&self, handle: Handle, parent: Option<Handle>, object: Object, client: Client) {
        let mut table = write(&self.0);
        if let Some(above) = parent.and_then(|parent| table.get_mut(&parent.serial)) {
            above.references += 1;
        }
        table.insert(handle.serial, Entry { parent, object, client, references: 1, going: None });
    }

    /// Changes what is behind a handle.
    pub fn replace(&self, handle: Handle, object: Object) {
        if let Some(entry) = write(&self.0).get_mut(&handle.serial) {
            entry.object = object;
        }
    }

    /// What is behind a handle, and whether it is being destroyed.
    pub fn get(&self, handle: Handle) -> Option<(Object, bool)> {
        read(&self.0).get(&handle.serial).map(|entry| (entry.object.clone(), entry.going.is_some()))
    }

    /// The client of an object.
    pub fn client(&self, handle: Handle) -> Option<Client> {
        read(&self.0).get(&handle.serial).map(|entry| entry.client)
    }

    /// Objects of a kind that are there, destroyed ones that still go included.
    pub fn count(&self, kind: Kind) -> usize {
        let of_kind = |entry: &&Entry| entry.object.kind() == kind;
        read(&self.0).values().filter(of_kind).count()
    }

    /// Marks an object as going, unless others depend on it.
    ///
    /// # Errors
    /// [`NotNow`].
    pub fn begin_destroy(&self, handle: Handle, notice: Notice) -> Result<Object, NotNow> {
        let mut table = write(&self.0);
        let entry = table.get(&handle.serial).ok_or(NotNow::Gone)?;
        if entry.going.is_some() {
            return Err(NotNow::Going);
        }
        let depends = |other: &Entry| {
            let below = other.parent == Some(handle);
            let bound = match (&other.object, &entry.object) {
                (Object::Qp(qp), Object::Cq(cq)) => {
                    Arc::ptr_eq(&qp.send_cq, cq) || Arc::ptr_eq(&qp.recv_cq, cq)
                }
                _ => false,
            };
            (below || bound) && other.going.is_none()
        };
        let children: Vec<_> = table
            .iter()
            .filter(|(_, other)| depends(other))
            .map(|(serial, other)| Handle { hca: handle.hca, kind: other.object.kind(), serial: *serial })
            .collect();
        if !children.is_empty() {
            return Err(NotNow::Children(children));
        }
        let entry = table.get_mut(&handle.serial).ok_or(NotNow::Gone)?;
        entry.going = Some(notice);
        Ok(entry.object.clone())
    }

    /// Takes a reference. `false`: there is no such object.
    pub fn reference(&self, handle: Handle) -> bool {
        match write(&self.0).get_mut(&handle.serial) {
            Some(entry) => {
                entry.references += 1;
                true
            }
            None => false,
        }
    }

    /// Drops a reference. `Some`: it was the last one, and the object is out of the table. Whoever gets it tells the
    /// destroyer first, and drops the reference of its parent after that, so that a parent goes after its children's
    /// destroy callbacks.
    ///
    /// # Errors
    /// The last reference of an object that nobody destroys, or no object at all.
    pub fn release(&self, handle: Handle) -> Result<Option<Gone>, NoReference> {
        let mut table = write(&self.0);
        let entry = table.get_mut(&handle.serial).ok_or(NoReference)?;
        if entry.references == 1 && entry.going.is_none() {
            return Err(NoReference);
        }
        entry.references -= 1;
        if entry.references > 0 {
            return Ok(None);
        }
        let gone = table.remove(&handle.serial).map(|entry| Gone {
            handle,
            parent: entry.parent,
            context: entry.client.context,
            notice: entry.going.unwrap_or(Notice::None),
        });
        Ok(gone)
    }
}

/// There is no reference to drop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoReference;

impl Object {
    /// Its kind.
    pub fn kind(&self) -> Kind {
        match self {
            Object::Al => Kind::Al,
            Object::Ca => Kind::Ca,
            Object::Pd => Kind::Pd,
            Object::Cq(_) => Kind::Cq,
            Object::Qp(_) => Kind::Qp,
            Object::Mr(_) => Kind::Mr,
            Object::Av(_) => Kind::Av,
            Object::Mcast(_) => Kind::Mcast,
            Object::Pnp(_) => Kind::Pnp,
            Object::Query { .. } => Kind::Query,
        }
    }
}

/// A kind as the machine's ledger of resources names it.
pub fn ledger_kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Al => "IBAL instance",
        Kind::Ca => "IBAL CA",
        Kind::Pd => "IBAL PD",
        Kind::Cq => "IBAL CQ",
        Kind::Qp => "IBAL QP",
        Kind::Mr => "IBAL MR",
        Kind::Av => "IBAL AV",
        Kind::Mcast => "IBAL multicast membership",
        Kind::Pnp => "IBAL PnP registration",
        Kind::Query => "IBAL query",
    }
}
