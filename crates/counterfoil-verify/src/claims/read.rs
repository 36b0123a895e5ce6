//! What a result claims: from a field and a value to paths, words, numbers and places. Pure.

use counterfoil_contract::Contract;
use counterfoil_contract::claim::{ClaimKind, EffectiveClaim};
use serde_json::{Map, Value};

/// A value that a claim's field leads to.
#[derive(Clone, Debug)]
pub(super) struct Found<'a> {
    /// Where it stands.
    pub(super) tokens: Vec<String>,
    /// What stands there; never null.
    pub(super) value: &'a Value,
    /// The object it stands in.
    pub(super) parent: Option<&'a Map<String, Value>>,
}

/// Follows a field such as `findings/*/file`. None if the result says nothing there; an empty list
/// if it says that there is nothing.
pub(super) fn field<'a>(path: &str, value: &'a Value) -> Option<Vec<Found<'a>>> {
    let mut found = vec![Found { tokens: Vec::new(), value, parent: None }];
    let mut said = true;
    for token in path.split(['/', '.']).filter(|token| !token.is_empty()) {
        let token = token.replace("~1", "/").replace("~0", "~");
        let mut next = Vec::new();
        said = false;
        for place in found {
            let step = |token: String, value: &'a Value| {
                let mut tokens = place.tokens.clone();
                tokens.push(token);
                Found { tokens, value, parent: place.value.as_object().or(place.parent) }
            };
            match place.value {
                Value::Array(items) if token == "*" => {
                    said = true;
                    next.extend(
                        items.iter().enumerate().map(|(index, item)| step(index.to_string(), item)),
                    );
                }
                Value::Object(members) if token == "*" && !members.contains_key("*") => {
                    said = true;
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
        said |= !next.is_empty();
        found = next;
    }
    said.then_some(found)
}

/// A pattern with the `*` that it shares with a place filled in: `/tasks/*/files` for a commit at
/// `/tasks/3/commit` is `/tasks/3/files`.
pub(super) fn bound(pattern: &str, tokens: &[String]) -> String {
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

/// What a result says became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Told {
    Added,
    Modified,
    Deleted,
    Renamed,
    /// Changed in some way.
    Changed,
}

impl Told {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Modified => "modified",
            Self::Deleted => "deleted",
            Self::Renamed => "renamed",
            Self::Changed => "changed",
        }
    }

    fn of(word: &str) -> Option<Self> {
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
    /// Its path, as it is written.
    pub(super) path: String,
    /// What the result says became of it, if it says so itself.
    pub(super) told: Option<Told>,
    /// Where it was before.
    pub(super) from: Option<String>,
}

/// The keys under which an object names its file.
const FILE_KEYS: [&str; 7] =
    ["file_path", "path", "file", "to", "new_path", "filename", "file_name"];
const FROM_KEYS: [&str; 4] = ["old_path", "from", "previous_path", "old_file_path"];
const TOLD_KEYS: [&str; 5] = ["change_type", "change", "action", "status", "kind"];

/// The file that an object names.
pub(super) fn file_of(object: &Map<String, Value>) -> Option<&str> {
    text_at(object, &FILE_KEYS)
}

fn text_at<'a>(object: &'a Map<String, Value>, keys: &[&str]) -> Option<&'a str> {
    keys.iter().find_map(|key| object.get(*key)?.as_str())
}

/// The files that a field names: strings or objects, one or a list of them.
pub(super) fn files(found: &[Found<'_>]) -> Result<Vec<NamedFile>, String> {
    let mut files = Vec::new();
    for place in found {
        match place.value {
            Value::Array(items) => {
                for item in items.iter().filter(|item| !item.is_null()) {
                    files.push(named(item, None)?);
                }
            }
            one => files.push(named(one, place.parent)?),
        }
    }
    Ok(files)
}

fn named(value: &Value, parent: Option<&Map<String, Value>>) -> Result<NamedFile, String> {
    match value {
        Value::String(path) => {
            // A field such as `files_moved/*/to` stands beside where the file was.
            let from =
                parent.and_then(|parent| text_at(parent, &FROM_KEYS)).filter(|from| from != path);
            Ok(NamedFile { path: path.clone(), told: None, from: from.map(str::to_owned) })
        }
        Value::Object(object) => {
            let path = file_of(object).ok_or_else(|| {
                format!(
                    "an object of the list names no file; it would be under {}",
                    FILE_KEYS.join(", ")
                )
            })?;
            let told = text_at(object, &TOLD_KEYS).and_then(Told::of);
            let from = text_at(object, &FROM_KEYS).map(str::to_owned);
            Ok(NamedFile { path: path.to_owned(), told, from })
        }
        other => Err(format!("{other} is no path")),
    }
}

/// What a result says of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Says {
    /// It succeeds.
    Succeeds,
    /// It fails.
    Fails,
    /// Neither: it was not run, or the word is not known.
    Nothing,
}

/// What a value says by itself.
pub(super) fn says(value: &Value) -> Says {
    match value {
        Value::Bool(true) => Says::Succeeds,
        Value::Bool(false) => Says::Fails,
        Value::String(word) => word_says(word),
        Value::Object(object) => {
            for key in ["status", "result", "outcome", "success", "ok", "passed", "passing"] {
                match object.get(key) {
                    Some(Value::String(word)) => return word_says(word),
                    Some(Value::Bool(good)) => return says(&Value::Bool(*good)),
                    _ => {}
                }
            }
            let figures = told_figures(value);
            match (figures.failed, figures.passed, figures.total) {
                (Some(0), passed, total) if passed == Some(0) || total == Some(0) => Says::Nothing,
                (Some(0), ..) => Says::Succeeds,
                (Some(_), ..) => Says::Fails,
                (None, Some(passed), Some(total)) if total > 0 => {
                    let all = passed + figures.skipped.unwrap_or(0) >= total;
                    if all { Says::Succeeds } else { Says::Fails }
                }
                _ => Says::Nothing,
            }
        }
        _ => Says::Nothing,
    }
}

fn word_says(word: &str) -> Says {
    let word: String = word
        .trim()
        .chars()
        .map(|c| if matches!(c, '_' | ' ') { '-' } else { c.to_ascii_lowercase() })
        .collect();
    match word.as_str() {
        "pass" | "passed" | "passes" | "passing" | "all-pass" | "all-passed" | "all-passing"
        | "success" | "succeeded" | "successful" | "ok" | "okay" | "green" | "good" | "clean"
        | "true" | "yes" | "valid" => Says::Succeeds,
        "fail" | "failed" | "fails" | "failing" | "failure" | "some-fail" | "some-failed"
        | "some-failing" | "all-fail" | "all-failed" | "error" | "errors" | "red" | "broken"
        | "false" | "no" | "invalid" => Says::Fails,
        _ => Says::Nothing,
    }
}

/// The figures that a value gives: by itself, or under `details`, `counts` or `figures`.
pub(super) fn told_figures(value: &Value) -> super::Figures {
    let Some(object) = value.as_object() else { return super::Figures::default() };
    let nested = ["details", "counts", "figures", "tests"]
        .iter()
        .filter_map(|key| object.get(*key).and_then(Value::as_object));
    for object in std::iter::once(object).chain(nested) {
        let figure = |keys: &[&str]| keys.iter().find_map(|key| object.get(*key).and_then(number));
        let figures = super::Figures {
            total: figure(&["total", "tests_total"]),
            passed: figure(&["passed", "tests_passed"]),
            failed: figure(&["failed", "tests_failed", "failures"]),
            skipped: figure(&["skipped", "tests_skipped", "ignored"]),
        };
        if figures != super::Figures::default() {
            return figures;
        }
    }
    super::Figures::default()
}

/// A count: a number, a number as text, or as many as a list has.
pub(super) fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Array(items) => u64::try_from(items.len()).ok(),
        Value::String(text) => text.trim().parse().ok(),
        Value::Number(number) => number.as_u64().or_else(|| {
            // 3.0 counts three things, 3.5 none.
            let number = number.as_f64()?;
            let whole = number.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&number);
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Just checked.
            whole.then_some(number as u64)
        }),
        _ => None,
    }
}

/// A command that a field holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HeldCommand {
    /// To be run.
    Line(String),
    /// To be asked of a person.
    Manual(String),
    /// Neither.
    Unknown(String),
}

/// The commands that a field holds, each once.
pub(super) fn commands(found: &[Found<'_>]) -> Vec<HeldCommand> {
    let mut seen = std::collections::HashSet::new();
    let mut commands = Vec::new();
    let texts = found.iter().flat_map(|place| match place.value {
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
            (Some(line), _) => HeldCommand::Line(line.to_owned()),
            (_, Some(ask)) => HeldCommand::Manual(ask.to_owned()),
            _ => HeldCommand::Unknown(text.clone()),
        });
    }
    commands
}

/// What became of a finding, by a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedFix {
    pub(super) id: Option<String>,
    pub(super) file: Option<String>,
}

/// The outcomes of a field that say fixed.
pub(super) fn fixes(found: &[Found<'_>]) -> Vec<NamedFix> {
    let mut fixes = Vec::new();
    for place in found {
        match place.value {
            Value::Array(items) => {
                fixes.extend(items.iter().filter_map(Value::as_object).filter_map(fix_of))
            }
            Value::Object(object) => fixes.extend(fix_of(object)),
            // The field is the outcome's word itself, and its id stands beside it.
            word if is_fixed(word) => fixes.extend(place.parent.map(identified)),
            _ => {}
        }
    }
    fixes
}

fn fix_of(object: &Map<String, Value>) -> Option<NamedFix> {
    let word = ["outcome", "status", "result", "resolution", "fixed"]
        .iter()
        .find_map(|key| object.get(*key))?;
    is_fixed(word).then(|| identified(object))
}

fn is_fixed(word: &Value) -> bool {
    match word {
        Value::String(word) => matches!(word.to_ascii_lowercase().as_str(), "fixed" | "resolved"),
        other => *other == Value::Bool(true),
    }
}

fn identified(object: &Map<String, Value>) -> NamedFix {
    let id =
        ["id", "finding_id", "finding"].iter().find_map(|key| object.get(*key)).and_then(id_text);
    NamedFix { id, file: file_of(object).map(str::to_owned) }
}

/// An id as text, whether it is written as one or as a number.
pub(super) fn id_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The strings of a field, one or a list.
pub(super) fn strings(found: &[Found<'_>]) -> Result<Vec<(Vec<String>, String)>, String> {
    let mut strings = Vec::new();
    for place in found {
        let items = match place.value {
            Value::Array(items) => items.as_slice(),
            one => std::slice::from_ref(one),
        };
        for item in items.iter().filter(|item| !item.is_null()) {
            let text = item.as_str().ok_or_else(|| format!("{item} is no text"))?;
            strings.push((place.tokens.clone(), text.to_owned()));
        }
    }
    Ok(strings)
}

/// Whether what a result says in the field of a claim can be read: `Ok(true)` if it makes the
/// claim, `Ok(false)` if it leaves it out, and else what about it cannot be understood. Nothing is
/// held against anything.
pub fn understands(
    held: &EffectiveClaim,
    contract: &Contract,
    value: &Value,
) -> Result<bool, String> {
    let Some(found) = field(&held.field, value) else { return Ok(false) };
    match held.claim.kind {
        ClaimKind::FilesModified
        | ClaimKind::FilesAdded
        | ClaimKind::FilesDeleted
        | ClaimKind::FilesRenamed
        | ClaimKind::FilesChanged
        | ClaimKind::Artifact => files(&found).map(|_| true),
        ClaimKind::Location => super::places::places(&found).map(|places| !places.is_empty()),
        ClaimKind::Commit => strings(&found).map(|commits| !commits.is_empty()),
        ClaimKind::Fixed => Ok(!fixes(&found).is_empty()),
        ClaimKind::Commands => {
            match commands(&found).into_iter().find_map(|command| match command {
                HeldCommand::Unknown(text) => Some(text),
                _ => None,
            }) {
                Some(text) => Err(format!("{text:?} is neither `cmd: …` nor `manual: …`")),
                None => Ok(true),
            }
        }
        ClaimKind::Command => {
            super::command::said(held, contract, value, &found).map(|says| says != Says::Nothing)
        }
        ClaimKind::Count => {
            let counts = found.iter().all(|place| number(place.value).is_some());
            let counted = held.claim.of.is_some() || held.claim.figure.is_some();
            match (counts, counted) {
                (true, true) => Ok(!found.is_empty()),
                (false, _) => Err("it is no number".to_owned()),
                (true, false) => {
                    Err("the claim does not say what is counted: add `of` or `figure`".to_owned())
                }
            }
        }
        ClaimKind::Protected | ClaimKind::TestsKept => {
            Err("only the engine makes this claim".to_owned())
        }
    }
}
