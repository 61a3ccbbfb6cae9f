//! What the driver writes to the system event log.
//!
//! The texts are in `include/events.mc`, which is compiled into the image; a test holds the two together. A code is laid
//! out as an NTSTATUS (kernel, "Defining Custom Error Types"): severity, facility, number. NDIS adds the adapter's name
//! as the first insertion string.

use windows_kernel_sys::NDIS_ERROR_CODE;

/// An event. Two words of data go with each, as its documentation says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum EventCode {
    /// MiniportInitializeEx failed. Data: the stage it came to, the NTSTATUS or IBAL status.
    InitializationFailed = 0xC007_0001,
    /// The queue pair did not become ready. Data: the IBAL status, 0.
    QueuePairFailed = 0xC007_0002,
    /// The adapter asked NDIS to reset it: sends or receives did not progress. Data: 0, 0.
    Hung = 0x8007_0003,
    /// Work requests never completed, though the queue pair was put into ERROR. Data: how many, 0.
    RequestsLost = 0xC007_0004,
    /// The broadcast group could not be joined; joining goes on. Data: the subnet administrator's status or 0, the
    /// number of attempts.
    BroadcastGroupNotJoined = 0x8007_0005,
    /// The broadcast group's MTU is smaller than the configured one. Data: the group's, the configured one.
    GroupMtuTooSmall = 0x8007_0006,
    /// A keyword of the registry has no acceptable value. Data: its number in the table of keywords, from 1, and the
    /// value used instead.
    KeywordRejected = 0x8007_0007,
    /// The keyword `NetworkAddress` is no address that an adapter may have. Data: 0, 0.
    NetworkAddressRejected = 0x8007_0008,
    /// The adapter's registry key cannot be read, so defaults are used. Data: the NTSTATUS, 0.
    ConfigurationUnreadable = 0x8007_0009,
}

impl EventCode {
    /// All of them, by number.
    pub const ALL: [Self; 9] = [
        Self::InitializationFailed,
        Self::QueuePairFailed,
        Self::Hung,
        Self::RequestsLost,
        Self::BroadcastGroupNotJoined,
        Self::GroupMtuTooSmall,
        Self::KeywordRejected,
        Self::NetworkAddressRejected,
        Self::ConfigurationUnreadable,
    ];
}

impl From<EventCode> for NDIS_ERROR_CODE {
    fn from(code: EventCode) -> Self {
        code as Self
    }
}
