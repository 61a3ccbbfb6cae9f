//! What received frames tell about peers, and which of them contradict what is known.

use super::directory::Directory;
use super::endpoint::Endpoint;
use super::memory::Memory;
use super::pending::Refusal;
use super::resolve::{Event, State};
use super::time::Time;
use crate::ipoib::translate::Neighbors;
use crate::ipoib::{Gid, HwAddr, Lid, MacAddr, Qpn};

/// Where a frame came from: what the completion says, and the source GID of its GRH if it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// Source QPN.
    pub qpn: Qpn,
    /// Source LID, path bits included.
    pub lid: Lid,
    /// Source GID. Frames to a group have one.
    pub gid: Option<Gid>,
}

/// Why a frame's source is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rejected {
    /// A QPN, LID or GID that no sender can have.
    Invalid,
    /// Our own frame, come back.
    Own,
    /// The frame names a sender other than the one it came from, or its GRH another port than the one that is
    /// known at its LID. In the latter case the subnet administrator is asked who is right.
    Contradiction,
    /// No Ethernet address can be given to it: the scheme needs a GID, or another port has the address.
    NoAddress,
    /// The table of peers is full.
    NoRoom,
}

impl<A, J, P, M: Memory> Directory<A, J, P, M> {
    /// Notes where a frame came from. Answers the Ethernet address of its sender.
    pub fn observe(&mut self, source: &Source, now: Time) -> Result<MacAddr, Rejected> {
        let possible =
            source.qpn.is_interface() && source.lid.is_unicast() && source.gid.is_none_or(Gid::is_unicast);
        if !possible {
            return Err(Rejected::Invalid);
        }
        let lid = source.lid.base(self.local.map_or(0, |local| local.lmc));
        if self.is_own(source.qpn, lid, source.gid) {
            return Err(Rejected::Own);
        }
        let Some(slot) = self.table.find_route(lid, source.qpn) else {
            return self.arrived(source.qpn, lid, source.gid, now);
        };
        let Some(endpoint) = self.table.slots.get_mut(slot) else { return Err(Rejected::NoRoom) };
        let mac = endpoint.mac;
        match (endpoint.gid, source.gid) {
            (Some(known), Some(gid)) if known != gid => {
                self.dispute(slot, now);
                return Err(Rejected::Contradiction);
            }
            (None, Some(gid)) => return self.identified(slot, gid, now),
            _ => endpoint.last_used = now,
        }
        Ok(mac)
    }

    /// Notes where a frame came from whose payload names its sender's hardware address: ARP's sender,
    /// Neighbor Discovery's source or target link-layer address. `claim` must be the address of the very
    /// interface that sent it: its QPN is the frame's, and so is its GID if the frame has a GRH.
    pub fn claim(&mut self, source: &Source, claim: &HwAddr, now: Time) -> Result<MacAddr, Rejected> {
        let consistent =
            claim.is_interface() && claim.qpn == source.qpn && source.gid.is_none_or(|gid| gid == claim.gid);
        if !consistent {
            return Err(Rejected::Contradiction);
        }
        self.observe(&Source { gid: Some(claim.gid), ..*source }, now)
    }

    /// Nobody is known at this LID: a new peer, or one that has moved.
    fn arrived(&mut self, qpn: Qpn, lid: Lid, gid: Option<Gid>, now: Time) -> Result<MacAddr, Rejected> {
        if let Some(gid) = gid
            && let Some(slot) = self.table.find_address(gid, qpn)
            && let Some(mac) = self.moved(slot, lid, now)
        {
            return Ok(mac);
        }
        let mac = self.fresh_mac(qpn, lid, gid)?;
        let (mac, slot) = match mac {
            Fresh::New(mac) => (
                mac,
                self.insert(Endpoint::new(mac, qpn, lid, self.epoch, now), now).ok_or(Rejected::NoRoom)?,
            ),
            Fresh::Reborn(mac, slot) => {
                self.table.set_route(slot, lid, qpn);
                self.doubt(slot, now);
                (mac, slot)
            }
        };
        if let Some(gid) = gid {
            self.table.set_gid(slot, gid);
        }
        Ok(mac)
    }

    /// A peer known by GID is seen at another LID. Where its Ethernet address tells the LID, it gets a new
    /// one (the caller makes it), and what is known under the old one is kept for as long as Windows still
    /// sends to that: its path is asked for anew, by GID, and so leads to the new place. Else the peer keeps
    /// its address.
    fn moved(&mut self, slot: u32, lid: Lid, now: Time) -> Option<MacAddr> {
        let kept = if self.config.scheme.follows_lid() {
            self.table.unlink_address(slot);
            self.table.unlink_route(slot);
            None
        } else {
            let endpoint = self.table.slots.get_mut(slot)?;
            endpoint.last_used = now;
            let (mac, qpn) = (endpoint.mac, endpoint.qpn);
            self.table.set_route(slot, lid, qpn);
            Some(mac)
        };
        self.doubt(slot, now);
        kept
    }

    /// The GID of a peer that so far was known by LID alone.
    fn identified(&mut self, slot: u32, gid: Gid, now: Time) -> Result<MacAddr, Rejected> {
        let endpoint = self.table.slots.get_mut(slot).ok_or(Rejected::NoRoom)?;
        endpoint.last_used = now;
        let (qpn, lid, mac) = (endpoint.qpn, endpoint.lid, endpoint.mac);
        if let Some(other) = self.table.find_address(gid, qpn) {
            if !self.config.scheme.follows_lid() {
                // The same peer twice: the one with the GID is who Windows knows.
                self.retire(slot, Refusal::Forgotten);
                return self.moved(other, lid, now).ok_or(Rejected::NoRoom);
            }
            self.moved(other, lid, now);
        }
        self.table.set_gid(slot, gid);
        Ok(mac)
    }

    fn doubt(&mut self, slot: u32, now: Time) {
        if let Some(endpoint) = self.table.slots.get_mut(slot) {
            let action = endpoint.resolution.step(Event::Doubted, now, &self.config.policy);
            self.follow(slot, action);
        }
    }

    /// Another port claims to be at a peer's LID: a forgery, or LIDs were assigned anew. Asks the subnet
    /// administrator where the known one is; if it is elsewhere or nowhere, its place becomes free. Not more
    /// often than resolution's patience allows, so that forged frames do not become queries one for one.
    fn dispute(&mut self, slot: u32, now: Time) {
        let hold = u64::from(self.config.policy.hold);
        let Some(endpoint) = self.table.slots.get_mut(slot) else { return };
        if !endpoint.resolution.is_quiet()
            || endpoint.asked.is_some_and(|asked| now.millis_since(asked) < hold)
        {
            return;
        }
        let event = if endpoint.resolution.state == State::Idle { Event::Wanted } else { Event::Doubted };
        let action = endpoint.resolution.step(event, now, &self.config.policy);
        self.follow(slot, action);
    }

    /// An Ethernet address for a new peer.
    fn fresh_mac(&mut self, qpn: Qpn, lid: Lid, gid: Option<Gid>) -> Result<Fresh, Rejected> {
        // A counter that has gone round meets addresses in use; more than a few in a row would be a full
        // table.
        const ATTEMPTS: u32 = 16;
        let own = self.local.map(|local| local.mac);
        for _ in 0..ATTEMPTS {
            let mac = self.config.scheme.remote(qpn, lid, gid, &self.counter).ok_or(Rejected::NoAddress)?;
            let Some(slot) = self.table.find_mac(mac) else {
                if Some(mac) == own {
                    continue;
                }
                return Ok(Fresh::New(mac));
            };
            let Some(holder) = self.table.slots.get(slot) else { return Err(Rejected::NoRoom) };
            if self.config.scheme.follows_lid() {
                // The address is the place: who held it has moved away and was kept for old senders only.
                self.retire(slot, Refusal::Forgotten);
                return Ok(Fresh::New(mac));
            }
            if holder.gid.is_some() && holder.gid == gid {
                // The port's interface has a new QP: it was started again.
                return Ok(Fresh::Reborn(mac, slot));
            }
        }
        Err(Rejected::NoAddress)
    }
}

impl<A, J, P, M: Memory> Neighbors for Directory<A, J, P, M> {
    fn address_of(&self, mac: MacAddr) -> Option<HwAddr> {
        self.table.address_of(mac)
    }

    fn mac_of(&self, address: &HwAddr) -> Option<MacAddr> {
        self.table.mac_of(address)
    }
}

/// An Ethernet address for a peer that is not in the table under its route.
enum Fresh {
    /// Nobody has it.
    New(MacAddr),
    /// It is that of the same port, whose QPN was another.
    Reborn(MacAddr, u32),
}
