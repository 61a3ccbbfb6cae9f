//! The Internet checksum (RFC 1071), and keeping it through a rewrite (RFC 1624).
//!
//! A rewrite never computes a checksum from nothing: it carries the difference between the old bytes and the
//! new ones over into the field. A packet that arrived damaged is then still damaged when it is passed on.

/// A ones-complement sum under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum(u64);

impl Sum {
    /// Nothing yet.
    pub const ZERO: Self = Self(0);

    /// Adds `bytes`, the first of which is the upper half of a 16-bit word. An odd last byte is followed by a
    /// zero.
    #[must_use]
    pub fn bytes(self, bytes: &[u8]) -> Self {
        let (words, odd) = bytes.as_chunks::<2>();
        let sum = words.iter().fold(self.0, |sum, &word| sum + u64::from(u16::from_be_bytes(word)));
        let last = odd.first().map_or(0, |&last| u64::from(last) << 8);
        Self(sum + last)
    }

    /// Adds a 16-bit word.
    #[must_use]
    pub const fn word(self, word: u16) -> Self {
        Self(self.0 + word as u64)
    }

    /// The sum in 16 bits, carries added back.
    pub const fn fold(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum >> 16) + (sum & 0xffff);
        }
        sum as u16
    }
}

/// The checksum field of bytes whose sum, the field taken as zero, is `sum`.
pub const fn checksum(sum: Sum) -> u16 {
    !sum.fold()
}

/// The checksum field after a rewrite: `old` is the field before it, `before` and `after` the sums of all
/// that it covers, the field itself taken as zero. Right if `old` was right, wrong by as much as `old` was
/// wrong else (RFC 1624, equation 3).
pub const fn carry_over(old: u16, before: Sum, after: Sum) -> u16 {
    !Sum(!old as u64 + !before.fold() as u64 + after.fold() as u64).fold()
}

/// The sum of an IPv4 pseudo header (RFC 768).
pub fn pseudo_v4(source: [u8; 4], destination: [u8; 4], protocol: u8, len: u16) -> Sum {
    Sum::ZERO.bytes(&source).bytes(&destination).word(u16::from(protocol)).word(len)
}

/// The sum of an IPv6 pseudo header (RFC 8200, section 8.1).
pub fn pseudo_v6(source: [u8; 16], destination: [u8; 16], next_header: u8, len: u16) -> Sum {
    Sum::ZERO.bytes(&source).bytes(&destination).word(len).word(u16::from(next_header))
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;

    /// RFC 1071, section 3: the words 0001 f203 f4f5 f6f7 sum to ddf2.
    #[test]
    fn the_example_of_rfc_1071() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(Sum::ZERO.bytes(&bytes).fold(), 0xddf2);
        assert_eq!(checksum(Sum::ZERO.bytes(&bytes)), 0x220d);
    }

    /// RFC 1624, section 4: field DD2F, word 5555 becomes 3285; the new field is 0000, not FFFF.
    #[test]
    fn the_example_of_rfc_1624() {
        let (before, after) = (Sum::ZERO.word(0x5555), Sum::ZERO.word(0x3285));
        assert_eq!(carry_over(0xdd2f, before, after), 0x0000);
    }

    proptest! {
        #[test]
        fn a_right_checksum_stays_right_and_a_wrong_one_wrong(
            before in prop::collection::vec(any::<u8>(), 1..200),
            after in prop::collection::vec(any::<u8>(), 1..200),
            error: u16,
        ) {
            let (old, new) = (Sum::ZERO.bytes(&before), Sum::ZERO.bytes(&after));
            let right = checksum(old);
            // 0000 and FFFF are the same number in ones-complement arithmetic.
            let is_right = |field: u16| new.word(field).fold() == 0xffff || new.word(field).fold() == 0;
            prop_assert!(is_right(carry_over(right, old, new)));
            let wrong = Sum::ZERO.word(right).word(error).fold();
            let still_right = error == 0 || error == 0xffff;
            prop_assert_eq!(is_right(carry_over(wrong, old, new)), still_right);
        }

        #[test]
        fn parts_sum_like_the_whole(bytes in prop::collection::vec(any::<u8>(), 0..100), at in 0_usize..50) {
            let at = (at * 2).min(bytes.len() & !1);
            let (first, second) = bytes.split_at(at);
            prop_assert_eq!(Sum::ZERO.bytes(first).bytes(second).fold(), Sum::ZERO.bytes(&bytes).fold());
        }
    }
}
