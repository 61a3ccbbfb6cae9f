//! IGMP reports of this host's own: which IPv4 groups it joins and leaves (RFC 1112, 2236, 3376).

use super::group::IpGroup;
use super::wire;

const V1_REPORT: u8 = 0x12;
const V2_REPORT: u8 = 0x16;
const V2_LEAVE: u8 = 0x17;
const V3_REPORT: u8 = 0x22;
/// Bytes of a message up to a version 3 report's first record.
const FIXED: usize = 8;
/// Bytes of a record up to its first source.
const RECORD: usize = 8;

/// What a group record of IGMPv3 or MLDv2 says of the group as a whole: `Some(true)` if there are sources it
/// is listened to from, `Some(false)` if there are none left, `None` if it only takes sources away.
///
/// Record types of RFC 3376, section 4.2.12, and RFC 3810, section 5.2.12.
pub(super) const fn membership(record_type: u8, sources: u16) -> Option<bool> {
    match (record_type, sources) {
        // Listening to nobody is leaving.
        (1 | 3, 0) => Some(false),
        // ALLOW_NEW_SOURCES of nothing says nothing.
        (1..=4, _) | (5, 1..) => Some(true),
        _ => None,
    }
}

/// Calls `change` for each group that an IGMP message says was joined (`true`) or left (`false`). `message`
/// begins with the IGMP header. Messages of other types, and what is cut off, say nothing.
pub fn reports(message: &[u8], mut change: impl FnMut(IpGroup, bool)) {
    let Some(&kind) = message.first() else { return };
    let mut tell = |at: usize, joined| {
        if let Some(group) = wire::array(message, at).and_then(IpGroup::v4) {
            change(group, joined);
        }
    };
    match kind {
        V1_REPORT | V2_REPORT => tell(4, true),
        V2_LEAVE => tell(4, false),
        V3_REPORT => {
            let mut at = FIXED;
            for _ in 0..wire::be16(message, 6).unwrap_or(0) {
                let Some([record_type, auxiliary, high, low]) = wire::array(message, at) else { return };
                let sources = u16::from_be_bytes([high, low]);
                if let Some(joined) = membership(record_type, sources) {
                    tell(at + 4, joined);
                }
                at += RECORD + usize::from(sources) * 4 + usize::from(auxiliary) * 4;
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::vec;
    use std::vec::Vec;

    fn told(message: &[u8]) -> Vec<([u8; 4], bool)> {
        let mut told = Vec::new();
        reports(message, |group, joined| match group {
            IpGroup::V4(address) => told.push((address, joined)),
            IpGroup::V6(_) => panic!("IGMP knows no IPv6"),
        });
        told
    }

    /// RFC 2236, section 2; RFC 1112, appendix I.
    #[test]
    fn versions_1_and_2_name_one_group() {
        assert_eq!(told(&[0x12, 0, 0, 0, 239, 1, 2, 3]), [([239, 1, 2, 3], true)]);
        assert_eq!(told(&[0x16, 0, 0, 0, 239, 1, 2, 3]), [([239, 1, 2, 3], true)]);
        assert_eq!(told(&[0x17, 0, 0, 0, 239, 1, 2, 3]), [([239, 1, 2, 3], false)]);
        assert!(told(&[0x11, 0, 0, 0, 239, 1, 2, 3]).is_empty(), "a query");
        assert!(told(&[0x16, 0, 0, 0, 10, 1, 2, 3]).is_empty(), "no group");
        assert!(told(&[0x16, 0, 0, 0, 239, 1, 2]).is_empty(), "cut off");
    }

    /// RFC 3376, section 4.2: records of every type, with sources and auxiliary data to be passed over.
    #[test]
    fn version_3_names_a_group_in_each_record() {
        let mut message = vec![0x22, 0, 0, 0, 0, 0, 0, 7];
        message.extend([4, 0, 0, 0, 239, 0, 0, 1]);
        message.extend([3, 0, 0, 0, 239, 0, 0, 2]);
        message.extend([3, 0, 0, 1, 239, 0, 0, 3, 10, 0, 0, 1]);
        message.extend([6, 1, 0, 1, 239, 0, 0, 4, 10, 0, 0, 1, 0xaa, 0xbb, 0xcc, 0xdd]);
        message.extend([5, 0, 0, 1, 239, 0, 0, 5, 10, 0, 0, 1]);
        message.extend([2, 0, 0, 0, 239, 0, 0, 6]);
        message.extend([1, 0, 0, 0, 239, 0, 0, 7]);
        let expected = [(1, true), (2, false), (3, true), (5, true), (6, true), (7, false)];
        assert_eq!(told(&message), expected.map(|(last, joined)| ([239, 0, 0, last], joined)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(mut bytes in prop::collection::vec(any::<u8>(), 0..200), v3: bool) {
            if let Some(first) = bytes.first_mut().filter(|_| v3) {
                *first = 0x22;
            }
            let _ = told(&bytes);
        }
    }
}
