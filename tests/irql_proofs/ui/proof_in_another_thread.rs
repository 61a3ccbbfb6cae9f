//! A level belongs to the processor that the code runs on now.

use ipoib::kernel::irql::Passive;

fn worker(at: &Passive<'_>) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _: &Passive<'_> = at;
        });
    });
}

fn main() {}
