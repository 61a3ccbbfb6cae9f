//! Queries of the subnet administrator, with answers that are late, lost or none.

use std::ptr::null_mut;
use std::sync::Arc;

use ibal_sys::*;

use super::bench::*;
use crate::fabric::Gid;
use crate::fabric::fault::{Effect, nth, sa_response};
use crate::fabric::wire::mad::Attribute;
use crate::hca::log::Event;
use crate::kernel::irql::DISPATCH_LEVEL;
use crate::sim::{self, Lock, MILLISECOND, sleep};

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
