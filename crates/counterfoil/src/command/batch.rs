//! The command `counterfoil check --batch`: one text per line in, one result per line out, in
//! order. Each result is written before the next line is read, so that a program can ask and wait
//! for the answer.

use crate::cli::CheckArgs;
use crate::exit::Exit;
use crate::report::check::{BatchError, BatchInput, BatchOutput};
use crate::{input, output, project, unique_keys};
use anyhow::{Context, Result, bail};
use counterfoil_contract::policy::Coerce;
use counterfoil_contract::text::{display_path, escape_control, pluralize};
use counterfoil_contract::{Contract, Framing, Policy, Registry, Report, ResolveError, Status};
use serde_json::Value;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The registry, and the contracts compiled from schemas.
struct Contracts {
    registry: Registry,
    /// The same with the contracts of the project, if it has any. They are read for the first line
    /// that names a contract which the registry does not have.
    with_own: OnceCell<Result<Option<Registry>, String>>,
    schemas: HashMap<String, Arc<Contract>>,
    /// The contract of lines that name neither a contract nor a schema.
    default: Option<Arc<Contract>>,
}

/// One input of a batch.
struct Batch {
    reader: Box<dyn BufRead>,
    /// Its name, if there are several.
    file: Option<String>,
}

/// Why no more lines of an input are answered.
enum End {
    /// There are no more.
    Over,
    /// The input cannot be read on.
    Unreadable(anyhow::Error),
    /// Nobody reads the answers.
    Unread,
}

/// How many lines had which result.
#[derive(Default)]
struct Summary {
    accepted: usize,
    rejected: usize,
    absent: usize,
    errors: usize,
    /// The inputs that could not be read, or not to their end.
    unreadable: usize,
}

impl Summary {
    fn lines(&self) -> usize {
        self.accepted + self.rejected + self.absent + self.errors
    }

    /// A batch without a line is not a batch: whatever should have written it did not.
    fn exit(&self) -> Exit {
        match self {
            _ if self.unreadable > 0 => Exit::Usage,
            _ if self.errors > 0 || self.lines() == 0 => Exit::Malformed,
            _ => (self.rejected + self.absent == 0).into(),
        }
    }

    fn text(&self) -> String {
        if self.lines() == 0 && self.unreadable > 0 {
            // The errors about the inputs say all.
            return String::new();
        }
        if self.lines() == 0 {
            return "error: the batch is empty; write one JSON object per line, such as \
                    {\"id\": 1, \"contract\": \"ID\", \"text\": \"…\"}\n"
                .to_owned();
        }
        let lines = pluralize(self.lines(), "line");
        let Self { accepted, rejected, absent, errors, unreadable } = self;
        let unread = match unreadable {
            0 => String::new(),
            count => format!("; {} could not be read", pluralize(*count, "input")),
        };
        format!(
            "{lines}: {accepted} accepted, {rejected} rejected, {absent} absent, {errors} not understood{unread}\n"
        )
    }
}

/// How much of a line that is too long is searched for its id.
const MAX_BEGIN: usize = 64 << 10;
/// The most compiled schemas in the cache. A batch with more different ones compiles some again.
const MAX_CACHED_SCHEMAS: usize = 256;

pub(crate) fn run(args: &CheckArgs, paths: &[PathBuf]) -> Result<Exit> {
    let mut contracts = Contracts {
        registry: input::registry(&args.contracts)?,
        with_own: OnceCell::new(),
        schemas: HashMap::new(),
        default: super::check::named_contract(args)?,
    };
    let mut out = output::json_stdout().buffered();
    let mut summary = Summary::default();
    for path in paths {
        let file = (paths.len() > 1).then(|| path.to_string_lossy().into_owned());
        // Each input is opened when it is its turn: it may be a pipe that is written by then.
        let end = match open(path) {
            Ok(reader) => {
                let batch = Batch { reader, file };
                answer_lines(batch, args, &mut contracts, &mut out, &mut summary)?
            }
            Err(error) => End::Unreadable(error),
        };
        match end {
            End::Over => {}
            End::Unreadable(error) => {
                // The other inputs are checked, too.
                summary.unreadable += 1;
                output::write_error(&error);
            }
            End::Unread => {
                let read = pluralize(summary.lines(), "answer");
                output::write_message("error", &format!("nobody reads the answers after {read}"));
                // Lines that were not answered are not accepted.
                return Ok(match summary.exit() {
                    Exit::Success => Exit::Failure,
                    other => other,
                });
            }
        }
    }
    output::write_stderr(&summary.text());
    Ok(summary.exit())
}

fn open(path: &Path) -> Result<Box<dyn BufRead>> {
    if path.as_os_str() == "-" {
        input::announce_terminal("one JSON object per line");
        return Ok(Box::new(BufReader::new(std::io::stdin())));
    }
    if path.is_dir() {
        bail!("{} is a folder; pass a file with one JSON object per line", display_path(path));
    }
    let file =
        std::fs::File::open(path).with_context(|| format!("cannot open {}", display_path(path)))?;
    Ok(Box::new(BufReader::new(file)))
}

/// Answers the lines of one input.
fn answer_lines(
    Batch { mut reader, file }: Batch,
    args: &CheckArgs,
    contracts: &mut Contracts,
    out: &mut impl Write,
    summary: &mut Summary,
) -> Result<End> {
    // JSON can need six bytes for one byte of the text, and the line has other fields.
    let max_bytes = args
        .attempt
        .apply_limits(&Policy::default())
        .max_bytes
        .saturating_mul(6)
        .saturating_add(1 << 20);
    for number in 1.. {
        let (bytes, is_cut) = match next_line(&mut *reader, max_bytes) {
            Ok(Some(line)) => line,
            Ok(None) => break,
            Err(error) => {
                let name = file.as_deref().map(|file| format!("{}: ", escape_control(file)));
                let name = name.unwrap_or_default();
                let what = format!("{name}cannot read line {number} of the batch");
                return Ok(End::Unreadable(anyhow::Error::new(error).context(what)));
            }
        };
        if bytes.trim_ascii().is_empty() && !is_cut {
            continue;
        }
        let result = if is_cut {
            let begin = &bytes[..bytes.len().min(MAX_BEGIN)];
            let why = format!("the line is larger than the limit of {max_bytes} bytes");
            Err((id_of(begin).unwrap_or_default(), why))
        } else {
            check_line(&bytes, args, contracts)
        };
        let text = match &result {
            Ok((id, report)) => serde_json::to_string(&BatchOutput::Checked { id, report })?,
            Err((id, message)) => serde_json::to_string(&BatchOutput::NotUnderstood {
                id,
                status: BatchError::Error,
                file: file.as_deref(),
                line: number,
                message,
            })?,
        };
        let written = writeln!(out, "{text}").and_then(|()| out.flush());
        if written.as_ref().is_err_and(|error| error.kind() == ErrorKind::BrokenPipe) {
            return Ok(End::Unread);
        }
        written.context("cannot write the results")?;
        *match result.map(|(_, report)| report.status) {
            Ok(Status::Accepted) => &mut summary.accepted,
            Ok(Status::Rejected) => &mut summary.rejected,
            Ok(Status::Absent) => &mut summary.absent,
            Err(_) => &mut summary.errors,
        } += 1;
    }
    Ok(End::Over)
}

/// The next line without its line feed, and whether it is only the beginning of one that is longer than
/// the limit. The rest of such a line is passed over. None at the end.
fn next_line(
    reader: &mut dyn BufRead,
    max_bytes: usize,
) -> std::io::Result<Option<(Vec<u8>, bool)>> {
    let mut bytes = Vec::new();
    // One byte more, for the line feed.
    let limit = u64::try_from(max_bytes).unwrap_or(u64::MAX).saturating_add(1);
    if Read::take(&mut *reader, limit).read_until(b'\n', &mut bytes)? == 0 {
        return Ok(None);
    }
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
        return Ok(Some((bytes, false)));
    }
    // Without a line feed it is the last line, or too long.
    let is_cut = bytes.len() > max_bytes;
    if is_cut {
        skip_line(reader)?;
    }
    Ok(Some((bytes, is_cut)))
}

fn skip_line(reader: &mut dyn BufRead) -> std::io::Result<()> {
    loop {
        let (used, done) = {
            let buffer = match reader.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            match buffer.iter().position(|byte| *byte == b'\n') {
                Some(at) => (at + 1, true),
                None => (buffer.len(), buffer.is_empty()),
            }
        };
        reader.consume(used);
        if done {
            return Ok(());
        }
    }
}

fn check_line(
    bytes: &[u8],
    args: &CheckArgs,
    contracts: &mut Contracts,
) -> Result<(Value, Report), (Value, String)> {
    // As at the beginning of any text, a byte order mark means nothing.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err((Value::Null, "the line is not a JSON object".to_owned()));
    }
    let line: BatchInput = serde_json::from_slice(bytes).map_err(|error| {
        // Report the id even if the rest of the line is invalid.
        let id = id_of(bytes).unwrap_or_default();
        (id, not_valid(&error))
    })?;
    let id = line.id.clone();
    let fail = |message: String| (id.clone(), message);
    let strict = line.strict.unwrap_or(false);
    let has_settings = line.framing.is_some()
        || line.repair.is_some()
        || line.truncated.is_some()
        || line.coerce.is_some();
    let contract = match (&line.contract, &line.schema) {
        (Some(name), None) => {
            if has_settings {
                return Err(fail(
                    "framing, repair, truncated and coerce can only be set with a schema; a contract has its own"
                        .into(),
                ));
            }
            contracts.by_id(name, &args.contracts).map_err(fail)?
        }
        (None, Some(schema)) => {
            unique_keys::check(bytes).map_err(|error| fail(not_valid(&error)))?;
            contracts.by_schema(&line, schema).map_err(fail)?
        }
        (None, None) if has_settings => {
            return Err(fail(
                "framing, repair, truncated and coerce can only be set with a schema on the same line"
                    .into(),
            ));
        }
        (None, None) => contracts.default.clone().ok_or_else(|| {
            fail("the line names no contract; name one with \"contract\" or \"schema\", or with --contract for all lines".into())
        })?,
        (Some(_), Some(_)) => {
            return Err(fail("a line can have a contract or a schema, not both".into()));
        }
    };
    let mut policy = args.attempt.apply_limits(contract.policy());
    if strict {
        policy = policy.strictly();
    }
    let report = contract.check_with(&line.text, &policy);
    Ok((line.id, report))
}

/// The first id of a line that is not understood, as far as the line can be read up to it.
fn id_of(line: &[u8]) -> Option<Value> {
    let text = String::from_utf8_lossy(line);
    let mut rest = text.trim_start().strip_prefix('{')?;
    loop {
        let key = string_at(rest.trim_start())?;
        rest = rest.trim_start()[key.len()..].trim_start().strip_prefix(':')?.trim_start();
        if serde_json::from_str::<String>(key).is_ok_and(|key| key == "id") {
            let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
            return values.next()?.ok();
        }
        // Strings are passed over without reading their escapes, which may be wrong.
        let mut depth = 0_usize;
        loop {
            let next = rest.chars().next()?;
            match next {
                '"' => {
                    rest = &rest[string_at(rest)?.len()..];
                    continue;
                }
                '{' | '[' => depth += 1,
                '}' | ']' => depth = depth.checked_sub(1)?,
                ',' if depth == 0 => break,
                _ => {}
            }
            rest = &rest[next.len_utf8()..];
        }
        rest = &rest[1..];
    }
}

/// The string of JSON at the beginning of a text, with its quotes.
fn string_at(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('"')?;
    let mut escaped = false;
    for (at, byte) in inner.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(&text[..at + 2]),
            _ => {}
        }
    }
    None
}

/// What is wrong with a line. The line is named beside the message.
fn not_valid(error: &serde_json::Error) -> String {
    let error = error.to_string().replace(" at line 1 column ", " at column ");
    format!("the line is not valid: {error}")
}

impl Contracts {
    /// A contract of the registry, or else one of the project.
    fn by_id(&self, name: &str, folders: &[PathBuf]) -> Result<Arc<Contract>, String> {
        let unknown = match self.registry.get(name) {
            Err(ResolveError::NotFound(error)) => error,
            found => return found.map_err(|error| error.to_string()),
        };
        let with_own = self.with_own.get_or_init(|| {
            let home = project::current_config_folder();
            let all = project::with_own_contracts(folders, home.as_deref());
            let registry = all.map(|all| input::registry(&all)).transpose();
            registry.map_err(|error| format!("{error:#}"))
        });
        match with_own {
            Ok(Some(registry)) => registry.get(name).map_err(|error| error.to_string()),
            Ok(None) => Err(unknown.to_string()),
            Err(why) => Err(why.clone()),
        }
    }

    fn by_schema(&mut self, line: &BatchInput, schema: &Value) -> Result<Arc<Contract>, String> {
        let policy = Policy {
            repair: line.repair.unwrap_or_default(),
            truncated: line.truncated.unwrap_or_default(),
            coerce: if line.coerce.unwrap_or(false) { Coerce::All } else { Coerce::None },
            ..Policy::default()
        };
        let framing = line.framing.unwrap_or(Framing::AnyJson);
        let key = format!(
            "{framing:?} {:?} {:?} {:?} {schema}",
            policy.repair, policy.truncated, policy.coerce
        );
        if let Some(contract) = self.schemas.get(&key) {
            return Ok(Arc::clone(contract));
        }
        let contract = Arc::new(
            Contract::from_schema(schema, framing, policy).map_err(|error| error.to_string())?,
        );
        if self.schemas.len() >= MAX_CACHED_SCHEMAS {
            self.schemas.clear();
        }
        self.schemas.insert(key, Arc::clone(&contract));
        Ok(contract)
    }
}
