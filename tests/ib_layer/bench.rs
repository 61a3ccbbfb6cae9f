//! Machines with an HCA each on one fabric, and a client that notes what the access layer reports.

use std::collections::VecDeque;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ibal_sys as ib;
use ipoib::ib::ca::PortState;
use ipoib::ib::client::{AsyncEvent, Client};
use ipoib::ib::interface::Interface;
use ipoib::ib::mcast::{JoinError, Member};
use ipoib::ib::pnp::{PortEvent, PortEventKind};
use ipoib::ib::qp::QpConfig;
use ipoib::ib::query::{PathRecord, QueryError};
use ipoib::ib::resources::Resources;
use ipoib::kernel::arc::PoolArc;
use ipoib::kernel::event::sleep;
use ipoib::kernel::irql::{Dispatch, Passive};
use ipoib::kernel::pool::Tag;
use ipoib_lab::fabric::topology::PortState as FabricState;
use ipoib_lab::fabric::topology::builder::LinkSettings;
use ipoib_lab::fabric::{Fabric, FabricConfig, PortId, Topology};
use ipoib_lab::hca::{Hca, HcaConfig, Limits, Net};
use ipoib_lab::ibal::{ChildConfig, DEFAULT_PARTITION, Ibal};
use ipoib_lab::kernel::{DeviceProperties, Machine, MachineConfig};
use ipoib_lab::sim::{Outcome, OwnedSim, SECOND, Sim, SimConfig};
use windows_kernel_sys as sys;
use windows_kernel_sys::Zeroable as _;

pub const TAG: Tag = Tag::new(*b"Test");
pub const PKEY: u16 = 0xFFFF;
pub const QKEY: u32 = 0x0B1B;
pub const SIZES: QpConfig =
    QpConfig { send_depth: 16, receive_depth: 16, send_segments: 4, receive_segments: 4 };

/// What a client heard.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    Port(PortEventKind, Option<(PortState, u16)>),
    Resource(AsyncEvent),
    Query(u64, Result<PathRecord, QueryError>),
    Join(u64, Result<Member, JoinError>),
    Leave(u64),
    ReceiveReady,
    SendReady,
}

/// Notes everything.
#[derive(Default)]
pub struct Listener(Mutex<VecDeque<Heard>>);

impl Listener {
    fn heard(&self) -> MutexGuard<'_, VecDeque<Heard>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hear(&self, what: Heard) {
        self.heard().push_back(what);
    }

    /// All that was heard so far.
    pub fn all(&self) -> Vec<Heard> {
        self.heard().iter().cloned().collect()
    }

    /// Waits for something that `wanted` likes, and takes it away.
    pub fn wait<T>(&self, at: &Passive<'_>, wanted: impl Fn(&Heard) -> Option<T>) -> T {
        for _ in 0..100_000 {
            {
                let mut heard = self.heard();
                let found =
                    heard.iter().enumerate().find_map(|(i, what)| wanted(what).map(|found| (i, found)));
                if let Some((i, found)) = found {
                    heard.remove(i);
                    return found;
                }
            }
            sleep(at, Duration::from_millis(1));
        }
        panic!("never heard of; what was: {:?}", self.all());
    }

    pub fn query(&self, at: &Passive<'_>, token: u64) -> Result<PathRecord, QueryError> {
        self.wait(at, |heard| match heard {
            Heard::Query(of, result) if *of == token => Some(*result),
            _ => None,
        })
    }

    pub fn join(&self, at: &Passive<'_>, token: u64) -> Result<Member, JoinError> {
        self.wait(at, |heard| match heard {
            Heard::Join(of, result) if *of == token => Some(*result),
            _ => None,
        })
    }

    pub fn leave(&self, at: &Passive<'_>, token: u64) {
        self.wait(at, |heard| (*heard == Heard::Leave(token)).then_some(()));
    }
}

impl Client for Listener {
    fn receive_ready(&self, _at: Dispatch<'_>) {
        self.hear(Heard::ReceiveReady);
    }

    fn send_ready(&self, _at: Dispatch<'_>) {
        self.hear(Heard::SendReady);
    }

    fn port_event(&self, event: PortEvent<'_>, _at: &mut Passive<'_>) {
        self.hear(Heard::Port(event.kind, event.port.map(|port| (port.state(), port.lid()))));
    }

    fn resource_event(&self, event: AsyncEvent, _at: &mut Passive<'_>) {
        self.hear(Heard::Resource(event));
    }

    fn query_done(&self, token: u64, result: Result<PathRecord, QueryError>, _at: Dispatch<'_>) {
        self.hear(Heard::Query(token, result));
    }

    fn join_done(&self, token: u64, result: Result<Member, JoinError>, _at: &mut Passive<'_>) {
        self.hear(Heard::Join(token, result));
    }

    fn leave_done(&self, token: u64, _at: &mut Passive<'_>) {
        self.hear(Heard::Leave(token));
    }
}

/// One machine and its access layer.
#[derive(Clone)]
pub struct Host {
    pub machine: Machine,
    pub ibal: Arc<Ibal>,
    pub port: PortId,
    pub net: Net,
}

/// Several machines on one fabric.
pub struct Bench {
    sim: OwnedSim,
    pub net: Net,
    pub hosts: Vec<Host>,
}

impl Bench {
    /// `count` machines, with ports that the subnet manager has made active.
    pub fn new(count: usize, seed: u64) -> Self {
        let sim = Sim::owned(SimConfig::seeded(seed));
        let topology = Topology::default_for(count, LinkSettings::default()).unwrap();
        let ports = topology.hosts().to_vec();
        let guids: Vec<_> = ports.iter().map(|id| topology.node(topology.port(*id).node).guid).collect();
        let net = Net::new(&sim, Fabric::new(topology, FabricConfig::default()));
        let host = |(index, port): (usize, &PortId)| {
            let machine = Machine::new(&sim, MachineConfig::named(format!("host{index}")));
            let config = HcaConfig {
                number: index as u16,
                guid: guids[index],
                ports: vec![*port],
                first_qpn: 0x400 + index as u32,
                limits: Limits::default(),
            };
            let ibal = Ibal::install(&Hca::new(&net, &machine, &config));
            Host { machine, ibal, port: *port, net: net.clone() }
        };
        let hosts: Vec<_> = ports.iter().enumerate().map(host).collect();
        let bench = Self { sim, net, hosts };
        let up = || bench.hosts.iter().all(|host| bench.net.port(host.port).state == FabricState::Active);
        let outcome = bench.sim.run_until(bench.sim.now() + SECOND, |_| up());
        assert_eq!(outcome, Outcome::Done);
        bench
    }

    /// Runs `driver` at PASSIVE_LEVEL on host `host`, and looks for leaks.
    pub fn drive<T: Send + 'static>(
        &self,
        host: usize,
        driver: impl FnOnce(&Host, &mut Passive<'_>) -> T + Send + 'static,
    ) -> T {
        let host = self.hosts[host].clone();
        let machine = host.machine.clone();
        let result = machine.run("driver", 600 * SECOND, move || {
            // SAFETY: a thread of the machine runs at PASSIVE_LEVEL.
            let result = driver(&host, &mut unsafe { Passive::assume() });
            host.machine.check_leaks("the end of the test");
            result
        });
        result.unwrap_or_else(|outcome| panic!("{outcome}"))
    }
}

impl Host {
    /// Asks the bus driver, as a driver does.
    pub fn interface(&self) -> Interface {
        let device = self.ibal.create_child(ChildConfig {
            port: 1,
            pkey: DEFAULT_PARTITION,
            properties: DeviceProperties::new(),
        });
        let (table, data) = ask(device);
        let head = table.wdm;
        // SAFETY: the lab's access layer lasts as long as the machine.
        let interface = unsafe { Interface::from_raw(&table, &data) }.unwrap();
        // SAFETY: the reference that the answer took.
        unsafe { head.InterfaceDereference.unwrap()(head.Context) };
        interface
    }

    pub fn port_guid(&self) -> u64 {
        self.net.port(self.port).guid.0
    }

    pub fn lid(&self) -> u16 {
        self.net.port(self.port).lid.0
    }

    pub fn gid(&self) -> [u8; 16] {
        self.net.port(self.port).default_gid().0
    }
}

/// IRP_MN_QUERY_INTERFACE.
fn ask(device: *mut sys::DEVICE_OBJECT) -> (Box<ib::ib_al_ifc_t>, ib::ipoib_ifc_data_t) {
    let mut table = Box::new(ib::ib_al_ifc_t::zeroed());
    let mut data = ib::ipoib_ifc_data_t::zeroed();
    let mut specific = ib::ib_al_ifc_data_t {
        r#type: &ib::GUID_IPOIB_INTERFACE_DATA,
        size: size_of_val(&data) as u16,
        version: ib::IPOIB_INTERFACE_DATA_VERSION,
        p_data: (&raw mut data).cast(),
    };
    let mut result = sys::IO_STATUS_BLOCK::new(sys::STATUS_SUCCESS, 0);
    let mut event = sys::KEVENT::zeroed();
    // SAFETY: a live device at PASSIVE_LEVEL, an event and a status block that last; the lab completes at
    // once.
    let status = unsafe {
        sys::KeInitializeEvent(&raw mut event, sys::NotificationEvent, sys::FALSE);
        let irp = sys::IoBuildSynchronousFsdRequest(
            u32::from(sys::IRP_MJ_PNP),
            device,
            ptr::null_mut(),
            0,
            ptr::null_mut(),
            &raw mut event,
            &raw mut result,
        );
        let location = sys::IoGetNextIrpStackLocation(irp);
        (*location).MinorFunction = sys::IRP_MN_QUERY_INTERFACE;
        (*location).Parameters.QueryInterface = sys::IO_STACK_QUERY_INTERFACE {
            InterfaceType: &ib::GUID_IB_AL_INTERFACE,
            Size: size_of::<ib::ib_al_ifc_t>() as u16,
            Version: ib::AL_INTERFACE_VERSION,
            Interface: (&raw mut *table).cast(),
            InterfaceSpecificData: (&raw mut specific).cast(),
        };
        (*irp).IoStatus = sys::IO_STATUS_BLOCK::new(sys::STATUS_NOT_SUPPORTED, 0);
        sys::IofCallDriver(device, irp)
    };
    assert_eq!(status, sys::STATUS_SUCCESS);
    (table, data)
}

/// A client and its resources.
pub struct Driver {
    pub interface: Interface,
    pub listener: PoolArc<Listener>,
    pub resources: Resources,
}

impl Driver {
    pub fn start(host: &Host, at: &Passive<'_>) -> Self {
        let interface = host.interface();
        let listener = PoolArc::try_new(TAG, Listener::default()).unwrap();
        let resources = Resources::create(&interface, &listener, |_| SIZES, at).unwrap();
        Self { interface, listener, resources }
    }

    /// To RTS.
    pub fn up(&self, at: &Passive<'_>) {
        let qp = &self.resources.qp;
        qp.to_init(1, QKEY, 0, at).unwrap();
        qp.to_ready_to_receive(at).unwrap();
        qp.to_ready_to_send(0, at).unwrap();
        self.resources.receive_cq.rearm().unwrap();
        self.resources.send_cq.rearm().unwrap();
    }

    pub fn stop(self, at: &Passive<'_>) {
        self.resources.qp.to_reset(at).unwrap();
        self.resources.destroy(at).unwrap();
    }
}
