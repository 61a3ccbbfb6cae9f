//! Wiring nodes: the free-form builder, and the default of hosts around one switch or a two-level tree.

use super::{Link, Node, NodeId, NodeKind, Port, PortId, PortState, Switch};
use crate::fabric::counters::PortCounters;
use crate::fabric::ids::{Gid, Guid, Lid, Nanos, PKey};
use crate::fabric::rate::{LinkSpeed, LinkWidth, Mtu};

/// Why a topology cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopologyError {
    /// A switch has at most 254 external ports, a channel adapter 1 to 254.
    PortCount(usize),
    /// No such port number on the node.
    NoSuchPort(NodeId, u8),
    /// The port has a cable already.
    PortInUse(NodeId, u8),
    /// More hosts than the default topology takes.
    TooManyHosts(usize),
}

impl std::fmt::Display for TopologyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::PortCount(count) => write!(f, "a node cannot have {count} ports"),
            Self::NoSuchPort(node, port) => write!(f, "node {} has no port {port}", node.0),
            Self::PortInUse(node, port) => write!(f, "port {port} of node {} has a cable", node.0),
            Self::TooManyHosts(count) => write!(f, "{count} hosts are more than {}", Topology::MAX_HOSTS),
        }
    }
}

impl std::error::Error for TopologyError {}

/// How links and switches of the default topology are.
#[derive(Clone, Copy, Debug)]
pub struct LinkSettings {
    /// Lanes.
    pub width: LinkWidth,
    /// Speed of a lane.
    pub speed: LinkSpeed,
    /// Time of flight of one cable.
    pub latency: Nanos,
    /// First byte in to first byte out of a switch.
    pub switch_latency: Nanos,
    /// Largest MTU of every port.
    pub mtu: Mtu,
}

impl Default for LinkSettings {
    /// 4x EDR over 3 m of copper, a switch of 90 ns, MTU 4096.
    fn default() -> Self {
        Self { width: LinkWidth::X4, speed: LinkSpeed::Edr, latency: 15, switch_latency: 90, mtu: Mtu::B4096 }
    }
}

/// Nodes, ports and cables.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    nodes: Vec<Node>,
    ports: Vec<Port>,
    hosts: Vec<PortId>,
}

/// What a plain HCA reports (IBA 14.2.5.6): traps, automatic migration, SL mapping, system image GUID,
/// extended speeds, CM, vendor class, capability change notices, client reregistration.
const CAPABILITY_MASK: u32 = 0x0251_4868;

impl Topology {
    /// Most hosts that [`Topology::default_for`] wires.
    pub const MAX_HOSTS: usize = 256;
    /// External ports of a switch of the default topology.
    pub const SWITCH_RADIX: usize = 36;
    /// OUI of the GUIDs of the default topology's nodes: a locally administered one, so that they are
    /// nobody's.
    const OUI: u64 = 0x0202_c900_0000_0000;

    /// No nodes.
    pub fn new() -> Self {
        Self::default()
    }

    /// `hosts` hosts of one port each and a subnet manager: around one switch while its ports last, else a
    /// tree of leaf switches of 32 nodes, each with four cables to one spine switch. Host `n` is
    /// [`Topology::host`] `(n)`.
    pub fn default_for(hosts: usize, settings: LinkSettings) -> Result<Self, TopologyError> {
        const LEAF_NODES: usize = 32;
        const UPLINKS: u8 = 4;
        if hosts > Self::MAX_HOSTS {
            return Err(TopologyError::TooManyHosts(hosts));
        }
        let mut topology = Self::new();
        let mut ends = Vec::with_capacity(hosts + 1);
        for index in 0..hosts {
            let guid = Guid(Self::OUI | (index as u64 + 1) << 8);
            let node = topology.add_channel_adapter(&format!("host{index} HCA-1"), guid, 1, settings.mtu)?;
            ends.push(node);
        }
        ends.push(topology.add_manager("subnet manager", Guid(Self::OUI | 0xFE_0000), settings.mtu)?);
        let switch_guid = |index: usize| Guid(Self::OUI | 0xFF_0000 | (index as u64) << 8);
        if ends.len() <= Self::SWITCH_RADIX {
            let switch = topology.add_switch("switch", switch_guid(0), Self::SWITCH_RADIX, settings)?;
            for (node, port) in ends.into_iter().zip(1..) {
                topology.connect((node, 1), (switch, port), settings)?;
            }
        } else {
            let leaves = ends.len().div_ceil(LEAF_NODES);
            let spine = topology.add_switch("spine", switch_guid(0), Self::SWITCH_RADIX, settings)?;
            let mut spine_port = 1;
            for (index, members) in ends.chunks(LEAF_NODES).enumerate().take(leaves) {
                let name = format!("leaf{index}");
                let leaf =
                    topology.add_switch(&name, switch_guid(index + 1), Self::SWITCH_RADIX, settings)?;
                for (&node, port) in members.iter().zip(1..) {
                    topology.connect((node, 1), (leaf, port), settings)?;
                }
                for uplink in 1..=UPLINKS {
                    if spine_port > Self::SWITCH_RADIX as u8 {
                        break;
                    }
                    topology.connect((leaf, LEAF_NODES as u8 + uplink), (spine, spine_port), settings)?;
                    spine_port += 1;
                }
            }
        }
        Ok(topology)
    }

    /// Adds a channel adapter with `ports` ports. Port n has GUID `guid + n`.
    pub fn add_channel_adapter(
        &mut self,
        description: &str,
        guid: Guid,
        ports: usize,
        mtu: Mtu,
    ) -> Result<NodeId, TopologyError> {
        let node = self.add_end_node(description, guid, ports, mtu, NodeKind::ChannelAdapter)?;
        self.hosts.extend(&self.nodes[node.0].ports);
        Ok(node)
    }

    /// Adds a node with one port on which a subnet manager lives.
    pub fn add_manager(&mut self, description: &str, guid: Guid, mtu: Mtu) -> Result<NodeId, TopologyError> {
        self.add_end_node(description, guid, 1, mtu, NodeKind::Manager)
    }

    fn add_end_node(
        &mut self,
        description: &str,
        guid: Guid,
        ports: usize,
        mtu: Mtu,
        kind: NodeKind,
    ) -> Result<NodeId, TopologyError> {
        if !(1..=254).contains(&ports) {
            return Err(TopologyError::PortCount(ports));
        }
        let node = self.add_node(description, guid, kind);
        for number in 1..=ports {
            let port_guid = Guid(guid.0 + number as u64);
            self.add_port(node, number as u8, port_guid, mtu);
        }
        Ok(node)
    }

    /// Adds a switch with `ports` external ports.
    pub fn add_switch(
        &mut self,
        description: &str,
        guid: Guid,
        ports: usize,
        settings: LinkSettings,
    ) -> Result<NodeId, TopologyError> {
        if !(1..=254).contains(&ports) {
            return Err(TopologyError::PortCount(ports));
        }
        let switch = Switch::new(settings.switch_latency);
        let node = self.add_node(description, guid, NodeKind::Switch(Box::new(switch)));
        for number in 0..=ports {
            self.add_port(node, number as u8, guid, settings.mtu);
        }
        Ok(node)
    }

    /// Lays a cable, up from the start, between two ports given as (node, port number).
    pub fn connect(
        &mut self,
        a: (NodeId, u8),
        b: (NodeId, u8),
        settings: LinkSettings,
    ) -> Result<(), TopologyError> {
        let (a, b) = (self.free_port(a)?, self.free_port(b)?);
        let mtu = self.ports[a.0].mtu_cap.min(self.ports[b.0].mtu_cap);
        for (from, peer) in [(a, b), (b, a)] {
            let LinkSettings { width, speed, latency, .. } = settings;
            let port = &mut self.ports[from.0];
            port.link = Some(Link { peer, width, speed, latency, up: true });
            port.mtu = mtu;
            port.state = PortState::Init;
        }
        Ok(())
    }

    /// Every node.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Every port.
    pub fn ports(&self) -> &[Port] {
        &self.ports
    }

    /// The ports of channel adapters, in the order in which they were added.
    pub fn hosts(&self) -> &[PortId] {
        &self.hosts
    }

    /// The port of the `index`-th channel adapter port.
    pub fn host(&self, index: usize) -> Option<PortId> {
        self.hosts.get(index).copied()
    }

    /// A node.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0]
    }

    /// A port.
    pub fn port(&self, id: PortId) -> &Port {
        &self.ports[id.0]
    }

    /// The ids of every port.
    pub fn port_ids(&self) -> impl Iterator<Item = PortId> + use<> {
        (0..self.ports.len()).map(PortId)
    }

    /// The ids of every node.
    pub fn node_ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes.len()).map(NodeId)
    }

    /// The port with number `number` of a node.
    pub fn port_of(&self, node: NodeId, number: u8) -> Option<PortId> {
        let node = &self.nodes[node.0];
        let index = match node.kind {
            NodeKind::Switch(_) => usize::from(number),
            NodeKind::ChannelAdapter | NodeKind::Manager => usize::from(number).checked_sub(1)?,
        };
        node.ports.get(index).copied()
    }

    pub(in crate::fabric) fn port_mut(&mut self, id: PortId) -> &mut Port {
        &mut self.ports[id.0]
    }

    pub(in crate::fabric) fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id.0]
    }

    fn free_port(&self, (node, number): (NodeId, u8)) -> Result<PortId, TopologyError> {
        let port = self.port_of(node, number).ok_or(TopologyError::NoSuchPort(node, number))?;
        if self.nodes[node.0].switch().is_some() && number == 0 {
            return Err(TopologyError::NoSuchPort(node, number));
        }
        if self.ports[port.0].link.is_some() {
            return Err(TopologyError::PortInUse(node, number));
        }
        Ok(port)
    }

    fn add_node(&mut self, description: &str, guid: Guid, kind: NodeKind) -> NodeId {
        let description = description.to_owned();
        self.nodes.push(Node { description, guid, kind, ports: Vec::new() });
        NodeId(self.nodes.len() - 1)
    }

    fn add_port(&mut self, node: NodeId, number: u8, guid: Guid, mtu_cap: Mtu) {
        let is_switch = self.nodes[node.0].switch().is_some();
        // The management port of a switch has no link to train: it is there as soon as the switch is.
        let state = if is_switch && number == 0 { PortState::Active } else { PortState::Down };
        self.nodes[node.0].ports.push(PortId(self.ports.len()));
        self.ports.push(Port {
            node,
            number,
            guid,
            link: None,
            state,
            lid: Lid::NONE,
            lmc: 0,
            sm_lid: Lid::NONE,
            sm_sl: 0,
            subnet_prefix: Gid::LINK_LOCAL_PREFIX,
            subnet_timeout: 18,
            mtu_cap,
            mtu: mtu_cap,
            data_vls: 8,
            pkeys: vec![PKey::DEFAULT],
            guids: vec![guid],
            capability_mask: CAPABILITY_MASK,
            enforce_pkeys: false,
            counters: PortCounters::default(),
            busy_until: 0,
            epoch: 0,
        });
    }
}
