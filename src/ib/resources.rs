//! What an adapter has from MiniportInitializeEx to MiniportHaltEx, made in order, released in reverse.

use crate::kernel::arc::PoolArc;
use crate::kernel::irql::Passive;

use super::al::Al;
use super::ca::{Ca, CaAttributes};
use super::client::Client;
use super::cq::Cq;
use super::interface::Interface;
use super::mr::Mr;
use super::pd::Pd;
use super::qp::{Qp, QpConfig};
use super::status::IbError;

/// The step of [`Resources::create`] that failed, for the event log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// `ib_open_al`.
    OpenAl,
    /// `ib_open_ca`.
    OpenCa,
    /// `ib_query_ca`.
    QueryCa,
    /// `ib_alloc_pd`.
    AllocatePd,
    /// `ib_create_cq`, receives.
    CreateReceiveCq,
    /// `ib_create_cq`, sends.
    CreateSendCq,
    /// `ib_reg_phys`.
    RegisterMemory,
    /// `ib_create_qp`, `ib_query_qp`.
    CreateQp,
}

/// AL, CA, PD, CQs, MR and QP.
///
/// The region is made before the QP, so that in reverse order the QP, which could still use it, goes first.
pub struct Resources {
    /// The access layer.
    pub al: Al,
    /// The adapter.
    pub ca: Ca,
    /// The protection domain.
    pub pd: Pd,
    /// The receive queue's CQ.
    pub receive_cq: Cq,
    /// The send queue's CQ.
    pub send_cq: Cq,
    /// The region over all physical memory.
    pub mr: Mr,
    /// The QP, in RESET.
    pub qp: Qp,
}

/// What can be given back.
trait Destroy {
    fn destroy(&self, at: &Passive<'_>) -> Result<(), IbError>;
}

macro_rules! destroy {
    ($($object:ty),*) => {$(
        impl Destroy for $object {
            fn destroy(&self, at: &Passive<'_>) -> Result<(), IbError> {
                <$object>::destroy(self, at)
            }
        }
    )*};
}
destroy!(Al, Ca, Pd, Cq, Mr, Qp);

/// Destroys all, whatever each of them says; the first failure is the answer.
fn destroy_all(objects: &[&dyn Destroy], at: &Passive<'_>) -> Result<(), IbError> {
    let mut result = Ok(());
    for object in objects {
        result = result.and(object.destroy(at));
    }
    result
}

impl Resources {
    /// Makes everything, or nothing: a step that fails releases what the steps before it made, in reverse
    /// order.
    ///
    /// `size` is asked, once the adapter's limits are known, how large the queues are to be. CQs hold a
    /// completion for each work request.
    pub fn create<A: Client>(
        interface: &Interface,
        client: &PoolArc<A>,
        size: impl FnOnce(&CaAttributes) -> QpConfig,
        at: &Passive<'_>,
    ) -> Result<Self, (Step, IbError)> {
        /// The object, or the undoing of those before it.
        macro_rules! made {
            ($made:expr, $step:ident $(, $undo:ident)*) => {
                $made.map_err(|error| {
                    // What went wrong first is what counts.
                    let _ = destroy_all(&[$(&$undo),*], at);
                    (Step::$step, error)
                })?
            };
        }
        let al = made!(Al::open(interface, at), OpenAl);
        let ca = made!(Ca::open(&al, interface.identity().ca_guid, client, at), OpenCa, al);
        let attributes = made!(ca.query(at), QueryCa, ca, al);
        let config = size(&attributes);
        let pd = made!(Pd::allocate(&ca, at), AllocatePd, ca, al);
        let receive_cq =
            made!(Cq::create_receive(&ca, config.receive_depth, client, at), CreateReceiveCq, pd, ca, al);
        let send_cq =
            made!(Cq::create_send(&ca, config.send_depth, client, at), CreateSendCq, receive_cq, pd, ca, al);
        let mr = made!(Mr::register_all_physical(&pd, at), RegisterMemory, send_cq, receive_cq, pd, ca, al);
        let qp = made!(
            Qp::create(&pd, &send_cq, &receive_cq, &config, client, at),
            CreateQp,
            mr,
            send_cq,
            receive_cq,
            pd,
            ca,
            al
        );
        Ok(Self { al, ca, pd, receive_cq, send_cq, mr, qp })
    }

    /// Releases everything, in reverse order; a failure does not stop the rest. The caller has stopped
    /// posting, and has destroyed address handles, queries and registrations.
    pub fn destroy(&self, at: &Passive<'_>) -> Result<(), IbError> {
        let Self { al, ca, pd, receive_cq, send_cq, mr, qp } = self;
        destroy_all(&[qp, mr, send_cq, receive_cq, pd, ca, al], at)
    }
}
