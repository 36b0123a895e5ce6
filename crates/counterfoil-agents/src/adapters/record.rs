//! The record that a program keeps of a conversation: a file to which it adds lines after each request to
//! its model. It tells what was used while the program works, and after it was killed.

use crate::line_buffer::LineBuffer;
use rustix::fs::{Mode, OFlags};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The most bytes of a record that are read at once.
const MAX_READ_BYTES: u64 = 64 << 20;

/// The most requests of a conversation that are remembered.
const MAX_REQUESTS: usize = 1 << 20;

/// What a program needs to find its record of a conversation.
#[derive(Clone, Copy)]
pub struct RecordPlace<'p> {
    /// The id of the conversation. It has only letters, digits, `-` and `_`.
    pub conversation: &'p str,
    /// The private folder for temporary files of the attempt.
    pub scratch: &'p Path,
    /// Looks up an environment variable.
    pub env: &'p dyn Fn(&str) -> Option<OsString>,
}

/// Reads the lines of a record.
pub trait RecordParser: Send {
    /// Reads a line without its line ending.
    fn on_line(&mut self, line: &[u8]);

    /// What the conversation has used so far, by model.
    fn used_by_model(&self) -> BTreeMap<String, RecordedTokens>;

    /// What the conversation has used so far.
    fn used(&self) -> RecordedTokens {
        self.used_by_model().into_values().fold(RecordedTokens::default(), RecordedTokens::plus)
    }

    /// Whether a tool has been called, so that the model will be asked again. The tools that take a
    /// result do not count.
    fn calls_tools(&self) -> bool;

    /// Whether a tool call may have no result yet that the program's events do not tell of. Is asked
    /// after an accepted submission: a record without the result of one is behind.
    fn has_open_calls(&self) -> bool {
        false
    }
}

/// The tokens of a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordedTokens {
    /// Input tokens, including those read from a cache.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// The input tokens that were read from a cache.
    pub cached: u64,
    /// The input tokens that were written to a cache.
    pub written: u64,
}

impl RecordedTokens {
    /// The sum of input and output.
    pub fn all(self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// The sum of two readings.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cached: self.cached.saturating_add(other.cached),
            written: self.written.saturating_add(other.written),
        }
    }

    /// What was used since an earlier reading.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            input: self.input.saturating_sub(before.input),
            output: self.output.saturating_sub(before.output),
            cached: self.cached.saturating_sub(before.cached),
            written: self.written.saturating_sub(before.written),
        }
    }
}

/// The tokens of requests by their ids, each with its model. A request that is recorded again
/// replaces the one before.
#[derive(Debug, Default)]
pub(super) struct Requests(HashMap<String, (String, RecordedTokens)>);

impl Requests {
    pub(super) fn insert(&mut self, id: String, model: String, tokens: RecordedTokens) {
        if self.0.len() < MAX_REQUESTS || self.0.contains_key(&id) {
            self.0.insert(id, (model, tokens));
        }
    }

    pub(super) fn by_model(&self) -> BTreeMap<String, RecordedTokens> {
        let mut sums: BTreeMap<String, RecordedTokens> = BTreeMap::new();
        for (model, tokens) in self.0.values() {
            let sum = sums.entry(model.clone()).or_default();
            *sum = sum.plus(*tokens);
        }
        sums
    }
}

/// Follows the files of a record while they grow.
pub(crate) struct RecordReader {
    parser: Box<dyn RecordParser>,
    files: HashMap<PathBuf, Followed>,
}

#[derive(Default)]
struct Followed {
    offset: u64,
    lines: LineBuffer,
}

impl RecordReader {
    pub(crate) fn new(parser: Box<dyn RecordParser>) -> Self {
        Self { parser, files: HashMap::new() }
    }

    /// What was read so far.
    pub(crate) fn record(&self) -> &dyn RecordParser {
        &*self.parser
    }

    /// Reads what was added to these files. What cannot be read is not counted.
    pub(crate) fn read(&mut self, paths: impl IntoIterator<Item = PathBuf>) -> &dyn RecordParser {
        let paths: HashSet<PathBuf> = paths.into_iter().collect();
        for path in paths {
            let followed = self.files.entry(path.clone()).or_default();
            let parser = &mut self.parser;
            let Some(added) = read_from(&path, followed.offset) else { continue };
            followed.offset += added.len() as u64;
            followed.lines.push(&added, |line| parser.on_line(line));
        }
        &*self.parser
    }
}

/// The bytes of a regular file from an offset on.
fn read_from(path: &Path, offset: u64) -> Option<Vec<u8>> {
    // NONBLOCK: opening a pipe would block.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    let meta = file.metadata().ok()?;
    if !meta.is_file() || meta.len() <= offset {
        return None;
    }
    file.seek(SeekFrom::Start(offset)).ok()?;
    let mut added = Vec::new();
    file.take(MAX_READ_BYTES).read_to_end(&mut added).ok()?;
    Some(added)
}

/// Whether a conversation id can be a part of a file name.
pub(crate) fn is_plain(id: &str) -> bool {
    !id.is_empty()
        && id.len() <= 128
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

/// The entries of a folder, the last by name first. At most as many as are asked for.
pub(super) fn newest_entries(folder: &Path, most: usize) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort_unstable_by(|one, other| other.cmp(one));
    paths.truncate(most);
    paths
}

/// A folder that a variable names, or one in the home.
pub(crate) fn folder_of(
    env: &dyn Fn(&str) -> Option<OsString>,
    variable: &str,
    in_home: &str,
) -> Option<PathBuf> {
    let set = |name: &str| env(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set(variable).or_else(|| Some(set("HOME")?.join(in_home)))
}
