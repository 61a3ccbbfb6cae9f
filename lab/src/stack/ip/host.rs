//! The engine on an adapter: a protocol that notes what arrives, and a thread that runs the engine when something has
//! arrived or its time has come.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use smoltcp::iface::MulticastError;

use super::address::{MacAddress, link_local};
use super::engine::{Engine, EngineConfig, Job};
use super::neighbours::Neighbours;
use super::ping::{Ping, PingJob, PingOptions};
use super::tcp::{TcpEnd, TcpOptions, TcpReceiver, TcpSender, Transfer};
use super::udp::{UdpEnd, UdpOptions, UdpReceiver, UdpSender};
use crate::ndis::{
    ALL_MULTICAST, Adapter, BROADCAST, Binding, DIRECTED, Frame, LinkState, MULTICAST, Protocol,
    SendCompletion, SendList, SendRequest, Signal, Status,
};
use crate::sim::{Lock, Sim};

/// Frames handed to the adapter and not completed, at most: a bound as that of a socket's send buffer.
const MAX_OUTSTANDING: usize = 512;
/// Received frames waiting for the engine, at most; more are dropped, as by any host that cannot keep up.
const MAX_INBOX: usize = 4096;

/// How a host is set up.
#[derive(Clone, Debug, Default)]
pub struct StackConfig {
    /// IPv4 address and prefix length.
    pub ipv4: Option<(Ipv4Addr, u8)>,
    /// IPv6 addresses and prefix lengths besides the link-local one.
    pub ipv6: Vec<(Ipv6Addr, u8)>,
}

struct Shared {
    sim: Sim,
    mac: MacAddress,
    engine: Lock<Engine>,
    inbox: Lock<Vec<Vec<u8>>>,
    neighbours: Lock<Neighbours>,
    overflowed: AtomicU64,
    outstanding: AtomicUsize,
    failed_sends: AtomicU64,
    next_tag: AtomicU64,
    link: AtomicBool,
    running: AtomicBool,
    groups_changed: AtomicBool,
    stop: AtomicBool,
    /// Something for the thread to do.
    work: Signal,
    stopped: Signal,
}

impl Protocol for Shared {
    fn receive(&self, frames: &[Frame<'_>]) {
        {
            let mut inbox = self.inbox.lock();
            for frame in frames {
                if inbox.len() < MAX_INBOX {
                    inbox.push(frame.bytes.to_vec());
                } else {
                    self.overflowed.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        self.work.set();
    }

    fn send_complete(&self, completions: &[SendCompletion]) {
        let failed = completions.iter().filter(|completion| completion.status != 0).count() as u64;
        self.failed_sends.fetch_add(failed, Ordering::Relaxed);
        // The tag carries the number of frames in its low bits.
        let frames: u64 = completions.iter().map(|completion| completion.tag & 0xFF).sum();
        self.outstanding.fetch_sub(frames as usize, Ordering::AcqRel);
        self.work.set();
    }

    fn link_state(&self, link: LinkState) {
        self.link.store(link.is_up(), Ordering::Release);
        self.work.set();
    }

    fn running(&self, running: bool) {
        self.running.store(running, Ordering::Release);
        self.work.set();
    }
}

impl Shared {
    fn is_connected(&self) -> bool {
        self.link.load(Ordering::Acquire) && self.running.load(Ordering::Acquire)
    }

    /// Groups frames into lists: mostly one each, now and then two frames of one destination share a list.
    fn lists(&self, frames: Vec<Vec<u8>>) -> Vec<SendList> {
        let mut lists: Vec<SendList> = Vec::with_capacity(frames.len());
        for frame in frames {
            let joins = lists.last().is_some_and(|last| {
                last.frames.len() < 4
                    && last.frames[0].first_chunk::<6>() == frame.first_chunk::<6>()
                    && self.sim.rng(|rng| rng.chance(1 << 12))
            });
            match lists.last_mut().filter(|_| joins) {
                Some(last) => last.frames.push(frame),
                None => lists.push(SendList { frames: vec![frame], tag: 0, cancel_id: 0 }),
            }
        }
        for list in &mut lists {
            let number = self.next_tag.fetch_add(1, Ordering::Relaxed);
            list.tag = number << 8 | list.frames.len() as u64;
        }
        lists
    }

    /// Has the adapter hear what the host wants to hear.
    fn listen(&self, binding: &Binding) {
        let list = self.engine.lock().multicast_list();
        // A miniport whose list is full answers NDIS_STATUS_MULTICAST_FULL, and takes all groups instead.
        if binding.set_filter(DIRECTED | BROADCAST | MULTICAST, &list).is_err() {
            let _ = binding.set_filter(DIRECTED | BROADCAST | ALL_MULTICAST, &[]);
        }
    }

    /// The body of the host's thread.
    fn run(&self, binding: &Binding) {
        let mut next = None;
        loop {
            match next {
                Some(when) if when <= self.sim.now() => {}
                Some(when) => {
                    self.work.wait_until("an IP host's next frame", when);
                }
                None => self.work.wait("an IP host's next frame", true),
            }
            if self.stop.load(Ordering::Acquire) {
                break;
            }
            if self.groups_changed.swap(false, Ordering::AcqRel) {
                self.listen(binding);
            }
            let received = std::mem::take(&mut *self.inbox.lock());
            if !self.is_connected() {
                // Without a link nothing is sent and no timer runs: TCP would only back off. What is due by the time
                // the link is back is done then.
                next = None;
                continue;
            }
            let budget = MAX_OUTSTANDING.saturating_sub(self.outstanding.load(Ordering::Acquire));
            let (frames, when) = {
                let mut engine = self.engine.lock();
                let mut neighbours = self.neighbours.lock();
                for frame in received {
                    neighbours.note(&frame);
                    engine.receive(frame);
                }
                let when = engine.poll(self.sim.now(), budget);
                (engine.take_outgoing(), when)
            };
            next = when;
            if !frames.is_empty() {
                self.outstanding.fetch_add(frames.len(), Ordering::AcqRel);
                binding.send(&SendRequest { lists: self.lists(frames) });
            }
        }
        binding.close();
        self.stopped.set();
    }
}

/// An IP host on an adapter. Cheap to clone. All methods but `start` and `stop` may be called from any context.
#[derive(Clone)]
pub struct HostStack {
    shared: Arc<Shared>,
    addresses: Vec<IpAddr>,
}

impl HostStack {
    /// Binds to an adapter and starts the host's thread. From a thread at PASSIVE_LEVEL.
    pub fn start(adapter: &Adapter, config: &StackConfig) -> Result<Self, Status> {
        let attributes = adapter.attributes();
        let sim = adapter.machine().sim().clone();
        let mac = attributes.current_address;
        let mut addresses: Vec<(IpAddr, u8)> = Vec::new();
        addresses.extend(config.ipv4.map(|(address, prefix)| (address.into(), prefix)));
        addresses.push((link_local(mac).into(), 64));
        addresses.extend(config.ipv6.iter().map(|&(address, prefix)| (address.into(), prefix)));
        let list = addresses.iter().map(|(address, _)| *address).collect();
        let engine_config = EngineConfig {
            mac,
            mtu: attributes.mtu as usize,
            addresses,
            seed: sim.rng(crate::sim::SimRng::next_u64),
        };
        let shared = Arc::new(Shared {
            engine: Lock::new(Engine::new(&engine_config, sim.now())),
            mac,
            inbox: Lock::default(),
            neighbours: Lock::default(),
            overflowed: AtomicU64::new(0),
            outstanding: AtomicUsize::new(0),
            failed_sends: AtomicU64::new(0),
            next_tag: AtomicU64::new(1),
            link: AtomicBool::new(false),
            running: AtomicBool::new(false),
            groups_changed: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            work: Signal::default(),
            stopped: Signal::default(),
            sim,
        });
        let binding = adapter.bind(Arc::clone(&shared) as Arc<dyn Protocol>)?;
        shared.listen(&binding);
        let host = Arc::clone(&shared);
        adapter.machine().spawn_thread(format!("IP host on {}", adapter.name()), move || host.run(&binding));
        shared.work.set();
        Ok(Self { shared, addresses: list })
    }

    /// Unbinds from the adapter and ends the host's thread. From a thread at PASSIVE_LEVEL.
    pub fn stop(&self) {
        if !self.shared.stop.swap(true, Ordering::AcqRel) {
            self.shared.work.set();
            self.shared.stopped.wait("an IP host to stop", false);
        }
    }

    fn launch(&self, job: Box<dyn Job>) {
        let now = self.shared.sim.now();
        self.shared.engine.lock().start(job, now);
        self.shared.work.set();
    }

    /// The adapter's address.
    pub fn mac(&self) -> MacAddress {
        self.shared.mac
    }

    /// The host's addresses.
    pub fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }

    /// Its IPv4 address.
    pub fn ipv4(&self) -> Option<Ipv4Addr> {
        self.addresses.iter().find_map(|address| match address {
            IpAddr::V4(address) => Some(*address),
            IpAddr::V6(_) => None,
        })
    }

    /// Its link-local IPv6 address.
    pub fn link_local(&self) -> Ipv6Addr {
        link_local(self.shared.mac)
    }

    /// Whether the link is up and the adapter runs.
    pub fn is_connected(&self) -> bool {
        self.shared.is_connected()
    }

    /// Every Ethernet address under which a neighbour was seen, in the order of appearance.
    pub fn neighbour(&self, address: IpAddr) -> Vec<MacAddress> {
        self.shared.neighbours.lock().of(address).to_vec()
    }

    /// Jobs that have not finished.
    pub fn jobs(&self) -> usize {
        self.shared.engine.lock().jobs()
    }

    /// Lists that the adapter completed with an error, and received frames dropped for want of room.
    pub fn losses(&self) -> (u64, u64) {
        (self.shared.failed_sends.load(Ordering::Relaxed), self.shared.overflowed.load(Ordering::Relaxed))
    }

    /// Pings an address.
    pub fn ping(&self, target: IpAddr, options: PingOptions) -> Ping {
        let (job, ping) = PingJob::new(target, options);
        self.launch(Box::new(job));
        ping
    }

    /// Takes one TCP connection on a port and hashes what it carries.
    pub fn tcp_receive(&self, port: u16, options: TcpOptions) -> TcpEnd {
        let (job, end) = TcpReceiver::new(port, options);
        self.launch(Box::new(job));
        end
    }

    /// Sends `size` bytes of test data, chosen by `seed`, over TCP.
    pub fn tcp_send(&self, peer: SocketAddr, size: u64, seed: u64, options: TcpOptions) -> TcpEnd {
        let (job, end) = TcpSender::new(peer, size, seed, options);
        self.launch(Box::new(job));
        end
    }

    /// Sends `size` bytes of test data over TCP to another host, at `address` of its and a port that is free there.
    pub fn tcp_transfer(
        &self,
        to: &HostStack,
        address: SocketAddr,
        size: u64,
        seed: u64,
        options: TcpOptions,
    ) -> Transfer {
        let receiver = to.tcp_receive(address.port(), options);
        let sender = self.tcp_send(address, size, seed, options);
        Transfer { sender, receiver, size }
    }

    /// Counts the datagrams of up to `size` bytes that arrive at a port.
    pub fn udp_receive(&self, port: u16, size: usize) -> UdpEnd {
        let (job, end) = UdpReceiver::new(port, size);
        self.launch(Box::new(job));
        end
    }

    /// Sends datagrams to a host or a group.
    pub fn udp_send(&self, peer: SocketAddr, options: UdpOptions) -> UdpEnd {
        let (job, end) = UdpSender::new(peer, options);
        self.launch(Box::new(job));
        end
    }

    /// Joins a multicast group: reports it, and has the adapter listen to it.
    pub fn join(&self, group: IpAddr) -> Result<(), MulticastError> {
        self.shared.engine.lock().join(group)?;
        self.regroup();
        Ok(())
    }

    /// Leaves a multicast group.
    pub fn leave(&self, group: IpAddr) -> Result<(), MulticastError> {
        self.shared.engine.lock().leave(group)?;
        self.regroup();
        Ok(())
    }

    fn regroup(&self) {
        self.shared.groups_changed.store(true, Ordering::Release);
        self.shared.work.set();
    }
}
