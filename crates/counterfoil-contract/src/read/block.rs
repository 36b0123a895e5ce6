//! Reads the lines of an output block. A value is on the line of its key. What is not clear is a
//! violation, never a shorter or another value.

mod lines;
mod list;
mod value;

use crate::capped::Capped;
use crate::code::Code;
use crate::contract::Contract;
use crate::expr::{Field, ObjectType, Type};
use crate::json::{self, Children, Node};
use crate::placeholder;
use crate::policy::Policy;
use crate::report::{Coercion, Violation};
use crate::source::{Source, Span};
use crate::text::pluralize;
use crate::validate::{
    Detail, ParsedValue, Salvaged, ValueSpans, bare_violation, excerpt, validate,
};
use crate::work;
use lines::{Entry, Line};
use list::Unclear;
use serde_json::map::Entry as Slot;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

/// A longer block gets a warning.
const MAX_BLOCK_CHARS: usize = 1000;

/// An entry with the lines below that belong to it.
struct Item<'r, 't> {
    entry: Entry<'t>,
    /// The field that its key names.
    name: Option<&'r str>,
    indent: usize,
    /// The end of the last line that continues the value.
    continued: Option<usize>,
    /// What its value says about the lines below, once one of them has asked.
    below: Option<Below>,
}

/// What the value of an entry says about the lines below it.
#[derive(Clone, Copy)]
struct Below {
    /// It is not complete.
    open: bool,
    /// It is one value without brackets where the contract has a list.
    bare: bool,
}

/// The keys of a block's lines, each with its value.
pub(crate) fn entries(content: &str) -> impl Iterator<Item = (&str, &str)> {
    lines::lines(content, 0).filter_map(|line| line.entry.map(|entry| (entry.key, entry.value)))
}

/// Parses the lines of an output block.
pub(crate) fn read<'t>(
    contract: &Contract,
    source: &Source<'t>,
    start: usize,
    end: usize,
    policy: &Policy,
) -> ParsedValue<'t> {
    BlockReader::new(contract, source, policy).read(start, end)
}

/// What can be read of a block whose end is missing: the fields of its complete lines that satisfy
/// the contract, and those that do not. The last line is left out if the text ends in it.
pub(crate) fn read_cut_off(
    contract: &Contract,
    source: &Source<'_>,
    start: usize,
    end: usize,
    policy: &Policy,
) -> Salvaged {
    let whole = source.slice(start, end).rfind('\n').map_or(start, |newline| start + newline + 1);
    let mut reader = BlockReader::new(contract, source, policy);
    reader.cut_off = true;
    let parsed = reader.read(start, whole);
    if parsed.value.as_object().is_none_or(Map::is_empty) {
        return Salvaged::default();
    }
    // A field that is missing may have been cut off, so it gets no default.
    let given: HashSet<String> =
        parsed.value.as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect();
    let fields = Policy { salvage: vec![String::new()], ..policy.clone() };
    let outcome = validate(contract, &fields, parsed, source, Detail::Full);
    let mut salvaged = if outcome.is_accepted() {
        Salvaged { partial: Some(outcome.value), ..Salvaged::default() }
    } else {
        outcome.salvaged
    };
    if let Some(Value::Object(members)) = &mut salvaged.partial {
        let defaults: HashSet<String> =
            outcome.defaults.into_parts().0.into_iter().map(|one| one.pointer).collect();
        let is_default = |key: &str| {
            !given.contains(key) && defaults.contains(&format!("/{}", json::escape(key)))
        };
        members.retain(|key, _| !is_default(key));
    }
    salvaged
}

struct BlockReader<'r, 't> {
    contract: &'r Contract,
    object: Option<&'r ObjectType>,
    /// The fields, by their bare names.
    names: HashMap<String, &'r str>,
    /// What the template shows for each field, once a value may be it.
    shown: OnceCell<HashMap<&'r str, String>>,
    source: &'r Source<'t>,
    policy: &'r Policy,
    /// Whether lines after the last one are missing.
    cut_off: bool,
    violations: Capped<Violation>,
    warnings: Capped<Violation>,
    coercions: Capped<Coercion>,
}

impl<'r, 't> BlockReader<'r, 't> {
    fn new(contract: &'r Contract, source: &'r Source<'t>, policy: &'r Policy) -> Self {
        let object = contract.ty().object().map(AsRef::as_ref);
        let fields = object.into_iter().flat_map(|object: &ObjectType| object.fields.keys());
        let renames = policy.rename.iter().filter(|rename| rename.at.is_empty());
        let names =
            renames.map(|rename| (bare_name(&rename.from).into_owned(), rename.to.as_str()));
        let names =
            names.chain(fields.map(|name| (bare_name(name).into_owned(), name.as_str()))).collect();
        Self {
            contract,
            object,
            names,
            shown: OnceCell::new(),
            source,
            policy,
            cut_off: false,
            violations: Capped::default(),
            warnings: Capped::default(),
            coercions: Capped::default(),
        }
    }

    fn read(mut self, start: usize, end: usize) -> ParsedValue<'t> {
        let content = self.source.slice(start, end);
        let items = self.items(content, start);
        let mut map: Map<String, Value> = Map::with_capacity(items.len());
        // Of members with the same key the last counts.
        let mut members: Vec<(String, Node)> = Vec::with_capacity(items.len());
        let mut seen: HashMap<&'r str, Value> = HashMap::new();
        for item in items {
            let Entry { key, key_at, value: text, value_at } = item.entry;
            let value = self.value(&item);
            let slot = map.entry(key);
            let first = match (item.name, &slot) {
                (Some(name), _) => seen.get(name),
                (None, Slot::Occupied(slot)) => Some(slot.get()),
                (None, Slot::Vacant(_)) => None,
            };
            let template = self.is_template(&item);
            if let Some(first) = first.filter(|_| !template) {
                let equal = *first == value;
                // A field beside an unknown one with nearly its name is noted as unknown.
                if !equal || matches!(slot, Slot::Occupied(_)) {
                    let extent = (key_at, key_at + key.len());
                    self.duplicate(item.name.unwrap_or(key), key, equal, extent);
                }
            }
            if let Some(name) = item.name {
                seen.insert(name, value.clone());
            }
            match slot {
                Slot::Occupied(mut slot) => drop(slot.insert(value)),
                Slot::Vacant(slot) => drop(slot.insert(value)),
            }
            let node = Node {
                start: value_at,
                end: item.continued.unwrap_or(value_at + text.len()),
                key: Some((key_at, key_at + key.len())),
                children: Children::None,
            };
            members.push((key.to_owned(), node));
        }
        self.note_length(content, start, end);
        ParsedValue {
            value: Value::Object(map),
            spans: ValueSpans::from_node(Node {
                start,
                end,
                key: None,
                children: Children::Members(members.into()),
            }),
            violations: self.violations,
            warnings: self.warnings,
            coercions: self.coercions,
        }
    }

    /// The entries of a block. Lines that are neither entries nor part of one are noted.
    fn items(&mut self, content: &'t str, start: usize) -> Vec<Item<'r, 't>> {
        let mut items: Vec<Item<'r, 't>> = Vec::new();
        for line in lines::lines(content, start) {
            let name = line.entry.and_then(|entry| self.known_name(entry.key));
            if let Some(last) = items.last_mut()
                && name.is_none()
                && self.continues(last, &line)
            {
                last.continued = Some(line.end());
                continue;
            }
            match line.entry {
                Some(entry) => {
                    let indent = line.indent;
                    items.push(Item { entry, name, indent, continued: None, below: None });
                    if items.len() > self.policy.max_values {
                        self.violations.push(|| {
                            let at = self.source.span(entry.key_at, entry.key_at);
                            too_many_values(self.policy.max_values, at)
                        });
                        return Vec::new();
                    }
                }
                None => self.note_line(&line),
            }
        }
        if self.cut_off {
            items.pop_if(|item| item.entry.value.is_empty());
        }
        items
    }

    /// Whether a line without a field of the contract may belong to the value above it.
    fn continues(&self, item: &mut Item<'_, '_>, line: &Line<'_>) -> bool {
        if item.continued.is_some() {
            return true;
        }
        let said = match item.below {
            Some(said) => said,
            None => *item.below.insert(self.below(item)),
        };
        if said.open {
            return true;
        }
        let Some(field) = self.field(item) else { return false };
        let below = line.indent > item.indent;
        let right_below = !line.after_blank && !line.has_word_key();
        if field.ty.items().is_some() {
            let closes = line.text.ends_with([']', ',']) && right_below;
            return said.bare || line.is_item() || below || closes;
        }
        let any_text = |ty: &Type| matches!(ty, Type::String(None) | Type::Any);
        field.ty.alternatives().iter().any(any_text) && (below || right_below)
    }

    /// What the value of an entry says about the lines below it.
    fn below(&self, item: &Item<'_, '_>) -> Below {
        let text = item.entry.value;
        work::count_text(text.len());
        let open = text.is_empty()
            || (text.starts_with('[') && !list::brackets_pair_up(text))
            || (text.starts_with('"') && text.matches('"').count() % 2 == 1);
        let list = self.field(item).filter(|field| !open && field.ty.items().is_some());
        // One value without brackets may be the first of several.
        let bare = list.is_some_and(|field| {
            self.typed(text, field).is_ok_and(|typed| {
                typed.recorded && typed.value.as_array().is_some_and(|items| !items.is_empty())
            })
        });
        Below { open, bare }
    }

    /// The value of an entry. One that is not clear is reported and kept as text.
    fn value(&mut self, item: &Item<'_, '_>) -> Value {
        let Entry { key, value: text, value_at, key_at } = item.entry;
        let pointer = || format!("/{}", json::escape(key));
        let extent = (value_at, value_at + text.len());
        let field = self.field(item);
        let why = if item.continued.is_some() {
            if text.is_empty() { Unclear::Below } else { Unclear::Continued }
        } else {
            if self.is_template(item) {
                // The validation reports the one that the contract gives.
                let is_given = field.and_then(|field| field.placeholder.as_deref()) == Some(text);
                if placeholder::is_bracketed(text) || !is_given {
                    let source = self.source;
                    self.violations.push(|| left_in(&pointer(), text, source, extent));
                }
                return Value::from(text);
            }
            match self.typed_or_unknown(text, field) {
                Ok(typed) => {
                    if typed.recorded {
                        self.coercions.push(|| Coercion {
                            pointer: pointer(),
                            from: Value::from(text).to_string(),
                            to: typed.value.to_string(),
                        });
                    }
                    return typed.value;
                }
                Err(why) => why,
            }
        };
        if why == Unclear::TooMany {
            let limit = self.policy.max_values;
            let violation = || Violation {
                pointer: pointer(),
                ..too_many_values(limit, self.source.span(extent.0, extent.1))
            };
            self.violations.push(violation);
            return Value::from("");
        }
        let end = item.continued.unwrap_or(extent.1);
        // An empty value has no extent of its own.
        let start = if text.is_empty() { key_at } else { value_at };
        let has_list = field.is_none_or(|field| field.ty.items().is_some());
        self.violations.push(|| {
            let mut violation = bare_violation(Code::UnclearValue, &pointer(), why.message(key));
            violation.span = Some(self.source.span(start, end));
            violation.expected = "the whole value on the line of its key".into();
            violation.received = excerpt(&Value::from(self.source.slice(start, end)));
            violation.hint = one_line_hint(key, has_list);
            violation
        });
        Value::from(self.source.slice(value_at.min(end), end))
    }

    /// The field that has exactly the key of an entry.
    fn field(&self, item: &Item<'_, '_>) -> Option<&'r Field> {
        item.name.and(self.object)?.fields.get(item.entry.key)
    }

    /// The field that a key names, also in another case or with marks around it, as in
    /// `**Approved**`.
    fn known_name(&self, key: &str) -> Option<&'r str> {
        self.names.get(&*bare_name(key)).copied()
    }

    fn typed(&self, text: &str, field: &Field) -> Result<value::Typed, Unclear> {
        self.typed_or_unknown(text, Some(field))
    }

    fn typed_or_unknown(&self, text: &str, field: Option<&Field>) -> Result<value::Typed, Unclear> {
        let ty = field.map(|field| &field.ty);
        value::typed(text, ty, self.policy.strict, self.policy.limits())
    }

    /// Whether the value of an entry is a placeholder of the template, and no real value.
    fn is_template(&self, item: &Item<'_, '_>) -> bool {
        let text = item.entry.value;
        let Some(field) = self.field(item).filter(|_| self.policy.placeholders) else {
            return false;
        };
        let is_placeholder = placeholder::is_bracketed(text)
            || field.placeholder.as_deref() == Some(text)
            || self.is_shown(item.entry.key, text);
        is_placeholder && !self.is_of_contract(item.entry.key, text, field)
    }

    /// Whether the template shows a text for a field.
    fn is_shown(&self, key: &str, text: &str) -> bool {
        // Without a placeholder of its own, a field is shown in brackets.
        text.starts_with('[')
            && self
                .shown
                .get_or_init(|| placeholder::all_shown(self.contract))
                .get(key)
                .is_some_and(|shown| shown == text)
    }

    /// Whether the contract itself has a text as a value of a field: allowed, or in an example.
    fn is_of_contract(&self, key: &str, text: &str, field: &Field) -> bool {
        placeholder::is_allowed(text, &field.ty)
            || self
                .typed(text, field)
                .is_ok_and(|typed| placeholder::is_in_example(self.contract, key, &typed.value))
    }

    fn duplicate(&mut self, key: &str, written: &str, equal: bool, (start, end): (usize, usize)) {
        let refused = !equal || self.policy.strict;
        let code = if refused { Code::DuplicateKey } else { Code::DuplicateKeyNote };
        let notes = if refused { &mut self.violations } else { &mut self.warnings };
        let source = self.source;
        notes.push(|| {
            let message = if equal {
                format!("the key `{key}` appears twice in the block")
            } else {
                format!("the key `{key}` appears twice in the block, with different values")
            };
            let mut note = bare_violation(code, &format!("/{}", json::escape(key)), message);
            note.span = Some(source.span(start, end));
            note.expected = "each key once".into();
            note.received = format!("`{written}` again");
            note.hint = format!("write `{key}` once");
            note
        });
    }

    fn note_line(&mut self, line: &Line<'_>) {
        self.warnings.push(|| {
            let mut note = bare_violation(
                Code::LineWithoutColon,
                "",
                "a line of the block has no colon; it was left out".into(),
            );
            note.span = Some(self.source.span(line.at, line.end()));
            note.expected = "key: value".into();
            note.received = line.text.chars().take(80).collect();
            note.hint = "put each value on the line of its key".into();
            note
        });
    }

    fn note_length(&mut self, content: &str, start: usize, end: usize) {
        let length = content.trim().chars().count();
        if length <= MAX_BLOCK_CHARS {
            return;
        }
        let mut note = bare_violation(
            Code::LongBlock,
            "",
            format!("the block has {length} characters; the format is meant for short values"),
        );
        note.span = Some(self.source.span(start, end));
        note.expected = format!("at most {MAX_BLOCK_CHARS} characters");
        note.received = format!("{length} characters");
        note.hint = "shorten the values".into();
        self.warnings.push(|| note);
    }
}

/// The violation of a block with too many values.
fn too_many_values(limit: usize, span: Span) -> Violation {
    let message = format!("the result has more than {}", pluralize(limit, "value"));
    let mut violation = bare_violation(Code::TooManyValues, "", message);
    violation.span = Some(span);
    violation.expected = format!("at most {}", pluralize(limit, "value"));
    violation.received = "more".into();
    violation.hint = "send fewer items, or write long lists to a file and name it".into();
    violation
}

/// How to write a value so that it is clear.
fn one_line_hint(key: &str, has_list: bool) -> String {
    if !has_list {
        return format!("write `{key}` on one line");
    }
    format!(
        "write `{key}` on one line as [a, b]; an item with a comma needs a JSON list in quotes: [\"a, b\", \"c\"]"
    )
}

/// A key without its case and without marks around it.
fn bare_name(key: &str) -> Cow<'_, str> {
    let bare = key.trim_matches(|c: char| !c.is_alphanumeric() && c != '_');
    if bare.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase()) {
        return Cow::Borrowed(bare);
    }
    Cow::Owned(bare.to_lowercase())
}

/// The violation of a placeholder that was left in.
fn left_in(
    pointer: &str,
    text: &str,
    source: &Source<'_>,
    (start, end): (usize, usize),
) -> Violation {
    Violation {
        code: Code::Placeholder,
        pointer: pointer.to_owned(),
        span: Some(source.span(start, end)),
        message: format!(
            "`{}` still holds the placeholder {} of the template",
            pointer.trim_start_matches('/'),
            excerpt(&Value::from(text))
        ),
        expected: "the real value".into(),
        received: excerpt(&Value::from(text)),
        hint: "replace the placeholder with the real value".into(),
        rule: None,
    }
}
