//! The one random generator of a simulation.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

/// ChaCha with 8 rounds, seeded from the simulation's seed.
pub struct SimRng(ChaCha8Rng);

impl SimRng {
    /// The generator of `seed`.
    pub fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// A uniform 64-bit number.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A uniform 32-bit number.
    pub fn next_u32(&mut self) -> u32 {
        self.0.next_u32()
    }

    /// A number from 0 up to, not including, `bound`; 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        // Multiply-shift: its bias is bound / 2^64, far below what a simulation could show.
        ((u128::from(self.0.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A number of `low..=high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        match high.saturating_sub(low).checked_add(1) {
            Some(count) => low + self.below(count),
            None => self.next_u64(),
        }
    }

    /// True `parts` times in 65536.
    pub fn chance(&mut self, parts: u16) -> bool {
        (self.0.next_u32() & 0xFFFF) < u32::from(parts)
    }

    /// True with probability `p` of 0.0 to 1.0.
    pub fn probability(&mut self, p: f64) -> bool {
        // 53 bits are what a double holds exactly.
        #[allow(clippy::cast_precision_loss)]
        let draw = (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        draw < p
    }

    /// Fills `bytes`.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
    }
}
