//! The functions of the access layer, checked once, and which port this device stands for.

use core::ffi::{c_char, c_void};
use core::fmt;
use core::ops::Deref;

use ibal_sys::*;
use windows_kernel_sys::Zeroable;

use crate::kernel::adapter::AdapterHandle;
use crate::kernel::arc::PoolArc;
use crate::kernel::irql::Passive;
use crate::kernel::pool::{PoolBox, Tag};
use crate::kernel::status::Error;

use super::status::IbError;

/// Pool tag of this room.
pub(super) const TAG: Tag = Tag::new(*b"IbAl");

macro_rules! table {
    ($($slot:ident: unsafe extern "win64" fn($($arg:ty),* $(,)?) $(-> $ret:ty)?;)*) => {
        /// The slots that the driver calls, none of them null.
        pub(super) struct Table {
            $(pub(super) $slot: unsafe extern "win64" fn($($arg),*) $(-> $ret)?,)*
        }

        impl Table {
            fn new(interface: &ib_al_ifc_t) -> Result<Self, IbError> {
                Ok(Self { $($slot: interface.$slot.ok_or(IbError::UNSUPPORTED)?,)* })
            }
        }
    };
}

table! {
    open_ca: unsafe extern "win64" fn(ib_al_handle_t, ib_net64_t, ib_pfn_event_cb_t, *const c_void,
        *mut ib_ca_handle_t) -> ib_api_status_t;
    query_ca: unsafe extern "win64" fn(ib_ca_handle_t, *mut ib_ca_attr_t, *mut u32) -> ib_api_status_t;
    close_ca: unsafe extern "win64" fn(ib_ca_handle_t, ib_pfn_destroy_cb_t) -> ib_api_status_t;
    alloc_pd: unsafe extern "win64" fn(ib_ca_handle_t, ib_pd_type_t, *const c_void,
        *mut ib_pd_handle_t) -> ib_api_status_t;
    dealloc_pd: unsafe extern "win64" fn(ib_pd_handle_t, ib_pfn_destroy_cb_t) -> ib_api_status_t;
    create_av: unsafe extern "win64" fn(ib_pd_handle_t, *const ib_av_attr_t, *mut ib_av_handle_t)
        -> ib_api_status_t;
    modify_av: unsafe extern "win64" fn(ib_av_handle_t, *const ib_av_attr_t) -> ib_api_status_t;
    destroy_av: unsafe extern "win64" fn(ib_av_handle_t) -> ib_api_status_t;
    create_qp: unsafe extern "win64" fn(ib_pd_handle_t, *mut ib_qp_create_t, *const c_void,
        ib_pfn_event_cb_t, *mut ib_qp_handle_t) -> ib_api_status_t;
    query_qp: unsafe extern "win64" fn(ib_qp_handle_t, *mut ib_qp_attr_t) -> ib_api_status_t;
    modify_qp: unsafe extern "win64" fn(ib_qp_handle_t, *const ib_qp_mod_t) -> ib_api_status_t;
    destroy_qp: unsafe extern "win64" fn(ib_qp_handle_t, ib_pfn_destroy_cb_t) -> ib_api_status_t;
    create_cq: unsafe extern "win64" fn(ib_ca_handle_t, *mut ib_cq_create_t, *const c_void,
        ib_pfn_event_cb_t, *mut ib_cq_handle_t) -> ib_api_status_t;
    destroy_cq: unsafe extern "win64" fn(ib_cq_handle_t, ib_pfn_destroy_cb_t) -> ib_api_status_t;
    reg_phys: unsafe extern "win64" fn(ib_pd_handle_t, *const ib_phys_create_t, *mut u64, *mut u32, *mut u32,
        *mut ib_mr_handle_t) -> ib_api_status_t;
    dereg_mr: unsafe extern "win64" fn(ib_mr_handle_t) -> ib_api_status_t;
    post_send: unsafe extern "win64" fn(ib_qp_handle_t, *mut ib_send_wr_t, *mut *mut ib_send_wr_t)
        -> ib_api_status_t;
    post_recv: unsafe extern "win64" fn(ib_qp_handle_t, *mut ib_recv_wr_t, *mut *mut ib_recv_wr_t)
        -> ib_api_status_t;
    poll_cq: unsafe extern "win64" fn(ib_cq_handle_t, *mut *mut ib_wc_t, *mut *mut ib_wc_t) -> ib_api_status_t;
    rearm_cq: unsafe extern "win64" fn(ib_cq_handle_t, boolean_t) -> ib_api_status_t;
    join_mcast: unsafe extern "win64" fn(ib_qp_handle_t, *const ib_mcast_req_t, *mut ib_mcast_handle_t)
        -> ib_api_status_t;
    leave_mcast: unsafe extern "win64" fn(ib_mcast_handle_t, ib_pfn_destroy_cb_t) -> ib_api_status_t;
    put_mad: unsafe extern "win64" fn(*const c_char, i32, *const ib_mad_element_t) -> ib_api_status_t;
    query: unsafe extern "win64" fn(ib_al_handle_t, *const ib_query_req_t, *mut ib_query_handle_t)
        -> ib_api_status_t;
    cancel_query: unsafe extern "win64" fn(ib_al_handle_t, ib_query_handle_t);
    reg_pnp: unsafe extern "win64" fn(ib_al_handle_t, *const ib_pnp_req_t, *mut ib_pnp_handle_t)
        -> ib_api_status_t;
    dereg_pnp: unsafe extern "win64" fn(ib_pnp_handle_t, ib_pfn_destroy_cb_t) -> ib_api_status_t;
    open_al: unsafe extern "win64" fn(*mut ib_al_handle_t) -> ib_api_status_t;
    ib_deref_al_obj: unsafe extern "win64" fn(*mut c_void);
    close_al: unsafe extern "win64" fn(ib_al_handle_t) -> ib_api_status_t;
}

/// The functions of the access layer, shared by all that is made through them.
#[derive(Clone)]
pub(super) struct Api(PoolArc<Table>);

impl Deref for Api {
    type Target = Table;

    fn deref(&self) -> &Table {
        &self.0
    }
}

impl Api {
    /// Returns a reference to an object of the access layer (`ib_deref_al_obj`). IRQL <= DISPATCH_LEVEL.
    pub(super) fn dereference<T>(&self, object: *mut T) {
        // SAFETY: callable to DISPATCH_LEVEL, for a handle with a reference that the caller owns.
        unsafe { (self.ib_deref_al_obj)(object.cast()) };
    }
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Api")
    }
}

/// The port that a device stands for, as the bus driver says (`ipoib_ifc_data_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortIdentity {
    /// GUID of the channel adapter, host order.
    pub ca_guid: u64,
    /// GUID of the port, host order.
    pub port_guid: u64,
    /// Number of the port, from 1.
    pub port_number: u8,
    /// P_Key of the partition, host order; `None` for the default partition.
    pub pkey: Option<u16>,
}

/// The access layer as the bus driver offers it to this device.
#[derive(Debug)]
pub struct Interface {
    pub(super) api: Api,
    identity: PortIdentity,
}

impl Interface {
    /// Asks the bus driver for the access layer interface and for the identity of the port
    /// (`GUID_IB_AL_INTERFACE` version 19 with `GUID_IPOIB_INTERFACE_DATA` version 10).
    ///
    /// The reference that comes with the interface is returned at once: while this device exists its bus
    /// driver does too, and one that is referenced refuses to be removed
    /// (`ulp/ipoib/kernel/ipoib_driver.cpp`). So everything made through it is destroyed before
    /// MiniportHaltEx returns.
    ///
    /// # Errors
    /// The status of the request; `REVISION_MISMATCH` when the answer is of another version or size, or lacks
    /// a function.
    pub fn query(adapter: AdapterHandle, at: &Passive<'_>) -> Result<Self, Error> {
        // Too large for a kernel stack to be generous with.
        let interface = PoolBox::<ib_al_ifc_t>::try_zeroed(TAG)?;
        let mut data = ipoib_ifc_data_t::zeroed();
        let mut specific = ib_al_ifc_data_t {
            r#type: &GUID_IPOIB_INTERFACE_DATA,
            size: size_of::<ipoib_ifc_data_t>() as u16,
            version: IPOIB_INTERFACE_DATA_VERSION,
            p_data: (&raw mut data).cast(),
        };
        // SAFETY: as `ib_al_ifc.h` and `ipoib_ifc.h` define the request; both places last for the call.
        unsafe {
            adapter.query_interface(
                &GUID_IB_AL_INTERFACE,
                AL_INTERFACE_VERSION,
                interface.as_ptr().cast(),
                size_of::<ib_al_ifc_t>() as u16,
                (&raw mut specific).cast(),
                at,
            )?;
        }
        let head = interface.wdm;
        // SAFETY: what the bus driver answered, about functions that last as long as this device (above).
        let made = unsafe { Self::from_raw(&interface, &data) };
        if let Some(dereference) = head.InterfaceDereference {
            // SAFETY: at PASSIVE_LEVEL, for the reference that the answer took, with its own context.
            unsafe { dereference(head.Context) };
        }
        made
    }

    /// Takes over what the bus driver answered.
    ///
    /// # Safety
    /// The functions are those of an access layer that lasts as long as everything made through them.
    ///
    /// # Errors
    /// `REVISION_MISMATCH` when it is of another version or size, or lacks a function.
    pub unsafe fn from_raw(interface: &ib_al_ifc_t, data: &ipoib_ifc_data_t) -> Result<Self, Error> {
        let head = &interface.wdm;
        if head.Version != AL_INTERFACE_VERSION || usize::from(head.Size) != size_of::<ib_al_ifc_t>() {
            return Err(Error::REVISION_MISMATCH);
        }
        let table = Table::new(interface).map_err(|_| Error::REVISION_MISMATCH)?;
        let pkey = data.port_guid.pkey;
        let identity = PortIdentity {
            ca_guid: data.ca_guid.get(),
            port_guid: data.port_guid.guid.get(),
            port_number: data.port_num,
            pkey: (pkey != 0).then_some(pkey),
        };
        Ok(Self { api: Api(PoolArc::try_new(TAG, table)?), identity })
    }

    /// The port that this device stands for.
    pub const fn identity(&self) -> &PortIdentity {
        &self.identity
    }
}
