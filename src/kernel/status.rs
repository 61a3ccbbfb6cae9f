//! Statuses of NT and NDIS as Rust errors: the one place where they are converted.

use core::fmt;
use windows_kernel_sys as sys;

/// Why a kernel call failed. The raw status is kept: it is what an event-log entry shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Error(sys::NTSTATUS);

/// What kernel wrappers return.
pub type Result<T> = core::result::Result<T, Error>;

impl Error {
    /// No memory, or no other resource.
    pub const RESOURCES: Self = Self(sys::STATUS_INSUFFICIENT_RESOURCES);
    /// A parameter is wrong.
    pub const INVALID_PARAMETER: Self = Self(sys::STATUS_INVALID_PARAMETER);
    /// The callee does not know the request.
    pub const NOT_SUPPORTED: Self = Self(sys::STATUS_NOT_SUPPORTED);
    /// Interface versions do not fit.
    pub const REVISION_MISMATCH: Self = Self(sys::STATUS_REVISION_MISMATCH);
    /// The time is over.
    pub const TIMEOUT: Self = Self(sys::STATUS_IO_TIMEOUT);
    /// Something is not in the state that the request needs.
    pub const INVALID_STATE: Self = Self(sys::STATUS_INVALID_DEVICE_STATE);
    /// The request was cancelled.
    pub const CANCELLED: Self = Self(sys::STATUS_CANCELLED);
    /// A failure of the device.
    pub const DEVICE: Self = Self(sys::STATUS_IO_DEVICE_ERROR);
    /// Any other failure.
    pub const FAILURE: Self = Self(sys::STATUS_UNSUCCESSFUL);

    /// An error of a status that is not a success; a success becomes [`Error::FAILURE`].
    pub const fn from_status(status: sys::NTSTATUS) -> Self {
        if sys::NT_SUCCESS(status) { Self::FAILURE } else { Self(status) }
    }

    /// The NTSTATUS.
    pub const fn nt(self) -> sys::NTSTATUS {
        self.0
    }

    /// The NDIS_STATUS. NDIS has the NT values for what both name; others are NDIS_STATUS_FAILURE.
    pub const fn ndis(self) -> sys::NDIS_STATUS {
        /// `FACILITY_NDIS` of the old NDIS_STATUS values (0xC001xxxx) and of the new ones (0xC023xxxx).
        const OLD: u32 = 0xC001;
        const NEW: u32 = 0xC023;
        match (self.0 as u32) >> 16 {
            OLD | NEW => self.0,
            _ => match self.0 {
                sys::STATUS_INSUFFICIENT_RESOURCES
                | sys::STATUS_INVALID_PARAMETER
                | sys::STATUS_NOT_SUPPORTED
                | sys::STATUS_INVALID_DEVICE_REQUEST
                | sys::STATUS_INVALID_DEVICE_STATE
                | sys::STATUS_NETWORK_UNREACHABLE => self.0,
                sys::STATUS_CANCELLED => sys::NDIS_STATUS_REQUEST_ABORTED,
                sys::STATUS_IO_DEVICE_ERROR => sys::NDIS_STATUS_DEVICE_FAILED,
                sys::STATUS_REVISION_MISMATCH => sys::NDIS_STATUS_BAD_VERSION,
                sys::STATUS_DEVICE_NOT_READY => sys::NDIS_STATUS_ADAPTER_NOT_READY,
                _ => sys::NDIS_STATUS_FAILURE,
            },
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "status 0x{:08X}", self.0)
    }
}

/// Success, or the error. STATUS_PENDING counts as success (`NT_SUCCESS`): where a call can pend, look first.
pub const fn check(status: sys::NTSTATUS) -> Result<()> {
    if sys::NT_SUCCESS(status) { Ok(()) } else { Err(Error(status)) }
}

/// The NDIS_STATUS of a result.
pub const fn ndis_status(result: Result<()>) -> sys::NDIS_STATUS {
    match result {
        Ok(()) => sys::NDIS_STATUS_SUCCESS,
        Err(error) => error.ndis(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_that_ndis_does_not_know_become_failure() {
        assert_eq!(Error::from_status(sys::STATUS_OBJECT_TYPE_MISMATCH).ndis(), sys::NDIS_STATUS_FAILURE);
        assert_eq!(Error::RESOURCES.ndis(), sys::NDIS_STATUS_RESOURCES);
        assert_eq!(Error::from_status(sys::NDIS_STATUS_PAUSED).ndis(), sys::NDIS_STATUS_PAUSED);
    }

    #[test]
    fn a_success_is_no_error() {
        assert_eq!(check(sys::STATUS_PENDING), Ok(()));
        assert_eq!(Error::from_status(sys::STATUS_SUCCESS), Error::FAILURE);
        assert_eq!(ndis_status(Err(Error::CANCELLED)), sys::NDIS_STATUS_REQUEST_ABORTED);
    }
}
