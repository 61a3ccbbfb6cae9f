//! MCMemberRecord (IBA 15.2.5.17).

use super::selector::Selector;
use crate::fabric::ids::{Gid, Lid, PKey, QKey};
use crate::fabric::wire::bits::wire_format;

wire_format! {
    /// A port's membership of a multicast group, and the group's attributes.
    pub struct McMemberRecord, McMemberRecordView [52] {
        /// The group.
        mgid / set_mgid: Gid = 0, 128;
        /// The port.
        port_gid / set_port_gid: Gid = 128, 128;
        /// Queue key.
        qkey / set_qkey: QKey = 256, 32;
        /// Multicast LID.
        mlid / set_mlid: Lid = 288, 16;
        /// How [`Self::mtu`] is meant.
        mtu_selector / set_mtu_selector: Selector = 304, 2;
        /// Encoded MTU.
        mtu / set_mtu: u8 = 306, 6;
        /// Traffic class.
        traffic_class / set_traffic_class: u8 = 312, 8;
        /// Partition.
        pkey / set_pkey: PKey = 320, 16;
        /// How [`Self::rate`] is meant.
        rate_selector / set_rate_selector: Selector = 336, 2;
        /// Encoded rate.
        rate / set_rate: u8 = 338, 6;
        /// How [`Self::packet_lifetime`] is meant.
        packet_lifetime_selector / set_packet_lifetime_selector: Selector = 344, 2;
        /// Lifetime as a timeout code.
        packet_lifetime / set_packet_lifetime: u8 = 346, 6;
        /// Service level.
        sl / set_sl: u8 = 352, 4;
        /// Flow label.
        flow_label / set_flow_label: u32 = 356, 20;
        /// Hop limit.
        hop_limit / set_hop_limit: u8 = 376, 8;
        /// Scope of the group.
        scope / set_scope: u8 = 384, 4;
        /// Join state bits: full 1, non-member 2, send-only non-member 4, send-only full 8.
        join_state / set_join_state: u8 = 388, 4;
        /// Joined by another port on this one's behalf.
        proxy_join / set_proxy_join: bool = 392, 1;
    }
}

/// Component mask bits of an MCMemberRecord.
pub mod mask {
    /// Group.
    pub const MGID: u64 = 1;
    /// Port.
    pub const PORT_GID: u64 = 1 << 1;
    /// Queue key.
    pub const QKEY: u64 = 1 << 2;
    /// Multicast LID.
    pub const MLID: u64 = 1 << 3;
    /// MTU selector.
    pub const MTU_SELECTOR: u64 = 1 << 4;
    /// MTU.
    pub const MTU: u64 = 1 << 5;
    /// Traffic class.
    pub const TRAFFIC_CLASS: u64 = 1 << 6;
    /// Partition.
    pub const PKEY: u64 = 1 << 7;
    /// Rate selector.
    pub const RATE_SELECTOR: u64 = 1 << 8;
    /// Rate.
    pub const RATE: u64 = 1 << 9;
    /// Packet lifetime selector.
    pub const PACKET_LIFETIME_SELECTOR: u64 = 1 << 10;
    /// Packet lifetime.
    pub const PACKET_LIFETIME: u64 = 1 << 11;
    /// Service level.
    pub const SL: u64 = 1 << 12;
    /// Flow label.
    pub const FLOW_LABEL: u64 = 1 << 13;
    /// Hop limit.
    pub const HOP_LIMIT: u64 = 1 << 14;
    /// Scope.
    pub const SCOPE: u64 = 1 << 15;
    /// Join state.
    pub const JOIN_STATE: u64 = 1 << 16;
    /// Proxy join.
    pub const PROXY_JOIN: u64 = 1 << 17;

    /// What a join must have.
    pub const JOIN: u64 = MGID | PORT_GID | JOIN_STATE;
    /// What a join that creates the group must have (IBA o15-0.2.3).
    pub const CREATE: u64 = JOIN | QKEY | TRAFFIC_CLASS | PKEY | FLOW_LABEL | SL;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::wire::bits::wire_format_tests;

    wire_format_tests! { mcmember_record_both_ways: McMemberRecord, McMemberRecordView; }
}
