//! A protocol's binding to an adapter: what TCP/IP has of it.

use std::sync::Arc;

use windows_kernel_sys::{
    NDIS_STATUS, NDIS_STATUS_MULTICAST_FULL, OID_802_3_MULTICAST_LIST, OID_GEN_CURRENT_LOOKAHEAD,
    OID_GEN_CURRENT_PACKET_FILTER,
};

use super::adapter::{Adapter, Core};
use super::filter::{Filter, MacAddress};
use super::handle::{self, Handle, Object};
use super::protocol::{Protocol, SendRequest};
use crate::sim::Lock;

/// The inside of a [`Binding`].
pub(super) struct BindingCore {
    pub handle: Handle,
    pub protocol: Arc<dyn Protocol>,
    pub filter: Lock<Filter>,
}

/// A protocol bound to an adapter. Dropping it does not unbind: [`Binding::close`] does, or the adapter's halt.
#[derive(Clone)]
pub struct Binding {
    adapter: Adapter,
    core: Arc<BindingCore>,
}

impl Core {
    /// What all bindings together want to hear.
    fn wanted(&self) -> Filter {
        let bindings = self.bindings.lock().clone();
        bindings.iter().fold(Filter::default(), |all, binding| all.union(&binding.filter.lock()))
    }
}

impl Adapter {
    /// Binds a protocol: lookahead is set, the protocol learns the link's state and whether the adapter runs. It hears
    /// nothing before it sets a packet filter. From a thread at PASSIVE_LEVEL.
    pub fn bind(&self, protocol: Arc<dyn Protocol>) -> Result<Binding, NDIS_STATUS> {
        let handle = handle::reserve();
        let core = Arc::new(BindingCore { handle, protocol, filter: Lock::default() });
        handle::bind(handle, None, Object::Binding(Arc::clone(&core)));
        self.0.bindings.lock().push(Arc::clone(&core));
        let binding = Binding { adapter: self.clone(), core };
        let attributes = self.attributes();
        if let Err(status) = self.set(OID_GEN_CURRENT_LOOKAHEAD, &attributes.lookahead.to_ne_bytes()) {
            binding.unlink();
            return Err(status);
        }
        binding.core.protocol.link_state(self.link());
        binding.core.protocol.running(self.0.phase() == super::state::Phase::Running);
        Ok(binding)
    }

    /// Tells the miniport again what the bindings want to hear: it was reset, or initialised anew.
    pub(super) fn reapply_filter(&self) -> Result<(), NDIS_STATUS> {
        *self.0.applied.lock() = Filter::default();
        self.apply_filter()
    }

    /// Tells the miniport what changed of what the bindings want to hear. The list goes first when it grows, so that
    /// no frame passes a filter whose list is not set.
    fn apply_filter(&self) -> Result<(), NDIS_STATUS> {
        let wanted = self.0.wanted();
        let applied = self.0.applied.lock().clone();
        if wanted.multicast != applied.multicast {
            if wanted.multicast.len() > self.attributes().max_multicast as usize {
                return Err(NDIS_STATUS_MULTICAST_FULL);
            }
            self.set(OID_802_3_MULTICAST_LIST, wanted.multicast.as_flattened())?;
            self.0.applied.lock().multicast = wanted.multicast;
        }
        if wanted.packet_filter != applied.packet_filter {
            self.set(OID_GEN_CURRENT_PACKET_FILTER, &wanted.packet_filter.to_ne_bytes())?;
            self.0.applied.lock().packet_filter = wanted.packet_filter;
        }
        Ok(())
    }
}

impl Binding {
    /// The adapter.
    pub fn adapter(&self) -> &Adapter {
        &self.adapter
    }

    /// Sends, from a thread or DPC at IRQL <= DISPATCH_LEVEL. Every list ends in `send_complete` of the protocol.
    pub fn send(&self, request: &SendRequest) {
        self.adapter.0.send(&self.core, request);
    }

    /// Sets which frames this binding hears. From a thread at PASSIVE_LEVEL.
    pub fn set_filter(&self, packet_filter: u32, multicast: &[MacAddress]) -> Result<(), NDIS_STATUS> {
        *self.core.filter.lock() = Filter { packet_filter, multicast: multicast.to_vec() };
        self.adapter.apply_filter()
    }

    /// Unbinds: the protocol hears nothing any more, and the miniport is told. From a thread at PASSIVE_LEVEL.
    pub fn close(&self) {
        *self.core.filter.lock() = Filter::default();
        self.unlink();
        if self.adapter.0.phase().may_request() {
            // A miniport may not refuse to hear less; if it does, its other bindings still hear what they want.
            let _ = self.adapter.apply_filter();
        }
    }

    fn unlink(&self) {
        self.adapter.0.bindings.lock().retain(|binding| !Arc::ptr_eq(binding, &self.core));
        handle::close(self.core.handle);
    }
}
