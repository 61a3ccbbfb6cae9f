//! Address vectors: the path that a datagram takes (IBA vol. 1 §11.2.2).

use crate::sim::Lock;
use std::sync::atomic::{AtomicU32, Ordering};

use super::handle::Handle;
use crate::fabric::ids::Gid;

/// Global route of an address vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GlobalRoute {
    /// Traffic class.
    pub traffic_class: u8,
    /// Flow label, 20 bits.
    pub flow_label: u32,
    /// Hop limit.
    pub hop_limit: u8,
    /// Index of the source GID in the port's table: the GID itself is read when a packet is sent.
    pub sgid_index: u8,
    /// Destination GID.
    pub dgid: Gid,
}

/// Attributes of an address vector, host order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AvAttr {
    /// Port of the HCA, from 1.
    pub port: u8,
    /// Service level, 4 bits.
    pub sl: u8,
    /// Destination LID.
    pub dlid: u16,
    /// Low bits of the source LID.
    pub path_bits: u8,
    /// Static rate as IBA codes it; 0 is the port's own.
    pub static_rate: u8,
    /// GRH to send, if any.
    pub grh: Option<GlobalRoute>,
}

/// An address vector that the driver made.
#[derive(Debug)]
pub struct Av {
    /// Its handle.
    pub handle: Handle,
    /// Protection domain.
    pub pd: Handle,
    attr: Lock<AvAttr>,
    users: AtomicU32,
}

impl Av {
    /// A new address vector.
    pub fn new(handle: Handle, pd: Handle, attr: AvAttr) -> Self {
        Self { handle, pd, attr: Lock::new(attr), users: AtomicU32::new(0) }
    }

    /// Its attributes now.
    pub fn attr(&self) -> AvAttr {
        *self.attr.lock()
    }

    /// Replaces them.
    pub fn modify(&self, attr: AvAttr) {
        *self.attr.lock() = attr;
    }

    /// A posted send starts to use it.
    pub fn acquire(&self) {
        self.users.fetch_add(1, Ordering::AcqRel);
    }

    /// That send is done.
    pub fn release(&self) {
        self.users.fetch_sub(1, Ordering::AcqRel);
    }

    /// Posted sends that still use it: while there are any it must not be destroyed (§11.2.2.4).
    pub fn users(&self) -> u32 {
        self.users.load(Ordering::Acquire)
    }
}
