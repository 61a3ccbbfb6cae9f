//! Forwarding tables of a switch (IBA 14.2.5.10, 14.2.5.12, 18.2.4).

use crate::fabric::ids::{Lid, Nanos};

/// A set of port numbers of one switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortSet([u64; 4]);

impl PortSet {
    /// The empty set.
    pub const EMPTY: Self = Self([0; 4]);

    /// Adds a port.
    pub fn insert(&mut self, port: u8) {
        self.0[usize::from(port / 64)] |= 1 << (port % 64);
    }

    /// Whether a port is in.
    pub fn contains(&self, port: u8) -> bool {
        self.0[usize::from(port / 64)] & (1 << (port % 64)) != 0
    }

    /// Whether no port is in.
    pub fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }

    /// The ports, lowest first.
    pub fn iter(&self) -> impl Iterator<Item = u8> + use<> {
        let words = self.0;
        (0..4u8).flat_map(move |word| {
            let mut bits = words[usize::from(word)];
            std::iter::from_fn(move || {
                (bits != 0).then(|| {
                    let bit = bits.trailing_zeros() as u8;
                    bits &= bits - 1;
                    word * 64 + bit
                })
            })
        })
    }
}

impl FromIterator<u8> for PortSet {
    fn from_iter<I: IntoIterator<Item = u8>>(ports: I) -> Self {
        let mut set = Self::EMPTY;
        for port in ports {
            set.insert(port);
        }
        set
    }
}

/// The switch part of a node.
#[derive(Clone, Debug)]
pub struct Switch {
    /// Time from the first byte in to the first byte out.
    pub latency: Nanos,
    /// Out port by unicast LID; [`Switch::NO_PORT`] and LIDs past the end have no route.
    linear: Vec<u8>,
    /// Out ports by multicast LID from 0xC000 on.
    multicast: Vec<PortSet>,
}

impl Switch {
    /// The entry of a linear forwarding table that means: drop.
    pub const NO_PORT: u8 = 0xFF;

    /// A switch with empty tables.
    pub fn new(latency: Nanos) -> Self {
        Self { latency, linear: Vec::new(), multicast: Vec::new() }
    }

    /// Out port for a unicast LID.
    pub fn route(&self, lid: Lid) -> Option<u8> {
        self.linear.get(usize::from(lid.0)).copied().filter(|&port| port != Self::NO_PORT)
    }

    /// Out ports for a multicast LID; empty when the LID has no entry, since the default multicast ports are
    /// not set here (IBA 14.2.5.4).
    pub fn multicast_ports(&self, lid: Lid) -> PortSet {
        let index = usize::from(lid.0).checked_sub(usize::from(Lid::MULTICAST_MIN.0));
        index.and_then(|index| self.multicast.get(index)).copied().unwrap_or_default()
    }

    /// Sets the out port for a unicast LID, `None` for no route.
    pub fn set_route(&mut self, lid: Lid, port: Option<u8>) {
        let index = usize::from(lid.0);
        if index >= self.linear.len() {
            self.linear.resize(index + 1, Self::NO_PORT);
        }
        self.linear[index] = port.unwrap_or(Self::NO_PORT);
    }

    /// Forgets every unicast route.
    pub fn clear_routes(&mut self) {
        self.linear.clear();
    }

    /// Sets the out ports for a multicast LID. Any other LID is ignored.
    pub fn set_multicast_ports(&mut self, lid: Lid, ports: PortSet) {
        if !lid.is_multicast() {
            return;
        }
        let index = usize::from(lid.0 - Lid::MULTICAST_MIN.0);
        if index >= self.multicast.len() {
            self.multicast.resize(index + 1, PortSet::EMPTY);
        }
        self.multicast[index] = ports;
    }

    /// Forgets every multicast route.
    pub fn clear_multicast(&mut self) {
        self.multicast.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table past its end, and an entry 0xFF, are no route (IBA 14.2.5.10).
    #[test]
    fn routes() {
        let mut switch = Switch::new(100);
        assert_eq!(switch.route(Lid(5)), None);
        switch.set_route(Lid(5), Some(3));
        assert_eq!((switch.route(Lid(5)), switch.route(Lid(4))), (Some(3), None));
        switch.set_route(Lid(5), None);
        assert_eq!(switch.route(Lid(5)), None);
    }

    /// A multicast table holds only multicast LIDs (IBA 14.2.5.12).
    #[test]
    fn multicast_routes() {
        let mut switch = Switch::new(100);
        let ports: PortSet = [0, 1, 64, 254].into_iter().collect();
        switch.set_multicast_ports(Lid(0xC003), ports);
        switch.set_multicast_ports(Lid(3), ports);
        assert_eq!(switch.multicast_ports(Lid(0xC003)).iter().collect::<Vec<_>>(), [0, 1, 64, 254]);
        assert!(switch.multicast_ports(Lid(3)).is_empty());
        assert!(switch.multicast_ports(Lid(0xC004)).is_empty());
        assert!(ports.contains(254) && !ports.contains(2));
    }
}
