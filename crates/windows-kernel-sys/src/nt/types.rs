//! Types that every part of NT shares (`ntdef.h`, `guiddef.h`, `wdm.h`).

use core::ffi::c_void;

pub type NTSTATUS = i32;
pub type BOOLEAN = u8;
pub type HANDLE = *mut c_void;
pub type PVOID = *mut c_void;
pub type WCHAR = u16;
/// A physical address (`PHYSICAL_ADDRESS` is a `LARGE_INTEGER` in C; only its `QuadPart` is used here).
pub type PHYSICAL_ADDRESS = i64;

pub const FALSE: BOOLEAN = 0;
pub const TRUE: BOOLEAN = 1;

/// `guiddef.h`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GUID {
    pub Data1: u32,
    pub Data2: u16,
    pub Data3: u16,
    pub Data4: [u8; 8],
}

/// A counted UTF-16 string, lengths in bytes, not necessarily terminated (`ntdef.h`; ntdef/ns-ntdef-_unicode_string).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct UNICODE_STRING {
    pub Length: u16,
    pub MaximumLength: u16,
    pub Buffer: *mut WCHAR,
}

/// `ntdef.h`; ntdef/ns-ntdef-list_entry.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LIST_ENTRY {
    pub Flink: *mut LIST_ENTRY,
    pub Blink: *mut LIST_ENTRY,
}

/// `ntdef.h`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SINGLE_LIST_ENTRY {
    pub Next: *mut SINGLE_LIST_ENTRY,
}

/// An element of an interlocked list; must be aligned to 16 bytes (`wdm.h`).
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug)]
pub struct SLIST_ENTRY {
    pub Next: *mut SLIST_ENTRY,
}

/// Head of an interlocked list (`wdm.h`).
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug)]
pub struct SLIST_HEADER {
    pub Alignment: u64,
    pub Region: u64,
}

/// Network interface LUID (`ifdef.h`; `NET_LUID_LH`): 24 bits reserved, 24 bits index, 16 bits interface type.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NET_LUID {
    pub Value: u64,
}

layout! {
    GUID: 16, 4 { Data1 @ 0, Data2 @ 4, Data3 @ 6, Data4 @ 8 }
    UNICODE_STRING: 16, 8 { Length @ 0, MaximumLength @ 2, Buffer @ 8 }
    LIST_ENTRY: 16, 8 { Flink @ 0, Blink @ 8 }
    SINGLE_LIST_ENTRY: 8, 8 { Next @ 0 }
    SLIST_ENTRY: 16, 16 { Next @ 0 }
    SLIST_HEADER: 16, 16 { Alignment @ 0, Region @ 8 }
    NET_LUID: 8, 8 { Value @ 0 }
}
