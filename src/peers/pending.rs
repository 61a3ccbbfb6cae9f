//! Packets that wait for their destination to be resolved: one pool, a bounded queue for each destination.

use super::memory::{Memory, OutOfMemory};
use super::segments::SEGMENT;
use super::slab::{NONE, Slab};

/// Why a packet was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// Nobody is known under that address, and it does not tell who it is.
    NoPeer,
    /// The destination is being resolved and its queue, or the pool of all queues, is full.
    QueueFull,
    /// The subnet administrator has no path, or the group cannot be joined.
    Unreachable,
    /// The table of destinations is full.
    NoRoom,
    /// The destination was forgotten, or the link went down, while the packet waited.
    Forgotten,
}

/// A destination's queue.
#[derive(Clone, Copy, Debug)]
pub struct Queue {
    head: u32,
    tail: u32,
    len: u16,
}

impl Queue {
    /// An empty queue.
    pub const NEW: Self = Self { head: NONE, tail: NONE, len: 0 };

    /// Whether nothing waits. A queue whose packets were all cancelled counts as empty only after a pop.
    pub const fn is_empty(&self) -> bool {
        self.head == NONE
    }
}

struct Node<P> {
    /// `None` once cancelled.
    packet: Option<P>,
    next: u32,
    refusal: Refusal,
}

/// The pool.
pub struct Pending<P, M: Memory> {
    nodes: Slab<Node<P>, M>,
    refused: Queue,
    limit: u16,
}

impl<P, M: Memory> Pending<P, M> {
    /// A pool for `capacity` packets (rounded up), at most `limit` for one destination.
    pub fn new(memory: &M, capacity: u32, limit: u16) -> Result<Self, OutOfMemory> {
        let mut nodes = Slab::new(memory, capacity)?;
        for _ in 0..capacity.div_ceil(SEGMENT as u32) {
            let segment = Slab::segment(memory)?;
            if nodes.grow(segment).is_err() {
                break;
            }
        }
        Ok(Self { nodes, refused: Queue::NEW, limit })
    }

    /// Appends to a queue, or hands the packet back.
    pub fn push(&mut self, queue: &mut Queue, packet: P) -> Result<(), P> {
        if queue.len >= self.limit {
            return Err(packet);
        }
        let node = Node { packet: Some(packet), next: NONE, refusal: Refusal::Forgotten };
        let key = match self.nodes.insert(node) {
            Ok(key) => key.slot(),
            Err(node) => match node.packet {
                Some(packet) => return Err(packet),
                None => return Ok(()),
            },
        };
        self.append(queue, key, key, 1);
        Ok(())
    }

    fn append(&mut self, queue: &mut Queue, first: u32, last: u32, count: u16) {
        match self.nodes.get_mut(queue.tail) {
            Some(tail) => tail.next = first,
            None => queue.head = first,
        }
        queue.tail = last;
        queue.len = queue.len.saturating_add(count);
    }

    fn pop_node(&mut self, queue: &mut Queue) -> Option<(P, Refusal)> {
        while let Some(node) = self.nodes.remove(queue.head) {
            queue.head = node.next;
            queue.len = queue.len.saturating_sub(1);
            if queue.head == NONE {
                *queue = Queue::NEW;
            }
            if let Some(packet) = node.packet {
                return Some((packet, node.refusal));
            }
        }
        None
    }

    /// The first packet of a queue.
    pub fn pop(&mut self, queue: &mut Queue) -> Option<P> {
        self.pop_node(queue).map(|(packet, _)| packet)
    }

    /// Moves a whole queue among the refused.
    pub fn refuse(&mut self, queue: &mut Queue, why: Refusal) {
        let moved = core::mem::replace(queue, Queue::NEW);
        let mut node = moved.head;
        while let Some(place) = self.nodes.get_mut(node) {
            place.refusal = why;
            node = place.next;
        }
        if !moved.is_empty() {
            let mut refused = self.refused;
            self.append(&mut refused, moved.head, moved.tail, moved.len);
            self.refused = refused;
        }
    }

    /// The next refused packet, to be completed by its owner.
    pub fn next_refused(&mut self) -> Option<(P, Refusal)> {
        let mut refused = self.refused;
        let packet = self.pop_node(&mut refused);
        self.refused = refused;
        packet
    }

    /// Whether a refused packet may be waiting to be completed.
    pub const fn has_refused(&self) -> bool {
        !self.refused.is_empty()
    }

    /// Takes every waiting packet for which `is_it` says yes out of its queue, whichever that is, and gives
    /// it to `taken`. Looks at the whole pool.
    pub fn cancel(&mut self, mut is_it: impl FnMut(&P) -> bool, mut taken: impl FnMut(P)) {
        for slot in 0..self.nodes.capacity() {
            if let Some(node) = self.nodes.get_mut(slot)
                && node.packet.as_ref().is_some_and(&mut is_it)
                && let Some(packet) = node.packet.take()
            {
                taken(packet);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::super::testing::Heap;
    use super::*;
    use std::vec::Vec;

    fn pending(limit: u16) -> Pending<u32, Heap> {
        Pending::new(&Heap::plenty(), 512, limit).unwrap()
    }

    #[test]
    fn packets_leave_in_the_order_they_came() {
        let mut pending = pending(10);
        let (mut a, mut b) = (Queue::NEW, Queue::NEW);
        for packet in 0..6 {
            pending.push(if packet % 2 == 0 { &mut a } else { &mut b }, packet).unwrap();
        }
        let out: Vec<_> = core::iter::from_fn(|| pending.pop(&mut a)).collect();
        assert_eq!(out, [0, 2, 4]);
        assert!(a.is_empty() && !b.is_empty());
    }

    #[test]
    fn a_queue_and_the_pool_are_bounded() {
        let mut pending = pending(300);
        let (mut a, mut b) = (Queue::NEW, Queue::NEW);
        for packet in 0..300 {
            pending.push(&mut a, packet).unwrap();
        }
        assert_eq!(pending.push(&mut a, 300), Err(300), "the queue's limit");
        for packet in 0..212 {
            pending.push(&mut b, packet).unwrap();
        }
        assert_eq!(pending.push(&mut b, 212), Err(212), "the pool's limit");
        pending.pop(&mut a).unwrap();
        pending.push(&mut b, 212).unwrap();
    }

    #[test]
    fn a_refused_queue_is_handed_out_with_its_reason() {
        let mut pending = pending(10);
        let (mut a, mut b) = (Queue::NEW, Queue::NEW);
        pending.push(&mut a, 1).unwrap();
        pending.push(&mut b, 2).unwrap();
        pending.push(&mut b, 3).unwrap();
        pending.refuse(&mut b, Refusal::Unreachable);
        pending.refuse(&mut a, Refusal::Forgotten);
        assert!(a.is_empty() && b.is_empty() && pending.has_refused());
        let out: Vec<_> = core::iter::from_fn(|| pending.next_refused()).collect();
        assert_eq!(out, [(2, Refusal::Unreachable), (3, Refusal::Unreachable), (1, Refusal::Forgotten)]);
        assert!(!pending.has_refused());
    }

    #[test]
    fn a_cancelled_packet_is_taken_wherever_it_waits() {
        let mut pending = pending(10);
        let (mut a, mut b) = (Queue::NEW, Queue::NEW);
        for packet in 0..8 {
            pending.push(if packet < 4 { &mut a } else { &mut b }, packet).unwrap();
        }
        pending.refuse(&mut b, Refusal::Forgotten);
        let mut taken = Vec::new();
        pending.cancel(|packet| packet % 3 == 0, |packet| taken.push(packet));
        assert_eq!(taken, [0, 3, 6]);
        let out: Vec<_> = core::iter::from_fn(|| pending.pop(&mut a)).collect();
        assert_eq!(out, [1, 2]);
        let out: Vec<_> = core::iter::from_fn(|| pending.next_refused()).map(|(packet, _)| packet).collect();
        assert_eq!(out, [4, 5, 7]);
    }
}
