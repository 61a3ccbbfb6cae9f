//! Management datagrams: the common header, the RMPP header and the SA header (IBA 13.4, 13.6, 15.2).

use super::bits::{newtype_field, wire_format};

/// Every MAD is this long (IBA 13.4.2).
pub const MAD_LEN: usize = 256;
/// MADs before this byte are header, in the SA class: common, RMPP and SA header.
pub const SA_DATA_OFFSET: usize = MadHeader::LEN + RmppHeader::LEN + SaHeader::LEN;
/// Bytes of attribute data in one SA MAD.
pub const SA_DATA_LEN: usize = MAD_LEN - SA_DATA_OFFSET;

/// Management classes (IBA 13.4.4).
pub mod class {
    /// Subnet administration.
    pub const SUBN_ADM: u8 = 0x03;
    /// Class version of subnet administration.
    pub const SUBN_ADM_VERSION: u8 = 2;
    /// Communication management.
    pub const COM_MGT: u8 = 0x07;
}

/// Methods (IBA 13.4.5 and 15.2.2). A response has the top bit set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Method(pub u8);

newtype_field!(Method);

impl Method {
    /// Get.
    pub const GET: Self = Self(0x01);
    /// Set: create or change.
    pub const SET: Self = Self(0x02);
    /// Response to Get and Set.
    pub const GET_RESP: Self = Self(0x81);
    /// Unsolicited report to a subscriber.
    pub const REPORT: Self = Self(0x06);
    /// Response to a report.
    pub const REPORT_RESP: Self = Self(0x86);
    /// Get all records that match.
    pub const GET_TABLE: Self = Self(0x12);
    /// Response to GetTable.
    pub const GET_TABLE_RESP: Self = Self(0x92);
    /// Delete a record.
    pub const DELETE: Self = Self(0x15);
    /// Response to Delete.
    pub const DELETE_RESP: Self = Self(0x95);

    /// Whether the response bit is set.
    pub const fn is_response(self) -> bool {
        self.0 & 0x80 != 0
    }

    /// The method that answers this one.
    pub const fn response(self) -> Self {
        // Set is answered by GetResp, which is Get's response (IBA 13.4.5).
        match self {
            Self::SET => Self::GET_RESP,
            _ => Self(self.0 | 0x80),
        }
    }
}

/// Status of a MAD: common bits in the low byte (IBA 13.4.7), class-specific in the high byte (IBA 15.2.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Status(pub u16);

newtype_field!(Status);

impl Status {
    /// Success.
    pub const OK: Self = Self(0);
    /// Busy: retry later.
    pub const BUSY: Self = Self(0x0001);
    /// Redirection needed.
    pub const REDIRECT: Self = Self(0x0002);
    /// Class or base version not supported.
    pub const UNSUPPORTED_VERSION: Self = Self(0x0004);
    /// Method not supported.
    pub const UNSUPPORTED_METHOD: Self = Self(0x0008);
    /// Method and attribute combination not supported.
    pub const UNSUPPORTED_METHOD_ATTRIBUTE: Self = Self(0x000C);
    /// A field of the attribute or the modifier is invalid.
    pub const INVALID_FIELD: Self = Self(0x001C);
    /// SA: not enough resources.
    pub const NO_RESOURCES: Self = Self(0x0100);
    /// SA: request is invalid.
    pub const REQ_INVALID: Self = Self(0x0200);
    /// SA: no record matches.
    pub const NO_RECORDS: Self = Self(0x0300);
    /// SA: more than one record matches a Get.
    pub const TOO_MANY_RECORDS: Self = Self(0x0400);
    /// SA: a GID of the request is invalid.
    pub const REQ_INVALID_GID: Self = Self(0x0500);
    /// SA: the component mask leaves out what is needed.
    pub const REQ_INSUFFICIENT_COMPONENTS: Self = Self(0x0600);
    /// SA: denied.
    pub const REQ_DENIED: Self = Self(0x0700);
    /// SA: priority suggested.
    pub const PRIORITY_SUGGESTED: Self = Self(0x0800);
}

/// SA attributes (IBA 15.2.5, table 187).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attribute(pub u16);

newtype_field!(Attribute);

impl Attribute {
    /// ClassPortInfo.
    pub const CLASS_PORT_INFO: Self = Self(0x0001);
    /// Notice.
    pub const NOTICE: Self = Self(0x0002);
    /// InformInfo.
    pub const INFORM_INFO: Self = Self(0x0003);
    /// NodeRecord.
    pub const NODE_RECORD: Self = Self(0x0011);
    /// PortInfoRecord.
    pub const PORT_INFO_RECORD: Self = Self(0x0012);
    /// ServiceRecord.
    pub const SERVICE_RECORD: Self = Self(0x0031);
    /// PathRecord.
    pub const PATH_RECORD: Self = Self(0x0035);
    /// MCMemberRecord.
    pub const MC_MEMBER_RECORD: Self = Self(0x0038);
}

wire_format! {
    /// The header of every MAD (IBA 13.4.3).
    pub struct MadHeader, MadHeaderView [24] {
        /// Version of the MAD format, 1.
        base_version / set_base_version: u8 = 0, 8;
        /// Management class, one of [`class`].
        class / set_class: u8 = 8, 8;
        /// Version of the class's format.
        class_version / set_class_version: u8 = 16, 8;
        /// Method.
        method / set_method: Method = 24, 8;
        /// Status; 0 in a request.
        status / set_status: Status = 32, 16;
        /// Specific to the class.
        class_specific / set_class_specific: u16 = 48, 16;
        /// Transaction, chosen by the requester and repeated in the response.
        transaction_id / set_transaction_id: u64 = 64, 64;
        /// Attribute.
        attribute / set_attribute: Attribute = 128, 16;
        /// Modifier of the attribute.
        attribute_modifier / set_attribute_modifier: u32 = 160, 32;
    }
}

wire_format! {
    /// The header of the reliable multi-packet protocol (IBA 13.6.2).
    pub struct RmppHeader, RmppHeaderView [12] {
        /// Version, 1 when active.
        version / set_version: u8 = 0, 8;
        /// [`rmpp::DATA`], [`rmpp::ACK`], or others; 0 when RMPP is not in use.
        kind / set_kind: u8 = 8, 8;
        /// Response time as a timeout code, 31 for none given.
        response_time / set_response_time: u8 = 16, 5;
        /// [`rmpp::ACTIVE`], [`rmpp::FIRST`], [`rmpp::LAST`].
        flags / set_flags: u8 = 21, 3;
        /// Status.
        status / set_status: u8 = 24, 8;
        /// Segment number from 1 (DATA, ACK).
        segment / set_segment: u32 = 32, 32;
        /// Payload length in bytes (DATA), last segment of the new window (ACK).
        payload_length / set_payload_length: u32 = 64, 32;
    }
}

/// Values of [`RmppHeader`].
pub mod rmpp {
    /// The one version.
    pub const VERSION: u8 = 1;
    /// Type: data segment.
    pub const DATA: u8 = 1;
    /// Type: acknowledgement.
    pub const ACK: u8 = 2;
    /// Type: stop.
    pub const STOP: u8 = 3;
    /// Type: abort.
    pub const ABORT: u8 = 4;
    /// Flag: RMPP is in use.
    pub const ACTIVE: u8 = 1;
    /// Flag: first segment.
    pub const FIRST: u8 = 2;
    /// Flag: last segment.
    pub const LAST: u8 = 4;
}

wire_format! {
    /// The header of subnet administration (IBA 15.2.1.1).
    pub struct SaHeader, SaHeaderView [20] {
        /// Key of the SM, 0 unless the requester is trusted.
        sm_key / set_sm_key: u64 = 0, 64;
        /// Bytes from one record to the next in a table, in 8-byte units.
        attribute_offset / set_attribute_offset: u16 = 64, 16;
        /// Which fields of the record are valid: bit n for the n-th component.
        component_mask / set_component_mask: u64 = 96, 64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::wire::bits::wire_format_tests;

    wire_format_tests! {
        mad_header_both_ways: MadHeader, MadHeaderView;
        rmpp_header_both_ways: RmppHeader, RmppHeaderView;
        sa_header_both_ways: SaHeader, SaHeaderView;
    }

    /// IBA 15.2.1.1: attribute data starts at byte 56 of an SA MAD and is 200 bytes long.
    #[test]
    fn sa_data_is_where_the_specification_puts_it() {
        assert_eq!((SA_DATA_OFFSET, SA_DATA_LEN), (56, 200));
    }

    /// IBA 13.4.5: GetResp answers both Get and Set; each other method its own.
    #[test]
    fn responses() {
        assert_eq!(Method::GET.response(), Method::GET_RESP);
        assert_eq!(Method::SET.response(), Method::GET_RESP);
        assert_eq!(Method::GET_TABLE.response(), Method::GET_TABLE_RESP);
        assert_eq!(Method::DELETE.response(), Method::DELETE_RESP);
        assert!(Method::DELETE_RESP.is_response() && !Method::DELETE.is_response());
    }
}
