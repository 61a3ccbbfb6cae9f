//! Locally administered addresses out of a counter.

use crate::ipoib::mac::MacAddr;
use core::sync::atomic::{AtomicU32, Ordering};

/// Hands out `02-00-NN-NN-NN-NN` with numbers from 1; 0 is never given. After 2^32 - 1 addresses it begins
/// anew, so who enters one into a table asks again if it is taken.
#[derive(Debug, Default)]
pub struct LaaCounter(AtomicU32);

impl LaaCounter {
    /// A counter whose first address is number 1.
    pub const fn new() -> Self {
        Self::starting_after(0)
    }

    /// A counter whose first address is the one after `last`.
    pub const fn starting_after(last: u32) -> Self {
        Self(AtomicU32::new(last))
    }

    /// The next address. Any number of callers, any IRQL.
    pub fn next(&self) -> MacAddr {
        let number = loop {
            // Zero comes once in 2^32 calls, so this loop runs twice at most unless others spin it round.
            let number = self.0.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
            if number != 0 {
                break number;
            }
        };
        let [a, b, c, d] = number.to_be_bytes();
        MacAddr::new([0x02, 0x00, a, b, c, d])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_from_one() {
        let counter = LaaCounter::new();
        assert_eq!(counter.next().to_bytes(), [2, 0, 0, 0, 0, 1]);
        assert_eq!(counter.next().to_bytes(), [2, 0, 0, 0, 0, 2]);
    }

    #[test]
    fn zero_is_never_given_after_a_wrap() {
        let counter = LaaCounter::starting_after(u32::MAX - 1);
        assert_eq!(counter.next().to_bytes(), [2, 0, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(counter.next().to_bytes(), [2, 0, 0, 0, 0, 1]);
    }
}
