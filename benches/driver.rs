//! Instructions inside the driver, counted by callgrind: docs/performance.md says what is in the count. Each case is a
//! process of its own, named by peers known, bytes of the IP packet, and packets at a time.

#![allow(missing_docs, reason = "what the macros make has none")]

use gungraun::{
    Callgrind, EntryPoint, LibraryBenchmarkConfig, library_benchmark, library_benchmark_group, main,
};
use ipoib_benches::cases::{self, Direction};

#[library_benchmark]
#[bench::p1_b64_x1(1, 64, 1)]
#[bench::p1_b64_x32(1, 64, 32)]
#[bench::p1_b2044_x1(1, 2044, 1)]
#[bench::p1_b2044_x32(1, 2044, 32)]
#[bench::p1000_b64_x1(1000, 64, 1)]
#[bench::p1000_b64_x32(1000, 64, 32)]
#[bench::p1000_b2044_x1(1000, 2044, 1)]
#[bench::p1000_b2044_x32(1000, 2044, 32)]
#[bench::p100000_b64_x1(100000, 64, 1)]
#[bench::p100000_b64_x32(100000, 64, 32)]
#[bench::p100000_b2044_x1(100000, 2044, 1)]
#[bench::p100000_b2044_x32(100000, 2044, 32)]
fn send(peers: usize, size: usize, batch: usize) {
    cases::run(Direction::Send, peers, size, batch);
}

#[library_benchmark]
#[bench::p1_b64_x1(1, 64, 1)]
#[bench::p1_b64_x32(1, 64, 32)]
#[bench::p1_b2044_x1(1, 2044, 1)]
#[bench::p1_b2044_x32(1, 2044, 32)]
#[bench::p1000_b64_x1(1000, 64, 1)]
#[bench::p1000_b64_x32(1000, 64, 32)]
#[bench::p1000_b2044_x1(1000, 2044, 1)]
#[bench::p1000_b2044_x32(1000, 2044, 32)]
#[bench::p100000_b64_x1(100000, 64, 1)]
#[bench::p100000_b64_x32(100000, 64, 32)]
#[bench::p100000_b2044_x1(100000, 2044, 1)]
#[bench::p100000_b2044_x32(100000, 2044, 32)]
fn receive(peers: usize, size: usize, batch: usize) {
    cases::run(Direction::Receive, peers, size, batch);
}

library_benchmark_group!(name = driver, benchmarks = [send, receive]);
main!(
    config = LibraryBenchmarkConfig::default()
        // The image that the hosts load instead of the linked driver, if there is one.
        .pass_through_env("IPOIB_IMAGE")
        .tool(
            // Nothing is counted, and little slowed down, until the benchmark asks for it.
            Callgrind::with_args(["--instr-atstart=no", "--collect-atstart=no", "--cache-sim=no"])
                .entry_point(EntryPoint::None)
        );
    library_benchmark_groups = driver
);
