//! The I/O manager, `Io`: devices, drivers, IRPs, bus interfaces, scatter/gather lists (`wdm.h`).

use super::{
    BOOLEAN, GUID, KDEVICE_QUEUE, KDPC, KEVENT, KIRQL, KPROCESSOR_MODE, LIST_ENTRY, MDL, NTSTATUS,
    PHYSICAL_ADDRESS, PVOID, UNICODE_STRING,
};

pub const IRP_MJ_CREATE: u8 = 0x00;
pub const IRP_MJ_CLOSE: u8 = 0x02;
pub const IRP_MJ_DEVICE_CONTROL: u8 = 0x0E;
pub const IRP_MJ_INTERNAL_DEVICE_CONTROL: u8 = 0x0F;
pub const IRP_MJ_POWER: u8 = 0x16;
pub const IRP_MJ_SYSTEM_CONTROL: u8 = 0x17;
pub const IRP_MJ_PNP: u8 = 0x1B;
pub const IRP_MJ_MAXIMUM_FUNCTION: u8 = 0x1B;
pub const IRP_MN_QUERY_INTERFACE: u8 = 0x08;

pub const IO_TYPE_DEVICE: i16 = 3;
pub const IO_TYPE_DRIVER: i16 = 4;
pub const IO_TYPE_IRP: i16 = 6;

/// `IO_STACK_LOCATION::Control` bits.
pub const SL_PENDING_RETURNED: u8 = 0x01;
pub const SL_ERROR_RETURNED: u8 = 0x02;
pub const SL_INVOKE_ON_CANCEL: u8 = 0x20;
pub const SL_INVOKE_ON_SUCCESS: u8 = 0x40;
pub const SL_INVOKE_ON_ERROR: u8 = 0x80;

/// `wdm/ns-wdm-_io_status_block`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct IO_STATUS_BLOCK {
    pub Anonymous: IO_STATUS_BLOCK_0,
    pub Information: usize,
}

/// The unnamed first member of [`IO_STATUS_BLOCK`].
#[repr(C)]
#[derive(Clone, Copy)]
pub union IO_STATUS_BLOCK_0 {
    pub Status: NTSTATUS,
    pub Pointer: PVOID,
}

impl IO_STATUS_BLOCK {
    /// A status block with both members set.
    pub const fn new(status: NTSTATUS, information: usize) -> Self {
        let mut anonymous = IO_STATUS_BLOCK_0 { Pointer: core::ptr::null_mut() };
        anonymous.Status = status;
        Self { Anonymous: anonymous, Information: information }
    }

    /// The final status of a request.
    pub const fn status(&self) -> NTSTATUS {
        // SAFETY: every bit pattern is an NTSTATUS.
        unsafe { self.Anonymous.Status }
    }
}

/// An I/O request packet (`wdm/ns-wdm-_irp`); its stack locations follow it.
#[repr(C, align(16))]
#[derive(Clone, Copy)]
pub struct IRP {
    pub Type: i16,
    pub Size: u16,
    pub MdlAddress: *mut MDL,
    pub Flags: u32,
    pub AssociatedIrp: IRP_ASSOCIATED,
    pub ThreadListEntry: LIST_ENTRY,
    pub IoStatus: IO_STATUS_BLOCK,
    pub RequestorMode: KPROCESSOR_MODE,
    pub PendingReturned: BOOLEAN,
    pub StackCount: i8,
    pub CurrentLocation: i8,
    pub Cancel: BOOLEAN,
    pub CancelIrql: KIRQL,
    pub ApcEnvironment: i8,
    pub AllocationFlags: u8,
    pub UserIosb: *mut IO_STATUS_BLOCK,
    pub UserEvent: *mut KEVENT,
    pub Overlay: IRP_OVERLAY,
    pub CancelRoutine: PVOID,
    pub UserBuffer: PVOID,
    pub Tail: IRP_TAIL,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub union IRP_ASSOCIATED {
    pub MasterIrp: *mut IRP,
    pub IrpCount: i32,
    pub SystemBuffer: PVOID,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub union IRP_OVERLAY {
    pub AsynchronousParameters: [PVOID; 2],
    pub AllocationSize: i64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub union IRP_TAIL {
    pub Overlay: IRP_TAIL_OVERLAY,
    /// Room for a `KAPC`.
    pub Apc: [u64; 11],
    pub CompletionKey: PVOID,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct IRP_TAIL_OVERLAY {
    pub DriverContext: [PVOID; 4],
    pub Thread: PVOID,
    pub AuxiliaryBuffer: PVOID,
    pub ListEntry: LIST_ENTRY,
    pub CurrentStackLocation: *mut IO_STACK_LOCATION,
    pub OriginalFileObject: PVOID,
}

/// One driver's part of an IRP (`wdm/ns-wdm-_io_stack_location`).
#[repr(C)]
#[derive(Clone, Copy)]
pub struct IO_STACK_LOCATION {
    pub MajorFunction: u8,
    pub MinorFunction: u8,
    pub Flags: u8,
    pub Control: u8,
    pub Parameters: IO_STACK_PARAMETERS,
    pub DeviceObject: *mut DEVICE_OBJECT,
    pub FileObject: PVOID,
    pub CompletionRoutine: PIO_COMPLETION_ROUTINE,
    pub Context: PVOID,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub union IO_STACK_PARAMETERS {
    pub QueryInterface: IO_STACK_QUERY_INTERFACE,
    pub Others: [PVOID; 4],
}

/// Parameters of IRP_MN_QUERY_INTERFACE (kernel/irp-mn-query-interface).
#[repr(C)]
#[derive(Clone, Copy)]
pub struct IO_STACK_QUERY_INTERFACE {
    pub InterfaceType: *const GUID,
    pub Size: u16,
    pub Version: u16,
    pub Interface: *mut INTERFACE,
    pub InterfaceSpecificData: PVOID,
}

/// Head of every bus interface (`wdm/ns-wdm-_interface`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct INTERFACE {
    pub Size: u16,
    pub Version: u16,
    pub Context: PVOID,
    pub InterfaceReference: PINTERFACE_REFERENCE,
    pub InterfaceDereference: PINTERFACE_REFERENCE,
}

/// `wdm/ns-wdm-_device_object`.
#[repr(C, align(16))]
#[derive(Clone, Copy)]
pub struct DEVICE_OBJECT {
    pub Type: i16,
    pub Size: u16,
    pub ReferenceCount: i32,
    pub DriverObject: *mut DRIVER_OBJECT,
    pub NextDevice: *mut DEVICE_OBJECT,
    pub AttachedDevice: *mut DEVICE_OBJECT,
    pub CurrentIrp: *mut IRP,
    pub Timer: PVOID,
    pub Flags: u32,
    pub Characteristics: u32,
    pub Vpb: PVOID,
    pub DeviceExtension: PVOID,
    pub DeviceType: u32,
    pub StackSize: i8,
    /// `LIST_ENTRY` or `WAIT_CONTEXT_BLOCK`.
    pub Queue: [u64; 9],
    pub AlignmentRequirement: u32,
    pub DeviceQueue: KDEVICE_QUEUE,
    pub Dpc: KDPC,
    pub ActiveThreadCount: u32,
    pub SecurityDescriptor: PVOID,
    pub DeviceLock: KEVENT,
    pub SectorSize: u16,
    pub Spare1: u16,
    pub DeviceObjectExtension: PVOID,
    pub Reserved: PVOID,
}

/// `wdm/ns-wdm-_driver_object`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DRIVER_OBJECT {
    pub Type: i16,
    pub Size: i16,
    pub DeviceObject: *mut DEVICE_OBJECT,
    pub Flags: u32,
    pub DriverStart: PVOID,
    pub DriverSize: u32,
    pub DriverSection: PVOID,
    pub DriverExtension: PVOID,
    pub DriverName: UNICODE_STRING,
    pub HardwareDatabase: *mut UNICODE_STRING,
    pub FastIoDispatch: PVOID,
    pub DriverInit: PDRIVER_INITIALIZE,
    pub DriverStartIo: PVOID,
    pub DriverUnload: PDRIVER_UNLOAD,
    pub MajorFunction: [PDRIVER_DISPATCH; IRP_MJ_MAXIMUM_FUNCTION as usize + 1],
}

/// `wdm/ns-wdm-_scatter_gather_element`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SCATTER_GATHER_ELEMENT {
    pub Address: PHYSICAL_ADDRESS,
    pub Length: u32,
    pub Reserved: usize,
}

/// `wdm/ns-wdm-_scatter_gather_list`; `NumberOfElements` elements follow it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SCATTER_GATHER_LIST {
    pub NumberOfElements: u32,
    pub Reserved: usize,
    pub Elements: [SCATTER_GATHER_ELEMENT; 0],
}

/// `DEVICE_REGISTRY_PROPERTY` of `IoGetDeviceProperty` (wdm/ne-wdm-device_registry_property).
pub type DEVICE_REGISTRY_PROPERTY = i32;
pub const DevicePropertyDeviceDescription: DEVICE_REGISTRY_PROPERTY = 0x0;
pub const DevicePropertyHardwareID: DEVICE_REGISTRY_PROPERTY = 0x1;
pub const DevicePropertyDriverKeyName: DEVICE_REGISTRY_PROPERTY = 0x7;
pub const DevicePropertyFriendlyName: DEVICE_REGISTRY_PROPERTY = 0x9;
pub const DevicePropertyPhysicalDeviceObjectName: DEVICE_REGISTRY_PROPERTY = 0xB;
pub const DevicePropertyLocationInformation: DEVICE_REGISTRY_PROPERTY = 0xA;

/// wdm/nc-wdm-driver_initialize; PASSIVE_LEVEL.
pub type PDRIVER_INITIALIZE = Option<
    unsafe extern "win64" fn(DriverObject: *mut DRIVER_OBJECT, RegistryPath: *mut UNICODE_STRING) -> NTSTATUS,
>;
/// wdm/nc-wdm-driver_unload; PASSIVE_LEVEL.
pub type PDRIVER_UNLOAD = Option<unsafe extern "win64" fn(DriverObject: *mut DRIVER_OBJECT)>;
/// wdm/nc-wdm-driver_dispatch.
pub type PDRIVER_DISPATCH =
    Option<unsafe extern "win64" fn(DeviceObject: *mut DEVICE_OBJECT, Irp: *mut IRP) -> NTSTATUS>;
/// wdm/nc-wdm-io_completion_routine; IRQL <= DISPATCH_LEVEL.
pub type PIO_COMPLETION_ROUTINE = Option<
    unsafe extern "win64" fn(DeviceObject: *mut DEVICE_OBJECT, Irp: *mut IRP, Context: PVOID) -> NTSTATUS,
>;
/// `PINTERFACE_REFERENCE`, `PINTERFACE_DEREFERENCE`.
pub type PINTERFACE_REFERENCE = Option<unsafe extern "win64" fn(Context: PVOID)>;

layout! {
    IO_STATUS_BLOCK: 16, 8 { Anonymous ("Status") @ 0, Information @ 8 }
    IRP: 208, 16 {
        Type @ 0, Size @ 2, MdlAddress @ 8, Flags @ 16, AssociatedIrp @ 24, ThreadListEntry @ 32, IoStatus @ 48,
        RequestorMode @ 64, PendingReturned @ 65, StackCount @ 66, CurrentLocation @ 67, Cancel @ 68,
        CancelIrql @ 69, ApcEnvironment @ 70, AllocationFlags @ 71, UserIosb @ 72, UserEvent @ 80, Overlay @ 88,
        CancelRoutine @ 104, UserBuffer @ 112, Tail @ 120
    }
    IRP_TAIL_OVERLAY (""): 80, 8 {
        DriverContext @ 0, Thread @ 32, AuxiliaryBuffer @ 40, ListEntry @ 48, CurrentStackLocation @ 64,
        OriginalFileObject @ 72
    }
    IO_STACK_LOCATION: 72, 8 {
        MajorFunction @ 0, MinorFunction @ 1, Flags @ 2, Control @ 3, Parameters @ 8, DeviceObject @ 40,
        FileObject @ 48, CompletionRoutine @ 56, Context @ 64
    }
    IO_STACK_QUERY_INTERFACE (""): 32, 8 {
        InterfaceType @ 0, Size @ 8, Version @ 10, Interface @ 16, InterfaceSpecificData @ 24
    }
    INTERFACE: 32, 8 { Size @ 0, Version @ 2, Context @ 8, InterfaceReference @ 16, InterfaceDereference @ 24 }
    DEVICE_OBJECT: 336, 16 {
        Type @ 0, Size @ 2, ReferenceCount @ 4, DriverObject @ 8, NextDevice @ 16, AttachedDevice @ 24,
        CurrentIrp @ 32, Timer @ 40, Flags @ 48, Characteristics @ 52, Vpb @ 56, DeviceExtension @ 64,
        DeviceType @ 72, StackSize @ 76, Queue @ 80, AlignmentRequirement @ 152, DeviceQueue @ 160, Dpc @ 200,
        ActiveThreadCount @ 264, SecurityDescriptor @ 272, DeviceLock @ 280, SectorSize @ 304, Spare1 @ 306,
        DeviceObjectExtension @ 312, Reserved @ 320
    }
    DRIVER_OBJECT: 336, 8 {
        Type @ 0, Size @ 2, DeviceObject @ 8, Flags @ 16, DriverStart @ 24, DriverSize @ 32, DriverSection @ 40,
        DriverExtension @ 48, DriverName @ 56, HardwareDatabase @ 72, FastIoDispatch @ 80, DriverInit @ 88,
        DriverStartIo @ 96, DriverUnload @ 104, MajorFunction @ 112
    }
    SCATTER_GATHER_ELEMENT: 24, 8 { Address @ 0, Length @ 8, Reserved @ 16 }
    SCATTER_GATHER_LIST: 16, 8 { NumberOfElements @ 0, Reserved @ 8, Elements @ 16 }
}

/// The stack location of the driver that now holds the IRP (`IoGetCurrentIrpStackLocation`).
///
/// # Safety
/// `irp` must point to an IRP the caller holds.
pub unsafe fn IoGetCurrentIrpStackLocation(irp: *mut IRP) -> *mut IO_STACK_LOCATION {
    // SAFETY: the caller's contract; the overlay member is the live one in an IRP that is being processed.
    unsafe { (*irp).Tail.Overlay.CurrentStackLocation }
}

/// The stack location of the next lower driver (`IoGetNextIrpStackLocation`).
///
/// # Safety
/// `irp` must point to an IRP that the caller owns and that has a location left.
pub unsafe fn IoGetNextIrpStackLocation(irp: *mut IRP) -> *mut IO_STACK_LOCATION {
    // SAFETY: the caller's contract; stack locations lie one below the other.
    unsafe { (*irp).Tail.Overlay.CurrentStackLocation.wrapping_sub(1) }
}

/// Sets the routine called when the next lower driver completes the IRP (`IoSetCompletionRoutine`), for every outcome.
///
/// # Safety
/// `irp` must point to an IRP that the caller owns and that has a location left.
pub unsafe fn IoSetCompletionRoutine(irp: *mut IRP, routine: PIO_COMPLETION_ROUTINE, context: PVOID) {
    // SAFETY: the caller's contract.
    unsafe {
        let next = IoGetNextIrpStackLocation(irp);
        (*next).CompletionRoutine = routine;
        (*next).Context = context;
        (*next).Control = SL_INVOKE_ON_SUCCESS | SL_INVOKE_ON_ERROR | SL_INVOKE_ON_CANCEL;
    }
}
