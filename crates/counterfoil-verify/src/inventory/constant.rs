//! Conditions whose value is known without running anything: constants, `x or True`, `a == a`, and
//! comparisons with the platform that this program runs on. One reader for all grammars, since their
//! expressions have the same shape. Every evaluation reads a bounded number of nodes.

mod roles;
mod values;

pub(super) use roles::{Guard, Role, is_failure};
pub(super) use values::Value;

use super::parse::{children, is_comment, node_bytes, node_text, walk};
use std::collections::HashMap;
use tree_sitter::Node;

/// The maximum number of nodes that are read to evaluate one condition.
const MAX_NODES: usize = 300;

/// The maximum depth of a condition.
const MAX_DEPTH: usize = 24;

/// The names that are bound once, to a literal, and how often each name occurs.
#[derive(Default)]
pub(super) struct Names<'s> {
    constants: HashMap<&'s [u8], Option<bool>>,
    /// The number of occurrences of each name.
    pub(super) occurrences: HashMap<&'s [u8], u32>,
    /// How often each name is bound.
    bound: HashMap<&'s [u8], u32>,
    /// The names by which failures are caught.
    pub(super) roles: HashMap<&'s [u8], Role>,
}

impl<'s> Names<'s> {
    /// Reads the names of a piece of code.
    pub(super) fn read(node: Node<'_>, text: &'s [u8]) -> Self {
        let mut names = Self::default();
        let mut bound: HashMap<&'s [u8], (u32, Option<bool>)> = HashMap::new();
        walk(node, |node| {
            if node.child_count() == 0 {
                if node.kind().ends_with("identifier") {
                    *names.occurrences.entry(node_bytes(node, text)).or_default() += 1;
                }
                return false;
            }
            if let Some((name, value)) = binding(node) {
                let entry = bound.entry(node_bytes(name, text)).or_default();
                entry.0 += 1;
                entry.1 = value.and_then(|value| scalar(value, text));
                let role = value.and_then(|value| Role::of(value, text));
                names.roles.extend(role.map(|role| (node_bytes(name, text), role)));
            }
            true
        });
        names.bound = bound.iter().map(|(name, (times, _))| (*name, *times)).collect();
        names.constants = bound
            .into_iter()
            .filter_map(|(name, (times, value))| (times == 1).then_some((name, Some(value?))))
            .collect();
        names
    }

    /// How often a name occurs where it is not bound.
    pub(super) fn reads(&self, name: &[u8]) -> u32 {
        let of = |names: &HashMap<&[u8], u32>| names.get(name).copied().unwrap_or_default();
        of(&self.occurrences).saturating_sub(of(&self.bound))
    }

    /// The constants that are bound at the top level of a file.
    pub(super) fn of_file(root: Node<'_>, text: &'s [u8]) -> Self {
        let mut names = Self::default();
        let mut times: HashMap<&[u8], u32> = HashMap::new();
        for child in children(root) {
            let inner = child.named_child(0).unwrap_or(child);
            for node in [child, inner] {
                let Some((name, value)) = binding(node) else { continue };
                let name = node_bytes(name, text);
                *times.entry(name).or_default() += 1;
                let role = value.and_then(|value| Role::of(value, text));
                names.roles.extend(role.map(|role| (name, role)));
                if let Some(value) = value.and_then(|value| scalar(value, text)) {
                    names.constants.insert(name, Some(value));
                }
            }
            if child.kind() == "import_from_statement" {
                for import in children(child) {
                    let field =
                        |name| import.child_by_field_name(name).map(|node| node_bytes(node, text));
                    if field("name") == Some(b"suppress".as_slice()) {
                        names.roles.extend(field("alias").map(|alias| (alias, Role::Suppress)));
                    }
                }
            }
        }
        names.constants.retain(|name, _| times.get(name).is_some_and(|times| *times == 1));
        names
    }
}

/// The name and value of a node that binds one name. No value for a binding that is not plain.
fn binding(node: Node<'_>) -> Option<(Node<'_>, Option<Node<'_>>)> {
    let field = |name| node.child_by_field_name(name);
    let one = |list: Node<'_>| list.named_child_count() == 1;
    let (name, value) = match node.kind() {
        "assignment" | "assignment_expression" => (field("left")?, field("right")),
        "augmented_assignment" | "augmented_assignment_expression" | "compound_assignment_expr" => {
            (field("left")?, None)
        }
        "update_expression" => (field("argument")?, None),
        "inc_statement" | "dec_statement" => (node.named_child(0)?, None),
        "for_statement" | "for_in_statement" | "for_expression" => {
            (field("left").or_else(|| field("pattern"))?, None)
        }
        "as_pattern" => (node.named_child(1)?, None),
        "named_expression" => (field("name")?, field("value")),
        "variable_declarator" => (field("name")?, field("value")),
        "let_declaration" => {
            let is_mutable = children(node).iter().any(|child| child.kind() == "mutable_specifier");
            (field("pattern")?, field("value").filter(|_| !is_mutable))
        }
        "const_item" | "static_item" | "const_spec" => (field("name")?, field("value")),
        "short_var_declaration" | "assignment_statement" => {
            let (left, right) = (field("left")?, field("right")?);
            (left.named_child(0)?, right.named_child(0).filter(|_| one(left) && one(right)))
        }
        // Its target may change.
        "unary_expression" if node.child(0).is_some_and(|child| child.kind() == "&") => {
            (field("operand")?, None)
        }
        "reference_expression" => (field("value")?, None),
        _ => return None,
    };
    name.kind().ends_with("identifier").then_some((name, value))
}

/// The truth of a literal that cannot change.
fn scalar(node: Node<'_>, text: &[u8]) -> Option<bool> {
    let node = if node.kind() == "expression_list" { node.named_child(0)? } else { node };
    is_scalar(node.kind()).then(|| literal(node, text)).flatten()
}

fn is_scalar(kind: &str) -> bool {
    !matches!(kind, "tuple" | "list" | "dictionary" | "set" | "array" | "object")
}

/// The truth of a literal.
fn literal(node: Node<'_>, text: &[u8]) -> Option<bool> {
    let raw = node_text(node, text);
    match node.kind() {
        "true" => Some(true),
        "false" | "none" | "null" | "nil" | "undefined" => Some(false),
        "boolean_literal" => Some(raw == "true"),
        "integer" | "float" | "number" | "integer_literal" | "float_literal" | "int_literal" => {
            Some(raw.bytes().any(|byte| matches!(byte, b'1'..=b'9')))
        }
        "string"
        | "template_string"
        | "string_literal"
        | "interpreted_string_literal"
        | "raw_string_literal" => {
            // A text with an expression in it may be empty, unless it has other text as well.
            let has_hole = children(node)
                .iter()
                .any(|child| matches!(child.kind(), "interpolation" | "template_substitution"));
            if has_hole {
                None
            } else {
                Some(raw.trim_matches(['"', '\'', '`']).len() > 1 || raw.len() > 2)
            }
        }
        "concatenated_string" | "lambda" | "arrow_function" | "function_expression" => Some(true),
        "tuple" | "list" | "dictionary" | "set" => {
            Some(node.named_children(&mut node.walk()).any(|child| !is_comment(child)))
        }
        "array" | "object" => Some(true),
        _ => None,
    }
}

/// What is known of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Truth {
    /// It depends on what the code does.
    Unknown,
    /// It always has this value.
    Always(bool),
    /// It has this value on the platform that this program runs on.
    Here(bool),
}

impl Truth {
    fn not(self) -> Self {
        match self {
            Self::Unknown => Self::Unknown,
            Self::Always(value) => Self::Always(!value),
            Self::Here(value) => Self::Here(!value),
        }
    }

    /// The value, if it is the same on every platform.
    pub(super) fn always(self) -> Option<bool> {
        match self {
            Self::Always(value) => Some(value),
            Self::Unknown | Self::Here(_) => None,
        }
    }

    /// Whether the value is known to be this one, here at least.
    pub(super) fn is(self, value: bool) -> bool {
        matches!(self, Self::Always(known) | Self::Here(known) if known == value)
    }

    /// Combines two conditions with an operator for which `decisive` decides alone: true for `or`,
    /// false for `and`.
    fn join(self, other: Self, decisive: bool) -> Self {
        match (self, other) {
            (Self::Always(value), _) | (_, Self::Always(value)) if value == decisive => {
                Self::Always(value)
            }
            (Self::Here(value), _) | (_, Self::Here(value)) if value == decisive => {
                Self::Here(value)
            }
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::Always(value), Self::Always(_)) => Self::Always(value),
            (Self::Always(value) | Self::Here(value), _) => Self::Here(value),
        }
    }
}

/// Evaluates conditions with the constants that are known.
pub(super) struct Conditions<'a, 's> {
    /// The text of the file.
    pub(super) text: &'s [u8],
    /// The names from the innermost scope outwards.
    pub(super) names: &'a [&'a Names<'s>],
}

impl Conditions<'_, '_> {
    /// What is known of a condition.
    pub(super) fn truth(&self, node: Node<'_>) -> Truth {
        self.evaluate(node, MAX_DEPTH, &mut { MAX_NODES })
    }

    fn constant(&self, name: &[u8]) -> Option<bool> {
        self.names.iter().find_map(|names| names.constants.get(name).copied()).flatten()
    }

    fn evaluate(&self, node: Node<'_>, depth: usize, fuel: &mut usize) -> Truth {
        let (Some(depth), Some(left)) = (depth.checked_sub(1), fuel.checked_sub(1)) else {
            return Truth::Unknown;
        };
        *fuel = left;
        let mut inner = |child: Option<Node<'_>>| {
            child.map_or(Truth::Unknown, |child| self.evaluate(child, depth, fuel))
        };
        let field = |name| node.child_by_field_name(name);
        match node.kind() {
            "parenthesized_expression" | "expression_statement" | "else_clause" => {
                inner(node.named_child(0))
            }
            "identifier" => match node_text(node, self.text) {
                "TYPE_CHECKING" => Truth::Always(false),
                "__debug__" | "Infinity" => Truth::Always(true),
                "undefined" | "NaN" => Truth::Always(false),
                name => self.constant(name.as_bytes()).map_or(Truth::Unknown, Truth::Always),
            },
            "attribute" if node_bytes(node, self.text) == b"typing.TYPE_CHECKING" => {
                Truth::Always(false)
            }
            "not_operator" => inner(field("argument")).not(),
            "unary_expression" | "unary_operator" => {
                let operand =
                    field("argument").or_else(|| field("operand")).or_else(|| node.named_child(0));
                match node.child(0).map(|operator| operator.kind()) {
                    Some("!") => inner(operand).not(),
                    Some("-" | "+") => inner(operand),
                    _ => Truth::Unknown,
                }
            }
            "boolean_operator" | "binary_expression" => {
                let operator = field("operator").map(|node| node.kind()).unwrap_or_default();
                let (left, right) = (field("left"), field("right"));
                match operator {
                    "or" | "||" => inner(left).join(inner(right), true),
                    "and" | "&&" => inner(left).join(inner(right), false),
                    _ => match (left, right) {
                        (Some(left), Some(right)) => {
                            self.compare(left, operator, right, depth, fuel)
                        }
                        _ => Truth::Unknown,
                    },
                }
            }
            "comparison_operator" if node.named_child_count() == 2 => {
                let operator = values::operator(node);
                match (node.named_child(0), node.named_child(1)) {
                    (Some(left), Some(right)) => self.compare(left, &operator, right, depth, fuel),
                    _ => Truth::Unknown,
                }
            }
            "conditional_expression" | "ternary_expression" => {
                let parts = if node.kind() == "ternary_expression" {
                    [field("condition"), field("consequence"), field("alternative")]
                } else {
                    [node.named_child(1), node.named_child(0), node.named_child(2)]
                };
                let [condition, yes, no] = parts.map(&mut inner);
                match condition {
                    Truth::Always(true) => yes,
                    Truth::Always(false) => no,
                    _ if yes == no => yes,
                    _ => Truth::Unknown,
                }
            }
            "named_expression" => inner(field("value")),
            "call" | "call_expression" => self.call(node),
            "binary_operator" => self
                .compute(node, depth, fuel)
                .map_or(Truth::Unknown, |value| Truth::Always(value.is_true())),
            _ => literal(node, self.text).map_or(Truth::Unknown, Truth::Always),
        }
    }

    fn call(&self, node: Node<'_>) -> Truth {
        let raw = node_bytes(node, self.text);
        if raw.len() > 200 {
            return Truth::Unknown;
        }
        let raw: String =
            String::from_utf8_lossy(raw).chars().filter(|c| !c.is_whitespace()).collect();
        match raw.as_str() {
            "bool(1)" | "bool(True)" | "Boolean(true)" | "Boolean(1)" | "all([])" | "all(())" => {
                Truth::Always(true)
            }
            "bool(0)" | "bool(False)" | "Boolean(false)" | "any([])" | "any(())" | "bool()" => {
                Truth::Always(false)
            }
            _ if raw.starts_with("isinstance(") && raw.ends_with(",object)") => Truth::Always(true),
            _ => match raw.strip_prefix("sys.platform.startswith(") {
                Some(rest) => platform(rest.trim_end_matches(')'), true),
                None => Truth::Unknown,
            },
        }
    }

    fn compare(
        &self,
        left: Node<'_>,
        operator: &str,
        right: Node<'_>,
        depth: usize,
        fuel: &mut usize,
    ) -> Truth {
        let (a, b) = (node_text(left, self.text), node_text(right, self.text));
        if a.len() > 400 || b.len() > 400 {
            return Truth::Unknown;
        }
        // What is equal to itself: `a == a`, `a <= a`.
        let equal = match operator {
            "==" | "===" | "is" | "<=" | ">=" => Some(true),
            "!=" | "!==" | "is not" | "<" | ">" | "<>" => Some(false),
            _ => None,
        };
        if let Some(equal) = equal {
            if a == b {
                return Truth::Always(equal);
            }
            if [a, b].iter().any(|side| matches!(*side, "ANY" | "mock.ANY" | "unittest.mock.ANY")) {
                return Truth::Always(equal);
            }
            for (this, other) in [(a, b), (b, a)] {
                let of_platform = matches!(
                    this,
                    "sys.platform"
                        | "platform.system()"
                        | "os.name"
                        | "runtime.GOOS"
                        | "process.platform"
                        | "os.platform()"
                );
                if of_platform && other.starts_with(['"', '\'']) {
                    let truth = platform(other, this == "os.name");
                    return if equal { truth } else { truth.not() };
                }
            }
            if this_is_main(a, b) {
                return Truth::Always(!equal);
            }
        }
        let none = |text: &str| matches!(text, "None" | "null" | "undefined" | "nil");
        let known = |node: Node<'_>| {
            literal(node, self.text).is_some() && !matches!(node.kind(), "none" | "null" | "nil")
        };
        // Lengths are never negative.
        let length = a.starts_with("len(") || a.ends_with(".length") || a.ends_with(".len()");
        match (operator, b) {
            (">=", "0") | (">", "-1") if length => return Truth::Always(true),
            _ => {}
        }
        // A literal is not nothing.
        match operator {
            "is not" | "!=" | "!==" if known(left) && none(b) => return Truth::Always(true),
            _ => {}
        }
        let value = self
            .compute(left, depth, fuel)
            .and_then(|left| left.operate(operator, &self.compute(right, depth, fuel)?));
        value.map_or(Truth::Unknown, |value| Truth::Always(value.is_true()))
    }

    /// Whether a piece of code mentions nothing that could make a difference: literals, constants,
    /// and the names that `ignored` accepts.
    pub(super) fn is_constant(
        &self,
        node: Node<'_>,
        ignored: impl Fn(Node<'_>, &str) -> bool,
    ) -> bool {
        let (mut constant, mut fuel) = (true, MAX_NODES);
        walk(node, |node| {
            if fuel == 0 {
                constant = false;
            }
            fuel = fuel.saturating_sub(1);
            if constant && node.child_count() == 0 && is_name(node) {
                let name = node_text(node, self.text);
                constant = ignored(node, name) || self.constant(name.as_bytes()).is_some();
            }
            constant && !is_comment(node)
        });
        constant
    }
}

fn is_name(node: Node<'_>) -> bool {
    node.is_named()
        && (node.kind().ends_with("identifier")
            || matches!(node.kind(), "this" | "self" | "crate" | "super"))
}

/// Whether a file asks whether it is run as a program. A test runner imports it.
fn this_is_main(a: &str, b: &str) -> bool {
    let is_main = |text: &str| text.trim_matches(['"', '\'']) == "__main__";
    (a == "__name__" && is_main(b)) || (b == "__name__" && is_main(a))
}

/// The names of platforms.
const OTHERS: [&str; 22] = [
    "darwin",
    "macos",
    "posix",
    "win32",
    "windows",
    "nt",
    "win",
    "linux",
    "linux2",
    "cygwin",
    "msys",
    "freebsd",
    "openbsd",
    "netbsd",
    "sunos",
    "sunos5",
    "aix",
    "java",
    "android",
    "ios",
    "emscripten",
    "wasi",
];

/// Whether the platform has this name, in the words of Python, Go and Node.
fn platform(quoted: &str, by_prefix: bool) -> Truth {
    let name = quoted.trim_matches(['"', '\'', '`']).to_ascii_lowercase();
    let own: &[&str] = match std::env::consts::OS {
        "macos" => &["darwin", "macos", "posix"],
        "windows" => &["win32", "windows", "nt", "win"],
        "linux" => &["linux", "posix", "linux2"],
        other => &[other],
    };
    if own.contains(&name.as_str()) || (by_prefix && own.iter().any(|own| own.starts_with(&name))) {
        return Truth::Here(true);
    }
    if OTHERS.contains(&name.as_str()) || matches!(name.as_str(), "js" | "plan9" | "solaris") {
        return Truth::Here(false);
    }
    // No platform has this name: the condition is a constant in disguise.
    Truth::Always(false)
}
