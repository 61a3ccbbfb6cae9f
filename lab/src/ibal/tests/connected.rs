//! Reliable connections between two machines, over a fabric that loses packets (IBA vol. 1 §9.7).

use std::ptr::{null, null_mut};

use ibal_sys::*;

use super::bench::*;
use crate::fabric::fault::{Effect, nth, on_receive, with_probability};
use crate::sim::{MILLISECOND, SimConfig, sleep};

/// A connected queue pair on the objects of a port.
#[derive(Clone)]
struct Connected {
    port: Port,
    lid: u16,
}

impl Connected {
    fn open(host: &Host) -> Self {
        let mut port = Port::open(host);
        port.destroy_qp();
        let mut create = ib_qp_create_t {
            qp_type: IB_QPT_RELIABLE_CONN,
            sq_max_inline: 0,
            sq_depth: 16,
            rq_depth: 16,
            sq_sge: 8,
            rq_sge: 8,
            h_sq_cq: port.send_cq,
            h_rq_cq: port.recv_cq,
            h_srq: null_mut(),
            sq_signaled: TRUE,
        };
        // SAFETY: a live request and a local.
        unsafe {
            let qp = &raw mut port.qp;
            ok(port.ifc.create_qp.unwrap()(port.pd, &raw mut create, null(), None, qp));
        }
        port.qpn = port.attributes().num.get();
        Self { port, lid: host.lid() }
    }

    fn connect(&self, lid: u16, qpn: u32, retries: u8) {
        let init = ib_qp_mod_init { primary_port: 1, ..Default::default() };
        let state = ib_qp_mod_state { init };
        ok(self.port.modify(&ib_qp_mod_t { req_state: ib_qp_state_t::IB_QPS_INIT, state }));
        let rtr = ib_qp_mod_rtr {
            rq_psn: ib_net32_t::new(0xff_fffe),
            dest_qp: ib_net32_t::new(qpn),
            primary_av: ib_av_attr_t {
                port_num: 1,
                dlid: ib_net16_t::new(lid),
                conn: ib_av_conn { path_mtu: IB_MTU_LEN_2048, ..Default::default() },
                ..Default::default()
            },
            rnr_nak_timeout: 12,
            ..Default::default()
        };
        let state = ib_qp_mod_state { rtr };
        ok(self.port.modify(&ib_qp_mod_t { req_state: ib_qp_state_t::IB_QPS_RTR, state }));
        ok(self.port.to_rts(ib_qp_mod_rts {
            sq_psn: ib_net32_t::new(0xff_fffe),
            retry_cnt: retries,
            rnr_retry_cnt: retries,
            // 67 ms: on real threads a shorter one measures how busy the machine is.
            local_ack_timeout: 14,
            ..Default::default()
        }));
    }

    fn send(&self, wr_id: u64, buffer: &Buffer) {
        ok(self.port.post_send(wr_id, buffer, null_mut(), 0, ib_send_opt_t::empty()));
    }
}

/// Two connected queue pairs.
fn pair(bench: &Bench, retries: u8) -> (Connected, Connected) {
    let a = bench.drive(0, Connected::open);
    let b = bench.drive(1, Connected::open);
    for (host, own, other) in [(0, &a, &b), (1, &b, &a)] {
        let (own, lid, qpn) = (own.clone(), other.lid, other.port.qpn);
        bench.drive(host, move |_| own.connect(lid, qpn, retries));
    }
    (a, b)
}

fn pattern(length: usize, seed: usize) -> Vec<u8> {
    (0..length).map(|i| (i * 7 + seed * 31) as u8).collect()
}

/// Sends messages of several sizes from host 0 to host 1 and compares what arrives.
fn exchange(bench: &Bench) {
    const SIZES: [usize; 5] = [0, 1, 2048, 2049, 9000];
    let (a, b) = pair(bench, 7);
    let receiver = b.clone();
    let buffers = bench.drive(1, move |_| {
        SIZES.map(|size| {
            let buffer = Buffer::new(size.max(1));
            ok(receiver.port.post_recv(size as u64, &buffer));
            buffer
        })
    });
    bench.drive(0, move |_| {
        for (index, size) in SIZES.into_iter().enumerate() {
            let data = Buffer::with(&[&pattern(size, index)[..], &[0]].concat());
            a.send(size as u64, &Buffer { length: size, ..data });
        }
        let ended: Vec<_> =
            a.port.wait(a.port.send_cq, SIZES.len()).iter().map(|wc| (wc.wr_id, wc.status)).collect();
        assert_eq!(ended, SIZES.map(|size| (size as u64, IB_WCS_SUCCESS)));
    });
    bench.drive(1, move |_| {
        let got = b.port.wait(b.port.recv_cq, SIZES.len());
        for (index, (wc, size)) in got.iter().zip(SIZES).enumerate() {
            assert_eq!((wc.status, wc.length as usize), (IB_WCS_SUCCESS, size));
            assert_eq!(buffers[index].bytes()[..size], pattern(size, index)[..]);
        }
    });
}

/// §9.7: messages of many packets arrive whole and in order, over a wrap of the sequence number.
#[test]
fn messages_arrive_whole() {
    exchange(&Bench::new(2, SimConfig::seeded(1)));
}

/// §9.7.5: so they do when packets and acknowledgements are lost, whichever they are.
#[test]
fn messages_survive_loss() {
    for seed in 1..20 {
        let bench = Bench::new(2, SimConfig::seeded(seed));
        // SplitMix64, so that each seed loses other packets.
        let mut state = seed;
        let random = move || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed ^ (mixed >> 27)
        };
        let rule = bench.net.with(|fabric, _| fabric.add_fault(with_probability(0.1, random), Effect::Drop));
        exchange(&bench);
        drop(rule);
    }
    for lost in 1..12 {
        let bench = Bench::new(2, SimConfig::seeded(1));
        let rule = bench.net.with(|fabric, _| fabric.add_fault(nth(lost, on_receive), Effect::Drop));
        exchange(&bench);
        drop(rule);
    }
}

/// §9.7.5.2.8: a receiver without a receive asks to wait; the message arrives when there is one.
#[test]
fn a_receiver_that_is_not_ready_is_waited_for() {
    let bench = Bench::new(2, SimConfig::seeded(1));
    let (a, b) = pair(&bench, 7);
    let sender = a.clone();
    bench.drive(0, move |_| sender.send(1, &Buffer::with(b"late")));
    bench.drive(1, move |_| {
        sleep(3 * MILLISECOND);
        let buffer = Buffer::new(100);
        ok(b.port.post_recv(1, &buffer));
        assert_eq!(b.port.wait(b.port.recv_cq, 1)[0].length, 4);
        assert_eq!(&buffer.bytes()[..4], b"late");
    });
    bench.drive(0, move |_| assert_eq!(a.port.wait(a.port.send_cq, 1)[0].status, IB_WCS_SUCCESS));
}

/// §9.7.5.2.8 and §11.6.2: retries end: not ready, no answer, or a message that does not fit; the queue pair goes to
/// ERROR and flushes.
#[test]
fn failures_end_the_connection() {
    let bench = Bench::new(2, SimConfig::seeded(1));
    let (a, _) = pair(&bench, 2);
    let ended = |a: Connected| {
        bench.drive(0, move |_| {
            let buffer = Buffer::new(100);
            a.send(1, &buffer);
            a.send(2, &buffer);
            let ended = a.port.wait(a.port.send_cq, 2).iter().map(|wc| wc.status).collect::<Vec<_>>();
            assert_eq!(a.port.attributes().state, ib_qp_state_t::IB_QPS_ERROR);
            ended
        })
    };
    assert_eq!(ended(a), [IB_WCS_RNR_RETRY_ERR, IB_WCS_WR_FLUSHED_ERR]);

    let (a, b) = pair(&bench, 2);
    bench.drive(1, move |_| {
        ok(b.port.post_recv(1, &Buffer::new(99)));
        ok(b.port.post_recv(2, &Buffer::new(99)));
    });
    assert_eq!(ended(a), [IB_WCS_REM_INVALID_REQ_ERR, IB_WCS_WR_FLUSHED_ERR]);

    let (a, _) = pair(&bench, 2);
    let rule = bench.net.with(|fabric, _| fabric.add_fault(on_receive, Effect::Drop));
    assert_eq!(ended(a), [IB_WCS_TIMEOUT_RETRY_ERR, IB_WCS_WR_FLUSHED_ERR]);
    drop(rule);
}

/// On real threads the same exchange works.
#[test]
fn threaded_connections() {
    exchange(&Bench::new(2, SimConfig::threaded(1)));
}
