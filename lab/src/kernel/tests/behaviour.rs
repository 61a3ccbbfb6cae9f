//! What works as Windows documents it.

use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::fault::{Plan, Sweep};
use crate::sim::{MILLISECOND, Mode};
use crate::verifier::call_driver;

fn expect(result: Result<(), Outcome>) {
    if let Err(outcome) = result {
        panic!("{outcome}");
    }
}

/// A shared address for the closures of several threads.
#[derive(Clone, Copy)]
struct Shared(PVOID);

// SAFETY: the tests use it for kernel objects only, through exports.
unsafe impl Send for Shared {}

impl Shared {
    fn get<T>(self) -> *mut T {
        self.0.cast()
    }
}

/// `workers` threads and DPCs count to `rounds` each under one spin lock; gives the total and the trace.
fn count_under_lock(mode: Mode, seed: u64, workers: u32, rounds: u32) -> (u32, u64) {
    let sim = Sim::owned(SimConfig { seed, mode, ..SimConfig::default() });
    let machine = Machine::new(&sim, MachineConfig { cpus: 3, ..MachineConfig::default() });
    let total = machine
        .run("main", 60 * SECOND, move || {
            let block = Shared(allocate(16));
            let ended = Arc::new(AtomicU32::new(0));
            let step = move |at_dispatch: bool| {
                let lock = block.get::<KSPIN_LOCK>();
                // SAFETY: a live lock and, behind it, the counter it guards.
                unsafe {
                    let counter = block.get::<u32>().add(2);
                    let irql = if at_dispatch {
                        KeAcquireSpinLockAtDpcLevel(lock);
                        DISPATCH_LEVEL
                    } else {
                        KeAcquireSpinLockRaiseToDpc(lock)
                    };
                    let seen = counter.read();
                    preempt("between");
                    counter.write(seen + 1);
                    if at_dispatch {
                        KeReleaseSpinLockFromDpcLevel(lock);
                    } else {
                        KeReleaseSpinLock(lock, irql);
                    }
                }
            };
            let machine = Machine::current();
            for worker in 0..workers {
                let done = Arc::clone(&ended);
                machine.spawn_thread(format!("worker {worker}"), move || {
                    (0..rounds).for_each(|_| step(false));
                    done.fetch_add(1, Ordering::AcqRel);
                });
                let done = Arc::clone(&ended);
                machine.queue_dpc("worker", move || {
                    (0..rounds).for_each(|_| step(true));
                    done.fetch_add(1, Ordering::AcqRel);
                });
            }
            while ended.load(Ordering::Acquire) < 2 * workers {
                crate::sim::sleep(MILLISECOND);
            }
            // SAFETY: the counter behind the lock; nobody uses it any more.
            let total = unsafe { block.get::<u32>().add(2).read() };
            free(block.0);
            total
        })
        .unwrap_or_else(|outcome| panic!("{outcome}"));
    assert_eq!(machine.outstanding().len(), 0);
    (total, sim.trace_hash())
}

#[test]
fn spin_locks_exclude_and_equal_seeds_give_equal_traces() {
    let (total, hash) = count_under_lock(Mode::Deterministic, 1, 4, 100);
    assert_eq!(total, 800);
    let again = std::thread::spawn(|| count_under_lock(Mode::Deterministic, 1, 4, 100)).join().unwrap();
    assert_eq!(again, (800, hash));
    assert_ne!(count_under_lock(Mode::Deterministic, 2, 4, 100).1, hash);
}

#[test]
fn spin_locks_exclude_on_real_cores() {
    assert_eq!(count_under_lock(Mode::Threaded, 1, 3, 2000).0, 12000);
}

#[test]
fn a_notification_event_wakes_all_and_a_synchronization_event_one() {
    for (kind, woken_by_first) in [(NotificationEvent, 3), (SynchronizationEvent, 1)] {
        expect(run(move |machine| {
            let event = Shared(allocate(size_of::<KEVENT>()));
            let woken = Arc::new(AtomicU32::new(0));
            // SAFETY: a live event throughout.
            unsafe { KeInitializeEvent(event.get(), kind, FALSE) };
            for _ in 0..3 {
                let woken = Arc::clone(&woken);
                machine.spawn_thread("waiter", move || {
                    // SAFETY: as above.
                    let status = unsafe {
                        KeWaitForSingleObject(event.get(), Executive, KernelMode, FALSE, ptr::null_mut())
                    };
                    assert_eq!(status, STATUS_SUCCESS);
                    woken.fetch_add(1, Ordering::Relaxed);
                });
            }
            crate::sim::sleep(MILLISECOND);
            // SAFETY: as above.
            assert_eq!(unsafe { KeSetEvent(event.get(), 0, FALSE) }, 0);
            crate::sim::sleep(MILLISECOND);
            assert_eq!(woken.load(Ordering::Relaxed), woken_by_first);
            // SAFETY: as above.
            unsafe {
                assert_eq!(KeReadStateEvent(event.get()), i32::from(kind == NotificationEvent));
                KeSetEvent(event.get(), 0, FALSE);
                crate::sim::sleep(MILLISECOND);
                KeSetEvent(event.get(), 0, FALSE);
                crate::sim::sleep(MILLISECOND);
            }
            assert_eq!(woken.load(Ordering::Relaxed), 3);
            free(event.0);
        }));
    }
}

#[test]
fn a_wait_times_out_after_its_time_and_a_zero_timeout_polls_at_dispatch() {
    expect(run(|machine| {
        let event = allocate(size_of::<KEVENT>()).cast::<KEVENT>();
        // SAFETY: a live event throughout.
        unsafe {
            KeInitializeEvent(event, SynchronizationEvent, FALSE);
            let mut timeout = -20_000;
            let before = machine.sim().now();
            let wait = |timeout: &mut i64| {
                KeWaitForSingleObject(event.cast(), Executive, KernelMode, FALSE, timeout)
            };
            assert_eq!(wait(&mut timeout), STATUS_TIMEOUT);
            let passed = machine.sim().now() - before;
            assert!((2 * MILLISECOND..3 * MILLISECOND).contains(&passed), "{passed} ns");
            timeout = 0;
            let irql = KfRaiseIrql(DISPATCH_LEVEL);
            assert_eq!(wait(&mut timeout), STATUS_TIMEOUT);
            KeSetEvent(event, 0, FALSE);
            assert_eq!(wait(&mut timeout), STATUS_SUCCESS);
            assert_eq!(wait(&mut timeout), STATUS_TIMEOUT);
            KeLowerIrql(irql);
        }
        free(event.cast());
    }));
}

#[test]
fn a_driver_that_waits_for_ever_is_a_deadlock() {
    let outcome = run(|_| {
        let event = allocate(size_of::<KEVENT>()).cast::<KEVENT>();
        // SAFETY: a live event.
        unsafe {
            KeInitializeEvent(event, SynchronizationEvent, FALSE);
            KeWaitForSingleObject(event.cast(), Executive, KernelMode, FALSE, ptr::null_mut());
        }
    });
    assert!(matches!(outcome, Err(Outcome::Deadlock(what)) if what.contains("driver")));
}

#[test]
fn two_locks_taken_crosswise_deadlock_or_break_the_order() {
    // With the order check alone either outcome is right: which depends on the interleaving.
    for seed in 0..20 {
        let sim = Sim::owned(SimConfig { preemption: 1 << 15, ..SimConfig::seeded(seed) });
        let machine = Machine::new(&sim, MachineConfig::default());
        let outcome = machine.run("driver", SECOND, || {
            let locks = Shared(allocate(16));
            for [outer, inner] in [[0, 1], [1, 0]] {
                Machine::current().spawn_thread("locker", move || {
                    // SAFETY: two live locks.
                    unsafe {
                        let irql = KeAcquireSpinLockRaiseToDpc(locks.get::<KSPIN_LOCK>().add(outer));
                        KeAcquireSpinLockAtDpcLevel(locks.get::<KSPIN_LOCK>().add(inner));
                        KeReleaseSpinLockFromDpcLevel(locks.get::<KSPIN_LOCK>().add(inner));
                        KeReleaseSpinLock(locks.get::<KSPIN_LOCK>().add(outer), irql);
                    }
                });
            }
            crate::sim::sleep(MILLISECOND);
        });
        assert_eq!(outcome.expect_err("a lock order").rule(), Some("LOCK_ORDER"));
    }
}

#[test]
fn pool_blocks_keep_their_alignment_and_contents() {
    for guard_pages in [false, true] {
        expect(run_on(MachineConfig { guard_pages, ..MachineConfig::default() }, |machine| {
            let blocks: Vec<_> = (1..300)
                .chain([4000, 4080, 4096, 5000, 8192, 65536])
                .map(|size| (allocate(size), size))
                .collect();
            for (i, &(block, size)) in blocks.iter().enumerate() {
                let address = block as usize;
                assert_eq!(address % 16, 0);
                assert!(if size >= 4096 {
                    address.is_multiple_of(4096)
                } else {
                    address % 4096 + size <= 4096
                });
                // SAFETY: a live block of this size.
                let bytes = unsafe { std::slice::from_raw_parts_mut(block.cast::<u8>(), size) };
                assert!(bytes.iter().all(|byte| *byte == 0));
                bytes.fill(i as u8);
            }
            for (i, &(block, size)) in blocks.iter().enumerate() {
                // SAFETY: a live block of this size.
                let bytes = unsafe { std::slice::from_raw_parts(block.cast::<u8>(), size) };
                assert!(bytes.iter().all(|byte| *byte == i as u8));
                free(block);
            }
            let stats = machine.pool_stats();
            assert_eq!((stats.driver_blocks, stats.driver_bytes), (0, 0));
            assert_eq!(stats.driver_allocations, 305);
        }));
    }
}

#[test]
fn neighbouring_pages_are_never_contiguous_and_dma_respects_blocks() {
    expect(run(|machine| {
        let block = allocate(64 * 4096).cast::<u8>();
        for page in 0..63 {
            let [here, next] = [page, page + 1].map(|page| machine.to_phys(block.wrapping_add(page * 4096)));
            assert_ne!(here + 4096, next);
            assert_ne!(next + 4096, here);
        }
        let bytes: Vec<u8> = (0..100u8).collect();
        let physical = machine.to_phys(block.wrapping_add(100));
        machine.dma_write(physical, &bytes).unwrap();
        let mut back = [0; 100];
        machine.dma_read(physical, &mut back).unwrap();
        assert_eq!(back[..], bytes[..]);
        // SAFETY: in the block.
        assert_eq!(unsafe { block.add(199).read() }, 99);
        assert_eq!(machine.from_phys(physical), Some(block.wrapping_add(100)));

        // The next frame is another page's or nobody's.
        assert!(machine.dma_read(machine.to_phys(block.wrapping_add(4090)), &mut back).is_err());
        let small = allocate(50).cast::<u8>();
        let small_physical = machine.to_phys(small);
        assert!(machine.dma_read(small_physical, &mut back[..50]).is_ok());
        assert!(machine.dma_read(small_physical, &mut back[..51]).is_err());
        free(small.cast());
        assert!(machine.dma_read(small_physical, &mut back[..50]).is_err());
        free(block.cast());
        assert!(machine.dma_read(physical, &mut back).is_err());
    }));
}

#[test]
fn an_mdl_describes_its_pages() {
    expect(run(|machine| {
        let block = allocate(3 * 4096);
        // SAFETY: live block and MDLs.
        unsafe {
            let mdl = IoAllocateMdl(block.wrapping_byte_add(100), 8192, FALSE, FALSE, ptr::null_mut());
            MmBuildMdlForNonPagedPool(mdl);
            assert_eq!(MmGetSystemAddressForMdlSafe(mdl, NormalPagePriority), block.wrapping_byte_add(100));
            assert_eq!((MmGetMdlByteOffset(mdl), MmGetMdlByteCount(mdl)), (100, 8192));
            for page in 0..3 {
                let physical = MmGetPhysicalAddress(block.wrapping_byte_add(page * 4096)) as u64;
                assert_eq!(*MmGetMdlPfnArray(mdl).add(page), physical >> 12);
            }
            IoFreeMdl(mdl);

            let locked = machine.allocate_mdl(block, 64, crate::kernel::mdl::MdlOwner::System);
            machine.lock_mdl_pages(locked);
            assert_eq!(MmGetSystemAddressForMdlSafe(locked, NormalPagePriority), block);
            machine.free_mdl(locked, crate::kernel::mdl::MdlOwner::System, "test");
        }
        free(block);
        assert_eq!(machine.outstanding().len(), 0);
    }));
}

/// A bus that answers IRP_MN_QUERY_INTERFACE later, from a thread.
struct Bus;

impl DeviceHandler for Bus {
    fn dispatch(&self, machine: &Machine, _device: *mut DEVICE_OBJECT, irp: *mut IRP) -> NTSTATUS {
        let irp = Shared(irp.cast());
        // SAFETY: a live IRP.
        unsafe { (*IoGetCurrentIrpStackLocation(irp.get())).Control |= SL_PENDING_RETURNED };
        machine.queue_work("bus", move || {
            crate::sim::sleep(MILLISECOND);
            // SAFETY: the IRP is live until completed, and its location says where the answer goes.
            unsafe {
                let location = IoGetCurrentIrpStackLocation(irp.get());
                assert_eq!((*location).MinorFunction, IRP_MN_QUERY_INTERFACE);
                (*(*location).Parameters.QueryInterface.Interface).Version = 19;
            }
            // SAFETY: as above.
            unsafe { Machine::current().complete_irp(irp.get(), STATUS_SUCCESS, 5) };
        });
        STATUS_PENDING
    }
}

#[test]
fn a_synchronous_pnp_request_travels_to_the_bus_and_back() {
    expect(run(|machine| {
        let bus = machine.create_device(Arc::new(Bus), DeviceProperties::from([(1, vec![1, 2, 3])]));
        // SAFETY: everything lives until the request is complete.
        unsafe {
            let mut event = KEVENT::zeroed();
            let mut status = IO_STATUS_BLOCK::new(0, 0);
            let mut interface = INTERFACE::zeroed();
            KeInitializeEvent(&raw mut event, NotificationEvent, FALSE);
            let top = IoGetAttachedDeviceReference(bus);
            let irp = IoBuildSynchronousFsdRequest(
                u32::from(IRP_MJ_PNP),
                top,
                ptr::null_mut(),
                0,
                ptr::null_mut(),
                &raw mut event,
                &raw mut status,
            );
            let location = IoGetNextIrpStackLocation(irp);
            (*location).MinorFunction = IRP_MN_QUERY_INTERFACE;
            (*location).Parameters.QueryInterface.Interface = &raw mut interface;
            (*irp).IoStatus = IO_STATUS_BLOCK::new(STATUS_NOT_SUPPORTED, 0);
            assert_eq!(IofCallDriver(top, irp), STATUS_PENDING);
            KeWaitForSingleObject((&raw mut event).cast(), Executive, KernelMode, FALSE, ptr::null_mut());
            assert_eq!((status.status(), status.Information, interface.Version), (STATUS_SUCCESS, 5, 19));

            let (mut buffer, mut length) = ([0u8; 3], 0);
            let property = |size, buffer: &mut [u8; 3], length: &mut u32| {
                IoGetDeviceProperty(top, 1, size, buffer.as_mut_ptr().cast(), length)
            };
            assert_eq!(property(2, &mut buffer, &mut length), STATUS_BUFFER_TOO_SMALL);
            assert_eq!(length, 3);
            assert_eq!(property(3, &mut buffer, &mut length), STATUS_SUCCESS);
            assert_eq!(buffer, [1, 2, 3]);
            ObfDereferenceObject(top.cast());
        }
        assert_eq!(machine.outstanding().len(), 0);
    }));
}

unsafe extern "win64" fn keep_irp(_device: *mut DEVICE_OBJECT, irp: *mut IRP, context: PVOID) -> NTSTATUS {
    // SAFETY: the context is the event of the test below, the IRP is live.
    unsafe {
        assert_eq!((*irp).PendingReturned, 1);
        KeSetEvent(context.cast(), 0, FALSE);
    }
    STATUS_MORE_PROCESSING_REQUIRED
}

#[test]
fn a_completion_routine_can_keep_the_irp() {
    expect(run(|machine| {
        let bus = machine.create_device(Arc::new(Bus), DeviceProperties::new());
        // SAFETY: everything lives until the request is complete.
        unsafe {
            let mut event = KEVENT::zeroed();
            let mut interface = INTERFACE::zeroed();
            KeInitializeEvent(&raw mut event, NotificationEvent, FALSE);
            let irp = IoAllocateIrp((*bus).StackSize, FALSE);
            let location = IoGetNextIrpStackLocation(irp);
            (*location).MajorFunction = IRP_MJ_PNP;
            (*location).MinorFunction = IRP_MN_QUERY_INTERFACE;
            (*location).Parameters.QueryInterface.Interface = &raw mut interface;
            (*irp).IoStatus = IO_STATUS_BLOCK::new(STATUS_NOT_SUPPORTED, 0);
            IoSetCompletionRoutine(irp, Some(keep_irp), (&raw mut event).cast());
            assert_eq!(IofCallDriver(bus, irp), STATUS_PENDING);
            KeWaitForSingleObject((&raw mut event).cast(), Executive, KernelMode, FALSE, ptr::null_mut());
            assert_eq!((*irp).IoStatus.status(), STATUS_SUCCESS);
            IoFreeIrp(irp);
        }
        assert_eq!(machine.outstanding().len(), 0);
    }));
}

unsafe extern "win64" fn unload(driver: *mut DRIVER_OBJECT) {
    // SAFETY: the driver object of the test below, whose extension holds a pool block.
    unsafe {
        let extension = IoGetDriverObjectExtension(driver, 1 as PVOID).cast::<PVOID>();
        free(*extension);
    }
}

unsafe extern "win64" fn entry(driver: *mut DRIVER_OBJECT, path: *mut UNICODE_STRING) -> NTSTATUS {
    let mut extension = ptr::null_mut();
    // SAFETY: the arguments of DriverEntry.
    unsafe {
        assert!((*path).Length > 0);
        assert_eq!(
            IoAllocateDriverObjectExtension(driver, 1 as PVOID, 8, &raw mut extension),
            STATUS_SUCCESS
        );
        let mut other = ptr::null_mut();
        let again = IoAllocateDriverObjectExtension(driver, 1 as PVOID, 8, &raw mut other);
        assert_eq!(again, STATUS_OBJECT_NAME_COLLISION);
        *extension.cast::<PVOID>() = allocate(10);
        (*driver).DriverUnload = Some(unload);
    }
    STATUS_SUCCESS
}

#[test]
fn a_driver_is_loaded_and_unloaded() {
    expect(run(|machine| {
        let driver = machine.load_driver("test", Some(entry)).unwrap();
        assert_eq!(machine.outstanding().len(), 1);
        machine.unload_driver(driver);
        machine.check_leaks("DriverUnload");
        assert_eq!(machine.driver_calls(), 2);
    }));
}

#[test]
fn leaks_name_the_call_stack_that_made_them() {
    let config = MachineConfig { record_stacks: true, ..MachineConfig::default() };
    expect(run_on(config, |machine| {
        allocate(24);
        let leaks = machine.outstanding();
        assert_eq!(leaks.len(), 1);
        assert!(
            leaks[0].stack.iter().any(|frame| frame.contains("leaks_name_the_call_stack")),
            "{}",
            leaks[0]
        );
    }));
}

#[test]
fn a_dpc_interrupts_the_driver_only_below_dispatch_level() {
    expect(run_on(MachineConfig { cpus: 1, ..MachineConfig::default() }, |machine| {
        let runs = Arc::new(AtomicU32::new(0));
        call_driver("Callback", DISPATCH_LEVEL, || {
            let runs = Arc::clone(&runs);
            machine.queue_dpc("dpc", move || {
                runs.fetch_add(1, Ordering::Relaxed);
            });
            for _ in 0..1000 {
                preempt("driver");
            }
        });
        assert_eq!(runs.load(Ordering::Relaxed), 1, "ran when the level was lowered, before anything else");
    }));
}

#[test]
fn every_import_of_the_driver_is_exported() {
    let names: std::collections::BTreeSet<_> = crate::kernel::exports().map(|export| export.name).collect();
    let missing: Vec<_> = NTOSKRNL_IMPORTS.iter().filter(|name| !names.contains(*name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(
        crate::kernel::exports().all(|export| export.module == "ntoskrnl.exe" && !export.address.is_null())
    );
}

#[test]
fn the_stack_that_the_driver_uses_is_measured() {
    #[inline(never)]
    fn deep(levels: usize) -> usize {
        let frame = std::hint::black_box([levels as u8; 1000]);
        preempt("deep");
        if levels == 0 { usize::from(frame[0]) } else { deep(levels - 1) + usize::from(frame[999] > 0) }
    }
    expect(run(|machine| {
        assert_eq!(call_driver("Callback", PASSIVE_LEVEL, || deep(7)), 7);
        let peak = machine.driver_stack_peak();
        assert!((8000..12_000).contains(&peak), "{peak} bytes");
    }));
}

#[test]
fn debug_output_and_clocks() {
    expect(run(|machine| {
        // SAFETY: terminated strings, live variables.
        unsafe {
            let mut text = c"[1] hello".as_ptr().cast_mut().cast();
            vDbgPrintEx(DPFLTR_IHVNETWORK_ID, DPFLTR_INFO_LEVEL, c"%s".as_ptr(), &raw mut text);
            let mut frequency = 0;
            let before = KeQueryPerformanceCounter(&raw mut frequency);
            let mut interval = -10_000;
            KeDelayExecutionThread(KernelMode, FALSE, &raw mut interval);
            let passed = KeQueryPerformanceCounter(ptr::null_mut()) - before;
            assert!((frequency / 1000..frequency / 500).contains(&passed), "{passed} counts");
        }
        assert_eq!(machine.debug_lines()[0].text, "[1] hello");
    }));
}

#[test]
fn faults_follow_their_plan() {
    expect(run(|machine| {
        let try_one = || {
            let block = allocate(8);
            let failed = block.is_null();
            if !failed {
                free(block);
            }
            failed
        };
        machine.faults().set(Plan::Count { call: "ExAllocatePool2", from: 1, count: 2 });
        assert_eq!([0; 4].map(|_| try_one()), [false, true, true, false]);
        machine.faults().set(Plan::Count { call: "IoAllocateIrp", from: 0, count: 1 });
        assert!(!try_one());
        machine.faults().set(Plan::Chance { parts: 1 << 15, call: None });
        let failures = (0..200).filter(|_| try_one()).count();
        assert!((60..140).contains(&failures), "{failures} of 200");
        assert_eq!(machine.faults().injected(), failures as u64);
    }));
}

/// Three fallible calls at two places, one of them reached by two ways.
fn fallible() -> u32 {
    #[inline(never)]
    fn attempt() -> u32 {
        // SAFETY: takes no pointers.
        let block = unsafe { ExAllocatePool2(POOL_FLAGS::NON_PAGED.bits(), 8, TAG) };
        if block.is_null() {
            return 1;
        }
        free(block);
        0
    }
    let first = std::hint::black_box(attempt());
    let second = std::hint::black_box(attempt());
    // SAFETY: takes no pointers.
    let irp = unsafe { IoAllocateIrp(1, FALSE) };
    if irp.is_null() {
        return first + second + 1;
    }
    // SAFETY: a live IRP.
    unsafe { IoFreeIrp(irp) };
    first + second
}

fn run_sweep(machine: &Machine) -> u32 {
    machine.run("driver", SECOND, || call_driver("Callback", PASSIVE_LEVEL, fallible)).unwrap()
}

#[test]
fn a_sweep_fails_every_call_site_once_and_then_none() {
    let sweep = Sweep::new();
    let mut failures = Vec::new();
    loop {
        let plan = sweep.clone();
        let (_sim, machine) = machine(MachineConfig::default());
        machine.faults().set(Plan::Sweep(plan));
        failures.push(run_sweep(&machine));
        if !sweep.next_run() {
            break;
        }
    }
    assert_eq!(failures, [1, 1, 1, 0]);
    let sites = sweep.sites();
    assert_eq!(sites.len(), 3);
    assert!(sites.iter().all(|site| site.failed));
    for site in &sites {
        let (_sim, machine) = machine(MachineConfig::default());
        machine.faults().set(Plan::Site(site.id()));
        let failed =
            machine.run("another thread", SECOND, || call_driver("Callback", PASSIVE_LEVEL, fallible));
        assert_eq!(failed, Ok(1));
    }
    assert!(sites.iter().all(|site| site.stack().iter().any(|frame| frame.contains("fallible"))));
}
