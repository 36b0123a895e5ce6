//! Prompts: the suffix that tells an agent which result to return, and the prompts that ask for a
//! corrected result.

use crate::claim::ClaimReport;
use crate::code::Code;
use crate::contract::Contract;
use crate::definition::{Rule, filled_field};
use crate::expr::{Field, ObjectType, Type};
use crate::placeholder;
use crate::policy::Framing;
use crate::question::is_question;
use crate::report::{Report, Status, Violation};
use crate::validate::error_fields;
use serde_json::Value;
use std::borrow::Cow;
use std::fmt::Write;

/// The maximum number of violations in a repair prompt.
const MAX_VIOLATIONS: usize = 20;
/// The maximum number of characters for one violation.
const MAX_LINE_CHARS: usize = 600;
/// The maximum depth of listed fields; deeper ones appear only in the example.
const MAX_FIELD_DEPTH: usize = 4;

/// How an agent returns its result. A prompt names one way only, so that no agent has to choose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delivery {
    /// At the end of the text, in the framing of the contract.
    #[default]
    Text,
    /// As the last message, which is the JSON value and nothing else.
    Message,
    /// As the arguments of a tool.
    Tool {
        /// The name of the tool.
        name: &'static str,
        /// The MCP server that has the tool, if it is not the program's own.
        server: Option<&'static str>,
    },
}

/// The prompt suffix that tells an agent which result to return, and how.
pub fn suffix(contract: &Contract, delivery: Delivery) -> String {
    let mut text = format!("{}\n", delivery_instruction(contract, delivery));
    if delivery == Delivery::Text && contract.framing() == Framing::OutputBlock {
        text.push('\n');
        text.push_str(&block_template(contract));
        text.push_str(list_instruction(contract));
    }
    if let Some(object) = contract.asked_type().object() {
        text.push_str("\nFields:\n");
        write_fields(object, 0, &mut text);
        text.push_str(&other_fields(contract));
    }
    let rules = rules(contract);
    if !rules.is_empty() {
        text.push_str("\nRules:\n");
        for rule in rules {
            let _ = writeln!(text, "- {rule}");
        }
    }
    text.extend(example_section(
        contract,
        delivery,
        "Example",
        "Examples (send your own result, none of these)",
    ));
    text
}

/// The examples that agents are shown, in every prompt and tool description. Where a contract says
/// which results approve, the first one does not.
pub fn examples(contract: &Contract) -> Vec<&Value> {
    contract.shown_examples().collect()
}

/// The examples in the form that the agent sends, after a title; none if there are none.
fn example_section(
    contract: &Contract,
    delivery: Delivery,
    one: &str,
    several: &str,
) -> Option<String> {
    let examples = examples(contract);
    let title = match examples.len() {
        0 => return None,
        1 => one,
        _ => several,
    };
    let form = |example: &&Value| match delivery {
        Delivery::Text => frame_result(contract, example),
        Delivery::Message | Delivery::Tool { .. } => format!("{example:#}\n"),
    };
    let framed: Vec<String> = examples.iter().map(form).collect();
    Some(format!("\n{title}:\n{}", framed.join("or:\n")))
}

/// The rules of a contract as sentences.
pub(crate) fn rules(contract: &Contract) -> Vec<String> {
    let mut rules = declared_rules(contract);
    let errors: Vec<String> =
        error_fields(contract).iter().map(|name| format!("`{name}`")).collect();
    if !errors.is_empty() {
        rules.push(format!(
            "{} must say what went wrong when `success` is false",
            errors.join(" or ")
        ));
    }
    rules
}

fn declared_rules(contract: &Contract) -> Vec<String> {
    contract
        .definition()
        .rules
        .iter()
        .filter(|rule| !rule.warn && !reads_filled(contract, rule))
        .map(|rule| {
            let when = rule.when.as_ref().map(|when| format!(" when `{when}`")).unwrap_or_default();
            let each = rule
                .each
                .as_ref()
                .map(|each| format!(" (for each of `{}`)", each.trim_start_matches('/')))
                .unwrap_or_default();
            let names = |fields: &[String]| {
                fields.iter().map(|field| format!("`{field}`")).collect::<Vec<_>>().join(", ")
            };
            if !rule.require.is_empty() {
                format!("{} must be given{when}{each}", names(&rule.require))
            } else if !rule.forbid.is_empty() {
                format!("{} must be left out{when}{each}", names(&rule.forbid))
            } else if let Some(unique) = &rule.unique {
                format!("every `{}` is different", unique.trim_start_matches('/'))
            } else if let Some(message) = &rule.message {
                format!("refused: {message}")
            } else {
                format!("`{}` must hold{when}{each}", rule.check.as_deref().unwrap_or_default())
            }
        })
        .collect()
}

/// Whether a rule reads or requires what is filled in, so that the agent can do nothing about it.
fn reads_filled(contract: &Contract, rule: &Rule) -> bool {
    let object = contract.asked_type().object();
    let is_filled = |name: &String| {
        contract.ty().object().is_some_and(|all| all.fields.contains_key(name))
            && object.is_none_or(|asked| !asked.fields.contains_key(name))
    };
    if rule.each.is_none() && !rule.require.is_empty() && rule.require.iter().all(is_filled) {
        return true;
    }
    let paths = contract.definition().filled.keys();
    let mut paths = paths.map(|field| format!("result.{}", filled_field(field).replace('/', ".")));
    paths.any(|path| {
        [&rule.when, &rule.check].into_iter().flatten().any(|text| text.contains(&path))
    })
}

/// The sentences that tell an agent how to return the result.
pub(crate) fn delivery_instruction(contract: &Contract, delivery: Delivery) -> Cow<'static, str> {
    match delivery {
        Delivery::Text => framing_instruction(contract).into(),
        Delivery::Message => {
            "When the work is done, answer with the result: one JSON object and nothing else, no Markdown and no text around it.".into()
        }
        Delivery::Tool { name, server } => {
            let server =
                server.map(|server| format!(" (of the server `{server}`)")).unwrap_or_default();
            format!(
                "When the work is done, call the tool `{name}`{server} with the result. If it is refused, correct what the answer names and call \
                 it again. Once it is accepted, you are done."
            )
            .into()
        }
    }
}

/// The sentence that tells an agent in which form to write the result into its text.
pub fn framing_instruction(contract: &Contract) -> &'static str {
    match contract.framing() {
        Framing::JsonOnly => {
            "Answer with one JSON object and nothing else: no fence, no comment, no text before or after it."
        }
        Framing::FencedJson | Framing::AnyJson => {
            "End your answer with the result: one JSON object in a fenced code block labelled json, and nothing after it."
        }
        Framing::OutputBlock => {
            "End your answer with this block, each value on one line, real values in place of the brackets:"
        }
    }
}

/// The sentences that tell an agent how to write a list in a block; empty if it needs none.
fn list_instruction(contract: &Contract) -> &'static str {
    if root_fields(contract).iter().any(|(_, field)| field.ty.items().is_some()) {
        "\nWrite a list on one line as [a, b], and an empty one as none. An item with a comma needs a JSON list in quotes: [\"a, b\", \"c\"].\n"
    } else {
        ""
    }
}

/// The template of an output block, with a placeholder for each value.
pub(crate) fn block_template(contract: &Contract) -> String {
    let mut text = String::from("---OUTPUT---\n");
    for (name, field) in root_fields(contract) {
        let _ = writeln!(text, "{name}: {}", placeholder::shown(&field));
    }
    text.push_str("---END---\n");
    text
}

/// The root fields, in the order of the schema.
pub(crate) fn root_fields(contract: &Contract) -> Vec<(String, Field)> {
    let Some(object) = contract.asked_type().object() else { return Vec::new() };
    object.in_order().into_iter().map(|(name, field)| (name.clone(), field.clone())).collect()
}

fn write_fields(object: &ObjectType, depth: usize, text: &mut String) {
    for (name, field) in object.in_order() {
        let need = if field.required { "" } else { ", optional" };
        let what = field
            .description
            .as_deref()
            .map(|description| format!(": {}", one_line(description)))
            .unwrap_or_default();
        let _ = writeln!(
            text,
            "{}- `{name}` ({}{need}){what}",
            "  ".repeat(depth),
            field.ty.short_name()
        );
        if depth < MAX_FIELD_DEPTH {
            let inner = field.ty.object().or_else(|| field.ty.items().and_then(Type::object));
            if let Some(inner) = inner {
                write_fields(inner, depth + 1, text);
            }
        }
    }
}

/// The sentence about fields that are not listed; empty if they are not refused.
fn other_fields(contract: &Contract) -> String {
    if !contract.policy().refuses_unknown_fields() {
        return String::new();
    }
    let mut open = Vec::new();
    add_open_fields(contract.asked_type(), &mut open);
    let except = match open.as_slice() {
        [] => String::new(),
        fields => format!(", except inside of {}", fields.join(", ")),
    };
    format!("A result with other fields is refused{except}.\n")
}

/// Adds the names of the fields in which the contract allows any field.
fn add_open_fields(ty: &Type, names: &mut Vec<String>) {
    let item = ty.items().unwrap_or(ty);
    let Some(object) = item.object() else { return };
    for (name, field) in object.in_order() {
        let inner = field.ty.items().unwrap_or(&field.ty);
        let is_open = inner.alternatives().iter().any(|ty| match ty {
            Type::Object(object) => object.open,
            Type::Map(_) | Type::Any => true,
            _ => false,
        });
        let name = format!("`{name}`");
        if !is_open {
            add_open_fields(inner, names);
        } else if !names.contains(&name) {
            names.push(name);
        }
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A result in the framing of the contract, as an agent would write it.
pub fn frame_result(contract: &Contract, value: &Value) -> String {
    match contract.framing() {
        Framing::OutputBlock => {
            let mut text = String::from("---OUTPUT---\n");
            for (key, value) in value.as_object().into_iter().flatten() {
                let _ = writeln!(text, "{key}: {}", block_value(value));
            }
            text.push_str("---END---\n");
            text
        }
        Framing::JsonOnly => format!("{value:#}\n"),
        Framing::FencedJson | Framing::AnyJson => format!("```json\n{value:#}\n```\n"),
    }
}

fn block_value(value: &Value) -> String {
    match value {
        Value::Null => "none".into(),
        Value::String(text) => text.split_whitespace().collect::<Vec<_>>().join(" "),
        Value::Array(items) => {
            let needs_quotes = items.iter().any(|item| {
                item.as_str().is_some_and(|text| {
                    text.is_empty()
                        || text.trim() != text
                        || text.starts_with(['\'', '“', '‘', '”', '{'])
                        || text.contains([',', '"', '[', ']', '(', ')', '{', '}', '\n', '\r'])
                })
            });
            if needs_quotes {
                return value.to_string();
            }
            let items: Vec<String> = items
                .iter()
                .map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned))
                .collect();
            format!("[{}]", items.join(", "))
        }
        other => other.to_string(),
    }
}

/// The prompt that asks the same agent for a corrected result: the violations, their positions, and
/// what to send.
pub fn repair(contract: &Contract, report: &Report, delivery: Delivery) -> String {
    let concerns = |violation: &&Violation| delivery == Delivery::Text || !is_about_text(violation);
    let violations: Vec<&Violation> = report.violations.iter().filter(concerns).collect();
    let asks = !violations.is_empty() && violations.iter().all(|one| is_question(one));
    let mut text = match report.status {
        Status::Accepted => {
            return "The result was accepted; there is nothing to send again.\n".to_owned();
        }
        Status::Rejected if violations.is_empty() => {
            "Your result did not arrive in the requested way.\n".to_owned()
        }
        Status::Absent => "Your answer contained no result.\n".to_owned(),
        Status::Rejected if asks => "There is a question about your result:\n".to_owned(),
        Status::Rejected => "Your result was not accepted:\n".to_owned(),
    };
    for violation in violations.iter().take(MAX_VIOLATIONS) {
        let _ = writeln!(text, "- {}", violation_line(violation));
    }
    let more = violations.len().saturating_sub(MAX_VIOLATIONS) + report.left_out.violations;
    if more > 0 {
        let _ = writeln!(text, "- and {more} more of the same kind");
    }
    let request = if asks {
        "Send the result once more, as you mean it. Do not repeat the work."
    } else {
        "Send only the corrected result. Do not repeat the work."
    };
    let _ = writeln!(text, "\n{request}\n{}", delivery_instruction(contract, delivery));
    if delivery == Delivery::Text && contract.framing() == Framing::OutputBlock {
        let _ = write!(text, "\n{}{}", block_template(contract), list_instruction(contract));
    } else if report.status == Status::Absent {
        text.extend(example_section(contract, delivery, "Its form", "Its forms"));
    }
    text
}

/// Whether a violation says in which form a result stands in the text, which is of no use to an
/// agent that returns it in another way.
fn is_about_text(violation: &Violation) -> bool {
    matches!(
        violation.code,
        Code::NoResult
            | Code::EmptyText
            | Code::TextAroundResult
            | Code::NotFenced
            | Code::BlockNotClosed
            | Code::OnlyThinking
            | Code::WrongForm
            | Code::Trailing
    )
}

/// The reply to an agent that submitted an invalid result through a tool: all violations with the
/// expected and received values, and the request to submit the whole result again.
pub fn resubmit(report: &Report, tool: &str) -> String {
    let count = report.violations.len() + report.left_out.violations;
    let contract = &report.contract;
    let mut text = match report.status {
        Status::Accepted => {
            return format!("The result satisfies {contract}; there is nothing to correct.\n");
        }
        Status::Absent => format!("There is no result here. It must satisfy {contract}:\n"),
        Status::Rejected if count == 1 => {
            format!("The result was not accepted. It breaks {contract}:\n")
        }
        Status::Rejected => {
            format!("The result was not accepted. It breaks {contract} in {count} places:\n")
        }
    };
    for violation in report.violations.iter().take(MAX_VIOLATIONS) {
        let _ = writeln!(text, "- {}", truncate(&violation_details(violation), MAX_LINE_CHARS));
    }
    if count > MAX_VIOLATIONS {
        let _ = writeln!(text, "- and {} more", count - MAX_VIOLATIONS);
    }
    let _ = writeln!(
        text,
        "Correct this and call `{tool}` again with the whole result. Do not repeat the work; change only what is wrong."
    );
    text
}

/// A violation with its code and all details, on one line.
fn violation_details(violation: &Violation) -> String {
    let mut line = format!(
        "{} {}",
        violation.code,
        violation_line(&Violation { hint: String::new(), ..violation.clone() })
    );
    if !violation.expected.is_empty() {
        let _ = write!(line, "; expected {}", one_line(&violation.expected));
    }
    if !violation.received.is_empty() {
        let _ = write!(line, "; received {}", one_line(&violation.received));
    }
    if !violation.hint.is_empty() {
        let _ = write!(line, "; {}", one_line(&violation.hint));
    }
    line
}

fn truncate(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The prompt that shows the same agent which of its claims were refuted: what it claimed, what was
/// observed, the evidence, and what to do.
pub fn repair_claims(contract: &Contract, refuted: &[ClaimReport], delivery: Delivery) -> String {
    super::claims::repair(contract, refuted, delivery)
}

fn violation_line(violation: &Violation) -> String {
    let location = match (violation.pointer.as_str(), violation.span) {
        ("", None) => String::new(),
        ("", Some(span)) => format!("line {}: ", span.line),
        (pointer, None) => format!("{pointer}: "),
        (pointer, Some(span)) => format!("{pointer} (line {}): ", span.line),
    };
    let hint =
        if violation.hint.is_empty() { String::new() } else { format!("; {}", violation.hint) };
    format!("{location}{}{hint}", one_line(&violation.message))
}
