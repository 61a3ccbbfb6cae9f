//! A sweep: find what there is, assign LIDs, write ports, program switches, raise ports to Active.

use std::collections::BTreeSet;

use super::config::IpoibGroup;
use super::group::Group;
use crate::fabric::core::{Fabric, Task};
use crate::fabric::event::PortEvent;
use crate::fabric::ids::{Gid, Guid, Lid, Nanos, PKey};
use crate::fabric::topology::{NodeId, NodeKind, PortId, PortState};
use crate::fabric::wire::sa::notice::Trap;

impl Fabric {
    /// Asks the master to sweep: its sweep is over `delay` after `now`.
    pub(in crate::fabric) fn request_sweep(&mut self, now: Nanos, delay: Nanos) {
        let generation = self.manager.generation;
        self.schedule(now + delay, Task::Sweep { generation });
    }

    /// The sweep itself, unless another manager has taken over since it was asked for.
    pub(in crate::fabric) fn sweep(&mut self, now: Nanos, generation: u64) {
        let Some(master) = self.manager.port else { return };
        if generation != self.manager.generation {
            return;
        }
        let found = self.discover(master);
        self.drop_unreachable(now, &found);
        self.assign_lids(now, &found);
        let master_lid = self.topology.port(master).lid;
        let new: BTreeSet<PortId> = found.difference(&self.manager.known).copied().collect();
        self.manager.known = found;
        for id in self.manager.known.clone() {
            self.configure_port(now, id, master_lid, new.contains(&id));
        }
        self.enforce_partitions();
        self.create_configured_groups();
        self.route_unicast();
        self.route_all_multicast();
        self.activate(now);
        for id in new {
            let gid = self.topology.port(id).default_gid();
            self.notify(now, Trap::GidInService(gid));
        }
        self.manager.first_sweep = false;
        self.manager.reregister = false;
        self.manager.sweeps += 1;
    }

    /// Ports with a LID of their own that the master reaches over links that are up: those of channel
    /// adapters and the management ports of switches.
    fn discover(&self, master: PortId) -> BTreeSet<PortId> {
        let mut found = BTreeSet::from([master]);
        let mut seen: BTreeSet<NodeId> = BTreeSet::new();
        let mut ahead = vec![master];
        while let Some(id) = ahead.pop() {
            let Some(link) = self.topology.port(id).link.filter(|link| link.up) else { continue };
            let peer = self.topology.port(link.peer);
            let node = self.topology.node(peer.node);
            if node.switch().is_none() {
                found.insert(link.peer);
            } else if seen.insert(peer.node) {
                found.extend(node.ports.first());
                ahead.extend(node.ports.iter().skip(1));
            }
        }
        found
    }

    /// What OpenSM's drop manager does to a port that is gone: out of every group, and a report of trap 65. A
    /// group that nothing keeps alive goes too.
    fn drop_unreachable(&mut self, now: Nanos, found: &BTreeSet<PortId>) {
        let gone: Vec<PortId> = self.manager.known.difference(found).copied().collect();
        for id in gone {
            let gid = self.topology.port(id).default_gid();
            self.notify(now, Trap::GidOutOfService(gid));
            self.forget_members(now, id);
        }
    }

    fn assign_lids(&mut self, now: Nanos, found: &BTreeSet<PortId>) {
        let mut taken: BTreeSet<Lid> = BTreeSet::new();
        let lmc = |fabric: &Self, id: PortId| {
            let node = fabric.topology.port(id).node;
            // OpenSM gives switches LMC 0 (lmc_esp0 FALSE).
            if fabric.topology.node(node).switch().is_some() { 0 } else { fabric.manager.config.lmc.min(7) }
        };
        for &id in found {
            let lmc = lmc(self, id);
            let guid = self.topology.port(id).guid;
            let lid = self.lid_for(guid, lmc, &taken).unwrap_or(Lid::NONE);
            if lid.is_unicast() {
                taken.extend((lid.0..lid.0 + (1 << lmc)).map(Lid));
            }
            let port = self.topology.port_mut(id);
            let (from, from_lmc) = (port.lid, port.lmc);
            (port.lid, port.lmc) = (lid, lmc);
            if from != lid || from_lmc != lmc {
                self.report(now, id, PortEvent::LidChange { from, to: lid });
            }
        }
    }

    fn configure_port(&mut self, now: Nanos, id: PortId, sm_lid: Lid, is_new: bool) {
        let table = self.pkey_table(id);
        let (prefix, timeout) = (self.manager.config.subnet_prefix, self.manager.config.subnet_timeout);
        let for_all = self.manager.first_sweep || self.manager.reregister;
        let port = self.topology.port_mut(id);
        let mut events = Vec::new();
        let sm_changed = port.sm_lid != sm_lid;
        if sm_changed {
            port.sm_lid = sm_lid;
            events.push(PortEvent::SmChange);
        }
        if port.subnet_prefix != prefix {
            port.subnet_prefix = prefix;
            events.push(PortEvent::GidChange);
        }
        if port.subnet_timeout != timeout {
            port.subnet_timeout = timeout;
            events.push(PortEvent::SubnetTimeout);
        }
        if port.pkeys != table {
            port.pkeys = table;
            events.push(PortEvent::PkeyChange);
        }
        // When OpenSM sets the bit: the LID of the master is news to the port, the master is in its first
        // sweep, or the port is (osm_lid_mgr.c, lid_mgr_set_physp_pi). A port without client reregistration
        // gets none.
        let supports = port.capability_mask & CAPABILITY_CLIENT_REREGISTRATION != 0;
        if supports && (sm_changed || for_all || is_new) {
            events.push(PortEvent::ClientReregister);
        }
        if let NodeKind::ChannelAdapter = self.topology.node(self.topology.port(id).node).kind {
            for event in events {
                self.report(now, id, event);
            }
        }
    }

    /// A switch port enforces the partitions of the end port behind it (OpenSM, `part_enforce both`).
    fn enforce_partitions(&mut self) {
        let enforce = self.manager.config.enforce_partitions;
        for id in self.topology.port_ids() {
            let port = self.topology.port(id);
            if self.topology.node(port.node).switch().is_none() || port.number == 0 {
                continue;
            }
            let behind = port.link.filter(|link| link.up).map(|link| link.peer).filter(|&peer| {
                let node = self.topology.port(peer).node;
                self.topology.node(node).switch().is_none()
            });
            let table = behind.map(|peer| self.topology.port(peer).pkeys.clone());
            let port = self.topology.port_mut(id);
            port.enforce_pkeys = enforce && table.is_some();
            if let Some(table) = table {
                port.pkeys = table;
            }
        }
    }

    /// The groups that partitions have from the start, where they are not there yet.
    pub(super) fn create_configured_groups(&mut self) {
        let wanted: Vec<(PKey, IpoibGroup)> = self
            .manager
            .config
            .partitions
            .iter()
            .filter_map(|partition| partition.ipoib.map(|group| (partition.pkey, group)))
            .collect();
        for (pkey, ipoib) in wanted {
            let mgid = ipoib.mgid(pkey);
            if self.manager.groups.contains_key(&mgid) {
                continue;
            }
            let Some(mlid) = self.free_mlid() else { continue };
            let group = Group {
                mgid,
                mlid,
                qkey: ipoib.qkey,
                pkey: PKey(pkey.0 | 0x8000),
                mtu: ipoib.mtu,
                rate: ipoib.rate,
                packet_lifetime: self.manager.config.packet_lifetime,
                sl: ipoib.sl,
                traffic_class: 0,
                flow_label: 0,
                hop_limit: 0,
                scope: ipoib.scope,
                well_known: true,
                members: std::collections::BTreeMap::new(),
            };
            self.manager.groups.insert(mgid, group);
        }
    }

    /// The lowest multicast LID that no group has.
    pub(in crate::fabric) fn free_mlid(&self) -> Option<Lid> {
        let taken: BTreeSet<Lid> = self.manager.groups.values().map(|group| group.mlid).collect();
        let (first, last) = self.manager.config.multicast_lids;
        (first.0..=last.0).map(Lid).find(|lid| lid.is_multicast() && !taken.contains(lid))
    }

    /// Takes a port out of every group.
    pub(super) fn forget_members(&mut self, now: Nanos, port: PortId) {
        let joined: Vec<(Gid, Gid)> = self
            .manager
            .groups
            .values()
            .flat_map(|group| group.members.iter().map(move |(&gid, member)| (group.mgid, gid, member.port)))
            .filter(|&(_, _, member)| member == port)
            .map(|(mgid, gid, _)| (mgid, gid))
            .collect();
        for (mgid, gid) in joined {
            self.remove_member(now, mgid, gid);
        }
    }

    /// Takes one member out of a group, and the group away if nothing keeps it alive then.
    pub(in crate::fabric) fn remove_member(&mut self, now: Nanos, mgid: Gid, port_gid: Gid) {
        let Some(group) = self.manager.groups.get_mut(&mgid) else { return };
        group.members.remove(&port_gid);
        self.settle_group(now, mgid);
    }

    /// Programs the switches for a group whose members changed, and removes it if nothing keeps it alive.
    pub(in crate::fabric) fn settle_group(&mut self, now: Nanos, mgid: Gid) {
        let Some(group) = self.manager.groups.get(&mgid) else { return };
        let mlid = group.mlid;
        if !group.is_alive() {
            self.notify(now, Trap::GroupDeleted(mgid));
            self.manager.groups.remove(&mgid);
        }
        self.route_multicast(mlid);
    }

    /// Raises both ends of every link that a sweep reached: Init to Armed to Active (IBA 7.2.7, 14.4.3).
    fn activate(&mut self, now: Nanos) {
        let nodes: BTreeSet<NodeId> =
            self.manager.known.iter().map(|&id| self.topology.port(id).node).collect();
        for id in self.topology.port_ids() {
            let port = self.topology.port(id);
            // Every other port of a channel adapter is in a subnet of its own until it is itself reached.
            let is_switch = self.topology.node(port.node).switch().is_some();
            let reached =
                if is_switch { nodes.contains(&port.node) } else { self.manager.known.contains(&id) };
            if !reached || port.state != PortState::Init || !port.link_up() {
                continue;
            }
            let is_host = matches!(self.topology.node(port.node).kind, NodeKind::ChannelAdapter);
            self.topology.port_mut(id).state = PortState::Active;
            if is_host {
                self.report(now, id, PortEvent::Armed);
                self.report(now, id, PortEvent::Active);
            }
        }
    }

    /// Whether `guid` is a port the manager knows, and which.
    pub(in crate::fabric) fn port_by_guid(&self, guid: Guid) -> Option<PortId> {
        self.manager.known.iter().copied().find(|&id| {
            let port = self.topology.port(id);
            port.guid == guid || port.guids.contains(&guid)
        })
    }
}

/// IsClientReregistrationSupported in PortInfo.CapabilityMask (IBA 14.2.5.6).
pub(super) const CAPABILITY_CLIENT_REREGISTRATION: u32 = 1 << 25;
