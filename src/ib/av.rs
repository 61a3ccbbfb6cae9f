//! Address handles: where datagrams go.

use core::ptr;

use ibal_sys::*;

use crate::kernel::irql::Passive;

use super::handle::Handle;
use super::interface::Api;
use super::pd::Pd;
use super::status::{IbError, check};

/// What the GRH of a datagram says. `None` in [`AvAttributes`] sends none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grh {
    /// Destination GID.
    pub destination: [u8; 16],
    /// Source GID: the entry 0 of the port's table.
    pub source: [u8; 16],
    /// Flow label, 20 bits.
    pub flow_label: u32,
    /// Traffic class.
    pub traffic_class: u8,
    /// Hop limit.
    pub hop_limit: u8,
}

/// Where datagrams of an address handle go. Numbers in host order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AvAttributes {
    /// Port to send from, from 1.
    pub port_number: u8,
    /// Destination LID, multicast ones included.
    pub dlid: u16,
    /// Service level.
    pub sl: u8,
    /// Rate limit, `IB_PATH_RECORD_RATE_*`.
    pub rate: u8,
    /// Low bits of the source LID, below the port's LMC.
    pub path_bits: u8,
    /// GRH; a multicast group must have one (InfiniBand Architecture volume 1, 10.5.1).
    pub grh: Option<Grh>,
}

impl AvAttributes {
    fn raw(&self) -> ib_av_attr_t {
        let grh = self.grh.as_ref().map_or_else(ib_grh_t::default, |grh| ib_grh_t {
            ver_class_flow: ib_grh_t::ver_class_flow(6, grh.traffic_class, grh.flow_label),
            resv1: 0,
            resv2: 0,
            hop_limit: grh.hop_limit,
            src_gid: ib_gid_t { raw: grh.source },
            dest_gid: ib_gid_t { raw: grh.destination },
        });
        ib_av_attr_t {
            port_num: self.port_number,
            sl: self.sl,
            dlid: ib_net16_t::new(self.dlid),
            grh_valid: boolean_t::from(self.grh.is_some()),
            grh,
            static_rate: self.rate,
            path_bits: self.path_bits,
            conn: ib_av_conn::default(),
        }
    }
}

/// An address handle.
///
/// A send that names it must complete before it is destroyed: the adapter may read it until then. Its owner
/// counts.
#[derive(Debug)]
pub struct Av {
    api: Api,
    handle: Handle<_ib_av>,
}

// SAFETY: the access layer serialises what is done to its objects.
unsafe impl Send for Av {}
// SAFETY: as above.
unsafe impl Sync for Av {}

impl Av {
    /// Makes an address handle (`ib_create_av`).
    pub fn create(pd: &Pd, attributes: &AvAttributes, _at: &Passive<'_>) -> Result<Self, IbError> {
        let api = pd.api.clone();
        let request = attributes.raw();
        let mut raw = ptr::null_mut();
        // SAFETY: at PASSIVE_LEVEL, with a live PD, attributes that last for the call and a place for the
        // handle.
        check(unsafe { (api.create_av)(pd.handle(), &raw const request, &raw mut raw) })?;
        Ok(Self { api, handle: Handle::new(raw)? })
    }

    /// Lets it point elsewhere (`ib_modify_av`). Sends already posted go to the old or the new place.
    pub fn modify(&self, attributes: &AvAttributes, _at: &Passive<'_>) -> Result<(), IbError> {
        let request = attributes.raw();
        // SAFETY: at PASSIVE_LEVEL, with a live handle and attributes that last for the call.
        check(unsafe { (self.api.modify_av)(self.handle(), &raw const request) })
    }

    pub(super) fn handle(&self) -> ib_av_handle_t {
        self.handle.get()
    }

    /// Destroys it (`ib_destroy_av`).
    pub fn destroy(&self, _at: &Passive<'_>) -> Result<(), IbError> {
        match self.handle.take() {
            // SAFETY: at PASSIVE_LEVEL, with a live handle that is not used again.
            Some(raw) => check(unsafe { (self.api.destroy_av)(raw) }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grh_goes_into_the_vector_in_network_order() {
        let mut attributes = AvAttributes {
            port_number: 1,
            dlid: 0xC001,
            sl: 2,
            rate: IB_PATH_RECORD_RATE_40_GBS,
            path_bits: 0,
            grh: Some(Grh {
                destination: [0xFF; 16],
                source: [0xFE; 16],
                flow_label: 0x000A_BCDE,
                traffic_class: 0x12,
                hop_limit: 0xFF,
            }),
        };
        let raw = attributes.raw();
        assert_eq!(raw.dlid.to_wire(), [0xC0, 0x01]);
        assert_eq!(raw.grh_valid, TRUE);
        let grh = raw.grh;
        assert_eq!({ grh.ver_class_flow }.to_wire(), [0x61, 0x2A, 0xBC, 0xDE]);
        assert_eq!((grh.hop_limit, grh.dest_gid.raw, grh.src_gid.raw), (0xFF, [0xFF; 16], [0xFE; 16]));
        attributes.grh = None;
        assert_eq!(attributes.raw().grh_valid, FALSE);
    }
}
