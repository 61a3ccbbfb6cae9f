//! The addresses a host derives from its adapter's MAC address.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A 48-bit Ethernet address.
pub type MacAddress = [u8; 6];

/// The link-local address `fe80::/64` with the modified EUI-64 interface identifier of `mac`
/// (RFC 4291 section 2.5.1 and appendix A: `ff:fe` in the middle, the universal/local bit inverted).
pub fn link_local(mac: MacAddress) -> Ipv6Addr {
    let mut address = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xfe, 0, 0, 0];
    address[8..11].copy_from_slice(&mac[..3]);
    address[13..].copy_from_slice(&mac[3..]);
    address[8] ^= 0x02;
    Ipv6Addr::from(address)
}

/// The solicited-node multicast address `ff02::1:ffXX:XXXX` of `address` (RFC 4291 section 2.7.1).
pub fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    let [.., x, y, z] = address.octets();
    Ipv6Addr::from([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, x, y, z])
}

/// The Ethernet address of an IP multicast group: `01-00-5e` and the low 23 bits (RFC 1112 section 6.4), or
/// `33-33` and the low 32 bits (RFC 2464 section 7). `None` if `group` is no multicast address.
pub fn multicast_mac(group: IpAddr) -> Option<MacAddress> {
    match group {
        IpAddr::V4(group) if group.is_multicast() => {
            let [_, b, c, d] = group.octets();
            Some([0x01, 0x00, 0x5e, b & 0x7f, c, d])
        }
        IpAddr::V6(group) if group.is_multicast() => {
            let [.., a, b, c, d] = group.octets();
            Some([0x33, 0x33, a, b, c, d])
        }
        _ => None,
    }
}

/// The Ethernet multicast list of a host with `addresses` that joined `groups`: what TCP/IP hands down by
/// `OID_802_3_MULTICAST_LIST`. All-hosts, all-nodes and the solicited nodes come first, without duplicates.
pub fn multicast_list(addresses: &[IpAddr], groups: &[IpAddr]) -> Vec<MacAddress> {
    let mut wanted: Vec<IpAddr> = Vec::new();
    if addresses.iter().any(IpAddr::is_ipv4) {
        wanted.push(Ipv4Addr::new(224, 0, 0, 1).into());
    }
    if addresses.iter().any(IpAddr::is_ipv6) {
        wanted.push(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1).into());
    }
    wanted.extend(addresses.iter().filter_map(|address| match address {
        IpAddr::V6(address) => Some(IpAddr::V6(solicited_node(*address))),
        IpAddr::V4(_) => None,
    }));
    wanted.extend_from_slice(groups);
    let mut list = Vec::new();
    for mac in wanted.into_iter().filter_map(multicast_mac) {
        if !list.contains(&mac) {
            list.push(mac);
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eui_64_follows_the_example_of_rfc_4291_appendix_a() {
        // RFC 2464 section 4: 34-56-78-9A-BC-DE gives 36-56-78-FF-FE-9A-BC-DE.
        let address = link_local([0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde]);
        assert_eq!(address, "fe80::3656:78ff:fe9a:bcde".parse::<Ipv6Addr>().unwrap());
    }

    #[test]
    fn solicited_node_follows_the_example_of_rfc_4291_section_2_7_1() {
        let address = "4037::01:800:200e:8c6c".parse().unwrap();
        assert_eq!(solicited_node(address), "ff02::1:ff0e:8c6c".parse::<Ipv6Addr>().unwrap());
    }

    #[test]
    fn multicast_macs_keep_23_and_32_bits() {
        let v4 = |text: &str| multicast_mac(text.parse().unwrap());
        assert_eq!(v4("224.0.0.1"), Some([1, 0, 0x5e, 0, 0, 1]));
        assert_eq!(v4("239.255.1.2"), Some([1, 0, 0x5e, 0x7f, 1, 2]));
        assert_eq!(v4("ff02::1:ff0e:8c6c"), Some([0x33, 0x33, 0xff, 0x0e, 0x8c, 0x6c]));
        assert_eq!(v4("10.0.0.1"), None);
        assert_eq!(v4("fe80::1"), None);
    }

    #[test]
    fn the_list_has_no_duplicates() {
        let addresses = ["10.0.0.1".parse().unwrap(), "fe80::1:2:3".parse().unwrap()];
        let all_hosts = "224.0.0.1".parse().unwrap();
        let list = multicast_list(&addresses, &[all_hosts, all_hosts]);
        assert_eq!(list, [[1, 0, 0x5e, 0, 0, 1], [0x33, 0x33, 0, 0, 0, 1], [0x33, 0x33, 0xff, 2, 0, 3]]);
    }
}
