//! Traversals of a syntax tree that do not depend on types: depth, positions, rewriting.

use minijinja::machinery::ast::{BinOpKind, Call, CallArg, Expr, Stmt};

use super::TemplateProblem;
use super::syntax::MAX_EXPRESSION_DEPTH;
use std::collections::BTreeSet;

/// The byte range of an expression. The parser's own spans start too late in chains such as `a.b.c`
/// and too early in conditions, so the start is that of the leftmost part.
pub(super) fn byte_range(expr: &Expr<'_>) -> (usize, usize) {
    let span = expr.span();
    let mut leftmost = expr;
    loop {
        leftmost = match leftmost {
            Expr::GetAttr(attr) => &attr.expr,
            Expr::GetItem(item) => &item.expr,
            Expr::Slice(slice) => &slice.expr,
            Expr::Call(call) => &call.expr,
            Expr::Test(test) => &test.expr,
            Expr::BinOp(op) => &op.left,
            Expr::Compare(compare) => &compare.expr,
            Expr::IfExpr(choice) => &choice.true_expr,
            Expr::Filter(filter) => match &filter.expr {
                Some(expr) => expr,
                None => break,
            },
            Expr::UnaryOp(op) if op.span().start_offset > op.expr.span().start_offset => &op.expr,
            _ => break,
        };
    }
    (leftmost.span().start_offset as usize, span.end_offset as usize)
}

/// The direct subexpressions of an expression.
pub(super) fn subexpressions<'t, 's>(expr: &'t Expr<'s>) -> Vec<&'t Expr<'s>> {
    fn values<'t, 's>(args: &'t [CallArg<'s>]) -> impl Iterator<Item = &'t Expr<'s>> {
        args.iter().map(argument)
    }
    match expr {
        Expr::Var(_) | Expr::Const(_) => Vec::new(),
        Expr::Slice(slice) => {
            [Some(&slice.expr), slice.start.as_ref(), slice.stop.as_ref(), slice.step.as_ref()]
                .into_iter()
                .flatten()
                .collect()
        }
        Expr::UnaryOp(op) => vec![&op.expr],
        Expr::BinOp(op) => vec![&op.left, &op.right],
        Expr::Compare(compare) => {
            std::iter::once(&compare.expr).chain(compare.ops.iter().map(|op| &op.expr)).collect()
        }
        Expr::IfExpr(choice) => {
            [Some(&choice.test_expr), Some(&choice.true_expr), choice.false_expr.as_ref()]
                .into_iter()
                .flatten()
                .collect()
        }
        Expr::Filter(filter) => filter.expr.iter().chain(values(&filter.args)).collect(),
        Expr::Test(test) => std::iter::once(&test.expr).chain(values(&test.args)).collect(),
        Expr::GetAttr(attr) => vec![&attr.expr],
        Expr::GetItem(item) => vec![&item.expr, &item.subscript_expr],
        Expr::Call(call) => std::iter::once(&call.expr).chain(values(&call.args)).collect(),
        Expr::List(list) => list.items.iter().collect(),
        Expr::Tuple(tuple) => tuple.items.iter().collect(),
        Expr::Map(map) => map.keys.iter().chain(&map.values).collect(),
    }
}

/// The expression of an argument.
pub(super) fn argument<'t, 's>(arg: &'t CallArg<'s>) -> &'t Expr<'s> {
    match arg {
        CallArg::Pos(expr)
        | CallArg::Kwarg(_, expr)
        | CallArg::PosSplat(expr)
        | CallArg::KwargSplat(expr) => expr,
    }
}

/// The expressions and the bodies of a statement.
pub(super) fn statement_parts<'t, 's>(
    stmt: &'t Stmt<'s>,
) -> (Vec<&'t Expr<'s>>, Vec<&'t [Stmt<'s>]>) {
    match stmt {
        Stmt::Template(template) => (Vec::new(), vec![&template.children]),
        Stmt::EmitExpr(emit) => (vec![&emit.expr], Vec::new()),
        Stmt::EmitRaw(_) => (Vec::new(), Vec::new()),
        Stmt::ForLoop(each) => (
            [Some(&each.target), Some(&each.iter), each.filter_expr.as_ref()]
                .into_iter()
                .flatten()
                .collect(),
            vec![&each.body, &each.else_body],
        ),
        Stmt::IfCond(choice) => (vec![&choice.expr], vec![&choice.true_body, &choice.false_body]),
        Stmt::WithBlock(with) => (
            with.assignments.iter().flat_map(|(target, expr)| [target, expr]).collect(),
            vec![&with.body],
        ),
        Stmt::Set(set) => (vec![&set.target, &set.expr], Vec::new()),
        Stmt::SetBlock(set) => {
            (std::iter::once(&set.target).chain(&set.filter).collect(), vec![&set.body])
        }
        Stmt::AutoEscape(block) => (vec![&block.enabled], vec![&block.body]),
        Stmt::FilterBlock(block) => (vec![&block.filter], vec![&block.body]),
        Stmt::Do(call) => {
            (call.call.args.iter().map(argument).chain([&call.call.expr]).collect(), Vec::new())
        }
    }
}

/// The variables of which a part is taken, as in `text[:20]`. The engine of the templates does not
/// count them among those that are read. Names that the template assigns itself are left out.
pub(super) fn sliced_names(tree: &Stmt<'_>) -> BTreeSet<String> {
    let (mut sliced, mut assigned) = (BTreeSet::new(), BTreeSet::new());
    let mut statements = vec![tree];
    while let Some(stmt) = statements.pop() {
        let targets: Vec<&Expr<'_>> = match stmt {
            Stmt::ForLoop(each) => vec![&each.target],
            Stmt::WithBlock(with) => with.assignments.iter().map(|(target, _)| target).collect(),
            Stmt::Set(set) => vec![&set.target],
            Stmt::SetBlock(set) => vec![&set.target],
            _ => Vec::new(),
        };
        assigned.extend(targets.into_iter().flat_map(variables));
        let (expressions, bodies) = statement_parts(stmt);
        statements.extend(bodies.into_iter().flatten());
        let mut open = expressions;
        while let Some(part) = open.pop() {
            if let Expr::Slice(slice) = part {
                sliced.extend(variables(&slice.expr));
            }
            open.extend(subexpressions(part));
        }
    }
    sliced.difference(&assigned).map(|name| (*name).to_owned()).collect()
}

/// The names in an expression.
fn variables<'s>(expr: &Expr<'s>) -> BTreeSet<&'s str> {
    let mut names = BTreeSet::new();
    let mut open = vec![expr];
    while let Some(part) = open.pop() {
        if let Expr::Var(variable) = part {
            names.insert(variable.id);
        }
        open.extend(subexpressions(part));
    }
    names
}

/// Reports expressions nested so deeply that recursion over them could exhaust the stack. Iterative
/// itself.
pub(super) fn check_depth(tree: &Stmt<'_>, problems: &mut Vec<TemplateProblem>) {
    let mut statements = vec![tree];
    while let Some(stmt) = statements.pop() {
        let (expressions, bodies) = statement_parts(stmt);
        statements.extend(bodies.into_iter().flatten());
        for expr in expressions {
            let mut open = vec![(expr, 1)];
            while let Some((part, depth)) = open.pop() {
                if depth > MAX_EXPRESSION_DEPTH {
                    let (start, end) = byte_range(expr);
                    let message =
                        format!("the expression is nested more than {MAX_EXPRESSION_DEPTH} deep");
                    problems.push(TemplateProblem::new(
                        message,
                        "assign the inner parts with {% set %}",
                        start,
                        end,
                    ));
                    break;
                }
                open.extend(subexpressions(part).into_iter().map(|part| (part, depth + 1)));
            }
        }
    }
}

/// The maximum number of instructions for a template. Text that a loop writes into a captured block
/// (`{% set %}…{% endset %}`) uses memory that is not counted: the longer it is, the fewer
/// instructions are allowed.
pub(super) fn fuel(tree: &Stmt<'_>, most: u64) -> u64 {
    const MEMORY: u64 = 256 << 20;
    let mut largest = 1;
    let mut open = vec![(tree, false, false)];
    while let Some((stmt, captured, repeated)) = open.pop() {
        if let (Stmt::EmitRaw(text), true, true) = (stmt, captured, repeated) {
            largest = largest.max(u64::try_from(text.raw.len()).unwrap_or(u64::MAX));
        }
        let captured = captured || matches!(stmt, Stmt::SetBlock(_) | Stmt::FilterBlock(_));
        let repeated = repeated || matches!(stmt, Stmt::ForLoop(_));
        open.extend(
            statement_parts(stmt).1.into_iter().flatten().map(|stmt| (stmt, captured, repeated)),
        );
    }
    most.min(MEMORY / largest)
}

/// The number of operators that concatenate.
pub(super) fn concatenations(tree: &Stmt<'_>) -> usize {
    let mut count = 0;
    let mut statements = vec![tree];
    while let Some(stmt) = statements.pop() {
        let (mut expressions, bodies) = statement_parts(stmt);
        statements.extend(bodies.into_iter().flatten());
        while let Some(expr) = expressions.pop() {
            if let Expr::BinOp(op) = expr
                && matches!(op.op, BinOpKind::Concat | BinOpKind::Add)
            {
                count += 1;
            }
            expressions.extend(subexpressions(expr));
        }
    }
    count
}

/// Reports constructs that would make `minijinja` panic: slices with a negative or computed step, and
/// `loop.cycle` without arguments.
pub(super) fn check_runnable(tree: &Stmt<'_>, problems: &mut Vec<TemplateProblem>) {
    let mut statements = vec![tree];
    while let Some(stmt) = statements.pop() {
        let (mut expressions, bodies) = statement_parts(stmt);
        statements.extend(bodies.into_iter().flatten());
        while let Some(expr) = expressions.pop() {
            let (start, end) = byte_range(expr);
            match expr {
                Expr::Slice(slice) if slice.step.as_ref().is_some_and(|step| !is_forward(step)) => {
                    let hint = "write the step as a number of at least 1; to reverse a list, use | reverse";
                    problems.push(TemplateProblem::new(
                        "the step of a slice must be a positive number",
                        hint,
                        start,
                        end,
                    ));
                }
                Expr::Call(call) if is_empty_cycle(call) => {
                    let hint = "pass them one by one: loop.cycle('a', 'b')";
                    problems.push(TemplateProblem::new(
                        "'cycle' needs at least one value",
                        hint,
                        start,
                        end,
                    ));
                }
                _ => {}
            }
            expressions.extend(subexpressions(expr));
        }
    }
}

fn is_forward(step: &Expr<'_>) -> bool {
    matches!(step, Expr::Const(step) if step.value.as_i64().is_some_and(|step| step > 0))
}

fn is_empty_cycle(call: &Call<'_>) -> bool {
    matches!(&call.expr, Expr::GetAttr(attr) if attr.name == "cycle")
        && !call.args.iter().any(|arg| matches!(arg, CallArg::Pos(_)))
}

/// Whether a filter handles absent values.
pub(super) fn filter_accepts_absent(name: &str) -> bool {
    matches!(name, "default" | "d")
}

/// Whether a test handles absent values.
pub(super) fn test_accepts_absent(name: &str) -> bool {
    matches!(name, "defined" | "undefined" | "none")
}

/// Rewrites the source for rendering. `minijinja` fails at the first absent value in a chain, even if
/// the chain has a default. So each part but the last gets an empty object as its default:
/// `a.b.c | default(1)` becomes `((a|default({})).b|default({})).c | default(1)`.
pub(super) fn with_lenient_chains(source: &str, tree: &Stmt<'_>) -> String {
    let mut insertions: Vec<(usize, &str)> = Vec::new();
    let mut statements = vec![tree];
    while let Some(stmt) = statements.pop() {
        let (mut expressions, bodies) = statement_parts(stmt);
        statements.extend(bodies.into_iter().flatten());
        while let Some(expr) = expressions.pop() {
            let mut chain = match expr {
                Expr::Filter(filter) if filter_accepts_absent(filter.name) => filter.expr.as_ref(),
                Expr::Test(test) if test_accepts_absent(test.name) => Some(&test.expr),
                _ => None,
            };
            while let Some(part) = chain {
                chain = match part {
                    Expr::GetAttr(attr) => Some(&attr.expr),
                    Expr::GetItem(item) if matches!(item.subscript_expr, Expr::Const(_)) => {
                        Some(&item.expr)
                    }
                    _ => None,
                };
                if let Some(base @ (Expr::Var(_) | Expr::GetAttr(_) | Expr::GetItem(_))) = chain {
                    let (start, end) = byte_range(base);
                    insertions.push((start, "("));
                    insertions.push((end, "|default({}))"));
                }
            }
            expressions.extend(subexpressions(expr));
        }
    }
    insertions.sort_by_key(|(at, _)| *at);
    let mut text = String::with_capacity(source.len() + insertions.len() * 8);
    let mut from = 0;
    for (at, insertion) in insertions {
        text.push_str(source.get(from..at).unwrap_or_default());
        text.push_str(insertion);
        from = at.max(from);
    }
    text.push_str(source.get(from..).unwrap_or_default());
    text
}
