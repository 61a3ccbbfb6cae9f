//! `ib_api_status_t`: what every access layer call returns.
//!
//! Source: WinOFED `inc/iba/ib_types.h`.

macro_rules! c_enum {
    ($(#[$doc:meta])* $name:ident; $($(#[$vdoc:meta])* $value:ident = $number:expr),* $(,)?) => {
        $(#[$doc])*
        ///
        /// A C `enum` is an `int`; values outside the list can come in from the other side, so this is a
        /// number with named constants, not a Rust `enum`.
        #[repr(transparent)]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
        pub struct $name(pub i32);

        $($(#[$vdoc])* pub const $value: $name = $name($number);)*

        impl $name {
            /// Every named value, with the name that the header gives it.
            pub const NAMES: &'static [(&'static str, i32)] = &[$((stringify!($value), $number)),*];

            /// The header's name of this value, if it has one.
            #[must_use]
            pub fn name(self) -> Option<&'static str> {
                Self::NAMES.iter().find(|(_, number)| *number == self.0).map(|(name, _)| *name)
            }
        }

        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, concat!(stringify!($name), "({})"), self.0),
                }
            }
        }
    };
}
pub(crate) use c_enum;

c_enum! {
    /// `ib_api_status_t`.
    ib_api_status_t;
    /// The call did what it was asked, or has started it.
    IB_SUCCESS = 0,
    /// The adapter has no more of what was asked for.
    IB_INSUFFICIENT_RESOURCES = 1,
    /// Host memory ran out.
    IB_INSUFFICIENT_MEMORY = 2,
    /// A parameter was null or out of range.
    IB_INVALID_PARAMETER = 3,
    /// A combination of attributes that the object cannot have.
    IB_INVALID_SETTING = 4,
    /// No such object, or nothing left to return (an empty CQ).
    IB_NOT_FOUND = 5,
    /// No answer in the time allowed.
    IB_TIMEOUT = 6,
    /// The operation was cancelled.
    IB_CANCELED = 7,
    /// A wait was interrupted.
    IB_INTERRUPTED = 8,
    /// Access rights do not allow it.
    IB_INVALID_PERMISSION = 9,
    /// Not supported by the adapter or the access layer.
    IB_UNSUPPORTED = 10,
    /// A buffer or a queue was too small.
    IB_OVERFLOW = 11,
    /// No more QPs can be attached to multicast groups.
    IB_MAX_MCAST_QPS_REACHED = 12,
    /// The QP's state does not allow it.
    IB_INVALID_QP_STATE = 13,
    /// The path migration state does not allow it.
    IB_INVALID_APM_STATE = 14,
    /// The port's state does not allow it.
    IB_INVALID_PORT_STATE = 15,
    /// The object's state does not allow it, for one when it is being destroyed.
    IB_INVALID_STATE = 16,
    /// The object is in use.
    IB_RESOURCE_BUSY = 17,
    /// The P_Key is not in the port's table.
    IB_INVALID_PKEY = 18,
    /// The local key does not name a region.
    IB_INVALID_LKEY = 19,
    /// The remote key does not name a region.
    IB_INVALID_RKEY = 20,
    /// Queue depth beyond the adapter's limit.
    IB_INVALID_MAX_WRS = 21,
    /// More scatter/gather elements than the adapter allows.
    IB_INVALID_MAX_SGE = 22,
    /// CQ size beyond the adapter's limit.
    IB_INVALID_CQ_SIZE = 23,
    /// SRQ size beyond the adapter's limit.
    IB_INVALID_SRQ_SIZE = 24,
    /// The QP type does not have this operation.
    IB_INVALID_SERVICE_TYPE = 25,
    /// Malformed or unknown GID.
    IB_INVALID_GID = 26,
    /// Malformed or unknown LID.
    IB_INVALID_LID = 27,
    /// Malformed or unknown GUID.
    IB_INVALID_GUID = 28,
    /// A GUID mask that the conversion cannot use.
    IB_INVALID_GUID_MASK = 29,
    /// Not a CA handle.
    IB_INVALID_CA_HANDLE = 30,
    /// Not an AV handle.
    IB_INVALID_AV_HANDLE = 31,
    /// Not a CQ handle.
    IB_INVALID_CQ_HANDLE = 32,
    /// Not a QP handle.
    IB_INVALID_QP_HANDLE = 33,
    /// Not an SRQ handle.
    IB_INVALID_SRQ_HANDLE = 34,
    /// Not a PD handle.
    IB_INVALID_PD_HANDLE = 35,
    /// Not an MR handle.
    IB_INVALID_MR_HANDLE = 36,
    /// Not a fast memory region handle.
    IB_INVALID_FMR_HANDLE = 37,
    /// Not a memory window handle.
    IB_INVALID_MW_HANDLE = 38,
    /// Not a multicast handle.
    IB_INVALID_MCAST_HANDLE = 39,
    /// A callback that is required was null.
    IB_INVALID_CALLBACK = 40,
    /// Not an access layer handle.
    IB_INVALID_AL_HANDLE = 41,
    /// Not a handle of the kind that was expected.
    IB_INVALID_HANDLE = 42,
    /// Failure without a closer name.
    IB_ERROR = 43,
    /// The other side answered with an error; for a query, the MAD status says which.
    IB_REMOTE_ERROR = 44,
    /// A user-mode verbs provider has done the call itself.
    IB_VERBS_PROCESSING_DONE = 45,
    /// Not a work request type of this QP.
    IB_INVALID_WR_TYPE = 46,
    /// The QP is in time-wait.
    IB_QP_IN_TIMEWAIT = 47,
    /// The EE context is in time-wait.
    IB_EE_IN_TIMEWAIT = 48,
    /// No such port.
    IB_INVALID_PORT = 49,
    /// Not finished yet.
    IB_NOT_DONE = 50,
    /// An index beyond its table.
    IB_INVALID_INDEX = 51,
    /// Nothing matched.
    IB_NO_MATCH = 52,
    /// Started; the end is reported later.
    IB_PENDING = 53,
    /// End of the list.
    IB_UNKNOWN_ERROR = 54,
}

impl ib_api_status_t {
    /// Whether the call succeeded.
    #[must_use]
    pub const fn is_success(self) -> bool {
        self.0 == IB_SUCCESS.0
    }
}
