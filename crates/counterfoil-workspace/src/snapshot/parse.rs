//! Parses the output of `ls-files -s -v -z`, `ls-tree -r -t -z` and `check-attr -z`.

use super::blob::Blob;
use super::repo_path::RepoPath;
use std::collections::BTreeSet;

/// The entries of an index. Paths are relative to the repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Index {
    pub(super) files: Vec<(RepoPath, Blob)>,
    /// Files that git does not check (assume-unchanged, skip-worktree).
    pub(super) unchecked: BTreeSet<RepoPath>,
    pub(super) submodules: BTreeSet<RepoPath>,
    /// The number of lines that could not be parsed.
    pub(super) unparsed: usize,
}

/// Parses `ls-files -s -v -z`. A path with a conflict has no blob.
pub(super) fn index(output: &[u8]) -> Index {
    let mut index = Index::default();
    for line in output.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
        // The fields are tag, mode, object, stage, a tab, and the path.
        let Some((fields, name)) = split_at_tab(line) else {
            index.unparsed += 1;
            continue;
        };
        let [[tag], mode, oid, stage] = fields[..] else {
            index.unparsed += 1;
            continue;
        };
        let name = RepoPath::from(name);
        if mode == b"160000" {
            index.submodules.insert(name);
            continue;
        }
        if stage != b"0" {
            continue;
        }
        if *tag != b'H' && *tag != b'M' {
            index.unchecked.insert(name.clone());
        }
        let blob = octal(mode).and_then(|mode| Blob::new(mode, text(oid)));
        index.files.extend(blob.map(|blob| (name, blob)));
    }
    index
}

/// What an entry of a tree is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TreeKind {
    File,
    Folder,
    Submodule,
}

/// An entry of a tree or of a tree in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TreeEntry {
    pub(super) name: RepoPath,
    pub(super) mode: u32,
    pub(super) oid: String,
    pub(super) kind: TreeKind,
}

/// Parses `ls-tree -r -t -z`. Lines that cannot be parsed are missing.
pub(super) fn tree_entries(output: &[u8]) -> Vec<TreeEntry> {
    let entry = |line: &[u8]| {
        let (fields, name) = split_at_tab(line)?;
        let [mode, kind, oid] = fields[..] else { return None };
        let kind = match kind {
            b"blob" => TreeKind::File,
            b"tree" => TreeKind::Folder,
            b"commit" => TreeKind::Submodule,
            _ => return None,
        };
        Some(TreeEntry { name: RepoPath::from(name), mode: octal(mode)?, oid: text(oid), kind })
    };
    output.split(|byte| *byte == 0).filter_map(entry).collect()
}

/// Parses `check-attr -z`: a path, an attribute and its value at a time.
pub(super) fn attributes(output: &[u8]) -> impl Iterator<Item = [&[u8]; 3]> {
    let mut parts = output.split(|byte| *byte == 0);
    std::iter::from_fn(move || Some([parts.next()?, parts.next()?, parts.next()?]))
}

/// The fields before the first tab, and what follows it.
fn split_at_tab(line: &[u8]) -> Option<(Vec<&[u8]>, &[u8])> {
    let tab = line.iter().position(|byte| *byte == b'\t')?;
    Some((line[..tab].split(|byte| *byte == b' ').collect(), &line[tab + 1..]))
}

fn octal(digits: &[u8]) -> Option<u32> {
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> RepoPath {
        RepoPath::from(text.as_bytes())
    }

    #[test]
    fn reads_an_index() {
        let output = b"H 100644 aa 0\tseen\0h 100644 bb 0\tassumed\0S 100755 cc 0\tskipped\0\
            H 160000 dd 0\tsub\0M 100644 ee 1\tboth\tsides\0M 100644 ff 2\tboth\tsides\0H 1006\0";
        let index = index(output);
        let names: Vec<_> = index.files.iter().map(|(name, _)| name.clone()).collect();
        assert_eq!(names, [name("seen"), name("assumed"), name("skipped")]);
        assert_eq!(index.unchecked, [name("assumed"), name("skipped")].into());
        assert_eq!(index.submodules, [name("sub")].into());
        assert_eq!(index.unparsed, 1);
    }

    #[test]
    fn reads_a_tree() {
        let output = b"040000 tree aa\tsrc\x00100644 blob bb\tsrc/a b\x00160000 commit cc\tsub\x00100644 blob";
        let kinds: Vec<_> = tree_entries(output).iter().map(|entry| entry.kind).collect();
        assert_eq!(kinds, [TreeKind::Folder, TreeKind::File, TreeKind::Submodule]);
    }

    #[test]
    fn reads_attributes() {
        let found: Vec<_> = attributes(b"a\0text\0auto\0b\0eol\0crlf\0").collect();
        let expected = [[&b"a"[..], b"text", b"auto"], [b"b", b"eol", b"crlf"]];
        assert_eq!(found, expected);
    }
}
