//! Spin locks and events by NDIS's names: thin covers of the kernel's, with structures of their own.

use windows_kernel_sys::{
    BOOLEAN, FALSE, KEVENT, KIRQL, KSPIN_LOCK, KSPIN_LOCK_FREE, KeAcquireSpinLockAtDpcLevel,
    KeAcquireSpinLockRaiseToDpc, KeClearEvent, KeInitializeEvent, KeReleaseSpinLock,
    KeReleaseSpinLockFromDpcLevel, KeSetEvent, KeWaitForSingleObject, KernelMode, NotificationEvent,
    STATUS_SUCCESS,
};

use crate::export;

/// `NDIS_SPIN_LOCK` (ndis.h).
#[repr(C)]
pub struct NdisSpinLock {
    lock: KSPIN_LOCK,
    old_irql: KIRQL,
}

/// `NDIS_EVENT` (ndis.h).
#[repr(C)]
pub struct NdisEvent {
    event: KEVENT,
}

/// `Executive` of `KWAIT_REASON` (wdm.h).
const EXECUTIVE: i32 = 0;

export! { "ndis.sys";
    /// Any level (ndis/nf-ndis-ndisallocatespinlock).
    pub unsafe fn NdisAllocateSpinLock(SpinLock: *mut NdisSpinLock) {
        // SAFETY: the driver's memory.
        unsafe { SpinLock.write(NdisSpinLock { lock: KSPIN_LOCK_FREE, old_irql: 0 }) };
    }

    /// Any level (ndis/nf-ndis-ndisfreespinlock). Nothing was allocated.
    pub unsafe fn NdisFreeSpinLock(SpinLock: *mut NdisSpinLock) {
        let _ = SpinLock;
    }

    /// IRQL <= DISPATCH_LEVEL (ndis/nf-ndis-ndisacquirespinlock).
    pub unsafe fn NdisAcquireSpinLock(SpinLock: *mut NdisSpinLock) {
        // SAFETY: the driver's lock; the level is stored once the lock is held.
        unsafe { (*SpinLock).old_irql = KeAcquireSpinLockRaiseToDpc(&raw mut (*SpinLock).lock) };
    }

    /// DISPATCH_LEVEL (ndis/nf-ndis-ndisreleasespinlock).
    pub unsafe fn NdisReleaseSpinLock(SpinLock: *mut NdisSpinLock) {
        // SAFETY: the driver's lock, which it holds; the level is read before it is given up.
        unsafe {
            let old_irql = (*SpinLock).old_irql;
            KeReleaseSpinLock(&raw mut (*SpinLock).lock, old_irql);
        }
    }

    /// DISPATCH_LEVEL (ndis/nf-ndis-ndisdpracquirespinlock).
    pub unsafe fn NdisDprAcquireSpinLock(SpinLock: *mut NdisSpinLock) {
        // SAFETY: the driver's lock.
        unsafe { KeAcquireSpinLockAtDpcLevel(&raw mut (*SpinLock).lock) };
    }

    /// DISPATCH_LEVEL (ndis/nf-ndis-ndisdprreleasespinlock).
    pub unsafe fn NdisDprReleaseSpinLock(SpinLock: *mut NdisSpinLock) {
        // SAFETY: the driver's lock, which it holds.
        unsafe { KeReleaseSpinLockFromDpcLevel(&raw mut (*SpinLock).lock) };
    }

    /// PASSIVE_LEVEL (ndis/nf-ndis-ndisinitializeevent).
    pub unsafe fn NdisInitializeEvent(Event: *mut NdisEvent) {
        super::call::entered("NdisInitializeEvent", super::call::PASSIVE);
        // SAFETY: the driver's memory.
        unsafe { KeInitializeEvent(&raw mut (*Event).event, NotificationEvent, FALSE) };
    }

    /// IRQL <= DISPATCH_LEVEL (ndis/nf-ndis-ndissetevent).
    pub unsafe fn NdisSetEvent(Event: *mut NdisEvent) {
        // SAFETY: the driver's event.
        unsafe { KeSetEvent(&raw mut (*Event).event, 0, FALSE) };
    }

    /// IRQL <= DISPATCH_LEVEL (ndis/nf-ndis-ndisresetevent).
    pub unsafe fn NdisResetEvent(Event: *mut NdisEvent) {
        // SAFETY: the driver's event.
        unsafe { KeClearEvent(&raw mut (*Event).event) };
    }

    /// PASSIVE_LEVEL (ndis/nf-ndis-ndiswaitevent). Zero milliseconds wait for ever; true if the event was set.
    pub unsafe fn NdisWaitEvent(Event: *mut NdisEvent, MsToWait: u32) -> BOOLEAN {
        super::call::entered("NdisWaitEvent", super::call::PASSIVE);
        let mut timeout = -10_000 * i64::from(MsToWait);
        let timeout = if MsToWait == 0 { std::ptr::null_mut() } else { &raw mut timeout };
        // SAFETY: the driver's event, and a timeout that lives for the call.
        let status = unsafe {
            KeWaitForSingleObject((&raw mut (*Event).event).cast(), EXECUTIVE, KernelMode, FALSE, timeout)
        };
        BOOLEAN::from(status == STATUS_SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Machine, MachineConfig};
    use crate::sim::{self, SECOND, Sim, SimConfig};

    #[test]
    fn events_and_locks_do_what_the_kernels_do() {
        let sim = Sim::owned(SimConfig::seeded(1));
        let machine = Machine::new(&sim, MachineConfig::default());
        let outcome = machine.run("driver", SECOND, || {
            let mut lock = NdisSpinLock { lock: 1, old_irql: 9 };
            let mut event = std::mem::MaybeUninit::<NdisEvent>::uninit();
            // SAFETY: memory of the test's own, used as documented.
            unsafe {
                NdisAllocateSpinLock(&raw mut lock);
                NdisAcquireSpinLock(&raw mut lock);
                assert_eq!(sim::level(), 2);
                NdisReleaseSpinLock(&raw mut lock);
                assert_eq!(sim::level(), 0);
                NdisFreeSpinLock(&raw mut lock);
                let event = event.as_mut_ptr();
                NdisInitializeEvent(event);
                assert_eq!(NdisWaitEvent(event, 5), 0, "not set within the time");
                NdisSetEvent(event);
                assert_eq!(NdisWaitEvent(event, 0), 1);
                NdisResetEvent(event);
                assert_eq!(NdisWaitEvent(event, 5), 0, "reset");
            }
        });
        assert_eq!(outcome, Ok(()));
    }
}
