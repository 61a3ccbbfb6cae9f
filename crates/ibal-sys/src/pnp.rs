//! PnP events of CAs and ports.
//!
//! Source: WinOFED `inc/iba/ib_al.h` (`ib_pnp_req_t`, `ib_pnp_rec_t`, `ib_pnp_port_rec_t`); behaviour from
//! `core/al/kernel/al_pnp.c`.

use core::ffi::c_void;

use crate::ca::{ib_ca_attr_t, ib_port_attr_t};
use crate::status::ib_api_status_t;
use crate::types::*;

/// `ib_pnp_class_t`: what to hear of, with flags.
pub type ib_pnp_class_t = u32;
/// `IB_PNP_CA`.
pub const IB_PNP_CA: ib_pnp_class_t = 0x0000_0001;
/// `IB_PNP_PORT`.
pub const IB_PNP_PORT: ib_pnp_class_t = 0x0000_0002;
/// `IB_PNP_IOU`.
pub const IB_PNP_IOU: ib_pnp_class_t = 0x0000_0004;
/// `IB_PNP_IOC`.
pub const IB_PNP_IOC: ib_pnp_class_t = 0x0000_0008;
/// `IB_PNP_FLAG_REG_SYNC`: `reg_pnp` returns after the events that tell the present state. It waits.
pub const IB_PNP_FLAG_REG_SYNC: ib_pnp_class_t = 0x4000_0000;
/// `IB_PNP_FLAG_REG_COMPLETE`: raise [`IB_PNP_REG_COMPLETE`] after those events.
pub const IB_PNP_FLAG_REG_COMPLETE: ib_pnp_class_t = 0x8000_0000;
/// `IB_PNP_CLASS_MASK`.
pub const IB_PNP_CLASS_MASK: ib_pnp_class_t = 0x0000_00FF;
/// `IB_PNP_FLAG_MASK`.
pub const IB_PNP_FLAG_MASK: ib_pnp_class_t = 0xF000_0000;

/// `ib_pnp_event_t`: class bit with event bit.
pub type ib_pnp_event_t = u32;
/// `IB_PNP_EVENT_ADD`: event bits.
pub const IB_PNP_EVENT_ADD: ib_pnp_event_t = 0x0000_1000;
/// `IB_PNP_EVENT_REMOVE`.
pub const IB_PNP_EVENT_REMOVE: ib_pnp_event_t = 0x0000_2000;
/// `IB_PNP_EVENT_CHANGE`.
pub const IB_PNP_EVENT_CHANGE: ib_pnp_event_t = 0x0000_4000;
/// `IB_PNP_EVENT_INIT`.
pub const IB_PNP_EVENT_INIT: ib_pnp_event_t = 0x0000_8000;
/// `IB_PNP_EVENT_ARMED`.
pub const IB_PNP_EVENT_ARMED: ib_pnp_event_t = 0x0001_0000;
/// `IB_PNP_EVENT_ACTIVE`.
pub const IB_PNP_EVENT_ACTIVE: ib_pnp_event_t = 0x0002_0000;
/// `IB_PNP_EVENT_DOWN`.
pub const IB_PNP_EVENT_DOWN: ib_pnp_event_t = 0x0004_0000;
/// `IB_PNP_EVENT_PKEY`.
pub const IB_PNP_EVENT_PKEY: ib_pnp_event_t = 0x0008_0000;
/// `IB_PNP_EVENT_SM`.
pub const IB_PNP_EVENT_SM: ib_pnp_event_t = 0x0010_0000;
/// `IB_PNP_EVENT_GID`.
pub const IB_PNP_EVENT_GID: ib_pnp_event_t = 0x0020_0000;
/// `IB_PNP_EVENT_LID`.
pub const IB_PNP_EVENT_LID: ib_pnp_event_t = 0x0040_0000;
/// `IB_PNP_EVENT_SUBNET`.
pub const IB_PNP_EVENT_SUBNET: ib_pnp_event_t = 0x0080_0000;

/// `IB_PNP_CA_ADD`.
pub const IB_PNP_CA_ADD: ib_pnp_event_t = IB_PNP_CA | IB_PNP_EVENT_ADD;
/// `IB_PNP_CA_REMOVE`.
pub const IB_PNP_CA_REMOVE: ib_pnp_event_t = IB_PNP_CA | IB_PNP_EVENT_REMOVE;
/// `IB_PNP_PORT_ADD`: the port exists. Of every port, first.
pub const IB_PNP_PORT_ADD: ib_pnp_event_t = IB_PNP_PORT | IB_PNP_EVENT_ADD;
/// `IB_PNP_PORT_REMOVE`: the port is going. The record has no attributes.
pub const IB_PNP_PORT_REMOVE: ib_pnp_event_t = IB_PNP_PORT | IB_PNP_EVENT_REMOVE;
/// `IB_PNP_PORT_INIT`: link up, waiting for the subnet manager.
pub const IB_PNP_PORT_INIT: ib_pnp_event_t = IB_PNP_PORT | IB_PNP_EVENT_INIT;
/// `IB_PNP_PORT_ARMED`.
pub const IB_PNP_PORT_ARMED: ib_pnp_event_t = IB_PNP_PORT | IB_PNP_EVENT_ARMED;
/// `IB_PNP_PORT_ACTIVE`: configured; traffic may flow.
pub const IB_PNP_PORT_ACTIVE: ib_pnp_event_t = IB_PNP_PORT | IB_PNP_EVENT_ACTIVE;
/// `IB_PNP_PORT_DOWN`.
pub const IB_PNP_PORT_DOWN: ib_pnp_event_t = IB_PNP_PORT | IB_PNP_EVENT_DOWN;
/// `IB_PNP_PKEY_CHANGE`: the P_Key table changed.
pub const IB_PNP_PKEY_CHANGE: ib_pnp_event_t = IB_PNP_PORT | IB_PNP_EVENT_PKEY;
/// `IB_PNP_SM_CHANGE`: LID or service level of the subnet manager changed.
pub const IB_PNP_SM_CHANGE: ib_pnp_event_t = IB_PNP_PORT | IB_PNP_EVENT_SM;
/// `IB_PNP_GID_CHANGE`: the GID table changed.
pub const IB_PNP_GID_CHANGE: ib_pnp_event_t = IB_PNP_PORT | IB_PNP_EVENT_GID;
/// `IB_PNP_LID_CHANGE`: the base LID or the LMC changed, or the subnet manager asks clients to register again
/// (`al_ci_ca_shared.c` forces this event for `IB_AE_CLIENT_REREGISTER` and `IB_AE_LID_CHANGE`, whether or
/// not the LID is another).
pub const IB_PNP_LID_CHANGE: ib_pnp_event_t = IB_PNP_PORT | IB_PNP_EVENT_LID;
/// `IB_PNP_SUBNET_TIMEOUT_CHANGE`.
pub const IB_PNP_SUBNET_TIMEOUT_CHANGE: ib_pnp_event_t = IB_PNP_PORT | IB_PNP_EVENT_SUBNET;
/// `IB_PNP_REG_COMPLETE`: the present state is told; no port, no attributes.
pub const IB_PNP_REG_COMPLETE: ib_pnp_event_t = IB_PNP_FLAG_REG_COMPLETE;

/// `ib_pnp_rec_t`: an event, 56 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ib_pnp_rec_t {
    /// `IB_PNP_*`.
    pub pnp_event: ib_pnp_event_t,
    /// The registration.
    pub h_pnp: ib_pnp_handle_t,
    /// I/O controllers only.
    pub h_ioc_event: ib_pnp_handle_t,
    /// Context of the registration.
    pub pnp_context: *mut c_void,
    /// Context of this port or CA: what the last callback for it left here.
    pub context: *mut c_void,
    /// Port or CA.
    pub guid: ib_net64_t,
    /// CA; zero in port events of `al_pnp.c`, which fills only `guid`.
    pub ca_guid: ib_net64_t,
}

/// `ib_pnp_ca_rec_t`: an event of a CA.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ib_pnp_ca_rec_t {
    /// The event.
    pub pnp_rec: ib_pnp_rec_t,
    /// Attributes; null for removal.
    pub p_ca_attr: *mut ib_ca_attr_t,
}

/// `ib_pnp_port_rec_t`: an event of a port, 72 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ib_pnp_port_rec_t {
    /// The event.
    pub pnp_rec: ib_pnp_rec_t,
    /// Attributes of the CA; null for removal.
    pub p_ca_attr: *mut ib_ca_attr_t,
    /// Attributes of the port, a copy that lasts for the call; null for removal.
    pub p_port_attr: *mut ib_port_attr_t,
}

/// `ib_pfn_pnp_cb_t`: an event.
///
/// Runs at PASSIVE_LEVEL on the one PnP thread of the access layer, so never two at once, whatever the port
/// or the registration; a callback that waits holds up all. A registration hears of every port of every CA. A
/// status other than success drops the port: this registration hears no more of it.
pub type ib_pfn_pnp_cb_t = Option<unsafe extern "win64" fn(p_pnp_rec: *mut ib_pnp_rec_t) -> ib_api_status_t>;

/// `ib_pnp_req_t`: 24 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ib_pnp_req_t {
    /// What to hear of.
    pub pnp_class: ib_pnp_class_t,
    /// Comes back in each record, and in the destroy callback.
    pub pnp_context: *const c_void,
    /// Called for each event.
    pub pfn_pnp_cb: ib_pfn_pnp_cb_t,
}
