//! What happens to a subnet from outside: links, managers and settings that change.

use super::config::{LidPolicy, Partition};
use crate::fabric::core::{Fabric, Task};
use crate::fabric::event::PortEvent;
use crate::fabric::ids::{Guid, Nanos, PKey};
use crate::fabric::topology::{NodeKind, PortId, PortState};

/// What a restarted manager remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart {
    /// Groups, members, subscriptions and LIDs (OpenSM with `sa_db_dump` and a LID file).
    Remember,
    /// Only the LIDs, as it finds them on the ports; groups and subscriptions are gone.
    ForgetGroups,
    /// Nothing: LIDs are assigned anew as well.
    ForgetAll,
}

impl Fabric {
    /// Pulls the cable at `port`, or plugs it in again. Both ends notice at once: their ports go Down or
    /// Init, and packets under way are lost. The subnet manager, told by a trap of the switch, sweeps.
    pub fn set_link(&mut self, now: Nanos, port: PortId, up: bool) {
        let Some(link) = self.topology.port(port).link else { return };
        if link.up == up {
            return;
        }
        for id in [port, link.peer] {
            let port = self.topology.port_mut(id);
            if let Some(link) = &mut port.link {
                link.up = up;
            }
            port.busy_until = 0;
            let event = if up {
                port.state = PortState::Init;
                PortEvent::Init
            } else {
                port.state = PortState::Down;
                port.epoch = port.epoch.wrapping_add(1);
                port.counters.link_downed += 1;
                PortEvent::Down
            };
            if let NodeKind::ChannelAdapter = self.topology.node(self.topology.port(id).node).kind {
                self.report(now, id, event);
            }
        }
        self.request_sweep(now, self.manager.config.sweep_time);
    }

    /// The master goes away and comes back `downtime` later. Until then nobody answers; then it sweeps, and
    /// asks every client to reregister. Nothing happens while it is away already: it comes back as was said then.
    pub fn restart_manager(&mut self, now: Nanos, restart: Restart, downtime: Nanos) {
        if self.manager.port.is_none() {
            return;
        }
        let Some(port) = self.stop_manager() else { return };
        if restart != Restart::Remember {
            self.manager.groups.clear();
            self.manager.subscriptions.clear();
        }
        if restart == Restart::ForgetAll {
            self.manager.lids.clear();
        }
        self.start_manager(now + downtime, port);
    }

    /// The master goes away and nobody takes its place. Returns where it was.
    pub fn stop_manager(&mut self) -> Option<PortId> {
        self.manager.generation += 1;
        self.manager.port.take()
    }

    /// A manager at `port` becomes master at `at` and sweeps. Nothing happens if no manager is there.
    pub fn start_manager(&mut self, at: Nanos, port: PortId) {
        if self.manager.candidates.contains(&port) {
            self.manager.generation += 1;
            let generation = self.manager.generation;
            self.schedule(at, Task::Promote { port, generation });
        }
    }

    /// The manager at `port` is master from now on, unless another was chosen since.
    pub(in crate::fabric) fn promote(&mut self, now: Nanos, port: PortId, generation: u64) {
        if generation == self.manager.generation {
            self.manager.port = Some(port);
            self.manager.first_sweep = true;
            self.manager.busy_until = now;
            self.request_sweep(now, self.manager.config.sweep_time);
        }
    }

    /// The next standby manager takes over: another LID and port to ask, and a database that is empty unless
    /// `with_database`. Returns whether there is a standby.
    pub fn hand_over(&mut self, now: Nanos, with_database: bool) -> bool {
        let candidates = &self.manager.candidates;
        let current = candidates.iter().position(|&port| Some(port) == self.manager.port);
        let next = current.map_or(0, |index| (index + 1) % candidates.len().max(1));
        let Some(&port) = candidates.get(next) else { return false };
        if Some(port) == self.manager.port {
            return false;
        }
        if !with_database {
            self.manager.groups.clear();
            self.manager.subscriptions.clear();
        }
        self.stop_manager();
        self.start_manager(now, port);
        true
    }

    /// Every port gets a new LID by `policy`.
    pub fn reassign_lids(&mut self, now: Nanos, policy: LidPolicy) {
        let old = std::mem::take(&mut self.manager.lids);
        self.manager.config.lid_policy = policy;
        if policy == LidPolicy::Sequential {
            // The same order would give the same LIDs again: move everybody up by one place, the last to the
            // front.
            let lids: Vec<_> = old.values().copied().collect();
            let shifted = lids.iter().cycle().skip(1).copied();
            self.manager.lids = old.keys().copied().zip(shifted).collect();
        }
        self.request_sweep(now, self.manager.config.sweep_time);
    }

    /// Sets the LID mask control of end ports, 0 to 7.
    pub fn set_lmc(&mut self, now: Nanos, lmc: u8) {
        self.manager.config.lmc = lmc.min(7);
        self.request_sweep(now, self.manager.config.sweep_time);
    }

    /// Changes the partitions, and with them P_Key tables.
    pub fn set_partitions(&mut self, now: Nanos, partitions: Vec<Partition>) {
        self.manager.config.partitions = partitions;
        self.request_sweep(now, self.manager.config.sweep_time);
    }

    /// Sets the P_Key table of one port by hand, whatever the partitions say; `None` leaves it to them again.
    pub fn set_pkey_table(&mut self, now: Nanos, port: PortId, table: Option<Vec<PKey>>) {
        match table {
            Some(table) => self.manager.pkey_overrides.insert(port, table),
            None => self.manager.pkey_overrides.remove(&port),
        };
        self.request_sweep(now, self.manager.config.sweep_time);
    }

    /// Sets the subnet timeout of every port.
    pub fn set_subnet_timeout(&mut self, now: Nanos, code: u8) {
        self.manager.config.subnet_timeout = code & 0x1F;
        self.request_sweep(now, self.manager.config.sweep_time);
    }

    /// Sets the subnet prefix, and with it every GID. Groups keep the members of the old GIDs until these
    /// leave or join again, since a client has to reregister anyway.
    pub fn set_subnet_prefix(&mut self, now: Nanos, prefix: u64) {
        self.manager.config.subnet_prefix = prefix;
        self.manager.reregister = true;
        self.request_sweep(now, self.manager.config.sweep_time);
    }

    /// Sets the GID table of a port after its default GID (alias GUIDs, IBA 14.2.5.5).
    pub fn set_alias_guids(&mut self, now: Nanos, id: PortId, aliases: &[Guid]) {
        let port = self.topology.port_mut(id);
        port.guids.truncate(1);
        port.guids.extend_from_slice(aliases);
        self.report(now, id, PortEvent::GidChange);
    }

    /// Asks every client to reregister, as after a restart that nobody noticed.
    pub fn request_reregistration(&mut self, now: Nanos) {
        self.manager.reregister = true;
        self.request_sweep(now, self.manager.config.sweep_time);
    }
}
