//! Parses the output of `status --porcelain=v2 -z`, `ls-files -s -v -z`, `diff-tree -r -z` and
//! `ls-tree -z`.

use super::repo_path::RepoPath;

/// The mode of a submodule in a tree or an index.
const SUBMODULE_MODE: u32 = 0o160_000;

/// A file in a commit.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Blob {
    pub(super) mode: u32,
    pub(super) oid: String,
}

impl Blob {
    /// A file or link. `None` for an absent path and for a submodule, whose files are in its own
    /// repository.
    fn new(mode: &[u8], oid: &[u8]) -> Option<Self> {
        let mode = octal(mode)?;
        let there = mode != 0 && mode != SUBMODULE_MODE;
        there.then(|| Self { mode, oid: text(oid) })
    }

    /// Whether it is executable.
    pub(super) fn executable(&self) -> bool {
        self.mode & 0o111 != 0
    }

    /// Whether it is a symbolic link.
    pub(super) fn is_link(&self) -> bool {
        self.mode & 0o170_000 == 0o120_000
    }
}

/// One path that differs from HEAD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A file in HEAD or the index.
    Tracked {
        name: RepoPath,
        /// The blob in HEAD.
        head: Option<Blob>,
        /// The blob in the index, if the file equals it for git.
        staged: Option<String>,
        /// The index equals HEAD, and the file differs from it.
        edited: bool,
    },
    /// A submodule that differs from HEAD.
    Submodule(RepoPath),
    /// A file in conflict.
    Unmerged(RepoPath),
    /// An untracked file.
    Untracked(RepoPath),
    /// An untracked repository in the work tree.
    Nested(RepoPath),
}

/// The parsed output of `status`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Status {
    /// The commit. `None` before the first one.
    pub(super) head: Option<String>,
    pub(super) lines: Vec<Line>,
    /// The number of lines that could not be parsed.
    pub(super) unparsed: usize,
}

/// Parses `status --porcelain=v2 -z --branch --no-renames`. Paths are prefixed with a folder.
pub(super) fn status(output: &[u8], folder: &RepoPath) -> Status {
    let mut status = Status::default();
    for line in output.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
        if let Some(header) = line.strip_prefix(b"# ") {
            if let Some(oid) = header.strip_prefix(b"branch.oid ") {
                status.head = (oid != b"(initial)").then(|| text(oid));
            }
            continue;
        }
        match entry(line, folder) {
            Some(line) => status.lines.push(line),
            None => status.unparsed += 1,
        }
    }
    status
}

fn entry(line: &[u8], folder: &RepoPath) -> Option<Line> {
    let rest = line.get(2..)?;
    match line.first()? {
        b'?' => Some(match rest.strip_suffix(b"/") {
            Some(nested) => Line::Nested(folder.join(nested)),
            None => Line::Untracked(folder.join(rest)),
        }),
        b'u' => {
            let mut fields = rest.splitn(10, |byte| *byte == b' ');
            let name = folder.join(fields.nth(9)?);
            let submodule = rest.get(3) == Some(&b'S');
            Some(if submodule { Line::Submodule(name) } else { Line::Unmerged(name) })
        }
        b'1' => {
            let fields: Vec<&[u8]> = rest.splitn(8, |byte| *byte == b' ').collect();
            let [&[index, work], submodule, head_mode, _, _, head, staged, name] = fields[..]
            else {
                return None;
            };
            let name = folder.join(name);
            if submodule.first() == Some(&b'S') {
                return Some(Line::Submodule(name));
            }
            let is_staged = work == b'.' && index != b'D';
            Some(Line::Tracked {
                name,
                head: Blob::new(head_mode, head),
                staged: is_staged.then(|| text(staged)),
                edited: index == b'.' && work != b'.',
            })
        }
        _ => None,
    }
}

/// The entries of an index that `status` does not report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Listing {
    /// Files that git does not check (assume-unchanged, skip-worktree), as they are in the index.
    pub(super) unchecked: Vec<(RepoPath, Blob)>,
    /// Submodules with their commit in the index, and whether git checks them.
    pub(super) submodules: Vec<(RepoPath, String, bool)>,
}

/// Parses `ls-files -s -v -z`. Paths are relative to the repository.
pub(super) fn listing(output: &[u8]) -> Listing {
    let mut listing = Listing::default();
    for line in output.split(|byte| *byte == 0) {
        // The fields are tag, mode, object, stage, a tab, and the path.
        let Some(tab) = line.iter().position(|byte| *byte == b'\t') else { continue };
        let mut fields = line[..tab].split(|byte| *byte == b' ');
        let (Some([tag]), Some(mode), Some(oid)) = (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let checked = *tag == b'H' || *tag == b'M';
        if mode == b"160000" {
            listing.submodules.push((RepoPath::from(&line[tab + 1..]), text(oid), checked));
        } else if !checked && let Some(blob) = Blob::new(mode, oid) {
            listing.unchecked.push((RepoPath::from(&line[tab + 1..]), blob));
        }
    }
    // A submodule with a conflict has one line for each side.
    listing.submodules.dedup_by(|b, a| a.0 == b.0);
    listing
}

/// A file that differs between two commits.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) name: RepoPath,
    pub(super) before: Option<Blob>,
    pub(super) after: Option<Blob>,
}

/// Parses `diff-tree -r -z --no-renames`. Paths are prefixed with a folder.
pub(super) fn differences(output: &[u8], folder: &RepoPath) -> Vec<Difference> {
    let mut parts = output.split(|byte| *byte == 0);
    let mut found = Vec::new();
    while let (Some(line), Some(name)) = (parts.next(), parts.next()) {
        let Some(line) = line.strip_prefix(b":") else { continue };
        let fields: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
        if let [mode_before, mode_after, before, after, _] = fields[..] {
            let (before, after) = (Blob::new(mode_before, before), Blob::new(mode_after, after));
            found.push(Difference { name: folder.join(name), before, after });
        }
    }
    found
}

/// The files of a commit, and its submodules with their commits.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Committed {
    pub(super) files: Vec<(RepoPath, Blob)>,
    pub(super) submodules: Vec<(RepoPath, String)>,
}

/// Parses `ls-tree -z`. Paths are relative to the repository.
pub(super) fn committed(output: &[u8]) -> Committed {
    let mut committed = Committed::default();
    for line in output.split(|byte| *byte == 0) {
        let Some(tab) = line.iter().position(|byte| *byte == b'\t') else { continue };
        let mut fields = line[..tab].split(|byte| *byte == b' ');
        let (Some(mode), Some(kind), Some(oid)) = (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let name = RepoPath::from(&line[tab + 1..]);
        match kind {
            b"blob" => committed.files.extend(Blob::new(mode, oid).map(|blob| (name, blob))),
            b"commit" => committed.submodules.push((name, text(oid))),
            _ => {}
        }
    }
    committed
}

fn octal(digits: &[u8]) -> Option<u32> {
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> RepoPath {
        RepoPath::from(text.as_bytes())
    }

    #[test]
    fn reads_status() {
        let output = b"# branch.oid 1234\0# branch.head main\0# stash 3\x001 MM N... 100644 100644 100644 aa bb a b\0\
            1 .M N... 100755 100755 100644 cc cc x\ny\x001 A. N... 000000 100644 100644 00 dd \xff\x001 D. N... 100644 000000 000000 ee 00 gone\0\
            1 .M S.MU 160000 160000 160000 ff ff sub\0u UU N... 100644 100644 100644 100644 1 2 3 both sides\0? new\0? own/\0! odd\0";
        let status = status(output, &name("in"));
        let tracked = |at: &[u8], mode, oid: &str, staged: Option<&str>, edited| Line::Tracked {
            name: RepoPath::from(at),
            head: (mode != 0).then(|| Blob { mode, oid: oid.into() }),
            staged: staged.map(Into::into),
            edited,
        };
        assert_eq!(status.head.as_deref(), Some("1234"));
        assert_eq!(status.unparsed, 1);
        let expected = [
            tracked(b"in/a b", 0o100_644, "aa", None, false),
            tracked(b"in/x\ny", 0o100_755, "cc", None, true),
            tracked(b"in/\xff", 0, "", Some("dd"), false),
            tracked(b"in/gone", 0o100_644, "ee", None, false),
            Line::Submodule(name("in/sub")),
            Line::Unmerged(name("in/both sides")),
            Line::Untracked(name("in/new")),
            Line::Nested(name("in/own")),
        ];
        assert_eq!(status.lines, expected);
        assert_eq!(super::status(b"# branch.oid (initial)\0", &name("")).head, None);
    }

    #[test]
    fn what_is_cut_short_is_counted_and_not_believed() {
        for bad in [
            &b"1 MM N... 100644"[..],
            b"1",
            b"u UU",
            b"\xff\xff\xff",
            b"?",
            b"1 M N... 1 1 1 a b c",
        ] {
            let status = status(bad, &name(""));
            assert_eq!((status.lines.len(), status.unparsed), (0, 1), "{bad:?}");
        }
        assert_eq!(differences(b":100644 000000 aa", &name("")), []);
        assert_eq!(committed(b"100644 blob aa"), Committed::default());
    }

    #[test]
    fn reads_what_an_index_hides() {
        let output = b"H 100644 aa 0\tseen\0h 100644 bb 0\tassumed\0S 100755 cc 0\tskipped\0H 160000 dd 0\tsub\0s 160000 ee 0\tquiet\0";
        let listing = listing(output);
        let unchecked: Vec<_> = listing.unchecked.iter().map(|(name, _)| name.clone()).collect();
        assert_eq!(unchecked, [name("assumed"), name("skipped")]);
        let submodules =
            [(name("sub"), "dd".to_owned(), true), (name("quiet"), "ee".to_owned(), false)];
        assert_eq!(listing.submodules, submodules);
    }

    #[test]
    fn a_submodule_is_no_file_of_a_commit() {
        let output = b":160000 100644 aa bb T\0was sub\0:100644 000000 cc 00 D\0gone\0";
        let found = differences(output, &name(""));
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].before.is_some(), found[0].after.is_some()), (false, true));
        assert_eq!((found[1].before.is_some(), found[1].after.is_some()), (true, false));
    }
}
