//! Work queues and completion queues: notification, slots, draining, overruns, limits.

use std::ptr::{null, null_mut};

use ibal_sys::*;

use super::bench::*;
use crate::fabric::FabricConfig;
use crate::hca::Limits;
use crate::hca::cq::Status;
use crate::sim::{MILLISECOND, SimConfig, sleep};

/// §11.4.2.2: a callback for each rearm, at DISPATCH_LEVEL, and none for what was there before the rearm.
#[test]
fn completion_callbacks_follow_rearming() {
    let bench = bench(1);
    let (port, _) = receiver(&bench, 0, 4, 100);
    let lid = bench.hosts[0].lid();
    bench.drive(0, move |_| {
        let av = port.av_to(lid);
        let buffer = Buffer::with(b"to myself");
        let send = |id| {
            ok(port.post_send(id, &buffer, av, port.qpn, ib_send_opt_t::empty()));
            sleep(MILLISECOND);
        };
        let callbacks = || port.seen.lock().callbacks;
        send(1);
        assert_eq!(callbacks(), 0, "not armed");
        port.arm(port.recv_cq);
        sleep(MILLISECOND);
        assert_eq!(callbacks(), 0, "an entry from before the rearm");
        send(2);
        assert_eq!(callbacks(), 1);
        send(3);
        assert_eq!(callbacks(), 1, "armed once");
        assert_eq!(port.poll(port.recv_cq, 8).len(), 3, "loopback to the own queue pair");
    });
}

/// Unsignaled sends complete silently and hold their slots until a signaled one is polled; inline data may be
/// overwritten at once.
#[test]
fn unsignaled_and_inline_sends() {
    let bench = bench(1);
    let lid = bench.hosts[0].lid();
    bench.drive(0, move |host| {
        let sizes = Sizes { depth: 4, signaled: FALSE, ..Sizes::default() };
        let port = Port::open_with(host, sizes);
        port.up();
        let av = port.av_to(lid);
        let target = Buffer::new(GRH + 16);
        ok(port.post_recv(1, &target));
        let buffer = Buffer::with(b"inline");
        ok(port.post_send(1, &buffer, av, port.qpn, ib_send_opt_t::IB_SEND_OPT_INLINE));
        // SAFETY: the test's own buffer.
        unsafe { buffer.at.cast::<u8>().write_bytes(0, 6) };
        for id in 2..4 {
            ok(port.post_send(id, &buffer, av, port.qpn, ib_send_opt_t::empty()));
        }
        ok(port.post_send(4, &buffer, av, port.qpn, ib_send_opt_t::IB_SEND_OPT_SIGNALED));
        let full = port.post_send(5, &buffer, av, port.qpn, ib_send_opt_t::empty());
        assert_eq!(full, IB_INSUFFICIENT_RESOURCES);
        let sent = port.wait(port.send_cq, 1);
        assert_eq!((sent.len(), sent[0].wr_id), (1, 4));
        ok(port.post_send(5, &buffer, av, port.qpn, ib_send_opt_t::empty()));
        port.wait(port.recv_cq, 1);
        assert_eq!(&target.bytes()[GRH..GRH + 6], b"inline");
    });
}

/// §11.6.3.2: a completion queue that overflows is broken, and its client hears so at PASSIVE_LEVEL.
#[test]
fn an_overrun_completion_queue_reports_an_event() {
    let bench = bench(1);
    bench.drive(0, |host| {
        let port = Port::open_with(host, Sizes { cq: 3, ..Sizes::default() });
        port.up();
        let buffer = Buffer::new(50);
        for id in 0..5 {
            ok(port.post_recv(id, &buffer));
        }
        ok(port.to_plain(ib_qp_state_t::IB_QPS_ERROR));
        sleep(MILLISECOND);
        assert_eq!(port.seen.lock().events, [IB_AE_CQ_ERROR.0]);
        assert_eq!(port.poll(port.recv_cq, 8).len(), 3);
    });
}

/// §10.3.1.5: SQD finishes what was started, queues what comes, reports when drained, and RTS goes on.
#[test]
fn a_drained_send_queue_reports_and_goes_on() {
    let bench = bench(1);
    let (port, _) = receiver(&bench, 0, 4, 100);
    let lid = bench.hosts[0].lid();
    bench.drive(0, move |_| {
        let av = port.av_to(lid);
        let buffer = Buffer::with(b"x");
        let state = ib_qp_mod_state { sqd: ib_qp_mod_sqd { sqd_event: TRUE } };
        ok(port.modify(&ib_qp_mod_t { req_state: ib_qp_state_t::IB_QPS_SQD, state }));
        ok(port.post_send(1, &buffer, av, port.qpn, ib_send_opt_t::empty()));
        sleep(MILLISECOND);
        assert_eq!(port.seen.lock().events, [IB_AE_SQ_DRAINED.0]);
        assert_eq!(port.poll(port.send_cq, 4).len(), 0);
        ok(port.to_rts(ib_qp_mod_rts::default()));
        assert_eq!(port.wait(port.send_cq, 1)[0].status, IB_WCS_SUCCESS);
    });
}

/// Limits are refused with the statuses of the verbs.
#[test]
fn limits_are_refused() {
    let limits = Limits { qps: 1, avs: 1, wrs: 16, sges: 4, cqes: 100, ..Limits::default() };
    let bench = Bench::with(1, SimConfig::seeded(1), &FabricConfig::default(), limits);
    bench.drive(0, |host| {
        let port = Port::open(host);
        let mut create = ib_qp_create_t {
            qp_type: IB_QPT_UNRELIABLE_DGRM,
            sq_max_inline: 0,
            sq_depth: 1,
            rq_depth: 1,
            sq_sge: 1,
            rq_sge: 1,
            h_sq_cq: port.send_cq,
            h_rq_cq: port.recv_cq,
            h_srq: null_mut(),
            sq_signaled: TRUE,
        };
        let mut qp = null_mut();
        // SAFETY: live requests and locals.
        unsafe {
            let mut make = |create: &mut ib_qp_create_t| {
                port.ifc.create_qp.unwrap()(port.pd, create, null(), None, &raw mut qp)
            };
            assert_eq!(make(&mut create), IB_INSUFFICIENT_RESOURCES);
            create.sq_depth = 17;
            assert_eq!(make(&mut create), IB_INVALID_MAX_WRS);
            create.sq_depth = 1;
            create.rq_sge = 5;
            assert_eq!(make(&mut create), IB_INVALID_MAX_SGE);
            create.qp_type = IB_QPT_MAD;
            assert_eq!(make(&mut create), IB_INVALID_SETTING);
        }
        let av = port.av_to(1);
        let (attr, mut second) = (ib_av_attr_t { port_num: 1, ..Default::default() }, null_mut());
        let none = ib_av_attr_t { port_num: 2, ..Default::default() };
        // SAFETY: as above.
        unsafe {
            let create_av = port.ifc.create_av.unwrap();
            assert_eq!(create_av(port.pd, &raw const attr, &raw mut second), IB_INSUFFICIENT_RESOURCES);
            assert_eq!(create_av(port.pd, &raw const none, &raw mut second), IB_INVALID_PORT);
        }
        port.destroy_av(av);
        port.close();
    });
}

/// Errors inside the adapter: a send that ends with an error of choice, and a queue pair that breaks.
#[test]
fn injected_errors() {
    let bench = bench(1);
    let (port, _) = receiver(&bench, 0, 2, 100);
    let lid = bench.hosts[0].lid();
    bench.drive(0, move |host| {
        let av = port.av_to(lid);
        let buffer = Buffer::with(b"x");
        assert!(host.ibal.hca().fail_next_send(port.qpn, Status::General));
        ok(port.post_send(1, &buffer, av, port.qpn, ib_send_opt_t::empty()));
        assert_eq!(port.wait(port.send_cq, 1)[0].status, IB_WCS_GENERAL_ERR);
        assert_eq!(port.attributes().state, ib_qp_state_t::IB_QPS_SQERR);
        ok(port.to_rts(ib_qp_mod_rts::default()));
        assert!(host.ibal.hca().break_qp(port.qpn));
        assert_eq!(port.wait(port.recv_cq, 2)[1].status, IB_WCS_WR_FLUSHED_ERR);
        sleep(MILLISECOND);
        assert_eq!(port.seen.lock().events, [IB_AE_QP_FATAL.0]);
        assert!(!host.ibal.hca().break_qp(1));
    });
}
