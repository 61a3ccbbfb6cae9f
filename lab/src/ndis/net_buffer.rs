//! NET_BUFFERs and their MDL chains: reading the data, checking that the chain is what it says, and the functions
//! that move the start of the data (nbl/ns-nbl-net_buffer_data, nblapi/nf-nblapi-ndisadvancenetbufferdatastart).

use std::ptr;

use windows_kernel_sys::{
    BOOLEAN, MDL, MdlFlags, MmGetMdlPfnArray, NDIS_STATUS, NDIS_STATUS_RESOURCES, NDIS_STATUS_SUCCESS,
    NET_BUFFER, NET_BUFFER_LIST, PAGE_SIZE, PVOID,
};

use super::call::{UP_TO_DISPATCH, entered};
use super::memory;
use super::rules::{self, broken};
use crate::export;

/// Links of a list followed before it counts as circular.
const MAX_LINKS: usize = 65536;

/// The NET_BUFFERs of a list, in order.
///
/// # Safety
/// `list` must point to a NET_BUFFER_LIST with a valid chain of NET_BUFFERs.
pub(super) unsafe fn buffers(list: *const NET_BUFFER_LIST, call: &str) -> Vec<*mut NET_BUFFER> {
    let mut chain = Vec::new();
    // SAFETY: the caller's contract.
    let mut next = unsafe { (*list).FirstNetBuffer };
    while !next.is_null() {
        chain.push(next);
        if chain.len() > MAX_LINKS {
            broken(&rules::NDIS_RECEIVE_LIST, call, "the chain of NET_BUFFERs is circular");
        }
        // SAFETY: the caller's contract.
        next = unsafe { (*next).Next };
    }
    chain
}

/// A stretch of memory that an MDL contributes to the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Where it begins.
    pub start: *mut u8,
    /// Bytes; not 0.
    pub length: usize,
}

/// Where the data of a NET_BUFFER lies, or what is wrong with it.
///
/// # Safety
/// `buffer` must point to a NET_BUFFER whose MDLs can be read.
pub(super) unsafe fn pieces(buffer: *const NET_BUFFER) -> Result<Vec<Piece>, String> {
    // SAFETY: the caller's contract.
    let buffer = unsafe { &*buffer };
    let length = buffer.data_length() as usize;
    let (mdl, offset) = locate(buffer.MdlChain, buffer.DataOffset as usize)?;
    if !ptr::eq(mdl, buffer.CurrentMdl) || offset != buffer.CurrentMdlOffset as usize {
        let at_the_seam = same_place(buffer, length)?;
        if !at_the_seam {
            return Err(format!(
                "CurrentMdl and CurrentMdlOffset {} do not name the byte at DataOffset {}",
                buffer.CurrentMdlOffset, buffer.DataOffset
            ));
        }
    }
    collect(buffer.CurrentMdl, buffer.CurrentMdlOffset as usize, length)
}

/// Whether the current MDL names the same byte as the data offset although at another MDL: an offset equal to the
/// length of one MDL is offset 0 of the next.
fn same_place(buffer: &NET_BUFFER, length: usize) -> Result<bool, String> {
    let (mdl, offset) = locate(buffer.MdlChain, buffer.DataOffset as usize)?;
    let by_offset = collect(mdl, offset, length)?;
    let by_current = collect(buffer.CurrentMdl, buffer.CurrentMdlOffset as usize, length)?;
    Ok(by_offset == by_current)
}

/// The MDL that holds the byte at `offset` of a chain, and the offset in it.
pub(super) fn locate(chain: *mut MDL, offset: usize) -> Result<(*mut MDL, usize), String> {
    let (mut mdl, mut rest) = (chain, offset);
    while !mdl.is_null() {
        // SAFETY: the chain of a NET_BUFFER that `pieces` or an export was given, valid by their contract.
        let (count, next) = unsafe { ((*mdl).ByteCount as usize, (*mdl).Next) };
        if rest < count || (rest == count && next.is_null()) {
            return Ok((mdl, rest));
        }
        rest -= count;
        mdl = next;
    }
    Err(format!("DataOffset {offset} lies behind the MDL chain"))
}

pub(super) fn collect(mdl: *mut MDL, offset: usize, length: usize) -> Result<Vec<Piece>, String> {
    let (mut mdl, mut offset, mut rest) = (mdl, offset, length);
    let mut pieces = Vec::new();
    while rest > 0 {
        if mdl.is_null() {
            return Err(format!("DataLength {length} exceeds the MDL chain by {rest} bytes"));
        }
        // SAFETY: as in `locate`.
        let header = unsafe { &*mdl };
        let count = header.ByteCount as usize;
        if offset > count {
            return Err(format!("offset {offset} in an MDL of {count} bytes"));
        }
        let part = (count - offset).min(rest);
        if part > 0 {
            pieces.push(Piece { start: system_address(header)?.wrapping_add(offset), length: part });
        }
        rest -= part;
        offset = 0;
        mdl = header.Next;
    }
    Ok(pieces)
}

/// The address of an MDL's memory. Locked pages need not be mapped; in the lab their memory is where it always was.
fn system_address(mdl: &MDL) -> Result<*mut u8, String> {
    let flags = MdlFlags::from_bits_retain(mdl.MdlFlags);
    let mapped = MdlFlags::MAPPED_TO_SYSTEM_VA | MdlFlags::SOURCE_IS_NONPAGED_POOL;
    if flags.intersects(mapped) && !mdl.MappedSystemVa.is_null() {
        Ok(mdl.MappedSystemVa.cast())
    } else if flags.contains(MdlFlags::PAGES_LOCKED) {
        Ok(mdl.StartVa.wrapping_byte_add(mdl.ByteOffset as usize).cast())
    } else {
        Err("an MDL's pages are neither locked nor nonpaged".into())
    }
}

/// Checks that each MDL of a chain describes the memory it says: address, offset in the page and page frames agree.
///
/// # Safety
/// `chain` must be null or begin a chain of MDLs that can be read.
pub(super) unsafe fn check_mdls(chain: *mut MDL) -> Result<(), String> {
    let (mut mdl, mut links) = (chain, 0);
    while !mdl.is_null() {
        // SAFETY: the caller's contract.
        let header = unsafe { &*mdl };
        let address = system_address(header)? as usize;
        if header.ByteOffset as usize >= PAGE_SIZE || address % PAGE_SIZE != header.ByteOffset as usize {
            return Err(format!("ByteOffset {} of an MDL mapped at {address:#x}", header.ByteOffset));
        }
        let pages = (header.ByteOffset as usize + header.ByteCount as usize).div_ceil(PAGE_SIZE);
        let available = (header.Size as usize).saturating_sub(size_of::<MDL>()) / size_of::<u64>();
        if pages > available {
            return Err(format!("an MDL with room for {available} page frames describes {pages} pages"));
        }
        // SAFETY: the array follows the header, and its length was checked against `Size`.
        let frames = unsafe { std::slice::from_raw_parts(MmGetMdlPfnArray(mdl), pages) };
        for (index, frame) in frames.iter().enumerate() {
            let page = address - header.ByteOffset as usize + index * PAGE_SIZE;
            let expected = memory::physical(page as *mut u8) / PAGE_SIZE as u64;
            if *frame != expected {
                return Err(format!(
                    "page {index} of an MDL is frame {frame:#x}, its memory is frame {expected:#x}"
                ));
            }
        }
        links += 1;
        if links > MAX_LINKS {
            return Err("the MDL chain is circular".into());
        }
        mdl = header.Next;
    }
    Ok(())
}

/// Copies the data of pieces into one buffer.
///
/// # Safety
/// The pieces must be readable.
pub(super) unsafe fn gather(pieces: &[Piece]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(pieces.iter().map(|piece| piece.length).sum());
    for piece in pieces {
        // SAFETY: the caller's contract.
        bytes.extend_from_slice(unsafe { std::slice::from_raw_parts(piece.start, piece.length) });
    }
    bytes
}

/// A hash of the data of pieces, to see later whether it changed.
///
/// # Safety
/// The pieces must be readable.
pub(super) unsafe fn fingerprint(pieces: &[Piece]) -> u64 {
    pieces.iter().fold(0xCBF2_9CE4_8422_2325, |hash, piece| {
        // SAFETY: the caller's contract.
        let bytes = unsafe { std::slice::from_raw_parts(piece.start, piece.length) };
        bytes.chunks(8).fold(hash, |hash: u64, chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            (hash ^ u64::from_le_bytes(word)).wrapping_mul(0x0000_0100_0000_01B3).rotate_left(29)
        })
    })
}

/// Points `CurrentMdl` at the byte at `DataOffset`.
fn settle(buffer: &mut NET_BUFFER, call: &str) {
    match locate(buffer.MdlChain, buffer.DataOffset as usize) {
        Ok((mdl, offset)) => {
            buffer.CurrentMdl = mdl;
            buffer.CurrentMdlOffset = offset as u32;
        }
        Err(what) => broken(&rules::NDIS_MDL_CHAIN, call, what),
    }
}

export! { "ndis.sys";
    /// Moves the start of the data forward (nblapi/nf-nblapi-ndisadvancenetbufferdatastart). MDLs that thereby hold
    /// no data are freed if asked, by NDIS when no handler is given.
    pub unsafe fn NdisAdvanceNetBufferDataStart(
        NetBuffer: *mut NET_BUFFER, DataOffsetDelta: u32, FreeMdl: BOOLEAN, FreeMdlHandler: PVOID,
    ) {
        const CALL: &str = "NdisAdvanceNetBufferDataStart";
        entered(CALL, UP_TO_DISPATCH);
        // SAFETY: the driver owns the NET_BUFFER it passes.
        let buffer = unsafe { &mut *NetBuffer };
        if DataOffsetDelta > buffer.data_length() {
            broken(&rules::NDIS_MDL_CHAIN, CALL, format!("{DataOffsetDelta} exceeds DataLength {}", buffer.data_length()));
        }
        buffer.DataOffset += DataOffsetDelta;
        buffer.stDataLength -= DataOffsetDelta as usize;
        if FreeMdl != 0 {
            free_leading(buffer, FreeMdlHandler);
        }
        settle(buffer, CALL);
    }

    /// Moves the start of the data back (nblapi/nf-nblapi-ndisretreatnetbufferdatastart): into unused space if there
    /// is enough, else into a new MDL in front.
    pub unsafe fn NdisRetreatNetBufferDataStart(
        NetBuffer: *mut NET_BUFFER, DataOffsetDelta: u32, DataBackFill: u32, AllocateMdlHandler: PVOID,
    ) -> NDIS_STATUS {
        const CALL: &str = "NdisRetreatNetBufferDataStart";
        entered(CALL, UP_TO_DISPATCH);
        // SAFETY: the driver owns the NET_BUFFER it passes.
        let buffer = unsafe { &mut *NetBuffer };
        if buffer.DataOffset < DataOffsetDelta {
            let missing = DataOffsetDelta - buffer.DataOffset;
            let Some(mdl) = new_mdl(missing + DataBackFill, AllocateMdlHandler) else {
                return NDIS_STATUS_RESOURCES;
            };
            // SAFETY: a fresh MDL, nobody else's.
            unsafe { (*mdl).Next = buffer.MdlChain };
            buffer.MdlChain = mdl;
            // SAFETY: as above.
            buffer.DataOffset += unsafe { (*mdl).ByteCount };
        }
        buffer.DataOffset -= DataOffsetDelta;
        buffer.stDataLength += DataOffsetDelta as usize;
        settle(buffer, CALL);
        NDIS_STATUS_SUCCESS
    }

    /// A contiguous view of the first bytes of the data (nblapi/nf-nblapi-ndisgetdatabuffer), copied into `Storage`
    /// if they are not contiguous or not aligned; null if that is needed and there is no storage.
    pub unsafe fn NdisGetDataBuffer(
        NetBuffer: *mut NET_BUFFER, BytesNeeded: u32, Storage: PVOID, AlignMultiple: u32, AlignOffset: u32,
    ) -> PVOID {
        const CALL: &str = "NdisGetDataBuffer";
        entered(CALL, UP_TO_DISPATCH);
        let needed = BytesNeeded as usize;
        // SAFETY: the driver owns the NET_BUFFER it passes.
        let buffer = unsafe { &*NetBuffer };
        if needed == 0 || needed > buffer.data_length() as usize {
            return ptr::null_mut();
        }
        if !AlignMultiple.is_power_of_two() {
            broken(&rules::NDIS_MDL_CHAIN, CALL, format!("AlignMultiple {AlignMultiple} is no power of two"));
        }
        let parts = match collect(buffer.CurrentMdl, buffer.CurrentMdlOffset as usize, needed) {
            Ok(parts) => parts,
            Err(what) => broken(&rules::NDIS_MDL_CHAIN, CALL, what),
        };
        let start = parts[0].start;
        let aligned = (start as usize).wrapping_sub(AlignOffset as usize).is_multiple_of(AlignMultiple as usize);
        if parts.len() == 1 && aligned {
            return start.cast();
        }
        if !Storage.is_null() {
            let mut to = Storage.cast::<u8>();
            for part in parts {
                // SAFETY: the pieces lie in the buffer's MDLs, and the caller's storage holds `BytesNeeded` bytes.
                unsafe { ptr::copy_nonoverlapping(part.start, to, part.length) };
                to = to.wrapping_add(part.length);
            }
        }
        Storage
    }
}

/// Frees the MDLs in front of the data.
fn free_leading(buffer: &mut NET_BUFFER, handler: PVOID) {
    loop {
        let mdl = buffer.MdlChain;
        if mdl.is_null() {
            return;
        }
        // SAFETY: the head of the buffer's own chain.
        let (count, next) = unsafe { ((*mdl).ByteCount, (*mdl).Next) };
        if buffer.DataOffset < count || next.is_null() {
            return;
        }
        buffer.MdlChain = next;
        buffer.DataOffset -= count;
        if handler.is_null() {
            memory::free_retreat_mdl(mdl);
        } else {
            // SAFETY: the driver's NET_BUFFER_FREE_MDL_HANDLER, called as its page says (ndis/nc-ndis-net_buffer_free_mdl).
            let free: unsafe extern "win64" fn(*mut MDL) = unsafe { std::mem::transmute(handler) };
            // SAFETY: the MDL has left the chain and is given up.
            unsafe { free(mdl) };
        }
    }
}

/// An MDL over at least `length` new bytes.
fn new_mdl(length: u32, handler: PVOID) -> Option<*mut MDL> {
    let mdl = if handler.is_null() {
        memory::retreat_mdl(length)
    } else {
        let mut size = length;
        // SAFETY: the driver's NET_BUFFER_ALLOCATE_MDL_HANDLER (ndis/nc-ndis-net_buffer_allocate_mdl).
        let allocate: unsafe extern "win64" fn(*mut u32) -> *mut MDL =
            unsafe { std::mem::transmute(handler) };
        // SAFETY: `size` is valid for reading and writing.
        unsafe { allocate(&raw mut size) }
    };
    (!mdl.is_null()).then_some(mdl)
}
