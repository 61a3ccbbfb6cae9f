//! Attributes of subnet administration: path, port information, multicast member and service records.
//!
//! Source: WinOFED `inc/iba/ib_types.h`; InfiniBand Architecture volume 1, sections 14.2.5 and 15.2.5.
//! All are packed and in network order.

use crate::types::*;

/// `IB_MAD_ATTR_CLASS_PORT_INFO`.
pub const IB_MAD_ATTR_CLASS_PORT_INFO: ib_net16_t = ib_net16_t::new(0x0001);
/// `IB_MAD_ATTR_INFORM_INFO`.
pub const IB_MAD_ATTR_INFORM_INFO: ib_net16_t = ib_net16_t::new(0x0003);
/// `IB_MAD_ATTR_NODE_RECORD`.
pub const IB_MAD_ATTR_NODE_RECORD: ib_net16_t = ib_net16_t::new(0x0011);
/// `IB_MAD_ATTR_PORTINFO_RECORD`.
pub const IB_MAD_ATTR_PORTINFO_RECORD: ib_net16_t = ib_net16_t::new(0x0012);
/// `IB_MAD_ATTR_SERVICE_RECORD`.
pub const IB_MAD_ATTR_SERVICE_RECORD: ib_net16_t = ib_net16_t::new(0x0031);
/// `IB_MAD_ATTR_PATH_RECORD`.
pub const IB_MAD_ATTR_PATH_RECORD: ib_net16_t = ib_net16_t::new(0x0035);
/// `IB_MAD_ATTR_MCMEMBER_RECORD`.
pub const IB_MAD_ATTR_MCMEMBER_RECORD: ib_net16_t = ib_net16_t::new(0x0038);

macro_rules! comp_masks {
    ($($name:ident = $bit:literal;)*) => {$(
        #[doc = concat!("Component mask bit ", stringify!($bit), ".")]
        pub const $name: ib_net64_t = ib_net64_t::new(1 << $bit);
    )*};
}

comp_masks! {
    IB_PR_COMPMASK_SERVICEID_MSB = 0;
    IB_PR_COMPMASK_SERVICEID_LSB = 1;
    IB_PR_COMPMASK_DGID = 2;
    IB_PR_COMPMASK_SGID = 3;
    IB_PR_COMPMASK_DLID = 4;
    IB_PR_COMPMASK_SLID = 5;
    IB_PR_COMPMASK_RAWTRAFFIC = 6;
    IB_PR_COMPMASK_FLOWLABEL = 8;
    IB_PR_COMPMASK_HOPLIMIT = 9;
    IB_PR_COMPMASK_TCLASS = 10;
    IB_PR_COMPMASK_REVERSIBLE = 11;
    IB_PR_COMPMASK_NUMBPATH = 12;
    IB_PR_COMPMASK_PKEY = 13;
    IB_PR_COMPMASK_QOS_CLASS = 14;
    IB_PR_COMPMASK_SL = 15;
    IB_PR_COMPMASK_MTUSELEC = 16;
    IB_PR_COMPMASK_MTU = 17;
    IB_PR_COMPMASK_RATESELEC = 18;
    IB_PR_COMPMASK_RATE = 19;
    IB_PR_COMPMASK_PKTLIFETIMESELEC = 20;
    IB_PR_COMPMASK_PKTLIFETIME = 21;

    IB_MCR_COMPMASK_MGID = 0;
    IB_MCR_COMPMASK_PORT_GID = 1;
    IB_MCR_COMPMASK_QKEY = 2;
    IB_MCR_COMPMASK_MLID = 3;
    IB_MCR_COMPMASK_MTU_SEL = 4;
    IB_MCR_COMPMASK_MTU = 5;
    IB_MCR_COMPMASK_TCLASS = 6;
    IB_MCR_COMPMASK_PKEY = 7;
    IB_MCR_COMPMASK_RATE_SEL = 8;
    IB_MCR_COMPMASK_RATE = 9;
    IB_MCR_COMPMASK_LIFE_SEL = 10;
    IB_MCR_COMPMASK_LIFE = 11;
    IB_MCR_COMPMASK_SL = 12;
    IB_MCR_COMPMASK_FLOW = 13;
    IB_MCR_COMPMASK_HOP = 14;
    IB_MCR_COMPMASK_SCOPE = 15;
    IB_MCR_COMPMASK_JOIN_STATE = 16;
    IB_MCR_COMPMASK_PROXY = 17;

    IB_PIR_COMPMASK_LID = 0;
    IB_PIR_COMPMASK_PORTNUM = 1;
    IB_PIR_COMPMASK_OPTIONS = 2;
    IB_PIR_COMPMASK_BASELID = 5;

    IB_SR_COMPMASK_SID = 0;
    IB_SR_COMPMASK_SGID = 1;
    IB_SR_COMPMASK_SPKEY = 2;
    IB_SR_COMPMASK_SNAME = 6;
}

/// `IB_PATH_SELECTOR_GREATER_THAN`: the top two bits of an MTU, rate or lifetime byte.
pub const IB_PATH_SELECTOR_GREATER_THAN: u8 = 0;
/// `IB_PATH_SELECTOR_LESS_THAN`.
pub const IB_PATH_SELECTOR_LESS_THAN: u8 = 1;
/// `IB_PATH_SELECTOR_EXACTLY`.
pub const IB_PATH_SELECTOR_EXACTLY: u8 = 2;
/// `IB_PATH_SELECTOR_LARGEST`.
pub const IB_PATH_SELECTOR_LARGEST: u8 = 3;
/// `IB_PATH_REC_BASE_MASK`: the value in such a byte.
pub const IB_PATH_REC_BASE_MASK: u8 = 0x3F;
/// `IB_PATH_REC_SELECTOR_MASK`: the selector in such a byte.
pub const IB_PATH_REC_SELECTOR_MASK: u8 = 0xC0;

/// `IB_PATH_RECORD_RATE_2_5_GBS`: static rate codes.
pub const IB_PATH_RECORD_RATE_2_5_GBS: u8 = 2;
/// `IB_PATH_RECORD_RATE_10_GBS`.
pub const IB_PATH_RECORD_RATE_10_GBS: u8 = 3;
/// `IB_PATH_RECORD_RATE_30_GBS`.
pub const IB_PATH_RECORD_RATE_30_GBS: u8 = 4;
/// `IB_PATH_RECORD_RATE_5_GBS`.
pub const IB_PATH_RECORD_RATE_5_GBS: u8 = 5;
/// `IB_PATH_RECORD_RATE_20_GBS`.
pub const IB_PATH_RECORD_RATE_20_GBS: u8 = 6;
/// `IB_PATH_RECORD_RATE_40_GBS`.
pub const IB_PATH_RECORD_RATE_40_GBS: u8 = 7;
/// `IB_PATH_RECORD_RATE_60_GBS`.
pub const IB_PATH_RECORD_RATE_60_GBS: u8 = 8;
/// `IB_PATH_RECORD_RATE_80_GBS`.
pub const IB_PATH_RECORD_RATE_80_GBS: u8 = 9;
/// `IB_PATH_RECORD_RATE_120_GBS`.
pub const IB_PATH_RECORD_RATE_120_GBS: u8 = 10;
/// `IB_PATH_RECORD_RATE_14_GBS`.
pub const IB_PATH_RECORD_RATE_14_GBS: u8 = 11;
/// `IB_PATH_RECORD_RATE_56_GBS`.
pub const IB_PATH_RECORD_RATE_56_GBS: u8 = 12;
/// `IB_PATH_RECORD_RATE_112_GBS`.
pub const IB_PATH_RECORD_RATE_112_GBS: u8 = 13;
/// `IB_PATH_RECORD_RATE_168_GBS`.
pub const IB_PATH_RECORD_RATE_168_GBS: u8 = 14;
/// `IB_PATH_RECORD_RATE_25_GBS`.
pub const IB_PATH_RECORD_RATE_25_GBS: u8 = 15;
/// `IB_PATH_RECORD_RATE_100_GBS`.
pub const IB_PATH_RECORD_RATE_100_GBS: u8 = 16;
/// `IB_PATH_RECORD_RATE_200_GBS`.
pub const IB_PATH_RECORD_RATE_200_GBS: u8 = 17;
/// `IB_PATH_RECORD_RATE_300_GBS`.
pub const IB_PATH_RECORD_RATE_300_GBS: u8 = 18;

/// `IB_JOIN_STATE_FULL`: join state bits of a member record.
pub const IB_JOIN_STATE_FULL: u8 = 1;
/// `IB_JOIN_STATE_NON`.
pub const IB_JOIN_STATE_NON: u8 = 2;
/// `IB_JOIN_STATE_SEND_ONLY`.
pub const IB_JOIN_STATE_SEND_ONLY: u8 = 4;

/// `ib_path_rec_t`: a path record, 64 bytes.
///
/// The header asks for 8-byte alignment in a position (`typedef __declspec(align(8)) struct`) that the layout
/// table does not honour: it has the record at odd offsets. Where the access layer hands one over it does so
/// by pointer, so nothing here depends on it but the records of the communication manager.
#[repr(C, packed)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ib_path_rec_t {
    /// Service id.
    pub service_id: ib_net64_t,
    /// Destination GID.
    pub dgid: ib_gid_t,
    /// Source GID.
    pub sgid: ib_gid_t,
    /// Destination LID.
    pub dlid: ib_net16_t,
    /// Source LID.
    pub slid: ib_net16_t,
    /// Raw traffic (1 bit), reserved (3), flow label (20), hop limit (8).
    pub hop_flow_raw: ib_net32_t,
    /// Traffic class.
    pub tclass: u8,
    /// Reversible (1 bit), number of paths (7).
    pub num_path: u8,
    /// P_Key.
    pub pkey: ib_net16_t,
    /// QoS class (12 bits), service level (4).
    pub qos_class_sl: ib_net16_t,
    /// Selector (2 bits), MTU (6).
    pub mtu: u8,
    /// Selector (2 bits), rate (6).
    pub rate: u8,
    /// Selector (2 bits), packet lifetime (6).
    pub pkt_life: u8,
    /// Preference.
    pub preference: u8,
    /// Reserved.
    pub resv2: [u8; 6],
}

impl ib_path_rec_t {
    /// `ib_path_rec_sl`: service level.
    #[must_use]
    pub const fn sl(&self) -> u8 {
        (self.qos_class_sl.get() & 0xF) as u8
    }

    /// `ib_path_rec_hop_limit`.
    #[must_use]
    pub const fn hop_limit(&self) -> u8 {
        (self.hop_flow_raw.get() & 0xFF) as u8
    }

    /// `ib_path_rec_flow_lbl`, in host order.
    #[must_use]
    pub const fn flow_label(&self) -> u32 {
        (self.hop_flow_raw.get() >> 8) & 0x000F_FFFF
    }

    /// `ib_path_rec_mtu`: `IB_MTU_LEN_*`.
    #[must_use]
    pub const fn mtu_code(&self) -> u8 {
        self.mtu & IB_PATH_REC_BASE_MASK
    }

    /// `ib_path_rec_rate`: `IB_PATH_RECORD_RATE_*`.
    #[must_use]
    pub const fn rate_code(&self) -> u8 {
        self.rate & IB_PATH_REC_BASE_MASK
    }

    /// `ib_path_rec_pkt_life`: 4.096 us times two to this power.
    #[must_use]
    pub const fn packet_life(&self) -> u8 {
        self.pkt_life & IB_PATH_REC_BASE_MASK
    }
}

/// `ib_member_rec_t`: a multicast member record, 56 bytes; 52 are the attribute, the rest pads it to a
/// multiple of eight as `attr_offset` counts.
#[repr(C, packed)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ib_member_rec_t {
    /// Multicast GID.
    pub mgid: ib_gid_t,
    /// GID of the member.
    pub port_gid: ib_gid_t,
    /// Q_Key of the group.
    pub qkey: ib_net32_t,
    /// Multicast LID of the group.
    pub mlid: ib_net16_t,
    /// Selector (2 bits), MTU (6).
    pub mtu: u8,
    /// Traffic class.
    pub tclass: u8,
    /// P_Key of the group.
    pub pkey: ib_net16_t,
    /// Selector (2 bits), rate (6).
    pub rate: u8,
    /// Selector (2 bits), packet lifetime (6).
    pub pkt_life: u8,
    /// Service level (4 bits), flow label (20), hop limit (8).
    pub sl_flow_hop: ib_net32_t,
    /// Scope (4 bits), join state (4).
    pub scope_state: u8,
    /// Proxy join (1 bit).
    pub proxy_join: u8,
    /// Reserved.
    pub reserved: [u8; 2],
    /// Padding.
    pub pad: [u8; 4],
}

impl ib_member_rec_t {
    /// Service level.
    ///
    /// `ib_member_get_sl_flow_hop` takes the three fields from the wrong ends of an unswapped word; this
    /// reads them as `ib_member_set_sl_flow_hop` writes them, which is the order of the wire.
    #[must_use]
    pub const fn sl(&self) -> u8 {
        (self.sl_flow_hop.get() >> 28) as u8
    }

    /// Flow label, in host order.
    #[must_use]
    pub const fn flow_label(&self) -> u32 {
        (self.sl_flow_hop.get() >> 8) & 0x000F_FFFF
    }

    /// Hop limit.
    #[must_use]
    pub const fn hop_limit(&self) -> u8 {
        (self.sl_flow_hop.get() & 0xFF) as u8
    }

    /// `ib_member_set_sl_flow_hop`, with the flow label in host order.
    #[must_use]
    pub const fn sl_flow_hop(sl: u8, flow_label: u32, hop_limit: u8) -> ib_net32_t {
        ib_net32_t::new(((sl as u32) << 28) | ((flow_label & 0x000F_FFFF) << 8) | hop_limit as u32)
    }

    /// `ib_member_get_scope`.
    #[must_use]
    pub const fn scope(&self) -> u8 {
        self.scope_state >> 4
    }

    /// `ib_member_get_state`: `IB_JOIN_STATE_*`.
    #[must_use]
    pub const fn join_state(&self) -> u8 {
        self.scope_state & 0xF
    }

    /// MTU code of the group, `IB_MTU_LEN_*`.
    #[must_use]
    pub const fn mtu_code(&self) -> u8 {
        self.mtu & IB_PATH_REC_BASE_MASK
    }

    /// Rate code of the group, `IB_PATH_RECORD_RATE_*`.
    #[must_use]
    pub const fn rate_code(&self) -> u8 {
        self.rate & IB_PATH_REC_BASE_MASK
    }
}

/// `ib_port_info_t`: 64 bytes.
#[repr(C, packed)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)] // The components of PortInfo, IBA volume 1, table 155, in its order and by its names.
pub struct ib_port_info_t {
    pub m_key: ib_net64_t,
    pub subnet_prefix: ib_net64_t,
    pub base_lid: ib_net16_t,
    pub master_sm_base_lid: ib_net16_t,
    pub capability_mask: ib_net32_t,
    pub diag_code: ib_net16_t,
    pub m_key_lease_period: ib_net16_t,
    pub local_port_num: u8,
    pub link_width_enabled: u8,
    pub link_width_supported: u8,
    pub link_width_active: u8,
    /// Link speed supported (4 bits), port state (4).
    pub state_info1: u8,
    /// Physical state (4 bits), default state on link down (4).
    pub state_info2: u8,
    /// M_Key protection (2 bits), reserved (3), LMC (3).
    pub mkey_lmc: u8,
    /// Link speed active (4 bits), enabled (4).
    pub link_speed: u8,
    /// MTU in use (4 bits), SL to the subnet manager (4).
    pub mtu_smsl: u8,
    pub vl_cap: u8,
    pub vl_high_limit: u8,
    pub vl_arb_high_cap: u8,
    pub vl_arb_low_cap: u8,
    pub mtu_cap: u8,
    pub vl_stall_life: u8,
    pub vl_enforce: u8,
    pub m_key_violations: ib_net16_t,
    pub p_key_violations: ib_net16_t,
    pub q_key_violations: ib_net16_t,
    pub guid_cap: u8,
    /// Client reregister (1 bit), reserved (2), subnet timeout (5).
    pub subnet_timeout: u8,
    pub resp_time_value: u8,
    pub error_threshold: u8,
    pub max_credit_hint: ib_net16_t,
    pub link_rt_latency: ib_net32_t,
    pub capability_mask2: ib_net16_t,
    /// Extended link speed active (4 bits), supported (4).
    pub link_speed_ext: u8,
    /// Reserved (3 bits), extended link speed enabled (5).
    pub link_speed_ext_enabled: u8,
}

/// `ib_portinfo_record_t`: 72 bytes.
#[repr(C, packed)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ib_portinfo_record_t {
    /// LID of the port.
    pub lid: ib_net16_t,
    /// Port number.
    pub port_num: u8,
    /// Options.
    pub options: u8,
    /// The port.
    pub port_info: ib_port_info_t,
    /// Padding.
    pub pad: [u8; 4],
}

/// `ib_service_record_t`: 176 bytes.
#[repr(C, packed)]
#[derive(Clone, Copy, Debug)]
pub struct ib_service_record_t {
    /// Service id.
    pub service_id: ib_net64_t,
    /// GID that offers it.
    pub service_gid: ib_gid_t,
    /// Partition in which.
    pub service_pkey: ib_net16_t,
    /// Reserved.
    pub resv: ib_net16_t,
    /// Lease in seconds.
    pub service_lease: ib_net32_t,
    /// Key that protects the record.
    pub service_key: [u8; 16],
    /// Name.
    pub service_name: [u8; 64],
    /// Data by byte.
    pub service_data8: [u8; 16],
    /// Data by 16 bits.
    pub service_data16: [ib_net16_t; 8],
    /// Data by 32 bits.
    pub service_data32: [ib_net32_t; 4],
    /// Data by 64 bits.
    pub service_data64: [ib_net64_t; 2],
}
