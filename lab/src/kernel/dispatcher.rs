//! Events and the threads that wait for them.
//!
//! The signal state lies in the object itself, where Windows has it; the waiting threads are kept here.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU8, Ordering};

use windows_kernel_sys::{
    DISPATCHER_HEADER, EVENT_TYPE, KEVENT, LIST_ENTRY, NTSTATUS, NotificationEvent, STATUS_SUCCESS,
    STATUS_TIMEOUT,
};

use super::Machine;
use crate::sim::{self, Lock, Nanos, ThreadHandle};
use crate::verifier::rules::{OBJECT_NOT_INITIALIZED, OBJECT_REINITIALIZED_WHILE_WAITED, WAIT_AT_DISPATCH};
use crate::verifier::{irql_name, violation};

/// The objects of one machine, by address. Looked up only: nothing depends on the order of addresses.
#[derive(Default)]
pub(super) struct Dispatcher(Lock<HashMap<usize, VecDeque<Arc<Waiter>>>>);

struct Waiter {
    thread: ThreadHandle,
    state: AtomicU8,
}

const WAITING: u8 = 0;
const SATISFIED: u8 = 1;
const TIMED_OUT: u8 = 2;

impl Waiter {
    /// Ends the wait if nothing else has; true if this did.
    fn end(&self, state: u8) -> bool {
        self.state.compare_exchange(WAITING, state, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// The signal state in the object, accessed as an atomic since a driver may read it without a lock.
///
/// # Safety
/// `event` must point to an event for as long as the reference is used.
unsafe fn signal<'a>(event: *mut KEVENT) -> &'a AtomicI32 {
    // SAFETY: the caller's contract; the member is aligned to four bytes.
    unsafe { AtomicI32::from_ptr(&raw mut (*event).Header.SignalState) }
}

/// Whether the event resets itself when it satisfies a wait.
///
/// # Safety
/// `event` must point to an initialised event.
unsafe fn is_synchronization(event: *mut KEVENT) -> bool {
    // SAFETY: the caller's contract. The first byte of the header is the object's type.
    unsafe { (*event).Header.Lock & 0xFF != NotificationEvent }
}

impl Machine {
    /// Initialises an event.
    ///
    /// # Safety
    /// `event` must point to memory of an event.
    pub unsafe fn initialize_event(&self, event: *mut KEVENT, kind: EVENT_TYPE, signaled: bool, call: &str) {
        let address = event as usize;
        self.check_resident(address, "the event", call);
        let waited = {
            let mut objects = self.0.dispatcher.0.lock();
            let waited = objects.get(&address).is_some_and(|waiters| !waiters.is_empty());
            objects.entry(address).or_default();
            waited
        };
        if waited {
            violation(OBJECT_REINITIALIZED_WHILE_WAITED, call, "a thread waits for the event");
        }
        // Type in the lowest byte, size in words in the third, as Windows fills the header.
        let lock = kind | ((size_of::<KEVENT>() / 4) as i32) << 16;
        // SAFETY: the caller's contract.
        unsafe {
            let head = &raw mut (*event).Header.WaitListHead;
            (*event).Header = DISPATCHER_HEADER {
                Lock: lock,
                SignalState: i32::from(signaled),
                WaitListHead: LIST_ENTRY { Flink: head, Blink: head },
            };
        }
    }

    /// Sets an event to signaled and wakes who waits for it. Returns the previous state.
    ///
    /// # Safety
    /// `event` must point to an event.
    pub unsafe fn set_event(&self, event: *mut KEVENT, call: &str) -> i32 {
        self.check_event(event as usize, call);
        let mut woken = Vec::new();
        let previous = {
            let mut objects = self.0.dispatcher.0.lock();
            // SAFETY: the caller's contract.
            let state = unsafe { signal(event) };
            let previous = state.swap(1, Ordering::AcqRel);
            let waiters = objects.entry(event as usize).or_default();
            // SAFETY: the caller's contract; it was checked to be initialised.
            let synchronization = unsafe { is_synchronization(event) };
            while let Some(waiter) = waiters.pop_front() {
                if waiter.end(SATISFIED) {
                    woken.push(waiter.thread.clone());
                    if synchronization {
                        state.store(0, Ordering::Release);
                        break;
                    }
                }
            }
            previous
        };
        for thread in &woken {
            self.sim().unpark(thread);
        }
        previous
    }

    /// Sets an event to not signaled. Returns the previous state.
    ///
    /// # Safety
    /// `event` must point to an event.
    pub unsafe fn reset_event(&self, event: *mut KEVENT, call: &str) -> i32 {
        self.check_event(event as usize, call);
        let _objects = self.0.dispatcher.0.lock();
        // SAFETY: the caller's contract.
        unsafe { signal(event) }.swap(0, Ordering::AcqRel)
    }

    /// The state of an event.
    ///
    /// # Safety
    /// `event` must point to an event.
    pub unsafe fn read_event(&self, event: *mut KEVENT, call: &str) -> i32 {
        self.check_event(event as usize, call);
        // SAFETY: the caller's contract.
        unsafe { signal(event) }.load(Ordering::Acquire)
    }

    /// Waits for an event, without limit or up to the absolute time `until`. The object must be initialised.
    ///
    /// # Safety
    /// `event` must point to an event that stays valid for as long as this waits.
    pub unsafe fn wait_for_event(
        &self,
        event: *mut KEVENT,
        until: Option<Nanos>,
        call: &'static str,
    ) -> NTSTATUS {
        self.check_event(event as usize, call);
        let now = self.sim().now();
        let immediate = until.is_some_and(|until| until <= now);
        // SAFETY: the caller's contract.
        if unsafe { self.try_consume(event) } {
            Self::check_may_wait(immediate, call);
            return STATUS_SUCCESS;
        }
        Self::check_may_wait(immediate, call);
        if immediate {
            return STATUS_TIMEOUT;
        }
        let thread = sim::current_thread().expect("checked: below DISPATCH_LEVEL there is a thread");
        let waiter = Arc::new(Waiter { thread, state: AtomicU8::new(WAITING) });
        {
            let mut objects = self.0.dispatcher.0.lock();
            // SAFETY: the caller's contract.
            if unsafe { Self::consume(event) } {
                return STATUS_SUCCESS;
            }
            objects.entry(event as usize).or_default().push_back(Arc::clone(&waiter));
        }
        let timer = until.map(|until| {
            let waiter = Arc::clone(&waiter);
            self.sim().at(until, "wait timeout", move |sim| {
                if waiter.end(TIMED_OUT) {
                    sim.unpark(&waiter.thread);
                }
            })
        });
        while waiter.state.load(Ordering::Acquire) == WAITING {
            sim::park("an event", false);
        }
        if waiter.state.load(Ordering::Acquire) == SATISFIED {
            if let Some(timer) = timer {
                self.sim().cancel(timer);
            }
            return STATUS_SUCCESS;
        }
        let mut objects = self.0.dispatcher.0.lock();
        if let Some(waiters) = objects.get_mut(&(event as usize)) {
            waiters.retain(|other| !Arc::ptr_eq(other, &waiter));
        }
        STATUS_TIMEOUT
    }

    /// Whether something waits for an object in the memory; forgets the objects there if not.
    pub(super) fn forget_events(&self, memory: &std::ops::Range<usize>) -> bool {
        let mut objects = self.0.dispatcher.0.lock();
        let waited = objects.iter().any(|(address, waiters)| memory.contains(address) && !waiters.is_empty());
        if !waited {
            objects.retain(|address, _| !memory.contains(address));
        }
        waited
    }

    unsafe fn try_consume(&self, event: *mut KEVENT) -> bool {
        let _objects = self.0.dispatcher.0.lock();
        // SAFETY: the caller's contract.
        unsafe { Self::consume(event) }
    }

    /// With the dispatcher locked: true if signaled; a synchronization event is then not any more.
    unsafe fn consume(event: *mut KEVENT) -> bool {
        // SAFETY: the caller's contract.
        let (state, synchronization) = unsafe { (signal(event), is_synchronization(event)) };
        let signaled = state.load(Ordering::Acquire) != 0;
        if signaled && synchronization {
            state.store(0, Ordering::Release);
        }
        signaled
    }

    fn check_event(&self, address: usize, call: &str) {
        let known = self.0.dispatcher.0.lock().contains_key(&address);
        if !known {
            violation(OBJECT_NOT_INITIALIZED, call, "the object was never initialised");
        }
    }

    /// At DISPATCH_LEVEL only a zero timeout is allowed, signaled or not: that it did not have to wait this time is
    /// luck.
    fn check_may_wait(immediate: bool, call: &str) {
        let level = sim::level();
        let highest = if immediate { super::irql::DISPATCH_LEVEL } else { super::irql::APC_LEVEL };
        if level > highest {
            violation(WAIT_AT_DISPATCH, call, format!("at {}", irql_name(level)));
        }
    }
}
