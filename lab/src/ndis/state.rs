//! The operational state of an adapter (network/miniport-adapter-states-and-operations).

use super::filter::MacAddress;
use super::link::LinkState;

/// The states of the documentation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Not initialised, or halted.
    #[default]
    Halted,
    /// In MiniportInitializeEx.
    Initializing,
    /// Neither sends nor receives.
    Paused,
    /// From the call of MiniportRestart to its completion.
    Restarting,
    /// Sends and receives.
    Running,
    /// From the call of MiniportPause to its completion.
    Pausing,
    /// In MiniportHaltEx. The documentation has no name for it: the adapter goes from Paused to Halted.
    Halting,
    /// After MiniportShutdownEx.
    Shutdown,
}

impl Phase {
    /// Receives may be indicated: also while pausing, since an indication may have been on its way, and while
    /// restarting, since the driver may begin before it completes (ndis/nc-ndis-miniport_restart).
    pub fn may_receive(self) -> bool {
        matches!(self, Self::Restarting | Self::Running | Self::Pausing)
    }

    /// Sends may reach the miniport: while pausing it fails them itself (ndis/nc-ndis-miniport_pause).
    pub fn may_send(self) -> bool {
        matches!(self, Self::Running | Self::Pausing)
    }

    /// OID requests may reach the miniport.
    pub fn may_request(self) -> bool {
        matches!(self, Self::Paused | Self::Restarting | Self::Running | Self::Pausing)
    }

    /// The miniport's adapter context is valid.
    pub fn is_initialized(self) -> bool {
        self.may_request()
    }
}

/// What the registration attributes said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registration {
    /// `AttributeFlags`.
    pub flags: u32,
    /// `CheckForHangTimeInSeconds`.
    pub check_for_hang_seconds: u32,
    /// `InterfaceType`.
    pub interface_type: i32,
}

/// What the general attributes said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct General {
    /// `MediaType`.
    pub media_type: i32,
    /// `PhysicalMediumType`.
    pub physical_medium: i32,
    /// Largest packet without link-layer header, in bytes.
    pub mtu: u32,
    /// Bits per second.
    pub max_transmit_speed: u64,
    /// Bits per second.
    pub max_receive_speed: u64,
    /// The link at initialisation.
    pub link: LinkState,
    /// `LookaheadSize`.
    pub lookahead: u32,
    /// `MacOptions`.
    pub mac_options: u32,
    /// `SupportedPacketFilters`.
    pub packet_filters: u32,
    /// `MaxMulticastListSize`.
    pub max_multicast: u32,
    /// `PermanentMacAddress`.
    pub permanent_address: MacAddress,
    /// `CurrentMacAddress`.
    pub current_address: MacAddress,
    /// `IfType`.
    pub if_type: u16,
    /// `SupportedStatistics`.
    pub statistics: u32,
    /// `SupportedOidList`.
    pub supported_oids: Vec<u32>,
    /// Power management capabilities were given.
    pub power_managed: bool,
}

/// A snapshot of an adapter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AdapterState {
    /// The operational state.
    pub phase: Phase,
    /// The link as last indicated.
    pub link: LinkState,
    /// Sends the miniport has not completed.
    pub sends_outstanding: usize,
    /// Receives the miniport has not got back.
    pub receives_outstanding: usize,
    /// A reset is in progress.
    pub resetting: bool,
    /// An OID request is in progress.
    pub oid_pending: bool,
    /// The device was removed by surprise.
    pub removed: bool,
}

/// What NDIS counted for an adapter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// NET_BUFFER_LISTs handed to the miniport.
    pub sends: u64,
    /// Of these, completed with NDIS_STATUS_SUCCESS.
    pub sends_succeeded: u64,
    /// Of these, completed with another status.
    pub sends_failed: u64,
    /// Sends that NDIS failed itself.
    pub sends_refused: u64,
    /// Frames in the sends handed down.
    pub frames_sent: u64,
    /// NET_BUFFER_LISTs indicated.
    pub receives: u64,
    /// Of these, with NDIS_RECEIVE_FLAGS_RESOURCES.
    pub receives_low_on_resources: u64,
    /// Indicated frames that passed no binding's filter.
    pub receives_filtered: u64,
    /// Status indications.
    pub statuses: u64,
    /// OID requests handed to the miniport.
    pub oids: u64,
    /// Calls of MiniportResetEx.
    pub resets: u64,
    /// Calls of MiniportCheckForHangEx.
    pub hang_checks: u64,
}
