//! The fabric: packets from port to port, and the agenda of what the subnet manager does when.

use std::collections::BTreeMap;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::administrator::Source;
use super::drops::{DropCounters, DropReason};
use super::event::PortEvent;
use super::fault::{Effect, FaultGuard, Faults, Transit};
use super::ids::{Lid, Nanos, PKey};
use super::manager::{Manager, ManagerConfig};
use super::rate::serialisation;
use super::topology::{NodeKind, Port, PortId, PortState, Topology};
use super::wire::Packet;
use super::wire::lrh::Lrh;
use super::wire::packet::VCRC_LEN;

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
    epoch: u32,
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
    /// A sweep of the subnet starts: `generation` tells whether the manager that wanted it is still in charge.
    Sweep { generation: u64 },
    /// A manager becomes master.
    Promote { port: PortId, generation: u64 },
}

/// Packets in a switch that wait for an output before their input's credits are used up, in nanoseconds of the
/// output link. What is more holds up the input link, as credit-based flow control does (IBA 7.9).
const INPUT_BUFFER_NS: Nanos = 2_000;

/// Longest chain of switches a packet may cross: more is a loop in the forwarding tables.
const MAX_HOPS: usize = 32;

/// Headers and CRCs that may be around a payload of one MTU (IBA 7.7.8: packet length up to MTU + 124, plus VCRC).
const MAX_OVERHEAD: usize = 124 + VCRC_LEN;

/// A fabric: nodes and cables, the subnet manager, faults, counters.
#[derive(Debug)]
pub struct Fabric {
    pub(super) topology: Topology,
    pub(super) manager: Manager,
    pub(super) rng: ChaCha8Rng,
    faults: Faults,
    tap: Tap,
    drops: DropCounters,
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

    /// Shows every packet that an end node sends, the subnet manager included, to `tap`, as it goes on the wire: after
    /// the fault rules for senders, before anything that may lose it. `None` takes the tap away.
    pub fn set_tap(&mut self, tap: Option<Box<dyn FnMut(Nanos, PortId, &Packet) + Send>>) {
        self.tap = Tap(tap);
    }

    /// Counts a packet that an HCA refused for its queue key, in Q_KeyViolations of its port.
    pub fn count_qkey_violation(&mut self, port: PortId) {
        self.topology.port_mut(port).counters.qkey_violations += 1;
    }

    /// Counts a packet that an HCA refused because its QP is in another partition, in P_KeyViolations of its port.
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

    /// Sends `packet` out of `port` at `now` and adds to `deliveries` where it arrives and when; the order is that
    /// of switch ports, not of time. What a subnet manager gets is not among them: the fabric sees to it, so look
    /// at [`Fabric::poll_at`] afterwards.
    ///
    /// A multicast packet goes to every port that its switches' tables name, except the one it came in by (IBA
    /// 18.2.4.3), so the sender never gets its own packet back: delivering it to the sender's other QPs of the
    /// group is the HCA's own business (IBA 10.5.2.1). So is a unicast packet to a LID of the sending port, which
    /// an HCA loops back without a switch: handed to the fabric, it is lost as [`DropReason::RouteLeadsBack`].
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

    /// A delivery has arrived: call this when it is time. Counts it, unless the link went down while it was under
    /// way; then the packet is lost.
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

    fn drop_packet(&mut self, reason: DropReason) {
        self.drops.count(reason);
    }

    fn send(
        &mut self,
        now: Nanos,
        from: PortId,
        delay: Nanos,
        packet: Packet,
        deliveries: &mut Vec<Delivery>,
    ) {
        if self.topology.port(from).state != PortState::Active {
            self.topology.port_mut(from).counters.xmit_discards += 1;
            return self.drop_packet(DropReason::SourceNotActive);
        }
        if let Some(tap) = &mut self.tap.0 {
            tap(now, from, &packet);
        }
        let mut way = Way { from, delay, deliveries };
        self.cross(from, now, now, packet, MAX_HOPS, &mut way);
    }

    /// Sends `packet` over the link of `out`. Its first byte could go at `head`; its last is there to be sent at
    /// `tail` (later than `head` when it is still coming in). Returns how long it waited for the link.
    fn cross(
        &mut self,
        out: PortId,
        head: Nanos,
        tail: Nanos,
        packet: Packet,
        hops: usize,
        way: &mut Way<'_>,
    ) -> Nanos {
        let len = packet.len();
        let port = self.topology.port_mut(out);
        let link = match port.link {
            Some(link) if link.up && port.state >= PortState::Armed => link,
            _ => {
                port.counters.xmit_discards += 1;
                self.drop_packet(DropReason::LinkNotActive);
                return 0;
            }
        };
        if len > port.mtu.bytes() + MAX_OVERHEAD {
            port.counters.xmit_discards += 1;
            self.drop_packet(DropReason::TooLong);
            return 0;
        }
        let time = serialisation(link.width, link.speed, len);
        let start = port.busy_until.max(head).max(tail.saturating_sub(time));
        let waited = start - head;
        port.counters.xmit_wait += waited;
        port.busy_until = start + time;
        count_sent(port, &packet);
        let (first, last) = (start + link.latency, start + time + link.latency);
        let held = self.arrive(link.peer, first, last, packet, hops, way);
        // A packet that found no room ahead keeps this link busy until it has moved on.
        if held > INPUT_BUFFER_NS {
            self.topology.port_mut(out).busy_until += held - INPUT_BUFFER_NS;
        }
        waited
    }

    /// A packet's first byte is at `port` at `head`, its last at `tail`. Returns how long it is held up there.
    fn arrive(
        &mut self,
        port: PortId,
        head: Nanos,
        tail: Nanos,
        packet: Packet,
        hops: usize,
        way: &mut Way<'_>,
    ) -> Nanos {
        let Some(dlid) = self.check_link_layer(port, &packet) else { return 0 };
        let node = self.topology.port(port).node;
        match &self.topology.node(node).kind {
            NodeKind::Switch(_) => self.forward(port, dlid, head, tail, packet, hops, way),
            NodeKind::ChannelAdapter | NodeKind::Manager => {
                                self.deliver(port, dlid, tail, packet, way);
                0
            }
        }
    }

    /// What any port checks of a packet that comes in (IBA 7.3). Returns its destination.
    fn check_link_layer(&mut self, id: PortId, packet: &Packet) -> Option<Lid> {
        let port = self.topology.port(id);
        let reason = match packet.lrh() {
            _ if port.state < PortState::Armed => DropReason::LinkNotActive,
            Err(_) => DropReason::Malformed,
            Ok(lrh) if usize::from(lrh.packet_length()) * 4 + VCRC_LEN != packet.len() => {
                DropReason::Malformed
            }
            Ok(_) if !packet.vcrc_ok() => DropReason::BadVcrc,
            Ok(lrh) if lrh.vl() >= port.data_vls => DropReason::BadVl,
            Ok(lrh) => return Some(lrh.dlid()),
        };
        self.topology.port_mut(id).counters.rcv_errors += 1;
        self.drop_packet(reason);
        None
    }

    /// A switch passes a packet on.
    fn forward(
        &mut self,
        input: PortId,
        dlid: Lid,
        head: Nanos,
        tail: Nanos,
        packet: Packet,
        hops: usize,
        way: &mut Way<'_>,
    ) -> Nanos {
        count_received(self.topology.port_mut(input), &packet);
        let Port { node, number, .. } = *self.topology.port(input);
        if !self.switch_takes(input, &packet, DropReason::PkeyAtSwitchIn) {
            return 0;
        }
        let Some(hops) = hops.checked_sub(1) else {
            self.relay_error(input, DropReason::Loop);
            return 0;
        };
        let Some(switch) = self.topology.node(node).switch() else { return 0 };
        let head = head + switch.latency;
        let tail = tail + switch.latency;
        if dlid.is_multicast() {
            let outputs = switch.multicast_ports(dlid);
            if outputs.is_empty() {
                self.relay_error(input, DropReason::NoRoute);
            }
            let mut held = 0;
            for output in outputs.iter().filter(|&output| output != number && output != 0) {
                held = held.max(self.leave(node, output, head, tail, packet.clone(), hops, way));
            }
            return held;
        }
        match switch.route(dlid) {
            // The management port has no agent on QP1 here, so what is sent to it goes nowhere.
            None | Some(0) => self.relay_error(input, DropReason::NoRoute),
            Some(output) if output == number => self.relay_error(input, DropReason::RouteLeadsBack),
            Some(output) => return self.leave(node, output, head, tail, packet, hops, way),
        }
        0
    }

    /// A packet leaves a switch by one of its ports.
    fn leave(
        &mut self,
        node: super::topology::NodeId,
        output: u8,
        head: Nanos,
        tail: Nanos,
        packet: Packet,
        hops: usize,
        way: &mut Way<'_>,
    ) -> Nanos {
        match self.topology.port_of(node, output) {
            Some(port) if self.switch_takes(port, &packet, DropReason::PkeyAtSwitchOut) => {
                self.cross(port, head, tail, packet, hops, way)
            }
            Some(_) => 0,
            None => {
                self.drop_packet(DropReason::NoRoute);
                0
            }
        }
    }

    /// Partition enforcement by a switch port (IBA 10.9.4), which holds the keys of the end port behind it (OpenSM).
    /// Coming in, a key need only be one of them, since a limited member sends with its limited key; going out, the
    /// two must match as at the end port itself.
    fn switch_takes(&mut self, id: PortId, packet: &Packet, reason: DropReason) -> bool {
        let port = self.topology.port(id);
        let takes = |pkey: PKey| match reason {
            DropReason::PkeyAtSwitchIn => port.has_partition(pkey),
            _ => port.matches_pkey(pkey),
        };
        if !port.enforce_pkeys || packet.pkey().is_none_or(takes) {
            return true;
        }
        let counters = &mut self.topology.port_mut(id).counters;
        match reason {
            DropReason::PkeyAtSwitchIn => counters.rcv_constraint_errors += 1,
            _ => counters.xmit_constraint_errors += 1,
        }
        self.drop_packet(reason);
        false
    }

    fn relay_error(&mut self, input: PortId, reason: DropReason) {
        self.topology.port_mut(input).counters.rcv_switch_relay_errors += 1;
        self.drop_packet(reason);
    }

    /// A packet reaches an end node.
    fn deliver(&mut self, port: PortId, dlid: Lid, at: Nanos, packet: Packet, way: &mut Way<'_>) {
        if self.faults.is_empty() {
            return self.accept(port, dlid, at + way.delay, packet, way);
        }
        let at = at + way.delay;
        let arriving = self.faults.apply(&Transit { at, from: way.from, to: Some(port), packet: &packet });
        if arriving.is_empty() {
            self.drop_packet(DropReason::Fault);
        }
        for (delay, packet) in arriving {
            // A rule may have changed anything, so look again.
            if let Some(dlid) = self.check_link_layer(port, &packet) {
                self.accept(port, dlid, at + delay, packet, way);
            }
        }
    }

    /// What an end node's port checks (IBA 7.3, 9.6, 10.9.3), then the delivery.
    fn accept(&mut self, id: PortId, dlid: Lid, at: Nanos, packet: Packet, way: &mut Way<'_>) {
        let port = self.topology.port_mut(id);
        let reason = if !dlid.is_multicast() && !port.has_lid(dlid) {
            port.counters.rcv_errors += 1;
            DropReason::WrongLid
        } else if !packet.icrc_ok() {
            port.counters.rcv_errors += 1;
            DropReason::BadIcrc
        } else if packet.pkey().is_some_and(|pkey| !port.matches_pkey(pkey)) {
            port.counters.pkey_violations += 1;
            DropReason::PkeyAtPort
        } else {
            let delivery = Delivery { at, port: id, packet, epoch: port.epoch };
            if let NodeKind::Manager = self.topology.node(self.topology.port(id).node).kind {
                self.schedule(at, Task::Serve(delivery));
            } else {
                way.deliveries.push(delivery);
            }
            return;
        };
        self.drop_packet(reason);
    }
}

/// Who watches the wire.
struct Tap(Option<Box<dyn FnMut(Nanos, PortId, &Packet) + Send>>);

impl std::fmt::Debug for Tap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "Tap(on)" } else { "Tap(off)" })
    }
}

/// What stays the same along the way of one packet.
struct Way<'a> {
    from: PortId,
    delay: Nanos,
    deliveries: &'a mut Vec<Delivery>,
}

fn words(packet: &Packet) -> u64 {
    (packet.len().saturating_sub(VCRC_LEN) / 4) as u64
}

fn is_multicast(packet: &Packet) -> bool {
    packet.without_crcs().len() >= Lrh::LEN && packet.dlid().is_some_and(Lid::is_multicast)
}

fn count_sent(port: &mut Port, packet: &Packet) {
    port.counters.xmit_data += words(packet);
    port.counters.xmit_packets += 1;
    if is_multicast(packet) {
        port.counters.multicast_xmit_packets += 1;
    } else {
        port.counters.unicast_xmit_packets += 1;
    }
}

fn count_received(port: &mut Port, packet: &Packet) {
    port.counters.rcv_data += words(packet);
    port.counters.rcv_packets += 1;
    if is_multicast(packet) {
        port.counters.multicast_rcv_packets += 1;
    } else {
        port.counters.unicast_rcv_packets += 1;
    }
}
