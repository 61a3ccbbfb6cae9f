//! What is known of the port: read when it becomes active, and again after every change.

use crate::ib::ca::PortAttributes;

/// The port, as IBAL last described it. Numbers in host order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortFacts {
    /// Base LID; 0 before the SM assigned one.
    pub lid: u16,
    /// LID mask control.
    pub lmc: u8,
    /// Entry 0 of the GID table.
    pub gid: [u8; 16],
    /// Where the partition is in the P_Key table; `None` if it is not.
    pub pkey_index: Option<u16>,
    /// The entry there, with its membership bit.
    pub pkey: u16,
    /// Rate code of the link.
    pub rate_code: u8,
    /// MTU code of the link.
    pub mtu_code: u8,
    /// Bits of data a second.
    pub data_rate: u64,
}

impl PortFacts {
    /// Reads them, for the partition `pkey`.
    pub fn read(port: PortAttributes<'_>, pkey: u16) -> Self {
        let pkey_index = port.pkey_index(pkey);
        Self {
            lid: port.lid(),
            lmc: port.lmc(),
            gid: port.gids().next().unwrap_or_default(),
            pkey_index,
            pkey: pkey_index.and_then(|index| port.pkeys().nth(usize::from(index))).unwrap_or(pkey),
            rate_code: port.rate_code(),
            mtu_code: port.mtu_code(),
            data_rate: port.data_rate(),
        }
    }
}
