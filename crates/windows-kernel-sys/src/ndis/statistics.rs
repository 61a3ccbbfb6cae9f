//! Statistics and interrupt moderation (`ntddndis.h`).

use super::NDIS_OBJECT_HEADER;

/// Answer to OID_GEN_STATISTICS (network/oid-gen-statistics): RFC 2863 counters.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct NDIS_STATISTICS_INFO {
    pub Header: NDIS_OBJECT_HEADER,
    /// Which counters are valid: [`NDIS_STATISTICS_FLAGS`].
    pub SupportedStatistics: u32,
    pub ifInDiscards: u64,
    pub ifInErrors: u64,
    pub ifHCInOctets: u64,
    pub ifHCInUcastPkts: u64,
    pub ifHCInMulticastPkts: u64,
    pub ifHCInBroadcastPkts: u64,
    pub ifHCOutOctets: u64,
    pub ifHCOutUcastPkts: u64,
    pub ifHCOutMulticastPkts: u64,
    pub ifHCOutBroadcastPkts: u64,
    pub ifOutErrors: u64,
    pub ifOutDiscards: u64,
    pub ifHCInUcastOctets: u64,
    pub ifHCInMulticastOctets: u64,
    pub ifHCInBroadcastOctets: u64,
    pub ifHCOutUcastOctets: u64,
    pub ifHCOutMulticastOctets: u64,
    pub ifHCOutBroadcastOctets: u64,
}
pub const NDIS_STATISTICS_INFO_REVISION_1: u8 = 1;
pub const NDIS_SIZEOF_STATISTICS_INFO_REVISION_1: u16 = 152;

bitflags::bitflags! {
    /// `NDIS_STATISTICS_FLAGS_VALID_*`; also `SupportedStatistics` of the general attributes.
    #[repr(transparent)]
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct NDIS_STATISTICS_FLAGS: u32 {
        const DIRECTED_FRAMES_RCV = 0x0000_0001;
        const MULTICAST_FRAMES_RCV = 0x0000_0002;
        const BROADCAST_FRAMES_RCV = 0x0000_0004;
        const BYTES_RCV = 0x0000_0008;
        const RCV_DISCARDS = 0x0000_0010;
        const RCV_ERROR = 0x0000_0020;
        const DIRECTED_FRAMES_XMIT = 0x0000_0040;
        const MULTICAST_FRAMES_XMIT = 0x0000_0080;
        const BROADCAST_FRAMES_XMIT = 0x0000_0100;
        const BYTES_XMIT = 0x0000_0200;
        const XMIT_ERROR = 0x0000_0400;
        const XMIT_DISCARDS = 0x0000_8000;
        const DIRECTED_BYTES_RCV = 0x0001_0000;
        const MULTICAST_BYTES_RCV = 0x0002_0000;
        const BROADCAST_BYTES_RCV = 0x0004_0000;
        const DIRECTED_BYTES_XMIT = 0x0008_0000;
        const MULTICAST_BYTES_XMIT = 0x0010_0000;
        const BROADCAST_BYTES_XMIT = 0x0020_0000;
    }
}

/// Answer to OID_GEN_INTERRUPT_MODERATION (ntddndis/ns-ntddndis-_ndis_interrupt_moderation_parameters).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct NDIS_INTERRUPT_MODERATION_PARAMETERS {
    pub Header: NDIS_OBJECT_HEADER,
    pub Flags: u32,
    pub InterruptModeration: NDIS_INTERRUPT_MODERATION,
}
pub const NDIS_INTERRUPT_MODERATION_PARAMETERS_REVISION_1: u8 = 1;
pub const NDIS_SIZEOF_INTERRUPT_MODERATION_PARAMETERS_REVISION_1: u16 = 12;

/// `NDIS_INTERRUPT_MODERATION`.
pub type NDIS_INTERRUPT_MODERATION = i32;
pub const NdisInterruptModerationUnknown: NDIS_INTERRUPT_MODERATION = 0;
pub const NdisInterruptModerationNotSupported: NDIS_INTERRUPT_MODERATION = 1;
pub const NdisInterruptModerationEnabled: NDIS_INTERRUPT_MODERATION = 2;
pub const NdisInterruptModerationDisabled: NDIS_INTERRUPT_MODERATION = 3;

layout! {
    NDIS_STATISTICS_INFO: 152, 8 {
        Header @ 0, SupportedStatistics @ 4, ifInDiscards @ 8, ifInErrors @ 16, ifHCInOctets @ 24,
        ifHCInUcastPkts @ 32, ifHCInMulticastPkts @ 40, ifHCInBroadcastPkts @ 48, ifHCOutOctets @ 56,
        ifHCOutUcastPkts @ 64, ifHCOutMulticastPkts @ 72, ifHCOutBroadcastPkts @ 80, ifOutErrors @ 88,
        ifOutDiscards @ 96, ifHCInUcastOctets @ 104, ifHCInMulticastOctets @ 112, ifHCInBroadcastOctets @ 120,
        ifHCOutUcastOctets @ 128, ifHCOutMulticastOctets @ 136, ifHCOutBroadcastOctets @ 144
    }
    NDIS_INTERRUPT_MODERATION_PARAMETERS: 12, 4 { Header @ 0, Flags @ 4, InterruptModeration @ 8 }
}
