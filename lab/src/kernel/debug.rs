//! What the driver prints.

use std::collections::VecDeque;

use super::Machine;
use crate::sim::{Lock, Nanos, TraceEvent};

/// Lines kept.
const CAPACITY: usize = 10_000;

/// A line that the driver printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugLine {
    /// When.
    pub at: Nanos,
    /// `DPFLTR_*_LEVEL`: 0 error, 1 warning, 2 trace, 3 information.
    pub level: u32,
    /// The text.
    pub text: String,
}

/// The last lines a machine's driver printed.
#[derive(Default)]
pub(super) struct DebugLog(Lock<VecDeque<DebugLine>>);

impl Machine {
    /// Adds a line to the debug output.
    pub fn debug_print(&self, level: u32, text: &str) {
        let text = text.trim_end();
        self.sim().trace(TraceEvent::text("print", u64::from(self.id()), text));
        let line = DebugLine { at: self.sim().now(), level, text: text.to_owned() };
        let mut lines = self.0.debug.0.lock();
        if lines.len() == CAPACITY {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// The debug output so far.
    pub fn debug_lines(&self) -> Vec<DebugLine> {
        self.0.debug.0.lock().iter().cloned().collect()
    }
}
