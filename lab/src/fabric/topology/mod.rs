//! What a fabric is made of: nodes, ports, links, and the builder that wires them.

pub mod builder;
pub mod port;
pub mod switch;

pub use builder::{LinkSettings, Topology, TopologyError};
pub use port::{Link, Port, PortId, PortState};
pub use switch::{PortSet, Switch};

use super::ids::Guid;

/// A node of a topology: its place in [`Topology::nodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(super) usize);

impl NodeId {
    /// The place in [`Topology::nodes`].
    pub const fn index(self) -> usize {
        self.0
    }
}

/// What a node is.
#[derive(Clone, Debug)]
pub enum NodeKind {
    /// A host's channel adapter.
    ChannelAdapter,
    /// A channel adapter whose port is a subnet manager's: the fabric itself answers what is sent to it.
    Manager,
    /// A switch, with its forwarding tables.
    Switch(Box<Switch>),
}

/// A node: a device with a node GUID and ports.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it calls itself, the NodeDescription (IBA 14.2.5.2).
    pub description: String,
    /// Node GUID.
    pub guid: Guid,
    /// What it is.
    pub kind: NodeKind,
    /// Its ports, by port number: a channel adapter's start at 1 (so the first is at index 0), a switch's at
    /// 0, its management port.
    pub ports: Vec<PortId>,
}

impl Node {
    /// The switch, if it is one.
    pub fn switch(&self) -> Option<&Switch> {
        match &self.kind {
            NodeKind::Switch(switch) => Some(switch),
            NodeKind::ChannelAdapter | NodeKind::Manager => None,
        }
    }

    pub(super) fn switch_mut(&mut self) -> Option<&mut Switch> {
        match &mut self.kind {
            NodeKind::Switch(switch) => Some(switch),
            NodeKind::ChannelAdapter | NodeKind::Manager => None,
        }
    }
}
