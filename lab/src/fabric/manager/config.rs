//! How the subnet manager is set up.

use crate::fabric::ids::{Gid, Guid, Lid, Nanos, PKey, QKey};
use crate::fabric::rate::{Mtu, Rate};

/// Which LIDs ports get.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LidPolicy {
    /// The lowest that are free, in the order in which ports are found.
    #[default]
    Sequential,
    /// Any of the unicast range, by the fabric's generator.
    Random,
}

/// Who is in a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Members {
    /// Every port, as full or as limited member.
    All {
        /// Full membership.
        full: bool,
    },
    /// These port GUIDs, each as full (`true`) or limited member.
    Ports(Vec<(Guid, bool)>),
}

/// The IPoIB broadcast group that a partition with flag `ipoib` gets (OpenSM, partitions.conf).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpoibGroup {
    /// MTU, default 2048.
    pub mtu: Mtu,
    /// Rate, default 10 Gb/s.
    pub rate: Rate,
    /// Service level, default 0.
    pub sl: u8,
    /// Queue key, default 0x0b1b.
    pub qkey: QKey,
    /// Scope, default 2 (link-local).
    pub scope: u8,
}

impl Default for IpoibGroup {
    /// OpenSM's defaults (partitions.conf in doc/partition-config.txt).
    fn default() -> Self {
        Self {
            mtu: Mtu::B2048,
            rate: Rate::of(crate::fabric::LinkWidth::X4, crate::fabric::LinkSpeed::Sdr),
            sl: 0,
            qkey: QKey(0x0B1B),
            scope: 2,
        }
    }
}

impl IpoibGroup {
    /// The MGID of the IPv4 broadcast group of a partition: ff1S:401b:P_Key::ffff:ffff (RFC 4391, section 4).
    pub fn mgid(&self, pkey: PKey) -> Gid {
        let full = pkey.0 | 0x8000;
        let mut mgid = [0; 16];
        mgid[0] = 0xFF;
        mgid[1] = 0x10 | self.scope & 0xF;
        mgid[2..4].copy_from_slice(&[0x40, 0x1B]);
        mgid[4..6].copy_from_slice(&full.to_be_bytes());
        mgid[12..].fill(0xFF);
        Gid(mgid)
    }
}

/// A partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Its key; the membership bit does not matter.
    pub pkey: PKey,
    /// Who is in it.
    pub members: Members,
    /// The broadcast group that exists from the start, `None` to leave creating it to the first who joins.
    pub ipoib: Option<IpoibGroup>,
}

impl Default for Partition {
    /// The default partition, everybody a full member, with IPoIB.
    fn default() -> Self {
        Self { pkey: PKey::DEFAULT, members: Members::All { full: true }, ipoib: Some(IpoibGroup::default()) }
    }
}

/// The subnet manager's settings.
#[derive(Clone, Debug)]
pub struct ManagerConfig {
    /// Which LIDs ports get.
    pub lid_policy: LidPolicy,
    /// LID mask control of end ports, 0 to 7.
    pub lmc: u8,
    /// Prefix of every GID of the subnet.
    pub subnet_prefix: u64,
    /// SubnetTimeOut of every port, OpenSM's default 18 (about 1 s).
    pub subnet_timeout: u8,
    /// PacketLifeTime of paths and groups, OpenSM's default 18.
    pub packet_lifetime: u8,
    /// ResponseTimeValue of the administrator in its ClassPortInfo.
    pub response_time_value: u8,
    /// SM_Key that makes a request trusted. A request with any other but 0 gets no answer.
    pub sm_key: u64,
    /// Service level of paths.
    pub sl: u8,
    /// Partitions. One for the default key is always there, if only with the manager as full and the others
    /// as limited members.
    pub partitions: Vec<Partition>,
    /// Whether switch ports drop packets of partitions that the port behind them is not in (OpenSM,
    /// `part_enforce both`).
    pub enforce_partitions: bool,
    /// From a cause (link change, operator) to the end of the sweep it brings about.
    pub sweep_time: Nanos,
    /// Time the administrator is busy with one request.
    pub service_time: Nanos,
    /// From the end of that to its answer on the wire.
    pub response_time: Nanos,
    /// At most so much is added to it, by the fabric's generator.
    pub response_jitter: Nanos,
    /// Requests that may wait; more are answered BUSY. `None` for no limit.
    pub queue_limit: Option<usize>,
    /// First to last multicast LID that may be given to groups.
    pub multicast_lids: (Lid, Lid),
    /// Whether a joiner may create a group (OpenSM, `no_partition... create`): if not, joins need an existing
    /// one.
    pub may_create_groups: bool,
}

impl Default for ManagerConfig {
    fn default() -> Self {
        Self {
            lid_policy: LidPolicy::Sequential,
            lmc: 0,
            subnet_prefix: Gid::LINK_LOCAL_PREFIX,
            subnet_timeout: 18,
            packet_lifetime: 18,
            response_time_value: 16,
            sm_key: 1,
            sl: 0,
            partitions: vec![Partition::default()],
            enforce_partitions: true,
            sweep_time: 20_000_000,
            service_time: 2_000,
            response_time: 50_000,
            response_jitter: 20_000,
            queue_limit: None,
            multicast_lids: (Lid::MULTICAST_MIN, Lid(0xFFFE)),
            may_create_groups: true,
        }
    }
}
