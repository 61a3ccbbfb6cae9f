//! CA and port attributes in the layout in which drivers read them (`ib_query_ca`).
//!
//! One buffer holds `ib_ca_attr_t`, then the ports, then the tables that both point to. Sizes add up to `size`.

use std::sync::Arc;

use ibal_sys::*;

use crate::fabric::topology::{Port, PortState};
use crate::hca::Hca;

/// Page sizes that a memory region may have, in bytes.
const PAGE_SIZES: [u32; 1] = [4096];

/// What a buffer of attributes needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    ports: usize,
    gids: usize,
    page_sizes: usize,
    pkeys: usize,
    size: usize,
}

fn layout(ports: &[Arc<Port>]) -> Layout {
    let at_ports = size_of::<ib_ca_attr_t>();
    let at_gids = at_ports + ports.len() * size_of::<ib_port_attr_t>();
    let gids: usize = ports.iter().map(|port| port.guids.len()).sum();
    let at_page_sizes = at_gids + gids * size_of::<ib_gid_t>();
    let at_pkeys = at_page_sizes + PAGE_SIZES.len() * size_of::<u32>();
    let pkeys: usize = ports.iter().map(|port| port.pkeys.len()).sum();
    let size = (at_pkeys + pkeys * size_of::<ib_net16_t>()).next_multiple_of(8);
    Layout { ports: at_ports, gids: at_gids, page_sizes: at_page_sizes, pkeys: at_pkeys, size }
}

/// Bytes that the attributes take.
pub fn size(ports: &[Arc<Port>]) -> usize {
    layout(ports).size
}

/// Writes the attributes of a CA and its ports.
///
/// # Safety
/// `at` must lead to [`size`] bytes, aligned to 8, that nothing else uses.
pub unsafe fn write(hca: &Hca, ports: &[Arc<Port>], at: *mut ib_ca_attr_t) {
    let layout = layout(ports);
    let base = at.cast::<u8>();
    // SAFETY: the caller's contract; each region lies inside the bytes that `layout` counted, at its alignment: the
    // structures of 8 bytes come first, then GIDs (of bytes), page sizes (multiples of 4), P_Keys (of 2).
    unsafe {
        base.write_bytes(0, layout.size);
        let p_port_attr = base.add(layout.ports).cast::<ib_port_attr_t>();
        let p_page_size = base.add(layout.page_sizes).cast::<u32>();
        for (index, size) in PAGE_SIZES.iter().enumerate() {
            p_page_size.add(index).write(*size);
        }
        let mut gids = base.add(layout.gids).cast::<ib_gid_t>();
        let mut pkeys = base.add(layout.pkeys).cast::<ib_net16_t>();
        for (index, port) in ports.iter().enumerate() {
            for (place, _) in port.guids.iter().enumerate() {
                let gid = port.gid(place).map_or_else(ib_gid_t::default, |gid| ib_gid_t { raw: gid.0 });
                gids.add(place).write(gid);
            }
            for (place, pkey) in port.pkeys.iter().enumerate() {
                pkeys.add(place).write(ib_net16_t::new(pkey.0));
            }
            p_port_attr.add(index).write(port_attributes(port, gids, pkeys));
            gids = gids.add(port.guids.len());
            pkeys = pkeys.add(port.pkeys.len());
        }
        at.write(ca_attributes(hca, ports, layout, p_page_size, p_port_attr));
    }
}

fn ca_attributes(
    hca: &Hca,
    ports: &[Arc<Port>],
    layout: Layout,
    p_page_size: *mut u32,
    p_port_attr: *mut ib_port_attr_t,
) -> ib_ca_attr_t {
    let limits = &hca.limits;
    let guid = ib_net64_t::new(hca.guid.0);
    ib_ca_attr_t {
        ca_guid: guid,
        // Nobody's vendor: this adapter exists only here.
        vend_id: 0x02_02c9,
        dev_id: 0x1ab,
        revision: 1,
        fw_ver: 1,
        size: layout.size as u32,
        max_qps: limits.qps,
        max_wrs: limits.wrs,
        max_sges: limits.sges,
        max_rd_sges: 0,
        max_cqs: limits.cqs,
        max_cqes: limits.cqes,
        max_pds: limits.pds,
        init_regions: limits.regions,
        init_region_size: u64::MAX,
        init_windows: 0,
        max_addr_handles: u64::from(limits.avs),
        max_partitions: ports.iter().map(|port| port.pkeys.len() as u32).max().unwrap_or(0),
        atomicity: IB_ATOMIC_NONE,
        max_qp_resp_res: 0,
        max_resp_res: 0,
        max_qp_init_depth: 0,
        max_ipv6_qps: 0,
        max_ether_qps: 0,
        max_mcast_grps: limits.groups,
        max_mcast_qps: limits.groups.saturating_mul(limits.qps_per_group),
        max_qps_per_mcast_grp: limits.qps_per_group,
        max_fmr: 0,
        max_map_per_fmr: 0,
        max_srq: 0,
        max_srq_wrs: 0,
        max_srq_sges: 0,
        bf_reg_size: 0,
        bf_regs_per_page: 0,
        max_sq_desc_sz: 1008,
        local_ack_delay: 15,
        bad_pkey_ctr_support: TRUE,
        bad_qkey_ctr_support: TRUE,
        raw_mcast_support: FALSE,
        apm_support: FALSE,
        av_port_check: TRUE,
        change_primary_port: FALSE,
        modify_wr_depth: FALSE,
        modify_srq_depth: FALSE,
        current_qp_state_support: FALSE,
        shutdown_port_capability: FALSE,
        init_type_support: FALSE,
        port_active_event_support: TRUE,
        system_image_guid_support: TRUE,
        hw_agents: FALSE,
        ipoib_csum: FALSE,
        system_image_guid: guid,
        num_page_sizes: PAGE_SIZES.len() as u32,
        num_ports: ports.len() as u8,
        p_page_size,
        p_port_attr,
    }
}

fn port_attributes(port: &Port, p_gid_table: *mut ib_gid_t, p_pkey_table: *mut ib_net16_t) -> ib_port_attr_t {
    let cap = |bit: u32| boolean_t::from(port.capability_mask & (1 << bit) != 0);
    let (width, speed) = port.link.map_or((0, None), |link| (link.width.bit(), Some(link.speed)));
    ib_port_attr_t {
        port_guid: ib_net64_t::new(port.guid.0),
        port_num: port.number,
        mtu: port.mtu.code(),
        transport: RDMA_TRANSPORT_IB,
        max_msg_size: 1 << 31,
        lid: ib_net16_t::new(port.lid.0),
        lmc: port.lmc,
        active_width: width,
        max_vls: u16::from(port.data_vls),
        sm_lid: ib_net16_t::new(port.sm_lid.0),
        sm_sl: port.sm_sl,
        link_state: port.state as u8,
        init_type_reply: 0,
        subnet_timeout: port.subnet_timeout,
        active_speed: speed.map_or(0, crate::fabric::LinkSpeed::bits),
        // Polling, or LinkUp (§14.2.5.6, PortPhysicalState).
        phys_state: if port.state == PortState::Down { 2 } else { 5 },
        ext_active_speed: speed.map_or(0, crate::fabric::LinkSpeed::ext_bits),
        link_encoding: u8::from(speed.is_some_and(|speed| speed.ext_bits() != 0)),
        // Bit numbers of PortInfo:CapabilityMask (§14.2.5.6).
        cap: ib_port_cap_t {
            sm: cap(1),
            notice: cap(2),
            trap: cap(3),
            apm: cap(5),
            slmap: cap(6),
            mkey_nvram: cap(7),
            pkey_nvram: cap(8),
            ledinfo: cap(9),
            sm_disable: cap(10),
            sysguid: cap(11),
            pkey_switch_ext_port: cap(12),
            cm: cap(16),
            snmp: cap(17),
            reinit: cap(18),
            dev_mgmt: cap(19),
            vend: cap(20),
            dr_notice: cap(21),
            capm_notice: cap(22),
            boot_mgmt: cap(23),
            link_rtl: cap(24),
            client_reregister: cap(25),
            ..ib_port_cap_t::default()
        },
        pkey_ctr: port.counters.pkey_violations.min(0xffff) as u16,
        qkey_ctr: port.counters.qkey_violations.min(0xffff) as u16,
        num_gids: port.guids.len() as u16,
        num_pkeys: port.pkeys.len() as u16,
        p_gid_table,
        p_pkey_table,
    }
}
