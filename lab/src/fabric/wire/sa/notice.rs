//! Notice: what a report reports (IBA 13.4.8.2, 14.2.5.1).

use crate::fabric::ids::{Gid, Lid};
use crate::fabric::wire::bits::wire_format;

wire_format! {
    /// A notice with the data details of traps 64 to 67.
    pub struct Notice, NoticeView [80] {
        /// A trap of the specification.
        is_generic / set_is_generic: bool = 0, 1;
        /// Kind: 3 is subnet management.
        notice_type / set_notice_type: u8 = 1, 7;
        /// Who raises it: 4 is a class manager.
        producer_type / set_producer_type: u32 = 8, 24;
        /// Number of the trap.
        trap_number / set_trap_number: u16 = 32, 16;
        /// LID of who raises it.
        issuer_lid / set_issuer_lid: Lid = 48, 16;
        /// Toggles with each notice.
        toggle / set_toggle: bool = 64, 1;
        /// Notices so far.
        count / set_count: u16 = 65, 15;
        /// The port or group it is about.
        gid / set_gid: Gid = 128, 128;
        /// GID of who raises it.
        issuer_gid / set_issuer_gid: Gid = 512, 128;
    }
}

/// What a subnet manager reports (IBA 14.2.5.1, table of traps).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trap {
    /// 64: a port can be reached.
    GidInService(Gid),
    /// 65: a port can no longer be reached.
    GidOutOfService(Gid),
    /// 66: a multicast group was created.
    GroupCreated(Gid),
    /// 67: a multicast group was deleted.
    GroupDeleted(Gid),
}

impl Trap {
    /// Its number.
    pub const fn number(self) -> u16 {
        match self {
            Self::GidInService(_) => 64,
            Self::GidOutOfService(_) => 65,
            Self::GroupCreated(_) => 66,
            Self::GroupDeleted(_) => 67,
        }
    }

    /// The port or group.
    pub const fn gid(self) -> Gid {
        match self {
            Self::GidInService(gid)
            | Self::GidOutOfService(gid)
            | Self::GroupCreated(gid)
            | Self::GroupDeleted(gid) => gid,
        }
    }

    /// The notice a class manager raises for it.
    pub fn notice(self, issuer_lid: Lid, issuer_gid: Gid) -> Notice {
        Notice {
            is_generic: true,
            notice_type: 3,
            producer_type: 4,
            trap_number: self.number(),
            issuer_lid,
            toggle: false,
            count: 0,
            gid: self.gid(),
            issuer_gid,
        }
    }

    /// The trap of a notice, `None` for any other than those here.
    pub fn of(notice: &Notice) -> Option<Self> {
        match (notice.is_generic, notice.trap_number) {
            (true, 64) => Some(Self::GidInService(notice.gid)),
            (true, 65) => Some(Self::GidOutOfService(notice.gid)),
            (true, 66) => Some(Self::GroupCreated(notice.gid)),
            (true, 67) => Some(Self::GroupDeleted(notice.gid)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::wire::bits::wire_format_tests;

    wire_format_tests! { notice_both_ways: Notice, NoticeView; }

    /// IBA 14.2.5.1: traps 64 to 67, and back.
    #[test]
    fn traps() {
        let gid = Gid([9; 16]);
        let traps = [
            Trap::GidInService(gid),
            Trap::GidOutOfService(gid),
            Trap::GroupCreated(gid),
            Trap::GroupDeleted(gid),
        ];
        for (trap, number) in traps.into_iter().zip(64..) {
            assert_eq!(trap.number(), number);
            assert_eq!(Trap::of(&trap.notice(Lid(1), gid)), Some(trap));
        }
        assert_eq!(Trap::of(&Notice { trap_number: 64, ..Notice::default() }), None);
    }
}
