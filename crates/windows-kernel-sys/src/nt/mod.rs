//! NT: what `ntoskrnl.exe` defines, one file for each of its prefixes.

mod ex;
mod imports;
mod io;
mod ke;
mod mm;
mod status;
mod types;

pub use ex::*;
pub use imports::*;
pub use io::*;
pub use ke::*;
pub use mm::*;
pub use status::*;
pub use types::*;

#[cfg(feature = "abi-check")]
pub(crate) const LAYOUTS: &[&[crate::Layout]] = &[types::LAYOUTS, ke::LAYOUTS, io::LAYOUTS, mm::LAYOUTS];
