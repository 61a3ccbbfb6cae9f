//! Subnet administration: whole MADs, tables over several of them, and the records (IBA 15.2).

pub mod class_port_info;
pub mod inform;
pub mod mcmember;
pub mod node;
pub mod notice;
pub mod path;
pub mod port_info;
pub mod selector;

pub use class_port_info::ClassPortInfo;
pub use inform::InformInfo;
pub use mcmember::McMemberRecord;
pub use node::NodeRecord;
pub use notice::{Notice, Trap};
pub use path::PathRecord;
pub use port_info::{PortInfo, PortInfoRecord};
pub use selector::Selector;

use super::Truncated;
use super::mad::{
    Attribute, MAD_LEN, MadHeader, Method, RmppHeader, SA_DATA_LEN, SA_DATA_OFFSET, SaHeader, Status, class,
    rmpp,
};

/// The bytes of a MAD.
pub type MadBytes = [u8; MAD_LEN];

/// A subnet administration MAD, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SaMad {
    /// Common header.
    pub header: MadHeader,
    /// Multi-packet header.
    pub rmpp: RmppHeader,
    /// Class header.
    pub sa: SaHeader,
    /// Attribute data.
    pub data: [u8; SA_DATA_LEN],
}

impl SaMad {
    /// A request. `record` is the attribute; the rest of the data is zero.
    pub fn request(
        method: Method,
        attribute: Attribute,
        transaction_id: u64,
        mask: u64,
        record: &[u8],
    ) -> Self {
        let header = MadHeader {
            base_version: 1,
            class: class::SUBN_ADM,
            class_version: class::SUBN_ADM_VERSION,
            method,
            transaction_id,
            attribute,
            ..MadHeader::default()
        };
        let mut mad = Self {
            header,
            rmpp: RmppHeader::default(),
            sa: SaHeader { component_mask: mask, ..SaHeader::default() },
            data: [0; SA_DATA_LEN],
        };
        mad.set_data(record);
        mad
    }

    /// The response to `self`, with status and the first bytes of data, as a single MAD.
    pub fn respond(&self, status: Status, record: &[u8]) -> Self {
        let mut mad = *self;
        mad.header.method = self.header.method.response();
        mad.header.status = status;
        mad.rmpp = RmppHeader::default();
        mad.sa.sm_key = 0;
        mad.sa.attribute_offset = attribute_offset(record.len());
        mad.set_data(record);
        mad
    }

    /// The responses that carry a table: `records`, each of the same length, spread over as many MADs as are
    /// needed (IBA 13.6.3: RMPP data segments of 220 bytes, the first counting the SA header too). An empty
    /// table is one MAD without records.
    pub fn respond_table(&self, records: &[Vec<u8>]) -> Vec<Self> {
        let record_len = records.first().map_or(0, Vec::len);
        let offset = attribute_offset(record_len);
        let stride = usize::from(offset) * 8;
        let mut bytes = vec![0; stride * records.len()];
        for (space, record) in bytes.chunks_exact_mut(stride.max(1)).zip(records) {
            space[..record_len].copy_from_slice(record);
        }
        let chunks: Vec<&[u8]> =
            if bytes.is_empty() { vec![&[]] } else { bytes.chunks(SA_DATA_LEN).collect() };
        let count = chunks.len();
        chunks
            .into_iter()
            .enumerate()
            .map(|(index, chunk)| {
                let mut mad = self.respond(Status::OK, chunk);
                mad.sa.attribute_offset = offset;
                let (first, last) = (index == 0, index + 1 == count);
                // The first segment tells the length of all (each SA header counted), the last that of
                // itself.
                let payload_length = if first {
                    bytes.len() + count * SaHeader::LEN
                } else if last {
                    chunk.len() + SaHeader::LEN
                } else {
                    0
                };
                mad.rmpp = RmppHeader {
                    version: rmpp::VERSION,
                    kind: rmpp::DATA,
                    response_time: 0x1F,
                    flags: rmpp::ACTIVE
                        | if first { rmpp::FIRST } else { 0 }
                        | if last { rmpp::LAST } else { 0 },
                    status: 0,
                    segment: index as u32 + 1,
                    payload_length: payload_length as u32,
                };
                mad
            })
            .collect()
    }

    /// Reads a MAD.
    pub fn parse(bytes: &[u8]) -> Result<Self, Truncated> {
        let bytes: &MadBytes = bytes.first_chunk().ok_or(Truncated)?;
        let header = MadHeader::parse_slice(bytes)?;
        let rmpp = RmppHeader::parse_slice(&bytes[MadHeader::LEN..])?;
        let sa = SaHeader::parse_slice(&bytes[MadHeader::LEN + RmppHeader::LEN..])?;
        let mut data = [0; SA_DATA_LEN];
        data.copy_from_slice(&bytes[SA_DATA_OFFSET..]);
        Ok(Self { header, rmpp, sa, data })
    }

    /// Writes a MAD.
    pub fn to_bytes(&self) -> MadBytes {
        let mut bytes = [0; MAD_LEN];
        let (header, rest) = bytes.split_at_mut(MadHeader::LEN);
        let (rmpp, rest) = rest.split_at_mut(RmppHeader::LEN);
        let (sa, data) = rest.split_at_mut(SaHeader::LEN);
        header.copy_from_slice(&self.header.to_bytes());
        rmpp.copy_from_slice(&self.rmpp.to_bytes());
        sa.copy_from_slice(&self.sa.to_bytes());
        data.copy_from_slice(&self.data);
        bytes
    }

    /// Whether the component mask has every bit of `mask`.
    pub fn has(&self, mask: u64) -> bool {
        self.sa.component_mask & mask == mask
    }

    fn set_data(&mut self, record: &[u8]) {
        self.data.fill(0);
        let len = record.len().min(SA_DATA_LEN);
        self.data[..len].copy_from_slice(&record[..len]);
    }
}

/// Bytes to 8-byte units, rounded up.
fn attribute_offset(record_len: usize) -> u16 {
    record_len.div_ceil(8) as u16
}

/// Puts the data of a table's segments together again: the records, each as long as the attribute offset
/// says. `None` if segments are missing, out of order or of different transactions.
pub fn reassemble(segments: &[SaMad]) -> Option<Vec<Vec<u8>>> {
    let first = segments.first()?;
    let stride = usize::from(first.sa.attribute_offset) * 8;
    if first.rmpp.flags & rmpp::ACTIVE == 0 {
        return Some(vec![first.data[..stride.clamp(1, SA_DATA_LEN)].to_vec()]);
    }
    let mut bytes = Vec::new();
    for (index, segment) in segments.iter().enumerate() {
        let last = index + 1 == segments.len();
        if segment.header.transaction_id != first.header.transaction_id
            || segment.rmpp.segment as usize != index + 1
            || (segment.rmpp.flags & rmpp::LAST != 0) != last
        {
            return None;
        }
        bytes.extend_from_slice(&segment.data);
    }
    let headers = segments.len() * SaHeader::LEN;
    bytes.truncate((first.rmpp.payload_length as usize).checked_sub(headers)?);
    if stride == 0 {
        return bytes.is_empty().then(Vec::new);
    }
    Some(bytes.chunks_exact(stride).map(<[u8]>::to_vec).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::wire::mad::{MadHeaderView, RmppHeaderView, SaHeaderView};
    use proptest::prelude::*;

    fn request() -> SaMad {
        SaMad::request(Method::GET_TABLE, Attribute::PATH_RECORD, 7, 0, &[])
    }

    proptest! {
        /// A table survives being cut into segments and put together again, padded to 8 bytes (IBA 15.2.1.1).
        #[test]
        fn table_round_trip(count in 0usize..40, len in 1usize..120) {
            let records: Vec<Vec<u8>> = (0..count).map(|i| vec![i as u8 + 1; len]).collect();
            let segments: Vec<SaMad> = request()
                .respond_table(&records)
                .iter()
                .map(|mad| SaMad::parse(&mad.to_bytes()).unwrap())
                .collect();
            let whole = reassemble(&segments).unwrap();
            prop_assert_eq!(whole.len(), count);
            for (got, sent) in whole.iter().zip(&records) {
                prop_assert_eq!(&got[..len], &sent[..]);
                prop_assert_eq!(got.len(), len.next_multiple_of(8));
            }
            if segments.len() > 1 {
                prop_assert_eq!(reassemble(&segments[1..]), None);
                prop_assert_eq!(reassemble(&segments[..segments.len() - 1]), None);
            }
        }

        /// A MAD both ways: all 256 bytes but the reserved ones.
        #[test]
        fn mad_both_ways(bytes in prop::collection::vec(any::<u8>(), MAD_LEN)) {
            let mad = SaMad::parse(&bytes).unwrap();
            prop_assert_eq!(SaMad::parse(&mad.to_bytes()).unwrap(), mad);
            prop_assert_eq!(&mad.to_bytes()[SA_DATA_OFFSET..], &bytes[SA_DATA_OFFSET..]);
            prop_assert!(SaMad::parse(&bytes[1..]).is_err());
        }
    }

    /// A response keeps what identifies the request and drops the SM key.
    #[test]
    fn respond_keeps_transaction() {
        let mut sent = SaMad::request(Method::SET, Attribute::MC_MEMBER_RECORD, 0x1234, 3, &[1, 2]);
        sent.sa.sm_key = 9;
        let answer = sent.respond(Status::REQ_INVALID, &[]);
        assert_eq!(answer.header.method, Method::GET_RESP);
        assert_eq!(answer.header.transaction_id, 0x1234);
        assert_eq!(answer.header.status, Status::REQ_INVALID);
        assert_eq!((answer.sa.sm_key, answer.sa.component_mask), (0, 3));
        assert_eq!(answer.data[..2], [0, 0]);
    }

    /// The views read where the representation writes.
    #[test]
    fn views_see_the_same_bytes() {
        let bytes = request().to_bytes();
        assert_eq!(MadHeaderView::new_checked(&bytes).unwrap().transaction_id(), 7);
        assert_eq!(RmppHeaderView::new_checked(&bytes[24..]).unwrap().flags(), 0);
        assert_eq!(SaHeaderView::new_checked(&bytes[36..]).unwrap().component_mask(), 0);
    }
}
