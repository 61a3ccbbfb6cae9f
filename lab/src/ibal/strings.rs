//! Names of statuses, as C strings: `get_err_str` and `get_wc_status_str`.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char};
use std::sync::OnceLock;

use ibal_sys::{ib_api_status_t, ib_wc_status_t};

/// Names by number. The strings live as long as the process, as the access layer's tables do.
struct Names(BTreeMap<i32, CString>);

impl Names {
    fn new(names: &[(&str, i32)]) -> Self {
        Self(names.iter().filter_map(|(name, number)| Some((*number, CString::new(*name).ok()?))).collect())
    }

    fn get(&self, number: i32, unknown: &'static CStr) -> *const c_char {
        self.0.get(&number).map_or(unknown.as_ptr(), |name| name.as_ptr())
    }
}

/// The name of a status.
pub fn status(status: ib_api_status_t) -> *const c_char {
    static NAMES: OnceLock<Names> = OnceLock::new();
    NAMES.get_or_init(|| Names::new(ib_api_status_t::NAMES)).get(status.0, c"IB_UNKNOWN_ERROR")
}

/// The name of a completion status.
pub fn completion(status: ib_wc_status_t) -> *const c_char {
    static NAMES: OnceLock<Names> = OnceLock::new();
    NAMES.get_or_init(|| Names::new(ib_wc_status_t::NAMES)).get(status.0, c"IB_WCS_UNKNOWN")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ibal_sys::{IB_TIMEOUT, IB_WCS_WR_FLUSHED_ERR};

    /// `ib_get_err_str`: a name for each value, and for any other the name of the last.
    #[test]
    fn names() {
        // SAFETY: both functions return strings that live as long as the process.
        let text = |p| unsafe { CStr::from_ptr(p) }.to_str().unwrap();
        assert_eq!(text(status(IB_TIMEOUT)), "IB_TIMEOUT");
        assert_eq!(text(status(ib_api_status_t(999))), "IB_UNKNOWN_ERROR");
        assert_eq!(text(completion(IB_WCS_WR_FLUSHED_ERR)), "IB_WCS_WR_FLUSHED_ERR");
        assert_eq!(text(completion(ib_wc_status_t(-1))), "IB_WCS_UNKNOWN");
    }
}
