//! A host whose driver knows many peers, and frames to and from them.
//!
//! The peers are queue pairs that only exist as a sender in frames that the host's HCA is handed. All are at the
//! port of the second host, so that the subnet administrator knows a path to each; what is sent to them is
//! discarded there.

use std::sync::Arc;

use ipoib_lab::fabric::wire::{Bth, Deth, Lrh, OpCode};
use ipoib_lab::fabric::{Gid, Headers, Lid, PKey, Packet, QKey, Qpn};
use ipoib_lab::hca::net::PortOwner;
use ipoib_lab::ndis::{AdapterOptions, BROADCAST, DIRECTED, Fragmentation, MULTICAST, Returns, SendList};
use ipoib_lab::scenario::{Host, Subnet, SubnetConfig};
use ipoib_lab::sim::{MICROSECOND, SimConfig};
use ipoib_lab::stack::RawStack;

/// The first peer's QPN.
const FIRST_QPN: u32 = 0x10_0000;
/// Most receives handed to the HCA at once: fewer than are posted.
const BURST: usize = 32;
/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;
/// Bytes of the IPoIB encapsulation header (RFC 4391, section 6).
const ENCAPSULATION: usize = 4;
const IPV4: u16 = 0x0800;
const ARP: u16 = 0x0806;

/// A host, its driver, and who it knows.
pub struct Rig {
    subnet: Subnet,
    stack: RawStack,
    qpn: u32,
    qkey: QKey,
    lid: Lid,
    peer_lid: Lid,
    peer_gid: Gid,
    gid: Gid,
}

impl Rig {
    /// A host that has heard ARP replies of `peers` peers. Everything that varies from run to run is off: one
    /// processor, no preemption, frames as a TCP/IP stack lays them out, buffers returned at once.
    pub fn new(peers: usize) -> Self {
        let mut config = SubnetConfig::new(2, 1);
        config.sim = SimConfig { preemption: 0, ..SimConfig::seeded(1) };
        config.machine.cpus = 1;
        config.adapter.options = AdapterOptions {
            fragmentation: Fragmentation::HeaderSplit,
            returns: Returns::AtOnce,
            late_dma: 0,
            ..AdapterOptions::default()
        };
        let subnet = Subnet::new(&config).expect("a topology");
        subnet.bring_up().expect("links up");
        let stack = subnet
            .on_host(0, "bind", |host| {
                let stack = RawStack::bind_deaf(&host.adapter().expect("up"))?;
                stack.binding().set_filter(DIRECTED | MULTICAST | BROADCAST, &[])?;
                Ok::<_, i32>(stack)
            })
            .expect("a run")
            .expect("bound");
        let host = &subnet.hosts[0];
        let qpn = host.qpn().expect("a QP that is up");
        let qkey = host.hca.qp_by_number(qpn).expect("the driver's QP").attrs().qkey;
        let (own, other) = (subnet.net.port(host.port), subnet.net.port(subnet.hosts[1].port));
        let rig = Self {
            qpn,
            qkey: QKey(qkey),
            lid: own.lid,
            gid: own.default_gid(),
            peer_lid: other.lid,
            peer_gid: other.default_gid(),
            subnet,
            stack,
        };
        for first in (0..peers).step_by(BURST) {
            rig.receive((first..peers.min(first + BURST)).map(|peer| rig.arp_reply(peer)), BURST);
            // Tables grow in the driver's worker.
            rig.subnet.run_for(100 * MICROSECOND).expect("quiet");
        }
        rig
    }

    fn host(&self) -> &Arc<Host> {
        &self.subnet.hosts[0]
    }

    /// Pool allocations that the driver has made.
    pub fn allocations(&self) -> u64 {
        self.host().machine.pool_stats().driver_allocations
    }

    /// Hands packets to the HCA, `batch` at a time, and waits for each batch to have been indicated. Panics if one
    /// is not: then the driver dropped it.
    pub fn receive(&self, packets: impl Iterator<Item = Packet>, batch: usize) {
        let mut packets = packets.peekable();
        let port = self.host().port;
        while packets.peek().is_some() {
            let burst: Vec<_> = packets.by_ref().take(batch).collect();
            let count = burst.len();
            let hca = Arc::clone(&self.host().hca);
            self.subnet.sim.after(0, "packets arrive", move |_| {
                for packet in &burst {
                    hca.deliver(port, packet);
                }
            });
            self.subnet.wait_for("indications", |_| self.stack.received() >= count).expect("indicated");
            assert_eq!(self.stack.take_frames().len(), count);
        }
    }

    /// Sends frames, `chain` NET_BUFFER_LISTs at a time, and waits for each chain to be complete. Panics if one is
    /// not sent.
    pub fn send(&self, frames: impl Iterator<Item = Vec<u8>>, chain: usize) {
        let mut frames = frames.peekable();
        while frames.peek().is_some() {
            let lists: Vec<_> = frames
                .by_ref()
                .take(chain)
                .map(|frame| SendList { frames: vec![frame], tag: 0, cancel_id: 0 })
                .collect();
            let count = lists.len();
            let stack = self.stack.clone();
            self.subnet.on_host(0, "send", move |_| stack.send_lists(lists)).expect("sent");
            self.subnet.wait_for("completions", |_| self.stack.completed() >= count).expect("complete");
            assert!(self.stack.take_completions().iter().all(|completion| completion.status == 0));
        }
    }

    /// An Ethernet frame to a peer with an IPv4 packet of `size` bytes.
    pub fn frame_to(&self, peer: usize, size: usize) -> Vec<u8> {
        let mut frame = vec![0; ETHERNET + size];
        let [_, a, b, c] = (FIRST_QPN + peer as u32).to_be_bytes();
        let [high, low] = self.peer_lid.0.to_be_bytes();
        frame[..6].copy_from_slice(&[2, a, b, c, high, low]);
        let [_, a, b, c] = self.qpn.to_be_bytes();
        frame[6..12].copy_from_slice(&[2, a, b, c, 0, 0]);
        frame[12..14].copy_from_slice(&IPV4.to_be_bytes());
        ipv4(&mut frame[ETHERNET..]);
        frame
    }

    /// An IPoIB packet of a peer with an IPv4 packet of `size` bytes.
    pub fn packet_from(&self, peer: usize, size: usize) -> Packet {
        self.packet(peer, IPV4, size, ipv4)
    }

    fn arp_reply(&self, peer: usize) -> Packet {
        let address = |qpn: u32, gid: Gid| [&qpn.to_be_bytes()[..], &gid.0].concat();
        let [_, a, b, c] = (peer as u32).to_be_bytes();
        let arp = [
            // InfiniBand, IPv4, reply (RFC 4391, section 9.2).
            &[0, 32, 8, 0, 20, 4, 0, 2][..],
            &address(FIRST_QPN + peer as u32, self.peer_gid),
            &[0x0a | a, a, b, c],
            &address(self.qpn, self.gid),
            &[10, 255, 255, 1],
        ]
        .concat();
        self.packet(peer, ARP, arp.len(), |space| space.copy_from_slice(&arp))
    }

    fn packet(&self, peer: usize, ethertype: u16, size: usize, fill: impl FnOnce(&mut [u8])) -> Packet {
        let headers = Headers {
            lrh: Lrh { dlid: self.lid, slid: self.peer_lid, ..Lrh::default() },
            bth: Bth {
                opcode: OpCode::UD_SEND_ONLY,
                pkey: PKey::DEFAULT,
                dest_qp: Qpn::new(self.qpn),
                ..Bth::default()
            },
            deth: Some(Deth { qkey: self.qkey, src_qp: Qpn::new(FIRST_QPN + peer as u32) }),
            ..Headers::default()
        };
        Packet::build(&headers, ENCAPSULATION + size, |space| {
            let (head, body) = space.split_at_mut(ENCAPSULATION);
            head[..2].copy_from_slice(&ethertype.to_be_bytes());
            fill(body);
        })
    }
}

/// Makes a UDP packet that fills the space, to a port that the driver does not look at.
pub fn ipv4(space: &mut [u8]) {
    let length = (space.len() as u16).to_be_bytes();
    space[..4].copy_from_slice(&[0x45, 0, length[0], length[1]]);
    space[8..10].copy_from_slice(&[64, 17]);
    space[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    let udp = (space.len() as u16 - 20).to_be_bytes();
    space[20..26].copy_from_slice(&[0, 9, 0, 9, udp[0], udp[1]]);
}
