//! Extracts claims from a result: from a field path and a value to paths, words, numbers and
//! locations. Pure.

use super::claimed_counts::{ClaimedCounts, ClaimedNumber, stated_status};
use super::stated::claim_from_word;
use counterfoil_contract::Contract;
use counterfoil_contract::claim::{ClaimKind, EffectiveClaim};
use counterfoil_contract::nothing::is_empty_throughout;
use serde_json::{Map, Value};
use strum::IntoStaticStr;

/// A value in the field of a claim cannot be interpreted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExtractError {
    /// An object in a list names no file.
    #[error("an object in the list names no file; expected one of the keys {}", FILE_KEYS.join(", "))]
    NoFile,
    /// This value is not a path.
    #[error("{0} is not a path")]
    NotPath(String),
    /// This value is not a location in a file.
    #[error("{0} is not a location in a file")]
    NotLocation(String),
    /// This value is not a string.
    #[error("{0} is not a string")]
    NotString(String),
    /// The value is not a number.
    #[error("it is not a number")]
    NotNumber,
    /// The claim does not say what the number counts.
    #[error("the claim does not say what is counted: add `of` or `figure`")]
    NothingCounted,
    /// The value of a claim about a command says neither that it succeeds nor that it fails.
    #[error("the value does not say whether it passed; say `pass`, `fail` or `not-run`")]
    UnclearOutcome,
    /// This text is not a command.
    #[error("{0:?} is neither `cmd: …` nor `manual: …`")]
    NotCommand(String),
    /// The claim's `when` expression does not compile.
    #[error("the claim's `when` is not valid: {0}")]
    InvalidCondition(String),
    /// The claim's `when` expression has no value for the result.
    #[error("the claim's `when` cannot be evaluated for this result: {0}")]
    ConditionFailed(String),
    /// The engine makes claims of this kind itself.
    #[error("the engine makes this claim itself")]
    EngineClaim,
}

/// A value at a claim's field.
#[derive(Clone, Debug)]
pub(super) struct FieldValue<'a> {
    /// The path to the value.
    pub(super) tokens: Vec<String>,
    /// The value; never null.
    pub(super) value: &'a Value,
    /// The object that contains the value.
    pub(super) parent: Option<&'a Map<String, Value>>,
}

/// The values at a field path such as `findings/*/file`. None if the result has no value there; an
/// empty list if it has an empty list there.
pub(super) fn field_values<'a>(path: &str, value: &'a Value) -> Option<Vec<FieldValue<'a>>> {
    let mut found = vec![FieldValue { tokens: Vec::new(), value, parent: None }];
    let mut stated = true;
    for token in path.split(['/', '.']).filter(|token| !token.is_empty()) {
        let token = token.replace("~1", "/").replace("~0", "~");
        let mut next = Vec::new();
        stated = false;
        for found in found {
            let step = |token: String, value: &'a Value| {
                let mut tokens = found.tokens.clone();
                tokens.push(token);
                FieldValue { tokens, value, parent: found.value.as_object().or(found.parent) }
            };
            match found.value {
                Value::Array(items) if token == "*" => {
                    stated = true;
                    next.extend(
                        items.iter().enumerate().map(|(index, item)| step(index.to_string(), item)),
                    );
                }
                Value::Object(members) if token == "*" && !members.contains_key("*") => {
                    stated = true;
                    next.extend(members.iter().map(|(key, member)| step(key.clone(), member)));
                }
                Value::Array(items) => {
                    let item = token.parse::<usize>().ok().and_then(|index| items.get(index));
                    next.extend(item.map(|item| step(token.clone(), item)));
                }
                Value::Object(members) => {
                    next.extend(members.get(&token).map(|member| step(token.clone(), member)));
                }
                _ => {}
            }
        }
        next.retain(|found| !found.value.is_null());
        stated |= !next.is_empty();
        found = next;
    }
    stated.then_some(found)
}

/// Replaces the `*` that a pattern shares with a path: `/tasks/*/files` for a commit at
/// `/tasks/3/commit` becomes `/tasks/3/files`.
pub(super) fn bind_pattern(pattern: &str, tokens: &[String]) -> String {
    let mut shared = true;
    let mut bound = String::new();
    for (index, token) in pattern.split(['/', '.']).filter(|token| !token.is_empty()).enumerate() {
        bound.push('/');
        let here = tokens.get(index).map(String::as_str);
        match here {
            Some(here) if shared && token == "*" => bound.push_str(here),
            _ => {
                shared &= here == Some(token);
                bound.push_str(token);
            }
        }
    }
    bound
}

/// How a result claims that a file changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub(super) enum ClaimedChange {
    Added,
    Modified,
    Deleted,
    Renamed,
    /// The file changed in any way.
    Changed,
}

impl ClaimedChange {
    pub(super) fn name(self) -> &'static str {
        self.into()
    }

    fn from_word(word: &str) -> Option<Self> {
        Some(match word.to_ascii_lowercase().as_str() {
            "added" | "add" | "created" | "create" | "new" | "a" => Self::Added,
            "modified" | "modify" | "edited" | "updated" | "update" | "changed" | "m" => {
                Self::Modified
            }
            "deleted" | "delete" | "removed" | "remove" | "d" => Self::Deleted,
            "renamed" | "rename" | "moved" | "move" | "r" => Self::Renamed,
            _ => return None,
        })
    }
}

/// A file that a result names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedFile {
    /// Its path as the result writes it.
    pub(super) path: String,
    /// The change that the result states for this file itself, if it does.
    pub(super) change: Option<ClaimedChange>,
    /// Its old path.
    pub(super) from: Option<String>,
}

/// The keys under which an object names its file.
const FILE_KEYS: [&str; 7] =
    ["file_path", "path", "file", "to", "new_path", "filename", "file_name"];
const FROM_KEYS: [&str; 4] = ["old_path", "from", "previous_path", "old_file_path"];
const CHANGE_KEYS: [&str; 5] = ["change_type", "change", "action", "status", "kind"];

/// The file that an object names.
pub(super) fn file_in_object(object: &Map<String, Value>) -> Option<&str> {
    text_at(object, &FILE_KEYS)
}

fn text_at<'a>(object: &'a Map<String, Value>, keys: &[&str]) -> Option<&'a str> {
    keys.iter().find_map(|key| object.get(*key)?.as_str())
}

/// The files that a field names: strings or objects, one or a list of them.
pub(super) fn files(found: &[FieldValue<'_>]) -> Result<Vec<NamedFile>, ExtractError> {
    let mut files = Vec::new();
    for found in found {
        match found.value {
            Value::Array(items) => {
                for item in items.iter().filter(|item| !item.is_null()) {
                    files.push(named_file(item, None)?);
                }
            }
            one => files.push(named_file(one, found.parent)?),
        }
    }
    Ok(files)
}

fn named_file(
    value: &Value,
    parent: Option<&Map<String, Value>>,
) -> Result<NamedFile, ExtractError> {
    match value {
        Value::String(path) => {
            // A field such as `files_moved/*/to` has the old path in the same object.
            let from =
                parent.and_then(|parent| text_at(parent, &FROM_KEYS)).filter(|from| from != path);
            Ok(NamedFile { path: path.clone(), change: None, from: from.map(str::to_owned) })
        }
        Value::Object(object) => {
            let path = file_in_object(object).ok_or(ExtractError::NoFile)?;
            let change = text_at(object, &CHANGE_KEYS).and_then(ClaimedChange::from_word);
            let from = text_at(object, &FROM_KEYS).map(str::to_owned);
            Ok(NamedFile { path: path.to_owned(), change, from })
        }
        other => Err(ExtractError::NotPath(other.to_string())),
    }
}

/// What a result claims about a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommandClaim {
    /// The command succeeds.
    Succeeds,
    /// The command fails.
    Fails,
    /// Its counts are stated, and not whether it succeeds.
    Counts,
    /// Nothing is said about it: it was not run, or the value is empty.
    Unstated,
    /// Something is said about it that is not understood.
    Unclear,
}

/// The claim that a value makes about a command.
pub(super) fn command_claim(value: &Value) -> CommandClaim {
    match value {
        Value::Null => CommandClaim::Unstated,
        Value::Bool(true) => CommandClaim::Succeeds,
        Value::Bool(false) => CommandClaim::Fails,
        Value::Number(_) => CommandClaim::Unclear,
        Value::String(word) => claim_from_word(word),
        Value::Array(items) => combine_claims(items.iter().map(command_claim)),
        Value::Object(object) => {
            let counts = ClaimedCounts::of(value);
            match stated_status(object) {
                Some(CommandClaim::Unstated | CommandClaim::Unclear)
                    if counts.say_that_tests_ran() =>
                {
                    CommandClaim::Counts
                }
                Some(claim) => claim,
                None if counts.is_empty() && !is_empty_throughout(value) => CommandClaim::Unclear,
                None => counts.command_claim(),
            }
        }
    }
}

/// The claim that several values make together: one failure is enough.
pub(super) fn combine_claims(claims: impl Iterator<Item = CommandClaim>) -> CommandClaim {
    let combined = claims.reduce(|all, one| match (all, one) {
        (CommandClaim::Fails, _) | (_, CommandClaim::Fails) => CommandClaim::Fails,
        (CommandClaim::Unclear, _) | (_, CommandClaim::Unclear) => CommandClaim::Unclear,
        (CommandClaim::Unstated, _) | (_, CommandClaim::Unstated) => CommandClaim::Unstated,
        (CommandClaim::Succeeds, _) | (_, CommandClaim::Succeeds) => CommandClaim::Succeeds,
        (CommandClaim::Counts, CommandClaim::Counts) => CommandClaim::Counts,
    });
    combined.unwrap_or(CommandClaim::Unstated)
}

/// A command in a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FieldCommand {
    /// A command line to run.
    Shell(String),
    /// A task for a person.
    Manual(String),
    /// Neither of them.
    Unknown(String),
}

/// The commands in a field, without duplicates.
pub(super) fn commands(found: &[FieldValue<'_>]) -> Vec<FieldCommand> {
    let mut seen = std::collections::HashSet::new();
    let mut commands = Vec::new();
    let texts = found.iter().flat_map(|found| match found.value {
        Value::Array(items) => items.iter().collect::<Vec<_>>(),
        one => vec![one],
    });
    for value in texts.filter(|value| !value.is_null()) {
        let text = value.as_str().map_or_else(|| value.to_string(), |text| text.trim().to_owned());
        if !seen.insert(text.clone()) {
            continue;
        }
        let after =
            |prefix: &str| text.strip_prefix(prefix).map(str::trim).filter(|rest| !rest.is_empty());
        commands.push(match (after("cmd:"), after("manual:")) {
            (Some(line), _) => FieldCommand::Shell(line.to_owned()),
            (_, Some(ask)) => FieldCommand::Manual(ask.to_owned()),
            _ => FieldCommand::Unknown(text.clone()),
        });
    }
    commands
}

/// A finding that a result reports as fixed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ClaimedFix {
    pub(super) id: Option<String>,
    pub(super) file: Option<String>,
}

/// The findings that a field reports as fixed.
pub(super) fn fixes(found: &[FieldValue<'_>]) -> Vec<ClaimedFix> {
    let mut fixes = Vec::new();
    for found in found {
        match found.value {
            Value::Array(items) => {
                fixes.extend(items.iter().filter_map(Value::as_object).filter_map(fix_from_object));
            }
            Value::Object(object) => fixes.extend(fix_from_object(object)),
            // The field is the outcome itself, and the id is in the same object.
            word if is_fixed(word) => fixes.extend(found.parent.map(identify)),
            _ => {}
        }
    }
    fixes
}

fn fix_from_object(object: &Map<String, Value>) -> Option<ClaimedFix> {
    let word = ["outcome", "status", "result", "resolution", "fixed"]
        .iter()
        .find_map(|key| object.get(*key))?;
    is_fixed(word).then(|| identify(object))
}

fn is_fixed(word: &Value) -> bool {
    match word {
        Value::String(word) => matches!(word.to_ascii_lowercase().as_str(), "fixed" | "resolved"),
        other => *other == Value::Bool(true),
    }
}

fn identify(object: &Map<String, Value>) -> ClaimedFix {
    let id =
        ["id", "finding_id", "finding"].iter().find_map(|key| object.get(*key)).and_then(id_text);
    ClaimedFix { id, file: file_in_object(object).map(str::to_owned) }
}

/// An id as text, whether it is written as a string or as a number.
pub(super) fn id_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The strings in a field, one or a list, with their paths.
pub(super) fn strings(
    found: &[FieldValue<'_>],
) -> Result<Vec<(Vec<String>, String)>, ExtractError> {
    let mut strings = Vec::new();
    for found in found {
        let items = match found.value {
            Value::Array(items) => items.as_slice(),
            one => std::slice::from_ref(one),
        };
        for item in items.iter().filter(|item| !item.is_null()) {
            let text = item.as_str().ok_or_else(|| ExtractError::NotString(item.to_string()))?;
            strings.push((found.tokens.clone(), text.to_owned()));
        }
    }
    Ok(strings)
}

/// Whether a result makes a claim. Returns `Ok(true)` if it does and `Ok(false)` if it leaves the
/// claim out. Nothing is verified.
///
/// # Errors
///
/// The value in the claim's field cannot be interpreted.
pub fn makes_claim(
    effective: &EffectiveClaim,
    contract: &Contract,
    value: &Value,
) -> Result<bool, ExtractError> {
    let Some(found) = field_values(&effective.field, value) else { return Ok(false) };
    match effective.claim.kind {
        ClaimKind::FilesModified
        | ClaimKind::FilesAdded
        | ClaimKind::FilesDeleted
        | ClaimKind::FilesRenamed
        | ClaimKind::FilesChanged
        | ClaimKind::Artifact => files(&found).map(|_| true),
        ClaimKind::Location => {
            super::parse_location::locations(&found).map(|locations| !locations.is_empty())
        }
        ClaimKind::Commit => strings(&found).map(|commits| !commits.is_empty()),
        ClaimKind::Fixed => Ok(!fixes(&found).is_empty()),
        ClaimKind::Commands => {
            match commands(&found).into_iter().find_map(|command| match command {
                FieldCommand::Unknown(text) => Some(text),
                _ => None,
            }) {
                Some(text) => Err(ExtractError::NotCommand(text)),
                None => Ok(true),
            }
        }
        // A value that is not understood is a claim as well.
        ClaimKind::Command => super::command::resolve_claim(effective, contract, value, &found)
            .map(|claim| claim != CommandClaim::Unstated),
        ClaimKind::Count => {
            let counts = found.iter().all(|found| ClaimedNumber::from_value(found.value).is_some());
            let counted = effective.claim.of.is_some() || effective.claim.figure.is_some();
            match (counts, counted) {
                (true, true) => Ok(!found.is_empty()),
                (false, _) => Err(ExtractError::NotNumber),
                (true, false) => Err(ExtractError::NothingCounted),
            }
        }
        ClaimKind::Complete if effective.field.is_empty() => Ok(true),
        ClaimKind::Complete => super::command::resolve_claim(effective, contract, value, &found)
            .map(|claim| claim == CommandClaim::Succeeds),
        ClaimKind::Protected | ClaimKind::TestsKept => Err(ExtractError::EngineClaim),
    }
}
