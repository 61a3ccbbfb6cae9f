//! What works as the specifications and the access layer's sources say.

use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::Arc;

use ibal_sys::*;
use windows_kernel_sys::{
    Executive, IO_STATUS_BLOCK, IRP_MJ_PNP, IRP_MN_QUERY_INTERFACE, IoGetNextIrpStackLocation, KEVENT,
    KernelMode, STATUS_BUFFER_TOO_SMALL, STATUS_NOT_SUPPORTED, STATUS_SUCCESS, SynchronizationEvent,
};

use super::bench::*;
use crate::fabric::fault::{Effect, nth, on_receive, sa_response};
use crate::fabric::manager::{IpoibGroup, ManagerConfig, Restart};
use crate::fabric::wire::mad::Attribute;
use crate::fabric::{FabricConfig, Gid, PKey};
use crate::hca::log::Event;
use crate::hca::qp_state::QpState;
use crate::hca::{Ignored, Kind, Limits};
use crate::ibal::{ChildConfig, DEFAULT_PARTITION, Ibal};
use crate::kernel::DeviceProperties;
use crate::kernel::Machine;
use crate::kernel::exports::{io, ke};
use crate::kernel::irql::{DISPATCH_LEVEL, PASSIVE_LEVEL};
use crate::sim::{self, Lock, MILLISECOND, Mode, SimConfig, sleep};

const GRH: usize = 40;

fn bench(hosts: usize) -> Bench {
    Bench::new(hosts, SimConfig::seeded(7))
}

/// Opens and raises a port on a host and posts `count` receives of `length` bytes behind the GRH.
fn receiver(bench: &Bench, host: usize, count: u64, length: usize) -> (Port, Vec<Buffer>) {
    bench.drive(host, move |host| {
        let port = Port::open(host);
        port.up();
        let buffers: Vec<_> = (0..count).map(|_| Buffer::new(GRH + length)).collect();
        for (index, buffer) in buffers.iter().enumerate() {
            ok(port.post_recv(index as u64, buffer));
        }
        (port, buffers)
    })
}

fn sender(bench: &Bench, host: usize) -> Port {
    bench.drive(host, |host| {
        let port = Port::open(host);
        port.up();
        port
    })
}

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

/// The MGID of the broadcast group that the subnet manager makes.
fn broadcast() -> Gid {
    IpoibGroup::default().mgid(PKey::DEFAULT)
}

/// The outcome of a join.
#[derive(Default)]
struct Joined {
    outcomes: Vec<(i32, u16)>,
    record: ib_member_rec_t,
    handle: usize,
    irql: u8,
    left: u32,
}

unsafe extern "win64" fn on_join(record: *mut ib_mcast_rec_t) {
    // SAFETY: the record lives for the call; the context is a test's.
    unsafe {
        let record = &*record;
        let mut joined = (*record.mcast_context.cast::<Lock<Joined>>()).lock();
        joined.outcomes.push((record.status.0, record.error_status.get()));
        joined.record = *record.p_member_rec;
        joined.handle = record.h_mcast as usize;
        joined.irql = sim::level();
    }
}

unsafe extern "win64" fn on_left(context: *mut c_void) {
    // SAFETY: the context is a test's.
    unsafe { (*context.cast::<Lock<Joined>>()).lock().left += 1 };
}

fn join_request(port: &Port, mgid: Gid, joined: &Arc<Lock<Joined>>) -> ib_mcast_req_t {
    ib_mcast_req_t {
        create: FALSE,
        member_rec: ib_member_rec_t {
            mgid: ib_gid_t { raw: mgid.0 },
            scope_state: 0x20 | IB_JOIN_STATE_FULL,
            ..Default::default()
        },
        mcast_context: Arc::as_ptr(joined).cast(),
        pfn_mcast_cb: Some(on_join),
        timeout_ms: 100,
        retry_cnt: 3,
        flags: IB_FLAGS_SYNC,
        port_guid: port.guid,
        pkey_index: 0,
    }
}

fn join(port: &Port, request: &ib_mcast_req_t) -> ib_api_status_t {
    // SAFETY: a live request.
    unsafe { port.ifc.join_mcast.unwrap()(port.qp, request, null_mut()) }
}

fn leave(port: &Port, joined: &Arc<Lock<Joined>>, callback: ib_pfn_destroy_cb_t) {
    let handle = joined.lock().handle as ib_mcast_handle_t;
    // SAFETY: a handle.
    unsafe { ok(port.ifc.leave_mcast.unwrap()(handle, callback)) };
}

/// A full member is attached: it gets what others send to the group, and its own sends too (§10.5.2.1); once it left,
/// nothing.
#[test]
fn multicast_reaches_the_members() {
    let bench = bench(3);
    let ports: Vec<_> = (0..3).map(|host| receiver(&bench, host, 4, 100)).collect();
    let mut memberships = Vec::new();
    for (host, (port, _)) in ports.iter().enumerate().take(2) {
        let port = port.clone();
        memberships.push(bench.drive(host, move |_| {
            let joined: Arc<Lock<Joined>> = Arc::default();
            ok(join(&port, &join_request(&port, broadcast(), &joined)));
            assert_eq!(joined.lock().outcomes, [(IB_SUCCESS.0, 0)]);
            assert_eq!(joined.lock().irql, PASSIVE_LEVEL);
            joined
        }));
    }
    let record = memberships[0].lock().record;
    let (mlid, qkey) = (record.mlid.get(), record.qkey.get());
    assert_eq!((mlid, qkey), (0xc000, QKEY));
    let send = |host: usize| {
        let port = ports[host].0.clone();
        let sgid = bench.hosts[host].gid();
        bench.drive(host, move |_| {
            let av = port.av_to_gid(mlid, sgid, broadcast());
            ok(port.post_send(50, &Buffer::with(b"to all"), av, 0xff_ffff, ib_send_opt_t::empty()));
            port.wait(port.send_cq, 1);
            sleep(MILLISECOND);
        });
    };
    let received = |host: usize| {
        let port = ports[host].0.clone();
        bench.drive(host, move |_| port.poll(port.recv_cq, 8).len())
    };
    send(0);
    assert_eq!([0, 1, 2].map(received), [1, 1, 0]);
    let (port, joined) = (ports[1].0.clone(), Arc::clone(&memberships[1]));
    bench.drive(1, move |_| {
        leave(&port, &joined, ib_pfn_destroy_cb_t::from_fn(on_left));
        while joined.lock().left == 0 {
            sleep(MILLISECOND);
        }
    });
    send(0);
    assert_eq!([0, 1, 2].map(received), [1, 0, 0]);
    assert_eq!(bench.hosts[1].ibal.live(Kind::Mcast), 0);
}

/// `send_join`: an SA that refuses is IB_REMOTE_ERROR with the MAD's status; one that is silent is IB_TIMEOUT.
#[test]
fn joins_fail_as_the_access_layer_reports_it() {
    let bench = bench(1);
    let port = sender(&bench, 0);
    let unknown = Gid([0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4]);
    let opened = port.clone();
    bench.drive(0, move |_| {
        let joined: Arc<Lock<Joined>> = Arc::default();
        ok(join(&opened, &join_request(&opened, unknown, &joined)));
        let (status, remote) = joined.lock().outcomes[0];
        assert_eq!(status, IB_REMOTE_ERROR.0);
        assert_ne!(remote, 0);
        assert_eq!(joined.lock().handle, 0);
    });
    let silence =
        bench.net.with(|fabric, _| fabric.add_fault(sa_response(Attribute::MC_MEMBER_RECORD), Effect::Drop));
    let opened = port.clone();
    bench.drive(0, move |_| {
        let joined: Arc<Lock<Joined>> = Arc::default();
        let before = sim::current().unwrap().now();
        ok(join(&opened, &join_request(&opened, broadcast(), &joined)));
        assert_eq!(joined.lock().outcomes, [(IB_TIMEOUT.0, 0)]);
        let waited = sim::current().unwrap().now() - before;
        assert!((400..500).contains(&(waited / MILLISECOND)), "4 attempts of 100 ms, not {waited} ns");
    });
    drop(silence);
    bench.drive(0, move |_| port.close());
    assert!(bench.hosts[0].machine.outstanding().is_empty());
}

/// `__destroying_mcast`: each leave sends a Delete. The administrator counts ports, so the first of two leaves takes
/// the port out; the second membership stays attached to a group that no switch delivers any longer.
#[test]
fn every_leave_sends_its_delete() {
    let bench = bench(1);
    let port = sender(&bench, 0);
    let opened = port.clone();
    let two = bench.drive(0, move |_| {
        [0, 1].map(|_| {
            let joined: Arc<Lock<Joined>> = Arc::default();
            ok(join(&opened, &join_request(&opened, broadcast(), &joined)));
            joined
        })
    });
    let members = |bench: &Bench| {
        bench.net.with(|fabric, _| fabric.manager().groups().get(&broadcast()).map_or(0, |g| g.members.len()))
    };
    assert_eq!(members(&bench), 1);
    for (left, joined) in [(1, &two[0]), (0, &two[1])] {
        let (port, joined) = (port.clone(), Arc::clone(joined));
        bench.drive(0, move |_| leave(&port, &joined, ib_sync_destroy));
        assert_eq!((members(&bench), bench.hosts[0].ibal.live(Kind::Mcast)), (0, left));
    }
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

/// Errors inside the adapter: a send that ends with an error of choice, and a queue pair that breaks.
#[test]
fn injected_errors() {
    let bench = bench(1);
    let (port, _) = receiver(&bench, 0, 2, 100);
    let lid = bench.hosts[0].lid();
    bench.drive(0, move |host| {
        let av = port.av_to(lid);
        let buffer = Buffer::with(b"x");
        assert!(host.ibal.hca().fail_next_send(port.qpn, crate::hca::cq::Status::General));
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

/// What a query's callback saw.
#[derive(Default)]
struct Answers(Vec<(i32, u32, u8, Vec<u8>)>);

struct Asker {
    answers: Lock<Answers>,
    put_mad: ib_pfn_put_mad_t,
}

unsafe extern "win64" fn on_answer(record: *mut ib_query_rec_t) {
    // SAFETY: the record lives for the call; the context is a test's; the MAD is this callback's until put back.
    unsafe {
        let record = &*record;
        let asker = &*record.query_context.cast::<Asker>();
        let mut bytes = Vec::new();
        if !record.p_result_mad.is_null() {
            let mad = &*record.p_result_mad;
            bytes = std::slice::from_raw_parts(mad.p_mad_buf.cast::<u8>(), mad.size as usize).to_vec();
            ok(asker.put_mad.unwrap()(c"test".as_ptr(), 1, record.p_result_mad));
        }
        asker.answers.lock().0.push((record.status.0, record.result_cnt, sim::level(), bytes));
    }
}

/// Asks for the path from one GID to another.
fn ask(port: &Port, asker: &Arc<Asker>, sgid: Gid, dgid: Gid, flags: u32) -> ib_query_handle_t {
    let pair = ib_gid_pair_t { src_gid: ib_gid_t { raw: sgid.0 }, dest_gid: ib_gid_t { raw: dgid.0 } };
    let request = ib_query_req_t {
        query_type: IB_QUERY_PATH_REC_BY_GIDS,
        p_query_input: (&raw const pair).cast(),
        port_guid: port.guid,
        timeout_ms: 50,
        retry_cnt: 2,
        flags,
        query_context: Arc::as_ptr(asker).cast(),
        pfn_query_cb: Some(on_answer),
    };
    let mut query = null_mut();
    // SAFETY: a live request and a local.
    unsafe { ok(port.ifc.query.unwrap()(port.al, &raw const request, &raw mut query)) };
    query
}

/// A path query is answered at DISPATCH_LEVEL with the record that the administrator has, also when its first answer
/// is lost; without any answer it times out after its retries; cancelled, it says so.
#[test]
fn path_queries_with_loss() {
    let bench = bench(2);
    let port = sender(&bench, 0);
    let (sgid, dgid, dlid) = (bench.hosts[0].gid(), bench.hosts[1].gid(), bench.hosts[1].lid());
    let asker = Arc::new(Asker { answers: Lock::default(), put_mad: port.ifc.put_mad });
    let run = |cancel: bool| {
        let (port, asker) = (port.clone(), Arc::clone(&asker));
        bench.drive(0, move |_| {
            let before = asker.answers.lock().0.len();
            let query = ask(&port, &asker, sgid, dgid, 0);
            if cancel {
                // SAFETY: handles.
                unsafe { port.ifc.cancel_query.unwrap()(port.al, query) };
            }
            while asker.answers.lock().0.len() == before {
                sleep(MILLISECOND);
            }
            let mut answers = asker.answers.lock();
            answers.0.pop().unwrap()
        })
    };
    let (status, count, irql, mad) = run(false);
    assert_eq!((status, count, irql), (IB_SUCCESS.0, 1, DISPATCH_LEVEL));
    // SAFETY: a record of the answer, packed.
    let record = unsafe { mad[IB_SA_MAD_HDR_SIZE..].as_ptr().cast::<ib_path_rec_t>().read_unaligned() };
    assert_eq!(record.dlid.get(), dlid);
    assert_eq!(record.dgid.raw, dgid.0);

    let lost = bench
        .net
        .with(|fabric, _| fabric.add_fault(nth(1, sa_response(Attribute::PATH_RECORD)), Effect::Drop));
    assert_eq!(run(false).0, IB_SUCCESS.0);
    drop(lost);
    let silence =
        bench.net.with(|fabric, _| fabric.add_fault(sa_response(Attribute::PATH_RECORD), Effect::Drop));
    assert_eq!(run(false), (IB_TIMEOUT.0, 0, DISPATCH_LEVEL, Vec::new()));
    assert_eq!(run(true).0, IB_CANCELED.0);
    drop(silence);

    let sent: Vec<_> = bench.hosts[0]
        .ibal
        .log()
        .entries()
        .iter()
        .filter_map(|entry| match entry.event {
            Event::Queried { sent, .. } => Some(sent),
            _ => None,
        })
        .collect();
    assert_eq!(sent, [1, 2, 3, 1]);
    bench.drive(0, move |_| port.close());
    assert!(bench.hosts[0].machine.outstanding().is_empty());
}

/// A query for a GID that nobody has is answered with no records: success of zero records or a remote error, never
/// silence; a synchronous one returns after its callback.
#[test]
fn a_path_to_nobody() {
    let bench = bench(1);
    let port = sender(&bench, 0);
    let sgid = bench.hosts[0].gid();
    bench.drive(0, move |_| {
        let asker = Arc::new(Asker { answers: Lock::default(), put_mad: port.ifc.put_mad });
        ask(&port, &asker, sgid, Gid([9; 16]), IB_FLAGS_SYNC);
        let answers = asker.answers.lock();
        assert_eq!(answers.0.len(), 1);
        let (status, count, ..) = answers.0[0];
        assert!(status == IB_REMOTE_ERROR.0 || count == 0);
    });
}

/// What a PnP client heard.
#[derive(Default)]
struct Heard {
    events: Vec<(u32, u8, u16)>,
    refuse: u32,
    left: u32,
}

unsafe extern "win64" fn on_pnp(record: *mut ib_pnp_rec_t) -> ib_api_status_t {
    // SAFETY: the record lives for the call and is a port's for a port's event; the context is a test's.
    unsafe {
        let heard = &*(*record).pnp_context.cast::<Lock<Heard>>();
        let event = (*record).pnp_event;
        let mut port = (0, 0);
        if event & IB_PNP_PORT != 0 && event != IB_PNP_PORT_REMOVE {
            let attributes = &*(*record.cast::<ib_pnp_port_rec_t>()).p_port_attr;
            port = (attributes.link_state, attributes.lid.get());
        }
        assert_eq!(sim::level(), PASSIVE_LEVEL);
        let mut heard = heard.lock();
        heard.events.push((event, port.0, port.1));
        if event == heard.refuse { IB_NOT_DONE } else { IB_SUCCESS }
    }
}

unsafe extern "win64" fn on_deregistered(context: *mut c_void) {
    // SAFETY: the context is a test's.
    unsafe { (*context.cast::<Lock<Heard>>()).lock().left += 1 };
}

/// Registers for port events, and returns once the present state was told.
fn register(host: &Host, heard: &Arc<Lock<Heard>>) -> (ib_al_ifc_t, ib_al_handle_t, ib_pnp_handle_t) {
    let ifc = host.table();
    let request = ib_pnp_req_t {
        pnp_class: IB_PNP_PORT | IB_PNP_FLAG_REG_SYNC | IB_PNP_FLAG_REG_COMPLETE,
        pnp_context: Arc::as_ptr(heard).cast(),
        pfn_pnp_cb: Some(on_pnp),
    };
    let (mut al, mut pnp) = (null_mut(), null_mut());
    // SAFETY: a live request and locals.
    unsafe {
        ok(ifc.open_al.unwrap()(&raw mut al));
        ok(ifc.reg_pnp.unwrap()(al, &raw const request, &raw mut pnp));
    }
    (ifc, al, pnp)
}

/// Handles of a registration, to be carried from one thread to another.
#[derive(Clone, Copy)]
struct Registered(ib_al_ifc_t, ib_al_handle_t, ib_pnp_handle_t);
// SAFETY: numbers and code addresses.
unsafe impl Send for Registered {}

fn names(heard: &Arc<Lock<Heard>>) -> Vec<u32> {
    std::mem::take(&mut heard.lock().events).into_iter().map(|(event, ..)| event).collect()
}

/// `al_pnp.c`: a registrant hears each state up to the present one, then that this was all; then what changes, with
/// the attributes of that moment; and nothing after it deregistered.
#[test]
fn port_events_in_order() {
    let bench = bench(1);
    let heard: Arc<Lock<Heard>> = Arc::default();
    let context = Arc::clone(&heard);
    let registered = bench.drive(0, move |host| {
        let (ifc, al, pnp) = register(host, &context);
        Registered(ifc, al, pnp)
    });
    let active = heard.lock().events[3];
    assert_eq!((active.1, active.2), (IB_LINK_ACTIVE, bench.hosts[0].lid()));
    let add = [IB_PNP_PORT_ADD, IB_PNP_PORT_INIT, IB_PNP_PORT_ARMED, IB_PNP_PORT_ACTIVE];
    let mut expected = add.to_vec();
    expected.push(IB_PNP_REG_COMPLETE);
    assert_eq!(names(&heard), expected);

    let port = bench.hosts[0].port;
    bench.net.with(|fabric, now| fabric.set_link(now, port, false));
    bench.drive(0, |_| sleep(50 * MILLISECOND));
    assert_eq!(names(&heard), [IB_PNP_PORT_DOWN]);
    bench.net.with(|fabric, now| fabric.set_link(now, port, true));
    bench.run_until(sim::SECOND, Bench::all_active);
    bench.drive(0, |_| sleep(50 * MILLISECOND));
    // ARMED and ACTIVE came before the PnP thread looked again: only what the link is now is reported.
    assert_eq!(names(&heard)[..2], [IB_PNP_PORT_INIT, IB_PNP_PORT_ACTIVE]);

    bench.net.with(|fabric, now| fabric.restart_manager(now, Restart::ForgetGroups, 10 * MILLISECOND));
    bench.drive(0, |_| sleep(500 * MILLISECOND));
    assert!(names(&heard).contains(&IB_PNP_LID_CHANGE), "a reregistration is reported so");

    bench.drive(0, move |_| {
        let registered = registered;
        let Registered(ifc, al, pnp) = registered;
        // SAFETY: handles.
        unsafe {
            ok(ifc.dereg_pnp.unwrap()(pnp, ib_pfn_destroy_cb_t::from_fn(on_deregistered)));
            ok(ifc.close_al.unwrap()(al));
        }
    });
    assert_eq!(heard.lock().left, 1);
    bench.net.with(|fabric, now| fabric.set_link(now, port, false));
    bench.drive(0, |_| sleep(50 * MILLISECOND));
    assert_eq!(names(&heard), []);
    assert!(bench.hosts[0].machine.outstanding().is_empty());
}

/// `al_pnp.c`: a client whose callback fails hears no more of that port; removal of the CA ends with PORT_REMOVE.
#[test]
fn a_client_that_refuses_and_one_that_sees_the_end() {
    let bench = bench(1);
    let (refusing, staying): (Arc<Lock<Heard>>, Arc<Lock<Heard>>) = Default::default();
    refusing.lock().refuse = IB_PNP_PORT_ADD;
    let (one, other) = (Arc::clone(&refusing), Arc::clone(&staying));
    bench.drive(0, move |host| {
        register(host, &one);
        register(host, &other);
    });
    assert_eq!(names(&refusing), [IB_PNP_PORT_ADD, IB_PNP_REG_COMPLETE]);
    names(&staying);
    bench.hosts[0].ibal.remove_ca();
    bench.drive(0, |_| sleep(MILLISECOND));
    assert_eq!(names(&refusing), []);
    assert_eq!(names(&staying), [IB_PNP_PORT_DOWN, IB_PNP_PORT_REMOVE]);
}

/// Attributes: the size first, then all of it, with tables that the pointers lead to.
#[test]
fn ca_attributes() {
    let bench = bench(1);
    let (lid, gid) = (bench.hosts[0].lid(), bench.hosts[0].gid());
    bench.drive(0, move |host| {
        let port = Port::open(host);
        let mut size = 0;
        // SAFETY: the size of no buffer, then a buffer of that size.
        unsafe {
            let query = port.ifc.query_ca.unwrap();
            assert_eq!(query(port.ca, null_mut(), &raw mut size), IB_INSUFFICIENT_MEMORY);
            let buffer = Buffer::new(size as usize);
            let attributes = buffer.at.cast::<ib_ca_attr_t>();
            ok(query(port.ca, attributes, &raw mut size));
            let attributes = &*attributes;
            assert_eq!((attributes.size, attributes.num_ports), (size, 1));
            let first = &*attributes.p_port_attr;
            assert_eq!((first.link_state, first.lid.get()), (IB_LINK_ACTIVE, lid));
            assert_eq!((*first.p_gid_table).raw, gid.0);
            assert_eq!((*first.p_pkey_table).get(), 0xffff);
            let end = first.p_pkey_table.add(first.num_pkeys as usize) as usize;
            assert!(end <= buffer.at as usize + buffer.length);
            buffer.free();
        }
        port.close();
    });
}

/// The device of a child answers the interface query: the table by version and size, the port's data with it.
#[test]
fn the_interface_is_found_through_the_device() {
    let bench = bench(1);
    let guid = bench.hosts[0].port_guid();
    bench.drive(0, move |host| {
        let config =
            ChildConfig { port: 1, pkey: DEFAULT_PARTITION, properties: DeviceProperties::default() };
        let device = host.ibal.create_child(config);
        let query = |version: u16, size: u16, data: *mut ib_al_ifc_data_t, table: *mut ib_al_ifc_t| {
            // SAFETY: an IRP for a device, as a driver sends it, and kernel objects on this stack that outlive it.
            unsafe {
                let mut event = std::mem::zeroed::<KEVENT>();
                ke::KeInitializeEvent(&raw mut event, SynchronizationEvent, 0);
                let mut status = std::mem::zeroed::<IO_STATUS_BLOCK>();
                let irp = io::IoBuildSynchronousFsdRequest(
                    IRP_MJ_PNP.into(),
                    device,
                    null_mut(),
                    0,
                    null_mut(),
                    &raw mut event,
                    &raw mut status,
                );
                (*irp).IoStatus = IO_STATUS_BLOCK::new(STATUS_NOT_SUPPORTED, 0);
                let location = &mut *IoGetNextIrpStackLocation(irp);
                location.MinorFunction = IRP_MN_QUERY_INTERFACE;
                let parameters = &mut location.Parameters.QueryInterface;
                parameters.InterfaceType = &GUID_IB_AL_INTERFACE;
                parameters.Version = version;
                parameters.Size = size;
                parameters.Interface = table.cast();
                parameters.InterfaceSpecificData = data.cast();
                let sent = io::IofCallDriver(device, irp);
                ke::KeWaitForSingleObject((&raw mut event).cast(), Executive, KernelMode, 0, null_mut());
                sent
            }
        };
        let size = size_of::<ib_al_ifc_t>() as u16;
        let mut table = host.table();
        // SAFETY: plain numbers and null pointers.
        let mut port = unsafe { std::mem::zeroed::<ipoib_ifc_data_t>() };
        let mut data = ib_al_ifc_data_t {
            r#type: &GUID_IPOIB_INTERFACE_DATA,
            size: size_of::<ipoib_ifc_data_t>() as u16,
            version: IPOIB_INTERFACE_DATA_VERSION,
            p_data: (&raw mut port).cast(),
        };
        assert_eq!(query(18, size, &raw mut data, &raw mut table), STATUS_NOT_SUPPORTED);
        assert_eq!(query(19, size - 1, &raw mut data, &raw mut table), STATUS_BUFFER_TOO_SMALL);
        assert_eq!(host.ibal.interface_references(), 0);
        assert_eq!(query(19, size, &raw mut data, &raw mut table), STATUS_SUCCESS);
        assert_eq!(host.ibal.interface_references(), 1);
        assert_eq!((port.port_num, port.port_guid.guid), (1, guid));
        assert_eq!((table.wdm.Size, table.wdm.Version), (size, 19));
        assert_eq!(Machine::current().outstanding().len(), 1, "the reference is the driver's to drop");
        // SAFETY: the interface's own function and context.
        unsafe { table.wdm.InterfaceDereference.unwrap()(table.wdm.Context) };
        assert!(Machine::current().outstanding().is_empty());
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

/// Every verb can be made to fail, with its documented status, and leaves nothing behind.
#[test]
fn planned_faults() {
    let bench = bench(1);
    bench.drive(0, |host| {
        let fail = |call| {
            host.machine.faults().set(crate::fault::Plan::Count { call, from: 0, count: 1 });
        };
        let port = Port::open(host);
        fail("modify_qp");
        assert_eq!(port.to_init(), IB_INSUFFICIENT_RESOURCES);
        port.up();
        fail("post_recv");
        let buffer = Buffer::new(100);
        assert_eq!(port.post_recv(1, &buffer), IB_INSUFFICIENT_RESOURCES);
        fail("join_mcast");
        let joined: Arc<Lock<Joined>> = Arc::default();
        assert_eq!(join(&port, &join_request(&port, broadcast(), &joined)), IB_INSUFFICIENT_MEMORY);
        fail("attach_mcast");
        ok(join(&port, &join_request(&port, broadcast(), &joined)));
        assert_eq!(joined.lock().outcomes, [(IB_INSUFFICIENT_RESOURCES.0, 0)]);
        sleep(10 * MILLISECOND);
        assert_eq!(host.ibal.live(Kind::Mcast), 0);
        buffer.free();
        port.close();
        assert!(host.machine.outstanding().is_empty());
    });
}

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
    assert!(Ibal::of(&bench.hosts[0].machine).is_some());
}
