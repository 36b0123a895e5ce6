//! JSON values as numbers: equal for values that mean the same, whatever their spelling, the order
//! of lists, and members that say nothing.

use crate::nothing::is_empty;
use crate::policy::Limits;
use serde_json::{Number, Value};
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// A value that is nested deeper is not compared.
const MAX_DEPTH: usize = 256;
/// The number of objects with a common member that are compared.
const MAX_OBJECTS: usize = 64;
/// Integers above are not exact as floating-point numbers.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

/// The digest of a value; none if it is nested too deeply.
pub(super) fn digest(value: &Value) -> Option<u64> {
    walk(value, 0, &mut |_, _| {})
}

/// Adds the digests of a value and of all objects and lists inside of it.
pub(super) fn digests(value: &Value, into: &mut HashSet<u64>) {
    walk(value, 0, &mut |digest, _| {
        into.insert(digest);
    });
}

/// Objects and lists by their digests, and objects by their members.
#[derive(Clone, Debug, Default)]
pub(super) struct Values {
    digests: HashSet<u64>,
    /// The objects that have a member (a key with its value), in order.
    objects: HashMap<u64, Vec<u32>>,
    /// The objects that have a key with a value that says something, in order.
    keys: HashMap<u64, Vec<u32>>,
    count: u32,
}

impl Values {
    /// Adds a value and all objects and lists inside of it.
    pub(super) fn add(&mut self, value: &Value) {
        walk(value, 0, &mut |digest, members| {
            // The same object has the same members.
            if !self.digests.insert(digest) {
                return;
            }
            let number = self.count;
            self.count = self.count.saturating_add(1);
            for member in members {
                self.objects.entry(member.digest).or_default().push(number);
                self.keys.entry(member.key).or_default().push(number);
            }
        });
    }

    /// Whether a value with this digest was added, or an object that has all members of the value.
    /// Members that say nothing need not be there, but nothing else may be in their place.
    pub(super) fn contain(&self, digest: u64, value: &Value) -> bool {
        self.digests.contains(&digest) || self.contain_members(value)
    }

    fn contain_members(&self, value: &Value) -> bool {
        let Value::Object(fields) = value else { return false };
        let mut found: Vec<&Vec<u32>> = Vec::with_capacity(fields.len());
        let mut others: Vec<&Vec<u32>> = Vec::new();
        for (key, value) in fields {
            if is_empty(value) {
                others.extend(self.keys.get(&key_digest(key)));
                continue;
            }
            let objects = digest(value).and_then(|value| self.objects.get(&member(key, value)));
            let Some(objects) = objects else { return false };
            found.push(objects);
        }
        let Some(rarest) = found.iter().min_by_key(|objects| objects.len()) else { return false };
        let has = |lists: &Vec<u32>, number: &u32| lists.binary_search(number).is_ok();
        rarest.iter().take(MAX_OBJECTS).any(|number| {
            found.iter().all(|objects| has(objects, number))
                && !others.iter().any(|objects| has(objects, number))
        })
    }
}

/// A member of an object.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Member {
    /// The digest of the key with its value.
    digest: u64,
    /// The digest of the key.
    key: u64,
}

fn key_digest(key: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

/// The digest of a key with its value.
fn member(key: &str, value: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    (key, value).hash(&mut hasher);
    hasher.finish()
}

/// The value inside of an envelope: the only member of an object, or the only item of a list. It
/// may also be written as a text.
pub(super) fn inside_envelope(value: &Value) -> Option<Value> {
    let inner = match value {
        Value::Array(items) if items.len() == 1 => items.first()?,
        Value::Object(fields) if fields.len() == 1 => fields.values().next()?,
        _ => return None,
    };
    match inner {
        Value::String(text) => {
            let parsed = crate::json::parse(text.trim(), Limits::of_depth(MAX_DEPTH)).ok()?;
            (parsed.value.is_object() || parsed.value.is_array()).then_some(parsed.value)
        }
        Value::Object(_) | Value::Array(_) => Some(inner.clone()),
        _ => None,
    }
}

/// Calls a function for each string of a value.
pub(super) fn visit_strings(value: &Value, visit: &mut impl FnMut(&str)) {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::String(text) => visit(text),
            Value::Array(items) => open.extend(items),
            Value::Object(fields) => open.extend(fields.values()),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// Calls a function for each object and list, those inside first, with its digest and with its
/// members if it is an object.
fn walk(value: &Value, depth: usize, visit: &mut impl FnMut(u64, &[Member])) -> Option<u64> {
    if depth > MAX_DEPTH {
        return None;
    }
    let mut hasher = DefaultHasher::new();
    let mut members = Vec::new();
    match value {
        Value::Null => 0u8.hash(&mut hasher),
        Value::Bool(truth) => (1u8, truth).hash(&mut hasher),
        Value::Number(number) => hash_number(number, &mut hasher),
        Value::String(text) => hash_text(text, &mut hasher),
        Value::Array(items) => {
            4u8.hash(&mut hasher);
            let items = items.iter().map(|item| walk(item, depth + 1, visit));
            let mut items = items.collect::<Option<Vec<u64>>>()?;
            items.sort_unstable();
            items.hash(&mut hasher);
        }
        Value::Object(fields) => {
            5u8.hash(&mut hasher);
            members.reserve_exact(fields.len());
            let only_empty = fields.values().all(is_empty);
            for (key, value) in fields {
                let digest = walk(value, depth + 1, visit)?;
                if only_empty || !is_empty(value) {
                    members.push(Member { digest: member(key, digest), key: key_digest(key) });
                }
            }
            members.sort_unstable();
            for member in &members {
                member.digest.hash(&mut hasher);
            }
        }
    }
    let digest = hasher.finish();
    if matches!(value, Value::Array(_) | Value::Object(_)) {
        visit(digest, &members);
    }
    Some(digest)
}

/// A text without its whitespace.
fn hash_text(text: &str, hasher: &mut DefaultHasher) {
    3u8.hash(hasher);
    if text.contains(char::is_whitespace) {
        text.split_whitespace().collect::<String>().hash(hasher);
    } else {
        text.hash(hasher);
    }
}

fn hash_number(number: &Number, hasher: &mut DefaultHasher) {
    2u8.hash(hasher);
    match number.as_f64() {
        // Zero has two forms.
        Some(number) if number.abs() < MAX_EXACT => (number + 0.0).to_bits().hash(hasher),
        _ => number.to_string().hash(hasher),
    }
}
