//! Sends: from the chain that NDIS hands over to its completion.

use super::super::adapter::AdapterHandle;
use super::super::irql::Dispatch;
use super::super::mdl::Chunks;
use super::RawChain;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use windows_kernel_sys as sys;

/// Place in the MiniportReserved of a NET_BUFFER_LIST: how many of its NET_BUFFERs are not finished.
const PENDING: usize = 0;

/// Places in the MiniportReserved of a NET_BUFFER.
pub(in crate::kernel) mod reserved {
    /// The next buffer of a queue.
    pub(in crate::kernel) const LINK: usize = 0;
    /// The NET_BUFFER_LIST that the buffer belongs to.
    pub(in crate::kernel) const PARENT: usize = 1;
    /// The DMA registration that maps the buffer.
    pub(in crate::kernel) const DMA: usize = 2;
    /// The storage for its scatter/gather list.
    pub(in crate::kernel) const STORAGE: usize = 3;
}

/// NET_BUFFER_LISTs to be sent, or sent and to be completed.
#[derive(Debug)]
#[must_use = "each list must be completed"]
pub struct SendChain(RawChain);

impl Default for SendChain {
    fn default() -> Self {
        Self::new()
    }
}

impl SendChain {
    /// An empty chain, to collect completed lists in.
    pub const fn new() -> Self {
        Self(RawChain::new())
    }

    /// Takes over what MiniportSendNetBufferLists is called with.
    ///
    /// # Safety
    /// `head` is that chain, and nobody else takes it over.
    pub unsafe fn from_raw(head: *mut sys::NET_BUFFER_LIST) -> Self {
        // SAFETY: the caller's contract.
        Self(unsafe { RawChain::adopt(head) })
    }

    /// Takes the first list out.
    pub fn pop_front(&mut self) -> Option<SendNbl> {
        Some(SendNbl(NonNull::new(self.0.pop()?)?))
    }

    /// Adds a list at the end.
    #[allow(clippy::needless_pass_by_value, reason = "the list is given up")]
    pub fn push_back(&mut self, nbl: SendNbl) {
        // SAFETY: an owned list, given up to the chain.
        unsafe { self.0.push(nbl.0.as_ptr()) };
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.head.is_null()
    }

    /// How many lists.
    pub fn len(&self) -> u32 {
        self.0.count
    }

    /// Gives the lists back to NDIS with the status each has
    /// (ndis/nf-ndis-ndismsendnetbufferlistscomplete). Nothing happens for an empty chain.
    pub fn complete(mut self, adapter: AdapterHandle, _at: Dispatch<'_>) {
        let (head, _) = self.0.take();
        if !head.is_null() {
            let flags = sys::NDIS_SEND_COMPLETE_FLAGS::DISPATCH_LEVEL.bits();
            // SAFETY: lists that NDIS handed over, each given back once since this value owned them.
            unsafe { sys::NdisMSendNetBufferListsComplete(adapter.raw(), head, flags) };
        }
    }

    /// Gives the lists back unsent, all with `status`.
    pub fn abort(mut self, status: sys::NDIS_STATUS, adapter: AdapterHandle, at: Dispatch<'_>) {
        let mut aborted = Self::new();
        while let Some(nbl) = self.pop_front() {
            nbl.set_status(status);
            aborted.push_back(nbl);
        }
        aborted.complete(adapter, at);
    }
}

/// One NET_BUFFER_LIST to be sent, or sent and to be completed.
#[derive(Debug)]
#[must_use = "the list must be completed"]
pub struct SendNbl(NonNull<sys::NET_BUFFER_LIST>);

// SAFETY: owned by the value; the data behind it is not written to by anyone.
unsafe impl Send for SendNbl {}

impl SendNbl {
    /// The id by which NDIS may cancel it; null if it has none.
    pub fn cancel_id(&self) -> *const () {
        // SAFETY: an owned list.
        unsafe { sys::NDIS_GET_NET_BUFFER_LIST_CANCEL_ID(self.0.as_ptr()).cast() }
    }

    /// Sets the status it will be completed with.
    pub fn set_status(&self, status: sys::NDIS_STATUS) {
        list_status(self.0).store(status, Ordering::Relaxed);
    }

    /// Splits it into its NET_BUFFERs, of which there is at least one by NDIS's rules. Each must be finished; the
    /// last to be finished gives the list back ([`SendBuffer::finish`]). The status is success until one fails.
    pub fn into_buffers(self) -> SendBuffers {
        let nbl = self.0.as_ptr();
        // SAFETY: an owned list.
        let first = unsafe { (*nbl).FirstNetBuffer };
        let mut count = 0_usize;
        let mut buffer = first;
        while !buffer.is_null() {
            count += 1;
            // SAFETY: a NET_BUFFER of the list, which the miniport owns with it.
            unsafe {
                (*buffer).MiniportReserved[reserved::PARENT] = nbl.cast();
                buffer = (*buffer).Next;
            }
        }
        self.set_status(sys::NDIS_STATUS_SUCCESS);
        pending(self.0).store(count, Ordering::Relaxed);
        SendBuffers { next: first, empty: if count == 0 { Some(self) } else { None } }
    }
}

/// The NET_BUFFERs of a list in order. Take all: one that is left makes its list never complete.
#[derive(Debug)]
#[must_use = "each buffer must be finished"]
pub struct SendBuffers {
    next: *mut sys::NET_BUFFER,
    empty: Option<SendNbl>,
}

impl SendBuffers {
    /// The list itself, if it has no NET_BUFFER at all, so that no buffer can give it back.
    pub fn take_empty(&mut self) -> Option<SendNbl> {
        self.empty.take()
    }
}

impl Iterator for SendBuffers {
    type Item = SendBuffer;

    fn next(&mut self) -> Option<SendBuffer> {
        let buffer = NonNull::new(self.next)?;
        // SAFETY: not yet handed out, so its list is not finished.
        self.next = unsafe { buffer.as_ref() }.Next;
        Some(SendBuffer(buffer))
    }
}

/// One NET_BUFFER, that is one Ethernet frame to be sent.
#[derive(Debug)]
#[must_use = "the buffer must be finished"]
pub struct SendBuffer(NonNull<sys::NET_BUFFER>);

// SAFETY: owned by the value; the data behind it is not written to by anyone.
unsafe impl Send for SendBuffer {}

impl SendBuffer {
    /// # Safety
    /// A buffer out of [`SendBuffer::into_raw`], taken back once.
    pub(in crate::kernel) unsafe fn from_raw(buffer: NonNull<sys::NET_BUFFER>) -> Self {
        Self(buffer)
    }

    /// Gives the buffer up to a raw pointer.
    pub(in crate::kernel) fn into_raw(self) -> NonNull<sys::NET_BUFFER> {
        self.0
    }

    pub(in crate::kernel) fn raw(&self) -> &sys::NET_BUFFER {
        // SAFETY: an owned NET_BUFFER.
        unsafe { self.0.as_ref() }
    }

    /// The place in which the modules that hold this buffer keep what belongs to it.
    pub(in crate::kernel) fn reserve(&mut self, place: usize, value: sys::PVOID) {
        // SAFETY: an owned NET_BUFFER, borrowed exclusively.
        let reserved = unsafe { &mut self.0.as_mut().MiniportReserved };
        if let Some(slot) = reserved.get_mut(place) {
            *slot = value;
        }
    }

    fn parent(&self) -> NonNull<sys::NET_BUFFER_LIST> {
        let [_, parent, ..] = self.raw().MiniportReserved;
        // SAFETY: `into_buffers` set it, to a list that lives until its last buffer is finished.
        unsafe { NonNull::new_unchecked(parent.cast()) }
    }

    /// Bytes of the frame, Ethernet header included.
    pub fn data_length(&self) -> usize {
        self.raw().stDataLength & 0xFFFF_FFFF
    }

    /// The id by which NDIS may cancel it, the same for all buffers of a list; null if it has none.
    pub fn cancel_id(&self) -> *const () {
        // SAFETY: the list lives until its last buffer is finished.
        unsafe { sys::NDIS_GET_NET_BUFFER_LIST_CANCEL_ID(self.parent().as_ptr()).cast() }
    }

    /// What NDIS asks of checksum offload for the buffer's list.
    pub fn checksum_info(&self) -> sys::NDIS_SEND_CHECKSUM_INFO {
        // SAFETY: the list lives until its last buffer is finished.
        let info =
            unsafe { (*self.parent().as_ptr()).NetBufferListInfo[sys::TcpIpChecksumNetBufferListInfo] };
        sys::NDIS_SEND_CHECKSUM_INFO::from_bits_retain(info as usize)
    }

    /// The frame's bytes from `skip` on, piece by piece as they lie in memory. Ends early where memory cannot be
    /// mapped.
    pub fn chunks(&self, skip: usize) -> Chunks<'_> {
        let buffer = self.raw();
        let left = self.data_length().saturating_sub(skip);
        let offset = (buffer.CurrentMdlOffset as usize).saturating_add(skip);
        // SAFETY: an owned NET_BUFFER describes locked memory, which nobody writes to while it is being sent.
        unsafe { Chunks::new(buffer.CurrentMdl, offset, left) }
    }

    /// Copies bytes from `skip` on into `into`, as many as there are and fit. Returns how many.
    pub fn copy_to(&self, skip: usize, into: &mut [u8]) -> usize {
        let mut copied = 0;
        for chunk in self.chunks(skip) {
            let Some(rest) = into.get_mut(copied..).filter(|rest| !rest.is_empty()) else { break };
            for (to, from) in rest.iter_mut().zip(chunk) {
                *to = *from;
            }
            copied += rest.len().min(chunk.len());
        }
        copied
    }

    /// The first bytes of the frame without copying, if they lie in one piece.
    pub fn contiguous(&self, length: usize) -> Option<&[u8]> {
        self.chunks(0).next()?.get(..length)
    }

    /// The buffer is done with. A status that is not success becomes the status of its list. The last buffer of a
    /// list gives the list back, to be completed.
    #[must_use = "the list must be completed"]
    pub fn finish(self, status: sys::NDIS_STATUS) -> Option<SendNbl> {
        let parent = self.parent();
        if status != sys::NDIS_STATUS_SUCCESS {
            list_status(parent).store(status, Ordering::Relaxed);
        }
        // Release and acquire: whoever finishes last sees the status that any other stored.
        (pending(parent).fetch_sub(1, Ordering::AcqRel) == 1).then_some(SendNbl(parent))
    }
}

/// The status of a list, which several processors may store at once.
fn list_status<'a>(nbl: NonNull<sys::NET_BUFFER_LIST>) -> &'a AtomicI32 {
    // SAFETY: inside an owned list; every access by this driver goes through the atomic.
    unsafe { AtomicI32::from_ptr(&raw mut (*nbl.as_ptr()).Status) }
}

/// How many buffers of a list are not finished.
fn pending<'a>(nbl: NonNull<sys::NET_BUFFER_LIST>) -> &'a AtomicUsize {
    // SAFETY: inside an owned list; every access goes through the atomic.
    unsafe { AtomicUsize::from_ptr((&raw mut (*nbl.as_ptr()).MiniportReserved[PENDING]).cast()) }
}
