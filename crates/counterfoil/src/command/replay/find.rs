//! Finds recordings and transcripts in the paths on the command line.

use counterfoil_agents::recording::FILE;
use counterfoil_contract::text::display_path;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The most files and folders that are examined.
const MAX_ENTRIES: usize = 200_000;
/// The depth to which folders are searched.
const MAX_DEPTH: usize = 64;
/// The suffix of a transcript: the standard output of an agent program.
const STDOUT: &str = ".stdout";
/// The suffix of its standard error.
pub(super) const STDERR: &str = ".stderr";
/// The suffix of the file that describes how the program was called.
pub(super) const META: &str = ".meta.json";
/// The suffix of the submitted results.
pub(super) const SUBMISSIONS: &str = ".submissions.jsonl";
/// The suffix of the recorded outcome.
pub(super) const OUTCOME: &str = ".outcome.json";

/// Something to replay.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Found {
    /// The folder of a recording.
    Recording(PathBuf),
    /// The standard output of an agent program.
    Transcript {
        /// The file.
        path: PathBuf,
        /// Whether the path was given or has a recorded outcome, so that it is meant.
        named: bool,
    },
    /// A recorded outcome whose transcript is not there.
    LostTranscript(PathBuf),
}

/// The result of a search, in order.
#[derive(Debug, Default)]
pub(super) struct SearchResult {
    pub(super) found: BTreeSet<Found>,
    /// Notes for the user about what was skipped.
    pub(super) notes: Vec<String>,
    examined: usize,
}

/// Finds everything that can be replayed. A path that does not exist is an error.
pub(super) fn find(paths: &[PathBuf]) -> Result<SearchResult, String> {
    let mut result = SearchResult::default();
    for path in paths {
        let meta = std::fs::metadata(path)
            .map_err(|error| format!("cannot open {}: {error}", display_path(path)))?;
        if meta.is_dir() {
            result.walk(path);
            continue;
        }
        if path.file_name().is_some_and(|name| name == FILE) {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            result.found.insert(Found::Recording(folder.unwrap_or(Path::new(".")).to_owned()));
            continue;
        }
        if recorded_name(path).is_some() {
            result.add_recorded(path.clone());
            continue;
        }
        let path = transcript_of(path).unwrap_or_else(|| path.clone());
        result.found.insert(Found::Transcript { path, named: true });
    }
    Ok(result)
}

/// The transcript that a file belongs to.
fn transcript_of(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let base = [META, STDERR, SUBMISSIONS].iter().find_map(|suffix| name.strip_suffix(suffix))?;
    let stdout = path.with_file_name(format!("{base}{STDOUT}"));
    stdout.is_file().then_some(stdout)
}

/// What the name of a recorded outcome begins with.
fn recorded_name(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()?.strip_suffix(OUTCOME).filter(|name| !name.is_empty())
}

impl SearchResult {
    /// Adds the transcript of a recorded outcome. A link or a pipe in its place is it, too: that it
    /// cannot be read must not pass for having nothing to replay.
    fn add_recorded(&mut self, outcome: PathBuf) {
        let Some(name) = recorded_name(&outcome) else { return };
        let names = [format!("{name}{STDOUT}"), format!("{name}.jsonl"), name.to_owned()];
        let transcript = names
            .iter()
            .map(|name| outcome.with_file_name(name))
            .find(|path| path.symlink_metadata().is_ok());
        let found = match transcript {
            Some(path) => {
                self.found.remove(&Found::Transcript { path: path.clone(), named: false });
                Found::Transcript { path, named: true }
            }
            None => Found::LostTranscript(outcome),
        };
        self.found.insert(found);
    }

    /// Searches a folder. Symbolic links to folders are not followed, because they may form cycles.
    fn walk(&mut self, top: &Path) {
        let mut pending = vec![(top.to_owned(), 0)];
        while let Some((folder, depth)) = pending.pop() {
            // Also one that cannot be read, such as a pipe.
            if folder.join(FILE).symlink_metadata().is_ok() {
                self.found.insert(Found::Recording(folder));
                continue;
            }
            let entries = match std::fs::read_dir(&folder) {
                Ok(entries) => entries,
                Err(error) => {
                    self.notes.push(format!("cannot read {}: {error}", display_path(&folder)));
                    continue;
                }
            };
            let mut outcomes = Vec::new();
            for entry in entries.flatten() {
                self.examined += 1;
                if self.examined > MAX_ENTRIES {
                    self.notes.push(format!(
                        "there are more than {MAX_ENTRIES} files; the rest of {} is skipped; pass a smaller folder",
                        display_path(top)
                    ));
                    return;
                }
                let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
                if kind.is_dir() {
                    if depth < MAX_DEPTH {
                        pending.push((path, depth + 1));
                    } else {
                        self.notes.push(format!(
                            "{} is skipped: it is nested too deeply",
                            display_path(&path)
                        ));
                    }
                } else if recorded_name(&path).is_some() {
                    outcomes.push(path);
                } else if kind.is_symlink() && path.is_dir() {
                    self.notes.push(format!(
                        "{} is skipped: it is a link to a folder",
                        display_path(&path)
                    ));
                } else if is_transcript(&path) && path.is_file() {
                    self.found.insert(Found::Transcript { path, named: false });
                }
            }
            for outcome in outcomes {
                self.add_recorded(outcome);
            }
        }
    }
}

fn is_transcript(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_stream = path.extension().is_some_and(|extension| extension == "jsonl");
    name.ends_with(STDOUT) || (is_stream && !name.ends_with(SUBMISSIONS))
}

/// The file beside a transcript with this suffix.
pub(super) fn beside(transcript: &Path, suffix: &str) -> PathBuf {
    let name = transcript.file_name().unwrap_or_default().to_string_lossy();
    let base = name.strip_suffix(STDOUT).or_else(|| name.strip_suffix(".jsonl")).unwrap_or(&name);
    transcript.with_file_name(format!("{base}{suffix}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_and_transcripts_are_found_and_cycles_are_not_followed() {
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
        let result = find(&[folder.path().to_owned()]).unwrap();
        let loose = |path: &str| Found::Transcript { path: at(path), named: false };
        let expected =
            BTreeSet::from([Found::Recording(at("r")), loose("a/x.stdout"), loose("a/y.jsonl")]);
        assert_eq!(result.found, expected);
        assert_eq!(result.notes.len(), 1, "{:?}", result.notes);
        let named = find(&[at("a/x.meta.json"), at("r/recording.json")]).unwrap();
        let one = Found::Transcript { path: at("a/x.stdout"), named: true };
        assert_eq!(named.found, BTreeSet::from([Found::Recording(at("r")), one]));
        assert!(find(&[at("none")]).unwrap_err().contains("cannot open"));
    }

    #[test]
    fn no_recorded_outcome_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for file in ["a.jsonl", "b.stdout", "b.jsonl", "c.txt", "d.submissions.jsonl"] {
            std::fs::write(at(file), "").unwrap();
        }
        std::os::unix::fs::symlink("nothing", at("e.jsonl")).unwrap();
        std::os::unix::fs::symlink("nothing", at("f.jsonl")).unwrap();
        for name in ["b", "c.txt", "d", "e"] {
            std::fs::write(at(&format!("{name}.outcome.json")), "").unwrap();
        }
        std::fs::create_dir(at("r")).unwrap();
        std::os::unix::fs::symlink("nothing", at("r/recording.json")).unwrap();
        let transcript = |name: &str, named: bool| Found::Transcript { path: at(name), named };
        let expected = BTreeSet::from([
            Found::Recording(at("r")),
            transcript("a.jsonl", false),
            transcript("b.stdout", true),
            transcript("b.jsonl", false),
            transcript("c.txt", true),
            Found::LostTranscript(at("d.outcome.json")),
            transcript("e.jsonl", true),
        ]);
        assert_eq!(find(&[folder.path().to_owned()]).unwrap().found, expected);
        let named = find(&[at("d.outcome.json"), at("b.outcome.json")]).unwrap().found;
        let expected = [Found::LostTranscript(at("d.outcome.json")), transcript("b.stdout", true)];
        assert_eq!(named, BTreeSet::from(expected));
    }
}
