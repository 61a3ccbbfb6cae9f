#!/usr/bin/env bash
# Real Linux programs over the driver: two network namespaces, each with one simulated host's adapter as a TAP
# device. Needs root, iproute2, ping, iperf3, curl, python3. Usage: .ci/tap.sh [ipoib-lab options]
set -euo pipefail
cd "$(dirname "$0")/.."

one=ipoib-host1 two=ipoib-host2
v4=10.91.0.2 v6=fd00:1b::2
work=$(mktemp -d)
lab='' server=''

finish() {
  local status=$?
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  if [ -n "$lab" ] && kill -0 "$lab" 2>/dev/null; then kill -TERM "$lab"; wait "$lab" || true; fi
  [ $status -eq 0 ] || { echo "--- output of ipoib-lab"; cat "$work/lab.log"; }
  rm -rf "$work"
}
trap finish EXIT

in_one() { ip netns exec "$one" "$@"; }
in_two() { ip netns exec "$two" "$@"; }
step() { printf '%-34s' "$1"; shift; "$@" >"$work/step.log" 2>&1 && echo ok || { echo FAILED; cat "$work/step.log"; exit 1; }; }

start_lab() {
  : >"$work/lab.log"
  "$binary" tap --hosts 2 "$@" >"$work/lab.log" 2>&1 &
  lab=$!
  for _ in $(seq 600); do
    grep -q '^ready' "$work/lab.log" && return
    kill -0 "$lab" 2>/dev/null || { echo 'ipoib-lab tap ended early'; exit 1; }
    sleep 0.2
  done
  echo 'ipoib-lab tap did not become ready'; exit 1
}

stop_lab() { # orderly: exit status 0 means no violation and no leak
  kill -TERM "$lab"
  wait "$lab"
  lab=''
}

no_namespace_left() { ! ip netns list | grep -q '^ipoib-host'; }

tcp_and_udp() {
  ip netns exec "$two" iperf3 --server --one-off >/dev/null & server=$!
  sleep 0.5
  in_one iperf3 --client "$v4" --time 3 "$@"
  wait "$server"; server=''
}

mostly_received() { # UDP at a modest rate: under 1 % lost
  tcp_and_udp --udp --bitrate 20M --json >"$work/udp.json"
  python3 - "$work/udp.json" <<'PYTHON'
import json, sys
total = json.load(open(sys.argv[1]))["end"]["sum"]
print(total["packets"], "datagrams,", total["lost_percent"], "% lost")
sys.exit(not (total["packets"] > 1000 and total["lost_percent"] < 1))
PYTHON
}

file_over_http() {
  head -c 8388608 /dev/urandom >"$work/file"
  ip netns exec "$two" python3 -m http.server --bind "$v4" --directory "$work" 8080 >/dev/null 2>&1 & server=$!
  for _ in $(seq 50); do in_two curl -s -o /dev/null "http://$v4:8080/" && break; sleep 0.1; done
  in_one curl --silent --show-error --fail --max-time 60 -o "$work/copy" "http://$v4:8080/file"
  kill "$server"; wait "$server" 2>/dev/null || true; server=''
  [ "$(sha256sum <"$work/file")" = "$(sha256sum <"$work/copy")" ]
}

mac_matches_device() { # the device carries the address that the lab printed for the adapter
  local mac
  mac=$(in_one cat /sys/class/net/ib0/address)
  [[ $mac == 02:* && $mac == *:00:00 ]] && grep -qi "$mac" "$work/lab.log"
}

cargo build --quiet --release --locked
binary=${CARGO_TARGET_DIR:-target}/release/ipoib-lab

start_lab "$@"
step 'device has the adapter'"'"'s MAC'   mac_matches_device
step 'ping'                           in_one ping -c 5 -i 0.2 -W 2 "$v4"
step 'ping -6'                        in_one ping -6 -c 5 -i 0.2 -W 2 "$v6"
step 'ping -M do, 2044-byte packets'  in_one ping -M do -s 2016 -c 5 -i 0.2 -W 2 "$v4"
step 'ping -6, 2044-byte packets'     in_one ping -6 -M do -s 1996 -c 5 -i 0.2 -W 2 "$v6"
step 'a byte over the MTU is refused' bash -c "! ip netns exec $one ping -M do -s 2017 -c 1 -W 1 $v4"
step 'iperf3 TCP'                     tcp_and_udp
step 'iperf3 TCP, other direction'    tcp_and_udp --reverse
step 'iperf3 UDP'                     mostly_received
step 'curl, 8 MiB, hash compared'     file_over_http
step 'orderly end'                    stop_lab
step 'no namespace left'              no_namespace_left

start_lab "$@"
kill -KILL "$lab"; wait "$lab" 2>/dev/null || true; lab=''
start_lab "$@"
step 'again after a kill: ping'       in_one ping -c 3 -i 0.2 -W 2 "$v4"
step 'orderly end'                    stop_lab
step 'no namespace left'              no_namespace_left
