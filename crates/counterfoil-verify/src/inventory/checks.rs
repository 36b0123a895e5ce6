//! Which assertions of a test can fail: reachable ones whose condition is not constant and whose
//! failure is not swallowed. Also whether the test skips itself.
//!
//! Read without running anything, so an assertion counts as effective unless it is plain that it is
//! not. The cost is linear: every look into a part of the code is bounded.

use super::assertion::{Contexts, Handling, Kind, Reader};
use super::constant::{Conditions, Names, Truth};
use super::parse::{Language, children, is_comment, node_bytes};
use super::scope::Skip;
use std::collections::{HashMap, HashSet};
use tree_sitter::Node;

/// The maximum depth at which a statement is examined for a return.
const MAX_DEPTH: usize = 5;

/// What a test checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Checks {
    /// The number of assertions that can fail.
    pub(super) effective: u32,
    /// The number of those that fail whenever the test runs: `fail()`, `assert False`.
    pub(super) failing: u32,
    /// The number of assertions that compare constants, or a value with itself.
    pub(super) constant: u32,
    /// The number of assertions that use only constants, and of which it is not known whether they
    /// are reached and hold.
    pub(super) undecided: u32,
    /// The number of assertions that are unreachable or swallowed, or always hold although they
    /// mention what is tested.
    pub(super) disarmed: u32,
    /// The number of those that can fail and are functions with the name of an assertion.
    pub(super) helpers: u32,
    /// The number of such functions that are expected to fail.
    pub(super) inverted: u32,
    /// The number of skips under a condition.
    pub(super) conditional_skips: u32,
    /// Whether the failures of the whole test are discarded.
    pub(super) escapes: bool,
    /// Whether the test skips itself, always or on platforms like this one.
    pub(super) skips: Skip,
}

impl Checks {
    /// Whether an assertion on constants may fail.
    pub(super) fn may_fail(&self) -> bool {
        self.failing > 0 || self.undecided > 0
    }
}

/// Where a node stands in the flow of a test.
#[derive(Clone, Copy, Default)]
struct Place {
    /// Never reached.
    dead: bool,
    /// Not reached on this platform.
    elsewhere: bool,
    /// Reached only on platforms like this one.
    here: bool,
    /// A failed assertion is swallowed here.
    swallowed: bool,
    /// A failed assertion is expected here.
    expected: bool,
    /// Some exception is expected here.
    thrown: bool,
    /// What asserts here stands for the assertions in its block.
    uncounted: bool,
    /// Under a condition or in a nested function.
    conditional: bool,
    /// In a nested function.
    nested: bool,
    /// Directly in a decorated definition, or in a type: something else may call it.
    decorated: bool,
}

impl Place {
    /// The place of a branch under a condition that has to be `wanted`.
    fn branch(self, truth: Truth, wanted: bool) -> Self {
        let mut place = self;
        match truth {
            Truth::Always(value) => place.dead |= value != wanted,
            Truth::Here(value) if value != wanted => place.elsewhere = true,
            Truth::Here(_) => place.here = true,
            Truth::Unknown => place.conditional = true,
        }
        place
    }
}

/// Reads what a body checks. `file` has the constants of the file, and `contexts` the parameters by
/// which a test reaches its runner.
pub(super) fn read<'s>(
    language: Language,
    body: Node<'_>,
    text: &'s [u8],
    file: &Names<'s>,
    contexts: Contexts<'s>,
) -> Checks {
    let own = Names::read(body, text);
    let names = [&own, file];
    let conditions = Conditions { text, names: &names };
    let reader = Reader::new(language, text, &conditions, contexts);
    let handed_over = reader.handed_over(body);
    let mut walker = Walker {
        reader,
        handed_over,
        own: &own,
        checks: Checks::default(),
        open: Vec::new(),
        expectations: HashSet::new(),
    };
    walker.open.push((body, Place::default()));
    while let Some((node, place)) = walker.open.pop() {
        walker.visit(node, place);
    }
    walker.checks
}

struct Walker<'a, 's, 't> {
    reader: Reader<'a, 's>,
    /// What becomes of the failures of functions that are handed over by name.
    handed_over: HashMap<&'s [u8], Handling>,
    own: &'a Names<'s>,
    checks: Checks,
    open: Vec<(Node<'t>, Place)>,
    /// The calls of `expect` that are counted.
    expectations: HashSet<usize>,
}

impl<'t> Walker<'_, '_, 't> {
    fn visit(&mut self, node: Node<'t>, mut place: Place) {
        if is_comment(node) {
            return;
        }
        let decorated = std::mem::take(&mut place.decorated);
        let stands_for_others = self.hand_over(node, &mut place) || place.uncounted;
        if stands_for_others {
            self.expectations.extend(self.reader.expectation(node).map(|(call, _)| call));
        } else if let Some(kind) = self.reader.assertion(node) {
            self.count(kind, place, node);
        } else if let Some((call, kind)) = self.reader.expectation(node)
            && self.expectations.insert(call)
        {
            self.count(kind, place, node);
        }
        let skips_part = self.reader.language.is_javascript() && self.reader.skips_inner_test(node);
        if !place.dead && !place.elsewhere && (skips_part || self.reader.is_skip(node)) {
            if place.conditional || skips_part {
                self.checks.conditional_skips = self.checks.conditional_skips.saturating_add(1);
            } else {
                self.checks.skips = self.checks.skips.max(Skip::under(place.here));
            }
        }
        let truth = |node: Option<Node<'_>>| {
            node.map_or(Truth::Unknown, |node| self.reader.conditions.truth(node))
        };
        let condition = node.child_by_field_name("condition");
        match node.kind() {
            "block" | "statement_block" | "statement_list" | "program" | "module"
            | "declaration_list" => self.block(node, place),
            "if_statement" | "if_expression" | "elif_clause" | "ternary_expression" => {
                let truth = truth(condition);
                self.fields(node, |field| match field {
                    Some("consequence") => place.branch(truth, true),
                    Some("alternative") => place.branch(truth, false),
                    _ => place,
                });
            }
            "boolean_operator" | "binary_expression" => {
                let operator = node.child_by_field_name("operator").map(|node| node.kind());
                let left = node.child_by_field_name("left");
                // The right side of `False and …`, `true || …` is never reached.
                let is_cut = match operator {
                    Some("and" | "&&") => truth(left) == Truth::Always(false),
                    Some("or" | "||") => truth(left) == Truth::Always(true),
                    _ => false,
                };
                let right = Place { dead: place.dead || is_cut, ..place };
                self.fields(node, |field| if field == Some("right") { right } else { place });
            }
            "while_statement" | "while_expression" | "for_statement" | "for_expression"
            | "for_in_statement" => {
                let mut inside = Place { conditional: true, ..place };
                // Go writes the condition of a loop without a name.
                let go = node.named_child(0).filter(|first| {
                    self.reader.language == Language::Go && !first.kind().ends_with("clause")
                });
                inside.dead |= truth(condition.or(go)) == Truth::Always(false);
                let over = node.child_by_field_name("right").or(node.child_by_field_name("value"));
                inside.dead |= over.is_some_and(|over| self.is_nothing(over));
                self.fields(node, |field| if field == Some("body") { inside } else { place });
            }
            "try_statement" => {
                let mut inside = place;
                inside.swallowed |= self.reader.swallows(node);
                let handled = Place { conditional: true, ..place };
                self.fields(node, |field| match field {
                    Some("body") => inside,
                    _ => handled,
                });
            }
            "with_statement" => {
                let context = self.reader.contexts(node);
                let mut inside = place;
                inside.swallowed |= context.swallows;
                inside.expected |= context.expects;
                inside.thrown |= context.throws;
                // `with raises(AssertionError): assert …` holds where the assertion does not.
                let body = node.child_by_field_name("body").filter(|_| context.expects);
                let is_inverted = body.and_then(|body| self.reader.asserts(body)) == Some(true);
                let around = Place { uncounted: is_inverted, ..place };
                self.fields(node, |field| if field == Some("body") { inside } else { around });
            }
            "function_definition"
            | "function_declaration"
            | "function_item"
            | "variable_declarator"
                if !decorated && self.is_unused_function(node) =>
            {
                self.fields(node, |_| Place { dead: true, ..place });
            }
            "decorated_definition" => {
                self.fields(node, |_| Place { decorated: true, ..place });
            }
            "class_definition" | "impl_item" | "trait_item" => {
                // The methods of a type may be called by what gets it.
                if let Some(body) = node.child_by_field_name("body") {
                    let inside =
                        Place { decorated: true, conditional: true, nested: true, ..place };
                    self.fields(body, |_| inside);
                }
            }
            "function_definition"
            | "function_declaration"
            | "function_item"
            | "func_literal"
            | "arrow_function"
            | "function_expression"
            | "closure_expression" => {
                self.fields(node, |_| Place { conditional: true, nested: true, ..place });
            }
            "match_arm" | "switch_case" | "expression_case" | "case_clause" => {
                self.fields(node, |_| Place { conditional: true, ..place });
            }
            _ => {
                let inside = Place {
                    swallowed: place.swallowed || self.reader.is_discarded_failure(node),
                    ..place
                };
                self.fields(node, |_| inside);
            }
        }
    }

    /// Reads what becomes of failures in code that is handed over: the code of a function with a
    /// name, or that in the arguments of a call. Returns whether the node only asserts that
    /// assertions fail.
    fn hand_over(&mut self, node: Node<'t>, place: &mut Place) -> bool {
        let mut stands_for_others = false;
        let handling = match node.kind() {
            "function_definition" | "function_declaration" | "variable_declarator" => {
                let name = node.child_by_field_name("name");
                let name = name.map(|name| node_bytes(name, self.reader.text));
                name.and_then(|name| self.handed_over.get(name)).copied()
            }
            "macro_invocation" => {
                stands_for_others = self.reader.asserts_failure(node, &self.handed_over);
                None
            }
            "assignment" => {
                place.uncounted |= self.reader.expects_later(node);
                None
            }
            "if_expression" | "match_expression" => {
                self.reader.discards_in_condition(node).then_some(Handling::Discarded)
            }
            _ => {
                let handling = self.reader.handles(node, &self.handed_over);
                stands_for_others = handling == Some(Handling::Expected);
                let given = handling.and_then(|_| self.reader.given_assertion(node));
                match (handling, given) {
                    (Some(Handling::Expected), Some(true)) => {
                        self.checks.disarmed = self.checks.disarmed.saturating_add(1);
                    }
                    (Some(Handling::Expected | Handling::Thrown), Some(false)) => {
                        self.checks.inverted = self.checks.inverted.saturating_add(1);
                    }
                    _ => {}
                }
                handling
            }
        };
        place.expected |= handling == Some(Handling::Expected);
        place.thrown |= matches!(handling, Some(Handling::Expected | Handling::Thrown));
        place.swallowed |= handling == Some(Handling::Discarded);
        stands_for_others
    }

    fn count(&mut self, kind: Kind, place: Place, node: Node<'_>) {
        let is_helper = !self.reader.is_of_runner(node);
        if is_helper && place.thrown && !place.dead && !place.swallowed {
            // It is what is tested, and what expects its error is counted.
            self.checks.inverted = self.checks.inverted.saturating_add(1);
            return;
        }
        let effective = self.checks.effective;
        let is_inverted = || node.kind() == "assert_statement" || self.reader.is_about_code(node);
        let swallowed = place.swallowed || (place.expected && is_inverted());
        let number = match kind {
            _ if place.dead || swallowed => &mut self.checks.disarmed,
            Kind::Disarmed => &mut self.checks.disarmed,
            Kind::Constant => &mut self.checks.constant,
            _ if place.elsewhere => &mut self.checks.constant,
            Kind::Effective => &mut self.checks.effective,
            Kind::Failing | Kind::Contradiction if !place.conditional => {
                self.checks.failing = self.checks.failing.saturating_add(1);
                &mut self.checks.effective
            }
            Kind::Failing | Kind::Contradiction | Kind::Undecided => {
                self.checks.undecided = self.checks.undecided.saturating_add(1);
                // Where it stands for something that must not happen, it can fail.
                match kind {
                    Kind::Failing => &mut self.checks.effective,
                    Kind::Contradiction if !place.nested => &mut self.checks.effective,
                    _ => &mut self.checks.constant,
                }
            }
        };
        *number = number.saturating_add(1);
        if is_helper && self.checks.effective > effective {
            self.checks.helpers = self.checks.helpers.saturating_add(1);
        }
    }

    /// Visits the statements of a block. Those after a return are never reached.
    fn block(&mut self, node: Node<'t>, mut place: Place) {
        for child in children(node) {
            if !child.is_named() {
                continue;
            }
            self.open.push((child, place));
            place.dead |= self.ends(child, MAX_DEPTH);
        }
    }

    fn fields(&mut self, node: Node<'t>, place: impl Fn(Option<&str>) -> Place) {
        let mut cursor = node.walk();
        if !cursor.goto_first_child() {
            return;
        }
        loop {
            if cursor.node().is_named() {
                self.open.push((cursor.node(), place(cursor.field_name())));
            }
            if !cursor.goto_next_sibling() {
                return;
            }
        }
    }

    /// Whether nothing after a statement is reached.
    fn ends(&self, node: Node<'_>, depth: usize) -> bool {
        let Some(depth) = depth.checked_sub(1) else { return false };
        let field = |name| node.child_by_field_name(name);
        match node.kind() {
            "return_statement"
            | "return_expression"
            | "raise_statement"
            | "throw_statement"
            | "break_statement"
            | "continue_statement"
            | "break_expression"
            | "continue_expression" => true,
            "expression_statement" => {
                self.reader.is_skip(node)
                    || node.named_child(0).is_some_and(|inner| self.ends(inner, depth))
            }
            "if_statement" | "if_expression" => {
                let ends = |name| field(name).is_some_and(|part| self.ends(part, depth));
                let truth = field("condition")
                    .map_or(Truth::Unknown, |condition| self.reader.conditions.truth(condition));
                match truth {
                    Truth::Always(true) => ends("consequence"),
                    Truth::Always(false) => ends("alternative"),
                    // `elif` is another alternative, and the first is the one that is asked for.
                    _ => {
                        ends("consequence")
                            && ends("alternative")
                            && field("alternative").is_some_and(|part| part.kind() != "elif_clause")
                    }
                }
            }
            "block" | "statement_block" | "statement_list" | "else_clause" => {
                children(node).into_iter().any(|child| self.ends(child, depth))
            }
            "with_statement" => field("body").is_some_and(|body| self.ends(body, depth)),
            _ => self.reader.is_skip(node),
        }
    }

    /// Whether a loop over this runs never: `[]`, `range(0)`.
    fn is_nothing(&self, node: Node<'_>) -> bool {
        let raw = node_bytes(node, self.reader.text);
        matches!(raw, b"[]" | b"()" | b"{}" | b"range(0)" | b"0..0" | b"set()" | b"list()")
    }

    /// Whether a node defines a function that nothing calls.
    fn is_unused_function(&self, node: Node<'_>) -> bool {
        let is_function = node.kind() != "variable_declarator"
            || node.child_by_field_name("value").is_some_and(|value| {
                matches!(value.kind(), "arrow_function" | "function_expression")
            });
        let name = node.child_by_field_name("name").map(|name| node_bytes(name, self.reader.text));
        is_function
            && name
                .is_some_and(|name| self.own.occurrences.get(name).is_none_or(|times| *times <= 1))
    }
}
