//! A proof of DISPATCH_LEVEL does not outlive the raise that gave it.

use ipoib::kernel::irql::{Dispatch, Passive};

fn worker(at: &mut Passive<'_>) {
    let kept: Dispatch<'_> = at.raised(|raised| raised);
    let _ = kept;
}

fn main() {}
