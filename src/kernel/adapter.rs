//! The handle by which NDIS knows an adapter, and the calls that need nothing else.

use super::status::Result;
use super::status::ndis_status;
use windows_kernel_sys as sys;

/// The `MiniportAdapterHandle` that MiniportInitializeEx is given. Valid until MiniportHaltEx returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdapterHandle(sys::NDIS_HANDLE);

// SAFETY: an opaque handle; NDIS serialises what needs it.
unsafe impl Send for AdapterHandle {}
// SAFETY: as above.
unsafe impl Sync for AdapterHandle {}

impl AdapterHandle {
    /// Takes over what NDIS handed out.
    ///
    /// # Safety
    /// `handle` is the one MiniportInitializeEx was called with, and no copy is used after MiniportHaltEx returns (or
    /// after a failed MiniportInitializeEx).
    pub const unsafe fn from_raw(handle: sys::NDIS_HANDLE) -> Self {
        Self(handle)
    }

    /// What the DDI takes.
    pub const fn raw(self) -> sys::NDIS_HANDLE {
        self.0
    }

    /// Ends a pause that MiniportPause left pending (ndis/nf-ndis-ndismpausecomplete). IRQL <= DISPATCH_LEVEL.
    pub fn pause_complete(self) {
        // SAFETY: a valid handle.
        unsafe { sys::NdisMPauseComplete(self.0) };
    }

    /// Ends a restart that MiniportRestart left pending (ndis/nf-ndis-ndismrestartcomplete). IRQL <= DISPATCH_LEVEL.
    pub fn restart_complete(self, result: Result<()>) {
        // SAFETY: a valid handle.
        unsafe { sys::NdisMRestartComplete(self.0, ndis_status(result)) };
    }

    /// Ends a reset that MiniportResetEx left pending (ndis/nf-ndis-ndismresetcomplete). `addressing_reset` asks NDIS
    /// to set the packet filter and the multicast list again. IRQL <= DISPATCH_LEVEL.
    pub fn reset_complete(self, result: Result<()>, addressing_reset: bool) {
        // SAFETY: a valid handle.
        unsafe { sys::NdisMResetComplete(self.0, ndis_status(result), sys::BOOLEAN::from(addressing_reset)) };
    }

    /// Writes an event-log entry (ndis/nf-ndis-ndiswriteerrorlogentry). IRQL <= DISPATCH_LEVEL.
    pub fn log_event(self, code: impl Into<sys::NDIS_ERROR_CODE>, values: [u32; 2]) {
        // SAFETY: a valid handle, and as many ULONG values as are announced.
        unsafe { sys::NdisWriteErrorLogEntry(self.0, code.into(), 2, values[0], values[1]) };
    }
}
