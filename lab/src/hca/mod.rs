//! A simulated host channel adapter: queue pairs, completion queues, memory regions, address vectors and multicast
//! attachments, moving real packets through the [`crate::fabric`].
//!
//! ```text
//!  ibal (verbs)          create, modify, post, poll                    Listener: MADs, port events, async events
//!      │                                                                   ▲
//!      ▼                                                                   │
//!  Hca ── Qp, Cq, Av, mem::Region (no machine, no time)                    │
//!      └─ engine: Net::transmit ──► Fabric ──► PortOwner::deliver ─────────┘
//! ```
//!
//! Nothing here runs driver code but completion callbacks, and those from a DPC of the machine, never with a lock
//! held. Everything else happens under a verb or in hardware context.
//!
//! **Order of locks**, outermost first: a table of [`Hca`]; of a queue pair its attributes, send queue, receive
//! queue; a completion queue; the fabric; the scheduler. The physical memory of the machine may be asked under any of
//! them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};

use crate::fabric::event::PortEvent;
use crate::fabric::ids::{Guid, Lid, Nanos, PKey, QKey, Qpn};
use crate::fabric::topology::{Port, PortId};
use crate::fabric::wire::mad::MAD_LEN;
use crate::fabric::wire::{Bth, Deth, OpCode, Packet};
use crate::kernel::Machine;
use crate::sim::{self, Lock, Mode, Sim};
use crate::verifier::{Rule, cause};

pub mod av;
mod config;
pub mod cq;
mod engine;
mod groups;
pub mod handle;
mod inject;
pub mod listener;
pub mod log;
pub mod mem;
pub mod net;
pub mod qp;
pub mod qp_state;
mod rc;
pub mod rules;

pub use config::{HcaConfig, Limits};
pub use engine::Ignored;
pub(crate) use engine::memory_violation;
pub use handle::{Handle, Kind};
pub use net::Net;

use av::AvAttr;
use cq::{AfterCallback, Cq, Notify, Pushed};
use groups::Groups;
use listener::{AsyncEvent, Listener};
use log::{Event, HARDWARE, Log};
use mem::{Element, Fault, Keys, Physical, Region};
use net::PortOwner;
use qp::{Caps, Moved, PostError, Qp, RecvRequest, SendRequest};
use qp_state::{Modify, QpState, Refused, Service};

/// Locks a table for reading, whatever became of another holder: a panic elsewhere is the run's outcome already.
pub(crate) fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// As [`read`], for writing.
pub(crate) fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A port of an HCA.
pub struct HcaPort {
    /// The port on the fabric.
    pub id: PortId,
    attributes: RwLock<Arc<Port>>,
}

impl HcaPort {
    /// Its attributes, as of the last event of the port.
    pub fn view(&self) -> Arc<Port> {
        Arc::clone(&read(&self.attributes))
    }
}

/// A host channel adapter.
pub struct Hca {
    /// Its number in the simulation.
    pub number: u16,
    /// Node GUID.
    pub guid: Guid,
    /// What it can hold.
    pub limits: Limits,
    net: Net,
    machine: Machine,
    me: Weak<Self>,
    listener: OnceLock<Weak<dyn Listener>>,
    ports: Vec<HcaPort>,
    serial: AtomicU32,
    next_qpn: AtomicU32,
    qps: RwLock<BTreeMap<u32, Arc<Qp>>>,
    keys: RwLock<BTreeMap<u32, Arc<Region>>>,
    groups: RwLock<Groups>,
    cqs: AtomicU32,
    ignored: Lock<BTreeMap<Ignored, u64>>,
    log: Log,
}

impl Hca {
    /// Plugs an HCA into a machine and its ports into the fabric.
    pub fn new(net: &Net, machine: &Machine, config: &HcaConfig) -> Arc<Self> {
        let ports = config
            .ports
            .iter()
            .map(|&id| HcaPort { id, attributes: RwLock::new(Arc::new(net.port(id))) })
            .collect();
        let hca = Arc::new_cyclic(|me| Self {
            number: config.number,
            guid: config.guid,
            limits: config.limits,
            net: net.clone(),
            machine: machine.clone(),
            me: me.clone(),
            listener: OnceLock::new(),
            ports,
            serial: AtomicU32::new(1),
            next_qpn: AtomicU32::new(config.first_qpn.max(2)),
            qps: RwLock::default(),
            keys: RwLock::default(),
            groups: RwLock::default(),
            cqs: AtomicU32::new(0),
            ignored: Lock::default(),
            log: Log::default(),
        });
        let owner: Weak<dyn PortOwner> = Arc::downgrade(&(Arc::clone(&hca) as Arc<dyn PortOwner>));
        for port in &hca.ports {
            net.attach(port.id, owner.clone());
        }
        let watching = Arc::downgrade(&hca);
        machine.watch_frees(move |machine, memory| watching.upgrade()?.owner_of(machine, memory));
        hca
    }

    /// Says who hears of datagrams and events. Once.
    pub fn listen(&self, listener: Weak<dyn Listener>) {
        // A second access layer on one HCA would be a mistake of the lab; the first stays.
        let _ = self.listener.set(listener);
    }

    fn listener(&self) -> Option<Arc<dyn Listener>> {
        self.listener.get().and_then(Weak::upgrade)
    }

    /// The fabric in time.
    pub fn net(&self) -> &Net {
        &self.net
    }

    /// The simulation.
    pub fn sim(&self) -> &Sim {
        self.net.sim()
    }

    /// The machine.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The machine's physical memory.
    pub fn memory(&self) -> MachineMemory<'_> {
        MachineMemory(&self.machine)
    }

    /// What happened so far.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Notes an event in the log, in the context of the caller.
    pub fn note(&self, event: Event) {
        let irql = if sim::in_hardware() { HARDWARE } else { sim::level() };
        self.log.note(self.sim().now(), irql, &cause::describe(&self.machine), event);
    }

    /// Notes an event that the hardware brought about.
    fn note_hardware(&self, event: Event) {
        self.log.note(self.sim().now(), HARDWARE, "hardware", event);
    }

    fn note_transition(&self, qpn: u32, from: QpState, to: QpState, asked: bool) {
        let event = Event::Transition { qpn, from, to, asked };
        if asked { self.note(event) } else { self.note_hardware(event) }
    }

    /// A handle that was never used before.
    pub fn new_handle(&self, kind: Kind) -> Handle {
        Handle { hca: self.number, kind, serial: self.serial.fetch_add(1, Ordering::Relaxed) }
    }

    /// A port by its number, from 1.
    pub fn port(&self, number: u8) -> Option<&HcaPort> {
        self.ports.get(usize::from(number).checked_sub(1)?)
    }

    /// Ports, 1 first.
    pub fn ports(&self) -> &[HcaPort] {
        &self.ports
    }

    /// Reads a port's attributes from the fabric anew.
    pub fn refresh(&self, number: u8) -> Option<Arc<Port>> {
        let port = self.port(number)?;
        let fresh = Arc::new(self.net.port(port.id));
        *write(&port.attributes) = Arc::clone(&fresh);
        Some(fresh)
    }

    fn number_of(&self, id: PortId) -> Option<u8> {
        self.ports.iter().position(|port| port.id == id).map(|index| index as u8 + 1)
    }

    fn free_at(&self, port: u8) -> Nanos {
        self.port(port).map_or(0, |port| self.net.free_at(port.id))
    }

    // Completion queues.

    /// Makes a completion queue for at least `size` entries; hardware rounds up to one less than a power of two.
    /// `None`: beyond a limit.
    pub fn create_cq(&self, size: u32, notify: Notify) -> Option<Arc<Cq>> {
        if size == 0 || size > self.limits.cqes || self.cqs.load(Ordering::Relaxed) >= self.limits.cqs {
            return None;
        }
        self.cqs.fetch_add(1, Ordering::Relaxed);
        let depth = (size + 1).next_power_of_two() - 1;
        Some(Arc::new(Cq::new(self.new_handle(Kind::Cq), depth as usize, notify)))
    }

    /// Closes a completion queue: no new callback. `true`: none is under way either; otherwise
    /// [`Listener::cq_idle`] tells when the last one has returned.
    pub fn close_cq(&self, cq: &Cq) -> bool {
        self.cqs.fetch_sub(1, Ordering::Relaxed);
        cq.close()
    }

    /// Does what pushing an entry called for. No lock may be held.
    fn pushed(&self, cq: &Arc<Cq>, pushed: Pushed) {
        match pushed {
            Pushed::Quiet => {}
            Pushed::Notify => self.queue_callback(cq),
            Pushed::Overrun => self.report(cq.handle, AsyncEvent::CqError),
        }
    }

    fn queue_callback(&self, cq: &Arc<Cq>) {
        queue_callback(&self.machine, self.listener.get().cloned(), Arc::clone(cq));
    }

    fn report(&self, object: Handle, event: AsyncEvent) {
        if let Some(listener) = self.listener() {
            listener.async_event(object, event);
        }
    }

    // Queue pairs.

    /// Makes a queue pair in RESET. `None`: beyond a limit.
    pub fn create_qp(
        &self,
        service: Service,
        pd: Handle,
        send_cq: Arc<Cq>,
        recv_cq: Arc<Cq>,
        caps: Caps,
    ) -> Option<Arc<Qp>> {
        let mut qps = write(&self.qps);
        if qps.len() >= self.limits.qps as usize {
            return None;
        }
        let qpn = loop {
            let qpn = self.next_qpn.fetch_add(1, Ordering::Relaxed) & 0xff_ffff;
            if qpn > 1 && qpn != Qpn::MULTICAST.get() && !qps.contains_key(&qpn) {
                break qpn;
            }
        };
        let qp = Arc::new(Qp::new(self.new_handle(Kind::Qp), qpn, service, pd, send_cq, recv_cq, caps));
        qps.insert(qpn, Arc::clone(&qp));
        Some(qp)
    }

    /// Takes a queue pair away: what it had posted and completed goes with it.
    pub fn destroy_qp(&self, qp: &Arc<Qp>) {
        for attached in write(&self.groups).values_mut() {
            attached.retain(|other| !Arc::ptr_eq(other, qp));
        }
        write(&self.groups).retain(|_, attached| !attached.is_empty());
        write(&self.qps).remove(&qp.qpn);
        // RESET from any state, as the verb that destroys it does.
        let _ = qp.modify(&Modify::to(QpState::Reset));
    }

    /// The queue pair with this number.
    pub fn qp_by_number(&self, qpn: u32) -> Option<Arc<Qp>> {
        read(&self.qps).get(&qpn).cloned()
    }

    /// Changes the state of a queue pair.
    ///
    /// # Errors
    /// [`Refused`]; nothing has changed then.
    pub fn modify_qp(self: &Arc<Self>, qp: &Arc<Qp>, modify: &Modify) -> Result<Moved, Refused> {
        if modify.attributes.port.is_some_and(|port| self.port(port).is_none()) {
            return Err(Refused::OutOfRange("the port"));
        }
        if let Some(index) = modify.attributes.pkey_index {
            let port = modify.attributes.port.unwrap_or_else(|| qp.attrs().port);
            let pkeys = self.port(port).map_or(0, |port| port.view().pkeys.len());
            if usize::from(index) >= pkeys {
                return Err(Refused::OutOfRange("the P_Key index"));
            }
        }
        let moved = qp.modify(modify)?;
        if moved.from != moved.to {
            self.note_transition(qp.qpn, moved.from, moved.to, true);
        }
        if let Some(qkey) = moved.qkey {
            self.note(Event::QKey { qpn: qp.qpn, qkey });
        }
        if moved.kick {
            self.kick(qp);
        }
        Ok(moved)
    }

    /// Posts a send and starts the engine.
    ///
    /// # Errors
    /// [`PostError`].
    pub fn post_send(self: &Arc<Self>, qp: &Arc<Qp>, request: SendRequest) -> Result<(), PostError> {
        qp.post_send(request)?;
        self.kick(qp);
        Ok(())
    }

    /// Posts a receive.
    ///
    /// # Errors
    /// [`PostError`].
    pub fn post_recv(self: &Arc<Self>, qp: &Arc<Qp>, request: RecvRequest) -> Result<(), PostError> {
        qp.post_recv(request)?;
        if qp.attrs().state == QpState::Error {
            self.kick(qp);
        }
        Ok(())
    }

    // Memory.

    /// Makes a region usable. `None`: beyond a limit. `region` is given its handle and keys.
    pub fn register(&self, make: impl FnOnce(Handle, u32, u32) -> Region) -> Option<Arc<Region>> {
        let mut keys = write(&self.keys);
        if keys.len() >= self.limits.regions as usize {
            return None;
        }
        let handle = self.new_handle(Kind::Mr);
        // A key is an index and a variant byte; a stale key of a reused index would differ in the byte.
        let key = (handle.serial << 8) | 0x5a;
        let region = Arc::new(make(handle, key, key));
        keys.insert(key, Arc::clone(&region));
        Some(region)
    }

    /// Takes a region away.
    pub fn deregister(&self, region: &Region) {
        write(&self.keys).remove(&region.lkey);
    }

    /// Checks that a list may be read, or written, and is there. Threaded mode leaves this to the moment of use.
    ///
    /// # Errors
    /// The first element that is not.
    pub fn check_elements(&self, pd: Handle, elements: &[Element], write: bool) -> Result<(), Fault> {
        if self.sim().mode() == Mode::Threaded {
            return Ok(());
        }
        mem::check(self, &self.memory(), pd, elements, write)
    }

    /// Gathers the payload of an inline send.
    ///
    /// # Errors
    /// [`Fault::NoMemory`]: the list of an inline send holds virtual addresses, so no region takes part.
    pub fn gather(&self, pd: Handle, elements: &[Element], to: &mut [u8]) -> Result<(), Fault> {
        mem::gather(self, &self.memory(), pd, elements, to)
    }

    /// Memory that the driver frees and a posted request names: the rule, and which request.
    fn owner_of(&self, machine: &Machine, memory: &Range<usize>) -> Option<(Rule, String)> {
        let qps: Vec<_> = read(&self.qps).values().filter(|qp| qp.outstanding() != (0, 0)).cloned().collect();
        let physical = |lkey| self.region(lkey).is_some_and(|region| region.is_physical_memory());
        let mut at = memory.start;
        while at < memory.end && !qps.is_empty() {
            let end = ((at / mem::PAGE as usize + 1) * mem::PAGE as usize).min(memory.end);
            let pa = machine.to_phys(std::ptr::without_provenance::<u8>(at));
            for qp in &qps {
                if let Some(wr_id) = qp.owns(pa, (end - at) as u64, physical) {
                    let detail = format!("QP {:#x} still owns it: posted with wr_id {wr_id:#x}", qp.qpn);
                    return Some((rules::QP_MEMORY_FREED, detail));
                }
            }
            at = end;
        }
        None
    }

    // Management datagrams.

    /// Sends a datagram of QP1 to QP1 of `dlid` (§13.5).
    pub fn send_mad(self: &Arc<Self>, port: u8, dlid: Lid, sl: u8, mad: &[u8; MAD_LEN]) {
        let Some(own) = self.port(port) else { return };
        let view = own.view();
        let av = AvAttr { port, sl, dlid: dlid.0, path_bits: 0, static_rate: 0, grh: None };
        let headers = engine::datagram_headers(
            &av,
            &view,
            Bth {
                opcode: OpCode::UD_SEND_ONLY,
                migrated: true,
                pkey: view.pkeys.first().copied().unwrap_or(PKey::DEFAULT),
                dest_qp: Qpn::GSI,
                ..Bth::default()
            },
            Deth { qkey: QKey::GSI, src_qp: Qpn::GSI },
            None,
        );
        let packet = Packet::build(&headers, MAD_LEN, |space| space.copy_from_slice(mad));
        self.transmit(port, packet, dlid);
    }

    // What packets were not taken.

    fn ignored(&self, why: Ignored) {
        *self.ignored.lock().entry(why).or_default() += 1;
    }

    /// Packets that no queue pair took, by reason.
    pub fn ignored_packets(&self) -> BTreeMap<Ignored, u64> {
        self.ignored.lock().clone()
    }

    fn count_qkey_violation(&self, port: u8) {
        if let Some(port) = self.port(port) {
            self.net.with(|fabric, _| fabric.count_qkey_violation(port.id));
        }
    }

    fn count_pkey_violation(&self, port: u8) {
        if let Some(port) = self.port(port) {
            self.net.with(|fabric, _| fabric.count_pkey_violation(port.id));
        }
    }
}

/// Queues the completion DPC of a queue; it queues itself again for what came in the meantime.
fn queue_callback(machine: &Machine, listener: Option<Weak<dyn Listener>>, cq: Arc<Cq>) {
    let again = machine.clone();
    machine.queue_dpc("completion", move || match cq.run_callback() {
        AfterCallback::Rest => {}
        AfterCallback::Again => queue_callback(&again, listener, cq),
        AfterCallback::Closed => {
            if let Some(listener) = listener.as_ref().and_then(Weak::upgrade) {
                listener.cq_idle(cq.handle);
            }
        }
    });
}

/// Physical memory of a machine.
#[derive(Clone, Copy)]
pub struct MachineMemory<'a>(&'a Machine);

impl Physical for MachineMemory<'_> {
    fn locate(&self, pa: u64, length: usize) -> Result<NonNull<u8>, &'static str> {
        let at = self.0.dma_piece(pa, length).map_err(|fault| fault.reason)?;
        NonNull::new(at).ok_or("is no memory")
    }
}

impl Keys for Hca {
    fn region(&self, lkey: u32) -> Option<Arc<Region>> {
        read(&self.keys).get(&lkey).cloned()
    }
}

/// The fabric's side of the ports.
impl PortOwner for Hca {
    fn deliver(&self, port: PortId, packet: &Packet) {
        if let (Some(hca), Some(number)) = (self.me.upgrade(), self.number_of(port)) {
            hca.receive(number, packet);
        }
    }

    fn event(&self, port: PortId, event: PortEvent) {
        if let Some(number) = self.number_of(port) {
            self.refresh(number);
            if let Some(listener) = self.listener() {
                listener.port_event(number, event);
            }
        }
    }
}
