//! Captures of whole InfiniBand packets.
