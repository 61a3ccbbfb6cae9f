//! Pools of NET_BUFFER_LISTs, the lists in them, and the MDLs that a driver describes its buffers with
//! (nblapi/nf-nblapi-ndisallocatenetbufferlistpool and its neighbours).

use std::collections::{BTreeMap, BTreeSet};
use std::ptr;
use std::sync::Arc;

use windows_kernel_sys::{
    MDL, NDIS_HANDLE, NDIS_OBJECT_HEADER, NDIS_OBJECT_TYPE_DEFAULT,
    NDIS_SIZEOF_NET_BUFFER_LIST_POOL_PARAMETERS_REVISION_1, NET_BUFFER, NET_BUFFER_LIST,
    NET_BUFFER_LIST_CONTEXT, NET_BUFFER_LIST_POOL_PARAMETERS, NET_BUFFER_LIST_POOL_PARAMETERS_REVISION_1,
    PVOID, Zeroable,
};

use super::attributes::header;
use super::call::{PASSIVE, UP_TO_DISPATCH, entered, entered_or_fails};
use super::handle::{self, Handle, Object, Owner};
use super::memory::Block;
use super::net_buffer;
use super::rules::{self, broken};
use crate::export;
use crate::kernel::Machine;
use crate::kernel::mdl::MdlOwner;
use crate::sim::Lock;

/// A pool of NET_BUFFER_LISTs.
pub(super) struct Pool {
    handle: Handle,
    machine: Machine,
    /// Bytes of context that every list of the pool has at least.
    context_size: u16,
    /// Lists come with a NET_BUFFER.
    with_buffer: bool,
    live: Lock<BTreeSet<usize>>,
}

/// Live lists of a machine, by address.
#[derive(Default)]
struct Lists(Lock<BTreeMap<usize, Live>>);

struct Live {
    block: Block,
    pool: Handle,
    /// Indicated and not returned.
    held: bool,
}

fn lists(machine: &Machine) -> Arc<Lists> {
    machine.extension(|_| Lists::default())
}

/// Whether there is a list at this address.
pub(super) fn is_live(machine: &Machine, address: usize) -> bool {
    lists(machine).0.lock().contains_key(&address)
}

/// Notes that NDIS has a list, or has it no more.
pub(super) fn set_held(machine: &Machine, address: usize, held: bool) {
    if let Some(live) = lists(machine).0.lock().get_mut(&address) {
        live.held = held;
    }
}

/// The size of revision 2 of the parameters, which added `Flags` (NDIS 6.80).
const PARAMETERS_REVISION_2_SIZE: u16 = 20;

impl Pool {
    /// A list with a context area, and a NET_BUFFER for `data` if the pool's lists have one.
    fn allocate(&self, context: u16, data: Option<(*mut MDL, u32, usize)>) -> *mut NET_BUFFER_LIST {
        let context = usize::from(context.max(self.context_size));
        let area = if context == 0 { 0 } else { size_of::<NET_BUFFER_LIST_CONTEXT>() + context };
        let buffer_at = size_of::<NET_BUFFER_LIST>();
        let context_at = buffer_at + if data.is_some() { size_of::<NET_BUFFER>() } else { 0 };
        let block = Block::on(&self.machine, context_at + area);
        let base = block.pointer();
        let mut list = NET_BUFFER_LIST::zeroed();
        list.NdisPoolHandle = self.handle.raw();
        if let Some((chain, offset, length)) = data {
            let mut buffer = NET_BUFFER::zeroed();
            buffer.NdisPoolHandle = self.handle.raw();
            buffer.MdlChain = chain;
            buffer.DataOffset = offset;
            buffer.stDataLength = length;
            if let Ok((mdl, offset)) = net_buffer::locate(chain, offset as usize) {
                buffer.CurrentMdl = mdl;
                buffer.CurrentMdlOffset = offset as u32;
            }
            let at = base.wrapping_add(buffer_at).cast::<NET_BUFFER>();
            // SAFETY: the block has room for it, and nobody else knows the block.
            unsafe { at.write(buffer) };
            list.FirstNetBuffer = at;
        }
        if area > 0 {
            let at = base.wrapping_add(context_at).cast::<NET_BUFFER_LIST_CONTEXT>();
            let header = NET_BUFFER_LIST_CONTEXT {
                Next: ptr::null_mut(),
                Size: context as u16,
                // The area in use is at the end; what a driver asks for beyond the pool's grows downwards.
                Offset: 0,
                Padding: 0,
                ContextData: [],
            };
            // SAFETY: as above.
            unsafe { at.write(header) };
            list.Context = at;
        }
        let address: *mut NET_BUFFER_LIST = base.cast();
        // SAFETY: as above.
        unsafe { address.write(list) };
        self.live.lock().insert(address as usize);
        lists(&self.machine)
            .0
            .lock()
            .insert(address as usize, Live { block, pool: self.handle, held: false });
        address
    }
}

fn free(address: usize, call: &str) {
    let lists = lists(&Machine::current());
    if lists.0.lock().get(&address).is_some_and(|live| live.held) {
        broken(&rules::NDIS_NBL_FREED, call, "the list is indicated and not returned");
    }
    let entry = lists.0.lock().remove(&address);
    let Some(live) = entry else {
        broken(&rules::NDIS_NBL_FREED, call, "the list is not live: freed before, or of no pool");
    };
    if let Some(pool) = handle::pool(live.pool) {
        pool.live.lock().remove(&address);
    }
    drop(live.block);
}

export! { "ndis.sys";
    /// PASSIVE_LEVEL (nblapi/nf-nblapi-ndisallocatenetbufferlistpool). Null if there is no memory.
    pub unsafe fn NdisAllocateNetBufferListPool(
        NdisHandle: NDIS_HANDLE, Parameters: *const NET_BUFFER_LIST_POOL_PARAMETERS,
    ) -> NDIS_HANDLE {
        const CALL: &str = "NdisAllocateNetBufferListPool";
        if entered_or_fails(CALL, PASSIVE) {
            return ptr::null_mut();
        }
        let owner = Owner::of(NdisHandle, CALL);
        // SAFETY: every revision begins with the header.
        let head: NDIS_OBJECT_HEADER = unsafe { (*Parameters).Header };
        let sizes = [
            (NET_BUFFER_LIST_POOL_PARAMETERS_REVISION_1, NDIS_SIZEOF_NET_BUFFER_LIST_POOL_PARAMETERS_REVISION_1),
            (2, PARAMETERS_REVISION_2_SIZE),
        ];
        if let Err(what) = header(head, NDIS_OBJECT_TYPE_DEFAULT, &sizes) {
            broken(&rules::NDIS_OBJECT_HEADER, CALL, what);
        }
        // SAFETY: the header says that the members of revision 1 are there.
        let (context, with_buffer, tag, data) = unsafe {
            let parameters = Parameters;
            ((*parameters).ContextSize, (*parameters).fAllocateNetBuffer, (*parameters).PoolTag, (*parameters).DataSize)
        };
        if !context.is_multiple_of(16) {
            broken(&rules::NDIS_OBJECT_HEADER, CALL, format!("ContextSize {context} is no multiple of 16"));
        }
        if tag == 0 {
            broken(&rules::NDIS_OBJECT_HEADER, CALL, "PoolTag is 0");
        }
        if data != 0 && with_buffer == 0 {
            broken(&rules::NDIS_OBJECT_HEADER, CALL, "DataSize without fAllocateNetBuffer");
        }
        let number = handle::reserve();
        let machine = Machine::current();
        let pool = Pool {
            handle: number, machine, context_size: context, with_buffer: with_buffer != 0, live: Lock::default(),
        };
        handle::bind(number, Some(owner.handle()), Object::Pool(Arc::new(pool)));
        number.raw()
    }

    /// PASSIVE_LEVEL (nblapi/nf-nblapi-ndisfreenetbufferlistpool).
    pub unsafe fn NdisFreeNetBufferListPool(PoolHandle: NDIS_HANDLE) {
        const CALL: &str = "NdisFreeNetBufferListPool";
        entered(CALL, PASSIVE);
        let pool = handle::get::<Pool>(PoolHandle, CALL);
        let live = pool.live.lock().len();
        if live > 0 {
            broken(&rules::NDIS_LEAK, CALL, format!("{live} list(s) of the pool are not freed"));
        }
        handle::close(pool.handle);
    }

    /// IRQL <= DISPATCH_LEVEL (nblapi/nf-nblapi-ndisallocatenetbufferandnetbufferlist). Null if there is no memory.
    pub unsafe fn NdisAllocateNetBufferAndNetBufferList(
        PoolHandle: NDIS_HANDLE, ContextSize: u16, ContextBackFill: u16, MdlChain: *mut MDL, DataOffset: u32,
        DataLength: usize,
    ) -> *mut NET_BUFFER_LIST {
        const CALL: &str = "NdisAllocateNetBufferAndNetBufferList";
        if entered_or_fails(CALL, UP_TO_DISPATCH) {
            return ptr::null_mut();
        }
        let pool = handle::get::<Pool>(PoolHandle, CALL);
        if !pool.with_buffer {
            broken(&rules::NDIS_WRONG_CONTEXT, CALL, "the pool was made without fAllocateNetBuffer");
        }
        if !ContextSize.is_multiple_of(16) || !ContextBackFill.is_multiple_of(16) {
            broken(&rules::NDIS_OBJECT_HEADER, CALL, "ContextSize or ContextBackFill is no multiple of 16");
        }
        pool.allocate(ContextSize + ContextBackFill, Some((MdlChain, DataOffset, DataLength)))
    }

    /// IRQL <= DISPATCH_LEVEL (nblapi/nf-nblapi-ndisallocatenetbufferlist). Null if there is no memory.
    pub unsafe fn NdisAllocateNetBufferList(
        PoolHandle: NDIS_HANDLE, ContextSize: u16, ContextBackFill: u16,
    ) -> *mut NET_BUFFER_LIST {
        const CALL: &str = "NdisAllocateNetBufferList";
        if entered_or_fails(CALL, UP_TO_DISPATCH) {
            return ptr::null_mut();
        }
        let pool = handle::get::<Pool>(PoolHandle, CALL);
        let data = pool.with_buffer.then_some((ptr::null_mut(), 0, 0));
        pool.allocate(ContextSize + ContextBackFill, data)
    }

    /// IRQL <= DISPATCH_LEVEL (nblapi/nf-nblapi-ndisfreenetbufferlist).
    pub unsafe fn NdisFreeNetBufferList(NetBufferList: *mut NET_BUFFER_LIST) {
        const CALL: &str = "NdisFreeNetBufferList";
        entered(CALL, UP_TO_DISPATCH);
        free(NetBufferList as usize, CALL);
    }

    /// IRQL <= DISPATCH_LEVEL (nblapi/nf-nblapi-ndisallocatemdl): an MDL of nonpaged memory, built. Null if there is
    /// no memory.
    pub unsafe fn NdisAllocateMdl(NdisHandle: NDIS_HANDLE, VirtualAddress: PVOID, Length: u32) -> *mut MDL {
        const CALL: &str = "NdisAllocateMdl";
        if entered_or_fails(CALL, UP_TO_DISPATCH) {
            return ptr::null_mut();
        }
        Owner::of(NdisHandle, CALL);
        let machine = Machine::current();
        let mdl = machine.allocate_mdl(VirtualAddress, Length, MdlOwner::Driver);
        // SAFETY: the MDL was made just now.
        unsafe { machine.build_mdl_for_nonpaged_pool(mdl, CALL) };
        mdl
    }

    /// IRQL <= DISPATCH_LEVEL (nblapi/nf-nblapi-ndisfreemdl).
    pub unsafe fn NdisFreeMdl(Mdl: *mut MDL) {
        const CALL: &str = "NdisFreeMdl";
        entered(CALL, UP_TO_DISPATCH);
        // SAFETY: the driver gives the MDL up; that it is a live one of its own is checked.
        unsafe { Machine::current().free_mdl(Mdl, MdlOwner::Driver, CALL) };
    }
}
