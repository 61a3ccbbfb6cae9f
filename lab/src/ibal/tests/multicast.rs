//! Joining groups, what members get, leaving.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Arc;

use ibal_sys::*;

use super::bench::*;
use crate::fabric::fault::{Effect, sa_response};
use crate::fabric::manager::IpoibGroup;
use crate::fabric::wire::mad::Attribute;
use crate::fabric::{Gid, PKey};
use crate::hca::Kind;
use crate::kernel::irql::PASSIVE_LEVEL;
use crate::sim::{self, Lock, MILLISECOND, sleep};

/// The MGID of the broadcast group that the subnet manager makes.
pub fn broadcast() -> Gid {
    IpoibGroup::default().mgid(PKey::DEFAULT)
}

/// The outcome of a join.
#[derive(Default)]
pub struct Joined {
    pub outcomes: Vec<(i32, u16)>,
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

/// A synchronous join as a full member.
pub fn join_request(port: &Port, mgid: Gid, joined: &Arc<Lock<Joined>>) -> ib_mcast_req_t {
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

/// Joins.
pub fn join(port: &Port, request: &ib_mcast_req_t) -> ib_api_status_t {
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
