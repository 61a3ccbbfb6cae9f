//! How an HCA is set up.

use crate::fabric::ids::Guid;
use crate::fabric::topology::PortId;

/// What an HCA can hold (IBA vol. 1 §11.2.1.2). Defaults are those of a small adapter of the kind that the access
/// layer drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Queue pairs.
    pub qps: u32,
    /// Work requests outstanding in one queue.
    pub wrs: u32,
    /// Elements of one request.
    pub sges: u32,
    /// Completion queues.
    pub cqs: u32,
    /// Entries of one completion queue.
    pub cqes: u32,
    /// Protection domains.
    pub pds: u32,
    /// Memory regions.
    pub regions: u32,
    /// Address vectors.
    pub avs: u32,
    /// Multicast groups that queue pairs are attached to.
    pub groups: u32,
    /// Queue pairs attached to one group.
    pub qps_per_group: u32,
    /// Longest inline send in bytes.
    pub inline: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            qps: 1 << 16,
            wrs: 16_384,
            sges: 32,
            cqs: 1 << 16,
            cqes: (1 << 22) - 1,
            pds: 1 << 15,
            regions: 1 << 17,
            avs: 1 << 17,
            groups: 1 << 13,
            qps_per_group: 56,
            inline: 512,
        }
    }
}

/// How an HCA is set up.
#[derive(Clone, Debug)]
pub struct HcaConfig {
    /// Its number in the simulation (12 bits), part of every handle.
    pub number: u16,
    /// Node GUID.
    pub guid: Guid,
    /// Its ports on the fabric, port 1 first.
    pub ports: Vec<PortId>,
    /// Number of the first queue pair; 0 and 1 are the management ones.
    pub first_qpn: u32,
    /// What it can hold.
    pub limits: Limits,
}
