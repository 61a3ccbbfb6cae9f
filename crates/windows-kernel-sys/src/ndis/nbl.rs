//! NET_BUFFER_LIST, NET_BUFFER, their pools and out-of-band data (`ndis/nbl.h`, `ndis/nblapi.h`, `ndis/nblinfo.h`,
//! `ndis/nblchecksum.h`; all formerly in `ndis.h`).

use super::{NDIS_HANDLE, NDIS_OBJECT_HEADER, NDIS_STATUS};
use crate::nt::{BOOLEAN, MDL, PHYSICAL_ADDRESS, PVOID, SCATTER_GATHER_LIST};

/// Slots of out-of-band data that an NDIS 6.80 miniport for x64 may touch (`MaxNetBufferListInfo`). NDIS itself
/// keeps more behind them.
pub const MaxNetBufferListInfo: usize = 27;

/// Indices into [`NET_BUFFER_LIST::NetBufferListInfo`] (nblinfo/ne-nblinfo-ndis_net_buffer_list_info).
pub const TcpIpChecksumNetBufferListInfo: usize = 0;
pub const TcpLargeSendNetBufferListInfo: usize = 2;
pub const ClassificationHandleNetBufferListInfo: usize = 3;
pub const Ieee8021QNetBufferListInfo: usize = 4;
pub const NetBufferListCancelId: usize = 5;
pub const MediaSpecificInformation: usize = 6;
/// Receive: EtherType in network order, if the miniport sets it.
pub const NetBufferListFrameType: usize = 7;
pub const NetBufferListHashValue: usize = 8;
pub const NetBufferListHashInfo: usize = 9;
pub const WfpNetBufferListInfo: usize = 10;
pub const NetBufferListFilteringInfo: usize = 14;
pub const TcpRecvSegCoalesceInfo: usize = 22;
pub const UdpSegmentationOffloadInfo: usize = 22;

/// nbl/ns-nbl-net_buffer. The first six members are also a `NET_BUFFER_DATA` and an `SLIST_HEADER`.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug)]
pub struct NET_BUFFER {
    pub Next: *mut NET_BUFFER,
    pub CurrentMdl: *mut MDL,
    pub CurrentMdlOffset: u32,
    /// `DataLength` (32 bits) and `stDataLength` (64 bits) share this place.
    pub stDataLength: usize,
    pub MdlChain: *mut MDL,
    pub DataOffset: u32,
    /// The members above fill an `SLIST_HEADER`-aligned union in C, hence the hole.
    pub Padding: u32,
    pub ChecksumBias: u16,
    pub Reserved: u16,
    pub NdisPoolHandle: NDIS_HANDLE,
    pub NdisReserved: [PVOID; 2],
    pub ProtocolReserved: [PVOID; 6],
    /// Belongs to the miniport while it owns the buffer.
    pub MiniportReserved: [PVOID; 4],
    pub DataPhysicalAddress: PHYSICAL_ADDRESS,
    pub Anonymous: NET_BUFFER_0,
}

/// The unnamed last member of [`NET_BUFFER`].
#[repr(C)]
#[derive(Clone, Copy)]
pub union NET_BUFFER_0 {
    pub SharedMemoryInfo: PVOID,
    pub ScatterGatherList: *mut SCATTER_GATHER_LIST,
}

impl core::fmt::Debug for NET_BUFFER_0 {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        // SAFETY: both members are pointers; reading one as the other is only an address.
        core::fmt::Pointer::fmt(&unsafe { self.SharedMemoryInfo }, f)
    }
}

/// nbl/ns-nbl-net_buffer_list. The first two members are also a `NET_BUFFER_LIST_DATA` and an `SLIST_HEADER`.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug)]
pub struct NET_BUFFER_LIST {
    pub Next: *mut NET_BUFFER_LIST,
    pub FirstNetBuffer: *mut NET_BUFFER,
    pub Context: *mut NET_BUFFER_LIST_CONTEXT,
    pub ParentNetBufferList: *mut NET_BUFFER_LIST,
    pub NdisPoolHandle: NDIS_HANDLE,
    /// Aligned to 16 bytes in C, hence the hole before it.
    pub Padding: u64,
    pub NdisReserved: [PVOID; 2],
    pub ProtocolReserved: [PVOID; 4],
    /// Belongs to the miniport while it owns the list.
    pub MiniportReserved: [PVOID; 2],
    pub Scratch: PVOID,
    pub SourceHandle: NDIS_HANDLE,
    pub NblFlags: u32,
    pub ChildRefCount: i32,
    pub Flags: u32,
    pub Status: NDIS_STATUS,
    pub NetBufferListInfo: [PVOID; MaxNetBufferListInfo],
}

/// nbl/ns-nbl-net_buffer_list_context.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug)]
pub struct NET_BUFFER_LIST_CONTEXT {
    pub Next: *mut NET_BUFFER_LIST_CONTEXT,
    pub Size: u16,
    pub Offset: u16,
    /// `ContextData` is aligned to 16 bytes in C.
    pub Padding: u32,
    pub ContextData: [u8; 0],
}

/// nblapi/ns-nblapi-net_buffer_list_pool_parameters.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct NET_BUFFER_LIST_POOL_PARAMETERS {
    pub Header: NDIS_OBJECT_HEADER,
    pub ProtocolId: u8,
    pub fAllocateNetBuffer: BOOLEAN,
    /// A multiple of 16.
    pub ContextSize: u16,
    pub PoolTag: u32,
    pub DataSize: u32,
    /// Revision 2 only.
    pub Flags: u32,
}
pub const NET_BUFFER_LIST_POOL_PARAMETERS_REVISION_1: u8 = 1;
pub const NDIS_SIZEOF_NET_BUFFER_LIST_POOL_PARAMETERS_REVISION_1: u16 = 16;
pub const NDIS_PROTOCOL_ID_DEFAULT: u8 = 0;

layout! {
    NET_BUFFER: 176, 16 {
        Next @ 0, CurrentMdl @ 8, CurrentMdlOffset @ 16, stDataLength @ 24, MdlChain @ 32, DataOffset @ 40,
        ChecksumBias @ 48, Reserved @ 50, NdisPoolHandle @ 56, NdisReserved @ 64, ProtocolReserved @ 80,
        MiniportReserved @ 128, DataPhysicalAddress @ 160, Anonymous ("ScatterGatherList") @ 168
    }
    NET_BUFFER_LIST: 368, 16 {
        Next @ 0, FirstNetBuffer @ 8, Context @ 16, ParentNetBufferList @ 24, NdisPoolHandle @ 32, NdisReserved @ 48,
        ProtocolReserved @ 64, MiniportReserved @ 96, Scratch @ 112, SourceHandle @ 120, NblFlags @ 128,
        ChildRefCount @ 132, Flags @ 136, Status @ 140, NetBufferListInfo @ 144
    }
    NET_BUFFER_LIST_CONTEXT: 16, 16 { Next @ 0, Size @ 8, Offset @ 10, ContextData @ 16 }
    NET_BUFFER_LIST_POOL_PARAMETERS: 20, 4 {
        Header @ 0, ProtocolId @ 4, fAllocateNetBuffer @ 5, ContextSize @ 6, PoolTag @ 8, DataSize @ 12, Flags @ 16
    }
}

impl NET_BUFFER {
    /// Bytes of data (`NET_BUFFER_DATA_LENGTH`).
    pub const fn data_length(&self) -> u32 {
        self.stDataLength as u32
    }
}

bitflags::bitflags! {
    /// `NET_BUFFER_LIST::NblFlags`.
    #[repr(transparent)]
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct NDIS_NBL_FLAGS: u32 {
        const HD_SPLIT = 0x0000_0001;
        const IS_IPV4 = 0x0000_0002;
        const IS_IPV6 = 0x0000_0004;
        const IS_TCP = 0x0000_0008;
        const IS_UDP = 0x0000_0010;
        const IS_LOOPBACK_PACKET = 0x0000_0080;
    }

    /// Flags of MiniportSendNetBufferLists (ndis/nc-ndis-miniport_send_net_buffer_lists).
    #[repr(transparent)]
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct NDIS_SEND_FLAGS: u32 {
        const DISPATCH_LEVEL = 0x0000_0001;
        const CHECK_FOR_LOOPBACK = 0x0000_0002;
        const SINGLE_QUEUE = 0x0000_0004;
        const SWITCH_SINGLE_SOURCE = 0x0000_0008;
    }

    /// Flags of `NdisMSendNetBufferListsComplete` (ndis/nf-ndis-ndismsendnetbufferlistscomplete).
    #[repr(transparent)]
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct NDIS_SEND_COMPLETE_FLAGS: u32 {
        const DISPATCH_LEVEL = 0x0000_0001;
        const SINGLE_QUEUE = 0x0000_0002;
        const SWITCH_SINGLE_SOURCE = 0x0000_0004;
    }

    /// Flags of `NdisMIndicateReceiveNetBufferLists` (ndis/nf-ndis-ndismindicatereceivenetbufferlists).
    #[repr(transparent)]
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct NDIS_RECEIVE_FLAGS: u32 {
        const DISPATCH_LEVEL = 0x0000_0001;
        /// The miniport takes the lists back when the call returns.
        const RESOURCES = 0x0000_0002;
        const SINGLE_ETHER_TYPE = 0x0000_0004;
        const SINGLE_VLAN = 0x0000_0008;
        const PERFECT_FILTERED = 0x0000_0010;
        const SINGLE_QUEUE = 0x0000_0020;
        const SHARED_MEMORY_INFO_VALID = 0x0000_0040;
        const MORE_NBLS = 0x0000_0080;
    }

    /// Flags of MiniportReturnNetBufferLists (ndis/nc-ndis-miniport_return_net_buffer_lists).
    #[repr(transparent)]
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct NDIS_RETURN_FLAGS: u32 {
        const DISPATCH_LEVEL = 0x0000_0001;
        const SINGLE_QUEUE = 0x0000_0002;
        const SWITCH_SINGLE_SOURCE = 0x0000_0004;
    }

    /// A receive's [`TcpIpChecksumNetBufferListInfo`] (nblchecksum/ns-nblchecksum-ndis_tcp_ip_checksum_net_buffer_list_info).
    #[repr(transparent)]
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct NDIS_RECEIVE_CHECKSUM_INFO: usize {
        const TCP_CHECKSUM_FAILED = 0x01;
        const UDP_CHECKSUM_FAILED = 0x02;
        const IP_CHECKSUM_FAILED = 0x04;
        const TCP_CHECKSUM_SUCCEEDED = 0x08;
        const UDP_CHECKSUM_SUCCEEDED = 0x10;
        const IP_CHECKSUM_SUCCEEDED = 0x20;
        const LOOPBACK = 0x40;
        const TCP_CHECKSUM_VALUE_INVALID = 0x80;
        const IP_CHECKSUM_VALUE_INVALID = 0x100;
    }

    /// A send's [`TcpIpChecksumNetBufferListInfo`]; the offset of the TCP header is in bits 16 to 25.
    #[repr(transparent)]
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct NDIS_SEND_CHECKSUM_INFO: usize {
        const IS_IPV4 = 0x01;
        const IS_IPV6 = 0x02;
        const TCP_CHECKSUM = 0x04;
        const UDP_CHECKSUM = 0x08;
        const IP_HEADER_CHECKSUM = 0x10;
        const _ = !0;
    }
}

/// The id by which a send can be cancelled (`NDIS_GET_NET_BUFFER_LIST_CANCEL_ID`).
///
/// # Safety
/// `nbl` must point to a NET_BUFFER_LIST.
pub unsafe fn NDIS_GET_NET_BUFFER_LIST_CANCEL_ID(nbl: *const NET_BUFFER_LIST) -> PVOID {
    // SAFETY: the caller's contract.
    unsafe { (*nbl).NetBufferListInfo[NetBufferListCancelId] }
}

/// Start of the context area (`NET_BUFFER_LIST_CONTEXT_DATA_START`).
///
/// # Safety
/// `nbl` must point to a NET_BUFFER_LIST that has a context.
pub unsafe fn NET_BUFFER_LIST_CONTEXT_DATA_START(nbl: *const NET_BUFFER_LIST) -> *mut u8 {
    // SAFETY: the caller's contract.
    unsafe {
        let context = (*nbl).Context;
        (&raw mut (*context).ContextData).cast::<u8>().wrapping_add((*context).Offset as usize)
    }
}
