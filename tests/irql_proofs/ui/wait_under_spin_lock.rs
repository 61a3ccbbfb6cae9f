//! A spin lock is held at DISPATCH_LEVEL, even by code that came from PASSIVE_LEVEL.

use ipoib::kernel::event::Event;
use ipoib::kernel::irql::Passive;
use ipoib::kernel::spinlock::SpinLock;

fn worker(event: &Event, lock: &SpinLock<u32>, at: &mut Passive<'_>) {
    let mut guard = lock.lock(at);
    event.wait(at);
    *guard += 1;
}

fn main() {}
