//! Applies the rules of a contract, which express what a schema cannot: conditional requirements,
//! contradictions between fields, unique ids.

use super::Findings;
use super::bare_violation;
use super::describe::{SpanResolver, excerpt, field_name};
use super::select::{select, select_values};
use super::walk::count_values;
use crate::capped::Capped;
use crate::code::Code;
use crate::contract::{CompiledRule, Contract};
use crate::expr::{Evaluated, Expr, SharedMeter, Type, Variables, to_cel};
use crate::json::escape;
use crate::nothing::{is_blank, is_empty};
use crate::report::Violation;
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// The violations and warnings that rules produced.
#[derive(Default)]
pub(crate) struct RuleFindings {
    pub(crate) violations: Capped<Violation>,
    pub(crate) warnings: Capped<Violation>,
}

/// Applies every rule whose fields have no schema violations and are known.
pub(crate) fn apply(
    contract: &Contract,
    value: &Value,
    existing: &Findings,
    unknown: &[String],
    spans: &SpanResolver<'_, '_>,
) -> RuleFindings {
    let mut findings = RuleFindings::default();
    let rules = contract.compiled_rules();
    if rules.is_empty() || existing.concerns_root() {
        return findings;
    }
    let result = Variables::new("result", to_cel(value, contract.ty(), contract.fields_read()));
    let meter = SharedMeter::default();
    for rule in rules {
        // A rule is skipped if a field that it reads is already invalid.
        let is_invalid = |read: &String| {
            let field = read.split('/').nth(1).unwrap_or_default();
            existing.concerns_field(field)
                || unknown.iter().any(|pointer| pointer.split('/').nth(1) == Some(field))
        };
        let roots: Vec<String> = match (&rule.rule.each, &rule.rule.unique) {
            (Some(pattern), _) | (None, Some(pattern)) => vec![pattern.clone()],
            _ => rule.reads.clone(),
        };
        if roots.iter().any(is_invalid) || (rule.reads_whole && !existing.is_empty()) {
            continue;
        }
        if let Some(pattern) = &rule.rule.unique {
            apply_unique(rule, pattern, value, spans, &mut findings);
        } else if let Some(pattern) = &rule.rule.each {
            for (pointer, item) in select(value, pattern) {
                meter.count(count_values(item));
                if meter.is_exceeded() {
                    break;
                }
                let item_value = to_cel(item, rule.item.as_ref().unwrap_or(&Type::Any), None);
                let variables = result.with("item", item_value);
                let known = |_: &str| false;
                apply_rule(
                    rule,
                    &pointer,
                    item,
                    (&variables, &meter),
                    &known,
                    spans,
                    &mut findings,
                );
            }
        } else {
            let unknown = |field: &str| is_unknown(contract, field, unknown);
            apply_rule(rule, "", value, (&result, &meter), &unknown, spans, &mut findings);
        }
        if meter.is_exceeded() {
            // The rules that follow are not applied, so the result cannot be accepted.
            let said = findings.violations.list().last().is_some_and(|last| {
                last.code == Code::RuleFailed && last.rule.as_ref() == Some(&rule.rule.id)
            });
            if !said {
                findings.violations.push(|| work_exceeded(rule, spans));
            }
            break;
        }
    }
    findings
}

/// Whether a field is filled in and not known yet, or is an object with such a field in which the
/// agent has nothing to give.
fn is_unknown(contract: &Contract, field: &str, unknown: &[String]) -> bool {
    let objects = contract.filled.as_ref().map_or(&[][..], |filled| filled.objects.as_slice());
    let pointer = format!("/{}", escape(field));
    let inside = format!("{pointer}/");
    unknown.contains(&pointer)
        || (objects.contains(&pointer) && unknown.iter().any(|one| one.starts_with(&inside)))
}

/// The violation of a result for which the rules take too many steps.
fn work_exceeded(rule: &CompiledRule, spans: &SpanResolver<'_, '_>) -> Violation {
    let message = format!(
        "the rules take more than 10,000,000 steps on this result; the last one was '{}'",
        rule.rule.id
    );
    let mut violation = bare_violation(Code::WorkLimit, "", message);
    violation.span = spans.value("");
    violation.expected = "a result that the rules can check".into();
    violation.received = "lists that are too long for them".into();
    violation.hint = "send shorter lists, or write the rule with fewer nested loops".into();
    violation.rule = Some(rule.rule.id.clone());
    violation
}

fn apply_unique(
    rule: &CompiledRule,
    pattern: &str,
    root: &Value,
    spans: &SpanResolver<'_, '_>,
    findings: &mut RuleFindings,
) {
    // Places are only needed for a violation, and finding them takes longer than comparing.
    if all_differ(&select_values(root, pattern)) {
        return;
    }
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
                            "{} appears twice: {} has it too",
                            excerpt(value),
                            field_name(first.get())
                        )
                    }),
                );
                violation.span = spans.value(&pointer);
                violation.expected = "ids that all differ".into();
                violation.received = excerpt(value);
                violation.hint = rule
                    .rule
                    .hint
                    .clone()
                    .unwrap_or_else(|| "give each entry an id of its own".into());
                push(rule, violation, findings);
            }
        }
    }
}

/// Whether no two values are equal. Null does not count.
fn all_differ(values: &[&Value]) -> bool {
    let mut texts: HashSet<&str> = HashSet::with_capacity(values.len());
    let mut others: HashSet<String> = HashSet::new();
    values.iter().all(|value| match value {
        Value::Null => true,
        Value::String(text) => texts.insert(text),
        other => others.insert(other.to_string()),
    })
}

fn push(rule: &CompiledRule, mut violation: Violation, findings: &mut RuleFindings) {
    violation.rule = Some(rule.rule.id.clone());
    if rule.rule.warn {
        violation.code = Code::RuleWarning;
        findings.warnings.push(|| violation);
    } else {
        findings.violations.push(|| violation);
    }
}

fn apply_rule(
    rule: &CompiledRule,
    base: &str,
    value: &Value,
    (variables, meter): (&Variables<'_>, &SharedMeter),
    is_unknown: &dyn Fn(&str) -> bool,
    spans: &SpanResolver<'_, '_>,
    findings: &mut RuleFindings,
) {
    if let Some(when) = &rule.when {
        match when.test(variables, meter) {
            Evaluated::True => {}
            Evaluated::False => return,
            Evaluated::Failed(why) => {
                return report_failure(rule, base, when, &why, spans, findings);
            }
        }
    }
    for field in &rule.rule.require {
        if value.get(field).is_none_or(is_blank) && !is_unknown(field) {
            report_missing(rule, base, field, value, spans, findings);
        }
    }
    for field in &rule.rule.forbid {
        if value.get(field).is_some_and(|value| !is_empty(value)) {
            let pointer = format!("{base}/{}", escape(field));
            let mut violation = bare_violation(
                Code::PresentWhen,
                &pointer,
                rule.rule.message.clone().unwrap_or_else(|| {
                    format!("`{field}` must be absent{}", condition_suffix(rule))
                }),
            );
            violation.span = spans.value(&pointer);
            violation.expected = format!("no `{field}`");
            violation.received = excerpt(value.get(field).unwrap_or(&Value::Null));
            violation.hint =
                rule.rule.hint.clone().unwrap_or_else(|| format!("leave out `{field}`"));
            push(rule, violation, findings);
        }
    }
    if let Some(check) = &rule.check {
        match check.test(variables, meter) {
            Evaluated::True => {}
            Evaluated::False => report_contradiction(rule, base, value, check, spans, findings),
            Evaluated::Failed(why) => report_failure(rule, base, check, &why, spans, findings),
        }
    }
}

fn condition_suffix(rule: &CompiledRule) -> String {
    rule.when.as_ref().map(|when| format!(" when `{}`", when.source)).unwrap_or_default()
}

fn report_missing(
    rule: &CompiledRule,
    base: &str,
    field: &str,
    value: &Value,
    spans: &SpanResolver<'_, '_>,
    findings: &mut RuleFindings,
) {
    let pointer = format!("{base}/{}", escape(field));
    let mut violation = bare_violation(
        Code::MissingWhen,
        &pointer,
        rule.rule
            .message
            .clone()
            .unwrap_or_else(|| format!("`{field}` is required{}", condition_suffix(rule))),
    );
    violation.span = spans.value(&pointer);
    violation.expected = format!("a field `{field}` that is not empty");
    violation.received = value.get(field).map_or_else(|| "nothing".to_owned(), excerpt);
    violation.hint = rule.rule.hint.clone().unwrap_or_else(|| format!("add `{field}`"));
    push(rule, violation, findings);
}

fn report_contradiction(
    rule: &CompiledRule,
    base: &str,
    value: &Value,
    check: &Expr,
    spans: &SpanResolver<'_, '_>,
    findings: &mut RuleFindings,
) {
    let at = rule.rule.at.clone().or_else(|| rule.reads.first().cloned()).unwrap_or_default();
    let pointer = format!("{base}{at}");
    let mut violation = bare_violation(
        Code::Contradiction,
        &pointer,
        rule.rule.message.clone().unwrap_or_else(|| format!("`{}` does not hold", check.source)),
    );
    violation.span = spans.value(&pointer);
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
    push(rule, violation, findings);
}

fn report_failure(
    rule: &CompiledRule,
    base: &str,
    expr: &Expr,
    why: &str,
    spans: &SpanResolver<'_, '_>,
    findings: &mut RuleFindings,
) {
    let mut violation = bare_violation(
        Code::RuleFailed,
        base,
        format!("the rule '{}' could not be evaluated: {why}", rule.rule.id),
    );
    violation.span = spans.value(base);
    violation.expected.clone_from(&expr.source);
    violation.received = why.into();
    violation.hint = "the values are outside of what the rule can handle".into();
    push(rule, violation, findings);
}
