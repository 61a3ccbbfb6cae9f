//! Which queue pairs are attached to which multicast groups (IBA vol. 1 §10.5).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::qp::Qp;
use super::{Hca, read, write};
use crate::fabric::ids::{Gid, Lid};

/// A group as a port sees it: multicast GID and LID.
type Group = (u8, Gid, Lid);

/// Attached queue pairs by group, in order of attachment.
pub(super) type Groups = BTreeMap<Group, Vec<Arc<Qp>>>;

impl Hca {
    /// Attaches a queue pair to a group. `false`: beyond a limit.
    pub fn attach(&self, port: u8, mgid: Gid, mlid: Lid, qp: &Arc<Qp>) -> bool {
        let mut groups = write(&self.groups);
        let full = groups.len() >= self.limits.groups as usize;
        let key = (port, mgid, mlid);
        if full && !groups.contains_key(&key) {
            return false;
        }
        let attached = groups.entry(key).or_default();
        if attached.len() >= self.limits.qps_per_group as usize {
            return false;
        }
        attached.push(Arc::clone(qp));
        true
    }

    /// Undoes one [`Hca::attach`].
    pub fn detach(&self, port: u8, mgid: Gid, mlid: Lid, qp: &Arc<Qp>) {
        let mut groups = write(&self.groups);
        if let Some(attached) = groups.get_mut(&(port, mgid, mlid)) {
            if let Some(index) = attached.iter().position(|other| Arc::ptr_eq(other, qp)) {
                attached.remove(index);
            }
            if attached.is_empty() {
                groups.remove(&(port, mgid, mlid));
            }
        }
    }

    /// Queue pairs attached to a group, each once.
    pub(super) fn attached(&self, port: u8, mgid: Gid, mlid: Lid) -> Vec<Arc<Qp>> {
        let groups = read(&self.groups);
        let mut attached = groups.get(&(port, mgid, mlid)).cloned().unwrap_or_default();
        attached.dedup_by(|a, b| Arc::ptr_eq(a, b));
        attached
    }

    pub(super) fn has_group(&self, port: u8, mlid: Lid) -> bool {
        read(&self.groups).keys().any(|(p, _, lid)| (*p, *lid) == (port, mlid))
    }
}
