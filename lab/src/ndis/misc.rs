//! Versions, time, memory and the event log.

use std::ptr;
use std::sync::PoisonError;

use windows_kernel_sys::{NDIS_ERROR_CODE, NDIS_HANDLE, PVOID};

use super::call::{PASSIVE, UP_TO_DISPATCH, entered, entered_or_fails};
use super::event_log::EventLogEntry;
use super::handle::Owner;
use super::memory::Block;
use super::rules::{self, broken};
use crate::export;
use crate::kernel::Machine;
use crate::sim::{self, MICROSECOND, MILLISECOND, Nanos, TraceEvent};

/// The version this NDIS says it is: 6.85, Windows Server 2022.
pub const NDIS_VERSION: u32 = windows_kernel_sys::NDIS_RUNTIME_VERSION_685;

/// Blocks that drivers allocated through NDIS, by address, with their length and tag.
static ALLOCATED: std::sync::Mutex<Vec<(usize, u32, u32, Block)>> = std::sync::Mutex::new(Vec::new());

/// Resource kind of such a block in the machine's ledger.
const MEMORY_KIND: &str = "NDIS memory";

/// Frees a block; `matches` says whether length and tag are right.
fn free(address: PVOID, call: &str, matches: impl FnOnce(u32, u32) -> bool) {
    let mut allocated = ALLOCATED.lock().unwrap_or_else(PoisonError::into_inner);
    let found = allocated.iter().position(|(pointer, ..)| *pointer == address as usize);
    let entry = found.map(|index| allocated.swap_remove(index));
    drop(allocated);
    let Some((_, length, tag, block)) = entry else {
        broken(&rules::NDIS_MEMORY, call, "no such block is allocated");
    };
    if !matches(length, tag) {
        broken(
            &rules::NDIS_MEMORY,
            call,
            format!("the block was allocated with length {length} and tag {tag:#x}"),
        );
    }
    Machine::current().try_release(MEMORY_KIND, address as usize);
    drop(block);
}

/// Error values that an entry may have. The function is variadic: arguments behind the count are on the caller's
/// stack, and only so many of them as the count says are looked at.
const MAX_VALUES: u32 = 8;

export! { "ndis.sys";
    /// Any level (ndis/nf-ndis-ndisgetversion).
    pub unsafe fn NdisGetVersion() -> u32 {
        NDIS_VERSION
    }

    /// PASSIVE_LEVEL (ndis/nf-ndis-ndismsleep).
    pub unsafe fn NdisMSleep(MicrosecondsToSleep: u32) {
        entered("NdisMSleep", PASSIVE);
        sim::sleep(Nanos::from(MicrosecondsToSleep) * MICROSECOND);
    }

    /// IRQL <= DISPATCH_LEVEL (ndis/nf-ndis-ndisgetsystemuptimeex). Unit milliseconds.
    pub unsafe fn NdisGetSystemUpTimeEx(pSystemUpTime: *mut i64) {
        entered("NdisGetSystemUpTimeEx", UP_TO_DISPATCH);
        // SAFETY: the driver's variable.
        unsafe { *pSystemUpTime = (Machine::current().sim().now() / MILLISECOND) as i64 };
    }

    /// IRQL <= DISPATCH_LEVEL (ndis/nf-ndis-ndisallocatememorywithtagpriority). Null if there is no memory.
    pub unsafe fn NdisAllocateMemoryWithTagPriority(
        NdisHandle: NDIS_HANDLE, Length: u32, Tag: u32, Priority: i32,
    ) -> PVOID {
        const CALL: &str = "NdisAllocateMemoryWithTagPriority";
        if entered_or_fails(CALL, UP_TO_DISPATCH) {
            return ptr::null_mut();
        }
        Owner::of(NdisHandle, CALL);
        if Length == 0 || Tag == 0 {
            broken(&rules::NDIS_MEMORY, CALL, "a length or tag of 0");
        }
        let _ = Priority;
        let block = Block::new(Length as usize);
        let pointer = block.pointer();
        Machine::current().acquire(MEMORY_KIND, pointer as usize, format!("tag {Tag:#x}"));
        ALLOCATED.lock().unwrap_or_else(PoisonError::into_inner).push((pointer as usize, Length, Tag, block));
        pointer.cast()
    }

    /// IRQL <= DISPATCH_LEVEL (ndis/nf-ndis-ndisfreememorywithtagpriority).
    pub unsafe fn NdisFreeMemoryWithTagPriority(NdisHandle: NDIS_HANDLE, VirtualAddress: PVOID, Tag: u32) {
        const CALL: &str = "NdisFreeMemoryWithTagPriority";
        entered(CALL, UP_TO_DISPATCH);
        Owner::of(NdisHandle, CALL);
        free(VirtualAddress, CALL, |_, tag| tag == Tag);
    }

    /// IRQL <= DISPATCH_LEVEL (ndis/nf-ndis-ndisfreememory). A length of 0 stands for whatever it was allocated with.
    pub unsafe fn NdisFreeMemory(VirtualAddress: PVOID, Length: u32, MemoryFlags: u32) {
        const CALL: &str = "NdisFreeMemory";
        entered(CALL, UP_TO_DISPATCH);
        let _ = MemoryFlags;
        free(VirtualAddress, CALL, |length, _| Length == 0 || length == Length);
    }

    /// IRQL <= DISPATCH_LEVEL (ndis/nf-ndis-ndiswriteerrorlogentry). Variadic in C.
    pub unsafe fn NdisWriteErrorLogEntry(
        NdisAdapterHandle: NDIS_HANDLE, ErrorCode: NDIS_ERROR_CODE, NumberOfErrorValues: u32, v0: usize, v1: usize,
        v2: usize, v3: usize, v4: usize, v5: usize, v6: usize, v7: usize,
    ) {
        const CALL: &str = "NdisWriteErrorLogEntry";
        entered(CALL, UP_TO_DISPATCH);
        if NumberOfErrorValues > MAX_VALUES {
            broken(&rules::NDIS_MEMORY, CALL, format!("{NumberOfErrorValues} values, this NDIS takes {MAX_VALUES}"));
        }
        let owner = Owner::of(NdisAdapterHandle, CALL);
        let (log, source) = match &owner {
            Owner::Driver(driver) => (driver.log.clone(), driver.name.clone()),
            Owner::Adapter(core) => (core.log.clone(), core.name.clone()),
        };
        let all = [v0, v1, v2, v3, v4, v5, v6, v7];
        let values = all.iter().take(NumberOfErrorValues as usize).map(|value| *value as u32).collect();
        let machine = Machine::current();
        let time = machine.sim().now();
        let text = format!("{source}: {ErrorCode:#010x} {values:x?}");
        machine.sim().trace(TraceEvent::text("event log", u64::from(machine.id()), text));
        log.write(EventLogEntry { time, source, code: ErrorCode, values });
    }
}
