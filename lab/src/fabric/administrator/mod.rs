//! The subnet administrator: answers MADs with MADs (IBA 15).
//!
//! Where IBA leaves a choice it does what OpenSM does, with two exceptions that the specification asks for
//! and OpenSM leaves out: an unknown attribute or method gets an answer that says so (IBA 13.4.7), and so
//! does a request that finds the administrator too busy (IBA 13.4.6.3), where OpenSM drops it. Requests get
//! no answer at all while there is no master, while the master is in its first sweep (IBA C15-0.1.3) and when
//! their SM_Key is wrong (IBA C15-0.1.5).

mod inform;
mod mcmember;
mod node;
mod path;
mod port_info;

pub use inform::Subscription;

use rand_chacha::rand_core::Rng;

use super::core::Fabric;
use super::ids::{Gid, Lid, Nanos, PKey, QKey, Qpn};
use super::topology::{Port, PortId};
use super::wire::grh::Grh;
use super::wire::lrh::Lrh;
use super::wire::mad::{Attribute, MadHeader, Method, Status, class};
use super::wire::sa::{ClassPortInfo, MadBytes, SaMad, class_port_info};
use super::wire::{Bth, Deth, Headers, OpCode, Packet};

/// Where a MAD came from, and so where its answer goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// LID of the sender.
    pub lid: Lid,
    /// QP of the sender.
    pub qpn: Qpn,
    /// LID the request was sent to: the answer comes from it.
    pub to: Lid,
    /// Service level it came with.
    pub sl: u8,
    /// Partition it came in.
    pub pkey: PKey,
    /// Source and destination GID, if it had a GRH.
    pub gids: Option<(Gid, Gid)>,
}

impl Source {
    /// The source of a packet for QP1, and the MAD in it. `None` for any other packet, or one with the wrong
    /// queue key (IBA 13.5.3.2).
    pub fn of(packet: &Packet) -> Option<(Self, &[u8])> {
        let (headers, payload) = packet.parse().ok()?;
        let deth = headers.deth?;
        (headers.bth.dest_qp == Qpn::GSI && deth.qkey == QKey::GSI).then_some((
            Self {
                lid: headers.lrh.slid,
                qpn: deth.src_qp,
                to: headers.lrh.dlid,
                sl: headers.lrh.sl,
                pkey: headers.bth.pkey,
                gids: headers.grh.map(|grh| (grh.sgid, grh.dgid)),
            },
            payload,
        ))
    }
}

/// What the administrator sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// When.
    pub at: Nanos,
    /// To whom.
    pub to: Source,
    /// The MAD.
    pub mad: MadBytes,
}

impl Reply {
    /// The packet that carries it, sent from the administrator's port. A request with a GRH is answered with
    /// one (IBA 13.5.4).
    pub fn packet(&self, from: &Port) -> Packet {
        let grh =
            self.to.gids.map(|(sgid, dgid)| Grh { sgid: dgid, dgid: sgid, hop_limit: 0, ..Grh::default() });
        // The administrator is a full member of the default partition; a limited member's key comes back
        // full.
        let pkey = from
            .pkeys
            .iter()
            .find(|entry| entry.partition() == self.to.pkey.partition())
            .copied()
            .unwrap_or(PKey::DEFAULT);
        let slid = if from.has_lid(self.to.to) { self.to.to } else { from.lid };
        let headers = Headers {
            lrh: Lrh { sl: self.to.sl, dlid: self.to.lid, slid, ..Lrh::default() },
            grh,
            bth: Bth { opcode: OpCode::UD_SEND_ONLY, pkey, dest_qp: self.to.qpn, ..Bth::default() },
            deth: Some(Deth { qkey: QKey::GSI, src_qp: Qpn::GSI }),
            ..Headers::default()
        };
        Packet::build(&headers, self.mad.len(), |space| space.copy_from_slice(&self.mad))
    }
}

/// What a request comes to: records, or a status that is an error.
type Records = Result<Vec<Vec<u8>>, Status>;

/// A request as its handler sees it.
struct Request<'a> {
    now: Nanos,
    mad: &'a SaMad,
    source: &'a Source,
    /// The port that asks.
    requester: PortId,
}

impl Fabric {
    /// Answers a MAD that reached QP1 of a manager's port. Packets that arrive there come here by themselves
    /// (see [`Fabric::transmit`]); this is for who has a MAD and no packet. `now` is when it arrived; each
    /// reply says when it leaves.
    pub fn administer(&mut self, now: Nanos, port: PortId, source: &Source, mad: &[u8]) -> Vec<Reply> {
        let Ok(mad) = SaMad::parse(mad) else { return Vec::new() };
        if mad.header.class != class::SUBN_ADM || mad.header.method.is_response() {
            return Vec::new();
        }
        if self.manager.port != Some(port) || self.manager.first_sweep {
            return Vec::new();
        }
        if mad.sa.sm_key != 0 && mad.sa.sm_key != self.manager.config.sm_key {
            return Vec::new();
        }
        if mad.header.base_version != 1 || mad.header.class_version != class::SUBN_ADM_VERSION {
            return self.reply(now, source, &[mad.respond(Status::UNSUPPORTED_VERSION, &[])]);
        }
        // Acknowledgements of a table's segments need no answer: segments are not sent again here.
        if mad.header.method == Method::GET_TABLE && mad.rmpp.kind > 1 {
            return Vec::new();
        }
        if self.is_too_busy(now) {
            let reply = Reply { at: now, to: *source, mad: mad.respond(Status::BUSY, &[]).to_bytes() };
            return vec![reply];
        }
        let Some(requester) = self.port_by_lid(source.lid) else {
            // OpenSM answers nobody it does not know.
            return Vec::new();
        };
        let request = Request { now, mad: &mad, source, requester };
        let records = self.dispatch(&request);
        self.reply(now, source, &answer(&mad, records))
    }

    fn dispatch(&mut self, request: &Request<'_>) -> Records {
        let header: &MadHeader = &request.mad.header;
        let is_query = matches!(header.method, Method::GET | Method::GET_TABLE);
        match header.attribute {
            Attribute::CLASS_PORT_INFO if header.method == Method::GET => Ok(self.class_port_info()),
            Attribute::PORT_INFO_RECORD if is_query => Ok(self.port_info_records(request)),
            Attribute::NODE_RECORD if is_query => Ok(self.node_records(request)),
            Attribute::PATH_RECORD if is_query => self.path_records(request),
            Attribute::MC_MEMBER_RECORD if is_query => Ok(self.member_records(request)),
            Attribute::MC_MEMBER_RECORD if header.method == Method::SET => self.join(request),
            Attribute::MC_MEMBER_RECORD if header.method == Method::DELETE => self.leave_group(request),
            Attribute::INFORM_INFO if header.method == Method::SET => self.subscribe(request),
            Attribute::CLASS_PORT_INFO
            | Attribute::PORT_INFO_RECORD
            | Attribute::NODE_RECORD
            | Attribute::PATH_RECORD
            | Attribute::MC_MEMBER_RECORD
            | Attribute::INFORM_INFO => Err(Status::REQ_INVALID),
            _ => Err(Status::UNSUPPORTED_METHOD_ATTRIBUTE),
        }
    }

    fn class_port_info(&self) -> Vec<Vec<u8>> {
        let info = ClassPortInfo {
            base_version: 1,
            class_version: class::SUBN_ADM_VERSION,
            capability_mask: class_port_info::capability::UD_MULTICAST
                | class_port_info::capability::GET_SET_NOTICE
                | class_port_info::capability::PORT_INFO_CAPABILITY_MATCH,
            capability_mask2: class_port_info::capability2::SEND_ONLY_FULL_MEMBER,
            response_time_value: self.manager.config.response_time_value,
            redirect_qp: Qpn::GSI,
            redirect_qkey: QKey::GSI,
            trap_qkey: QKey::GSI,
            ..ClassPortInfo::default()
        };
        vec![info.to_bytes().to_vec()]
    }

    /// When the answers leave: one request is served after the other.
    fn reply(&mut self, now: Nanos, to: &Source, mads: &[SaMad]) -> Vec<Reply> {
        let config = &self.manager.config;
        let jitter = match config.response_jitter {
            0 => 0,
            most => self.rng.next_u64() % (most + 1),
        };
        let at = now.max(self.manager.busy_until) + config.service_time;
        self.manager.busy_until = at;
        let at = at + config.response_time + jitter;
        mads.iter().map(|mad| Reply { at, to: *to, mad: mad.to_bytes() }).collect()
    }

    fn is_too_busy(&self, now: Nanos) -> bool {
        let waiting = self.manager.busy_until.saturating_sub(now);
        let config = &self.manager.config;
        config.queue_limit.is_some_and(|limit| waiting > config.service_time.saturating_mul(limit as u64))
    }

    /// The port that the manager knows by a LID, LMC considered.
    fn port_by_lid(&self, lid: Lid) -> Option<PortId> {
        self.manager.known.iter().copied().find(|&id| self.topology.port(id).has_lid(lid))
    }

    /// Whether two ports have a partition in which they can talk.
    fn share_pkey(&self, a: PortId, b: PortId) -> bool {
        self.common_pkey(a, b).is_some()
    }

    /// The first key of `a` with which it can talk to `b`.
    fn common_pkey(&self, a: PortId, b: PortId) -> Option<PKey> {
        let other = self.topology.port(b);
        self.topology.port(a).pkeys.iter().copied().find(|&key| other.matches_pkey(key))
    }

    /// Whether a port is in the partition of `pkey`, in whatever way.
    fn has_partition(&self, port: PortId, pkey: PKey) -> bool {
        self.topology.port(port).has_partition(pkey)
    }
}

/// The MADs that answer `mad` (IBA 15.2.2, C15-0.1.30: a Get finds exactly one record).
fn answer(mad: &SaMad, records: Records) -> Vec<SaMad> {
    let is_get = mad.header.method == Method::GET;
    match records {
        Err(status) => vec![mad.respond(status, &[])],
        Ok(records) if mad.header.method == Method::GET_TABLE => mad.respond_table(&records),
        Ok(records) => match records.as_slice() {
            [] => vec![mad.respond(Status::NO_RECORDS, &[])],
            [_, _, ..] if is_get => vec![mad.respond(Status::TOO_MANY_RECORDS, &[])],
            [record, ..] => vec![mad.respond(Status::OK, record)],
        },
    }
}
