//! The fabric as a whole: what its callers may rely on, rule by rule.

mod bench;
mod faults;
mod groups;
mod invariants;
mod management;
mod paths;
mod records;
mod transmit;
