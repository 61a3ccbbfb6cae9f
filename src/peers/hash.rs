//! A keyed hash of short integers.

/// Keys drawn once for each table, so that nobody outside can choose addresses that collide.
#[derive(Clone, Copy, Debug)]
pub struct HashKey(u64, u64);

impl HashKey {
    /// From any number that others cannot guess.
    pub const fn new(seed: u64) -> Self {
        // Two steps of splitmix64, whose outputs are independent even for neighbouring seeds.
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        Self(mix(seed.wrapping_add(STEP)), mix(seed.wrapping_add(STEP.wrapping_mul(2))))
    }

    /// The hash of 64 bits.
    #[inline]
    pub const fn one(self, value: u64) -> u32 {
        fold(value ^ self.0, self.1 | 1)
    }

    /// The hash of 128 and 64 bits.
    #[inline]
    pub const fn three(self, a: u64, b: u64, c: u64) -> u32 {
        let first = (a ^ self.0) as u128 * (b ^ self.1) as u128;
        fold(first as u64 ^ (first >> 64) as u64 ^ c, self.1 | 1)
    }
}

const fn mix(mut value: u64) -> u64 {
    value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

#[inline]
const fn fold(a: u64, b: u64) -> u32 {
    let product = a as u128 * b as u128;
    let folded = product as u64 ^ (product >> 64) as u64;
    folded as u32 ^ (folded >> 32) as u32
}
