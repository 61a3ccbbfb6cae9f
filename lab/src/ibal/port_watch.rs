//! What a change of a port's attributes means as Plug and Play events.
//!
//! Pure. The rules are those of the access layer's `al_pnp.c`: it compares the attributes it last reported with the
//! present ones, so a client sees states it missed made up for (a port that went down and up again between two looks
//! is reported down, then INIT, ARMED, ACTIVE), and it reports table changes only while the port is ARMED or ACTIVE
//! before and after.

use crate::fabric::ids::{Gid, PKey};

/// A Plug and Play event of a port, in the access layer's order of reporting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PortEvent {
    /// The port exists.
    Add,
    /// Link up, not configured.
    Init,
    /// Configured, no data traffic yet.
    Armed,
    /// Data traffic.
    Active,
    /// No link.
    Down,
    /// The P_Key table changed.
    PKeyChange,
    /// The GID table changed.
    GidChange,
    /// LID or LMC changed, or the subnet manager wants everybody to register again.
    LidChange,
    /// LID or service level of the subnet manager changed.
    SmChange,
    /// The subnet timeout changed.
    SubnetTimeoutChange,
    /// The port goes.
    Remove,
}

/// Logical state of a port's link (IBA vol. 1 §14.2.5.6, PortState).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Link {
    /// Down.
    #[default]
    Down = 1,
    /// Initialize.
    Init = 2,
    /// Armed.
    Armed = 3,
    /// Active.
    Active = 4,
}

/// The attributes of a port that events are about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortView {
    /// Link state.
    pub link: Link,
    /// Base LID.
    pub lid: u16,
    /// LID mask control.
    pub lmc: u8,
    /// LID of the subnet manager.
    pub sm_lid: u16,
    /// Service level of the subnet manager.
    pub sm_sl: u8,
    /// Subnet timeout exponent.
    pub subnet_timeout: u8,
    /// GID table.
    pub gids: Vec<Gid>,
    /// P_Key table.
    pub pkeys: Vec<PKey>,
}

/// What a new registrant is told of a port: that it exists, and each state up to the present one.
pub fn present(link: Link) -> Vec<PortEvent> {
    let mut events = vec![PortEvent::Add];
    events.extend(match link {
        Link::Down => &[PortEvent::Down][..],
        Link::Init => &[PortEvent::Init],
        Link::Armed => &[PortEvent::Init, PortEvent::Armed],
        Link::Active => &[PortEvent::Init, PortEvent::Armed, PortEvent::Active],
    });
    events
}

/// The events that lead from `old` to `new`.
pub fn changes(old: &PortView, new: &PortView) -> Vec<PortEvent> {
    let mut events = Vec::new();
    if old.link != new.link {
        match new.link {
            Link::Down => events.push(PortEvent::Down),
            Link::Init => {
                if old.link > Link::Init {
                    events.push(PortEvent::Down);
                }
                events.push(PortEvent::Init);
            }
            Link::Armed => {
                if old.link > Link::Armed {
                    events.extend([PortEvent::Down, PortEvent::Init]);
                }
                events.push(PortEvent::Armed);
            }
            Link::Active => {
                if old.link == Link::Down {
                    events.extend([PortEvent::Init, PortEvent::Armed]);
                }
                events.push(PortEvent::Active);
            }
        }
    }
    let configured = |view: &PortView| matches!(view.link, Link::Armed | Link::Active);
    if configured(old) && configured(new) {
        if old.pkeys != new.pkeys {
            events.push(PortEvent::PKeyChange);
        }
        if old.gids != new.gids {
            events.push(PortEvent::GidChange);
        }
    }
    if (old.lid, old.lmc) != (new.lid, new.lmc) {
        events.push(PortEvent::LidChange);
    }
    if (old.sm_lid, old.sm_sl) != (new.sm_lid, new.sm_sl) {
        events.push(PortEvent::SmChange);
    }
    if old.subnet_timeout != new.subnet_timeout {
        events.push(PortEvent::SubnetTimeoutChange);
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(link: Link) -> PortView {
        PortView { link, lid: 5, pkeys: vec![PKey::DEFAULT], ..PortView::default() }
    }

    /// `__pnp_port_notify`: a registrant hears of every state up to the present one.
    #[test]
    fn a_registrant_hears_the_present_state() {
        use PortEvent::{Active, Add, Armed, Down, Init};
        assert_eq!(present(Link::Down), [Add, Down]);
        assert_eq!(present(Link::Init), [Add, Init]);
        assert_eq!(present(Link::Active), [Add, Init, Armed, Active]);
    }

    /// `__pnp_check_ports`: missed states are made up for.
    #[test]
    fn missed_states_are_made_up_for() {
        use PortEvent::{Active, Armed, Down, Init};
        assert_eq!(changes(&port(Link::Down), &port(Link::Active)), [Init, Armed, Active]);
        assert_eq!(changes(&port(Link::Active), &port(Link::Init)), [Down, Init]);
        assert_eq!(changes(&port(Link::Active), &port(Link::Armed)), [Down, Init, Armed]);
        assert_eq!(changes(&port(Link::Init), &port(Link::Active)), [Active]);
        assert_eq!(changes(&port(Link::Active), &port(Link::Active)), []);
    }

    /// Tables are compared only while the port is configured; LIDs always.
    #[test]
    fn tables_and_lids() {
        let old = port(Link::Active);
        let new = PortView { pkeys: vec![PKey::DEFAULT, PKey(0x8001)], lid: 6, sm_lid: 1, ..old.clone() };
        assert_eq!(changes(&old, &new), [PortEvent::PKeyChange, PortEvent::LidChange, PortEvent::SmChange]);
        let down = PortView { link: Link::Down, ..new.clone() };
        assert_eq!(changes(&old, &down), [PortEvent::Down, PortEvent::LidChange, PortEvent::SmChange]);
        let gid = PortView { gids: vec![Gid([1; 16])], ..old.clone() };
        assert_eq!(changes(&old, &gid), [PortEvent::GidChange]);
        let timeout = PortView { subnet_timeout: 9, ..old.clone() };
        assert_eq!(changes(&old, &timeout), [PortEvent::SubnetTimeoutChange]);
    }
}
