//! Reads the prompts and outputs of a run by the references in its events.

mod text;

use counterfoil_agents::recording::digest;
use counterfoil_flow::Reply;
use counterfoil_workspace::path::is_strictly_inside;
use rustix::fs::{Mode, OFlags};
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
pub use text::{TranscriptText, VerifiedTexts};

/// The size limit of a file.
const MAX_FILE_BYTES: u64 = 1 << 30;

/// Why a transcript cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TranscriptError {
    /// The file is missing: it may have been removed with what old runs left.
    #[error("{path} is not there any more")]
    Missing {
        /// The path in the state folder.
        path: String,
    },
    /// The text is not the one that was recorded.
    #[error("its content has changed")]
    Changed,
    /// The reference leads out of the state folder.
    #[error("{path} is outside the state folder")]
    Outside {
        /// The path.
        path: String,
    },
    /// The log file has no such entry.
    #[error("the log has no entry {name}")]
    NoEntry {
        /// The name of the entry.
        name: String,
    },
    /// It cannot be read.
    #[error("cannot read {path}: {why}")]
    Unreadable {
        /// The path in the state folder.
        path: String,
        /// Why not.
        why: String,
    },
    /// The prompt or reply was never stored.
    #[error("it was not kept")]
    NotKept,
}

/// Reads transcripts from a state folder.
#[derive(Debug)]
pub struct TranscriptReader {
    state: PathBuf,
    /// The texts of a log file that holds many transcripts, by name.
    logs: OnceCell<BTreeMap<String, Vec<String>>>,
}

impl TranscriptReader {
    /// Reads from this state folder.
    pub fn new(state: &Path) -> Self {
        Self { state: state.to_owned(), logs: OnceCell::new() }
    }

    /// Reads the text of a reference and verifies its hash if one is given.
    ///
    /// # Errors
    ///
    /// It is outside the state folder, missing, too large, or has another hash.
    pub fn read(&self, reference: &str, sha256: Option<&str>) -> Result<Vec<u8>, TranscriptError> {
        let has_hash = |bytes: &[u8]| sha256.is_none_or(|sha256| digest(bytes) == sha256);
        let Some((file, name)) = reference.split_once('#') else {
            let bytes = self.read_file(reference)?;
            return if has_hash(&bytes) { Ok(bytes) } else { Err(TranscriptError::Changed) };
        };
        let logs = match self.logs.get() {
            Some(logs) => logs,
            None => {
                let read = parse_log(&self.read_file(file)?);
                self.logs.get_or_init(|| read)
            }
        };
        let lines =
            logs.get(name).ok_or_else(|| TranscriptError::NoEntry { name: name.to_owned() })?;
        // An entry that was restarted after a crash follows the earlier ones.
        let last = lines.last().map(String::as_str).unwrap_or_default();
        let found = [lines.concat(), last.to_owned()]
            .into_iter()
            .map(String::into_bytes)
            .find(|text| has_hash(text));
        found.ok_or(TranscriptError::Changed)
    }

    /// The text of a reply.
    ///
    /// # Errors
    ///
    /// It cannot be read, or is not the one that was recorded.
    pub fn reply(&self, reply: &Reply) -> Result<Vec<u8>, TranscriptError> {
        match &reply.text {
            Some(text) => self.read(text, None),
            None => self.read(&reply.transcript, Some(&reply.sha256)),
        }
    }

    /// The prompt that a reply answers.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    pub fn prompt(&self, reply: &Reply) -> Result<Vec<u8>, TranscriptError> {
        let read = |location: &String| self.read(location, None);
        let found = prompt_locations(&reply.transcript).iter().map(read).reduce(Result::or);
        found.unwrap_or(Err(TranscriptError::NotKept))
    }

    /// The text of a reference, to be read in parts. Its hash is verified if one is given.
    ///
    /// # Errors
    ///
    /// It is outside the state folder, missing, or has another hash.
    pub fn text(
        &self,
        reference: &str,
        sha256: Option<&str>,
        verified: &VerifiedTexts,
    ) -> Result<TranscriptText, TranscriptError> {
        if reference.contains('#') {
            return Ok(TranscriptText::of_bytes(reference, self.read(reference, sha256)?));
        }
        TranscriptText::of_file(reference, self.open(reference)?, sha256, verified)
    }

    /// The text of a reply, to be read in parts.
    ///
    /// # Errors
    ///
    /// It cannot be read, or is not the one that was recorded.
    pub fn reply_text(
        &self,
        reply: &Reply,
        verified: &VerifiedTexts,
    ) -> Result<TranscriptText, TranscriptError> {
        match &reply.text {
            Some(text) => self.text(text, None, verified),
            None => self.text(&reply.transcript, Some(&reply.sha256), verified),
        }
    }

    /// The prompt that a reply answers, to be read in parts.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    pub fn prompt_text(
        &self,
        reply: &Reply,
        verified: &VerifiedTexts,
    ) -> Result<TranscriptText, TranscriptError> {
        let open = |location: &String| self.text(location, None, verified);
        let found = prompt_locations(&reply.transcript).iter().map(open).reduce(Result::or);
        found.unwrap_or(Err(TranscriptError::NotKept))
    }

    /// Opens a file of the state folder.
    pub(crate) fn open(&self, path: &str) -> Result<File, TranscriptError> {
        if !is_strictly_inside(Path::new(path)) {
            return Err(TranscriptError::Outside { path: path.to_owned() });
        }
        open_without_links(&self.state, Path::new(path)).map_err(|error| failed(path, &error))
    }

    fn read_file(&self, path: &str) -> Result<Vec<u8>, TranscriptError> {
        let mut bytes = Vec::new();
        let file = self.open(path)?;
        file.take(MAX_FILE_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| failed(path, &error))?;
        if bytes.len() as u64 > MAX_FILE_BYTES {
            let why = format!("it is larger than {MAX_FILE_BYTES} bytes");
            return Err(TranscriptError::Unreadable { path: path.to_owned(), why });
        }
        Ok(bytes)
    }
}

pub(crate) fn failed(path: &str, error: &io::Error) -> TranscriptError {
    match error.kind() {
        ErrorKind::NotFound => TranscriptError::Missing { path: path.to_owned() },
        _ => TranscriptError::Unreadable { path: path.to_owned(), why: error.to_string() },
    }
}

/// Opens a regular file below a folder. A link at any place of the path is refused: an agent may have
/// put it there. Opening a pipe would block, so it is opened in another way and refused.
fn open_without_links(root: &Path, path: &Path) -> io::Result<File> {
    let mut opened = File::open(root)?;
    let mut parts = path.components().peekable();
    while let Some(part) = parts.next() {
        let kind = if parts.peek().is_some() { OFlags::DIRECTORY } else { OFlags::NONBLOCK };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | kind;
        opened = rustix::fs::openat(&opened, part.as_os_str(), flags, Mode::empty())?.into();
    }
    if opened.metadata()?.is_file() {
        return Ok(opened);
    }
    Err(io::Error::other("it is not a file"))
}

/// The texts in a log by name. Invalid lines are skipped: a crash may have truncated the last one.
fn parse_log(bytes: &[u8]) -> BTreeMap<String, Vec<String>> {
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in bytes.split(|byte| *byte == b'\n') {
        let Ok(mut line) = serde_json::from_slice::<BTreeMap<String, String>>(line) else {
            continue;
        };
        if let (Some(name), Some(text)) = (line.remove("name"), line.remove("text")) {
            texts.entry(name).or_default().push(text);
        }
    }
    texts
}

/// The possible locations of the prompt of a transcript: beside it, with the same number if the
/// transcript has one.
pub fn prompt_locations(transcript: &str) -> Vec<String> {
    let mut locations = vec![format!("{transcript}.prompt")];
    if let Some((name, number)) = transcript.rsplit_once('-')
        && number.parse::<u32>().is_ok()
    {
        locations.insert(0, format!("{name}.prompt-{number}"));
    }
    locations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_are_beside_their_transcripts() {
        assert_eq!(prompt_locations("t/r/build_1.1"), ["t/r/build_1.1.prompt"]);
        assert_eq!(
            prompt_locations("t/r/build_1.1-2"),
            ["t/r/build_1.1.prompt-2", "t/r/build_1.1-2.prompt"]
        );
        assert_eq!(prompt_locations("t/r/log.jsonl#build#1.1"), ["t/r/log.jsonl#build#1.1.prompt"]);
    }

    #[test]
    fn changed_and_outside_files_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("t")).unwrap();
        std::fs::write(folder.path().join("t/a"), "said").unwrap();
        std::fs::write(
            folder.path().join("t/log.jsonl"),
            "{\"name\":\"a#1\",\"text\":\"one\"}\ncut off {\n{\"name\":\"a#1\",\"text\":\"two\"}\n",
        )
        .unwrap();
        let reader = TranscriptReader::new(folder.path());
        let hash = |text: &str| digest(text.as_bytes());
        assert_eq!(reader.read("t/a", Some(&hash("said"))), Ok(b"said".to_vec()));
        assert_eq!(reader.read("t/a", Some(&hash("other"))), Err(TranscriptError::Changed));
        for text in ["two", "onetwo"] {
            assert_eq!(
                reader.read("t/log.jsonl#a#1", Some(&hash(text))),
                Ok(text.as_bytes().to_vec())
            );
        }
        assert!(reader.read("t/log.jsonl#a#1", Some(&hash("one"))).is_err());
        assert!(matches!(reader.read("../a", None), Err(TranscriptError::Outside { .. })));
        assert!(matches!(reader.read("t/none", None), Err(TranscriptError::Missing { .. })));
    }
}
