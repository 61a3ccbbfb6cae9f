//! NodeRecord (IBA 15.2.5.2): NodeInfo (IBA 14.2.5.3) and NodeDescription (IBA 14.2.5.2).

use crate::fabric::ids::{Guid, Lid};
use crate::fabric::wire::bits::wire_format;

wire_format! {
    /// LID and NodeInfo of a node; its description follows.
    pub struct NodeInfoRecord, NodeInfoRecordView [44] {
        /// LID of the port.
        lid / set_lid: Lid = 0, 16;
        /// MAD base version.
        base_version / set_base_version: u8 = 32, 8;
        /// Subnet management class version.
        class_version / set_class_version: u8 = 40, 8;
        /// 1 channel adapter, 2 switch, 3 router.
        node_type / set_node_type: u8 = 48, 8;
        /// Ports of the node, without port 0.
        num_ports / set_num_ports: u8 = 56, 8;
        /// GUID of the system.
        system_image_guid / set_system_image_guid: Guid = 64, 64;
        /// GUID of the node.
        node_guid / set_node_guid: Guid = 128, 64;
        /// GUID of the port.
        port_guid / set_port_guid: Guid = 192, 64;
        /// Entries of the P_Key table.
        partition_cap / set_partition_cap: u16 = 256, 16;
        /// Device.
        device_id / set_device_id: u16 = 272, 16;
        /// Revision.
        revision / set_revision: u32 = 288, 32;
        /// Port the question came in by.
        local_port_num / set_local_port_num: u8 = 320, 8;
        /// Vendor.
        vendor_id / set_vendor_id: u32 = 328, 24;
    }
}

/// NodeRecord: LID, NodeInfo, NodeDescription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeRecord {
    /// LID and NodeInfo.
    pub info: NodeInfoRecord,
    /// UTF-8, padded with zeros.
    pub description: [u8; 64],
}

impl NodeRecord {
    /// Length on the wire in bytes.
    pub const LEN: usize = NodeInfoRecord::LEN + 64;

    /// Reads the record at the start of `buffer`.
    pub fn parse_slice(buffer: &[u8]) -> Result<Self, crate::fabric::wire::Truncated> {
        let info = NodeInfoRecord::parse_slice(buffer)?;
        let rest = &buffer[NodeInfoRecord::LEN..];
        let description = *rest.first_chunk().ok_or(crate::fabric::wire::Truncated)?;
        Ok(Self { info, description })
    }

    /// The record as bytes.
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        let (info, description) = bytes.split_at_mut(NodeInfoRecord::LEN);
        info.copy_from_slice(&self.info.to_bytes());
        description.copy_from_slice(&self.description);
        bytes
    }
}

/// Component mask bits of a NodeRecord: those by which this administrator selects.
pub mod mask {
    /// LID.
    pub const LID: u64 = 1;
    /// Node type.
    pub const NODE_TYPE: u64 = 1 << 4;
    /// System image GUID.
    pub const SYSTEM_IMAGE_GUID: u64 = 1 << 6;
    /// Node GUID.
    pub const NODE_GUID: u64 = 1 << 7;
    /// Port GUID.
    pub const PORT_GUID: u64 = 1 << 8;
    /// Description.
    pub const DESCRIPTION: u64 = 1 << 14;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::wire::bits::wire_format_tests;

    wire_format_tests! { node_info_record_both_ways: NodeInfoRecord, NodeInfoRecordView; }

    /// The record is 108 bytes, the description the last 64 (IBA 15.2.5.2).
    #[test]
    fn layout() {
        let record =
            NodeRecord { info: NodeInfoRecord { lid: Lid(3), ..Default::default() }, description: [7; 64] };
        let bytes = record.to_bytes();
        assert_eq!(bytes.len(), 108);
        assert_eq!(NodeRecord::parse_slice(&bytes), Ok(record));
        assert!(NodeRecord::parse_slice(&bytes[..107]).is_err());
    }
}
