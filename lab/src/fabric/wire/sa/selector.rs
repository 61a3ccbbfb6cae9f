//! Selectors: how a requested MTU, rate or lifetime is meant (IBA 15.2.5.16).

use crate::fabric::wire::bits::newtype_field;

/// Two bits beside an MTU, a rate or a packet lifetime.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Selector(pub u8);

newtype_field!(Selector);

impl Selector {
    /// Greater than the value given.
    pub const GREATER: Self = Self(0);
    /// Less than the value given.
    pub const LESS: Self = Self(1);
    /// Exactly the value given.
    pub const EXACTLY: Self = Self(2);
    /// The largest (MTU, rate) or smallest (lifetime) there is; the value given does not matter.
    pub const BEST: Self = Self(3);

    /// Whether `actual` is as wanted, given the order of the two.
    pub fn accepts(self, actual: std::cmp::Ordering) -> bool {
        match self {
            Self::GREATER => actual.is_gt(),
            Self::LESS => actual.is_lt(),
            Self::EXACTLY => actual.is_eq(),
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cmp::Ordering::{Equal, Greater, Less};

    /// IBA 15.2.5.16, table of selectors.
    #[test]
    fn table() {
        let accepted = |selector: Selector| [Less, Equal, Greater].map(|order| selector.accepts(order));
        assert_eq!(accepted(Selector::GREATER), [false, false, true]);
        assert_eq!(accepted(Selector::LESS), [true, false, false]);
        assert_eq!(accepted(Selector::EXACTLY), [false, true, false]);
        assert_eq!(accepted(Selector::BEST), [true, true, true]);
    }
}
