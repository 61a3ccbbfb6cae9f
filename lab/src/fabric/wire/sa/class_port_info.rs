//! ClassPortInfo (IBA 13.4.8.1).

use crate::fabric::ids::{Gid, Lid, PKey, QKey, Qpn};
use crate::fabric::wire::bits::wire_format;

wire_format! {
    /// What a management class's agent can do, and where it sends traps.
    pub struct ClassPortInfo, ClassPortInfoView [72] {
        /// MAD base version.
        base_version / set_base_version: u8 = 0, 8;
        /// Class version.
        class_version / set_class_version: u8 = 8, 8;
        /// Capabilities.
        capability_mask / set_capability_mask: u16 = 16, 16;
        /// More capabilities, specific to the class.
        capability_mask2 / set_capability_mask2: u32 = 32, 27;
        /// Longest time to an answer, as a timeout code.
        response_time_value / set_response_time_value: u8 = 59, 5;
        /// Where to ask instead.
        redirect_gid / set_redirect_gid: Gid = 64, 128;
        /// Traffic class for it.
        redirect_traffic_class / set_redirect_traffic_class: u8 = 192, 8;
        /// Service level for it.
        redirect_sl / set_redirect_sl: u8 = 200, 4;
        /// Flow label for it.
        redirect_flow_label / set_redirect_flow_label: u32 = 204, 20;
        /// LID of it.
        redirect_lid / set_redirect_lid: Lid = 224, 16;
        /// Partition of it.
        redirect_pkey / set_redirect_pkey: PKey = 240, 16;
        /// QP of it.
        redirect_qp / set_redirect_qp: Qpn = 264, 24;
        /// Queue key of it.
        redirect_qkey / set_redirect_qkey: QKey = 288, 32;
        /// Where traps go.
        trap_gid / set_trap_gid: Gid = 320, 128;
        /// Traffic class for it.
        trap_traffic_class / set_trap_traffic_class: u8 = 448, 8;
        /// Service level for it.
        trap_sl / set_trap_sl: u8 = 456, 4;
        /// Flow label for it.
        trap_flow_label / set_trap_flow_label: u32 = 460, 20;
        /// LID of it.
        trap_lid / set_trap_lid: Lid = 480, 16;
        /// Partition of it.
        trap_pkey / set_trap_pkey: PKey = 496, 16;
        /// Hop limit for it.
        trap_hop_limit / set_trap_hop_limit: u8 = 512, 8;
        /// QP of it.
        trap_qp / set_trap_qp: Qpn = 520, 24;
        /// Queue key of it.
        trap_qkey / set_trap_qkey: QKey = 544, 32;
    }
}

/// Capability mask bits of the subnet administrator (IBA 15.2.4, table of ClassPortInfo:CapabilityMask).
pub mod capability {
    /// SubnAdmGet and SubnAdmSet of Notice.
    pub const GET_SET_NOTICE: u16 = 1 << 1;
    /// Multicast groups can be joined and left.
    pub const UD_MULTICAST: u16 = 1 << 9;
    /// PortInfoRecords can be matched by single bits of their capability mask.
    pub const PORT_INFO_CAPABILITY_MATCH: u16 = 1 << 13;
}

/// Bits of CapabilityMask2.
pub mod capability2 {
    /// Groups can be joined as send-only full member.
    pub const SEND_ONLY_FULL_MEMBER: u32 = 1 << 12;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::wire::bits::wire_format_tests;

    wire_format_tests! { class_port_info_both_ways: ClassPortInfo, ClassPortInfoView; }
}
