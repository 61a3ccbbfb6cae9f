//! The handles that NDIS gives a driver: opaque numbers, never addresses, so that a driver that looks behind one
//! faults, and one that uses a handle of the wrong kind, or an old one, is found out.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use windows_kernel_sys::NDIS_HANDLE;

use super::adapter::Core;
use super::binding::BindingCore;
use super::configuration::Configuration;
use super::dma::ScatterGather;
use super::driver::DriverCore;
use super::nbl::Pool;
use super::rules::{self, broken};
use super::timer::Timer;
use super::work_item::WorkItem;

/// A handle's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Handle(usize);

impl Handle {
    /// As the driver sees it.
    pub fn raw(self) -> NDIS_HANDLE {
        self.0 as *mut c_void
    }

    /// As the driver gave it.
    pub fn from_raw(raw: NDIS_HANDLE) -> Self {
        Self(raw as usize)
    }
}

/// What a handle stands for.
#[derive(Clone)]
pub(super) enum Object {
    Driver(Arc<DriverCore>),
    Adapter(Arc<Core>),
    Binding(Arc<BindingCore>),
    Configuration(Arc<Configuration>),
    Pool(Arc<Pool>),
    ScatterGather(Arc<ScatterGather>),
    Timer(Arc<Timer>),
    WorkItem(Arc<WorkItem>),
}

impl Object {
    fn kind(&self) -> &'static str {
        match self {
            Self::Driver(_) => "a driver",
            Self::Adapter(_) => "an adapter",
            Self::Binding(_) => "a binding",
            Self::Configuration(_) => "a configuration",
            Self::Pool(_) => "a NET_BUFFER_LIST pool",
            Self::ScatterGather(_) => "a scatter/gather DMA channel",
            Self::Timer(_) => "a timer",
            Self::WorkItem(_) => "a work item",
        }
    }
}

/// Kinds of object that a handle can be asked to stand for.
pub(super) trait Kind: Sized {
    /// The object, if it is of this kind.
    fn pick(object: &Object) -> Option<Arc<Self>>;
    /// What it is called in a report.
    const NAME: &'static str;
}

macro_rules! kinds {
    ($($type:ty: $variant:ident, $name:literal;)*) => {$(
        impl Kind for $type {
            const NAME: &'static str = $name;

            fn pick(object: &Object) -> Option<Arc<Self>> {
                match object {
                    Object::$variant(object) => Some(Arc::clone(object)),
                    _ => None,
                }
            }
        }
    )*};
}

kinds! {
    DriverCore: Driver, "driver";
    Core: Adapter, "adapter";
    BindingCore: Binding, "binding";
    Configuration: Configuration, "configuration";
    Pool: Pool, "NET_BUFFER_LIST pool";
    ScatterGather: ScatterGather, "scatter/gather DMA";
    Timer: Timer, "timer";
    WorkItem: WorkItem, "work item";
}

struct Entry {
    object: Object,
    owner: Option<Handle>,
}

/// Every live handle of the process, in the order they were made.
static TABLE: RwLock<BTreeMap<Handle, Entry>> = RwLock::new(BTreeMap::new());

/// In the upper half of the address space, where no user-mode mapping can be.
static NEXT: AtomicUsize = AtomicUsize::new(0xFFFF_8A00_0000_0010);

/// A number for a handle that is bound to its object later.
pub(super) fn reserve() -> Handle {
    Handle(NEXT.fetch_add(0x10, Ordering::Relaxed))
}

/// Binds a reserved number.
pub(super) fn bind(handle: Handle, owner: Option<Handle>, object: Object) {
    TABLE.write().unwrap_or_else(PoisonError::into_inner).insert(handle, Entry { object, owner });
}

/// Takes a handle back; false if it is not live.
pub(super) fn close(handle: Handle) -> bool {
    // Dropped outside the lock: an object's end may look at other handles.
    let entry = TABLE.write().unwrap_or_else(PoisonError::into_inner).remove(&handle);
    entry.is_some()
}

fn find(handle: Handle) -> Option<Object> {
    let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
    table.get(&handle).map(|entry| entry.object.clone())
}

/// The pool behind a handle of NDIS's own.
pub(super) fn pool(handle: Handle) -> Option<Arc<Pool>> {
    find(handle).and_then(|object| Pool::pick(&object))
}

/// What a driver's handle stands for; the run ends if it does not stand for a `T`.
pub(super) fn get<T: Kind>(raw: NDIS_HANDLE, call: &str) -> Arc<T> {
    match find(Handle::from_raw(raw)) {
        Some(object) => match T::pick(&object) {
            Some(found) => found,
            None => broken(
                &rules::NDIS_BAD_HANDLE,
                call,
                format!("the handle is {}, not a {}", object.kind(), T::NAME),
            ),
        },
        None => broken(&rules::NDIS_BAD_HANDLE, call, format!("{raw:p} is not a live {} handle", T::NAME)),
    }
}

/// An adapter or a driver: what most functions that take an `NdisHandle` accept.
pub(super) enum Owner {
    Driver(Arc<DriverCore>),
    Adapter(Arc<Core>),
}

impl Owner {
    /// What a driver's handle stands for.
    pub fn of(raw: NDIS_HANDLE, call: &str) -> Self {
        match find(Handle::from_raw(raw)) {
            Some(Object::Driver(driver)) => Self::Driver(driver),
            Some(Object::Adapter(adapter)) => Self::Adapter(adapter),
            Some(object) => broken(&rules::NDIS_BAD_HANDLE, call, format!("the handle is {}", object.kind())),
            None => broken(&rules::NDIS_BAD_HANDLE, call, format!("{raw:p} is not a live handle")),
        }
    }

    /// The driver it is, or is an adapter of.
    pub fn driver(&self) -> Arc<DriverCore> {
        match self {
            Self::Driver(driver) => Arc::clone(driver),
            Self::Adapter(adapter) => Arc::clone(&adapter.driver),
        }
    }

    /// Its handle.
    pub fn handle(&self) -> Handle {
        match self {
            Self::Driver(driver) => driver.handle,
            Self::Adapter(adapter) => adapter.handle,
        }
    }
}

/// Kinds of the live objects that belong to `owner`, in the order they were made: what it forgot to give back.
pub(super) fn owned_by(owner: Handle) -> Vec<&'static str> {
    let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
    table.values().filter(|entry| entry.owner == Some(owner)).map(|entry| entry.object.kind()).collect()
}

/// Takes back whatever belongs to `owner`: its halted adapters.
pub(super) fn close_owned_by(owner: Handle) {
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    let owned: Vec<_> =
        table.iter().filter(|(_, entry)| entry.owner == Some(owner)).map(|(handle, _)| *handle).collect();
    let entries: Vec<_> = owned.iter().filter_map(|handle| table.remove(handle)).collect();
    drop(table);
    drop(entries);
}
