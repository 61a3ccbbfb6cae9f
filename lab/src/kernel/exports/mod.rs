//! The functions a driver imports from `ntoskrnl.exe`, one file for each prefix.
//!
//! The page of each is `wdm/nf-wdm-<name in lower case>` of the DDI reference unless it says otherwise.

pub mod crt;
pub mod ex;
pub mod io;
pub mod ke;
pub mod mm;
pub mod rtl;
