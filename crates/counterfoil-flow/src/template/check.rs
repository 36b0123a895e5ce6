//! Type-checks a template: statements and the names they bind.

use counterfoil_contract::expr::Type;
use minijinja::machinery::ast::{Expr, ForLoop, IfCond, Stmt};
use std::collections::{BTreeMap, BTreeSet};

use super::TemplateProblem;
use super::scope::{Scope, When, expression_path, facts};
use super::shape::{Kind, Shape};
use super::traverse::byte_range;

/// The maximum number of problems reported. The search for similar names takes time.
const MAX_PROBLEMS: usize = 100;

/// The problems of a template, in the order of the text.
pub(super) fn check(tree: &Stmt<'_>, variables: &BTreeMap<String, Type>) -> Vec<TemplateProblem> {
    let mut checker = Checker { scope: Scope::default(), problems: Vec::new() };
    checker.scope.enter(Vec::new());
    for (name, ty) in variables {
        checker.scope.bind(name, Shape::from_type(ty));
    }
    checker.scope.enter(Vec::new());
    checker.statement(tree);
    let mut problems = checker.problems;
    problems.sort_by_key(|problem| (problem.start, problem.end));
    problems.dedup();
    problems
}

/// The state of one pass over a template.
pub(super) struct Checker {
    pub(super) scope: Scope,
    pub(super) problems: Vec<TemplateProblem>,
}

impl Checker {
    /// Reports a problem of an expression. Returns the shape of an unknown value, so that the problem
    /// causes no others.
    pub(super) fn report(
        &mut self,
        expr: &Expr<'_>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Shape {
        let (start, end) = byte_range(expr);
        self.report_at(start, end, message, hint)
    }

    /// Reports a problem at a byte range.
    pub(super) fn report_at(
        &mut self,
        start: usize,
        end: usize,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Shape {
        if !self.at_limit() {
            self.problems.push(TemplateProblem::new(message, hint, start, end));
        }
        Shape::any()
    }

    /// Whether the maximum number of problems is reached.
    pub(super) fn at_limit(&self) -> bool {
        self.problems.len() >= MAX_PROBLEMS
    }

    fn body(&mut self, statements: &[Stmt<'_>]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &Stmt<'_>) {
        match statement {
            Stmt::Template(template) => self.body(&template.children),
            Stmt::EmitRaw(_) => {}
            Stmt::EmitExpr(emit) => self.print(&emit.expr),
            Stmt::ForLoop(each) => self.for_loop(each),
            Stmt::IfCond(choice) => self.if_block(choice),
            Stmt::WithBlock(with) => {
                self.scope.enter(Vec::new());
                for (target, expr) in &with.assignments {
                    let shape = self.value(expr);
                    self.assign(target, shape, expr);
                }
                self.body(&with.body);
                self.scope.leave();
            }
            Stmt::Set(set) => {
                let shape = self.value(&set.expr);
                self.assign(&set.target, shape, &set.expr);
            }
            Stmt::SetBlock(set) => {
                self.body(&set.body);
                let shape =
                    set.filter.as_ref().map_or_else(Shape::text, |filter| self.value(filter));
                self.assign(&set.target, shape, &set.target);
            }
            Stmt::FilterBlock(block) => {
                self.body(&block.body);
                let shape = self.value(&block.filter);
                self.require_present(&block.filter, shape);
            }
            // The parser rejects these.
            Stmt::AutoEscape(_) | Stmt::Do(_) => {}
        }
    }

    /// Checks an expression whose value is printed.
    fn print(&mut self, expr: &Expr<'_>) {
        let Expr::IfExpr(choice) = expr else {
            let shape = self.value(expr);
            self.require_present(expr, shape);
            return;
        };
        self.value(&choice.test_expr);
        self.scope.enter(facts(&choice.test_expr, When::Holds));
        self.print(&choice.true_expr);
        self.scope.leave();
        if let Some(other) = &choice.false_expr {
            self.scope.enter(facts(&choice.test_expr, When::Fails));
            self.print(other);
            self.scope.leave();
        }
    }

    fn for_loop(&mut self, each: &ForLoop<'_>) {
        let list = self.value(&each.iter);
        let list = self.require_present(&each.iter, list);
        let item = list.items().unwrap_or_else(|| {
            let what = describe(&each.iter);
            let message = format!("{what} is {}, which cannot be looped over", list.describe());
            self.report(
                &each.iter,
                message,
                "loop over a list, or over the pairs of an object: object | items",
            )
        });
        self.scope.enter(Vec::new());
        self.assign(&each.target, item, &each.iter);
        let known = each.filter_expr.as_ref().map_or_else(Vec::new, |filter| {
            self.value(filter);
            facts(filter, When::Holds)
        });
        self.scope.bind("loop", Shape::from_kind(Kind::Loop));
        self.scope.enter(known);
        self.body(&each.body);
        self.scope.leave();
        self.scope.leave();
        self.scope.enter(Vec::new());
        self.body(&each.else_body);
        let names = self.scope.leave();
        self.merge(names, BTreeMap::new());
    }

    fn if_block(&mut self, choice: &IfCond<'_>) {
        self.value(&choice.expr);
        let mut branches = Vec::new();
        let mut names = BTreeSet::new();
        for (when, body) in [(When::Holds, &choice.true_body), (When::Fails, &choice.false_body)] {
            self.scope.enter(facts(&choice.expr, when));
            self.body(body);
            let bound = self.scope.leave();
            names.extend(bound.keys().cloned());
            branches.push((when, bound));
        }
        // In the branch that does not set a name, the name keeps its value, narrowed by the condition.
        for (when, bound) in &mut branches {
            self.scope.enter(facts(&choice.expr, *when));
            for name in &names {
                if !bound.contains_key(name)
                    && let Some(shape) = self.scope.get(name)
                {
                    bound.insert(name.clone(), shape);
                }
            }
            self.scope.leave();
        }
        let mut branches = branches.into_iter().map(|(_, bound)| bound);
        let (one, two) = (branches.next().unwrap_or_default(), branches.next().unwrap_or_default());
        self.merge(one, two);
    }

    /// Binds the names that two branches may have bound, each to the union of its shapes.
    fn merge(&mut self, one: BTreeMap<String, Shape>, mut two: BTreeMap<String, Shape>) {
        for (name, shape) in one {
            let other = two.remove(&name).or_else(|| self.scope.get(&name));
            let shape = match other {
                Some(other) => shape.or(other),
                None => shape.missing(),
            };
            self.scope.bind(&name, shape);
        }
        for (name, shape) in two {
            let shape = match self.scope.get(&name) {
                Some(other) => shape.or(other),
                None => shape.missing(),
            };
            self.scope.bind(&name, shape);
        }
    }

    /// Binds the names of a target to a value, which is destructured if there are several.
    fn assign(&mut self, target: &Expr<'_>, shape: Shape, from: &Expr<'_>) {
        match target {
            Expr::Var(var) => self.scope.bind(var.id, shape),
            Expr::List(list) => {
                let shape = self.require_present(from, shape);
                let parts = self.destructure(target, &shape, list.items.len());
                for (target, shape) in list.items.iter().zip(parts) {
                    self.assign(target, shape, target);
                }
            }
            _ => {
                let hint = "use another name: {% set name = … %}";
                self.report(target, "a field of a value cannot be assigned", hint);
            }
        }
    }

    fn destructure(&mut self, target: &Expr<'_>, shape: &Shape, count: usize) -> Vec<Shape> {
        match &shape.kind {
            Kind::Tuple(parts) if parts.len() == count => parts.clone(),
            Kind::Group(common, members) if count == 2 => {
                vec![common.as_ref().clone(), members.as_ref().clone()]
            }
            _ if shape.is_any() => vec![Shape::any(); count],
            _ => {
                let message =
                    format!("{} cannot be destructured into {count} names", shape.describe());
                self.report(
                    target,
                    message,
                    "use a single name, or loop over pairs: {% for key, value in object | items %}",
                );
                vec![Shape::any(); count]
            }
        }
    }

    /// Reports a value that may be absent. Returns its shape when it is present.
    pub(super) fn require_present(&mut self, expr: &Expr<'_>, shape: Shape) -> Shape {
        if shape.is_absent() {
            let state = if shape.missing { "missing" } else { "null" };
            let (what, hint) = match expression_path(expr) {
                Some(path) => {
                    let guard = format!("guard it: {{% if {path} %}}…{{% endif %}}");
                    let hint = if shape.is_list() && !shape.is_any() {
                        format!("{guard}, or {path} | default([])")
                    } else if shape.all(|ty| matches!(ty, Type::Object(_) | Type::Map(_))) {
                        guard
                    } else {
                        format!("{guard}, or {{{{ {path} | default('none', true) }}}}")
                    };
                    (format!("'{path}'"), hint)
                }
                None => (
                    "this value".to_owned(),
                    "give it a default: … | default('none', true)".to_owned(),
                ),
            };
            self.report(expr, format!("{what} may be {state} here"), hint);
        }
        shape.present()
    }
}

/// An expression for use in a message: its path in quotes, or `this value`.
pub(super) fn describe(expr: &Expr<'_>) -> String {
    expression_path(expr).map_or_else(|| "this value".to_owned(), |path| format!("'{path}'"))
}
