//! Groups: who listens, who sends, and the memberships that follow.

use super::*;

#[test]
fn a_group_is_joined_to_be_sent_to_and_left_when_it_is_not() {
    let mut world = World::up();
    let mgid = Mgid::of(VIDEO, LINK);
    world.groups_exist.insert(mgid);
    world.send_group(VIDEO, 1);
    world.send_group(VIDEO, 2);
    world.work();
    assert_eq!(world.posted, [1, 2]);
    assert_eq!(world.memberships.values().collect::<Vec<_>>(), [&(mgid, Role::SendOnly)]);
    world.complete();
    world.pass(300_000);
    for _ in 0..4 {
        world.work();
    }
    assert!(world.memberships.is_empty());
    assert_eq!((world.handles.len(), world.directory.group_count()), (1, 1), "the broadcast group's");
    world.halt();
}

#[test]
fn a_group_that_does_not_exist_is_not_made_by_sending_to_it() {
    let mut world = World::up();
    world.send_group(VIDEO, 1);
    world.work();
    assert_eq!(world.refused, [(1, Refusal::Unreachable)]);
    world.send_group(VIDEO, 2);
    assert_eq!(world.refused.len(), 2, "refused at once for a while");
    world.groups_exist.insert(Mgid::of(VIDEO, LINK));
    world.pass(300);
    world.work();
    world.send_group(VIDEO, 3);
    world.work();
    assert_eq!(world.posted, [3]);
    world.halt();
}

#[test]
fn listeners_join_what_was_reported_and_leave_what_is_listed_no_more() {
    let mut world = World::up();
    let mgid = Mgid::of(VIDEO, LINK);
    world.directory.set_multicast_list(&[IpGroup::ALL_HOSTS.to_mac(), VIDEO.to_mac()], world.now);
    world.directory.reported(VIDEO, true, world.now);
    world.work();
    let joined = |world: &World| world.memberships.values().copied().collect::<BTreeMap<_, _>>();
    let all_hosts = Mgid::of(IpGroup::ALL_HOSTS, LINK);
    assert_eq!(joined(&world), BTreeMap::from([(mgid, Role::Full), (all_hosts, Role::Full)]));
    world.pass(60_000);
    world.work();
    assert_eq!(joined(&world).len(), 2, "no twin is assumed");
    world.directory.set_multicast_list(&[IpGroup::ALL_HOSTS.to_mac()], world.now);
    world.work();
    assert_eq!(joined(&world), BTreeMap::from([(all_hosts, Role::Full)]));
    world.halt();
}

#[test]
fn a_listener_that_reports_nothing_gets_the_likeliest_group_in_time() {
    let mut world = World::up();
    let twin = IpGroup::V4([224, 1, 2, 3]);
    world.directory.set_multicast_list(&[VIDEO.to_mac()], world.now);
    world.work();
    assert!(world.memberships.is_empty());
    let deadline = world.directory.next_deadline().unwrap();
    world.pass(2_000);
    assert!(deadline <= world.now);
    world.work();
    assert_eq!(world.memberships.values().next(), Some(&(Mgid::of(twin, LINK), Role::Full)));
    world.halt();
}

#[test]
fn a_sender_that_begins_to_listen_becomes_a_full_member() {
    let mut world = World::up();
    let mgid = Mgid::of(VIDEO, LINK);
    world.groups_exist.insert(mgid);
    world.send_group(VIDEO, 1);
    world.work();
    world.complete();
    world.directory.set_multicast_list(&[VIDEO.to_mac()], world.now);
    world.directory.reported(VIDEO, true, world.now);
    world.send_group(VIDEO, 2);
    world.work();
    assert_eq!(world.posted, [1, 2]);
    assert_eq!(world.memberships.values().collect::<Vec<_>>(), [&(mgid, Role::Full)]);
    world.halt();
}

#[test]
fn a_link_that_goes_down_leaves_everything_and_comes_back_with_everything() {
    let mut world = World::up();
    world.directory.set_multicast_list(&[IpGroup::ALL_NODES.to_mac()], world.now);
    world.groups_exist.insert(Mgid::of(VIDEO, LINK));
    world.send_group(VIDEO, 1);
    world.work();
    world.complete();
    assert_eq!(world.memberships.len(), 2);
    world.directory.clear_broadcast(world.now);
    let sent = world.directory.send_broadcast(2);
    assert!(matches!(sent, Sent::Refused(2, Refusal::Unreachable)));
    world.send_group(VIDEO, 3);
    world.work();
    assert!(world.memberships.is_empty() && world.handles.is_empty());
    let broadcast = Mgid::broadcast(LINK);
    world.directory.set_broadcast(broadcast, record(broadcast, 0xc000), world.now).unwrap();
    world.work();
    let members: Vec<_> = world.memberships.values().copied().collect();
    assert_eq!(
        members,
        [(Mgid::of(IpGroup::ALL_NODES, LINK), Role::Full)],
        "who only sent waits for a packet"
    );
    let sent = world.directory.send_broadcast(4);
    let Sent::Ready(4, route) = sent else { panic!("{sent:?}") };
    world.in_flight.push(route.av);
    world.halt();
}

#[test]
fn an_administrator_that_forgot_us_is_joined_anew() {
    let mut world = World::up();
    world.directory.set_multicast_list(&[IpGroup::ALL_NODES.to_mac()], world.now);
    world.work();
    let before: Vec<_> = world.memberships.keys().copied().collect();
    world.directory.rejoin(world.now);
    world.work();
    assert_eq!(world.memberships.len(), 1);
    assert!(world.memberships.keys().all(|membership| !before.contains(membership)));
    let state = world.directory.membership(Mgid::of(IpGroup::ALL_NODES, LINK)).unwrap().state;
    assert_eq!(state, Membership::Joined(Role::Full));
    world.halt();
}
