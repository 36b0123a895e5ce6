//! The files in which a run keeps what was asked and said, as its events refer to them.

use counterfoil_agents::recording::{digest, is_inside};
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A longer file is not copied.
const LARGEST: u64 = 1 << 30;

/// Where a run keeps its files.
pub(super) struct Shelf {
    state: PathBuf,
    /// The lines of files that hold many transcripts, by file and name.
    logs: OnceCell<BTreeMap<String, Vec<String>>>,
}

impl Shelf {
    pub(super) fn new(state: &Path) -> Self {
        Self { state: state.to_owned(), logs: OnceCell::new() }
    }

    /// What stands behind a reference, which is what was written if its hash is known; else why it
    /// cannot be had.
    pub(super) fn read(&self, reference: &str, sha256: Option<&str>) -> Result<Vec<u8>, String> {
        let is_it = |bytes: &[u8]| sha256.is_none_or(|sha256| digest(bytes) == sha256);
        let Some((file, name)) = reference.split_once('#') else {
            let bytes = self.file(reference)?;
            return if is_it(&bytes) {
                Ok(bytes)
            } else {
                Err("it is not what was written".to_owned())
            };
        };
        let logs = match self.logs.get() {
            Some(logs) => logs,
            None => {
                let read = lines(&self.file(file)?);
                self.logs.get_or_init(|| read)
            }
        };
        let lines = logs.get(name).ok_or_else(|| format!("nothing is kept under {name}"))?;
        // One that began again after a crash stands behind what was there before.
        let last = lines.last().map(String::as_str).unwrap_or_default();
        let found = [lines.concat(), last.to_owned()]
            .into_iter()
            .map(String::into_bytes)
            .find(|text| is_it(text));
        found.ok_or_else(|| "it is not what was written".to_owned())
    }

    fn file(&self, path: &str) -> Result<Vec<u8>, String> {
        if !is_inside(path) {
            return Err(format!("{path} is outside of the state folder"));
        }
        let mut bytes = Vec::new();
        File::open(self.state.join(path))
            .and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes))
            .map_err(|error| format!("{path} cannot be read: {error}"))?;
        if bytes.len() as u64 > LARGEST {
            return Err(format!("{path} is longer than {LARGEST} bytes"));
        }
        Ok(bytes)
    }
}

/// The texts in a log, by name. A line that is none is passed over: a crash may have cut the last.
fn lines(bytes: &[u8]) -> BTreeMap<String, Vec<String>> {
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

/// Where the prompt of a transcript is kept: beside it, with the same number if its name was taken.
pub(super) fn prompt_of(transcript: &str) -> Vec<String> {
    let mut places = vec![format!("{transcript}.prompt")];
    if let Some((name, number)) = transcript.rsplit_once('-')
        && number.parse::<u32>().is_ok()
    {
        places.insert(0, format!("{name}.prompt-{number}"));
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_stand_beside_their_transcripts() {
        assert_eq!(prompt_of("t/r/qa_1.1"), ["t/r/qa_1.1.prompt"]);
        assert_eq!(prompt_of("t/r/qa_1.1-2"), ["t/r/qa_1.1.prompt-2", "t/r/qa_1.1-2.prompt"]);
        assert_eq!(prompt_of("t/r/log.jsonl#qa#1.1"), ["t/r/log.jsonl#qa#1.1.prompt"]);
    }

    #[test]
    fn what_was_changed_or_leads_out_is_not_copied() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("t")).unwrap();
        std::fs::write(folder.path().join("t/a"), "said").unwrap();
        std::fs::write(
            folder.path().join("t/log.jsonl"),
            "{\"name\":\"a#1\",\"text\":\"one\"}\ncut off {\n{\"name\":\"a#1\",\"text\":\"two\"}\n",
        )
        .unwrap();
        let shelf = Shelf::new(folder.path());
        let hash = |text: &str| digest(text.as_bytes());
        assert_eq!(shelf.read("t/a", Some(&hash("said"))), Ok(b"said".to_vec()));
        assert_eq!(
            shelf.read("t/a", Some(&hash("other"))),
            Err("it is not what was written".to_owned())
        );
        for text in ["two", "onetwo"] {
            assert_eq!(
                shelf.read("t/log.jsonl#a#1", Some(&hash(text))),
                Ok(text.as_bytes().to_vec())
            );
        }
        assert!(shelf.read("t/log.jsonl#a#1", Some(&hash("one"))).is_err());
        assert!(shelf.read("../a", None).unwrap_err().contains("outside"));
        assert!(shelf.read("t/none", None).unwrap_err().contains("cannot be read"));
    }
}
