//! A packet's way: out of a port, over links, through switches, into end ports.

use super::core::{Delivery, Fabric, Task};
use super::drops::DropReason;
use super::fault::Transit;
use super::ids::{Lid, Nanos, PKey};
use super::rate::serialisation;
use super::topology::{NodeId, NodeKind, Port, PortId, PortState};
use super::wire::Packet;
use super::wire::packet::VCRC_LEN;

/// Packets in a switch that wait for an output before their input's credits are used up, in nanoseconds of
/// the output link. What is more holds up the input link, as credit-based flow control does (IBA 7.9).
const INPUT_BUFFER_NS: Nanos = 2_000;

/// Longest chain of switches a packet may cross: more is a loop in the forwarding tables.
const MAX_HOPS: usize = 32;

/// Headers and CRCs that may be around a payload of one MTU (IBA 7.7.8: packet length up to MTU + 124, plus
/// VCRC).
const MAX_OVERHEAD: usize = 124 + VCRC_LEN;

/// When a packet is where: its first byte, its last byte, and how many more switches it may cross.
#[derive(Clone, Copy)]
struct Front {
    head: Nanos,
    tail: Nanos,
    hops: usize,
}

/// What stays the same along the way of one packet.
struct Way<'a> {
    from: PortId,
    delay: Nanos,
    deliveries: &'a mut Vec<Delivery>,
}

impl Fabric {
    pub(super) fn drop_packet(&mut self, reason: DropReason) {
        self.drops.count(reason);
    }

    /// Sends a packet that the rules for senders have passed.
    pub(super) fn send(
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
        self.cross(from, Front { head: now, tail: now, hops: MAX_HOPS }, packet, &mut way);
    }

    /// Sends `packet` over the link of `out`. `front` is when its first byte could go and when its last is
    /// there to be sent (later, when it is still coming in). Returns how long it waited for the link.
    fn cross(&mut self, out: PortId, front: Front, packet: Packet, way: &mut Way<'_>) -> Nanos {
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
        let start = port.busy_until.max(front.head).max(front.tail.saturating_sub(time));
        let waited = start - front.head;
        port.counters.xmit_wait += waited;
        port.busy_until = start + time;
        count_sent(port, &packet);
        let there = Front { head: start + link.latency, tail: start + time + link.latency, hops: front.hops };
        let held = self.arrive(link.peer, there, packet, way);
        // A packet that found no room ahead keeps this link busy until it has moved on.
        if held > INPUT_BUFFER_NS {
            self.topology.port_mut(out).busy_until += held - INPUT_BUFFER_NS;
        }
        waited
    }

    /// A packet comes to `port`. Returns how long it is held up there.
    fn arrive(&mut self, port: PortId, front: Front, packet: Packet, way: &mut Way<'_>) -> Nanos {
        let Some(dlid) = self.check_link_layer(port, &packet) else { return 0 };
        let node = self.topology.port(port).node;
        match &self.topology.node(node).kind {
            NodeKind::Switch(_) => self.forward(port, dlid, front, packet, way),
            NodeKind::ChannelAdapter | NodeKind::Manager => {
                self.deliver(port, dlid, front.tail, packet, way);
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
        front: Front,
        packet: Packet,
        way: &mut Way<'_>,
    ) -> Nanos {
        count_received(self.topology.port_mut(input), &packet);
        let Port { node, number, .. } = *self.topology.port(input);
        if !self.switch_takes(input, &packet, DropReason::PkeyAtSwitchIn) {
            return 0;
        }
        let Some(hops) = front.hops.checked_sub(1) else {
            self.relay_error(input, DropReason::Loop);
            return 0;
        };
        let Some(switch) = self.topology.node(node).switch() else { return 0 };
        let front = Front { head: front.head + switch.latency, tail: front.tail + switch.latency, hops };
        if dlid.is_multicast() {
            let outputs = switch.multicast_ports(dlid);
            if outputs.is_empty() {
                self.relay_error(input, DropReason::NoRoute);
            }
            let mut held = 0;
            for output in outputs.iter().filter(|&output| output != number && output != 0) {
                held = held.max(self.leave(node, output, front, packet.clone(), way));
            }
            return held;
        }
        match switch.route(dlid) {
            // The management port has no agent on QP1 here, so what is sent to it goes nowhere.
            None | Some(0) => self.relay_error(input, DropReason::NoRoute),
            Some(output) if output == number => self.relay_error(input, DropReason::RouteLeadsBack),
            Some(output) => return self.leave(node, output, front, packet, way),
        }
        0
    }

    /// A packet leaves a switch by one of its ports.
    fn leave(&mut self, node: NodeId, output: u8, front: Front, packet: Packet, way: &mut Way<'_>) -> Nanos {
        match self.topology.port_of(node, output) {
            Some(port) if self.switch_takes(port, &packet, DropReason::PkeyAtSwitchOut) => {
                self.cross(port, front, packet, way)
            }
            Some(_) => 0,
            None => {
                self.drop_packet(DropReason::NoRoute);
                0
            }
        }
    }

    /// Partition enforcement by a switch port (IBA 10.9.4), which holds the keys of the end port behind it
    /// (OpenSM). Coming in, a key need only be one of them, since a limited member sends with its limited
    /// key; going out, the two must match as at the end port itself.
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

fn words(packet: &Packet) -> u64 {
    (packet.len().saturating_sub(VCRC_LEN) / 4) as u64
}

fn is_multicast(packet: &Packet) -> bool {
    packet.dlid().is_some_and(Lid::is_multicast)
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

pub(super) fn count_received(port: &mut Port, packet: &Packet) {
    port.counters.rcv_data += words(packet);
    port.counters.rcv_packets += 1;
    if is_multicast(packet) {
        port.counters.multicast_rcv_packets += 1;
    } else {
        port.counters.unicast_rcv_packets += 1;
    }
}
