//! The largest stack frame.

use super::{Findings, symbols::Symbols, unwind::Function};

/// A kernel stack is 24 KiB and shared with everyone below (Windows driver docs, "Using the kernel stack").
pub(super) const LIMIT: u32 = 2048;

/// The largest frame, and each function above [`LIMIT`].
pub(super) fn check(functions: &[Function], symbols: &Symbols) -> (u32, Findings) {
    let findings = functions
        .iter()
        .filter(|function| function.frame > LIMIT)
        .map(|function| format!("{} uses {} bytes of stack", symbols.name(function.begin), function.frame))
        .collect();
    (functions.iter().map(|function| function.frame).max().unwrap_or(0), findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_frames_above_the_limit_are_findings() {
        let function = |frame| Function { begin: frame, end: frame + 1, frame, saved_xmm: 0 };
        let (largest, findings) = check(&[LIMIT - 8, LIMIT, LIMIT + 8].map(function), &Symbols::default());
        assert_eq!((largest, findings), (LIMIT + 8, vec!["0x808 uses 2056 bytes of stack".to_owned()]));
    }
}
