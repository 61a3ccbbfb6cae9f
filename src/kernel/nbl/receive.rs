//! Receives: buffers that the HCA fills, indicated up in place.

use super::super::adapter::AdapterHandle;
use super::super::irql::{Dispatch, Passive};
use super::super::physical::{DmaBuffer, Segment};
use super::super::pool::{PoolBox, Tag};
use super::super::status::{Error, Result};
use super::RawChain;
use core::ptr::NonNull;
use windows_kernel_sys as sys;

const TAG: Tag = Tag::new(*b"IbRx");

/// Place in the MiniportReserved of a NET_BUFFER_LIST: the [`Inner`] it belongs to.
const OWNER: usize = 0;

/// The most pieces a buffer may have in physical memory: an IB MTU of 4,096 and a GRH cross at most two page
/// boundaries.
const MAX_SEGMENTS: usize = 3;

/// Where the NET_BUFFER_LISTs of receive buffers come from (nblapi/nf-nblapi-ndisallocatenetbufferlistpool).
#[derive(Debug)]
pub struct ReceivePool {
    handle: sys::NDIS_HANDLE,
    adapter: AdapterHandle,
}

// SAFETY: NDIS serialises allocations from a pool.
unsafe impl Send for ReceivePool {}
// SAFETY: as above.
unsafe impl Sync for ReceivePool {}

impl ReceivePool {
    /// A pool of lists with one NET_BUFFER each.
    pub fn try_new(adapter: AdapterHandle, _at: &Passive<'_>) -> Result<Self> {
        let parameters = sys::NET_BUFFER_LIST_POOL_PARAMETERS {
            Header: sys::NDIS_OBJECT_HEADER::new(
                sys::NDIS_OBJECT_TYPE_DEFAULT,
                sys::NET_BUFFER_LIST_POOL_PARAMETERS_REVISION_1,
                sys::NDIS_SIZEOF_NET_BUFFER_LIST_POOL_PARAMETERS_REVISION_1,
            ),
            ProtocolId: sys::NDIS_PROTOCOL_ID_DEFAULT,
            fAllocateNetBuffer: sys::TRUE,
            ContextSize: 0,
            PoolTag: TAG.value(),
            DataSize: 0,
            Flags: 0,
        };
        // SAFETY: a valid handle and description.
        let handle = unsafe { sys::NdisAllocateNetBufferListPool(adapter.raw(), &raw const parameters) };
        if handle.is_null() { Err(Error::RESOURCES) } else { Ok(Self { handle, adapter }) }
    }

    /// Frees the pool, for which every buffer from it must have been freed.
    pub fn free(self, _at: &Passive<'_>) {
        // SAFETY: a live pool at PASSIVE_LEVEL, given up by value.
        unsafe { sys::NdisFreeNetBufferListPool(self.handle) };
    }

    /// A buffer of `size` bytes with its MDL, NET_BUFFER and NET_BUFFER_LIST. IRQL <= DISPATCH_LEVEL.
    pub fn allocate(&self, size: u32) -> Result<ReceiveBuffer> {
        let memory = DmaBuffer::try_new(TAG, size as usize)?;
        let mut segments = [Segment::default(); MAX_SEGMENTS];
        let mut segment_count = 0;
        for segment in memory.segments(0..size as usize) {
            *segments.get_mut(segment_count).ok_or(Error::INVALID_PARAMETER)? = segment;
            segment_count += 1;
        }
        let address = memory.bytes().as_ptr().cast_mut().cast();
        // SAFETY: nonpaged memory of that size, owned by `memory`.
        let mdl = unsafe { sys::NdisAllocateMdl(self.adapter.raw(), address, size) };
        let mdl = Mdl(NonNull::new(mdl).ok_or(Error::RESOURCES)?);
        // SAFETY: a live pool; the MDL describes at least the zero bytes of data asked for.
        let nbl =
            unsafe { sys::NdisAllocateNetBufferAndNetBufferList(self.handle, 0, 0, mdl.0.as_ptr(), 0, 0) };
        let nbl = List(NonNull::new(nbl).ok_or(Error::RESOURCES)?);
        let inner = PoolBox::try_new(TAG, Inner { nbl, mdl, memory, segments, segment_count })?;
        // SAFETY: a list of our own pool: its SourceHandle and MiniportReserved are ours to set.
        unsafe {
            let nbl = inner.nbl.0.as_ptr();
            (*nbl).SourceHandle = self.adapter.raw();
            (*nbl).MiniportReserved[OWNER] = inner.as_ptr().cast();
        }
        Ok(ReceiveBuffer(inner))
    }
}

/// Freed by NDIS.
#[derive(Debug)]
struct Mdl(NonNull<sys::MDL>);

impl Drop for Mdl {
    fn drop(&mut self) {
        // SAFETY: from NdisAllocateMdl, owned by this value.
        unsafe { sys::NdisFreeMdl(self.0.as_ptr()) };
    }
}

/// Freed to its pool.
#[derive(Debug)]
struct List(NonNull<sys::NET_BUFFER_LIST>);

impl Drop for List {
    fn drop(&mut self) {
        // SAFETY: from NdisAllocateNetBufferAndNetBufferList, owned by this value.
        unsafe { sys::NdisFreeNetBufferList(self.0.as_ptr()) };
    }
}

/// Fields are dropped in this order: the list before the MDL it points to, the MDL before the memory it describes.
#[derive(Debug)]
struct Inner {
    nbl: List,
    mdl: Mdl,
    memory: DmaBuffer,
    segments: [Segment; MAX_SEGMENTS],
    segment_count: usize,
}

/// One receive buffer. Dropping it frees it; IRQL <= DISPATCH_LEVEL.
#[derive(Debug)]
pub struct ReceiveBuffer(PoolBox<Inner>);

// SAFETY: owns all it points to.
unsafe impl Send for ReceiveBuffer {}
// SAFETY: shared access only reads.
unsafe impl Sync for ReceiveBuffer {}

/// What the receiver has already verified about a frame, for NDIS to pass on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verified(pub sys::NDIS_RECEIVE_CHECKSUM_INFO);

impl ReceiveBuffer {
    /// The whole memory, as the HCA fills it.
    pub fn bytes(&self) -> &[u8] {
        self.0.memory.bytes()
    }

    /// The whole memory, to write to.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.0.memory.bytes_mut()
    }

    /// The whole memory as the HCA sees it, in order.
    pub fn segments(&self) -> &[Segment] {
        self.0.segments.get(..self.0.segment_count).unwrap_or_default()
    }

    /// Says which part of the memory is the frame, and what is known of its checksums. `false`, and nothing is
    /// changed, if it is not inside the memory.
    #[must_use]
    pub fn set_frame(&mut self, offset: usize, length: usize, verified: Verified) -> bool {
        let inside = offset.checked_add(length).is_some_and(|end| end <= self.0.memory.size());
        if inside {
            let mdl = self.0.mdl.0.as_ptr();
            // SAFETY: an owned list with one NET_BUFFER; the MDL describes the whole memory.
            unsafe {
                let nbl = self.0.nbl.0.as_ptr();
                let buffer = (*nbl).FirstNetBuffer;
                (*buffer).MdlChain = mdl;
                (*buffer).CurrentMdl = mdl;
                (*buffer).CurrentMdlOffset = offset as u32;
                (*buffer).DataOffset = offset as u32;
                (*buffer).stDataLength = length;
                (*nbl).Status = sys::NDIS_STATUS_SUCCESS;
                (*nbl).NblFlags = 0;
                (*nbl).NetBufferListInfo = [core::ptr::null_mut(); sys::MaxNetBufferListInfo];
                (*nbl).NetBufferListInfo[sys::TcpIpChecksumNetBufferListInfo] =
                    verified.0.bits() as sys::PVOID;
            }
        }
        inside
    }

    fn into_nbl(self) -> *mut sys::NET_BUFFER_LIST {
        let nbl = self.0.nbl.0.as_ptr();
        // The list's MiniportReserved has the way back.
        let _ = self.0.into_raw();
        nbl
    }

    /// # Safety
    /// `nbl` is from `into_nbl`, and is taken back once.
    unsafe fn from_nbl(nbl: *mut sys::NET_BUFFER_LIST) -> Option<Self> {
        // SAFETY: a list that the miniport owns again, with the owner that `allocate` set.
        let owner = NonNull::new(unsafe { (*nbl).MiniportReserved[OWNER] }.cast())?;
        // SAFETY: `into_nbl` gave the box up.
        Some(Self(unsafe { PoolBox::from_raw(owner, TAG) }))
    }
}

/// Frames to be indicated.
#[derive(Debug)]
#[must_use = "the buffers must be indicated"]
pub struct ReceiveChain(RawChain);

impl Default for ReceiveChain {
    fn default() -> Self {
        Self::new()
    }
}

impl ReceiveChain {
    /// Empty.
    pub const fn new() -> Self {
        Self(RawChain::new())
    }

    /// Adds a buffer whose frame is set.
    pub fn push_back(&mut self, buffer: ReceiveBuffer) {
        // SAFETY: an owned list, given up to the chain.
        unsafe { self.0.push(buffer.into_nbl()) };
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.head.is_null()
    }

    /// How many frames.
    pub fn len(&self) -> u32 {
        self.0.count
    }

    /// Indicates the frames; NDIS owns the buffers until MiniportReturnNetBufferLists brings them back
    /// (ndis/nf-ndis-ndismindicatereceivenetbufferlists). Nothing happens for an empty chain.
    pub fn indicate(mut self, adapter: AdapterHandle, _at: Dispatch<'_>) {
        indicate(&mut self.0, adapter, sys::NDIS_RECEIVE_FLAGS::empty());
    }

    /// Indicates the frames for the time of the call only, as when buffers are scarce
    /// (NDIS_RECEIVE_FLAGS_RESOURCES); the buffers come back at once.
    #[must_use = "the buffers are to be reused or freed"]
    pub fn indicate_for_now(mut self, adapter: AdapterHandle, _at: Dispatch<'_>) -> ReturnedChain {
        let head = indicate(&mut self.0, adapter, sys::NDIS_RECEIVE_FLAGS::RESOURCES);
        // SAFETY: with RESOURCES the lists are the miniport's again when the call returns, in the chain it made.
        ReturnedChain(unsafe { RawChain::adopt(head) })
    }
}

/// Indicates at DISPATCH_LEVEL, which the callers have a proof of.
fn indicate(
    chain: &mut RawChain,
    adapter: AdapterHandle,
    flags: sys::NDIS_RECEIVE_FLAGS,
) -> *mut sys::NET_BUFFER_LIST {
    let (head, count) = chain.take();
    if !head.is_null() {
        let flags = (flags | sys::NDIS_RECEIVE_FLAGS::DISPATCH_LEVEL).bits();
        // SAFETY: lists of our own pool, each owned by the chain, `count` of them.
        unsafe {
            sys::NdisMIndicateReceiveNetBufferLists(
                adapter.raw(),
                head,
                sys::NDIS_DEFAULT_PORT_NUMBER,
                count,
                flags,
            );
        }
    }
    head
}

/// Buffers that came back.
#[derive(Debug)]
#[must_use = "the buffers are to be reused or freed"]
pub struct ReturnedChain(RawChain);

impl ReturnedChain {
    /// Takes over what MiniportReturnNetBufferLists is called with.
    ///
    /// # Safety
    /// `head` is that chain, of lists that this driver indicated, and nobody else takes it over.
    pub unsafe fn from_raw(head: *mut sys::NET_BUFFER_LIST) -> Self {
        // SAFETY: the caller's contract.
        Self(unsafe { RawChain::adopt(head) })
    }

    /// How many buffers.
    pub fn len(&self) -> u32 {
        self.0.count
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.head.is_null()
    }
}

impl Iterator for ReturnedChain {
    type Item = ReceiveBuffer;

    fn next(&mut self) -> Option<ReceiveBuffer> {
        let nbl = self.0.pop()?;
        // SAFETY: a list that this driver indicated and that came back.
        unsafe { ReceiveBuffer::from_nbl(nbl) }
    }
}
