//! Finding what can be replayed among the files that were named.

use counterfoil_agents::recording::FILE;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// How many files and folders are looked at.
const MOST: usize = 200_000;
/// How deep folders are followed.
const DEEPEST: usize = 64;
/// How the files of a transcript end.
const STDOUT: &str = ".stdout";
pub(super) const STDERR: &str = ".stderr";
pub(super) const META: &str = ".meta.json";
pub(super) const SUBMISSIONS: &str = ".submissions.jsonl";
pub(super) const OUTCOME: &str = ".outcome.json";

/// Something to replay.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Found {
    /// A folder that holds a recording.
    Recording(PathBuf),
    /// What a program wrote to standard output.
    Transcript {
        /// The file.
        path: PathBuf,
        /// Whether it was named, rather than found in a folder.
        named: bool,
    },
}

/// What was found, in order, and what there is to say about the search.
#[derive(Debug, Default)]
pub(super) struct Finding {
    pub(super) found: BTreeSet<Found>,
    pub(super) remarks: Vec<String>,
    looked_at: usize,
}

/// Everything that can be replayed in what was named. The error names a path that is not there.
pub(super) fn find(paths: &[PathBuf]) -> Result<Finding, String> {
    let mut finding = Finding::default();
    for path in paths {
        let meta = std::fs::metadata(path)
            .map_err(|error| format!("cannot open {}: {error}", path.display()))?;
        if meta.is_dir() {
            finding.walk(path);
            continue;
        }
        if path.file_name().is_some_and(|name| name == FILE) {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            finding.found.insert(Found::Recording(folder.unwrap_or(Path::new(".")).to_owned()));
            continue;
        }
        let path = belongs_to(path).unwrap_or_else(|| path.clone());
        finding.found.insert(Found::Transcript { path, named: true });
    }
    Ok(finding)
}

/// The transcript that a file stands beside.
fn belongs_to(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let base =
        [META, STDERR, OUTCOME, SUBMISSIONS].iter().find_map(|end| name.strip_suffix(end))?;
    let stdout = path.with_file_name(format!("{base}{STDOUT}"));
    stdout.is_file().then_some(stdout)
}

impl Finding {
    /// Looks through a folder. Links to folders are not followed: they may lead in circles.
    fn walk(&mut self, top: &Path) {
        let mut open = vec![(top.to_owned(), 0)];
        while let Some((folder, depth)) = open.pop() {
            if folder.join(FILE).is_file() {
                self.found.insert(Found::Recording(folder));
                continue;
            }
            let entries = match std::fs::read_dir(&folder) {
                Ok(entries) => entries,
                Err(error) => {
                    self.remarks.push(format!("cannot look into {}: {error}", folder.display()));
                    continue;
                }
            };
            for entry in entries.flatten() {
                self.looked_at += 1;
                if self.looked_at > MOST {
                    self.remarks.push(format!(
                        "there are more than {MOST} files, and the rest of {} is not looked at; name a smaller folder",
                        top.display()
                    ));
                    return;
                }
                let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
                if kind.is_dir() {
                    if depth < DEEPEST {
                        open.push((path, depth + 1));
                    } else {
                        self.remarks
                            .push(format!("{} is too deep and not looked at", path.display()));
                    }
                } else if kind.is_symlink() && path.is_dir() {
                    self.remarks
                        .push(format!("{} is a link to a folder and not followed", path.display()));
                } else if is_transcript(&path) && path.is_file() {
                    self.found.insert(Found::Transcript { path, named: false });
                }
            }
        }
    }
}

fn is_transcript(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_stream = path.extension().is_some_and(|extension| extension == "jsonl");
    name.ends_with(STDOUT) || (is_stream && !name.ends_with(SUBMISSIONS))
}

/// A file beside a transcript, by how it ends.
pub(super) fn beside(transcript: &Path, end: &str) -> PathBuf {
    let name = transcript.file_name().unwrap_or_default().to_string_lossy();
    let base = name.strip_suffix(STDOUT).or_else(|| name.strip_suffix(".jsonl")).unwrap_or(&name);
    transcript.with_file_name(format!("{base}{end}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_and_transcripts_are_found_and_circles_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for file in [
            "r/recording.json",
            "r/attempts/1.stdout",
            "a/x.stdout",
            "a/x.stderr",
            "a/x.meta.json",
            "a/y.jsonl",
            "a/x.submissions.jsonl",
            "a/notes.md",
        ] {
            std::fs::create_dir_all(at(file).parent().unwrap()).unwrap();
            std::fs::write(at(file), "").unwrap();
        }
        std::os::unix::fs::symlink(folder.path(), at("a/again")).unwrap();
        let finding = find(&[folder.path().to_owned()]).unwrap();
        let loose = |path: &str| Found::Transcript { path: at(path), named: false };
        let expected =
            BTreeSet::from([Found::Recording(at("r")), loose("a/x.stdout"), loose("a/y.jsonl")]);
        assert_eq!(finding.found, expected);
        assert_eq!(finding.remarks.len(), 1, "{:?}", finding.remarks);
        let named = find(&[at("a/x.meta.json"), at("r/recording.json")]).unwrap();
        let one = Found::Transcript { path: at("a/x.stdout"), named: true };
        assert_eq!(named.found, BTreeSet::from([Found::Recording(at("r")), one]));
        assert!(find(&[at("none")]).unwrap_err().contains("cannot open"));
    }
}
