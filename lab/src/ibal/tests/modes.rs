//! The two modes of a simulation: equal seeds give equal runs, and real threads lose nothing.

use std::sync::Arc;

use ibal_sys::*;

use super::bench::*;
use super::multicast::{Joined, broadcast, join, join_request};
use crate::fabric::FabricConfig;
use crate::fabric::manager::ManagerConfig;
use crate::hca::Limits;
use crate::sim::{self, Lock, MILLISECOND, Mode, SimConfig, sleep};

/// One run: traffic, a join, a link flap. Gives the trace.
fn run(seed: u64) -> (u64, u64) {
    let config =
        FabricConfig { seed, manager: ManagerConfig { response_jitter: 20_000, ..ManagerConfig::default() } };
    let bench = Bench::with(2, SimConfig::seeded(seed), &config, Limits::default());
    let (to, _) = receiver(&bench, 1, 8, 100);
    let from = sender(&bench, 0);
    let (lid, qpn) = (bench.hosts[1].lid(), to.qpn);
    bench.drive(0, move |_| {
        let joined: Arc<Lock<Joined>> = Arc::default();
        ok(join(&from, &join_request(&from, broadcast(), &joined)));
        let av = from.av_to(lid);
        let buffer = Buffer::with(&[1; 64]);
        for id in 0..8 {
            ok(from.post_send(id, &buffer, av, qpn, ib_send_opt_t::empty()));
        }
        from.wait(from.send_cq, 8);
    });
    bench.drive(1, move |_| assert_eq!(to.wait(to.recv_cq, 8).len(), 8));
    let port = bench.hosts[0].port;
    bench.net.with(|fabric, now| fabric.set_link(now, port, false));
    bench.drive(1, |_| sleep(MILLISECOND));
    (bench.sim.trace_hash(), bench.sim.trace_count())
}

/// The same seed gives the same trace, another seed another, and each gets through.
#[test]
fn runs_repeat() {
    let traces: Vec<_> = (0..12).map(run).collect();
    assert_eq!(traces, (0..12).map(run).collect::<Vec<_>>());
    assert_eq!(traces.iter().collect::<std::collections::BTreeSet<_>>().len(), traces.len());
}

/// On real threads: two machines flood each other through the fabric, and everything that was sent is accounted for.
#[test]
fn threaded_machines_exchange_packets() {
    const PACKETS: usize = 2000;
    let bench = Bench::new(2, SimConfig::threaded(1));
    let ports: Vec<_> = (0..2).map(|host| receiver(&bench, host, 16, 1000)).collect();
    let results: Arc<Lock<Vec<(usize, usize)>>> = Arc::default();
    for host in 0..2 {
        let (port, buffers) = ports[host].clone();
        let (peer, lid) = (ports[1 - host].0.qpn, bench.hosts[1 - host].lid());
        let results = Arc::clone(&results);
        bench.hosts[host].machine.spawn_thread("flood", move || {
            let av = port.av_to(lid);
            let buffer = Buffer::with(&[host as u8; 1000]);
            let (mut sent, mut done, mut received, mut quiet) = (0, 0, 0, 0);
            while quiet < 200 {
                let before = (done, received);
                if sent < PACKETS
                    && port.post_send(0, &buffer, av, peer, ib_send_opt_t::empty()) == IB_SUCCESS
                {
                    sent += 1;
                }
                done += port.poll(port.send_cq, 16).len();
                for wc in port.poll(port.recv_cq, 16) {
                    assert_eq!(wc.status, IB_WCS_SUCCESS);
                    assert_eq!(wc.length, 1040);
                    received += 1;
                    ok(port.post_recv(wc.wr_id, &buffers[wc.wr_id as usize]));
                }
                if before == (done, received) && sent == PACKETS {
                    quiet += 1;
                    sleep(MILLISECOND / 4);
                }
            }
            results.lock().push((done, received));
        });
    }
    let finished = Arc::clone(&results);
    let end = bench.sim.now() + 60 * sim::SECOND;
    let outcome = bench.sim.run_until(end, |_| finished.lock().len() == 2);
    assert_eq!(outcome, sim::Outcome::Done);
    assert_eq!(bench.sim.mode(), Mode::Threaded);
    let lost: u64 =
        bench.hosts.iter().flat_map(|host| host.ibal.hca().ignored_packets()).map(|(_, n)| n).sum();
    let results = results.lock();
    assert!(results.iter().all(|(done, _)| *done == PACKETS));
    let received: usize = results.iter().map(|(_, received)| received).sum();
    // A machine that was done before its peer leaves completions behind.
    let unpolled: usize =
        bench.hosts.iter().flat_map(|host| host.ibal.hca().queue_pairs()).map(|qp| qp.recv_cq.len()).sum();
    assert_eq!((received + unpolled) as u64 + lost, 2 * PACKETS as u64);
    assert!(received > 0);
}
