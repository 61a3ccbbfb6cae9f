//! The table of peers: a pool and three indexes into it, by MAC, by GID and QPN, by LID and QPN.
//!
//! It keeps the indexes consistent with the endpoints and knows nothing of packets or address handles.

use super::endpoint::Endpoint;
use super::hash::HashKey;
use super::index::{self, Index};
use super::memory::{Memory, OutOfMemory};
use super::slab::{Key, Slab, Slot};
use crate::ipoib::{Gid, HwAddr, Lid, MacAddr, Qpn};

/// The table.
pub(super) struct Table<M: Memory> {
    pub(super) slots: Slab<Endpoint, M>,
    by_mac: Index<M>,
    by_address: Index<M>,
    by_route: Index<M>,
    hash: HashKey,
}

/// Memory for [`Table::grow`].
pub(super) struct Growth<M: Memory> {
    slots: M::Array<Slot<Endpoint>>,
    by_mac: index::Growth<M>,
    by_address: index::Growth<M>,
    by_route: index::Growth<M>,
}

impl<M: Memory> Table<M> {
    /// An empty table that can grow to `limit` peers.
    pub(super) fn new(memory: &M, limit: u32, hash: HashKey) -> Result<Self, OutOfMemory> {
        Ok(Self {
            slots: Slab::new(memory, limit)?,
            by_mac: Index::new(memory, limit)?,
            by_address: Index::new(memory, limit)?,
            by_route: Index::new(memory, limit)?,
            hash,
        })
    }

    /// Memory for one more segment.
    pub(super) fn prepare(memory: &M) -> Result<Growth<M>, OutOfMemory> {
        Ok(Growth {
            slots: Slab::segment(memory)?,
            by_mac: Index::prepare(memory)?,
            by_address: Index::prepare(memory)?,
            by_route: Index::prepare(memory)?,
        })
    }

    /// Adds it; beyond the limit it is dropped.
    pub(super) fn grow(&mut self, growth: Growth<M>) {
        if self.slots.is_at_limit() {
            return;
        }
        self.by_mac.grow(growth.by_mac);
        self.by_address.grow(growth.by_address);
        self.by_route.grow(growth.by_route);
        let _ = self.slots.grow(growth.slots);
    }

    fn mac_hash(&self, mac: MacAddr) -> u32 {
        self.hash.one(mac.to_u64())
    }

    fn address_hash(&self, gid: Gid, qpn: Qpn) -> u32 {
        let (prefix, guid) = (u64::from_be_bytes(gid.prefix()), u64::from_be_bytes(gid.guid()));
        self.hash.three(prefix, guid, u64::from(qpn.get()))
    }

    fn route_hash(&self, lid: Lid, qpn: Qpn) -> u32 {
        // Bit 63 keeps these apart from MACs, which does no harm to either.
        self.hash.one(1 << 63 | u64::from(qpn.get()) << 16 | u64::from(lid.get()))
    }

    fn is(&self, slot: u32, it: impl FnOnce(&Endpoint) -> bool) -> bool {
        self.slots.get(slot).is_some_and(it)
    }

    /// The peer with this Ethernet address.
    #[inline]
    pub(super) fn find_mac(&self, mac: MacAddr) -> Option<u32> {
        self.by_mac.find(self.mac_hash(mac), |slot| self.is(slot, |endpoint| endpoint.mac == mac))
    }

    /// The peer with this IPoIB address, flags aside.
    #[inline]
    pub(super) fn find_address(&self, gid: Gid, qpn: Qpn) -> Option<u32> {
        self.by_address.find(self.address_hash(gid, qpn), |slot| {
            self.is(slot, |endpoint| endpoint.gid == Some(gid) && endpoint.qpn == qpn)
        })
    }

    /// The peer at this base LID.
    #[inline]
    pub(super) fn find_route(&self, lid: Lid, qpn: Qpn) -> Option<u32> {
        self.by_route.find(self.route_hash(lid, qpn), |slot| {
            self.is(slot, |endpoint| endpoint.lid == lid && endpoint.qpn == qpn)
        })
    }

    /// Adds a peer, whose MAC and route are free, under both.
    pub(super) fn insert(&mut self, endpoint: Endpoint) -> Option<u32> {
        let (mac, lid, qpn) = (endpoint.mac, endpoint.lid, endpoint.qpn);
        let slot = self.slots.insert(Endpoint { by_mac: true, by_route: true, ..endpoint }).ok()?.slot();
        self.by_mac.insert(self.mac_hash(mac), slot);
        self.by_route.insert(self.route_hash(lid, qpn), slot);
        Some(slot)
    }

    /// Enters a peer under a GID; it had none, or another.
    pub(super) fn set_gid(&mut self, slot: u32, gid: Gid) {
        self.unlink_address(slot);
        let Some(endpoint) = self.slots.get_mut(slot) else { return };
        endpoint.gid = Some(gid);
        endpoint.by_address = true;
        let qpn = endpoint.qpn;
        self.by_address.insert(self.address_hash(gid, qpn), slot);
    }

    /// Enters a peer at another place: base LID or QPN have changed.
    pub(super) fn set_route(&mut self, slot: u32, lid: Lid, qpn: Qpn) {
        self.unlink_route(slot);
        let gid = match self.slots.get(slot) {
            Some(endpoint) if endpoint.by_address && endpoint.qpn != qpn => endpoint.gid,
            Some(_) => None,
            None => return,
        };
        if gid.is_some() {
            self.unlink_address(slot);
        }
        if let Some(endpoint) = self.slots.get_mut(slot) {
            endpoint.lid = lid;
            endpoint.qpn = qpn;
            endpoint.by_route = true;
        }
        self.by_route.insert(self.route_hash(lid, qpn), slot);
        if let Some(gid) = gid {
            self.set_gid(slot, gid);
        }
    }

    /// Takes a peer out of the index by GID and QPN. It keeps its GID.
    pub(super) fn unlink_address(&mut self, slot: u32) {
        if let Some(endpoint) = self.slots.get_mut(slot)
            && core::mem::take(&mut endpoint.by_address)
        {
            self.by_address.remove(slot);
        }
    }

    /// Takes a peer out of the index by LID and QPN.
    pub(super) fn unlink_route(&mut self, slot: u32) {
        if let Some(endpoint) = self.slots.get_mut(slot)
            && core::mem::take(&mut endpoint.by_route)
        {
            self.by_route.remove(slot);
        }
    }

    /// Takes a peer out of the index by MAC.
    pub(super) fn unlink_mac(&mut self, slot: u32) {
        if let Some(endpoint) = self.slots.get_mut(slot)
            && core::mem::take(&mut endpoint.by_mac)
        {
            self.by_mac.remove(slot);
        }
    }

    /// Takes a peer out of every index.
    pub(super) fn unlink(&mut self, slot: u32) {
        self.unlink_mac(slot);
        self.unlink_address(slot);
        self.unlink_route(slot);
    }

    /// Takes a peer, which is in no list, out of the table.
    pub(super) fn remove(&mut self, slot: u32) -> Option<Endpoint> {
        self.unlink(slot);
        self.slots.remove(slot)
    }

    /// The key of a peer.
    pub(super) fn key(&self, slot: u32) -> Option<Key> {
        self.slots.key(slot)
    }

    /// The Ethernet address of a peer.
    pub(super) fn mac_of(&self, address: &HwAddr) -> Option<MacAddr> {
        let slot = self.find_address(address.gid, address.qpn)?;
        self.slots.get(slot).map(|endpoint| endpoint.mac)
    }

    /// The IPoIB address of a peer.
    pub(super) fn address_of(&self, mac: MacAddr) -> Option<HwAddr> {
        self.slots.get(self.find_mac(mac)?)?.address()
    }
}
