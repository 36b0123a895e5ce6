//! Many at once.

use crate::workspaces::fixture::{RUN, TestRepo};
use std::collections::BTreeSet;
use std::sync::Barrier;

/// Git removes its list of worktrees with the last entry; a process that adds the first one at that moment
/// must not fail.
#[test]
fn many_begin_at_once_where_there_is_no_worktree_yet() {
    const HANDS: usize = 4;
    let fixture = TestRepo::new(&[("a.txt", "a\n")]);
    let (kept, tree, together) = (fixture.kept(), fixture.tree(), Barrier::new(HANDS));
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let hands: Vec<_> = (0..HANDS)
            .map(|hand| {
                let (workspaces, together) = (fixture.workspaces.clone(), &together);
                // Nobody breaks off, or the others would wait for ever.
                scope.spawn(move || {
                    let mut wrong = Vec::new();
                    for n in 0..8 {
                        let id = format!("{hand}/{n}");
                        together.wait();
                        let opened = workspaces.open(RUN, &id, &BTreeSet::new());
                        wrong.extend(opened.err().map(|error| format!("{id}: {error}")));
                        together.wait();
                        let _ = workspaces.discard(RUN, &id);
                    }
                    wrong
                })
            })
            .collect();
        hands.into_iter().flat_map(|hand| hand.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!((fixture.kept(), fixture.tree()), (kept, tree));
}
