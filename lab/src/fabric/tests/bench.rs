//! A fabric with a clock, for tests: sends, lets time pass, asks the administrator.

use crate::fabric::event::PortEvent;
use crate::fabric::ids::{Gid, Guid, Lid, Nanos, PKey, QKey, Qpn};
use crate::fabric::manager::ManagerConfig;
use crate::fabric::rate::Mtu;
use crate::fabric::topology::builder::LinkSettings;
use crate::fabric::topology::{PortId, PortState, Topology};
use crate::fabric::wire::mad::{Attribute, Method, Status};
use crate::fabric::wire::sa::mcmember::{McMemberRecord, mask};
use crate::fabric::wire::sa::path::PathRecord;
use crate::fabric::wire::sa::{SaMad, reassemble};
use crate::fabric::wire::{Bth, Deth, Grh, Headers, Lrh, OpCode, Packet};
use crate::fabric::{Delivery, Fabric, FabricConfig, Output};

/// A fabric, what time it is there, and what has happened.
pub struct Bench {
    pub fabric: Fabric,
    pub now: Nanos,
    pub events: Vec<(PortId, PortEvent)>,
    pub arrived: Vec<Delivery>,
    transaction: u64,
}

impl Bench {
    /// `hosts` hosts of the default topology after the first sweep.
    pub fn new(hosts: usize) -> Self {
        Self::with(hosts, ManagerConfig::default())
    }

    pub fn with(hosts: usize, manager: ManagerConfig) -> Self {
        let topology = Topology::default_for(hosts, LinkSettings::default()).unwrap();
        Self::on(topology, FabricConfig { seed: 7, manager })
    }

    pub fn on(topology: Topology, config: FabricConfig) -> Self {
        let fabric = Fabric::new(topology, config);
        let mut bench = Self { fabric, now: 0, events: Vec::new(), arrived: Vec::new(), transaction: 0 };
        bench.settle();
        bench
    }

    pub fn host(&self, index: usize) -> PortId {
        self.fabric.topology().host(index).unwrap()
    }

    pub fn lid(&self, index: usize) -> Lid {
        self.fabric.port(self.host(index)).lid
    }

    pub fn gid(&self, index: usize) -> Gid {
        self.fabric.port(self.host(index)).default_gid()
    }

    pub fn guid(&self, index: usize) -> Guid {
        self.fabric.port(self.host(index)).guid
    }

    pub fn state(&self, index: usize) -> PortState {
        self.fabric.port(self.host(index)).state
    }

    /// Lets everything happen that is due, however late, and everything arrive that is under way.
    pub fn settle(&mut self) {
        let mut under_way = std::mem::take(&mut self.arrived);
        let mut arrived = Vec::new();
        while let Some(at) = self.fabric.poll_at() {
            self.now = self.now.max(at);
            for output in self.fabric.poll(self.now) {
                match output {
                    Output::Delivery(delivery) => under_way.push(delivery),
                    Output::Event { port, event, .. } => self.events.push((port, event)),
                }
            }
        }
        under_way.sort_by_key(|delivery| delivery.at);
        for delivery in under_way {
            self.now = self.now.max(delivery.at);
            if self.fabric.receive(&delivery).is_ok() {
                arrived.push(delivery);
            }
        }
        self.arrived = arrived;
    }

    /// Events of a host since the last call.
    pub fn take_events(&mut self, index: usize) -> Vec<PortEvent> {
        let port = self.host(index);
        let (of_port, others) = std::mem::take(&mut self.events).into_iter().partition(|&(id, _)| id == port);
        self.events = others;
        of_port.into_iter().map(|(_, event)| event).collect()
    }

    /// A datagram of `len` bytes from one host to a LID.
    pub fn datagram(&self, from: usize, to: Lid, pkey: PKey, len: usize) -> Packet {
        let grh = to.is_multicast().then(|| Grh { sgid: self.gid(from), ..Grh::default() });
        let dest_qp = if to.is_multicast() { Qpn::MULTICAST } else { Qpn::new(0x48) };
        let headers = Headers {
            lrh: Lrh { dlid: to, slid: self.lid(from), ..Lrh::default() },
            grh,
            bth: Bth { opcode: OpCode::UD_SEND_ONLY, pkey, dest_qp, ..Bth::default() },
            deth: Some(Deth { qkey: QKey(0xB1B), src_qp: Qpn::new(0x48) }),
            ..Headers::default()
        };
        Packet::build(&headers, len, |space| {
            for (byte, value) in space.iter_mut().zip(0u8..=255) {
                *byte = value;
            }
        })
    }

    /// Sends a datagram of 64 bytes in the default partition and says which hosts get it.
    pub fn send(&mut self, from: usize, to: Lid) -> Vec<PortId> {
        let packet = self.datagram(from, to, PKey::DEFAULT, 64);
        self.send_packet(from, packet)
    }

    pub fn send_packet(&mut self, from: usize, packet: Packet) -> Vec<PortId> {
        let port = self.host(from);
        let deliveries = self.fabric.transmit(self.now, port, packet);
        let mut reached: Vec<PortId> =
            deliveries.iter().filter(|d| self.fabric.receive(d).is_ok()).map(|d| d.port).collect();
        reached.sort();
        reached
    }

    /// Sends a MAD to the administrator as a packet from a host's QP1 and returns the MADs that come back.
    pub fn ask(&mut self, from: usize, mad: &SaMad) -> Vec<SaMad> {
        let port = self.fabric.port(self.host(from));
        let headers = Headers {
            lrh: Lrh { dlid: port.sm_lid, slid: port.lid, sl: port.sm_sl, ..Lrh::default() },
            bth: Bth {
                opcode: OpCode::UD_SEND_ONLY,
                pkey: port.pkeys[0],
                dest_qp: Qpn::GSI,
                ..Bth::default()
            },
            deth: Some(Deth { qkey: QKey::GSI, src_qp: Qpn::GSI }),
            ..Headers::default()
        };
        let bytes = mad.to_bytes();
        let packet = Packet::build(&headers, bytes.len(), |space| space.copy_from_slice(&bytes));
        self.arrived.clear();
        let id = self.host(from);
        assert!(
            self.fabric.transmit(self.now, id, packet).is_empty(),
            "the fabric keeps what a manager gets"
        );
        self.settle();
        let arrived = std::mem::take(&mut self.arrived);
        arrived
            .iter()
            .filter(|delivery| delivery.port == id)
            .map(|delivery| SaMad::parse(delivery.packet.parse().unwrap().1).unwrap())
            .filter(|answer| answer.header.transaction_id == mad.header.transaction_id)
            .collect()
    }

    /// A request with a transaction of its own.
    pub fn request(&mut self, method: Method, attribute: Attribute, mask: u64, record: &[u8]) -> SaMad {
        self.transaction += 1;
        SaMad::request(method, attribute, 0x5000_0000 + self.transaction, mask, record)
    }

    /// Asks and takes the records out of the answer, or its status.
    pub fn query(
        &mut self,
        from: usize,
        method: Method,
        attribute: Attribute,
        mask: u64,
        record: &[u8],
    ) -> Result<Vec<Vec<u8>>, Status> {
        let request = self.request(method, attribute, mask, record);
        let answers = self.ask(from, &request);
        let first = answers.first().expect("an answer");
        assert_eq!(first.header.method, method.response());
        assert_eq!(first.header.attribute, attribute);
        if first.header.status == Status::OK {
            Ok(reassemble(&answers).expect("whole table"))
        } else {
            Err(first.header.status)
        }
    }

    pub fn join(&mut self, host: usize, record: McMemberRecord, mask: u64) -> Result<McMemberRecord, Status> {
        self.member(host, Method::SET, record, mask)
    }

    pub fn member(
        &mut self,
        host: usize,
        method: Method,
        record: McMemberRecord,
        mask: u64,
    ) -> Result<McMemberRecord, Status> {
        self.query(host, method, Attribute::MC_MEMBER_RECORD, mask, &record.to_bytes())
            .map(|records| McMemberRecord::parse_slice(&records[0]).unwrap())
    }

    /// Joins, or creates, with every component that creating needs.
    pub fn create(&mut self, host: usize, mgid: Gid, join_state: u8) -> Result<McMemberRecord, Status> {
        let record = self.creation(host, mgid, join_state);
        self.join(host, record, mask::CREATE)
    }

    pub fn creation(&self, host: usize, mgid: Gid, join_state: u8) -> McMemberRecord {
        McMemberRecord {
            mgid,
            port_gid: self.gid(host),
            qkey: QKey(0xB1B),
            pkey: PKey::DEFAULT,
            join_state,
            ..McMemberRecord::default()
        }
    }

    pub fn leave(&mut self, host: usize, mgid: Gid, join_state: u8) -> Result<McMemberRecord, Status> {
        let record =
            McMemberRecord { mgid, port_gid: self.gid(host), join_state, ..McMemberRecord::default() };
        self.member(host, Method::DELETE, record, mask::JOIN)
    }

    pub fn paths(
        &mut self,
        host: usize,
        method: Method,
        record: PathRecord,
        mask: u64,
    ) -> Result<Vec<PathRecord>, Status> {
        self.query(host, method, Attribute::PATH_RECORD, mask, &record.to_bytes())
            .map(|records| records.iter().map(|bytes| PathRecord::parse_slice(bytes).unwrap()).collect())
    }
}

/// Any transient MGID that is not IPoIB's.
pub fn mgid(n: u8) -> Gid {
    let mut mgid = [0; 16];
    mgid[..2].copy_from_slice(&[0xFF, 0x12]);
    mgid[15] = n;
    Gid(mgid)
}

/// An IPoIB MGID of the default partition.
pub fn ipoib_mgid(signature: u16, last: u32) -> Gid {
    let mut mgid = [0; 16];
    mgid[..2].copy_from_slice(&[0xFF, 0x12]);
    mgid[2..4].copy_from_slice(&signature.to_be_bytes());
    mgid[4..6].copy_from_slice(&[0xFF, 0xFF]);
    mgid[12..].copy_from_slice(&last.to_be_bytes());
    Gid(mgid)
}

/// The smallest MTU, for links that cannot do more.
pub const SMALL: Mtu = Mtu::B1024;
