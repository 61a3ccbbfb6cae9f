//! The fabric: packets from port to port, and the agenda of what the subnet manager does when.

use std::collections::BTreeMap;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::administrator::Source;
use super::drops::{DropCounters, DropReason};
use super::event::PortEvent;
use super::fault::{Effect, FaultGuard, Faults, Transit};
use super::ids::Nanos;
use super::manager::{Manager, ManagerConfig};
use super::topology::{Port, PortId, PortState, Topology};
use super::transit::count_received;
use super::wire::Packet;

/// How a fabric is set up.
#[derive(Clone, Debug, Default)]
pub struct FabricConfig {
    /// Seed of the one generator that random LIDs and delays come from.
    pub seed: u64,
    /// The subnet manager and administrator.
    pub manager: ManagerConfig,
}

/// A packet that arrives.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// When its last byte is in.
    pub at: Nanos,
    /// At which port.
    pub port: PortId,
    /// The packet.
    pub packet: Packet,
    pub(super) epoch: u32,
}

/// What [`Fabric::poll`] reports.
#[derive(Clone, Debug)]
pub enum Output {
    /// A packet arrives, as from [`Fabric::transmit`].
    Delivery(Delivery),
    /// Something happened to a port.
    Event {
        /// When.
        at: Nanos,
        /// To which port.
        port: PortId,
        /// What.
        event: PortEvent,
    },
}

/// What the fabric has to do itself, later.
#[derive(Debug)]
pub(super) enum Task {
    /// A packet arrives at a subnet manager's port.
    Serve(Delivery),
    /// A manager sends.
    Send { from: PortId, packet: Packet },
    /// Report to the port's owner.
    Report { port: PortId, event: PortEvent },
    /// A sweep of the subnet starts: `generation` tells whether the manager that wanted it is still in
    /// charge.
    Sweep { generation: u64 },
    /// A manager becomes master.
    Promote { port: PortId, generation: u64 },
}

/// A fabric: nodes and cables, the subnet manager, faults, counters.
#[derive(Debug)]
pub struct Fabric {
    pub(super) topology: Topology,
    pub(super) manager: Manager,
    pub(super) rng: ChaCha8Rng,
    pub(super) faults: Faults,
    pub(super) tap: Tap,
    pub(super) drops: DropCounters,
    agenda: BTreeMap<(Nanos, u64), Task>,
    next_task: u64,
    /// Events and deliveries due, in order, for the next poll.
    ready: Vec<Output>,
}

impl Fabric {
    /// A fabric on which the subnet manager has not swept yet: its first sweep is due at time 0, so call
    /// [`Fabric::poll`] until ports are Active.
    pub fn new(topology: Topology, config: FabricConfig) -> Self {
        let mut fabric = Self {
            manager: Manager::new(&topology, config.manager),
            topology,
            rng: ChaCha8Rng::seed_from_u64(config.seed),
            faults: Faults::default(),
            tap: Tap(None),
            drops: DropCounters::default(),
            agenda: BTreeMap::new(),
            next_task: 0,
            ready: Vec::new(),
        };
        fabric.request_sweep(0, 0);
        fabric
    }

    /// Nodes, ports and cables.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// A port.
    pub fn port(&self, id: PortId) -> &Port {
        self.topology.port(id)
    }

    /// The subnet manager and administrator.
    pub fn manager(&self) -> &Manager {
        &self.manager
    }

    /// Packets lost, by reason.
    pub fn drops(&self) -> &DropCounters {
        &self.drops
    }

    /// Adds a fault rule; see [`super::fault`].
    pub fn add_fault(
        &mut self,
        matcher: impl FnMut(&Transit<'_>) -> bool + Send + 'static,
        effect: Effect,
    ) -> FaultGuard {
        self.faults.add(matcher, effect)
    }

    /// Shows every packet that an end node sends, the subnet manager included, to `tap`, as it goes on the
    /// wire: after the fault rules for senders, before anything that may lose it. `None` takes the tap away.
    pub fn set_tap(&mut self, tap: Option<PacketTap>) {
        self.tap = Tap(tap);
    }

    /// Counts a packet that an HCA refused for its queue key, in Q_KeyViolations of its port.
    pub fn count_qkey_violation(&mut self, port: PortId) {
        self.topology.port_mut(port).counters.qkey_violations += 1;
    }

    /// Counts a packet that an HCA refused because its QP is in another partition, in P_KeyViolations of its
    /// port.
    pub fn count_pkey_violation(&mut self, port: PortId) {
        self.topology.port_mut(port).counters.pkey_violations += 1;
    }

    /// When the link out of `port` is free again: a packet sent earlier waits until then.
    pub fn free_at(&self, port: PortId) -> Nanos {
        self.topology.port(port).busy_until
    }

    /// Sends `packet` out of `port`; see [`Fabric::transmit_into`].
    pub fn transmit(&mut self, now: Nanos, port: PortId, packet: Packet) -> Vec<Delivery> {
        let mut deliveries = Vec::new();
        self.transmit_into(now, port, packet, &mut deliveries);
        deliveries
    }

    /// Sends `packet` out of `port` at `now` and adds to `deliveries` where it arrives and when; the order is
    /// that of switch ports, not of time. What a subnet manager gets is not among them: the fabric sees to
    /// it, so look at [`Fabric::poll_at`] afterwards.
    ///
    /// A multicast packet goes to every port that its switches' tables name, except the one it came in by
    /// (IBA 18.2.4.3), so the sender never gets its own packet back: delivering it to the sender's other QPs
    /// of the group is the HCA's own business (IBA 10.5.2.1). So is a unicast packet to a LID of the sending
    /// port, which an HCA loops back without a switch: handed to the fabric, it is lost as
    /// [`DropReason::RouteLeadsBack`].
    pub fn transmit_into(
        &mut self,
        now: Nanos,
        port: PortId,
        packet: Packet,
        deliveries: &mut Vec<Delivery>,
    ) {
        if self.faults.is_empty() {
            self.send(now, port, 0, packet, deliveries);
        } else {
            let sent = self.faults.apply(&Transit { at: now, from: port, to: None, packet: &packet });
            if sent.is_empty() {
                self.drops.count(DropReason::Fault);
            }
            for (delay, packet) in sent {
                self.send(now, port, delay, packet, deliveries);
            }
        }
    }

    /// A delivery has arrived: call this when it is time. Counts it, unless the link went down while it was
    /// under way; then the packet is lost.
    pub fn receive(&mut self, delivery: &Delivery) -> Result<(), DropReason> {
        let port = self.topology.port_mut(delivery.port);
        if port.epoch != delivery.epoch || port.state < PortState::Armed {
            self.drops.count(DropReason::LinkLostInFlight);
            return Err(DropReason::LinkLostInFlight);
        }
        count_received(port, &delivery.packet);
        Ok(())
    }

    /// When [`Fabric::poll`] next has something to do, if ever.
    pub fn poll_at(&self) -> Option<Nanos> {
        if self.ready.is_empty() { self.agenda.keys().next().map(|&(at, _)| at) } else { Some(0) }
    }

    /// Does what is due until `now` and reports it, oldest first.
    pub fn poll(&mut self, now: Nanos) -> Vec<Output> {
        while let Some(entry) = self.agenda.first_entry() {
            let (at, _) = *entry.key();
            if at > now {
                break;
            }
            let task = entry.remove();
            self.perform(at, task);
        }
        std::mem::take(&mut self.ready)
    }

    fn perform(&mut self, at: Nanos, task: Task) {
        match task {
            Task::Report { port, event } => self.ready.push(Output::Event { at, port, event }),
            Task::Send { from, packet } => {
                let mut deliveries = Vec::new();
                self.transmit_into(at, from, packet, &mut deliveries);
                self.ready.extend(deliveries.into_iter().map(Output::Delivery));
            }
            Task::Serve(delivery) => {
                if self.receive(&delivery).is_ok() {
                    self.serve(at, &delivery);
                }
            }
            Task::Sweep { generation } => self.sweep(at, generation),
            Task::Promote { port, generation } => self.promote(at, port, generation),
        }
    }

    /// A packet for the manager at the port it came to.
    fn serve(&mut self, at: Nanos, delivery: &Delivery) {
        let Some((source, mad)) = Source::of(&delivery.packet) else { return };
        let replies = self.administer(at, delivery.port, &source, mad);
        for reply in replies {
            let packet = reply.packet(self.topology.port(delivery.port));
            self.schedule(reply.at, Task::Send { from: delivery.port, packet });
        }
    }

    pub(super) fn schedule(&mut self, at: Nanos, task: Task) {
        self.agenda.insert((at, self.next_task), task);
        self.next_task += 1;
    }

    pub(super) fn report(&mut self, at: Nanos, port: PortId, event: PortEvent) {
        self.schedule(at, Task::Report { port, event });
    }
}

/// Is shown every packet that an end node sends: when, by which port, and the packet.
pub type PacketTap = Box<dyn FnMut(Nanos, PortId, &Packet) + Send>;

/// Who watches the wire.
pub(super) struct Tap(pub(super) Option<PacketTap>);

impl std::fmt::Debug for Tap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "Tap(on)" } else { "Tap(off)" })
    }
}
