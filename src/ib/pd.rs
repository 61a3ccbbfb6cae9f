//! Protection domains.

use core::ptr;

use ibal_sys::*;

use crate::kernel::irql::Passive;

use super::ca::Ca;
use super::handle::Handle;
use super::interface::Api;
use super::status::{IbError, check};

/// A protection domain: what a QP, its address handles and its memory have in common.
#[derive(Debug)]
pub struct Pd {
    pub(super) api: Api,
    handle: Handle<_ib_pd>,
}

// SAFETY: the access layer serialises what is done to its objects.
unsafe impl Send for Pd {}
// SAFETY: as above.
unsafe impl Sync for Pd {}

impl Pd {
    /// Allocates a domain for unreliable datagrams (`ib_alloc_pd` with `IB_PDT_UD`).
    pub fn allocate(ca: &Ca, _at: &Passive<'_>) -> Result<Self, IbError> {
        let api = ca.api.clone();
        let mut raw = ptr::null_mut();
        // SAFETY: at PASSIVE_LEVEL, with an open CA and a place for the handle.
        check(unsafe { (api.alloc_pd)(ca.handle(), IB_PDT_UD, ptr::null(), &raw mut raw) })?;
        Ok(Self { api, handle: Handle::new(raw)? })
    }

    pub(super) fn handle(&self) -> ib_pd_handle_t {
        self.handle.get()
    }

    /// Releases it (`ib_dealloc_pd`), after what was made in it. Waits until it is gone.
    pub fn destroy(&self, _at: &Passive<'_>) -> Result<(), IbError> {
        match self.handle.take() {
            // SAFETY: at PASSIVE_LEVEL, with a live handle that is not used again.
            Some(raw) => check(unsafe { (self.api.dealloc_pd)(raw, ib_sync_destroy) }),
            None => Ok(()),
        }
    }
}
