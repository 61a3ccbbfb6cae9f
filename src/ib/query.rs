//! Queries to the subnet administrator.

use core::ffi::{c_char, c_void};
use core::ptr;
use core::sync::atomic::Ordering;

use ibal_sys::*;
use windows_kernel_sys::Zeroable;

use crate::kernel::arc::PoolArc;
use crate::kernel::irql::{Passive, at_dispatch};

use super::al::Al;
use super::client::Client;
use super::interface::{Api, TAG};
use super::slots::{Slot, SlotId, Table};
use super::status::{IbError, failure};

/// Patience with the subnet administrator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// How long one try may take, in milliseconds.
    pub timeout_ms: u32,
    /// Tries after the first.
    pub retries: u32,
}

/// Which path is asked for. Numbers in host order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathRequest {
    /// Port to ask from; the path begins there.
    pub port_guid: u64,
    /// GID of that port.
    pub source: [u8; 16],
    /// Where the path ends.
    pub destination: Destination,
    /// Partition.
    pub pkey: u16,
}

/// Where a path ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// At the port with this GID.
    Gid([u8; 16]),
    /// At the port with this LID.
    Lid(u16),
}

/// A path to another port. Numbers in host order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathRecord {
    /// GID at the end of the path.
    pub destination: [u8; 16],
    /// GID at its beginning.
    pub source: [u8; 16],
    /// LID at the end.
    pub dlid: u16,
    /// LID at the beginning.
    pub slid: u16,
    /// Partition.
    pub pkey: u16,
    /// Service level.
    pub sl: u8,
    /// Code of the MTU, `IB_MTU_LEN_*`.
    pub mtu_code: u8,
    /// Code of the rate, `IB_PATH_RECORD_RATE_*`.
    pub rate_code: u8,
    /// Packet lifetime: 4.096 us times two to this power.
    pub packet_life: u8,
    /// Flow label.
    pub flow_label: u32,
    /// Traffic class.
    pub traffic_class: u8,
    /// Hop limit; above 1 the destination is behind a router, and a GRH is needed.
    pub hop_limit: u8,
}

impl PathRecord {
    fn from_raw(raw: &ib_path_rec_t) -> Self {
        Self {
            destination: raw.dgid.raw,
            source: raw.sgid.raw,
            dlid: { raw.dlid }.get(),
            slid: { raw.slid }.get(),
            pkey: { raw.pkey }.get(),
            sl: raw.sl(),
            mtu_code: raw.mtu_code(),
            rate_code: raw.rate_code(),
            packet_life: raw.packet_life(),
            flow_label: raw.flow_label(),
            traffic_class: raw.tclass,
            hop_limit: raw.hop_limit(),
        }
    }
}

/// Why a query brought nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryError {
    /// No answer in time.
    TimedOut,
    /// Cancelled, here or because the port is going.
    Cancelled,
    /// The administrator refused, with this MAD status (`IB_SA_MAD_STATUS_*`), in host order.
    Refused(u16),
    /// The administrator has no such record.
    NoRecord,
    /// The answer is not one to this question: too short, or of another attribute.
    Malformed,
    /// The access layer failed.
    Failed(IbError),
}

/// A query in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryId(SlotId);

/// Queries in flight, a fixed number.
pub struct Queries<A> {
    api: Api,
    al: ib_al_handle_t,
    table: PoolArc<Requests<A>>,
}

/// A slot is not enough for a query's callback: it must return the MAD, for which it needs the functions.
struct Asker<A> {
    client: PoolArc<A>,
    api: Api,
}

type Requests<A> = Table<Asker<A>, _al_query>;
type Request<A> = Slot<Asker<A>, _al_query>;

// SAFETY: the handle is an opaque address; the access layer serialises what is done to its objects.
unsafe impl<A: Client> Send for Queries<A> {}
// SAFETY: as above.
unsafe impl<A: Client> Sync for Queries<A> {}

impl<A: Client> Queries<A> {
    /// Room for `capacity` queries at once. IRQL <= DISPATCH_LEVEL.
    pub fn new(al: &Al, client: &PoolArc<A>, capacity: usize) -> Result<Self, IbError> {
        let asker = Asker { client: client.clone(), api: al.api.clone() };
        let asker = PoolArc::try_new(TAG, asker).map_err(|_| IbError::NO_MEMORY)?;
        Ok(Self { api: al.api.clone(), al: al.handle(), table: Table::try_new(&asker, capacity)? })
    }

    /// Asks for a path (`ib_query`). If this succeeds, [`Client::query_done`] follows with `token`, once,
    /// possibly before this returns.
    ///
    /// # Errors
    /// `NO_RESOURCES` when all places are taken, `STATE` after [`Queries::close`]; `IB_INVALID_GUID` while
    /// the port has no subnet manager; memory.
    pub fn path(
        &self,
        request: &PathRequest,
        patience: Patience,
        token: u64,
        _at: &Passive<'_>,
    ) -> Result<QueryId, IbError> {
        let mut record = ib_path_rec_t {
            sgid: ib_gid_t { raw: request.source },
            pkey: ib_net16_t::new(request.pkey),
            // One path, reversible.
            num_path: 0x81,
            ..Default::default()
        };
        let end = match request.destination {
            Destination::Gid(gid) => {
                record.dgid = ib_gid_t { raw: gid };
                IB_PR_COMPMASK_DGID
            }
            Destination::Lid(lid) => {
                record.dlid = ib_net16_t::new(lid);
                IB_PR_COMPMASK_DLID
            }
        };
        let mask = end.get()
            | IB_PR_COMPMASK_SGID.get()
            | IB_PR_COMPMASK_PKEY.get()
            | IB_PR_COMPMASK_REVERSIBLE.get()
            | IB_PR_COMPMASK_NUMBPATH.get();
        let input = ib_user_query_t {
            method: IB_MAD_METHOD_GETTABLE,
            attr_id: IB_MAD_ATTR_PATH_RECORD,
            attr_size: size_of::<ib_path_rec_t>() as u32,
            comp_mask: ib_net64_t::new(mask),
            p_attr: (&raw mut record).cast(),
        };
        let starting = Requests::start(&self.table, token)?;
        let mut raw = ib_query_req_t::zeroed();
        raw.query_type = IB_QUERY_USER_DEFINED;
        raw.p_query_input = (&raw const input).cast();
        raw.port_guid = ib_net64_t::new(request.port_guid);
        raw.timeout_ms = patience.timeout_ms;
        raw.retry_cnt = patience.retries;
        raw.query_context = starting.slot.context();
        raw.pfn_query_cb = Some(on_query::<A>);
        let mut handle = ptr::null_mut();
        // SAFETY: at PASSIVE_LEVEL; the request is copied before the call returns; the context is a slot in
        // use, which keeps its table until the callback; a place for the handle.
        let status = unsafe { (self.api.query)(self.al, &raw const raw, &raw mut handle) };
        if !status.is_success() {
            starting.reject();
            return Err(failure(status));
        }
        // The query may be over by now. Its handle is stale then, which does no harm: the access layer only
        // compares it with those of its queries (`al.c`, `ib_cancel_query`).
        starting.slot.handle.store(handle, Ordering::Release);
        if self.table.is_closed() {
            self.cancel_slot(starting.slot);
        }
        Ok(QueryId(starting.id))
    }

    /// Asks a query to end soon, as cancelled (`ib_cancel_query`). Without effect if it is over.
    /// IRQL <= DISPATCH_LEVEL.
    pub fn cancel(&self, id: QueryId) {
        if let Some(slot) = self.table.find(id.0) {
            self.cancel_slot(&slot);
        }
    }

    fn cancel_slot(&self, slot: &Request<A>) {
        let handle = slot.handle.load(Ordering::Acquire);
        if !handle.is_null() {
            // SAFETY: callable to DISPATCH_LEVEL. The access layer looks the handle up among its queries
            // before it reads it (`al.c`, `ib_cancel_query`), so it may be stale.
            unsafe { (self.api.cancel_query)(self.al, handle) };
        }
    }

    /// Takes no more queries, and asks those in flight to end. IRQL <= DISPATCH_LEVEL.
    pub fn close(&self) {
        self.table.close();
        for slot in self.table.in_use() {
            self.cancel_slot(&slot);
        }
    }

    /// Closes, and waits until no query is in flight: no callback will come. Before the access layer is
    /// closed.
    pub fn destroy(&self, at: &Passive<'_>) {
        self.close();
        self.table.drain(at);
    }
}

/// `ib_pfn_query_cb_t`.
unsafe extern "win64" fn on_query<A: Client>(record: *mut ib_query_rec_t) {
    // SAFETY: the access layer passes a valid record.
    let record = unsafe { &*record };
    // SAFETY: the context is a slot in use: this is the one callback of its request, and `end` comes below.
    let slot = unsafe { &*record.query_context.cast::<Request<A>>() };
    // SAFETY: the record's MAD, if any, is this callback's until it is returned.
    let result = unsafe { outcome(record) };
    // SAFETY: this is the request's last callback.
    let Some(ended) = (unsafe { slot.end() }) else {
        return;
    };
    let mad = record.p_result_mad;
    ended.report(|asker, token| {
        if !mad.is_null() {
            // SAFETY: the MAD is not used any more; callable to DISPATCH_LEVEL.
            let _ = unsafe { (asker.api.put_mad)(FILE.as_ptr().cast::<c_char>(), line!() as i32, mad) };
        }
        // SAFETY: query callbacks run at or below DISPATCH_LEVEL.
        unsafe { at_dispatch(|at| asker.client.query_done(token, result, at)) };
    });
}

/// What `put_mad` is told about its caller.
const FILE: &[u8] = b"ipoib\0";

/// # Safety
/// `record` is what the access layer handed to a query callback.
unsafe fn outcome(record: &ib_query_rec_t) -> Result<PathRecord, QueryError> {
    // SAFETY: null, or an element that is valid during the callback.
    let element = unsafe { record.p_result_mad.as_ref() };
    // SAFETY: the buffer of an element has `size` bytes.
    let mad =
        element.and_then(|element| unsafe { Mad::new(element.p_mad_buf.cast(), element.size as usize) });
    match record.status {
        IB_SUCCESS => {
            let mad = mad.ok_or(QueryError::Malformed)?;
            if record.result_cnt == 0 {
                return Err(QueryError::NoRecord);
            }
            mad.first_path().ok_or(QueryError::Malformed)
        }
        IB_REMOTE_ERROR => Err(match mad.map(|mad| mad.status()) {
            Some(status) if status == IB_SA_MAD_STATUS_NO_RECORDS.get() => QueryError::NoRecord,
            Some(status) => QueryError::Refused(status),
            None => QueryError::Malformed,
        }),
        IB_TIMEOUT => Err(QueryError::TimedOut),
        IB_CANCELED => Err(QueryError::Cancelled),
        status => Err(QueryError::Failed(failure(status))),
    }
}

/// The bytes of an answer, which the fabric sent and nobody checked.
#[derive(Clone, Copy)]
struct Mad<'a>(&'a [u8]);

impl Mad<'_> {
    /// # Safety
    /// `buffer` has `size` bytes that nobody writes while the value lives.
    unsafe fn new(buffer: *const c_void, size: usize) -> Option<Self> {
        if buffer.is_null() || size < IB_SA_MAD_HDR_SIZE {
            return None;
        }
        // SAFETY: the caller's contract.
        Some(Self(unsafe { core::slice::from_raw_parts(buffer.cast(), size) }))
    }

    /// Two bytes of the header.
    fn field(&self, offset: usize) -> u16 {
        self.0
            .get(offset..)
            .and_then(|bytes| bytes.first_chunk::<2>())
            .map_or(0, |bytes| u16::from_be_bytes(*bytes))
    }

    /// Status, host order.
    fn status(&self) -> u16 {
        self.field(core::mem::offset_of!(ib_sa_mad_t, status))
    }

    /// The first record, if it is a whole path record.
    fn first_path(&self) -> Option<PathRecord> {
        let attribute = self.field(core::mem::offset_of!(ib_sa_mad_t, attr_id));
        // In units of 8 bytes.
        let distance = usize::from(self.field(core::mem::offset_of!(ib_sa_mad_t, attr_offset))) * 8;
        let record = self.0.get(IB_SA_MAD_HDR_SIZE..)?.first_chunk::<{ size_of::<ib_path_rec_t>() }>()?;
        if attribute != IB_MAD_ATTR_PATH_RECORD.get() || distance < size_of::<ib_path_rec_t>() {
            return None;
        }
        // SAFETY: as many bytes as the record has; it is packed, and any bytes are a valid one.
        Some(PathRecord::from_raw(unsafe { &*record.as_ptr().cast::<ib_path_rec_t>() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer with one path record to LID 0x0042.
    fn answer() -> [u8; MAD_BLOCK_SIZE] {
        let mut bytes = [0; MAD_BLOCK_SIZE];
        bytes[16..18].copy_from_slice(&[0x00, 0x35]);
        bytes[44..46].copy_from_slice(&[0x00, 0x08]);
        let record = &mut bytes[IB_SA_MAD_HDR_SIZE..];
        record[8..24].fill(0xD6);
        record[24..40].fill(0x56);
        record[40..42].copy_from_slice(&[0x00, 0x42]);
        record[44..48].copy_from_slice(&[0x00, 0x12, 0x34, 0x01]);
        record[50..52].copy_from_slice(&[0xFF, 0xFF]);
        record[52..54].copy_from_slice(&[0xAB, 0xC5]);
        record[54..57].copy_from_slice(&[0x84, 0x86, 0x92]);
        bytes
    }

    fn element(mad: &mut [u8]) -> ib_mad_element_t {
        let mut element = ib_mad_element_t::zeroed();
        element.size = mad.len() as u32;
        element.p_mad_buf = mad.as_mut_ptr().cast();
        element
    }

    fn ask(status: ib_api_status_t, count: u32, mad: Option<&mut [u8]>) -> Result<PathRecord, QueryError> {
        let mut record = ib_query_rec_t::zeroed();
        (record.status, record.result_cnt) = (status, count);
        let mut element = mad.map(element);
        record.p_result_mad = element.as_mut().map_or(ptr::null_mut(), ptr::from_mut);
        // SAFETY: a record like the access layer's.
        unsafe { outcome(&record) }
    }

    #[test]
    fn a_path_record_is_read_in_the_order_of_the_wire() {
        let path = ask(IB_SUCCESS, 1, Some(&mut answer())).expect("a record");
        assert_eq!((path.destination, path.source), ([0xD6; 16], [0x56; 16]));
        assert_eq!((path.dlid, path.pkey, path.sl), (0x0042, 0xFFFF, 5));
        assert_eq!((path.flow_label, path.hop_limit), (0x1234, 1));
        assert_eq!((path.mtu_code, path.rate_code, path.packet_life), (4, 6, 0x12));
    }

    #[test]
    fn an_answer_that_is_too_short_or_about_something_else_is_malformed() {
        assert_eq!(ask(IB_SUCCESS, 1, None), Err(QueryError::Malformed));
        for size in [0, 20, IB_SA_MAD_HDR_SIZE, IB_SA_MAD_HDR_SIZE + 63] {
            assert_eq!(ask(IB_SUCCESS, 1, Some(&mut answer()[..size])), Err(QueryError::Malformed), "{size}");
        }
        let mut other = answer();
        other[17] = 0x38;
        assert_eq!(ask(IB_SUCCESS, 1, Some(&mut other)), Err(QueryError::Malformed));
        let mut close = answer();
        close[45] = 7;
        assert_eq!(ask(IB_SUCCESS, 1, Some(&mut close)), Err(QueryError::Malformed));
    }

    #[test]
    fn no_record_refused_late_and_cancelled_are_told_apart() {
        assert_eq!(ask(IB_SUCCESS, 0, Some(&mut answer())), Err(QueryError::NoRecord));
        let mut refused = answer();
        refused[4..6].copy_from_slice(&[0x03, 0x00]);
        assert_eq!(ask(IB_REMOTE_ERROR, 0, Some(&mut refused)), Err(QueryError::NoRecord));
        refused[4..6].copy_from_slice(&[0x02, 0x00]);
        assert_eq!(ask(IB_REMOTE_ERROR, 0, Some(&mut refused)), Err(QueryError::Refused(0x0200)));
        assert_eq!(ask(IB_TIMEOUT, 0, None), Err(QueryError::TimedOut));
        assert_eq!(ask(IB_CANCELED, 0, None), Err(QueryError::Cancelled));
        assert!(matches!(ask(IB_ERROR, 0, None), Err(QueryError::Failed(_))));
    }
}
