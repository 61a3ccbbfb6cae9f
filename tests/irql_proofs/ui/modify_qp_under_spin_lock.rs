//! modify_qp by code from PASSIVE_LEVEL that holds a spin lock.

use ipoib::ib::qp::Qp;
use ipoib::kernel::irql::Passive;
use ipoib::kernel::spinlock::SpinLock;

fn worker(qp: &Qp, lock: &SpinLock<u32>, at: &mut Passive<'_>) {
    let guard = lock.lock(at);
    let _ = qp.to_error(at);
    drop(guard);
}

fn main() {}
