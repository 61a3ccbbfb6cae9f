//! An instance of the access layer.

use core::ptr;

use ibal_sys::*;

use crate::kernel::irql::Passive;

use super::handle::Handle;
use super::interface::{Api, Interface};
use super::status::{IbError, check};

/// An opened instance of the access layer: registrations, queries and CAs hang below it.
#[derive(Debug)]
pub struct Al {
    pub(super) api: Api,
    handle: Handle<_ib_al>,
}

// SAFETY: the access layer serialises what is done to its objects.
unsafe impl Send for Al {}
// SAFETY: as above.
unsafe impl Sync for Al {}

impl Al {
    /// Opens the access layer (`ib_open_al`).
    pub fn open(interface: &Interface, _at: &Passive<'_>) -> Result<Self, IbError> {
        let api = interface.api.clone();
        let mut raw = ptr::null_mut();
        // SAFETY: at PASSIVE_LEVEL, with a place for the handle.
        check(unsafe { (api.open_al)(&raw mut raw) })?;
        Ok(Self { api, handle: Handle::new(raw)? })
    }

    pub(super) fn handle(&self) -> ib_al_handle_t {
        self.handle.get()
    }

    /// Closes it (`ib_close_al`), after everything below it was destroyed. Waits until no query is left.
    pub fn destroy(&self, _at: &Passive<'_>) -> Result<(), IbError> {
        match self.handle.take() {
            // SAFETY: at PASSIVE_LEVEL, with an open handle that is not used again.
            Some(raw) => check(unsafe { (self.api.close_al)(raw) }),
            None => Ok(()),
        }
    }
}
