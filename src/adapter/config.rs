//! Configuration from the registry: what each keyword means, its range and its default.
//!
//! The keywords live in the adapter's driver key, beside the standardized ones (Windows driver docs,
//! "Standardized INF Keywords for Network Devices"). A value of the wrong type or out of range never stops the
//! adapter: the default is used and an event is logged ([`Source::read`] answers what was found, the caller of
//! [`Config::load`] learns of each rejected keyword).

/// How a 6-byte address is made out of an InfiniBand one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum MacScheme {
    /// `02-QQ-QQ-QQ-LL-LL`, QPN and LID, the local LID taken as zero. The same on every host.
    #[default]
    QpnLid,
    /// A locally administered address from a counter.
    LaaCounter,
    /// Six bytes chosen out of the port GUID by `GUIDMask`.
    Guid,
}

/// What `DebugFlags`-free configuration an adapter runs with. Times are in milliseconds unless named otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Receives posted to the QP.
    pub rq_depth: u32,
    /// Free receive buffers below which frames are indicated with NDIS_RECEIVE_FLAGS_RESOURCES.
    pub rq_low_watermark: u32,
    /// Sends posted to the QP.
    pub sq_depth: u32,
    /// Receive buffers for each posted receive: those beyond [`Self::rq_depth`] replace buffers that the stack
    /// holds.
    pub recv_ratio: u32,
    /// The largest IP packet, in bytes: the payload MTU without the 4-byte IPoIB header.
    pub payload_mtu: u32,
    /// How long one try of a query to the SA may take.
    pub sa_timeout_ms: u32,
    /// Tries of a query to the SA after the first.
    pub sa_retries: u32,
    /// Seconds after which an unused send-only group is left and an unused peer forgotten.
    pub aging_seconds: u32,
    /// Retries of the broadcast join before its interval is stretched to the maximum; 0: always the maximum.
    pub bc_join_retries: u32,
    /// The P_Key of the partition; 0: the one that the bus driver names.
    pub pkey: u32,
    /// The Q_Key used until the broadcast group's is known.
    pub qkey: u32,
    /// How Ethernet addresses are made.
    pub mac_scheme: MacScheme,
    /// Which bytes of the GUID make the address under [`MacScheme::Guid`] and the permanent address.
    pub guid_mask: u8,
    /// `NetworkAddress`: what the administrator wants the current address to be.
    pub network_address: Option<[u8; 6]>,
}

/// A keyword with its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keyword {
    /// The name of the registry value.
    pub name: &'static str,
    /// Used when the value is absent, of the wrong type or out of range.
    pub default: u32,
    /// Smallest value accepted.
    pub min: u32,
    /// Largest value accepted.
    pub max: u32,
}

/// The numeric keywords. Names and ranges follow the C driver where it had them, so that an upgrade keeps its
/// settings.
pub mod keyword {
    use super::Keyword;

    /// Receive queue depth.
    pub const RQ_DEPTH: Keyword = Keyword { name: "RqDepth", default: 512, min: 128, max: 1024 };
    /// Low watermark of free receive buffers.
    pub const RQ_LOW_WATERMARK: Keyword = Keyword { name: "RqLowWatermark", default: 4, min: 2, max: 64 };
    /// Send queue depth.
    pub const SQ_DEPTH: Keyword = Keyword { name: "SqDepth", default: 512, min: 128, max: 1024 };
    /// Receive buffers for each posted receive.
    pub const RECV_RATIO: Keyword = Keyword { name: "RecvRatio", default: 2, min: 1, max: 10 };
    /// IP MTU (RFC 4391, section 7: IB MTU less 4).
    pub const PAYLOAD_MTU: Keyword = Keyword { name: "PayloadMtu", default: 2044, min: 600, max: 4092 };
    /// SA timeout in milliseconds.
    pub const SA_TIMEOUT: Keyword = Keyword { name: "SaTimeout", default: 1000, min: 250, max: 60_000 };
    /// SA retries.
    pub const SA_RETRIES: Keyword = Keyword { name: "SaRetries", default: 10, min: 1, max: 100 };
    /// Aging in seconds.
    pub const MC_LEAVE_RESCAN: Keyword = Keyword { name: "MCLeaveRescan", default: 260, min: 1, max: 3600 };
    /// Retries of the broadcast join.
    pub const BC_JOIN_RETRY: Keyword = Keyword { name: "BCJoinRetry", default: 50, min: 0, max: 1000 };
    /// Partition key; 0 leaves it to the bus driver. The membership bit may be given or not.
    pub const PKEY: Keyword = Keyword { name: "PKey", default: 0, min: 0, max: 0xffff };
    /// Q_Key before the group's is known: 0x0B1B is what OpenSM gives the group.
    pub const QKEY: Keyword = Keyword { name: "QKey", default: 0x0b1b, min: 1, max: u32::MAX };
    /// 0: `QpnLid`, 1: `LaaCounter`, 2: `Guid`.
    pub const MAC_SCHEME: Keyword = Keyword { name: "MacScheme", default: 0, min: 0, max: 2 };
    /// A mask of exactly six bits out of eight; 0 means the default, 0xE7.
    pub const GUID_MASK: Keyword = Keyword { name: "GUIDMask", default: 0, min: 0, max: 0xfc };

    /// Every numeric keyword.
    pub const ALL: [Keyword; 13] = [
        RQ_DEPTH,
        RQ_LOW_WATERMARK,
        SQ_DEPTH,
        RECV_RATIO,
        PAYLOAD_MTU,
        SA_TIMEOUT,
        SA_RETRIES,
        MC_LEAVE_RESCAN,
        BC_JOIN_RETRY,
        PKEY,
        QKEY,
        MAC_SCHEME,
        GUID_MASK,
    ];
}

/// The mask of the vendor conversions: every byte of the GUID but the two in the middle, FF-FE in an EUI-64.
pub const DEFAULT_GUID_MASK: u8 = 0xe7;

/// What a registry value turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading<T> {
    /// There is no such value.
    Absent,
    /// It is there with another type, or does not parse.
    WrongType,
    /// It is there.
    Value(T),
}

/// Where keywords come from: the registry, or a table in a test.
pub trait Source {
    /// A REG_DWORD, or a REG_SZ holding a decimal or `0x` number (which is how an INF writes a keyword that the
    /// property page edits).
    fn read(&mut self, name: &str) -> Reading<u32>;
    /// `NetworkAddress`, as NdisReadNetworkAddress gives it.
    fn network_address(&mut self) -> Reading<[u8; 6]>;
}

/// A keyword whose value was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// Its name.
    pub name: &'static str,
    /// What is used instead.
    pub used: u32,
}

impl Config {
    /// Reads every keyword; `rejected` is called for each one whose value cannot be used.
    pub fn load(source: &mut impl Source, mut rejected: impl FnMut(Rejected)) -> Self {
        let mut number = |keyword: Keyword| match source.read(keyword.name) {
            Reading::Absent => keyword.default,
            Reading::Value(value) if (keyword.min..=keyword.max).contains(&value) => value,
            Reading::Value(_) | Reading::WrongType => {
                rejected(Rejected { name: keyword.name, used: keyword.default });
                keyword.default
            }
        };
        let mut config = Self {
            rq_depth: number(keyword::RQ_DEPTH),
            rq_low_watermark: number(keyword::RQ_LOW_WATERMARK),
            sq_depth: number(keyword::SQ_DEPTH),
            recv_ratio: number(keyword::RECV_RATIO),
            payload_mtu: number(keyword::PAYLOAD_MTU),
            sa_timeout_ms: number(keyword::SA_TIMEOUT),
            sa_retries: number(keyword::SA_RETRIES),
            aging_seconds: number(keyword::MC_LEAVE_RESCAN),
            bc_join_retries: number(keyword::BC_JOIN_RETRY),
            pkey: number(keyword::PKEY),
            qkey: number(keyword::QKEY),
            mac_scheme: match number(keyword::MAC_SCHEME) {
                1 => MacScheme::LaaCounter,
                2 => MacScheme::Guid,
                _ => MacScheme::QpnLid,
            },
            guid_mask: number(keyword::GUID_MASK) as u8,
            network_address: None,
        };
        if config.guid_mask == 0 {
            config.guid_mask = DEFAULT_GUID_MASK;
        } else if config.guid_mask.count_ones() != 6 {
            rejected(Rejected { name: keyword::GUID_MASK.name, used: u32::from(DEFAULT_GUID_MASK) });
            config.guid_mask = DEFAULT_GUID_MASK;
        }
        match source.network_address() {
            Reading::Absent => {}
            // IEEE 802-2014, 8.2: a locally administered individual address.
            Reading::Value(address) if address[0] & 0x03 == 0x02 => config.network_address = Some(address),
            Reading::Value(_) | Reading::WrongType => {
                rejected(Rejected { name: "NetworkAddress", used: 0 });
            }
        }
        config
    }

    /// Receive buffers in all.
    pub const fn receive_buffers(&self) -> u32 {
        self.rq_depth * self.recv_ratio
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::collections::HashMap;
    use std::vec::Vec;

    #[derive(Default)]
    struct Table {
        numbers: HashMap<&'static str, Reading<u32>>,
        address: Option<Reading<[u8; 6]>>,
    }

    impl Source for Table {
        fn read(&mut self, name: &str) -> Reading<u32> {
            self.numbers.get(name).copied().unwrap_or(Reading::Absent)
        }

        fn network_address(&mut self) -> Reading<[u8; 6]> {
            self.address.unwrap_or(Reading::Absent)
        }
    }

    fn load(mut table: Table) -> (Config, Vec<Rejected>) {
        let mut rejected = Vec::new();
        let config = Config::load(&mut table, |keyword| rejected.push(keyword));
        (config, rejected)
    }

    fn with(name: &'static str, reading: Reading<u32>) -> (Config, Vec<Rejected>) {
        load(Table { numbers: HashMap::from([(name, reading)]), ..Table::default() })
    }

    #[test]
    fn an_empty_registry_gives_the_defaults_silently() {
        let (config, rejected) = load(Table::default());
        assert!(rejected.is_empty());
        assert_eq!(config.payload_mtu, 2044);
        assert_eq!(config.guid_mask, 0xe7);
        assert_eq!(config.mac_scheme, MacScheme::QpnLid);
        assert_eq!(config.network_address, None);
    }

    #[test]
    fn defaults_are_within_their_own_range() {
        for keyword in keyword::ALL {
            assert!((keyword.min..=keyword.max).contains(&keyword.default), "{}", keyword.name);
        }
    }

    #[test]
    fn values_out_of_range_or_of_the_wrong_type_are_rejected_and_reported() {
        for keyword in keyword::ALL {
            let mut bad = Vec::from([Reading::WrongType]);
            bad.extend(keyword.min.checked_sub(1).map(Reading::Value));
            bad.extend(keyword.max.checked_add(1).map(Reading::Value));
            for reading in bad {
                let (config, rejected) = with(keyword.name, reading);
                assert_eq!(config, load(Table::default()).0, "{} {reading:?}", keyword.name);
                assert_eq!(rejected, [Rejected { name: keyword.name, used: keyword.default }]);
            }
        }
    }

    #[test]
    fn limits_themselves_are_accepted() {
        for keyword in keyword::ALL.iter().filter(|keyword| keyword.name != "GUIDMask") {
            for value in [keyword.min, keyword.max] {
                let (_, rejected) = with(keyword.name, Reading::Value(value));
                assert!(rejected.is_empty(), "{} {value}", keyword.name);
            }
        }
    }

    #[test]
    fn a_guid_mask_must_choose_six_bytes() {
        let (config, rejected) = with("GUIDMask", Reading::Value(0xfc));
        assert_eq!((config.guid_mask, rejected.len()), (0xfc, 0));
        let (config, rejected) = with("GUIDMask", Reading::Value(0x7));
        assert_eq!((config.guid_mask, rejected.len()), (DEFAULT_GUID_MASK, 1));
    }

    #[test]
    fn network_address_must_be_local_and_individual() {
        for (address, accepted) in [
            ([0x02, 1, 2, 3, 4, 5], true),
            ([0x03, 1, 2, 3, 4, 5], false),
            ([0x00, 1, 2, 3, 4, 5], false),
            ([0xff; 6], false),
        ] {
            let (config, rejected) =
                load(Table { address: Some(Reading::Value(address)), ..Table::default() });
            assert_eq!(config.network_address.is_some(), accepted, "{address:x?}");
            assert_eq!(rejected.len(), usize::from(!accepted));
        }
    }
}
