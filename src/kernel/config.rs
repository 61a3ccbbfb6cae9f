//! The adapter's registry parameters (ndis/nf-ndis-ndisopenconfigurationex). PASSIVE_LEVEL.

use super::adapter::AdapterHandle;
use super::irql::Passive;
use super::status::{Result, check};
use core::ptr;
use core::slice;
use windows_kernel_sys as sys;

/// The longest keyword, in UTF-16 units.
const MAX_NAME: usize = 64;

/// What a keyword was found to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A REG_DWORD, or what NDIS made a number of.
    Integer(u32),
    /// A REG_SZ, UTF-16 without terminator.
    String(&'a [u16]),
    /// A REG_MULTI_SZ, each string with its terminator.
    MultiString(&'a [u16]),
    /// A REG_BINARY.
    Binary(&'a [u8]),
}

/// The open registry key of an adapter. Values live as long as it.
#[derive(Debug)]
pub struct Configuration<'p> {
    handle: sys::NDIS_HANDLE,
    _at: &'p Passive<'p>,
}

impl<'p> Configuration<'p> {
    /// Opens the key of `adapter`. The borrow of `at` keeps the level down until it is closed.
    pub fn open(adapter: AdapterHandle, at: &'p Passive<'_>) -> Result<Self> {
        let mut object = sys::NDIS_CONFIGURATION_OBJECT {
            Header: sys::NDIS_OBJECT_HEADER::new(
                sys::NDIS_OBJECT_TYPE_CONFIGURATION_OBJECT,
                sys::NDIS_CONFIGURATION_OBJECT_REVISION_1,
                sys::NDIS_SIZEOF_CONFIGURATION_OBJECT_REVISION_1,
            ),
            NdisHandle: adapter.raw(),
            Flags: 0,
        };
        let mut handle = ptr::null_mut();
        // SAFETY: a valid description, at PASSIVE_LEVEL.
        check(unsafe { sys::NdisOpenConfigurationEx(&raw mut object, &raw mut handle) })?;
        Ok(Self { handle, _at: at })
    }

    /// The value of a keyword, `None` if there is none or its name is too long. NDIS hands a value of another
    /// registry type over as what it is, and turns a string of digits into the integer asked for.
    pub fn read(&mut self, keyword: &str) -> Option<Value<'_>> {
        let mut name = [0_u16; MAX_NAME];
        let mut units = 0;
        for unit in keyword.encode_utf16() {
            *name.get_mut(units)? = unit;
            units += 1;
        }
        let bytes = (units * size_of::<u16>()) as u16;
        let mut keyword =
            sys::UNICODE_STRING { Length: bytes, MaximumLength: bytes, Buffer: name.as_mut_ptr() };
        let mut status = sys::NDIS_STATUS_FAILURE;
        let mut parameter = ptr::null_mut();
        // SAFETY: an open key at PASSIVE_LEVEL, a counted name, and places for the answers.
        unsafe {
            sys::NdisReadConfiguration(
                &raw mut status,
                &raw mut parameter,
                self.handle,
                &raw mut keyword,
                sys::NdisParameterInteger,
            );
        }
        if status != sys::NDIS_STATUS_SUCCESS || parameter.is_null() {
            return None;
        }
        // SAFETY: on success NDIS gives a parameter that lives until the key is closed.
        let parameter = unsafe { &*parameter };
        // SAFETY: the type says which member is valid, and buffers live as long as the parameter.
        unsafe {
            match parameter.ParameterType {
                sys::NdisParameterInteger | sys::NdisParameterHexInteger => {
                    Some(Value::Integer(parameter.ParameterData.IntegerData))
                }
                sys::NdisParameterString => Some(Value::String(text(&parameter.ParameterData.StringData))),
                sys::NdisParameterMultiString => {
                    Some(Value::MultiString(text(&parameter.ParameterData.StringData)))
                }
                sys::NdisParameterBinary => {
                    let data = parameter.ParameterData.BinaryData;
                    Some(Value::Binary(raw_slice(data.Buffer.cast(), data.Length.into())))
                }
                _ => None,
            }
        }
    }

    /// The bytes of the keyword NetworkAddress as NDIS parses them (ndis/nf-ndis-ndisreadnetworkaddress), `None` if
    /// there is none. Neither their number nor their value is checked.
    pub fn network_address(&mut self) -> Option<&[u8]> {
        let mut status = sys::NDIS_STATUS_FAILURE;
        let mut address = ptr::null_mut();
        let mut length = 0;
        // SAFETY: an open key at PASSIVE_LEVEL, and places for the answers.
        unsafe {
            sys::NdisReadNetworkAddress(&raw mut status, &raw mut address, &raw mut length, self.handle);
        }
        if status != sys::NDIS_STATUS_SUCCESS {
            return None;
        }
        // SAFETY: on success as many bytes, which live until the key is closed.
        Some(unsafe { raw_slice(address.cast(), length as usize) })
    }
}

impl Drop for Configuration<'_> {
    fn drop(&mut self) {
        // SAFETY: an open key, at PASSIVE_LEVEL.
        unsafe { sys::NdisCloseConfiguration(self.handle) };
    }
}

/// # Safety
/// `string` describes memory that lives for `'a`.
unsafe fn text<'a>(string: &sys::UNICODE_STRING) -> &'a [u16] {
    // SAFETY: the caller's contract.
    unsafe { raw_slice(string.Buffer, usize::from(string.Length) / size_of::<u16>()) }
}

/// # Safety
/// `data` is null or points to `count` elements that live, unwritten, for `'a`.
unsafe fn raw_slice<'a, T>(data: *const T, count: usize) -> &'a [T] {
    if data.is_null() {
        &[]
    } else {
        // SAFETY: the caller's contract.
        unsafe { slice::from_raw_parts(data, count) }
    }
}
