//! The queues between smoltcp and a network adapter: smoltcp's `Device` over plain frame buffers.

use std::collections::VecDeque;

use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant;

/// Length of the Ethernet header: destination, source, EtherType (IEEE 802.3 clause 3.2).
pub const ETHERNET_HEADER: usize = 14;

/// Frames that have arrived and not been read, and frames written and not yet sent.
pub struct FrameDevice {
    received: VecDeque<Vec<u8>>,
    outgoing: Vec<Vec<u8>>,
    /// How many more frames may be written before the adapter has completed some.
    budget: usize,
    mtu: usize,
}

impl FrameDevice {
    /// An empty pair of queues for IP packets of up to `mtu` bytes.
    pub fn new(mtu: usize) -> Self {
        Self { received: VecDeque::new(), outgoing: Vec::new(), budget: 0, mtu }
    }

    /// The largest IP packet, in bytes.
    pub fn mtu(&self) -> usize {
        self.mtu
    }

    /// Adds a frame from the network.
    pub fn push_received(&mut self, frame: Vec<u8>) {
        self.received.push_back(frame);
    }

    /// Says how many frames may be written from now on.
    pub fn set_budget(&mut self, frames: usize) {
        self.budget = frames;
    }

    /// How many frames may still be written.
    pub fn budget(&self) -> usize {
        self.budget
    }

    /// Queues a frame built outside smoltcp. Discovery is rare and small, so it does not wait for the budget.
    pub fn push_outgoing(&mut self, frame: Vec<u8>) {
        self.budget = self.budget.saturating_sub(1);
        self.outgoing.push(frame);
    }

    /// Takes what was written, in order.
    pub fn take_outgoing(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.outgoing)
    }
}

/// One received frame on its way into smoltcp.
pub struct Received(Vec<u8>);

/// The right to write one frame.
pub struct Transmit<'a> {
    outgoing: &'a mut Vec<Vec<u8>>,
    budget: &'a mut usize,
}

impl RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}

impl TxToken for Transmit<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let mut frame = vec![0; len];
        let result = f(&mut frame);
        *self.budget = self.budget.saturating_sub(1);
        self.outgoing.push(frame);
        result
    }
}

impl Device for FrameDevice {
    type RxToken<'a> = Received;
    type TxToken<'a> = Transmit<'a>;

    /// A received frame may need an answer, so smoltcp takes both tokens. Answers (ARP, echo) are not held to the
    /// budget: refusing them here would leave the frame unread for ever.
    fn receive(&mut self, _now: Instant) -> Option<(Received, Transmit<'_>)> {
        let frame = self.received.pop_front()?;
        Some((Received(frame), Transmit { outgoing: &mut self.outgoing, budget: &mut self.budget }))
    }

    fn transmit(&mut self, _now: Instant) -> Option<Transmit<'_>> {
        (self.budget > 0).then_some(Transmit { outgoing: &mut self.outgoing, budget: &mut self.budget })
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = self.mtu + ETHERNET_HEADER;
        capabilities
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spent_budget_refuses_new_frames_but_not_answers() {
        let mut device = FrameDevice::new(1500);
        let now = Instant::ZERO;
        assert!(device.transmit(now).is_none(), "no budget was granted");
        device.set_budget(1);
        device.transmit(now).expect("one frame is granted").consume(60, |frame| frame.fill(1));
        assert!(device.transmit(now).is_none(), "the budget is spent");
        device.push_received(vec![0; 60]);
        let (_, answer) = device.receive(now).expect("the frame is read");
        answer.consume(42, |frame| frame.fill(2));
        assert_eq!(device.take_outgoing().iter().map(Vec::len).collect::<Vec<_>>(), [60, 42]);
    }

    #[test]
    fn the_ethernet_header_is_not_part_of_the_mtu() {
        assert_eq!(FrameDevice::new(2044).capabilities().max_transmission_unit, 2058);
    }
}
