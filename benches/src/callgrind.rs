//! Client requests of callgrind (valgrind/callgrind.h), and the count of the driver's instructions by them.
//!
//! Callgrind is told at each crossing of the border between lab and driver whether to collect. It decides a basic
//! block at a time, so a crossing leaves some instructions of the lab's side in the count: those are known by the
//! function they are in, and [`Profile::outside_lab`](crate::profile::Profile::outside_lab) leaves them out.

use std::sync::atomic::{AtomicBool, Ordering};

use ipoib_lab::sim::border::{self, Side};

/// `VG_USERREQ_TOOL_BASE('C', 'T')`.
const BASE: u64 = (b'C' as u64) << 24 | (b'T' as u64) << 16;
/// `CALLGRIND_TOGGLE_COLLECT`.
const TOGGLE_COLLECT: u64 = BASE + 2;
/// `CALLGRIND_START_INSTRUMENTATION`.
const START_INSTRUMENTATION: u64 = BASE + 4;
/// `CALLGRIND_STOP_INSTRUMENTATION`.
const STOP_INSTRUMENTATION: u64 = BASE + 5;

static MEASURING: AtomicBool = AtomicBool::new(false);
static IN_DRIVER: AtomicBool = AtomicBool::new(false);

/// Asks valgrind; outside it, does nothing.
#[inline(never)]
fn request(code: u64) {
    #[cfg(target_arch = "x86_64")]
    {
        let arguments = [code, 0, 0, 0, 0, 0];
        // SAFETY: the sequence of valgrind.h for amd64. Four rotations by 128 in all leave RDI as it was, and the
        // exchange of a register with itself changes nothing; valgrind takes the address of six words in RAX and
        // answers in RDX.
        unsafe {
            std::arch::asm!(
                "rol rdi, 3", "rol rdi, 13", "rol rdi, 61", "rol rdi, 51", "xchg rbx, rbx",
                in("rax") arguments.as_ptr(),
                inout("rdx") 0_u64 => _,
            );
        }
    }
}

/// The border's watch.
fn crossed(side: Side) -> Side {
    let driver = side == Side::Driver;
    let before = IN_DRIVER.swap(driver, Ordering::Relaxed);
    if before != driver && MEASURING.load(Ordering::Relaxed) {
        request(TOGGLE_COLLECT);
    }
    if before { Side::Driver } else { Side::Lab }
}

/// To be called before anything of the lab runs.
pub fn watch_border() {
    border::watch(crossed);
}

/// Runs `f`, counting what the driver executes in it. In deterministic mode, from outside the simulation.
pub fn measure<R>(f: impl FnOnce() -> R) -> R {
    assert!(!IN_DRIVER.load(Ordering::Relaxed), "measuring begins and ends on the lab's side");
    request(START_INSTRUMENTATION);
    MEASURING.store(true, Ordering::Relaxed);
    let result = f();
    MEASURING.store(false, Ordering::Relaxed);
    request(STOP_INSTRUMENTATION);
    result
}
