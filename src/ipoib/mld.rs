//! MLD reports of this host's own: which IPv6 groups it joins and leaves (RFC 2710, 3810).

use super::group::IpGroup;
use super::igmp::membership;
use super::wire;

/// ICMPv6 type of an MLDv1 report.
pub const V1_REPORT: u8 = 131;
/// ICMPv6 type of an MLDv1 done.
pub const V1_DONE: u8 = 132;
/// ICMPv6 type of an MLDv2 report.
pub const V2_REPORT: u8 = 143;
/// Bytes of a record up to its first source.
const RECORD: usize = 20;

/// Whether an ICMPv6 type is a listener's message.
pub const fn is_report(icmp_type: u8) -> bool {
    matches!(icmp_type, V1_REPORT | V1_DONE | V2_REPORT)
}

/// Calls `change` for each group that an MLD message says was joined (`true`) or left (`false`). `message`
/// begins with the ICMPv6 header. Messages of other types, and what is cut off, say nothing.
pub fn reports(message: &[u8], mut change: impl FnMut(IpGroup, bool)) {
    let Some(&kind) = message.first() else { return };
    let mut tell = |at: usize, joined| {
        if let Some(group) = wire::array(message, at).and_then(IpGroup::v6) {
            change(group, joined);
        }
    };
    match kind {
        V1_REPORT => tell(8, true),
        V1_DONE => tell(8, false),
        V2_REPORT => {
            let mut at = 8;
            for _ in 0..wire::be16(message, 6).unwrap_or(0) {
                let Some([record_type, auxiliary, high, low]) = wire::array(message, at) else { return };
                let sources = u16::from_be_bytes([high, low]);
                if let Some(joined) = membership(record_type, sources) {
                    tell(at + 4, joined);
                }
                at += RECORD + usize::from(sources) * 16 + usize::from(auxiliary) * 4;
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

    fn group(last: u8) -> [u8; 16] {
        [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0, 0, last]
    }

    fn told(message: &[u8]) -> Vec<(IpGroup, bool)> {
        let mut told = Vec::new();
        reports(message, |group, joined| told.push((group, joined)));
        told
    }

    /// RFC 2710, section 3.
    #[test]
    fn version_1_names_one_group() {
        for (kind, joined) in [(131, true), (132, false)] {
            let mut message = vec![kind, 0, 0, 0, 0, 0, 0, 0];
            message.extend(group(7));
            assert_eq!(told(&message), [(IpGroup::V6(group(7)), joined)]);
            assert!(told(&message[..23]).is_empty(), "cut off");
        }
    }

    /// RFC 3810, section 5.2: Linux and Windows report a joined group as CHANGE_TO_EXCLUDE without sources.
    #[test]
    fn version_2_names_a_group_in_each_record() {
        let mut message = vec![143, 0, 0, 0, 0, 0, 0, 3];
        for (record_type, sources, last) in [(4, 0, 1), (6, 1, 2), (3, 0, 3)] {
            message.extend([record_type, 0, 0, sources]);
            message.extend(group(last));
            message.extend(vec![0; 16 * usize::from(sources)]);
        }
        assert_eq!(told(&message), [(IpGroup::V6(group(1)), true), (IpGroup::V6(group(3)), false)]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(mut bytes in prop::collection::vec(any::<u8>(), 0..200), v2: bool) {
            if let Some(first) = bytes.first_mut().filter(|_| v2) {
                *first = 143;
            }
            let _ = told(&bytes);
        }
    }
}
