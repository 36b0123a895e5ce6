//! Rules: what a schema cannot say. Conditional requirements, contradictions between fields, ids
//! that must differ.

use super::bare_violation;
use super::describe::{Located, excerpt, field_name};
use super::select::select;
use crate::code::Code;
use crate::contract::{CompiledRule, Contract};
use crate::expr::{Evaluated, Expr, Type, to_cel};
use crate::json::escape;
use crate::report::Violation;
use cel::Value as CelValue;
use serde_json::Value;
use std::collections::HashMap;

/// What the rules say of a value.
#[derive(Default)]
pub(crate) struct ByRules {
    pub(crate) violations: Vec<Violation>,
    pub(crate) warnings: Vec<Violation>,
}

/// Applies every rule whose fields are as the schema wants them.
pub(crate) fn apply(
    contract: &Contract,
    value: &Value,
    so_far: &[Violation],
    located: &Located<'_, '_>,
) -> ByRules {
    let mut by_rules = ByRules::default();
    let rules = contract.compiled_rules();
    if rules.is_empty()
        || (!so_far.is_empty() && so_far.iter().any(|violation| violation.pointer.is_empty()))
    {
        return by_rules;
    }
    let result = to_cel(value, contract.ty(), contract.fields_read());
    for rule in rules {
        // A field that is wrong already makes the rule meaningless, not broken.
        let touched = |read: &String| {
            let root = format!("/{}", read.split('/').nth(1).unwrap_or_default());
            so_far.iter().any(|violation| {
                violation.pointer == root || violation.pointer.starts_with(&format!("{root}/"))
            })
        };
        let roots: Vec<String> = match (&rule.rule.each, &rule.rule.unique) {
            (Some(pattern), _) | (None, Some(pattern)) => vec![pattern.clone()],
            _ => rule.reads.clone(),
        };
        if roots.iter().any(touched) || (rule.reads_whole && !so_far.is_empty()) {
            continue;
        }
        if let Some(pattern) = &rule.rule.unique {
            unique(rule, pattern, value, located, &mut by_rules);
        } else if let Some(pattern) = &rule.rule.each {
            for (pointer, item) in select(value, pattern) {
                let item_value = to_cel(item, rule.item.as_ref().unwrap_or(&Type::Any), None);
                let variables = [("result", result.clone()), ("item", item_value)];
                one(rule, &pointer, item, &variables, located, &mut by_rules);
            }
        } else {
            one(rule, "", value, &[("result", result.clone())], located, &mut by_rules);
        }
    }
    by_rules
}

fn unique(
    rule: &CompiledRule,
    pattern: &str,
    root: &Value,
    located: &Located<'_, '_>,
    by_rules: &mut ByRules,
) {
    let mut seen: HashMap<String, String> = HashMap::new();
    for (pointer, value) in select(root, pattern) {
        if value.is_null() {
            continue;
        }
        match seen.entry(value.to_string()) {
            std::collections::hash_map::Entry::Vacant(slot) => {
                slot.insert(pointer);
            }
            std::collections::hash_map::Entry::Occupied(first) => {
                let mut violation = bare_violation(
                    Code::DuplicateId,
                    &pointer,
                    rule.rule.message.clone().unwrap_or_else(|| {
                        format!(
                            "{} stands twice: {} has it too",
                            excerpt(value),
                            field_name(first.get())
                        )
                    }),
                );
                violation.span = located.value(&pointer);
                violation.expected = "ids that all differ".into();
                violation.received = excerpt(value);
                violation.hint = rule
                    .rule
                    .hint
                    .clone()
                    .unwrap_or_else(|| "give each entry an id of its own".into());
                push(rule, violation, by_rules);
            }
        }
    }
}

fn push(rule: &CompiledRule, mut violation: Violation, by_rules: &mut ByRules) {
    violation.rule = Some(rule.rule.id.clone());
    if rule.rule.warn {
        violation.code = Code::RuleWarning;
        by_rules.warnings.push(violation);
    } else {
        by_rules.violations.push(violation);
    }
}

fn one(
    rule: &CompiledRule,
    base: &str,
    value: &Value,
    variables: &[(&str, CelValue)],
    located: &Located<'_, '_>,
    by_rules: &mut ByRules,
) {
    if let Some(when) = &rule.when {
        match when.test(variables) {
            Evaluated::True => {}
            Evaluated::False => return,
            Evaluated::Failed(why) => return broken(rule, base, when, &why, located, by_rules),
        }
    }
    for field in &rule.rule.require {
        if !is_given(value.get(field)) {
            by_rules_required(rule, base, field, value, located, by_rules);
        }
    }
    for field in &rule.rule.forbid {
        if value.get(field).is_some_and(|value| !is_empty(value)) {
            let pointer = format!("{base}/{}", escape(field));
            let mut violation = bare_violation(
                Code::PresentWhen,
                &pointer,
                rule.rule
                    .message
                    .clone()
                    .unwrap_or_else(|| format!("`{field}` must be absent{}", because(rule))),
            );
            violation.span = located.value(&pointer);
            violation.expected = format!("no `{field}`");
            violation.received = excerpt(value.get(field).unwrap_or(&Value::Null));
            violation.hint =
                rule.rule.hint.clone().unwrap_or_else(|| format!("leave out `{field}`"));
            push(rule, violation, by_rules);
        }
    }
    if let Some(check) = &rule.check {
        match check.test(variables) {
            Evaluated::True => {}
            Evaluated::False => contradiction(rule, base, value, check, located, by_rules),
            Evaluated::Failed(why) => broken(rule, base, check, &why, located, by_rules),
        }
    }
}

fn is_given(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => false,
        Some(Value::String(text)) => !text.trim().is_empty(),
        Some(_) => true,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

fn because(rule: &CompiledRule) -> String {
    rule.when.as_ref().map(|when| format!(" when `{}`", when.source)).unwrap_or_default()
}

fn by_rules_required(
    rule: &CompiledRule,
    base: &str,
    field: &str,
    value: &Value,
    located: &Located<'_, '_>,
    by_rules: &mut ByRules,
) {
    let pointer = format!("{base}/{}", escape(field));
    let mut violation = bare_violation(
        Code::MissingWhen,
        &pointer,
        rule.rule
            .message
            .clone()
            .unwrap_or_else(|| format!("`{field}` is required{}", because(rule))),
    );
    violation.span = located.value(&pointer);
    violation.expected = format!("a field `{field}` that is not empty");
    violation.received = value.get(field).map_or_else(|| "nothing".to_owned(), excerpt);
    violation.hint = rule.rule.hint.clone().unwrap_or_else(|| format!("add `{field}`"));
    push(rule, violation, by_rules);
}

fn contradiction(
    rule: &CompiledRule,
    base: &str,
    value: &Value,
    check: &Expr,
    located: &Located<'_, '_>,
    by_rules: &mut ByRules,
) {
    let at = rule.rule.at.clone().or_else(|| rule.reads.first().cloned()).unwrap_or_default();
    let pointer = format!("{base}{at}");
    let mut violation = bare_violation(
        Code::Contradiction,
        &pointer,
        rule.rule.message.clone().unwrap_or_else(|| format!("`{}` does not hold", check.source)),
    );
    violation.span = located.value(&pointer);
    violation.expected = match &rule.when {
        Some(when) => format!("{} when {}", check.source, when.source),
        None => check.source.clone(),
    };
    let seen: Vec<String> = rule
        .reads
        .iter()
        .filter_map(|read| {
            value
                .pointer(read)
                .map(|value| format!("{} = {}", read.trim_start_matches('/'), excerpt(value)))
        })
        .collect();
    violation.received = seen.join(", ");
    violation.hint =
        rule.rule.hint.clone().unwrap_or_else(|| "correct the field that is wrong".into());
    push(rule, violation, by_rules);
}

fn broken(
    rule: &CompiledRule,
    base: &str,
    expr: &Expr,
    why: &str,
    located: &Located<'_, '_>,
    by_rules: &mut ByRules,
) {
    let mut violation = bare_violation(
        Code::RuleFailed,
        base,
        format!("the rule '{}' could not be evaluated: {why}", rule.rule.id),
    );
    violation.span = located.value(base);
    violation.expected.clone_from(&expr.source);
    violation.received = why.into();
    violation.hint = "the values are outside of what the rule can handle".into();
    push(rule, violation, by_rules);
}
