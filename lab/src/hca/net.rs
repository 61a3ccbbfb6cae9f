//! The fabric in time: the one place where the clock-free [`Fabric`] meets the scheduler.
//!
//! A [`Net`] owns the fabric, schedules what it delivers, and polls it when its subnet manager has something to do.
//! In threaded mode a delivery is made at once, by whoever sent the packet: real time passes anyway, and one event
//! thread for all hosts would measure only itself.

use std::collections::BTreeMap;
use std::sync::{Arc, RwLock, Weak};

use super::{read, write};
use crate::fabric::event::PortEvent;
use crate::fabric::topology::{Port, PortId};
use crate::fabric::wire::Packet;
use crate::fabric::{Delivery, Fabric, Output};
use crate::sim::{EventId, Lock, Mode, Nanos, Sim};

/// Whose port it is. Called in hardware context: never call a driver from here.
pub trait PortOwner: Send + Sync {
    /// A packet has arrived at a port of this owner.
    fn deliver(&self, port: PortId, packet: &Packet);

    /// Something happened to a port of this owner.
    fn event(&self, port: PortId, event: PortEvent);
}

struct Poll {
    at: Nanos,
    id: EventId,
}

struct Inner {
    sim: Sim,
    fabric: Lock<Fabric>,
    owners: RwLock<BTreeMap<PortId, Weak<dyn PortOwner>>>,
    poll: Lock<Option<Poll>>,
}

/// A fabric in simulated time. Cheap to clone; all clones are the same.
#[derive(Clone)]
pub struct Net(Arc<Inner>);

impl Net {
    /// Puts `fabric` into time and lets its subnet manager start.
    pub fn new(sim: &Sim, fabric: Fabric) -> Self {
        let net = Self(Arc::new(Inner {
            sim: sim.clone(),
            fabric: Lock::new(fabric),
            owners: RwLock::default(),
            poll: Lock::default(),
        }));
        net.schedule_poll();
        net
    }

    /// The simulation.
    pub fn sim(&self) -> &Sim {
        &self.0.sim
    }

    /// Says who owns a port. The owner is held weakly.
    pub fn attach(&self, port: PortId, owner: Weak<dyn PortOwner>) {
        write(&self.0.owners).insert(port, owner);
    }

    /// Nobody owns the port any longer: what arrives there is lost.
    pub fn detach(&self, port: PortId) {
        write(&self.0.owners).remove(&port);
    }

    /// Looks at or changes the fabric (links, faults, the subnet manager), then sees to what follows from it.
    pub fn with<R>(&self, f: impl FnOnce(&mut Fabric, Nanos) -> R) -> R {
        let now = self.0.sim.now();
        let result = f(&mut self.0.fabric.lock(), now);
        self.schedule_poll();
        result
    }

    /// A copy of a port's attributes.
    pub fn port(&self, port: PortId) -> Port {
        self.0.fabric.lock().port(port).clone()
    }

    /// When the link out of `port` is free.
    pub fn free_at(&self, port: PortId) -> Nanos {
        self.0.fabric.lock().free_at(port)
    }

    /// Sends a packet out of a port.
    pub fn transmit(&self, port: PortId, packet: Packet) {
        let now = self.0.sim.now();
        let (deliveries, due) = {
            let mut fabric = self.0.fabric.lock();
            let deliveries = fabric.transmit(now, port, packet);
            (deliveries, fabric.poll_at())
        };
        for delivery in deliveries {
            self.arrange(delivery);
        }
        self.schedule_poll_at(due);
    }

    fn arrange(&self, delivery: Delivery) {
        if self.0.sim.mode() == Mode::Threaded {
            return self.arrive(&delivery);
        }
        let net = self.clone();
        self.0.sim.at(delivery.at, "packet arrives", move |_| net.arrive(&delivery));
    }

    fn arrive(&self, delivery: &Delivery) {
        if self.0.fabric.lock().receive(delivery).is_err() {
            return;
        }
        if let Some(owner) = self.owner(delivery.port) {
            owner.deliver(delivery.port, &delivery.packet);
        }
    }

    fn owner(&self, port: PortId) -> Option<Arc<dyn PortOwner>> {
        read(&self.0.owners).get(&port).and_then(Weak::upgrade)
    }

    fn schedule_poll(&self) {
        let due = self.0.fabric.lock().poll_at();
        self.schedule_poll_at(due);
    }

    fn schedule_poll_at(&self, due: Option<Nanos>) {
        let Some(at) = due else { return };
        let mut poll = self.0.poll.lock();
        if poll.as_ref().is_some_and(|poll| poll.at <= at) {
            return;
        }
        if let Some(later) = poll.take() {
            self.0.sim.cancel(later.id);
        }
        let net = self.clone();
        let id = self.0.sim.at(at, "fabric", move |_| net.poll(at));
        *poll = Some(Poll { at, id });
    }

    fn poll(&self, at: Nanos) {
        {
            let mut poll = self.0.poll.lock();
            if poll.as_ref().is_some_and(|poll| poll.at == at) {
                *poll = None;
            }
        }
        let outputs = self.0.fabric.lock().poll(self.0.sim.now().max(at));
        for output in outputs {
            match output {
                Output::Delivery(delivery) => self.arrange(delivery),
                Output::Event { port, event, .. } => {
                    if let Some(owner) = self.owner(port) {
                        owner.event(port, event);
                    }
                }
            }
        }
        self.schedule_poll();
    }
}
