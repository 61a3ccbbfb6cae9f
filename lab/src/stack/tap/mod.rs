//! Real Linux programs above a simulated adapter: a TAP device in a network namespace of its own, with the adapter's
//! address and MTU. What programs send goes down to the adapter, what the adapter receives goes up to them; the groups
//! they listen to become the adapter's multicast list, and its link their carrier. For threaded mode: programs live in
//! real time.

mod device;
mod namespace;

use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

pub use device::DEVICE;
pub use namespace::{Exclusive, PREFIX};

use crate::ndis::{
    ALL_MULTICAST, Adapter, BROADCAST, Binding, DIRECTED, Frame, LinkState, MULTICAST, MacAddress, Protocol,
    SendCompletion, SendRequest, Status,
};
use device::TapDevice;
use namespace::Namespace;

/// Frames read in one go.
const BATCH: usize = 64;
/// Frames that the adapter has not completed, at most; then programs wait in the device's queue.
const MAX_OUTSTANDING: usize = 1024;
/// How often the groups that programs listen to are looked at, in milliseconds.
const GROUPS_INTERVAL: u16 = 50;

/// What a [`TapStack`] has carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TapCounters {
    /// Frames from programs.
    pub sent: u64,
    /// Of these, not carried by the adapter.
    pub send_failures: u64,
    /// Frames to programs.
    pub received: u64,
    /// Of these, not taken by the device.
    pub receive_drops: u64,
}

struct Shared {
    device: TapDevice,
    outstanding: Mutex<usize>,
    completed: Condvar,
    link: AtomicBool,
    settled: AtomicBool,
    stop: AtomicBool,
    sent: AtomicU64,
    send_failures: AtomicU64,
    received: AtomicU64,
    receive_drops: AtomicU64,
}

impl Protocol for Shared {
    fn receive(&self, frames: &[Frame<'_>]) {
        for frame in frames {
            let counter = if self.device.write(frame.bytes) { &self.received } else { &self.receive_drops };
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn send_complete(&self, completions: &[SendCompletion]) {
        let failed = completions.iter().filter(|completion| completion.status != 0).count() as u64;
        self.send_failures.fetch_add(failed, Ordering::Relaxed);
        let mut outstanding = self.outstanding.lock().unwrap_or_else(PoisonError::into_inner);
        *outstanding -= completions.len();
        self.completed.notify_one();
    }

    fn link_state(&self, link: LinkState) {
        self.link.store(link.is_up(), Ordering::Release);
        // A device that takes no carrier shows up as one whose link is always up.
        let _ = self.device.set_carrier(link.is_up());
    }
}

impl Shared {
    /// Waits until the adapter has room for a batch, or the end has come.
    fn wait_for_room(&self) {
        let mut outstanding = self.outstanding.lock().unwrap_or_else(PoisonError::into_inner);
        while *outstanding + BATCH > MAX_OUTSTANDING && !self.stop.load(Ordering::Acquire) {
            let waited = self.completed.wait_timeout(outstanding, Duration::from_millis(100));
            outstanding = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn read_batch(&self) -> io::Result<Vec<Vec<u8>>> {
        let mut frames = Vec::new();
        while frames.len() < BATCH
            && let Some(frame) = self.device.read()?
        {
            frames.push(frame);
        }
        Ok(frames)
    }

    /// Carries frames down until the end. In the namespace's own OS thread.
    fn pump(self: &Arc<Self>, binding: &Binding) -> io::Result<()> {
        let machine = binding.adapter().machine().clone();
        let mut groups: Vec<MacAddress> = Vec::new();
        let mut look_again = Instant::now();
        while !self.stop.load(Ordering::Acquire) {
            if Instant::now() >= look_again {
                look_again = Instant::now() + Duration::from_millis(GROUPS_INTERVAL.into());
                let now = device::multicast_addresses()?;
                if now != groups {
                    groups.clone_from(&now);
                    let binding = binding.clone();
                    machine.spawn_thread("TAP groups", move || listen(&binding, &now));
                }
                self.settled.store(device::addresses_are_settled()?, Ordering::Release);
            }
            if !self.device.wait(GROUPS_INTERVAL)? {
                continue;
            }
            self.wait_for_room();
            let frames = self.read_batch()?;
            if frames.is_empty() {
                continue;
            }
            *self.outstanding.lock().unwrap_or_else(PoisonError::into_inner) += frames.len();
            let first = self.sent.fetch_add(frames.len() as u64, Ordering::Relaxed);
            let binding = binding.clone();
            // Always on the same processor, so that frames do not overtake each other.
            machine.queue_dpc_on(0, "TAP", move || binding.send(&SendRequest::frames(frames, first)));
        }
        Ok(())
    }
}

/// Has the adapter hear the groups that programs listen to.
fn listen(binding: &Binding, groups: &[MacAddress]) {
    if binding.set_filter(DIRECTED | BROADCAST | MULTICAST, groups).is_err() {
        // The list is full: all groups, as any host does then.
        let _ = binding.set_filter(DIRECTED | BROADCAST | ALL_MULTICAST, &[]);
    }
}

/// Real programs above an adapter.
pub struct TapStack {
    namespace: String,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<io::Result<()>>>,
    binding: Binding,
}

/// Why a [`TapStack`] could not be made.
#[derive(Debug)]
pub enum TapError {
    /// The namespace or the device.
    System(io::Error),
    /// The binding to the adapter.
    Bind(Status),
}

impl std::fmt::Display for TapError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::System(error) => write!(f, "cannot make a TAP device in a namespace of its own: {error}"),
            Self::Bind(status) => write!(f, "cannot bind to the adapter: status {status:#010x}"),
        }
    }
}

impl std::error::Error for TapError {}

impl From<io::Error> for TapError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl TapStack {
    /// Makes the namespace `name` with a device that has the adapter's address and MTU and these addresses, and binds
    /// it to the adapter. From a thread of the adapter's machine at PASSIVE_LEVEL.
    pub fn start(adapter: &Adapter, name: &str, addresses: &[(IpAddr, u8)]) -> Result<Self, TapError> {
        let attributes = adapter.attributes();
        let (made, device) = channel();
        let (bound, wait) = channel();
        let (name, addresses) = (name.to_owned(), addresses.to_vec());
        let namespace = name.clone();
        let thread = thread::Builder::new().name(name.clone()).spawn(move || {
            live(&name, attributes.current_address, attributes.mtu as u16, &addresses, &made, &wait)
        })?;
        let Ok(shared) = device.recv() else {
            // The thread has ended before it had a device.
            return Err(ended(thread).into());
        };
        let binding = adapter.bind(Arc::clone(&shared) as Arc<dyn Protocol>).map_err(TapError::Bind)?;
        listen(&binding, &[]);
        // If the thread has ended since, joining it says why.
        let _ = bound.send(binding.clone());
        Ok(Self { namespace, shared, thread: Some(thread), binding })
    }

    /// The namespace's name, for `ip netns exec`.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Whether the link is up and every address may be used.
    pub fn is_ready(&self) -> bool {
        self.shared.link.load(Ordering::Acquire) && self.shared.settled.load(Ordering::Acquire)
    }

    /// Whether the device is gone before [`TapStack::stop`], which then says why.
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// What was carried.
    pub fn counters(&self) -> TapCounters {
        let shared = &self.shared;
        TapCounters {
            sent: shared.sent.load(Ordering::Relaxed),
            send_failures: shared.send_failures.load(Ordering::Relaxed),
            received: shared.received.load(Ordering::Relaxed),
            receive_drops: shared.receive_drops.load(Ordering::Relaxed),
        }
    }

    /// Unbinds from the adapter and removes the device and the namespace. From a thread of the adapter's machine at
    /// PASSIVE_LEVEL.
    ///
    /// # Errors
    /// What ended the device before.
    pub fn stop(mut self) -> io::Result<()> {
        self.binding.close();
        self.end()
    }

    fn end(&mut self) -> io::Result<()> {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.completed.notify_all();
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(io::Error::other("the thread of the TAP device panicked")),
            None => Ok(()),
        }
    }
}

impl Drop for TapStack {
    fn drop(&mut self) {
        // Its error was for whoever calls `stop`.
        let _ = self.end();
    }
}

/// Why the thread has ended early.
fn ended(thread: JoinHandle<io::Result<()>>) -> io::Error {
    match thread.join() {
        Ok(Err(error)) => error,
        _ => io::Error::other("the thread of the TAP device ended"),
    }
}

/// The life of a namespace's OS thread.
fn live(
    name: &str,
    mac: MacAddress,
    mtu: u16,
    addresses: &[(IpAddr, u8)],
    made: &Sender<Arc<Shared>>,
    bound: &Receiver<Binding>,
) -> io::Result<()> {
    let _namespace = Namespace::enter_new(name)?;
    let shared = Arc::new(Shared {
        device: TapDevice::new(mac, mtu, addresses)?,
        outstanding: Mutex::default(),
        completed: Condvar::new(),
        link: AtomicBool::new(false),
        settled: AtomicBool::new(false),
        stop: AtomicBool::new(false),
        sent: AtomicU64::new(0),
        send_failures: AtomicU64::new(0),
        received: AtomicU64::new(0),
        receive_drops: AtomicU64::new(0),
    });
    let _ = made.send(Arc::clone(&shared));
    match bound.recv() {
        Ok(binding) => shared.pump(&binding),
        // The binding failed: nobody wants the device any more.
        Err(_) => Ok(()),
    }
}
