//! A multicast group and who is in it.

use std::collections::BTreeMap;

use crate::fabric::ids::{Gid, Lid, PKey, QKey};
use crate::fabric::rate::{Mtu, Rate};
use crate::fabric::topology::PortId;

/// How a port is in a group: a set of the three bits of MCMemberRecord.JoinState (IBA 15.2.5.17).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JoinState(pub u8);

impl JoinState {
    /// Sends and receives, and keeps the group alive.
    pub const FULL: Self = Self(1);
    /// Sends and receives, but does not keep the group alive.
    pub const NON: Self = Self(2);
    /// Only sends, and does not keep the group alive.
    pub const SEND_ONLY_NON: Self = Self(4);
    /// Only sends, but keeps the group alive (an optional extension, bit 3).
    pub const SEND_ONLY_FULL: Self = Self(8);

    /// Whether every bit of `other` is set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether no bit is set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether packets of the group are to reach the port.
    pub const fn receives(self) -> bool {
        self.0 & (Self::FULL.0 | Self::NON.0) != 0
    }

    /// Whether the group lives as long as this member.
    pub const fn keeps_alive(self) -> bool {
        self.0 & (Self::FULL.0 | Self::SEND_ONLY_FULL.0) != 0
    }
}

/// A port in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// The port.
    pub port: PortId,
    /// How it is in.
    pub state: JoinState,
    /// Whether another port joined on its behalf.
    pub proxy: bool,
}

/// A multicast group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its address.
    pub mgid: Gid,
    /// The multicast LID it got.
    pub mlid: Lid,
    /// Queue key.
    pub qkey: QKey,
    /// Partition.
    pub pkey: PKey,
    /// MTU.
    pub mtu: Mtu,
    /// Rate.
    pub rate: Rate,
    /// PacketLifeTime.
    pub packet_lifetime: u8,
    /// Service level.
    pub sl: u8,
    /// Traffic class.
    pub traffic_class: u8,
    /// Flow label.
    pub flow_label: u32,
    /// Hop limit.
    pub hop_limit: u8,
    /// Scope, that of its MGID unless the creator said otherwise.
    pub scope: u8,
    /// Made by the manager out of its configuration: it stays without members.
    pub well_known: bool,
    /// Members by port GID.
    pub members: BTreeMap<Gid, Member>,
}

impl Group {
    /// Whether anything keeps the group alive.
    pub fn is_alive(&self) -> bool {
        self.well_known || self.members.values().any(|member| member.state.keeps_alive())
    }
}
