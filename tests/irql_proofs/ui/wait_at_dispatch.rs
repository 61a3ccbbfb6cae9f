//! A timer's function runs at DISPATCH_LEVEL, where nothing may wait.

use ipoib::kernel::event::{self, Event};
use ipoib::kernel::irql::Dispatch;
use ipoib::kernel::mutex::Mutex;
use std::time::Duration;

fn on_timer(event: &Event, mutex: &Mutex<u32>, at: Dispatch<'_>) {
    event.wait(at);
    let _ = event.wait_timeout(at, Duration::from_millis(1));
    event::sleep(at, Duration::from_millis(1));
    let _ = mutex.lock(at);
}

fn main() {}
