//! Which received frames a binding hears: its packet filter and multicast list (OID_GEN_CURRENT_PACKET_FILTER,
//! OID_802_3_MULTICAST_LIST).

/// A 48-bit Ethernet address.
pub type MacAddress = [u8; 6];

/// `NDIS_PACKET_TYPE_DIRECTED` (`ntddndis.h`; oid-gen-current-packet-filter).
pub const DIRECTED: u32 = 0x0001;
/// `NDIS_PACKET_TYPE_MULTICAST`.
pub const MULTICAST: u32 = 0x0002;
/// `NDIS_PACKET_TYPE_ALL_MULTICAST`.
pub const ALL_MULTICAST: u32 = 0x0004;
/// `NDIS_PACKET_TYPE_BROADCAST`.
pub const BROADCAST: u32 = 0x0008;
/// `NDIS_PACKET_TYPE_PROMISCUOUS`.
pub const PROMISCUOUS: u32 = 0x0020;

/// How a frame is addressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cast {
    /// To one station.
    Unicast,
    /// To a group.
    Multicast,
    /// To all.
    Broadcast,
}

/// How a frame with this destination is addressed (IEEE 802.3 clause 3.2.3).
pub fn cast(destination: MacAddress) -> Cast {
    if destination == [0xff; 6] {
        Cast::Broadcast
    } else if destination[0] & 1 != 0 {
        Cast::Multicast
    } else {
        Cast::Unicast
    }
}

/// What a binding wants to hear.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// `NDIS_PACKET_TYPE_*` bits.
    pub packet_filter: u32,
    /// Groups heard under [`MULTICAST`].
    pub multicast: Vec<MacAddress>,
}

impl Filter {
    /// Whether a frame for `destination` passes, on an adapter with address `station`.
    pub fn passes(&self, station: MacAddress, destination: MacAddress) -> bool {
        let has = |bits| self.packet_filter & bits != 0;
        has(PROMISCUOUS)
            || match cast(destination) {
                Cast::Broadcast => has(BROADCAST),
                Cast::Multicast => {
                    has(ALL_MULTICAST) || has(MULTICAST) && self.multicast.contains(&destination)
                }
                Cast::Unicast => has(DIRECTED) && destination == station,
            }
    }

    /// The filter that passes what either passes: what the adapter is told for all its bindings.
    #[must_use]
    pub fn union(mut self, other: &Filter) -> Filter {
        self.packet_filter |= other.packet_filter;
        for group in &other.multicast {
            if !self.multicast.contains(group) {
                self.multicast.push(*group);
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: MacAddress = [2, 0, 0, 0, 0, 1];
    const OTHER: MacAddress = [2, 0, 0, 0, 0, 2];
    const GROUP: MacAddress = [1, 0, 0x5e, 0, 0, 1];

    #[test]
    fn each_bit_passes_its_own_frames_only() {
        let passes = |bits, destination| {
            Filter { packet_filter: bits, multicast: vec![GROUP] }.passes(ME, destination)
        };
        for (bits, expected) in [
            (0, [false; 5]),
            (DIRECTED, [true, false, false, false, false]),
            (MULTICAST, [false, false, true, false, false]),
            (ALL_MULTICAST, [false, false, true, true, false]),
            (BROADCAST, [false, false, false, false, true]),
            (PROMISCUOUS, [true; 5]),
        ] {
            let group = [1, 0, 0x5e, 9, 9, 9];
            let got = [ME, OTHER, GROUP, group, [0xff; 6]].map(|destination| passes(bits, destination));
            assert_eq!(got, expected, "filter {bits:#x}");
        }
    }

    #[test]
    fn the_union_passes_what_either_passes() {
        let a = Filter { packet_filter: DIRECTED, multicast: vec![] };
        let b = Filter { packet_filter: MULTICAST, multicast: vec![GROUP] };
        let both = a.union(&b);
        assert!(both.passes(ME, ME) && both.passes(ME, GROUP) && !both.passes(ME, [0xff; 6]));
    }
}
