//! Holds a template to the types of its variables.

use countersign_contract::{Type, did_you_mean};
use minijinja::machinery::ast::{Expr, Stmt};
use std::collections::BTreeMap;

use super::TemplateProblem;
use super::tree::{contents, parts, place};

/// Whether a name is a function of the language.
pub(super) fn is_function(name: &str) -> bool {
    matches!(name, "range" | "dict")
}

/// Everything wrong with a template.
pub(super) fn check(tree: &Stmt<'_>, variables: &BTreeMap<String, Type>) -> Vec<TemplateProblem> {
    let mut problems = Vec::new();
    let mut known: Vec<String> = variables.keys().cloned().collect();
    let mut statements = vec![tree];
    let mut expressions = Vec::new();
    while let Some(stmt) = statements.pop() {
        let (found, bodies) = contents(stmt);
        if let Stmt::ForLoop(each) = stmt {
            known.push("loop".to_owned());
            names(&each.target, &mut known);
        }
        match stmt {
            Stmt::Set(set) => names(&set.target, &mut known),
            Stmt::SetBlock(set) => names(&set.target, &mut known),
            Stmt::WithBlock(with) => {
                with.assignments.iter().for_each(|(target, _)| names(target, &mut known));
            }
            _ => {}
        }
        expressions.extend(found);
        statements.extend(bodies.into_iter().flatten());
    }
    while let Some(expr) = expressions.pop() {
        if let Expr::Var(var) = expr
            && !known.iter().any(|name| name == var.id)
            && !is_function(var.id)
        {
            let (start, end) = place(expr);
            let hint = did_you_mean(var.id, known.iter().map(String::as_str)).unwrap_or_default();
            problems.push(TemplateProblem::new(format!("unknown variable '{}'", var.id), hint, start, end));
        }
        expressions.extend(parts(expr));
    }
    problems
}

fn names(target: &Expr<'_>, known: &mut Vec<String>) {
    if let Expr::Var(var) = target {
        known.push(var.id.to_owned());
    }
    for part in parts(target) {
        names(part, known);
    }
}
