//! The executive, `Ex`: pool flags (`wdm.h`; wdm/nf-wdm-exallocatepool2, kernel/pool_flags).

bitflags::bitflags! {
    /// `POOL_FLAGS` of `ExAllocatePool2`. Memory comes zeroed unless `UNINITIALIZED` is given.
    #[repr(transparent)]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct POOL_FLAGS: u64 {
        const USE_QUOTA = 0x01;
        const UNINITIALIZED = 0x02;
        const SESSION = 0x04;
        const CACHE_ALIGNED = 0x08;
        const RAISE_ON_FAILURE = 0x20;
        const NON_PAGED = 0x40;
        const NON_PAGED_EXECUTE = 0x80;
        const PAGED = 0x100;
    }
}
