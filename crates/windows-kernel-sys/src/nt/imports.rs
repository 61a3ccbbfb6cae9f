//! What is imported from `ntoskrnl.exe`. The page of a function is wdm/nf-wdm- with its name in lower case (ntddk/
//! for driver object extensions); the IRQL is the page's.

use super::*;

imports! {
    /// Names imported from `ntoskrnl.exe`.
    NTOSKRNL_IMPORTS from "ntoskrnl.exe";

    /// Windows 10 2004 and later. IRQL <= DISPATCH_LEVEL for nonpaged pool. Null if there is no memory.
    fn ExAllocatePool2(Flags: u64, NumberOfBytes: usize, Tag: u32) -> PVOID;
    /// IRQL <= DISPATCH_LEVEL for nonpaged pool.
    fn ExFreePoolWithTag(P: PVOID, Tag: u32);
    /// IRQL <= DISPATCH_LEVEL.
    fn KeAcquireSpinLockRaiseToDpc(SpinLock: *mut KSPIN_LOCK) -> KIRQL;
    /// IRQL = DISPATCH_LEVEL.
    fn KeReleaseSpinLock(SpinLock: *mut KSPIN_LOCK, NewIrql: KIRQL);
    /// IRQL >= DISPATCH_LEVEL.
    fn KeAcquireSpinLockAtDpcLevel(SpinLock: *mut KSPIN_LOCK);
    /// IRQL >= DISPATCH_LEVEL.
    fn KeReleaseSpinLockFromDpcLevel(SpinLock: *mut KSPIN_LOCK);
    /// Any level.
    fn KeGetCurrentIrql() -> KIRQL;
    /// Raises; `NewIrql` must not be below the current level. The header's `KeRaiseIrql` is this.
    fn KfRaiseIrql(NewIrql: KIRQL) -> KIRQL;
    /// Lowers to what a raise returned.
    fn KeLowerIrql(NewIrql: KIRQL);
    /// IRQL <= DISPATCH_LEVEL is usual; any level works.
    fn KeInitializeEvent(Event: *mut KEVENT, Type: EVENT_TYPE, State: BOOLEAN);
    /// IRQL <= DISPATCH_LEVEL if `Wait` is FALSE. Returns the previous state.
    fn KeSetEvent(Event: *mut KEVENT, Increment: i32, Wait: BOOLEAN) -> i32;
    /// IRQL <= DISPATCH_LEVEL.
    fn KeClearEvent(Event: *mut KEVENT);
    /// IRQL <= DISPATCH_LEVEL. Returns the previous state.
    fn KeResetEvent(Event: *mut KEVENT) -> i32;
    /// IRQL <= DISPATCH_LEVEL.
    fn KeReadStateEvent(Event: *mut KEVENT) -> i32;
    /// PASSIVE_LEVEL or APC_LEVEL, or DISPATCH_LEVEL with a zero timeout. Negative timeouts are relative, unit 100 ns.
    fn KeWaitForSingleObject(
        Object: PVOID, WaitReason: KWAIT_REASON, WaitMode: KPROCESSOR_MODE, Alertable: BOOLEAN, Timeout: *mut i64,
    ) -> NTSTATUS;
    /// IRQL <= APC_LEVEL. Negative intervals are relative, unit 100 ns.
    fn KeDelayExecutionThread(WaitMode: KPROCESSOR_MODE, Alertable: BOOLEAN, Interval: *mut i64) -> NTSTATUS;
    /// Any level. Unit 100 ns since boot; `QpcTimeStamp` receives the performance counter at that moment.
    fn KeQueryInterruptTimePrecise(QpcTimeStamp: *mut u64) -> u64;
    /// Any level. The page names hal.dll, which since Windows 10 2004 forwards to this export.
    fn KeQueryPerformanceCounter(PerformanceFrequency: *mut i64) -> i64;
    /// Never returns. Any level.
    fn KeBugCheckEx(
        BugCheckCode: u32, BugCheckParameter1: usize, BugCheckParameter2: usize, BugCheckParameter3: usize,
        BugCheckParameter4: usize,
    ) -> !;
    /// Any level. `arglist` points to the arguments, eight bytes each; with format "%s" to one pointer to a string.
    fn vDbgPrintEx(ComponentId: u32, Level: u32, Format: *const i8, arglist: *mut PVOID) -> u32;
    /// PASSIVE_LEVEL.
    fn IoAllocateDriverObjectExtension(
        DriverObject: *mut DRIVER_OBJECT, ClientIdentificationAddress: PVOID, DriverObjectExtensionSize: u32,
        DriverObjectExtension: *mut PVOID,
    ) -> NTSTATUS;
    /// IRQL <= DISPATCH_LEVEL. Null if there is none of that client.
    fn IoGetDriverObjectExtension(DriverObject: *mut DRIVER_OBJECT, ClientIdentificationAddress: PVOID) -> PVOID;
    /// IRQL <= DISPATCH_LEVEL. The top device of the stack, referenced.
    fn IoGetAttachedDeviceReference(DeviceObject: *mut DEVICE_OBJECT) -> *mut DEVICE_OBJECT;
    /// IRQL <= DISPATCH_LEVEL, PASSIVE_LEVEL if it may be the last reference.
    fn ObfDereferenceObject(Object: PVOID) -> isize;
    /// PASSIVE_LEVEL. The I/O manager frees the IRP on completion.
    fn IoBuildSynchronousFsdRequest(
        MajorFunction: u32, DeviceObject: *mut DEVICE_OBJECT, Buffer: PVOID, Length: u32, StartingOffset: *mut i64,
        Event: *mut KEVENT, IoStatusBlock: *mut IO_STATUS_BLOCK,
    ) -> *mut IRP;
    /// IRQL <= DISPATCH_LEVEL.
    fn IoAllocateIrp(StackSize: i8, ChargeQuota: BOOLEAN) -> *mut IRP;
    /// IRQL <= DISPATCH_LEVEL.
    fn IoFreeIrp(Irp: *mut IRP);
    /// The header's `IoCallDriver` is this. IRQL as the request demands; PASSIVE_LEVEL for PnP.
    fn IofCallDriver(DeviceObject: *mut DEVICE_OBJECT, Irp: *mut IRP) -> NTSTATUS;
    /// The header's `IoCompleteRequest` is this. IRQL <= DISPATCH_LEVEL.
    fn IofCompleteRequest(Irp: *mut IRP, PriorityBoost: i8);
    /// IRQL <= DISPATCH_LEVEL.
    fn IoAllocateMdl(
        VirtualAddress: PVOID, Length: u32, SecondaryBuffer: BOOLEAN, ChargeQuota: BOOLEAN, Irp: *mut IRP,
    ) -> *mut MDL;
    /// IRQL <= DISPATCH_LEVEL.
    fn IoFreeMdl(Mdl: *mut MDL);
    /// IRQL <= DISPATCH_LEVEL.
    fn MmBuildMdlForNonPagedPool(MemoryDescriptorList: *mut MDL);
    /// IRQL <= DISPATCH_LEVEL for kernel mode.
    fn MmMapLockedPagesSpecifyCache(
        MemoryDescriptorList: *mut MDL, AccessMode: KPROCESSOR_MODE, CacheType: MEMORY_CACHING_TYPE,
        RequestedAddress: PVOID, BugCheckOnFailure: u32, Priority: u32,
    ) -> PVOID;
    /// Any level for nonpaged memory.
    fn MmGetPhysicalAddress(BaseAddress: PVOID) -> PHYSICAL_ADDRESS;
    /// PASSIVE_LEVEL.
    fn IoGetDeviceProperty(
        DeviceObject: *mut DEVICE_OBJECT, DeviceProperty: DEVICE_REGISTRY_PROPERTY, BufferLength: u32,
        PropertyBuffer: PVOID, ResultLength: *mut u32,
    ) -> NTSTATUS;
    /// Any level if both strings are resident.
    fn RtlInitUnicodeString(DestinationString: *mut UNICODE_STRING, SourceString: *const WCHAR);
}

/// A spin lock is initialised by making it zero: on x64 `KeInitializeSpinLock` is an inline function.
pub const KSPIN_LOCK_FREE: KSPIN_LOCK = 0;

/// `DPFLTR_IHVNETWORK_ID`: debug-print component of network drivers of independent vendors (`dpfilter.h`).
pub const DPFLTR_IHVNETWORK_ID: u32 = 80;
/// `DPFLTR_ERROR_LEVEL`.
pub const DPFLTR_ERROR_LEVEL: u32 = 0;
/// `DPFLTR_WARNING_LEVEL`.
pub const DPFLTR_WARNING_LEVEL: u32 = 1;
/// `DPFLTR_TRACE_LEVEL`.
pub const DPFLTR_TRACE_LEVEL: u32 = 2;
/// `DPFLTR_INFO_LEVEL`.
pub const DPFLTR_INFO_LEVEL: u32 = 3;
