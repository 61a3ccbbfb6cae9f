/*
 * NT structures whose layout the MinGW-w64 headers lack or get wrong: those that wdm.h of the WDK aligns to
 * MEMORY_ALLOCATION_ALIGNMENT, and those that MinGW's copies have from an older Windows.
 */
#pragma once
#include "types.h"

typedef struct DISPATCHER_HEADER {
    LONG Lock, SignalState;
    LIST_ENTRY WaitListHead;
} DISPATCHER_HEADER;

typedef struct KEVENT {
    DISPATCHER_HEADER Header;
} KEVENT;

/* The list entry has one link since Windows 8; the word after it remembers processors. */
typedef struct KDPC {
    ULONG TargetInfoAsUlong;
    SINGLE_LIST_ENTRY DpcListEntry;
    ULONG_PTR ProcessorHistory;
    ROUTINE DeferredRoutine;
    PVOID DeferredContext, SystemArgument1, SystemArgument2, DpcData;
} KDPC;

/* On x64 the word that is Period elsewhere is split: processor and timer type, then the period. */
typedef struct KTIMER {
    DISPATCHER_HEADER Header;
    ULONG64 DueTime;
    LIST_ENTRY TimerListEntry;
    KDPC *Dpc;
    USHORT Processor, TimerType;
    ULONG Period;
} KTIMER;

typedef struct KDEVICE_QUEUE {
    CSHORT Type, Size;
    LIST_ENTRY DeviceListHead;
    KSPIN_LOCK Lock;
    union {
        BOOLEAN Busy;
        LONGLONG Hint;
    };
} KDEVICE_QUEUE;

typedef struct IO_STATUS_BLOCK {
    union {
        NTSTATUS Status;
        PVOID Pointer;
    };
    ULONG_PTR Information;
} IO_STATUS_BLOCK;

typedef struct KAPC {
    UCHAR Type, SpareByte0, Size, SpareByte1;
    ULONG SpareLong0;
    PVOID Thread;
    LIST_ENTRY ApcListEntry;
    ROUTINE Reserved[3];
    PVOID NormalContext, SystemArgument1, SystemArgument2;
    CCHAR ApcStateIndex;
    KPROCESSOR_MODE ApcMode;
    BOOLEAN Inserted;
} KAPC;

typedef struct POOL_ALIGNED IRP {
    CSHORT Type;
    USHORT Size;
    PVOID MdlAddress;
    ULONG Flags;
    union {
        struct IRP *MasterIrp;
        LONG IrpCount;
        PVOID SystemBuffer;
    } AssociatedIrp;
    LIST_ENTRY ThreadListEntry;
    IO_STATUS_BLOCK IoStatus;
    KPROCESSOR_MODE RequestorMode;
    BOOLEAN PendingReturned;
    CHAR StackCount, CurrentLocation;
    BOOLEAN Cancel;
    KIRQL CancelIrql;
    CCHAR ApcEnvironment;
    UCHAR AllocationFlags;
    IO_STATUS_BLOCK *UserIosb;
    KEVENT *UserEvent;
    union {
        PVOID AsynchronousParameters[2];
        LONGLONG AllocationSize;
    } Overlay;
    ROUTINE CancelRoutine;
    PVOID UserBuffer;
    union {
        struct {
            PVOID DriverContext[4];
            PVOID Thread;
            CHAR *AuxiliaryBuffer;
            LIST_ENTRY ListEntry;
            PVOID CurrentStackLocation;
            PVOID OriginalFileObject;
        } Overlay;
        KAPC Apc;
        PVOID CompletionKey;
    } Tail;
} IRP;

typedef struct POOL_ALIGNED DEVICE_OBJECT {
    CSHORT Type;
    USHORT Size;
    LONG ReferenceCount;
    PVOID DriverObject;
    struct DEVICE_OBJECT *NextDevice, *AttachedDevice;
    IRP *CurrentIrp;
    PVOID Timer;
    ULONG Flags, Characteristics;
    PVOID Vpb, DeviceExtension;
    ULONG DeviceType;
    CCHAR StackSize;
    ULONG64 Queue[9];
    ULONG AlignmentRequirement;
    KDEVICE_QUEUE DeviceQueue;
    KDPC Dpc;
    ULONG ActiveThreadCount;
    PVOID SecurityDescriptor;
    KEVENT DeviceLock;
    USHORT SectorSize, Spare1;
    PVOID DeviceObjectExtension, Reserved;
} DEVICE_OBJECT;

typedef struct SCATTER_GATHER_ELEMENT {
    LONGLONG Address;
    ULONG Length;
    ULONG_PTR Reserved;
} SCATTER_GATHER_ELEMENT;

typedef struct SCATTER_GATHER_LIST {
    ULONG NumberOfElements;
    ULONG_PTR Reserved;
    SCATTER_GATHER_ELEMENT Elements[];
} SCATTER_GATHER_LIST;
