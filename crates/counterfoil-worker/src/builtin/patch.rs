//! Parses a patch of git: the changed files, their new lines, and the patch in chunks of whole
//! files. Pure: git's output is passed in.

use serde_json::{Value, json};
use std::collections::HashMap;
use strum::IntoStaticStr;

/// The mode of a submodule.
const SUBMODULE: &[u8] = b"160000";

/// A changed file, as `git diff --raw` lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// How the file changed.
    pub(super) change: Change,
    /// The path of the file.
    pub(super) path: Vec<u8>,
    /// The previous path of a renamed file.
    pub(super) old: Option<Vec<u8>>,
    /// Whether it is a submodule, which has no lines.
    is_submodule: bool,
}

/// How a file changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub(super) enum Change {
    Added,
    Modified,
    /// The type changed, for example from a file to a link. Git writes two parts.
    #[strum(serialize = "modified")]
    Replaced,
    Deleted,
    Renamed,
}

impl Change {
    fn name(self) -> &'static str {
        self.into()
    }
}

/// A changed file with its part of the patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct File {
    record: Record,
    text: String,
    binary: bool,
    added: u64,
    removed: u64,
    /// Ranges of added or changed lines, numbered as in the new file.
    lines: Vec<(u64, u64)>,
}

/// Consecutive files of a patch.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Chunk<'f> {
    files: Vec<&'f File>,
    bytes: usize,
}

/// Parses the output of `git diff --raw -z`; `None` if it is malformed.
pub(super) fn records(raw: &[u8]) -> Option<Vec<Record>> {
    let mut parts = super::names(raw);
    let mut records = Vec::new();
    while let Some(meta) = parts.next() {
        let words: Vec<&[u8]> = meta.strip_prefix(b":")?.split(|byte| *byte == b' ').collect();
        let [old_mode, new_mode, _, _, status] = words.as_slice() else { return None };
        let first = parts.next()?.to_vec();
        let (change, path, old) = match status.first()? {
            b'A' => (Change::Added, first, None),
            b'M' => (Change::Modified, first, None),
            b'T' => (Change::Replaced, first, None),
            b'D' => (Change::Deleted, first, None),
            b'R' => (Change::Renamed, parts.next()?.to_vec(), Some(first)),
            _ => return None,
        };
        let is_submodule = [old_mode, new_mode].contains(&&SUBMODULE);
        records.push(Record { change, path, old, is_submodule });
    }
    Some(records)
}

/// Combines each file with its part of the patch; `None` if they do not match, because files
/// changed in between.
pub(super) fn pair(records: Vec<Record>, patch: &[u8]) -> Option<Vec<File>> {
    let mut parts: HashMap<&[u8], Vec<&[u8]>> = HashMap::new();
    for part in split(patch)? {
        let head = part.split(|byte| *byte == b'\n').next().unwrap_or_default();
        parts.entry(head).or_default().push(part);
    }
    let mut files = Vec::with_capacity(records.len());
    for record in records {
        let found = parts.remove(head(&record).as_slice())?;
        let expected = if record.change == Change::Replaced { 2 } else { 1 };
        if found.len() != expected {
            return None;
        }
        files.push(file(record, &found)?);
    }
    parts.is_empty().then_some(files)
}

/// Splits a patch into its parts, one for each file. No line inside a part starts like the first
/// line of a part.
fn split(patch: &[u8]) -> Option<Vec<&[u8]>> {
    const HEAD: &[u8] = b"diff --git ";
    let mut starts: Vec<usize> = Vec::new();
    let mut at = 0;
    for line in patch.split_inclusive(|byte| *byte == b'\n') {
        if line.starts_with(HEAD) {
            starts.push(at);
        }
        at += line.len();
    }
    if starts.first().is_some_and(|first| *first != 0) || (starts.is_empty() && !patch.is_empty()) {
        return None;
    }
    let ends = starts.iter().skip(1).copied().chain([patch.len()]);
    Some(starts.iter().zip(ends).map(|(start, end)| &patch[*start..end]).collect())
}

/// The first line of a file's part of the patch.
fn head(record: &Record) -> Vec<u8> {
    let old = record.old.as_ref().unwrap_or(&record.path);
    [b"diff --git ", quoted(b"a/", old).as_slice(), b" ", quoted(b"b/", &record.path).as_slice()]
        .concat()
}

/// A name as git writes it into a patch with `core.quotePath=false`.
fn quoted(prefix: &[u8], name: &[u8]) -> Vec<u8> {
    counterfoil_workspace::git::quote_path(&[prefix, name].concat())
}

/// Counts the lines of a file's parts of the patch; `None` if a part is incomplete.
fn file(record: Record, parts: &[&[u8]]) -> Option<File> {
    let text = String::from_utf8_lossy(&parts.concat()).into_owned();
    let mut file = File { record, text, binary: false, added: 0, removed: 0, lines: Vec::new() };
    for part in parts {
        let mut lines = part.split(|byte| *byte == b'\n');
        while let Some(line) = lines.next() {
            if let Some(hunk) = line.strip_prefix(b"@@ -") {
                count(hunk, &mut lines, &mut file)?;
            } else if line.starts_with(b"Binary files ") {
                file.binary = true;
            }
        }
    }
    if file.record.is_submodule {
        file.lines.clear();
    }
    Some(file)
}

/// Counts the lines of a hunk. The header gives their number, so that no line is mistaken for a
/// header.
fn count<'p>(
    hunk: &[u8],
    lines: &mut impl Iterator<Item = &'p [u8]>,
    file: &mut File,
) -> Option<()> {
    let hunk = std::str::from_utf8(hunk.split(|byte| *byte == b'@').next()?).ok()?;
    let (old, new) = hunk.trim_end().split_once(" +")?;
    let range = |text: &str| -> Option<(u64, u64)> {
        let (start, count) = text.split_once(',').unwrap_or((text, "1"));
        Some((start.parse().ok()?, count.parse().ok()?))
    };
    let ((_, mut old_left), (mut at, mut new_left)) = (range(old)?, range(new)?);
    while old_left > 0 || new_left > 0 {
        match lines.next()?.first() {
            Some(b'+') => {
                new_left = new_left.checked_sub(1)?;
                file.added += 1;
                match file.lines.last_mut() {
                    Some((_, to)) if *to + 1 == at => *to = at,
                    _ => file.lines.push((at, at)),
                }
                at += 1;
            }
            Some(b'-') => {
                old_left = old_left.checked_sub(1)?;
                file.removed += 1;
            }
            // The marker for a missing newline at the end of the file.
            Some(b'\\') => {}
            // An empty context line may be written without its leading space.
            Some(b' ') | None => {
                (old_left, new_left) = (old_left.checked_sub(1)?, new_left.checked_sub(1)?);
                at += 1;
            }
            Some(_) => return None,
        }
    }
    Some(())
}

/// Estimates the number of tokens of a text.
fn tokens(bytes: usize) -> usize {
    bytes.div_ceil(4)
}

/// Groups consecutive files into chunks up to a size. A file that is too large is a chunk by
/// itself.
fn chunks(files: &[File], max_tokens: Option<usize>) -> Vec<Chunk<'_>> {
    let mut chunks: Vec<Chunk<'_>> = Vec::new();
    for file in files {
        let fits = |chunk: &&mut Chunk<'_>| {
            max_tokens.is_none_or(|max| tokens(chunk.bytes.saturating_add(file.text.len())) <= max)
        };
        match chunks.last_mut().filter(fits) {
            Some(chunk) => {
                chunk.files.push(file);
                chunk.bytes += file.text.len();
            }
            None => chunks.push(Chunk { files: vec![file], bytes: file.text.len() }),
        }
    }
    chunks
}

/// The result of the step, as JSON.
pub(super) fn result(base: &str, files: &[File], max_tokens: Option<usize>) -> Value {
    let chunks = chunks(files, max_tokens);
    let chunks: Vec<Value> = chunks
        .iter()
        .enumerate()
        .map(|(at, chunk)| {
            let text: String = chunk.files.iter().map(|file| file.text.as_str()).collect();
            let names: Vec<_> =
                chunk.files.iter().map(|file| path_text(&file.record.path)).collect();
            json!({"number": at + 1, "files": names, "tokens": tokens(chunk.bytes), "text": text})
        })
        .collect();
    let added: u64 = files.iter().map(|file| file.added).sum();
    let removed: u64 = files.iter().map(|file| file.removed).sum();
    let files: Vec<Value> = files.iter().map(File::to_json).collect();
    json!({"base": base, "files": files, "chunks": chunks, "added": added, "removed": removed})
}

impl File {
    fn to_json(&self) -> Value {
        let lines: Vec<Value> =
            self.lines.iter().map(|(from, to)| json!({"from": from, "to": to})).collect();
        let mut json = json!({
            "path": path_text(&self.record.path),
            "change": self.record.change.name(),
            "binary": self.binary,
            "added": self.added,
            "removed": self.removed,
            "lines": lines,
        });
        if let Some(old) = &self.record.old {
            json["old_path"] = path_text(old).into();
        }
        json
    }
}

fn path_text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZERO: &str = "0000000";

    fn raw(entries: &[(&str, &str)]) -> Vec<u8> {
        let entry = |(status, names): &(&str, &str)| {
            format!(":100644 100644 {ZERO} {ZERO} {status}\0{names}\0")
        };
        entries.iter().map(entry).collect::<String>().into_bytes()
    }

    fn files(entries: &[(&str, &str)], patch: &str) -> Option<Vec<File>> {
        pair(records(&raw(entries))?, patch.as_bytes())
    }

    fn part(name: &str, body: &str) -> String {
        format!(
            "diff --git a/{name} b/{name}\nindex 1..2 100644\n--- a/{name}\n+++ b/{name}\n{body}"
        )
    }

    #[test]
    fn lines_are_those_of_the_new_file() {
        let body = "@@ -1,4 +1,5 @@ fn\n one\n-two\n+2\n+2b\n three\n four\n@@ -9,2 +10,2 @@\n-nine\n+9\n \n";
        let files = files(&[("M", "a.rs")], &part("a.rs", body)).unwrap();
        assert_eq!(files[0].lines, [(2, 3), (10, 10)]);
        assert_eq!((files[0].added, files[0].removed), (3, 2));
    }

    #[test]
    fn what_stands_in_a_file_is_not_taken_for_the_patch() {
        let body = "@@ -1,2 +1,3 @@\n-diff --git a/x b/x\n+@@ -1 +1 @@\n+Binary files a and b differ\n \\ no\n\\ No newline at end of file\n";
        let files = files(&[("M", "a")], &part("a", body)).unwrap();
        assert_eq!(
            (files.len(), files[0].binary, files[0].added, files[0].removed),
            (1, false, 2, 1)
        );
        assert_eq!(files[0].lines, [(1, 2)]);
    }

    #[test]
    fn a_list_and_a_patch_of_different_moments_do_not_go_together() {
        let body = "@@ -1 +1 @@\n-a\n+b\n";
        assert!(
            files(&[("M", "a"), ("M", "b")], &part("a", body)).is_none(),
            "a file without its part"
        );
        assert!(
            files(&[("M", "a")], &(part("a", body) + &part("b", body))).is_none(),
            "a part too many"
        );
        assert!(files(&[("M", "b")], &part("a", body)).is_none(), "the part of another");
        assert!(files(&[("T", "a")], &part("a", body)).is_none(), "one of two parts");
        assert!(
            files(&[("M", "a")], &part("a", "@@ -1 +1,2 @@\n-a\n+b\n")).is_none(),
            "it breaks off"
        );
        assert!(records(b"nonsense\0").is_none());
        assert!(files(&[("M", "a")], "nonsense\n").is_none());
    }

    #[test]
    fn names_are_written_as_git_writes_them() {
        assert_eq!(quoted(b"a/", b"plain name"), b"a/plain name");
        assert_eq!(quoted(b"a/", "ä".as_bytes()), "a/ä".as_bytes());
        assert_eq!(quoted(b"a/", b"x\n\"\\\x01\x7f"), br#""a/x\n\"\\\001\177""#);
    }

    fn sized(name: &str, bytes: usize) -> File {
        let record =
            Record { change: Change::Added, path: name.into(), old: None, is_submodule: false };
        File {
            record,
            text: "x".repeat(bytes),
            binary: false,
            added: 0,
            removed: 0,
            lines: Vec::new(),
        }
    }

    fn split_into(sizes: &[usize], max_tokens: Option<usize>) -> Vec<Vec<usize>> {
        let files: Vec<File> = sizes.iter().map(|bytes| sized("f", *bytes)).collect();
        let lengths = |chunk: &Chunk<'_>| chunk.files.iter().map(|file| file.text.len()).collect();
        chunks(&files, max_tokens).iter().map(lengths).collect()
    }

    #[test]
    fn chunks_keep_the_order_and_whole_files() {
        assert_eq!(split_into(&[40, 40, 20], Some(20)), [vec![40, 40], vec![20]]);
        assert_eq!(split_into(&[40, 400, 4, 4], Some(20)), [vec![40], vec![400], vec![4, 4]]);
        assert_eq!(split_into(&[40, 400, 4], None), [[40, 400, 4]]);
        assert_eq!(split_into(&[], Some(20)), Vec::<Vec<usize>>::new());
        assert_eq!(split_into(&[79, 2], Some(20)), [[79], [2]], "81 bytes are 21 tokens");
        assert_eq!(split_into(&[79, 1], Some(20)), [[79, 1]]);
    }
}
