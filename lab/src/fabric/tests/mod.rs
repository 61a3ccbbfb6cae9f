//! The fabric as a whole: what its callers may rely on, rule by rule.

mod bench;
mod faults;
mod groups;
mod invariants;
mod management;
mod opensm;
mod paths;
mod records;
mod transmit;
