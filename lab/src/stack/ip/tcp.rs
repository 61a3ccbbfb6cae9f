//! TCP transfers: a stream of test data from one host to another, hashed at both ends.

use core::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest, Sha256};
use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp::{Socket, SocketBuffer, State};
use smoltcp::wire::IpEndpoint;

use super::engine::{Context, Job, Step};
use super::pattern::Pattern;
use crate::sim::Nanos;

/// How often an unanswered connection attempt asks for the peer's Ethernet address again.
const REDISCOVER: Nanos = 1_000_000_000;

/// A SHA-256 digest.
pub type Hash = [u8; 32];

/// How a transfer is made.
#[derive(Clone, Copy, Debug)]
pub struct TcpOptions {
    /// Bytes of each end's larger buffer: the window, and what is kept for retransmission.
    pub buffer: usize,
}

impl Default for TcpOptions {
    fn default() -> Self {
        Self { buffer: 64 * 1024 }
    }
}

/// How one end of a transfer stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TcpState {
    /// Listening, or not yet connected.
    #[default]
    Opening,
    /// Connected.
    Open,
    /// Everything was sent and acknowledged, or everything received up to the peer's end of stream.
    Complete,
    /// The connection was reset or refused.
    Failed,
}

/// What one end of a transfer has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpReport {
    /// How it stands.
    pub state: TcpState,
    /// Bytes given to, or taken from, TCP.
    pub bytes: u64,
    /// Their hash, once the state is [`TcpState::Complete`].
    pub hash: Option<Hash>,
    /// When the connection was established.
    pub opened: Option<Nanos>,
    /// When it was complete or failed.
    pub closed: Option<Nanos>,
}

impl TcpReport {
    /// Nothing more will change.
    pub fn is_done(&self) -> bool {
        matches!(self.state, TcpState::Complete | TcpState::Failed)
    }
}

/// One end of a transfer, seen from outside.
#[derive(Clone, Debug, Default)]
pub struct TcpEnd(Arc<Mutex<TcpReport>>);

impl TcpEnd {
    /// What it has seen so far.
    pub fn report(&self) -> TcpReport {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, change: impl FnOnce(&mut TcpReport)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn opened(&self, now: Nanos) {
        self.update(|report| {
            report.state = TcpState::Open;
            report.opened.get_or_insert(now);
        });
    }

    fn closed(&self, now: Nanos, hash: Option<Hash>) {
        self.update(|report| {
            report.state = if hash.is_some() { TcpState::Complete } else { TcpState::Failed };
            report.hash = hash;
            report.closed = Some(now);
        });
    }
}

/// A transfer, seen from outside.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// The sending end.
    pub sender: TcpEnd,
    /// The receiving end.
    pub receiver: TcpEnd,
    /// Bytes to carry.
    pub size: u64,
}

impl Transfer {
    /// Both ends have ended.
    pub fn is_done(&self) -> bool {
        self.sender.report().is_done() && self.receiver.report().is_done()
    }

    /// Every byte arrived, and both ends computed the same hash.
    pub fn is_intact(&self) -> bool {
        let (sent, received) = (self.sender.report(), self.receiver.report());
        sent.hash.is_some()
            && sent.hash == received.hash
            && sent.bytes == self.size
            && received.bytes == self.size
    }

    /// From the establishment to the receiver's end of stream.
    pub fn duration(&self) -> Option<Nanos> {
        Some(self.receiver.report().closed? - self.sender.report().opened?)
    }
}

fn socket(receive: usize, send: usize) -> Socket<'static> {
    let mut socket = Socket::new(SocketBuffer::new(vec![0; receive]), SocketBuffer::new(vec![0; send]));
    // A stream of full segments gains nothing from waiting for more.
    socket.set_nagle_enabled(false);
    socket
}

/// The buffer of the direction that carries no data.
const IDLE_BUFFER: usize = 512;

/// Sends test data to a peer.
pub struct TcpSender {
    peer: SocketAddr,
    size: u64,
    options: TcpOptions,
    pattern: Pattern,
    hash: Sha256,
    sent: u64,
    socket: Option<SocketHandle>,
    rediscover: Nanos,
    end: TcpEnd,
}

impl TcpSender {
    /// Sends `size` bytes, chosen by `seed`, to `peer`.
    pub fn new(peer: SocketAddr, size: u64, seed: u64, options: TcpOptions) -> (Self, TcpEnd) {
        let end = TcpEnd::default();
        let (pattern, hash) = (Pattern::new(seed), Sha256::new());
        let sender = Self {
            peer,
            size,
            options,
            pattern,
            hash,
            sent: 0,
            socket: None,
            rediscover: 0,
            end: end.clone(),
        };
        (sender, end)
    }

    fn open(&mut self, host: &mut Context<'_>) -> Option<SocketHandle> {
        if self.socket.is_none() {
            let port = host.allocate_port();
            let mut socket = socket(IDLE_BUFFER, self.options.buffer);
            socket.connect(host.interface.context(), IpEndpoint::from(self.peer), port).ok()?;
            self.socket = Some(host.sockets.add(socket));
        }
        self.socket
    }

    fn write(&mut self, socket: &mut Socket<'_>) {
        while self.sent < self.size && socket.can_send() {
            let (pattern, offset) = (self.pattern, self.sent);
            let hash = &mut self.hash;
            let rest = self.size - self.sent;
            let written = socket.send(|buffer| {
                let length = buffer.len().min(usize::try_from(rest).unwrap_or(usize::MAX));
                let part = &mut buffer[..length];
                pattern.fill(offset, part);
                hash.update(&*part);
                (length, length)
            });
            match written {
                Ok(length) if length > 0 => self.sent += length as u64,
                _ => break,
            }
        }
        let sent = self.sent;
        self.end.update(|report| report.bytes = sent);
    }

    fn finish(&mut self, host: &mut Context<'_>, handle: SocketHandle, intact: bool) -> Step {
        host.sockets.remove(handle);
        self.end.closed(host.now, intact.then(|| self.hash.clone().finalize().into()));
        Step::Finished
    }
}

impl Job for TcpSender {
    fn step(&mut self, host: &mut Context<'_>) -> Step {
        let Some(handle) = self.open(host) else {
            self.end.closed(host.now, None);
            return Step::Finished;
        };
        let now = host.now;
        match host.sockets.get::<Socket<'_>>(handle).state() {
            State::SynSent => {
                if now >= self.rediscover {
                    host.discover(self.peer.ip());
                    self.rediscover = now + REDISCOVER;
                }
                return Step::Until(self.rediscover);
            }
            State::Established | State::CloseWait => {}
            // Our end of stream is acknowledged; the peer's may still be on its way.
            State::FinWait2 | State::TimeWait => return self.finish(host, handle, true),
            State::Closed => {
                let acknowledged = self.sent == self.size && self.end.report().state == TcpState::Open;
                return self.finish(host, handle, acknowledged);
            }
            _ => return Step::Blocked,
        }
        self.end.opened(now);
        let socket = host.sockets.get_mut::<Socket<'_>>(handle);
        self.write(socket);
        if self.sent == self.size {
            socket.close();
        }
        Step::Blocked
    }
}

/// Takes one connection on a port and hashes what it carries.
pub struct TcpReceiver {
    port: u16,
    options: TcpOptions,
    hash: Sha256,
    received: u64,
    socket: Option<SocketHandle>,
    end: TcpEnd,
}

impl TcpReceiver {
    /// Listens on `port`.
    pub fn new(port: u16, options: TcpOptions) -> (Self, TcpEnd) {
        let end = TcpEnd::default();
        (Self { port, options, hash: Sha256::new(), received: 0, socket: None, end: end.clone() }, end)
    }

    fn read(&mut self, socket: &mut Socket<'_>) {
        while socket.can_recv() {
            let hash = &mut self.hash;
            let read = socket.recv(|data| {
                hash.update(&*data);
                (data.len(), data.len())
            });
            match read {
                Ok(length) if length > 0 => self.received += length as u64,
                _ => break,
            }
        }
        let received = self.received;
        self.end.update(|report| report.bytes = received);
    }
}

impl Job for TcpReceiver {
    fn step(&mut self, host: &mut Context<'_>) -> Step {
        let handle = *self.socket.get_or_insert_with(|| {
            let mut socket = socket(self.options.buffer, IDLE_BUFFER);
            socket.listen(self.port).expect("a fresh socket can listen on a port that is not 0");
            host.sockets.add(socket)
        });
        let socket = host.sockets.get_mut::<Socket<'_>>(handle);
        match socket.state() {
            State::Listen | State::SynReceived => return Step::Blocked,
            State::Closed => {
                host.sockets.remove(handle);
                if !self.end.report().is_done() {
                    self.end.closed(host.now, None);
                }
                return Step::Finished;
            }
            _ => {}
        }
        if self.end.report().is_done() {
            return Step::Blocked;
        }
        self.end.opened(host.now);
        self.read(socket);
        if !socket.may_recv() && socket.state() == State::CloseWait {
            socket.close();
            self.end.closed(host.now, Some(self.hash.clone().finalize().into()));
        }
        Step::Blocked
    }
}

/// The address and port of a peer.
pub fn endpoint(address: IpAddr, port: u16) -> SocketAddr {
    SocketAddr::new(address, port)
}
