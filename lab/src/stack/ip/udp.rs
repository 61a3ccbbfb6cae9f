//! Datagrams of test data: one job sends numbered ones at a rate, another counts what arrives.

use core::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use smoltcp::iface::SocketHandle;
use smoltcp::socket::udp::{PacketBuffer, PacketMetadata, Socket};
use smoltcp::wire::IpEndpoint;

use super::engine::{Context, Job, Step};
use super::pattern::Pattern;
use crate::sim::Nanos;

/// Datagrams start with their number.
const NUMBER: usize = 8;
/// Datagrams that a socket holds.
const QUEUE: usize = 64;

/// What to send.
#[derive(Clone, Copy, Debug)]
pub struct UdpOptions {
    /// Number of datagrams.
    pub count: u64,
    /// Bytes of data in each, at least 8.
    pub size: usize,
    /// From one to the next; 0 for as fast as the adapter takes them.
    pub interval: Nanos,
}

/// What one end has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UdpReport {
    /// Datagrams sent, or received intact and for the first time.
    pub datagrams: u64,
    /// Received with other data than was sent, or too short to carry a number.
    pub corrupt: u64,
    /// Received more than once.
    pub duplicates: u64,
    /// The sender has sent everything. A receiver is never done.
    pub done: bool,
}

/// One end, seen from outside. Dropping a receiver's last handle closes its socket.
#[derive(Clone, Debug, Default)]
pub struct UdpEnd(Arc<Mutex<UdpReport>>);

impl UdpEnd {
    /// What it has seen so far.
    pub fn report(&self) -> UdpReport {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, change: impl FnOnce(&mut UdpReport)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

fn socket(size: usize) -> Socket<'static> {
    let buffer = || PacketBuffer::new(vec![PacketMetadata::EMPTY; QUEUE], vec![0; QUEUE * size]);
    Socket::new(buffer(), buffer())
}

/// Sends datagrams to a peer or a group.
pub struct UdpSender {
    peer: SocketAddr,
    options: UdpOptions,
    socket: Option<SocketHandle>,
    next: Nanos,
    end: UdpEnd,
}

impl UdpSender {
    /// Sends to `peer`.
    pub fn new(peer: SocketAddr, options: UdpOptions) -> (Self, UdpEnd) {
        let end = UdpEnd::default();
        let options = UdpOptions { size: options.size.max(NUMBER), ..options };
        (Self { peer, options, socket: None, next: 0, end: end.clone() }, end)
    }

    fn open(&mut self, host: &mut Context<'_>) -> SocketHandle {
        if let Some(handle) = self.socket {
            return handle;
        }
        let mut socket = socket(self.options.size);
        socket.bind(host.allocate_port()).expect("a fresh socket binds to a port that is not 0");
        if !self.peer.ip().is_multicast() {
            host.discover(self.peer.ip());
        }
        let handle = host.sockets.add(socket);
        self.socket = Some(handle);
        handle
    }
}

impl Job for UdpSender {
    fn step(&mut self, host: &mut Context<'_>) -> Step {
        let handle = self.open(host);
        let socket = host.sockets.get_mut::<Socket<'_>>(handle);
        let mut sent = self.end.report().datagrams;
        while sent < self.options.count && host.now >= self.next {
            let Ok(data) = socket.send(self.options.size, IpEndpoint::from(self.peer)) else { break };
            let (number, rest) = data.split_at_mut(NUMBER);
            number.copy_from_slice(&sent.to_be_bytes());
            Pattern::new(sent).fill(0, rest);
            sent += 1;
            if self.options.interval > 0 {
                self.next = host.now + self.options.interval;
            }
        }
        self.end.update(|report| report.datagrams = sent);
        if sent == self.options.count && socket.send_queue() == 0 {
            host.sockets.remove(handle);
            self.end.update(|report| report.done = true);
            return Step::Finished;
        }
        if self.next > host.now { Step::Until(self.next) } else { Step::Blocked }
    }
}

/// Counts the datagrams that arrive at a port.
pub struct UdpReceiver {
    port: u16,
    size: usize,
    seen: Vec<u64>,
    socket: Option<SocketHandle>,
    end: UdpEnd,
}

impl UdpReceiver {
    /// Listens on `port` for datagrams of up to `size` bytes.
    pub fn new(port: u16, size: usize) -> (Self, UdpEnd) {
        let end = UdpEnd::default();
        (Self { port, size: size.max(NUMBER), seen: Vec::new(), socket: None, end: end.clone() }, end)
    }

    /// Marks a number as seen; false if it was already.
    fn first(seen: &mut Vec<u64>, number: u64) -> bool {
        let (word, bit) = ((number / 64) as usize, 1 << (number % 64));
        if seen.len() <= word {
            seen.resize(word + 1, 0);
        }
        let first = seen[word] & bit == 0;
        seen[word] |= bit;
        first
    }
}

/// Senders count from zero; a number beyond this is not one of theirs.
const MAX_NUMBER: u64 = 1 << 28;

impl Job for UdpReceiver {
    fn step(&mut self, host: &mut Context<'_>) -> Step {
        let handle = *self.socket.get_or_insert_with(|| {
            let mut socket = socket(self.size);
            socket.bind(self.port).expect("a fresh socket binds to a port that is not 0");
            host.sockets.add(socket)
        });
        if Arc::strong_count(&self.end.0) == 1 {
            host.sockets.remove(handle);
            return Step::Finished;
        }
        let socket = host.sockets.get_mut::<Socket<'_>>(handle);
        while let Ok((data, _)) = socket.recv() {
            let number = data.first_chunk::<NUMBER>().map(|bytes| u64::from_be_bytes(*bytes));
            let intact = number.filter(|number| {
                let mut expected = vec![0; data.len() - NUMBER];
                Pattern::new(*number).fill(0, &mut expected);
                *number < MAX_NUMBER && expected == data[NUMBER..]
            });
            let seen = &mut self.seen;
            self.end.update(|report| match intact {
                None => report.corrupt += 1,
                Some(number) if Self::first(seen, number) => report.datagrams += 1,
                Some(_) => report.duplicates += 1,
            });
        }
        Step::Blocked
    }
}
