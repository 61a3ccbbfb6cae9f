//! An OID request that the miniport holds (oidrequest/ns-oidrequest-ndis_oid_request).

use super::adapter::AdapterHandle;
use core::ptr::NonNull;
use core::slice;
use windows_kernel_sys as sys;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Query the value.
    Query,
    /// Set the value.
    Set,
    /// Both at once.
    Method,
    /// A request type that this driver does not know.
    Unknown,
}

/// A request from MiniportOidRequest until that returns a status, or until it is completed after it returned
/// NDIS_STATUS_PENDING.
#[derive(Debug)]
#[must_use = "the request must be answered"]
pub struct OidRequest(NonNull<sys::NDIS_OID_REQUEST>);

// SAFETY: owned by the value; its buffer is nonpaged system memory.
unsafe impl Send for OidRequest {}

impl OidRequest {
    /// Takes over the request that MiniportOidRequest is called with; `None` for null.
    ///
    /// # Safety
    /// `request` is that request, taken over once.
    pub unsafe fn from_raw(request: *mut sys::NDIS_OID_REQUEST) -> Option<Self> {
        NonNull::new(request).map(Self)
    }

    fn raw(&self) -> &sys::NDIS_OID_REQUEST {
        // SAFETY: owned.
        unsafe { self.0.as_ref() }
    }

    /// What is asked.
    pub fn kind(&self) -> Kind {
        match self.raw().RequestType {
            sys::NdisRequestQueryInformation | sys::NdisRequestQueryStatistics => Kind::Query,
            sys::NdisRequestSetInformation => Kind::Set,
            sys::NdisRequestMethod => Kind::Method,
            _ => Kind::Unknown,
        }
    }

    /// Of which object.
    pub fn oid(&self) -> sys::NDIS_OID {
        // SAFETY: every kind of request begins with the OID.
        unsafe { self.raw().DATA.Oid }
    }

    /// The id by which NDIS may cancel it.
    pub fn request_id(&self) -> *const () {
        self.raw().RequestId.cast()
    }

    /// The bytes to set, or that a method takes.
    pub fn input(&self) -> &[u8] {
        // SAFETY: the kind says which member is valid; NDIS gives a buffer of the length it names.
        unsafe {
            let data = &self.raw().DATA;
            match self.kind() {
                Kind::Set => {
                    let set = data.SET_INFORMATION;
                    bytes(set.InformationBuffer, set.InformationBufferLength)
                }
                Kind::Method => {
                    let method = data.METHOD_INFORMATION;
                    bytes(method.InformationBuffer, method.InputBufferLength)
                }
                _ => &[],
            }
        }
    }

    /// The place for an answer.
    pub fn output(&mut self) -> &mut [u8] {
        let kind = self.kind();
        // SAFETY: the kind says which member is valid; NDIS gives a buffer of the length it names, ours until the
        // request is answered.
        unsafe {
            let data = &self.0.as_ref().DATA;
            let (buffer, length) = match kind {
                Kind::Query => {
                    (data.QUERY_INFORMATION.InformationBuffer, data.QUERY_INFORMATION.InformationBufferLength)
                }
                Kind::Method => {
                    (data.METHOD_INFORMATION.InformationBuffer, data.METHOD_INFORMATION.OutputBufferLength)
                }
                _ => (core::ptr::null_mut(), 0),
            };
            if buffer.is_null() { &mut [] } else { slice::from_raw_parts_mut(buffer.cast(), length as usize) }
        }
    }

    /// Says how many bytes of input were used or of output written, and how many would have been needed.
    pub fn set_result(&mut self, bytes: u32, needed: u32) {
        let kind = self.kind();
        // SAFETY: the kind says which member is valid.
        unsafe {
            let data = &mut self.0.as_mut().DATA;
            match kind {
                Kind::Query => {
                    data.QUERY_INFORMATION.BytesWritten = bytes;
                    data.QUERY_INFORMATION.BytesNeeded = needed;
                }
                Kind::Set => {
                    data.SET_INFORMATION.BytesRead = bytes;
                    data.SET_INFORMATION.BytesNeeded = needed;
                }
                Kind::Method => {
                    data.METHOD_INFORMATION.BytesWritten = bytes;
                    data.METHOD_INFORMATION.BytesNeeded = needed;
                }
                Kind::Unknown => {}
            }
        }
    }

    /// Answers a request after MiniportOidRequest returned NDIS_STATUS_PENDING for it
    /// (ndis/nf-ndis-ndismoidrequestcomplete). IRQL <= DISPATCH_LEVEL.
    pub fn complete(self, adapter: AdapterHandle, status: sys::NDIS_STATUS) {
        // SAFETY: a valid handle and an owned request, given up.
        unsafe { sys::NdisMOidRequestComplete(adapter.raw(), self.0.as_ptr(), status) };
    }

    /// Answers a request by the return value of MiniportOidRequest.
    pub fn answer(self, status: sys::NDIS_STATUS) -> sys::NDIS_STATUS {
        status
    }
}

/// # Safety
/// `data` is null or points to `length` bytes that live for `'a`.
unsafe fn bytes<'a>(data: sys::PVOID, length: u32) -> &'a [u8] {
    if data.is_null() {
        &[]
    } else {
        // SAFETY: the caller's contract.
        unsafe { slice::from_raw_parts(data.cast(), length as usize) }
    }
}
