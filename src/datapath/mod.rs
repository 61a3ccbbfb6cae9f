//! A frame's way down and up.
