//! Why packets are lost, and how many were.

use std::collections::BTreeMap;

/// Why the fabric dropped a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// The sending port is not Active, so no data may leave it (IBA 7.2.7).
    SourceNotActive,
    /// A link on the way, or the receiving port, is not Active.
    LinkNotActive,
    /// The receiving port went down while the packet was under way.
    LinkLostInFlight,
    /// Too short for its headers, or the length in the LRH is wrong.
    Malformed,
    /// Longer than the MTU of a link on the way (IBA 7.7.8).
    TooLong,
    /// A virtual lane that the port does not have.
    BadVl,
    /// Variant CRC wrong.
    BadVcrc,
    /// Invariant CRC wrong.
    BadIcrc,
    /// A switch has no forwarding entry for the destination.
    NoRoute,
    /// The only entry leads back to where the packet came from.
    RouteLeadsBack,
    /// Forwarding entries form a loop.
    Loop,
    /// The port that got it does not have this LID.
    WrongLid,
    /// A switch port enforces partitions on packets coming in, and this one is not in any of the port's.
    PkeyAtSwitchIn,
    /// A switch port enforces partitions on packets going out, and this one is not in any of the port's.
    PkeyAtSwitchOut,
    /// The receiving port is not in the packet's partition.
    PkeyAtPort,
    /// A fault rule said so.
    Fault,
}

/// How many packets were dropped for each reason, over the whole fabric.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DropCounters {
    counts: BTreeMap<DropReason, u64>,
}

impl DropCounters {
    /// Packets dropped for `reason`.
    pub fn get(&self, reason: DropReason) -> u64 {
        self.counts.get(&reason).copied().unwrap_or(0)
    }

    /// Packets dropped for any reason.
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    /// Every reason that happened, with its count.
    pub fn iter(&self) -> impl Iterator<Item = (DropReason, u64)> + '_ {
        self.counts.iter().map(|(&reason, &count)| (reason, count))
    }

    pub(super) fn count(&mut self, reason: DropReason) {
        *self.counts.entry(reason).or_default() += 1;
    }
}
