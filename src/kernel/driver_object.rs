//! The driver object, and what belongs to the driver rather than to an adapter.
//!
//! There is no mutable static: what DriverEntry makes lives in an extension of the driver object
//! (wdm/nf-wdm-ioallocatedriverobjectextension), found again by a client address. PASSIVE_LEVEL to allocate.

use super::irql::Passive;
use super::status::{Error, Result, check};
use core::ptr::{self, NonNull};
use windows_kernel_sys as sys;

/// The object that the I/O manager made for this driver.
#[derive(Clone, Copy, Debug)]
pub struct DriverObject(NonNull<sys::DRIVER_OBJECT>);

impl DriverObject {
    /// Takes over what DriverEntry or the unload handler is called with; `None` for null.
    ///
    /// # Safety
    /// `object` is that object, and no copy is used after the unload handler returns.
    pub unsafe fn from_raw(object: *mut sys::DRIVER_OBJECT) -> Option<Self> {
        NonNull::new(object).map(Self)
    }

    /// What the DDI takes.
    pub fn raw(self) -> *mut sys::DRIVER_OBJECT {
        self.0.as_ptr()
    }

    /// Puts `value` into an extension known by the address `client`. The I/O manager frees the memory with the
    /// driver object, without dropping the value.
    pub fn set_extension<T: Copy>(self, client: &'static u8, value: T, _at: &Passive<'_>) -> Result<()> {
        let mut place = ptr::null_mut();
        // SAFETY: a live driver object at PASSIVE_LEVEL.
        check(unsafe {
            sys::IoAllocateDriverObjectExtension(
                self.raw(),
                ptr::from_ref(client).cast_mut().cast(),
                size_of::<T>() as u32,
                &raw mut place,
            )
        })?;
        // SAFETY: fresh memory of that size, aligned as pool memory.
        unsafe { place.cast::<T>().write(value) };
        Ok(())
    }

    /// The value put there, if any. IRQL <= DISPATCH_LEVEL.
    ///
    /// # Safety
    /// `client` was given to [`DriverObject::set_extension`] with this `T`, if at all.
    pub unsafe fn extension<T: Copy>(self, client: &'static u8) -> Option<T> {
        // SAFETY: a live driver object.
        let place =
            unsafe { sys::IoGetDriverObjectExtension(self.raw(), ptr::from_ref(client).cast_mut().cast()) };
        // SAFETY: by the caller's contract a T was written there.
        NonNull::new(place.cast::<T>()).map(|place| unsafe { place.read() })
    }

    /// Registers the handlers of a miniport (ndis/nf-ndis-ndismregisterminiportdriver); NDIS may call them before
    /// this returns. The structure's revision, and the NDIS version it asks for, are what this system's NDIS offers,
    /// at most 6.80.
    ///
    /// # Safety
    /// `registry_path` is DriverEntry's. The handlers are sound for being called as their documentation says, with
    /// `context` as MiniportDriverContext, until the registration ends.
    pub unsafe fn register_miniport(
        self,
        registry_path: *mut sys::UNICODE_STRING,
        context: sys::NDIS_HANDLE,
        mut handlers: sys::NDIS_MINIPORT_DRIVER_CHARACTERISTICS,
        _at: &Passive<'_>,
    ) -> Result<MiniportDriver> {
        // SAFETY: any level.
        let version = unsafe { sys::NdisGetVersion() };
        let (minor, revision, size) = if version >= sys::NDIS_RUNTIME_VERSION_680 {
            (
                80,
                sys::NDIS_MINIPORT_DRIVER_CHARACTERISTICS_REVISION_3,
                sys::NDIS_SIZEOF_MINIPORT_DRIVER_CHARACTERISTICS_REVISION_3,
            )
        } else if version >= sys::NDIS_RUNTIME_VERSION_650 {
            (
                50,
                sys::NDIS_MINIPORT_DRIVER_CHARACTERISTICS_REVISION_2,
                sys::NDIS_SIZEOF_MINIPORT_DRIVER_CHARACTERISTICS_REVISION_2,
            )
        } else {
            return Err(Error::from_status(sys::NDIS_STATUS_UNSUPPORTED_REVISION));
        };
        handlers.Header = sys::NDIS_OBJECT_HEADER::new(
            sys::NDIS_OBJECT_TYPE_MINIPORT_DRIVER_CHARACTERISTICS,
            revision,
            size,
        );
        handlers.MajorNdisVersion = 6;
        handlers.MinorNdisVersion = minor;
        let mut handle = ptr::null_mut();
        // SAFETY: a live driver object at PASSIVE_LEVEL, complete characteristics; the rest is the caller's contract.
        check(unsafe {
            sys::NdisMRegisterMiniportDriver(
                self.raw(),
                registry_path,
                context,
                &raw mut handlers,
                &raw mut handle,
            )
        })?;
        Ok(MiniportDriver(handle))
    }
}

/// A registered miniport driver.
#[derive(Clone, Copy, Debug)]
pub struct MiniportDriver(sys::NDIS_HANDLE);

impl MiniportDriver {
    /// Ends the registration, in the unload handler or when DriverEntry fails after registering
    /// (ndis/nf-ndis-ndismderegisterminiportdriver).
    ///
    /// # Safety
    /// No copy of this value is used afterwards.
    pub unsafe fn deregister(self, _at: &Passive<'_>) {
        // SAFETY: a live registration at PASSIVE_LEVEL.
        unsafe { sys::NdisMDeregisterMiniportDriver(self.0) };
    }
}
