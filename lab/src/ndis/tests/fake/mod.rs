//! A made-up miniport that sends whatever it is given back to whoever gave it. It keeps every rule, except the one it
//! is told to break: the registry value `Misdeed` of its driver says which.

mod cable;
mod control;
mod data;
mod setup;

use std::collections::VecDeque;

use windows_kernel_sys::*;

use crate::sim::Lock;

pub(in crate::ndis::tests) use setup::entry;

macro_rules! misdeeds {
    ($($name:ident),* $(,)?) => {
        /// What the miniport does wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(in crate::ndis::tests) enum Misdeed { None, $($name),* }

        impl Misdeed {
            pub const ALL: &[Misdeed] = &[$(Misdeed::$name),*];

            fn from_number(number: u32) -> Self {
                Self::ALL.iter().copied().find(|misdeed| *misdeed as u32 == number).unwrap_or(Self::None)
            }
        }
    };
}

misdeeds! {
    HandlerMissing, RegistersNothing, StaysRegistered, WrongPoolHeader, GeneralFirst, NoGeneral, DmaFirst,
    AttributesLate, PauseFails, PauseCompletedTwice, PauseNever, PauseWithSends, PauseWithReceives, ResetWithSends,
    ResetWithOid, SendCompletedTwice, SendNever, SendWithoutStatus, SendWrites, SendDropsBuffer, SendsWhilePaused,
    ReceivesWhilePaused, ReceivesTwice, ReceiveCountWrong, ReceiveSourceWrong, ReceiveTooLong, ReceiveTooShort,
    ReceiveLengthBeyondChain, ReceiveCurrentMdlWrong, ReceiveFramesWrong, ReceiveWrites, ReceiveFreed, NblFreedTwice,
    OidCompletedTwice, OidReturnedAndCompleted, OidNever, OidTooLong, OidNothingNeeded, OidPendingStatus,
    StatusAfterHalt, StatusTooEarly, StatusHeader, LinkStateHeader, SglFreedTwice, SglNotFreed, SglAtPassive,
    TimerFreedWhileSet, PeriodicTimerCancelledAtDispatch, WorkItemQueuedTwice, WorkItemFreedWhileQueued, LeaksTimer,
    LeaksPool, LeaksConfiguration, LeaksSharedMemory, SharedMemoryLength, DispatchFlagAtPassive, StaleHandle,
    SleepsAtDispatch,
}

pub(super) const MTU: u32 = 2044;
pub(super) const MAC: [u8; 6] = [2, 0, 0, 0, 0, 7];
/// Answer to OID_GEN_VENDOR_ID.
pub(super) const VENDOR: u32 = 0x00FF_FFFF;
/// Answer to OID_GEN_VENDOR_DESCRIPTION, which is given from a work item.
pub(super) const DESCRIPTION: &[u8] = b"fake\0";
const TAG: u32 = u32::from_le_bytes(*b"Fake");

struct Driver {
    handle: NDIS_HANDLE,
    misdeed: Misdeed,
}

#[derive(Default)]
struct State {
    running: bool,
    /// MiniportPause returned NDIS_STATUS_PENDING.
    pausing: bool,
    /// Lists in the queue, lists being mapped, and receives indicated.
    busy: usize,
    queue: VecDeque<usize>,
    oid: usize,
    /// The timer was set and its function has not begun.
    timer_set: bool,
    resetting: bool,
    work_queued: bool,
}

struct Device {
    misdeed: Misdeed,
    handle: NDIS_HANDLE,
    dma: NDIS_HANDLE,
    pool: NDIS_HANDLE,
    timer: NDIS_HANDLE,
    work: NDIS_HANDLE,
    shared: (PVOID, PHYSICAL_ADDRESS),
    /// The cable it is plugged into; with 0 what it sends comes back to it.
    wire: u32,
    state: Lock<State>,
}

/// A list on its way: its NET_BUFFERs are mapped one after the other, then it is completed and its frames come back.
struct Sending {
    device: *const Device,
    list: *mut NET_BUFFER_LIST,
    left: usize,
    frames: Vec<Vec<u8>>,
}

struct Mapping {
    sending: *mut Sending,
    buffer: *mut NET_BUFFER,
}

fn device<'a>(context: PVOID) -> &'a Device {
    // SAFETY: NDIS passes the context that was registered, which lives until halt.
    unsafe { &*context.cast::<Device>() }
}

fn header(object_type: u8, revision: u8, size: u16) -> NDIS_OBJECT_HEADER {
    NDIS_OBJECT_HEADER::new(object_type, revision, size)
}
