//! A protocol that only takes notes: what tests of an adapter bind to it.

use std::sync::Arc;

use crate::ndis::{
    Adapter, Binding, Frame, LinkState, PROMISCUOUS, Protocol, SendCompletion, SendList, SendRequest, Status,
};
use crate::sim::Lock;

/// What a [`RawStack`] has seen.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Received frames, in order.
    pub frames: Vec<Vec<u8>>,
    /// How many of them came with NDIS_RECEIVE_FLAGS_RESOURCES.
    pub low_on_resources: usize,
    /// Ended sends, in order.
    pub completions: Vec<SendCompletion>,
    /// Link states, in order, from that at the time of binding on.
    pub links: Vec<LinkState>,
    /// Other status indications.
    pub statuses: Vec<(Status, Vec<u8>)>,
    /// Whether the adapter runs.
    pub running: bool,
}

#[derive(Default)]
struct Notes(Lock<Seen>);

impl Protocol for Notes {
    fn receive(&self, frames: &[Frame<'_>]) {
        let mut seen = self.0.lock();
        seen.frames.extend(frames.iter().map(|frame| frame.bytes.to_vec()));
        seen.low_on_resources += frames.iter().filter(|frame| frame.resources).count();
    }

    fn send_complete(&self, completions: &[SendCompletion]) {
        self.0.lock().completions.extend_from_slice(completions);
    }

    fn link_state(&self, link: LinkState) {
        self.0.lock().links.push(link);
    }

    fn status(&self, status: Status, buffer: &[u8]) {
        self.0.lock().statuses.push((status, buffer.to_vec()));
    }

    fn running(&self, running: bool) {
        self.0.lock().running = running;
    }
}

/// Sends frames as they are and collects what arrives.
#[derive(Clone)]
pub struct RawStack {
    binding: Binding,
    notes: Arc<Notes>,
}

impl RawStack {
    /// Binds to an adapter and hears everything. From a thread at PASSIVE_LEVEL.
    pub fn bind(adapter: &Adapter) -> Result<Self, Status> {
        let stack = Self::bind_deaf(adapter)?;
        stack.binding.set_filter(PROMISCUOUS, &[])?;
        Ok(stack)
    }

    /// Binds to an adapter with no packet filter set.
    pub fn bind_deaf(adapter: &Adapter) -> Result<Self, Status> {
        let notes: Arc<Notes> = Arc::default();
        let binding = adapter.bind(Arc::clone(&notes) as Arc<dyn Protocol>)?;
        Ok(Self { binding, notes })
    }

    /// The binding.
    pub fn binding(&self) -> &Binding {
        &self.binding
    }

    /// Sends one frame in a list of its own.
    pub fn send(&self, frame: Vec<u8>, tag: u64) {
        self.binding.send(&SendRequest::frame(frame, tag));
    }

    /// Sends several lists in one call.
    pub fn send_lists(&self, lists: Vec<SendList>) {
        self.binding.send(&SendRequest { lists });
    }

    /// What it has seen so far.
    pub fn seen(&self) -> Seen {
        self.notes.0.lock().clone()
    }

    /// Takes the frames received so far.
    pub fn take_frames(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.notes.0.lock().frames)
    }

    /// Takes the completions so far.
    pub fn take_completions(&self) -> Vec<SendCompletion> {
        std::mem::take(&mut self.notes.0.lock().completions)
    }

    /// How many sends have ended.
    pub fn completed(&self) -> usize {
        self.notes.0.lock().completions.len()
    }

    /// How many frames have arrived and not been taken.
    pub fn received(&self) -> usize {
        self.notes.0.lock().frames.len()
    }
}
