//! The values of expressions of literals, as far as all languages agree about them.

use super::super::parse::{children, node_text};
use super::Conditions;
use std::cmp::Ordering;
use tree_sitter::Node;

/// The maximum length of a literal that is read.
const MAX_LITERAL: usize = 400;

/// Larger numbers are not exact.
const MAX_NUMBER: f64 = 9_007_199_254_740_992.0;

/// The suffixes of numbers.
const SUFFIXES: [&str; 15] = [
    "usize", "isize", "u128", "i128", "u64", "i64", "u32", "i32", "u16", "i16", "u8", "i8", "f64",
    "f32", "n",
];

/// A value that is known without running anything.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) enum Value {
    /// `None`, `null`, `nil`, `undefined`.
    Nothing,
    /// A boolean.
    Bool(bool),
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
}

impl Value {
    /// The value of a literal as it is written.
    pub(in super::super) fn of_literal(raw: &str) -> Option<Self> {
        if raw.len() > MAX_LITERAL {
            return None;
        }
        match raw {
            "true" | "True" => Some(Self::Bool(true)),
            "false" | "False" => Some(Self::Bool(false)),
            "None" | "null" | "nil" | "undefined" => Some(Self::Nothing),
            _ if raw.starts_with(|first: char| first.is_ascii_digit() || first == '.') => {
                number(raw).and_then(Self::number)
            }
            _ => text(raw).map(Self::Text),
        }
    }

    fn number(number: f64) -> Option<Self> {
        (number.abs() <= MAX_NUMBER).then_some(Self::Number(number))
    }

    /// Whether it holds as a condition.
    pub(in super::super) fn is_true(&self) -> bool {
        match self {
            Self::Nothing => false,
            Self::Bool(value) => *value,
            Self::Number(number) => *number != 0.0,
            Self::Text(text) => !text.is_empty(),
        }
    }

    /// Whether two values are equal. What depends on the language is not known: `1 == true`.
    pub(in super::super) fn equals(&self, other: &Self) -> Option<bool> {
        match (self, other) {
            (Self::Nothing, Self::Nothing) => None,
            (Self::Nothing, _) | (_, Self::Nothing) => Some(false),
            _ => self.order(other).map(Ordering::is_eq),
        }
    }

    fn order(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => Some(a.cmp(b)),
            (Self::Number(a), Self::Number(b)) => a.partial_cmp(b),
            (Self::Text(a), Self::Text(b)) => Some(a.cmp(b)),
            _ => None,
        }
    }

    /// Whether a comparison holds.
    pub(in super::super) fn compare(&self, operator: &str, other: &Self) -> Option<bool> {
        match operator {
            "==" | "===" => self.equals(other),
            "!=" | "!==" | "<>" => self.equals(other).map(|equal| !equal),
            // What is equal may be another object.
            "is" => self.equals(other).filter(|equal| !equal),
            "is not" => self.equals(other).filter(|equal| !equal).map(|equal| !equal),
            "<" => self.order(other).map(Ordering::is_lt),
            "<=" => self.order(other).map(Ordering::is_le),
            ">" => self.order(other).map(Ordering::is_gt),
            ">=" => self.order(other).map(Ordering::is_ge),
            "in" | "not in" => match (self, other) {
                (Self::Text(part), Self::Text(whole)) => {
                    Some(whole.contains(part) == (operator == "in"))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// The result of an operator.
    pub(in super::super) fn operate(&self, operator: &str, other: &Self) -> Option<Self> {
        match (self, operator, other) {
            (Self::Number(a), "+", Self::Number(b)) => Self::number(a + b),
            (Self::Number(a), "-", Self::Number(b)) => Self::number(a - b),
            (Self::Number(a), "*", Self::Number(b)) => Self::number(a * b),
            // With a remainder, it depends on the language.
            (Self::Number(a), "/", Self::Number(b)) if a % b == 0.0 => Self::number(a / b),
            (Self::Number(a), "%", Self::Number(b)) if *a >= 0.0 && *b > 0.0 => Self::number(a % b),
            (Self::Text(a), "+", Self::Text(b)) if a.len() + b.len() <= MAX_LITERAL => {
                Some(Self::Text(format!("{a}{b}")))
            }
            _ => self.compare(operator, other).map(Self::Bool),
        }
    }
}

fn number(raw: &str) -> Option<f64> {
    let plain: String = raw.chars().filter(|c| *c != '_').collect();
    for (prefix, radix) in [("0x", 16), ("0X", 16), ("0o", 8), ("0b", 2)] {
        if let Some(digits) = plain.strip_prefix(prefix) {
            return u32::from_str_radix(digits, radix).ok().map(f64::from);
        }
    }
    let plain =
        SUFFIXES.iter().find_map(|suffix| plain.strip_suffix(*suffix)).unwrap_or(plain.as_str());
    // In some languages, `010` is 8.
    let is_octal = plain.len() > 1 && plain.bytes().all(|c| c.is_ascii_digit());
    if is_octal && plain.starts_with('0') {
        return None;
    }
    plain.parse().ok()
}

/// The content of a text without escapes.
fn text(raw: &str) -> Option<String> {
    let quote = raw.chars().next().filter(|first| matches!(first, '"' | '\'' | '`'))?;
    let triple = quote.to_string().repeat(3);
    let inner = raw
        .strip_prefix(triple.as_str())
        .and_then(|rest| rest.strip_suffix(triple.as_str()))
        .or_else(|| raw.strip_prefix(quote)?.strip_suffix(quote))?;
    let is_template = quote == '`' && inner.contains("${");
    let is_plain = !inner.contains('\\') && !is_template;
    is_plain.then(|| inner.to_owned())
}

impl Conditions<'_, '_> {
    /// The value of an expression of literals.
    pub(in super::super) fn value(&self, node: Node<'_>) -> Option<Value> {
        self.compute(node, super::MAX_DEPTH, &mut { super::MAX_NODES })
    }

    /// The value of an expression, read within these limits.
    pub(super) fn compute(&self, node: Node<'_>, depth: usize, fuel: &mut usize) -> Option<Value> {
        let depth = depth.checked_sub(1)?;
        *fuel = fuel.checked_sub(1)?;
        let field = |name| node.child_by_field_name(name);
        match node.kind() {
            "parenthesized_expression" => self.compute(node.named_child(0)?, depth, fuel),
            "unary_expression" | "unary_operator" | "not_operator" => {
                let operand = field("argument").or_else(|| field("operand"));
                let value = self.compute(operand.or_else(|| node.named_child(0))?, depth, fuel)?;
                match (node.child(0)?.kind(), value) {
                    ("-", Value::Number(number)) => Some(Value::Number(-number)),
                    ("+", Value::Number(number)) => Some(Value::Number(number)),
                    ("!" | "not", value) => Some(Value::Bool(!value.is_true())),
                    _ => None,
                }
            }
            "binary_expression" | "binary_operator" | "boolean_operator" => {
                let left = self.compute(field("left")?, depth, fuel)?;
                let right = self.compute(field("right")?, depth, fuel)?;
                match field("operator")?.kind() {
                    "or" | "||" => Some(if left.is_true() { left } else { right }),
                    "and" | "&&" => Some(if left.is_true() { right } else { left }),
                    operator => left.operate(operator, &right),
                }
            }
            "comparison_operator" if node.named_child_count() == 2 => {
                let left = self.compute(node.named_child(0)?, depth, fuel)?;
                let right = self.compute(node.named_child(1)?, depth, fuel)?;
                left.compare(&operator(node), &right).map(Value::Bool)
            }
            kind if is_literal(kind) => Value::of_literal(node_text(node, self.text)),
            _ => None,
        }
    }
}

/// The operator of a comparison in Python, which may have two words.
pub(super) fn operator(comparison: Node<'_>) -> String {
    let words: Vec<&str> = children(comparison)
        .into_iter()
        .filter(|child| !child.is_named())
        .map(|child| child.kind())
        .collect();
    words.join(" ")
}

fn is_literal(kind: &str) -> bool {
    matches!(
        kind,
        "true"
            | "false"
            | "none"
            | "null"
            | "nil"
            | "undefined"
            | "boolean_literal"
            | "integer"
            | "float"
            | "number"
            | "integer_literal"
            | "float_literal"
            | "int_literal"
            | "string"
            | "template_string"
            | "string_literal"
            | "interpreted_string_literal"
            | "raw_string_literal"
            | "char_literal"
            | "rune_literal"
    )
}
