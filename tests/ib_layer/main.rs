//! The driver's IBAL layer against the lab's access layer: each wrapper does what its document says, every
//! callback finds its client alive, and nothing is left behind.

mod bench;

use std::time::Duration;

use bench::{Bench, Driver, Heard, Listener, PKEY, QKEY, SIZES, TAG};
use ipoib::ib::av::{Av, AvAttributes};
use ipoib::ib::ca::PortState;
use ipoib::ib::mcast::{GroupParameters, JoinError, JoinRequest, JoinState, Memberships};
use ipoib::ib::pnp::{Pnp, PortEventKind};
use ipoib::ib::qp::QpState;
use ipoib::ib::query::{Destination, PathRequest, Patience, Queries, QueryError};
use ipoib::ib::resources::{Resources, Step};
use ipoib::ib::status::IbError;
use ipoib::ib::wc::{CompletionBatch, Done};
use ipoib::ib::wr::{RecvRequest, SendRequest};
use ipoib::kernel::arc::PoolArc;
use ipoib::kernel::event::sleep;
use ipoib::kernel::irql::Passive;
use ipoib::kernel::physical::DmaBuffer;
use ipoib::kernel::time;
use ipoib_lab::fabric::fault::{Effect, on_send, sa_header};
use ipoib_lab::fault::Plan;
use ipoib_lab::hca::Kind;

const PATIENCE: Patience = Patience { timeout_ms: 100, retries: 2 };

fn mgid(last: u8) -> [u8; 16] {
    let mut mgid = [0; 16];
    mgid[..6].copy_from_slice(&[0xFF, 0x12, 0x40, 0x1B, 0xFF, 0xFF]);
    mgid[15] = last;
    mgid
}

fn join(host: &bench::Host, last: u8, create: bool) -> JoinRequest {
    JoinRequest {
        mgid: mgid(last),
        port_guid: host.port_guid(),
        pkey: PKEY,
        pkey_index: 0,
        state: JoinState::Full,
        create: create.then_some(GroupParameters {
            qkey: QKEY,
            mtu_code: None,
            rate_code: None,
            packet_life: None,
            sl: 0,
            flow_label: 0,
            hop_limit: 0,
            traffic_class: 0,
        }),
    }
}

#[test]
fn resources_are_made_once_and_all_released() {
    let bench = Bench::new(1, 1);
    bench.drive(0, |host, at| {
        let driver = Driver::start(host, at);
        assert_eq!(driver.interface.identity().port_guid, host.port_guid());
        assert_eq!(driver.interface.identity().pkey, Some(PKEY));
        let number = driver.resources.qp.number();
        assert!(number > 1 && number < 1 << 24);
        driver.up(at);
        assert_eq!(driver.resources.qp.number(), number);
        let attributes = driver.resources.ca.query(at).unwrap();
        let port = attributes.port(1).expect("port 1");
        assert_eq!(
            (port.guid(), port.lid(), port.state()),
            (host.port_guid(), host.lid(), PortState::Active)
        );
        assert_eq!(port.gids().next(), Some(host.gid()));
        assert_eq!(port.pkey_index(0x7FFF), Some(0));
        assert!(attributes.port(2).is_none());
        drop(attributes);
        driver.stop(at);
        for kind in [Kind::Al, Kind::Ca, Kind::Pd, Kind::Cq, Kind::Qp, Kind::Mr] {
            assert_eq!(host.ibal.live(kind), 0, "{kind}");
        }
    });
}

#[test]
fn a_step_that_fails_leaves_nothing_behind() {
    let cases = [
        ("open_al", 0, Step::OpenAl),
        ("open_ca", 0, Step::OpenCa),
        ("query_ca", 0, Step::QueryCa),
        ("alloc_pd", 0, Step::AllocatePd),
        ("create_cq", 0, Step::CreateReceiveCq),
        ("create_cq", 1, Step::CreateSendCq),
        ("reg_phys", 0, Step::RegisterMemory),
        ("create_qp", 0, Step::CreateQp),
        ("query_qp", 0, Step::CreateQp),
    ];
    for (call, from, step) in cases {
        let bench = Bench::new(1, 2);
        bench.drive(0, move |host, at| {
            let interface = host.interface();
            let listener = PoolArc::try_new(TAG, Listener::default()).unwrap();
            host.machine.faults().set(Plan::Count { call, from, count: 1 });
            let made = Resources::create(&interface, &listener, |_| SIZES, at);
            assert_eq!(made.err().map(|(step, _)| step), Some(step), "{call}");
            assert_eq!(host.machine.faults().injected(), 1);
            for kind in [Kind::Al, Kind::Ca, Kind::Pd, Kind::Cq, Kind::Qp, Kind::Mr] {
                assert_eq!(host.ibal.live(kind), 0, "{call}: {kind}");
            }
        });
    }
}

#[test]
fn a_transition_that_does_not_exist_is_refused_before_the_verb() {
    let bench = Bench::new(1, 3);
    bench.drive(0, |host, at| {
        let driver = Driver::start(host, at);
        let qp = &driver.resources.qp;
        assert_eq!(qp.to_ready_to_receive(at), Err(IbError::QP_STATE));
        assert_eq!(qp.to_ready_to_send(0, at), Err(IbError::QP_STATE));
        assert_eq!(qp.set_qkey(1, at), Err(IbError::QP_STATE));
        driver.up(at);
        assert_eq!(qp.state(), QpState::ReadyToSend);
        assert_eq!(qp.to_init(1, QKEY, 0, at), Err(IbError::QP_STATE));
        qp.set_qkey(0x1234, at).unwrap();
        qp.to_error(at).unwrap();
        qp.to_reset(at).unwrap();
        driver.up(at);
        driver.stop(at);
    });
}

/// Sends `count` datagrams to itself through the switch and gives the bytes received.
fn loop_back(host: &bench::Host, driver: &Driver, count: usize, at: &mut Passive<'_>) {
    let resources = &driver.resources;
    let attributes =
        AvAttributes { port_number: 1, dlid: host.lid(), sl: 0, rate: 3, path_bits: 0, grh: None };
    let av = Av::create(&resources.pd, &attributes, at).unwrap();
    let lkey = resources.mr.lkey();
    let mut out = DmaBuffer::try_new(TAG, 100).unwrap();
    out.bytes_mut().fill(0x5A);
    let buffers: Vec<_> = (0..count).map(|_| DmaBuffer::try_new(TAG, 200).unwrap()).collect();
    let mut receives: Vec<_> = buffers
        .iter()
        .enumerate()
        .map(|(i, buffer)| {
            let mut request = RecvRequest::<2>::new(i as u64);
            for segment in buffer.segments(0..200) {
                request.push(segment, lkey).unwrap();
            }
            request
        })
        .collect();
    at.raised(|_| resources.qp.post_receives(&mut receives)).unwrap();
    for i in 0..count {
        let mut send = SendRequest::<2>::new(1000 + i as u64, &av, resources.qp.number(), QKEY);
        for segment in out.segments(0..100) {
            send.push(segment, lkey).unwrap();
        }
        at.raised(|_| resources.qp.post_send(&mut send)).unwrap();
    }
    let mut batch = CompletionBatch::<3>::new();
    let mut received = Vec::new();
    let mut sent = Vec::new();
    while received.len() < count || sent.len() < count {
        for cq in [&resources.receive_cq, &resources.send_cq] {
            at.raised(|_| cq.poll(&mut batch)).unwrap();
            for completion in batch.iter() {
                match completion.outcome.expect("no error") {
                    Done::Sent => sent.push(completion.wr_id),
                    Done::Received(message) => {
                        assert_eq!((message.length, message.has_grh), (140, false));
                        assert_eq!(message.remote_qpn, resources.qp.number());
                        assert_eq!(message.remote_lid, host.lid());
                        received.push(completion.wr_id);
                    }
                }
            }
        }
        sleep(at, Duration::from_micros(100));
    }
    assert_eq!(received, (0..count as u64).collect::<Vec<_>>());
    assert_eq!(sent, (1000..1000 + count as u64).collect::<Vec<_>>());
    for buffer in &buffers {
        assert_eq!(buffer.bytes()[40..140], [0x5A; 100]);
    }
    av.destroy(at).unwrap();
}

#[test]
fn what_is_posted_arrives_and_completes() {
    let bench = Bench::new(1, 4);
    bench.drive(0, |host, at| {
        let driver = Driver::start(host, at);
        driver.up(at);
        loop_back(host, &driver, 8, at);
        let heard = driver.listener.all();
        assert_eq!(
            heard.iter().filter(|heard| **heard == Heard::ReceiveReady).count(),
            1,
            "armed once, told once"
        );
        assert_eq!(heard.iter().filter(|heard| **heard == Heard::SendReady).count(), 1);
        driver.stop(at);
    });
}

#[test]
fn more_than_the_queue_holds_is_refused_with_how_many_were_posted() {
    let bench = Bench::new(1, 5);
    bench.drive(0, |host, at| {
        let driver = Driver::start(host, at);
        driver.up(at);
        let buffer = DmaBuffer::try_new(TAG, 200).unwrap();
        let mut receives: Vec<_> = (0..u64::from(SIZES.receive_depth) + 3)
            .map(|i| {
                let mut request = RecvRequest::<1>::new(i);
                let segment = buffer.segments(0..200).next().unwrap();
                request.push(segment, driver.resources.mr.lkey()).unwrap();
                assert!(request.push(segment, 0).is_err(), "no room for a second segment");
                request
            })
            .collect();
        let refused = driver.resources.qp.post_receives(&mut receives).unwrap_err();
        assert!(
            refused.posted >= SIZES.receive_depth as usize && refused.posted < receives.len(),
            "{refused:?}"
        );
        driver.resources.qp.to_error(at).unwrap();
        let mut batch = CompletionBatch::<64>::new();
        let mut flushed = 0;
        while flushed < refused.posted {
            driver.resources.receive_cq.poll(&mut batch).unwrap();
            for completion in batch.iter() {
                assert!(completion.outcome.is_err_and(ipoib::ib::status::WcError::is_flush));
                flushed += 1;
            }
            sleep(at, Duration::from_micros(100));
        }
        driver.stop(at);
    });
}

#[test]
fn a_path_is_found_or_it_is_said_why_not() {
    let bench = Bench::new(2, 6);
    let (there, lid) = (bench.hosts[1].gid(), bench.hosts[1].lid());
    bench.drive(0, move |host, at| {
        let driver = Driver::start(host, at);
        let queries = Queries::new(&driver.resources.al, &driver.listener, 2).unwrap();
        let request = |destination| PathRequest {
            port_guid: host.port_guid(),
            source: host.gid(),
            destination: Destination::Gid(destination),
            pkey: PKEY,
        };
        queries.path(&request(there), PATIENCE, 1, at).unwrap();
        let path = driver.listener.query(at, 1).expect("a path");
        assert_eq!((path.destination, path.dlid, path.slid, path.pkey), (there, lid, host.lid(), PKEY));
        let mut nowhere = there;
        nowhere[15] ^= 0xFF;
        queries.path(&request(nowhere), PATIENCE, 2, at).unwrap();
        let error = driver.listener.query(at, 2).expect_err("nobody has this GID");
        assert!(matches!(error, QueryError::NoRecord | QueryError::Refused(_)), "{error:?}");
        // An administrator that does not answer.
        let silent = host.net.with(|fabric, _| {
            fabric.add_fault(|transit| on_send(transit) && sa_header(transit.packet).is_some(), Effect::Drop)
        });
        queries.path(&request(there), PATIENCE, 3, at).unwrap();
        let cancelled = queries.path(&request(there), PATIENCE, 4, at).unwrap();
        assert_eq!(
            queries.path(&request(there), PATIENCE, 5, at),
            Err(IbError::NO_RESOURCES),
            "both places taken"
        );
        queries.cancel(cancelled);
        assert_eq!(driver.listener.query(at, 4), Err(QueryError::Cancelled));
        assert_eq!(driver.listener.query(at, 3), Err(QueryError::TimedOut));
        queries.cancel(cancelled);
        // Closing does not wait for it.
        queries.path(&request(there), Patience { timeout_ms: 60_000, retries: 9 }, 6, at).unwrap();
        let before = time::now();
        queries.destroy(at);
        assert!(time::now().saturating_sub(before) < Duration::from_secs(1));
        assert_eq!(driver.listener.query(at, 6), Err(QueryError::Cancelled));
        assert_eq!(queries.path(&request(there), PATIENCE, 7, at), Err(IbError::STATE));
        drop(silent);
        drop(queries);
        driver.stop(at);
    });
}

#[test]
fn a_group_is_created_joined_and_left() {
    let bench = Bench::new(1, 7);
    bench.drive(0, |host, at| {
        let driver = Driver::start(host, at);
        driver.up(at);
        let qp = &driver.resources.qp;
        let groups = Memberships::new(qp, &driver.listener, 2).unwrap();
        groups.join(qp, &join(host, 1, false), PATIENCE, 1, at).unwrap();
        assert!(matches!(driver.listener.join(at, 1), Err(JoinError::Refused(_))), "it does not exist");
        let id = groups.join(qp, &join(host, 1, true), PATIENCE, 2, at).unwrap();
        let member = driver.listener.join(at, 2).expect("created");
        assert_eq!((member.mgid, member.qkey, member.scope), (mgid(1), QKEY, 2));
        assert!(member.mlid >= 0xC000);
        groups.leave(id, at).unwrap();
        assert_eq!(groups.leave(id, at), Err(IbError::STATE), "it is left once");
        driver.listener.leave(at, 2);
        assert_eq!(groups.leave(id, at), Err(IbError::STATE));
        // One that is joined when the table closes is left.
        groups.join(qp, &join(host, 2, true), PATIENCE, 3, at).unwrap();
        driver.listener.join(at, 3).expect("created");
        groups.destroy(at);
        driver.listener.leave(at, 3);
        assert_eq!(groups.join(qp, &join(host, 3, true), PATIENCE, 4, at), Err(IbError::STATE));
        drop(groups);
        driver.stop(at);
        assert_eq!(host.ibal.live(Kind::Mcast), 0);
    });
}

#[test]
fn closing_cancels_a_join_that_nobody_answers() {
    let bench = Bench::new(1, 8);
    bench.drive(0, |host, at| {
        let driver = Driver::start(host, at);
        driver.up(at);
        let qp = &driver.resources.qp;
        let groups = Memberships::new(qp, &driver.listener, 4).unwrap();
        let silent = host.net.with(|fabric, _| {
            fabric.add_fault(|transit| on_send(transit) && sa_header(transit.packet).is_some(), Effect::Drop)
        });
        let patience = Patience { timeout_ms: 60_000, retries: 9 };
        groups.join(qp, &join(host, 1, true), patience, 1, at).unwrap();
        let before = time::now();
        groups.destroy(at);
        assert_eq!(driver.listener.join(at, 1), Err(JoinError::Cancelled));
        drop(groups);
        driver.stop(at);
        // The leave that takes back what may have been granted waits half a second.
        assert!(time::now().saturating_sub(before) < Duration::from_secs(1));
        drop(silent);
    });
}

/// The state at registration, then what the subnet manager and the link do; ports of others are not heard of.
#[test]
fn the_port_reports_its_state_and_then_that_this_was_all() {
    let bench = Bench::new(2, 9);
    bench.drive(0, |host, at| {
        let driver = Driver::start(host, at);
        let pnp = Pnp::register(&driver.resources.al, host.port_guid(), &driver.listener, at).unwrap();
        let complete = |heard: &Heard| {
            matches!(heard, Heard::Port(PortEventKind::RegistrationComplete, None)).then_some(())
        };
        driver.listener.wait(at, complete);
        let kinds: Vec<_> = driver
            .listener
            .all()
            .iter()
            .map(|heard| match heard {
                Heard::Port(kind, Some((PortState::Active, lid))) => {
                    assert_eq!(*lid, host.lid());
                    *kind
                }
                other => panic!("{other:?}"),
            })
            .collect();
        use PortEventKind::{Active, Add, Armed, Init};
        assert_eq!(kinds, [Add, Init, Armed, Active]);
        pnp.destroy(at).unwrap();
        drop(pnp);
        driver.stop(at);
    });
}

/// Joins, leaves and cancels crossing with the answers and with closing, in many interleavings: each request
/// that was accepted is heard of once, and nothing is left.
#[test]
fn requests_end_once_however_their_ends_interleave() {
    let mut crossed = 0;
    for seed in 0..400 {
        let bench = Bench::new(1, seed);
        let (joined, cancelled) = bench.drive(0, move |host, at| {
            let driver = Driver::start(host, at);
            driver.up(at);
            let qp = &driver.resources.qp;
            let groups = Memberships::new(qp, &driver.listener, 8).unwrap();
            let queries = Queries::new(&driver.resources.al, &driver.listener, 4).unwrap();
            let ids: Vec<_> = (0..6)
                .map(|i| groups.join(qp, &join(host, i, true), PATIENCE, u64::from(i), at).unwrap())
                .collect();
            let request = PathRequest {
                port_guid: host.port_guid(),
                source: host.gid(),
                destination: Destination::Lid(host.lid()),
                pkey: PKEY,
            };
            let asked: Vec<_> = (0..4).map(|i| queries.path(&request, PATIENCE, i, at).unwrap()).collect();
            // The answers come after some 60 to 75 microseconds.
            sleep(at, Duration::from_nanos(56_000 + seed % 40 * 600));
            let left = ids.iter().step_by(2).filter(|id| groups.leave(**id, at).is_ok()).count();
            queries.cancel(asked[1]);
            groups.destroy(at);
            queries.destroy(at);
            drop((groups, queries));
            let heard = driver.listener.all();
            let mut joined = 0;
            for token in 0..6 {
                let joins: Vec<_> = heard
                    .iter()
                    .filter_map(|heard| match heard {
                        Heard::Join(of, result) if *of == token => Some(result.is_ok()),
                        _ => None,
                    })
                    .collect();
                assert_eq!(joins.len(), 1, "seed {seed}, join {token}: {heard:?}");
                let leaves = heard.iter().filter(|heard| **heard == Heard::Leave(token)).count();
                assert_eq!(
                    leaves,
                    usize::from(joins[0]),
                    "seed {seed}, group {token}: left as often as joined"
                );
                joined += leaves;
            }
            assert!(left <= joined);
            for token in 0..4 {
                let count =
                    heard.iter().filter(|heard| matches!(heard, Heard::Query(of, _) if *of == token)).count();
                assert_eq!(count, 1, "seed {seed}, query {token}");
            }
            driver.stop(at);
            assert_eq!(host.ibal.live(Kind::Mcast), 0);
            (joined, 6 - joined)
        });
        crossed += usize::from(joined > 0 && cancelled > 0);
    }
    assert!(crossed > 50, "only {crossed} runs had both: the wait is off");
}
