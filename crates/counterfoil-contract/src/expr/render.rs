//! Renders a syntax tree as text in a canonical form. Branch analysis uses the text to name and
//! compare the subjects of guards.

use super::loops::Loop;
use super::path::{Path, quoted};
use cel::common::ast::{CallExpr, EntryExpr, Expr as Ast, IdedExpr, LiteralValue, operators as op};

const INFIX: [(&str, &str); 14] = [
    (op::LOGICAL_AND, "&&"),
    (op::LOGICAL_OR, "||"),
    (op::EQUALS, "=="),
    (op::NOT_EQUALS, "!="),
    (op::LESS, "<"),
    (op::LESS_EQUALS, "<="),
    (op::GREATER, ">"),
    (op::GREATER_EQUALS, ">="),
    (op::ADD, "+"),
    (op::SUBSTRACT, "-"),
    (op::MULTIPLY, "*"),
    (op::DIVIDE, "/"),
    (op::MODULO, "%"),
    (op::IN, "in"),
];

/// The text of an expression.
pub(super) fn render(expr: &IdedExpr) -> String {
    if let Some(path) = Path::from_expr(expr) {
        return path.to_string();
    }
    match &expr.expr {
        Ast::Ident(name) => name.clone(),
        Ast::Literal(literal) => render_literal(literal),
        Ast::Select(select) if select.test => {
            format!("has({}.{})", operand(&select.operand), select.field)
        }
        Ast::Select(select) => format!("{}.{}", operand(&select.operand), select.field),
        Ast::Call(call) => render_call(call),
        Ast::List(list) => format!("[{}]", render_list(&list.elements)),
        Ast::Map(map) => {
            let entries = map.entries.iter().map(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => {
                    format!("{}: {}", render(&entry.key), render(&entry.value))
                }
                EntryExpr::StructField(field) => {
                    format!("{}: {}", field.field, render(&field.value))
                }
            });
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        Ast::Comprehension(comprehension) => {
            let (range, item) = (operand(&comprehension.iter_range), &comprehension.iter_var);
            match Loop::from_comprehension(comprehension) {
                Some(Loop::Test { name, condition }) => {
                    format!("{range}.{name}({item}, {})", render(condition))
                }
                Some(Loop::Collect { condition: None, value }) => {
                    format!("{range}.map({item}, {})", render(value))
                }
                Some(Loop::Collect { condition: Some(condition), value }) => {
                    let (condition, value) = (render(condition), render(value));
                    if value == *item {
                        format!("{range}.filter({item}, {condition})")
                    } else {
                        format!("{range}.map({item}, {condition}, {value})")
                    }
                }
                None => format!("{comprehension:?}"),
            }
        }
        Ast::Struct(_) | Ast::Unspecified => format!("{:?}", expr.expr),
    }
}

fn render_call(call: &CallExpr) -> String {
    let infix = INFIX.iter().find(|(name, _)| *name == call.func_name);
    match (&call.target, infix, call.func_name.as_str(), call.args.as_slice()) {
        // Functions that can also be called as methods are rendered in one form.
        (Some(target), _, "size", []) => format!("size({})", render(target)),
        (None, _, "matches", [text, pattern]) => {
            format!("{}.matches({})", operand(text), render(pattern))
        }
        (Some(target), ..) => {
            format!("{}.{}({})", operand(target), call.func_name, render_list(&call.args))
        }
        (None, Some((_, sign)), _, [left, right]) => {
            format!("{} {sign} {}", operand(left), operand(right))
        }
        (None, _, op::LOGICAL_NOT, [inner]) => format!("!{}", operand(inner)),
        (None, _, op::NEGATE, [inner]) => format!("-{}", operand(inner)),
        (None, _, op::INDEX, [target, index]) => format!("{}[{}]", operand(target), render(index)),
        (None, _, op::CONDITIONAL, [condition, yes, no]) => {
            format!("{} ? {} : {}", operand(condition), operand(yes), operand(no))
        }
        _ => format!("{}({})", call.func_name, render_list(&call.args)),
    }
}

fn render_list(exprs: &[IdedExpr]) -> String {
    exprs.iter().map(render).collect::<Vec<_>>().join(", ")
}

/// The text of an operand, in parentheses where precedence requires them.
fn operand(expr: &IdedExpr) -> String {
    let text = render(expr);
    match &expr.expr {
        Ast::Call(call)
            if call.target.is_none()
                && (call.func_name == op::CONDITIONAL
                    || call.func_name == op::NEGATE
                    || INFIX.iter().any(|(name, _)| *name == call.func_name)) =>
        {
            format!("({text})")
        }
        Ast::Literal(LiteralValue::Int(_) | LiteralValue::Double(_)) if text.starts_with('-') => {
            format!("({text})")
        }
        _ => text,
    }
}

fn render_literal(literal: &LiteralValue) -> String {
    match literal {
        LiteralValue::Boolean(flag) => flag.inner().to_string(),
        LiteralValue::Int(number) => number.inner().to_string(),
        LiteralValue::UInt(number) => format!("{}u", number.inner()),
        LiteralValue::Double(number) => format!("{:?}", number.inner()),
        LiteralValue::String(text) => quoted(text.inner()),
        LiteralValue::Null => "null".into(),
        LiteralValue::Bytes(bytes) => format!("{:?}", bytes.inner()),
    }
}
