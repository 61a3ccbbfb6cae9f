//! What can go wrong: the access layer's statuses as error values.

use core::fmt;

use ibal_sys::*;
use windows_kernel_sys::{
    NTSTATUS, STATUS_CANCELLED, STATUS_INSUFFICIENT_RESOURCES, STATUS_INVALID_PARAMETER,
    STATUS_NOT_SUPPORTED, STATUS_UNSUCCESSFUL,
};

/// An access layer call that did not succeed. Never holds `IB_SUCCESS`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct IbError(ib_api_status_t);

impl IbError {
    /// Memory ran out, here or in the access layer.
    pub const NO_MEMORY: Self = Self(IB_INSUFFICIENT_MEMORY);
    /// A limited set (slots for queries, entries in a queue) is used up.
    pub const NO_RESOURCES: Self = Self(IB_INSUFFICIENT_RESOURCES);
    /// The QP's state does not allow the transition.
    pub const QP_STATE: Self = Self(IB_INVALID_QP_STATE);
    /// The object's state does not allow the call.
    pub const STATE: Self = Self(IB_INVALID_STATE);
    /// What the bus driver offers is not what this driver was built for.
    pub const UNSUPPORTED: Self = Self(IB_UNSUPPORTED);
    /// An argument out of range.
    pub const PARAMETER: Self = Self(IB_INVALID_PARAMETER);

    /// The status as the access layer gave it.
    pub const fn status(self) -> ib_api_status_t {
        self.0
    }

    /// The number of the status, for an event-log entry.
    pub const fn code(self) -> u32 {
        self.0.0 as u32
    }

    /// Whether trying again later can help: memory, resources, or a port that is not configured yet.
    pub const fn is_transient(self) -> bool {
        matches!(
            self.0,
            IB_INSUFFICIENT_MEMORY
                | IB_INSUFFICIENT_RESOURCES
                | IB_INVALID_GUID
                | IB_RESOURCE_BUSY
                | IB_TIMEOUT
        )
    }

    /// The nearest NTSTATUS.
    pub const fn to_ntstatus(self) -> NTSTATUS {
        match self.0 {
            IB_INSUFFICIENT_MEMORY | IB_INSUFFICIENT_RESOURCES => STATUS_INSUFFICIENT_RESOURCES,
            IB_INVALID_PARAMETER => STATUS_INVALID_PARAMETER,
            IB_UNSUPPORTED => STATUS_NOT_SUPPORTED,
            IB_CANCELED => STATUS_CANCELLED,
            _ => STATUS_UNSUCCESSFUL,
        }
    }
}

impl fmt::Debug for IbError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for IbError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name().unwrap_or("IB_UNKNOWN_ERROR"))
    }
}

/// `Ok` for `IB_SUCCESS`.
pub(super) const fn check(status: ib_api_status_t) -> Result<(), IbError> {
    if status.is_success() { Ok(()) } else { Err(IbError(status)) }
}

/// `Err` even for `IB_SUCCESS`, for places where success was ruled out.
pub(super) const fn failure(status: ib_api_status_t) -> IbError {
    if status.is_success() { IbError(IB_ERROR) } else { IbError(status) }
}

/// A work request that did not succeed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct WcError(ib_wc_status_t);

impl WcError {
    /// `None` for success.
    pub(super) const fn new(status: ib_wc_status_t) -> Option<Self> {
        if status.0 == IB_WCS_SUCCESS.0 { None } else { Some(Self(status)) }
    }

    /// The status as the adapter gave it.
    pub const fn status(self) -> ib_wc_status_t {
        self.0
    }

    /// Whether the request was returned because the QP is in ERROR: no fault of its own.
    pub const fn is_flush(self) -> bool {
        matches!(self.0, IB_WCS_WR_FLUSHED_ERR)
    }
}

impl fmt::Debug for WcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
