//! The smallest miniport that uses all of the kernel layer: what is sent comes back as a receive.
//!
//! A frame is mapped for DMA, read through its physical segments as an HCA would, written into a receive buffer and
//! indicated. A timer kicks a work item, which counts.

use core::ptr;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use ipoib::kernel::adapter::AdapterHandle;
use ipoib::kernel::arc::PoolArc;
use ipoib::kernel::attributes::{General, Registration};
use ipoib::kernel::config::{Configuration, Value};
use ipoib::kernel::driver_object::{DriverObject, MiniportDriver};
use ipoib::kernel::event::{Event, Kind};
use ipoib::kernel::gate::Gate;
use ipoib::kernel::irql::{Dispatch, Passive, at_dispatch};
use ipoib::kernel::link::LinkState;
use ipoib::kernel::log::{Level, Log};
use ipoib::kernel::nbl::{
    ReceiveBuffer, ReceiveChain, ReceivePool, ReturnedChain, SendBuffer, SendChain, Verified,
};
use ipoib::kernel::oid_request::{self, OidRequest};
use ipoib::kernel::pool::{PoolVec, Tag};
use ipoib::kernel::set_once::SetOnce;
use ipoib::kernel::sg::{MappedBuffer, SgDma, SgStorage};
use ipoib::kernel::spinlock::SpinLock;
use ipoib::kernel::status::{Error, Result};
use ipoib::kernel::timer::Timer;
use ipoib::kernel::work_item::WorkItem;
use ipoib_lab::kernel::Machine;
use windows_kernel_sys as sys;
use windows_kernel_sys::Zeroable as _;

const TAG: Tag = Tag::new(*b"Echo");
pub const ADDRESS: [u8; 6] = [2, 0, 0, 0, 0, 1];
pub const MTU: u32 = 2044;
pub const SPEED: u64 = 40_000_000_000;
/// Receive buffers; and the storage for scatter/gather lists. The last few receive buffers are lent, not given.
const BUFFERS: usize = 8;
const LENT: usize = 2;
/// Room before a frame in a receive buffer.
const HEADROOM: usize = 30;
const PERIOD: Duration = Duration::from_millis(1);

static EXTENSION: u8 = 0;

// What a test looks at afterwards: what the registry said, and how often the work item ran. A deterministic machine
// runs on its test's own thread, and other tests run beside it.
thread_local! {
    pub static ANSWER: Cell<u32> = const { Cell::new(0) };
    pub static RUNS: Cell<u64> = const { Cell::new(0) };
}

struct Stock {
    receive: PoolVec<ReceiveBuffer>,
    storage: PoolVec<SgStorage>,
}

struct Machinery {
    timer: Timer<Echo>,
    work_item: WorkItem<Echo>,
    dma: SgDma<Echo>,
}

pub struct Echo {
    handle: AdapterHandle,
    machinery: SetOnce<Machinery>,
    pool: SetOnce<ReceivePool>,
    stock: SpinLock<Stock>,
    sends: Gate,
    idle: Event,
    link_said: AtomicBool,
    dropped: AtomicU32,
    log: Log,
}

impl Echo {
    /// Nothing is left if it fails.
    fn initialize(handle: AdapterHandle, at: &mut Passive<'_>) -> Result<PoolArc<Self>> {
        let answer = configured(handle, at)?;
        ANSWER.set(answer);
        ask_for_an_unknown_interface(handle, at);
        let echo = PoolArc::try_new(
            TAG,
            Self {
                handle,
                machinery: SetOnce::new(),
                pool: SetOnce::new(),
                stock: SpinLock::new(Stock {
                    receive: PoolVec::try_with_capacity(TAG, BUFFERS)?,
                    storage: PoolVec::try_with_capacity(TAG, BUFFERS)?,
                }),
                sends: Gate::new(),
                idle: Event::try_new(Kind::Synchronization, false)?,
                link_said: AtomicBool::new(false),
                dropped: AtomicU32::new(0),
                log: Log::try_new()?,
            },
        )?;
        match echo.describe(at).and_then(|()| Self::equip(&echo, at)) {
            Ok(()) => {
                echo.log.line(Level::Info, format_args!("the answer is {answer}"));
                Ok(echo)
            }
            Err(error) => {
                Self::halt(echo, at);
                Err(error)
            }
        }
    }

    /// Tells NDIS what this is.
    fn describe(&self, at: &Passive<'_>) -> Result<()> {
        self.handle.set_registration(
            Registration {
                context: (&raw const *self).cast(),
                flags: sys::NDIS_MINIPORT_ATTRIBUTES::BUS_MASTER,
                check_for_hang_seconds: 0,
            },
            at,
        )?;
        self.handle.set_general(
            &General {
                mtu: MTU,
                lookahead: MTU,
                link: LinkState::Down,
                max_link_speed: SPEED,
                mac_options: sys::NDIS_MAC_OPTION::NO_LOOPBACK,
                packet_filters: sys::NDIS_PACKET_TYPE::DIRECTED | sys::NDIS_PACKET_TYPE::BROADCAST,
                multicast_list_size: 8,
                permanent_address: ADDRESS,
                current_address: ADDRESS,
                statistics: sys::NDIS_STATISTICS_FLAGS::empty(),
                oids: &[sys::OID_GEN_CURRENT_PACKET_FILTER],
            },
            at,
        )
    }

    /// Makes what is used and what calls back. What is made before a failure is dropped, or left for `halt`.
    fn equip(echo: &PoolArc<Self>, at: &mut Passive<'_>) -> Result<()> {
        let pool = ReceivePool::try_new(echo.handle, at)?;
        assert!(echo.pool.set(pool).is_ok());
        let pool = echo.pool.get().expect("set just now");
        for _ in 0..BUFFERS {
            let buffer = pool.allocate(MTU + 14 + HEADROOM as u32)?;
            assert!(echo.stock.lock(at).receive.push(buffer).is_ok());
        }
        let timer = Timer::try_new(echo.handle, echo.clone(), Self::on_timer)?;
        let work_item = WorkItem::try_new(echo.handle, echo.clone(), Self::on_work)?;
        let dma = SgDma::register(echo.handle, 0x10000, echo.clone(), Self::mapped, at)?;
        for _ in 0..BUFFERS {
            match dma.allocate_storage() {
                Ok(storage) => assert!(echo.stock.lock(at).storage.push(storage).is_ok()),
                Err(error) => {
                    dma.deregister(at);
                    return Err(error);
                }
            }
        }
        assert!(echo.machinery.set(Machinery { timer, work_item, dma }).is_ok());
        echo.machinery().timer.set(PERIOD);
        Ok(())
    }

    fn machinery(&self) -> &Machinery {
        self.machinery.get().expect("set before anything is called back")
    }

    fn halt(mut echo: PoolArc<Self>, at: &mut Passive<'_>) {
        if let Some(machinery) = echo.machinery.get() {
            machinery.timer.stop(at);
            machinery.work_item.stop(at);
            machinery.dma.stop(at);
            assert!(!machinery.work_item.queue(), "a stopped item is not queued");
        }
        // Stopping dropped their references.
        let inner = PoolArc::get_mut(&mut echo).expect("the last reference");
        if let Some(machinery) = inner.machinery.take() {
            machinery.dma.deregister(at);
        }
        inner.stock.get_mut().receive.clear();
        if let Some(pool) = inner.pool.take() {
            pool.free(at);
        }
    }

    fn on_timer(&self, _at: Dispatch<'_>) {
        if let Some(machinery) = self.machinery.get() {
            machinery.work_item.queue();
            machinery.work_item.queue();
            machinery.timer.set(PERIOD);
        }
    }

    fn on_work(&self, _at: &mut Passive<'_>) {
        RUNS.set(RUNS.get() + 1);
        if !self.link_said.swap(true, Ordering::Relaxed) {
            self.handle.indicate_link(LinkState::Up { speed: SPEED });
        }
    }

    fn restart(&self) {
        self.sends.open();
    }

    fn pause(&self, at: &Passive<'_>) {
        if !self.sends.close() {
            self.idle.wait(at);
        }
    }

    fn send(&self, mut chain: SendChain, at: Dispatch<'_>) {
        let mut done = SendChain::new();
        while let Some(nbl) = chain.pop_front() {
            if !self.sends.enter() {
                nbl.set_status(sys::NDIS_STATUS_PAUSED);
                done.push_back(nbl);
                continue;
            }
            for buffer in nbl.into_buffers() {
                let storage = self.stock.lock_at(at).storage.pop();
                let Some(storage) = storage else {
                    self.finish(buffer, sys::NDIS_STATUS_RESOURCES, at);
                    continue;
                };
                let length = buffer.data_length();
                if let Err((buffer, storage, error)) = self.machinery().dma.map(buffer, storage, length, at) {
                    assert!(self.stock.lock_at(at).storage.push(storage).is_ok());
                    self.finish(buffer, error.ndis(), at);
                }
            }
        }
        done.complete(self.handle, at);
    }

    fn finish(&self, buffer: SendBuffer, status: sys::NDIS_STATUS, at: Dispatch<'_>) {
        if let Some(nbl) = buffer.finish(status) {
            let mut done = SendChain::new();
            done.push_back(nbl);
            done.complete(self.handle, at);
            if self.sends.leave(1) {
                self.idle.set();
            }
        }
    }

    fn mapped(&self, mapped: MappedBuffer, at: Dispatch<'_>) {
        // As the device reads it.
        let mut frame = Vec::new();
        for segment in mapped.segments(0) {
            let mut piece = vec![0; segment.length as usize];
            Machine::current().dma_read(segment.address, &mut piece).expect("mapped memory");
            frame.extend(piece);
        }
        assert_eq!(mapped.cookie(), frame.len());
        // As the driver reads it.
        let mut copy = vec![0; frame.len() + 10];
        assert_eq!(mapped.buffer().copy_to(0, &mut copy), frame.len());
        assert_eq!(copy[..frame.len()], frame);
        if let Some(head) = mapped.buffer().contiguous(14) {
            assert_eq!(head, &frame[..14]);
        }
        let payload: Vec<u8> = mapped.buffer().chunks(14).flatten().copied().collect();
        assert_eq!(payload, &frame[14..]);
        let skipped: u32 = mapped.segments(14).map(|segment| segment.length).sum();
        assert_eq!(skipped as usize, frame.len() - 14);

        let (buffer, storage) = self.machinery().dma.unmap(mapped, at);
        let stored = self.stock.lock_at(at).storage.push(storage);
        assert!(stored.is_ok());
        // Before the send is completed: a paused miniport may not indicate.
        self.receive(&frame, at);
        self.finish(buffer, sys::NDIS_STATUS_SUCCESS, at);
    }

    fn receive(&self, frame: &[u8], at: Dispatch<'_>) {
        let (buffer, left) = {
            let mut stock = self.stock.lock_at(at);
            (stock.receive.pop(), stock.receive.len())
        };
        let Some(mut buffer) = buffer else {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let size = buffer.bytes().len();
        assert_eq!(buffer.segments().iter().map(|s| s.length as usize).sum::<usize>(), size);
        assert!(!buffer.set_frame(HEADROOM, size, Verified::default()), "a frame past the end");
        assert!(buffer.set_frame(HEADROOM, frame.len(), Verified::default()));
        // As the device writes it.
        let mut rest = frame;
        let mut skip = HEADROOM;
        for segment in buffer.segments() {
            let offset = skip.min(segment.length as usize);
            skip -= offset;
            let (now, later) = rest.split_at(rest.len().min(segment.length as usize - offset));
            Machine::current().dma_write(segment.address + offset as u64, now).expect("locked memory");
            rest = later;
        }
        let mut chain = ReceiveChain::new();
        chain.push_back(buffer);
        if left < LENT {
            let back = chain.indicate_for_now(self.handle, at);
            self.returned(back, at);
        } else {
            chain.indicate(self.handle, at);
        }
    }

    fn returned(&self, chain: ReturnedChain, at: Dispatch<'_>) {
        let mut stock = self.stock.lock_at(at);
        for buffer in chain {
            assert!(stock.receive.push(buffer).is_ok());
        }
    }

    fn oid(mut request: OidRequest) -> sys::NDIS_STATUS {
        if request.kind() == oid_request::Kind::Set {
            let length = request.input().len() as u32;
            request.set_result(length, 0);
            request.answer(sys::NDIS_STATUS_SUCCESS)
        } else {
            request.answer(sys::NDIS_STATUS_NOT_SUPPORTED)
        }
    }
}

/// The registry's `Answer`, if everything else could be read as well.
fn configured(handle: AdapterHandle, at: &Passive<'_>) -> Result<u32> {
    let mut configuration = Configuration::open(handle, at)?;
    assert_eq!(configuration.read("Absent"), None);
    assert_eq!(configuration.read(&"x".repeat(100)), None, "a name that is too long");
    let text = matches!(configuration.read("Text"), Some(Value::String(text)) if text.len() == 5);
    let address = configuration.network_address() == Some(&[2, 0, 0, 0, 0, 9][..]);
    Ok(match configuration.read("Answer") {
        Some(Value::Integer(answer)) if text && address => answer,
        _ => 0,
    })
}

fn ask_for_an_unknown_interface(handle: AdapterHandle, at: &Passive<'_>) {
    let unknown = sys::GUID { Data1: 1, Data2: 2, Data3: 3, Data4: [4; 8] };
    let mut interface = sys::INTERFACE::zeroed();
    // SAFETY: a plain INTERFACE of its own size, without specific data.
    let asked = unsafe {
        handle.query_interface(
            &unknown,
            1,
            &raw mut interface,
            size_of_val(&interface) as u16,
            ptr::null_mut(),
            at,
        )
    };
    assert!(matches!(asked, Err(Error::NOT_SUPPORTED | Error::RESOURCES)), "{asked:?}");
}

// SAFETY (all handlers below): called by the lab's NDIS as the documents say.

pub unsafe extern "win64" fn driver_entry(
    object: *mut sys::DRIVER_OBJECT,
    path: *mut sys::UNICODE_STRING,
) -> sys::NTSTATUS {
    let mut handlers = sys::NDIS_MINIPORT_DRIVER_CHARACTERISTICS::zeroed();
    handlers.InitializeHandlerEx = Some(initialize);
    handlers.HaltHandlerEx = Some(halt);
    handlers.UnloadHandler = Some(unload);
    handlers.PauseHandler = Some(pause);
    handlers.RestartHandler = Some(restart);
    handlers.OidRequestHandler = Some(oid);
    handlers.SendNetBufferListsHandler = Some(send);
    handlers.ReturnNetBufferListsHandler = Some(returned);
    handlers.CancelSendHandler = Some(cancel);
    handlers.DevicePnPEventNotifyHandler = Some(pnp);
    handlers.ShutdownHandlerEx = Some(shutdown);
    handlers.CancelOidRequestHandler = Some(cancel);
    // SAFETY: see above.
    unsafe {
        let at = Passive::assume();
        let driver = DriverObject::from_raw(object).expect("an object");
        assert!(driver.extension::<MiniportDriver>(&EXTENSION).is_none());
        match driver.register_miniport(path, ptr::null_mut(), handlers, &at) {
            Ok(miniport) => driver.set_extension(&EXTENSION, miniport, &at).map_or_else(
                |error| {
                    miniport.deregister(&at);
                    error.nt()
                },
                |()| 0,
            ),
            Err(error) => error.nt(),
        }
    }
}

unsafe extern "win64" fn unload(object: *mut sys::DRIVER_OBJECT) {
    // SAFETY: see above.
    unsafe {
        let at = Passive::assume();
        let driver = DriverObject::from_raw(object).expect("an object");
        driver.extension::<MiniportDriver>(&EXTENSION).expect("registered").deregister(&at);
    }
}

unsafe extern "win64" fn initialize(
    handle: sys::NDIS_HANDLE,
    _: sys::NDIS_HANDLE,
    _: *mut sys::NDIS_MINIPORT_INIT_PARAMETERS,
) -> sys::NDIS_STATUS {
    // SAFETY: see above.
    let (mut at, handle) = unsafe { (Passive::assume(), AdapterHandle::from_raw(handle)) };
    match Echo::initialize(handle, &mut at) {
        Ok(echo) => {
            let _ = echo.into_raw();
            sys::NDIS_STATUS_SUCCESS
        }
        Err(error) => error.ndis(),
    }
}

unsafe fn echo<'a>(context: sys::NDIS_HANDLE) -> &'a Echo {
    // SAFETY: see above.
    unsafe { &*context.cast() }
}

unsafe extern "win64" fn halt(context: sys::NDIS_HANDLE, _: sys::NDIS_HALT_ACTION) {
    // SAFETY: see above.
    unsafe { Echo::halt(PoolArc::from_raw(context.cast()), &mut Passive::assume()) };
}

unsafe extern "win64" fn pause(
    context: sys::NDIS_HANDLE,
    _: *mut sys::NDIS_MINIPORT_PAUSE_PARAMETERS,
) -> sys::NDIS_STATUS {
    // SAFETY: see above.
    unsafe { echo(context).pause(&Passive::assume()) };
    sys::NDIS_STATUS_SUCCESS
}

unsafe extern "win64" fn restart(
    context: sys::NDIS_HANDLE,
    _: *mut sys::NDIS_MINIPORT_RESTART_PARAMETERS,
) -> sys::NDIS_STATUS {
    // SAFETY: see above.
    unsafe { echo(context).restart() };
    sys::NDIS_STATUS_SUCCESS
}

unsafe extern "win64" fn oid(_: sys::NDIS_HANDLE, request: *mut sys::NDIS_OID_REQUEST) -> sys::NDIS_STATUS {
    // SAFETY: see above.
    Echo::oid(unsafe { OidRequest::from_raw(request) }.expect("a request"))
}

unsafe extern "win64" fn send(
    context: sys::NDIS_HANDLE,
    lists: *mut sys::NET_BUFFER_LIST,
    _: sys::NDIS_PORT_NUMBER,
    _: u32,
) {
    // SAFETY: see above.
    unsafe { at_dispatch(|at| echo(context).send(SendChain::from_raw(lists), at)) };
}

unsafe extern "win64" fn returned(context: sys::NDIS_HANDLE, lists: *mut sys::NET_BUFFER_LIST, _: u32) {
    // SAFETY: see above.
    unsafe { at_dispatch(|at| echo(context).returned(ReturnedChain::from_raw(lists), at)) };
}

unsafe extern "win64" fn cancel(_: sys::NDIS_HANDLE, _: sys::PVOID) {}
unsafe extern "win64" fn pnp(_: sys::NDIS_HANDLE, _: *mut sys::NET_DEVICE_PNP_EVENT) {}
unsafe extern "win64" fn shutdown(_: sys::NDIS_HANDLE, _: sys::NDIS_SHUTDOWN_ACTION) {}
