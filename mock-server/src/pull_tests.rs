//! What a pull serves, in which order, again and again, and with which faults.

use serde_json::json;

use super::*;
use crate::world::{World, numbers_in};

/// Bob is away while ann sends; carl watches nothing and gets nothing.
const PAIR: &[(&str, u8)] = &[("ann", 0), ("bob", 0), ("carl", 0)];

fn missed(faults: &[&str], messages: u64) -> World {
    let mut world = World::new(faults, PAIR);
    world.leave(1);
    for _ in 0..messages {
        world.send(0, "chat", "bob");
    }
    world.come(1);
    world
}

#[test]
fn pages_come_in_order_and_the_last_says_that_there_is_no_more() {
    let mut world = missed(&[], 5);
    let (cursor, more, items) = world.pull(1, 0, 2);
    assert_eq!((cursor, more, numbers_in(&items)), (2, true, vec![1, 2]));
    let (cursor, more, items) = world.pull(1, cursor, 3);
    assert_eq!((cursor, more, numbers_in(&items)), (5, false, vec![3, 4, 5]));
    assert_eq!(world.pull(1, cursor, 2), (5, false, vec![]));
    let truth = world.truth();
    assert_eq!((truth.stored, truth.pages, truth.pulled), (5, 3, 5));
}

#[test]
fn the_same_cursor_gets_the_same_again_until_a_later_one_confirms_it() {
    let mut world = missed(&[], 4);
    let first = world.pull(1, 0, 3);
    assert_eq!(world.pull(1, 0, 3), first);
    world.leave(1);
    world.come(1);
    assert_eq!(world.pull(1, 0, 3), first, "a new connection finds the inbox as it was");
    assert_eq!(numbers_in(&world.pull(1, 3, 3).2), [4]);
    assert_eq!(numbers_in(&world.pull(1, 0, 9).2), [4], "what was confirmed is gone");
    assert_eq!((world.truth().pages, world.truth().pulled), (5, 11));
}

#[test]
fn numbers_rise_for_ever_and_do_not_begin_again_when_the_inbox_empties() {
    let mut world = missed(&[], 3);
    assert_eq!(world.pull(1, u64::MAX, 500), (u64::MAX, false, vec![]), "a huge cursor confirms everything");
    world.leave(1);
    world.send(0, "chat", "bob");
    world.come(1);
    let (cursor, more, items) = world.pull(1, 3, 500);
    assert_eq!((cursor, more, numbers_in(&items)), (4, false, vec![4]));
}

#[test]
fn a_limit_of_nothing_serves_nothing_and_still_confirms() {
    let mut world = missed(&[], 3);
    assert_eq!(world.pull(1, 1, 0), (1, true, vec![]));
    assert_eq!(numbers_in(&world.pull(1, 0, 500).2), [2, 3]);
}

#[test]
fn who_was_never_away_finds_an_empty_inbox() {
    let mut world = missed(&[], 1);
    assert_eq!(world.pull(2, 7, 500), (7, false, vec![]));
    assert_eq!(world.pull(0, 0, 0), (0, false, vec![]));
    let replaced = std::sync::Arc::clone(&world.devices[1]);
    world.come(1);
    world.hub.pull(&replaced, u64::MAX, 1);
    assert_eq!(world.pull(1, 0, 1).2.len(), 1, "a replaced connection confirms nothing");
}

#[test]
fn a_page_holds_a_thousand_entries_at_most() {
    let mut world = missed(&[], 1001);
    let (cursor, more, items) = world.pull(1, 0, u32::MAX);
    assert_eq!((cursor, more, items.len()), (1000, true, 1000));
}

#[test]
fn a_page_is_cut_at_its_payload_and_holds_one_entry_at_least() {
    let mut world = World::new(&[], PAIR);
    world.leave(1);
    for size in [600_000, 300_000, 200_000, 100_000] {
        world.send_content(0, "chat", "bob", &"x".repeat(size));
    }
    world.come(1);
    let sizes = |items: &[serde_json::Value]| -> Vec<usize> {
        items.iter().map(|item| item["content"].as_str().unwrap().len()).collect()
    };
    let (cursor, more, items) = world.pull(1, 0, 500);
    assert_eq!((cursor, more, sizes(&items)), (1, true, vec![600_000]));
    let (cursor, more, items) = world.pull(1, cursor, 500);
    assert_eq!((cursor, more, sizes(&items)), (3, true, vec![300_000, 200_000]));
    assert_eq!(sizes(&world.pull(1, cursor, 500).2), [100_000]);
}

#[test]
fn an_item_is_what_a_push_would_have_carried() {
    let mut world = missed(&[], 1);
    let item = world.pull(1, 0, 1).2.remove(0);
    let want = json!({"type": "chat", "msgId": "0", "from": "ann", "to": "bob", "content": "00000001", "timestamp": 0});
    assert_eq!(item, want);
}

#[test]
fn a_binary_page_has_each_items_length_before_it() {
    let mut page = Page::new(Format::Binary, 3);
    page.body = vec![0, 0, 0, 1, 9];
    page.more = true;
    let mut out = Vec::new();
    page.put(&mut out);
    assert_eq!(out[2..], [16, 0, 0, 0, 0, 0, 0, 0, 3, 1, 0, 0, 0, 1, 9]);
}

#[test]
fn an_entry_served_twice_stands_twice_in_a_row_in_each_page_and_is_counted_once() {
    let mut world = missed(&["pull_twice:every=3"], 7);
    let first = world.pull(1, 0, 500);
    assert_eq!(numbers_in(&first.2), [1, 2, 3, 3, 4, 5, 6, 6, 7]);
    assert_eq!(world.pull(1, 0, 500), first);
    assert_eq!((world.truth().committed("pull_twice"), world.truth().pulled), (2, 18));
}

#[test]
fn a_swap_in_a_page_stays_and_is_counted_once() {
    let mut world = missed(&["pull_reorder:every=3"], 8);
    let first = world.pull(1, 0, 500);
    assert_eq!(numbers_in(&first.2), [1, 2, 4, 3, 5, 7, 6, 8]);
    assert_eq!(world.pull(1, 0, 500), first);
    assert_eq!(numbers_in(&world.pull(1, 0, 3).2), [1, 2, 4]);
    assert_eq!(numbers_in(&world.pull(1, 3, 500).2), [3, 5, 7, 6, 8], "numbers stay, contents change places");
    assert_eq!(world.truth().committed("pull_reorder"), 2);
}

#[test]
fn a_swap_waits_for_an_entry_with_a_neighbour_in_its_page() {
    let mut world = World::new(&["pull_reorder:every=1"], PAIR);
    world.leave(1);
    for from in [0, 2, 0, 2] {
        world.send(from, "chat", "bob");
    }
    world.come(1);
    assert_eq!(numbers_in(&world.pull(1, 0, 2).2), [1, 1]);
    assert_eq!(world.truth().committed("pull_reorder"), 0);
    let from = |items: &[serde_json::Value]| -> Vec<String> {
        items.iter().map(|item| item["from"].as_str().unwrap().to_owned()).collect()
    };
    let (_, _, items) = world.pull(1, 0, 4);
    assert_eq!(numbers_in(&items), [1, 1, 2, 2], "what was served once keeps its place");
    for number in 0..4 {
        world.leave(1);
        world.send(if number % 2 == 0 { 0 } else { 2 }, "chat", "bob");
        world.come(1);
    }
    let (_, _, items) = world.pull(1, 4, 4);
    assert_eq!(
        (numbers_in(&items), from(&items)),
        (vec![4, 4, 3, 3], ["ann", "carl"].repeat(2).iter().map(|s| (*s).to_owned()).collect())
    );
    assert_eq!(world.truth().committed("pull_reorder"), 2);
}

#[test]
fn two_faults_of_a_page_never_hit_the_same_entry() {
    let mut world = missed(&["pull_reorder:every=2", "pull_twice:every=2"], 8);
    let items = numbers_in(&world.pull(1, 0, 500).2);
    let truth = world.truth();
    let (swaps, twice) = (truth.committed("pull_reorder"), truth.committed("pull_twice"));
    assert_eq!(items.len() as u64, 8 + twice);
    let doubled: Vec<u64> = items.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
    let mut once = items.clone();
    once.dedup();
    let late: Vec<u64> = once.windows(2).filter(|pair| pair[0] > pair[1]).map(|pair| pair[1]).collect();
    assert_eq!((doubled.len() as u64, late.len() as u64), (twice, swaps));
    assert!(swaps > 0 && twice > 0);
    assert!(doubled.iter().all(|number| !late.contains(number) && !late.contains(&(number - 1))), "{items:?}");
}

#[test]
fn recalls_in_a_page_are_neither_counted_nor_hit() {
    let mut world = missed(&["pull_twice:every=1"], 2);
    world.leave(1);
    world.note(0, &json!({"type": "recall", "kind": "chat", "msgId": "0", "from": "ann", "to": "bob"})).unwrap();
    world.come(1);
    let (cursor, _, items) = world.pull(1, 0, 500);
    let types: Vec<_> = items.iter().map(|item| item["type"].as_str().unwrap()).collect();
    assert_eq!((cursor, types), (3, vec!["chat", "chat", "recall"]));
    assert_eq!(world.truth().committed("pull_twice"), 1);
}
