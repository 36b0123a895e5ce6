//! Laws, over random edits of random repositories.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

const NAMES: [&str; 7] = ["a", "b", "d/e", "d/f", "d/g/h", "x y", "é\n"];

#[derive(Clone, Debug)]
enum Act {
    Write(usize, u8),
    Delete(usize),
    Rename(usize, usize),
    Chmod(usize, bool),
    Link(usize, usize),
    Stage,
    StageOne(usize),
    Unstage(usize),
    Commit,
    Amend,
    SoftReset,
    MixedReset,
    HardReset,
    Stash,
    Branch,
    Hide(usize),
}

fn act() -> impl Strategy<Value = Act> {
    let name = 0..NAMES.len();
    prop_oneof![
        6 => (name.clone(), 0..3_u8).prop_map(|(name, text)| Act::Write(name, text)),
        3 => name.clone().prop_map(Act::Delete),
        2 => (name.clone(), name.clone()).prop_map(|(from, to)| Act::Rename(from, to)),
        2 => (name.clone(), any::<bool>()).prop_map(|(name, on)| Act::Chmod(name, on)),
        2 => (name.clone(), name.clone()).prop_map(|(name, to)| Act::Link(name, to)),
        2 => Just(Act::Stage),
        2 => name.clone().prop_map(Act::StageOne),
        1 => name.clone().prop_map(Act::Unstage),
        3 => Just(Act::Commit),
        1 => Just(Act::Amend),
        1 => Just(Act::SoftReset),
        1 => Just(Act::MixedReset),
        1 => Just(Act::HardReset),
        1 => Just(Act::Stash),
        1 => Just(Act::Branch),
        1 => name.prop_map(Act::Hide),
    ]
}

/// Does it if it can be done: what cannot be is no edit.
fn perform(repo: &TestRepo, act: &Act) {
    let path = |name: &usize| repo.at(NAMES[*name]);
    let try_git = |arguments: &[&str]| drop(command(repo.path(), arguments).output().unwrap());
    let make_room = |path: &Path| {
        let _ = fs::remove_file(path);
        let _ = fs::create_dir_all(path.parent().unwrap());
    };
    match act {
        Act::Write(name, text) => {
            make_room(&path(name));
            let _ = fs::write(path(name), format!("{text}\n"));
        }
        Act::Delete(name) => drop(fs::remove_file(path(name))),
        Act::Rename(from, to) => {
            let _ = fs::create_dir_all(path(to).parent().unwrap());
            let _ = fs::rename(path(from), path(to));
        }
        Act::Chmod(name, on) => {
            if path(name).is_file() && !path(name).is_symlink() {
                repo.chmod(NAMES[*name], if *on { 0o755 } else { 0o644 });
            }
        }
        Act::Link(name, to) => {
            make_room(&path(name));
            let _ = symlink(NAMES[*to], path(name));
        }
        Act::Stage => try_git(&["add", "-A"]),
        Act::StageOne(name) => try_git(&["add", "--", NAMES[*name]]),
        Act::Unstage(name) => try_git(&["rm", "-q", "--cached", "--", NAMES[*name]]),
        Act::Commit => repo.commit("some"),
        Act::Amend => try_git(&["commit", "-q", "--amend", "-a", "-m", "more"]),
        Act::SoftReset => try_git(&["reset", "-q", "--soft", "HEAD~1"]),
        Act::MixedReset => try_git(&["reset", "-q", "HEAD~1"]),
        Act::HardReset => try_git(&["reset", "-q", "--hard", "HEAD~1"]),
        Act::Stash => try_git(&["stash", "-q", "-u"]),
        Act::Branch => try_git(&["checkout", "-q", "first"]),
        Act::Hide(name) => try_git(&["update-index", "--assume-unchanged", "--", NAMES[*name]]),
    }
}

/// Every file there is, read in full: link or executable, and bytes.
fn read_all(repo: &TestRepo) -> BTreeMap<PathBuf, (String, Vec<u8>)> {
    let all = repo.everything().into_iter().filter_map(|(path, mode, bytes)| {
        let name = path.strip_prefix(repo.path()).unwrap().to_owned();
        let kind = match mode & 0o170_000 {
            0o100_000 => format!("file {}", mode & 0o100),
            0o120_000 => "link".to_owned(),
            _ => return None,
        };
        (!name.starts_with(".git")).then_some((name, (kind, bytes)))
    });
    all.collect()
}

fn expected(before: &Files, after: &Files) -> BTreeMap<PathBuf, Change> {
    let names = before.keys().chain(after.keys());
    let change = |name: &PathBuf| match (before.get(name), after.get(name)) {
        (None, Some(_)) => Some(Change::Added),
        (Some(_), None) => Some(Change::Deleted),
        (was, is) => (was != is).then_some(Change::Modified),
    };
    names.filter_map(|name| Some((name.clone(), change(name)?))).collect()
}

type Files = BTreeMap<PathBuf, (String, Vec<u8>)>;

fn cases() -> u32 {
    std::env::var("TREE_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(12)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn changes_are_what_a_full_read_finds(
        first in prop::collection::vec(act(), 0..8),
        rounds in prop::collection::vec(prop::collection::vec(act(), 0..6), 1..4),
        by_git in prop::bool::weighted(0.8),
    ) {
        let repo = if by_git { TestRepo::new() } else { TestRepo::bare_folder() };
        if by_git {
            repo.git(&["branch", "first"]);
        }
        let act = |act: &Act| {
            let files_only = matches!(act, Act::Write(..) | Act::Delete(_) | Act::Rename(..) | Act::Chmod(..) | Act::Link(..));
            if by_git || files_only {
                perform(&repo, act);
            }
        };
        first.iter().for_each(act);
        let keep = tempfile::tempdir().unwrap();
        let mut snapshotter = repo.keeping(&keep);
        let everything = repo.everything();
        let mut looks = vec![(snapshotter.snapshot(), read_all(&repo))];
        prop_assert_eq!(&everything, &repo.everything(), "a look changed something");
        for round in &rounds {
            round.iter().for_each(act);
            let everything = repo.everything();
            looks.push((snapshotter.snapshot(), read_all(&repo)));
            for (before, files_before) in &looks {
                for (after, files_after) in &looks {
                    let changes = snapshotter.changes(before, after);
                    prop_assert_eq!(&changes.files, &expected(files_before, files_after));
                    prop_assert_eq!(&changes.notes, &Vec::<String>::new());
                    for (from, to) in &changes.renamed {
                        prop_assert_eq!(&files_before[from].1, &files_after[to].1);
                    }
                    if before.id == after.id {
                        prop_assert_eq!(files_before, files_after);
                    }
                }
            }
            // One that looks for the first time asks git for all that it did not see itself.
            let (last, files) = looks.last().unwrap();
            let mut fresh = repo.snapshotter();
            let now = fresh.snapshot();
            prop_assert_eq!(&now.id, &last.id);
            for (before, files_before) in &looks {
                prop_assert_eq!(&fresh.changes(before, &now).files, &expected(files_before, files));
            }
            prop_assert_eq!(&everything, &repo.everything(), "a look changed something");
        }
        let (before, files) = &looks[0];
        let (now, _) = looks.last().unwrap();
        let paths: Vec<PathBuf> = snapshotter.changes(before, now).files.into_keys().collect();
        prop_assert_eq!(snapshotter.restore(before, &paths), vec![]);
        prop_assert_eq!(&read_all(&repo), files);
        let restored = snapshotter.snapshot();
        prop_assert_eq!(snapshotter.changes(before, &restored), Changes::default());
    }
}
