//! Scatter/gather DMA: from a NET_BUFFER to physical addresses (ndis/nf-ndis-ndismregisterscattergatherdma).

use super::adapter::AdapterHandle;
use super::arc::PoolArc;
use super::callback::Callback;
use super::irql::{Dispatch, Passive};
use super::nbl::{SendBuffer, reserved};
use super::physical::Segment;
use super::pool::{PoolBox, PoolVec, Tag};
use super::status::{Error, Result, check};
use core::ffi::c_void;
use core::mem::ManuallyDrop;
use core::ptr::{self, NonNull};
use core::slice;
use windows_kernel_sys as sys;

const TAG: Tag = Tag::new(*b"IbSg");

struct Shared<T> {
    callback: Callback<T>,
    process: fn(&T, MappedBuffer, Dispatch<'_>),
}

/// The adapter's DMA registration. Maps buffers and hands them to `process(context)` at DISPATCH_LEVEL.
///
/// It holds a reference to its context, which usually holds it: [`SgDma::stop`] cuts that circle.
pub struct SgDma<T: Send + Sync> {
    handle: sys::NDIS_HANDLE,
    list_size: u32,
    shared: ManuallyDrop<PoolBox<Shared<T>>>,
}

// SAFETY: NDIS serialises what needs it on the handle; the rest is Send and Sync for such a T.
unsafe impl<T: Send + Sync> Send for SgDma<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for SgDma<T> {}

impl<T: Send + Sync> SgDma<T> {
    /// Registers 64-bit DMA of up to `max_bytes` at a time.
    pub fn register(
        adapter: AdapterHandle,
        max_bytes: u32,
        context: PoolArc<T>,
        process: fn(&T, MappedBuffer, Dispatch<'_>),
        _at: &Passive<'_>,
    ) -> Result<Self> {
        let shared = PoolBox::try_new(TAG, Shared { callback: Callback::try_new(context)?, process })?;
        let mut description = sys::NDIS_SG_DMA_DESCRIPTION {
            Header: sys::NDIS_OBJECT_HEADER::new(
                sys::NDIS_OBJECT_TYPE_SG_DMA_DESCRIPTION,
                sys::NDIS_SG_DMA_DESCRIPTION_REVISION_1,
                sys::NDIS_SIZEOF_SG_DMA_DESCRIPTION_REVISION_1,
            ),
            Flags: sys::NDIS_SG_DMA_64_BIT_ADDRESS,
            MaximumPhysicalMapping: max_bytes,
            ProcessSGListHandler: Some(process_list::<T>),
            SharedMemAllocateCompleteHandler: None,
            ScatterGatherListSize: 0,
        };
        let mut handle = ptr::null_mut();
        // SAFETY: a valid adapter handle and description, at PASSIVE_LEVEL.
        check(unsafe {
            sys::NdisMRegisterScatterGatherDma(adapter.raw(), &raw mut description, &raw mut handle)
        })?;
        let list_size = description.ScatterGatherListSize;
        Ok(Self { handle, list_size, shared: ManuallyDrop::new(shared) })
    }

    /// Storage for the list of one buffer, to be allocated ahead. IRQL <= DISPATCH_LEVEL.
    pub fn allocate_storage(&self) -> Result<SgStorage> {
        let words = (self.list_size as usize).div_ceil(size_of::<u64>());
        let list = PoolVec::try_zeroed(TAG, words.max(1))?;
        Ok(SgStorage(PoolBox::try_new(TAG, Storage { list, cookie: 0 })?))
    }

    /// Has a buffer mapped for the device to read. `process` is called with it, and with `cookie`, before this
    /// returns or later. On failure buffer and storage come back.
    pub fn map(
        &self,
        mut buffer: SendBuffer,
        mut storage: SgStorage,
        cookie: usize,
        _at: Dispatch<'_>,
    ) -> core::result::Result<(), (SendBuffer, SgStorage, Error)> {
        if !self.shared.callback.enter() {
            return Err((buffer, storage, Error::INVALID_STATE));
        }
        storage.0.cookie = cookie;
        let memory: sys::PVOID = storage.0.list.as_mut_ptr().cast();
        let storage = storage.0.into_raw();
        buffer.reserve(reserved::STORAGE, storage.as_ptr().cast());
        buffer.reserve(reserved::DMA, self.shared.as_ptr().cast());
        let raw = buffer.into_raw();
        // SAFETY: a live registration at DISPATCH_LEVEL; an owned NET_BUFFER; storage of the size NDIS asked for,
        // kept until the list is freed.
        let status = unsafe {
            sys::NdisMAllocateNetBufferSGList(
                self.handle,
                raw.as_ptr(),
                raw.as_ptr().cast(),
                sys::NDIS_SG_LIST_WRITE_TO_DEVICE,
                memory,
                self.list_size,
            )
        };
        check(status).map_err(|error| {
            self.shared.callback.leave();
            // SAFETY: on failure the handler is not called: buffer and storage, given up above, are ours again.
            unsafe { (SendBuffer::from_raw(raw), SgStorage(PoolBox::from_raw(storage, TAG)), error) }
        })
    }

    /// Ends the mapping of a buffer that the device has read.
    pub fn unmap(&self, mapped: MappedBuffer, _at: Dispatch<'_>) -> (SendBuffer, SgStorage) {
        let MappedBuffer { buffer, list, storage } = mapped;
        let raw = buffer.into_raw();
        // SAFETY: a list that this registration made for this buffer, given up by value, at DISPATCH_LEVEL.
        unsafe { sys::NdisMFreeNetBufferSGList(self.handle, list.as_ptr(), raw.as_ptr()) };
        // SAFETY: given up above.
        (unsafe { SendBuffer::from_raw(raw) }, storage)
    }

    /// Lets nothing be mapped any more, waits until no buffer is on its way to `process`, and drops the reference to
    /// the context. What was mapped can still be unmapped.
    pub fn stop(&self, at: &Passive<'_>) {
        self.shared.callback.stop(at, || false);
    }

    /// Ends the registration, for which every buffer must have been unmapped.
    pub fn deregister(mut self, at: &Passive<'_>) {
        self.stop(at);
        // SAFETY: a live registration, given up by value, at PASSIVE_LEVEL.
        unsafe { sys::NdisMDeregisterScatterGatherDma(self.handle) };
        // SAFETY: stopped, and `self` is forgotten.
        unsafe { ManuallyDrop::drop(&mut self.shared) };
    }
}

/// NDIS's call with a finished list; DISPATCH_LEVEL (ndis/nc-ndis-miniport_process_sg_list).
unsafe extern "win64" fn process_list<T: Send + Sync>(
    _: *mut sys::DEVICE_OBJECT,
    _: *mut c_void,
    list: *mut sys::SCATTER_GATHER_LIST,
    context: *mut c_void,
) {
    let (Some(raw), Some(list)) = (NonNull::new(context.cast()), NonNull::new(list)) else { return };
    // SAFETY: the context is the buffer that `map` gave up, handed back here once.
    let buffer = unsafe { SendBuffer::from_raw(raw) };
    let [_, _, shared, storage] = buffer.raw().MiniportReserved;
    // SAFETY: `map` set both; the registration lives while the ticket of this call is out.
    let (shared, storage) = unsafe {
        (
            &*shared.cast::<Shared<T>>(),
            SgStorage(PoolBox::from_raw(NonNull::new_unchecked(storage.cast()), TAG)),
        )
    };
    // SAFETY: documented to run at DISPATCH_LEVEL; this call holds the ticket that `map` took.
    let (context, at) = unsafe { (shared.callback.context(), Dispatch::assume()) };
    (shared.process)(context, MappedBuffer { buffer, list, storage }, at);
    shared.callback.leave();
}

struct Storage {
    list: PoolVec<u64>,
    cookie: usize,
}

/// Memory for one scatter/gather list.
pub struct SgStorage(PoolBox<Storage>);

/// A buffer with its scatter/gather list. Given back by [`SgDma::unmap`].
#[must_use = "the buffer must be unmapped"]
pub struct MappedBuffer {
    buffer: SendBuffer,
    list: NonNull<sys::SCATTER_GATHER_LIST>,
    storage: SgStorage,
}

// SAFETY: owns the buffer and the list.
unsafe impl Send for MappedBuffer {}

impl MappedBuffer {
    /// The buffer.
    pub fn buffer(&self) -> &SendBuffer {
        &self.buffer
    }

    /// What [`SgDma::map`] was called with.
    pub fn cookie(&self) -> usize {
        self.storage.0.cookie
    }

    /// Where the frame lies in physical memory, without its first `skip` bytes.
    pub fn segments(&self, skip: usize) -> SgSegments<'_> {
        // SAFETY: a finished list, as many elements as it says.
        let elements = unsafe {
            let list = self.list.as_ptr();
            let count = (*list).NumberOfElements as usize;
            slice::from_raw_parts((&raw const (*list).Elements).cast(), count)
        };
        // The list begins with the first byte of the current MDL, not with the first byte of the data.
        let ahead = self.buffer.raw().CurrentMdlOffset as usize;
        SgSegments {
            elements: elements.iter(),
            skip: ahead.saturating_add(skip),
            left: self.buffer.data_length().saturating_sub(skip),
        }
    }
}

/// Iterator over the physical segments of a mapped frame, none of them empty.
#[derive(Clone, Debug)]
pub struct SgSegments<'a> {
    elements: slice::Iter<'a, sys::SCATTER_GATHER_ELEMENT>,
    skip: usize,
    left: usize,
}

impl Iterator for SgSegments<'_> {
    type Item = Segment;

    fn next(&mut self) -> Option<Segment> {
        while self.left != 0 {
            let element = self.elements.next()?;
            let size = element.Length as usize;
            if size <= self.skip {
                self.skip -= size;
                continue;
            }
            let offset = core::mem::take(&mut self.skip);
            let length = (size - offset).min(self.left);
            self.left -= length;
            return Some(Segment {
                address: (element.Address as u64).wrapping_add(offset as u64),
                length: length as u32,
            });
        }
        None
    }
}
