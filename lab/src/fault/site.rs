//! Where a call was made from.

use std::ffi::c_void;

use super::walk::walk;
use crate::{image, sim};

/// Frames kept of a call stack.
const DEPTH: usize = 24;

/// A call stack, by address, down to where the lab called the driver. Two stacks are the same site if all their frames are.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Site {
    frames: Vec<usize>,
}

impl Site {
    /// The stack that leads here, innermost first: the driver's frames, or all if no driver was called.
    #[inline(never)]
    pub fn here() -> Self {
        let mut frames = Vec::with_capacity(DEPTH);
        let border = sim::stack_mark().unwrap_or(usize::MAX);
        walk(border, &mut |frame| {
            frames.push(frame);
            frames.len() < DEPTH
        });
        Self { frames }
    }

    /// A number for the site that is the same in every run of the same executable and driver image.
    pub fn id(&self) -> u64 {
        // Addresses move with the load address of the executable or of the driver image, differences do not.
        let own = Self::here as *const () as usize;
        let offset = |frame: usize| match image::place(frame) {
            Some(place) => u64::from(place.offset) | 1 << 63,
            None => frame.wrapping_sub(own) as u64,
        };
        self.frames.iter().fold(0xCBF2_9CE4_8422_2325, |hash, &frame| {
            (hash ^ offset(frame)).wrapping_mul(0x0000_0100_0000_01B3).rotate_left(29)
        })
    }

    /// The frames by name, innermost first, without those of the lab that recorded it.
    pub fn frames(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for &ip in &self.frames {
            // The return address may belong to the next line; the byte before it is in the call.
            lines.extend(image::describe(ip.wrapping_sub(1)));
            backtrace::resolve(ip.wrapping_sub(1) as *mut c_void, |symbol| {
                let Some(name) = symbol.name() else { return };
                let name = format!("{name:#}");
                let place = match (symbol.filename().and_then(|file| file.file_name()), symbol.lineno()) {
                    (Some(file), Some(line)) => format!(" ({}:{line})", file.to_string_lossy()),
                    _ => String::new(),
                };
                lines.push(format!("{name}{place}"));
            });
        }
        let own = |line: &String| {
            ["ipoib_lab::fault", "ipoib_lab::sim", "backtrace::", "corosensei", "core::", "std::", "alloc::"]
                .iter()
                .any(|prefix| line.trim_start_matches('<').starts_with(prefix))
        };
        lines.retain(|line| !own(line));
        lines
    }
}
