//! A fabric with its subnet manager and hosts, in one simulation.

use std::sync::Arc;

use super::DriverSource;
use super::host::{BootError, Host, HostConfig};
use crate::fabric::topology::{LinkSettings, TopologyError};
use crate::fabric::{Fabric, FabricConfig, Topology};
use crate::hca::{Limits, Net};
use crate::kernel::MachineConfig;
use crate::ndis::AdapterConfig;
use crate::sim::{Lock, Nanos, Outcome, SECOND, Sim, SimConfig};

/// How a subnet is set up.
#[derive(Clone, Debug)]
pub struct SubnetConfig {
    /// Hosts, 1 to 256.
    pub hosts: usize,
    /// Seed, mode and costs of the simulation.
    pub sim: SimConfig,
    /// Links and switches.
    pub links: LinkSettings,
    /// The subnet manager. Its seed is that of `sim`.
    pub manager: crate::fabric::manager::ManagerConfig,
    /// Every host's machine; the name is replaced by the host's.
    pub machine: MachineConfig,
    /// Every host's adapter; the name is replaced by the host's.
    pub adapter: AdapterConfig,
    /// Limits of every HCA.
    pub limits: Limits,
    /// The driver that the hosts load.
    pub source: DriverSource,
}

impl SubnetConfig {
    /// `hosts` hosts on the default fabric, deterministic, with the driver of the environment
    /// ([`DriverSource::of_environment`]).
    pub fn new(hosts: usize, seed: u64) -> Self {
        Self {
            hosts,
            sim: SimConfig::seeded(seed),
            links: LinkSettings::default(),
            manager: crate::fabric::manager::ManagerConfig::default(),
            machine: MachineConfig::named("host"),
            adapter: AdapterConfig::named("host"),
            limits: Limits::default(),
            source: DriverSource::of_environment(),
        }
    }
}

/// Why a subnet did not get where it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfinished {
    /// The run ended by itself: a broken rule, a deadlock, time is up.
    Run(Outcome),
    /// A host's driver did not start.
    Boot(String, BootError),
}

impl std::fmt::Display for Unfinished {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Run(outcome) => write!(f, "{outcome}"),
            Self::Boot(host, error) => write!(f, "{host} did not come up: {error:x?}"),
        }
    }
}

impl std::error::Error for Unfinished {}

/// Longest that any step of a life may take, in simulated time.
const STEP_LIMIT: Nanos = 120 * SECOND;

/// First queue pair number of host 0; each host begins elsewhere, as HCAs do that have run for a while.
const FIRST_QPN: u32 = 0x48;

/// A fabric, its subnet manager, its hosts.
pub struct Subnet {
    /// The simulation. Shut down when the subnet is dropped.
    pub sim: Sim,
    /// The fabric in time.
    pub net: Net,
    /// The hosts, host1 first.
    pub hosts: Vec<Arc<Host>>,
}

impl Subnet {
    /// Wires the fabric and plugs the hosts in. The subnet manager begins its sweep; no driver runs yet.
    pub fn new(config: &SubnetConfig) -> Result<Self, TopologyError> {
        let sim = Sim::new(config.sim.clone());
        let topology = Topology::default_for(config.hosts, config.links)?;
        let fabric =
            Fabric::new(topology, FabricConfig { seed: config.sim.seed, manager: config.manager.clone() });
        let net = Net::new(&sim, fabric);
        let hosts = (0..config.hosts)
            .map(|index| {
                let name = format!("host{}", index + 1);
                let port =
                    net.with(|fabric, _| fabric.topology().host(index)).expect("the topology has this host");
                let machine = MachineConfig { name: name.clone(), ..config.machine.clone() };
                let host = HostConfig {
                    source: config.source.clone(),
                    adapter: AdapterConfig { name, ..config.adapter.clone() },
                    first_qpn: FIRST_QPN + 0x11 * index as u32,
                    limits: config.limits,
                };
                Arc::new(Host::new(&net, index as u16, port, machine, host))
            })
            .collect();
        Ok(Self { sim, net, hosts })
    }

    /// Boots every host and waits for every link.
    pub fn bring_up(&self) -> Result<(), Unfinished> {
        self.boot()?;
        self.wait_for("links", |subnet| subnet.hosts.iter().all(|host| host.link_is_up()))
    }

    /// Boots every host, all at once.
    pub fn boot(&self) -> Result<(), Unfinished> {
        let failed = Arc::new(Lock::new(None));
        self.on_every_host("boot", {
            let failed = Arc::clone(&failed);
            move |host| {
                if let Err(error) = host.boot() {
                    failed.lock().get_or_insert((host.name.clone(), error));
                }
            }
        })?;
        let failed = failed.lock().take();
        failed.map_or(Ok(()), |(name, error)| Err(Unfinished::Boot(name, error)))
    }

    /// Pauses, halts and unloads every host, all at once.
    pub fn stop(&self) -> Result<(), Unfinished> {
        self.on_every_host("stop", Host::stop)
    }

    /// Runs `body` on every host in a thread of its own, and waits for all.
    pub fn on_every_host(
        &self,
        name: &str,
        body: impl Fn(&Host) + Clone + Send + 'static,
    ) -> Result<(), Unfinished> {
        let threads: Vec<_> = self
            .hosts
            .iter()
            .map(|host| {
                let (me, body) = (Arc::clone(host), body.clone());
                host.machine.spawn_thread(name, move || body(&me))
            })
            .collect();
        self.wait_for(name, |_| threads.iter().all(crate::sim::ThreadHandle::ended))
    }

    /// Runs `body` in a thread of one host and gives its result.
    pub fn on_host<T: Send + 'static>(
        &self,
        index: usize,
        name: &str,
        body: impl FnOnce(&Host) -> T + Send + 'static,
    ) -> Result<T, Unfinished> {
        let host = Arc::clone(&self.hosts[index]);
        self.hosts[index].machine.run(name, STEP_LIMIT, move || body(&host)).map_err(Unfinished::Run)
    }

    /// Lets the simulation run until `done`, at most two minutes of its time. `what` is for whoever reads the code.
    pub fn wait_for(&self, what: &str, done: impl Fn(&Self) -> bool) -> Result<(), Unfinished> {
        let _ = what;
        match self.sim.run_until(self.sim.now() + STEP_LIMIT, |_| done(self)) {
            Outcome::Done => Ok(()),
            outcome => Err(Unfinished::Run(outcome)),
        }
    }

    /// Lets the simulation run for `duration`.
    pub fn run_for(&self, duration: Nanos) -> Result<(), Unfinished> {
        match self.sim.run_for(duration) {
            Outcome::Done | Outcome::Deadline | Outcome::Idle => Ok(()),
            outcome => Err(Unfinished::Run(outcome)),
        }
    }
}

impl Host {
    /// Whether the driver has indicated its link up.
    pub fn link_is_up(&self) -> bool {
        self.adapter().is_some_and(|adapter| adapter.link().is_up())
    }
}

impl Drop for Subnet {
    fn drop(&mut self) {
        self.sim.shutdown();
    }
}
