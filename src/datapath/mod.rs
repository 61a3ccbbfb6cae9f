//! A frame's way down and up.

pub mod gate;
