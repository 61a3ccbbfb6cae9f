//! What an adapter tells NDIS about itself, in MiniportInitializeEx (ndis/nf-ndis-ndismsetminiportattributes).

use super::adapter::AdapterHandle;
use super::irql::Passive;
use super::link::LinkState;
use super::status::{Result, check};
use core::ffi::c_void;
use core::ptr;
use windows_kernel_sys as sys;
use windows_kernel_sys::Zeroable as _;

/// An Ethernet address.
pub type MacAddress = [u8; 6];

/// Registration attributes: the first that are set.
#[derive(Clone, Copy, Debug)]
pub struct Registration {
    /// What NDIS passes to every handler as MiniportAdapterContext.
    pub context: *const c_void,
    /// What kind of device this is.
    pub flags: sys::NDIS_MINIPORT_ATTRIBUTES,
    /// Seconds between two calls of MiniportCheckForHangEx; 0 for NDIS's own choice.
    pub check_for_hang_seconds: u32,
}

/// General attributes: what protocol drivers can know of the adapter when they bind.
#[derive(Clone, Copy, Debug)]
pub struct General<'a> {
    /// The largest payload of an Ethernet frame.
    pub mtu: u32,
    /// Bytes of a frame that are always indicated in one piece.
    pub lookahead: u32,
    /// The link as it is now.
    pub link: LinkState,
    /// The fastest the link can be, in bits per second each way.
    pub max_link_speed: u64,
    /// OID_GEN_MAC_OPTIONS.
    pub mac_options: sys::NDIS_MAC_OPTION,
    /// Packet filters that can be set.
    pub packet_filters: sys::NDIS_PACKET_TYPE,
    /// Addresses that the multicast list holds.
    pub multicast_list_size: u32,
    /// OID_802_3_PERMANENT_ADDRESS.
    pub permanent_address: MacAddress,
    /// OID_802_3_CURRENT_ADDRESS.
    pub current_address: MacAddress,
    /// Counters that OID_GEN_STATISTICS gives.
    pub statistics: sys::NDIS_STATISTICS_FLAGS,
    /// OIDs that MiniportOidRequest answers.
    pub oids: &'a [sys::NDIS_OID],
}

impl AdapterHandle {
    /// Sets the registration attributes.
    pub fn set_registration(self, attributes: Registration, at: &Passive<'_>) -> Result<()> {
        let mut raw = sys::NDIS_MINIPORT_ADAPTER_REGISTRATION_ATTRIBUTES::zeroed();
        raw.Header = sys::NDIS_OBJECT_HEADER::new(
            sys::NDIS_OBJECT_TYPE_MINIPORT_ADAPTER_REGISTRATION_ATTRIBUTES,
            sys::NDIS_MINIPORT_ADAPTER_REGISTRATION_ATTRIBUTES_REVISION_2,
            sys::NDIS_SIZEOF_MINIPORT_ADAPTER_REGISTRATION_ATTRIBUTES_REVISION_2,
        );
        raw.MiniportAdapterContext = attributes.context.cast_mut();
        raw.AttributeFlags = attributes.flags.bits();
        raw.CheckForHangTimeInSeconds = attributes.check_for_hang_seconds;
        raw.InterfaceType = sys::NdisInterfacePNPBus;
        // SAFETY: a complete structure of the type that its header names.
        unsafe { self.set_attributes((&raw mut raw).cast(), at) }
    }

    /// Sets the general attributes of an Ethernet adapter.
    pub fn set_general(self, attributes: &General<'_>, at: &Passive<'_>) -> Result<()> {
        // NDIS asks for power capabilities of every adapter. This one cannot wake the system.
        let mut power = sys::NDIS_PM_CAPABILITIES::zeroed();
        power.Header = sys::NDIS_OBJECT_HEADER::new(
            sys::NDIS_OBJECT_TYPE_DEFAULT,
            sys::NDIS_PM_CAPABILITIES_REVISION_2,
            sys::NDIS_SIZEOF_NDIS_PM_CAPABILITIES_REVISION_2,
        );
        let mut raw = sys::NDIS_MINIPORT_ADAPTER_GENERAL_ATTRIBUTES::zeroed();
        raw.Header = sys::NDIS_OBJECT_HEADER::new(
            sys::NDIS_OBJECT_TYPE_MINIPORT_ADAPTER_GENERAL_ATTRIBUTES,
            sys::NDIS_MINIPORT_ADAPTER_GENERAL_ATTRIBUTES_REVISION_2,
            sys::NDIS_SIZEOF_MINIPORT_ADAPTER_GENERAL_ATTRIBUTES_REVISION_2,
        );
        raw.MediaType = sys::NdisMedium802_3;
        raw.PhysicalMediumType = sys::NdisPhysicalMedium802_3;
        raw.MtuSize = attributes.mtu;
        raw.MaxXmitLinkSpeed = attributes.max_link_speed;
        raw.MaxRcvLinkSpeed = attributes.max_link_speed;
        let link = attributes.link.to_raw();
        raw.XmitLinkSpeed = link.XmitLinkSpeed;
        raw.RcvLinkSpeed = link.RcvLinkSpeed;
        raw.MediaConnectState = link.MediaConnectState;
        raw.MediaDuplexState = link.MediaDuplexState;
        raw.LookaheadSize = attributes.lookahead;
        raw.MacOptions = attributes.mac_options.bits();
        raw.SupportedPacketFilters = attributes.packet_filters.bits();
        raw.MaxMulticastListSize = attributes.multicast_list_size;
        raw.MacAddressLength = size_of::<MacAddress>() as u16;
        put(&mut raw.PermanentMacAddress, attributes.permanent_address);
        put(&mut raw.CurrentMacAddress, attributes.current_address);
        raw.AccessType = sys::NET_IF_ACCESS_BROADCAST;
        raw.DirectionType = sys::NET_IF_DIRECTION_SENDRECEIVE;
        raw.ConnectionType = sys::NET_IF_CONNECTION_DEDICATED;
        raw.IfType = sys::IF_TYPE_ETHERNET_CSMACD;
        raw.IfConnectorPresent = sys::TRUE;
        raw.SupportedStatistics = attributes.statistics.bits();
        raw.SupportedPauseFunctions = sys::NdisPauseFunctionsUnsupported;
        raw.SupportedOidList = attributes.oids.as_ptr().cast_mut();
        raw.SupportedOidListLength = size_of_val(attributes.oids) as u32;
        raw.AutoNegotiationFlags = link.AutoNegotiationFlags;
        raw.PowerManagementCapabilitiesEx = &raw mut power;
        // SAFETY: a complete structure of the type that its header names; what it points to lives until the call
        // returns, and NDIS copies it.
        unsafe { self.set_attributes((&raw mut raw).cast(), at) }
    }

    /// # Safety
    /// `attributes` points to a complete attribute structure of the type that its header names.
    unsafe fn set_attributes(
        self,
        attributes: *mut sys::NDIS_MINIPORT_ADAPTER_ATTRIBUTES,
        _at: &Passive<'_>,
    ) -> Result<()> {
        // SAFETY: the caller's contract, at PASSIVE_LEVEL.
        check(unsafe { sys::NdisMSetMiniportAttributes(self.raw(), attributes) })
    }

    /// The physical device object of the adapter and the device below it in the stack
    /// (ndis/nf-ndis-ndismgetdeviceproperty).
    pub(super) fn devices(self, _at: &Passive<'_>) -> (*mut sys::DEVICE_OBJECT, *mut sys::DEVICE_OBJECT) {
        let mut physical = ptr::null_mut();
        let mut next = ptr::null_mut();
        // SAFETY: a valid handle at PASSIVE_LEVEL; answers that are not wanted have no place.
        unsafe {
            sys::NdisMGetDeviceProperty(
                self.raw(),
                &raw mut physical,
                ptr::null_mut(),
                &raw mut next,
                ptr::null_mut(),
                ptr::null_mut(),
            );
        }
        (physical, next)
    }
}

/// An address at the head of the place that NDIS keeps for one.
fn put(place: &mut [u8; sys::NDIS_MAX_PHYS_ADDRESS_LENGTH], address: MacAddress) {
    for (to, from) in place.iter_mut().zip(address) {
        *to = from;
    }
}
