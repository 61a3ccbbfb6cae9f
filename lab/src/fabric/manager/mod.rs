//! The subnet manager: what it knows, what it is asked to do, and its sweeps.
//!
//! It does what OpenSM does by default, where IBA leaves a choice. It has no SMPs: a sweep takes
//! [`ManagerConfig::sweep_time`] and then writes what it decided into ports and switches at once.

pub mod config;
pub mod group;
mod lids;
mod operations;
mod partitions;
mod routing;
mod sweep;

pub use config::{IpoibGroup, LidPolicy, ManagerConfig, Members, Partition};
pub use group::{Group, JoinState, Member};
pub use operations::Restart;

use std::collections::{BTreeMap, BTreeSet};

use super::administrator::Subscription;
use super::ids::{Gid, Guid, Lid, PKey};
use super::topology::{NodeKind, PortId, Topology};

/// The subnet manager and the database of its subnet administrator.
#[derive(Debug)]
pub struct Manager {
    /// How it is set up now.
    pub(super) config: ManagerConfig,
    /// The port of the master; `None` while there is none.
    pub(super) port: Option<PortId>,
    /// Ports of every manager, the standby ones included.
    pub(super) candidates: Vec<PortId>,
    /// Grows whenever another manager takes over or one restarts: what an earlier one planned is void.
    pub(super) generation: u64,
    /// Whether the next sweep is the first of this generation, after which every client is to reregister.
    pub(super) first_sweep: bool,
    /// Whether the next sweep is to ask every client to reregister.
    pub(super) reregister: bool,
    /// Base LID by port GUID, kept so that a port that comes back gets its old one.
    pub(super) lids: BTreeMap<Guid, Lid>,
    /// Ports that a sweep has found and that have not gone since.
    pub(super) known: BTreeSet<PortId>,
    /// Multicast groups by MGID.
    pub(super) groups: BTreeMap<Gid, Group>,
    /// Subscriptions to reports.
    pub(super) subscriptions: Vec<Subscription>,
    /// P_Key tables that were set by hand, which partitions no longer decide.
    pub(super) pkey_overrides: BTreeMap<PortId, Vec<PKey>>,
    /// Requests that came in, by when they were answered: what decides whether the administrator is busy.
    pub(super) busy_until: super::ids::Nanos,
    /// Sweeps done.
    pub(super) sweeps: u64,
    /// Transaction id of the next report.
    pub(super) next_report: u64,
}

impl Manager {
    pub(super) fn new(topology: &Topology, config: ManagerConfig) -> Self {
        let candidates: Vec<_> = topology
            .nodes()
            .iter()
            .filter(|node| matches!(node.kind, NodeKind::Manager))
            .flat_map(|node| node.ports.iter().copied())
            .collect();
        Self {
            config,
            port: candidates.first().copied(),
            candidates,
            generation: 0,
            first_sweep: true,
            reregister: false,
            lids: BTreeMap::new(),
            known: BTreeSet::new(),
            groups: BTreeMap::new(),
            subscriptions: Vec::new(),
            pkey_overrides: BTreeMap::new(),
            busy_until: 0,
            sweeps: 0,
            next_report: 1,
        }
    }

    /// How it is set up.
    pub fn config(&self) -> &ManagerConfig {
        &self.config
    }

    /// The port of the master, `None` while there is none.
    pub fn port(&self) -> Option<PortId> {
        self.port
    }

    /// Multicast groups, by MGID.
    pub fn groups(&self) -> &BTreeMap<Gid, Group> {
        &self.groups
    }

    /// Sweeps done since the start.
    pub fn sweeps(&self) -> u64 {
        self.sweeps
    }
}
