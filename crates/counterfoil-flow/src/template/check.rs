//! Holds a template to the types of its variables: statements, and the names they bind.

use counterfoil_contract::Type;
use minijinja::machinery::ast::{Expr, ForLoop, IfCond, Stmt};
use std::collections::{BTreeMap, BTreeSet};

use super::TemplateProblem;
use super::scope::{Scope, When, facts, path};
use super::shape::{Kind, Shape};
use super::tree::place;

/// The most problems noted; looking for the nearest of many names takes its time.
const MOST_PROBLEMS: usize = 100;

/// Everything wrong with a template, in the order of the text; of very much, the first hundred.
pub(super) fn check(tree: &Stmt<'_>, variables: &BTreeMap<String, Type>) -> Vec<TemplateProblem> {
    let mut checker = Checker { scope: Scope::default(), problems: Vec::new() };
    checker.scope.enter(Vec::new());
    for (name, ty) in variables {
        checker.scope.bind(name, Shape::of(ty));
    }
    checker.scope.enter(Vec::new());
    checker.statement(tree);
    let mut problems = checker.problems;
    problems.sort_by_key(|problem| (problem.start, problem.end));
    problems.dedup();
    problems
}

/// One pass over a template.
pub(super) struct Checker {
    pub(super) scope: Scope,
    pub(super) problems: Vec<TemplateProblem>,
}

impl Checker {
    /// Notes what is wrong with an expression; what it is then is anybody's guess, so nothing
    /// follows from it.
    pub(super) fn refuse(
        &mut self,
        expr: &Expr<'_>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Shape {
        let (start, end) = place(expr);
        self.refuse_at(start, end, message, hint)
    }

    pub(super) fn refuse_at(
        &mut self,
        start: usize,
        end: usize,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Shape {
        if !self.is_hopeless() {
            self.problems.push(TemplateProblem::new(message, hint, start, end));
        }
        Shape::any()
    }

    /// Whether so much is wrong that more of it helps nobody.
    pub(super) fn is_hopeless(&self) -> bool {
        self.problems.len() >= MOST_PROBLEMS
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
            Stmt::ForLoop(each) => self.each(each),
            Stmt::IfCond(choice) => self.choice(choice),
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
                self.need(&block.filter, shape);
            }
            // The reader refuses these.
            Stmt::AutoEscape(_) | Stmt::Do(_) => {}
        }
    }

    /// An expression whose value is written.
    fn print(&mut self, expr: &Expr<'_>) {
        let Expr::IfExpr(choice) = expr else {
            let shape = self.value(expr);
            self.need(expr, shape);
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

    fn each(&mut self, each: &ForLoop<'_>) {
        let list = self.value(&each.iter);
        let list = self.need(&each.iter, list);
        let item = list.items().unwrap_or_else(|| {
            let what = described(&each.iter);
            let message = format!("{what} is {}: there is nothing to loop over", list.name());
            self.refuse(
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
        self.scope.bind("loop", Shape::kind(Kind::Loop));
        self.scope.enter(known);
        self.body(&each.body);
        self.scope.leave();
        self.scope.leave();
        self.scope.enter(Vec::new());
        self.body(&each.else_body);
        let names = self.scope.leave();
        self.merge(names, BTreeMap::new());
    }

    fn choice(&mut self, choice: &IfCond<'_>) {
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
        // A name that only one branch sets keeps what it was in the other, as the condition leaves
        // it.
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

    /// Binds what two ways through a template may have bound.
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

    /// Binds the names of a target to a value, taking it apart if there are several.
    fn assign(&mut self, target: &Expr<'_>, shape: Shape, from: &Expr<'_>) {
        match target {
            Expr::Var(var) => self.scope.bind(var.id, shape),
            Expr::List(list) => {
                let shape = self.need(from, shape);
                let parts = self.taken_apart(target, &shape, list.items.len());
                for (target, shape) in list.items.iter().zip(parts) {
                    self.assign(target, shape, target);
                }
            }
            _ => {
                let hint = "give the value a name of its own: {% set name = … %}";
                self.refuse(target, "the fields of a value cannot be set", hint);
            }
        }
    }

    fn taken_apart(&mut self, target: &Expr<'_>, shape: &Shape, count: usize) -> Vec<Shape> {
        match &shape.kind {
            Kind::Tuple(parts) if parts.len() == count => parts.clone(),
            Kind::Group(common, members) if count == 2 => {
                vec![common.as_ref().clone(), members.as_ref().clone()]
            }
            _ if shape.is_any() => vec![Shape::any(); count],
            _ => {
                let message = format!("{} cannot be taken apart into {count} names", shape.name());
                self.refuse(
                    target,
                    message,
                    "name it once, or loop over pairs: {% for key, value in object | items %}",
                );
                vec![Shape::any(); count]
            }
        }
    }

    /// A value that has to be there.
    pub(super) fn need(&mut self, expr: &Expr<'_>, shape: Shape) -> Shape {
        if shape.is_absent() {
            let state = if shape.missing { "missing" } else { "null" };
            let (what, hint) = match path(expr) {
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
            self.refuse(expr, format!("{what} may be {state} here"), hint);
        }
        shape.present()
    }
}

/// An expression in a message: its path in quotes, or `this value`.
pub(super) fn described(expr: &Expr<'_>) -> String {
    path(expr).map_or_else(|| "this value".to_owned(), |path| format!("'{path}'"))
}
