//! Datagrams between machines: what arrives, what is refused, what a completion says.

use std::ptr::null_mut;

use ibal_sys::*;

use super::bench::*;
use crate::fabric::fault::{Effect, on_receive};
use crate::fabric::manager::ManagerConfig;
use crate::fabric::{FabricConfig, PKey};
use crate::hca::log::Event;
use crate::hca::qp_state::QpState;
use crate::hca::{Ignored, Limits};
use crate::sim::{self, MILLISECOND, SimConfig, sleep};

/// A datagram arrives whole over buffers that cross pages, with 40 bytes before it; IBA vol. 1 §11.4.2.1: what its
/// completion says.
#[test]
fn a_datagram_crosses_the_fabric() {
    let bench = bench(2);
    let (to, buffers) = receiver(&bench, 1, 1, 2000);
    let from = sender(&bench, 0);
    let (lid, from_lid) = (bench.hosts[1].lid(), bench.hosts[0].lid());
    let payload: Vec<u8> = (0..1999u32).map(|i| i as u8).collect();
    let (port, data, qpn) = (from.clone(), payload.clone(), to.qpn);
    bench.drive(0, move |_| {
        let av = port.av_to(lid);
        let buffer = Buffer::with(&data);
        let options = ib_send_opt_t::IB_SEND_OPT_IMMEDIATE | ib_send_opt_t::IB_SEND_OPT_SOLICITED;
        ok(port.post_send(77, &buffer, av, qpn, options));
        let sent = port.wait(port.send_cq, 1);
        assert_eq!((sent[0].wr_id, sent[0].status, sent[0].wc_type), (77, IB_WCS_SUCCESS, IB_WC_SEND));
        buffer.free();
        port.destroy_av(av);
        port.close();
    });
    bench.drive(1, move |_| {
        let got = to.wait(to.recv_cq, 1);
        assert_eq!((got[0].wr_id, got[0].status, got[0].wc_type), (0, IB_WCS_SUCCESS, IB_WC_RECV));
        assert_eq!(got[0].length as usize, GRH + payload.len());
        let from_ud = ud(&got[0]);
        assert_eq!(from_ud.remote_qp.get(), from.qpn);
        assert_eq!(from_ud.remote_lid.get(), from_lid);
        assert_eq!(from_ud.recv_opt, ib_recv_opt_t::IB_RECV_OPT_IMMEDIATE);
        assert_eq!(from_ud.immediate_data.get(), 0xfeed_f00d);
        assert_eq!(buffers[0].bytes()[GRH..GRH + payload.len()], payload[..]);
        buffers[0].free();
        to.close();
    });
    assert!(bench.hosts.iter().all(|host| host.machine.outstanding().is_empty()));
}

/// §11.4.2.1: a GRH is delivered in the first 40 bytes, and the flag says so; without one they hold nothing.
#[test]
fn a_global_route_arrives_before_the_payload() {
    let bench = bench(2);
    let (to, buffers) = receiver(&bench, 1, 2, 100);
    let from = sender(&bench, 0);
    let (lid, sgid, dgid) = (bench.hosts[1].lid(), bench.hosts[0].gid(), bench.hosts[1].gid());
    let qpn = to.qpn;
    bench.drive(0, move |_| {
        let buffer = Buffer::with(b"routed");
        for av in [from.av_to_gid(lid, sgid, dgid), from.av_to(lid)] {
            ok(from.post_send(1, &buffer, av, qpn, ib_send_opt_t::empty()));
            from.wait(from.send_cq, 1);
            from.destroy_av(av);
        }
    });
    bench.drive(1, move |_| {
        let got = to.wait(to.recv_cq, 2);
        assert!(ud(&got[0]).recv_opt.contains(ib_recv_opt_t::IB_RECV_OPT_GRH_VALID));
        let bytes = buffers[0].bytes();
        assert_eq!(bytes[0] >> 4, 6);
        assert_eq!(bytes[..4], ib_grh_t::ver_class_flow(6, 0x12, 0x3_4567).to_wire());
        assert_eq!((bytes[6], bytes[7]), (0x1b, 1));
        assert_eq!((&bytes[8..24], &bytes[24..40]), (&sgid.0[..], &dgid.0[..]));
        assert_eq!(&bytes[40..46], b"routed");
        assert!(!ud(&got[1]).recv_opt.contains(ib_recv_opt_t::IB_RECV_OPT_GRH_VALID));
        assert_ne!(buffers[1].bytes()[..4], bytes[..4]);
    });
}

/// §9.8.3 and §10.3.1.6: a datagram longer than the MTU fails locally, the queue pair goes to SQE, what was queued
/// behind it is flushed, and RTS brings it back.
#[test]
fn a_send_longer_than_the_mtu_stops_the_send_queue() {
    let bench = bench(2);
    let (to, _) = receiver(&bench, 1, 1, 100);
    let from = sender(&bench, 0);
    let (lid, qpn) = (bench.hosts[1].lid(), to.qpn);
    let transitions = bench.drive(0, move |host| {
        let av = from.av_to(lid);
        let (long, short) = (Buffer::new(4097), Buffer::with(b"short"));
        ok(from.post_send(1, &long, av, qpn, ib_send_opt_t::empty()));
        ok(from.post_send(2, &short, av, qpn, ib_send_opt_t::empty()));
        let ended: Vec<_> = from.wait(from.send_cq, 2).iter().map(|wc| (wc.wr_id, wc.status)).collect();
        assert_eq!(ended, [(1, IB_WCS_LOCAL_LEN_ERR), (2, IB_WCS_WR_FLUSHED_ERR)]);
        assert_eq!(from.attributes().state, ib_qp_state_t::IB_QPS_SQERR);
        ok(from.post_send(3, &short, av, qpn, ib_send_opt_t::empty()));
        assert_eq!(from.wait(from.send_cq, 1)[0].status, IB_WCS_WR_FLUSHED_ERR);
        ok(from.to_rts(ib_qp_mod_rts::default()));
        ok(from.post_send(4, &short, av, qpn, ib_send_opt_t::empty()));
        assert_eq!(from.wait(from.send_cq, 1)[0].status, IB_WCS_SUCCESS);
        host.ibal.log().entries()
    });
    let by_hardware = transitions.iter().any(|entry| {
        matches!(entry.event, Event::Transition { from: QpState::Rts, to: QpState::Sqe, asked: false, .. })
    });
    assert!(by_hardware);
    bench.drive(1, move |_| assert_eq!(to.wait(to.recv_cq, 1).len(), 1));
}

/// A receive that is too small ends in an error, and takes the queue pair with it.
#[test]
fn a_receive_that_is_too_small_fails_the_queue_pair() {
    let bench = bench(2);
    let (to, _) = receiver(&bench, 1, 2, 10);
    let from = sender(&bench, 0);
    let (lid, qpn) = (bench.hosts[1].lid(), to.qpn);
    bench.drive(0, move |_| {
        let av = from.av_to(lid);
        ok(from.post_send(1, &Buffer::new(11), av, qpn, ib_send_opt_t::empty()));
        from.wait(from.send_cq, 1);
    });
    bench.drive(1, move |_| {
        let ended: Vec<_> = to.wait(to.recv_cq, 2).iter().map(|wc| (wc.wr_id, wc.status)).collect();
        assert_eq!(ended, [(0, IB_WCS_LOCAL_LEN_ERR), (1, IB_WCS_WR_FLUSHED_ERR)]);
        assert_eq!(to.attributes().state, ib_qp_state_t::IB_QPS_ERROR);
    });
}

/// §10.3.1.7: ERROR flushes what was posted and what is posted after; the way back is RESET, with the same number.
#[test]
fn error_flushes_and_reset_keeps_the_number() {
    let bench = bench(1);
    let (port, buffers) = receiver(&bench, 0, 3, 10);
    bench.drive(0, move |_| {
        let qpn = port.qpn;
        ok(port.to_plain(ib_qp_state_t::IB_QPS_ERROR));
        ok(port.post_recv(9, &buffers[0]));
        let ended: Vec<_> = port.wait(port.recv_cq, 4).iter().map(|wc| (wc.wr_id, wc.status)).collect();
        assert_eq!(ended, [0, 1, 2, 9].map(|id| (id, IB_WCS_WR_FLUSHED_ERR)));
        for _ in 0..20 {
            ok(port.to_plain(ib_qp_state_t::IB_QPS_RESET));
            port.up();
            ok(port.post_recv(1, &buffers[0]));
            ok(port.to_plain(ib_qp_state_t::IB_QPS_ERROR));
            assert_eq!(port.wait(port.recv_cq, 1).len(), 1);
        }
        assert_eq!(port.attributes().num.get(), qpn);
    });
}

/// §10.2.5 and §10.9.3: a wrong Q_Key or no receive: dropped and counted, nothing completes.
#[test]
fn what_a_queue_pair_must_not_take_is_counted() {
    let bench = bench(2);
    let (to, _) = receiver(&bench, 1, 1, 100);
    let from = sender(&bench, 0);
    let (lid, qpn) = (bench.hosts[1].lid(), to.qpn);
    bench.drive(0, move |_| {
        let av = from.av_to(lid);
        let buffer = Buffer::with(b"x");
        let mut list = buffer.elements(from.lkey);
        let mut wr = send_wr(1, &mut list, av, qpn, ib_send_opt_t::empty());
        wr.op.dgrm.ud.remote_qkey = ib_net32_t::new(QKEY + 1);
        // SAFETY: a live request.
        unsafe { ok(from.ifc.post_send.unwrap()(from.qp, &raw mut wr, null_mut())) };
        for target in [qpn + 1, qpn, qpn] {
            ok(from.post_send(2, &buffer, av, target, ib_send_opt_t::empty()));
        }
        from.wait(from.send_cq, 4);
        sleep(MILLISECOND);
    });
    let ignored = bench.hosts[1].ibal.hca().ignored_packets();
    assert_eq!(ignored[&Ignored::QKey], 1);
    assert_eq!(ignored[&Ignored::NoQueuePair], 1);
    assert_eq!(ignored[&Ignored::NoReceive], 1);
    assert_eq!(bench.net.port(bench.hosts[1].port).counters.qkey_violations, 1);
    bench.drive(1, move |_| assert_eq!(to.wait(to.recv_cq, 1).len(), 1));
}

/// §10.2.5: with the top bit set in a request's Q_Key, the queue pair's own goes out.
#[test]
fn a_controlled_qkey_is_replaced_by_the_queue_pairs_own() {
    let bench = bench(2);
    let (to, _) = receiver(&bench, 1, 1, 100);
    let from = sender(&bench, 0);
    let (lid, qpn) = (bench.hosts[1].lid(), to.qpn);
    bench.drive(0, move |_| {
        let buffer = Buffer::with(b"x");
        let mut list = buffer.elements(from.lkey);
        let mut wr = send_wr(1, &mut list, from.av_to(lid), qpn, ib_send_opt_t::empty());
        wr.op.dgrm.ud.remote_qkey = ib_net32_t::new(0x8000_0000);
        // SAFETY: a live request.
        unsafe { ok(from.ifc.post_send.unwrap()(from.qp, &raw mut wr, null_mut())) };
        from.wait(from.send_cq, 1);
    });
    bench.drive(1, move |_| assert_eq!(to.wait(to.recv_cq, 1).len(), 1));
}

/// A Q_Key changes in RTS without a change of state, as an IPoIB driver does after it joined.
#[test]
fn the_qkey_changes_in_rts() {
    let bench = bench(1);
    let port = sender(&bench, 0);
    bench.drive(0, move |host| {
        let rts = ib_qp_mod_rts {
            opts: ib_qp_opts_t::IB_MOD_QP_QKEY,
            qkey: ib_net32_t::new(0x1234),
            ..Default::default()
        };
        ok(port.to_rts(rts));
        assert_eq!(port.attributes().qkey.get(), 0x1234);
        let changed = Event::QKey { qpn: port.qpn, qkey: 0x1234 };
        assert!(host.ibal.log().entries().iter().any(|entry| entry.event == changed));
    });
}

/// §10.9.3: a queue pair takes packets of its own partition only, though its port is in others.
#[test]
fn a_queue_pair_stays_in_its_partition() {
    let bench = bench(2);
    let (to, _) = receiver(&bench, 1, 1, 100);
    let port = bench.hosts[0].port;
    // A second partition for the sender, with which it sends; the receiver's port is in both, its queue pair is not.
    for port in [port, bench.hosts[1].port] {
        let table = Some(vec![PKey::DEFAULT, PKey(0x8001)]);
        bench.net.with(|fabric, now| fabric.set_pkey_table(now, port, table));
    }
    bench.drive(0, |_| sleep(500 * MILLISECOND));
    let (lid, qpn) = (bench.hosts[1].lid(), to.qpn);
    bench.drive(0, move |host| {
        let port = Port::open(host);
        let init = ib_qp_mod_init {
            primary_port: 1,
            qkey: ib_net32_t::new(QKEY),
            pkey_index: 1,
            ..Default::default()
        };
        ok(port
            .modify(&ib_qp_mod_t { req_state: ib_qp_state_t::IB_QPS_INIT, state: ib_qp_mod_state { init } }));
        ok(port.to_rtr());
        ok(port.to_rts(ib_qp_mod_rts::default()));
        ok(port.post_send(1, &Buffer::with(b"x"), port.av_to(lid), qpn, ib_send_opt_t::empty()));
        port.wait(port.send_cq, 1);
        sleep(MILLISECOND);
        let none = ib_qp_mod_init { primary_port: 1, pkey_index: 200, ..init };
        ok(port.to_plain(ib_qp_state_t::IB_QPS_RESET));
        let state = ib_qp_mod_state { init: none };
        let refused = port.modify(&ib_qp_mod_t { req_state: ib_qp_state_t::IB_QPS_INIT, state });
        assert_eq!(refused, IB_INVALID_PKEY);
    });
    assert_eq!(bench.hosts[1].ibal.hca().ignored_packets()[&Ignored::PKey], 1);
    assert_eq!(bench.net.port(bench.hosts[1].port).counters.pkey_violations, 1);
}

/// §4.1.3: with an LMC, the path bits of the address vector go into the source LID, those of the destination come out
/// in the completion.
#[test]
fn path_bits_travel() {
    let config =
        FabricConfig { manager: ManagerConfig { lmc: 2, ..ManagerConfig::default() }, ..Default::default() };
    let bench = Bench::with(2, SimConfig::seeded(5), &config, Limits::default());
    let (to, _) = receiver(&bench, 1, 1, 100);
    let from = sender(&bench, 0);
    let (lid, qpn, own) = (bench.hosts[1].lid(), to.qpn, bench.hosts[0].lid());
    bench.drive(0, move |_| {
        let attr =
            ib_av_attr_t { port_num: 1, dlid: ib_net16_t::new(lid + 3), path_bits: 2, ..Default::default() };
        let av = from.create_av(&attr);
        ok(from.post_send(1, &Buffer::with(b"x"), av, qpn, ib_send_opt_t::empty()));
        from.wait(from.send_cq, 1);
    });
    bench.drive(1, move |_| {
        let got = to.wait(to.recv_cq, 1);
        assert_eq!((ud(&got[0]).remote_lid.get(), ud(&got[0]).path_bits), (own + 2, 3));
    });
}

/// §9.11: a static rate below that of the link spaces the packets of a queue pair.
#[test]
fn a_static_rate_spaces_packets() {
    let bench = bench(1);
    let from = sender(&bench, 0);
    let lid = bench.hosts[0].lid();
    let took = |rate: u8| {
        let from = from.clone();
        bench.drive(0, move |_| {
            let attr = ib_av_attr_t {
                port_num: 1,
                dlid: ib_net16_t::new(lid),
                static_rate: rate,
                ..Default::default()
            };
            let av = from.create_av(&attr);
            let buffer = Buffer::new(2000);
            let before = sim::current().unwrap().now();
            for id in 0..10 {
                ok(from.post_send(id, &buffer, av, 1000, ib_send_opt_t::empty()));
            }
            from.wait(from.send_cq, 10);
            sim::current().unwrap().now() - before
        })
    };
    // Ten packets of 2000 bytes at 2.5 Gb/s take 64 us at least, the gap behind the last one not counted.
    assert!(took(IB_PATH_RECORD_RATE_2_5_GBS) > took(0) + 50_000);
}

/// Packets that a fault rule drops on the last link are lost without a trace at the receiver.
#[test]
fn a_lost_packet_completes_at_its_sender_only() {
    let bench = bench(2);
    let (to, _) = receiver(&bench, 1, 1, 100);
    let from = sender(&bench, 0);
    let (lid, qpn) = (bench.hosts[1].lid(), to.qpn);
    let rule = bench.net.with(|fabric, _| fabric.add_fault(on_receive, Effect::Drop));
    bench.drive(0, move |_| {
        ok(from.post_send(1, &Buffer::with(b"x"), from.av_to(lid), qpn, ib_send_opt_t::empty()));
        assert_eq!(from.wait(from.send_cq, 1)[0].status, IB_WCS_SUCCESS);
        sleep(MILLISECOND);
    });
    drop(rule);
    bench.drive(1, move |_| assert!(to.poll(to.recv_cq, 1).is_empty()));
}
