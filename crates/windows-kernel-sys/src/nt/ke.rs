//! The kernel core, `Ke`: IRQL, spin locks, dispatcher objects, DPCs (`wdm.h`).

use super::{LIST_ENTRY, PVOID, SINGLE_LIST_ENTRY};

/// Interrupt request level of a processor.
pub type KIRQL = u8;
/// `KernelMode` or `UserMode`.
pub type KPROCESSOR_MODE = i8;
/// A spin lock: zero is free.
pub type KSPIN_LOCK = usize;
/// `KWAIT_REASON`.
pub type KWAIT_REASON = i32;
/// `EVENT_TYPE`.
pub type EVENT_TYPE = i32;

pub const PASSIVE_LEVEL: KIRQL = 0;
pub const APC_LEVEL: KIRQL = 1;
pub const DISPATCH_LEVEL: KIRQL = 2;
pub const HIGH_LEVEL: KIRQL = 15;

pub const KernelMode: KPROCESSOR_MODE = 0;
pub const UserMode: KPROCESSOR_MODE = 1;

pub const Executive: KWAIT_REASON = 0;

pub const NotificationEvent: EVENT_TYPE = 0;
pub const SynchronizationEvent: EVENT_TYPE = 1;

pub const IO_NO_INCREMENT: i32 = 0;

/// Common head of everything a thread can wait for (`wdm.h`). The first word is a lock and type bytes, private to NT.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DISPATCHER_HEADER {
    pub Lock: i32,
    pub SignalState: i32,
    pub WaitListHead: LIST_ENTRY,
}

/// `wdm.h`; wdm/nf-wdm-keinitializeevent.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KEVENT {
    pub Header: DISPATCHER_HEADER,
}

/// `wdm.h`; wdm/nf-wdm-keinitializedpc.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KDPC {
    pub TargetInfoAsUlong: u32,
    pub DpcListEntry: SINGLE_LIST_ENTRY,
    pub ProcessorHistory: usize,
    pub DeferredRoutine: PKDEFERRED_ROUTINE,
    pub DeferredContext: PVOID,
    pub SystemArgument1: PVOID,
    pub SystemArgument2: PVOID,
    pub DpcData: PVOID,
}

/// `wdm.h`; wdm/nf-wdm-keinitializetimer.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KTIMER {
    pub Header: DISPATCHER_HEADER,
    pub DueTime: u64,
    pub TimerListEntry: LIST_ENTRY,
    pub Dpc: *mut KDPC,
    pub Processor: u16,
    pub TimerType: u16,
    pub Period: u32,
}

/// `wdm.h`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KDEVICE_QUEUE {
    pub Type: i16,
    pub Size: i16,
    pub DeviceListHead: LIST_ENTRY,
    pub Lock: KSPIN_LOCK,
    pub Busy: u64,
}

/// Runs at DISPATCH_LEVEL (wdm/nc-wdm-kdeferred_routine).
pub type PKDEFERRED_ROUTINE = Option<
    unsafe extern "win64" fn(
        Dpc: *mut KDPC,
        DeferredContext: PVOID,
        SystemArgument1: PVOID,
        SystemArgument2: PVOID,
    ),
>;

layout! {
    DISPATCHER_HEADER: 24, 8 { Lock @ 0, SignalState @ 4, WaitListHead @ 8 }
    KEVENT: 24, 8 { Header @ 0 }
    KDPC: 64, 8 {
        TargetInfoAsUlong @ 0, DpcListEntry @ 8, ProcessorHistory @ 16, DeferredRoutine @ 24, DeferredContext @ 32,
        SystemArgument1 @ 40, SystemArgument2 @ 48, DpcData @ 56
    }
    KTIMER: 64, 8 {
        Header @ 0, DueTime @ 24, TimerListEntry @ 32, Dpc @ 48, Processor @ 56, TimerType @ 58, Period @ 60
    }
    KDEVICE_QUEUE: 40, 8 { Type @ 0, Size @ 2, DeviceListHead @ 8, Lock @ 24, Busy @ 32 }
}
