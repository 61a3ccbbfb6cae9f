//! A TAP device in the network namespace of the calling thread.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tun_rs::{DeviceBuilder, Layer, SyncDevice};

use crate::ndis::MacAddress;

/// Name of the device in its namespace.
pub const DEVICE: &str = "ib0";

/// A TAP device.
pub struct TapDevice {
    device: SyncDevice,
    mtu: u16,
}

impl TapDevice {
    /// Makes the device, with address, MTU and IP addresses, and brings it and the loopback device up. It has no
    /// carrier until [`TapDevice::set_carrier`].
    pub fn new(mac: MacAddress, mtu: u16, addresses: &[(IpAddr, u8)]) -> io::Result<Self> {
        bring_up("lo")?;
        let mut builder = DeviceBuilder::new().name(DEVICE).layer(Layer::L2).mac_addr(mac).mtu(mtu);
        let v6: Vec<_> = addresses.iter().filter(|(address, _)| address.is_ipv6()).copied().collect();
        if let Some(&(IpAddr::V4(address), prefix)) = addresses.iter().find(|(address, _)| address.is_ipv4())
        {
            builder = builder.ipv4(address, prefix, None);
        }
        let device = builder.build_sync()?;
        for (address, prefix) in v6 {
            if let IpAddr::V6(address) = address {
                device.add_address_v6(address, prefix)?;
            }
        }
        device.set_nonblocking(true)?;
        let device = Self { device, mtu };
        device.set_carrier(false)?;
        Ok(device)
    }

    /// Says whether the link is up.
    pub fn set_carrier(&self, up: bool) -> io::Result<()> {
        /// `TUNSETCARRIER`, `_IOW('T', 226, int)` (linux/if_tun.h).
        const TUNSETCARRIER: libc::c_ulong = 0x4004_54e2;
        let value = libc::c_int::from(up);
        // SAFETY: the request reads an int at the pointer.
        let result = unsafe { libc::ioctl(self.device.as_raw_fd(), TUNSETCARRIER, &raw const value) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Waits until a frame can be read, at most for `milliseconds`.
    pub fn wait(&self, milliseconds: u16) -> io::Result<bool> {
        // SAFETY: the device owns the descriptor and outlives the borrow.
        let descriptor = unsafe { BorrowedFd::borrow_raw(self.device.as_raw_fd()) };
        let mut set = [PollFd::new(descriptor.as_fd(), PollFlags::POLLIN)];
        match poll(&mut set, PollTimeout::from(milliseconds)) {
            Ok(ready) => Ok(ready > 0),
            Err(nix::errno::Errno::EINTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// A frame that some program has sent, `None` if there is none now.
    pub fn read(&self) -> io::Result<Option<Vec<u8>>> {
        let mut frame = vec![0; usize::from(self.mtu) + 64];
        match self.device.recv(&mut frame) {
            Ok(length) => {
                frame.truncate(length);
                Ok(Some(frame))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Hands a frame to the programs behind the device; false if it does not take it now.
    pub fn write(&self, frame: &[u8]) -> bool {
        self.device.send(frame).is_ok()
    }
}

/// The multicast addresses that programs in the calling thread's namespace listen to on the device.
pub fn multicast_addresses() -> io::Result<Vec<MacAddress>> {
    Ok(parse_groups(&fs::read_to_string("/proc/thread-self/net/dev_mcast")?))
}

/// Lines of `/proc/net/dev_mcast`: index, name, users, global users, address.
fn parse_groups(table: &str) -> Vec<MacAddress> {
    table
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace().skip(1);
            let (name, address) = (words.next()?, words.nth(2)?);
            (name == DEVICE).then(|| parse_mac(address)).flatten()
        })
        .collect()
}

fn parse_mac(digits: &str) -> Option<MacAddress> {
    let mut mac = [0; 6];
    if digits.len() != 12 {
        return None;
    }
    for (index, byte) in mac.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(mac)
}

/// Whether every IPv6 address of the device in the calling thread's namespace has passed duplicate address detection.
pub fn addresses_are_settled() -> io::Result<bool> {
    Ok(parse_settled(&fs::read_to_string("/proc/thread-self/net/if_inet6")?))
}

/// Lines of `/proc/net/if_inet6`: address, index, prefix length, scope, flags, name, all numbers in hexadecimal.
fn parse_settled(table: &str) -> bool {
    /// `IFA_F_TENTATIVE` (linux/if_addr.h).
    const TENTATIVE: u32 = 0x40;
    table
        .lines()
        .filter(|line| line.ends_with(DEVICE))
        .filter_map(|line| line.split_whitespace().nth(4))
        .all(|flags| u32::from_str_radix(flags, 16).is_ok_and(|flags| flags & TENTATIVE == 0))
}

/// Sets a device of the calling thread's namespace up.
fn bring_up(name: &str) -> io::Result<()> {
    // SAFETY: no pointers are passed.
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: all-zero is a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the request reads an `ifreq`, which the pointer is.
    let result = unsafe { libc::ioctl(socket, libc::SIOCSIFFLAGS, &raw const request) };
    let error = io::Error::last_os_error();
    // SAFETY: the descriptor was opened above and is used no more.
    unsafe { libc::close(socket) };
    if result == 0 { Ok(()) } else { Err(error) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_the_device_are_read_and_no_others() {
        let table = "\
2    ib0             1     0     33330000ff01
2    ib0             2     0     01005e000001
3    eth0            1     0     01005e0000fb
1    lo              1     0     garbage
";
        assert_eq!(parse_groups(table), [[0x33, 0x33, 0, 0, 0xff, 1], [1, 0, 0x5e, 0, 0, 1]]);
    }

    #[test]
    fn a_tentative_address_is_not_settled() {
        let line = |flags| format!("fe800000000000000000000000000001 02 40 20 {flags}      ib0\n");
        assert!(parse_settled(&line("80")));
        assert!(!parse_settled(&line("c0")));
        assert!(!parse_settled(&(line("80") + &line("40"))));
        assert!(parse_settled("00000000000000000000000000000001 01 80 10 c0       lo\n"));
    }
}
