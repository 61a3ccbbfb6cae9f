//! The main job: hosts come up, ping each other, carry TCP, are disturbed in the middle of it, and go down in order.

use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use super::report::{Disturbance, Echo, Host as HostReport, Report, Step, Transfer as TransferReport};
use super::subnet::{Subnet, SubnetConfig, Unfinished};
use super::{DriverSource, Host};
use crate::fabric::manager::Restart;
use crate::hca::log::Event;
use crate::sim::{MILLISECOND, Mode, Nanos, SimConfig};
use crate::stack::ip::{HostStack, Ping, PingOptions, StackConfig, TcpOptions, Transfer};

/// What is to be done.
#[derive(Clone, Debug)]
pub struct MainJob {
    /// Hosts, 2 to 256.
    pub hosts: usize,
    /// Seed of every choice.
    pub seed: u64,
    /// Bytes of each transfer; `None` for [`MainJob::default_bytes`].
    pub bytes: Option<u64>,
    /// Deterministic or threaded.
    pub mode: Mode,
    /// The driver that the hosts load.
    pub source: DriverSource,
}

/// Who watches a run.
pub trait Observer {
    /// The subnet is wired; nothing has run yet.
    fn wired(&mut self, subnet: &Subnet) {
        let _ = subnet;
    }

    /// A part of the run begins.
    fn begin(&mut self, what: &str) {
        let _ = what;
    }

    /// A part of the run is over, and `report` has its results.
    fn finished(&mut self, part: Part, report: &Report) {
        let _ = (part, report);
    }

    /// `done` of `total` bytes have arrived.
    fn progress(&mut self, what: &str, done: u64, total: u64) {
        let _ = (what, done, total);
    }
}

/// The parts of a run, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Every link is up.
    BringUp,
    /// Ping, all to all.
    Ping,
    /// A transfer per pair.
    Transfers,
    /// Transfers with a disturbance.
    Disturbances,
    /// What the hosts know about each other.
    Addresses,
    /// Everything is halted and unloaded.
    Stop,
}

/// Bytes of all transfers together, if nobody says how many each should have.
const DEFAULT_TOTAL: u64 = 96 << 20;
/// How long the cable is out.
const FLAP: Nanos = 40 * MILLISECOND;
/// How long nobody answers for the subnet.
const MANAGER_DOWNTIME: Nanos = 60 * MILLISECOND;
/// Port that receivers listen on, and one more for each concurrent one.
const TCP_PORT: u16 = 5001;

impl MainJob {
    /// `hosts` hosts, deterministic, with the driver of the environment ([`DriverSource::of_environment`]).
    pub fn new(hosts: usize, seed: u64) -> Self {
        Self { hosts, seed, bytes: None, mode: Mode::Deterministic, source: DriverSource::of_environment() }
    }

    /// Bytes of each transfer: 8 MiB, less when there are many pairs, never less than 16 KiB.
    pub fn default_bytes(&self) -> u64 {
        let pairs = (self.hosts * (self.hosts - 1) / 2) as u64;
        (DEFAULT_TOTAL / pairs.max(1)).clamp(16 << 10, 8 << 20)
    }

    /// Does it all. The report says how it went; it is complete even if the run ended early.
    pub fn run(&self, observer: &mut dyn Observer) -> Report {
        let mut report = Report {
            seed: self.seed,
            mode: if self.mode == Mode::Threaded { "threaded" } else { "deterministic" },
            ..Report::default()
        };
        let sim = match self.mode {
            Mode::Deterministic => SimConfig::seeded(self.seed),
            Mode::Threaded => SimConfig::threaded(self.seed),
        };
        let config =
            SubnetConfig { sim, source: self.source.clone(), ..SubnetConfig::new(self.hosts, self.seed) };
        let subnet = match Subnet::new(&config) {
            Ok(subnet) => subnet,
            Err(error) => {
                report.failures.push(error.to_string());
                return report;
            }
        };
        observer.wired(&subnet);
        let mut run = Run { job: self, subnet: &subnet, report, observer };
        if let Err(unfinished) = run.whole() {
            run.note_end(&unfinished);
        }
        let mut report = run.report;
        report.virtual_ns = if self.mode == Mode::Threaded { 0 } else { subnet.sim.now() };
        report.trace = if self.mode == Mode::Threaded {
            String::new()
        } else {
            format!("{:016x}", subnet.sim.trace_hash())
        };
        report.passed = report.failures.is_empty() && report.violations == 0 && report.leaks == 0;
        report
    }
}

struct Run<'a> {
    job: &'a MainJob,
    subnet: &'a Subnet,
    report: Report,
    observer: &'a mut dyn Observer,
}

impl Run<'_> {
    fn whole(&mut self) -> Result<(), Unfinished> {
        self.observer.begin("bring-up");
        self.subnet.bring_up()?;
        self.start_stacks()?;
        self.describe_hosts();
        self.observer.finished(Part::BringUp, &self.report);

        self.observer.begin("ping");
        let ping4 = self.ping(|stack| stack.ipv4().map(IpAddr::from))?;
        let ping6 = self.ping(|stack| Some(stack.link_local().into()))?;
        self.report.ping.ipv4 = ping4;
        self.report.ping.ipv6 = ping6;
        for (name, echo) in [("IPv4", ping4), ("IPv6", ping6)] {
            self.check(echo.lost == 0, || {
                format!("{} of {} {name} echo requests lost", echo.lost, echo.sent)
            });
        }
        self.observer.finished(Part::Ping, &self.report);

        self.observer.begin("transfers");
        self.transfers()?;
        self.observer.finished(Part::Transfers, &self.report);

        self.observer.begin("disturbances");
        self.disturbances()?;
        self.observer.finished(Part::Disturbances, &self.report);

        self.describe_hosts();
        self.compare_addresses();
        self.observer.finished(Part::Addresses, &self.report);

        self.count_frames();
        self.observer.begin("stop");
        self.subnet.stop()?;
        self.count_leaks();
        self.observer.finished(Part::Stop, &self.report);
        Ok(())
    }

    fn check(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        if !holds {
            self.report.failures.push(otherwise());
        }
    }

    fn start_stacks(&self) -> Result<(), Unfinished> {
        self.subnet.on_every_host("bind", |host| {
            let number = host.hca.number + 1;
            let [high, low] = number.to_be_bytes();
            let config = StackConfig { ipv4: Some((Ipv4Addr::new(10, 0, high, low), 16)), ipv6: Vec::new() };
            host.start_stack(&config).expect("an adapter that runs can be bound to");
        })?;
        self.subnet.wait_for("stacks", |subnet| stacks(subnet).all(|stack| stack.is_connected()))
    }

    /// Rounds in which each host pings another one: N - 1 rounds reach everybody without a storm.
    fn ping(&self, address: impl Fn(&HostStack) -> Option<IpAddr>) -> Result<Echo, Unfinished> {
        let stacks: Vec<_> = stacks(self.subnet).collect();
        let options = PingOptions {
            count: if stacks.len() > 16 { 1 } else { 4 },
            interval: 10 * MILLISECOND,
            ..PingOptions::default()
        };
        let mut echo = Echo::default();
        let mut total: Nanos = 0;
        for distance in 1..stacks.len() {
            let pings: Vec<_> = stacks
                .iter()
                .enumerate()
                .filter_map(|(index, stack)| {
                    let target = address(&stacks[(index + distance) % stacks.len()])?;
                    Some(stack.ping(target, options))
                })
                .collect();
            self.subnet.wait_for("pings", |_| pings.iter().all(|ping| ping.report().done))?;
            for report in pings.iter().map(Ping::report) {
                echo.sent += u64::from(report.sent);
                echo.received += u64::from(report.received);
                total += report.total;
            }
        }
        echo.lost = echo.sent - echo.received;
        echo.mean_rtt_ns = total.checked_div(echo.received).unwrap_or(0);
        Ok(echo)
    }

    /// One transfer for each pair, in rounds in which each host sends one and receives one.
    fn transfers(&mut self) -> Result<(), Unfinished> {
        let stacks: Vec<_> = stacks(self.subnet).collect();
        let count = stacks.len();
        let size = self.job.bytes.unwrap_or_else(|| self.job.default_bytes());
        for distance in 1..=count / 2 {
            // At half the way round, host i to i + n/2 is the pair of host i + n/2 to i.
            let senders = if distance * 2 == count { count / 2 } else { count };
            let round: Vec<_> = (0..senders)
                .map(|from| {
                    let to = (from + distance) % count;
                    let seed = self.job.seed ^ (from as u64) << 32 ^ to as u64;
                    (from, to, transfer(&stacks[from], &stacks[to], TCP_PORT, size, seed))
                })
                .collect();
            let title = match round.as_slice() {
                [(from, to, _)] => format!("host{} -> host{}", from + 1, to + 1),
                round => format!("{} transfers at once", round.len()),
            };
            let watched = self.watch(&title, &round.iter().map(|(.., transfer)| transfer), |_| {});
            if watched.is_err() {
                let stuck = round.iter().filter(|(.., transfer)| !transfer.is_done());
                self.report.failures.extend(stuck.map(|(from, to, transfer)| {
                    let (sender, receiver) = (transfer.sender.report(), transfer.receiver.report());
                    format!(
                        "host{} -> host{}: {} of {} bytes, sender {:?}, receiver {:?}",
                        from + 1,
                        to + 1,
                        receiver.bytes,
                        transfer.size,
                        sender.state,
                        receiver.state
                    )
                }));
            }
            watched?;
            for (from, to, transfer) in &round {
                let report = self.transfer_report(*from, *to, transfer);
                self.check(report.intact, || format!("{} -> {}: not intact", report.from, report.to));
                self.report.transfers.push(report);
            }
        }
        Ok(())
    }

    fn transfer_report(&self, from: usize, to: usize, transfer: &Transfer) -> TransferReport {
        let received = transfer.receiver.report().bytes;
        let duration = transfer.duration().unwrap_or(0);
        TransferReport {
            from: self.subnet.hosts[from].name.clone(),
            to: self.subnet.hosts[to].name.clone(),
            bytes: transfer.size,
            received,
            intact: transfer.is_intact(),
            duration_ns: duration,
            mbit_s: (received * 8_000).checked_div(duration).unwrap_or(0),
        }
    }

    /// Runs until all are done, and tells the observer how far they are. `notice` sees how many bytes have arrived, as
    /// often as the simulation asks whether it is over.
    fn watch<'t>(
        &mut self,
        title: &str,
        transfers: &(impl Iterator<Item = &'t Transfer> + Clone),
        notice: impl Fn(u64),
    ) -> Result<(), Unfinished> {
        let total: u64 = transfers.clone().map(|transfer| transfer.size).sum();
        let arrived = || transfers.clone().map(|transfer| transfer.receiver.report().bytes).sum::<u64>();
        let shown = Cell::new(0);
        let observer = std::cell::RefCell::new(&mut *self.observer);
        let result = self.subnet.wait_for(title, |_| {
            let done = arrived();
            notice(done);
            if done - shown.get() > total / 100 {
                shown.set(done);
                observer.borrow_mut().progress(title, done, total);
            }
            transfers.clone().all(Transfer::is_done)
        });
        self.observer.progress(title, arrived(), total);
        result
    }

    /// A cable out and in again, then a subnet manager that restarts and forgets, each in a transfer of its own.
    fn disturbances(&mut self) -> Result<(), Unfinished> {
        let (from, to) = (0, 1);
        let port = self.subnet.hosts[to].port;
        let flap = move |subnet: &Subnet| {
            subnet.net.with(|fabric, now| fabric.set_link(now, port, false));
            let net = subnet.net.clone();
            subnet
                .sim
                .after(FLAP, "cable in", move |_| net.with(|fabric, now| fabric.set_link(now, port, true)));
        };
        self.disturb(from, to, "link flap at host2", flap)?;
        let restart = |subnet: &Subnet| {
            subnet
                .net
                .with(|fabric, now| fabric.restart_manager(now, Restart::ForgetGroups, MANAGER_DOWNTIME));
        };
        self.disturb(to, from, "subnet manager restarted, groups forgotten", restart)
    }

    fn disturb(
        &mut self,
        from: usize,
        to: usize,
        what: &str,
        act: impl Fn(&Subnet),
    ) -> Result<(), Unfinished> {
        let subnet = self.subnet;
        let stack = |index: usize| subnet.hosts[index].stack().expect("stacks are bound for the whole run");
        let size = self.job.bytes.unwrap_or(8 << 20).max(1 << 20);
        let lost_before = self.lost();
        let identity = |host: &Host| (host.qpn(), host.stack().map(|stack| stack.mac()));
        let before: Vec<_> = subnet.hosts.iter().map(|host| identity(host)).collect();
        let transfer = transfer(&stack(from), &stack(to), TCP_PORT, size, self.job.seed);

        let arrived = || transfer.receiver.report().bytes;
        subnet.wait_for("the middle", |_| arrived() > size * 2 / 5)?;
        let (at, after) = (subnet.sim.now(), arrived());
        act(subnet);

        let (last, last_at, stall) = (Cell::new(after), Cell::new(at), Cell::new(0));
        self.watch(what, &std::iter::once(&transfer), |bytes| {
            if bytes > last.get() {
                let now = subnet.sim.now();
                stall.set(stall.get().max(now - last_at.get()));
                last.set(bytes);
                last_at.set(now);
            }
        })?;
        // What the disturbance set in motion is over when every link is up again and the groups are joined.
        subnet.wait_for("links", |subnet| subnet.hosts.iter().all(|host| host.link_is_up()))?;
        subnet.run_for(200 * MILLISECOND)?;

        let after_all: Vec<_> = subnet.hosts.iter().map(|host| identity(host)).collect();
        let disturbance = Disturbance {
            what: what.to_owned(),
            at_ns: at,
            after_bytes: after,
            stall_ns: stall.get(),
            packets_lost: self.lost() - lost_before,
            recovered: transfer.is_intact(),
            identity_unchanged: before == after_all,
        };
        self.check(disturbance.recovered, || format!("{what}: transfer not intact"));
        self.check(disturbance.identity_unchanged, || format!("{what}: a QPN or MAC changed"));
        self.report.disturbances.push(disturbance);
        Ok(())
    }

    fn lost(&self) -> u64 {
        self.subnet.net.with(|fabric, _| fabric.drops().total())
    }

    fn count_frames(&mut self) {
        let all_lost = self.lost();
        let frames = &mut self.report.frames;
        for adapter in self.subnet.hosts.iter().filter_map(|host| host.adapter()) {
            let counters = adapter.counters();
            frames.sent += counters.frames_sent;
            frames.received += counters.receives;
        }
        frames.lost_in_disturbances = self.report.disturbances.iter().map(|event| event.packets_lost).sum();
        frames.lost = all_lost - frames.lost_in_disturbances;
        let lost = frames.lost;
        self.check(lost == 0, || format!("{lost} packets lost outside of the disturbances"));
    }

    fn describe_hosts(&mut self) {
        self.report.hosts = self.subnet.hosts.iter().map(|host| self.describe(host)).collect();
    }

    fn describe(&self, host: &Arc<Host>) -> HostReport {
        let port = self.subnet.net.port(host.port);
        let qpn = host.qpn().unwrap_or(0);
        let gid = port.default_gid();
        let mut address = vec![0];
        address.extend_from_slice(&qpn.to_be_bytes()[1..]);
        address.extend_from_slice(&gid.0);
        let stack = host.stack();
        HostReport {
            name: host.name.clone(),
            port_guid: format!("{:016x}", port.guid.0),
            lid: port.lid.0,
            qpn,
            ipoib_address: hex(&address),
            mac: stack.as_ref().map(|stack| hex(&stack.mac())).unwrap_or_default(),
            seen_as: Vec::new(),
            seen_by: 0,
            ipv4: stack
                .as_ref()
                .and_then(HostStack::ipv4)
                .map(|address| address.to_string())
                .unwrap_or_default(),
            ipv6: stack.as_ref().map(|stack| stack.link_local().to_string()).unwrap_or_default(),
            timeline: host.hca.log().entries().iter().filter_map(step).collect(),
        }
    }

    /// What each host knows about every other: one address for each, the same everywhere.
    fn compare_addresses(&mut self) {
        let stacks: Vec<_> = stacks(self.subnet).collect();
        for (index, stack) in stacks.iter().enumerate() {
            let own: Vec<IpAddr> = stack.addresses().to_vec();
            let mut seen_as = Vec::new();
            let mut seen_by = 0;
            for (_, other) in stacks.iter().enumerate().filter(|(other, _)| *other != index) {
                let known: Vec<_> = own.iter().flat_map(|address| other.neighbour(*address)).collect();
                seen_by += usize::from(!known.is_empty());
                seen_as.extend(known.iter().map(|mac| hex(mac)));
            }
            seen_as.sort();
            seen_as.dedup();
            let host = &mut self.report.hosts[index];
            host.seen_as = seen_as;
            host.seen_by = seen_by;
        }
        self.report.addresses_agree = self.report.hosts.iter().all(|host| host.seen_as.len() == 1);
        let agree = self.report.addresses_agree;
        self.check(agree, || "hosts disagree about the address of a peer".to_owned());
    }

    fn count_leaks(&mut self) {
        for host in &self.subnet.hosts {
            for leak in host.machine.outstanding() {
                self.report.leak_list.push(format!("{}: {leak}", host.name));
            }
        }
        self.report.leaks = self.report.leak_list.len();
    }

    fn note_end(&mut self, unfinished: &Unfinished) {
        if let Unfinished::Run(outcome) = unfinished
            && outcome.rule().is_some()
        {
            self.report.violations += 1;
            self.report.violation_list.push(outcome.to_string());
        }
        self.report.failures.push(unfinished.to_string());
    }
}

fn stacks(subnet: &Subnet) -> impl Iterator<Item = HostStack> + '_ {
    subnet.hosts.iter().filter_map(|host| host.stack())
}

fn transfer(from: &HostStack, to: &HostStack, port: u16, size: u64, seed: u64) -> Transfer {
    let address = to.ipv4().expect("every stack of the main job has an IPv4 address");
    from.tcp_transfer(to, SocketAddr::new(address.into(), port), size, seed, TcpOptions::default())
}

fn step(entry: &crate::hca::log::Entry) -> Option<Step> {
    let Event::Transition { from, to, .. } = &entry.event else { return None };
    Some(Step {
        at_ns: entry.at,
        from: format!("{from:?}").to_uppercase(),
        to: format!("{to:?}").to_uppercase(),
        irql: entry.irql,
        cause: entry.cause.clone(),
    })
}

fn hex(bytes: &[u8]) -> String {
    let digits: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.join(":")
}
