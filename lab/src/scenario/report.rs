//! What a run found, as data: the one source of both the text and the JSON.
//!
//! Everything here but [`Wall`] depends on the seed and the options alone.

use serde::Serialize;

/// The whole run. Serialises to the object that `--json` prints.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// The seed that replays the run.
    pub seed: u64,
    /// `deterministic` or `threaded`.
    pub mode: &'static str,
    /// Hosts in the order of their numbers.
    pub hosts: Vec<Host>,
    /// Whether every host that knows a peer knows it by the same 6-byte address.
    pub addresses_agree: bool,
    /// ICMP echo, all to all.
    pub ping: Ping,
    /// One TCP transfer per pair of hosts.
    pub transfers: Vec<Transfer>,
    /// What happened to the fabric in the middle of a transfer.
    pub disturbances: Vec<Disturbance>,
    /// Frames as the hosts' adapters counted them, all hosts together.
    pub frames: Frames,
    /// Virtual time of the whole run, nanoseconds. Wall-clock in a threaded run, so zero there.
    pub virtual_ns: u64,
    /// Hash over the trace of every scheduling decision and every event. Equal for equal seeds.
    pub trace: String,
    /// Verifier rules broken.
    pub violations: usize,
    /// The broken rules: name, call and detail.
    pub violation_list: Vec<String>,
    /// Objects left behind after unload.
    pub leaks: usize,
    /// What was left behind: kind and where it was made.
    pub leak_list: Vec<String>,
    /// Whether everything arrived intact and nothing was broken or left behind.
    pub passed: bool,
    /// Why it did not pass, one line each.
    pub failures: Vec<String>,
    /// Figures of this machine's clock.
    pub wall: Wall,
}

/// One simulated Windows host and its adapter.
#[derive(Debug, Default, Serialize)]
pub struct Host {
    /// `host1`, `host2`, ...
    pub name: String,
    /// Port GUID, 16 hex digits.
    pub port_guid: String,
    /// Base LID that the subnet manager assigned.
    pub lid: u16,
    /// Queue pair number of the adapter's UD QP.
    pub qpn: u32,
    /// The 20-byte IPoIB hardware address (RFC 4391 section 9.1.1), hex.
    pub ipoib_address: String,
    /// The Ethernet address that Windows sees as its own.
    pub mac: String,
    /// The Ethernet address that the other hosts have for it; one entry if they agree.
    pub seen_as: Vec<String>,
    /// How many other hosts have it in their neighbour table.
    pub seen_by: usize,
    /// IPv4 address.
    pub ipv4: String,
    /// IPv6 link-local address.
    pub ipv6: String,
    /// Transitions of the adapter's QP, in order of time.
    pub timeline: Vec<Step>,
}

/// One transition of a QP's state.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Step {
    /// Virtual time, nanoseconds.
    pub at_ns: u64,
    /// State before.
    pub from: String,
    /// State after.
    pub to: String,
    /// IRQL at which the verb was called.
    pub irql: u8,
    /// The callback or work item that called it.
    pub cause: String,
}

/// ICMP echo requests and their answers.
#[derive(Debug, Default, Clone, Copy, Serialize)]
pub struct Echo {
    /// Requests sent.
    pub sent: u64,
    /// Replies that came back intact.
    pub received: u64,
    /// Requests without a reply.
    pub lost: u64,
    /// Mean round-trip time, nanoseconds of virtual time.
    pub mean_rtt_ns: u64,
}

/// Both IP versions.
#[derive(Debug, Default, Clone, Copy, Serialize)]
pub struct Ping {
    /// ICMP.
    pub ipv4: Echo,
    /// ICMPv6.
    pub ipv6: Echo,
}

/// A TCP stream from one host to another.
#[derive(Debug, Default, Clone, Serialize)]
pub struct Transfer {
    /// Sending host.
    pub from: String,
    /// Receiving host.
    pub to: String,
    /// Bytes the sender was given.
    pub bytes: u64,
    /// Bytes that arrived, in order.
    pub received: u64,
    /// Whether the hash of what arrived is the hash of what was sent.
    pub intact: bool,
    /// From the first byte to the last, nanoseconds of virtual time.
    pub duration_ns: u64,
    /// Throughput, megabits per second of virtual time.
    pub mbit_s: u64,
}

/// A fault that the run injected on purpose, in the middle of a transfer.
#[derive(Debug, Default, Clone, Serialize)]
pub struct Disturbance {
    /// What was done.
    pub what: String,
    /// Virtual time when it was done, nanoseconds.
    pub at_ns: u64,
    /// How much of the transfer had arrived by then, bytes.
    pub after_bytes: u64,
    /// Longest time without progress afterwards, nanoseconds.
    pub stall_ns: u64,
    /// Packets that the fabric lost because of it.
    pub packets_lost: u64,
    /// Whether the transfer arrived intact all the same.
    pub recovered: bool,
    /// QPN and MAC of the disturbed host are what they were before.
    pub identity_unchanged: bool,
}

/// Frames over all adapters.
#[derive(Debug, Default, Clone, Copy, Serialize)]
pub struct Frames {
    /// Frames that the adapters sent.
    pub sent: u64,
    /// Frames that the adapters handed up.
    pub received: u64,
    /// Packets lost in the fabric inside of the disturbances.
    pub lost_in_disturbances: u64,
    /// Packets lost in the fabric at any other time, and frames dropped by an adapter.
    pub lost: u64,
}

/// This machine's clock: the only part that differs between two runs of one seed.
#[derive(Debug, Default, Clone, Copy, Serialize)]
pub struct Wall {
    /// Seconds from start to end.
    pub seconds: f64,
    /// Packets that the fabric carried per second.
    pub packets_per_second: f64,
}
