//! Results that an agent submits through a tool while it works: the session file for the server of
//! the tool, and the file in which the server stores submissions. One process appends and another
//! reads. No acknowledged submission is lost if either is killed.

use crate::check_service::CheckService;
use counterfoil_contract::render::vendor::Target;
use counterfoil_contract::text::display_path;
use counterfoil_contract::{Context, Definition, Report, Status};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The largest file of submissions, so that an agent cannot fill the disk.
pub const MAX_FILE_BYTES: u64 = 256 << 20;
/// The largest session file.
const MAX_SESSION_BYTES: u64 = 16 << 20;

/// The configuration of the server for one attempt, as a file. Unknown keys are ignored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionFile {
    /// The contract of the result.
    pub contract: Definition,
    /// The dialect in which the schema is shown.
    pub target: Target,
    /// The absolute path of the file for submissions.
    pub submissions: PathBuf,
    /// What is known of the attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Context>,
    /// Whether results are received.
    #[serde(default = "yes")]
    pub receives: bool,
    /// The checks that the agent can have run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks: Option<CheckService>,
}

fn yes() -> bool {
    true
}

/// One submitted result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Submission {
    /// The time of the submission, in milliseconds since 1970.
    pub at: i64,
    /// The contract that validated it, as `id@version`.
    #[serde(default)]
    pub contract: String,
    /// The outcome of the validation.
    pub status: Status,
    /// The result without the wrapping of the tool and the nulls of the dialect, but otherwise
    /// unchanged. Validating it again gives the same report.
    pub value: Value,
    /// The codes of its violations, each once.
    #[serde(default)]
    pub codes: Vec<String>,
}

/// A file that cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{} {what}: {why}", display_path(path))]
pub struct SubmissionError {
    path: PathBuf,
    what: &'static str,
    why: io::Error,
}

impl SessionFile {
    /// Reads a session file.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is too large, or is not a session file.
    pub fn load(path: &Path) -> Result<Self, SubmissionError> {
        let wrong = |what| move |why| SubmissionError { path: path.to_owned(), what, why };
        let mut bytes = Vec::new();
        ensure_regular_file(path)
            .and_then(|()| File::open(path))
            .and_then(|file| file.take(MAX_SESSION_BYTES + 1).read_to_end(&mut bytes))
            .map_err(wrong("cannot be read"))?;
        if bytes.len() as u64 > MAX_SESSION_BYTES {
            return Err(wrong("is not a session file")(io::Error::other(format!(
                "longer than {MAX_SESSION_BYTES} bytes"
            ))));
        }
        serde_json::from_slice(&bytes).map_err(|error| wrong("is not a session file")(error.into()))
    }

    /// Writes a session file.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), SubmissionError> {
        let bytes = serde_json::to_vec(self).map_err(io::Error::from);
        bytes.and_then(|bytes| std::fs::write(path, bytes)).map_err(|why| SubmissionError {
            path: path.to_owned(),
            what: "cannot be written",
            why,
        })
    }
}

impl Submission {
    /// A value that was submitted now, with its report.
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

/// Appends a submission to a file, which is created if necessary. It is on disk when this returns.
///
/// # Errors
///
/// The file cannot be written, or it would become too large.
pub fn append(path: &Path, submission: &Submission) -> Result<(), SubmissionError> {
    let write = || -> io::Result<()> {
        ensure_regular_file(path)?;
        let mut line = serde_json::to_vec(submission)?;
        line.push(b'\n');
        let mut file = OpenOptions::new().create(true).append(true).read(true).open(path)?;
        // The lock keeps writers apart. Where locks are not supported, the single write still keeps
        // lines intact.
        match file.lock() {
            Err(error) if error.kind() != io::ErrorKind::Unsupported => return Err(error),
            _ => {}
        }
        let length = file.seek(SeekFrom::End(0))?;
        if length.saturating_add(line.len() as u64) > MAX_FILE_BYTES {
            return Err(io::Error::other(format!(
                "it would be longer than {MAX_FILE_BYTES} bytes"
            )));
        }
        // A killed writer may have left an incomplete line. Start a new one.
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
    write().map_err(|why| SubmissionError { path: path.to_owned(), what: "cannot be written", why })
}

/// Reads the submissions after an offset, and returns them with the next offset. A missing file has
/// no submissions. An incomplete last line is left for the next call, and a line that is not a
/// submission is skipped. A file that became shorter is read from its beginning.
///
/// # Errors
///
/// The file cannot be read.
pub fn read(path: &Path, from: u64) -> Result<(Vec<Submission>, u64), SubmissionError> {
    let mut bytes = Vec::new();
    let from = match open(path, from).and_then(|(file, from)| {
        file.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
        Ok(from)
    }) {
        Ok(from) => from,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), 0)),
        Err(why) => {
            return Err(SubmissionError { path: path.to_owned(), what: "cannot be read", why });
        }
    };
    let complete = memchr::memrchr(b'\n', &bytes).map_or(0, |last| last + 1);
    let lines = bytes[..complete].split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let submissions = lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
    Ok((submissions, from + complete as u64))
}

/// Reads a file of submissions, each of them once.
#[derive(Debug)]
pub(crate) struct SubmissionReader {
    pub(crate) path: PathBuf,
    /// Where the next submission begins.
    pub(crate) offset: u64,
}

impl SubmissionReader {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, offset: 0 }
    }

    /// The submissions since the last call. If the file cannot be read, a note says so.
    pub(crate) fn read_new(&mut self, notes: &mut Vec<String>) -> Vec<Submission> {
        match read(&self.path, self.offset) {
            Ok((submissions, offset)) => {
                self.offset = offset;
                submissions
            }
            Err(error) => {
                notes.push(format!("the submissions cannot be read: {error}"));
                Vec::new()
            }
        }
    }
}

fn open(path: &Path, from: u64) -> io::Result<(File, u64)> {
    ensure_regular_file(path)?;
    let mut file = File::open(path)?;
    let from = if from > file.metadata()?.len() { 0 } else { from };
    file.seek(SeekFrom::Start(from))?;
    Ok((file, from))
}

/// Rejects pipes, which would block, and folders.
pub(crate) fn ensure_regular_file(path: &Path) -> io::Result<()> {
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

    fn append_bytes(path: &Path, bytes: &[u8]) {
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
        append_bytes(&path, &line[..20]);
        assert_eq!(read(&path, behind).unwrap(), (vec![], behind));
        append_bytes(&path, &line[20..]);
        append_bytes(&path, b"\n");
        assert_eq!(read(&path, behind).unwrap().0, [submission(2)]);
    }

    #[test]
    fn the_incomplete_line_of_a_killed_writer_does_not_spoil_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("submissions.jsonl");
        append_bytes(&path, b"{\"at\": 1, \"stat");
        append(&path, &submission(2)).unwrap();
        assert_eq!(read(&path, 0).unwrap().0, [submission(2)]);
    }

    #[test]
    fn lines_that_are_not_submissions_are_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("submissions.jsonl");
        append_bytes(&path, b"\n\xff\xfe\n[]\n{\"at\": 1}\n");
        append(&path, &submission(2)).unwrap();
        assert_eq!(read(&path, 0).unwrap().0, [submission(2)]);
    }

    #[test]
    fn a_file_that_became_shorter_is_read_from_its_beginning() {
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
    fn a_session_is_read_as_it_was_written_and_may_have_more_keys() {
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
            context: Some(Context {
                workspace: vec!["/home/dev/repo".into()],
                ..Context::default()
            }),
            receives: true,
            checks: None,
        };
        session.save(&path).unwrap();
        let mut value: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(value["target"], "draft2020");
        value["later"] = json!({"more": 1});
        std::fs::write(&path, value.to_string()).unwrap();
        assert_eq!(SessionFile::load(&path).unwrap(), session);
        std::fs::write(&path, "{").unwrap();
        let error = SessionFile::load(&path).unwrap_err().to_string();
        assert!(error.contains("session.json is not a session file"), "{error}");
    }
}
