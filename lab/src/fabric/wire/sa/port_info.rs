//! PortInfo (IBA 14.2.5.6) and PortInfoRecord (IBA 15.2.5.3).

use crate::fabric::ids::Lid;
use crate::fabric::wire::bits::wire_format;

wire_format! {
    /// The attributes of a port.
    pub struct PortInfo, PortInfoView [64] {
        /// Management key.
        m_key / set_m_key: u64 = 0, 64;
        /// Subnet prefix.
        gid_prefix / set_gid_prefix: u64 = 64, 64;
        /// Base LID.
        lid / set_lid: Lid = 128, 16;
        /// LID of the master subnet manager.
        master_sm_lid / set_master_sm_lid: Lid = 144, 16;
        /// Capabilities.
        capability_mask / set_capability_mask: u32 = 160, 32;
        /// Diagnostic code.
        diag_code / set_diag_code: u16 = 192, 16;
        /// Lease period of the management key.
        m_key_lease_period / set_m_key_lease_period: u16 = 208, 16;
        /// Port number.
        local_port_num / set_local_port_num: u8 = 224, 8;
        /// Enabled widths.
        link_width_enabled / set_link_width_enabled: u8 = 232, 8;
        /// Supported widths.
        link_width_supported / set_link_width_supported: u8 = 240, 8;
        /// Width in use.
        link_width_active / set_link_width_active: u8 = 248, 8;
        /// Supported speeds.
        link_speed_supported / set_link_speed_supported: u8 = 256, 4;
        /// Logical state.
        port_state / set_port_state: u8 = 260, 4;
        /// Physical state: 2 polling, 5 link up.
        port_physical_state / set_port_physical_state: u8 = 264, 4;
        /// Physical state after the link went down: 2 polling.
        link_down_default_state / set_link_down_default_state: u8 = 268, 4;
        /// Protection by the management key.
        m_key_protect_bits / set_m_key_protect_bits: u8 = 272, 2;
        /// LID mask control.
        lmc / set_lmc: u8 = 277, 3;
        /// Speed in use.
        link_speed_active / set_link_speed_active: u8 = 280, 4;
        /// Enabled speeds.
        link_speed_enabled / set_link_speed_enabled: u8 = 284, 4;
        /// Encoded MTU in use on the link.
        neighbor_mtu / set_neighbor_mtu: u8 = 288, 4;
        /// Service level to the subnet manager.
        master_sm_sl / set_master_sm_sl: u8 = 292, 4;
        /// Encoded number of virtual lanes there are.
        vl_cap / set_vl_cap: u8 = 296, 4;
        /// Kind of initialisation asked for.
        init_type / set_init_type: u8 = 300, 4;
        /// Limit of high priority in VL arbitration.
        vl_high_limit / set_vl_high_limit: u8 = 304, 8;
        /// Entries of the high-priority VL arbitration table.
        vl_arbitration_high_cap / set_vl_arbitration_high_cap: u8 = 312, 8;
        /// Entries of the low-priority VL arbitration table.
        vl_arbitration_low_cap / set_vl_arbitration_low_cap: u8 = 320, 8;
        /// Kind of initialisation done.
        init_type_reply / set_init_type_reply: u8 = 328, 4;
        /// Encoded largest MTU.
        mtu_cap / set_mtu_cap: u8 = 332, 4;
        /// Packets dropped in sequence before a VL stalls.
        vl_stall_count / set_vl_stall_count: u8 = 336, 3;
        /// Time at the head of the queue.
        hoq_life / set_hoq_life: u8 = 339, 5;
        /// Encoded number of virtual lanes in use.
        operational_vls / set_operational_vls: u8 = 344, 4;
        /// Partitions enforced on packets in.
        partition_enforcement_inbound / set_partition_enforcement_inbound: bool = 348, 1;
        /// Partitions enforced on packets out.
        partition_enforcement_outbound / set_partition_enforcement_outbound: bool = 349, 1;
        /// Raw packets filtered in.
        filter_raw_inbound / set_filter_raw_inbound: bool = 350, 1;
        /// Raw packets filtered out.
        filter_raw_outbound / set_filter_raw_outbound: bool = 351, 1;
        /// Packets with a wrong management key.
        m_key_violations / set_m_key_violations: u16 = 352, 16;
        /// Packets with a wrong partition key.
        p_key_violations / set_p_key_violations: u16 = 368, 16;
        /// Packets with a wrong queue key.
        q_key_violations / set_q_key_violations: u16 = 384, 16;
        /// Entries of the GID table.
        guid_cap / set_guid_cap: u8 = 400, 8;
        /// Set by the manager to ask for reregistration.
        client_reregister / set_client_reregister: bool = 408, 1;
        /// Multicast P_Key traps suppressed.
        multicast_pkey_trap_suppression / set_multicast_pkey_trap_suppression: u8 = 409, 2;
        /// Subnet timeout code.
        subnet_timeout / set_subnet_timeout: u8 = 411, 5;
        /// Response time code.
        resp_time_value / set_resp_time_value: u8 = 419, 5;
        /// Threshold of local physical errors.
        local_phy_errors / set_local_phy_errors: u8 = 424, 4;
        /// Threshold of overrun errors.
        overrun_errors / set_overrun_errors: u8 = 428, 4;
        /// Credit hint.
        max_credit_hint / set_max_credit_hint: u16 = 432, 16;
        /// Round trip latency of the link.
        link_round_trip_latency / set_link_round_trip_latency: u32 = 456, 24;
        /// More capabilities.
        capability_mask2 / set_capability_mask2: u16 = 480, 16;
        /// Extended speed in use.
        link_speed_ext_active / set_link_speed_ext_active: u8 = 496, 4;
        /// Supported extended speeds.
        link_speed_ext_supported / set_link_speed_ext_supported: u8 = 500, 4;
        /// Enabled extended speeds.
        link_speed_ext_enabled / set_link_speed_ext_enabled: u8 = 507, 5;
    }
}

wire_format! {
    /// What identifies a PortInfoRecord; PortInfo follows.
    pub struct PortInfoRecordKey, PortInfoRecordKeyView [4] {
        /// LID of the port, or of the switch that has it.
        lid / set_lid: Lid = 0, 16;
        /// Port number.
        port_num / set_port_num: u8 = 16, 8;
        /// Options.
        options / set_options: u8 = 24, 8;
    }
}

/// PortInfoRecord: LID, port number, PortInfo.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortInfoRecord {
    /// Which port.
    pub key: PortInfoRecordKey,
    /// Its attributes.
    pub info: PortInfo,
}

impl PortInfoRecord {
    /// Length on the wire in bytes.
    pub const LEN: usize = PortInfoRecordKey::LEN + PortInfo::LEN;

    /// Reads the record at the start of `buffer`.
    pub fn parse_slice(buffer: &[u8]) -> Result<Self, crate::fabric::wire::Truncated> {
        let key = PortInfoRecordKey::parse_slice(buffer)?;
        let info = PortInfo::parse_slice(&buffer[PortInfoRecordKey::LEN..])?;
        Ok(Self { key, info })
    }

    /// The record as bytes.
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        let (key, info) = bytes.split_at_mut(PortInfoRecordKey::LEN);
        key.copy_from_slice(&self.key.to_bytes());
        info.copy_from_slice(&self.info.to_bytes());
        bytes
    }
}

/// Component mask bits of a PortInfoRecord: those by which this administrator selects.
pub mod mask {
    /// LID of the record.
    pub const LID: u64 = 1;
    /// Port number.
    pub const PORT_NUM: u64 = 1 << 1;
    /// Options.
    pub const OPTIONS: u64 = 1 << 2;
    /// The bit of the first component of PortInfo: component n of it is at `PORT_INFO << n`.
    pub const PORT_INFO: u64 = 1 << 3;
    /// GID prefix.
    pub const GID_PREFIX: u64 = 1 << 4;
    /// Base LID.
    pub const BASE_LID: u64 = 1 << 5;
    /// LID of the master subnet manager.
    pub const MASTER_SM_LID: u64 = 1 << 6;
    /// Capability mask.
    pub const CAPABILITY_MASK: u64 = 1 << 7;
    /// Port number of PortInfo.
    pub const LOCAL_PORT_NUM: u64 = 1 << 10;
    /// Link width active.
    pub const LINK_WIDTH_ACTIVE: u64 = 1 << 13;
    /// Port state.
    pub const PORT_STATE: u64 = 1 << 15;
    /// Physical state.
    pub const PORT_PHYSICAL_STATE: u64 = 1 << 16;
    /// LMC.
    pub const LMC: u64 = 1 << 20;
    /// Link speed active.
    pub const LINK_SPEED_ACTIVE: u64 = 1 << 21;
    /// Neighbour MTU.
    pub const NEIGHBOR_MTU: u64 = 1 << 23;
    /// Largest MTU.
    pub const MTU_CAP: u64 = 1 << 31;
    /// Length of the GID table.
    pub const GUID_CAP: u64 = 1 << 42;
    /// Subnet timeout.
    pub const SUBNET_TIMEOUT: u64 = 1 << 45;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::wire::bits::wire_format_tests;

    wire_format_tests! {
        port_info_both_ways: PortInfo, PortInfoView;
        port_info_record_key_both_ways: PortInfoRecordKey, PortInfoRecordKeyView;
    }

    /// IBA 15.2.5.3: PortInfo starts at byte 4 of the record.
    #[test]
    fn record_layout() {
        let record = PortInfoRecord {
            key: PortInfoRecordKey { lid: Lid(7), port_num: 1, options: 0 },
            info: PortInfo { lid: Lid(7), lmc: 3, ..PortInfo::default() },
        };
        let bytes = record.to_bytes();
        assert_eq!(bytes[..4], [0, 7, 1, 0]);
        assert_eq!(bytes[20..22], [0, 7]);
        assert_eq!(PortInfoRecord::parse_slice(&bytes), Ok(record));
        assert!(PortInfoRecord::parse_slice(&bytes[..67]).is_err());
    }
}
