//! Memory regions.
//!
//! Source: WinOFED `inc/iba/ib_types.h` (`ib_access_t`, `ib_mr_create_t`, `ib_phys_create_t`).

use core::ffi::c_void;

use crate::types::*;

bitflags::bitflags! {
    /// `ib_access_t`: what may be done to a memory region or through a QP.
    #[repr(transparent)]
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct ib_access_t: u32 {
        /// `IB_AC_RDMA_READ`.
        const IB_AC_RDMA_READ = 0x0000_0001;
        /// `IB_AC_RDMA_WRITE`.
        const IB_AC_RDMA_WRITE = 0x0000_0002;
        /// `IB_AC_ATOMIC`.
        const IB_AC_ATOMIC = 0x0000_0004;
        /// `IB_AC_LOCAL_WRITE`: the adapter may write it, as receives need.
        const IB_AC_LOCAL_WRITE = 0x0000_0008;
        /// `IB_AC_MW_BIND`.
        const IB_AC_MW_BIND = 0x0000_0010;
        /// `IB_AC_NOT_CACHABLE`.
        const IB_AC_NOT_CACHABLE = 0x8000_0000;
    }
}

/// `ib_mr_create_t`: a region of virtual memory, 24 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ib_mr_create_t {
    /// First byte.
    pub vaddr: *mut c_void,
    /// Bytes.
    pub length: u64,
    /// Rights.
    pub access_ctrl: ib_access_t,
}

/// `ib_phys_range_t`: a range of physical memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ib_phys_range_t {
    /// First byte; a multiple of the page size.
    pub base_addr: u64,
    /// Bytes; a multiple of the page size.
    pub size: u64,
}

/// `ib_phys_create_t`: a region of physical memory, 40 bytes.
///
/// A length of all ones over the whole physical space, at virtual address zero, makes a region in which an
/// address is a physical address (`ulp/ipoib/kernel`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ib_phys_create_t {
    /// Bytes of the region; at most the sum of the ranges.
    pub length: u64,
    /// Entries in `range_array`.
    pub num_ranges: u32,
    /// The ranges.
    pub range_array: *mut ib_phys_range_t,
    /// Offset of the first byte in the first range.
    pub buf_offset: u32,
    /// Page size that the adapter is to use.
    pub hca_page_size: u32,
    /// Rights.
    pub access_ctrl: ib_access_t,
}

/// `ib_mr_attr_t`: what `query_mr` returns.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ib_mr_attr_t {
    /// Protection domain.
    pub h_pd: ib_pd_handle_t,
    /// First byte for local access.
    pub local_lb: u64,
    /// Last byte for local access.
    pub local_ub: u64,
    /// First byte for remote access.
    pub remote_lb: u64,
    /// Last byte for remote access.
    pub remote_ub: u64,
    /// Rights.
    pub access_ctrl: ib_access_t,
    /// Local key.
    pub lkey: u32,
    /// Remote key.
    pub rkey: u32,
}
