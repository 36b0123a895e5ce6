//! Compiles the rules of a contract: type-checks their expressions against the schema.

use super::{Origin, paths};
use crate::code::Code;
use crate::contract::CompiledRule;
use crate::definition::Rule;
use crate::expr::{self, Expr, ExprProblem, Scope, Type};
use crate::problem::Problem;
use crate::suggest::did_you_mean;
use crate::text::article;

/// The root fields that rules read; `None` if one reads the result as a whole.
pub(super) fn fields_read(rules: &[CompiledRule]) -> Option<Vec<String>> {
    // A rule on items may read the result too; its expressions name it.
    if rules.iter().any(|rule| rule.item.is_some() || rule.reads_whole) {
        return None;
    }
    let mut fields: Vec<String> = rules
        .iter()
        .flat_map(|rule| &rule.reads)
        .map(|read| read.split('/').nth(1).unwrap_or_default().to_owned())
        .collect();
    fields.sort();
    fields.dedup();
    Some(fields)
}

pub(super) fn compile_rules(
    rules: &[Rule],
    root: &Type,
    origin: Origin,
    problems: &mut Vec<Problem>,
) -> Vec<CompiledRule> {
    let mut compiled = Vec::new();
    let mut ids: Vec<&str> = Vec::new();
    for (index, rule) in rules.iter().enumerate() {
        let place = format!("rules[{index}]");
        if rule.id.is_empty() || ids.contains(&rule.id.as_str()) {
            let what = if rule.id.is_empty() {
                "a rule has no id".into()
            } else {
                format!("two rules are called '{}'", rule.id)
            };
            problems.push(Problem::new(
                Code::BadRule,
                &place,
                what,
                "give each rule an id of its own",
            ));
        }
        ids.push(&rule.id);
        let does_nothing = rule.require.is_empty()
            && rule.forbid.is_empty()
            && rule.check.is_none()
            && rule.unique.is_none();
        if does_nothing {
            problems.push(Problem::new(
                Code::BadRule,
                &place,
                format!("the rule '{}' requires nothing", rule.id),
                "add require, forbid, check or unique",
            ));
        }
        if let Some(rule) = compile_rule(rule, &place, root, origin, problems) {
            compiled.push(rule);
        }
    }
    compiled
}

fn compile_rule(
    rule: &Rule,
    place: &str,
    root: &Type,
    origin: Origin,
    problems: &mut Vec<Problem>,
) -> Option<CompiledRule> {
    let before = problems.len();
    let mut item = None;
    for (key, pattern) in [("each", &rule.each), ("unique", &rule.unique)] {
        let Some(pattern) = pattern else { continue };
        let selected = match origin {
            Origin::Author => paths::selected(pattern, root),
            Origin::Store => pattern.strip_prefix('/').and_then(|_| paths::type_at(pattern, root)),
        };
        let is_subject = |ty: &Type| {
            origin == Origin::Store
                || names_items(pattern)
                // A rule about the object there.
                || (key == "each" && may_be_object(ty))
        };
        let subject = match &selected {
            Some(ty) if is_subject(ty) => ty.clone(),
            // What else is wrong is said of the items that were probably meant.
            Some(ty) => ty.at(["*"]).unwrap_or(Type::Any),
            None => Type::Any,
        };
        if key == "each" {
            item = Some(subject);
        }
        let (message, hint) = match selected {
            Some(ty) if is_subject(&ty) => continue,
            Some(ty) => (
                format!("'{pattern}' names one value, not the items of a list or a map"),
                one_value_hint(key, pattern, &ty, root),
            ),
            None => (
                format!("'{pattern}' is not a path in the schema"),
                paths::hint(
                    pattern,
                    root,
                    "write a pointer with * for the items, as in /findings/*/id",
                ),
            ),
        };
        problems.push(Problem::new(Code::BadRule, &format!("{place}.{key}"), message, hint));
    }
    if rule.unique.is_some()
        && (rule.each.is_some()
            || rule.when.is_some()
            || rule.check.is_some()
            || !rule.require.is_empty()
            || !rule.forbid.is_empty())
    {
        problems.push(Problem::new(
            Code::BadRule,
            place,
            format!("the rule '{}' requires unique values and something else", rule.id),
            "make it two rules",
        ));
    }
    let subject = item.as_ref().unwrap_or(root);
    let is_place = |at: &str| match origin {
        Origin::Author => paths::type_at(at, subject).is_some(),
        Origin::Store => subject.at(at.split('/').skip(1)).is_some(),
    };
    if let Some(at) = rule.at.as_ref().filter(|at| !is_place(at)) {
        problems.push(Problem::new(
            Code::BadRule,
            &format!("{place}.at"),
            format!("'{at}' is not a path in the schema"),
            paths::hint(at, subject, "write the pointer of a field, as in /fix_info"),
        ));
    }
    for (key, fields) in [("require", &rule.require), ("forbid", &rule.forbid)] {
        for field in fields {
            if let Some((message, hint)) = unknown_field(field, subject)
                && (origin == Origin::Author || subject.object().is_some())
            {
                problems.push(Problem::new(
                    Code::BadRule,
                    &format!("{place}.{key}"),
                    message,
                    hint,
                ));
            }
        }
    }
    let mut scope = Scope::for_variable("result", root.clone());
    if let Some(item) = &item {
        scope = scope.with("item", item.clone());
    }
    let variable = if item.is_some() { "item" } else { "result" };
    let mut reads = Vec::new();
    let mut reads_whole = false;
    let mut compile =
        |source: &Option<String>, key: &str, scope: &Scope, problems: &mut Vec<Problem>| {
            let source = source.as_ref()?;
            match expr::check(source, scope) {
                Ok(checked) => {
                    if checked.ty != Type::Bool && checked.ty != Type::Any {
                        problems.push(Problem::new(
                            Code::BadRule,
                            &format!("{place}.{key}"),
                            format!(
                                "`{source}` gives {}, not a boolean",
                                article(&checked.ty.to_string())
                            ),
                            "write a comparison, such as `x == 1`",
                        ));
                    }
                    reads_whole |= checked.reads_whole("result");
                    for read in &checked.reads {
                        let mut tokens = read.split('.');
                        if tokens.next() == Some(variable) {
                            let pointer: String = tokens.flat_map(|token| ["/", token]).collect();
                            if !reads.contains(&pointer)
                                && !reads
                                    .iter()
                                    .any(|read: &String| pointer.starts_with(&format!("{read}/")))
                            {
                                reads.push(pointer);
                            }
                        }
                    }
                    let scope = scope.clone().assuming(&checked);
                    Some((Expr::new(source, checked.into_code()), scope))
                }
                Err(found) => {
                    for problem in found {
                        problems.push(Problem::new(
                            Code::BadRule,
                            &format!("{place}.{key}"),
                            format!("{}\n{}", problem.message, underline(source, &problem)),
                            problem.hint,
                        ));
                    }
                    None
                }
            }
        };
    let when = compile(&rule.when, "when", &scope, problems);
    let scope = when.as_ref().map_or(scope, |(_, scope)| scope.clone());
    let check = compile(&rule.check, "check", &scope, problems);
    (problems.len() == before).then(|| CompiledRule {
        rule: rule.clone(),
        when: when.map(|(expr, _)| expr),
        check: check.map(|(expr, _)| expr),
        reads,
        reads_whole,
        item,
    })
}

/// Whether a pattern names the items of a list or a map.
fn names_items(pattern: &str) -> bool {
    pattern.split('/').any(|token| token == "*")
}

/// Whether a value can be an object with fields of its own.
fn may_be_object(ty: &Type) -> bool {
    ty.alternatives().iter().any(|one| matches!(one, Type::Any | Type::Object(_)))
}

/// What to write instead of a pattern that names one value.
fn one_value_hint(key: &str, pattern: &str, ty: &Type, root: &Type) -> String {
    if ty.at(["*"]).is_some() {
        return format!("write {key}: {pattern}/* for its items");
    }
    let known = root.object().and_then(|object| {
        let mut fields = object.in_order().into_iter();
        fields.find(|(_, field)| field.ty.items().is_some()).map(|(name, _)| name.clone())
    });
    let list = known.as_deref().unwrap_or("findings");
    if key == "each" {
        format!(
            "write each: /{list}/* for a rule about items; without each, the rule is about the \
             result"
        )
    } else {
        format!("write unique: /{list}/* for items that must differ")
    }
}

/// Why a rule cannot require or forbid a field of a value, and what to write instead.
fn unknown_field(field: &str, subject: &Type) -> Option<(String, String)> {
    let may_have = |one: &Type| match one {
        Type::Any | Type::Map(_) => true,
        Type::Object(object) => object.open || object.fields.contains_key(field),
        _ => false,
    };
    if subject.alternatives().iter().any(may_have) {
        return None;
    }
    let Some(object) = subject.object() else {
        let hint = if subject.items().is_some() {
            "only objects have fields; a rule about the items of a list has each: with a * at its \
             end"
        } else {
            "only objects have fields; write a check for other values"
        };
        let message = format!("{} has no field '{field}'", article(&subject.to_string()));
        return Some((message, hint.to_owned()));
    };
    let names = object.fields.keys().map(String::as_str);
    let hint = did_you_mean(field, names).unwrap_or_else(|| "name a field of the schema".into());
    Some((format!("unknown field '{field}'"), hint))
}

/// The line of an expression with carets under what is wrong.
pub(super) fn underline(source: &str, problem: &ExprProblem) -> String {
    let before: String = source.chars().take(problem.start).collect();
    let line_start = before.rfind('\n').map_or(0, |newline| before[..=newline].chars().count());
    let line: String = source.chars().skip(line_start).take_while(|c| *c != '\n').collect();
    let width = line.chars().count();
    let from = (problem.start - line_start).min(width);
    let length = (problem.end - problem.start).clamp(1, (width - from).max(1));
    format!("      {line}\n      {}{}", " ".repeat(from), "^".repeat(length))
}
