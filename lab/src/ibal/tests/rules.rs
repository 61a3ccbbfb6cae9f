//! A deliberately wrong driver for each rule: it breaks that rule and no other.

use std::ptr::null_mut;

use ibal_sys::*;

use super::bench::*;
use crate::hca::rules;
use crate::kernel::irql::{self, DISPATCH_LEVEL, PASSIVE_LEVEL};
use crate::sim::{MILLISECOND, SimConfig, sleep};
use crate::verifier::{Rule, call_driver};

/// Runs a wrong driver and checks which rule it broke.
#[track_caller]
fn breaks<T: Send + 'static>(rule: Rule, driver: impl FnOnce(&Host) -> T + Send + 'static) {
    assert_eq!(Bench::new(1, SimConfig::seeded(11)).broken(driver), rule.name);
}

#[test]
fn verb_irql() {
    breaks(rules::VERB_IRQL, |host| {
        let port = Port::open(host);
        irql::at(DISPATCH_LEVEL, || port.to_init())
    });
}

/// The verbs of the data path are allowed at DISPATCH_LEVEL.
#[test]
fn data_path_verbs_run_at_dispatch() {
    let bench = Bench::new(1, SimConfig::seeded(11));
    let lid = bench.hosts[0].lid();
    bench.drive(0, move |host| {
        let port = Port::open(host);
        port.up();
        let av = port.av_to(lid);
        let (recv, send) = (Buffer::new(100), Buffer::with(b"x"));
        irql::at(DISPATCH_LEVEL, || {
            ok(port.post_recv(1, &recv));
            ok(port.post_send(2, &send, av, port.qpn, ib_send_opt_t::empty()));
            port.arm(port.recv_cq);
            port.poll(port.send_cq, 1);
        });
        port.wait(port.recv_cq, 1);
    });
}

#[test]
fn verb_bad_handle_null() {
    breaks(rules::VERB_BAD_HANDLE, |host| {
        let port = Port::open(host);
        // SAFETY: null is what this is about; it is not followed.
        unsafe { port.ifc.rearm_cq.unwrap()(null_mut(), FALSE) }
    });
}

#[test]
fn verb_bad_handle_of_another_kind() {
    breaks(rules::VERB_BAD_HANDLE, |host| {
        let port = Port::open(host);
        // SAFETY: handles are numbers; the wrong one is what this is about.
        unsafe { port.ifc.rearm_cq.unwrap()(port.qp.cast(), FALSE) }
    });
}

#[test]
fn verb_bad_handle_of_another_machine() {
    let bench = Bench::new(2, SimConfig::seeded(11));
    let foreign = bench.drive(1, Port::open);
    let rule = bench.broken(move |_| {
        let foreign = foreign;
        // SAFETY: as above.
        unsafe { foreign.ifc.rearm_cq.unwrap()(foreign.recv_cq, FALSE) }
    });
    assert_eq!(rule, rules::VERB_BAD_HANDLE.name);
}

#[test]
fn verb_bad_handle_stale() {
    breaks(rules::VERB_BAD_HANDLE, |host| {
        let port = Port::open(host);
        port.destroy_qp();
        port.to_init()
    });
}

#[test]
fn verb_double_destroy() {
    breaks(rules::VERB_DOUBLE_DESTROY, |host| {
        let port = Port::open(host);
        port.destroy_qp();
        port.destroy_qp();
    });
}

#[test]
fn verb_destroy_with_children() {
    breaks(rules::VERB_DESTROY_WITH_CHILDREN, |host| {
        let port = Port::open(host);
        // SAFETY: a handle.
        unsafe { port.ifc.dealloc_pd.unwrap()(port.pd, ib_sync_destroy) }
    });
    breaks(rules::VERB_DESTROY_WITH_CHILDREN, |host| {
        let port = Port::open(host);
        // SAFETY: a handle.
        unsafe { port.ifc.destroy_cq.unwrap()(port.recv_cq, ib_sync_destroy) }
    });
}

#[test]
fn verb_al_leak() {
    breaks(rules::VERB_AL_LEAK, |host| {
        let port = Port::open(host);
        // SAFETY: a handle.
        unsafe { port.ifc.close_al.unwrap()(port.al) }
    });
}

#[test]
fn verb_unused_slot() {
    breaks(rules::VERB_UNUSED_SLOT, |host| {
        let slot = host.table().create_mw;
        // SAFETY: every slot holds a function; the trap takes no argument and returns a status.
        unsafe { std::mem::transmute::<unused_slot, unsafe extern "win64" fn() -> ib_api_status_t>(slot)() }
    });
}

#[test]
fn verb_resource_lifetime_made_outside_initialize() {
    breaks(rules::VERB_RESOURCE_LIFETIME, |host| {
        call_driver("MiniportResetEx", PASSIVE_LEVEL, || Port::open(host));
    });
}

#[test]
fn verb_resource_lifetime_destroyed_outside_halt() {
    breaks(rules::VERB_RESOURCE_LIFETIME, |host| {
        let port = call_driver("MiniportInitializeEx", PASSIVE_LEVEL, || Port::open(host));
        call_driver("MiniportPause", PASSIVE_LEVEL, || port.destroy_qp());
    });
}

/// Initialize makes, Halt destroys.
#[test]
fn resources_live_from_initialize_to_halt() {
    Bench::new(1, SimConfig::seeded(11)).drive(0, |host| {
        let port = call_driver("MiniportInitializeEx", PASSIVE_LEVEL, || Port::open(host));
        call_driver("MiniportHaltEx", PASSIVE_LEVEL, || port.close());
    });
}

#[test]
fn qp_state_transition() {
    breaks(rules::QP_STATE, |host| Port::open(host).to_rtr());
}

#[test]
fn qp_state_post() {
    breaks(rules::QP_STATE, |host| Port::open(host).post_recv(1, &Buffer::new(100)));
    breaks(rules::QP_STATE, |host| {
        let port = Port::open(host);
        ok(port.to_init());
        port.post_send(1, &Buffer::new(10), port.av_to(1), 2, ib_send_opt_t::empty())
    });
}

#[test]
fn qp_too_many_elements() {
    breaks(rules::QP_TOO_MANY_ELEMENTS, |host| {
        let port = Port::open(host);
        port.up();
        let mut list = vec![Buffer::new(10).elements(port.lkey)[0]; 5];
        let mut wr = send_wr(1, &mut list, port.av_to(1), 2, ib_send_opt_t::empty());
        // SAFETY: a live request.
        unsafe { port.ifc.post_send.unwrap()(port.qp, &raw mut wr, null_mut()) }
    });
}

#[test]
fn qp_memory_not_registered_unknown_key() {
    breaks(rules::QP_MEMORY_NOT_REGISTERED, |host| {
        let mut port = Port::open(host);
        port.up();
        port.lkey += 1;
        port.post_recv(1, &Buffer::new(100))
    });
}

#[test]
fn qp_memory_not_registered_for_writing() {
    breaks(rules::QP_MEMORY_NOT_REGISTERED, |host| {
        let port = Port::open_with(host, Sizes { access: ib_access_t::empty(), ..Sizes::default() });
        port.up();
        port.post_recv(1, &Buffer::new(100))
    });
}

#[test]
fn qp_memory_not_registered_any_longer() {
    breaks(rules::QP_MEMORY_NOT_REGISTERED, |host| {
        let port = Port::open(host);
        port.up();
        // SAFETY: a handle.
        unsafe { ok(port.ifc.dereg_mr.unwrap()(port.mr)) };
        port.post_recv(1, &Buffer::new(100))
    });
}

#[test]
fn qp_memory_freed_while_posted() {
    breaks(rules::QP_MEMORY_FREED, |host| {
        let port = Port::open(host);
        port.up();
        let buffer = Buffer::new(100);
        ok(port.post_recv(1, &buffer));
        buffer.free();
    });
}

#[test]
fn qp_memory_freed_before_the_post() {
    breaks(rules::QP_MEMORY_FREED, |host| {
        let port = Port::open(host);
        port.up();
        let buffer = Buffer::new(100);
        buffer.free();
        port.post_recv(1, &buffer)
    });
}

/// The adapter finds it too, when it comes to the request: memory that is not the driver's own goes unwatched.
#[test]
fn qp_memory_freed_under_the_adapter() {
    let bench = Bench::new(1, SimConfig::seeded(11));
    let lid = bench.hosts[0].lid();
    let rule = bench.broken(move |host| {
        let port = Port::open(host);
        port.up();
        let av = port.av_to(lid);
        let at = host.machine.allocate_system(5000, *b"Test");
        ok(port.post_send(1, &Buffer { at: at.cast(), length: 5000 - 4096 }, av, 2, ib_send_opt_t::empty()));
        host.machine.free_system(at, *b"Test");
        sleep(MILLISECOND);
    });
    assert_eq!(rule, rules::QP_MEMORY_FREED.name);
}

#[test]
fn av_in_use() {
    let bench = Bench::new(1, SimConfig::seeded(11));
    let lid = bench.hosts[0].lid();
    let rule = bench.broken(move |host| {
        let port = Port::open(host);
        port.up();
        let av = port.av_to(lid);
        ok(port.post_send(1, &Buffer::new(10), av, port.qpn, ib_send_opt_t::empty()));
        port.destroy_av(av);
    });
    assert_eq!(rule, rules::AV_IN_USE.name);
}

#[test]
fn ifc_reference() {
    breaks(rules::IFC_REFERENCE, |host| host.ibal.interface_dereferenced());
}

#[test]
fn mad_put_twice() {
    breaks(rules::MAD_PUT_TWICE, |host| {
        let ifc = host.table();
        let al = Port::open(host).al;
        let owner = crate::hca::Handle::from_ptr(al).unwrap();
        let mad = host.ibal.mads.hand_out(owner, &[0; 256], (0, 0));
        // SAFETY: an element that was handed out, and then again.
        unsafe {
            ok(ifc.put_mad.unwrap()(c"test".as_ptr(), 1, mad));
            ifc.put_mad.unwrap()(c"test".as_ptr(), 2, mad)
        }
    });
}

unsafe extern "win64" fn waits(record: *mut ib_pnp_rec_t) -> ib_api_status_t {
    // SAFETY: the record lives for the call; the context is the table.
    unsafe {
        let ifc = &*(*record).pnp_context.cast::<ib_al_ifc_t>();
        ifc.dereg_pnp.unwrap()((*record).h_pnp, ib_sync_destroy)
    }
}

#[test]
fn verb_waits_for_itself() {
    breaks(rules::VERB_WAITS_FOR_ITSELF, |host| {
        let ifc = Box::leak(Box::new(host.table()));
        let request = ib_pnp_req_t {
            pnp_class: IB_PNP_PORT | IB_PNP_FLAG_REG_SYNC,
            pnp_context: std::ptr::from_ref(ifc).cast(),
            pfn_pnp_cb: Some(waits),
        };
        let (mut al, mut pnp) = (null_mut(), null_mut());
        // SAFETY: a live request and locals.
        unsafe {
            ok(ifc.open_al.unwrap()(&raw mut al));
            ifc.reg_pnp.unwrap()(al, &raw const request, &raw mut pnp)
        }
    });
}

/// Every rule of this room has a name of its own and a source.
#[test]
fn rules_are_distinct_and_cited() {
    let mut names: Vec<_> = rules::VERB_RULES.iter().map(|rule| rule.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), rules::VERB_RULES.len());
    assert!(rules::VERB_RULES.iter().all(|rule| !rule.source.is_empty()));
}
