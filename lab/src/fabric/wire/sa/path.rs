//! PathRecord (IBA 15.2.5.16).

use super::selector::Selector;
use crate::fabric::ids::{Gid, Lid, PKey};
use crate::fabric::wire::bits::wire_format;

wire_format! {
    /// A path from one port to another.
    pub struct PathRecord, PathRecordView [64] {
        /// Service id, for quality of service.
        service_id / set_service_id: u64 = 0, 64;
        /// Destination.
        dgid / set_dgid: Gid = 64, 128;
        /// Source.
        sgid / set_sgid: Gid = 192, 128;
        /// Destination.
        dlid / set_dlid: Lid = 320, 16;
        /// Source.
        slid / set_slid: Lid = 336, 16;
        /// Path for raw packets.
        raw_traffic / set_raw_traffic: bool = 352, 1;
        /// Flow label for the GRH.
        flow_label / set_flow_label: u32 = 356, 20;
        /// Hop limit for the GRH.
        hop_limit / set_hop_limit: u8 = 376, 8;
        /// Traffic class for the GRH.
        traffic_class / set_traffic_class: u8 = 384, 8;
        /// Whether answers can go back the same way.
        reversible / set_reversible: bool = 392, 1;
        /// Most paths to return, in a request.
        num_paths / set_num_paths: u8 = 393, 7;
        /// Partition.
        pkey / set_pkey: PKey = 400, 16;
        /// Quality of service class.
        qos_class / set_qos_class: u16 = 416, 12;
        /// Service level.
        sl / set_sl: u8 = 428, 4;
        /// How [`Self::mtu`] is meant.
        mtu_selector / set_mtu_selector: Selector = 432, 2;
        /// Encoded MTU.
        mtu / set_mtu: u8 = 434, 6;
        /// How [`Self::rate`] is meant.
        rate_selector / set_rate_selector: Selector = 440, 2;
        /// Encoded rate.
        rate / set_rate: u8 = 442, 6;
        /// How [`Self::packet_lifetime`] is meant.
        packet_lifetime_selector / set_packet_lifetime_selector: Selector = 448, 2;
        /// Lifetime as a timeout code.
        packet_lifetime / set_packet_lifetime: u8 = 450, 6;
        /// Preference among paths, the lowest first.
        preference / set_preference: u8 = 456, 8;
    }
}

/// Component mask bits of a PathRecord.
pub mod mask {
    /// Upper and lower half of the service id.
    pub const SERVICE_ID: u64 = 3;
    /// Destination GID.
    pub const DGID: u64 = 1 << 2;
    /// Source GID.
    pub const SGID: u64 = 1 << 3;
    /// Destination LID.
    pub const DLID: u64 = 1 << 4;
    /// Source LID.
    pub const SLID: u64 = 1 << 5;
    /// Raw traffic.
    pub const RAW_TRAFFIC: u64 = 1 << 6;
    /// Flow label.
    pub const FLOW_LABEL: u64 = 1 << 8;
    /// Hop limit.
    pub const HOP_LIMIT: u64 = 1 << 9;
    /// Traffic class.
    pub const TRAFFIC_CLASS: u64 = 1 << 10;
    /// Reversible.
    pub const REVERSIBLE: u64 = 1 << 11;
    /// Number of paths.
    pub const NUM_PATHS: u64 = 1 << 12;
    /// Partition.
    pub const PKEY: u64 = 1 << 13;
    /// Quality of service class.
    pub const QOS_CLASS: u64 = 1 << 14;
    /// Service level.
    pub const SL: u64 = 1 << 15;
    /// MTU selector.
    pub const MTU_SELECTOR: u64 = 1 << 16;
    /// MTU.
    pub const MTU: u64 = 1 << 17;
    /// Rate selector.
    pub const RATE_SELECTOR: u64 = 1 << 18;
    /// Rate.
    pub const RATE: u64 = 1 << 19;
    /// Packet lifetime selector.
    pub const PACKET_LIFETIME_SELECTOR: u64 = 1 << 20;
    /// Packet lifetime.
    pub const PACKET_LIFETIME: u64 = 1 << 21;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::wire::bits::wire_format_tests;

    wire_format_tests! { path_record_both_ways: PathRecord, PathRecordView; }
}
