//! The report as a person reads it.

// Figures are rounded for reading anyway.
#![allow(clippy::cast_precision_loss)]

use std::fmt::{self, Display, Write};

use super::report::{Disturbance, Echo, Host, Report, Transfer};

/// Most hosts whose details are listed one by one; a larger run shows the first and says how many more there are.
const LISTED: usize = 8;

/// Nanoseconds in the unit that suits their size.
pub struct Duration(pub u64);

impl Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0 as f64;
        let text = match self.0 {
            0..1_000 => format!("{ns:.0} ns"),
            1_000..1_000_000 => format!("{:.1} us", ns / 1e3),
            1_000_000..1_000_000_000 => format!("{:.2} ms", ns / 1e6),
            _ => format!("{:.3} s", ns / 1e9),
        };
        f.pad(&text)
    }
}

/// Bytes with a binary unit.
pub struct Bytes(pub u64);

impl Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.0 {
            0..1_024 => format!("{} B", self.0),
            1_024..1_048_576 => format!("{:.1} KiB", self.0 as f64 / 1_024.0),
            1_048_576..1_073_741_824 => format!("{:.1} MiB", self.0 as f64 / 1_048_576.0),
            _ => format!("{:.2} GiB", self.0 as f64 / 1_073_741_824.0),
        };
        f.pad(&text)
    }
}

/// The addresses: a row for each host, and what the others see for it.
pub fn addresses(hosts: &[Host], agree: bool) -> String {
    let mut out = heading("Addresses");
    for host in hosts.iter().take(LISTED) {
        let seen = match host.seen_as.as_slice() {
            [] => "not known to any other host".to_owned(),
            all => format!("{} by {} of {} others", all.join(", "), host.seen_by, hosts.len() - 1),
        };
        line(
            &mut out,
            format_args!(
                "  {:<8} GUID {}  LID {:<5} QPN {:#08x}",
                host.name, host.port_guid, host.lid, host.qpn
            ),
        );
        line(&mut out, format_args!("           20-byte   {}", host.ipoib_address));
        line(
            &mut out,
            format_args!("           6-byte    {}   IPv4 {}   IPv6 {}", host.mac, host.ipv4, host.ipv6),
        );
        line(&mut out, format_args!("           seen as   {seen}"));
    }
    more(&mut out, hosts.len());
    let verdict =
        if agree { "every host sees the same address for a peer" } else { "HOSTS DISAGREE about a peer" };
    line(&mut out, format_args!("  {verdict}"));
    out
}

/// The bring-up as a timeline: each transition of each QP with its IRQL and its cause.
pub fn timeline(hosts: &[Host], title: &str) -> String {
    let mut out = heading(title);
    let mut steps: Vec<_> = hosts
        .iter()
        .take(LISTED)
        .flat_map(|host| host.timeline.iter().map(move |step| (step.at_ns, host, step)))
        .collect();
    steps.sort_by_key(|(at, ..)| *at);
    for (at, host, step) in steps {
        line(
            &mut out,
            format_args!(
                "  {:>12}  {:<8} QP {:#08x}  {:>5} -> {:<5}  {}  {}",
                Duration(at),
                host.name,
                host.qpn,
                step.from,
                step.to,
                irql(step.irql),
                step.cause
            ),
        );
    }
    more(&mut out, hosts.len());
    out
}

/// Both pings in two lines.
pub fn ping(report: &Report) -> String {
    let mut out = heading("Ping, all to all");
    for (name, echo) in [("IPv4", &report.ping.ipv4), ("IPv6", &report.ping.ipv6)] {
        let Echo { sent, received, lost, mean_rtt_ns } = *echo;
        line(
            &mut out,
            format_args!(
                "  {name}  {sent} sent, {received} received, {lost} lost, mean {}",
                Duration(mean_rtt_ns)
            ),
        );
    }
    out
}

/// The transfers, one a line.
pub fn transfers(transfers: &[Transfer]) -> String {
    let mut out = heading("TCP, one transfer per pair");
    for transfer in transfers.iter().take(LISTED) {
        line(&mut out, format_args!("  {}", one_transfer(transfer)));
    }
    if let Some(rest) = transfers.get(LISTED..).filter(|rest| !rest.is_empty()) {
        let intact = rest.iter().filter(|transfer| transfer.intact).count();
        let bytes = rest.iter().map(|transfer| transfer.received).sum();
        line(
            &mut out,
            format_args!("  ... and {} more, {intact} of them intact, {}", rest.len(), Bytes(bytes)),
        );
    }
    out
}

/// One finished transfer.
pub fn one_transfer(transfer: &Transfer) -> String {
    format!(
        "{:>7} -> {:<7}  {:>10} in {:>10}  {:>6} Mbit/s  {}",
        transfer.from,
        transfer.to,
        Bytes(transfer.received),
        Duration(transfer.duration_ns),
        transfer.mbit_s,
        if transfer.intact { "intact" } else { "DAMAGED" }
    )
}

/// What was disturbed on purpose and what it cost.
pub fn disturbances(all: &[Disturbance]) -> String {
    let mut out = heading("Disturbed in the middle of a transfer");
    for event in all {
        line(
            &mut out,
            format_args!("  {} at {}, after {}", event.what, Duration(event.at_ns), Bytes(event.after_bytes)),
        );
        line(
            &mut out,
            format_args!(
                "      {} packets lost, stalled {}, {}, QPN and MAC {}",
                event.packets_lost,
                Duration(event.stall_ns),
                if event.recovered { "transfer intact" } else { "TRANSFER DAMAGED" },
                if event.identity_unchanged { "unchanged" } else { "CHANGED" }
            ),
        );
    }
    out
}

/// How the hosts ended.
pub fn ends(report: &Report) -> String {
    let mut out = heading("Halted and unloaded");
    let transitions: usize = report.hosts.iter().map(|host| host.timeline.len()).sum();
    let (hosts, leaks) = (report.hosts.len(), report.leaks);
    line(
        &mut out,
        format_args!("  {hosts} hosts, {hosts} queue pairs, {transitions} transitions; left behind: {leaks}"),
    );
    out
}

/// The verifier's summary and the verdict.
pub fn verdict(report: &Report) -> String {
    let mut out = heading("Verifier");
    line(&mut out, format_args!("  {} violations, {} leaks", report.violations, report.leaks));
    for entry in report.violation_list.iter().chain(&report.leak_list) {
        line(&mut out, format_args!("    {entry}"));
    }
    let frames = report.frames;
    line(
        &mut out,
        format_args!(
            "  {} frames sent, {} received, {} packets lost in the disturbances, {} at any other time",
            frames.sent, frames.received, frames.lost_in_disturbances, frames.lost
        ),
    );
    line(
        &mut out,
        format_args!(
            "  seed {}, trace {}, {} simulated in {:.1} s",
            report.seed,
            report.trace,
            Duration(report.virtual_ns),
            report.wall.seconds
        ),
    );
    for failure in &report.failures {
        line(&mut out, format_args!("  FAILED: {failure}"));
    }
    line(&mut out, format_args!("\n{}", if report.passed { "PASSED" } else { "FAILED" }));
    out
}

fn irql(level: u8) -> &'static str {
    match level {
        0 => "PASSIVE_LEVEL ",
        1 => "APC_LEVEL     ",
        2 => "DISPATCH_LEVEL",
        _ => "above DISPATCH",
    }
}

fn heading(title: &str) -> String {
    format!("\n{title}\n")
}

fn line(out: &mut String, text: fmt::Arguments<'_>) {
    let _infallible = writeln!(out, "{text}");
}

fn more(out: &mut String, hosts: usize) {
    if hosts > LISTED {
        line(out, format_args!("  ... and {} hosts more", hosts - LISTED));
    }
}
