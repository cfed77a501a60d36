//! What must hold in every topology.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;
use crate::scenario::texts::Texts;

fn topologies() -> impl Strategy<Value = Topology> {
    (1_u32..40, 1_u32..4, any::<bool>()).prop_flat_map(|(users, devices, platform)| {
        let computed = proptest::collection::vec((1_u32..5, 1_u32..=users), 0..3);
        let memberships = proptest::collection::hash_set((0_u32..6, 0..users), 0..40);
        (computed, proptest::option::of(memberships)).prop_map(move |(groups, memberships)| {
            let topology = Topology::new(users, devices, &groups, platform).expect("small");
            let Some(memberships) = memberships else { return topology };
            let mut names = Texts::default();
            (0..6).for_each(|group| names.push(&format!("listed {group}")));
            let memberships = memberships.into_iter().map(|(group, user)| (group, UserIx(user))).collect();
            topology.with_listed(Listed::new(&names, memberships, users)).expect("small")
        })
    })
}

proptest! {
    #[test]
    fn recipients_listed_tested_and_counted_agree(topology in topologies()) {
        for ix in 0.. {
            let Some(stream) = topology.stream(StreamIx(ix)) else { break };
            let mut listed = HashSet::new();
            topology.for_each_recipient(&stream, |device| {
                assert!(listed.insert(device), "listed twice");
            });
            let tested: HashSet<_> =
                (0..topology.device_count()).map(DeviceIx).filter(|d| topology.receives(&stream, *d)).collect();
            prop_assert_eq!(listed.len() as u32, topology.fan_out(&stream));
            prop_assert_eq!(listed, tested);
        }
    }

    #[test]
    fn groups_of_a_user_are_those_in_which_it_has_a_stream(topology in topologies()) {
        for user in (0..topology.user_count()).map(UserIx) {
            let listed: HashSet<u32> = topology.groups_of(user).into_iter().collect();
            let mut sending = HashSet::new();
            for group in 0..topology.group_count() {
                for position in 0..topology.members_of(group).unwrap() {
                    let stream = topology.stream(topology.group_stream(group, position).unwrap()).unwrap();
                    prop_assert_eq!(stream.position, position);
                    if stream.sender == user {
                        prop_assert!(sending.insert(group));
                    }
                }
            }
            prop_assert_eq!(&listed, &sending);
        }
    }

    #[test]
    fn every_device_belongs_to_the_user_that_lists_it(topology in topologies()) {
        let mut next = 0;
        for user in (0..topology.user_count()).map(UserIx) {
            for device in topology.devices_of(user) {
                prop_assert_eq!(device, next);
                prop_assert_eq!(topology.user_of(DeviceIx(device)), user);
                next += 1;
            }
        }
        prop_assert_eq!(next, topology.device_count());
    }
}

#[test]
fn listed_groups_follow_the_computed_ones_under_their_names_and_one_without_members_is_left_out() {
    let mut names = Texts::default();
    ["red", "empty", "blue"].iter().for_each(|name| names.push(name));
    let memberships = [(2, 3), (0, 4), (0, 1), (2, 0), (2, 1)].map(|(group, user)| (group, UserIx(user))).to_vec();
    let topology = Topology::new(5, 1, &[(2, 3)], true).unwrap();
    let topology = topology.with_listed(Listed::new(&names, memberships, 5)).unwrap();
    let shown: Vec<_> = (0..topology.group_count()).map(|group| topology.group_name(group)).collect();
    assert_eq!(shown, ["group_0", "group_1", "red", "blue"]);
    assert_eq!((topology.members_of(2), topology.members_of(3), topology.smallest_group()), (Some(2), Some(3), 2));
    assert_eq!(topology.groups_of(UserIx(1)), [0, 2, 3]);
    let stream = topology.stream(topology.group_stream(2, 1).unwrap()).unwrap();
    assert_eq!((stream.sender, topology.address_of(&stream).as_ref()), (UserIx(4), "red"));
    let system = topology.stream(topology.system_stream(UserIx(2))).unwrap();
    assert_eq!((system.kind, topology.address_of(&system).as_ref()), (RoomKind::System, "user_2"));
    let all = topology.stream(topology.broadcast_stream()).unwrap();
    assert_eq!((topology.address_of(&all).as_ref(), topology.fan_out(&all)), ("*", 5));
    assert!((0..5).all(|device| topology.receives(&all, DeviceIx(device))));
    assert!(!topology.receives(&all, topology.sending_device(all.sender)), "the platform does not notify itself");
}
