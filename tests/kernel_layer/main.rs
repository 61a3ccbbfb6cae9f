//! The driver's kernel layer against the lab's Windows: each wrapper does what its document says, and leaves nothing
//! behind.

mod echo;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ipoib::kernel::event::{Event, Kind, sleep};
use ipoib::kernel::irql::Passive;
use ipoib::kernel::physical::DmaBuffer;
use ipoib::kernel::pool::{PoolBox, PoolVec, Tag};
use ipoib::kernel::spinlock::SpinLock;
use ipoib::kernel::time;
use ipoib_lab::fault::{Plan, Sweep};
use ipoib_lab::kernel::{DeviceHandler, DeviceProperties, Machine, MachineConfig};
use ipoib_lab::ndis::{
    Adapter, AdapterConfig, BROADCAST, DIRECTED, Driver, DriverConfig, Frame, Protocol, RegistryKey,
    SendCompletion, SendList, SendRequest, Signal,
};
use ipoib_lab::sim::{MILLISECOND, SECOND, Sim, SimConfig};
use windows_kernel_sys as sys;

const TAG: Tag = Tag::new(*b"Test");

/// Runs `body` at PASSIVE_LEVEL on a fresh machine, and looks for leaks.
fn on_a_machine(seed: u64, body: impl FnOnce(&mut Passive<'_>) + Send + 'static) {
    with_faults(seed, Plan::default(), body);
}

fn with_faults(seed: u64, faults: Plan, body: impl FnOnce(&mut Passive<'_>) + Send + 'static) {
    let sim = Sim::owned(SimConfig::seeded(seed));
    let machine = Machine::new(&sim, MachineConfig { cpus: 2, ..MachineConfig::default() });
    machine.faults().set(faults);
    let outcome = machine.run("test", 600 * SECOND, move || {
        // SAFETY: a thread of the machine runs at PASSIVE_LEVEL.
        body(&mut unsafe { Passive::assume() });
        Machine::current().check_leaks("the end of the test");
    });
    if let Err(outcome) = outcome {
        panic!("seed {seed}: {outcome}");
    }
}

fn irql() -> sys::KIRQL {
    // SAFETY: any level.
    unsafe { sys::KeGetCurrentIrql() }
}

#[test]
fn a_spin_lock_is_dispatch_level_while_it_is_held() {
    on_a_machine(1, |at| {
        let outer = SpinLock::new(1);
        let inner = SpinLock::new(2);
        {
            let mut guard = outer.lock(at);
            assert_eq!(irql(), sys::DISPATCH_LEVEL);
            let (value, dispatch) = guard.parts();
            *value += *inner.lock_at(dispatch);
            assert_eq!(irql(), sys::DISPATCH_LEVEL);
        }
        assert_eq!(irql(), sys::PASSIVE_LEVEL);
        let seen = at.raised(|dispatch| {
            assert_eq!(irql(), sys::DISPATCH_LEVEL);
            *outer.lock_at(dispatch)
        });
        assert_eq!((irql(), seen), (sys::PASSIVE_LEVEL, 3));
    });
}

#[test]
fn waiting_takes_the_time_it_was_given() {
    on_a_machine(2, |at| {
        let event = Event::try_new(Kind::Synchronization, false).unwrap();
        let before = time::now();
        assert!(!event.wait_timeout(at, Duration::from_millis(20)));
        let waited = time::now().saturating_sub(before);
        assert!(waited >= Duration::from_millis(20) && waited < Duration::from_millis(40), "{waited:?}");
        sleep(at, Duration::from_millis(5));
        assert!(time::now().saturating_sub(before) >= Duration::from_millis(25));
        event.set();
        assert!(event.is_set());
        event.wait(at);
        assert!(!event.is_set(), "a synchronization event is cleared by the waiter that it releases");
    });
}

#[test]
fn pool_memory_is_owned() {
    #[derive(Debug)]
    struct Counted<'a>(&'a AtomicU32);
    impl Drop for Counted<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    on_a_machine(3, |_| {
        let drops = AtomicU32::new(0);
        let count = || drops.load(Ordering::Relaxed);
        let boxed = PoolBox::try_new(TAG, Counted(&drops)).unwrap();
        let raw = boxed.into_raw();
        assert_eq!(count(), 0);
        // SAFETY: given up just now.
        drop(unsafe { PoolBox::from_raw(raw, TAG) });
        assert_eq!(count(), 1);

        let mut vec = PoolVec::try_with_capacity(TAG, 2).unwrap();
        assert!(vec.push(Counted(&drops)).is_ok() && vec.push(Counted(&drops)).is_ok());
        let refused = vec.push(Counted(&drops)).expect_err("no room, handed back");
        vec.try_grow(3).unwrap();
        assert!(vec.push(refused).is_ok());
        assert_eq!((vec.len(), count()), (3, 1), "growing moves");
        drop(vec.swap_remove(0));
        assert_eq!((vec.len(), count()), (2, 2));
        drop(vec);
        assert_eq!(count(), 4);
        assert!(PoolVec::<u64>::try_with_capacity(TAG, usize::MAX / 4).is_err(), "the size overflows");
    });
}

#[test]
fn no_segment_crosses_a_page_and_together_they_are_the_buffer() {
    on_a_machine(4, |_| {
        let machine = Machine::current();
        for size in [1, 60, 2100, 4096, 4140, 20_000] {
            let mut buffer = DmaBuffer::try_new(TAG, size).unwrap();
            for (index, byte) in buffer.bytes_mut().iter_mut().enumerate() {
                *byte = index as u8;
            }
            for range in [0..size, size / 3..size, size / 2..size / 2] {
                let mut bytes = Vec::new();
                for segment in buffer.segments(range.clone()) {
                    let page = sys::PAGE_SIZE as u64;
                    assert!(segment.address % page + u64::from(segment.length) <= page);
                    let mut piece = vec![0; segment.length as usize];
                    machine.dma_read(segment.address, &mut piece).unwrap();
                    bytes.extend(piece);
                }
                assert_eq!(bytes, &buffer.bytes()[range]);
            }
            assert_eq!(buffer.segments(0..size + 1).count(), 0, "outside of the buffer");
        }
    });
}

/// The bus's device: knows no interface.
struct Bus;

impl DeviceHandler for Bus {
    fn dispatch(&self, machine: &Machine, _: *mut sys::DEVICE_OBJECT, irp: *mut sys::IRP) -> sys::NTSTATUS {
        // SAFETY: the IRP was sent to this device.
        unsafe { machine.complete_irp(irp, sys::STATUS_NOT_SUPPORTED, 0) };
        sys::STATUS_NOT_SUPPORTED
    }
}

#[derive(Default)]
struct Listener {
    received: Mutex<Vec<Vec<u8>>>,
    completed: Mutex<BTreeMap<u64, i32>>,
    something: Signal,
}

impl Protocol for Listener {
    fn receive(&self, frames: &[Frame<'_>]) {
        self.received.lock().unwrap().extend(frames.iter().map(|frame| frame.bytes.to_vec()));
        self.something.set();
    }

    fn send_complete(&self, completions: &[SendCompletion]) {
        for completion in completions {
            let twice = self.completed.lock().unwrap().insert(completion.tag, completion.status);
            assert_eq!(twice, None, "completed twice");
        }
        self.something.set();
    }
}

/// A frame to all stations, of `size` bytes that depend on `seed`.
fn frame(size: usize, seed: usize) -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend((6..size).map(|index| (index * 7 + seed) as u8));
    frame
}

fn load(machine: &Machine) -> Result<Driver, sys::NTSTATUS> {
    Driver::load(machine, DriverConfig::named("echo"), Some(echo::driver_entry))
}

fn add(driver: &Driver) -> Adapter {
    let physical = driver.machine().create_device(Arc::new(Bus), DeviceProperties::default());
    let config = AdapterConfig {
        registry: RegistryKey::new()
            .with("Answer", 42)
            .with("Text", "hello")
            .with("NetworkAddress", "02-00-00-00-00-09"),
        ..AdapterConfig::named("echo0")
    };
    // SAFETY: a device of this machine.
    unsafe { driver.add_device(physical, config) }
}

/// The whole life of an adapter, with `lists` lists of three frames sent through it.
fn echo(seed: u64, lists: usize) {
    on_a_machine(seed, move |at| {
        let machine = Machine::current();
        let driver = load(&machine).unwrap();
        let adapter = add(&driver);
        adapter.initialize().unwrap();
        assert_eq!(echo::ANSWER.get(), 42);
        adapter.restart().unwrap();
        let listener = Arc::new(Listener::default());
        let binding = adapter.bind(listener.clone()).unwrap();
        binding.set_filter(DIRECTED | BROADCAST, &[]).unwrap();
        let sizes = [60, 342, 2058];
        let mut sent = Vec::new();
        for list in 0..lists {
            let frames: Vec<_> = sizes.iter().map(|&size| frame(size, list)).collect();
            sent.extend(frames.clone());
            let tag = list as u64;
            binding.send(&SendRequest { lists: vec![SendList { frames, tag, cancel_id: 0 }] });
            while listener.completed.lock().unwrap().len() <= list {
                listener.something.wait_until("completion", machine.sim().now() + MILLISECOND);
            }
            // The receive buffers are fewer than the frames: let those held come back.
            sleep(at, Duration::from_millis(1));
        }
        let completed = listener.completed.lock().unwrap().clone();
        assert!(completed.values().all(|&status| status == sys::NDIS_STATUS_SUCCESS), "{completed:?}");
        let mut received = listener.received.lock().unwrap().clone();
        received.sort();
        sent.sort();
        assert_eq!(received, sent);
        assert!(adapter.link().is_up());
        assert_eq!(adapter.link().transmit_speed, echo::SPEED);

        adapter.pause();
        binding.send(&SendRequest::frame(frame(60, 0), 1_000));
        adapter.restart().unwrap();
        binding.close();
        adapter.halt();
        driver.unload();
    });
}

#[test]
fn what_is_sent_is_received_whole_and_nothing_is_left_behind() {
    let before = echo::RUNS.get();
    for seed in 10..30 {
        echo(seed, 10);
    }
    assert!(echo::RUNS.get() > before, "the work item ran");
}

#[test]
fn whatever_fails_leaves_nothing_behind() {
    let sweep = Sweep::new();
    let mut runs = 0;
    loop {
        with_faults(40, Plan::Sweep(sweep.clone()), |_| {
            let Ok(driver) = load(&Machine::current()) else { return };
            let adapter = add(&driver);
            if adapter.initialize().is_ok() {
                adapter.halt();
            }
            driver.unload();
        });
        runs += 1;
        if !sweep.next_run() {
            break;
        }
    }
    assert!(runs > 20, "only {runs} calls could fail");
}
