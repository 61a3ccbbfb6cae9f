//! What is measured: packets one by one and 32 at a time, of two sizes, with few and with many peers known.

use crate::callgrind;
use crate::rig::Rig;

/// Peers known.
pub const PEERS: [usize; 3] = [1, 1_000, 100_000];
/// Bytes of the IP packet: small, and the largest at an IB MTU of 2,048.
pub const SIZES: [usize; 2] = [64, 2_044];
/// NET_BUFFER_LISTs in a chain, packets in a batch.
pub const BATCHES: [usize; 2] = [1, 32];
/// Packets measured in each case.
pub const PACKETS: usize = 256;

/// Which way the packets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Down: MiniportSendNetBufferLists, the send CQ's callback.
    Send,
    /// Up: the receive CQ's callback, MiniportReturnNetBufferLists.
    Receive,
}

/// Measures one case, in a process that has measured nothing before. Panics if the driver allocates in it.
pub fn run(direction: Direction, peers: usize, size: usize, batch: usize) {
    callgrind::watch_border();
    let rig = Rig::new(peers);
    // Spread over all that are known; with fewer than PACKETS, each gets several.
    let peer = |packet: usize| packet * peers / PACKETS;
    // The first packet to a peer asks for its path, the first of a run warms nothing else up: twice, to be sure.
    for _ in 0..2 {
        exchange(&rig, direction, peer, size, batch);
    }
    let before = rig.allocations();
    callgrind::measure(|| exchange(&rig, direction, peer, size, batch));
    assert_eq!(rig.allocations(), before, "the data path allocates");
}

fn exchange(rig: &Rig, direction: Direction, peer: impl Fn(usize) -> usize, size: usize, batch: usize) {
    match direction {
        Direction::Send => rig.send((0..PACKETS).map(|packet| rig.frame_to(peer(packet), size)), batch),
        Direction::Receive => {
            rig.receive((0..PACKETS).map(|packet| rig.packet_from(peer(packet), size)), batch);
        }
    }
}
