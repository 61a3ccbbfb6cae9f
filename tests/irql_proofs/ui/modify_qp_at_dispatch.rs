//! modify_qp, whatever the state it leads to: PASSIVE_LEVEL only.

use ipoib::ib::qp::Qp;
use ipoib::kernel::irql::Dispatch;

fn on_reset(qp: &Qp, at: Dispatch<'_>) {
    let _ = qp.to_error(at);
    let _ = qp.to_reset(at);
    let _ = qp.to_init(1, 0, 0, at);
    let _ = qp.to_ready_to_receive(at);
    let _ = qp.to_ready_to_send(0, at);
    let _ = qp.set_qkey(0, at);
}

fn main() {}
