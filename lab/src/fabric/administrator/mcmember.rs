//! MCMemberRecord: join, create, leave, query (IBA 15.2.5.17; OpenSM, osm_sa_mcmember_record.c).

use std::collections::BTreeMap;

use super::{Records, Request};
use crate::fabric::core::Fabric;
use crate::fabric::ids::{Gid, Lid, PKey};
use crate::fabric::manager::{Group, JoinState, Member};
use crate::fabric::rate::{Mtu, Rate};
use crate::fabric::topology::PortId;
use crate::fabric::wire::mad::Status;
use crate::fabric::wire::sa::Trap;
use crate::fabric::wire::sa::mcmember::{McMemberRecord, mask};
use crate::fabric::wire::sa::selector::Selector;

/// Signature of an IPv4 over InfiniBand MGID (RFC 4391, section 4).
const SIGNATURE_IPV4: u16 = 0x401B;
/// Signature of an IPv6 over InfiniBand MGID.
const SIGNATURE_IPV6: u16 = 0x601B;
/// Signature of an MGID that an administrator made (IBA 15.2.5.17.1).
const SIGNATURE_SA: u16 = 0xA01B;
/// Link-local scope.
const SCOPE_LINK_LOCAL: u8 = 2;

impl Fabric {
    /// Joins a group, creating it if it is not there.
    pub(super) fn join(&mut self, request: &Request<'_>) -> Records {
        let mad = request.mad;
        if !mad.has(mask::JOIN) {
            return Err(Status::REQ_INSUFFICIENT_COMPONENTS);
        }
        let mut wanted = McMemberRecord::parse_slice(&mad.data).map_err(|_| Status::REQ_INVALID)?;
        check_codes(request, &wanted)?;
        let asked_prefix = self.settle_prefix(&mut wanted)?;
        let port = self.port_by_guid(wanted.port_gid.guid()).ok_or(Status::REQ_INVALID)?;
        let proxy = port != request.requester;
        if proxy && !self.share_pkey(port, request.requester) {
            return Err(Status::REQ_INVALID);
        }
        if mad.has(mask::PKEY) && !wanted.pkey.is_valid() {
            return Err(Status::REQ_INVALID);
        }
        let state = JoinState(wanted.join_state);
        let group = match self.manager.groups.get(&wanted.mgid) {
            Some(group) => {
                matches_group(request, &wanted, group).ok_or(Status::REQ_INVALID)?;
                group.clone()
            }
            None => self.new_group(request, &wanted, port)?,
        };
        let is_new = !self.manager.groups.contains_key(&group.mgid);
        self.check_join(request, &wanted, &group, port)?;
        if let Some(member) = group.members.get(&wanted.port_gid) {
            self.check_modify(request, &group, member, wanted.port_gid)?;
        }
        let (mgid, mlid) = (group.mgid, group.mlid);
        let had_full = group.members.values().any(|member| member.state.keeps_alive());
        let group = self.manager.groups.entry(mgid).or_insert(group);
        let member = group.members.entry(wanted.port_gid).or_insert(Member {
            port,
            state: JoinState::default(),
            proxy,
        });
        member.state.0 |= state.0;
        let record = McMemberRecord {
            // The client gets back the prefix that it used.
            port_gid: Gid::new(asked_prefix, wanted.port_gid.guid()),
            join_state: member.state.0,
            proxy_join: wanted.proxy_join,
            ..group_record(group)
        };
        self.route_multicast(mlid);
        if state.keeps_alive() && (is_new || !had_full) {
            self.notify(request.now, Trap::GroupCreated(mgid));
        }
        Ok(vec![record.to_bytes().to_vec()])
    }

    /// Leaves a group in the ways that the join state says.
    pub(super) fn leave_group(&mut self, request: &Request<'_>) -> Records {
        let mad = request.mad;
        if !mad.has(mask::JOIN) {
            return Err(Status::REQ_INSUFFICIENT_COMPONENTS);
        }
        let mut wanted = McMemberRecord::parse_slice(&mad.data).map_err(|_| Status::REQ_INVALID)?;
        check_codes(request, &wanted)?;
        let asked_prefix = self.settle_prefix(&mut wanted)?;
        let group = self.manager.groups.get(&wanted.mgid).ok_or(Status::REQ_INVALID)?;
        // IBA o15-0.1.14: the member is there, in each of the ways that it leaves, and the leaver may do
        // that.
        let member = group.members.get(&wanted.port_gid).ok_or(Status::REQ_INVALID)?;
        let leaving = JoinState(wanted.join_state);
        if leaving.is_empty() || !member.state.contains(leaving) {
            return Err(Status::REQ_INVALID);
        }
        self.check_modify(request, group, member, wanted.port_gid)?;
        let remaining = JoinState(member.state.0 & !leaving.0);
        let (mgid, scope) = (group.mgid, group.scope);
        if let Some(group) = self.manager.groups.get_mut(&mgid) {
            if remaining.is_empty() {
                group.members.remove(&wanted.port_gid);
            } else if let Some(member) = group.members.get_mut(&wanted.port_gid) {
                member.state = remaining;
            }
        }
        self.settle_group(request.now, mgid);
        // A group that dies of it takes the other ways with it.
        let remaining = if self.manager.groups.contains_key(&mgid) { remaining.0 } else { 0 };
        let record = McMemberRecord {
            port_gid: Gid::new(asked_prefix, wanted.port_gid.guid()),
            scope,
            join_state: remaining,
            mtu_selector: Selector::EXACTLY,
            rate_selector: Selector::EXACTLY,
            packet_lifetime_selector: Selector::EXACTLY,
            ..wanted
        };
        Ok(vec![record.to_bytes().to_vec()])
    }

    /// Groups that match; a trusted request (with an SM_Key) sees their members, any other only the groups,
    /// without port, join state and proxy (IBA 15.2.5.17.2).
    pub(super) fn member_records(&self, request: &Request<'_>) -> Vec<Vec<u8>> {
        let mad = request.mad;
        let Ok(wanted) = McMemberRecord::parse_slice(&mad.data) else { return Vec::new() };
        let trusted = mad.sa.sm_key != 0;
        let mut records = Vec::new();
        for group in self.manager.groups.values() {
            if (mad.has(mask::MGID) && wanted.mgid != group.mgid)
                || (mad.has(mask::MLID) && wanted.mlid != group.mlid)
                || !self.has_partition(request.requester, group.pkey)
                || matches_group(request, &wanted, group).is_none()
                || !selectors_accept(request, &wanted, group)
                || (mad.has(mask::SCOPE) && wanted.scope != group.scope)
            {
                continue;
            }
            let record = group_record(group);
            if mad.has(mask::PORT_GID) || trusted {
                for (&gid, member) in &group.members {
                    if (mad.has(mask::PORT_GID) && gid.guid() != wanted.port_gid.guid())
                        || (mad.has(mask::JOIN_STATE) && member.state.0 != wanted.join_state)
                        || (mad.has(mask::PROXY_JOIN) && member.proxy != wanted.proxy_join)
                    {
                        continue;
                    }
                    records.push(if trusted {
                        McMemberRecord {
                            port_gid: gid,
                            join_state: member.state.0,
                            proxy_join: member.proxy,
                            ..record
                        }
                    } else {
                        record
                    });
                }
            } else {
                records.push(record);
            }
        }
        records.iter().map(|record| record.to_bytes().to_vec()).collect()
    }

    /// The default prefix stands for the subnet's own; any other but that is wrong. Returns what was asked
    /// with.
    fn settle_prefix(&self, wanted: &mut McMemberRecord) -> Result<u64, Status> {
        let asked = wanted.port_gid.prefix();
        let own = self.manager.config.subnet_prefix;
        if asked != Gid::LINK_LOCAL_PREFIX && asked != own {
            return Err(Status::REQ_INVALID_GID);
        }
        wanted.port_gid = Gid::new(own, wanted.port_gid.guid());
        Ok(asked)
    }

    /// What IBA o15-0.2.4 and OpenSM ask of who joins: a join state, an MTU and rate that group and request
    /// agree on and the port can do, and the group's partition.
    fn check_join(
        &self,
        request: &Request<'_>,
        wanted: &McMemberRecord,
        group: &Group,
        port: PortId,
    ) -> Result<(), Status> {
        let attributes = self.topology.port(port);
        let can = attributes.mtu >= group.mtu && attributes.rate().is_some_and(|rate| rate >= group.rate);
        let valid = wanted.join_state != 0;
        if valid && can && selectors_accept(request, wanted, group) && self.has_partition(port, group.pkey) {
            Ok(())
        } else {
            Err(Status::REQ_INVALID)
        }
    }

    /// IBA o15-0.2.1: only the port itself changes its membership, unless it was joined by proxy; then
    /// anybody of the partition.
    fn check_modify(
        &self,
        request: &Request<'_>,
        group: &Group,
        member: &Member,
        port_gid: Gid,
    ) -> Result<(), Status> {
        let allowed = if member.proxy {
            self.has_partition(request.requester, group.pkey)
        } else {
            let requester = self.topology.port(request.requester);
            member.port == request.requester && requester.subnet_prefix == port_gid.prefix()
        };
        if allowed { Ok(()) } else { Err(Status::REQ_INVALID) }
    }

    /// The group that a join would create. What the mask leaves out of lifetime, hop limit and scope is taken
    /// from the record all the same, which is what OpenSM does; MTU and rate then are those of the port.
    fn new_group(
        &mut self,
        request: &Request<'_>,
        wanted: &McMemberRecord,
        port: PortId,
    ) -> Result<Group, Status> {
        let mad = request.mad;
        if !self.manager.config.may_create_groups {
            return Err(Status::REQ_DENIED);
        }
        if !JoinState(wanted.join_state).keeps_alive() {
            return Err(Status::REQ_INVALID);
        }
        if !mad.has(mask::CREATE) {
            return Err(Status::REQ_INSUFFICIENT_COMPONENTS);
        }
        let mgid = if wanted.mgid.is_none() {
            self.new_mgid(request, wanted)
        } else {
            check_mgid(wanted.mgid).ok_or(Status::REQ_INVALID)?;
            self.check_ipoib_parent(request, wanted)?;
            wanted.mgid
        };
        let attributes = self.topology.port(port);
        let (port_mtu, port_rate) = (attributes.mtu, attributes.rate().ok_or(Status::REQ_INVALID)?);
        let mtu = if mad.has(mask::MTU_SELECTOR | mask::MTU) {
            realise_mtu(wanted.mtu_selector, wanted.mtu, port_mtu)
        } else {
            Some(port_mtu)
        };
        let rate = if mad.has(mask::RATE_SELECTOR | mask::RATE) {
            realise_rate(wanted.rate_selector, wanted.rate, port_rate)
        } else {
            Some(port_rate)
        };
        Ok(Group {
            mgid,
            mtu: mtu.ok_or(Status::REQ_INVALID)?,
            rate: rate.ok_or(Status::REQ_INVALID)?,
            mlid: self.new_mlid(wanted).ok_or(Status::NO_RESOURCES)?,
            qkey: wanted.qkey,
            pkey: wanted.pkey,
            packet_lifetime: wanted.packet_lifetime,
            sl: wanted.sl,
            traffic_class: wanted.traffic_class,
            flow_label: wanted.flow_label,
            hop_limit: wanted.hop_limit,
            scope: wanted.scope,
            well_known: false,
            members: BTreeMap::new(),
        })
    }

    /// The multicast LID that was asked for, if it is free, else the first that is.
    fn new_mlid(&self, wanted: &McMemberRecord) -> Option<Lid> {
        let (first, last) = self.manager.config.multicast_lids;
        let free = (first..=last).contains(&wanted.mlid)
            && wanted.mlid.is_multicast()
            && self.manager.groups.values().all(|group| group.mlid != wanted.mlid);
        if free { Some(wanted.mlid) } else { self.free_mlid() }
    }

    /// An MGID with the administrator's signature that nobody has.
    fn new_mgid(&mut self, request: &Request<'_>, wanted: &McMemberRecord) -> Gid {
        let scope = if request.mad.has(mask::SCOPE) { wanted.scope } else { SCOPE_LINK_LOCAL };
        let prefix = self.manager.config.subnet_prefix;
        let mut unique = 0u32;
        loop {
            let mut mgid = [0; 16];
            mgid[0] = 0xFF;
            mgid[1] = 0x10 | scope & 0xF;
            mgid[2..4].copy_from_slice(&SIGNATURE_SA.to_be_bytes());
            mgid[4..12].copy_from_slice(&prefix.to_be_bytes());
            mgid[12..].copy_from_slice(&unique.to_be_bytes());
            if !self.manager.groups.contains_key(&Gid(mgid)) {
                return Gid(mgid);
            }
            unique += 1;
        }
    }

    /// A group with an IPoIB signature needs the broadcast group of its partition and scope, and the same
    /// attributes (OpenSM, ipoib_mcgroup_creation_validation).
    fn check_ipoib_parent(&self, request: &Request<'_>, wanted: &McMemberRecord) -> Result<(), Status> {
        let signature = signature(wanted.mgid);
        if signature != SIGNATURE_IPV4 && signature != SIGNATURE_IPV6 {
            return Ok(());
        }
        let mut parent = [0; 16];
        parent[..2].copy_from_slice(&wanted.mgid.0[..2]);
        parent[1] = 0x10 | parent[1] & 0xF;
        parent[2..4].copy_from_slice(&SIGNATURE_IPV4.to_be_bytes());
        parent[4..6].copy_from_slice(&wanted.mgid.0[4..6]);
        parent[12..].fill(0xFF);
        if wanted.mgid == Gid(parent) {
            return Ok(());
        }
        let parent = self.manager.groups.get(&Gid(parent)).ok_or(Status::REQ_INVALID)?;
        matches_group(request, wanted, parent).ok_or(Status::REQ_INVALID)
    }
}

/// The record of a group, without a member.
fn group_record(group: &Group) -> McMemberRecord {
    McMemberRecord {
        mgid: group.mgid,
        port_gid: Gid::NONE,
        qkey: group.qkey,
        mlid: group.mlid,
        mtu_selector: Selector::EXACTLY,
        mtu: group.mtu.code(),
        traffic_class: group.traffic_class,
        pkey: group.pkey,
        rate_selector: Selector::EXACTLY,
        rate: group.rate.code(),
        packet_lifetime_selector: Selector::EXACTLY,
        packet_lifetime: group.packet_lifetime,
        sl: group.sl,
        flow_label: group.flow_label,
        hop_limit: group.hop_limit,
        scope: group.scope,
        join_state: 0,
        proxy_join: false,
    }
}

/// A reserved MTU or rate encoding is no request.
fn check_codes(request: &Request<'_>, wanted: &McMemberRecord) -> Result<(), Status> {
    let bad_mtu = request.mad.has(mask::MTU_SELECTOR | mask::MTU) && Mtu::from_code(wanted.mtu).is_none();
    let bad_rate =
        request.mad.has(mask::RATE_SELECTOR | mask::RATE) && Rate::from_code(wanted.rate).is_none();
    if bad_mtu || bad_rate { Err(Status::REQ_INVALID) } else { Ok(()) }
}

/// Whether the attributes that are asked for are the group's (OpenSM, validate_other_comp_fields).
fn matches_group(request: &Request<'_>, wanted: &McMemberRecord, group: &Group) -> Option<()> {
    let same_partition = |a: PKey, b: PKey| a.partition() == b.partition() && (a.is_full() || b.is_full());
    [
        (mask::QKEY, wanted.qkey == group.qkey),
        (mask::PKEY, same_partition(wanted.pkey, group.pkey)),
        (mask::TRAFFIC_CLASS, wanted.traffic_class == group.traffic_class),
        (mask::SL, wanted.sl == group.sl),
        (mask::FLOW_LABEL, wanted.flow_label == group.flow_label),
        (mask::HOP_LIMIT, wanted.hop_limit == group.hop_limit),
    ]
    .into_iter()
    .all(|(bit, same)| !request.mad.has(bit) || same)
    .then_some(())
}

/// Whether MTU and rate of the group are as asked for (OpenSM, validate_more_comp_fields, which leaves packet
/// lifetimes alone).
fn selectors_accept(request: &Request<'_>, wanted: &McMemberRecord, group: &Group) -> bool {
    let mtu = group.mtu.code().cmp(&wanted.mtu);
    let rate = Rate::from_code(wanted.rate).map(|asked| group.rate.cmp(&asked));
    let rate_accepted = match rate {
        Some(order) => wanted.rate_selector.accepts(order),
        None => wanted.rate_selector == Selector::BEST,
    };
    (!request.mad.has(mask::MTU_SELECTOR) || wanted.mtu_selector.accepts(mtu))
        && (!request.mad.has(mask::RATE_SELECTOR) || rate_accepted)
}

/// IBA o15-0.1.5: an MGID is multicast, has no reserved flag set, and not the administrator's own signature
/// with link-local scope. Those of IPoIB are not looked at (OpenSM, validate_requested_mgid).
fn check_mgid(mgid: Gid) -> Option<()> {
    let signature = signature(mgid);
    let valid = mgid.is_multicast()
        && (signature == SIGNATURE_IPV4
            || signature == SIGNATURE_IPV6
            || (mgid.flags() & 0b1110 == 0
                && !(signature == SIGNATURE_SA && mgid.scope() == SCOPE_LINK_LOCAL)));
    valid.then_some(())
}

fn signature(mgid: Gid) -> u16 {
    u16::from_be_bytes([mgid.0[2], mgid.0[3]])
}

/// The MTU of a new group (OpenSM, mgrp_request_is_realizable). Exactly is not compared with the port here:
/// the join that follows is.
fn realise_mtu(selector: Selector, code: u8, port: Mtu) -> Option<Mtu> {
    match selector {
        Selector::GREATER => (code < port.code()).then_some(port),
        Selector::LESS if code > port.code() => Some(port),
        Selector::LESS => Mtu::from_code(code.checked_sub(1)?),
        Selector::EXACTLY => Mtu::from_code(code),
        _ => Some(port),
    }
}

/// As [`realise_mtu`] for rates.
fn realise_rate(selector: Selector, code: u8, port: Rate) -> Option<Rate> {
    let asked = Rate::from_code(code);
    match selector {
        Selector::GREATER => (asked? < port).then_some(port),
        Selector::LESS if asked? > port => Some(port),
        Selector::LESS => asked?.next_lower(),
        Selector::EXACTLY => asked,
        _ => Some(port),
    }
}
