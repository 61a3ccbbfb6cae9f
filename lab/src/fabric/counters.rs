//! What a port counts (IBA 16.1.3.5 PortCounters and 16.1.4.11 PortCountersExtended).

/// Counters of one port. They are wide enough not to saturate; data is counted in 4-byte words, as the
/// attribute counts it, from the first byte of the LRH to the last before the VCRC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Words sent.
    pub xmit_data: u64,
    /// Words received.
    pub rcv_data: u64,
    /// Packets sent.
    pub xmit_packets: u64,
    /// Packets received.
    pub rcv_packets: u64,
    /// Packets sent to one port.
    pub unicast_xmit_packets: u64,
    /// Packets received that were for this port alone.
    pub unicast_rcv_packets: u64,
    /// Packets sent to a multicast LID.
    pub multicast_xmit_packets: u64,
    /// Packets received on a multicast LID.
    pub multicast_rcv_packets: u64,
    /// Times the link went down.
    pub link_downed: u64,
    /// Packets received with an error: wrong CRC, wrong length, wrong VL, not for this port.
    pub rcv_errors: u64,
    /// Packets a switch could not forward: no route, or the route leads back.
    pub rcv_switch_relay_errors: u64,
    /// Packets not sent because the port was down, or because they were longer than the neighbour's MTU.
    pub xmit_discards: u64,
    /// Packets not sent because of their partition.
    pub xmit_constraint_errors: u64,
    /// Packets not taken because of their partition.
    pub rcv_constraint_errors: u64,
    /// Packets with a partition the port is not in, as P_KeyViolations of PortInfo counts them.
    pub pkey_violations: u64,
    /// Packets with the wrong queue key, as Q_KeyViolations of PortInfo counts them. Counted by the HCA.
    pub qkey_violations: u64,
    /// Nanoseconds a packet was ready to go but the link was busy or out of credits.
    pub xmit_wait: u64,
}
