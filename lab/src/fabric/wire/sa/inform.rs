//! InformInfo: a subscription to reports (IBA 13.4.8.3).

use crate::fabric::ids::{Gid, Lid, Qpn};
use crate::fabric::wire::bits::wire_format;

wire_format! {
    /// What to be told about, and where.
    pub struct InformInfo, InformInfoView [36] {
        /// Only about this port; zero for any.
        gid / set_gid: Gid = 0, 128;
        /// Only about LIDs from here; 0xFFFF for any.
        lid_range_begin / set_lid_range_begin: Lid = 128, 16;
        /// To here.
        lid_range_end / set_lid_range_end: Lid = 144, 16;
        /// 1 for a trap of the specification, 0 for a vendor's.
        is_generic / set_is_generic: u8 = 176, 8;
        /// 1 to subscribe, 0 to unsubscribe.
        subscribe / set_subscribe: u8 = 184, 8;
        /// Kind of notice; 0xFFFF for any.
        notice_type / set_notice_type: u16 = 192, 16;
        /// Number of the trap; 0xFFFF for any.
        trap_number / set_trap_number: u16 = 208, 16;
        /// QP to report to.
        qpn / set_qpn: Qpn = 224, 24;
        /// Time the subscriber needs to answer, as a timeout code.
        response_time_value / set_response_time_value: u8 = 251, 5;
        /// Who raises it: 1 channel adapter, 2 switch, 4 class manager; 0xFFFFFF for any.
        producer_type / set_producer_type: u32 = 264, 24;
    }
}

impl InformInfo {
    /// Matches every trap number and notice type.
    pub const ANY: u16 = 0xFFFF;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::wire::bits::wire_format_tests;

    wire_format_tests! { inform_info_both_ways: InformInfo, InformInfoView; }
}
