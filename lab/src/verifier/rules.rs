//! The rules of the kernel itself.

/// A rule of Windows or of InfiniBand that the lab watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its name, as reported.
    pub name: &'static str,
    /// What it demands, in a sentence or two.
    pub demand: &'static str,
    /// The document and section it comes from.
    pub source: &'static str,
}

/// Declares rules: `rules! { pub RULES; #[doc..] NAME: "demand", "source"; .. }` makes a constant for each and a table of all.
#[macro_export]
macro_rules! rules {
    ($(#[$table_attr:meta])* $visibility:vis $table:ident; $($name:ident: $demand:literal, $source:literal;)*) => {
        $(
            #[doc = $demand]
            #[doc = ""]
            #[doc = concat!("Source: ", $source, ".")]
            $visibility const $name: $crate::verifier::Rule = $crate::verifier::Rule {
                name: stringify!($name),
                demand: $demand,
                source: $source,
            };
        )*
        $(#[$table_attr])*
        $visibility const $table: &[$crate::verifier::Rule] = &[$($name),*];
    };
}

rules! {
    /// Every rule of the kernel room.
    pub KERNEL_RULES;

    IRQL: "A routine is called only at the IRQLs its documentation allows.",
        "the Requirements table (IRQL) of each routine's page; kernel, Managing Hardware Priorities";
    IRQL_RAISE_LOWERS: "KeRaiseIrql never sets a level below the current one.", "wdm/nf-wdm-keraiseirql";
    IRQL_LOWER_RAISES: "KeLowerIrql never sets a level above the current one.", "wdm/nf-wdm-kelowerirql";
    IRQL_LOWERED_BELOW_ENTRY:
        "A callback never lowers the IRQL below the one it was called at.",
        "wdm/nf-wdm-kelowerirql; devtest, Driver Verifier: Special Pool and IRQL checking";
    IRQL_NOT_RESTORED: "A callback returns at the IRQL it was called at.",
        "devtest, Driver Verifier: bug check 0xC4 and 0xC9 (IRQL changed by a dispatch or callback routine)";
    THREAD_ENDS_RAISED: "A thread ends at PASSIVE_LEVEL.", "wdm/nf-wdm-psterminatesystemthread";
    LOCK_HELD_AT_RETURN: "A callback returns with no spin lock held that it took.",
        "devtest, Driver Verifier: Deadlock Detection; kernel, Introduction to Spin Locks";
    LOCK_RECURSION: "A processor that holds a spin lock does not acquire it again.",
        "kernel, Introduction to Spin Locks; wdm/nf-wdm-keacquirespinlock";
    LOCK_NOT_HELD: "A spin lock is released by the processor that holds it.", "wdm/nf-wdm-kereleasespinlock";
    LOCK_ORDER: "Spin locks are always acquired in one order.",
        "devtest, Driver Verifier: Deadlock Detection; kernel, Preventing Errors and Deadlocks While Using Spin Locks";
    LOCK_HELD_BELOW_DISPATCH: "The IRQL stays at DISPATCH_LEVEL or above while a spin lock is held.",
        "wdm/nf-wdm-kereleasespinlock; kernel, Introduction to Spin Locks";
    LOCK_CORRUPT: "A spin lock is zeroed before its first use and touched by nothing but its routines.",
        "wdm/nf-wdm-keinitializespinlock";
    LOCK_FREED_WHILE_HELD: "Memory that contains a held spin lock is not freed.",
        "devtest, Driver Verifier: Deadlock Detection";
    WAIT_AT_DISPATCH: "Nothing waits at DISPATCH_LEVEL or above, unless with a timeout of zero.",
        "wdm/nf-wdm-kewaitforsingleobject";
    OBJECT_NOT_INITIALIZED: "A dispatcher object is initialised before it is used.", "wdm/nf-wdm-keinitializeevent";
    OBJECT_IN_PAGED_POOL: "Dispatcher objects and spin locks lie in resident memory.",
        "wdm/nf-wdm-keinitializeevent; wdm/nf-wdm-keinitializespinlock";
    OBJECT_REINITIALIZED_WHILE_WAITED: "An event that something waits for is not initialised again.",
        "wdm/nf-wdm-keinitializeevent";
    OBJECT_FREED_WHILE_WAITED: "Memory that contains an object in use (an event waited for, a timer set) is not freed.",
        "devtest, Driver Verifier: Special Pool; wdm/nf-wdm-exfreepoolwithtag";
    POOL_BAD_REQUEST: "A pool request has a length and a tag that are not zero, and exactly one pool type.",
        "wdm/nf-wdm-exallocatepool2";
    POOL_BAD_FREE: "Only the start of a live pool block is freed, and only once.", "wdm/nf-wdm-exfreepoolwithtag";
    POOL_DOUBLE_FREE: "A pool block is freed once.", "wdm/nf-wdm-exfreepoolwithtag";
    POOL_WRONG_TAG: "A pool block is freed with the tag it was allocated with.", "wdm/nf-wdm-exfreepoolwithtag";
    POOL_OVERRUN: "Nothing is written past the end of a pool block.", "devtest, Driver Verifier: Special Pool";
    POOL_USE_AFTER_FREE: "Nothing is written to, or read from, a freed pool block.",
        "devtest, Driver Verifier: Special Pool";
    POOL_LEAK: "All pool is freed when the driver unloads.", "devtest, Driver Verifier: Pool Tracking";
    RESOURCE_LEAK: "Everything a driver obtains is given back when it unloads.",
        "devtest, Driver Verifier: Pool Tracking, I/O Verification";
    RESOURCE_NOT_OWNED: "Only what was obtained, and not given back yet, is given back.",
        "devtest, Driver Verifier: I/O Verification";
    PAGE_FAULT: "Only valid memory is touched.", "bug check 0x50 PAGE_FAULT_IN_NONPAGED_AREA";
    IMAGE_UNLOADED: "Nothing of a driver runs, and nobody touches its variables, once it is unloaded.",
        "bug check 0xCE DRIVER_UNLOADED_WITHOUT_CANCELLING_PENDING_OPERATIONS";
    IMAGE_PROTECTION: "A driver writes only to its writable sections and runs only its executable ones.",
        "bug checks 0xBE ATTEMPTED_WRITE_TO_READONLY_MEMORY and 0xFC ATTEMPTED_EXECUTE_OF_NOEXECUTE_MEMORY";
    MDL_NOT_NONPAGED_POOL: "MmBuildMdlForNonPagedPool takes an MDL of a buffer in nonpaged pool.",
        "wdm/nf-wdm-mmbuildmdlfornonpagedpool";
    MDL_STATE: "An MDL's pages are locked or nonpaged before it is mapped, and it is built once.",
        "wdm/nf-wdm-mmmaplockedpagesspecifycache; wdm/nf-wdm-mmbuildmdlfornonpagedpool";
    MDL_NOT_OWNED: "Only a live MDL of IoAllocateMdl is freed, and once.", "wdm/nf-wdm-iofreemdl";
    DMA_INVALID_MEMORY: "A device is given only addresses of memory that is allocated.",
        "kernel, Using Direct Memory Access; devtest, Driver Verifier: DMA Verification";
    IRP_NOT_OWNED: "Only a live IRP is sent, completed or freed, by who holds it.", "wdm/nf-wdm-iofreeirp";
    IRP_STACK_EXHAUSTED: "An IRP has a stack location for every driver it is sent to.",
        "wdm/nf-wdm-iocalldriver; bug check 0x35 NO_MORE_IRP_STACK_LOCATIONS";
    IRP_COMPLETED_TWICE: "An IRP is completed once.", "bug check 0x44 MULTIPLE_IRP_COMPLETE_REQUESTS";
    IRP_BAD_STATUS: "An IRP is completed with a final status, not STATUS_PENDING.", "wdm/nf-wdm-iocompleterequest";
    IRP_PNP_STATUS: "A PnP IRP is sent with its status set to STATUS_NOT_SUPPORTED.",
        "kernel, Rules for Handling PnP IRPs; devtest, Driver Verifier: I/O Verification";
    OBJECT_OVER_DEREFERENCED: "A reference is released once.", "wdm/nf-wdm-obdereferenceobject";
    BUG_CHECK: "The driver does not stop the system.", "wdm/nf-wdm-kebugcheckex";
}
