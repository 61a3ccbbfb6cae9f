//! From DriverEntry to a link that is up, and back.

use ipoib_lab::scenario::{Subnet, SubnetConfig};

#[test]
fn two_hosts_come_up_and_go_down_without_a_broken_rule() {
    let subnet = Subnet::new(&SubnetConfig::new(2, 1)).expect("a topology");
    subnet.bring_up().expect("links up");
    subnet.stop().expect("halted");
}
