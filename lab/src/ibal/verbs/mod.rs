//! The verbs: what the driver calls, by concept. Each checks its IRQL, passes a preemption point, is counted, and may
//! be failed by a plan of faults.

use std::sync::Arc;

use ibal_sys::{ib_api_status_t, ib_pfn_destroy_cb_t, ib_sync_destroy};
use windows_kernel_sys::KIRQL;

use super::Ibal;
use super::latch::Latch;
use super::objects::Notice;
use crate::hca::log::Verb;
use crate::hca::rules::VERB_IRQL;
use crate::kernel::{Machine, irql, preempt};
use crate::{sim, verifier};

pub mod address;
pub mod connection;
pub mod general;
pub mod memory;
pub mod multicast;
pub mod queue;
pub mod sa;
pub mod work;

/// Defines verbs: name, highest IRQL, arguments, status.
macro_rules! verbs {
    ($(
        $(#[$attr:meta])*
        [$max:expr] fn $name:ident($ibal:ident $(, $arg:ident: $ty:ty)* $(,)?) -> $ret:ty $body:block
    )*) => {$(
        $(#[$attr])*
        ///
        /// # Safety
        /// Pointers must be what the interface's documentation says.
        pub unsafe extern "win64" fn $name($($arg: $ty),*) -> $ret {
            $crate::sim::contain(move || {
                static VERB: $crate::hca::log::Verb = $crate::hca::log::Verb::new(stringify!($name));
                let $ibal = $crate::ibal::verbs::enter(&VERB, $max);
                $body
            })
        }
    )*};
}
pub(crate) use verbs;

/// Highest IRQL of most verbs.
pub(crate) const PASSIVE: KIRQL = irql::PASSIVE_LEVEL;
/// Highest IRQL of the verbs of the data path.
pub(crate) const DISPATCH: KIRQL = irql::DISPATCH_LEVEL;

/// The first lines of every verb.
pub(crate) fn enter(verb: &'static Verb, max: KIRQL) -> Arc<Ibal> {
    let machine = Machine::current();
    let level = sim::level();
    if level > max {
        let (now, max) = (verifier::irql_name(level), verifier::irql_name(max));
        verifier::violation(VERB_IRQL, verb.name, format!("called at {now}, allowed is {max} or below"));
    }
    preempt(verb.name);
    let ibal = Ibal::of(&machine).expect("a driver got an interface, so its machine has an access layer");
    ibal.hca().log().verb(verb, level);
    ibal
}

/// Shall this call fail? Then the caller returns its documented failure.
fn fails(verb: &'static str) -> bool {
    crate::fault::should_fail(verb)
}

/// How a destroy call wants to be told, and what to wait for if it is by returning.
fn notice(callback: ib_pfn_destroy_cb_t) -> (Notice, Option<Arc<Latch>>) {
    if callback == ib_sync_destroy {
        let latch = Arc::new(Latch::default());
        (Notice::Latch(Arc::clone(&latch)), Some(latch))
    } else if callback == ib_pfn_destroy_cb_t::NONE {
        (Notice::None, None)
    } else {
        (Notice::Callback(callback.0.expose_provenance()), None)
    }
}

/// Writes a result for the driver.
///
/// # Safety
/// `to` must be null or valid for writing.
unsafe fn give<T>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: the caller's contract.
        unsafe { to.write_unaligned(value) };
    }
}

/// A status for a refused limit.
const NO_RESOURCES: ib_api_status_t = ibal_sys::IB_INSUFFICIENT_RESOURCES;
