//! Echo requests and their answers (RFC 792, RFC 4443 section 4).

use core::net::IpAddr;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use smoltcp::iface::SocketHandle;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::socket::icmp::{Endpoint, PacketBuffer, PacketMetadata, Socket};
use smoltcp::wire::{Icmpv4Packet, Icmpv4Repr, Icmpv6Packet, Icmpv6Repr};

use super::engine::{Context, Job, Step};
use super::pattern::Pattern;
use crate::sim::Nanos;

/// Length of an echo message's header (RFC 792).
pub const ECHO_HEADER: usize = 8;

/// How to ping.
#[derive(Clone, Copy, Debug)]
pub struct PingOptions {
    /// Number of requests.
    pub count: u16,
    /// Bytes of data after the ICMP header.
    pub size: usize,
    /// From one request to the next.
    pub interval: Nanos,
    /// After which a request counts as lost.
    pub timeout: Nanos,
}

impl Default for PingOptions {
    fn default() -> Self {
        Self { count: 4, size: 56, interval: 100_000_000, timeout: 5_000_000_000 }
    }
}

/// How a ping went so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PingReport {
    /// Requests sent.
    pub sent: u32,
    /// Answers whose data came back as sent.
    pub received: u32,
    /// Answers with other data than was sent.
    pub corrupt: u32,
    /// Requests without an answer in time.
    pub lost: u32,
    /// Second answers to one request.
    pub duplicates: u32,
    /// Shortest round trip, in nanoseconds; 0 before the first answer.
    pub shortest: Nanos,
    /// Longest round trip.
    pub longest: Nanos,
    /// Sum of the round trips.
    pub total: Nanos,
    /// Nothing more will change.
    pub done: bool,
}

impl PingReport {
    /// Every request was answered with its own data.
    pub fn is_perfect(&self) -> bool {
        self.done && self.sent > 0 && self.received == self.sent && self.corrupt == 0
    }

    fn answered(&mut self, round_trip: Nanos) {
        self.shortest = if self.received == 0 { round_trip } else { self.shortest.min(round_trip) };
        self.longest = self.longest.max(round_trip);
        self.total += round_trip;
        self.received += 1;
    }
}

/// A running ping, seen from outside.
#[derive(Clone, Debug, Default)]
pub struct Ping(Arc<Mutex<PingReport>>);

impl Ping {
    /// How it went so far.
    pub fn report(&self) -> PingReport {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, change: impl FnOnce(&mut PingReport)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// The job behind a [`Ping`].
pub struct PingJob {
    target: IpAddr,
    options: PingOptions,
    shared: Ping,
    socket: Option<(SocketHandle, u16)>,
    next_request: Nanos,
    sent: u16,
    waiting: BTreeMap<u16, Nanos>,
    answered: Vec<bool>,
}

impl PingJob {
    /// A ping of `target`, and the handle to watch it by.
    pub fn new(target: IpAddr, options: PingOptions) -> (Self, Ping) {
        let shared = Ping::default();
        let job = Self {
            target,
            options,
            shared: shared.clone(),
            socket: None,
            next_request: 0,
            sent: 0,
            waiting: BTreeMap::new(),
            answered: vec![false; usize::from(options.count)],
        };
        (job, shared)
    }

    fn open(&mut self, host: &mut Context<'_>) -> (SocketHandle, u16) {
        if let Some(open) = self.socket {
            return open;
        }
        let bytes = (self.options.size + ECHO_HEADER) * 4;
        let buffer = || PacketBuffer::new(vec![PacketMetadata::EMPTY; 4], vec![0; bytes]);
        let mut socket = Socket::new(buffer(), buffer());
        let ident = host.allocate_port();
        socket.bind(Endpoint::Ident(ident)).expect("a fresh socket is not bound");
        let open = (host.sockets.add(socket), ident);
        self.socket = Some(open);
        host.discover(self.target);
        open
    }

    fn data(&self, sequence: u16) -> Vec<u8> {
        let mut data = vec![0; self.options.size];
        Pattern::new(u64::from(sequence)).fill(0, &mut data);
        data
    }

    /// Queues one request; false if the socket is still full of earlier ones.
    fn request(&mut self, host: &mut Context<'_>, handle: SocketHandle, ident: u16) -> bool {
        let Some(source) = host.interface.get_source_address(&self.target.into()) else { return false };
        let data = self.data(self.sent);
        let checksums = ChecksumCapabilities::default();
        let socket = host.sockets.get_mut::<Socket<'_>>(handle);
        let Ok(buffer) = socket.send(ECHO_HEADER + data.len(), self.target.into()) else { return false };
        if let (IpAddr::V6(source), IpAddr::V6(target)) = (IpAddr::from(source), self.target) {
            let request = Icmpv6Repr::EchoRequest { ident, seq_no: self.sent, data: &data };
            request.emit(&source, &target, &mut Icmpv6Packet::new_unchecked(buffer), &checksums);
        } else {
            let request = Icmpv4Repr::EchoRequest { ident, seq_no: self.sent, data: &data };
            request.emit(&mut Icmpv4Packet::new_unchecked(buffer), &checksums);
        }
        if !self.waiting.is_empty() {
            host.discover(self.target);
        }
        self.waiting.insert(self.sent, host.now);
        self.sent += 1;
        self.shared.update(|report| report.sent += 1);
        true
    }

    fn answers(&mut self, host: &mut Context<'_>, handle: SocketHandle) {
        let socket = host.sockets.get_mut::<Socket<'_>>(handle);
        while let Ok((bytes, from)) = socket.recv() {
            if IpAddr::from(from) != self.target {
                continue;
            }
            let answer = match self.target {
                IpAddr::V4(_) => echo_reply_v4(bytes),
                IpAddr::V6(_) => echo_reply_v6(bytes),
            };
            let Some((sequence, data)) = answer else { continue };
            match self.answered.get_mut(usize::from(sequence)) {
                None => continue,
                Some(answered) if *answered => {
                    self.shared.update(|report| report.duplicates += 1);
                    continue;
                }
                Some(answered) => *answered = true,
            }
            // An answer after its time was counted as lost then, and stays so.
            let Some(asked) = self.waiting.remove(&sequence) else { continue };
            let (intact, round_trip) = (data == self.data(sequence), host.now - asked);
            self.shared
                .update(|report| if intact { report.answered(round_trip) } else { report.corrupt += 1 });
        }
    }

    fn forget_late(&mut self, now: Nanos) {
        let timeout = self.options.timeout;
        let before = self.waiting.len();
        self.waiting.retain(|_, asked| now < *asked + timeout);
        let lost = (before - self.waiting.len()) as u32;
        if lost > 0 {
            self.shared.update(|report| report.lost += lost);
        }
    }
}

fn echo_reply_v4(bytes: &[u8]) -> Option<(u16, &[u8])> {
    let packet = Icmpv4Packet::new_checked(bytes).ok()?;
    match Icmpv4Repr::parse(&packet, &ChecksumCapabilities::ignored()).ok()? {
        Icmpv4Repr::EchoReply { seq_no, data, .. } => Some((seq_no, data)),
        _ => None,
    }
}

fn echo_reply_v6(bytes: &[u8]) -> Option<(u16, &[u8])> {
    let packet = Icmpv6Packet::new_checked(bytes).ok()?;
    // smoltcp has checked the sum over the addresses before the socket saw the packet.
    let any = core::net::Ipv6Addr::UNSPECIFIED;
    match Icmpv6Repr::parse(&any, &any, &packet, &ChecksumCapabilities::ignored()).ok()? {
        Icmpv6Repr::EchoReply { seq_no, data, .. } => Some((seq_no, data)),
        _ => None,
    }
}

impl Job for PingJob {
    fn step(&mut self, host: &mut Context<'_>) -> Step {
        let (handle, ident) = self.open(host);
        self.answers(host, handle);
        self.forget_late(host.now);
        if self.sent < self.options.count
            && host.now >= self.next_request
            && self.request(host, handle, ident)
        {
            self.next_request = host.now + self.options.interval;
        }
        if self.sent == self.options.count && self.waiting.is_empty() {
            host.sockets.remove(handle);
            self.shared.update(|report| report.done = true);
            return Step::Finished;
        }
        let expiry = self.waiting.values().map(|asked| asked + self.options.timeout).min();
        let request =
            (self.sent < self.options.count && self.next_request > host.now).then_some(self.next_request);
        expiry.into_iter().chain(request).min().map_or(Step::Blocked, Step::Until)
    }
}
