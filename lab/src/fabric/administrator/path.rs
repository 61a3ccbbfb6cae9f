//! PathRecord queries (IBA 15.2.5.16; OpenSM, osm_sa_path_record.c).

use super::{Records, Request};
use crate::fabric::core::Fabric;
use crate::fabric::ids::{Gid, Lid};
use crate::fabric::rate::{Mtu, Rate};
use crate::fabric::topology::{NodeKind, PortId};
use crate::fabric::wire::mad::{Method, Status};
use crate::fabric::wire::sa::path::{PathRecord, mask};
use crate::fabric::wire::sa::selector::Selector;

/// What the way from one LID to another can carry.
#[derive(Clone, Copy)]
struct Capacity {
    mtu: Mtu,
    rate: Rate,
}

impl Fabric {
    pub(super) fn path_records(&self, request: &Request<'_>) -> Records {
        let mad = request.mad;
        let wanted = PathRecord::parse_slice(&mad.data).map_err(|_| Status::REQ_INVALID)?;
        let bad_mtu = mad.has(mask::MTU_SELECTOR | mask::MTU) && Mtu::from_code(wanted.mtu).is_none();
        let bad_rate = mad.has(mask::RATE_SELECTOR | mask::RATE) && Rate::from_code(wanted.rate).is_none();
        if bad_mtu || bad_rate {
            return Err(Status::REQ_INVALID);
        }
        if mad.has(mask::DGID) && wanted.dgid.is_multicast() {
            return Ok(self.multicast_path(request, &wanted));
        }
        let sources = self.path_ends(request, mask::SGID, wanted.sgid, mask::SLID, wanted.slid)?;
        let targets = self.path_ends(request, mask::DGID, wanted.dgid, mask::DLID, wanted.dlid)?;
        // A Get asks for one path (1.2 erratum); a GetTable for as many as it says, or for all.
        let is_get = mad.header.method == Method::GET;
        let limit = match is_get {
            true => 1,
            false if mad.has(mask::NUM_PATHS) => usize::from(wanted.num_paths),
            false => usize::MAX,
        };
        let mut records = Vec::new();
        for &target in &targets {
            for &source in &sources {
                self.pair_paths(request, &wanted, source, target, limit, &mut records);
                if is_get && !records.is_empty() {
                    return Ok(records);
                }
            }
        }
        Ok(records)
    }

    /// The ports that one end of the path may be: the one named, or every port. A GID or LID that nobody has
    /// finds no record; a GID of one port with a LID of another is an invalid request (as OpenSM answers).
    fn path_ends(
        &self,
        request: &Request<'_>,
        gid_bit: u64,
        gid: Gid,
        lid_bit: u64,
        lid: Lid,
    ) -> Result<Vec<PortId>, Status> {
        let mad = request.mad;
        let by_gid =
            if mad.has(gid_bit) { Some(self.port_by_gid(gid).ok_or(Status::NO_RECORDS)?) } else { None };
        let by_lid =
            if mad.has(lid_bit) { Some(self.port_by_lid(lid).ok_or(Status::NO_RECORDS)?) } else { None };
        Ok(match (by_gid, by_lid) {
            (Some(a), Some(b)) if a != b => return Err(Status::REQ_INVALID),
            (Some(port), _) | (None, Some(port)) => vec![port],
            // Only end ports and switches' management ports have LIDs, and those are what is known.
            (None, None) => self.manager.known.iter().copied().collect(),
        })
    }

    /// The port with a GID of this subnet. The default prefix is taken for the subnet's own (IBA 4.1.1;
    /// OpenSM).
    pub(super) fn port_by_gid(&self, gid: Gid) -> Option<PortId> {
        let prefix = gid.prefix();
        let local = prefix == Gid::LINK_LOCAL_PREFIX || prefix == self.manager.config.subnet_prefix;
        if local { self.port_by_guid(gid.guid()) } else { None }
    }

    /// The paths between two ports, the most independent first: LID n to LID n with preference 0, then the
    /// others with preference 2.
    fn pair_paths(
        &self,
        request: &Request<'_>,
        wanted: &PathRecord,
        source: PortId,
        target: PortId,
        limit: usize,
        records: &mut Vec<Vec<u8>>,
    ) {
        let requester = request.requester;
        if !self.share_pkey(requester, source)
            || !self.share_pkey(requester, target)
            || !self.share_pkey(source, target)
        {
            return;
        }
        let lids = |port: PortId, bit: u64, lid: Lid| -> Vec<Lid> {
            let port = self.topology.port(port);
            if request.mad.has(bit) {
                vec![lid]
            } else if port.lid.is_unicast() {
                (port.lid.0..port.lid.0 + (1 << port.lmc)).map(Lid).collect()
            } else {
                Vec::new()
            }
        };
        let slids = lids(source, mask::SLID, wanted.slid);
        let dlids = lids(target, mask::DLID, wanted.dlid);
        let mut pairs: Vec<(Lid, Lid, u8)> =
            slids.iter().zip(&dlids).map(|(&slid, &dlid)| (slid, dlid, 0)).collect();
        for (i, &slid) in slids.iter().enumerate() {
            for (_, &dlid) in dlids.iter().enumerate().filter(|&(j, _)| i != j) {
                pairs.push((slid, dlid, 2));
            }
        }
        let paths = pairs.into_iter().filter_map(|(slid, dlid, preference)| {
            self.path(request, wanted, (source, slid), (target, dlid), preference)
        });
        records.extend(paths.take(limit));
    }

    fn path(
        &self,
        request: &Request<'_>,
        wanted: &PathRecord,
        (source, slid): (PortId, Lid),
        (target, dlid): (PortId, Lid),
        preference: u8,
    ) -> Option<Vec<u8>> {
        let mad = request.mad;
        let way = self.walk(source, dlid)?;
        let back = self.walk(target, slid);
        if mad.has(mask::REVERSIBLE) && wanted.reversible && back.is_none() {
            return None;
        }
        let mtu = if mad.has(mask::MTU_SELECTOR | mask::MTU) {
            settle_mtu(wanted.mtu_selector, wanted.mtu, way.mtu)?
        } else {
            way.mtu
        };
        let rate = if mad.has(mask::RATE_SELECTOR | mask::RATE) {
            settle_rate(wanted.rate_selector, wanted.rate, way.rate)?
        } else {
            way.rate
        };
        let loopback = source == target;
        let lifetime = if loopback { 0 } else { self.manager.config.packet_lifetime };
        let lifetime = if mad.has(mask::PACKET_LIFETIME_SELECTOR | mask::PACKET_LIFETIME) {
            settle_lifetime(wanted.packet_lifetime_selector, wanted.packet_lifetime, lifetime)?
        } else {
            lifetime
        };
        let pkey = if mad.has(mask::PKEY) {
            let shared = self.topology.port(source).matches_pkey(wanted.pkey)
                && self.topology.port(target).matches_pkey(wanted.pkey);
            shared.then_some(wanted.pkey)?
        } else {
            self.common_pkey(source, target)?
        };
        let sl = if mad.has(mask::SL) { wanted.sl } else { self.manager.config.sl };
        let gid = |bit: u64, given: Gid, port: PortId| {
            let port = self.topology.port(port);
            if mad.has(bit) { Gid::new(port.subnet_prefix, given.guid()) } else { port.default_gid() }
        };
        let record = PathRecord {
            dgid: gid(mask::DGID, wanted.dgid, target),
            sgid: gid(mask::SGID, wanted.sgid, source),
            dlid,
            slid,
            reversible: back.is_some(),
            pkey,
            sl,
            mtu_selector: Selector::EXACTLY,
            mtu: mtu.code(),
            rate_selector: Selector::EXACTLY,
            rate: rate.code(),
            packet_lifetime_selector: Selector::EXACTLY,
            packet_lifetime: lifetime,
            preference,
            service_id: if mad.has(mask::SERVICE_ID) { wanted.service_id } else { 0 },
            ..PathRecord::default()
        };
        Some(record.to_bytes().to_vec())
    }

    /// Follows the forwarding tables from a port to a LID: the least MTU and rate on the way, `None` if it
    /// does not lead there.
    fn walk(&self, source: PortId, dlid: Lid) -> Option<Capacity> {
        const MAX_HOPS: usize = 64;
        let start = self.topology.port(source);
        let is_switch = self.topology.node(start.node).switch().is_some();
        if start.has_lid(dlid) {
            // A port reaches itself without leaving; a switch's management port has no link to take a rate
            // from.
            let rate = start.rate().or(Rate::from_code(2))?;
            return Some(Capacity { mtu: start.mtu, rate });
        }
        let mut node = start.node;
        let mut out = if is_switch { None } else { Some(source) };
        let mut capacity: Option<Capacity> = None;
        for _ in 0..MAX_HOPS {
            let id = if let Some(id) = out.take() {
                id
            } else {
                let number = self.topology.node(node).switch()?.route(dlid)?;
                let id = self.topology.port_of(node, number)?;
                if number == 0 {
                    return capacity.filter(|_| self.topology.port(id).has_lid(dlid));
                }
                id
            };
            let port = self.topology.port(id);
            let link = port.link.filter(|link| link.up)?;
            let here = Capacity { mtu: port.mtu, rate: Rate::of(link.width, link.speed) };
            capacity = Some(capacity.map_or(here, |so_far| Capacity {
                mtu: so_far.mtu.min(here.mtu),
                rate: so_far.rate.min(here.rate),
            }));
            let peer = self.topology.port(link.peer);
            match self.topology.node(peer.node).kind {
                NodeKind::Switch(_) => node = peer.node,
                NodeKind::ChannelAdapter | NodeKind::Manager => {
                    return capacity.filter(|_| peer.has_lid(dlid));
                }
            }
        }
        None
    }

    /// The path to a multicast group (OpenSM, pr_process_multicast): the group's attributes.
    fn multicast_path(&self, request: &Request<'_>, wanted: &PathRecord) -> Vec<Vec<u8>> {
        let mad = request.mad;
        let Some(group) = self.manager.groups.get(&wanted.dgid) else { return Vec::new() };
        let has_member = |guid_matches: &dyn Fn(PortId, Gid) -> bool| {
            group.members.iter().any(|(&gid, member)| guid_matches(member.port, gid))
        };
        let matches = [
            (mask::DLID, group.mlid == wanted.dlid),
            (mask::SGID, has_member(&|_, gid| gid.guid() == wanted.sgid.guid())),
            (mask::SLID, has_member(&|port, _| self.topology.port(port).has_lid(wanted.slid))),
            (mask::PKEY, group.pkey == wanted.pkey),
            (mask::SL, group.sl == wanted.sl),
            (mask::FLOW_LABEL, group.flow_label == wanted.flow_label),
            (mask::HOP_LIMIT, group.hop_limit == wanted.hop_limit),
            (mask::TRAFFIC_CLASS, group.traffic_class == wanted.traffic_class),
            (mask::NUM_PATHS, mad.header.method == Method::GET || wanted.num_paths != 0),
        ];
        if matches.into_iter().any(|(bit, same)| mad.has(bit) && !same) {
            return Vec::new();
        }
        let record = PathRecord {
            dgid: group.mgid,
            dlid: group.mlid,
            traffic_class: group.traffic_class,
            flow_label: group.flow_label,
            hop_limit: group.hop_limit,
            num_paths: 1,
            pkey: group.pkey,
            sl: group.sl,
            mtu_selector: Selector::EXACTLY,
            mtu: group.mtu.code(),
            rate_selector: Selector::EXACTLY,
            rate: group.rate.code(),
            packet_lifetime_selector: Selector::EXACTLY,
            packet_lifetime: group.packet_lifetime,
            ..*wanted
        };
        vec![record.to_bytes().to_vec()]
    }
}

/// The MTU to promise when `code` is asked for and the path can do `actual`. A path that can do more than
/// exactly what is asked for is promised at that; one that can do no less is promised just below (OpenSM).
fn settle_mtu(selector: Selector, code: u8, actual: Mtu) -> Option<Mtu> {
    match selector {
        Selector::GREATER => (actual.code() > code).then_some(actual),
        Selector::LESS if actual.code() < code => Some(actual),
        Selector::LESS => Mtu::from_code(code.checked_sub(1)?),
        Selector::EXACTLY => Mtu::from_code(code).filter(|&mtu| mtu <= actual),
        _ => Some(actual),
    }
}

/// As [`settle_mtu`] for rates, except that exactly means exactly (OpenSM).
fn settle_rate(selector: Selector, code: u8, actual: Rate) -> Option<Rate> {
    let asked = || Rate::from_code(code);
    match selector {
        Selector::GREATER => (actual > asked()?).then_some(actual),
        Selector::LESS if actual < asked()? => Some(actual),
        Selector::LESS => asked()?.next_lower(),
        Selector::EXACTLY => asked().filter(|&rate| rate == actual),
        _ => Some(actual),
    }
}

/// As [`settle_mtu`] for packet lifetimes.
fn settle_lifetime(selector: Selector, code: u8, actual: u8) -> Option<u8> {
    match selector {
        Selector::GREATER => (actual > code).then_some(actual),
        Selector::LESS if actual < code => Some(actual),
        Selector::LESS => (code > 1).then(|| code - 1),
        Selector::EXACTLY => (actual >= code).then_some(code),
        _ => Some(actual),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OpenSM, pr_rcv_get_path_parms: how each selector settles an MTU.
    #[test]
    fn mtu_selectors() {
        let settle = |selector, asked: Mtu| settle_mtu(selector, asked.code(), Mtu::B2048);
        assert_eq!(settle(Selector::GREATER, Mtu::B1024), Some(Mtu::B2048));
        assert_eq!(settle(Selector::GREATER, Mtu::B2048), None);
        assert_eq!(settle(Selector::LESS, Mtu::B4096), Some(Mtu::B2048));
        assert_eq!(settle(Selector::LESS, Mtu::B2048), Some(Mtu::B1024));
        assert_eq!(settle(Selector::LESS, Mtu::B256), None);
        assert_eq!(settle(Selector::EXACTLY, Mtu::B1024), Some(Mtu::B1024));
        assert_eq!(settle(Selector::EXACTLY, Mtu::B4096), None);
        assert_eq!(settle(Selector::BEST, Mtu::B256), Some(Mtu::B2048));
    }

    /// The same for rates, which are not ordered by code.
    #[test]
    fn rate_selectors() {
        let rate = |code| Rate::from_code(code).unwrap();
        let settle = |selector, asked| settle_rate(selector, asked, rate(3));
        assert_eq!(settle(Selector::GREATER, 5), Some(rate(3)), "10 is more than 5 Gb/s");
        assert_eq!(settle(Selector::LESS, 3), Some(rate(5)), "the next below 10 is 5 Gb/s");
        assert_eq!(settle(Selector::LESS, 2), None);
        assert_eq!(settle(Selector::EXACTLY, 3), Some(rate(3)));
        assert_eq!(settle(Selector::EXACTLY, 2), None);
        assert_eq!(settle(Selector::EXACTLY, 63), None);
        assert_eq!(settle(Selector::BEST, 63), Some(rate(3)));
    }

    /// The same for lifetimes.
    #[test]
    fn lifetime_selectors() {
        let settle = |selector, asked| settle_lifetime(selector, asked, 18);
        assert_eq!(settle(Selector::GREATER, 17), Some(18));
        assert_eq!(settle(Selector::GREATER, 18), None);
        assert_eq!(settle(Selector::LESS, 18), Some(17));
        assert_eq!(settle(Selector::LESS, 1), None);
        assert_eq!(settle(Selector::EXACTLY, 10), Some(10));
        assert_eq!(settle(Selector::EXACTLY, 19), None);
    }
}
