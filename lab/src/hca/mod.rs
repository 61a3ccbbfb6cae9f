//! A simulated host channel adapter: queue pairs, completion queues, memory regions, address vectors and multicast
//! attachments, moving real packets through the [`crate::fabric`].
//!
//! The rooms below this one are [`crate::kernel`], whose DPCs and physical memory it uses, and the fabric. What the
//! driver calls is [`crate::ibal`], above. Nothing here runs driver code but the completion and event callbacks, and
//! those from a DPC or a thread of the machine, never with a lock held.

use std::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

pub mod av;
pub mod cq;
pub mod handle;
pub mod log;
pub mod mem;
pub mod qp;
pub mod qp_state;

/// Locks, whatever another thread did: a panic elsewhere must not hide behind a poisoned lock here.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// As [`lock`], for reading.
pub(crate) fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// As [`lock`], for writing.
pub(crate) fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(std::sync::PoisonError::into_inner)
}
