//! Checks whether a new version of a contract is an additive successor of an old one, in both
//! directions: results of old writers are still accepted, and results of new writers satisfy old
//! readers.
//!
//! Inclusion of the schemas is proven or disproven with the canonical forms of the `jsonschema`
//! crate. A break comes with a concrete value that demonstrates it. A change that cannot be proven
//! compatible counts as a break of its own kind.

mod counterexample;

use crate::code::Code;
use crate::contract::Contract;
use crate::definition::Rule;
use crate::policy::Coerce;
use crate::render::prompt::frame_result;
use crate::reporting::validate_value;
use crate::schema::closed;
use jsonschema::canonical::{self, CanonicalSchema, Containment};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// The direction of compatibility that is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Results of an old writer are no longer accepted.
    OldWriterNewReader,
    /// Results of a new writer do not satisfy an old reader.
    NewWriterOldReader,
}

/// One incompatibility of the new version.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Break {
    /// The stable code of the incompatibility.
    pub code: Code,
    /// The direction that is broken.
    pub direction: Direction,
    /// The message that describes the incompatibility.
    pub message: String,
    /// A value that demonstrates it: accepted by one version, rejected by the other.
    #[serde(rename = "witness")]
    pub counterexample: Option<Value>,
    /// Why the rejecting version rejects that value there; none if it reports something else.
    pub because: Option<String>,
}

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Comparison {
    /// The reference of the old contract.
    pub old: String,
    /// The reference of the new contract.
    pub new: String,
    /// The incompatibilities; empty if the new version is an additive successor.
    pub breaks: Vec<Break>,
}

impl Comparison {
    /// Whether the new version is an additive successor.
    pub fn is_additive(&self) -> bool {
        self.breaks.is_empty()
    }
}

/// Compares two versions of a contract.
pub fn compare(old: &Contract, new: &Contract) -> Comparison {
    let mut breaks = Vec::new();
    if old.id() == new.id() && new.version() < old.version() {
        breaks.push(Break {
            code: Code::NotNewer,
            direction: Direction::OldWriterNewReader,
            message: format!("{} is older than {}", new.reference(), old.reference()),
            counterexample: None,
            because: None,
        });
    }
    framing(old, new, &mut breaks);
    policy(old, new, &mut breaks);
    schema(old, new, Direction::OldWriterNewReader, &mut breaks);
    schema(new, old, Direction::NewWriterOldReader, &mut breaks);
    rules(old, new, Direction::OldWriterNewReader, &mut breaks);
    rules(new, old, Direction::NewWriterOldReader, &mut breaks);
    Comparison { old: old.reference().to_owned(), new: new.reference().to_owned(), breaks }
}

fn framing(old: &Contract, new: &Contract, breaks: &mut Vec<Break>) {
    if old.framing() == new.framing() {
        return;
    }
    let example = old.definition().examples.first();
    breaks.push(Break {
        code: Code::FramingChanged,
        direction: Direction::OldWriterNewReader,
        message: format!(
            "the framing changed from {} to {}: a reader may not find the result in texts of old writers",
            old.framing().name(),
            new.framing().name()
        ),
        counterexample: example.map(|example| Value::from(frame_result(old, example))),
        because: Some(format!("a reader of {} looks for {}", new.reference(), new.framing().name())),
    });
}

/// Reports policies that accept fewer texts than before.
fn policy(old: &Contract, new: &Contract, breaks: &mut Vec<Break>) {
    let (before, after) = (old.policy(), new.policy());
    let coerces_less = match (&before.coerce, &after.coerce) {
        (Coerce::None, _) | (_, Coerce::All) => false,
        (Coerce::Fields(old), Coerce::Fields(new)) => !old.iter().all(|field| new.contains(field)),
        _ => true,
    };
    let less = [
        (before.repairs() && !after.repairs(), "syntax is no longer repaired"),
        (
            before.accepts_truncated() && !after.accepts_truncated(),
            "results that are cut off are no longer accepted",
        ),
        (coerces_less, "fewer values are coerced"),
        (
            !before.unwrap.keys.iter().all(|key| after.unwrap.keys.contains(key)),
            "fewer envelopes are removed",
        ),
        (
            before.unwrap.strings && !after.unwrap.strings,
            "strings that contain JSON are no longer parsed",
        ),
        (
            !before.rename.iter().all(|rename| after.rename.contains(rename)),
            "fewer fields are renamed",
        ),
        (after.max_bytes < before.max_bytes, "the limit on bytes is lower"),
        (after.max_depth < before.max_depth, "the limit on depth is lower"),
        (after.max_values < before.max_values, "the limit on values is lower"),
        (!before.placeholders && after.placeholders, "placeholders are now refused"),
    ];
    for (_, what) in less.into_iter().filter(|(is_less, _)| *is_less) {
        breaks.push(Break {
            code: Code::ReadsLess,
            direction: Direction::OldWriterNewReader,
            message: format!("texts that were accepted may no longer be: {what}"),
            counterexample: None,
            because: None,
        });
    }
}

/// The schema that a reader applies.
fn read_by(contract: &Contract) -> Value {
    if contract.policy().refuses_unknown_fields() {
        closed(contract.raw_schema())
    } else {
        contract.raw_schema().clone()
    }
}

/// Checks that every value of the writer satisfies the reader's schema. An old writer produces only
/// the fields that it declares.
fn schema(writer: &Contract, reader: &Contract, direction: Direction, breaks: &mut Vec<Break>) {
    let knows_only_its_own = direction == Direction::OldWriterNewReader;
    let written =
        if knows_only_its_own { closed(writer.raw_schema()) } else { writer.raw_schema().clone() };
    let read = read_by(reader);
    // Also a schema about which nothing can be proven contains itself.
    if read == *writer.raw_schema() {
        return;
    }
    let verdict = contains(&read, &written);
    if verdict == Ok(Containment::Yes) {
        return;
    }
    let (code, what) = match direction {
        Direction::OldWriterNewReader => {
            (Code::OldValuesFail, "a value that was valid no longer is")
        }
        Direction::NewWriterOldReader => {
            (Code::NewValuesFail, "a value that is valid now does not satisfy an old reader")
        }
    };
    let narrow = crate::schema::build_validator(&written).ok();
    let accepts = |value: &Value| {
        narrow.as_ref().is_some_and(|validator| validator.is_valid(value))
            && validate_value(writer, value, &writer.policy().strictly()).is_accepted()
    };
    let reads = crate::schema::build_validator(&read).ok();
    let passes = |value: &Value| reads.as_ref().is_some_and(|validator| validator.is_valid(value));
    let found = counterexample::search(writer, reader, &accepts, &passes);
    if found.is_empty() {
        let (code, message) = match verdict {
            Ok(Containment::No) => (code, format!("{what} (no short example was found)")),
            Ok(_) => (
                Code::Unproven,
                format!("it could not be proven that there is no such case: {what}"),
            ),
            Err(why) => (Code::Unproven, format!("compatibility could not be proven: {why}")),
        };
        breaks.push(Break { code, direction, message, counterexample: None, because: None });
        return;
    }
    for (pointer, value) in found {
        let because = validate_value(reader, &value, &reader.policy().strictly())
            .violations
            .into_iter()
            .find(|violation| violation.pointer == pointer)
            .map(|violation| violation.message);
        breaks.push(Break {
            code,
            direction,
            message: format!(
                "{what}: {}",
                if pointer.is_empty() {
                    "the result".to_owned()
                } else {
                    format!("`{}`", pointer.trim_start_matches('/'))
                }
            ),
            counterexample: Some(value),
            because,
        });
    }
}

fn contains(outer: &Value, inner: &Value) -> Result<Containment, String> {
    let outer = canonicalize(outer)?;
    let inner = canonicalize(inner)?;
    outer.covers(&inner).map_err(|error| error.to_string())
}

fn canonicalize(schema: &Value) -> Result<CanonicalSchema, String> {
    canonical::options()
        .with_draft(jsonschema::Draft::Draft202012)
        .should_validate_formats(true)
        .offline()
        .canonicalize(&without_notes(schema))
        .map_err(|error| error.to_string())
}

/// A schema without annotations, which the canonical form cannot handle.
fn without_notes(schema: &Value) -> Value {
    match schema {
        Value::Object(map) => Value::Object(
            map.iter()
                .filter(|(key, _)| {
                    !key.starts_with("x-")
                        && !matches!(key.as_str(), "default" | "examples" | "deprecated")
                })
                .map(|(key, value)| {
                    let value = if matches!(key.as_str(), "enum" | "const") {
                        value.clone()
                    } else {
                        without_notes(value)
                    };
                    (key.clone(), value)
                })
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.iter().map(without_notes).collect()),
        other => other.clone(),
    }
}

/// Reports rules that the reader has and the writer lacks: values of the writer may fail them.
fn rules(writer: &Contract, reader: &Contract, direction: Direction, breaks: &mut Vec<Break>) {
    let same = |a: &Rule, b: &Rule| {
        (&a.each, &a.when, &a.require, &a.forbid, &a.check, &a.unique, a.warn)
            == (&b.each, &b.when, &b.require, &b.forbid, &b.check, &b.unique, b.warn)
    };
    for rule in reader.definition().rules.iter().filter(|rule| !rule.warn) {
        if writer.definition().rules.iter().any(|other| same(rule, other))
            || never_applies(rule, writer)
        {
            continue;
        }
        let verb = if direction == Direction::OldWriterNewReader {
            "is new or changed"
        } else {
            "was removed or changed"
        };
        let accepts = |value: &Value| {
            validate_value(writer, value, &writer.policy().strictly()).is_accepted()
        };
        let passes = |value: &Value| {
            let report = validate_value(reader, value, reader.policy());
            report.is_accepted() || report.stage != Some(crate::report::Stage::Rules)
        };
        let found = counterexample::search(writer, reader, &accepts, &passes).into_iter().next();
        breaks.push(match found {
            Some((_, value)) => {
                let because = validate_value(reader, &value, &reader.policy().strictly())
                    .violations
                    .into_iter()
                    .find(|violation| violation.rule.as_deref() == Some(rule.id.as_str()))
                    .map(|violation| violation.message);
                Break {
                    code: Code::RuleChanged,
                    direction,
                    message: format!("the rule '{}' {verb}, and values fail it", rule.id),
                    counterexample: Some(value),
                    because,
                }
            }
            None => Break {
                code: Code::Unproven,
                direction,
                message: format!(
                    "the rule '{}' {verb}; it could not be proven that no value fails it",
                    rule.id
                ),
                counterexample: None,
                because: None,
            },
        });
    }
}

/// Whether a rule applies only if a field is present that the writer does not declare.
fn never_applies(rule: &Rule, writer: &Contract) -> bool {
    let (Some(when), Some(object)) = (&rule.when, writer.ty().object()) else { return false };
    if rule.each.as_ref().is_some_and(|each| writer.ty().at(each.split('/').skip(1)).is_none()) {
        return true;
    }
    when.split("&&").map(str::trim).any(|part| {
        part.strip_prefix("has(result.").and_then(|rest| rest.strip_suffix(')')).is_some_and(
            |field| {
                !field.contains(['.', '(', ')', '|'])
                    && !object.open
                    && !object.fields.contains_key(field)
            },
        )
    })
}
