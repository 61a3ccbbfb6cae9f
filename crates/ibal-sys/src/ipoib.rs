//! What the bus driver says about the port that an IPoIB device stands for.
//!
//! Source: WinOFED `inc/kernel/iba/ipoib_ifc.h`. The bus driver (`core/bus/kernel/bus_port_mgr.c`) answers
//! `IRP_MN_QUERY_INTERFACE` for [`GUID_IPOIB_INTERFACE_DATA`] by filling an [`ipoib_ifc_data_t`] behind the
//! interface-specific data pointer.

use core::ffi::{c_char, c_void};

use windows_kernel_sys::GUID;

use crate::types::*;

/// `GUID_IPOIB_INTERFACE_DATA`: type of the data that comes with `GUID_IB_AL_INTERFACE`.
pub const GUID_IPOIB_INTERFACE_DATA: GUID = GUID {
    Data1: 0xb40d_db48,
    Data2: 0x5710,
    Data3: 0x487a,
    Data4: [0xb8, 0x12, 0x6d, 0xaf, 0x56, 0xc7, 0xf4, 0x23],
};
/// `IPOIB_INTERFACE_DATA_VERSION`.
pub const IPOIB_INTERFACE_DATA_VERSION: u16 = 10;
/// `MAX_USER_NAME_SIZE`.
pub const MAX_USER_NAME_SIZE: usize = 17;

/// `port_guid_pkey_t`: a port and a partition, 48 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct port_guid_pkey_t {
    /// Port GUID.
    pub guid: ib_net64_t,
    /// P_Key, in host order: the header says `ib_net16_t`, but the bus driver puts the plain number here
    /// (`core/bus/kernel/bus_port_mgr.c`, `bus_driver.c`), and `ulp/ipoib` swaps it.
    pub pkey: u16,
    /// Ethernet over InfiniBand instead of IPoIB.
    pub IsEoib: boolean_t,
    /// EoIB: identity of the virtual NIC.
    pub UniqueId: u64,
    /// EoIB: where it is.
    pub Location: u32,
    /// Name that the user gave the partition's interface, terminated by a zero.
    pub name: [c_char; MAX_USER_NAME_SIZE],
}

/// `ipoib_ifc_func`: entry points for Ethernet over InfiniBand, which IPoIB does not call. The bus driver
/// fills them for every port.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // Ten opaque slots by the header's names.
pub struct ipoib_ifc_func {
    pub UpdateCheckForHang: *mut c_void,
    pub RegisterEoibNotification: *mut c_void,
    pub RemoveEoibNotification: *mut c_void,
    pub GetVhubTableUpdate: *mut c_void,
    pub ReturnVhubTableUpdate: *mut c_void,
    pub GetLinkStatus: *mut c_void,
    pub AcquireDataQpn: *mut c_void,
    pub ReleaseDataQpn: *mut c_void,
    pub GetBroadcastMgidParams: *mut c_void,
    pub GetEoIBMac: *mut c_void,
}

/// `ipoib_ifc_data_t`: 160 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ipoib_ifc_data_t {
    /// Driver of the HCA, for routing by driver.
    pub driver_id: GUID,
    /// CA.
    pub ca_guid: ib_net64_t,
    /// Port and partition.
    pub port_guid: port_guid_pkey_t,
    /// Port number, from 1.
    pub port_num: u8,
    /// EoIB.
    pub ibal_ipoib_ifc: ipoib_ifc_func,
}
