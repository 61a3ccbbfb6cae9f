//! Plug and Play: registrations, and the events of ports and of the CA (`al_pnp.c`).
//!
//! Everything here runs on the one PnP thread, at PASSIVE_LEVEL, so no two callbacks of any client overlap. The
//! thread keeps what it last reported of each port and reports the difference to what it finds now, so a change
//! that is undone before it looks is never heard of.

use std::collections::BTreeMap;
use std::sync::Arc;

use ibal_sys::*;

use super::latch::Latch;
use super::port_watch::{self, Link, PortEvent, PortView};
use super::{Ibal, attributes};
use crate::fabric::topology::{Port, PortState};
use crate::hca::Handle;
use crate::hca::log::Event;
use crate::kernel::irql::PASSIVE_LEVEL;
use crate::sim::Lock;
use crate::verifier::call_driver;

/// What attributes become after the callback that they were made for: a client that kept a pointer reads this.
const POISON: u64 = 0xdddd_dddd_dddd_dddd;

/// A client's registration.
pub struct Registration {
    /// Its handle.
    pub handle: Handle,
    /// `IB_PNP_*`, class and flags.
    pub class: u32,
    callback: ib_pfn_pnp_cb_t,
    context: usize,
    /// By GUID of port or CA: what the client left there. A GUID without an entry is of no interest to it.
    contexts: Lock<BTreeMap<u64, usize>>,
    complete: Option<Arc<Latch>>,
}

/// State of the PnP thread.
#[derive(Default)]
pub struct PnpState {
    registrations: Vec<Arc<Registration>>,
    reported: Vec<Arc<Port>>,
    removed: bool,
}

/// Name of an event, for the log.
fn name(event: PortEvent) -> &'static str {
    match event {
        PortEvent::Add => "PORT_ADD",
        PortEvent::Init => "PORT_INIT",
        PortEvent::Armed => "PORT_ARMED",
        PortEvent::Active => "PORT_ACTIVE",
        PortEvent::Down => "PORT_DOWN",
        PortEvent::PKeyChange => "PKEY_CHANGE",
        PortEvent::GidChange => "GID_CHANGE",
        PortEvent::LidChange => "LID_CHANGE",
        PortEvent::SmChange => "SM_CHANGE",
        PortEvent::SubnetTimeoutChange => "SUBNET_TIMEOUT_CHANGE",
        PortEvent::Remove => "PORT_REMOVE",
    }
}

/// Name of the callback that an event is, for the log and the report of a broken rule.
fn callback_name(event: PortEvent) -> &'static str {
    match event {
        PortEvent::Add => "PnP PORT_ADD",
        PortEvent::Init => "PnP PORT_INIT",
        PortEvent::Armed => "PnP PORT_ARMED",
        PortEvent::Active => "PnP PORT_ACTIVE",
        PortEvent::Down => "PnP PORT_DOWN",
        PortEvent::PKeyChange => "PnP PKEY_CHANGE",
        PortEvent::GidChange => "PnP GID_CHANGE",
        PortEvent::LidChange => "PnP LID_CHANGE",
        PortEvent::SmChange => "PnP SM_CHANGE",
        PortEvent::SubnetTimeoutChange => "PnP SUBNET_TIMEOUT_CHANGE",
        PortEvent::Remove => "PnP PORT_REMOVE",
    }
}

fn code(event: PortEvent) -> ib_pnp_event_t {
    match event {
        PortEvent::Add => IB_PNP_PORT_ADD,
        PortEvent::Init => IB_PNP_PORT_INIT,
        PortEvent::Armed => IB_PNP_PORT_ARMED,
        PortEvent::Active => IB_PNP_PORT_ACTIVE,
        PortEvent::Down => IB_PNP_PORT_DOWN,
        PortEvent::PKeyChange => IB_PNP_PKEY_CHANGE,
        PortEvent::GidChange => IB_PNP_GID_CHANGE,
        PortEvent::LidChange => IB_PNP_LID_CHANGE,
        PortEvent::SmChange => IB_PNP_SM_CHANGE,
        PortEvent::SubnetTimeoutChange => IB_PNP_SUBNET_TIMEOUT_CHANGE,
        PortEvent::Remove => IB_PNP_PORT_REMOVE,
    }
}

fn link(state: PortState) -> Link {
    match state {
        PortState::Down => Link::Down,
        PortState::Init => Link::Init,
        PortState::Armed => Link::Armed,
        PortState::Active => Link::Active,
    }
}

fn view(port: &Port) -> PortView {
    PortView {
        link: link(port.state),
        lid: port.lid.0,
        lmc: port.lmc,
        sm_lid: port.sm_lid.0,
        sm_sl: port.sm_sl,
        subnet_timeout: port.subnet_timeout,
        gids: port.gids().collect(),
        pkeys: port.pkeys.clone(),
    }
}

impl Registration {
    /// A registration as `reg_pnp` asks for it.
    pub fn new(handle: Handle, request: &ib_pnp_req_t, complete: Option<Arc<Latch>>) -> Self {
        Self {
            handle,
            class: request.pnp_class,
            callback: request.pfn_pnp_cb,
            context: request.pnp_context as usize,
            contexts: Lock::default(),
            complete,
        }
    }

    fn wants(&self, class: u32) -> bool {
        self.class & IB_PNP_CLASS_MASK == class
    }

    fn record(&self, event: u32, guid: u64, context: usize) -> ib_pnp_rec_t {
        ib_pnp_rec_t {
            pnp_event: event,
            h_pnp: self.handle.to_ptr(),
            h_ioc_event: std::ptr::null_mut(),
            pnp_context: std::ptr::with_exposed_provenance_mut(self.context),
            context: std::ptr::with_exposed_provenance_mut(context),
            guid: ib_net64_t::new(guid),
            ca_guid: ib_net64_t::ZERO,
        }
    }

    /// A client that is content leaves a context; one that is not hears no more of this port.
    fn keep_context(&self, guid: u64, status: ib_api_status_t, context: usize) {
        let mut contexts = self.contexts.lock();
        if status == IB_SUCCESS {
            contexts.insert(guid, context);
        } else {
            contexts.remove(&guid);
        }
    }
}

impl Ibal {
    fn ports_now(&self) -> Vec<Arc<Port>> {
        (1..=self.hca.ports().len() as u8).filter_map(|number| self.hca.refresh(number)).collect()
    }

    /// The thread's first look at the ports, before any client.
    pub(super) fn start_pnp(&self) {
        let reported = self.ports_now();
        self.pnp.lock().reported = reported;
    }

    /// A new registration: the client hears the present state, then that this was all.
    pub(super) fn process_registration(&self, registration: &Arc<Registration>) {
        let (reported, removed) = {
            let mut pnp = self.pnp.lock();
            pnp.registrations.push(Arc::clone(registration));
            (pnp.reported.clone(), pnp.removed)
        };
        if !removed {
            if registration.wants(IB_PNP_CA) {
                registration.contexts.lock().insert(self.hca.guid.0, 0);
                self.notify_ca(registration, &reported, IB_PNP_CA_ADD);
            } else {
                for (index, port) in reported.iter().enumerate() {
                    registration.contexts.lock().insert(port.guid.0, 0);
                    for event in port_watch::present(link(port.state)) {
                        self.notify_port(registration, &reported, index, event);
                    }
                }
            }
        }
        if registration.class & IB_PNP_FLAG_REG_COMPLETE != 0 {
            let mut record = registration.record(IB_PNP_REG_COMPLETE, 0, 0);
            self.call_client(registration, "PnP REG_COMPLETE", "REG_COMPLETE", &raw mut record);
        }
        if let Some(latch) = &registration.complete {
            latch.open();
        }
        self.release(registration.handle, "reg_pnp");
    }

    /// A registration that its client ended.
    pub(super) fn process_deregistration(&self, registration: &Arc<Registration>) {
        self.pnp.lock().registrations.retain(|other| !Arc::ptr_eq(other, registration));
        self.release(registration.handle, "dereg_pnp");
    }

    /// Something may have changed: compares and reports. `reregister`: the subnet manager asks port `port` to
    /// register everything again, which the access layer reports as a change of its LID (`al_ci_ca_shared.c`).
    pub(super) fn process_port_check(&self, reregister: Option<u8>) {
        let now = self.ports_now();
        let old = {
            let mut pnp = self.pnp.lock();
            if pnp.removed {
                return;
            }
            std::mem::replace(&mut pnp.reported, now.clone())
        };
        for (index, (old, new)) in old.iter().zip(&now).enumerate() {
            for event in port_watch::changes(&view(old), &view(new)) {
                self.report_port(&now, index, event);
            }
        }
        if let Some(port) = reregister {
            self.report_port(&now, usize::from(port) - 1, PortEvent::LidChange);
        }
    }

    /// The CA goes: every registrant hears it, the last one first.
    pub(super) fn process_removal(&self) {
        let (registrations, reported) = {
            let mut pnp = self.pnp.lock();
            if std::mem::replace(&mut pnp.removed, true) {
                return;
            }
            (pnp.registrations.clone(), pnp.reported.clone())
        };
        for registration in registrations.iter().rev().filter(|r| r.wants(IB_PNP_PORT)) {
            for (index, port) in reported.iter().enumerate() {
                if link(port.state) >= Link::Init {
                    self.notify_port(registration, &reported, index, PortEvent::Down);
                }
                self.notify_port(registration, &reported, index, PortEvent::Remove);
                registration.contexts.lock().remove(&port.guid.0);
            }
        }
        for registration in registrations.iter().rev().filter(|r| r.wants(IB_PNP_CA)) {
            self.notify_ca(registration, &reported, IB_PNP_CA_REMOVE);
            registration.contexts.lock().remove(&self.hca.guid.0);
        }
    }

    fn report_port(&self, ports: &[Arc<Port>], index: usize, event: PortEvent) {
        let mut registrations = self.pnp.lock().registrations.clone();
        // Bad news goes from the last registrant to the first, good news the other way.
        if event == PortEvent::Down {
            registrations.reverse();
        }
        for registration in registrations.iter().filter(|r| r.wants(IB_PNP_PORT)) {
            self.notify_port(registration, ports, index, event);
        }
    }

    fn attributes(&self, ports: &[Arc<Port>]) -> Vec<u64> {
        let mut buffer = vec![0u64; attributes::size(ports).div_ceil(8)];
        // SAFETY: the buffer has the size asked for and the alignment of its words.
        unsafe { attributes::write(&self.hca, ports, buffer.as_mut_ptr().cast()) };
        buffer
    }

    fn notify_port(&self, registration: &Registration, ports: &[Arc<Port>], index: usize, event: PortEvent) {
        let Some(port) = ports.get(index) else { return };
        let guid = port.guid.0;
        let Some(context) = registration.contexts.lock().get(&guid).copied() else { return };
        let mut attributes = self.attributes(ports);
        let p_ca_attr = attributes.as_mut_ptr().cast::<ib_ca_attr_t>();
        let removal = event == PortEvent::Remove;
        let p_port_attr = if removal {
            std::ptr::null_mut()
        } else {
            // SAFETY: just written; the CA's port table has an entry for each of `ports`.
            unsafe { (*p_ca_attr).p_port_attr.add(index) }
        };
        let mut record = ib_pnp_port_rec_t {
            pnp_rec: registration.record(code(event), guid, context),
            p_ca_attr: if removal { std::ptr::null_mut() } else { p_ca_attr },
            p_port_attr,
        };
        let status =
            self.call_client(registration, callback_name(event), name(event), (&raw mut record).cast());
        attributes.fill(POISON);
        registration.keep_context(guid, status, record.pnp_rec.context as usize);
    }

    fn notify_ca(&self, registration: &Registration, ports: &[Arc<Port>], event: ib_pnp_event_t) {
        let guid = self.hca.guid.0;
        let Some(context) = registration.contexts.lock().get(&guid).copied() else { return };
        let mut attributes = self.attributes(ports);
        let add = event == IB_PNP_CA_ADD;
        let mut record = ib_pnp_ca_rec_t {
            pnp_rec: registration.record(event, guid, context),
            p_ca_attr: if add { attributes.as_mut_ptr().cast() } else { std::ptr::null_mut() },
        };
        let (callback, name) = if add { ("PnP CA_ADD", "CA_ADD") } else { ("PnP CA_REMOVE", "CA_REMOVE") };
        let status = self.call_client(registration, callback, name, (&raw mut record).cast());
        attributes.fill(POISON);
        registration.keep_context(guid, status, record.pnp_rec.context as usize);
    }

    fn call_client(
        &self,
        registration: &Registration,
        callback: &'static str,
        event: &'static str,
        record: *mut ib_pnp_rec_t,
    ) -> ib_api_status_t {
        let Some(function) = registration.callback else { return IB_INVALID_CALLBACK };
        self.hca.note(Event::PnpBegin { event });
        let status = call_driver(callback, PASSIVE_LEVEL, || {
            // SAFETY: the driver's own callback, with a record that is whole for its event and lives for the call.
            unsafe { function(record) }
        });
        self.hca.note(Event::PnpEnd { event, status: status.0 });
        status
    }
}
