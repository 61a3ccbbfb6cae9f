//! How layouts are pinned and imports declared.

/// Types of the ABI for which all bytes zero is a valid value: integers, nullable pointers, absent callbacks.
///
/// # Safety
/// The implementor must allow the all-zero bit pattern.
pub unsafe trait Zeroable: Sized {
    /// The value whose bytes are all zero, as a driver prepares a structure before it fills members in.
    fn zeroed() -> Self {
        // SAFETY: the trait's contract: all-zero is a valid value of `Self`.
        unsafe { core::mem::zeroed() }
    }
}

/// Size, alignment and member offsets of one structure, as asserted and as C should see them.
#[cfg(feature = "abi-check")]
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// The type's name here, and in C unless `c` is given.
    pub name: &'static str,
    /// The type's spelling in C; empty if C has no name for it (an anonymous member).
    pub c: &'static str,
    /// `sizeof`.
    pub size: usize,
    /// Alignment.
    pub align: usize,
    /// Members in order.
    pub fields: &'static [Field],
}

/// One member of a [`Layout`].
#[cfg(feature = "abi-check")]
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// The member designator in C.
    pub c: &'static str,
    /// `offsetof`.
    pub offset: usize,
}

/// Pins size, alignment and offsets, implements [`Zeroable`], and records the numbers for the C comparison.
///
/// `NAME: size, align { member @ offset, rust_member ("C.designator") @ offset }`; `NAME ("C spelling")` where C
/// spells the type differently, `NAME ("")` where C has no name for it.
macro_rules! layout {
    (@c $name:ident) => { stringify!($name) };
    (@c $name:ident $c:literal) => { $c };
    ($($ty:ident $(($c:literal))? : $size:literal, $align:literal {
        $($field:ident $(($fc:literal))? @ $offset:literal),* $(,)?
    })*) => {
        $(
            static_assertions::const_assert_eq!(core::mem::size_of::<$ty>(), $size);
            static_assertions::const_assert_eq!(core::mem::align_of::<$ty>(), $align);
            $(static_assertions::const_assert_eq!(core::mem::offset_of!($ty, $field), $offset);)*
            // SAFETY: the type is made of integers, raw pointers and optional function pointers only.
            unsafe impl $crate::Zeroable for $ty {}
        )*
        #[cfg(feature = "abi-check")]
        pub(super) const LAYOUTS: &[$crate::Layout] = &[$($crate::Layout {
            name: stringify!($ty),
            c: layout!(@c $ty $($c)?),
            size: $size,
            align: $align,
            fields: &[$($crate::Field { c: layout!(@c $field $($fc)?), offset: $offset }),*],
        }),*];
    };
}

/// Declares the functions imported from one kernel module and lists their names.
macro_rules! imports {
    (
        $(#[$list_attr:meta])*
        $list:ident from $module:literal;
        $($(#[$attr:meta])* fn $name:ident($($args:tt)*) $(-> $ret:ty)?;)*
    ) => {
        #[cfg_attr(target_os = "windows", link(name = $module, kind = "raw-dylib", modifiers = "+verbatim"))]
        unsafe extern "win64" {
            $($(#[$attr])* pub fn $name($($args)*) $(-> $ret)?;)*
        }
        $(#[$list_attr])*
        pub const $list: &[&str] = &[$(stringify!($name)),*];
    };
}
