//! The UD queue pair.

use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};

use ibal_sys::*;
use windows_kernel_sys::Zeroable;

use crate::kernel::arc::PoolArc;
use crate::kernel::irql::Passive;

use super::client::{Client, Context, QP_EVENT, on_event};
use super::cq::Cq;
use super::handle::Handle;
use super::interface::Api;
use super::pd::Pd;
use super::status::{IbError, check, failure};
use super::wr::{PostError, RecvRequest, SendRequest};

/// Sizes of the queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QpConfig {
    /// Outstanding sends.
    pub send_depth: u32,
    /// Outstanding receives.
    pub receive_depth: u32,
    /// Segments of a send.
    pub send_segments: u32,
    /// Segments of a receive.
    pub receive_segments: u32,
}

/// State of the QP (InfiniBand Architecture volume 1, 10.3.1), as this driver last moved it. The adapter can
/// move it to ERROR by itself, which is reported as an asynchronous event or by completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QpState {
    /// Nothing can be posted.
    Reset,
    /// Receives can be posted; nothing arrives.
    Init,
    /// Messages arrive.
    ReadyToReceive,
    /// Messages arrive and go out.
    ReadyToSend,
    /// All that is posted comes back flushed.
    Error,
}

impl QpState {
    const fn raw(self) -> u32 {
        match self {
            Self::Reset => ib_qp_state_t::IB_QPS_RESET.bits(),
            Self::Init => ib_qp_state_t::IB_QPS_INIT.bits(),
            Self::ReadyToReceive => ib_qp_state_t::IB_QPS_RTR.bits(),
            Self::ReadyToSend => ib_qp_state_t::IB_QPS_RTS.bits(),
            Self::Error => ib_qp_state_t::IB_QPS_ERROR.bits(),
        }
    }

    const fn from_raw(raw: u32) -> Self {
        match ib_qp_state_t::from_bits_retain(raw) {
            ib_qp_state_t::IB_QPS_RESET => Self::Reset,
            ib_qp_state_t::IB_QPS_INIT => Self::Init,
            ib_qp_state_t::IB_QPS_RTR => Self::ReadyToReceive,
            ib_qp_state_t::IB_QPS_RTS => Self::ReadyToSend,
            _ => Self::Error,
        }
    }

    /// Whether the transition exists for a UD QP (InfiniBand Architecture volume 1, table 91).
    const fn can_become(self, next: Self) -> bool {
        match next {
            Self::Reset | Self::Error => true,
            Self::Init => matches!(self, Self::Reset | Self::Init),
            Self::ReadyToReceive => matches!(self, Self::Init),
            Self::ReadyToSend => matches!(self, Self::ReadyToReceive | Self::ReadyToSend),
        }
    }
}

/// The UD QP. Created in RESET; its number is its own from creation to destruction, whatever state it passes.
///
/// The modify calls are serialised by the caller: two at once leave the QP in the state of either.
pub struct Qp {
    pub(super) api: Api,
    handle: Handle<_ib_qp>,
    number: u32,
    state: AtomicU32,
    /// Holds the client until the QP can call no more.
    _client: Context,
}

// SAFETY: the access layer serialises what is done to its objects.
unsafe impl Send for Qp {}
// SAFETY: as above.
unsafe impl Sync for Qp {}

impl Qp {
    /// Creates the QP in RESET (`ib_create_qp`) and reads its number (`ib_query_qp`).
    pub fn create<A: Client>(
        pd: &Pd,
        send_cq: &Cq,
        receive_cq: &Cq,
        config: &QpConfig,
        client: &PoolArc<A>,
        at: &Passive<'_>,
    ) -> Result<Self, IbError> {
        let api = pd.api.clone();
        let context = Context::new(client);
        let mut request = ib_qp_create_t {
            qp_type: IB_QPT_UNRELIABLE_DGRM,
            sq_max_inline: 0,
            sq_depth: config.send_depth,
            rq_depth: config.receive_depth,
            sq_sge: config.send_segments,
            rq_sge: config.receive_segments,
            h_sq_cq: send_cq.handle(),
            h_rq_cq: receive_cq.handle(),
            h_srq: ptr::null_mut(),
            // Each request says for itself (IB_SEND_OPT_SIGNALED).
            sq_signaled: FALSE,
        };
        let mut raw = ptr::null_mut();
        // SAFETY: at PASSIVE_LEVEL, with a live PD and CQs, a callback for this context, which lives as long
        // as the QP, and places for the results.
        check(unsafe {
            (api.create_qp)(
                pd.handle(),
                &raw mut request,
                context.raw(),
                Some(on_event::<A, QP_EVENT>),
                &raw mut raw,
            )
        })?;
        let mut qp = Self {
            api,
            handle: Handle::new(raw)?,
            number: 0,
            state: AtomicU32::new(QpState::Reset.raw()),
            _client: context,
        };
        let mut attributes = ib_qp_attr_t::zeroed();
        // SAFETY: at PASSIVE_LEVEL, with a live QP and a place for the result.
        if let Err(error) = check(unsafe { (qp.api.query_qp)(qp.handle(), &raw mut attributes) }) {
            let _ = qp.destroy(at);
            return Err(error);
        }
        qp.number = attributes.num.get() & 0x00FF_FFFF;
        Ok(qp)
    }

    pub(super) fn handle(&self) -> ib_qp_handle_t {
        self.handle.get()
    }

    /// The QPN, 24 bits.
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// The state that this driver last moved it to.
    pub fn state(&self) -> QpState {
        QpState::from_raw(self.state.load(Ordering::Acquire))
    }

    fn modify(&self, next: QpState, fill: impl FnOnce(&mut ib_qp_mod_state)) -> Result<(), IbError> {
        if !self.state().can_become(next) {
            return Err(IbError::QP_STATE);
        }
        let mut request = ib_qp_mod_t::zeroed();
        request.req_state = ib_qp_state_t::from_bits_retain(next.raw());
        fill(&mut request.state);
        // SAFETY: at PASSIVE_LEVEL, which the callers' proof shows, with a request that lasts for the call; a
        // stale handle is null, which is rejected.
        check(unsafe { (self.api.modify_qp)(self.handle(), &raw const request) })?;
        self.state.store(next.raw(), Ordering::Release);
        Ok(())
    }

    /// RESET -> INIT, with the port, the Q_Key of the group, and where in the port's table the P_Key is.
    pub fn to_init(&self, port: u8, qkey: u32, pkey_index: u16, _at: &Passive<'_>) -> Result<(), IbError> {
        self.modify(QpState::Init, |state| {
            state.init = ib_qp_mod_init {
                primary_port: port,
                qkey: ib_net32_t::new(qkey),
                pkey_index,
                access_ctrl: ib_access_t::empty(),
            };
        })
    }

    /// INIT -> RTR.
    pub fn to_ready_to_receive(&self, _at: &Passive<'_>) -> Result<(), IbError> {
        self.modify(QpState::ReadyToReceive, |_| ())
    }

    /// RTR -> RTS, numbering packets from `psn` (24 bits).
    pub fn to_ready_to_send(&self, psn: u32, _at: &Passive<'_>) -> Result<(), IbError> {
        if self.state() == QpState::ReadyToSend {
            return Err(IbError::QP_STATE);
        }
        self.modify(QpState::ReadyToSend, |state| {
            state.rts = ib_qp_mod_rts { sq_psn: ib_net32_t::new(psn & 0x00FF_FFFF), ..Default::default() };
        })
    }

    /// RTS -> RTS with another Q_Key.
    pub fn set_qkey(&self, qkey: u32, _at: &Passive<'_>) -> Result<(), IbError> {
        if self.state() != QpState::ReadyToSend {
            return Err(IbError::QP_STATE);
        }
        self.modify(QpState::ReadyToSend, |state| {
            state.rts = ib_qp_mod_rts {
                opts: ib_qp_opts_t::IB_MOD_QP_QKEY,
                qkey: ib_net32_t::new(qkey),
                ..Default::default()
            };
        })
    }

    /// Any state -> ERROR: what is posted comes back flushed.
    pub fn to_error(&self, _at: &Passive<'_>) -> Result<(), IbError> {
        self.modify(QpState::Error, |_| ())
    }

    /// Any state -> RESET. What is still posted is forgotten without completion, so drain first.
    pub fn to_reset(&self, _at: &Passive<'_>) -> Result<(), IbError> {
        self.modify(QpState::Reset, |_| ())
    }

    /// Posts a send (`ib_post_send`). On success its completion will come; on failure nothing was posted.
    /// IRQL <= DISPATCH_LEVEL.
    pub fn post_send<const N: usize>(&self, request: &mut SendRequest<N>) -> Result<(), IbError> {
        let first = request.prepare(ptr::null_mut());
        let mut failed = ptr::null_mut();
        // SAFETY: callable to DISPATCH_LEVEL; the list is one prepared request, which lasts for the call.
        check(unsafe { (self.api.post_send)(self.handle(), first, &raw mut failed) })
    }

    /// Posts the receives of a list (`ib_post_recv`), in one call. IRQL <= DISPATCH_LEVEL.
    pub fn post_receives<const N: usize>(&self, requests: &mut [RecvRequest<N>]) -> Result<(), PostError> {
        let mut first = ptr::null_mut();
        for request in requests.iter_mut().rev() {
            first = request.prepare(first);
        }
        if first.is_null() {
            return Ok(());
        }
        let mut failed = ptr::null_mut();
        // SAFETY: callable to DISPATCH_LEVEL; the list links prepared requests, which last for the call.
        let status = unsafe { (self.api.post_recv)(self.handle(), first, &raw mut failed) };
        if status.is_success() {
            return Ok(());
        }
        // The requests lie in one slice in the order of the list, so the first that failed says how many did
        // not.
        let posted = failed.addr().wrapping_sub(first.addr()) / size_of::<RecvRequest<N>>();
        let posted = if failed.is_null() || posted >= requests.len() { 0 } else { posted };
        Err(PostError { posted, error: failure(status) })
    }

    /// Posts the sends of a list, in one call, as [`Qp::post_receives`].
    pub fn post_sends<const N: usize>(&self, requests: &mut [SendRequest<N>]) -> Result<(), PostError> {
        let mut first = ptr::null_mut();
        for request in requests.iter_mut().rev() {
            first = request.prepare(first);
        }
        if first.is_null() {
            return Ok(());
        }
        let mut failed = ptr::null_mut();
        // SAFETY: callable to DISPATCH_LEVEL; the list links prepared requests, which last for the call.
        let status = unsafe { (self.api.post_send)(self.handle(), first, &raw mut failed) };
        if status.is_success() {
            return Ok(());
        }
        let posted = failed.addr().wrapping_sub(first.addr()) / size_of::<SendRequest<N>>();
        let posted = if failed.is_null() || posted >= requests.len() { 0 } else { posted };
        Err(PostError { posted, error: failure(status) })
    }

    /// Destroys it (`ib_destroy_qp`). Joins that are out end as cancelled and memberships are left before;
    /// waits until no callback of any of them runs. The caller has stopped posting.
    pub fn destroy(&self, _at: &Passive<'_>) -> Result<(), IbError> {
        match self.handle.take() {
            // SAFETY: at PASSIVE_LEVEL, with a live handle that is not used again.
            Some(raw) => check(unsafe { (self.api.destroy_qp)(raw, ib_sync_destroy) }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::QpState;

    const ALL: [QpState; 5] =
        [QpState::Reset, QpState::Init, QpState::ReadyToReceive, QpState::ReadyToSend, QpState::Error];

    #[test]
    fn transitions_are_those_of_table_91() {
        let allowed = |from: QpState| ALL.map(|to| from.can_become(to));
        assert_eq!(allowed(QpState::Reset), [true, true, false, false, true]);
        assert_eq!(allowed(QpState::Init), [true, true, true, false, true]);
        assert_eq!(allowed(QpState::ReadyToReceive), [true, false, false, true, true]);
        assert_eq!(allowed(QpState::ReadyToSend), [true, false, false, true, true]);
        assert_eq!(allowed(QpState::Error), [true, false, false, false, true]);
    }

    #[test]
    fn a_state_survives_the_word_it_is_kept_in() {
        for state in ALL {
            assert_eq!(QpState::from_raw(state.raw()), state);
        }
    }
}
