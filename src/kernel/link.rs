//! Indications of the link's state (ndis/nf-ndis-ndismindicatestatusex). IRQL <= DISPATCH_LEVEL.

use super::adapter::AdapterHandle;
use windows_kernel_sys as sys;
use windows_kernel_sys::Zeroable as _;

/// The state of an adapter's link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// Nothing can be sent.
    Down,
    /// Up, full duplex, with this many bits per second each way.
    Up {
        /// Bits per second.
        speed: u64,
    },
}

impl LinkState {
    /// The structure of NDIS_STATUS_LINK_STATE.
    pub(super) fn to_raw(self) -> sys::NDIS_LINK_STATE {
        let (state, duplex, speed) = match self {
            Self::Down => (
                sys::MediaConnectStateDisconnected,
                sys::MediaDuplexStateUnknown,
                sys::NDIS_LINK_SPEED_UNKNOWN,
            ),
            Self::Up { speed } => (sys::MediaConnectStateConnected, sys::MediaDuplexStateFull, speed),
        };
        sys::NDIS_LINK_STATE {
            Header: sys::NDIS_OBJECT_HEADER::new(
                sys::NDIS_OBJECT_TYPE_DEFAULT,
                sys::NDIS_LINK_STATE_REVISION_1,
                sys::NDIS_SIZEOF_LINK_STATE_REVISION_1,
            ),
            MediaConnectState: state,
            MediaDuplexState: duplex,
            XmitLinkSpeed: speed,
            RcvLinkSpeed: speed,
            PauseFunctions: sys::NdisPauseFunctionsUnsupported,
            AutoNegotiationFlags: sys::NDIS_LINK_STATE_XMIT_LINK_SPEED_AUTO_NEGOTIATED
                | sys::NDIS_LINK_STATE_RCV_LINK_SPEED_AUTO_NEGOTIATED
                | sys::NDIS_LINK_STATE_DUPLEX_AUTO_NEGOTIATED,
        }
    }
}

impl AdapterHandle {
    /// Indicates the link's state.
    pub fn indicate_link(self, state: LinkState) {
        let mut link = state.to_raw();
        // SAFETY: NDIS_STATUS_LINK_STATE goes with an NDIS_LINK_STATE.
        unsafe { self.indicate(sys::NDIS_STATUS_LINK_STATE, &mut link) };
    }

    /// Indicates a status with its buffer.
    ///
    /// # Safety
    /// The documentation of `status` names `T` as its buffer.
    unsafe fn indicate<T>(self, status: sys::NDIS_STATUS, buffer: &mut T) {
        let mut indication = sys::NDIS_STATUS_INDICATION::zeroed();
        indication.Header = sys::NDIS_OBJECT_HEADER::new(
            sys::NDIS_OBJECT_TYPE_STATUS_INDICATION,
            sys::NDIS_STATUS_INDICATION_REVISION_1,
            sys::NDIS_SIZEOF_STATUS_INDICATION_REVISION_1,
        );
        indication.SourceHandle = self.raw();
        indication.PortNumber = sys::NDIS_DEFAULT_PORT_NUMBER;
        indication.StatusCode = status;
        indication.StatusBuffer = (&raw mut *buffer).cast();
        indication.StatusBufferSize = size_of::<T>() as u32;
        // SAFETY: a valid handle, and an indication that lives until the call returns.
        unsafe { sys::NdisMIndicateStatusEx(self.raw(), &raw mut indication) };
    }
}
