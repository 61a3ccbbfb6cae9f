//! Task offload capabilities and parameters (`ntddndis.h`). Bit fields of two bits each (0 unsupported, 1 supported,
//! in set operations 0 unchanged, 1 on, 2 off) are one word here.

use super::NDIS_OBJECT_HEADER;

/// Encapsulations, to be or'ed.
pub const NDIS_ENCAPSULATION_NOT_SUPPORTED: u32 = 0;
pub const NDIS_ENCAPSULATION_NULL: u32 = 0x0000_0001;
pub const NDIS_ENCAPSULATION_IEEE_802_3: u32 = 0x0000_0002;
pub const NDIS_ENCAPSULATION_IEEE_802_3_P_AND_Q: u32 = 0x0000_0004;

/// One direction and family of [`NDIS_TCP_IP_CHECKSUM_OFFLOAD`]. Bits from the lowest, two each: IP options (IPv6:
/// extension headers), TCP options, TCP checksum, UDP checksum, IP checksum (IPv4 only).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct NDIS_CHECKSUM_OFFLOAD_CASE {
    pub Encapsulation: u32,
    pub Bits: u32,
}

/// ntddndis/ns-ntddndis-_ndis_tcp_ip_checksum_offload.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct NDIS_TCP_IP_CHECKSUM_OFFLOAD {
    pub IPv4Transmit: NDIS_CHECKSUM_OFFLOAD_CASE,
    pub IPv4Receive: NDIS_CHECKSUM_OFFLOAD_CASE,
    pub IPv6Transmit: NDIS_CHECKSUM_OFFLOAD_CASE,
    pub IPv6Receive: NDIS_CHECKSUM_OFFLOAD_CASE,
}

/// ntddndis/ns-ntddndis-_ndis_tcp_large_send_offload_v1.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct NDIS_TCP_LARGE_SEND_OFFLOAD_V1 {
    pub Encapsulation: u32,
    pub MaxOffLoadSize: u32,
    pub MinSegmentCount: u32,
    pub Bits: u32,
}

/// ntddndis/ns-ntddndis-_ndis_tcp_large_send_offload_v2: IPv4 then IPv6.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct NDIS_TCP_LARGE_SEND_OFFLOAD_V2 {
    pub IPv4Encapsulation: u32,
    pub IPv4MaxOffLoadSize: u32,
    pub IPv4MinSegmentCount: u32,
    pub IPv6Encapsulation: u32,
    pub IPv6MaxOffLoadSize: u32,
    pub IPv6MinSegmentCount: u32,
    pub IPv6Bits: u32,
}

/// What the adapter can do, or does, instead of the stack (ntddndis/ns-ntddndis-_ndis_offload), to revision 3
/// (NDIS 6.30). IPsec, RSC and encapsulated offloads are kept as opaque words, zero meaning none.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct NDIS_OFFLOAD {
    pub Header: NDIS_OBJECT_HEADER,
    pub Checksum: NDIS_TCP_IP_CHECKSUM_OFFLOAD,
    pub LsoV1: NDIS_TCP_LARGE_SEND_OFFLOAD_V1,
    pub IPsecV1: [u32; 7],
    pub LsoV2: NDIS_TCP_LARGE_SEND_OFFLOAD_V2,
    pub Flags: u32,
    pub IPsecV2: [u32; 8],
    pub Rsc: [u8; 2],
    pub EncapsulatedPacketTaskOffloadGre: [u32; 2],
}
pub const NDIS_OFFLOAD_REVISION_3: u8 = 3;

/// Set buffer of OID_TCP_OFFLOAD_PARAMETERS (ntddndis/ns-ntddndis-_ndis_offload_parameters), to revision 3.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct NDIS_OFFLOAD_PARAMETERS {
    pub Header: NDIS_OBJECT_HEADER,
    pub IPv4Checksum: u8,
    pub TCPIPv4Checksum: u8,
    pub UDPIPv4Checksum: u8,
    pub TCPIPv6Checksum: u8,
    pub UDPIPv6Checksum: u8,
    pub LsoV1: u8,
    pub IPsecV1: u8,
    pub LsoV2IPv4: u8,
    pub LsoV2IPv6: u8,
    pub TcpConnectionIPv4: u8,
    pub TcpConnectionIPv6: u8,
    pub Flags: u32,
    pub IPsecV2: u8,
    pub IPsecV2IPv4: u8,
    pub RscIPv4: u8,
    pub RscIPv6: u8,
    pub EncapsulatedPacketTaskOffload: u8,
    pub EncapsulationTypes: u8,
}
pub const NDIS_OFFLOAD_PARAMETERS_NO_CHANGE: u8 = 0;
pub const NDIS_OFFLOAD_PARAMETERS_TX_RX_DISABLED: u8 = 1;
pub const NDIS_OFFLOAD_PARAMETERS_TX_ENABLED_RX_DISABLED: u8 = 2;
pub const NDIS_OFFLOAD_PARAMETERS_RX_ENABLED_TX_DISABLED: u8 = 3;
pub const NDIS_OFFLOAD_PARAMETERS_TX_RX_ENABLED: u8 = 4;

layout! {
    NDIS_CHECKSUM_OFFLOAD_CASE (""): 8, 4 { Encapsulation @ 0, Bits @ 4 }
    NDIS_TCP_IP_CHECKSUM_OFFLOAD: 32, 4 { IPv4Transmit @ 0, IPv4Receive @ 8, IPv6Transmit @ 16, IPv6Receive @ 24 }
    NDIS_TCP_LARGE_SEND_OFFLOAD_V1: 16, 4 {
        Encapsulation ("IPv4.Encapsulation") @ 0, MaxOffLoadSize ("IPv4.MaxOffLoadSize") @ 4,
        MinSegmentCount ("IPv4.MinSegmentCount") @ 8
    }
    NDIS_TCP_LARGE_SEND_OFFLOAD_V2: 28, 4 {
        IPv4Encapsulation ("IPv4.Encapsulation") @ 0, IPv4MaxOffLoadSize ("IPv4.MaxOffLoadSize") @ 4,
        IPv4MinSegmentCount ("IPv4.MinSegmentCount") @ 8, IPv6Encapsulation ("IPv6.Encapsulation") @ 12,
        IPv6MaxOffLoadSize ("IPv6.MaxOffLoadSize") @ 16, IPv6MinSegmentCount ("IPv6.MinSegmentCount") @ 20
    }
    NDIS_OFFLOAD: 156, 4 {
        Header @ 0, Checksum @ 4, LsoV1 @ 36, IPsecV1 @ 52, LsoV2 @ 80, Flags @ 108, IPsecV2 @ 112, Rsc @ 144,
        EncapsulatedPacketTaskOffloadGre @ 148
    }
    NDIS_OFFLOAD_PARAMETERS: 28, 4 {
        Header @ 0, IPv4Checksum @ 4, TCPIPv4Checksum @ 5, UDPIPv4Checksum @ 6, TCPIPv6Checksum @ 7,
        UDPIPv6Checksum @ 8, LsoV1 @ 9, IPsecV1 @ 10, LsoV2IPv4 @ 11, LsoV2IPv6 @ 12, TcpConnectionIPv4 @ 13,
        TcpConnectionIPv6 @ 14, Flags @ 16, IPsecV2 @ 20, IPsecV2IPv4 @ 21, RscIPv4 @ 22, RscIPv6 @ 23,
        EncapsulatedPacketTaskOffload @ 24, EncapsulationTypes @ 25
    }
}
