//! The OIDs that every miniport has to answer (network/mandatory-oids-for-miniport-drivers), asked for.

use windows_kernel_sys::{
    NDIS_OID, NDIS_STATUS_INVALID_OID, NDIS_STATUS_NOT_SUPPORTED, OID_GEN_CURRENT_LOOKAHEAD,
    OID_GEN_CURRENT_PACKET_FILTER, OID_GEN_INTERRUPT_MODERATION, OID_GEN_LINK_PARAMETERS,
    OID_GEN_MAXIMUM_TOTAL_SIZE, OID_GEN_RCV_OK, OID_GEN_RECEIVE_BLOCK_SIZE, OID_GEN_RECEIVE_BUFFER_SPACE,
    OID_GEN_STATISTICS, OID_GEN_TRANSMIT_BLOCK_SIZE, OID_GEN_TRANSMIT_BUFFER_SPACE,
    OID_GEN_VENDOR_DESCRIPTION, OID_GEN_VENDOR_DRIVER_VERSION, OID_GEN_VENDOR_ID, OID_GEN_XMIT_OK,
};

use super::adapter::Adapter;

/// Mandatory queries.
pub const MANDATORY_QUERIES: [NDIS_OID; 12] = [
    OID_GEN_INTERRUPT_MODERATION,
    OID_GEN_MAXIMUM_TOTAL_SIZE,
    OID_GEN_RCV_OK,
    OID_GEN_RECEIVE_BLOCK_SIZE,
    OID_GEN_RECEIVE_BUFFER_SPACE,
    OID_GEN_STATISTICS,
    OID_GEN_TRANSMIT_BLOCK_SIZE,
    OID_GEN_TRANSMIT_BUFFER_SPACE,
    OID_GEN_VENDOR_DESCRIPTION,
    OID_GEN_VENDOR_DRIVER_VERSION,
    OID_GEN_VENDOR_ID,
    OID_GEN_XMIT_OK,
];

/// Mandatory sets, which the supported list has to name.
pub const MANDATORY_SETS: [NDIS_OID; 4] = [
    OID_GEN_CURRENT_LOOKAHEAD,
    OID_GEN_CURRENT_PACKET_FILTER,
    OID_GEN_INTERRUPT_MODERATION,
    OID_GEN_LINK_PARAMETERS,
];

impl Adapter {
    /// The mandatory OIDs that the miniport does not answer, or does not name in its supported list. From a thread at
    /// PASSIVE_LEVEL.
    pub fn missing_mandatory_oids(&self) -> Vec<NDIS_OID> {
        let supported = self.attributes().supported_oids;
        let unanswered = MANDATORY_QUERIES.into_iter().filter(|oid| {
            let answer = self.query(*oid, 256);
            matches!(answer, Err(NDIS_STATUS_NOT_SUPPORTED | NDIS_STATUS_INVALID_OID))
        });
        let unnamed =
            MANDATORY_QUERIES.into_iter().chain(MANDATORY_SETS).filter(|oid| !supported.contains(oid));
        let mut missing: Vec<_> = unanswered.chain(unnamed).collect();
        missing.sort_unstable();
        missing.dedup();
        missing
    }
}
