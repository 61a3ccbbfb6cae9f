//! Time as the room counts it.

use core::ops::Add;
use core::time::Duration;

/// Milliseconds since some fixed moment. The caller passes it in; nothing here reads a clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(u64);

impl Time {
    /// From milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// From a time since boot.
    pub const fn from_uptime(uptime: Duration) -> Self {
        Self(uptime.as_secs().wrapping_mul(1000).wrapping_add(uptime.subsec_millis() as u64))
    }

    /// In milliseconds.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// Milliseconds from `earlier` to this; 0 if it is later.
    pub const fn millis_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<u32> for Time {
    type Output = Self;

    fn add(self, millis: u32) -> Self {
        Self(self.0.saturating_add(u64::from(millis)))
    }
}
