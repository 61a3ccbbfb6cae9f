//! The adapter's registry parameters (`ndis.h`).

use super::{NDIS_HANDLE, NDIS_OBJECT_HEADER};
use crate::nt::{PVOID, UNICODE_STRING};

/// ndis/ns-ndis-_ndis_configuration_object.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct NDIS_CONFIGURATION_OBJECT {
    pub Header: NDIS_OBJECT_HEADER,
    pub NdisHandle: NDIS_HANDLE,
    pub Flags: u32,
}
pub const NDIS_CONFIGURATION_OBJECT_REVISION_1: u8 = 1;
pub const NDIS_SIZEOF_CONFIGURATION_OBJECT_REVISION_1: u16 = 20;

/// `NDIS_PARAMETER_TYPE` (ndis/ne-ndis-_ndis_parameter_type).
pub type NDIS_PARAMETER_TYPE = i32;
pub const NdisParameterInteger: NDIS_PARAMETER_TYPE = 0;
pub const NdisParameterHexInteger: NDIS_PARAMETER_TYPE = 1;
pub const NdisParameterString: NDIS_PARAMETER_TYPE = 2;
pub const NdisParameterMultiString: NDIS_PARAMETER_TYPE = 3;
pub const NdisParameterBinary: NDIS_PARAMETER_TYPE = 4;

/// ndis/ns-ndis-_ndis_configuration_parameter.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct NDIS_CONFIGURATION_PARAMETER {
    pub ParameterType: NDIS_PARAMETER_TYPE,
    pub ParameterData: NDIS_CONFIGURATION_PARAMETER_DATA,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub union NDIS_CONFIGURATION_PARAMETER_DATA {
    pub IntegerData: u32,
    pub StringData: UNICODE_STRING,
    pub BinaryData: BINARY_DATA,
}

/// ndis/ns-ndis-binary_data.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BINARY_DATA {
    pub Length: u16,
    pub Buffer: PVOID,
}

layout! {
    NDIS_CONFIGURATION_OBJECT: 24, 8 { Header @ 0, NdisHandle @ 8, Flags @ 16 }
    NDIS_CONFIGURATION_PARAMETER: 24, 8 { ParameterType @ 0, ParameterData @ 8 }
    BINARY_DATA: 16, 8 { Length @ 0, Buffer @ 8 }
}
