//! Conditions in the macros of Rust, which the grammar leaves as tokens.

use super::assertion::Kind;
use super::parse::{children, is_comment, node_bytes, node_text, walk};
use tree_sitter::Node;

/// The maximum number of tokens of a condition that is examined.
const MAX_TOKENS: usize = 200;

/// The maximum depth of a condition.
const MAX_DEPTH: usize = 16;

/// Whether the assertion of a macro can fail.
pub(super) fn assertion(node: Node<'_>, name: &str, text: &[u8]) -> Kind {
    let Some(tree) = children(node).into_iter().find(|child| child.kind() == "token_tree") else {
        return Kind::Effective;
    };
    let Some(tokens) = inside(tree) else { return Kind::Effective };
    let parts: Vec<&[Node<'_>]> = tokens.split(|token| token.kind() == ",").collect();
    let plain = name.trim_start_matches("debug_").trim_start_matches("prop_");
    let constant = |part: &[Node<'_>]| part.iter().all(|token| !has_name(*token));
    let two = || Some((*parts.first()?, *parts.get(1)?));
    let is_wildcard = |part: &[Node<'_>]| matches!(part, [token] if node_text(*token, text) == "_");
    match plain {
        "assert" => {
            let Some(condition) = parts.first() else { return Kind::Effective };
            if constant(condition) {
                return Kind::Constant;
            }
            match truth(condition, text, MAX_DEPTH) {
                Some(true) if joins(condition) => Kind::Disarmed,
                Some(true) => Kind::Constant,
                _ => Kind::Effective,
            }
        }
        "assert_eq" | "assert_ne" | "assert_str_eq" | "assert_matches" => match two() {
            Some((a, b)) if constant(a) && constant(b) => Kind::Constant,
            Some((a, b)) if plain != "assert_ne" && is_same(a, b, text) => Kind::Constant,
            Some((_, b)) if plain == "assert_matches" && is_wildcard(b) => Kind::Disarmed,
            _ => Kind::Effective,
        },
        _ => Kind::Effective,
    }
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
            for (operator, value) in [("==", true), ("<=", true), (">=", true), ("!=", false)] {
                let mut sides = tokens.split(|token| is(token, operator));
                if let (Some(a), Some(b), None) = (sides.next(), sides.next(), sides.next())
                    && is_same(a, b, text)
                {
                    return Some(value);
                }
            }
            None
        }
    }
}
