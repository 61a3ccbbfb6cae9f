//! Counters: what NDIS asks for, and why frames were dropped.
//!
//! Each counter is a relaxed atomic of its own. A reader sees every counter at some recent value, not all of
//! them at one instant; OID_GEN_STATISTICS asks for no more.

use core::sync::atomic::{AtomicU64, Ordering};

/// A counter that any IRQL may add to.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// A counter at zero.
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Adds `amount`.
    #[inline]
    pub fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    /// Adds one.
    #[inline]
    pub fn increment(&self) {
        self.add(1);
    }

    /// The value.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// How a frame was addressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cast {
    /// To one station.
    Unicast,
    /// To a group.
    Multicast,
    /// To every station.
    Broadcast,
}

impl Cast {
    /// Of an Ethernet destination address.
    pub const fn of(destination: &[u8; 6]) -> Self {
        match destination {
            [0xff, 0xff, 0xff, 0xff, 0xff, 0xff] => Self::Broadcast,
            [first, ..] if *first & 1 != 0 => Self::Multicast,
            _ => Self::Unicast,
        }
    }
}

/// Frames and bytes of one direction, by address kind. Bytes include the Ethernet header.
#[derive(Debug, Default)]
pub struct Flow {
    frames: [Counter; 3],
    bytes: [Counter; 3],
}

impl Flow {
    const fn new() -> Self {
        Self { frames: [const { Counter::new() }; 3], bytes: [const { Counter::new() }; 3] }
    }

    /// Counts one frame of `bytes` bytes.
    #[inline]
    pub fn count(&self, cast: Cast, bytes: usize) {
        let [unicast, multicast, broadcast] = &self.frames;
        let [unicast_bytes, multicast_bytes, broadcast_bytes] = &self.bytes;
        let (frames, octets) = match cast {
            Cast::Unicast => (unicast, unicast_bytes),
            Cast::Multicast => (multicast, multicast_bytes),
            Cast::Broadcast => (broadcast, broadcast_bytes),
        };
        frames.increment();
        octets.add(bytes as u64);
    }

    /// Frames of one kind.
    pub fn frames(&self, cast: Cast) -> u64 {
        let [unicast, multicast, broadcast] = &self.frames;
        match cast {
            Cast::Unicast => unicast.get(),
            Cast::Multicast => multicast.get(),
            Cast::Broadcast => broadcast.get(),
        }
    }

    /// Bytes of one kind.
    pub fn bytes(&self, cast: Cast) -> u64 {
        let [unicast, multicast, broadcast] = &self.bytes;
        match cast {
            Cast::Unicast => unicast.get(),
            Cast::Multicast => multicast.get(),
            Cast::Broadcast => broadcast.get(),
        }
    }

    /// Frames of every kind.
    pub fn all_frames(&self) -> u64 {
        self.frames.iter().map(Counter::get).sum()
    }

    /// Bytes of every kind.
    pub fn all_bytes(&self) -> u64 {
        self.bytes.iter().map(Counter::get).sum()
    }
}

macro_rules! drops {
    ($(#[$enum_doc:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident => $text:literal,)+ }) => {
        $(#[$enum_doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(usize)]
        pub enum $name { $($(#[$doc])* $variant,)+ }

        impl $name {
            /// Every cause, in the order of the custom OID's array.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// A short name for reports.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }
    };
}

drops! {
    /// Why a frame went nowhere.
    Drop {
        /// Received: shorter than GRH and IPoIB header, or than its own headers say.
        ReceiveTooShort => "receive too short",
        /// Received: longer than the MTU.
        ReceiveTooLong => "receive too long",
        /// Received: completed with an error other than a flush.
        ReceiveFailed => "receive failed",
        /// Received: an ethertype that IPoIB does not carry to us.
        ReceiveEthertype => "unknown ethertype",
        /// Received: the GRH is absent where the destination is a group, or is malformed.
        ReceiveGrh => "bad GRH",
        /// Received: a source QPN or LID that no sender can have.
        ReceiveSource => "bad source",
        /// Received: no Ethernet address could be given to the sender.
        ReceiveNoPeer => "no room for the sender",
        /// Received: our own multicast, come back from the switch.
        ReceiveOwn => "own multicast",
        /// Received: the packet filter does not ask for it.
        ReceiveFiltered => "filtered",
        /// Received: an ARP packet that is malformed or contradicts its source.
        ReceiveArp => "bad ARP",
        /// Received: a Neighbor Discovery packet that is malformed.
        ReceiveNd => "bad ND",
        /// Received: a DHCP packet that is malformed.
        ReceiveDhcp => "bad DHCP",
        /// Received: while the adapter is paused.
        ReceivePaused => "received while paused",
        /// Received: no buffer could be indicated.
        ReceiveNoBuffer => "no receive buffer",
        /// Sent: shorter than an Ethernet header, or than its own headers say.
        SendTooShort => "send too short",
        /// Sent: longer than the MTU.
        SendTooLong => "send too long",
        /// Sent: an ethertype that IPoIB cannot carry.
        SendEthertype => "send of a foreign ethertype",
        /// Sent: an ARP, ND or DHCP packet that cannot be translated.
        SendMalformed => "untranslatable send",
        /// Sent: the destination is not known and cannot be derived.
        SendNoPeer => "no such peer",
        /// Sent: the queue of an unresolved destination was full, or its resolution failed.
        SendUnresolved => "unresolved",
        /// Sent: the scatter-gather list could not be built or has too many elements.
        SendNoList => "no scatter-gather list",
        /// Sent: while paused, disconnected or resetting.
        SendNotReady => "sent while not ready",
        /// Sent: cancelled by NDIS.
        SendCancelled => "cancelled",
        /// Sent: completed with an error by the HCA.
        SendFailed => "send failed",
        /// Sent: flushed by the QP.
        SendFlushed => "send flushed",
    }
}

/// Everything an adapter counts.
#[derive(Debug, Default)]
pub struct Statistics {
    /// Indicated to NDIS.
    pub received: Flow,
    /// Completed by the HCA.
    pub sent: Flow,
    drops: Drops,
    /// Frames that were indicated with NDIS_RECEIVE_FLAGS_RESOURCES.
    pub low_resources: Counter,
    /// Path queries sent to the SA.
    pub path_queries: Counter,
    /// Resets served.
    pub resets: Counter,
}

#[derive(Debug)]
struct Drops([Counter; Drop::ALL.len()]);

impl Default for Drops {
    fn default() -> Self {
        Self([const { Counter::new() }; Drop::ALL.len()])
    }
}

impl Statistics {
    /// Everything at zero.
    pub const fn new() -> Self {
        Self {
            received: Flow::new(),
            sent: Flow::new(),
            drops: Drops([const { Counter::new() }; Drop::ALL.len()]),
            low_resources: Counter::new(),
            path_queries: Counter::new(),
            resets: Counter::new(),
        }
    }

    /// Counts a frame that went nowhere.
    #[inline]
    pub fn drop_frame(&self, cause: Drop) {
        self.drop_frames(cause, 1);
    }

    /// Counts several.
    #[inline]
    pub fn drop_frames(&self, cause: Drop, count: u64) {
        if let Some(counter) = self.drops.0.get(cause as usize) {
            counter.add(count);
        }
    }

    /// How often `cause` occurred.
    pub fn dropped(&self, cause: Drop) -> u64 {
        self.drops.0.get(cause as usize).map_or(0, Counter::get)
    }

    fn sum(&self, causes: &[Drop]) -> u64 {
        causes.iter().map(|cause| self.dropped(*cause)).sum()
    }

    /// ifInErrors: frames with errors (RFC 2863, ifInErrors).
    pub fn receive_errors(&self) -> u64 {
        self.sum(&[
            Drop::ReceiveTooShort,
            Drop::ReceiveTooLong,
            Drop::ReceiveFailed,
            Drop::ReceiveGrh,
            Drop::ReceiveSource,
            Drop::ReceiveArp,
            Drop::ReceiveNd,
            Drop::ReceiveDhcp,
        ])
    }

    /// ifInDiscards: good frames that could not be delivered. Filtered frames were never asked for, and our own
    /// multicast is not a reception.
    pub fn receive_discards(&self) -> u64 {
        self.sum(&[Drop::ReceivePaused, Drop::ReceiveNoBuffer, Drop::ReceiveNoPeer, Drop::ReceiveEthertype])
    }

    /// ifOutErrors.
    pub fn send_errors(&self) -> u64 {
        self.sum(&[
            Drop::SendTooShort,
            Drop::SendTooLong,
            Drop::SendEthertype,
            Drop::SendMalformed,
            Drop::SendNoPeer,
            Drop::SendFailed,
        ])
    }

    /// ifOutDiscards.
    pub fn send_discards(&self) -> u64 {
        self.sum(&[
            Drop::SendUnresolved,
            Drop::SendNoList,
            Drop::SendNotReady,
            Drop::SendCancelled,
            Drop::SendFlushed,
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_counted_under_its_address_kind() {
        let flow = Flow::new();
        flow.count(Cast::of(&[0xff; 6]), 60);
        flow.count(Cast::of(&[0x01, 0, 0x5e, 0, 0, 1]), 70);
        flow.count(Cast::of(&[0x02, 0, 0, 1, 0, 2]), 80);
        assert_eq!(flow.frames(Cast::Broadcast), 1);
        assert_eq!(flow.bytes(Cast::Multicast), 70);
        assert_eq!(flow.bytes(Cast::Unicast), 80);
        assert_eq!((flow.all_frames(), flow.all_bytes()), (3, 210));
    }

    #[test]
    fn every_send_drop_is_an_error_or_a_discard_and_never_both() {
        for &cause in Drop::ALL {
            let statistics = Statistics::new();
            statistics.drop_frame(cause);
            let counted = statistics.send_errors()
                + statistics.send_discards()
                + statistics.receive_errors()
                + statistics.receive_discards();
            let silent = matches!(cause, Drop::ReceiveFiltered | Drop::ReceiveOwn);
            assert_eq!(counted, u64::from(!silent), "{}", cause.name());
            assert_eq!(statistics.dropped(cause), 1);
        }
    }
}
