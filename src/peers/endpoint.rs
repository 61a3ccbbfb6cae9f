//! One peer.

use super::av::AvId;
use super::fifo::Hook;
use super::path::Path;
use super::pending::Queue;
use super::resolve::Resolution;
use super::time::Time;
use crate::ipoib::{Gid, HwAddr, Lid, MacAddr, Qpn};

/// Whom to ask the subnet administrator for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The port with this GID.
    Gid(Gid),
    /// The port with this LID, whose GID is not known yet.
    Lid(Lid),
}

/// A peer: an IPoIB interface behind one Ethernet address.
#[derive(Debug)]
pub(super) struct Endpoint {
    /// How Windows calls it.
    pub mac: MacAddr,
    /// Its UD QP.
    pub qpn: Qpn,
    /// The base LID it was last seen at.
    pub lid: Lid,
    /// Its port, once known.
    pub gid: Option<Gid>,
    /// In the index by MAC.
    pub by_mac: bool,
    /// In the index by GID and QPN.
    pub by_address: bool,
    /// In the index by LID and QPN.
    pub by_route: bool,
    /// The address handle, if it can be sent to.
    pub av: Option<AvId>,
    /// What the handle is, or is to be, made from.
    pub path: Option<Path>,
    /// How far finding it is.
    pub resolution: Resolution,
    /// The table's epoch when its path was last asked for.
    pub epoch: u32,
    /// When its path was last asked for.
    pub asked: Option<Time>,
    /// Packets that wait.
    pub pending: Queue,
    /// When it was last sent to or heard from.
    pub last_used: Time,
    /// In the worker's list.
    pub work: Hook,
    /// In the list of those that wait for time to pass.
    pub waiting: Hook,
    /// In the list of those whose queue may be sent.
    pub ready: Hook,
}

impl Endpoint {
    pub(super) const fn new(mac: MacAddr, qpn: Qpn, lid: Lid, epoch: u32, now: Time) -> Self {
        Self {
            mac,
            qpn,
            lid,
            gid: None,
            by_mac: false,
            by_address: false,
            by_route: false,
            av: None,
            path: None,
            resolution: Resolution::NEW,
            epoch,
            asked: None,
            pending: Queue::NEW,
            last_used: now,
            work: Hook::NEW,
            waiting: Hook::NEW,
            ready: Hook::NEW,
        }
    }

    /// Whether no index leads to it any more: it is about to be removed.
    pub(super) const fn is_gone(&self) -> bool {
        !self.by_mac && !self.by_address && !self.by_route
    }

    /// Whether it can be taken out of the pool: in no list, nothing waiting, nothing outstanding.
    pub(super) const fn is_idle(&self) -> bool {
        self.pending.is_empty()
            && self.resolution.is_quiet()
            && !self.work.is_listed()
            && !self.waiting.is_listed()
            && !self.ready.is_listed()
    }

    /// Its IPoIB address, if the GID is known.
    pub(super) fn address(&self) -> Option<HwAddr> {
        self.gid.map(|gid| HwAddr::new(self.qpn, gid))
    }

    /// Whom to ask for.
    pub(super) fn target(&self) -> Target {
        self.gid.map_or(Target::Lid(self.lid), Target::Gid)
    }
}
