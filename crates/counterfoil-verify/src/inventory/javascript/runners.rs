//! The names by which a file calls its test runner: those of its imports, and what is bound to them.

use super::super::parse::{children, node_text};
use super::super::source::Source;
use super::is_function;
use std::borrow::Cow;
use std::collections::HashMap;
use tree_sitter::Node;

/// The maximum length of a chain such as `a.b(c).d` that names a call.
const MAX_CHAIN: usize = 8;

/// The modules of test runners.
const MODULES: [&str; 32] = [
    "node:test",
    "test",
    "vitest",
    "@jest/globals",
    "bun:test",
    "mocha",
    "@playwright/test",
    "playwright/test",
    "qunit",
    "ava",
    "tap",
    "@tapjs/core",
    "libtap",
    "tape",
    "tape-promise",
    "tape-async",
    "tape-catch",
    "blue-tape",
    "supertape",
    "tapzero",
    "@substrate-system/tapzero",
    "zora",
    "brittle",
    "uvu",
    "baretest",
    "ospec",
    "poku",
    "lab",
    "@hapi/lab",
    "@japa/runner",
    "@rstest/core",
    "@effect/vitest",
];

/// What a name stands for.
#[derive(Clone)]
enum Target<'s> {
    /// The module of a runner, which can be called like `test` as well.
    Module,
    /// A function of a runner: `it`, `test.skip`.
    Function {
        /// Its name, with the names before it.
        path: Vec<&'s str>,
        /// Whether only the name of an import says so.
        is_guess: bool,
    },
}

impl<'s> Target<'s> {
    fn function(path: &[&'s str]) -> Self {
        Self::Function { path: path.to_vec(), is_guess: false }
    }

    /// What a property with this name stands for.
    fn member(&self, name: &'s str) -> Option<Self> {
        match self {
            Self::Module if matches!(name, "default" | "t" | "tap" | "tape") => Some(Self::Module),
            Self::Module => export(name).map(Self::function),
            Self::Function { path, is_guess } => {
                let path: Vec<&str> = path.iter().copied().chain([name]).collect();
                (path.len() <= MAX_CHAIN).then_some(Self::Function { path, is_guess: *is_guess })
            }
        }
    }

    /// What is called if these names follow.
    fn callee<'t>(
        mut self,
        parts: Vec<&'s str>,
        table: Option<Node<'t>>,
    ) -> Option<Callee<'t, 's>> {
        let mut parts = parts.into_iter().peekable();
        while let Self::Module = self
            && let Some(member) = parts.peek().copied().and_then(|name| self.member(name))
        {
            self = member;
            parts.next();
        }
        let (path, is_guess) = match self {
            // `t('a', …)`, `t.each(…)`.
            Self::Module => (vec!["test"], false),
            Self::Function { path, is_guess } => (path, is_guess),
        };
        let mut names = path.into_iter().chain(parts);
        Some(Callee { base: names.next()?, parts: names.collect(), table, is_guess })
    }
}

/// What a runner exports under this name.
fn export(name: &str) -> Option<&'static [&'static str]> {
    let path: &'static [&'static str] = match name {
        "test" => &["test"],
        "it" => &["it"],
        "specify" => &["specify"],
        "describe" | "experiment" | "module" | "spec" => &["describe"],
        "context" => &["context"],
        "suite" => &["suite"],
        "xit" => &["xit"],
        "xtest" => &["xtest"],
        "xspecify" => &["xspecify"],
        "xdescribe" => &["xdescribe"],
        "xcontext" => &["xcontext"],
        "fit" => &["fit"],
        "fdescribe" => &["fdescribe"],
        "skip" => &["test", "skip"],
        "todo" => &["test", "todo"],
        "only" => &["test", "only"],
        "before" => &["before"],
        "beforeEach" => &["beforeEach"],
        "beforeAll" => &["beforeAll"],
        _ => return None,
    };
    Some(path)
}

/// The callee of a call: `it.skip` is `it` with `skip`, `it.each(table)` is `it` with `each` and the
/// table.
pub(super) struct Callee<'t, 's> {
    pub(super) base: &'s str,
    /// The names after the base.
    pub(super) parts: Vec<&'s str>,
    /// The arguments of `each`.
    pub(super) table: Option<Node<'t>>,
    /// Whether only the name of an import says that it is a part of a runner.
    pub(super) is_guess: bool,
}

/// The names of a file that stand for parts of a runner.
#[derive(Default)]
pub(super) struct Runners<'s>(HashMap<&'s str, Target<'s>>);

impl<'s> Runners<'s> {
    /// Reads the imports of a file, which hold in all of it.
    pub(super) fn read(root: Node<'_>, source: &Source<'s>) -> Self {
        let mut runners = Self::default();
        for child in children(root) {
            if child.kind() == "import_statement" {
                runners.import(child, source);
            }
        }
        runners
    }

    fn import(&mut self, statement: Node<'_>, source: &Source<'s>) {
        let text = source.text;
        for clause in children(statement) {
            let from = statement
                .child_by_field_name("source")
                .or_else(|| clause.child_by_field_name("source"));
            let is_known = from.is_some_and(|from| is_runner(from, text));
            // The second is `import t = require('tap')`.
            if !matches!(clause.kind(), "import_clause" | "import_require_clause") {
                continue;
            }
            for part in children(clause) {
                match part.kind() {
                    "identifier" if is_known => self.bind(part, Target::Module, text),
                    "namespace_import" if is_known => {
                        if let Some(name) = part.named_child(0) {
                            self.bind(name, Target::Module, text);
                        }
                    }
                    "named_imports" => {
                        for import in children(part) {
                            self.named_import(import, is_known, source);
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    fn named_import(&mut self, import: Node<'_>, is_known: bool, source: &Source<'s>) {
        let Some(name) = import.child_by_field_name("name") else { return };
        let local = import.child_by_field_name("alias").unwrap_or(name);
        let name = unquoted(node_text(name, source.text));
        if is_known {
            if let Some(target) = Target::Module.member(name) {
                self.bind(local, target, source.text);
            }
        } else if source.is_collected
            && matches!(name, "test" | "it" | "describe")
            && node_text(local, source.text) != name
        {
            // A module of the project may pass on what it imports.
            self.bind(local, Target::Function { path: vec![name], is_guess: true }, source.text);
        }
    }

    /// Reads `const t = require('tap')`, `const check = test.skip` and the like.
    pub(super) fn declare(&mut self, declarator: Node<'_>, source: &Source<'s>) {
        let field = |name| declarator.child_by_field_name(name);
        if let (Some(name), Some(value)) = (field("name"), field("value"))
            && let Some(target) = self.value(value, source)
        {
            self.bind(name, target, source.text);
        }
    }

    /// Binds a name, or those of a pattern: `{ test: check }`.
    fn bind(&mut self, pattern: Node<'_>, target: Target<'s>, text: &'s [u8]) {
        let mut open = vec![(pattern, target)];
        while let Some((pattern, target)) = open.pop() {
            match pattern.kind() {
                "identifier" | "shorthand_property_identifier_pattern" => {
                    self.0.insert(node_text(pattern, text), target);
                }
                "object_pattern" => {
                    for part in children(pattern) {
                        let field = |name| part.child_by_field_name(name);
                        let (key, value) = match part.kind() {
                            "shorthand_property_identifier_pattern" => (Some(part), Some(part)),
                            "pair_pattern" => (field("key"), field("value")),
                            _ => continue,
                        };
                        let member =
                            key.and_then(|key| target.member(unquoted(node_text(key, text))));
                        open.extend(value.zip(member));
                    }
                }
                _ => {}
            }
        }
    }

    /// What an expression stands for, if it is a part of a runner.
    fn value(&self, mut node: Node<'_>, source: &Source<'s>) -> Option<Target<'s>> {
        for _ in 0..MAX_CHAIN {
            let field = |name| node.child_by_field_name(name);
            node = match node.kind() {
                "parenthesized_expression"
                | "await_expression"
                | "as_expression"
                | "satisfies_expression"
                | "non_null_expression" => node.named_child(0)?,
                "assignment_expression" => field("right")?,
                "ternary_expression" => {
                    let (yes, no) = (field("consequence")?, field("alternative")?);
                    let truth = source.truth(field("condition")?);
                    let skips = |node| {
                        let member = node_text(node, source.text).rsplit_once('.');
                        member.is_some_and(|(_, name)| name == "skip")
                    };
                    // Where it is not known which one runs, the one that skips counts.
                    if truth.is(true) || (!truth.is(false) && !skips(no)) { yes } else { no }
                }
                "identifier" | "member_expression" => return self.part(node, source.text),
                "call_expression" => return self.result(node, source),
                _ => return None,
            };
        }
        None
    }

    /// What a dotted name stands for.
    fn part(&self, node: Node<'_>, text: &'s [u8]) -> Option<Target<'s>> {
        let (root, parts, table) = chain(node, text)?;
        if table.is_some() {
            return None;
        }
        let mut target = match self.root(root, text) {
            Some(target) => target,
            None => {
                let name = node_text(root, text);
                let is_global = matches!(name, "test" | "it" | "describe" | "specify");
                Target::function(&[is_global.then_some(name)?])
            }
        };
        for name in parts {
            target = target.member(name)?;
        }
        Some(target)
    }

    /// What a call returns: `require('tap')`, `test.extend({ … })`, `suite('a')` of uvu.
    fn result(&self, call: Node<'_>, source: &Source<'s>) -> Option<Target<'s>> {
        if is_required(call, source.text) {
            return Some(Target::Module);
        }
        let function = call.child_by_field_name("function")?;
        let name = function.child_by_field_name("property");
        match name.map(|name| node_text(name, source.text)) {
            Some("extend") => {
                return self.part(function.child_by_field_name("object")?, source.text);
            }
            // `Lab.script()`.
            Some("script") => {
                let lab = self.part(function.child_by_field_name("object")?, source.text)?;
                return matches!(lab, Target::Module).then_some(lab);
            }
            _ => {}
        }
        let callee = self.chained(function, source.text)?;
        let is_known = self.is_bound(function, source.text);
        let arguments = call.child_by_field_name("arguments").map(children).unwrap_or_default();
        let returns_test = is_known
            && callee.parts.is_empty()
            && matches!(callee.base, "suite" | "test")
            && !arguments.into_iter().any(is_function);
        returns_test.then(|| Target::function(&["test"]))
    }

    /// The target of the first node of a chain.
    fn root(&self, root: Node<'_>, text: &'s [u8]) -> Option<Target<'s>> {
        match root.kind() {
            "identifier" => self.0.get(node_text(root, text)).cloned(),
            _ => Some(Target::Module),
        }
    }

    /// Whether a callee begins with a name that the file binds to a part of a runner.
    fn is_bound(&self, callee: Node<'_>, text: &'s [u8]) -> bool {
        chain(callee, text).is_some_and(|(root, ..)| self.root(root, text).is_some())
    }

    /// The callee of a call, in the words of the runners.
    pub(super) fn callee<'t>(&self, node: Node<'t>, source: &Source<'s>) -> Option<Callee<'t, 's>> {
        if node.kind() == "parenthesized_expression" {
            // `(slow ? it : it.skip)('a', …)`.
            return self.value(node, source)?.callee(Vec::new(), None);
        }
        self.chained(node, source.text)
    }

    /// The callee that a chain of names is.
    fn chained<'t>(&self, node: Node<'t>, text: &'s [u8]) -> Option<Callee<'t, 's>> {
        let (root, parts, table) = chain(node, text)?;
        match self.root(root, text) {
            Some(target) => target.callee(parts, table),
            None => Some(Callee { base: node_text(root, text), parts, table, is_guess: false }),
        }
    }

    /// A callee in the words of the runners, or else as it is written.
    pub(super) fn path(&self, callee: Node<'_>, text: &'s [u8]) -> Cow<'s, str> {
        if !self.0.is_empty()
            && self.is_bound(callee, text)
            && let Some(callee) = self.chained(callee, text)
        {
            let names: Vec<&str> = [callee.base].into_iter().chain(callee.parts).collect();
            return Cow::Owned(names.join("."));
        }
        Cow::Borrowed(node_text(callee, text))
    }

    /// Whether a name stands for a part of a runner.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }
}

/// A chain of names: its first node, the names after it, and the arguments of `each`.
type Chain<'t, 's> = (Node<'t>, Vec<&'s str>, Option<Node<'t>>);

fn chain<'t, 's>(mut node: Node<'t>, text: &'s [u8]) -> Option<Chain<'t, 's>> {
    let (mut names, mut table) = (Vec::new(), None);
    for _ in 0..MAX_CHAIN {
        match node.kind() {
            "identifier" => {
                names.reverse();
                return Some((node, names, table));
            }
            "member_expression" => {
                names.push(node_text(node.child_by_field_name("property")?, text));
                node = node.child_by_field_name("object")?;
            }
            "call_expression" if is_required(node, text) => {
                names.reverse();
                return Some((node, names, table));
            }
            // Only where the returned function is called.
            "call_expression" if names.is_empty() => {
                table = node.child_by_field_name("arguments");
                node = node.child_by_field_name("function")?;
                let last = node.child_by_field_name("property").map(|name| node_text(name, text));
                if !matches!(last, Some("each" | "for" | "skipIf" | "runIf" | "if")) {
                    return None;
                }
            }
            _ => return None,
        }
    }
    None
}

/// Whether a call loads the module of a runner: `require('tap')`, `import('tap')`.
fn is_required(call: Node<'_>, text: &[u8]) -> bool {
    let loads = call.child_by_field_name("function").is_some_and(|function| {
        function.kind() == "import"
            || (function.kind() == "identifier" && node_text(function, text) == "require")
    });
    loads
        && call
            .child_by_field_name("arguments")
            .and_then(|arguments| arguments.named_child(0))
            .is_some_and(|name| is_runner(name, text))
}

/// Whether a text names the module of a runner.
fn is_runner(name: Node<'_>, text: &[u8]) -> bool {
    matches!(name.kind(), "string" | "template_string")
        && MODULES.contains(&unquoted(node_text(name, text)))
}

fn unquoted(text: &str) -> &str {
    text.trim_matches(['"', '\'', '`'])
}
