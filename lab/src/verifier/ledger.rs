//! What a driver has obtained and not given back.

use std::collections::BTreeMap;
use std::fmt;

use crate::fault::Site;

/// Something obtained and not given back.
#[derive(Clone, Debug)]
pub struct Leak {
    /// What it is, e.g. `"MDL"`.
    pub kind: &'static str,
    /// Tag or name that helps to tell which.
    pub tag: String,
    /// The how-manieth resource of the machine it was.
    pub sequence: u64,
    /// The call stack that obtained it, innermost first, if it was recorded.
    pub stack: Vec<String>,
}

impl fmt::Display for Leak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} (#{})", self.kind, self.tag, self.sequence)?;
        for frame in &self.stack {
            write!(f, "\n    {frame}")?;
        }
        Ok(())
    }
}

struct Entry {
    tag: String,
    sequence: u64,
    site: Option<Site>,
}

/// The resources a driver holds, by kind and identity (an address or a handle). The rooms enter what their exports
/// hand out and strike what comes back; what is left at unload has leaked.
#[derive(Default)]
pub struct Ledger {
    next: u64,
    entries: BTreeMap<(&'static str, usize), Entry>,
}

impl Ledger {
    /// Enters a resource.
    pub fn acquire(&mut self, kind: &'static str, id: usize, tag: impl Into<String>, site: Option<Site>) {
        self.next += 1;
        self.entries.insert((kind, id), Entry { tag: tag.into(), sequence: self.next, site });
    }

    /// Strikes a resource; false if it was not there.
    pub fn release(&mut self, kind: &'static str, id: usize) -> bool {
        self.entries.remove(&(kind, id)).is_some()
    }

    /// True if the resource is held.
    pub fn holds(&self, kind: &'static str, id: usize) -> bool {
        self.entries.contains_key(&(kind, id))
    }

    /// How many resources of `kind` are held.
    pub fn count(&self, kind: &'static str) -> usize {
        self.entries.range((kind, 0)..=(kind, usize::MAX)).count()
    }

    /// Everything held, in the order it was obtained.
    pub fn outstanding(&self) -> Vec<Leak> {
        let mut leaks: Vec<_> = self
            .entries
            .iter()
            .map(|((kind, _), entry)| Leak {
                kind,
                tag: entry.tag.clone(),
                sequence: entry.sequence,
                stack: entry.site.as_ref().map(Site::frames).unwrap_or_default(),
            })
            .collect();
        leaks.sort_by_key(|leak| leak.sequence);
        leaks
    }
}
