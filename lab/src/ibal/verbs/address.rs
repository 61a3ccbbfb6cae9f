//! Address vectors.

use std::sync::Arc;

use ibal_sys::*;

use super::{NO_RESOURCES, PASSIVE, fails, give, verbs};
use crate::fabric::ids::Gid;
use crate::hca::av::{Av, AvAttr, GlobalRoute};
use crate::hca::rules::AV_IN_USE;
use crate::hca::{Hca, Kind};
use crate::ibal::objects::{Client, Notice, Object};
use crate::verifier;

/// Attributes as the HCA keeps them (`to_av` of the adapter's driver: an unknown source GID means the first).
///
/// # Errors
/// The status of a verb: no such port, or a service level of more than 4 bits.
pub(super) fn attributes(hca: &Hca, attr: &ib_av_attr_t) -> Result<AvAttr, ib_api_status_t> {
    let port = hca.port(attr.port_num).ok_or(IB_INVALID_PORT)?.view();
    if attr.sl > 15 {
        return Err(IB_INVALID_SETTING);
    }
    let grh = (attr.grh_valid != FALSE).then(|| {
        let grh = attr.grh;
        let first_word = grh.ver_class_flow.get();
        let index = (0..port.guids.len()).position(|index| port.gid(index) == Some(Gid(grh.src_gid.raw)));
        GlobalRoute {
            traffic_class: (first_word >> 20) as u8,
            flow_label: first_word & 0xf_ffff,
            hop_limit: grh.hop_limit,
            sgid_index: index.unwrap_or(0) as u8,
            dgid: Gid(grh.dest_gid.raw),
        }
    });
    Ok(AvAttr {
        port: attr.port_num,
        sl: attr.sl,
        dlid: attr.dlid.get(),
        path_bits: attr.path_bits,
        static_rate: attr.static_rate,
        grh,
    })
}

fn described(hca: &Hca, attr: &AvAttr) -> ib_av_attr_t {
    let source = |index: u8| hca.port(attr.port).and_then(|port| port.view().gid(usize::from(index)));
    ib_av_attr_t {
        port_num: attr.port,
        sl: attr.sl,
        dlid: ib_net16_t::new(attr.dlid),
        grh_valid: boolean_t::from(attr.grh.is_some()),
        grh: attr.grh.map_or_else(ib_grh_t::default, |route| ib_grh_t {
            ver_class_flow: ib_grh_t::ver_class_flow(6, route.traffic_class, route.flow_label),
            hop_limit: route.hop_limit,
            src_gid: ib_gid_t { raw: source(route.sgid_index).unwrap_or(Gid::NONE).0 },
            dest_gid: ib_gid_t { raw: route.dgid.0 },
            ..ib_grh_t::default()
        }),
        static_rate: attr.static_rate,
        path_bits: attr.path_bits,
        conn: ib_av_conn::default(),
    }
}

verbs! {
    /// PASSIVE_LEVEL (`ib_create_av`).
    [PASSIVE] fn create_av(ibal, h_pd: ib_pd_handle_t, p_av_attr: *const ib_av_attr_t,
        ph_av: *mut ib_av_handle_t) -> ib_api_status_t
    {
        let (pd, _) = ibal.resolve(h_pd, Kind::Pd, "create_av");
        if p_av_attr.is_null() || ph_av.is_null() {
            return IB_INVALID_PARAMETER;
        }
        // SAFETY: the caller's attributes, checked not to be null.
        let attr = match attributes(&ibal.hca, &unsafe { p_av_attr.read_unaligned() }) {
            Ok(attr) => attr,
            Err(status) => return status,
        };
        if fails("create_av") || ibal.objects.count(Kind::Av) >= ibal.hca.limits.avs as usize {
            return NO_RESOURCES;
        }
        let handle = ibal.hca.new_handle(Kind::Av);
        let av = Arc::new(Av::new(handle, pd, attr));
        ibal.enter(handle, Some(pd), Object::Av(av), Client::quiet::<()>(std::ptr::null()));
        // SAFETY: the caller's pointer, checked not to be null.
        unsafe { give(ph_av, handle.to_ptr()) };
        IB_SUCCESS
    }

    /// PASSIVE_LEVEL (`ib_query_av`).
    [PASSIVE] fn query_av(ibal, h_av: ib_av_handle_t, p_av_attr: *mut ib_av_attr_t, ph_pd: *mut ib_pd_handle_t)
        -> ib_api_status_t
    {
        let (_, object) = ibal.resolve(h_av, Kind::Av, "query_av");
        let Object::Av(av) = object else { return IB_INVALID_AV_HANDLE };
        if p_av_attr.is_null() || ph_pd.is_null() {
            return IB_INVALID_PARAMETER;
        }
        // SAFETY: the caller's pointers, checked not to be null.
        unsafe {
            give(p_av_attr, described(&ibal.hca, &av.attr()));
            give(ph_pd, av.pd.to_ptr());
        }
        IB_SUCCESS
    }

    /// PASSIVE_LEVEL (`ib_modify_av`).
    [PASSIVE] fn modify_av(ibal, h_av: ib_av_handle_t, p_av_attr: *const ib_av_attr_t) -> ib_api_status_t {
        let (_, object) = ibal.resolve(h_av, Kind::Av, "modify_av");
        let Object::Av(av) = object else { return IB_INVALID_AV_HANDLE };
        if p_av_attr.is_null() {
            return IB_INVALID_PARAMETER;
        }
        // SAFETY: the caller's attributes, checked not to be null.
        match attributes(&ibal.hca, &unsafe { p_av_attr.read_unaligned() }) {
            Err(status) => status,
            Ok(_) if fails("modify_av") => NO_RESOURCES,
            Ok(attr) => {
                av.modify(attr);
                IB_SUCCESS
            }
        }
    }

    /// PASSIVE_LEVEL (`ib_destroy_av`).
    [PASSIVE] fn destroy_av(ibal, h_av: ib_av_handle_t) -> ib_api_status_t {
        let (handle, object) = ibal.begin_destroy(h_av, Kind::Av, Notice::None, "destroy_av");
        if let Object::Av(av) = object
            && av.users() > 0
        {
            let detail = format!("{handle}: {} posted send(s) use it", av.users());
            verifier::violation(AV_IN_USE, "destroy_av", detail);
        }
        ibal.release(handle, "destroy_av");
        IB_SUCCESS
    }
}
