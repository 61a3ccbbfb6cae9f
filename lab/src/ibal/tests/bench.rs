//! Machines with an HCA each on one fabric, and a fake driver that brings a port up as an IPoIB driver does.

use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::Arc;

use ibal_sys::*;
use windows_kernel_sys::{INTERFACE, POOL_FLAGS, PVOID};

use crate::fabric::topology::PortState;
use crate::fabric::topology::builder::LinkSettings;
use crate::fabric::{Fabric, FabricConfig, Gid, PortId, Topology};
use crate::hca::{Hca, HcaConfig, Limits, Net};
use crate::ibal::{Ibal, interface};
use crate::kernel::exports::ex::{ExAllocatePool2, ExFreePoolWithTag};
use crate::kernel::{Machine, MachineConfig};
use crate::sim::{Lock, MILLISECOND, Nanos, Outcome, OwnedSim, SECOND, Sim, SimConfig, sleep};

/// Q_Key of the tests.
pub const QKEY: u32 = 0x0b1b;
const TAG: u32 = u32::from_le_bytes(*b"Test");

/// One machine and its access layer.
#[derive(Clone)]
pub struct Host {
    pub machine: Machine,
    pub ibal: Arc<Ibal>,
    pub port: PortId,
}

/// Several machines on one fabric.
pub struct Bench {
    pub sim: OwnedSim,
    pub net: Net,
    pub hosts: Vec<Host>,
}

impl Bench {
    /// `hosts` machines, with ports that the subnet manager has made active.
    pub fn new(hosts: usize, config: SimConfig) -> Self {
        Self::with(hosts, config, &FabricConfig::default(), Limits::default())
    }

    pub fn with(hosts: usize, config: SimConfig, fabric: &FabricConfig, limits: Limits) -> Self {
        let sim = Sim::owned(config);
        let topology = Topology::default_for(hosts, LinkSettings::default()).unwrap();
        let ports = topology.hosts().to_vec();
        let guids: Vec<_> = ports.iter().map(|id| topology.node(topology.port(*id).node).guid).collect();
        let net = Net::new(&sim, Fabric::new(topology, fabric.clone()));
        let host = |(index, port): (usize, &PortId)| {
            let machine = Machine::new(&sim, MachineConfig::named(format!("host{index}")));
            let hca = HcaConfig {
                number: index as u16,
                guid: guids[index],
                ports: vec![*port],
                first_qpn: 0x400 + index as u32,
                limits,
            };
            let hca = Hca::new(&net, &machine, &hca);
            let ibal = Ibal::install(&hca);
            Host { machine, ibal, port: *port }
        };
        let hosts: Vec<_> = ports.iter().enumerate().map(host).collect();
        let bench = Self { sim, net, hosts };
        bench.run_until(SECOND, Self::all_active);
        bench
    }

    /// Whether every HCA has seen its port become active; in threaded mode it sees that after the fabric knows it.
    pub fn all_active(&self) -> bool {
        self.hosts.iter().all(|host| host.ibal.hca().ports()[0].view().state == PortState::Active)
    }

    /// Runs until `done`, at most for `time`.
    pub fn run_until(&self, time: Nanos, done: impl Fn(&Self) -> bool) {
        let end = self.sim.now() + time;
        let outcome = self.sim.run_until(end, |_| done(self));
        assert_eq!(outcome, Outcome::Done, "{:?}", self.sim.describe_waiting());
    }

    /// Runs `driver` on host `host` and gives its result.
    pub fn drive<T: Send + 'static>(
        &self,
        host: usize,
        driver: impl FnOnce(&Host) -> T + Send + 'static,
    ) -> T {
        match self.try_drive(host, driver) {
            Ok(value) => value,
            Err(outcome) => panic!("{outcome:?}"),
        }
    }

    /// As [`Bench::drive`], with how the run ended if not well.
    pub fn try_drive<T: Send + 'static>(
        &self,
        host: usize,
        driver: impl FnOnce(&Host) -> T + Send + 'static,
    ) -> Result<T, Outcome> {
        let host = self.hosts[host].clone();
        let machine = host.machine.clone();
        machine.run("fake driver", 60 * SECOND, move || driver(&host))
    }

    /// The name of the rule that `driver` breaks.
    pub fn broken<T: Send + 'static>(
        &self,
        driver: impl FnOnce(&Host) -> T + Send + 'static,
    ) -> &'static str {
        match self.try_drive(0, driver) {
            Ok(_) => "no rule",
            Err(outcome) => outcome.rule().unwrap_or_else(|| panic!("{outcome:?}")),
        }
    }
}

impl Host {
    /// The table of functions.
    pub fn table(&self) -> ib_al_ifc_t {
        let head = INTERFACE {
            Size: size_of::<ib_al_ifc_t>() as u16,
            Version: AL_INTERFACE_VERSION,
            Context: null_mut(),
            InterfaceReference: None,
            InterfaceDereference: None,
        };
        interface::table(head, self.ibal.hca().guid.0)
    }

    pub fn port_guid(&self) -> ib_net64_t {
        ib_net64_t::new(self.ibal.hca().ports()[0].view().guid.0)
    }

    pub fn lid(&self) -> u16 {
        self.ibal.hca().ports()[0].view().lid.0
    }

    pub fn gid(&self) -> Gid {
        self.ibal.hca().ports()[0].view().default_gid()
    }
}

/// Checks that a verb succeeded.
#[track_caller]
pub fn ok(status: ib_api_status_t) {
    assert_eq!(status, IB_SUCCESS);
}

/// Nonpaged pool.
#[derive(Clone, Copy, Debug)]
pub struct Buffer {
    pub at: PVOID,
    pub length: usize,
}

// SAFETY: the tests use it in one machine at a time.
unsafe impl Send for Buffer {}

impl Buffer {
    pub fn new(length: usize) -> Self {
        // SAFETY: a plain allocation.
        let at = unsafe { ExAllocatePool2(POOL_FLAGS::NON_PAGED.bits(), length, TAG) };
        assert!(!at.is_null());
        Self { at, length }
    }

    pub fn with(bytes: &[u8]) -> Self {
        let buffer = Self::new(bytes.len());
        // SAFETY: as many bytes as were allocated.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), buffer.at.cast(), bytes.len()) };
        buffer
    }

    pub fn bytes(&self) -> Vec<u8> {
        // SAFETY: as many bytes as were allocated.
        unsafe { std::slice::from_raw_parts(self.at.cast::<u8>(), self.length).to_vec() }
    }

    pub fn free(self) {
        // SAFETY: allocated with this tag, freed once.
        unsafe { ExFreePoolWithTag(self.at, TAG) };
    }

    /// The elements that cover it: one a page.
    pub fn elements(&self, lkey: u32) -> Vec<ib_local_ds_t> {
        let machine = Machine::current();
        let mut list = Vec::new();
        let mut done = 0;
        while done < self.length {
            let at = self.at.cast::<u8>().wrapping_add(done);
            let n = (4096 - at as usize % 4096).min(self.length - done);
            list.push(ib_local_ds_t { vaddr: machine.to_phys(at), length: n as u32, lkey });
            done += n;
        }
        list
    }
}

/// What the completion callbacks of a port saw.
#[derive(Default)]
pub struct Seen {
    pub callbacks: u32,
    pub events: Vec<i32>,
}

/// What the driver gave as context.
pub type Context = Arc<Lock<Seen>>;

unsafe extern "win64" fn on_completion(_cq: ib_cq_handle_t, context: *mut c_void) {
    // SAFETY: the context is a test's `Context`, which lives as long as the queue.
    let seen = unsafe { &*context.cast::<Lock<Seen>>() };
    seen.lock().callbacks += 1;
}

unsafe extern "win64" fn on_event(record: *mut ib_async_event_rec_t) {
    // SAFETY: the record lives for the call, and the context is a test's.
    unsafe {
        let record = &*record;
        (*record.context.cast::<Lock<Seen>>()).lock().events.push(record.code.0);
    }
}

/// A port that a fake driver opened: everything an IPoIB driver makes in Initialize.
#[derive(Clone)]
pub struct Port {
    pub ifc: ib_al_ifc_t,
    pub al: ib_al_handle_t,
    pub ca: ib_ca_handle_t,
    pub pd: ib_pd_handle_t,
    pub send_cq: ib_cq_handle_t,
    pub recv_cq: ib_cq_handle_t,
    pub qp: ib_qp_handle_t,
    pub mr: ib_mr_handle_t,
    pub lkey: u32,
    pub qpn: u32,
    pub guid: ib_net64_t,
    pub seen: Context,
}

// SAFETY: handles are numbers; the tests use them in one machine at a time.
unsafe impl Send for Port {}

/// Sizes of a test's queue pair.
#[derive(Clone, Copy)]
pub struct Sizes {
    pub cq: u32,
    pub depth: u32,
    pub signaled: boolean_t,
    pub access: ib_access_t,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { cq: 64, depth: 16, signaled: TRUE, access: ib_access_t::IB_AC_LOCAL_WRITE }
    }
}

impl Port {
    /// Opens everything; the queue pair stays in RESET.
    pub fn open(host: &Host) -> Self {
        Self::open_with(host, Sizes::default())
    }

    pub fn open_with(host: &Host, sizes: Sizes) -> Self {
        let ifc = host.table();
        let seen: Context = Arc::default();
        let context = Arc::as_ptr(&seen).cast::<c_void>();
        let mut port = Self {
            ifc,
            al: null_mut(),
            ca: null_mut(),
            pd: null_mut(),
            send_cq: null_mut(),
            recv_cq: null_mut(),
            qp: null_mut(),
            mr: null_mut(),
            lkey: 0,
            qpn: 0,
            guid: host.port_guid(),
            seen,
        };
        // SAFETY: the table's own functions, with pointers to locals.
        unsafe {
            ok(ifc.open_al.unwrap()(&raw mut port.al));
            ok(ifc.open_ca.unwrap()(port.al, ifc.ca_guid, None, null(), &raw mut port.ca));
            ok(ifc.alloc_pd.unwrap()(port.ca, IB_PDT_UD, null(), &raw mut port.pd));
            for cq in [&raw mut port.send_cq, &raw mut port.recv_cq] {
                let mut create = ib_cq_create_t {
                    size: sizes.cq,
                    pfn_comp_cb: Some(on_completion),
                    h_wait_obj: null_mut(),
                };
                ok(ifc.create_cq.unwrap()(port.ca, &raw mut create, context, Some(on_event), cq));
            }
            let mut create = ib_qp_create_t {
                qp_type: IB_QPT_UNRELIABLE_DGRM,
                sq_max_inline: 64,
                sq_depth: sizes.depth,
                rq_depth: sizes.depth,
                sq_sge: 4,
                rq_sge: 4,
                h_sq_cq: port.send_cq,
                h_rq_cq: port.recv_cq,
                h_srq: null_mut(),
                sq_signaled: sizes.signaled,
            };
            let qp = &raw mut port.qp;
            ok(ifc.create_qp.unwrap()(port.pd, &raw mut create, context, Some(on_event), qp));
            let mut range = ib_phys_range_t { base_addr: 0, size: u64::MAX };
            let create = ib_phys_create_t {
                length: u64::MAX,
                num_ranges: 1,
                range_array: &raw mut range,
                buf_offset: 0,
                hca_page_size: 4096,
                access_ctrl: sizes.access,
            };
            let (mut start, mut rkey) = (0, 0);
            ok(ifc.reg_phys.unwrap()(
                port.pd,
                &raw const create,
                &raw mut start,
                &raw mut port.lkey,
                &raw mut rkey,
                &raw mut port.mr,
            ));
        }
        port.qpn = port.attributes().num.get();
        port
    }

    pub fn attributes(&self) -> ib_qp_attr_t {
        let mut attributes = std::mem::MaybeUninit::uninit();
        // SAFETY: the verb fills the structure.
        unsafe {
            ok(self.ifc.query_qp.unwrap()(self.qp, attributes.as_mut_ptr()));
            attributes.assume_init()
        }
    }

    pub fn modify(&self, modify: &ib_qp_mod_t) -> ib_api_status_t {
        // SAFETY: a live request.
        unsafe { self.ifc.modify_qp.unwrap()(self.qp, modify) }
    }

    pub fn to_init(&self) -> ib_api_status_t {
        let init = ib_qp_mod_init {
            primary_port: 1,
            qkey: ib_net32_t::new(QKEY),
            pkey_index: 0,
            access_ctrl: ib_access_t::empty(),
        };
        self.modify(&ib_qp_mod_t { req_state: ib_qp_state_t::IB_QPS_INIT, state: ib_qp_mod_state { init } })
    }

    pub fn to_rtr(&self) -> ib_api_status_t {
        let state = ib_qp_mod_state { rtr: ib_qp_mod_rtr::default() };
        self.modify(&ib_qp_mod_t { req_state: ib_qp_state_t::IB_QPS_RTR, state })
    }

    pub fn to_rts(&self, rts: ib_qp_mod_rts) -> ib_api_status_t {
        self.modify(&ib_qp_mod_t { req_state: ib_qp_state_t::IB_QPS_RTS, state: ib_qp_mod_state { rts } })
    }

    /// To a state without attributes.
    pub fn to_plain(&self, req_state: ib_qp_state_t) -> ib_api_status_t {
        let state = ib_qp_mod_state { sqd: ib_qp_mod_sqd::default() };
        self.modify(&ib_qp_mod_t { req_state, state })
    }

    /// RESET to RTS.
    pub fn up(&self) {
        ok(self.to_init());
        ok(self.to_rtr());
        ok(self.to_rts(ib_qp_mod_rts::default()));
    }

    pub fn post_recv(&self, wr_id: u64, buffer: &Buffer) -> ib_api_status_t {
        let mut list = buffer.elements(self.lkey);
        let mut wr = ib_recv_wr_t {
            p_next: null_mut(),
            wr_id,
            num_ds: list.len() as u32,
            ds_array: list.as_mut_ptr(),
        };
        // SAFETY: a live request and its list.
        unsafe { self.ifc.post_recv.unwrap()(self.qp, &raw mut wr, null_mut()) }
    }

    pub fn create_av(&self, attr: &ib_av_attr_t) -> ib_av_handle_t {
        let mut av = null_mut();
        // SAFETY: live attributes and a local.
        unsafe { ok(self.ifc.create_av.unwrap()(self.pd, attr, &raw mut av)) };
        av
    }

    pub fn destroy_av(&self, av: ib_av_handle_t) {
        // SAFETY: a handle.
        unsafe { ok(self.ifc.destroy_av.unwrap()(av)) };
    }

    /// An address vector to a LID.
    pub fn av_to(&self, dlid: u16) -> ib_av_handle_t {
        self.create_av(&ib_av_attr_t { port_num: 1, dlid: ib_net16_t::new(dlid), ..Default::default() })
    }

    /// An address vector to a LID with a global route.
    pub fn av_to_gid(&self, dlid: u16, sgid: Gid, dgid: Gid) -> ib_av_handle_t {
        self.create_av(&ib_av_attr_t {
            port_num: 1,
            dlid: ib_net16_t::new(dlid),
            grh_valid: TRUE,
            grh: ib_grh_t {
                ver_class_flow: ib_grh_t::ver_class_flow(6, 0x12, 0x3_4567),
                hop_limit: 1,
                src_gid: ib_gid_t { raw: sgid.0 },
                dest_gid: ib_gid_t { raw: dgid.0 },
                ..ib_grh_t::default()
            },
            ..Default::default()
        })
    }

    pub fn post_send(
        &self,
        wr_id: u64,
        buffer: &Buffer,
        av: ib_av_handle_t,
        qpn: u32,
        options: ib_send_opt_t,
    ) -> ib_api_status_t {
        let mut list = buffer.elements(self.lkey);
        let mut wr = send_wr(wr_id, &mut list, av, qpn, options);
        // SAFETY: a live request and its list.
        unsafe { self.ifc.post_send.unwrap()(self.qp, &raw mut wr, null_mut()) }
    }

    /// Takes at most `most` completions.
    pub fn poll(&self, cq: ib_cq_handle_t, most: usize) -> Vec<ib_wc_t> {
        let blank = ib_wc_t {
            p_next: null_mut(),
            wr_id: 0,
            wc_type: IB_WC_UNKNOWN1,
            length: 0,
            vendor_specific: 0,
            status: IB_WCS_UNKNOWN,
            recv: ib_wc_recv { ud: ib_wc_ud::default() },
        };
        let mut entries = vec![blank; most];
        let base = entries.as_mut_ptr();
        // SAFETY: links inside the vector, which outlives the call.
        unsafe {
            for index in 1..most {
                (*base.add(index - 1)).p_next = base.add(index);
            }
            let (mut free, mut done) = (base, null_mut());
            let status = self.ifc.poll_cq.unwrap()(cq, &raw mut free, &raw mut done);
            let mut taken = Vec::new();
            while !done.is_null() {
                taken.push(*done);
                done = (*done).p_next;
            }
            assert_eq!(status, if taken.is_empty() { IB_NOT_FOUND } else { IB_SUCCESS });
            taken
        }
    }

    /// Waits for `count` completions.
    pub fn wait(&self, cq: ib_cq_handle_t, count: usize) -> Vec<ib_wc_t> {
        let mut taken = Vec::new();
        for _ in 0..10_000 {
            taken.extend(self.poll(cq, 8));
            if taken.len() >= count {
                return taken;
            }
            sleep(MILLISECOND / 10);
        }
        panic!("{} of {count} completions", taken.len());
    }

    pub fn arm(&self, cq: ib_cq_handle_t) {
        // SAFETY: a handle.
        unsafe { ok(self.ifc.rearm_cq.unwrap()(cq, FALSE)) };
    }

    pub fn destroy_qp(&self) {
        // SAFETY: a handle.
        unsafe { ok(self.ifc.destroy_qp.unwrap()(self.qp, self.ifc.sync_destroy)) };
    }

    /// Closes everything in the right order.
    pub fn close(self) {
        let ifc = self.ifc;
        // SAFETY: handles.
        unsafe {
            ok(ifc.destroy_qp.unwrap()(self.qp, ifc.sync_destroy));
            ok(ifc.dereg_mr.unwrap()(self.mr));
            ok(ifc.destroy_cq.unwrap()(self.send_cq, ifc.sync_destroy));
            ok(ifc.destroy_cq.unwrap()(self.recv_cq, ifc.sync_destroy));
            ok(ifc.dealloc_pd.unwrap()(self.pd, ifc.sync_destroy));
            ok(ifc.close_ca.unwrap()(self.ca, ifc.sync_destroy));
            ok(ifc.close_al.unwrap()(self.al));
        }
    }
}

/// The datagram part of a completion.
pub fn ud(wc: &ib_wc_t) -> ib_wc_ud {
    // SAFETY: every member of the union is plain data.
    unsafe { wc.recv.ud }
}

/// A send request; the list must outlive it.
pub fn send_wr(
    wr_id: u64,
    list: &mut [ib_local_ds_t],
    av: ib_av_handle_t,
    qpn: u32,
    options: ib_send_opt_t,
) -> ib_send_wr_t {
    ib_send_wr_t {
        wr_id,
        p_next: null_mut(),
        ds_array: list.as_mut_ptr(),
        num_ds: list.len() as u32,
        wr_type: WR_SEND,
        send_opt: options,
        data: ib_send_wr_data { immediate_data: ib_net32_t::new(0xfeed_f00d) },
        op: ib_send_wr_op {
            dgrm: ib_send_dgrm {
                ud: ib_send_ud {
                    h_av: av,
                    remote_qp: ib_net32_t::new(qpn),
                    remote_qkey: ib_net32_t::new(QKEY),
                    rsvd: null_mut(),
                    pkey_index: 0,
                    header: null_mut(),
                    hlen: 0,
                    mss: 0,
                },
            },
        },
    }
}

/// Bytes of a receive buffer before the payload.
pub const GRH: usize = 40;

/// Machines of the seed that most tests use.
pub fn bench(hosts: usize) -> Bench {
    Bench::new(hosts, SimConfig::seeded(7))
}

/// Opens and raises a port on a host and posts `count` receives of `length` bytes behind the GRH.
pub fn receiver(bench: &Bench, host: usize, count: u64, length: usize) -> (Port, Vec<Buffer>) {
    bench.drive(host, move |host| {
        let port = Port::open(host);
        port.up();
        let buffers: Vec<_> = (0..count).map(|_| Buffer::new(GRH + length)).collect();
        for (index, buffer) in buffers.iter().enumerate() {
            ok(port.post_recv(index as u64, buffer));
        }
        (port, buffers)
    })
}

/// Opens and raises a port.
pub fn sender(bench: &Bench, host: usize) -> Port {
    bench.drive(host, |host| {
        let port = Port::open(host);
        port.up();
        port
    })
}
