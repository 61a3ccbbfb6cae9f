//! Forwarding tables: shortest paths for unicast, one tree of switches for each multicast LID.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::fabric::core::Fabric;
use crate::fabric::ids::Lid;
use crate::fabric::topology::{NodeId, PortId, PortSet};

impl Fabric {
    /// Writes the linear forwarding table of every switch: for each LID the shortest way (OpenSM's Min Hop),
    /// and among equally short ways one chosen by the LID, so that LIDs of one port spread over them.
    pub(super) fn route_unicast(&mut self) {
        let switches = self.switches();
        let mut routes: Vec<(NodeId, Lid, u8)> = Vec::new();
        for &port in &self.manager.known {
            let target = self.topology.port(port);
            if !target.lid.is_unicast() {
                continue;
            }
            let lids = (0..1u16 << target.lmc).map(|offset| Lid(target.lid.0 + offset));
            let is_switch = self.topology.node(target.node).switch().is_some();
            // A switch is its own entry; a host enters the switches at the one it is cabled to.
            let (entry, entry_port) = if is_switch {
                (target.node, 0)
            } else {
                let Some(peer) = target.link.filter(|link| link.up).map(|link| link.peer) else { continue };
                let peer = self.topology.port(peer);
                (peer.node, peer.number)
            };
            let distance = self.distances(entry);
            for lid in lids {
                for &switch in &switches {
                    if switch == entry {
                        routes.push((switch, lid, entry_port));
                        continue;
                    }
                    let Some(&own) = distance.get(&switch) else { continue };
                    let next: Vec<u8> = self
                        .switch_neighbours(switch)
                        .filter(|(_, neighbour, _)| distance.get(neighbour).is_some_and(|&d| d + 1 == own))
                        .map(|(number, _, _)| number)
                        .collect();
                    if let Some(&number) = next.get(usize::from(lid.0) % next.len().max(1)) {
                        routes.push((switch, lid, number));
                    }
                }
            }
        }
        for &switch in &switches {
            if let Some(switch) = self.topology.node_mut(switch).switch_mut() {
                switch.clear_routes();
            }
        }
        for (switch, lid, number) in routes {
            if let Some(switch) = self.topology.node_mut(switch).switch_mut() {
                switch.set_route(lid, Some(number));
            }
        }
    }

    /// Writes the multicast forwarding tables of every switch for every group.
    pub(super) fn route_all_multicast(&mut self) {
        for switch in self.switches() {
            if let Some(switch) = self.topology.node_mut(switch).switch_mut() {
                switch.clear_multicast();
            }
        }
        let mlids: BTreeSet<Lid> = self.manager.groups.values().map(|group| group.mlid).collect();
        for mlid in mlids {
            self.route_multicast(mlid);
        }
    }

    /// Writes the entry of one multicast LID into every switch.
    ///
    /// The switches form a tree. A port of a switch is in the entry if a receiver is at it or behind it, and
    /// there is a member of any kind, who may send, on this side of it. So a send-only non-member's packets
    /// get out but none come back to it (IBA 15.2.5.17.1), and a port that never joined reaches nobody unless
    /// its switch is on the way between members.
    pub(in crate::fabric) fn route_multicast(&mut self, mlid: Lid) {
        let mut receivers: BTreeMap<NodeId, PortSet> = BTreeMap::new();
        let mut members: BTreeSet<NodeId> = BTreeSet::new();
        for group in self.manager.groups.values().filter(|group| group.mlid == mlid) {
            for member in group.members.values() {
                let Some(link) = self.topology.port(member.port).link.filter(|link| link.up) else {
                    continue;
                };
                let peer = self.topology.port(link.peer);
                members.insert(peer.node);
                if member.state.receives() {
                    receivers.entry(peer.node).or_default().insert(peer.number);
                }
            }
        }
        let switches = self.switches();
        let mut entries: BTreeMap<NodeId, PortSet> = switches
            .iter()
            .map(|&switch| (switch, receivers.get(&switch).copied().unwrap_or_default()))
            .collect();
        let tree = self.spanning_tree(mlid);
        // Children before parents: how many members and receivers each subtree holds.
        let mut below: BTreeMap<NodeId, (usize, usize)> = BTreeMap::new();
        let own = |node: &NodeId| {
            let receiving = receivers.get(node).map_or(0, |ports| ports.iter().count());
            (usize::from(members.contains(node)), receiving)
        };
        for edge in tree.iter().rev() {
            let (m, r) = own(&edge.child);
            let (bm, br) = below.get(&edge.child).copied().unwrap_or_default();
            let sum = (m + bm, r + br);
            below.insert(edge.child, sum);
            let parent = below.entry(edge.parent).or_default();
            *parent = (parent.0 + sum.0, parent.1 + sum.1);
        }
        let (all_members, all_receivers) =
            switches.iter().map(own).fold((0, 0), |sum, (m, r)| (sum.0 + m, sum.1 + r));
        for edge in &tree {
            let (m, r) = below.get(&edge.child).copied().unwrap_or_default();
            if r > 0 && all_members > m {
                entries.entry(edge.parent).or_default().insert(edge.parent_port);
            }
            if all_receivers > r && m > 0 {
                entries.entry(edge.child).or_default().insert(edge.child_port);
            }
        }
        for (switch, ports) in entries {
            if let Some(switch) = self.topology.node_mut(switch).switch_mut() {
                switch.set_multicast_ports(mlid, ports);
            }
        }
    }

    /// A tree over the switches that hang together, parents before children: breadth first from the switch
    /// whose farthest neighbour is nearest, parallel cables chosen by the multicast LID.
    fn spanning_tree(&self, mlid: Lid) -> Vec<Edge> {
        let mut tree = Vec::new();
        let mut reached = BTreeSet::new();
        let mut roots = self.switches();
        roots.sort_by_cached_key(|&switch| {
            (self.distances(switch).values().copied().max().unwrap_or(0), switch)
        });
        // More than one root only when the switches fall apart into islands.
        for root in roots {
            if !reached.insert(root) {
                continue;
            }
            let mut queue = VecDeque::from([root]);
            while let Some(parent) = queue.pop_front() {
                let mut cables: BTreeMap<NodeId, Vec<(u8, u8)>> = BTreeMap::new();
                for (number, neighbour, far) in self.switch_neighbours(parent) {
                    cables.entry(neighbour).or_default().push((number, far));
                }
                for (child, cables) in cables {
                    if reached.insert(child) {
                        let (parent_port, child_port) = cables[usize::from(mlid.0) % cables.len()];
                        tree.push(Edge { parent, parent_port, child, child_port });
                        queue.push_back(child);
                    }
                }
            }
        }
        tree
    }

    fn switches(&self) -> Vec<NodeId> {
        self.topology.node_ids().filter(|&node| self.topology.node(node).switch().is_some()).collect()
    }

    /// The switches at the other end of a switch's cables that are up: own port, switch, its port.
    fn switch_neighbours(&self, switch: NodeId) -> impl Iterator<Item = (u8, NodeId, u8)> + '_ {
        self.topology.node(switch).ports.iter().filter_map(|&id: &PortId| {
            let port = self.topology.port(id);
            let peer = self.topology.port(port.link.filter(|link| link.up)?.peer);
            self.topology.node(peer.node).switch().map(|_| (port.number, peer.node, peer.number))
        })
    }

    /// Hops from `from` to every switch that can be reached.
    fn distances(&self, from: NodeId) -> BTreeMap<NodeId, usize> {
        let mut distance = BTreeMap::from([(from, 0)]);
        let mut queue = VecDeque::from([from]);
        while let Some(switch) = queue.pop_front() {
            let next = distance[&switch] + 1;
            for (_, neighbour, _) in self.switch_neighbours(switch) {
                distance.entry(neighbour).or_insert_with(|| {
                    queue.push_back(neighbour);
                    next
                });
            }
        }
        distance
    }
}

/// A cable of the multicast tree.
struct Edge {
    parent: NodeId,
    parent_port: u8,
    child: NodeId,
    child_port: u8,
}
