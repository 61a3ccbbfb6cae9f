//! What NDIS demands of every miniport beyond its handlers: the mandatory OIDs, power, shutdown, surprise removal.

use ipoib_lab::ndis::Phase;
use ipoib_lab::scenario::{Subnet, SubnetConfig};

fn subnet() -> Subnet {
    let subnet = Subnet::new(&SubnetConfig::new(2, 1)).expect("a topology");
    subnet.bring_up().expect("links up");
    subnet
}

#[test]
fn every_mandatory_oid_is_answered() {
    let subnet = subnet();
    let missing = subnet.on_host(0, "query", |host| host.adapter().expect("up").missing_mandatory_oids());
    let missing = missing.expect("no rule broken");
    assert!(missing.is_empty(), "not answered or not in the supported list: {missing:#x?}");
    subnet.stop().expect("halted");
}

#[test]
fn the_adapter_sleeps_and_wakes_with_its_address_and_link() {
    let subnet = subnet();
    let before = subnet.hosts[0].adapter().expect("up").attributes().current_address;
    let slept = subnet.on_host(0, "sleep", |host| {
        let adapter = host.adapter().expect("up");
        adapter.suspend().and_then(|()| adapter.resume())
    });
    assert_eq!(slept.expect("no rule broken"), Ok(()));
    subnet.wait_for("link", |subnet| subnet.hosts[0].link_is_up()).expect("the link comes back");
    assert_eq!(subnet.hosts[0].adapter().expect("up").attributes().current_address, before);
    subnet.stop().expect("halted");
}

#[test]
fn a_surprise_removal_ends_in_halt_with_nothing_left() {
    let subnet = subnet();
    subnet.on_host(0, "pull", |host| host.adapter().expect("up").surprise_remove()).expect("no rule broken");
    assert_eq!(subnet.hosts[0].adapter().expect("loaded").state().phase, Phase::Halted);
    subnet.stop().expect("unloaded");
    let left = subnet.hosts[0].machine.outstanding();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_shutdown_for_power_off_is_survived() {
    let subnet = subnet();
    subnet.on_host(0, "power off", |host| host.adapter().expect("up").shutdown()).expect("no rule broken");
    assert_eq!(subnet.hosts[0].adapter().expect("loaded").state().phase, Phase::Shutdown);
}
