//! What the benchmarks share.
//!
//! * [`rig`]: a host with the driver whose directory knows any number of peers, and frames to and from them.
//! * [`callgrind`]: counting the driver's instructions and no others, asked of callgrind from inside.
//! * [`profile`]: reading what callgrind wrote.
//! * [`cases`]: what is measured.

pub mod callgrind;
pub mod cases;
pub mod profile;
pub mod rig;
