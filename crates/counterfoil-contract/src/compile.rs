//! From a definition to a contract: everything that can be wrong with it is found here, and all of
//! it at once.

mod claims;

use crate::code::Code;
use crate::contract::Contract;
use crate::definition::{Definition, Rule};
use crate::display::Display;
use crate::expr::{self, Expr, ExprProblem, Scope, Type};
use crate::policy::{Coerce, DEEPEST};
use crate::problem::{LoadError, Problem};
use crate::registry::check_id;
use crate::report::Status;
use crate::schema::{build_validator, check_defaults};
use crate::suggest::did_you_mean;
use crate::validate::{CompiledRule, article};
use serde_json::Value;

pub(crate) fn compile(mut definition: Definition) -> Result<Contract, LoadError> {
    let name = definition.contract.clone();
    let mut problems = Vec::new();
    check_head(&definition, &mut problems);
    let schema = match schema_of(&mut definition) {
        Ok(schema) => schema,
        Err(mut more) => {
            problems.append(&mut more);
            return Err(LoadError { name, problems });
        }
    };
    let validator = match build_validator(&schema) {
        Ok(validator) => validator,
        Err(problem) => {
            problems.push(problem);
            return Err(LoadError { name, problems });
        }
    };
    let ty = Type::of_schema(&schema);
    let rules = compile_rules(&definition.rules, &ty, &mut problems);
    check_paths(&definition, &ty, &mut problems);
    let display =
        definition.display.as_deref().and_then(|template| match Display::compile(template) {
            Ok(display) => Some(display),
            Err(error) => {
                problems.push(Problem::new(
                    Code::BadDisplay,
                    "display",
                    error,
                    "see the minijinja syntax",
                ));
                None
            }
        });
    if !problems.is_empty() {
        return Err(LoadError { name, problems });
    }
    let fields_read = fields_read(&rules);
    let reference = format!("{}@{}", definition.contract, definition.version);
    let contract =
        Contract { definition, reference, schema, validator, ty, rules, fields_read, display };
    let problems = check_examples(&contract);
    if problems.is_empty() { Ok(contract) } else { Err(LoadError { name, problems }) }
}

/// The root fields that rules read; `None` if one reads the result as a whole.
fn fields_read(rules: &[CompiledRule]) -> Option<Vec<String>> {
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

fn check_head(definition: &Definition, problems: &mut Vec<Problem>) {
    if let Err(message) = check_id(&definition.contract) {
        problems.push(Problem::new(
            Code::BadId,
            "contract",
            message,
            "write namespace/name in lower case",
        ));
    }
    for (index, alias) in definition.aliases.iter().enumerate() {
        if alias.is_empty() || alias.contains(['@', ' ']) || *alias == definition.contract {
            problems.push(Problem::new(
                Code::BadId,
                &format!("aliases[{index}]"),
                format!("'{alias}' cannot be an alias"),
                "an alias has no blanks and no version, and is not the id itself",
            ));
        }
    }
    if definition.version == 0 {
        problems.push(Problem::new(
            Code::BadId,
            "version",
            "versions count from 1",
            "write version: 1",
        ));
    }
    if definition.policy.max_depth > DEEPEST || definition.policy.max_depth == 0 {
        problems.push(Problem::new(
            Code::BadPolicy,
            "policy.max_depth",
            format!("a depth limit of {} is not possible", definition.policy.max_depth),
            format!("choose 1 to {DEEPEST}"),
        ));
    }
}

fn schema_of(definition: &mut Definition) -> Result<Value, Vec<Problem>> {
    match (&definition.schema, &definition.fields) {
        (Some(_), Some(_)) => Err(vec![Problem::new(
            Code::BadSchema,
            "fields",
            "a contract has a schema or fields, not both",
            "remove one of them",
        )]),
        (None, None) => Err(vec![Problem::new(
            Code::BadSchema,
            "",
            "a contract needs a schema or fields",
            "add fields: with a name and a type for each",
        )]),
        (Some(schema), None) => Ok(schema.clone()),
        (None, Some(fields)) => crate::fields::to_schema(fields).map_err(|problems| {
            problems
                .into_iter()
                .map(|problem| {
                    Problem::new(
                        Code::BadField,
                        &problem.path,
                        problem.message,
                        "see docs/contracts.md",
                    )
                })
                .collect()
        }),
    }
}

fn compile_rules(rules: &[Rule], root: &Type, problems: &mut Vec<Problem>) -> Vec<CompiledRule> {
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
                format!("the rule '{}' demands nothing", rule.id),
                "add require, forbid, check or unique",
            ));
        }
        if let Some(rule) = compile_rule(rule, &place, root, problems) {
            compiled.push(rule);
        }
    }
    compiled
}

fn compile_rule(
    rule: &Rule,
    place: &str,
    root: &Type,
    problems: &mut Vec<Problem>,
) -> Option<CompiledRule> {
    let before = problems.len();
    let mut item = None;
    for (key, pattern) in [("each", &rule.each), ("unique", &rule.unique)] {
        let Some(pattern) = pattern else { continue };
        match pattern.strip_prefix('/').and_then(|path| root.at(path.split('/'))) {
            Some(ty) if key == "each" => item = Some(ty),
            Some(_) => {}
            None => problems.push(Problem::new(
                Code::BadRule,
                &format!("{place}.{key}"),
                format!("'{pattern}' leads nowhere in the schema"),
                "write a pointer with * for the items, as in /findings/*/id",
            )),
        }
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
            format!("the rule '{}' demands unique values and something else", rule.id),
            "make it two rules",
        ));
    }
    let subject = item.as_ref().unwrap_or(root);
    if let Some(at) = &rule.at
        && subject.at(at.split('/').skip(1)).is_none()
    {
        problems.push(Problem::new(
            Code::BadRule,
            &format!("{place}.at"),
            format!("'{at}' leads nowhere in the schema"),
            "write the pointer of a field, as in /fix_info",
        ));
    }
    for (key, fields) in [("require", &rule.require), ("forbid", &rule.forbid)] {
        for field in fields {
            if let Some(object) = subject.object()
                && !object.open
                && !object.fields.contains_key(field)
            {
                let names = object.fields.keys().map(String::as_str);
                problems.push(Problem::new(
                    Code::BadRule,
                    &format!("{place}.{key}"),
                    format!("unknown field '{field}'"),
                    did_you_mean(field, names)
                        .unwrap_or_else(|| "name a field of the schema".into()),
                ));
            }
        }
    }
    let mut scope = Scope::of("result", root.clone());
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
                            "compare it with something",
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
                    let scope = scope.clone().knowing(&checked);
                    Some((Expr::new(source, checked.into_code()), scope))
                }
                Err(found) => {
                    for problem in found {
                        problems.push(Problem::new(
                            Code::BadRule,
                            &format!("{place}.{key}"),
                            format!("{}\n{}", problem.message, carets(source, &problem)),
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

/// The line of an expression with carets under what is wrong.
fn carets(source: &str, problem: &ExprProblem) -> String {
    let before: String = source.chars().take(problem.start).collect();
    let line_start = before.rfind('\n').map_or(0, |newline| before[..=newline].chars().count());
    let line: String = source.chars().skip(line_start).take_while(|c| *c != '\n').collect();
    let width = line.chars().count();
    let from = (problem.start - line_start).min(width);
    let length = (problem.end - problem.start).clamp(1, (width - from).max(1));
    format!("      {line}\n      {}{}", " ".repeat(from), "^".repeat(length))
}

/// Whether a path such as `findings/*/file` is one of a type.
fn leads(path: &str, root: &Type) -> bool {
    path.is_empty() || root.at(path.trim_start_matches('/').split(['/', '.'])).is_some()
}

/// Paths of claims and policies must lead somewhere.
fn check_paths(definition: &Definition, root: &Type, problems: &mut Vec<Problem>) {
    claims::check(definition, root, problems);
    for (index, rename) in definition.policy.rename.iter().enumerate() {
        let field = format!("{}/{}", rename.at, rename.to);
        if !leads(&field, root) {
            problems.push(Problem::new(
                Code::BadPolicy,
                &format!("policy.rename[{index}]"),
                format!("'{field}' leads nowhere in the schema"),
                "at: is a pointer pattern, to: a field of the objects there",
            ));
        }
    }
    let mut patterns: Vec<(&str, &String)> =
        definition.policy.salvage.iter().map(|path| ("policy.salvage", path)).collect();
    if let Coerce::Fields(fields) = &definition.policy.coerce {
        patterns.extend(fields.iter().map(|path| ("policy.coerce", path)));
    }
    for (place, path) in patterns {
        if !leads(path, root) {
            problems.push(Problem::new(
                Code::BadPolicy,
                place,
                format!("'{path}' leads nowhere in the schema"),
                "write a JSON pointer, with * for the items of a list",
            ));
        }
    }
}

fn check_examples(contract: &Contract) -> Vec<Problem> {
    let mut problems = check_defaults(contract);
    if let (Some(display), true) = (&contract.display, contract.definition.examples.is_empty())
        && let Err(error) = display.try_render(&Value::Null)
    {
        problems.push(Problem::new(Code::BadDisplay, "display", error, "see the minijinja syntax"));
    }
    for (index, example) in contract.definition.examples.iter().enumerate() {
        let report = contract.judge_value(example);
        for violation in report.violations {
            problems.push(Problem::new(
                Code::BadExample,
                &format!("examples[{index}]{}", violation.pointer),
                format!("{} ({})", violation.message, violation.code),
                violation.hint,
            ));
        }
        if let Some(display) = &contract.display
            && let Err(error) = display.try_render(example)
        {
            problems.push(Problem::new(
                Code::BadDisplay,
                "display",
                error,
                "the template must fit every example",
            ));
        }
    }
    for (index, counter) in contract.definition.counter_examples.iter().enumerate() {
        let report = contract.judge_value(&counter.value);
        let place = format!("counter_examples[{index}]");
        let by_rule = |id: &str| {
            report.violations.iter().any(|violation| violation.rule.as_deref() == Some(id))
        };
        let codes: Vec<&str> = report.codes().iter().map(|code| code.as_str()).collect();
        if report.status == Status::Accepted {
            problems.push(Problem::new(
                Code::BadExample,
                &place,
                "a counter-example is accepted",
                "it must be refused",
            ));
        } else if !codes.contains(&counter.because.as_str()) && !by_rule(&counter.because) {
            problems.push(Problem::new(
                Code::BadExample,
                &place,
                format!("it is refused by {}, not by {}", codes.join(", "), counter.because),
                "name the code or the rule that refuses it",
            ));
        }
    }
    problems
}
