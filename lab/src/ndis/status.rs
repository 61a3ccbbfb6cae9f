//! Status indications: `NdisMIndicateStatusEx`.

use std::sync::Arc;

use windows_kernel_sys::{
    NDIS_HANDLE, NDIS_LINK_STATE, NDIS_LINK_STATE_REVISION_1, NDIS_OBJECT_TYPE_DEFAULT,
    NDIS_OBJECT_TYPE_STATUS_INDICATION, NDIS_SIZEOF_LINK_STATE_REVISION_1,
    NDIS_SIZEOF_STATUS_INDICATION_REVISION_1, NDIS_STATUS, NDIS_STATUS_INDICATION,
    NDIS_STATUS_INDICATION_REVISION_1, NDIS_STATUS_LINK_STATE,
};

use super::adapter::Core;
use super::attributes::header;
use super::call::{UP_TO_DISPATCH, entered};
use super::handle;
use super::link::{LinkState, MediaConnect};
use super::rules::{self, broken};
use super::state::Phase;
use crate::export;
use crate::sim::TraceEvent;

const CALL: &str = "NdisMIndicateStatusEx";

impl Core {
    fn indicate_status(&self, status: NDIS_STATUS, buffer: &[u8]) {
        self.count(|counters| counters.statuses += 1);
        self.trace("ndis status", u64::from(status as u32));
        let bindings = self.bindings.lock().clone();
        if status != NDIS_STATUS_LINK_STATE {
            for binding in bindings {
                binding.protocol.status(status, buffer);
            }
            return;
        }
        let link = match read_link(buffer) {
            Ok(link) => link,
            Err(what) => broken(&rules::NDIS_STATUS_INDICATION, CALL, what),
        };
        self.life.lock().link = link;
        let text = format!("{:?} {} bit/s", link.connect, link.transmit_speed);
        self.machine.sim().trace(TraceEvent::text("ndis link", u64::from(self.machine.id()), text));
        for binding in bindings {
            binding.protocol.link_state(link);
        }
    }

    /// What NDIS itself tells the protocols.
    pub(super) fn tell_status(&self, status: NDIS_STATUS) {
        let bindings = self.bindings.lock().clone();
        for binding in bindings {
            binding.protocol.status(status, &[]);
        }
    }
}

/// Reads an NDIS_LINK_STATE.
fn read_link(buffer: &[u8]) -> Result<LinkState, String> {
    if buffer.len() < size_of::<NDIS_LINK_STATE>() {
        return Err(format!("NDIS_STATUS_LINK_STATE with {} bytes", buffer.len()));
    }
    // SAFETY: the length was checked, and the structure is made of integers.
    let link: NDIS_LINK_STATE = unsafe { buffer.as_ptr().cast::<NDIS_LINK_STATE>().read_unaligned() };
    let sizes = [(NDIS_LINK_STATE_REVISION_1, NDIS_SIZEOF_LINK_STATE_REVISION_1)];
    header(link.Header, NDIS_OBJECT_TYPE_DEFAULT, &sizes)
        .map_err(|what| format!("NDIS_LINK_STATE: {what}"))?;
    Ok(LinkState {
        connect: MediaConnect::from(link.MediaConnectState),
        transmit_speed: link.XmitLinkSpeed,
        receive_speed: link.RcvLinkSpeed,
        duplex: link.MediaDuplexState,
    })
}

export! { "ndis.sys";
    /// IRQL <= DISPATCH_LEVEL, from the registration attributes to the end of halt
    /// (ndis/nf-ndis-ndismindicatestatusex).
    pub unsafe fn NdisMIndicateStatusEx(
        MiniportAdapterHandle: NDIS_HANDLE, StatusIndication: *mut NDIS_STATUS_INDICATION,
    ) {
        entered(CALL, UP_TO_DISPATCH);
        let core: Arc<Core> = handle::get(MiniportAdapterHandle, CALL);
        let (phase, registered) = {
            let life = core.life.lock();
            (life.phase, life.registration.is_some())
        };
        if matches!(phase, Phase::Halted | Phase::Shutdown) || !registered {
            let detail = if registered { "after halt" } else { "before the registration attributes" };
            broken(&rules::NDIS_STATUS_STATE, CALL, detail);
        }
        // SAFETY: the driver's structure, valid for the call.
        let indication = unsafe { &*StatusIndication };
        let sizes = [(NDIS_STATUS_INDICATION_REVISION_1, NDIS_SIZEOF_STATUS_INDICATION_REVISION_1)];
        if let Err(what) = header(indication.Header, NDIS_OBJECT_TYPE_STATUS_INDICATION, &sizes) {
            broken(&rules::NDIS_STATUS_INDICATION, CALL, what);
        }
        if indication.SourceHandle != MiniportAdapterHandle {
            broken(&rules::NDIS_STATUS_INDICATION, CALL, "SourceHandle is not the adapter's handle");
        }
        let length = indication.StatusBufferSize as usize;
        if length > 0 && indication.StatusBuffer.is_null() {
            broken(&rules::NDIS_STATUS_INDICATION, CALL, format!("{length} bytes at a null StatusBuffer"));
        }
        let buffer = if length == 0 {
            Vec::new()
        } else {
            // SAFETY: the driver says that so many bytes are there.
            unsafe { std::slice::from_raw_parts(indication.StatusBuffer.cast::<u8>(), length) }.to_vec()
        };
        core.indicate_status(indication.StatusCode, &buffer);
    }
}
