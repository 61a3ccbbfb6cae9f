//! A port: what the subnet manager has set on it, its link, its state and its counters.

use super::NodeId;
use crate::fabric::counters::PortCounters;
use crate::fabric::ids::{Gid, Guid, Lid, Nanos, PKey};
use crate::fabric::rate::{LinkSpeed, LinkWidth, Mtu, Rate};

/// A port of a topology: its place in [`super::Topology::ports`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub(in crate::fabric) usize);

impl PortId {
    /// The place in [`super::Topology::ports`].
    pub const fn index(self) -> usize {
        self.0
    }
}

/// Logical state of a port, in the encoding of PortInfo (IBA 7.2.7, 14.2.5.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum PortState {
    /// No link.
    Down = 1,
    /// Link up; only subnet management packets pass.
    Init = 2,
    /// Configured; may receive but not send data.
    Armed = 3,
    /// Everything passes.
    Active = 4,
}

/// The cable at a port.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// The port at the other end.
    pub peer: PortId,
    /// Lanes in use.
    pub width: LinkWidth,
    /// Speed of each lane.
    pub speed: LinkSpeed,
    /// Time of flight.
    pub latency: Nanos,
    /// Whether the physical link is up. Both ends agree.
    pub up: bool,
}

/// A port.
#[derive(Clone, Debug)]
pub struct Port {
    /// The node it belongs to.
    pub node: NodeId,
    /// Its number on the node.
    pub number: u8,
    /// Port GUID. The external ports of a switch share that of its management port.
    pub guid: Guid,
    /// The cable, if there is one. The management port of a switch has none.
    pub link: Option<Link>,
    /// Logical state.
    pub state: PortState,
    /// Base LID; [`Lid::NONE`] until the subnet manager assigns one.
    pub lid: Lid,
    /// LID mask control: the port answers to `1 << lmc` LIDs from `lid` on.
    pub lmc: u8,
    /// LID of the master subnet manager.
    pub sm_lid: Lid,
    /// Service level to reach it.
    pub sm_sl: u8,
    /// Prefix of the subnet, in GID 0 and every other GID of the table.
    pub subnet_prefix: u64,
    /// Longest time a packet crosses the subnet, as a timeout code (IBA 14.2.5.6, SubnetTimeOut).
    pub subnet_timeout: u8,
    /// Largest MTU the port can do.
    pub mtu_cap: Mtu,
    /// MTU in use on its link (NeighborMTU).
    pub mtu: Mtu,
    /// Virtual lanes in use for data: VL 0 to this, exclusive.
    pub data_vls: u8,
    /// Partition keys; an invalid entry ([`PKey::is_valid`]) is an empty slot.
    pub pkeys: Vec<PKey>,
    /// Interface identifiers of the GID table; entry 0 is the port GUID. See [`Port::gid`].
    pub guids: Vec<Guid>,
    /// Capability mask of PortInfo (IBA 14.2.5.6).
    pub capability_mask: u32,
    /// Whether a switch port drops what is not in its partitions (IBA 14.2.5.6, PartitionEnforcement).
    pub enforce_pkeys: bool,
    /// What it has counted.
    pub counters: PortCounters,
    /// Until when the link is busy with packets this port sends.
    pub(in crate::fabric) busy_until: Nanos,
    /// How often the link went down: packets under way from before are lost.
    pub(in crate::fabric) epoch: u32,
}

impl Port {
    /// The GID at `index` of the table, `None` past its end or for an empty entry.
    pub fn gid(&self, index: usize) -> Option<Gid> {
        let guid = *self.guids.get(index)?;
        (guid != Guid(0)).then(|| Gid::new(self.subnet_prefix, guid))
    }

    /// The default GID.
    pub fn default_gid(&self) -> Gid {
        Gid::new(self.subnet_prefix, self.guid)
    }

    /// Every GID of the table.
    pub fn gids(&self) -> impl Iterator<Item = Gid> + '_ {
        (0..self.guids.len()).filter_map(|index| self.gid(index))
    }

    /// Whether the port answers to `lid`, counting the LIDs that LMC gives it.
    pub fn has_lid(&self, lid: Lid) -> bool {
        self.lid.is_unicast() && lid.base(self.lmc) == self.lid
    }

    /// Whether any entry of the table matches `pkey` (IBA 10.9.3).
    pub fn matches_pkey(&self, pkey: PKey) -> bool {
        self.pkeys.iter().any(|entry| entry.matches(pkey))
    }

    /// Whether the port is in the partition of `pkey`, as full or as limited member.
    pub fn has_partition(&self, pkey: PKey) -> bool {
        self.pkeys.iter().any(|entry| entry.is_valid() && entry.partition() == pkey.partition())
    }

    /// Place in the table of the entry of the same partition as `pkey`, preferring the same membership.
    pub fn pkey_index(&self, pkey: PKey) -> Option<usize> {
        let position = |wanted: &dyn Fn(PKey) -> bool| {
            self.pkeys.iter().position(|&entry| entry.is_valid() && wanted(entry))
        };
        position(&|entry| entry == pkey).or_else(|| position(&|entry| entry.partition() == pkey.partition()))
    }

    /// Whether the cable is there and up.
    pub fn link_up(&self) -> bool {
        self.link.is_some_and(|link| link.up)
    }

    /// Rate of the link in the encoding of path records, `None` without a cable.
    pub fn rate(&self) -> Option<Rate> {
        self.link.map(|link| Rate::of(link.width, link.speed))
    }
}
