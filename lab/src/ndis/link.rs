//! The state of a link as a miniport reports it (NDIS_LINK_STATE; ntddndis/ns-ntddndis-_ndis_link_state).

/// `NET_IF_MEDIA_CONNECT_STATE`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MediaConnect {
    /// Not known.
    #[default]
    Unknown,
    /// Connected.
    Connected,
    /// Disconnected.
    Disconnected,
}

/// A link's state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkState {
    /// Whether there is a link.
    pub connect: MediaConnect,
    /// Bits per second.
    pub transmit_speed: u64,
    /// Bits per second.
    pub receive_speed: u64,
    /// `NET_IF_MEDIA_DUPLEX_STATE`.
    pub duplex: i32,
}

impl LinkState {
    /// Whether frames can be expected to travel.
    pub fn is_up(self) -> bool {
        self.connect == MediaConnect::Connected
    }
}

impl From<i32> for MediaConnect {
    fn from(state: i32) -> Self {
        match state {
            1 => Self::Connected,
            2 => Self::Disconnected,
            _ => Self::Unknown,
        }
    }
}
