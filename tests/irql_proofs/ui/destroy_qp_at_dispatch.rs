//! destroy_qp: PASSIVE_LEVEL only.

use ipoib::ib::qp::Qp;
use ipoib::kernel::irql::Dispatch;

fn on_reset(qp: &Qp, at: Dispatch<'_>) {
    let _ = qp.destroy(at);
}

fn main() {}
