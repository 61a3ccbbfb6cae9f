//! Sends that wait, linked through themselves.

use super::send::{SendBuffer, reserved};
use core::ptr::{self, NonNull};
use windows_kernel_sys as sys;

/// A first-in, first-out queue of buffers that needs no memory of its own.
#[derive(Debug)]
pub struct SendQueue {
    head: *mut sys::NET_BUFFER,
    tail: *mut sys::NET_BUFFER,
    len: usize,
}

// SAFETY: a queue owns its buffers.
unsafe impl Send for SendQueue {}

impl Default for SendQueue {
    fn default() -> Self {
        Self::new()
    }
}

impl SendQueue {
    /// Empty.
    pub const fn new() -> Self {
        Self { head: ptr::null_mut(), tail: ptr::null_mut(), len: 0 }
    }

    /// How many buffers wait.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.head.is_null()
    }

    /// Adds a buffer at the end.
    pub fn push_back(&mut self, mut buffer: SendBuffer) {
        buffer.reserve(reserved::LINK, ptr::null_mut());
        let raw = buffer.into_raw().as_ptr();
        if self.head.is_null() {
            self.head = raw;
        } else {
            // SAFETY: the last buffer, owned by the queue.
            unsafe { (*self.tail).MiniportReserved[reserved::LINK] = raw.cast() };
        }
        self.tail = raw;
        self.len += 1;
    }

    /// Takes the first buffer out.
    pub fn pop_front(&mut self) -> Option<SendBuffer> {
        let first = NonNull::new(self.head)?;
        // SAFETY: the first buffer, owned by the queue.
        self.head = unsafe { first.as_ref() }.MiniportReserved[reserved::LINK].cast();
        if self.head.is_null() {
            self.tail = ptr::null_mut();
        }
        self.len -= 1;
        // SAFETY: `push_back` gave it up, and it is not in the queue any more.
        Some(unsafe { SendBuffer::from_raw(first) })
    }

    /// Takes out all buffers for which `wanted` holds, in order, and keeps the order of the others.
    pub fn extract(&mut self, mut wanted: impl FnMut(&SendBuffer) -> bool) -> Self {
        let mut out = Self::new();
        for _ in 0..self.len {
            let Some(buffer) = self.pop_front() else { break };
            if wanted(&buffer) { out.push_back(buffer) } else { self.push_back(buffer) }
        }
        out
    }

    /// Moves all buffers of `other` to the end.
    pub fn append(&mut self, other: &mut Self) {
        while let Some(buffer) = other.pop_front() {
            self.push_back(buffer);
        }
    }
}
