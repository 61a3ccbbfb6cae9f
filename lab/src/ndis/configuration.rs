//! The registry as a miniport reads it (ndis/nf-ndis-ndisopenconfigurationex and its neighbours).

use std::ptr;
use std::sync::Arc;

use windows_kernel_sys::{
    BINARY_DATA, NDIS_CONFIGURATION_OBJECT, NDIS_CONFIGURATION_OBJECT_REVISION_1,
    NDIS_CONFIGURATION_PARAMETER, NDIS_CONFIGURATION_PARAMETER_DATA, NDIS_HANDLE,
    NDIS_OBJECT_TYPE_CONFIGURATION_OBJECT, NDIS_PARAMETER_TYPE, NDIS_SIZEOF_CONFIGURATION_OBJECT_REVISION_1,
    NDIS_STATUS, NDIS_STATUS_FAILURE, NDIS_STATUS_RESOURCES, NDIS_STATUS_SUCCESS, NdisParameterBinary,
    NdisParameterHexInteger, NdisParameterInteger, NdisParameterMultiString, NdisParameterString, PVOID,
    UNICODE_STRING,
};

use super::attributes::header;
use super::call::{PASSIVE, entered, entered_or_fails};
use super::handle::{self, Handle, Object, Owner};
use super::memory::Block;
use super::registry::{ConfigurationValue, RegistryKey, Wanted};
use super::rules::{self, broken};
use crate::export;
use crate::kernel::Machine;
use crate::sim::Lock;

/// An open key, and the memory of what was read from it, which lives until it is closed.
pub(super) struct Configuration {
    handle: Handle,
    machine: Machine,
    key: RegistryKey,
    read: Lock<Vec<Block>>,
}

impl Configuration {
    fn block(&self, length: usize) -> *mut u8 {
        let block = Block::on(&self.machine, length);
        let pointer = block.pointer();
        self.read.lock().push(block);
        pointer
    }

    fn bytes(&self, bytes: &[u8]) -> *mut u8 {
        let pointer = self.block(bytes.len());
        // SAFETY: the block has that length.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), pointer, bytes.len()) };
        pointer
    }

    /// UTF-16 with a terminator that is not counted.
    fn text(&self, units: &[u16]) -> UNICODE_STRING {
        let mut bytes: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
        let length = bytes.len() as u16;
        bytes.extend_from_slice(&[0, 0]);
        UNICODE_STRING { Length: length, MaximumLength: length + 2, Buffer: self.bytes(&bytes).cast() }
    }

    /// Writes a value as the driver gets it.
    fn parameter(
        &self,
        value: &ConfigurationValue,
        wanted: NDIS_PARAMETER_TYPE,
    ) -> *mut NDIS_CONFIGURATION_PARAMETER {
        let utf16 = |text: &str| text.encode_utf16().collect::<Vec<u16>>();
        let (kind, data) = match value {
            ConfigurationValue::Integer(value) => {
                let kind = if wanted == NdisParameterHexInteger { wanted } else { NdisParameterInteger };
                (kind, NDIS_CONFIGURATION_PARAMETER_DATA { IntegerData: *value })
            }
            ConfigurationValue::String(text) => (
                NdisParameterString,
                NDIS_CONFIGURATION_PARAMETER_DATA { StringData: self.text(&utf16(text)) },
            ),
            ConfigurationValue::MultiString(list) => {
                let units: Vec<u16> =
                    list.iter().flat_map(|text| utf16(text).into_iter().chain([0])).collect();
                (
                    NdisParameterMultiString,
                    NDIS_CONFIGURATION_PARAMETER_DATA { StringData: self.text(&units) },
                )
            }
            ConfigurationValue::Binary(bytes) => {
                let data = BINARY_DATA { Length: bytes.len() as u16, Buffer: self.bytes(bytes).cast() };
                (NdisParameterBinary, NDIS_CONFIGURATION_PARAMETER_DATA { BinaryData: data })
            }
        };
        let pointer =
            self.block(size_of::<NDIS_CONFIGURATION_PARAMETER>()).cast::<NDIS_CONFIGURATION_PARAMETER>();
        // SAFETY: a fresh block of that size.
        unsafe { pointer.write(NDIS_CONFIGURATION_PARAMETER { ParameterType: kind, ParameterData: data }) };
        pointer
    }
}

/// The names that NDIS answers itself (ndis/nf-ndis-ndisreadconfiguration, table of predefined entries).
fn predefined(name: &str) -> Option<u32> {
    match name.to_ascii_lowercase().as_str() {
        // NdisProcessorAmd64.
        "processortype" => Some(8),
        "ndisversion" => Some(super::misc::NDIS_VERSION),
        _ => None,
    }
}

export! { "ndis.sys";
    /// PASSIVE_LEVEL (ndis/nf-ndis-ndisopenconfigurationex).
    pub unsafe fn NdisOpenConfigurationEx(
        ConfigObject: *mut NDIS_CONFIGURATION_OBJECT, ConfigurationHandle: *mut NDIS_HANDLE,
    ) -> NDIS_STATUS {
        const CALL: &str = "NdisOpenConfigurationEx";
        if entered_or_fails(CALL, PASSIVE) {
            return NDIS_STATUS_RESOURCES;
        }
        // SAFETY: the driver's structure, valid for the call.
        let object = unsafe { &*ConfigObject };
        let sizes = [(NDIS_CONFIGURATION_OBJECT_REVISION_1, NDIS_SIZEOF_CONFIGURATION_OBJECT_REVISION_1)];
        if let Err(what) = header(object.Header, NDIS_OBJECT_TYPE_CONFIGURATION_OBJECT, &sizes) {
            broken(&rules::NDIS_OBJECT_HEADER, CALL, what);
        }
        let owner = Owner::of(object.NdisHandle, CALL);
        let key = match &owner {
            Owner::Driver(driver) => driver.registry.lock().clone(),
            Owner::Adapter(core) => core.registry.lock().clone(),
        };
        let number = handle::reserve();
        let configuration = Configuration { handle: number, machine: Machine::current(), key, read: Lock::default() };
        handle::bind(number, Some(owner.handle()), Object::Configuration(Arc::new(configuration)));
        // SAFETY: the driver's variable.
        unsafe { *ConfigurationHandle = number.raw() };
        NDIS_STATUS_SUCCESS
    }

    /// PASSIVE_LEVEL (ndis/nf-ndis-ndisreadconfiguration).
    pub unsafe fn NdisReadConfiguration(
        Status: *mut NDIS_STATUS, ParameterValue: *mut *mut NDIS_CONFIGURATION_PARAMETER,
        ConfigurationHandle: NDIS_HANDLE, Keyword: *mut UNICODE_STRING, ParameterType: NDIS_PARAMETER_TYPE,
    ) {
        const CALL: &str = "NdisReadConfiguration";
        let fails = entered_or_fails(CALL, PASSIVE);
        let configuration: Arc<Configuration> = handle::get(ConfigurationHandle, CALL);
        // SAFETY: the driver's counted string.
        let name = unsafe {
            let keyword = *Keyword;
            let units = std::slice::from_raw_parts(keyword.Buffer, usize::from(keyword.Length) / 2);
            String::from_utf16_lossy(units)
        };
        let wanted = if ParameterType == NdisParameterInteger {
            Wanted::Integer
        } else if ParameterType == NdisParameterHexInteger {
            Wanted::HexInteger
        } else {
            Wanted::Other
        };
        let value = predefined(&name)
            .map(ConfigurationValue::Integer)
            .or_else(|| configuration.key.read(&name, wanted));
        let (status, parameter) = match value {
            Some(_) if fails => (NDIS_STATUS_RESOURCES, ptr::null_mut()),
            Some(value) => (NDIS_STATUS_SUCCESS, configuration.parameter(&value, ParameterType)),
            None => (NDIS_STATUS_FAILURE, ptr::null_mut()),
        };
        // SAFETY: the driver's variables.
        unsafe {
            *Status = status;
            *ParameterValue = parameter;
        }
    }

    /// PASSIVE_LEVEL (ndis/nf-ndis-ndisreadnetworkaddress).
    pub unsafe fn NdisReadNetworkAddress(
        Status: *mut NDIS_STATUS, NetworkAddress: *mut PVOID, NetworkAddressLength: *mut u32,
        ConfigurationHandle: NDIS_HANDLE,
    ) {
        const CALL: &str = "NdisReadNetworkAddress";
        let fails = entered_or_fails(CALL, PASSIVE);
        let configuration: Arc<Configuration> = handle::get(ConfigurationHandle, CALL);
        let address = configuration.key.network_address().filter(|_| !fails);
        let (status, pointer, length) = match address {
            Some(bytes) if !bytes.is_empty() => (NDIS_STATUS_SUCCESS, configuration.bytes(&bytes).cast(), bytes.len()),
            _ => (NDIS_STATUS_FAILURE, ptr::null_mut(), 0),
        };
        // SAFETY: the driver's variables.
        unsafe {
            *Status = status;
            *NetworkAddress = pointer;
            *NetworkAddressLength = length as u32;
        }
    }

    /// PASSIVE_LEVEL (ndis/nf-ndis-ndiscloseconfiguration). What was read from it is freed.
    pub unsafe fn NdisCloseConfiguration(ConfigurationHandle: NDIS_HANDLE) {
        const CALL: &str = "NdisCloseConfiguration";
        entered(CALL, PASSIVE);
        let configuration: Arc<Configuration> = handle::get(ConfigurationHandle, CALL);
        handle::close(configuration.handle);
    }
}
