//! Link width and speed, and the encoded MTU, rate and lifetime that records carry.

use super::ids::Nanos;

/// Maximum payload of a packet, in the encoding of PortInfo, PathRecord and MCMemberRecord (IBA 14.2.5.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Mtu {
    /// 256 bytes.
    B256 = 1,
    /// 512 bytes.
    B512 = 2,
    /// 1024 bytes.
    B1024 = 3,
    /// 2048 bytes.
    B2048 = 4,
    /// 4096 bytes.
    B4096 = 5,
}

impl Mtu {
    /// Every MTU, smallest first.
    pub const ALL: [Self; 5] = [Self::B256, Self::B512, Self::B1024, Self::B2048, Self::B4096];

    /// The encoding.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The payload in bytes.
    pub const fn bytes(self) -> usize {
        128 << self as u8
    }

    /// The MTU of an encoding, `None` for a reserved one.
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::B256),
            2 => Some(Self::B512),
            3 => Some(Self::B1024),
            4 => Some(Self::B2048),
            5 => Some(Self::B4096),
            _ => None,
        }
    }
}

/// Lanes of a link (IBA 14.2.5.6, LinkWidthActive).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkWidth {
    /// One lane.
    X1,
    /// Four lanes.
    X4,
    /// Eight lanes.
    X8,
    /// Twelve lanes.
    X12,
}

impl LinkWidth {
    /// The bit of LinkWidthSupported, LinkWidthEnabled and LinkWidthActive.
    pub const fn bit(self) -> u8 {
        match self {
            Self::X1 => 1,
            Self::X4 => 2,
            Self::X8 => 4,
            Self::X12 => 8,
        }
    }

    /// Number of lanes.
    pub const fn lanes(self) -> u64 {
        match self {
            Self::X1 => 1,
            Self::X4 => 4,
            Self::X8 => 8,
            Self::X12 => 12,
        }
    }
}

/// Speed of one lane (IBA 14.2.5.6, LinkSpeedActive and LinkSpeedExtActive).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkSpeed {
    /// 2.5 Gb/s, 8b/10b.
    Sdr,
    /// 5 Gb/s, 8b/10b.
    Ddr,
    /// 10 Gb/s, 8b/10b.
    Qdr,
    /// 14.0625 Gb/s, 64b/66b.
    Fdr,
    /// 25.78125 Gb/s, 64b/66b.
    Edr,
    /// 50 Gb/s of data.
    Hdr,
    /// 100 Gb/s of data.
    Ndr,
}

impl LinkSpeed {
    /// The bits of LinkSpeedActive: an extended speed reports QDR there, since the older field has no bit for
    /// it.
    pub const fn bits(self) -> u8 {
        match self {
            Self::Sdr => 1,
            Self::Ddr => 2,
            _ => 4,
        }
    }

    /// The bits of LinkSpeedExtActive, 0 when the speed is not an extended one.
    pub const fn ext_bits(self) -> u8 {
        match self {
            Self::Sdr | Self::Ddr | Self::Qdr => 0,
            Self::Fdr => 1,
            Self::Edr => 2,
            Self::Hdr => 4,
            Self::Ndr => 8,
        }
    }

    /// Data bits per second and lane, after line coding.
    const fn data_rate(self) -> u64 {
        match self {
            Self::Sdr => 2_000_000_000,
            Self::Ddr => 4_000_000_000,
            Self::Qdr => 8_000_000_000,
            Self::Fdr => 13_636_363_636,
            Self::Edr => 25_000_000_000,
            Self::Hdr => 50_000_000_000,
            Self::Ndr => 100_000_000_000,
        }
    }
}

/// Rate of a path or group, in the encoding of PathRecord and MCMemberRecord (IBA 15.2.5.16). The encodings
/// are not in the order of the rates they stand for: compare with [`Rate::megabits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate(u8);

/// Encoding and signalling rate in Mb/s.
const RATES: [(u8, u32); 23] = [
    (2, 2_500),
    (3, 10_000),
    (4, 30_000),
    (5, 5_000),
    (6, 20_000),
    (7, 40_000),
    (8, 60_000),
    (9, 80_000),
    (10, 120_000),
    (11, 14_000),
    (12, 56_000),
    (13, 112_000),
    (14, 168_000),
    (15, 25_000),
    (16, 100_000),
    (17, 200_000),
    (18, 300_000),
    (19, 28_000),
    (20, 50_000),
    (21, 400_000),
    (22, 600_000),
    (23, 800_000),
    (24, 1_200_000),
];

impl Rate {
    /// The rate of an encoding, `None` for a reserved one.
    pub fn from_code(code: u8) -> Option<Self> {
        RATES.iter().any(|&(known, _)| known == code).then_some(Self(code))
    }

    /// The encoding.
    pub const fn code(self) -> u8 {
        self.0
    }

    /// Signalling rate in Mb/s, as the encoding is named.
    pub fn megabits(self) -> u32 {
        RATES.iter().find(|&&(code, _)| code == self.0).map_or(0, |&(_, rate)| rate)
    }

    /// The fastest rate that is slower.
    pub fn next_lower(self) -> Option<Self> {
        RATES.iter().map(|&(code, _)| Self(code)).filter(|&rate| rate < self).max()
    }

    /// The rate of a link.
    pub const fn of(width: LinkWidth, speed: LinkSpeed) -> Self {
        use {LinkSpeed as S, LinkWidth as W};
        Self(match (width, speed) {
            (W::X1, S::Sdr) => 2,
            (W::X1, S::Ddr) => 5,
            (W::X1, S::Qdr) | (W::X4, S::Sdr) => 3,
            (W::X1, S::Fdr) => 11,
            (W::X1, S::Edr) => 15,
            (W::X1, S::Hdr) => 20,
            (W::X1, S::Ndr) | (W::X4, S::Edr) => 16,
            (W::X4, S::Ddr) | (W::X8, S::Sdr) => 6,
            (W::X4, S::Qdr) | (W::X8, S::Ddr) => 7,
            (W::X4, S::Fdr) => 12,
            (W::X4, S::Hdr) | (W::X8, S::Edr) => 17,
            (W::X4, S::Ndr) | (W::X8, S::Hdr) => 21,
            (W::X8, S::Qdr) => 9,
            (W::X8, S::Fdr) => 13,
            (W::X8, S::Ndr) => 23,
            (W::X12, S::Sdr) => 4,
            (W::X12, S::Ddr) => 8,
            (W::X12, S::Qdr) => 10,
            (W::X12, S::Fdr) => 14,
            (W::X12, S::Edr) => 18,
            (W::X12, S::Hdr) => 22,
            (W::X12, S::Ndr) => 24,
        })
    }
}

impl PartialOrd for Rate {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Rate {
    /// By speed. Equal only for equal encodings, since no two share a speed.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.megabits().cmp(&other.megabits())
    }
}

/// How long `bytes` take to leave a port, in nanoseconds, at least 1.
pub fn serialisation(width: LinkWidth, speed: LinkSpeed, bytes: usize) -> Nanos {
    let bits_per_second = u128::from(width.lanes() * speed.data_rate());
    ((bytes as u128 * 8 * 1_000_000_000).div_ceil(bits_per_second) as Nanos).max(1)
}

/// The interval that the 5-bit timeout encoding of IBA stands for: 4.096 µs times two to the power of `code`.
pub const fn timeout(code: u8) -> Nanos {
    4096 << (code & 0x1F)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// IBA 15.2.5.16: every width and speed has a rate, and it is their product.
    #[test]
    fn rate_of_link_is_width_times_speed() {
        let lane = |speed| match speed {
            LinkSpeed::Sdr => 2_500,
            LinkSpeed::Ddr => 5_000,
            LinkSpeed::Qdr => 10_000,
            LinkSpeed::Fdr => 14_000,
            LinkSpeed::Edr => 25_000,
            LinkSpeed::Hdr => 50_000,
            LinkSpeed::Ndr => 100_000,
        };
        for width in [LinkWidth::X1, LinkWidth::X4, LinkWidth::X8, LinkWidth::X12] {
            for speed in [
                LinkSpeed::Sdr,
                LinkSpeed::Ddr,
                LinkSpeed::Qdr,
                LinkSpeed::Fdr,
                LinkSpeed::Edr,
                LinkSpeed::Hdr,
                LinkSpeed::Ndr,
            ] {
                let rate = Rate::of(width, speed);
                assert_eq!(u64::from(rate.megabits()), width.lanes() * lane(speed), "{width:?} {speed:?}");
                assert_eq!(Rate::from_code(rate.code()), Some(rate));
            }
        }
    }

    /// The encodings are out of order: 5 (5 Gb/s) is slower than 3 (10 Gb/s).
    #[test]
    fn rates_compare_by_speed() {
        assert!(Rate::from_code(5) < Rate::from_code(3));
        assert_eq!(Rate::from_code(1), None);
        assert_eq!(Rate::from_code(25), None);
    }

    /// 4x SDR carries 8 Gb/s of data: one byte a nanosecond.
    #[test]
    fn serialisation_follows_data_rate() {
        assert_eq!(serialisation(LinkWidth::X4, LinkSpeed::Sdr, 2048), 2048);
        assert_eq!(serialisation(LinkWidth::X4, LinkSpeed::Edr, 1250), 100);
    }

    /// IBA 14.2.5.6: MTU encodings.
    #[test]
    fn mtu_codes() {
        for mtu in Mtu::ALL {
            assert_eq!(Mtu::from_code(mtu.code()), Some(mtu));
        }
        assert_eq!(Mtu::B2048.bytes(), 2048);
        assert_eq!(Mtu::from_code(0), None);
        assert_eq!(Mtu::from_code(6), None);
    }
}
