//! OID requests applied: [`super::oid`] understands them, this file changes the adapter.

use super::Adapter;
use super::jobs::Jobs;
use super::lifecycle::Event;
use super::oid::{self, MULTICAST_LIST_SIZE, OidError, Setting, View};
use crate::ipoib::MacAddr;
use crate::kernel::irql::{Dispatch, Passive};
use crate::kernel::oid_request::{Kind, OidRequest};
use crate::kernel::pool::{PoolVec, Tag};
use crate::kernel::spinlock::SpinLock;
use crate::kernel::status::Result;
use core::sync::atomic::{AtomicU32, Ordering};
use windows_kernel_sys as sys;

const TAG: Tag = Tag::new(*b"IbOi");

/// What NDIS wants to receive.
#[derive(Debug)]
pub(crate) struct Filters {
    packet_filter: AtomicU32,
    lookahead: AtomicU32,
    /// The multicast list, with room for as many as may be set.
    multicast: SpinLock<PoolVec<[u8; 6]>>,
}

impl Filters {
    pub(super) fn try_new() -> Result<Self> {
        let list = PoolVec::try_with_capacity(TAG, MULTICAST_LIST_SIZE)?;
        Ok(Self {
            packet_filter: AtomicU32::new(0),
            lookahead: AtomicU32::new(0),
            multicast: SpinLock::new(list),
        })
    }

    fn packet_filter(&self) -> sys::NDIS_PACKET_TYPE {
        sys::NDIS_PACKET_TYPE::from_bits_retain(self.packet_filter.load(Ordering::Relaxed))
    }

    /// Whether a received frame with this destination is asked for. `current` is the adapter's own address.
    pub(crate) fn wants(&self, destination: MacAddr, current: MacAddr, at: Dispatch<'_>) -> bool {
        type Type = sys::NDIS_PACKET_TYPE;
        let filter = self.packet_filter();
        if filter.contains(Type::PROMISCUOUS) {
            true
        } else if destination.is_broadcast() {
            filter.contains(Type::BROADCAST)
        } else if destination.is_group() {
            filter.contains(Type::ALL_MULTICAST)
                || (filter.contains(Type::MULTICAST)
                    && self.multicast.lock_at(at).contains(&destination.to_bytes()))
        } else {
            filter.contains(Type::DIRECTED) && destination == current
        }
    }

    /// Calls `each` for every address in the multicast list, if the packet filter asks for multicast at all.
    pub(super) fn for_each_listened(&self, at: &mut Passive<'_>, mut each: impl FnMut(MacAddr)) {
        let filter = self.packet_filter();
        if !filter.intersects(
            sys::NDIS_PACKET_TYPE::MULTICAST
                | sys::NDIS_PACKET_TYPE::ALL_MULTICAST
                | sys::NDIS_PACKET_TYPE::PROMISCUOUS,
        ) {
            return;
        }
        for address in self.multicast.lock(at).iter() {
            each(MacAddr::new(*address));
        }
    }

    /// Whether every group is asked for.
    pub(super) fn wants_all_multicast(&self) -> bool {
        let all = sys::NDIS_PACKET_TYPE::ALL_MULTICAST | sys::NDIS_PACKET_TYPE::PROMISCUOUS;
        self.packet_filter().intersects(all)
    }

    fn set_multicast(&self, list: &[u8], at: &mut Passive<'_>) {
        let mut multicast = self.multicast.lock(at);
        multicast.clear();
        let (addresses, _) = list.as_chunks::<6>();
        for address in addresses {
            // The length was checked against the capacity.
            let _ = multicast.push(*address);
        }
    }
}

impl Adapter {
    /// MiniportOidRequest: answered before it returns.
    pub fn oid_request(&self, mut request: OidRequest, at: &mut Passive<'_>) -> sys::NDIS_STATUS {
        let oid = request.oid();
        let status = match request.kind() {
            Kind::Query => {
                let result = self.query(oid, request.output(), at);
                match result {
                    Ok(written) => {
                        request.set_result(written, written);
                        sys::NDIS_STATUS_SUCCESS
                    }
                    Err(error) => refuse(&mut request, error),
                }
            }
            Kind::Set => {
                let read = request.input().len() as u32;
                let applied = oid::parse_set(oid, request.input()).map(|setting| self.apply(setting, at));
                match applied {
                    Ok(()) => {
                        request.set_result(read, read);
                        sys::NDIS_STATUS_SUCCESS
                    }
                    Err(error) => refuse(&mut request, error),
                }
            }
            Kind::Method => refuse(&mut request, OidError::NotSupported),
            Kind::Unknown => sys::NDIS_STATUS_INVALID_OID,
        };
        request.answer(status)
    }

    fn query(&self, oid: u32, out: &mut [u8], at: &mut Passive<'_>) -> oid::Written {
        let Some(machinery) = self.machinery() else { return Err(OidError::NotSupported) };
        let mut list = [[0; 6]; MULTICAST_LIST_SIZE];
        let mut count = 0;
        for (to, from) in list.iter_mut().zip(self.filters.multicast.lock(at).iter()) {
            *to = *from;
            count += 1;
        }
        let view = View {
            statistics: &self.statistics,
            mtu: self.config.payload_mtu,
            sends: self.config.sq_depth,
            receives: self.config.receive_buffers(),
            permanent_address: machinery.addresses.permanent.to_bytes(),
            current_address: machinery.addresses.current.to_bytes(),
            packet_filter: self.filters.packet_filter.load(Ordering::Relaxed),
            lookahead: self.filters.lookahead.load(Ordering::Relaxed),
            multicast_list: list.get(..count).unwrap_or_default(),
        };
        oid::query(oid, &view, out)
    }

    fn apply(&self, setting: Setting<'_>, at: &mut Passive<'_>) {
        match setting {
            Setting::PacketFilter(filter) => {
                self.filters.packet_filter.store(filter, Ordering::Relaxed);
                self.ask(Jobs::GROUPS);
            }
            // Frames are always indicated whole.
            Setting::Lookahead(bytes) => self.filters.lookahead.store(bytes, Ordering::Relaxed),
            Setting::MulticastList(list) => {
                self.filters.set_multicast(list, at);
                self.ask(Jobs::GROUPS);
            }
            Setting::Power { working } => self.handle(if working { Event::Wake } else { Event::Sleep }, at),
            Setting::Nothing => {}
        }
    }
}

fn refuse(request: &mut OidRequest, error: OidError) -> sys::NDIS_STATUS {
    let (status, needed) = match error {
        OidError::NotSupported => (sys::NDIS_STATUS_NOT_SUPPORTED, 0),
        OidError::BufferTooShort { needed } => (sys::NDIS_STATUS_BUFFER_TOO_SHORT, needed),
        OidError::InvalidLength { needed } => (sys::NDIS_STATUS_INVALID_LENGTH, needed),
        OidError::InvalidData => (sys::NDIS_STATUS_INVALID_DATA, 0),
        OidError::MulticastFull { needed } => (sys::NDIS_STATUS_MULTICAST_FULL, needed),
    };
    request.set_result(0, needed);
    status
}
