//! P_Key tables out of partitions (IBA 10.9; OpenSM, osm_prtn.c and osm_pkey_mgr.c).

use super::config::Members;
use crate::fabric::core::Fabric;
use crate::fabric::ids::PKey;
use crate::fabric::topology::PortId;

impl Fabric {
    /// The P_Key table that the partitions give a port. The default partition comes first, as OpenSM keeps it
    /// at index 0; a manager is always a full member of it, so that everybody can reach the administrator.
    pub(super) fn pkey_table(&self, id: PortId) -> Vec<PKey> {
        if let Some(table) = self.manager.pkey_overrides.get(&id) {
            return table.clone();
        }
        let guid = self.topology.port(id).guid;
        let is_manager = self.manager.candidates.contains(&id);
        let mut table = vec![if is_manager { PKey::DEFAULT } else { PKey::DEFAULT_LIMITED }];
        for partition in &self.manager.config.partitions {
            let full = match &partition.members {
                Members::All { full } => Some(*full),
                Members::Ports(ports) => ports.iter().find(|(port, _)| *port == guid).map(|&(_, full)| full),
            };
            let Some(full) = full else { continue };
            let key = PKey(partition.pkey.partition() | if full { 0x8000 } else { 0 });
            match table.iter_mut().find(|entry| entry.partition() == key.partition()) {
                // In both ways at once, a port is a full member.
                Some(entry) => entry.0 |= key.0,
                None if key.is_valid() => table.push(key),
                None => (),
            }
        }
        table
    }
}
