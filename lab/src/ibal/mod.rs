//! The access layer of a machine: what an IPoIB driver finds behind `IRP_MN_QUERY_INTERFACE` of its device.
//!
//! ```text
//!  driver ── ib_al_ifc_t ──► verbs/*  ──► Hca             (queue pairs, completion queues, memory, address vectors)
//!                             │
//!                             ├─ pnp    registrations, port events        on the PnP thread, PASSIVE_LEVEL
//!                             ├─ mcast  joins and leaves                  on the asynchronous thread, PASSIVE_LEVEL
//!                             ├─ query  subnet administration             answered in a DPC, DISPATCH_LEVEL
//!                             └─ sa, transactions: QP1 datagrams with retries
//! ```
//!
//! What each call does, in which order callbacks come and at which IRQL follows the access layer of OpenFabrics for
//! Windows (`core/al`, named file by file below); the rules a driver must keep are in [`crate::hca::rules`]. Where
//! that access layer answers a mistake of its client with a status, this one ends the run: a handle that is null,
//! stale, of another kind or of another machine, an object destroyed twice or before what depends on it.
//!
//! Kept deliberately:
//! * A rearmed CQ does not notify for an entry that was there before (IBA vol. 1 §11.4.2.2).
//! * The default subnet prefix goes into a join's PortGID, whatever the subnet's prefix is (`send_join`).
//! * A subnet manager that asks to register again is reported as `IB_PNP_LID_CHANGE` (`al_ci_ca_shared.c`).
//! * An answer to a Get counts one record; the original divides the padded datagram and counts more.
//!
//! Not here: connection management (the slots answer `IB_UNSUPPORTED`), shared receive queues, memory windows, FMRs,
//! MAD services of clients, I/O controllers. Their slots break [`VERB_UNUSED_SLOT`](crate::hca::rules) by name.

use std::sync::{Arc, OnceLock};

use ibal_sys::{IB_AE_CQ_ERROR, IB_AE_QP_COMM, IB_AE_QP_FATAL, IB_AE_SQ_DRAINED, ib_async_event_handle};
use ibal_sys::{ib_async_event_rec_t, ib_async_event_t};
use windows_kernel_sys::DEVICE_OBJECT;

use crate::fabric::event::PortEvent;
use crate::fabric::wire::mad::MAD_LEN;
use crate::hca::listener::{AsyncEvent, Listener};
use crate::hca::log::{Event, Log};
use crate::hca::rules::{
    IFC_REFERENCE, VERB_BAD_HANDLE, VERB_DESTROY_WITH_CHILDREN, VERB_DOUBLE_DESTROY, VERB_RESOURCE_LIFETIME,
};
use crate::hca::{Handle, Hca, Kind};
use crate::kernel::Machine;
use crate::kernel::irql::PASSIVE_LEVEL;
use crate::sim::{Lock, TraceEvent};
use crate::verifier::{self, call_driver, cause};

mod attributes;
mod interface;
mod latch;
mod mads;
mod mcast;
mod objects;
mod pdo;
mod pnp;
pub mod port_watch;
mod query;
mod sa;
mod strings;
#[cfg(test)]
mod tests;
pub mod transactions;
mod verbs;
mod worker;

pub use pdo::{ChildConfig, DEFAULT_PARTITION};

use objects::{Gone, NotNow, Notice, Object, Objects};
use pnp::PnpState;
use sa::SaClient;
use worker::Worker;

/// In which of a miniport's functions resources may be made, and in which they may be destroyed.
const MAKES_RESOURCES: &[&str] = &["MiniportInitializeEx"];
const DESTROYS_RESOURCES: &[&str] = &["MiniportInitializeEx", "MiniportHaltEx"];

/// The access layer of one machine with one HCA.
pub struct Ibal {
    machine: Machine,
    hca: Arc<Hca>,
    objects: Objects,
    mads: mads::ResultMads,
    sa: Vec<Arc<SaClient>>,
    pnp: Lock<PnpState>,
    pnp_worker: Arc<Worker>,
    worker: Arc<Worker>,
    interfaces: Lock<i64>,
    bus: OnceLock<usize>,
}

/// The machine's access layer, as its extension holds it.
struct Installed(OnceLock<Arc<Ibal>>);

impl Ibal {
    /// Installs the access layer of `hca` in its machine. Call it once, before the driver loads.
    pub fn install(hca: &Arc<Hca>) -> Arc<Self> {
        let machine = hca.machine().clone();
        let ibal = Arc::new(Self {
            hca: Arc::clone(hca),
            objects: Objects::default(),
            mads: mads::ResultMads::default(),
            sa: (1..=hca.ports().len() as u8).map(|port| SaClient::new(hca, port)).collect(),
            pnp: Lock::default(),
            pnp_worker: Worker::start(&machine, "IBAL PnP"),
            worker: Worker::start(&machine, "IBAL async"),
            interfaces: Lock::default(),
            bus: OnceLock::new(),
            machine,
        });
        let listener: Arc<dyn Listener> = Arc::clone(&ibal) as Arc<dyn Listener>;
        hca.listen(Arc::downgrade(&listener));
        ibal.start_pnp();
        let installed = ibal.machine.extension(|_| Installed(OnceLock::new()));
        // A second access layer in one machine would be a mistake of the lab; the first stays.
        let _ = installed.0.set(Arc::clone(&ibal));
        ibal
    }

    /// The access layer of a machine, if it has one.
    pub fn of(machine: &Machine) -> Option<Arc<Self>> {
        machine.find_extension::<Installed>().and_then(|installed| installed.0.get().cloned())
    }

    /// The HCA below.
    pub fn hca(&self) -> &Arc<Hca> {
        &self.hca
    }

    /// What happened: objects, transitions, callbacks, and how often each verb was called at which IRQL.
    pub fn log(&self) -> &Log {
        self.hca.log()
    }

    /// The device of an IPoIB child, on which the driver's stack is built: it answers the interface query.
    pub fn create_child(self: &Arc<Self>, config: ChildConfig) -> *mut DEVICE_OBJECT {
        pdo::create(self, config)
    }

    /// Interface references that the driver holds.
    pub fn interface_references(&self) -> i64 {
        *self.interfaces.lock()
    }

    /// Objects of a kind that exist now.
    pub fn live(&self, kind: Kind) -> usize {
        self.objects.count(kind)
    }

    /// The HCA is about to be removed: clients hear PORT_DOWN, PORT_REMOVE and CA_REMOVE.
    pub fn remove_ca(self: &Arc<Self>) {
        let ibal = Arc::clone(self);
        self.pnp_worker.queue(move || ibal.process_removal());
    }

    fn sa(&self, port: u8) -> Option<&Arc<SaClient>> {
        self.sa.get(usize::from(port).checked_sub(1)?)
    }

    /// Port number of a port GUID (host order).
    fn port_of(&self, guid: u64) -> Option<u8> {
        let index = self.hca.ports().iter().position(|port| port.view().guid.0 == guid)?;
        Some(index as u8 + 1)
    }

    // Handles.

    /// What is behind a handle of a kind, or a broken rule.
    fn resolve<T>(&self, handle: *mut T, kind: Kind, verb: &str) -> (Handle, Object) {
        let Some(found) = Handle::from_ptr(handle) else {
            let what = if handle.is_null() { "null" } else { "no handle of the access layer" };
            verifier::violation(VERB_BAD_HANDLE, verb, format!("{what} where a {kind} is needed"))
        };
        if found.hca != self.hca.number {
            verifier::violation(VERB_BAD_HANDLE, verb, format!("{found} belongs to another machine"))
        }
        if found.kind != kind {
            verifier::violation(VERB_BAD_HANDLE, verb, format!("{found} where a {kind} is needed"))
        }
        match self.objects.get(found) {
            Some((object, false)) => (found, object),
            Some((_, true)) => {
                verifier::violation(VERB_BAD_HANDLE, verb, format!("{found} is being destroyed"))
            }
            None => verifier::violation(VERB_BAD_HANDLE, verb, format!("{found} is gone")),
        }
    }

    /// Enters a new object, in the table, in the log and in the machine's ledger.
    fn enter(&self, handle: Handle, parent: Option<Handle>, object: Object, client: objects::Client) {
        self.objects.insert(handle, parent, object, client);
        self.machine.acquire(objects::ledger_kind(handle.kind), handle.to_raw() as usize, handle.to_string());
        self.hca.note(Event::Created(handle));
        let machine = u64::from(self.machine.id());
        self.machine.sim().trace(TraceEvent::text("ib created", machine, handle.to_string()));
    }

    /// Marks an object as going, or breaks the rule that says why it cannot.
    fn begin_destroy<T>(&self, handle: *mut T, kind: Kind, notice: Notice, verb: &str) -> (Handle, Object) {
        let known = Handle::from_ptr(handle).filter(|h| h.hca == self.hca.number && h.kind == kind);
        let Some(found) = known else {
            let (found, _) = self.resolve(handle, kind, verb);
            unreachable!("{found} resolved though it is of no use")
        };
        self.check_lifetime(kind, DESTROYS_RESOURCES, "destroyed", verb);
        match self.objects.begin_destroy(found, notice) {
            Ok(object) => (found, object),
            Err(NotNow::Gone | NotNow::Going) => {
                verifier::violation(VERB_DOUBLE_DESTROY, verb, format!("{found} was destroyed before"))
            }
            Err(NotNow::Children(children)) => {
                let list: Vec<_> = children.iter().map(ToString::to_string).collect();
                let detail = format!("{found} still has {}", list.join(", "));
                verifier::violation(VERB_DESTROY_WITH_CHILDREN, verb, detail)
            }
        }
    }

    /// Resources are made in Initialize and destroyed in Halt. Threads of the lab itself, in which no function of a
    /// driver runs, are free.
    fn check_lifetime(&self, kind: Kind, allowed: &[&str], what: &str, verb: &str) {
        if !matches!(kind, Kind::Pd | Kind::Cq | Kind::Qp | Kind::Mr) {
            return;
        }
        let scopes = cause::scopes(&self.machine);
        if !scopes.is_empty() && !scopes.iter().any(|scope| allowed.contains(scope)) {
            let detail = format!("a {kind} is {what} in {}", scopes.join(" > "));
            verifier::violation(VERB_RESOURCE_LIFETIME, verb, detail)
        }
    }

    /// Drops a reference of an object; with the last one it is gone and its destroyer is told.
    fn release(&self, handle: Handle, verb: &str) {
        match self.objects.release(handle) {
            Err(_) => {
                let detail = format!("{handle} has no reference to drop");
                verifier::violation(VERB_BAD_HANDLE, verb, detail)
            }
            Ok(None) => {}
            Ok(Some(gone)) => self.is_gone(&gone),
        }
    }

    fn is_gone(&self, gone: &Gone) {
        let (handle, parent, context) = (gone.handle, gone.parent, gone.context);
        self.machine.try_release(objects::ledger_kind(handle.kind), handle.to_raw() as usize);
        self.hca.note(Event::Destroyed(handle));
        let machine = u64::from(self.machine.id());
        self.machine.sim().trace(TraceEvent::text("ib destroyed", machine, handle.to_string()));
        match &gone.notice {
            Notice::None => self.release_parent(parent),
            Notice::Latch(latch) => {
                latch.open();
                self.release_parent(parent);
            }
            Notice::Callback(address) => {
                let (address, machine) = (*address, self.machine.clone());
                self.worker.queue(move || {
                    call_driver("destroy callback", PASSIVE_LEVEL, || {
                        // SAFETY: the driver gave this function to a destroy call, whose type says this signature.
                        let callback: unsafe extern "win64" fn(*mut std::ffi::c_void) =
                            unsafe { std::mem::transmute(address) };
                        // SAFETY: as above, with the context of the object.
                        unsafe { callback(std::ptr::with_exposed_provenance_mut(context)) };
                    });
                    if let Some(ibal) = Self::of(&machine) {
                        ibal.release_parent(parent);
                    }
                });
            }
        }
    }

    fn release_parent(&self, parent: Option<Handle>) {
        if let Some(parent) = parent {
            self.release(parent, "destroy");
        }
    }

    fn process_async_event(&self, object: Handle, event: AsyncEvent) {
        let code: ib_async_event_t = match event {
            AsyncEvent::CqError => IB_AE_CQ_ERROR,
            AsyncEvent::SqDrained => IB_AE_SQ_DRAINED,
            AsyncEvent::QpFatal => IB_AE_QP_FATAL,
            AsyncEvent::CommunicationEstablished => IB_AE_QP_COMM,
        };
        self.hca.note(Event::Async { code: code.0 });
        let Some((client, false)) = self.objects.client(object).zip(self.objects.get(object).map(|(_, g)| g))
        else {
            return;
        };
        let Some(callback) = client.event else { return };
        let mut record = ib_async_event_rec_t {
            code,
            vendor_specific: 0,
            context: std::ptr::with_exposed_provenance_mut(client.context),
            handle: match object.kind {
                Kind::Cq => ib_async_event_handle { h_cq: object.to_ptr() },
                _ => ib_async_event_handle { h_qp: object.to_ptr() },
            },
            port_number: 0,
        };
        call_driver("asynchronous event", PASSIVE_LEVEL, || {
            // SAFETY: the driver's own callback, with a record that lives for the call.
            unsafe { callback(&raw mut record) };
        });
    }

    fn interface_referenced(&self) {
        let mut count = self.interfaces.lock();
        *count += 1;
        let first = *count == 1;
        drop(count);
        if first {
            self.machine.acquire(INTERFACE, 0, "GUID_IB_AL_INTERFACE");
        }
    }

    fn interface_dereferenced(&self) {
        let left = {
            let mut count = self.interfaces.lock();
            *count -= 1;
            *count
        };
        if left < 0 {
            let detail = "the interface is not referenced";
            verifier::violation(IFC_REFERENCE, "InterfaceDereference", detail)
        }
        if left == 0 {
            self.machine.try_release(INTERFACE, 0);
        }
    }
}

/// Kind of an interface reference in the machine's ledger.
const INTERFACE: &str = "IBAL interface reference";

impl Listener for Ibal {
    fn mad(&self, port: u8, mad: Box<[u8; MAD_LEN]>) {
        if let Some(sa) = self.sa(port) {
            sa.arrived(mad);
        }
    }

    fn port_event(&self, port: u8, event: PortEvent) {
        let Some(ibal) = Self::of(&self.machine) else { return };
        let reregister = (event == PortEvent::ClientReregister).then_some(port);
        self.pnp_worker.queue(move || ibal.process_port_check(reregister));
    }

    fn async_event(&self, object: Handle, event: AsyncEvent) {
        let Some(ibal) = Self::of(&self.machine) else { return };
        self.worker.queue(move || ibal.process_async_event(object, event));
    }

    fn cq_idle(&self, cq: Handle) {
        self.release(cq, "destroy_cq");
    }
}
