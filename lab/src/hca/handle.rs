//! Handles: what the driver holds instead of an object.
//!
//! A handle is a number that only looks like a pointer: it is not canonical, so a driver that dereferences one
//! faults, and no number is ever used twice, so a stale handle is told from a live one and a handle of another
//! machine from one of this.

use std::ffi::c_void;
use std::fmt;

/// The kind of object behind a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// An instance of the access layer (`open_al`).
    Al = 1,
    /// An open channel adapter (`open_ca`).
    Ca,
    /// A protection domain (`alloc_pd`).
    Pd,
    /// A completion queue (`create_cq`).
    Cq,
    /// A queue pair (`create_qp`).
    Qp,
    /// A memory region (`reg_phys`, `reg_mem`).
    Mr,
    /// An address vector (`create_av`).
    Av,
    /// A multicast membership (`join_mcast`).
    Mcast,
    /// A Plug and Play registration (`reg_pnp`).
    Pnp,
    /// A query of the subnet administrator (`query`).
    Query,
}

impl Kind {
    /// Every kind, in the order in which objects depend on one another.
    pub const ALL: [Kind; 10] = [
        Kind::Al,
        Kind::Ca,
        Kind::Pd,
        Kind::Cq,
        Kind::Qp,
        Kind::Mr,
        Kind::Av,
        Kind::Mcast,
        Kind::Pnp,
        Kind::Query,
    ];

    fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == code)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Al => "AL",
            Kind::Ca => "CA",
            Kind::Pd => "PD",
            Kind::Cq => "CQ",
            Kind::Qp => "QP",
            Kind::Mr => "MR",
            Kind::Av => "AV",
            Kind::Mcast => "MCAST",
            Kind::Pnp => "PNP",
            Kind::Query => "QUERY",
        })
    }
}

/// Top 12 bits of every handle; no canonical x64 address starts so.
const TAG: u64 = 0xb1a;

/// A handle, taken apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle {
    /// Number of the HCA that issued it (12 bits).
    pub hca: u16,
    /// What it stands for.
    pub kind: Kind,
    /// Serial number, from 1, over all kinds of one HCA.
    pub serial: u32,
}

impl Handle {
    /// The value that the driver sees.
    pub fn to_raw(self) -> u64 {
        (TAG << 52)
            | (u64::from(self.hca & 0xfff) << 40)
            | ((self.kind as u64) << 32)
            | u64::from(self.serial)
    }

    /// The value that the driver sees, typed.
    pub fn to_ptr<T>(self) -> *mut T {
        std::ptr::without_provenance_mut(self.to_raw() as usize)
    }

    /// Takes a value of the driver apart; `None` if it never was a handle.
    pub fn from_raw(raw: u64) -> Option<Self> {
        if raw >> 52 != TAG {
            return None;
        }
        let kind = Kind::from_code((raw >> 32) as u8)?;
        Some(Self { hca: ((raw >> 40) & 0xfff) as u16, kind, serial: raw as u32 })
    }

    /// As [`Handle::from_raw`], of a pointer.
    pub fn from_ptr<T>(ptr: *const T) -> Option<Self> {
        Self::from_raw(ptr.cast::<c_void>().addr() as u64)
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.kind, self.serial)
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every handle comes back from its raw form, and none is a canonical address.
    #[test]
    fn raw_form_round_trips_and_is_not_canonical() {
        for kind in Kind::ALL {
            let handle = Handle { hca: 0xabc, kind, serial: 0xdead_beef };
            let raw = handle.to_raw();
            assert_eq!(Handle::from_raw(raw), Some(handle));
            assert!(!matches!(raw >> 47, 0 | 0x1_ffff));
        }
    }

    /// Null, a heap address and an unknown kind are no handles.
    #[test]
    fn other_values_are_refused() {
        assert_eq!(Handle::from_raw(0), None);
        assert_eq!(Handle::from_raw(0x7fff_1234_5678), None);
        assert_eq!(Handle::from_raw((TAG << 52) | (0xff << 32) | 1), None);
    }
}
