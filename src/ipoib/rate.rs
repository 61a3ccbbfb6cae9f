//! Rates of paths, and the speed of a link from its width and speed.

/// The rate in path and multicast records (IBTA volume 1, 15.2.5.16), in the order of speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate {
    code: u8,
    megabits: u32,
}

/// Selectors of records' rate and MTU fields (IBTA volume 1, 15.2.5.16), in the upper two bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Selector {
    /// More than the value.
    GreaterThan = 0,
    /// Less than the value.
    LessThan = 1,
    /// Exactly the value.
    Exactly = 2,
    /// The largest that there is; the value is ignored.
    Largest = 3,
}

impl Selector {
    /// The field of a record: this selector and a 6-bit code.
    pub const fn field(self, code: u8) -> u8 {
        (self as u8) << 6 | code & 0x3f
    }
}

/// Codes and rates, ascending by code. Linux include/rdma/ib_verbs.h, enum ib_rate, has the same pairs.
const TABLE: [Rate; 23] = {
    const fn rate(code: u8, megabits: u32) -> Rate {
        Rate { code, megabits }
    }
    [
        rate(2, 2_500),
        rate(3, 10_000),
        rate(4, 30_000),
        rate(5, 5_000),
        rate(6, 20_000),
        rate(7, 40_000),
        rate(8, 60_000),
        rate(9, 80_000),
        rate(10, 120_000),
        rate(11, 14_000),
        rate(12, 56_000),
        rate(13, 112_000),
        rate(14, 168_000),
        rate(15, 25_000),
        rate(16, 100_000),
        rate(17, 200_000),
        rate(18, 300_000),
        rate(19, 28_000),
        rate(20, 50_000),
        rate(21, 400_000),
        rate(22, 600_000),
        rate(23, 800_000),
        rate(24, 1_200_000),
    ]
};

impl Rate {
    /// 2.5 Gb/s: what every port can.
    pub const LOWEST: Self = Self { code: 2, megabits: 2_500 };
    /// 10 Gb/s: what OpenSM gives an IPoIB broadcast group unless told otherwise.
    pub const GROUP_DEFAULT: Self = Self { code: 3, megabits: 10_000 };

    /// Every rate, ascending by code.
    pub const ALL: &'static [Self] = &TABLE;

    /// From a record's field, whose selector is ignored; `None` if the code is reserved.
    pub fn from_code(field: u8) -> Option<Self> {
        let code = field & 0x3f;
        TABLE.into_iter().find(|rate| rate.code == code)
    }

    /// The code, 6 bits. It is also what IBAL wants as the static rate of an address vector.
    pub const fn code(self) -> u8 {
        self.code
    }

    /// Bits a second.
    pub const fn bits_per_second(self) -> u64 {
        self.megabits as u64 * 1_000_000
    }

    /// The fastest rate that is not above `bits` a second; [`Self::LOWEST`] if all are.
    pub fn fastest_within(bits: u64) -> Self {
        TABLE
            .into_iter()
            .filter(|rate| rate.bits_per_second() <= bits)
            .max_by_key(|rate| rate.megabits)
            .unwrap_or(Self::LOWEST)
    }
}

/// Lanes of a link, from PortInfo's LinkWidthActive (IBTA volume 1, 14.2.5.6). `None` if the code is not one
/// bit that is defined.
pub const fn lanes(width_active: u8) -> Option<u32> {
    match width_active {
        1 => Some(1),
        2 => Some(4),
        4 => Some(8),
        8 => Some(12),
        16 => Some(2),
        _ => None,
    }
}

/// Bits a second of one lane, by the name of its generation, from PortInfo's LinkSpeedActive and
/// LinkSpeedExtActive. The extended speed, when there is one, is the truth and the other then says 10 Gb/s
/// (IBTA volume 1, 14.2.5.6). Linux drivers/infiniband/core/sysfs.c, rate_show, has the same table.
pub const fn lane_bits_per_second(speed_active: u8, extended_active: u8) -> Option<u64> {
    match (extended_active, speed_active) {
        (1, _) => Some(14_000_000_000),
        (2, _) => Some(25_000_000_000),
        (4, _) => Some(50_000_000_000),
        (8, _) => Some(100_000_000_000),
        (_, 1) => Some(2_500_000_000),
        (_, 2) => Some(5_000_000_000),
        (_, 4) => Some(10_000_000_000),
        _ => None,
    }
}

/// Bits a second of a link; `None` if a code is not defined.
pub const fn link_bits_per_second(width_active: u8, speed_active: u8, extended_active: u8) -> Option<u64> {
    match (lanes(width_active), lane_bits_per_second(speed_active, extended_active)) {
        (Some(lanes), Some(bits)) => Some(bits * lanes as u64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_ascend_without_a_gap() {
        assert!(Rate::ALL.iter().map(|rate| rate.code()).eq(2..=24));
        assert_eq!(Rate::from_code(0x80 | 3), Some(Rate::GROUP_DEFAULT));
        assert_eq!(Rate::from_code(1), None);
        assert_eq!(Rate::from_code(25), None);
    }

    #[test]
    fn four_lanes_of_each_generation_have_a_rate_of_their_own() {
        for (speed, extended, gigabits, code) in [
            (1, 0, 10, 3),
            (2, 0, 20, 6),
            (4, 0, 40, 7),
            (4, 1, 56, 12),
            (4, 2, 100, 16),
            (4, 4, 200, 17),
            (4, 8, 400, 21),
        ] {
            let bits = link_bits_per_second(2, speed, extended).unwrap();
            assert_eq!(bits, gigabits * 1_000_000_000);
            assert_eq!(Rate::fastest_within(bits).code(), code);
        }
    }

    #[test]
    fn undefined_codes_have_no_speed() {
        assert_eq!(link_bits_per_second(3, 1, 0), None);
        assert_eq!(link_bits_per_second(2, 0, 0), None);
        assert_eq!(link_bits_per_second(16, 4, 0), Some(20_000_000_000));
    }

    #[test]
    fn a_selector_is_in_the_upper_two_bits() {
        assert_eq!(Selector::Exactly.field(3), 0x83);
        assert_eq!(Selector::Largest.field(0xff), 0xff);
    }
}
