//! Protection domains.
//!
//! Source: WinOFED `inc/iba/ib_types.h` (`ib_pd_type_t`).

use crate::status::c_enum;

c_enum! {
    /// `ib_pd_type_t`: what a protection domain is for.
    ib_pd_type_t;
    /// Anything.
    IB_PDT_NORMAL = 0,
    /// Aliases of the special QPs.
    IB_PDT_ALIAS = 1,
    /// Special QPs.
    IB_PDT_SQP = 2,
    /// Unreliable datagrams only: address vectors may live in host memory and cost no verb.
    IB_PDT_UD = 3,
}
