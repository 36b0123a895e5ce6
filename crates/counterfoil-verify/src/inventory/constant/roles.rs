//! Names that stand for failed assertions, and for what catches them.

use super::super::parse::{node_text, walk};
use tree_sitter::Node;

/// The maximum number of nodes that are read to find the name of a failed assertion.
const MAX_NODES: usize = 300;

/// What a name stands for where failures are caught.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Role {
    /// Exceptions, a failed assertion among them.
    Failures,
    /// The class `suppress`.
    Suppress,
    /// A context that discards failed assertions.
    Discards,
    /// A context that expects a failed assertion.
    Expects,
    /// A function or class of the file that discards the failures of what it runs.
    Guard(Guard),
}

/// What is known of a function or class that discards the failures of what it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Guard {
    /// There is such a function or class outside of classes.
    pub(in super::super) is_own: bool,
    /// There is such a method.
    pub(in super::super) is_method: bool,
    /// It can be the context of a `with` statement.
    pub(in super::super) is_context: bool,
}

impl Guard {
    /// Whether a callee can be what is known: a method of another object is one, too, and the
    /// functions of the language are none.
    pub(in super::super) fn is_called_by(self, callee: Node<'_>) -> bool {
        if callee.kind() == "identifier" { self.is_own } else { self.is_method }
    }

    /// What is known of both, if there are several with the same name.
    pub(in super::super) fn or(self, other: Self) -> Self {
        Self {
            is_own: self.is_own || other.is_own,
            is_method: self.is_method || other.is_method,
            is_context: self.is_context || other.is_context,
        }
    }
}

impl Role {
    /// The role of a name that is bound to a value in Python.
    pub(super) fn of(value: Node<'_>, text: &[u8]) -> Option<Self> {
        let last = |node: Node<'_>| {
            let name = node.child_by_field_name("attribute").unwrap_or(node);
            if name.kind() == "identifier" { node_text(name, text) } else { "" }
        };
        match value.kind() {
            "identifier" | "attribute" if last(value) == "suppress" => Some(Self::Suppress),
            "identifier" | "attribute" | "tuple" => {
                names_failure(value, text).then_some(Self::Failures)
            }
            "call" => {
                let role = match last(value.child_by_field_name("function")?) {
                    "suppress" => Self::Discards,
                    "raises" | "assertRaises" | "assertRaisesRegex" => Self::Expects,
                    _ => return None,
                };
                names_failure(value.child_by_field_name("arguments")?, text).then_some(role)
            }
            _ => None,
        }
    }
}

/// Whether an exception has the name of a failed assertion, or of all exceptions.
pub(in super::super) fn is_failure(name: &str) -> bool {
    matches!(name, "AssertionError" | "Exception" | "BaseException" | "failureException")
}

fn names_failure(node: Node<'_>, text: &[u8]) -> bool {
    let (mut found, mut fuel) = (false, MAX_NODES);
    walk(node, |node| {
        fuel = fuel.saturating_sub(1);
        found = found || (node.child_count() == 0 && is_failure(node_text(node, text)));
        !found && fuel > 0
    });
    found
}
