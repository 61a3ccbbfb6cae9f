//! Every call that can fail is failed once, at each place it is made from: initialization must undo what it did, and
//! afterwards the same host must come up.

use ipoib_lab::fault::{Plan, Sweep};
use ipoib_lab::scenario::{Subnet, SubnetConfig, Unfinished};

#[test]
fn a_failure_at_any_step_leaves_nothing_behind() {
    let sweep = Sweep::new();
    let mut runs = 0;
    let mut refused = 0;
    loop {
        let subnet = Subnet::new(&SubnetConfig::new(1, 1)).expect("a topology");
        subnet.hosts[0].machine.faults().set(Plan::Sweep(sweep.clone()));
        let booted = subnet.boot();
        let site = sweep.failed_site();
        let what = || site.as_ref().map(|site| format!("{} from {:?}", site.call, site.stack()));
        subnet.hosts[0].machine.faults().set(Plan::Never);
        match booted {
            // The driver lived with it, as with an event-log entry that could not be written.
            Ok(()) => {}
            Err(Unfinished::Boot(..)) => {
                refused += 1;
                // Nothing is left: the unload in `boot` looked for leaks. Now it must come up.
                subnet.boot().unwrap_or_else(|error| panic!("second attempt: {error}, after {:?}", what()));
            }
            Err(error) => panic!("{error}, after {:?}", what()),
        }
        subnet
            .wait_for("link", |subnet| subnet.hosts[0].link_is_up())
            .unwrap_or_else(|error| panic!("no link: {error}, after {:?}", what()));
        subnet.stop().unwrap_or_else(|error| panic!("halt: {error}, after {:?}", what()));
        runs += 1;
        if !sweep.next_run() {
            break;
        }
    }
    assert!(refused > 10, "only {refused} of {runs} runs failed to initialize");
}
