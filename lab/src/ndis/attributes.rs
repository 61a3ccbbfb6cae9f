//! `NdisMSetMiniportAttributes`: what a miniport says about its adapter, checked.

use windows_kernel_sys::{
    NDIS_HANDLE, NDIS_MINIPORT_ADAPTER_ATTRIBUTES, NDIS_MINIPORT_ADAPTER_GENERAL_ATTRIBUTES,
    NDIS_MINIPORT_ADAPTER_GENERAL_ATTRIBUTES_REVISION_2, NDIS_MINIPORT_ADAPTER_REGISTRATION_ATTRIBUTES,
    NDIS_MINIPORT_ADAPTER_REGISTRATION_ATTRIBUTES_REVISION_2, NDIS_MINIPORT_ATTRIBUTES, NDIS_OBJECT_HEADER,
    NDIS_OBJECT_TYPE_MINIPORT_ADAPTER_GENERAL_ATTRIBUTES,
    NDIS_OBJECT_TYPE_MINIPORT_ADAPTER_OFFLOAD_ATTRIBUTES,
    NDIS_OBJECT_TYPE_MINIPORT_ADAPTER_REGISTRATION_ATTRIBUTES,
    NDIS_SIZEOF_MINIPORT_ADAPTER_GENERAL_ATTRIBUTES_REVISION_2,
    NDIS_SIZEOF_MINIPORT_ADAPTER_REGISTRATION_ATTRIBUTES_REVISION_2, NDIS_STATUS, NDIS_STATUS_BAD_VERSION,
    NDIS_STATUS_FAILURE, NDIS_STATUS_SUCCESS, NdisMedium802_3,
};

use super::adapter::Core;
use super::call::{PASSIVE, entered_or_fails};
use super::filter;
use super::handle;
use super::link::{LinkState, MediaConnect};
use super::rules::{self, broken};
use super::state::{General, Phase, Registration};
use crate::export;

const CALL: &str = "NdisMSetMiniportAttributes";

/// Size of revision 1 of the general attributes: all but `PowerManagementCapabilitiesEx`.
const GENERAL_REVISION_1_SIZE: u16 = 216;

/// Checks a header: the revisions that exist and the least size of each. `Ok` is the revision.
pub(super) fn header(header: NDIS_OBJECT_HEADER, object_type: u8, sizes: &[(u8, u16)]) -> Result<u8, String> {
    if header.Type != object_type {
        return Err(format!("type {:#x} instead of {object_type:#x}", header.Type));
    }
    match sizes.iter().find(|(revision, _)| *revision == header.Revision) {
        None => Err(format!("revision {} does not exist", header.Revision)),
        Some((_, size)) if header.Size < *size => {
            Err(format!("size {} of revision {}, which has {size}", header.Size, header.Revision))
        }
        Some((revision, _)) => Ok(*revision),
    }
}

fn registration(core: &Core, attributes: &NDIS_MINIPORT_ADAPTER_REGISTRATION_ATTRIBUTES) -> NDIS_STATUS {
    let sizes = [
        (1, NDIS_SIZEOF_MINIPORT_ADAPTER_REGISTRATION_ATTRIBUTES_REVISION_2),
        (
            NDIS_MINIPORT_ADAPTER_REGISTRATION_ATTRIBUTES_REVISION_2,
            NDIS_SIZEOF_MINIPORT_ADAPTER_REGISTRATION_ATTRIBUTES_REVISION_2,
        ),
    ];
    let object_type = NDIS_OBJECT_TYPE_MINIPORT_ADAPTER_REGISTRATION_ATTRIBUTES;
    if header(attributes.Header, object_type, &sizes).is_err() {
        return NDIS_STATUS_BAD_VERSION;
    }
    let flags = NDIS_MINIPORT_ATTRIBUTES::from_bits_retain(attributes.AttributeFlags);
    let unknown = flags.difference(NDIS_MINIPORT_ATTRIBUTES::all());
    if !unknown.is_empty() {
        broken(
            &rules::NDIS_ATTRIBUTES,
            CALL,
            format!("AttributeFlags has unknown bits {:#x}", unknown.bits()),
        );
    }
    let second = {
        let mut life = core.life.lock();
        let second = life.registration.is_some();
        life.context = attributes.MiniportAdapterContext as usize;
        life.registration = Some(Registration {
            flags: attributes.AttributeFlags,
            check_for_hang_seconds: attributes.CheckForHangTimeInSeconds,
            interface_type: attributes.InterfaceType,
        });
        second
    };
    if second {
        broken(&rules::NDIS_ATTRIBUTES, CALL, "the registration attributes are set twice");
    }
    NDIS_STATUS_SUCCESS
}

fn general(core: &Core, attributes: &NDIS_MINIPORT_ADAPTER_GENERAL_ATTRIBUTES) -> NDIS_STATUS {
    let sizes = [
        (1, GENERAL_REVISION_1_SIZE),
        (
            NDIS_MINIPORT_ADAPTER_GENERAL_ATTRIBUTES_REVISION_2,
            NDIS_SIZEOF_MINIPORT_ADAPTER_GENERAL_ATTRIBUTES_REVISION_2,
        ),
    ];
    let object_type = NDIS_OBJECT_TYPE_MINIPORT_ADAPTER_GENERAL_ATTRIBUTES;
    let Ok(revision) = header(attributes.Header, object_type, &sizes) else {
        return NDIS_STATUS_BAD_VERSION;
    };
    let general = match read_general(attributes, revision) {
        Ok(general) => general,
        Err(what) => broken(&rules::NDIS_ATTRIBUTES, CALL, what),
    };
    let wrong = {
        let mut life = core.life.lock();
        if life.registration.is_none() {
            Some("general attributes before registration attributes")
        } else if life.general.is_some() {
            Some("the general attributes are set twice")
        } else {
            life.link = general.link;
            life.general = Some(general);
            None
        }
    };
    match wrong {
        Some(what) => broken(&rules::NDIS_ATTRIBUTES, CALL, what),
        None => NDIS_STATUS_SUCCESS,
    }
}

/// Reads general attributes, or says what contradicts itself in them.
fn read_general(
    attributes: &NDIS_MINIPORT_ADAPTER_GENERAL_ATTRIBUTES,
    revision: u8,
) -> Result<General, String> {
    let address = |bytes: &[u8; 32]| -> filter::MacAddress { *bytes.first_chunk().expect("32 bytes hold 6") };
    if attributes.MediaType != NdisMedium802_3 {
        return Err(format!("media type {}: this NDIS binds to NdisMedium802_3 only", attributes.MediaType));
    }
    if attributes.MacAddressLength != 6 {
        return Err(format!("MacAddressLength is {}", attributes.MacAddressLength));
    }
    let current = address(&attributes.CurrentMacAddress);
    if filter::cast(current) != filter::Cast::Unicast || current == [0; 6] {
        return Err(format!("CurrentMacAddress {current:02x?} is no station address"));
    }
    if attributes.MtuSize < 576 {
        return Err(format!("MtuSize {}: an IPv4 host takes at least 576 bytes", attributes.MtuSize));
    }
    if !attributes.SupportedOidListLength.is_multiple_of(4) || attributes.SupportedOidList.is_null() {
        return Err("SupportedOidList is missing or its length is no multiple of 4".into());
    }
    let count = attributes.SupportedOidListLength as usize / 4;
    // SAFETY: the miniport says that its list has that many entries.
    let supported_oids = unsafe { std::slice::from_raw_parts(attributes.SupportedOidList, count) }.to_vec();
    let power_managed = revision >= 2 && !attributes.PowerManagementCapabilitiesEx.is_null()
        || !attributes.PowerManagementCapabilities.is_null();
    Ok(General {
        media_type: attributes.MediaType,
        physical_medium: attributes.PhysicalMediumType,
        mtu: attributes.MtuSize,
        max_transmit_speed: attributes.MaxXmitLinkSpeed,
        max_receive_speed: attributes.MaxRcvLinkSpeed,
        link: LinkState {
            connect: MediaConnect::from(attributes.MediaConnectState),
            transmit_speed: attributes.XmitLinkSpeed,
            receive_speed: attributes.RcvLinkSpeed,
            duplex: attributes.MediaDuplexState,
        },
        lookahead: attributes.LookaheadSize,
        mac_options: attributes.MacOptions,
        packet_filters: attributes.SupportedPacketFilters,
        max_multicast: attributes.MaxMulticastListSize,
        permanent_address: address(&attributes.PermanentMacAddress),
        current_address: current,
        if_type: attributes.IfType,
        statistics: attributes.SupportedStatistics,
        supported_oids,
        power_managed,
    })
}

export! { "ndis.sys";
    /// PASSIVE_LEVEL, in MiniportInitializeEx only (ndis/nf-ndis-ndismsetminiportattributes).
    pub unsafe fn NdisMSetMiniportAttributes(
        NdisMiniportHandle: NDIS_HANDLE, MiniportAttributes: *mut NDIS_MINIPORT_ADAPTER_ATTRIBUTES,
    ) -> NDIS_STATUS {
        if entered_or_fails(CALL, PASSIVE) {
            return NDIS_STATUS_FAILURE;
        }
        let core = handle::get::<Core>(NdisMiniportHandle, CALL);
        if core.life.lock().phase != Phase::Initializing {
            broken(&rules::NDIS_WRONG_CONTEXT, CALL, "called outside MiniportInitializeEx");
        }
        // SAFETY: every structure of the union begins with the header.
        let object_type = unsafe { (*MiniportAttributes).Header.Type };
        match object_type {
            NDIS_OBJECT_TYPE_MINIPORT_ADAPTER_REGISTRATION_ATTRIBUTES => {
                // SAFETY: the header says that the structure is this one.
                registration(&core, unsafe { &(*MiniportAttributes).RegistrationAttributes })
            }
            NDIS_OBJECT_TYPE_MINIPORT_ADAPTER_GENERAL_ATTRIBUTES => {
                // SAFETY: the header says that the structure is this one; the reference to the larger revision is
                // only read as far as the revision goes.
                general(&core, unsafe { &(*MiniportAttributes).GeneralAttributes })
            }
            NDIS_OBJECT_TYPE_MINIPORT_ADAPTER_OFFLOAD_ATTRIBUTES => {
                if core.life.lock().general.is_none() {
                    broken(&rules::NDIS_ATTRIBUTES, CALL, "offload attributes before general attributes");
                }
                NDIS_STATUS_SUCCESS
            }
            other => broken(&rules::NDIS_ATTRIBUTES, CALL, format!("attributes of type {other:#x}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_must_name_an_existing_revision_and_be_large_enough() {
        let sizes = [(1, 20), (2, 24)];
        assert_eq!(header(NDIS_OBJECT_HEADER::new(7, 2, 24), 7, &sizes), Ok(2));
        assert_eq!(header(NDIS_OBJECT_HEADER::new(7, 1, 24), 7, &sizes), Ok(1));
        assert!(header(NDIS_OBJECT_HEADER::new(7, 2, 20), 7, &sizes).is_err());
        assert!(header(NDIS_OBJECT_HEADER::new(7, 3, 99), 7, &sizes).is_err());
        assert!(header(NDIS_OBJECT_HEADER::new(8, 1, 20), 7, &sizes).is_err());
    }
}
