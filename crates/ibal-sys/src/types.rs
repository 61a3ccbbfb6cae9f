//! Scalar types of the IBAL headers: network-order integers, booleans, GIDs and object handles.
//!
//! Source: WinOFED `inc/iba/ib_types.h`, `inc/iba/ib_al.h`, `inc/kernel/complib/cl_types_osd.h`.

use core::ffi::c_void;
use core::fmt;

macro_rules! net_integer {
    ($(#[$doc:meta])* $name:ident, $host:ty, $bytes:literal) => {
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub struct $name($host);

        impl $name {
            /// Zero, the same in either byte order.
            pub const ZERO: Self = Self(0);

            /// From a number in host order.
            #[must_use]
            pub const fn new(host: $host) -> Self {
                Self(host.to_be())
            }

            /// The number in host order.
            #[must_use]
            pub const fn get(self) -> $host {
                <$host>::from_be(self.0)
            }

            /// From the bytes as they stand on the wire.
            #[must_use]
            pub const fn from_wire(bytes: [u8; $bytes]) -> Self {
                Self(<$host>::from_ne_bytes(bytes))
            }

            /// The bytes as they stand on the wire.
            #[must_use]
            pub const fn to_wire(self) -> [u8; $bytes] {
                self.0.to_ne_bytes()
            }
        }

        impl From<$host> for $name {
            fn from(host: $host) -> Self {
                Self::new(host)
            }
        }

        impl From<$name> for $host {
            fn from(net: $name) -> Self {
                net.get()
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:#x}", self.get())
            }
        }
    };
}

net_integer! {
    /// `ib_net16_t`: 16 bits, big-endian in memory (LID, P_Key, MAD status, attribute id).
    ib_net16_t, u16, 2
}
net_integer! {
    /// `ib_net32_t`: 32 bits, big-endian in memory (QPN, Q_Key, PSN).
    ib_net32_t, u32, 4
}
net_integer! {
    /// `ib_net64_t`: 64 bits, big-endian in memory (GUID, transaction id, component mask).
    ib_net64_t, u64, 8
}

/// `boolean_t`: an `int`; zero is false, anything else true.
pub type boolean_t = i32;
/// `FALSE`.
pub const FALSE: boolean_t = 0;
/// `TRUE`.
pub const TRUE: boolean_t = 1;

/// `ib_gid_t`: a 128-bit global identifier as its sixteen wire bytes.
///
/// The header's union also names the subnet prefix and interface id of a unicast GID; [`ib_gid_t::prefix`]
/// and [`ib_gid_t::interface_id`] read them. It is packed there, so it has byte alignment here.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct ib_gid_t {
    /// The wire bytes.
    pub raw: [u8; 16],
}

impl ib_gid_t {
    /// The unicast GID of a subnet prefix and an interface id (a port GUID).
    #[must_use]
    pub const fn unicast(prefix: ib_net64_t, interface_id: ib_net64_t) -> Self {
        let both = ((prefix.get() as u128) << 64) | interface_id.get() as u128;
        Self { raw: both.to_be_bytes() }
    }

    /// `unicast.prefix`: the subnet prefix, the upper 64 bits.
    #[must_use]
    pub const fn prefix(&self) -> ib_net64_t {
        ib_net64_t::new((u128::from_be_bytes(self.raw) >> 64) as u64)
    }

    /// `unicast.interface_id`: the interface id, the lower 64 bits.
    #[must_use]
    pub const fn interface_id(&self) -> ib_net64_t {
        ib_net64_t::new(u128::from_be_bytes(self.raw) as u64)
    }

    /// Whether this is a multicast GID (`ib_gid_is_multicast`): first byte 0xFF.
    #[must_use]
    pub const fn is_multicast(&self) -> bool {
        self.raw[0] == 0xFF
    }
}

impl fmt::Debug for ib_gid_t {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, pair) in self.raw.chunks(2).enumerate() {
            if i > 0 {
                f.write_str(":")?;
            }
            for byte in pair {
                write!(f, "{byte:02x}")?;
            }
        }
        Ok(())
    }
}

/// `IB_DEFAULT_SUBNET_PREFIX`: fe80::/64.
pub const IB_DEFAULT_SUBNET_PREFIX: ib_net64_t = ib_net64_t::new(0xFE80_0000_0000_0000);
/// `IB_LID_PERMISSIVE`: the LID that every port accepts from a directed-route MAD.
pub const IB_LID_PERMISSIVE: ib_net16_t = ib_net16_t::new(0xFFFF);
/// `IB_LID_UCAST_START`: lowest unicast LID.
pub const IB_LID_UCAST_START: ib_net16_t = ib_net16_t::new(0x0001);
/// `IB_LID_UCAST_END`: highest unicast LID.
pub const IB_LID_UCAST_END: ib_net16_t = ib_net16_t::new(0xBFFF);
/// `IB_LID_MCAST_START`: lowest multicast LID.
pub const IB_LID_MCAST_START: ib_net16_t = ib_net16_t::new(0xC000);
/// `IB_LID_MCAST_END`: highest multicast LID.
pub const IB_LID_MCAST_END: ib_net16_t = ib_net16_t::new(0xFFFE);
/// `IB_DEFAULT_PKEY`: full membership of the default partition.
pub const IB_DEFAULT_PKEY: ib_net16_t = ib_net16_t::new(0xFFFF);
/// `IB_QP1`: the general services QP.
pub const IB_QP1: ib_net32_t = ib_net32_t::new(1);
/// `IB_QP1_WELL_KNOWN_Q_KEY`.
pub const IB_QP1_WELL_KNOWN_Q_KEY: ib_net32_t = ib_net32_t::new(0x8001_0000);

macro_rules! handles {
    ($($(#[$doc:meta])* $tag:ident => $handle:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// The structure is private to the access layer: only pointers to it exist here.
        #[repr(C)]
        pub struct $tag {
            _private: [u8; 0],
        }

        $(#[$doc])*
        pub type $handle = *mut $tag;
    )*};
}

handles! {
    /// An instance of the access layer (`ib_open_al`); everything a client makes hangs below it.
    _ib_al => ib_al_handle_t;
    /// A registration for PnP events.
    _al_pnp => ib_pnp_handle_t;
    /// A service registered with the subnet administrator.
    _al_reg_svc => ib_reg_svc_handle_t;
    /// A MAD service bound to a MAD QP.
    _al_mad_svc => ib_mad_svc_handle_t;
    /// A subnet administration query in progress.
    _al_query => ib_query_handle_t;
    /// An event subscription.
    _al_sub => ib_sub_handle_t;
    /// A communication manager listen.
    _al_listen => ib_listen_handle_t;
    /// A registration of a MAD pool with a PD.
    _al_pool_key => ib_pool_key_t;
    /// A MAD pool.
    _al_pool => ib_pool_handle_t;
    /// An opened channel adapter.
    _ib_ca => ib_ca_handle_t;
    /// A protection domain.
    _ib_pd => ib_pd_handle_t;
    /// A memory region.
    _ib_mr => ib_mr_handle_t;
    /// A memory window.
    _ib_mw => ib_mw_handle_t;
    /// A queue pair.
    _ib_qp => ib_qp_handle_t;
    /// A shared receive queue.
    _ib_srq => ib_srq_handle_t;
    /// A completion queue.
    _ib_cq => ib_cq_handle_t;
    /// An address vector (address handle).
    _ib_av => ib_av_handle_t;
    /// Membership of a multicast group.
    _ib_mcast => ib_mcast_handle_t;
    /// A wait object of the component library, a `KEVENT` in the kernel.
    _cl_waitobj => cl_waitobj_handle_t;
}

/// `ib_al_flags_t`: flags of an access layer call.
pub type ib_al_flags_t = u32;
/// `IB_FLAGS_SYNC`: run the operation to its end before returning. PASSIVE_LEVEL only, since it waits.
pub const IB_FLAGS_SYNC: ib_al_flags_t = 0x0000_0001;

/// `ib_pfn_destroy_cb_t`: how a destroy call reports that the object is gone.
///
/// Three values (`core/al/al_common.c`): null (destruction runs on, nobody is told), [`ib_sync_destroy`] (the
/// call waits until the last reference and every callback of the object is gone; PASSIVE_LEVEL), or a
/// function called once with the object's context. That call comes from the asynchronous-processing thread of
/// the access layer, so at PASSIVE_LEVEL.
///
/// A raw pointer, since the header's marker is the function pointer -1.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ib_pfn_destroy_cb_t(pub *const c_void);

impl ib_pfn_destroy_cb_t {
    /// Nobody is told.
    pub const NONE: Self = Self(core::ptr::null());

    /// Calls `callback` with the object's context once the object is gone.
    pub fn from_fn(callback: unsafe extern "win64" fn(context: *mut c_void)) -> Self {
        Self(callback as *const c_void)
    }
}

// SAFETY: a code address, or one of two marker values; it is never dereferenced as data.
unsafe impl Send for ib_pfn_destroy_cb_t {}
// SAFETY: as above.
unsafe impl Sync for ib_pfn_destroy_cb_t {}

/// `ib_sync_destroy`: see [`ib_pfn_destroy_cb_t`].
pub const ib_sync_destroy: ib_pfn_destroy_cb_t =
    ib_pfn_destroy_cb_t(core::ptr::without_provenance(usize::MAX));
