//! What happens at a time: the queue of hardware-context closures.

use std::collections::BTreeMap;

use super::{Nanos, Sim};

/// Names a scheduled event, for cancelling it. Events of the same time fire in the order they were scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId {
    when: Nanos,
    sequence: u64,
}

pub(super) type Action = Box<dyn FnOnce(&Sim) + Send>;

pub(super) struct Event {
    pub id: EventId,
    pub name: &'static str,
    pub action: Action,
}

impl EventId {
    pub(super) fn sequence(self) -> u64 {
        self.sequence
    }
}

/// Pending events in firing order.
#[derive(Default)]
pub(super) struct EventQueue {
    next_sequence: u64,
    pending: BTreeMap<EventId, (&'static str, Action)>,
}

impl EventQueue {
    pub fn push(&mut self, when: Nanos, name: &'static str, action: Action) -> EventId {
        let id = EventId { when, sequence: self.next_sequence };
        self.next_sequence += 1;
        self.pending.insert(id, (name, action));
        id
    }

    pub fn remove(&mut self, id: EventId) -> Option<Action> {
        self.pending.remove(&id).map(|(_, action)| action)
    }

    /// The time of the first event.
    pub fn next_time(&self) -> Option<Nanos> {
        self.pending.first_key_value().map(|(id, _)| id.when)
    }

    /// Takes the first event if its time has come.
    pub fn pop_due(&mut self, now: Nanos) -> Option<Event> {
        let entry = self.pending.first_entry()?;
        if entry.key().when > now {
            return None;
        }
        let (id, (name, action)) = entry.remove_entry();
        Some(Event { id, name, action })
    }

    pub fn take_all(&mut self) -> BTreeMap<EventId, (&'static str, Action)> {
        std::mem::take(&mut self.pending)
    }
}
