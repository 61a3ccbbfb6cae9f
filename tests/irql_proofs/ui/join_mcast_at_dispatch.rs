//! join_mcast and leave_mcast: PASSIVE_LEVEL only.

use ipoib::ib::client::Client;
use ipoib::ib::mcast::{JoinRequest, MembershipId, Memberships};
use ipoib::ib::qp::Qp;
use ipoib::ib::query::Patience;
use ipoib::kernel::irql::Dispatch;

fn on_send<A: Client>(
    groups: &Memberships<A>,
    qp: &Qp,
    request: &JoinRequest,
    patience: Patience,
    id: MembershipId,
    at: Dispatch<'_>,
) {
    let _ = groups.join(qp, request, patience, 0, at);
    let _ = groups.leave(id, at);
}

fn main() {}
