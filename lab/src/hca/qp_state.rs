//! The queue pair state machine: which transitions exist, and which attributes each takes.
//!
//! Pure: nothing here knows of memory, time or the kernel. Source: InfiniBand Architecture Specification vol. 1,
//! §10.3.1 (queue pair states) and §11.2.5.2, table 91 "QP state transition properties"; the split of the
//! attributes over the request's three unions is `ib_qp_mod_t` of the access layer (ib_types.h).

use std::fmt;

/// The transport service of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Service {
    /// Reliable connection.
    Rc,
    /// Unreliable datagram.
    Ud,
}

/// State of a queue pair (§10.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QpState {
    /// Created, or torn down: no work request may be posted.
    Reset,
    /// Receives may be posted, none is processed.
    Init,
    /// Ready to receive.
    Rtr,
    /// Ready to send.
    Rts,
    /// Send queue drained: sends are queued, not started.
    Sqd,
    /// Send queue error: sends flush, receives go on.
    Sqe,
    /// Both queues flush.
    Error,
}

impl fmt::Display for QpState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            QpState::Reset => "RESET",
            QpState::Init => "INIT",
            QpState::Rtr => "RTR",
            QpState::Rts => "RTS",
            QpState::Sqd => "SQD",
            QpState::Sqe => "SQE",
            QpState::Error => "ERROR",
        })
    }
}

impl QpState {
    /// May a send be posted? (§10.3.1, C10-22 ff.: RESET, INIT and RTR refuse it at once.)
    pub fn accepts_send(self) -> bool {
        matches!(self, QpState::Rts | QpState::Sqd | QpState::Sqe | QpState::Error)
    }

    /// May a receive be posted? Only RESET refuses it.
    pub fn accepts_recv(self) -> bool {
        self != QpState::Reset
    }

    /// Does an arriving packet find a receive queue that works?
    pub fn receives(self) -> bool {
        matches!(self, QpState::Rtr | QpState::Rts | QpState::Sqd | QpState::Sqe)
    }

    /// Are send work requests completed as flushed?
    pub fn flushes_sends(self) -> bool {
        matches!(self, QpState::Sqe | QpState::Error)
    }
}

/// Address vector of a connected queue pair, host order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PathAttr {
    /// Port of the HCA, from 1.
    pub port: u8,
    /// Destination LID.
    pub dlid: u16,
    /// Service level.
    pub sl: u8,
    /// Low bits of the source LID.
    pub path_bits: u8,
    /// Path MTU as IBA codes it: 1 = 256 to 5 = 4096.
    pub mtu: u8,
}

/// When and how often a connected queue pair sends again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Retry {
    /// Local ACK timeout: 4.096 us times two to this power; 0 is for ever.
    pub timeout: u8,
    /// Times to send again after a timeout or a sequence error.
    pub count: u8,
    /// Times to send again after "receiver not ready"; 7 is for ever.
    pub rnr: u8,
}

/// Optional attributes of a request (`opts`), and those that the target state always carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Attributes {
    /// P_Key index.
    pub pkey_index: Option<u16>,
    /// Primary physical port.
    pub port: Option<u8>,
    /// Q_Key.
    pub qkey: Option<u32>,
    /// Access flags of connected services.
    pub access: Option<u32>,
    /// Initial packet sequence number of the send queue.
    pub sq_psn: Option<u32>,
    /// Expected packet sequence number of the receive queue.
    pub rq_psn: Option<u32>,
    /// Queue pair number of the peer.
    pub dest_qpn: Option<u32>,
    /// Path to the peer.
    pub path: Option<PathAttr>,
    /// When and how often a connected queue pair sends again.
    pub retry: Option<Retry>,
    /// Code of the shortest time that a peer is asked to wait for a receive (§9.7.5.2.8).
    pub rnr_timer: Option<u8>,
}

/// A request to change state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modify {
    /// State asked for.
    pub to: QpState,
    /// Attributes that come along.
    pub attributes: Attributes,
    /// With SQD: report when drained.
    pub notify_drained: bool,
}

impl Modify {
    /// A request without attributes.
    pub fn to(to: QpState) -> Self {
        Self { to, attributes: Attributes::default(), notify_drained: false }
    }
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Table 91 has no such edge.
    NoSuchTransition,
    /// The edge requires an attribute that is missing.
    Missing(&'static str),
    /// The edge does not take this attribute.
    NotAllowed(&'static str),
    /// A value outside its range (24-bit PSN, port number, MTU code).
    OutOfRange(&'static str),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::NoSuchTransition => f.write_str("there is no such transition"),
            Refused::Missing(what) => write!(f, "the transition requires {what}"),
            Refused::NotAllowed(what) => write!(f, "the transition does not take {what}"),
            Refused::OutOfRange(what) => write!(f, "{what} is out of range"),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    No,
    May,
    Must,
}

/// One edge of table 91: what it needs of each attribute.
#[derive(Clone, Copy)]
struct Edge {
    pkey_index: Need,
    port: Need,
    qkey: Need,
    access: Need,
    sq_psn: Need,
    connect: Need,
    rnr: Need,
    retry: Need,
}

const BARE: Edge = Edge {
    pkey_index: Need::No,
    port: Need::No,
    qkey: Need::No,
    access: Need::No,
    sq_psn: Need::No,
    connect: Need::No,
    rnr: Need::No,
    retry: Need::No,
};

/// The edge from one state to another, if there is one.
fn edge(service: Service, from: QpState, to: QpState) -> Option<Edge> {
    use Need::{May, Must, No};
    use QpState::{Error, Init, Reset, Rtr, Rts, Sqd, Sqe};
    let ud = service == Service::Ud;
    // A Q_Key belongs to datagram services, access flags to connected ones.
    let qkey = if ud { May } else { No };
    let access = if ud { No } else { May };
    Some(match (from, to) {
        // RESET holds nothing to flush, so table 91 gives it no way to ERROR.
        (Reset, Error) => return None,
        (_, Reset | Error) | (Rts, Sqd) => BARE,
        (Reset, Init) => Edge {
            pkey_index: Must,
            port: Must,
            qkey: if ud { Must } else { No },
            access: if ud { No } else { Must },
            ..BARE
        },
        (Init, Init) => Edge { pkey_index: May, port: May, qkey, access, ..BARE },
        (Init, Rtr) => Edge {
            pkey_index: May,
            qkey,
            access,
            connect: if ud { No } else { Must },
            rnr: if ud { No } else { Must },
            ..BARE
        },
        (Rtr, Rts) => Edge {
            qkey,
            access,
            sq_psn: Must,
            rnr: if ud { No } else { May },
            retry: if ud { No } else { Must },
            ..BARE
        },
        (Rts | Sqd, Rts) => Edge { qkey, access, rnr: if ud { No } else { May }, ..BARE },
        (Sqd, Sqd) => Edge { pkey_index: May, qkey, access, ..BARE },
        // Only a datagram service survives a send error; a connected one goes to ERROR.
        (Sqe, Rts) if ud => Edge { qkey, ..BARE },
        _ => return None,
    })
}

/// Checks a request against table 91.
///
/// # Errors
/// The first reason why the specification refuses it.
pub fn check(service: Service, from: QpState, modify: &Modify) -> Result<(), Refused> {
    let edge = edge(service, from, modify.to).ok_or(Refused::NoSuchTransition)?;
    let a = &modify.attributes;
    let rules = [
        (edge.pkey_index, a.pkey_index.is_some(), "a P_Key index"),
        (edge.port, a.port.is_some(), "a port"),
        (edge.qkey, a.qkey.is_some(), "a Q_Key"),
        (edge.access, a.access.is_some(), "access flags"),
        (edge.sq_psn, a.sq_psn.is_some(), "a send PSN"),
        (edge.connect, a.rq_psn.is_some(), "a receive PSN"),
        (edge.connect, a.dest_qpn.is_some(), "a destination QPN"),
        (edge.connect, a.path.is_some(), "a primary path"),
        (edge.retry, a.retry.is_some(), "retry counts"),
        (edge.rnr, a.rnr_timer.is_some(), "an RNR timer"),
    ];
    for (need, present, what) in rules {
        match (need, present) {
            (Need::Must, false) => return Err(Refused::Missing(what)),
            (Need::No, true) => return Err(Refused::NotAllowed(what)),
            _ => {}
        }
    }
    if a.sq_psn.is_some_and(|psn| psn > 0xff_ffff) {
        return Err(Refused::OutOfRange("the send PSN"));
    }
    if a.rq_psn.is_some_and(|psn| psn > 0xff_ffff) {
        return Err(Refused::OutOfRange("the receive PSN"));
    }
    if a.dest_qpn.is_some_and(|qpn| qpn > 0xff_ffff) {
        return Err(Refused::OutOfRange("the destination QPN"));
    }
    if a.path.is_some_and(|p| !(1..=5).contains(&p.mtu)) {
        return Err(Refused::OutOfRange("the path MTU"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATES: [QpState; 7] = [
        QpState::Reset,
        QpState::Init,
        QpState::Rtr,
        QpState::Rts,
        QpState::Sqd,
        QpState::Sqe,
        QpState::Error,
    ];

    /// A request with exactly what a datagram queue pair must carry.
    fn ud(to: QpState) -> Modify {
        let mut m = Modify::to(to);
        match to {
            QpState::Init => {
                m.attributes.pkey_index = Some(0);
                m.attributes.port = Some(1);
                m.attributes.qkey = Some(0xb1b);
            }
            QpState::Rts => m.attributes.sq_psn = Some(0),
            _ => {}
        }
        m
    }

    fn edge_exists(from: QpState, to: QpState) -> bool {
        edge(Service::Ud, from, to).is_some()
    }

    /// Table 91: the edges of a datagram queue pair, all of them and no other.
    #[test]
    fn datagram_edges_are_those_of_table_91() {
        use QpState::{Error, Init, Reset, Rtr, Rts, Sqd, Sqe};
        let allowed = [
            (Reset, Reset),
            (Reset, Init),
            (Init, Reset),
            (Init, Error),
            (Init, Init),
            (Init, Rtr),
            (Rtr, Reset),
            (Rtr, Error),
            (Rtr, Rts),
            (Rts, Reset),
            (Rts, Error),
            (Rts, Rts),
            (Rts, Sqd),
            (Sqd, Reset),
            (Sqd, Error),
            (Sqd, Rts),
            (Sqd, Sqd),
            (Sqe, Reset),
            (Sqe, Error),
            (Sqe, Rts),
            (Error, Reset),
            (Error, Error),
        ];
        for from in STATES {
            for to in STATES {
                assert_eq!(edge_exists(from, to), allowed.contains(&(from, to)), "{from} -> {to}");
            }
        }
    }

    /// A connected queue pair has no way out of SQE but RESET and ERROR.
    #[test]
    fn connected_services_do_not_leave_sqe_for_rts() {
        assert!(edge(Service::Rc, QpState::Sqe, QpState::Rts).is_none());
        assert!(edge(Service::Rc, QpState::Sqe, QpState::Error).is_some());
    }

    /// Table 91, RESET to INIT: P_Key index, port and Q_Key are all required of a datagram queue pair.
    #[test]
    fn reset_to_init_requires_each_attribute() {
        assert_eq!(check(Service::Ud, QpState::Reset, &ud(QpState::Init)), Ok(()));
        let mut m = ud(QpState::Init);
        m.attributes.qkey = None;
        assert_eq!(check(Service::Ud, QpState::Reset, &m), Err(Refused::Missing("a Q_Key")));
        let mut m = ud(QpState::Init);
        m.attributes.port = None;
        assert_eq!(check(Service::Ud, QpState::Reset, &m), Err(Refused::Missing("a port")));
        let mut m = ud(QpState::Init);
        m.attributes.pkey_index = None;
        assert_eq!(check(Service::Ud, QpState::Reset, &m), Err(Refused::Missing("a P_Key index")));
    }

    /// Table 91, RTS to RTS: the Q_Key may change, the P_Key index may not.
    #[test]
    fn rts_to_rts_takes_a_qkey_only() {
        let mut m = Modify::to(QpState::Rts);
        m.attributes.qkey = Some(1);
        assert_eq!(check(Service::Ud, QpState::Rts, &m), Ok(()));
        m.attributes.pkey_index = Some(1);
        assert_eq!(check(Service::Ud, QpState::Rts, &m), Err(Refused::NotAllowed("a P_Key index")));
    }

    /// §9.7.1: a PSN has 24 bits.
    #[test]
    fn a_psn_of_more_than_24_bits_is_refused() {
        let mut m = ud(QpState::Rts);
        m.attributes.sq_psn = Some(0x100_0000);
        assert_eq!(check(Service::Ud, QpState::Rtr, &m), Err(Refused::OutOfRange("the send PSN")));
    }

    /// §10.3.1: what each state does with a posted request.
    #[test]
    fn states_accept_what_the_specification_says() {
        let sends: Vec<_> = STATES.iter().filter(|s| s.accepts_send()).collect();
        assert_eq!(sends, [&QpState::Rts, &QpState::Sqd, &QpState::Sqe, &QpState::Error]);
        assert!(STATES.iter().all(|s| s.accepts_recv() == (*s != QpState::Reset)));
    }
}
