/* Scalars of the Windows headers, as x64 compilers for Windows define them (LLP64: long has 32 bits). */
#pragma once

typedef unsigned char UCHAR, BOOLEAN, KIRQL;
typedef signed char CHAR, CCHAR, KPROCESSOR_MODE;
typedef short CSHORT;
typedef unsigned short USHORT, WCHAR;
typedef int LONG, NTSTATUS, NDIS_STATUS, ENUM;
typedef unsigned int ULONG, UINT;
typedef long long LONGLONG;
typedef unsigned long long ULONG64, ULONG_PTR, SIZE_T, KSPIN_LOCK;
typedef void *PVOID, *HANDLE, *NDIS_HANDLE;
typedef void (*ROUTINE)(void);

/* What every pool allocation, and every type that must be aligned like one, is aligned to on x64. */
#define POOL_ALIGNED __attribute__((aligned(16)))

typedef struct GUID {
    ULONG Data1;
    USHORT Data2, Data3;
    UCHAR Data4[8];
} GUID;

typedef struct UNICODE_STRING {
    USHORT Length, MaximumLength;
    WCHAR *Buffer;
} UNICODE_STRING;

typedef struct LIST_ENTRY {
    struct LIST_ENTRY *Flink, *Blink;
} LIST_ENTRY;

typedef struct SINGLE_LIST_ENTRY {
    struct SINGLE_LIST_ENTRY *Next;
} SINGLE_LIST_ENTRY;

typedef struct POOL_ALIGNED SLIST_ENTRY {
    struct SLIST_ENTRY *Next;
} SLIST_ENTRY;

typedef union POOL_ALIGNED SLIST_HEADER {
    struct {
        ULONG64 Alignment, Region;
    };
} SLIST_HEADER;

typedef struct NET_LUID {
    ULONG64 Value;
} NET_LUID;
