//! Which port has which LID.

use std::collections::BTreeSet;

use rand_chacha::rand_core::Rng;

use super::config::LidPolicy;
use crate::fabric::core::Fabric;
use crate::fabric::ids::{Guid, Lid};

impl Fabric {
    /// The base LID of a port GUID: the one it had, if that is still possible, else a free one (IBA 14.4.2
    /// leaves the choice to the manager). `None` when no LID is left.
    pub(super) fn lid_for(&mut self, guid: Guid, lmc: u8, taken: &BTreeSet<Lid>) -> Option<Lid> {
        let step = 1u16 << lmc;
        let free = |lid: Lid| {
            lid.base(lmc) == lid
                && lid.is_unicast()
                && Lid(lid.0 + step - 1).is_unicast()
                && (lid.0..lid.0 + step).all(|lid| !taken.contains(&Lid(lid)))
        };
        if let Some(&lid) = self.manager.lids.get(&guid)
            && free(lid)
        {
            return Some(lid);
        }
        // Number of aligned blocks that lie wholly in the unicast range, the one with LID 0 left out unless
        // LMC is 0.
        let blocks = (Lid::UNICAST_MAX.0 / step) as usize;
        let start = match self.manager.config.lid_policy {
            LidPolicy::Sequential => 0,
            LidPolicy::Random => (self.rng.next_u64() % blocks as u64) as usize,
        };
        let lid = (0..blocks)
            .map(|offset| Lid(((start + offset) % blocks + 1) as u16 * step))
            .find(|&lid| free(lid))?;
        self.manager.lids.insert(guid, lid);
        Some(lid)
    }
}
