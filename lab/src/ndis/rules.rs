//! What a miniport must do and must not, as NDIS can see it. The sources are pages of the Windows driver documentation:
//! `network`, `devtest` and the DDI reference by header.

use crate::verifier::{self, Rule};

crate::rules! {
    /// Every rule of the NDIS room.
    pub NDIS_RULES;

    NDIS_BAD_HANDLE: "A handle passed to NDIS is one that NDIS gave for this purpose and that is still valid.",
        "network/ndis-miniport-drivers2: handles are opaque and NDIS's";
    NDIS_DISPATCH_FLAG: "A DISPATCH_LEVEL flag is set only at DISPATCH_LEVEL.",
        "network/dispatch-irql-tracking";
    NDIS_WRONG_CONTEXT: "A function is called only from the handlers and in the states its page names.",
        "network/miniport-adapter-states-and-operations";
    NDIS_HANDLER_MISSING: "The characteristics have every required handler, and optional ones in pairs.",
        "ndis/ns-ndis-_ndis_miniport_driver_characteristics";
    NDIS_DRIVER_ENTRY: "DriverEntry registers the miniport driver, and deregisters it again if it fails.",
        "ndis/nf-ndis-ndismregisterminiportdriver, remarks";
    NDIS_NOT_DEREGISTERED: "MiniportDriverUnload calls NdisMDeregisterMiniportDriver.",
        "ndis/nf-ndis-ndismderegisterminiportdriver, remarks";
    NDIS_ATTRIBUTES: "MiniportInitializeEx sets registration attributes first, general attributes next, each once and valid.",
        "ndis/nf-ndis-ndismsetminiportattributes, remarks";
    NDIS_ATTRIBUTES_MISSING: "MiniportInitializeEx sets registration and general attributes before it succeeds.",
        "ndis/nc-ndis-miniport_initialize, remarks";
    NDIS_BEFORE_ATTRIBUTES: "Functions that depend on the registration attributes are called after they are set.",
        "ndis/nf-ndis-ndismsetminiportattributes, remarks";
    NDIS_RETURN_STATUS: "A handler returns one of the statuses its page lists.",
        "devtest/ndis-miniportpause-return; returns section of each handler's page";
    NDIS_DOUBLE_COMPLETE: "A pause, restart or reset is completed once, and only if its handler returned NDIS_STATUS_PENDING.",
        "ndis/nf-ndis-ndismpausecomplete, -ndismrestartcomplete, -ndismresetcomplete";
    NDIS_NEVER_COMPLETED: "A pending pause, restart or reset is completed.",
        "devtest/ndisfiltertimedpausecomplete-; ndis/nc-ndis-miniport_pause";
    NDIS_PAUSED_WITH_SENDS: "A pause is completed after all outstanding sends.",
        "ndis/nc-ndis-miniport_pause, remarks";
    NDIS_PAUSED_WITH_RECEIVES: "A pause is completed after all receive indications have returned.",
        "ndis/nc-ndis-miniport_pause, remarks";
    NDIS_RESET_WITH_SENDS: "An NDIS 6.30 miniport completes the sends pending at a reset before the reset.",
        "ndis/nc-ndis-miniport_reset, note for NDIS 6.30";
    NDIS_RESET_WITH_OID: "An NDIS 6.30 miniport completes the OID request pending at a reset before the reset.",
        "ndis/nc-ndis-miniport_reset, note for NDIS 6.30";
    NDIS_SEND_DOUBLE_COMPLETE: "A NET_BUFFER_LIST is completed once, to the adapter that was asked to send it.",
        "ndis/nf-ndis-ndismsendnetbufferlistscomplete";
    NDIS_SEND_NEVER_COMPLETED: "A send is completed within 30 seconds.", "devtest/ndis-ndistimeddatasend";
    NDIS_SEND_STATUS: "A completed NET_BUFFER_LIST carries a final status.",
        "ndis/nf-ndis-ndismsendnetbufferlistscomplete, table of statuses";
    NDIS_SEND_MODIFIED: "The NET_BUFFERs of a send, their MDLs and data come back as they were.",
        "ndis/nf-ndis-ndismsendnetbufferlistscomplete, remarks";
    NDIS_SEND_AFTER_PAUSE: "A send that arrives while pausing or paused is completed with NDIS_STATUS_PAUSED.",
        "ndis/nc-ndis-miniport_pause, remarks";
    NDIS_RECEIVE_STATE: "Receives are indicated only while restarting, running or pausing.",
        "network/miniport-adapter-states-and-operations: Paused";
    NDIS_RECEIVE_TWICE: "A NET_BUFFER_LIST that was indicated is not touched until it is returned.",
        "ndis/nf-ndis-ndismindicatereceivenetbufferlists, remarks";
    NDIS_RECEIVE_LIST: "An indicated chain has the count, source handle and shape that are documented.",
        "ndis/nf-ndis-ndismindicatereceivenetbufferlists; network/indicating-received-data-from-a-miniport-driver";
    NDIS_RECEIVE_LENGTH: "A received frame is no shorter than its header and no longer than the MTU allows.",
        "ndis/ns-ndis-_ndis_miniport_adapter_general_attributes: MtuSize";
    NDIS_MDL_CHAIN: "Offsets and lengths of a NET_BUFFER fit its MDL chain, and each MDL describes its memory.",
        "nbl/ns-nbl-net_buffer_data; wdm/nf-wdm-mmbuildmdlfornonpagedpool";
    NDIS_RECEIVE_MODIFIED: "A received buffer does not change while NDIS has it.",
        "ndis/nf-ndis-ndismindicatereceivenetbufferlists, remarks";
    NDIS_NBL_FREED: "A NET_BUFFER_LIST is freed once, by who owns it.",
        "nblapi/nf-nblapi-ndisfreenetbufferlist";
    NDIS_OID_DOUBLE_COMPLETE: "An OID request is completed once: by the return value or by NdisMOidRequestComplete.",
        "devtest/ndis-ndisoiddoublecomplete, devtest/ndis-doublecomplete";
    NDIS_OID_NEVER_COMPLETED: "An OID request is completed within 12 seconds.",
        "devtest/ndis-ndistimedoidcomplete";
    NDIS_OID_LENGTH: "The lengths of a completed OID request agree with its buffer and its status.",
        "oidrequest/ns-oidrequest-ndis_oid_request: BytesWritten, BytesRead, BytesNeeded";
    NDIS_OID_STATUS: "An OID request is completed with a status that an OID request may have.",
        "devtest/ndis-ndisoidcomplete; ndis/nf-ndis-ndismoidrequestcomplete: Status";
    NDIS_STATUS_STATE: "Statuses are indicated after the registration attributes are set and before halt returns.",
        "devtest/ndis-ndismindicatestatusex; ndis/nf-ndis-ndismindicatestatusex";
    NDIS_STATUS_INDICATION: "A status indication has a valid header, source handle and buffer.",
        "ndis/ns-ndis-_ndis_status_indication";
    NDIS_DMA: "Scatter/gather DMA is registered, and lists allocated and freed, as documented.",
        "ndis/nf-ndis-ndismallocatenetbuffersglist, -ndismfreenetbuffersglist, -ndismregisterscattergatherdma";
    NDIS_DMA_OUTSTANDING: "A scatter/gather list is freed before the send it belongs to is completed.",
        "ndis/nf-ndis-ndismfreenetbuffersglist, remarks";
    NDIS_TIMER: "A timer is not freed while set, and a periodic one is cancelled at PASSIVE_LEVEL.",
        "devtest/ndis-periodictimer; ndis/nf-ndis-ndisfreetimerobject, -ndissettimerobject";
    NDIS_WORK_ITEM: "A work item is not queued again, nor freed, before its function has begun.",
        "devtest/ndis-doublecompleteworkitem; wdm/nf-wdm-ioqueueworkitem, -iofreeworkitem";
    NDIS_LEAK: "Halt gives back all that belongs to the adapter, unload all that belongs to the driver.",
        "ndis/nc-ndis-miniport_halt, remarks; devtest/ndis-init-registersg, -ndisallocateioworkitem, -canceltimerobject, -ndisopenconfigurationex";
    NDIS_OBJECT_HEADER: "A structure given to NDIS has the type, revision and size that it can have.",
        "objectheader/ns-objectheader-ndis_object_header";
    NDIS_MEMORY: "Memory is freed with the parameters it was allocated with, once.",
        "ndis/nf-ndis-ndismfreesharedmemory; ndis/nf-ndis-ndisfreememorywithtagpriority";
}

/// Ends the run: `call` broke `rule`.
pub(super) fn broken(rule: &Rule, call: &str, detail: impl Into<String>) -> ! {
    verifier::violation(*rule, call, detail)
}
