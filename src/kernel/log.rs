//! Debug output: lines of one adapter, kept in a ring and sent to the debugger. IRQL <= DISPATCH_LEVEL.
//!
//! A line is formatted into a fixed buffer and cut where that ends. Nobody ever waits for the log: under contention a
//! line is lost and counted. Lines that a peer on the fabric can cause are rate limited, and the next line that
//! passes says how many were swallowed.

use super::pool::{PoolBox, Tag};
use super::status::Result;
use super::time;
use core::cell::UnsafeCell;
use core::fmt::{self, Write as _};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use windows_kernel_sys as sys;

const TAG: Tag = Tag::new(*b"IbLg");
/// Bytes of a line, terminator included.
const LINE: usize = 160;
/// Lines that the ring keeps, for a debugger to look at after the fact.
const RING: usize = 64;
/// Rate-limited lines that pass in one period.
const BURST: u32 = 10;
/// Length of a period in milliseconds.
const PERIOD_MS: u64 = 5_000;

/// How important a line is: the debugger's filter for component IHVNETWORK decides on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Something failed.
    Error,
    /// Something unusual was dealt with.
    Warning,
    /// A step in the adapter's life.
    Info,
}

impl Level {
    const fn raw(self) -> u32 {
        match self {
            Self::Error => sys::DPFLTR_ERROR_LEVEL,
            Self::Warning => sys::DPFLTR_WARNING_LEVEL,
            Self::Info => sys::DPFLTR_INFO_LEVEL,
        }
    }
}

/// A line that is being written; always terminated. Zero bytes are an empty one.
#[derive(Clone, Copy)]
struct Line {
    bytes: [u8; LINE],
    len: usize,
}

impl Line {
    const EMPTY: Self = Self { bytes: [0; LINE], len: 0 };
}

impl fmt::Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // The last byte stays zero.
        let room = self.bytes.get_mut(self.len..LINE - 1).unwrap_or_default();
        let mut taken = 0;
        for (to, from) in room.iter_mut().zip(text.bytes()) {
            *to = from;
            taken += 1;
        }
        self.len += taken;
        Ok(())
    }
}

struct Ring {
    lines: [Line; RING],
    next: usize,
}

/// The log of one adapter.
pub struct Log {
    busy: AtomicBool,
    /// In pool of its own: too large to pass over a kernel stack with the adapter.
    ring: PoolBox<UnsafeCell<Ring>>,
    /// Lines lost because another processor was writing.
    lost: AtomicU32,
    /// Start of the period that [`Log::limited`] counts in, milliseconds since boot.
    period: AtomicU64,
    /// Rate-limited lines asked for in the period.
    asked: AtomicU32,
}

// SAFETY: `busy` lets one processor at a time reach the ring.
unsafe impl Sync for Log {}
// SAFETY: nothing in it belongs to a thread.
unsafe impl Send for Log {}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").field("lost", &self.lost).finish_non_exhaustive()
    }
}

impl Log {
    /// An empty log.
    pub fn try_new() -> Result<Self> {
        // SAFETY: zero bytes are a ring of empty lines.
        let ring = unsafe { PoolBox::try_init(TAG, |_| ())? };
        Ok(Self {
            busy: AtomicBool::new(false),
            ring,
            lost: AtomicU32::new(0),
            period: AtomicU64::new(0),
            asked: AtomicU32::new(0),
        })
    }

    /// Writes a line. The name of the adapter belongs at its head.
    pub fn line(&self, level: Level, text: fmt::Arguments<'_>) {
        if self.busy.swap(true, Ordering::Acquire) {
            self.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        // SAFETY: `busy` was free and is ours.
        let ring = unsafe { &mut *self.ring.get() };
        if let Some(line) = ring.lines.get_mut(ring.next) {
            *line = Line::EMPTY;
            // A line cannot fail: it is cut instead.
            let _ = line.write_fmt(text);
            let _ = line.write_str("\n");
            print(level, &line.bytes);
        }
        ring.next = (ring.next + 1) % RING;
        self.busy.store(false, Ordering::Release);
    }

    /// Writes a line that traffic causes, unless there were too many of late.
    pub fn limited(&self, level: Level, text: fmt::Arguments<'_>) {
        let now = time::now().as_millis() as u64;
        let start = self.period.load(Ordering::Relaxed);
        let renew = now.wrapping_sub(start) >= PERIOD_MS
            && self.period.compare_exchange(start, now, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        let before = if renew {
            let asked = self.asked.swap(1, Ordering::Relaxed);
            let swallowed = asked.saturating_sub(BURST);
            if swallowed != 0 {
                self.line(Level::Warning, format_args!("{swallowed} lines swallowed"));
            }
            0
        } else {
            self.asked.fetch_add(1, Ordering::Relaxed)
        };
        if before < BURST {
            self.line(level, text);
        }
    }

    /// How many lines were lost under contention.
    pub fn lost(&self) -> u32 {
        self.lost.load(Ordering::Relaxed)
    }
}

/// Writes a line that belongs to no adapter.
pub fn line(level: Level, text: fmt::Arguments<'_>) {
    let mut line = Line::EMPTY;
    let _ = line.write_fmt(text);
    let _ = line.write_str("\n");
    print(level, &line.bytes);
}

/// `bytes` ends with a zero byte.
fn print(level: Level, bytes: &[u8; LINE]) {
    let mut arguments: [sys::PVOID; 1] = [bytes.as_ptr().cast_mut().cast()];
    // SAFETY: the format takes one pointer to a terminated string. IRQL <= DISPATCH_LEVEL.
    unsafe {
        sys::vDbgPrintEx(sys::DPFLTR_IHVNETWORK_ID, level.raw(), c"%s".as_ptr(), arguments.as_mut_ptr());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_and_stays_terminated() {
        let mut line = Line::EMPTY;
        for _ in 0..LINE {
            line.write_str("abc").unwrap();
        }
        assert_eq!(line.len, LINE - 1);
        assert_eq!(line.bytes[LINE - 1], 0);
        assert_eq!(&line.bytes[..6], b"abcabc");
    }
}
