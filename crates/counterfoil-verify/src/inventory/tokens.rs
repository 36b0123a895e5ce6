//! Conditions in the macros of Rust, which the grammar leaves as tokens.

use super::assertion::Kind;
use super::checks::Checks;
use super::constant::Value;
use super::parse::{children, is_comment, node_bytes, node_text, walk};
use memchr::memmem;
use tree_sitter::Node;

/// The maximum number of tokens of a condition that is examined.
const MAX_TOKENS: usize = 200;

/// The maximum depth of a condition.
const MAX_DEPTH: usize = 16;

/// The maximum length of code that is searched for a panic that is caught.
const MAX_LENGTH: usize = 5_000;

/// Whether the assertion of a macro can fail.
pub(super) fn assertion(node: Node<'_>, name: &str, text: &[u8]) -> Kind {
    match children(node).into_iter().find(|child| child.kind() == "token_tree") {
        Some(tree) => in_brackets(tree, name, text),
        None => Kind::Effective,
    }
}

/// Whether an assertion with these arguments can fail.
fn in_brackets(tree: Node<'_>, name: &str, text: &[u8]) -> Kind {
    let Some(tokens) = inside(tree) else { return Kind::Effective };
    let parts: Vec<&[Node<'_>]> = tokens.split(|token| token.kind() == ",").collect();
    let plain = name.trim_start_matches("debug_").trim_start_matches("prop_");
    let constant = |part: &[Node<'_>]| part.iter().all(|token| !has_name(*token));
    let two = || Some((*parts.first()?, *parts.get(1)?));
    let is_wildcard = |part: &[Node<'_>]| matches!(part, [token] if node_text(*token, text) == "_");
    match plain {
        "assert" => {
            let Some(condition) = parts.first() else { return Kind::Effective };
            if expects_panic(tree, text) {
                return Kind::Disarmed;
            }
            let known = truth(condition, text, MAX_DEPTH);
            if constant(condition) {
                return Kind::on_constants(known);
            }
            match known {
                Some(true) if joins(condition) => Kind::Disarmed,
                Some(true) => Kind::Constant,
                _ => Kind::Effective,
            }
        }
        "assert_eq" | "assert_ne" | "assert_str_eq" | "assert_matches" => match two() {
            Some((a, b)) if constant(a) && constant(b) => {
                let values = || value(a, text, MAX_DEPTH).zip(value(b, text, MAX_DEPTH));
                let equal = match plain {
                    _ if is_same(a, b, text) => Some(true),
                    "assert_matches" => None,
                    _ => values().and_then(|(a, b)| a.equals(&b)),
                };
                Kind::on_constants(equal.map(|equal| equal == (plain != "assert_ne")))
            }
            Some((a, b)) if plain != "assert_ne" && is_same(a, b, text) => Kind::Constant,
            Some((_, b)) if plain == "assert_matches" && is_wildcard(b) => Kind::Disarmed,
            _ => Kind::Effective,
        },
        _ => Kind::Effective,
    }
}

/// Whether an assertion says that code with an assertion panics.
fn expects_panic(tree: Node<'_>, text: &[u8]) -> bool {
    let raw = node_bytes(tree, text);
    let has = |word: &[u8]| memmem::find(raw, word).is_some();
    raw.len() < MAX_LENGTH && has(b"catch_unwind") && has(b".is_err()") && has(b"assert")
}

/// What a test in the tokens of a macro asserts about constants.
pub(super) fn checks(tree: Node<'_>, text: &[u8]) -> Checks {
    let mut checks = Checks::default();
    let mut open = vec![tree];
    while let Some(tree) = open.pop() {
        let tokens: Vec<Node<'_>> =
            children(tree).into_iter().filter(|child| !is_comment(*child)).collect();
        for (at, token) in tokens.iter().enumerate() {
            if token.kind() != "token_tree" {
                continue;
            }
            open.push(*token);
            let name = match at.checked_sub(2).and_then(|from| tokens.get(from..at)) {
                Some([name, mark]) if name.kind() == "identifier" && mark.kind() == "!" => {
                    node_text(*name, text)
                }
                _ => continue,
            };
            if name.contains("assert") {
                match in_brackets(*token, name, text) {
                    Kind::Contradiction => checks.failing = checks.failing.saturating_add(1),
                    Kind::Undecided => checks.undecided = checks.undecided.saturating_add(1),
                    _ => {}
                }
            }
        }
    }
    checks
}

/// The tokens between the brackets of a token tree; none if there are too many.
fn inside(tree: Node<'_>) -> Option<Vec<Node<'_>>> {
    if tree.child_count() as usize > MAX_TOKENS {
        return None;
    }
    let mut tokens: Vec<Node<'_>> =
        children(tree).into_iter().filter(|child| !is_comment(*child)).collect();
    tokens.pop();
    (!tokens.is_empty()).then(|| tokens.split_off(1))
}

fn joins(tokens: &[Node<'_>]) -> bool {
    tokens.iter().any(|token| matches!(token.kind(), "||" | "&&" | "token_tree" | "!"))
}

fn has_name(node: Node<'_>) -> bool {
    let (mut found, mut left) = (false, MAX_TOKENS);
    walk(node, |node| {
        left = left.saturating_sub(1);
        found = found
            || left == 0
            || matches!(node.kind(), "identifier" | "self" | "crate" | "super" | "metavariable");
        !found
    });
    found
}

fn is_same(a: &[Node<'_>], b: &[Node<'_>], text: &[u8]) -> bool {
    a.len() == b.len()
        && !a.is_empty()
        && a.iter().zip(b).all(|(a, b)| {
            let (a, b) = (node_bytes(*a, text), node_bytes(*b, text));
            a.len() < 2_000 && a == b
        })
}

/// The value of a condition, where it is known.
fn truth(tokens: &[Node<'_>], text: &[u8], depth: usize) -> Option<bool> {
    let depth = depth.checked_sub(1)?;
    let is = |token: &Node<'_>, what: &str| token.kind() == what;
    for (operator, decisive) in [("||", true), ("&&", false)] {
        if tokens.iter().any(|token| is(token, operator)) {
            let mut all = true;
            for part in tokens.split(|token| is(token, operator)) {
                match truth(part, text, depth) {
                    Some(value) if value == decisive => return Some(decisive),
                    Some(_) => {}
                    None => all = false,
                }
            }
            return all.then_some(!decisive);
        }
    }
    match tokens {
        [not, rest @ ..] if is(not, "!") => truth(rest, text, depth).map(|value| !value),
        [one] if one.kind() == "token_tree" => {
            let opens = text.get(one.start_byte()).copied();
            if opens != Some(b'(') {
                return None;
            }
            truth(&inside(*one)?, text, depth)
        }
        [one] => match node_text(*one, text) {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        },
        _ => {
            for operator in ["==", "!=", "<=", ">=", "<", ">"] {
                let mut sides = tokens.split(|token| is(token, operator));
                if let (Some(a), Some(b), None) = (sides.next(), sides.next(), sides.next()) {
                    if is_same(a, b, text) {
                        return Some(matches!(operator, "==" | "<=" | ">="));
                    }
                    return value(a, text, depth)?.compare(operator, &value(b, text, depth)?);
                }
            }
            None
        }
    }
}

/// The value of an expression of literals.
fn value(tokens: &[Node<'_>], text: &[u8], depth: usize) -> Option<Value> {
    let depth = depth.checked_sub(1)?;
    match tokens {
        [one] if one.kind() == "token_tree" => {
            let is_group = text.get(one.start_byte()).copied() == Some(b'(');
            value(&inside(*one).filter(|_| is_group)?, text, depth)
        }
        [one] => Value::of_literal(node_text(*one, text)),
        [minus, one] if minus.kind() == "-" => {
            Value::Number(0.0).operate("-", &value(std::slice::from_ref(one), text, depth)?)
        }
        _ => {
            // The operators that bind least come first, and of those the last.
            let last = |operators: &[&str]| {
                let at = tokens.iter().rposition(|token| operators.contains(&token.kind()))?;
                (at > 0 && at + 1 < tokens.len()).then_some(at)
            };
            let at = last(&["+", "-"]).or_else(|| last(&["*", "/", "%"]))?;
            let (left, right) = (tokens.get(..at)?, tokens.get(at + 1..)?);
            let operator = tokens.get(at)?.kind();
            value(left, text, depth)?.operate(operator, &value(right, text, depth)?)
        }
    }
}
