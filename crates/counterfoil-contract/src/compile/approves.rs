//! The examples that agents are shown. An agent that merely repeats one must not let anything pass:
//! `approves` says which results do.

use crate::code::Code;
use crate::contract::Contract;
#[cfg(feature = "rules")]
use crate::definition::Definition;
#[cfg(feature = "rules")]
use crate::expr::{Expression, Scope, Type};
use crate::own_words::carries_own_words;
use crate::problem::Problem;
use serde_json::Value;
use std::collections::BTreeMap;

/// Compiles `approves` against the type of the result.
#[cfg(feature = "rules")]
pub(super) fn compile(
    definition: &Definition,
    ty: &Type,
    problems: &mut Vec<Problem>,
) -> Option<Expression> {
    let source = definition.approves.as_deref()?;
    let mut refuse = |message: String, hint: &str| {
        problems.push(Problem::new(Code::BadRule, "approves", message, hint));
    };
    match Expression::compile(source, &Scope::for_variable("result", ty.clone())) {
        Ok(expression) if *expression.ty() == Type::Bool || *expression.ty() == Type::Any => {
            Some(expression)
        }
        Ok(expression) => {
            let message = format!("`approves` is {}, not a boolean", expression.ty());
            refuse(message, "write a condition over result, such as result.ok");
            None
        }
        Err(found) => {
            for problem in found {
                refuse(problem.message, "write a condition over result, such as result.ok");
            }
            None
        }
    }
}

/// The numbers of the examples that agents are shown: those that the contract names, or else the
/// most informative one of each kind. What approves is not shown first.
pub(super) fn choose_examples(contract: &Contract) -> Vec<usize> {
    let definition = &contract.definition;
    let kind_of = |number: usize| kind(contract, definition.examples.get(number)?);
    let mut numbers = definition.shown.clone();
    if numbers.is_empty() {
        let mut best: BTreeMap<Kind, (usize, usize)> = BTreeMap::new();
        for (number, example) in definition.examples.iter().enumerate() {
            let Some(kind) = kind(contract, example) else { continue };
            let values = count_values(example);
            let known = best.entry(kind).or_insert((values, number));
            if values > known.0 {
                *known = (values, number);
            }
        }
        numbers = best.into_values().map(|(_, number)| number).collect();
    }
    numbers.sort_by_key(|number| kind_of(*number));
    numbers
}

/// The kind of an example: whether it approves, and its form.
type Kind = (bool, Option<bool>);

/// The kind of an example. None if a result can equal it by chance and approve.
fn kind(contract: &Contract, example: &Value) -> Option<Kind> {
    let approves = contract.approves(example) == Some(true);
    if approves && !carries_own_words(example, contract.ty()) {
        return None;
    }
    Some((approves, form(example).filter(|_| is_envelope(contract))))
}

/// The form of a result that is an envelope: success or failure.
fn form(example: &Value) -> Option<bool> {
    match (example.get("success"), example.get("status").and_then(Value::as_str)) {
        (Some(Value::Bool(success)), _) => Some(*success),
        (_, Some("success")) => Some(true),
        (_, Some("error" | "failure" | "failed")) => Some(false),
        _ => None,
    }
}

/// Whether the examples have both forms of an envelope.
fn is_envelope(contract: &Contract) -> bool {
    let has = |wanted| contract.definition.examples.iter().any(|one| form(one) == Some(wanted));
    has(true) && has(false)
}

fn count_values(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(count_values).sum(),
        Value::Object(fields) => fields.values().map(|value| count_values(value).max(1)).sum(),
        _ => 1,
    }
}

/// Checks the examples that agents are shown.
pub(super) fn check(contract: &Contract) -> Vec<Problem> {
    let definition = &contract.definition;
    let mut problems = Vec::new();
    for number in definition.shown.iter().filter(|number| **number >= definition.examples.len()) {
        problems.push(Problem::new(
            Code::ApprovingExample,
            "shown",
            format!("there is no example {number}: the contract has {}", definition.examples.len()),
            "examples are numbered from 0",
        ));
    }
    if definition.approves.is_none() || definition.examples.is_empty() || !problems.is_empty() {
        return problems;
    }
    let approving = |example: &Value| contract.approves(example) == Some(true);
    let shown =
        || contract.shown_examples.iter().map(|number| (*number, &definition.examples[*number]));
    if shown().all(|(_, example)| approving(example)) {
        problems.push(Problem::new(
            Code::ApprovingExample,
            if definition.shown.is_empty() { "examples" } else { "shown" },
            "agents are shown only examples that approve",
            "add an example that does not approve, or name one in shown:",
        ));
    }
    for (number, example) in shown() {
        if approving(example) && !carries_own_words(example, contract.ty()) {
            problems.push(Problem::new(
                Code::ApprovingExample,
                &format!("examples[{number}]"),
                "agents are shown an example that approves, and a result can equal it by chance",
                "show another one, or add a text that only a real result has",
            ));
        }
    }
    problems
}
