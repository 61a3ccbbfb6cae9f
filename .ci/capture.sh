#!/usr/bin/env bash
# What the lab writes is an InfiniBand capture that tshark dissects down to IPoIB and what is in it, nothing malformed.
set -euo pipefail
cd "$(dirname "$0")/.."

capture=$(mktemp --suffix=.pcap)
trap 'rm -f "$capture"' EXIT
cargo run --quiet --release --locked -- --hosts 2 --bytes 262144 --capture "$capture" --json >/dev/null

matching() { tshark -r "$capture" -Y "$1" 2>/dev/null | wc -l; }

at_least_one() {
  local count
  count=$(matching "$1")
  printf '%-58s %6d packets\n' "$1" "$count"
  ((count > 0))
}

at_least_one 'infiniband.mad.attributeid == 0x0035'                 # PathRecord
at_least_one 'infiniband.mad.attributeid == 0x0038'                 # MCMemberRecord
at_least_one 'arp.hw.type == 32 && arp.hw.size == 20'               # InfiniBand hardware addresses (RFC 4391)
at_least_one 'infiniband.deth && icmpv6.opt.length == 3'            # Neighbor Discovery option, 3 x 8 bytes
at_least_one 'infiniband.deth && icmp.type == 0'
at_least_one 'infiniband.deth && icmpv6.type == 129'
at_least_one 'infiniband.deth && tcp.len > 1900'
malformed=$(matching '_ws.malformed')
printf 'malformed: %d\n' "$malformed"
((malformed == 0))
