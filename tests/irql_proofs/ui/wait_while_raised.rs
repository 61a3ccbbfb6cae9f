//! What is raised is not PASSIVE_LEVEL until it is lowered.

use ipoib::kernel::event::Event;
use ipoib::kernel::irql::Passive;

fn worker(event: &Event, at: &mut Passive<'_>) {
    at.raised(|_| event.wait(at));
}

fn main() {}
