//! Converts a guard to a formula over its subjects, the values that it tests.

use super::path::{Path, Step};
use super::render::render;
use super::scope::Scope;
use super::types::Type;
use cel::common::ast::{CallExpr, Expr as Ast, IdedExpr, LiteralValue, operators as op};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// A condition over subjects. A subject is identified by the text of its expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Formula {
    Always(bool),
    Not(Box<Formula>),
    And(Box<Formula>, Box<Formula>),
    Or(Box<Formula>, Box<Formula>),
    If(Box<Formula>, Box<Formula>, Box<Formula>),
    Test(String, Test),
}

/// A test of one subject.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Test {
    Present,
    Null,
    Bool(bool),
    Text(String),
    /// A comparison of a number with a literal.
    Number(f64, OrderingSet),
    /// A comparison of two values.
    Pair(OrderingSet),
}

/// The orderings for which a comparison is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OrderingSet {
    less: bool,
    equal: bool,
    greater: bool,
}

impl OrderingSet {
    const EQUAL: Self = Self { less: false, equal: true, greater: false };

    fn from_operator(operator: &str) -> Option<Self> {
        let (less, equal, greater) = match operator {
            op::LESS => (true, false, false),
            op::LESS_EQUALS => (true, true, false),
            op::GREATER => (false, false, true),
            op::GREATER_EQUALS => (false, true, true),
            op::EQUALS => (false, true, false),
            _ => return None,
        };
        Some(Self { less, equal, greater })
    }

    fn swapped(self) -> Self {
        Self { less: self.greater, equal: self.equal, greater: self.less }
    }

    pub(super) fn contains(self, ordering: Ordering) -> bool {
        match ordering {
            Ordering::Less => self.less,
            Ordering::Equal => self.equal,
            Ordering::Greater => self.greater,
        }
    }
}

/// A value that guards test, and what is known about it.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    pub(super) kind: Kind,
    /// The literals that it is compared with.
    pub(super) texts: Vec<String>,
    pub(super) numbers: Vec<f64>,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// A value of a type, which may be missing.
    Value { ty: Type, may_be_missing: bool },
    /// A non-negative integer.
    Count,
    /// The ordering of two values.
    Pair { left: String, right: String },
}

/// Builds formulas from guards and collects their subjects.
pub(super) struct FormulaBuilder<'s> {
    pub(super) scope: &'s Scope,
    pub(super) subjects: BTreeMap<String, Subject>,
}

/// A literal that a subject can be compared with.
enum Literal {
    Null,
    Bool(bool),
    Text(String),
    Number(f64),
}

impl FormulaBuilder<'_> {
    pub(super) fn condition(&mut self, expr: &IdedExpr) -> Formula {
        match &expr.expr {
            Ast::Literal(LiteralValue::Boolean(flag)) => Formula::Always(*flag.inner()),
            Ast::Select(select) if select.test => match Path::from_expr(&select.operand) {
                Some(path) => self.present(&path.child(Step::Field(select.field.clone()))),
                None => self.boolean_test(expr),
            },
            Ast::Call(call) if call.target.is_none() => self.call(expr, call),
            _ => self.boolean_test(expr),
        }
    }

    fn call(&mut self, expr: &IdedExpr, call: &CallExpr) -> Formula {
        match (call.func_name.as_str(), call.args.as_slice()) {
            (op::LOGICAL_AND, [left, right]) => {
                Formula::And(self.condition(left).into(), self.condition(right).into())
            }
            (op::LOGICAL_OR, [left, right]) => {
                Formula::Or(self.condition(left).into(), self.condition(right).into())
            }
            (op::LOGICAL_NOT, [inner]) => Formula::Not(self.condition(inner).into()),
            (op::CONDITIONAL, [condition, yes, no]) => {
                let condition = self.condition(condition).into();
                Formula::If(condition, self.condition(yes).into(), self.condition(no).into())
            }
            (op::NOT_EQUALS, [left, right]) => {
                Formula::Not(self.compare(expr, left, right, OrderingSet::EQUAL).into())
            }
            (name, [left, right]) if let Some(orders) = OrderingSet::from_operator(name) => {
                self.compare(expr, left, right, orders)
            }
            (op::IN, [item, container]) => self.membership(expr, item, container),
            _ => self.boolean_test(expr),
        }
    }

    fn compare(
        &mut self,
        expr: &IdedExpr,
        left: &IdedExpr,
        right: &IdedExpr,
        orders: OrderingSet,
    ) -> Formula {
        let is_equality = orders == OrderingSet::EQUAL;
        match (literal(left), literal(right)) {
            (None, Some(right)) if is_equality || matches!(right, Literal::Number(_)) => {
                self.compare_with_literal(left, right, orders)
            }
            (Some(left), None) if is_equality || matches!(left, Literal::Number(_)) => {
                self.compare_with_literal(right, left, orders.swapped())
            }
            (Some(Literal::Number(a)), Some(Literal::Number(b))) => {
                Formula::Always(a.partial_cmp(&b).is_some_and(|ordering| orders.contains(ordering)))
            }
            (Some(Literal::Text(a)), Some(Literal::Text(b))) if is_equality => {
                Formula::Always(a == b)
            }
            (Some(Literal::Bool(a)), Some(Literal::Bool(b))) if is_equality => {
                Formula::Always(a == b)
            }
            (None, None) => {
                let (left, right) = (render(left), render(right));
                let (left, right, orders) = if left <= right {
                    (left, right, orders)
                } else {
                    (right, left, orders.swapped())
                };
                let key = format!("{left} <=> {right}");
                self.subject(&key, || Kind::Pair { left, right });
                Formula::Test(key, Test::Pair(orders))
            }
            _ => self.boolean_test(expr),
        }
    }

    fn compare_with_literal(
        &mut self,
        expr: &IdedExpr,
        literal: Literal,
        orders: OrderingSet,
    ) -> Formula {
        let key = self.value(expr);
        let test = match literal {
            Literal::Null => Test::Null,
            Literal::Bool(flag) => Test::Bool(flag),
            Literal::Text(text) => {
                if let Some(subject) = self.subjects.get_mut(&key) {
                    subject.texts.push(text.clone());
                }
                Test::Text(text)
            }
            Literal::Number(number) => {
                if let Some(subject) = self.subjects.get_mut(&key) {
                    subject.numbers.push(number);
                }
                Test::Number(number, orders)
            }
        };
        Formula::Test(key, test)
    }

    fn membership(&mut self, expr: &IdedExpr, item: &IdedExpr, container: &IdedExpr) -> Formula {
        if let Ast::List(list) = &container.expr {
            let literals: Option<Vec<Literal>> = list.elements.iter().map(literal).collect();
            if let (Some(literals), None) = (literals, literal(item)) {
                return literals.into_iter().fold(Formula::Always(false), |formula, literal| {
                    Formula::Or(
                        formula.into(),
                        self.compare_with_literal(item, literal, OrderingSet::EQUAL).into(),
                    )
                });
            }
        }
        if let (Some(Literal::Text(key)), Some(path)) = (literal(item), Path::from_expr(container))
            && let Some((ty, _)) = self.type_at(&path)
            && ty
                .non_null()
                .alternatives()
                .iter()
                .all(|ty| matches!(ty, Type::Object(_) | Type::Map(_)))
        {
            return self.present(&path.child(Step::Field(key)));
        }
        self.boolean_test(expr)
    }

    fn present(&mut self, path: &Path) -> Formula {
        let key = path.to_string();
        self.path_subject(&key, path);
        Formula::Test(key, Test::Present)
    }

    /// A test that the expression itself is true.
    fn boolean_test(&mut self, expr: &IdedExpr) -> Formula {
        Formula::Test(self.value(expr), Test::Bool(true))
    }

    /// Registers an expression as a subject and returns its key.
    fn value(&mut self, expr: &IdedExpr) -> String {
        let key = render(expr);
        if let Some(path) = Path::from_expr(expr) {
            self.path_subject(&key, &path);
        } else {
            self.subject(&key, || computed_kind(expr));
        }
        key
    }

    fn path_subject(&mut self, key: &str, path: &Path) {
        let (ty, may_be_missing) = self.type_at(path).unwrap_or((Type::Any, true));
        self.subject(key, || Kind::Value { ty, may_be_missing });
    }

    fn subject(&mut self, key: &str, kind: impl FnOnce() -> Kind) {
        if !self.subjects.contains_key(key) {
            let subject = Subject { kind: kind(), texts: Vec::new(), numbers: Vec::new() };
            self.subjects.insert(key.to_owned(), subject);
        }
    }

    /// The type of the value at a path and whether it may be missing, given the known facts.
    fn type_at(&self, path: &Path) -> Option<(Type, bool)> {
        let mut ty = self.scope.variables.get(&path.root)?.clone();
        let mut may_be_missing = false;
        let mut so_far = Path { root: path.root.clone(), steps: Vec::new() };
        for step in &path.steps {
            so_far = so_far.child(step.clone());
            let mut types = Vec::new();
            may_be_missing = false;
            for alternative in ty.alternatives() {
                match (alternative, step) {
                    (Type::Object(object), Step::Field(name))
                        if object.fields.contains_key(name) =>
                    {
                        let field = &object.fields[name];
                        may_be_missing |= !field.is_present();
                        types.push(if field.required {
                            field.ty.clone()
                        } else {
                            field.ty.non_null()
                        });
                    }
                    (Type::Map(values), Step::Field(_)) => {
                        may_be_missing = true;
                        types.push(values.as_ref().clone());
                    }
                    (Type::List(items), Step::Item(_)) => types.push(items.as_ref().clone()),
                    (Type::Null, _) => {}
                    _ => {
                        may_be_missing = true;
                        types.push(Type::Any);
                    }
                }
            }
            ty = Type::union(types);
        }
        let known = &self.scope.known;
        if known.is_not_null(&so_far) {
            ty = ty.non_null();
        }
        Some((ty, may_be_missing && !known.is_present(&so_far)))
    }
}

/// The kind of a subject that is computed rather than read from a path.
fn computed_kind(expr: &IdedExpr) -> Kind {
    let value = |ty: Type| Kind::Value { ty, may_be_missing: false };
    match &expr.expr {
        Ast::Comprehension(comprehension)
            if !matches!(comprehension.accu_init.expr, Ast::List(_)) =>
        {
            value(Type::Bool)
        }
        Ast::Select(select) if select.test => value(Type::Bool),
        Ast::Call(call) => match call.func_name.as_str() {
            "size" => Kind::Count,
            "int" | "indexOf" => value(Type::Int),
            "string" | "trim" | "lowerAscii" | "upperAscii" | "replace" | "slug" | "substring"
            | "join" | "json" => value(Type::text()),
            "contains" | "startsWith" | "endsWith" | "matches" | "bool" | op::IN => {
                value(Type::Bool)
            }
            op::LESS | op::LESS_EQUALS | op::GREATER | op::GREATER_EQUALS => value(Type::Bool),
            op::EQUALS | op::NOT_EQUALS | op::LOGICAL_AND | op::LOGICAL_OR | op::LOGICAL_NOT => {
                value(Type::Bool)
            }
            _ => value(Type::Any),
        },
        _ => value(Type::Any),
    }
}

/// Numbers at or above this limit may be indistinguishable from a neighbouring integer in CEL.
const MAX_EXACT: f64 = 9e15;

fn literal(expr: &IdedExpr) -> Option<Literal> {
    match &expr.expr {
        Ast::Literal(LiteralValue::Null) => Some(Literal::Null),
        Ast::Literal(LiteralValue::Boolean(flag)) => Some(Literal::Bool(*flag.inner())),
        Ast::Literal(LiteralValue::String(text)) => Some(Literal::Text(text.inner().to_owned())),
        Ast::Literal(LiteralValue::Double(number)) => number_within(*number.inner()),
        #[allow(clippy::cast_precision_loss)] // Numbers that lose precision are rejected below.
        Ast::Literal(LiteralValue::Int(number)) => number_within(*number.inner() as f64),
        Ast::Call(call) if call.func_name == op::NEGATE => match literal(call.args.first()?)? {
            Literal::Number(number) => Some(Literal::Number(-number)),
            _ => None,
        },
        _ => None,
    }
}

fn number_within(number: f64) -> Option<Literal> {
    (number.abs() < MAX_EXACT).then_some(Literal::Number(number))
}
