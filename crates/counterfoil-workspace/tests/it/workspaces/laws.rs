//! Random bases, random dirt, random work, random edits at the same time: a model says what must
//! come of each path.

use crate::workspaces::fixture::{RUN, TestRepo, Tree, set_mode, tree, write};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// What can stand at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Thing {
    /// Three far-apart lines, each with a version of its own.
    Text([u8; 3], bool),
    Binary(u8, bool),
    Link(u8),
}

impl Thing {
    fn put(&self, path: &Path) {
        let _ = std::fs::remove_file(path);
        match self {
            Self::Text(lines, program) => {
                write(path, text(*lines));
                set_mode(path, if *program { 0o755 } else { 0o644 });
            }
            Self::Binary(n, program) => {
                write(path, [0, *n]);
                set_mode(path, if *program { 0o755 } else { 0o644 });
            }
            Self::Link(n) => {
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                symlink(format!("aim{n}"), path).unwrap();
            }
        }
    }

    fn found(&self) -> (u32, Vec<u8>) {
        match self {
            Self::Text(lines, program) => {
                (if *program { 0o100_755 } else { 0o100_644 }, text(*lines).into_bytes())
            }
            Self::Binary(n, program) => (if *program { 0o100_755 } else { 0o100_644 }, vec![0, *n]),
            Self::Link(n) => (0o120_000, format!("aim{n}").into_bytes()),
        }
    }
}

fn text(lines: [u8; 3]) -> String {
    let [a, b, c] = lines;
    let between = "between\n".repeat(8);
    format!("first {a}\n{between}second {b}\n{between}third {c}\n")
}

/// No path of these is a folder of another, and some share folders.
const PATHS: [&str; 6] = ["a", "b c", "d/e", "d/f/g", "d/f/ü\"h", "i/j"];

type Things = BTreeMap<&'static str, Thing>;

fn thing() -> impl Strategy<Value = Thing> {
    prop_oneof![
        6 => (any::<[bool; 3]>(), any::<bool>()).prop_map(|(lines, program)| Thing::Text(lines.map(u8::from), program)),
        1 => (0_u8..3, any::<bool>()).prop_map(|(n, program)| Thing::Binary(n, program)),
        1 => (0_u8..3).prop_map(Thing::Link),
    ]
}

/// An edit of a path: another thing, nothing, or one line of a text changed to a version of the
/// editor's.
#[derive(Clone, Debug)]
enum Edit {
    Put(Thing),
    Delete,
    Line(usize, u8),
    Mode,
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        2 => thing().prop_map(Edit::Put),
        1 => Just(Edit::Delete),
        4 => (0_usize..3, 2_u8..4).prop_map(|(line, version)| Edit::Line(line, version)),
        1 => Just(Edit::Mode),
    ]
}

fn edits() -> impl Strategy<Value = Vec<(usize, Edit)>> {
    prop::collection::vec((0..PATHS.len(), edit()), 0..5)
}

fn edited(things: &Things, edits: &[(usize, Edit)]) -> Things {
    let mut things = things.clone();
    for (path, edit) in edits {
        let path = PATHS[*path];
        match edit {
            Edit::Put(thing) => drop(things.insert(path, thing.clone())),
            Edit::Delete => drop(things.remove(path)),
            Edit::Line(line, version) => {
                if let Some(Thing::Text(lines, _)) = things.get_mut(path) {
                    lines[*line] = *version;
                }
            }
            Edit::Mode => {
                if let Some(Thing::Text(_, program) | Thing::Binary(_, program)) =
                    things.get_mut(path)
                {
                    *program = !*program;
                }
            }
        }
    }
    things
}

fn make(folder: &Path, from: &Things, to: &Things) {
    for path in PATHS {
        match (from.get(path), to.get(path)) {
            (from, to) if from == to => {}
            (_, Some(thing)) => thing.put(&folder.join(path)),
            (_, None) => {
                std::fs::remove_file(folder.join(path)).unwrap();
                // As git leaves it; no folder here was empty before.
                for parent in
                    Path::new(path).ancestors().skip(1).filter(|path| !path.as_os_str().is_empty())
                {
                    let _ = std::fs::remove_dir(folder.join(parent));
                }
            }
        }
    }
}

fn as_tree(things: &Things) -> Tree {
    let mut tree: Tree =
        things.iter().map(|(path, thing)| (PathBuf::from(path), thing.found())).collect();
    tree.insert("keep".into(), (0o100_644, b"keep".to_vec()));
    tree
}

struct Conflict;

/// What must come of one path, written without a look at the code.
fn model(
    was: Option<&Thing>,
    worked: Option<&Thing>,
    stands: Option<&Thing>,
) -> Result<Option<Thing>, Conflict> {
    if worked == was || worked == stands {
        return Ok(stands.cloned());
    }
    if stands == was {
        return Ok(worked.cloned());
    }
    // If all three are files, bytes and the right to execute are two questions.
    let (Some(was), Some(worked), Some(stands)) =
        (was.and_then(file), worked.and_then(file), stands.and_then(file))
    else {
        return Err(Conflict);
    };
    let program = if worked.1 == was.1 { stands.1 } else { worked.1 };
    if let Some(bytes) = three(&was.0, &worked.0, &stands.0) {
        return Ok(Some(match bytes {
            Ok(lines) => Thing::Text(lines, program),
            Err(n) => Thing::Binary(n, program),
        }));
    }
    let (Ok(was), Ok(worked), Ok(stands)) = (was.0, worked.0, stands.0) else {
        return Err(Conflict);
    };
    let mut lines = [0; 3];
    for n in 0..3 {
        lines[n] = three(&was[n], &worked[n], &stands[n]).ok_or(Conflict)?;
    }
    Ok(Some(Thing::Text(lines, program)))
}

/// Text or not, and whether it is a program; none for a link.
type File = (Result<[u8; 3], u8>, bool);

fn file(thing: &Thing) -> Option<File> {
    match thing {
        Thing::Text(lines, program) => Some((Ok(*lines), *program)),
        Thing::Binary(n, program) => Some((Err(*n), *program)),
        Thing::Link(_) => None,
    }
}

fn three<T: PartialEq + Copy>(was: &T, worked: &T, stands: &T) -> Option<T> {
    if worked == was || worked == stands {
        Some(*stands)
    } else if stands == was {
        Some(*worked)
    } else {
        None
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn merging_is_three_way_and_touches_nothing_else(
        committed in prop::collection::btree_map(prop::sample::select(&PATHS[..]), thing(), 0..6),
        dirt in edits(),
        work in edits(),
        meanwhile in edits(),
    ) {
        let fixture = TestRepo::unborn();
        fixture.write("keep", "keep");
        set_mode(&fixture.repo.join("keep"), 0o644);
        make(&fixture.repo, &Things::new(), &committed);
        fixture.commit();
        let base = edited(&committed, &dirt);
        make(&fixture.repo, &committed, &base);
        let kept = fixture.kept();
        let folder = fixture.open("a");
        prop_assert_eq!(tree(&folder), as_tree(&base));
        let worked = edited(&base, &work);
        make(&folder, &base, &worked);
        let stands = edited(&base, &meanwhile);
        make(&fixture.repo, &base, &stands);
        let before = fixture.tree();
        prop_assert_eq!(&before, &as_tree(&stands));

        let mut expected = Things::new();
        let mut conflicts = BTreeSet::new();
        for path in PATHS {
            match model(base.get(path), worked.get(path), stands.get(path)) {
                Ok(Some(thing)) => drop(expected.insert(path, thing)),
                Ok(None) => {}
                Err(Conflict) => drop(conflicts.insert(path.to_owned())),
            }
        }
        let merged = fixture.merge("a");
        prop_assert_eq!(&merged.conflicts, &conflicts.iter().cloned().collect::<Vec<_>>());
        if conflicts.is_empty() {
            prop_assert_eq!(fixture.tree(), as_tree(&expected));
            prop_assert_eq!(merged.kept, None);
        } else {
            prop_assert_eq!(&fixture.tree(), &before);
            prop_assert!(fixture.repo.join(merged.kept.unwrap()).exists());
        }
        let undone = fixture.workspaces.undo(RUN, None).unwrap();
        prop_assert_eq!(undone.restored, merged.changed);
        prop_assert_eq!(fixture.tree(), before);
        prop_assert_eq!(fixture.kept(), kept);
        fixture.assert_gone("a");
    }
}

/// More with `WORKSPACE_CASES=1000`.
fn cases() -> u32 {
    std::env::var("WORKSPACE_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(24)
}
