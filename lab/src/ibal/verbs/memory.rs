//! Memory regions.

use ibal_sys::*;

use super::{NO_RESOURCES, PASSIVE, fails, give, notice, verbs};
use crate::hca::Kind;
use crate::hca::mem::{Backing, PAGE, Region};
use crate::ibal::objects::{Client, Object};

verbs! {
    /// PASSIVE_LEVEL (`ib_reg_mem`): nonpaged virtual memory.
    [PASSIVE] fn reg_mem(ibal, h_pd: ib_pd_handle_t, p_mr_create: *const ib_mr_create_t, p_lkey: *mut u32,
        p_rkey: *mut u32, ph_mr: *mut ib_mr_handle_t) -> ib_api_status_t
    {
        let (pd, _) = ibal.resolve(h_pd, Kind::Pd, "reg_mem");
        if p_mr_create.is_null() || p_lkey.is_null() || p_rkey.is_null() || ph_mr.is_null() {
            return IB_INVALID_PARAMETER;
        }
        // SAFETY: the caller's request, checked not to be null.
        let create = unsafe { p_mr_create.read_unaligned() };
        let start = create.vaddr.addr() as u64;
        if create.length == 0 || start.checked_add(create.length).is_none() {
            return IB_INVALID_SETTING;
        }
        ibal.check_lifetime(Kind::Mr, crate::ibal::MAKES_RESOURCES, "made", "reg_mem");
        if fails("reg_mem") {
            return NO_RESOURCES;
        }
        let first = start & !(PAGE - 1);
        let count = (start + create.length - first).div_ceil(PAGE);
        let page = |index: u64| create.vaddr.cast::<u8>().wrapping_sub((start - first) as usize)
            .wrapping_add((index * PAGE) as usize);
        let pages = (0..count).map(|index| ibal.machine.to_phys(page(index))).collect();
        let backing = Backing::Virtual { start, pages, length: create.length };
        // SAFETY: the caller's pointers, checked not to be null.
        unsafe { register(&ibal, pd, create.access_ctrl, backing, p_lkey, p_rkey, ph_mr) }
    }

    /// PASSIVE_LEVEL (`ib_reg_phys`). One range from address 0 over everything, at virtual address 0, makes a region
    /// in which an address is a physical one.
    [PASSIVE] fn reg_phys(ibal, h_pd: ib_pd_handle_t, p_phys_create: *const ib_phys_create_t, p_vaddr: *mut u64,
        p_lkey: *mut u32, p_rkey: *mut u32, ph_mr: *mut ib_mr_handle_t) -> ib_api_status_t
    {
        let (pd, _) = ibal.resolve(h_pd, Kind::Pd, "reg_phys");
        let pointers = [p_phys_create.is_null(), p_vaddr.is_null(), p_lkey.is_null(), p_rkey.is_null(), ph_mr.is_null()];
        if pointers.contains(&true) {
            return IB_INVALID_PARAMETER;
        }
        // SAFETY: the caller's request and wish, checked not to be null.
        let (create, start) = unsafe { (p_phys_create.read_unaligned(), p_vaddr.read_unaligned()) };
        if create.num_ranges == 0 || create.range_array.is_null() || create.length == 0 {
            return IB_INVALID_PARAMETER;
        }
        if u64::from(create.hca_page_size) != PAGE {
            return IB_INVALID_SETTING;
        }
        let range = |index| {
            // SAFETY: the caller's array of `num_ranges` ranges.
            let range = unsafe { create.range_array.add(index).read_unaligned() };
            (range.base_addr, range.size)
        };
        let ranges: Vec<_> = (0..create.num_ranges as usize).map(range).collect();
        // The last page of the address space cannot be counted in 64 bits, so a range may end just short of it.
        let aligned = |(base, size): &(u64, u64)| {
            base % PAGE == 0 && (size % PAGE == 0 || base.checked_add(*size) == Some(u64::MAX))
        };
        if !ranges.iter().all(aligned) {
            return IB_INVALID_SETTING;
        }
        ibal.check_lifetime(Kind::Mr, crate::ibal::MAKES_RESOURCES, "made", "reg_phys");
        if fails("reg_phys") {
            return NO_RESOURCES;
        }
        let offset = u64::from(create.buf_offset);
        let backing = Backing::Physical { start, length: create.length, offset, ranges };
        // SAFETY: the caller's pointers, checked not to be null.
        unsafe { register(&ibal, pd, create.access_ctrl, backing, p_lkey, p_rkey, ph_mr) }
    }

    /// PASSIVE_LEVEL (`ib_query_mr`).
    [PASSIVE] fn query_mr(ibal, h_mr: ib_mr_handle_t, p_mr_attr: *mut ib_mr_attr_t) -> ib_api_status_t {
        let (_, object) = ibal.resolve(h_mr, Kind::Mr, "query_mr");
        let Object::Mr(region) = object else { return IB_INVALID_MR_HANDLE };
        if p_mr_attr.is_null() {
            return IB_INVALID_PARAMETER;
        }
        let (start, length) = match &region.backing {
            Backing::Physical { start, length, .. } | Backing::Virtual { start, length, .. } => (*start, *length),
        };
        let end = start.saturating_add(length - 1);
        let attributes = ib_mr_attr_t {
            h_pd: region.pd.to_ptr(),
            local_lb: start,
            local_ub: end,
            remote_lb: start,
            remote_ub: end,
            access_ctrl: ib_access_t::from_bits_retain(region.access),
            lkey: region.lkey,
            rkey: region.rkey,
        };
        // SAFETY: the caller's pointer, checked not to be null.
        unsafe { give(p_mr_attr, attributes) };
        IB_SUCCESS
    }

    /// PASSIVE_LEVEL (`ib_dereg_mr`).
    [PASSIVE] fn dereg_mr(ibal, h_mr: ib_mr_handle_t) -> ib_api_status_t {
        let (notice, _) = notice(ib_pfn_destroy_cb_t::NONE);
        let (handle, object) = ibal.begin_destroy(h_mr, Kind::Mr, notice, "dereg_mr");
        if let Object::Mr(region) = object {
            ibal.hca.deregister(&region);
        }
        ibal.release(handle, "dereg_mr");
        IB_SUCCESS
    }
}

/// # Safety
/// The pointers must be valid for writing.
unsafe fn register(
    ibal: &crate::ibal::Ibal,
    pd: crate::hca::Handle,
    access: ib_access_t,
    backing: Backing,
    p_lkey: *mut u32,
    p_rkey: *mut u32,
    ph_mr: *mut ib_mr_handle_t,
) -> ib_api_status_t {
    let made = ibal.hca.register(|handle, lkey, rkey| Region {
        handle,
        lkey,
        rkey,
        pd,
        local_write: access.contains(ib_access_t::IB_AC_LOCAL_WRITE),
        access: access.bits(),
        backing,
    });
    let Some(region) = made else { return NO_RESOURCES };
    let (handle, lkey, rkey) = (region.handle, region.lkey, region.rkey);
    ibal.enter(handle, Some(pd), Object::Mr(region), Client::quiet::<()>(std::ptr::null()));
    // SAFETY: the caller's contract.
    unsafe {
        give(p_lkey, lkey);
        give(p_rkey, rkey);
        give(ph_mr, handle.to_ptr());
    }
    IB_SUCCESS
}
