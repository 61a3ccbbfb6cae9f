//! create_qp: PASSIVE_LEVEL only.

use ipoib::ib::client::Client;
use ipoib::ib::cq::Cq;
use ipoib::ib::pd::Pd;
use ipoib::ib::qp::{Qp, QpConfig};
use ipoib::kernel::arc::PoolArc;
use ipoib::kernel::irql::Dispatch;

fn on_reset<A: Client>(pd: &Pd, cq: &Cq, config: &QpConfig, client: &PoolArc<A>, at: Dispatch<'_>) {
    let _ = Qp::create(pd, cq, cq, config, client, at);
}

fn main() {}
