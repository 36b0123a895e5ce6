//! Where a definition stands: what is around it, and whether that is run.

use super::super::constant::Truth;
use super::super::scope::{ScopeId, Skip};
use tree_sitter::Node;

/// A node that contains definitions.
#[derive(Clone, Copy)]
pub(super) struct Container<'t> {
    pub(super) node: Node<'t>,
    pub(super) scope: ScopeId,
    /// Whether functions in it can be tests.
    pub(super) collects: bool,
    /// Whether it is never run.
    pub(super) dead: bool,
    /// Whether it is never run on any platform.
    pub(super) off: bool,
    /// Whether it is under a condition on the platform.
    pub(super) here: bool,
    /// The number of conditions around it whose value is not known.
    pub(super) conditions: u32,
}

impl<'t> Container<'t> {
    pub(super) fn at(node: Node<'t>) -> Self {
        Self {
            node,
            scope: ScopeId::FILE,
            collects: false,
            dead: false,
            off: false,
            here: false,
            conditions: 0,
        }
    }

    /// The part of a statement that runs if a condition is `wanted`.
    pub(super) fn branch(self, node: Node<'t>, truth: Truth, wanted: bool) -> Self {
        let mut part = Self { node, ..self };
        match truth {
            Truth::Always(value) => {
                part.dead |= value != wanted;
                part.off |= value != wanted;
            }
            Truth::Here(value) => {
                part.dead |= value != wanted;
                part.here = true;
            }
            Truth::Unknown => part.conditions += 1,
        }
        part
    }

    /// What its place does to a test.
    pub(super) fn skip(self) -> Skip {
        if self.dead { Skip::under(!self.off) } else { Skip::No }
    }
}
