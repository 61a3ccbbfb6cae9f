//! Every rule is broken by one wrong action, and that action breaks exactly that rule.

use std::collections::BTreeSet;
use std::ptr;

use super::*;
use crate::kernel::mdl::MdlOwner;
use crate::verifier::rules::*;
use crate::verifier::{Rule, call_driver};

type Action = fn(&Machine);

/// A rule, whether it needs guard pages to show, and a driver that breaks it.
const ACTIONS: &[(Rule, bool, Action)] = &[
    (IRQL, false, |_| {
        raise();
        let mut extension = ptr::null_mut();
        // SAFETY: never gets past the check of its IRQL.
        unsafe { IoAllocateDriverObjectExtension(ptr::null_mut(), ptr::null_mut(), 8, &raw mut extension) };
    }),
    (IRQL_RAISE_LOWERS, false, |_| {
        raise();
        // SAFETY: takes no pointers.
        unsafe { KfRaiseIrql(PASSIVE_LEVEL) };
    }),
    // SAFETY: takes no pointers.
    (IRQL_LOWER_RAISES, false, |_| unsafe { KeLowerIrql(DISPATCH_LEVEL) }),
    (IRQL_LOWERED_BELOW_ENTRY, false, |_| {
        // SAFETY: takes no pointers.
        call_driver("Callback", DISPATCH_LEVEL, || unsafe { KeLowerIrql(PASSIVE_LEVEL) });
    }),
    (IRQL_NOT_RESTORED, false, |_| call_driver("Callback", PASSIVE_LEVEL, raise)),
    (THREAD_ENDS_RAISED, false, |_| raise()),
    (LOCK_HELD_AT_RETURN, false, |_| {
        let lock = lock();
        // SAFETY: a live lock.
        call_driver("Callback", DISPATCH_LEVEL, || unsafe { KeAcquireSpinLockAtDpcLevel(lock) });
    }),
    (LOCK_RECURSION, false, |_| {
        let lock = lock();
        // SAFETY: a live lock.
        unsafe {
            KeAcquireSpinLockRaiseToDpc(lock);
            KeAcquireSpinLockAtDpcLevel(lock);
        }
    }),
    (LOCK_NOT_HELD, false, |_| {
        raise();
        // SAFETY: a live lock.
        unsafe { KeReleaseSpinLockFromDpcLevel(lock()) };
    }),
    (LOCK_ORDER, false, |_| {
        let (first, second) = (lock(), lock());
        raise();
        for [outer, inner] in [[first, second], [second, first]] {
            // SAFETY: live locks.
            unsafe {
                KeAcquireSpinLockAtDpcLevel(outer);
                KeAcquireSpinLockAtDpcLevel(inner);
                KeReleaseSpinLockFromDpcLevel(inner);
                KeReleaseSpinLockFromDpcLevel(outer);
            }
        }
    }),
    (LOCK_HELD_BELOW_DISPATCH, false, |_| {
        // SAFETY: a live lock.
        unsafe {
            let irql = KeAcquireSpinLockRaiseToDpc(lock());
            KeLowerIrql(irql);
        }
    }),
    (LOCK_CORRUPT, false, |_| {
        let lock = lock();
        // SAFETY: a live lock, wrongly filled.
        unsafe {
            *lock = 0xDEAD;
            KeAcquireSpinLockRaiseToDpc(lock);
        }
    }),
    (LOCK_FREED_WHILE_HELD, false, |_| {
        let lock = lock();
        // SAFETY: a live lock.
        unsafe { KeAcquireSpinLockRaiseToDpc(lock) };
        free(lock.cast());
    }),
    (WAIT_AT_DISPATCH, false, |_| {
        // Signaled, so that it would not even wait: the rule is about the call.
        let event = event(true);
        raise();
        // SAFETY: a live event.
        unsafe { KeWaitForSingleObject(event.cast(), Executive, KernelMode, FALSE, ptr::null_mut()) };
    }),
    (OBJECT_NOT_INITIALIZED, false, |_| {
        // SAFETY: memory of an event's size.
        unsafe { KeSetEvent(allocate(size_of::<KEVENT>()).cast(), 0, FALSE) };
    }),
    (OBJECT_IN_PAGED_POOL, false, |_| {
        // SAFETY: takes no pointers; then memory of a lock's size.
        unsafe { KeAcquireSpinLockRaiseToDpc(ExAllocatePool2(POOL_FLAGS::PAGED.bits(), 16, TAG).cast()) };
    }),
    (OBJECT_REINITIALIZED_WHILE_WAITED, false, |machine| {
        let event = waited_event(machine);
        // SAFETY: a live event.
        unsafe { KeInitializeEvent(event, NotificationEvent, FALSE) };
    }),
    (OBJECT_FREED_WHILE_WAITED, false, |machine| free(waited_event(machine).cast())),
    (POOL_BAD_REQUEST, false, |_| {
        // SAFETY: takes no pointers.
        unsafe { ExAllocatePool2(POOL_FLAGS::NON_PAGED.bits(), 16, 0) };
    }),
    (POOL_BAD_FREE, false, |_| free(allocate(64).wrapping_byte_add(16))),
    (POOL_DOUBLE_FREE, false, |_| {
        let block = allocate(64);
        free(block);
        free(block);
    }),
    (POOL_WRONG_TAG, false, |_| {
        // SAFETY: a live block.
        unsafe { ExFreePoolWithTag(allocate(64), TAG + 1) };
    }),
    (POOL_OVERRUN, false, |_| {
        let block = allocate(100);
        // SAFETY: not in the block, but in its slot, which is mapped.
        unsafe { block.cast::<u8>().add(100).write(1) };
        free(block);
    }),
    (POOL_OVERRUN, true, |_| {
        // SAFETY: deliberately wrong: the first byte behind the block lies in the guard page.
        unsafe { allocate(64).cast::<u8>().add(64).write_volatile(1) };
    }),
    (POOL_OVERRUN, false, |_| {
        // SAFETY: deliberately wrong: blocks of whole pages have a guard page always.
        unsafe { allocate(8192).cast::<u8>().add(8192).write_volatile(1) };
    }),
    (POOL_USE_AFTER_FREE, false, |machine| {
        let block = allocate(100);
        free(block);
        // SAFETY: not in a live block, but mapped.
        unsafe { block.cast::<u8>().write(1) };
        machine.check_pool();
    }),
    (POOL_USE_AFTER_FREE, true, |_| {
        let block = allocate(64).cast::<u8>();
        free(block.cast());
        // SAFETY: deliberately wrong: the page is inaccessible now.
        unsafe { block.read_volatile() };
    }),
    (POOL_LEAK, false, |machine| {
        allocate(64);
        machine.check_leaks("DriverUnload");
    }),
    (RESOURCE_LEAK, false, |machine| {
        // SAFETY: the buffer is not touched.
        unsafe { IoAllocateMdl(8 as PVOID, 8, FALSE, FALSE, ptr::null_mut()) };
        machine.check_leaks("DriverUnload");
    }),
    (RESOURCE_NOT_OWNED, false, |machine| machine.release("timer", 1, "NdisFreeTimerObject", None)),
    (PAGE_FAULT, false, |_| {
        // SAFETY: deliberately wrong.
        unsafe { ptr::without_provenance::<u8>(0x10).read_volatile() };
    }),
    (MDL_NOT_NONPAGED_POOL, false, |_| {
        let on_the_stack = [0u8; 16];
        // SAFETY: the buffer is not touched.
        unsafe {
            let mdl = IoAllocateMdl(on_the_stack.as_ptr() as PVOID, 16, FALSE, FALSE, ptr::null_mut());
            MmBuildMdlForNonPagedPool(mdl);
        }
    }),
    (MDL_STATE, false, |_| {
        // SAFETY: a live MDL, which is not locked.
        unsafe {
            let mdl = IoAllocateMdl(allocate(64), 64, FALSE, FALSE, ptr::null_mut());
            MmMapLockedPagesSpecifyCache(mdl, KernelMode, MmCached, ptr::null_mut(), 0, NormalPagePriority);
        }
    }),
    (MDL_NOT_OWNED, false, |machine| {
        let others = machine.allocate_mdl(allocate(64), 64, MdlOwner::System);
        // SAFETY: checked not to be the driver's.
        unsafe { IoFreeMdl(others) };
    }),
    (IRP_NOT_OWNED, false, |_| {
        // SAFETY: checked to be freed already.
        unsafe {
            let irp = IoAllocateIrp(1, FALSE);
            IoFreeIrp(irp);
            IoFreeIrp(irp);
        }
    }),
    (IRP_STACK_EXHAUSTED, false, |machine| {
        // SAFETY: a live device and IRP.
        unsafe {
            let irp = IoAllocateIrp(1, FALSE);
            (*irp).CurrentLocation = 1;
            IofCallDriver(device(machine), irp);
        }
    }),
    (IRP_COMPLETED_TWICE, false, |_| {
        // SAFETY: a live IRP that was sent to nobody.
        unsafe { IofCompleteRequest(IoAllocateIrp(1, FALSE), 0) };
    }),
    (IRP_BAD_STATUS, false, |_| {
        // SAFETY: a live IRP.
        unsafe {
            let irp = IoAllocateIrp(1, FALSE);
            (*IoGetNextIrpStackLocation(irp)).MajorFunction = IRP_MJ_DEVICE_CONTROL;
            (*irp).IoStatus = IO_STATUS_BLOCK::new(STATUS_PENDING, 0);
            IofCompleteRequest(irp, 0);
        }
    }),
    (IRP_PNP_STATUS, false, |machine| {
        // SAFETY: a live device and IRP.
        unsafe {
            let irp = IoAllocateIrp(1, FALSE);
            (*IoGetNextIrpStackLocation(irp)).MajorFunction = IRP_MJ_PNP;
            IofCallDriver(device(machine), irp);
        }
    }),
    (OBJECT_OVER_DEREFERENCED, false, |machine| {
        // SAFETY: a live device.
        unsafe {
            let top = IoGetAttachedDeviceReference(device(machine));
            ObfDereferenceObject(top.cast());
            ObfDereferenceObject(top.cast());
        }
    }),
    // SAFETY: takes no pointers.
    (BUG_CHECK, false, |_| unsafe { KeBugCheckEx(0xE2, 1, 2, 3, 4) }),
];

/// Rules that other rooms report, with the facts this room gives them.
const REPORTED_ELSEWHERE: &[Rule] = &[DMA_INVALID_MEMORY, IMAGE_UNLOADED, IMAGE_PROTECTION];

#[test]
fn each_rule_is_tripped_by_exactly_its_wrong_action() {
    for (rule, guard_pages, action) in ACTIONS {
        let config = MachineConfig { guard_pages: *guard_pages, ..MachineConfig::default() };
        let outcome = run_on(config, action).expect_err(rule.name);
        assert_eq!(outcome.rule(), Some(rule.name), "{outcome}");
    }
}

#[test]
fn every_rule_has_a_wrong_action() {
    let tested: BTreeSet<_> = ACTIONS.iter().map(|(rule, ..)| rule.name).collect();
    let elsewhere: BTreeSet<_> = REPORTED_ELSEWHERE.iter().map(|rule| rule.name).collect();
    let all: BTreeSet<_> = KERNEL_RULES.iter().map(|rule| rule.name).collect();
    assert_eq!(&tested | &elsewhere, all);
    assert!(KERNEL_RULES.iter().all(|rule| !rule.source.is_empty() && !rule.demand.is_empty()));
}

#[test]
fn a_dpc_that_ends_wrongly_is_caught_too() {
    let (sim, machine) = machine(MachineConfig::default());
    machine.queue_dpc("bad", || {
        // SAFETY: a live lock.
        unsafe { KeAcquireSpinLockAtDpcLevel(lock()) };
    });
    assert_eq!(sim.run_to_idle(SECOND).rule(), Some("LOCK_HELD_AT_RETURN"));

    let (sim, machine) = super::machine(MachineConfig::default());
    // SAFETY: takes no pointers.
    machine.queue_dpc("bad", || unsafe { KeLowerIrql(PASSIVE_LEVEL) });
    assert_eq!(sim.run_to_idle(SECOND).rule(), Some("IRQL_LOWERED_BELOW_ENTRY"));
}

#[test]
fn quarantine_ends_in_a_check() {
    let outcome = run_on(MachineConfig { quarantine: 4, ..MachineConfig::default() }, |_| {
        let block = allocate(100);
        free(block);
        // SAFETY: not in a live block, but mapped.
        unsafe { block.cast::<u8>().add(50).write(1) };
        for _ in 0..8 {
            free(allocate(100));
        }
    });
    assert_eq!(outcome.expect_err("a late write").rule(), Some("POOL_USE_AFTER_FREE"));
}

fn raise() {
    // SAFETY: takes no pointers.
    unsafe { KfRaiseIrql(DISPATCH_LEVEL) };
}

fn lock() -> *mut KSPIN_LOCK {
    allocate(size_of::<KSPIN_LOCK>()).cast()
}

fn event(signaled: bool) -> *mut KEVENT {
    let event = allocate(size_of::<KEVENT>()).cast();
    // SAFETY: memory of an event's size.
    unsafe { KeInitializeEvent(event, NotificationEvent, BOOLEAN::from(signaled)) };
    event
}

/// An event for which a thread waits.
fn waited_event(machine: &Machine) -> *mut KEVENT {
    let event = event(false);
    let address = event as usize;
    machine.spawn_thread("waiter", move || {
        // SAFETY: a live event.
        unsafe { KeWaitForSingleObject(address as PVOID, Executive, KernelMode, FALSE, ptr::null_mut()) };
    });
    crate::sim::sleep(crate::sim::MILLISECOND);
    event
}

struct Echo;

impl DeviceHandler for Echo {
    fn dispatch(&self, machine: &Machine, _device: *mut DEVICE_OBJECT, irp: *mut IRP) -> NTSTATUS {
        // SAFETY: a device gets a live IRP.
        unsafe { machine.complete_irp(irp, STATUS_SUCCESS, 0) };
        STATUS_SUCCESS
    }
}

fn device(machine: &Machine) -> *mut DEVICE_OBJECT {
    machine.create_device(std::sync::Arc::new(Echo), DeviceProperties::new())
}
