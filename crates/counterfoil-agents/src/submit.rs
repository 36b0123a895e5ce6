//! Results that an agent hands in through a tool while it works: what the server of the tool is
//! told, and the file in which it keeps what came. One process appends, another reads; whoever is
//! killed in between loses nothing that was acknowledged.

use counterfoil_contract::render::vendor::Target;
use counterfoil_contract::{Definition, Report, Status};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A file of submissions does not grow beyond this: an agent that hands in again and again fills no
/// disk.
pub const LARGEST: u64 = 256 << 20;
/// A longer file describes no session.
const LARGEST_SESSION: u64 = 16 << 20;

/// What the server of one attempt is told, as a file. Keys it does not know are ignored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionFile {
    /// What the agent must hand back.
    pub contract: Definition,
    /// In whose dialect its schema is shown.
    pub target: Target,
    /// Where submissions are kept, as an absolute path.
    pub submissions: PathBuf,
}

/// One result as it was handed in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Submission {
    /// When, in milliseconds since 1970.
    pub at: i64,
    /// The contract it was held to, as `id@version`.
    #[serde(default)]
    pub contract: String,
    /// What came of it.
    pub status: Status,
    /// The result as the agent meant it: without the wrapping of the tool and the nulls of the
    /// dialect, but with nothing filled in or changed. Held to the contract again, it gives
    /// the same report.
    pub value: Value,
    /// The codes of what is wrong with it, each once.
    #[serde(default)]
    pub codes: Vec<String>,
}

/// A file that cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{} {what}: {why}", path.display())]
pub struct Error {
    path: PathBuf,
    what: &'static str,
    why: io::Error,
}

impl SessionFile {
    /// Reads the file.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let wrong = |what| move |why| Error { path: path.to_owned(), what, why };
        let mut bytes = Vec::new();
        plain(path)
            .and_then(|()| File::open(path))
            .and_then(|file| file.take(LARGEST_SESSION + 1).read_to_end(&mut bytes))
            .map_err(wrong("cannot be read"))?;
        if bytes.len() as u64 > LARGEST_SESSION {
            return Err(wrong("is no session")(io::Error::other(format!(
                "longer than {LARGEST_SESSION} bytes"
            ))));
        }
        serde_json::from_slice(&bytes).map_err(|error| wrong("is no session")(error.into()))
    }

    /// Writes the file.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        let bytes = serde_json::to_vec(self).map_err(io::Error::from);
        bytes.and_then(|bytes| std::fs::write(path, bytes)).map_err(|why| Error {
            path: path.to_owned(),
            what: "cannot be written",
            why,
        })
    }
}

impl Submission {
    /// A value that was handed in now, and what came of it.
    pub fn now(value: Value, report: &Report) -> Self {
        Self {
            at: jiff::Timestamp::now().as_millisecond(),
            contract: report.contract.clone(),
            status: report.status,
            value,
            codes: report.codes().into_iter().map(|code| code.as_str().to_owned()).collect(),
        }
    }
}

/// Adds a submission to a file, which is made if there is none. When this returns, it is on disk.
pub fn append(path: &Path, submission: &Submission) -> Result<(), Error> {
    let written = || -> io::Result<()> {
        plain(path)?;
        let mut line = serde_json::to_vec(submission)?;
        line.push(b'\n');
        let mut file = OpenOptions::new().create(true).append(true).read(true).open(path)?;
        // Two writers would each find the end of the other; where there are no locks, one write
        // still keeps lines whole.
        match file.lock() {
            Err(error) if error.kind() != io::ErrorKind::Unsupported => return Err(error),
            _ => {}
        }
        let length = file.seek(SeekFrom::End(0))?;
        if length.saturating_add(line.len() as u64) > LARGEST {
            return Err(io::Error::other(format!("it would be longer than {LARGEST} bytes")));
        }
        // A writer that was killed left half a line: it must not take this one with it.
        if length > 0 {
            let mut last = [0];
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
            if last != *b"\n" {
                line.insert(0, b'\n');
            }
        }
        file.write_all(&line)?;
        file.sync_all()
    };
    written().map_err(|why| Error { path: path.to_owned(), what: "cannot be written", why })
}

/// The submissions behind an offset, and the offset behind them. A file that is not there yet holds
/// none; a last line that is not whole yet waits for the next time; a line that is no submission is
/// passed over. A file that became shorter was begun anew, and is read from its beginning.
pub fn read(path: &Path, from: u64) -> Result<(Vec<Submission>, u64), Error> {
    let mut bytes = Vec::new();
    let from = match open(path, from).and_then(|(file, from)| {
        file.take(LARGEST).read_to_end(&mut bytes)?;
        Ok(from)
    }) {
        Ok(from) => from,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), 0)),
        Err(why) => return Err(Error { path: path.to_owned(), what: "cannot be read", why }),
    };
    let whole = memchr::memrchr(b'\n', &bytes).map_or(0, |last| last + 1);
    let lines = bytes[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let submissions = lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
    Ok((submissions, from + whole as u64))
}

fn open(path: &Path, from: u64) -> io::Result<(File, u64)> {
    plain(path)?;
    let mut file = File::open(path)?;
    let from = if from > file.metadata()?.len() { 0 } else { from };
    file.seek(SeekFrom::Start(from))?;
    Ok((file, from))
}

/// A pipe would be waited for, and a folder holds no lines.
fn plain(path: &Path) -> io::Result<()> {
    match std::fs::metadata(path) {
        Ok(meta) if !meta.is_file() => Err(io::Error::other("it is not a file")),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn submission(n: i64) -> Submission {
        Submission {
            at: n,
            contract: "acme/check@1".into(),
            status: Status::Rejected,
            value: json!({"n": n, "text": "two\nlines"}),
            codes: vec!["C0201".into()],
        }
    }

    fn written(path: &Path, bytes: &[u8]) {
        OpenOptions::new().create(true).append(true).open(path).unwrap().write_all(bytes).unwrap();
    }

    #[test]
    fn what_is_appended_is_read_once_from_each_offset() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("submissions.jsonl");
        assert_eq!(read(&path, 0).unwrap(), (vec![], 0));
        append(&path, &submission(1)).unwrap();
        append(&path, &submission(2)).unwrap();
        let (both, behind) = read(&path, 0).unwrap();
        assert_eq!(both, [submission(1), submission(2)]);
        append(&path, &submission(3)).unwrap();
        let (third, end) = read(&path, behind).unwrap();
        assert_eq!(third, [submission(3)]);
        assert_eq!(read(&path, end).unwrap(), (vec![], end));
    }

    #[test]
    fn half_a_line_waits_for_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("submissions.jsonl");
        append(&path, &submission(1)).unwrap();
        let (_, behind) = read(&path, 0).unwrap();
        let line = serde_json::to_vec(&submission(2)).unwrap();
        written(&path, &line[..20]);
        assert_eq!(read(&path, behind).unwrap(), (vec![], behind));
        written(&path, &line[20..]);
        written(&path, b"\n");
        assert_eq!(read(&path, behind).unwrap().0, [submission(2)]);
    }

    #[test]
    fn half_a_line_of_a_writer_that_was_killed_does_not_take_the_next_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("submissions.jsonl");
        written(&path, b"{\"at\": 1, \"stat");
        append(&path, &submission(2)).unwrap();
        assert_eq!(read(&path, 0).unwrap().0, [submission(2)]);
    }

    #[test]
    fn lines_that_are_no_submissions_are_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("submissions.jsonl");
        written(&path, b"\n\xff\xfe\n[]\n{\"at\": 1}\n");
        append(&path, &submission(2)).unwrap();
        assert_eq!(read(&path, 0).unwrap().0, [submission(2)]);
    }

    #[test]
    fn a_file_that_was_begun_anew_is_read_from_its_beginning() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("submissions.jsonl");
        append(&path, &submission(1)).unwrap();
        assert_eq!(read(&path, 1 << 20).unwrap().0, [submission(1)]);
    }

    #[test]
    fn writers_at_the_same_time_keep_their_lines_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("submissions.jsonl");
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let path = &path;
                scope.spawn(move || {
                    for n in 0..5 {
                        append(path, &submission(writer * 5 + n)).unwrap();
                    }
                });
            }
        });
        let mut times: Vec<i64> = read(&path, 0).unwrap().0.iter().map(|one| one.at).collect();
        times.sort_unstable();
        assert_eq!(times, (0..20).collect::<Vec<_>>());
    }

    #[test]
    fn a_place_that_cannot_be_written_is_an_error_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        for path in [folder.path().to_owned(), folder.path().join("none/submissions.jsonl")] {
            let error = append(&path, &submission(1)).unwrap_err().to_string();
            assert!(error.contains(&path.display().to_string()), "{error}");
            assert!(error.contains("cannot be written"), "{error}");
        }
        assert!(read(folder.path(), 0).is_err());
    }

    #[test]
    fn a_session_comes_back_as_it_was_written_and_may_hold_more() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("session.json");
        let session = SessionFile {
            contract: Definition::new(
                "acme/check",
                1,
                counterfoil_contract::Framing::AnyJson,
                json!({"type": "object"}),
            ),
            target: Target::Draft2020,
            submissions: "/tmp/submissions.jsonl".into(),
        };
        session.save(&path).unwrap();
        let mut value: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(value["target"], "draft2020");
        value["later"] = json!({"more": 1});
        std::fs::write(&path, value.to_string()).unwrap();
        assert_eq!(SessionFile::load(&path).unwrap(), session);
        std::fs::write(&path, "{").unwrap();
        let error = SessionFile::load(&path).unwrap_err().to_string();
        assert!(error.contains("session.json is no session"), "{error}");
    }
}
