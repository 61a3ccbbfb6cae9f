//! NET_BUFFER_LISTs: who owns them, and safe views of what they hold.
//!
//! A list belongs to the miniport from the call that hands it over until the call that gives it back. That is a value
//! here: [`SendChain`], [`SendNbl`] and [`SendBuffer`] for what MiniportSendNetBufferLists brings, [`ReceiveBuffer`]
//! and [`ReceiveChain`] for what is indicated up. None may simply be dropped: a send is completed, a receive buffer
//! freed or indicated. While the miniport owns a list it owns its `MiniportReserved`, in which this module keeps what
//! it needs; that is why nothing is allocated here for a frame.

mod queue;
mod receive;
mod send;

pub use queue::SendQueue;
pub use receive::{ReceiveBuffer, ReceiveChain, ReceivePool, ReturnedChain, Verified};
pub(super) use send::reserved;
pub use send::{SendBuffer, SendBuffers, SendChain, SendNbl};

use windows_kernel_sys as sys;

/// A singly linked chain of NET_BUFFER_LISTs by their `Next`.
#[derive(Debug)]
struct RawChain {
    head: *mut sys::NET_BUFFER_LIST,
    tail: *mut sys::NET_BUFFER_LIST,
    count: u32,
}

// SAFETY: a chain owns its lists, which no other processor touches.
unsafe impl Send for RawChain {}

impl RawChain {
    const fn new() -> Self {
        Self { head: core::ptr::null_mut(), tail: core::ptr::null_mut(), count: 0 }
    }

    /// # Safety
    /// `head` is null or heads a chain of lists that the caller owns and gives up.
    unsafe fn adopt(head: *mut sys::NET_BUFFER_LIST) -> Self {
        let mut chain = Self { head, tail: head, count: 0 };
        let mut next = head;
        while !next.is_null() {
            chain.tail = next;
            chain.count += 1;
            // SAFETY: a list of the chain.
            next = unsafe { (*next).Next };
        }
        chain
    }

    /// # Safety
    /// `nbl` is owned by the caller, who gives it up.
    unsafe fn push(&mut self, nbl: *mut sys::NET_BUFFER_LIST) {
        // SAFETY: an owned list.
        unsafe { (*nbl).Next = core::ptr::null_mut() };
        if self.head.is_null() {
            self.head = nbl;
        } else {
            // SAFETY: the last list of the chain, owned by it.
            unsafe { (*self.tail).Next = nbl };
        }
        self.tail = nbl;
        self.count += 1;
    }

    fn pop(&mut self) -> Option<*mut sys::NET_BUFFER_LIST> {
        if self.head.is_null() {
            return None;
        }
        let nbl = self.head;
        // SAFETY: the first list of the chain, owned by it.
        self.head = unsafe { core::mem::replace(&mut (*nbl).Next, core::ptr::null_mut()) };
        if self.head.is_null() {
            self.tail = core::ptr::null_mut();
        }
        self.count -= 1;
        Some(nbl)
    }

    /// Gives the lists up.
    fn take(&mut self) -> (*mut sys::NET_BUFFER_LIST, u32) {
        let taken = core::mem::replace(self, Self::new());
        (taken.head, taken.count)
    }
}
