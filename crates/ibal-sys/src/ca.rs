//! Channel adapter and port attributes.
//!
//! Source: WinOFED `inc/iba/ib_types.h` (`ib_ca_attr_t`, `ib_port_attr_t`, `ib_port_cap_t`).

use crate::status::c_enum;
use crate::types::*;

c_enum! {
    /// `ib_atomic_t`: scope of atomic operations.
    ib_atomic_t;
    /// None.
    IB_ATOMIC_NONE = 0,
    /// Among the QPs of this adapter.
    IB_ATOMIC_LOCAL = 1,
    /// Among all that reach the memory.
    IB_ATOMIC_GLOBAL = 2,
}

c_enum! {
    /// `enum rdma_transport_type`: the link under a port.
    rdma_transport_type;
    /// InfiniBand.
    RDMA_TRANSPORT_IB = 0,
    /// iWARP.
    RDMA_TRANSPORT_IWARP = 1,
    /// RDMA over Ethernet.
    RDMA_TRANSPORT_RDMAOE = 2,
}

/// `IB_LINK_DOWN`: logical port state.
pub const IB_LINK_DOWN: u8 = 1;
/// `IB_LINK_INIT`: the SM has to configure the port.
pub const IB_LINK_INIT: u8 = 2;
/// `IB_LINK_ARMED`.
pub const IB_LINK_ARMED: u8 = 3;
/// `IB_LINK_ACTIVE`.
pub const IB_LINK_ACTIVE: u8 = 4;
/// `IB_LINK_ACT_DEFER`.
pub const IB_LINK_ACT_DEFER: u8 = 5;

/// `IB_MTU_LEN_256`: code of a path MTU in bytes.
pub const IB_MTU_LEN_256: u8 = 1;
/// `IB_MTU_LEN_512`.
pub const IB_MTU_LEN_512: u8 = 2;
/// `IB_MTU_LEN_1024`.
pub const IB_MTU_LEN_1024: u8 = 3;
/// `IB_MTU_LEN_2048`.
pub const IB_MTU_LEN_2048: u8 = 4;
/// `IB_MTU_LEN_4096`.
pub const IB_MTU_LEN_4096: u8 = 5;

/// `IB_LINK_WIDTH_ACTIVE_1X`.
pub const IB_LINK_WIDTH_ACTIVE_1X: u8 = 1;
/// `IB_LINK_WIDTH_ACTIVE_4X`.
pub const IB_LINK_WIDTH_ACTIVE_4X: u8 = 2;
/// `IB_LINK_WIDTH_ACTIVE_8X`.
pub const IB_LINK_WIDTH_ACTIVE_8X: u8 = 4;
/// `IB_LINK_WIDTH_ACTIVE_12X`.
pub const IB_LINK_WIDTH_ACTIVE_12X: u8 = 8;

/// `IB_LINK_SPEED_ACTIVE_2_5`: 2.5 Gb/s a lane.
pub const IB_LINK_SPEED_ACTIVE_2_5: u8 = 1;
/// `IB_LINK_SPEED_ACTIVE_5`.
pub const IB_LINK_SPEED_ACTIVE_5: u8 = 2;
/// `IB_LINK_SPEED_ACTIVE_10`.
pub const IB_LINK_SPEED_ACTIVE_10: u8 = 4;
/// `IB_LINK_SPEED_EXT_ACTIVE_NONE`: see `active_speed`.
pub const IB_LINK_SPEED_EXT_ACTIVE_NONE: u8 = 0;
/// `IB_LINK_SPEED_EXT_ACTIVE_14`: 14.0625 Gb/s a lane.
pub const IB_LINK_SPEED_EXT_ACTIVE_14: u8 = 1;
/// `IB_LINK_SPEED_EXT_ACTIVE_25`: 25.78125 Gb/s a lane.
pub const IB_LINK_SPEED_EXT_ACTIVE_25: u8 = 2;

/// `ib_port_cap_t`: capabilities of a port, each a `boolean_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)] // One word each, the names of the PortInfo capability bits.
pub struct ib_port_cap_t {
    pub cm: boolean_t,
    pub snmp: boolean_t,
    pub dev_mgmt: boolean_t,
    pub vend: boolean_t,
    pub sm: boolean_t,
    pub sm_disable: boolean_t,
    pub qkey_ctr: boolean_t,
    pub pkey_ctr: boolean_t,
    pub notice: boolean_t,
    pub trap: boolean_t,
    pub apm: boolean_t,
    pub slmap: boolean_t,
    pub pkey_nvram: boolean_t,
    pub mkey_nvram: boolean_t,
    pub sysguid: boolean_t,
    pub dr_notice: boolean_t,
    pub boot_mgmt: boolean_t,
    pub capm_notice: boolean_t,
    pub reinit: boolean_t,
    pub ledinfo: boolean_t,
    pub port_active: boolean_t,
    pub ipd: boolean_t,
    pub pkey_switch_ext_port: boolean_t,
    pub bm: boolean_t,
    pub link_rtl: boolean_t,
    pub client_reregister: boolean_t,
}

/// `ib_port_attr_t`: attributes of a port, 168 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ib_port_attr_t {
    /// Port GUID.
    pub port_guid: ib_net64_t,
    /// Port number, from 1.
    pub port_num: u8,
    /// MTU in use, `IB_MTU_LEN_*`.
    pub mtu: u8,
    /// Kind of link.
    pub transport: rdma_transport_type,
    /// Largest message in bytes.
    pub max_msg_size: u64,
    /// Base LID.
    pub lid: ib_net16_t,
    /// The port answers to two-to-this-power LIDs.
    pub lmc: u8,
    /// `IB_LINK_WIDTH_ACTIVE_*`.
    pub active_width: u8,
    /// Virtual lanes.
    pub max_vls: u16,
    /// LID of the subnet manager.
    pub sm_lid: ib_net16_t,
    /// Service level to the subnet manager.
    pub sm_sl: u8,
    /// `IB_LINK_*`.
    pub link_state: u8,
    /// What the subnet manager preserved.
    pub init_type_reply: u8,
    /// Subnet timeout: 4.096 us times two to this power.
    pub subnet_timeout: u8,
    /// `IB_LINK_SPEED_ACTIVE_*`.
    pub active_speed: u8,
    /// Physical state.
    pub phys_state: u8,
    /// `IB_LINK_SPEED_EXT_ACTIVE_*`; when not zero, it is the speed.
    pub ext_active_speed: u8,
    /// Line coding.
    pub link_encoding: u8,
    /// Capabilities.
    pub cap: ib_port_cap_t,
    /// P_Key violations.
    pub pkey_ctr: u16,
    /// Q_Key violations.
    pub qkey_ctr: u16,
    /// Entries in the GID table.
    pub num_gids: u16,
    /// Entries in the P_Key table.
    pub num_pkeys: u16,
    /// GID table.
    pub p_gid_table: *mut ib_gid_t,
    /// P_Key table.
    pub p_pkey_table: *mut ib_net16_t,
}

/// `ib_ca_attr_t`: attributes of a channel adapter, 248 bytes, followed in the same buffer by the tables that
/// its pointers name. Their sum is `size`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ib_ca_attr_t {
    /// CA GUID.
    pub ca_guid: ib_net64_t,
    /// PCI vendor.
    pub vend_id: u32,
    /// PCI device.
    pub dev_id: u16,
    /// Hardware revision.
    pub revision: u16,
    /// Firmware version.
    pub fw_ver: u64,
    /// Bytes of this structure with its tables.
    pub size: u32,
    /// QPs.
    pub max_qps: u32,
    /// Outstanding work requests in a queue.
    pub max_wrs: u32,
    /// Scatter/gather elements in a request.
    pub max_sges: u32,
    /// Elements in an RDMA read.
    pub max_rd_sges: u32,
    /// CQs.
    pub max_cqs: u32,
    /// Entries in a CQ.
    pub max_cqes: u32,
    /// PDs.
    pub max_pds: u32,
    /// Memory regions.
    pub init_regions: u32,
    /// Bytes in a memory region.
    pub init_region_size: u64,
    /// Memory windows.
    pub init_windows: u32,
    /// Address vectors.
    pub max_addr_handles: u64,
    /// Partitions.
    pub max_partitions: u32,
    /// Atomics.
    pub atomicity: ib_atomic_t,
    /// RDMA reads a QP answers at once.
    pub max_qp_resp_res: u8,
    /// RDMA reads the adapter answers at once.
    pub max_resp_res: u8,
    /// RDMA reads a QP starts at once.
    pub max_qp_init_depth: u8,
    /// Raw IPv6 QPs.
    pub max_ipv6_qps: u32,
    /// Raw Ethertype QPs.
    pub max_ether_qps: u32,
    /// Multicast groups.
    pub max_mcast_grps: u32,
    /// QPs attached to groups.
    pub max_mcast_qps: u32,
    /// QPs attached to one group.
    pub max_qps_per_mcast_grp: u32,
    /// Fast memory regions.
    pub max_fmr: u32,
    /// Maps of a fast memory region.
    pub max_map_per_fmr: u32,
    /// Shared receive queues.
    pub max_srq: u32,
    /// Requests in one.
    pub max_srq_wrs: u32,
    /// Elements in such a request.
    pub max_srq_sges: u32,
    /// Bytes of a doorbell register with write combining.
    pub bf_reg_size: u32,
    /// Such registers in a page.
    pub bf_regs_per_page: u32,
    /// Bytes of a send descriptor.
    pub max_sq_desc_sz: u32,
    /// ACK delay: 4.096 us times two to this power.
    pub local_ack_delay: u8,
    /// Counts P_Key violations.
    pub bad_pkey_ctr_support: boolean_t,
    /// Counts Q_Key violations.
    pub bad_qkey_ctr_support: boolean_t,
    /// Raw multicast.
    pub raw_mcast_support: boolean_t,
    /// Path migration.
    pub apm_support: boolean_t,
    /// Checks the port of an address vector.
    pub av_port_check: boolean_t,
    /// A QP's port can change.
    pub change_primary_port: boolean_t,
    /// Queue depths can change.
    pub modify_wr_depth: boolean_t,
    /// SRQ depth can change.
    pub modify_srq_depth: boolean_t,
    /// Checks the current QP state on a change.
    pub current_qp_state_support: boolean_t,
    /// A port can be shut down.
    pub shutdown_port_capability: boolean_t,
    /// Init type.
    pub init_type_support: boolean_t,
    /// Raises port-active events.
    pub port_active_event_support: boolean_t,
    /// System image GUID.
    pub system_image_guid_support: boolean_t,
    /// Management agents in hardware.
    pub hw_agents: boolean_t,
    /// Checksum offload for IPoIB.
    pub ipoib_csum: boolean_t,
    /// System image GUID.
    pub system_image_guid: ib_net64_t,
    /// Entries in `p_page_size`.
    pub num_page_sizes: u32,
    /// Entries in `p_port_attr`.
    pub num_ports: u8,
    /// Page sizes of memory regions, in bytes.
    pub p_page_size: *mut u32,
    /// The ports.
    pub p_port_attr: *mut ib_port_attr_t,
}
