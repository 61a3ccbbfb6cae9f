//! NodeRecord queries (IBA 15.2.5.2; OpenSM, osm_sa_node_record.c).

use super::Request;
use crate::fabric::core::Fabric;
use crate::fabric::topology::NodeKind;
use crate::fabric::wire::sa::node::{NodeInfoRecord, NodeRecord, mask};

impl Fabric {
    /// One record for each port that has a LID.
    pub(super) fn node_records(&self, request: &Request<'_>) -> Vec<Vec<u8>> {
        let mad = request.mad;
        let Ok(wanted) = NodeRecord::parse_slice(&mad.data) else { return Vec::new() };
        self.manager
            .known
            .iter()
            .filter(|&&id| self.share_pkey(request.requester, id))
            .map(|&id| {
                let port = self.topology.port(id);
                let node = self.topology.node(port.node);
                let is_switch = node.switch().is_some();
                let info = NodeInfoRecord {
                    lid: port.lid,
                    base_version: 1,
                    class_version: 1,
                    node_type: match node.kind {
                        NodeKind::ChannelAdapter | NodeKind::Manager => 1,
                        NodeKind::Switch(_) => 2,
                    },
                    num_ports: (node.ports.len() - usize::from(is_switch)) as u8,
                    system_image_guid: node.guid,
                    node_guid: node.guid,
                    port_guid: port.guid,
                    partition_cap: 128,
                    local_port_num: port.number,
                    ..NodeInfoRecord::default()
                };
                let mut description = [0; 64];
                let text = node.description.as_bytes();
                let len = text.len().min(description.len());
                description[..len].copy_from_slice(&text[..len]);
                NodeRecord { info, description }
            })
            .filter(|record| {
                let (info, asked) = (&record.info, &wanted.info);
                let lid =
                    self.port_by_lid(asked.lid).is_some_and(|id| self.topology.port(id).lid == info.lid);
                [
                    (mask::LID, lid),
                    (mask::NODE_TYPE, info.node_type == asked.node_type),
                    (mask::SYSTEM_IMAGE_GUID, info.system_image_guid == asked.system_image_guid),
                    (mask::NODE_GUID, info.node_guid == asked.node_guid),
                    (mask::PORT_GUID, info.port_guid == asked.port_guid),
                    (mask::DESCRIPTION, record.description == wanted.description),
                ]
                .into_iter()
                .all(|(bit, same)| !mad.has(bit) || same)
            })
            .map(|record| record.to_bytes().to_vec())
            .collect()
    }
}
