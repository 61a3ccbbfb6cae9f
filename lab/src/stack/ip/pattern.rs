//! Test data that any byte of can be made again from its position.

/// An endless sequence of bytes, chosen by a seed.
#[derive(Clone, Copy, Debug)]
pub struct Pattern(u64);

impl Pattern {
    /// The sequence of this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// The eight bytes at `index * 8`: the SplitMix64 generator's output function (Steele, Lea and Flood 2014).
    fn word(self, index: u64) -> [u8; 8] {
        let mut z = self.0.wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)).to_le_bytes()
    }

    /// Fills `buffer` with the bytes from position `offset` on.
    pub fn fill(self, offset: u64, buffer: &mut [u8]) {
        let mut position = offset;
        let mut rest = buffer;
        while !rest.is_empty() {
            let skip = (position % 8) as usize;
            let word = self.word(position / 8);
            let part = &word[skip..];
            let length = part.len().min(rest.len());
            let (head, tail) = rest.split_at_mut(length);
            head.copy_from_slice(&part[..length]);
            position += length as u64;
            rest = tail;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_split_gives_the_same_bytes() {
        let mut whole = [0; 100];
        Pattern::new(7).fill(3, &mut whole);
        for split in 0..100 {
            let mut parts = [0; 100];
            let (head, tail) = parts.split_at_mut(split);
            Pattern::new(7).fill(3, head);
            Pattern::new(7).fill(3 + split as u64, tail);
            assert_eq!(parts, whole, "split at {split}");
        }
    }

    #[test]
    fn seeds_differ() {
        let (mut a, mut b) = ([0; 32], [0; 32]);
        Pattern::new(1).fill(0, &mut a);
        Pattern::new(2).fill(0, &mut b);
        assert_ne!(a, b);
    }
}
