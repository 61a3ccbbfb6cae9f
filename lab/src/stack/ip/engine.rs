//! An IP host without a clock: smoltcp, its sockets and the jobs that use them. Frames and the time go in, frames and
//! the time of the next call come out, so the same engine runs in virtual and in real time and in a plain unit test.

use core::net::IpAddr;

use smoltcp::iface::{Config, Interface, MulticastError, SocketSet};
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, HardwareAddress, IpCidr};

use super::address::{MacAddress, multicast_list};
use super::device::FrameDevice;
use super::discovery;
use crate::sim::Nanos;

/// First port of the dynamic range (RFC 6335 section 6).
const FIRST_DYNAMIC_PORT: u16 = 49152;

/// What an engine is made from.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// The adapter's current address.
    pub mac: MacAddress,
    /// The largest IP packet, in bytes.
    pub mtu: usize,
    /// The host's addresses with the lengths of their prefixes; at most eight.
    pub addresses: Vec<(IpAddr, u8)>,
    /// Seeds TCP's initial sequence numbers.
    pub seed: u64,
}

/// When a job wants to run next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// When its sockets change.
    Blocked,
    /// When its sockets change, or at this time.
    Until(Nanos),
    /// Never: it has removed its sockets and is dropped.
    Finished,
}

/// Something that uses the host's sockets over time.
pub trait Job: Send {
    /// Does what can be done now. Called after every change of the sockets and when the time it asked for has come.
    fn step(&mut self, host: &mut Context<'_>) -> Step;
}

/// What a job may touch.
pub struct Context<'a> {
    /// The present.
    pub now: Nanos,
    /// The interface, for its addresses.
    pub interface: &'a mut Interface,
    /// The host's sockets.
    pub sockets: &'a mut SocketSet<'static>,
    device: &'a mut FrameDevice,
    mac: MacAddress,
    allocated: &'a mut u16,
}

impl Context<'_> {
    /// Asks the network for `target`'s Ethernet address (see [`discovery`]). An answer reaches smoltcp's cache.
    pub fn discover(&mut self, target: IpAddr) {
        let source = self.interface.get_source_address(&target.into());
        let frame = source.and_then(|source| discovery::request(self.mac, source.into(), target));
        if let Some(frame) = frame {
            self.device.push_outgoing(frame);
        }
    }

    /// A local port, or an ICMP identifier, that no other job of this host has.
    pub fn allocate_port(&mut self) -> u16 {
        let port = FIRST_DYNAMIC_PORT + *self.allocated % (u16::MAX - FIRST_DYNAMIC_PORT);
        *self.allocated = self.allocated.wrapping_add(1);
        port
    }
}

struct Scheduled {
    job: Box<dyn Job>,
    next: Step,
}

/// An IP host.
pub struct Engine {
    interface: Interface,
    device: FrameDevice,
    sockets: SocketSet<'static>,
    jobs: Vec<Scheduled>,
    groups: Vec<IpAddr>,
    mac: MacAddress,
    allocated: u16,
}

/// smoltcp counts time in microseconds.
fn instant(now: Nanos) -> Instant {
    Instant::from_micros((now / 1_000) as i64)
}

impl Engine {
    /// A host with these addresses and no sockets.
    pub fn new(config: &EngineConfig, now: Nanos) -> Self {
        let mut device = FrameDevice::new(config.mtu);
        let mut interface_config = Config::new(HardwareAddress::Ethernet(EthernetAddress(config.mac)));
        interface_config.random_seed = config.seed;
        let mut interface = Interface::new(interface_config, &mut device, instant(now));
        interface.update_ip_addrs(|list| {
            for &(address, prefix) in &config.addresses {
                list.push(IpCidr::new(address.into(), prefix)).expect("a host has at most eight addresses");
            }
        });
        let sockets = SocketSet::new(Vec::new());
        Self {
            interface,
            device,
            sockets,
            jobs: Vec::new(),
            groups: Vec::new(),
            mac: config.mac,
            allocated: 0,
        }
    }

    /// The host's addresses.
    pub fn addresses(&self) -> Vec<IpAddr> {
        self.interface.ip_addrs().iter().map(|cidr| cidr.address().into()).collect()
    }

    /// The Ethernet multicast addresses it wants to hear.
    pub fn multicast_list(&self) -> Vec<MacAddress> {
        multicast_list(&self.addresses(), &self.groups)
    }

    /// Joins a group: IGMP or MLD reports follow, and the multicast list grows.
    pub fn join(&mut self, group: IpAddr) -> Result<(), MulticastError> {
        self.interface.join_multicast_group(group)?;
        if !self.groups.contains(&group) {
            self.groups.push(group);
        }
        Ok(())
    }

    /// Leaves a group joined before.
    pub fn leave(&mut self, group: IpAddr) -> Result<(), MulticastError> {
        self.interface.leave_multicast_group(group)?;
        self.groups.retain(|joined| *joined != group);
        Ok(())
    }

    /// Starts a job. Its sockets are open when this returns, so that a peer told of it cannot be refused; frames go
    /// out at the next poll.
    pub fn start(&mut self, job: Box<dyn Job>, now: Nanos) {
        self.jobs.push(Scheduled { job, next: Step::Blocked });
        self.step_jobs(now);
    }

    /// How many jobs have not finished.
    pub fn jobs(&self) -> usize {
        self.jobs.len()
    }

    /// Adds a frame from the network; read at the next poll.
    pub fn receive(&mut self, frame: Vec<u8>) {
        self.device.push_received(frame);
    }

    /// Takes the frames to send, in order.
    pub fn take_outgoing(&mut self) -> Vec<Vec<u8>> {
        self.device.take_outgoing()
    }

    /// Runs the host at `now`, writing at most about `budget` frames; says when to run it next if nothing arrives.
    pub fn poll(&mut self, now: Nanos, budget: usize) -> Option<Nanos> {
        self.device.set_budget(budget);
        let time = instant(now);
        self.interface.poll(time, &mut self.device, &mut self.sockets);
        self.step_jobs(now);
        // What the jobs have just written goes out in the same call.
        self.interface.poll(time, &mut self.device, &mut self.sockets);
        let job = self.jobs.iter().filter_map(|scheduled| match scheduled.next {
            Step::Until(when) => Some(when),
            Step::Blocked | Step::Finished => None,
        });
        let blocked = self.device.budget() == 0;
        // With the budget spent, a completion wakes the host; smoltcp would say "now" for ever.
        let socket = (!blocked).then(|| self.interface.poll_at(time, &self.sockets)).flatten();
        // Rounded up: a microsecond too early would find nothing to do and ask again.
        let socket = socket.map(|when| (when.total_micros().max(0) as Nanos) * 1_000);
        job.chain(socket).min().map(|when| when.max(now))
    }

    fn step_jobs(&mut self, now: Nanos) {
        for scheduled in &mut self.jobs {
            scheduled.next = scheduled.job.step(&mut Context {
                now,
                interface: &mut self.interface,
                sockets: &mut self.sockets,
                device: &mut self.device,
                mac: self.mac,
                allocated: &mut self.allocated,
            });
        }
        self.jobs.retain(|scheduled| scheduled.next != Step::Finished);
    }
}
