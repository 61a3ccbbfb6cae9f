//! Subscriptions and reports (IBA 13.4.11, 14.4.10, 15.4.3; OpenSM, osm_sa_informinfo.c and osm_inform.c).

use super::{Records, Reply, Request, Source};
use crate::fabric::core::{Fabric, Task};
use crate::fabric::ids::{Gid, Nanos};
use crate::fabric::topology::PortId;
use crate::fabric::wire::mad::{Attribute, Method, Status};
use crate::fabric::wire::sa::{InformInfo, SaMad, Trap};

/// Somebody who wants to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// What about.
    pub info: InformInfo,
    /// Where to.
    pub to: Source,
    /// The port that subscribed.
    pub port: PortId,
}

impl Fabric {
    /// Subscribes, or unsubscribes; the answer is the request's own InformInfo.
    pub(super) fn subscribe(&mut self, request: &Request<'_>) -> Records {
        let info = InformInfo::parse_slice(&request.mad.data).map_err(|_| Status::REQ_INVALID)?;
        let same = |subscription: &Subscription| {
            subscription.port == request.requester
                && InformInfo { subscribe: 1, ..subscription.info } == InformInfo { subscribe: 1, ..info }
        };
        match info.subscribe {
            1 => {
                // A port is told only of what it may know, and only once.
                if !info.gid.is_none() && self.port_by_gid(info.gid).is_none() {
                    return Err(Status::REQ_INVALID);
                }
                if !self.manager.subscriptions.iter().any(same) {
                    let to = *request.source;
                    self.manager.subscriptions.push(Subscription { info, to, port: request.requester });
                }
            }
            0 => {
                let before = self.manager.subscriptions.len();
                self.manager.subscriptions.retain(|subscription| !same(subscription));
                if before == self.manager.subscriptions.len() {
                    return Err(Status::REQ_INVALID);
                }
            }
            _ => return Err(Status::REQ_INVALID),
        }
        Ok(vec![info.to_bytes().to_vec()])
    }

    /// Reports a trap of the manager's own to everybody who asked for it and may know of it. Reports are not
    /// repeated if nobody answers them.
    pub(in crate::fabric) fn notify(&mut self, now: Nanos, trap: Trap) {
        let Some(master) = self.manager.port else { return };
        let issuer = self.topology.port(master);
        let notice = trap.notice(issuer.lid, issuer.default_gid());
        let told: Vec<Source> = self
            .manager
            .subscriptions
            .iter()
            .filter(|subscription| subscribed(&subscription.info, trap))
            .filter(|subscription| self.may_know(subscription.port, trap))
            .map(|subscription| subscription.to)
            .collect();
        let at = now + self.manager.config.response_time;
        for to in told {
            let id = self.manager.next_report;
            self.manager.next_report += 1;
            let mad = SaMad::request(Method::REPORT, Attribute::NOTICE, id, 0, &notice.to_bytes());
            let reply = Reply { at, to, mad: mad.to_bytes() };
            let packet = reply.packet(self.topology.port(master));
            self.schedule(at, Task::Send { from: master, packet });
        }
    }

    /// Of a port or group only who shares a partition with it is told (IBA o13-17.1.1).
    fn may_know(&self, port: PortId, trap: Trap) -> bool {
        let gid: Gid = trap.gid();
        match trap {
            Trap::GidInService(_) | Trap::GidOutOfService(_) => {
                self.port_by_guid(gid.guid()).is_none_or(|subject| self.share_pkey(port, subject))
            }
            Trap::GroupCreated(_) | Trap::GroupDeleted(_) => {
                self.manager.groups.get(&gid).is_none_or(|group| self.has_partition(port, group.pkey))
            }
        }
    }
}

/// Whether a subscription is about a trap.
fn subscribed(info: &InformInfo, trap: Trap) -> bool {
    let any = InformInfo::ANY;
    info.is_generic == 1
        && (info.trap_number == any || info.trap_number == trap.number())
        && (info.notice_type == any || info.notice_type == 3)
        && (info.producer_type == 0xFF_FFFF || info.producer_type == 4)
        && (info.gid.is_none() || info.gid == trap.gid())
}
