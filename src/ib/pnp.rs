//! PnP events of the port.

use core::ffi::c_void;
use core::ptr;

use ibal_sys::*;

use crate::kernel::arc::PoolArc;
use crate::kernel::irql::Passive;

use super::al::Al;
use super::ca::PortAttributes;
use super::client::Client;
use super::handle::Handle;
use super::interface::{Api, TAG};
use super::status::{IbError, check};

/// What happened to the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortEventKind {
    /// It exists.
    Add,
    /// It is going.
    Remove,
    /// Link up; the subnet manager has to configure it.
    Init,
    /// Configured, not started.
    Armed,
    /// Traffic may flow.
    Active,
    /// No link.
    Down,
    /// The P_Key table changed.
    PkeyChange,
    /// LID or service level of the subnet manager changed.
    SmChange,
    /// The GID table changed.
    GidChange,
    /// The base LID or the LMC changed, or the subnet manager lost its memory and asks clients to register
    /// again: the access layer reports that as this (`al_ci_ca_shared.c`), so memberships are void even if
    /// the LID is not.
    LidChange,
    /// The subnet timeout changed.
    SubnetTimeoutChange,
    /// All events that tell the state at registration have been reported.
    RegistrationComplete,
}

/// An event of the port.
#[derive(Clone, Copy, Debug)]
pub struct PortEvent<'a> {
    /// What happened.
    pub kind: PortEventKind,
    /// Attributes of the port after it. `None` for `Remove` and `RegistrationComplete`.
    pub port: Option<PortAttributes<'a>>,
}

/// What the registration's context points to.
struct Registration<A> {
    client: PoolArc<A>,
    port_guid: ib_net64_t,
}

/// A registration for the events of one port.
pub struct Pnp<A> {
    api: Api,
    handle: Handle<_al_pnp>,
    /// Lives until no callback runs: `destroy` waits for that.
    _registration: PoolArc<Registration<A>>,
}

// SAFETY: the access layer serialises what is done to its objects; the registration is shared, not changed.
unsafe impl<A: Client> Send for Pnp<A> {}
// SAFETY: as above.
unsafe impl<A: Client> Sync for Pnp<A> {}

impl<A: Client> Pnp<A> {
    /// Registers for the events of the port with this GUID, in host order (`ib_reg_pnp`).
    ///
    /// Events that tell the present state follow at once, on another thread and possibly before this returns;
    /// the last of them is [`PortEventKind::RegistrationComplete`].
    pub fn register(
        al: &Al,
        port_guid: u64,
        client: &PoolArc<A>,
        _at: &Passive<'_>,
    ) -> Result<Self, IbError> {
        let api = al.api.clone();
        let registration = PoolArc::try_new(
            TAG,
            Registration { client: client.clone(), port_guid: ib_net64_t::new(port_guid) },
        )
        .map_err(|_| IbError::NO_MEMORY)?;
        let request = ib_pnp_req_t {
            pnp_class: IB_PNP_PORT | IB_PNP_FLAG_REG_COMPLETE,
            pnp_context: registration.as_ptr().cast(),
            pfn_pnp_cb: Some(on_pnp::<A>),
        };
        let mut raw = ptr::null_mut();
        // SAFETY: at PASSIVE_LEVEL, with an open access layer, a request that lasts for the call, a callback
        // for this context, which lives as long as the registration, and a place for the handle.
        check(unsafe { (api.reg_pnp)(al.handle(), &raw const request, &raw mut raw) })?;
        Ok(Self { api, handle: Handle::new(raw)?, _registration: registration })
    }

    /// Ends the registration (`ib_dereg_pnp`). Waits until no callback runs, so it must not be called from
    /// one, nor with a lock held that one takes.
    pub fn destroy(&self, _at: &Passive<'_>) -> Result<(), IbError> {
        match self.handle.take() {
            // SAFETY: at PASSIVE_LEVEL, with a live handle that is not used again.
            Some(raw) => check(unsafe { (self.api.dereg_pnp)(raw, ib_sync_destroy) }),
            None => Ok(()),
        }
    }
}

/// `ib_pfn_pnp_cb_t`. Refuses ports that are not ours, so that no more of them is reported.
unsafe extern "win64" fn on_pnp<A: Client>(record: *mut ib_pnp_rec_t) -> ib_api_status_t {
    // SAFETY: the access layer passes a valid record.
    let (event, guid, context): (_, _, *mut c_void) =
        unsafe { ((*record).pnp_event, (*record).guid, (*record).pnp_context) };
    // SAFETY: the context of a registration that is not destroyed yet: `destroy` waits for this call.
    let registration = unsafe { &*context.cast_const().cast::<Registration<A>>() };
    let Some(kind) = kind(event) else {
        return IB_SUCCESS;
    };
    if kind != PortEventKind::RegistrationComplete && guid != registration.port_guid {
        return IB_NOT_FOUND;
    }
    let port = match kind {
        PortEventKind::Remove | PortEventKind::RegistrationComplete => None,
        // SAFETY: the record of every other port event is an `ib_pnp_port_rec_t`, whose attributes are valid
        // for the call (`al_pnp.c`, `__pnp_notify_user`).
        _ => unsafe { PortAttributes::from_raw((*record.cast::<ib_pnp_port_rec_t>()).p_port_attr) },
    };
    // SAFETY: PnP callbacks run on a thread at PASSIVE_LEVEL.
    let mut at = unsafe { Passive::assume() };
    registration.client.port_event(PortEvent { kind, port }, &mut at);
    IB_SUCCESS
}

const fn kind(event: ib_pnp_event_t) -> Option<PortEventKind> {
    Some(match event {
        IB_PNP_PORT_ADD => PortEventKind::Add,
        IB_PNP_PORT_REMOVE => PortEventKind::Remove,
        IB_PNP_PORT_INIT => PortEventKind::Init,
        IB_PNP_PORT_ARMED => PortEventKind::Armed,
        IB_PNP_PORT_ACTIVE => PortEventKind::Active,
        IB_PNP_PORT_DOWN => PortEventKind::Down,
        IB_PNP_PKEY_CHANGE => PortEventKind::PkeyChange,
        IB_PNP_SM_CHANGE => PortEventKind::SmChange,
        IB_PNP_GID_CHANGE => PortEventKind::GidChange,
        IB_PNP_LID_CHANGE => PortEventKind::LidChange,
        IB_PNP_SUBNET_TIMEOUT_CHANGE => PortEventKind::SubnetTimeoutChange,
        IB_PNP_REG_COMPLETE => PortEventKind::RegistrationComplete,
        _ => return None,
    })
}
