//! PortInfoRecord queries (IBA 15.2.5.3; OpenSM, osm_sa_portinfo_record.c).

use super::Request;
use crate::fabric::core::Fabric;
use crate::fabric::topology::{NodeKind, Port, PortId};
use crate::fabric::wire::sa::port_info::{PortInfo, PortInfoRecord, PortInfoRecordKey, mask};

/// Option bit: compare the capability mask bit by bit, and want those that are set (IBA 15.2.5.3).
const MATCH_CAPABILITY_BITS: u32 = 1 << 31;

impl Fabric {
    pub(super) fn port_info_records(&self, request: &Request<'_>) -> Vec<Vec<u8>> {
        let mad = request.mad;
        let Ok(wanted) = PortInfoRecord::parse_slice(&mad.data) else { return Vec::new() };
        let want = |bit: u64| mad.has(bit);
        let capability_bits = mad.header.attribute_modifier & MATCH_CAPABILITY_BITS != 0;
        self.topology
            .port_ids()
            .filter_map(|id| self.port_info_record(id).map(|record| (id, record)))
            .filter(|&(id, _)| self.share_pkey(request.requester, self.owner(id)))
            .map(|(_, record)| record)
            .filter(|PortInfoRecord { key, info }| {
                let asked = &wanted.info;
                let capability = if capability_bits {
                    info.capability_mask & asked.capability_mask == asked.capability_mask
                } else {
                    info.capability_mask == asked.capability_mask
                };
                let same = [
                    (mask::LID, self.lid_matches(*key, wanted.key)),
                    (mask::PORT_NUM, key.port_num == wanted.key.port_num),
                    (mask::OPTIONS, key.options == wanted.key.options),
                    (mask::GID_PREFIX, info.gid_prefix == asked.gid_prefix),
                    (mask::BASE_LID, info.lid == asked.lid),
                    (mask::MASTER_SM_LID, info.master_sm_lid == asked.master_sm_lid),
                    (mask::CAPABILITY_MASK, capability),
                    (mask::LOCAL_PORT_NUM, info.local_port_num == asked.local_port_num),
                    (mask::LINK_WIDTH_ACTIVE, info.link_width_active == asked.link_width_active),
                    (mask::PORT_STATE, info.port_state == asked.port_state),
                    (mask::PORT_PHYSICAL_STATE, info.port_physical_state == asked.port_physical_state),
                    (mask::LMC, info.lmc == asked.lmc),
                    (mask::LINK_SPEED_ACTIVE, info.link_speed_active == asked.link_speed_active),
                    (mask::NEIGHBOR_MTU, info.neighbor_mtu == asked.neighbor_mtu),
                    (mask::MTU_CAP, info.mtu_cap == asked.mtu_cap),
                    (mask::GUID_CAP, info.guid_cap == asked.guid_cap),
                    (mask::SUBNET_TIMEOUT, info.subnet_timeout == asked.subnet_timeout),
                ];
                same.into_iter().all(|(bit, same)| !want(bit) || same)
            })
            .map(|record| record.to_bytes().to_vec())
            .collect()
    }

    /// A LID selects the port that has it, counting LMC.
    fn lid_matches(&self, key: PortInfoRecordKey, wanted: PortInfoRecordKey) -> bool {
        self.port_by_lid(wanted.lid).is_some_and(|id| self.topology.port(id).lid == key.lid)
    }

    /// The record of a port that the manager knows. A switch's ports have the LID of its management port.
    fn port_info_record(&self, id: PortId) -> Option<PortInfoRecord> {
        let owner = self.owner(id);
        if !self.manager.known.contains(&owner) {
            return None;
        }
        let port = self.topology.port(id);
        let key = PortInfoRecordKey { lid: self.topology.port(owner).lid, port_num: port.number, options: 0 };
        Some(PortInfoRecord { key, info: self.port_info(id) })
    }

    /// The port whose LID a port is known by.
    fn owner(&self, id: PortId) -> PortId {
        let node = self.topology.node(self.topology.port(id).node);
        match node.kind {
            NodeKind::Switch(_) => node.ports.first().copied().unwrap_or(id),
            NodeKind::ChannelAdapter | NodeKind::Manager => id,
        }
    }

    /// PortInfo of a port as a Get by SMP gives it (IBA 14.2.5.6), with the management key hidden.
    pub fn port_info(&self, id: PortId) -> PortInfo {
        let port = self.topology.port(id);
        let node = self.topology.node(port.node);
        let is_manager = matches!(node.kind, NodeKind::Manager);
        let (width, speed) = port.link.map_or((1, 1), |link| (link.width.bit(), link.speed.bits()));
        let extended = port.link.map_or(0, |link| link.speed.ext_bits());
        // Supported is what is in use and everything slower: bits below it.
        let up_to = |bit: u8| bit | bit.saturating_sub(1);
        PortInfo {
            m_key: 0,
            gid_prefix: port.subnet_prefix,
            lid: port.lid,
            master_sm_lid: port.sm_lid,
            capability_mask: port.capability_mask | u32::from(is_manager) << 1,
            local_port_num: port.number,
            link_width_enabled: up_to(width),
            link_width_supported: up_to(width),
            link_width_active: width,
            link_speed_supported: up_to(speed),
            port_state: port.state as u8,
            port_physical_state: physical_state(port),
            link_down_default_state: 2,
            lmc: port.lmc,
            link_speed_active: speed,
            link_speed_enabled: up_to(speed),
            neighbor_mtu: port.mtu.code(),
            master_sm_sl: port.sm_sl,
            vl_cap: vl_code(port.data_vls),
            mtu_cap: port.mtu_cap.code(),
            operational_vls: vl_code(port.data_vls),
            partition_enforcement_inbound: port.enforce_pkeys,
            partition_enforcement_outbound: port.enforce_pkeys,
            p_key_violations: port.counters.pkey_violations.min(0xFFFF) as u16,
            q_key_violations: port.counters.qkey_violations.min(0xFFFF) as u16,
            guid_cap: port.guids.len().next_multiple_of(8).min(255) as u8,
            subnet_timeout: port.subnet_timeout,
            resp_time_value: 16,
            local_phy_errors: 8,
            overrun_errors: 8,
            link_speed_ext_active: extended,
            link_speed_ext_supported: up_to(extended),
            link_speed_ext_enabled: up_to(extended),
            ..PortInfo::default()
        }
    }
}

/// 5 link up, 2 polling.
fn physical_state(port: &Port) -> u8 {
    if port.link_up() || port.link.is_none() && port.number == 0 { 5 } else { 2 }
}

/// VLCap and OperationalVLs: 1 for VL0, 2 for VL0-1, 3 for VL0-3, 4 for VL0-7, 5 for VL0-14.
fn vl_code(data_vls: u8) -> u8 {
    match data_vls {
        0 | 1 => 1,
        2 => 2,
        3 | 4 => 3,
        5..=8 => 4,
        _ => 5,
    }
}
