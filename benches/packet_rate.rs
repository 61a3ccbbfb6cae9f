//! Packet rate of the threaded lab, against the same hosts, fabric and frames with the driver, and what it calls,
//! replaced by a plain copy. Prints both and their ratio; judges nothing, since wall-clock time is the machine's.

#![allow(clippy::cast_precision_loss, reason = "rates for people to read")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use ipoib_benches::rig::ipv4;
use ipoib_lab::fabric::wire::{Bth, Deth, Lrh, OpCode};
use ipoib_lab::fabric::{Headers, PKey, Packet, PortEvent, PortId, QKey, Qpn};
use ipoib_lab::hca::net::PortOwner;
use ipoib_lab::kernel::Machine;
use ipoib_lab::ndis::{Binding, DIRECTED, Frame, Protocol, SendCompletion, SendRequest};
use ipoib_lab::scenario::{Subnet, SubnetConfig};
use ipoib_lab::sim::{self, MILLISECOND, SimConfig};

/// Frames in a run.
const FRAMES: u64 = 100_000;
/// Frames that may be under way: fewer than receives are posted.
const WINDOW: u64 = 128;
/// Frames in one chain.
const CHAIN: u64 = 32;
/// Bytes of an Ethernet header, and of the IPoIB header that stands for it.
const HEADERS: (usize, usize) = (14, 4);

/// What both ends count.
#[derive(Default)]
struct Tally {
    completed: AtomicU64,
    received: AtomicU64,
}

impl Protocol for Tally {
    fn receive(&self, frames: &[Frame<'_>]) {
        // As a stack would: each frame is taken over.
        for frame in frames {
            std::hint::black_box(frame.bytes.to_vec());
        }
        self.received.fetch_add(frames.len() as u64, Ordering::Relaxed);
    }

    fn send_complete(&self, completions: &[SendCompletion]) {
        self.completed.fetch_add(completions.len() as u64, Ordering::Relaxed);
    }
}

fn main() {
    println!("\nPacket rate of the threaded lab, one sender, one receiver, {FRAMES} frames");
    for size in [64, 2_044] {
        let (driver, lost) = through_driver(size);
        let copy = by_copy(size);
        println!(
            "{size:>5} bytes: {driver:>8.0} a second through the driver ({lost} lost), {copy:>8.0} by a plain copy, \
             ratio {:.2}",
            driver / copy
        );
    }
}

fn subnet() -> Subnet {
    let mut config = SubnetConfig::new(2, 1);
    config.sim = SimConfig::threaded(1);
    config.machine.cpus = 1;
    Subnet::new(&config).expect("a topology")
}

/// Frames of 64 or more bytes of IP from the first host's stack to the second's. The rate, and how many were lost.
fn through_driver(size: usize) -> (f64, u64) {
    let subnet = subnet();
    subnet.bring_up().expect("links up");
    let tallies = [Arc::new(Tally::default()), Arc::new(Tally::default())];
    let bindings: Vec<Binding> = (0..2)
        .map(|index| {
            let tally = Arc::clone(&tallies[index]);
            let bind = subnet.on_host(index, "bind", move |host| {
                let binding = host.adapter().expect("up").bind(tally)?;
                binding.set_filter(DIRECTED, &[])?;
                Ok::<_, i32>(binding)
            });
            bind.expect("a run").expect("bound")
        })
        .collect();
    let mut frame = vec![0; HEADERS.0 + size];
    let lid = subnet.net.port(subnet.hosts[1].port).lid.0.to_be_bytes();
    let [_, a, b, c] = subnet.hosts[1].qpn().expect("up").to_be_bytes();
    frame[..6].copy_from_slice(&[2, a, b, c, lid[0], lid[1]]);
    frame[6..12].copy_from_slice(&subnet.hosts[0].adapter().expect("up").attributes().current_address);
    frame[12..14].copy_from_slice(&[8, 0]);
    ipv4(&mut frame[HEADERS.0..]);
    let sent = Arc::clone(&tallies[0]);
    let binding = bindings[0].clone();
    let send = move |frames: u64| {
        let (binding, sent, frame) = (binding.clone(), Arc::clone(&sent), frame.clone());
        move |_: &_| {
            let before = sent.completed.load(Ordering::Relaxed);
            let mut posted = 0;
            while posted < frames {
                if posted - (sent.completed.load(Ordering::Relaxed) - before) > WINDOW - CHAIN {
                    sim::preempt();
                    std::thread::yield_now();
                    continue;
                }
                binding.send(&SendRequest::frames((0..CHAIN).map(|_| frame.clone()), posted));
                posted += CHAIN;
            }
        }
    };
    subnet.on_host(0, "resolve", send(CHAIN)).expect("a run");
    subnet.wait_for("path", |_| tallies[1].received.load(Ordering::Relaxed) == CHAIN).expect("resolved");
    let started = Instant::now();
    subnet.on_host(0, "send", send(FRAMES)).expect("a run");
    subnet
        .wait_for("completions", |_| tallies[0].completed.load(Ordering::Relaxed) == FRAMES + CHAIN)
        .expect("complete");
    let seconds = started.elapsed().as_secs_f64();
    subnet.run_for(100 * MILLISECOND).expect("quiet");
    let received = tallies[1].received.load(Ordering::Relaxed) - CHAIN;
    for (index, binding) in bindings.into_iter().enumerate() {
        subnet.on_host(index, "unbind", move |_| binding.close()).expect("unbound");
    }
    subnet.stop().expect("halted");
    (received as f64 / seconds, FRAMES - received)
}

/// Copies what arrives and hands it up from a DPC.
struct Copier {
    machine: Machine,
    tally: Arc<Tally>,
}

impl PortOwner for Copier {
    fn deliver(&self, _port: PortId, packet: &Packet) {
        let Ok((_, payload)) = packet.parse() else { return };
        let bytes = payload.to_vec();
        let tally = Arc::clone(&self.tally);
        self.machine.queue_dpc("copy", move || tally.receive(&[Frame { bytes: &bytes, resources: false }]));
    }

    fn event(&self, _port: PortId, _event: PortEvent) {}
}

/// The same frames, copied into packets by the sending thread and out of them at the receiving port.
fn by_copy(size: usize) -> f64 {
    let subnet = subnet();
    subnet.run_for(100 * MILLISECOND).expect("a swept subnet");
    let tally = Arc::new(Tally::default());
    let (from, to) = (subnet.hosts[0].port, subnet.hosts[1].port);
    let copier: Arc<dyn PortOwner> =
        Arc::new(Copier { machine: subnet.hosts[1].machine.clone(), tally: Arc::clone(&tally) });
    subnet.net.attach(to, Arc::downgrade(&copier));
    let headers = Headers {
        lrh: Lrh { dlid: subnet.net.port(to).lid, slid: subnet.net.port(from).lid, ..Lrh::default() },
        bth: Bth {
            opcode: OpCode::UD_SEND_ONLY,
            pkey: PKey::DEFAULT,
            dest_qp: Qpn::new(0x48),
            ..Bth::default()
        },
        deth: Some(Deth { qkey: QKey(0x0b1b), src_qp: Qpn::new(0x48) }),
        ..Headers::default()
    };
    let frame = vec![0; HEADERS.0 + size];
    let (net, counted) = (subnet.net.clone(), Arc::clone(&tally));
    let started = Instant::now();
    subnet
        .on_host(0, "send", move |_| {
            let mut posted = 0;
            while posted < FRAMES {
                if posted - counted.received.load(Ordering::Relaxed) > WINDOW - CHAIN {
                    sim::preempt();
                    std::thread::yield_now();
                    continue;
                }
                for _ in 0..CHAIN {
                    let frame = frame.clone();
                    let packet = Packet::build(&headers, HEADERS.1 + size, |space| {
                        space[HEADERS.1..].copy_from_slice(&frame[HEADERS.0..]);
                    });
                    net.transmit(from, packet);
                }
                posted += CHAIN;
            }
        })
        .expect("a run");
    subnet.wait_for("arrivals", |_| tally.received.load(Ordering::Relaxed) == FRAMES).expect("arrived");
    FRAMES as f64 / started.elapsed().as_secs_f64()
}
