//! What sits above an adapter: the protocol side of NDIS, in Rust terms.

use super::link::LinkState;

/// `NDIS_STATUS`.
pub type Status = i32;

/// A received frame, as its protocol sees it: the bytes of the whole Ethernet frame without FCS.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// Cast by the driver without loss of ownership (`NDIS_RECEIVE_FLAGS_RESOURCES` was set): NDIS could not keep
    /// the driver's buffers.
    pub resources: bool,
}

/// The end of one send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendCompletion {
    /// What the sender called it.
    pub tag: u64,
    /// The `Status` member of its NET_BUFFER_LIST.
    pub status: Status,
}

/// A protocol bound to an adapter. NDIS calls these at IRQL <= DISPATCH_LEVEL, in the context of whatever the driver
/// was doing: an implementation takes note and wakes its own thread; it must not block and must not call the adapter
/// from within, except where a method says so.
pub trait Protocol: Send + Sync {
    /// Frames that passed this binding's filter, in the order of the indication.
    fn receive(&self, frames: &[Frame<'_>]);

    /// Sends have ended.
    fn send_complete(&self, completions: &[SendCompletion]);

    /// The link changed (NDIS_STATUS_LINK_STATE), or its state at the time of binding.
    fn link_state(&self, link: LinkState) {
        let _ = link;
    }

    /// Any other status indication, with its buffer.
    fn status(&self, status: Status, buffer: &[u8]) {
        let _ = (status, buffer);
    }

    /// The adapter runs (true) or stops running (false): sends fail with NDIS_STATUS_PAUSED while it does not.
    fn running(&self, running: bool) {
        let _ = running;
    }
}

/// One send: NET_BUFFER_LISTs, each a list of NET_BUFFERs, each one Ethernet frame.
#[derive(Clone, Debug, Default)]
pub struct SendRequest {
    /// The lists. The frames of a list belong to one flow and complete together.
    pub lists: Vec<SendList>,
}

/// One NET_BUFFER_LIST to send.
#[derive(Clone, Debug, Default)]
pub struct SendList {
    /// Frames, each from destination address to the end of the payload.
    pub frames: Vec<Vec<u8>>,
    /// What the completion will be called.
    pub tag: u64,
    /// `NDIS_SET_NET_BUFFER_LIST_CANCEL_ID`; 0 for none.
    pub cancel_id: usize,
}

impl SendRequest {
    /// One list of one frame.
    pub fn frame(bytes: Vec<u8>, tag: u64) -> Self {
        Self { lists: vec![SendList { frames: vec![bytes], tag, cancel_id: 0 }] }
    }

    /// One list for each frame, tagged from `first_tag` on.
    pub fn frames(frames: impl IntoIterator<Item = Vec<u8>>, first_tag: u64) -> Self {
        let list = |(index, bytes)| SendList { frames: vec![bytes], tag: first_tag + index, cancel_id: 0 };
        Self { lists: (0..).zip(frames).map(list).collect() }
    }
}
