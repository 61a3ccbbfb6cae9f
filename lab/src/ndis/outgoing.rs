//! NET_BUFFER_LISTs as a protocol builds them to send: in one pool block lie the list, its NET_BUFFERs, their MDLs and
//! the frames, so that whoever touches any of it after the completion is found out.

use std::ffi::c_void;

use windows_kernel_sys::{
    MDL, NDIS_HANDLE, NDIS_STATUS_PENDING, NET_BUFFER, NET_BUFFER_LIST, NetBufferListCancelId, PAGE_SIZE,
    Zeroable,
};

use super::fragments::{Fragmentation, Plan};
use super::memory::{self, Block, Mapping};
use super::net_buffer::{self, Piece};
use super::protocol::SendList;
use crate::kernel::Machine;

/// What a NET_BUFFER was when it was handed down.
struct Sent {
    buffer: usize,
    data_offset: u32,
    data_length: u32,
    chain: usize,
    pieces: Vec<(usize, usize)>,
    fingerprint: u64,
}

/// A NET_BUFFER_LIST that a protocol owns, and what it looked like.
pub(super) struct Outgoing {
    block: Block,
    sent: Vec<Sent>,
}

/// Lays out memory front to back.
struct Cursor(usize);

impl Cursor {
    fn take(&mut self, size: usize, align: usize) -> usize {
        let start = self.0.next_multiple_of(align);
        self.0 = start + size;
        start
    }
}

/// Bytes of the MDL of a piece that may lie anywhere.
fn mdl_room(length: usize) -> usize {
    memory::mdl_size(PAGE_SIZE - 1, length)
}

/// Lengths of the MDLs of a frame, in order, and of each how many bytes of the frame it holds from which offset.
fn mdls(plan: &Plan) -> Vec<(usize, usize, usize)> {
    let last = plan.pieces.len() - 1;
    let skipped = plan.skipped.iter().map(|length| (*length, 0, 0));
    let pieces = plan.pieces.iter().enumerate().map(|(index, piece)| {
        let head = if index == 0 { plan.headroom } else { 0 };
        let tail = if index == last { plan.tailroom } else { 0 };
        (head + piece + tail, head, *piece)
    });
    skipped.chain(pieces).collect()
}

impl Outgoing {
    /// Builds the list; `random(n)` gives a number below `n`.
    pub fn build(
        machine: &Machine,
        list: &SendList,
        fragmentation: Fragmentation,
        source: NDIS_HANDLE,
        mut random: impl FnMut(usize) -> usize,
    ) -> Self {
        let plans: Vec<_> = list
            .frames
            .iter()
            .map(|frame| Plan::new(fragmentation, frame.len().max(1), &mut random))
            .collect();
        let block = Block::on(machine, Self::room(&plans));
        let base = block.pointer();
        let mut cursor = Cursor(0);
        let list_at = cursor.take(size_of::<NET_BUFFER_LIST>(), 16);
        let buffers_at = cursor.take(size_of::<NET_BUFFER>() * plans.len(), 16);
        let mut nbl = NET_BUFFER_LIST::zeroed();
        nbl.SourceHandle = source;
        // Not a final status: a driver has to set one.
        nbl.Status = NDIS_STATUS_PENDING;
        nbl.NetBufferListInfo[NetBufferListCancelId] = list.cancel_id as *mut c_void;
        if !plans.is_empty() {
            nbl.FirstNetBuffer = base.wrapping_add(buffers_at).cast();
        }
        // SAFETY: `room` counted every structure and byte written here; the block is this function's alone.
        unsafe { base.wrapping_add(list_at).cast::<NET_BUFFER_LIST>().write(nbl) };
        let mut sent = Vec::with_capacity(plans.len());
        for (index, (plan, frame)) in plans.iter().zip(&list.frames).enumerate() {
            let at = base.wrapping_add(buffers_at + index * size_of::<NET_BUFFER>()).cast::<NET_BUFFER>();
            let (chain, current, current_offset) = Self::lay_out(machine, base, &mut cursor, plan, frame);
            let mut buffer = NET_BUFFER::zeroed();
            if index + 1 < plans.len() {
                buffer.Next = at.wrapping_add(1);
            }
            buffer.MdlChain = chain;
            buffer.CurrentMdl = current;
            buffer.CurrentMdlOffset = current_offset as u32;
            buffer.DataOffset = plan.data_offset() as u32;
            buffer.stDataLength = frame.len();
            // SAFETY: as above.
            unsafe { at.write(buffer) };
            // SAFETY: the NET_BUFFER just written, with the MDLs just laid out.
            sent.push(
                unsafe { Sent::of(at) }.unwrap_or_else(|what| panic!("built a wrong NET_BUFFER: {what}")),
            );
        }
        Self { block, sent }
    }

    /// Bytes for the list and everything it needs.
    fn room(plans: &[Plan]) -> usize {
        let mut cursor = Cursor(0);
        cursor.take(size_of::<NET_BUFFER_LIST>(), 16);
        cursor.take(size_of::<NET_BUFFER>() * plans.len(), 16);
        for plan in plans {
            let mdls = mdls(plan);
            for (length, ..) in &mdls {
                cursor.take(mdl_room(*length), 16);
            }
            // Where in its page the data begins depends on where the block lies.
            if plan.page_offset > 0 {
                cursor.take(PAGE_SIZE, 1);
            }
            for (length, ..) in &mdls {
                cursor.take(*length, 2);
            }
        }
        cursor.0
    }

    /// Writes the MDLs and bytes of one frame; the chain, the current MDL and the offset in it.
    fn lay_out(
        machine: &Machine,
        base: *mut u8,
        cursor: &mut Cursor,
        plan: &Plan,
        frame: &[u8],
    ) -> (*mut MDL, *mut MDL, usize) {
        let parts = mdls(plan);
        let headers: Vec<*mut MDL> = parts
            .iter()
            .map(|(length, ..)| base.wrapping_add(cursor.take(mdl_room(*length), 16)).cast())
            .collect();
        if plan.page_offset > 0 {
            let address = base as usize + cursor.0;
            let skip = (plan.page_offset + PAGE_SIZE - address % PAGE_SIZE) % PAGE_SIZE;
            cursor.take(skip, 1);
        }
        let mut rest = frame;
        for (index, (length, head, data)) in parts.iter().enumerate() {
            let at = base.wrapping_add(cursor.take(*length, 2));
            // A frame of no bytes still has an MDL, of the one byte that its plan counts.
            let (part, after) = rest.split_at((*data).min(rest.len()));
            rest = after;
            let last = index + 1 == parts.len();
            let mapping = if last && plan.unmapped_tail { Mapping::LockedOnly } else { Mapping::Nonpaged };
            // SAFETY: `room` counted the MDL's and the part's bytes.
            unsafe {
                at.wrapping_add(*head).copy_from_nonoverlapping(part.as_ptr(), part.len());
                memory::build_mdl(machine, headers[index], at, *length, mapping);
                if let Some(next) = headers.get(index + 1) {
                    let header: *mut MDL = headers[index];
                    (*header).Next = *next;
                }
            }
        }
        (headers[0], headers[plan.skipped.len()], plan.headroom)
    }

    /// The list.
    pub fn list(&self) -> *mut NET_BUFFER_LIST {
        self.block.pointer().cast()
    }

    /// Addresses of its NET_BUFFERs.
    pub fn buffers(&self) -> impl Iterator<Item = usize> + '_ {
        self.sent.iter().map(|sent| sent.buffer)
    }

    /// Number of its frames.
    pub fn frames(&self) -> usize {
        self.sent.len()
    }

    /// What the miniport changed that it may not change, if anything.
    pub fn difference(&self) -> Option<String> {
        // SAFETY: the list is in this value's block.
        let buffers = unsafe { net_buffer::buffers(self.list(), "NdisMSendNetBufferListsComplete") };
        let same = buffers.iter().map(|buffer| *buffer as usize).eq(self.buffers());
        if !same {
            return Some("the list of NET_BUFFERs is another than was sent".into());
        }
        self.sent.iter().enumerate().find_map(|(index, before)| {
            // SAFETY: the NET_BUFFERs are in this value's block.
            let what = match unsafe { Sent::of(before.buffer as *mut NET_BUFFER) } {
                Err(what) => what,
                Ok(now) if (now.data_offset, now.data_length) != (before.data_offset, before.data_length) => {
                    "DataOffset or DataLength is not restored".into()
                }
                Ok(now) if now.chain != before.chain || now.pieces != before.pieces => {
                    "the MDL chain differs".into()
                }
                Ok(now) if now.fingerprint != before.fingerprint => "the data was written to".into(),
                Ok(_) => return None,
            };
            Some(format!("NET_BUFFER {index}: {what}"))
        })
    }
}

impl Sent {
    /// # Safety
    /// `buffer` must point to a NET_BUFFER with a readable MDL chain.
    unsafe fn of(buffer: *mut NET_BUFFER) -> Result<Self, String> {
        // SAFETY: the caller's contract.
        let pieces: Vec<Piece> = unsafe { net_buffer::pieces(buffer) }?;
        // SAFETY: as above.
        let (header, fingerprint) = unsafe { (&*buffer, net_buffer::fingerprint(&pieces)) };
        Ok(Self {
            buffer: buffer as usize,
            data_offset: header.DataOffset,
            data_length: header.data_length(),
            chain: header.MdlChain as usize,
            pieces: pieces.iter().map(|piece| (piece.start as usize, piece.length)).collect(),
            fingerprint,
        })
    }
}
