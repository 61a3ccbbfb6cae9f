//! Fields at bit offsets, and the macro that turns a table of them into a view and an owned representation.
//!
//! IBA lays its headers out as tables of (name, offset in bits, length in bits), bit 0 being the most
//! significant bit of the first byte. `wire_format!` takes such a table as it stands and makes two types of
//! it, as wire crates do: a *view* that reads and writes fields in place over any buffer, and a
//! *representation*, a plain struct that can be parsed from a view and emitted into one. Fields that overlap
//! or leave the buffer do not compile.

use crate::fabric::ids::{Gid, Guid, Lid, PKey, QKey, Qpn};

/// A buffer shorter than the header it should hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncated;

impl std::fmt::Display for Truncated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("buffer too short for the header")
    }
}

impl std::error::Error for Truncated {}

/// Reads `len` (at most 128) bits at bit `offset`. A field of more than 121 bits must start on a byte.
#[inline]
pub fn get(buffer: &[u8], offset: usize, len: usize) -> u128 {
    let first = offset / 8;
    let last = (offset + len - 1) / 8;
    let value = buffer[first..=last].iter().fold(0u128, |value, &byte| (value << 8) | u128::from(byte));
    (value >> ((last + 1) * 8 - offset - len)) & mask(len)
}

/// Writes the low `len` bits of `value` at bit `offset`, leaving the bits around them alone.
#[inline]
pub fn set(buffer: &mut [u8], offset: usize, len: usize, value: u128) {
    let first = offset / 8;
    let last = (offset + len - 1) / 8;
    let shift = (last + 1) * 8 - offset - len;
    let mut keep = !(mask(len) << shift);
    let mut bits = (value & mask(len)) << shift;
    for byte in buffer[first..=last].iter_mut().rev() {
        *byte = (*byte & keep as u8) | bits as u8;
        keep = (keep >> 8) | (0xFF << 120);
        bits >>= 8;
    }
}

#[inline]
const fn mask(len: usize) -> u128 {
    u128::MAX >> (128 - len)
}

/// Whether fields, as (offset, length) in bits, lie inside `bytes` bytes and do not overlap.
pub const fn disjoint(fields: &[(usize, usize)], bytes: usize) -> bool {
    let mut i = 0;
    while i < fields.len() {
        let (offset, len) = fields[i];
        if len == 0 || len > 128 || offset + len > bytes * 8 || (len > 121 && !offset.is_multiple_of(8)) {
            return false;
        }
        let mut j = 0;
        while j < i {
            let (other, other_len) = fields[j];
            if offset < other + other_len && other < offset + len {
                return false;
            }
            j += 1;
        }
        i += 1;
    }
    true
}

/// A type that a bit field can hold.
pub trait Field: Copy {
    /// The bits as the type. The caller passes no more bits than the field has.
    fn from_bits(bits: u128) -> Self;
    /// The type as bits.
    fn into_bits(self) -> u128;
}

macro_rules! integer_field {
    ($($ty:ty),*) => {$(
        impl Field for $ty {
            #[inline]
            fn from_bits(bits: u128) -> Self {
                bits as Self
            }
            #[inline]
            fn into_bits(self) -> u128 {
                u128::from(self)
            }
        }
    )*};
}
integer_field!(u8, u16, u32, u64, u128);

impl Field for bool {
    #[inline]
    fn from_bits(bits: u128) -> Self {
        bits != 0
    }
    #[inline]
    fn into_bits(self) -> u128 {
        u128::from(self)
    }
}

impl Field for Qpn {
    #[inline]
    fn from_bits(bits: u128) -> Self {
        Self::new(bits as u32)
    }
    #[inline]
    fn into_bits(self) -> u128 {
        u128::from(self.get())
    }
}

impl Field for Gid {
    #[inline]
    fn from_bits(bits: u128) -> Self {
        Self(bits.to_be_bytes())
    }
    #[inline]
    fn into_bits(self) -> u128 {
        u128::from_be_bytes(self.0)
    }
}

macro_rules! newtype_field {
    ($($ty:ident),*) => {$(
        impl $crate::fabric::wire::bits::Field for $ty {
            #[inline]
            fn from_bits(bits: u128) -> Self {
                Self($crate::fabric::wire::bits::Field::from_bits(bits))
            }
            #[inline]
            fn into_bits(self) -> u128 {
                $crate::fabric::wire::bits::Field::into_bits(self.0)
            }
        }
    )*};
}
newtype_field!(Lid, Guid, PKey, QKey);
pub(crate) use newtype_field;

/// Makes a view and a representation of a table of bit fields. See the module's documentation.
macro_rules! wire_format {
    (
        $(#[$meta:meta])*
        $vis:vis struct $repr:ident, $view:ident [$bytes:literal] {
            $( $(#[$field_meta:meta])* $field:ident / $setter:ident : $ty:ty = $offset:literal, $len:literal; )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis struct $repr {
            $( $(#[$field_meta])* pub $field: $ty, )*
        }

        const _: () = assert!($crate::fabric::wire::bits::disjoint(&[$(($offset, $len)),*], $bytes));

        impl $repr {
            /// Length on the wire in bytes.
            pub const LEN: usize = $bytes;

            /// The fields, as (offset, length) in bits. Every other bit is reserved.
            pub const FIELDS: &'static [(usize, usize)] = &[$(($offset, $len)),*];

            /// Reads every field of `view`.
            #[inline]
            pub fn parse<T: AsRef<[u8]>>(view: &$view<T>) -> Self {
                Self { $( $field: view.$field(), )* }
            }

            /// Reads the header at the start of `buffer`.
            #[inline]
            pub fn parse_slice(buffer: &[u8]) -> Result<Self, $crate::fabric::wire::bits::Truncated> {
                $view::new_checked(buffer).map(|view| Self::parse(&view))
            }

            /// Writes every field into `view`; reserved bits become zero.
            #[inline]
            pub fn emit<T: AsRef<[u8]> + AsMut<[u8]>>(&self, view: &mut $view<T>) {
                view.buffer.as_mut()[..$bytes].fill(0);
                $( view.$setter(self.$field); )*
            }

            /// The header as bytes.
            pub fn to_bytes(&self) -> [u8; $bytes] {
                let mut view = $view { buffer: [0; $bytes] };
                self.emit(&mut view);
                view.buffer
            }
        }

        impl Default for $repr {
            /// Every field zero.
            fn default() -> Self {
                Self::parse(&$view { buffer: [0u8; $bytes] })
            }
        }

        #[doc = concat!("[`", stringify!($repr), "`] in place over a buffer of at least ",
            stringify!($bytes), " bytes.")]
        #[derive(Clone, Copy, Debug)]
        $vis struct $view<T> {
            buffer: T,
        }

        impl<T: AsRef<[u8]>> $view<T> {
            /// Looks at `buffer`, which must hold the header; bytes after it are not touched.
            #[inline]
            pub fn new_checked(buffer: T) -> Result<Self, $crate::fabric::wire::bits::Truncated> {
                if buffer.as_ref().len() < $bytes {
                    return Err($crate::fabric::wire::bits::Truncated);
                }
                Ok(Self { buffer })
            }

            /// Gives the buffer back.
            pub fn into_inner(self) -> T {
                self.buffer
            }

            $(
                $(#[$field_meta])*
                #[inline]
                pub fn $field(&self) -> $ty {
                    $crate::fabric::wire::bits::Field::from_bits($crate::fabric::wire::bits::get(
                        self.buffer.as_ref(), $offset, $len,
                    ))
                }
            )*
        }

        impl<T: AsRef<[u8]> + AsMut<[u8]>> $view<T> {
            $(
                #[doc = concat!("Sets [`Self::", stringify!($field), "`].")]
                #[inline]
                pub fn $setter(&mut self, value: $ty) {
                    $crate::fabric::wire::bits::set(
                        self.buffer.as_mut(), $offset, $len,
                        $crate::fabric::wire::bits::Field::into_bits(value),
                    );
                }
            )*
        }
    };
}
pub(crate) use wire_format;

/// Property tests that every wire format must pass, made by one line in the tests of each module.
#[cfg(test)]
macro_rules! wire_format_tests {
    ($($name:ident: $repr:ident, $view:ident;)*) => {$(
        proptest::proptest! {
            /// Emitting what was parsed gives back every bit that is not reserved, and zero for those that
            /// are; parsing what was emitted gives the same representation. A short buffer is refused.
            #[test]
            fn $name(bytes in proptest::collection::vec(proptest::num::u8::ANY, $repr::LEN)) {
                let parsed = $repr::parse_slice(&bytes).unwrap();
                let emitted = parsed.to_bytes();
                let mut expected = vec![0u8; $repr::LEN];
                for &(offset, len) in $repr::FIELDS {
                    for bit in offset..offset + len {
                        expected[bit / 8] |= bytes[bit / 8] & (0x80 >> (bit % 8));
                    }
                }
                proptest::prop_assert_eq!(&emitted[..], &expected[..]);
                proptest::prop_assert_eq!($repr::parse_slice(&emitted).unwrap(), parsed);
                proptest::prop_assert!($view::new_checked(&bytes[..$repr::LEN - 1]).is_err());
            }
        }
    )*};
}
#[cfg(test)]
pub(crate) use wire_format_tests;

#[cfg(test)]
mod tests {
    use super::*;

    /// Bit 0 is the most significant bit of byte 0 (IBA 1.5.2), also across bytes.
    #[test]
    fn bit_order() {
        assert_eq!(get(&[0x80, 0x01], 0, 1), 1);
        assert_eq!(get(&[0x80, 0x01], 15, 1), 1);
        assert_eq!(get(&[0x12, 0x34, 0x56], 4, 16), 0x2345);
        let mut buffer = [0xFF; 3];
        set(&mut buffer, 4, 16, 0);
        assert_eq!(buffer, [0xF0, 0x00, 0x0F]);
        set(&mut buffer, 7, 3, 0b101);
        assert_eq!(buffer, [0xF1, 0x40, 0x0F]);
    }

    /// Overlaps and fields past the end are what `wire_format!` refuses at compile time.
    #[test]
    fn disjoint_catches_overlap_and_overrun() {
        assert!(disjoint(&[(0, 4), (4, 4)], 1));
        assert!(!disjoint(&[(0, 5), (4, 4)], 1));
        assert!(!disjoint(&[(0, 4), (4, 5)], 1));
        assert!(!disjoint(&[(4, 128)], 32));
        assert!(disjoint(&[(8, 128)], 32));
    }

    proptest::proptest! {
        /// What is set is got, and nothing around it moves.
        #[test]
        fn set_then_get(mut buffer: [u8; 24], offset in 0usize..64, len in 1usize..=121, value: u128) {
            let before = buffer;
            set(&mut buffer, offset, len, value);
            proptest::prop_assert_eq!(get(&buffer, offset, len), value & mask(len));
            for bit in (0..offset).chain(offset + len..24 * 8) {
                proptest::prop_assert_eq!(get(&buffer, bit, 1), get(&before, bit, 1));
            }
        }
    }
}
