//! The channel adapter and its ports.

use core::ptr;
use core::slice;

use ibal_sys::*;

use crate::kernel::arc::PoolArc;
use crate::kernel::irql::Passive;
use crate::kernel::pool::PoolVec;

use super::al::Al;
use super::client::{CA_EVENT, Client, Context, on_event};
use super::handle::Handle;
use super::interface::{Api, TAG};
use super::status::{IbError, check, failure};

/// An opened channel adapter.
pub struct Ca {
    pub(super) api: Api,
    handle: Handle<_ib_ca>,
    /// Holds the client until the CA can call no more.
    _client: Context,
}

// SAFETY: the access layer serialises what is done to its objects.
unsafe impl Send for Ca {}
// SAFETY: as above.
unsafe impl Sync for Ca {}

impl Ca {
    /// Opens the adapter with this GUID, in host order (`ib_open_ca`).
    pub fn open<A: Client>(
        al: &Al,
        ca_guid: u64,
        client: &PoolArc<A>,
        _at: &Passive<'_>,
    ) -> Result<Self, IbError> {
        let api = al.api.clone();
        let context = Context::new(client);
        let mut raw = ptr::null_mut();
        // SAFETY: at PASSIVE_LEVEL, with an open access layer, a callback for this context, which lives as
        // long as the CA, and a place for the handle.
        check(unsafe {
            (api.open_ca)(
                al.handle(),
                ib_net64_t::new(ca_guid),
                Some(on_event::<A, CA_EVENT>),
                context.raw(),
                &raw mut raw,
            )
        })?;
        Ok(Self { api, handle: Handle::new(raw)?, _client: context })
    }

    pub(super) fn handle(&self) -> ib_ca_handle_t {
        self.handle.get()
    }

    /// Reads its attributes and those of its ports (`ib_query_ca`).
    pub fn query(&self, _at: &Passive<'_>) -> Result<CaAttributes, IbError> {
        /// The tables can grow between the two calls.
        const ATTEMPTS: usize = 4;
        let mut size = 0;
        // SAFETY: at PASSIVE_LEVEL, with an open CA; without a buffer only the size is written.
        let status = unsafe { (self.api.query_ca)(self.handle(), ptr::null_mut(), &raw mut size) };
        if status != IB_INSUFFICIENT_MEMORY || (size as usize) < size_of::<ib_ca_attr_t>() {
            return Err(failure(status));
        }
        for _ in 0..ATTEMPTS {
            // Elements of 8 bytes, for the alignment of the structure.
            let words = (size as usize).div_ceil(size_of::<u64>());
            let mut buffer =
                PoolVec::try_from_fn(TAG, words, |_| Ok(0_u64)).map_err(|_| IbError::NO_MEMORY)?;
            // SAFETY: at PASSIVE_LEVEL, with an open CA and a buffer of at least `size` bytes.
            let status =
                unsafe { (self.api.query_ca)(self.handle(), buffer.as_mut_ptr().cast(), &raw mut size) };
            match status {
                IB_SUCCESS => return Ok(CaAttributes(buffer)),
                IB_INSUFFICIENT_MEMORY => {}
                status => return Err(failure(status)),
            }
        }
        Err(IbError::NO_MEMORY)
    }

    /// Closes it (`ib_close_ca`), after what was made on it. Waits until no callback runs.
    pub fn destroy(&self, _at: &Passive<'_>) -> Result<(), IbError> {
        match self.handle.take() {
            // SAFETY: at PASSIVE_LEVEL, with an open handle that is not used again.
            Some(raw) => check(unsafe { (self.api.close_ca)(raw, ib_sync_destroy) }),
            None => Ok(()),
        }
    }
}

/// Attributes of a channel adapter, as they were when it was asked. A buffer of `ib_ca_attr_t` and its
/// tables.
#[derive(Debug)]
pub struct CaAttributes(PoolVec<u64>);

impl CaAttributes {
    fn raw(&self) -> &ib_ca_attr_t {
        // SAFETY: `Ca::query` filled the buffer, which is large and aligned enough, and nothing changes it.
        unsafe { &*self.0.as_ptr().cast() }
    }

    /// Segments that a work request may have.
    pub fn max_segments(&self) -> u32 {
        self.raw().max_sges
    }

    /// Work requests that a queue may hold.
    pub fn max_work_requests(&self) -> u32 {
        self.raw().max_wrs
    }

    /// Completions that a CQ may hold.
    pub fn max_completions(&self) -> u32 {
        self.raw().max_cqes
    }

    /// Whether it computes and checks checksums of IP over InfiniBand.
    pub fn has_checksum_offload(&self) -> bool {
        self.raw().ipoib_csum != FALSE
    }

    /// Vendor and device, as PCI numbers them, and the hardware revision.
    pub fn device(&self) -> (u32, u16, u16) {
        let raw = self.raw();
        (raw.vend_id, raw.dev_id, raw.revision)
    }

    /// The port with this number, from 1.
    pub fn port(&self, number: u8) -> Option<PortAttributes<'_>> {
        let raw = self.raw();
        if raw.p_port_attr.is_null() {
            return None;
        }
        // SAFETY: the table of the ports in the same buffer, as many as the adapter says.
        let ports = unsafe { slice::from_raw_parts(raw.p_port_attr, usize::from(raw.num_ports)) };
        ports.iter().find(|port| port.port_num == number).map(PortAttributes)
    }
}

/// Attributes of a port, as they were when they were read. Numbers in host order.
#[derive(Clone, Copy, Debug)]
pub struct PortAttributes<'a>(&'a ib_port_attr_t);

/// The logical state of a port (InfiniBand Architecture volume 1, 14.2.5.6, PortState).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortState {
    /// No link.
    Down,
    /// The subnet manager has to configure it.
    Init,
    /// Configured, not started.
    Armed,
    /// Traffic may flow.
    Active,
}

impl<'a> PortAttributes<'a> {
    /// # Safety
    /// `raw` is valid for `'a`, and so are the tables that it names.
    pub(super) unsafe fn from_raw(raw: *const ib_port_attr_t) -> Option<Self> {
        // SAFETY: the caller's contract.
        unsafe { raw.as_ref() }.map(Self)
    }

    /// GUID.
    pub const fn guid(&self) -> u64 {
        self.0.port_guid.get()
    }

    /// Number, from 1.
    pub const fn number(&self) -> u8 {
        self.0.port_num
    }

    /// State.
    pub const fn state(&self) -> PortState {
        match self.0.link_state {
            IB_LINK_INIT => PortState::Init,
            IB_LINK_ARMED => PortState::Armed,
            IB_LINK_ACTIVE | IB_LINK_ACT_DEFER => PortState::Active,
            _ => PortState::Down,
        }
    }

    /// Base LID; zero before the subnet manager assigned one.
    pub const fn lid(&self) -> u16 {
        self.0.lid.get()
    }

    /// The port answers to two-to-this-power LIDs.
    pub const fn lmc(&self) -> u8 {
        self.0.lmc
    }

    /// LID of the subnet manager.
    pub const fn sm_lid(&self) -> u16 {
        self.0.sm_lid.get()
    }

    /// Service level to the subnet manager.
    pub const fn sm_sl(&self) -> u8 {
        self.0.sm_sl
    }

    /// Code of the MTU, `IB_MTU_LEN_*`.
    pub const fn mtu_code(&self) -> u8 {
        self.0.mtu
    }

    /// Whether the link is InfiniBand.
    pub fn is_infiniband(&self) -> bool {
        self.0.transport == RDMA_TRANSPORT_IB
    }

    /// Speed of the link in bits of data a second, all lanes: the signalling rate less the line coding, which
    /// is 8 of 10 bits to QDR and 64 of 66 above (InfiniBand Architecture volume 2, 5.2). Zero for a width or
    /// speed that has no meaning.
    pub const fn data_rate(&self) -> u64 {
        let lanes = match self.0.active_width {
            IB_LINK_WIDTH_ACTIVE_1X => 1,
            IB_LINK_WIDTH_ACTIVE_4X => 4,
            IB_LINK_WIDTH_ACTIVE_8X => 8,
            IB_LINK_WIDTH_ACTIVE_12X => 12,
            _ => 0,
        };
        let lane = match (self.0.ext_active_speed, self.0.active_speed) {
            (IB_LINK_SPEED_EXT_ACTIVE_25, _) => 25_000_000_000,
            (IB_LINK_SPEED_EXT_ACTIVE_14, _) => 13_636_363_636,
            (_, IB_LINK_SPEED_ACTIVE_10) => 8_000_000_000,
            (_, IB_LINK_SPEED_ACTIVE_5) => 4_000_000_000,
            (_, IB_LINK_SPEED_ACTIVE_2_5) => 2_000_000_000,
            _ => 0,
        };
        lanes * lane
    }

    /// Code of the link's rate, `IB_PATH_RECORD_RATE_*`, as `ib_port_info_compute_rate` gives it: what a rate
    /// in a path or member record is compared with.
    pub const fn rate_code(&self) -> u8 {
        let width = self.0.active_width;
        match (self.0.ext_active_speed, self.0.active_speed) {
            (IB_LINK_SPEED_EXT_ACTIVE_25, _) => by_width(
                width,
                [
                    IB_PATH_RECORD_RATE_25_GBS,
                    IB_PATH_RECORD_RATE_100_GBS,
                    IB_PATH_RECORD_RATE_200_GBS,
                    IB_PATH_RECORD_RATE_300_GBS,
                ],
            ),
            (IB_LINK_SPEED_EXT_ACTIVE_14, _) => by_width(
                width,
                [
                    IB_PATH_RECORD_RATE_14_GBS,
                    IB_PATH_RECORD_RATE_56_GBS,
                    IB_PATH_RECORD_RATE_112_GBS,
                    IB_PATH_RECORD_RATE_168_GBS,
                ],
            ),
            (_, IB_LINK_SPEED_ACTIVE_10) => by_width(
                width,
                [
                    IB_PATH_RECORD_RATE_10_GBS,
                    IB_PATH_RECORD_RATE_40_GBS,
                    IB_PATH_RECORD_RATE_80_GBS,
                    IB_PATH_RECORD_RATE_120_GBS,
                ],
            ),
            (_, IB_LINK_SPEED_ACTIVE_5) => by_width(
                width,
                [
                    IB_PATH_RECORD_RATE_5_GBS,
                    IB_PATH_RECORD_RATE_20_GBS,
                    IB_PATH_RECORD_RATE_40_GBS,
                    IB_PATH_RECORD_RATE_60_GBS,
                ],
            ),
            _ => by_width(
                width,
                [
                    IB_PATH_RECORD_RATE_2_5_GBS,
                    IB_PATH_RECORD_RATE_10_GBS,
                    IB_PATH_RECORD_RATE_20_GBS,
                    IB_PATH_RECORD_RATE_30_GBS,
                ],
            ),
        }
    }

    /// The GID table.
    pub fn gids(&self) -> impl Iterator<Item = [u8; 16]> + use<'a> {
        let table: &'a [ib_gid_t] = if self.0.p_gid_table.is_null() {
            &[]
        } else {
            // SAFETY: as many entries as the port says, valid as long as the attributes (`from_raw`).
            unsafe { slice::from_raw_parts(self.0.p_gid_table, usize::from(self.0.num_gids)) }
        };
        table.iter().map(|gid| gid.raw)
    }

    /// The P_Key table.
    pub fn pkeys(&self) -> impl Iterator<Item = u16> + use<'a> {
        let table: &'a [ib_net16_t] = if self.0.p_pkey_table.is_null() {
            &[]
        } else {
            // SAFETY: as many entries as the port says, valid as long as the attributes (`from_raw`).
            unsafe { slice::from_raw_parts(self.0.p_pkey_table, usize::from(self.0.num_pkeys)) }
        };
        table.iter().map(|pkey| pkey.get())
    }

    /// Where the partition is in the table: the full member if there is one, else the limited one. The top
    /// bit of `pkey`, which says which of the two it is, is not compared.
    pub fn pkey_index(&self, pkey: u16) -> Option<u16> {
        const FULL: u16 = 0x8000;
        let found = |entry: u16| self.pkeys().position(|candidate| candidate == entry);
        found(pkey | FULL).or_else(|| found(pkey & !FULL)).and_then(|index| u16::try_from(index).ok())
    }
}

/// The code for 1x, 4x, 8x or 12x; 1x for a width that has no meaning.
const fn by_width(width: u8, codes: [u8; 4]) -> u8 {
    let [x1, x4, x8, x12] = codes;
    match width {
        IB_LINK_WIDTH_ACTIVE_4X => x4,
        IB_LINK_WIDTH_ACTIVE_8X => x8,
        IB_LINK_WIDTH_ACTIVE_12X => x12,
        _ => x1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windows_kernel_sys::Zeroable;

    fn port(width: u8, speed: u8, extended: u8) -> ib_port_attr_t {
        let mut raw = ib_port_attr_t::zeroed();
        (raw.active_width, raw.active_speed, raw.ext_active_speed) = (width, speed, extended);
        raw
    }

    #[test]
    fn rates_follow_width_and_speed() {
        let cases = [
            (IB_LINK_WIDTH_ACTIVE_4X, IB_LINK_SPEED_ACTIVE_2_5, 0, 8_000_000_000, IB_PATH_RECORD_RATE_10_GBS),
            (IB_LINK_WIDTH_ACTIVE_4X, IB_LINK_SPEED_ACTIVE_5, 0, 16_000_000_000, IB_PATH_RECORD_RATE_20_GBS),
            (IB_LINK_WIDTH_ACTIVE_4X, IB_LINK_SPEED_ACTIVE_10, 0, 32_000_000_000, IB_PATH_RECORD_RATE_40_GBS),
            (IB_LINK_WIDTH_ACTIVE_1X, IB_LINK_SPEED_ACTIVE_10, 0, 8_000_000_000, IB_PATH_RECORD_RATE_10_GBS),
            (
                IB_LINK_WIDTH_ACTIVE_4X,
                IB_LINK_SPEED_ACTIVE_10,
                IB_LINK_SPEED_EXT_ACTIVE_25,
                100_000_000_000,
                IB_PATH_RECORD_RATE_100_GBS,
            ),
            (
                IB_LINK_WIDTH_ACTIVE_12X,
                IB_LINK_SPEED_ACTIVE_10,
                IB_LINK_SPEED_EXT_ACTIVE_14,
                163_636_363_632,
                IB_PATH_RECORD_RATE_168_GBS,
            ),
            (0, 0, 0, 0, IB_PATH_RECORD_RATE_2_5_GBS),
        ];
        for (width, speed, extended, rate, code) in cases {
            let raw = port(width, speed, extended);
            let port = PortAttributes(&raw);
            assert_eq!((port.data_rate(), port.rate_code()), (rate, code), "{width} {speed} {extended}");
        }
    }

    #[test]
    fn the_full_membership_of_a_partition_is_preferred() {
        let mut table = [0x7FFF, 0x0001, 0x8001, 0xFFFF].map(ib_net16_t::new);
        let mut raw = port(2, 1, 0);
        raw.num_pkeys = 4;
        raw.p_pkey_table = table.as_mut_ptr();
        let port = PortAttributes(&raw);
        assert_eq!(port.pkey_index(0x8001), Some(2));
        assert_eq!(port.pkey_index(0x0001), Some(2));
        assert_eq!(port.pkey_index(0xFFFF), Some(3));
        assert_eq!(port.pkey_index(0x8002), None);
        raw.num_pkeys = 2;
        assert_eq!(PortAttributes(&raw).pkey_index(0x8001), Some(1), "the limited one if it is alone");
    }

    #[test]
    fn tables_that_are_absent_are_empty() {
        let raw = port(2, 1, 0);
        let port = PortAttributes(&raw);
        assert!(port.gids().next().is_none() && port.pkeys().next().is_none());
    }
}
