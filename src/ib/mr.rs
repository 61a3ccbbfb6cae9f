//! Memory regions.

use core::ptr;

use ibal_sys::*;

use crate::kernel::irql::Passive;

use super::handle::Handle;
use super::interface::Api;
use super::pd::Pd;
use super::status::{IbError, check};

/// Bytes of a page, the unit in which the adapter translates the region.
const PAGE_SIZE: u32 = 4096;

/// The region over all physical memory: an address in it is a physical address.
#[derive(Debug)]
pub struct Mr {
    api: Api,
    handle: Handle<_ib_mr>,
    lkey: u32,
}

// SAFETY: the access layer serialises what is done to its objects.
unsafe impl Send for Mr {}
// SAFETY: as above.
unsafe impl Sync for Mr {}

impl Mr {
    /// Registers all of physical memory, for local reads and writes (`ib_reg_phys`). No remote access:
    /// nothing that comes in from the fabric can name it.
    pub fn register_all_physical(pd: &Pd, at: &Passive<'_>) -> Result<Self, IbError> {
        let api = pd.api.clone();
        let mut range = ib_phys_range_t { base_addr: 0, size: u64::MAX };
        let request = ib_phys_create_t {
            length: u64::MAX,
            num_ranges: 1,
            range_array: &raw mut range,
            buf_offset: 0,
            hca_page_size: PAGE_SIZE,
            access_ctrl: ib_access_t::IB_AC_LOCAL_WRITE,
        };
        let (mut vaddr, mut lkey, mut rkey, mut raw) = (0, 0, 0, ptr::null_mut());
        // SAFETY: at PASSIVE_LEVEL, with a live PD, a request that lasts for the call and places for the
        // results.
        check(unsafe {
            (api.reg_phys)(
                pd.handle(),
                &raw const request,
                &raw mut vaddr,
                &raw mut lkey,
                &raw mut rkey,
                &raw mut raw,
            )
        })?;
        let region = Self { api, handle: Handle::new(raw)?, lkey };
        if vaddr != 0 {
            // The driver's addresses would be off by this much.
            let _ = region.destroy(at);
            return Err(IbError::UNSUPPORTED);
        }
        Ok(region)
    }

    /// The key that a segment of the region needs.
    pub const fn lkey(&self) -> u32 {
        self.lkey
    }

    /// Removes it (`ib_dereg_mr`), after the QP that used it.
    pub fn destroy(&self, _at: &Passive<'_>) -> Result<(), IbError> {
        match self.handle.take() {
            // SAFETY: at PASSIVE_LEVEL, with a live handle that is not used again.
            Some(raw) => check(unsafe { (self.api.dereg_mr)(raw) }),
            None => Ok(()),
        }
    }
}
