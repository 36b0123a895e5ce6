//! Walks a value along its type: fills in defaults, and finds unknown fields and placeholders that
//! were left in.

use crate::capped::{Capped, Entry};
use crate::expr::{Field, Type};
use crate::json::escape;
use crate::placeholder;
use crate::work;
use serde_json::Value;

/// A path in a value, as a linked list back to the root.
#[derive(Clone, Copy)]
struct Path<'p> {
    parent: Option<&'p Path<'p>>,
    token: Token<'p>,
}

#[derive(Clone, Copy)]
enum Token<'p> {
    Root,
    Key(&'p str),
    Index(usize),
}

const ROOT: Path<'static> = Path { parent: None, token: Token::Root };

impl<'p> Path<'p> {
    fn key(&'p self, key: &'p str) -> Self {
        Self { parent: Some(self), token: Token::Key(key) }
    }

    fn index(&'p self, index: usize) -> Self {
        Self { parent: Some(self), token: Token::Index(index) }
    }

    fn pointer(&self) -> String {
        let mut text = self.parent.map(Path::pointer).unwrap_or_default();
        match self.token {
            Token::Root => {}
            Token::Key(key) => {
                text.push('/');
                text.push_str(&escape(key));
            }
            Token::Index(index) => {
                text.push('/');
                text.push_str(&index.to_string());
            }
        }
        text
    }
}

/// A field that was filled with its default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FilledDefault {
    pub(crate) pointer: String,
    /// It was null, not missing.
    pub(crate) was_null: bool,
}

impl Entry for FilledDefault {
    fn bytes(&self) -> usize {
        self.pointer.len()
    }
}

/// The defaults that were filled in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Defaults {
    pub(crate) filled: Capped<FilledDefault>,
    /// How many of those that are not listed are required fields.
    pub(crate) required_left_out: usize,
    /// The number of values that were added.
    pub(crate) values: usize,
}

/// Fills fields that are missing, or null and may not be, with their defaults and adds them to
/// `defaults`. Ends when `max_values` were added.
pub(crate) fn fill_defaults(
    value: &mut Value,
    ty: &Type,
    max_values: usize,
    defaults: &mut Defaults,
) {
    fill(value, ty, &ROOT, max_values, defaults);
}

fn fill(value: &mut Value, ty: &Type, path: &Path<'_>, max_values: usize, defaults: &mut Defaults) {
    match value {
        Value::Object(members) => {
            let Some(object) = ty.object() else { return };
            for (name, member) in members.iter_mut() {
                if let Some(field) = object.fields.get(name) {
                    fill(member, &field.ty, &path.key(name), max_values, defaults);
                }
            }
            for (name, field) in &object.fields {
                if let Some(default) = &field.default
                    && members.get(name).is_none_or(|given| given.is_null() && !is_nullable(field))
                {
                    if defaults.values > max_values {
                        return;
                    }
                    defaults.values += count_values(default);
                    let was_null = members.insert(name.clone(), default.clone()).is_some();
                    let listed = defaults
                        .filled
                        .push(|| FilledDefault { pointer: path.key(name).pointer(), was_null });
                    defaults.required_left_out += usize::from(!listed && field.required);
                }
            }
        }
        Value::Array(items) => {
            let Some(item_type) =
                ty.items().filter(|ty| ty.object().is_some() || ty.items().is_some())
            else {
                return;
            };
            for (index, item) in items.iter_mut().enumerate() {
                fill(item, item_type, &path.index(index), max_values, defaults);
            }
        }
        _ => {}
    }
}

fn is_nullable(field: &Field) -> bool {
    field.ty.alternatives().iter().any(|ty| matches!(ty, Type::Null | Type::Any))
}

/// The pointers of unknown fields, with their values, and of placeholders.
#[derive(Debug, Default)]
pub(crate) struct FieldScan<'v> {
    pub(crate) unknown: Vec<(String, &'v Value)>,
    pub(crate) placeholders: Vec<String>,
}

/// Finds unknown fields and, if `placeholders` is set, placeholders that were left in.
pub(crate) fn scan_fields<'v>(value: &'v Value, ty: &Type, placeholders: bool) -> FieldScan<'v> {
    let mut scan = FieldScan::default();
    scan_value(value, ty, None, &ROOT, placeholders, &mut scan);
    scan
}

fn scan_value<'v>(
    value: &'v Value,
    ty: &Type,
    field: Option<&Field>,
    path: &Path<'_>,
    placeholders: bool,
    scan: &mut FieldScan<'v>,
) {
    work::count(1);
    match value {
        Value::Object(members) => {
            let object = ty.object();
            for (name, member) in members {
                let path = path.key(name);
                let known = object.and_then(|object| object.fields.get(name));
                if placeholders && placeholder::is_ellipsis(name) {
                    scan.placeholders.push(path.pointer());
                    continue;
                }
                match known {
                    Some(field) => {
                        scan_value(member, &field.ty, Some(field), &path, placeholders, scan);
                    }
                    None => {
                        let alternatives = ty.alternatives();
                        let of_map = alternatives.iter().find_map(|ty| match ty {
                            Type::Map(values) => Some(&**values),
                            _ => None,
                        });
                        let is_any = alternatives.iter().any(|ty| matches!(ty, Type::Any));
                        let is_closed = object.is_some_and(|object| !object.open);
                        if is_closed && !is_any && of_map.is_none() {
                            scan.unknown.push((path.pointer(), member));
                        }
                        let ty = of_map.filter(|_| !is_any).unwrap_or(&Type::Any);
                        if placeholders || of_map.is_some() {
                            scan_value(member, ty, None, &path, placeholders, scan);
                        }
                    }
                }
            }
        }
        Value::Array(items) => {
            let item_type = ty.items().unwrap_or(&Type::Any);
            for (index, item) in items.iter().enumerate() {
                scan_value(item, item_type, field, &path.index(index), placeholders, scan);
            }
        }
        Value::String(text)
            if placeholders
                && (placeholder::is_placeholder(text)
                    || field.is_some_and(|field| placeholder::is_given(text, field)))
                && !placeholder::is_allowed(text, ty) =>
        {
            scan.placeholders.push(path.pointer());
        }
        _ => {}
    }
}

/// The number of values in a value, the containers among them.
pub(crate) fn count_values(value: &Value) -> usize {
    1 + match value {
        Value::Object(members) => members.values().map(count_values).sum(),
        Value::Array(items) => items.iter().map(count_values).sum::<usize>(),
        _ => 0,
    }
}

/// The most errors that a value can have by a simple schema: one for each value, and one for each
/// required field of each object.
pub(crate) fn max_errors(value: &Value, ty: &Type) -> usize {
    fn most_required(ty: &Type) -> usize {
        let of_one = |ty: &Type| match ty {
            Type::Object(object) => {
                let own = object.fields.values().filter(|field| field.required).count();
                object.fields.values().map(|field| most_required(&field.ty)).fold(own, usize::max)
            }
            Type::List(inner) | Type::Map(inner) => most_required(inner),
            _ => 0,
        };
        ty.alternatives().iter().map(of_one).max().unwrap_or(0)
    }
    fn objects(value: &Value) -> usize {
        match value {
            Value::Object(members) => 1 + members.values().map(objects).sum::<usize>(),
            Value::Array(items) => items.iter().map(objects).sum(),
            _ => 0,
        }
    }
    count_values(value).saturating_add(objects(value).saturating_mul(most_required(ty)))
}

/// The number of scalar values in a value.
pub(crate) fn count_scalars(value: &Value) -> usize {
    match value {
        Value::Object(members) => members.values().map(count_scalars).sum(),
        Value::Array(items) => items.iter().map(count_scalars).sum(),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn defaults_and_unknown_fields_have_pointers() {
        let schema = json!({"type": "object", "required": ["list"], "properties": {
            "list": {"type": "array", "items": {"type": "object", "properties": {
                "a": {"type": "integer", "default": 1}}}},
            "b": {"type": "array", "default": []},
            "c": {"type": ["string", "null"], "default": "x"}}});
        let ty = Type::from_schema(&schema);
        let mut value = json!({"list": [{}, {"a": 2, "x/y": 3}], "b": null, "c": null});
        let mut defaults = Defaults::default();
        fill_defaults(&mut value, &ty, 100, &mut defaults);
        let filled = defaults.filled.list();
        let filled: Vec<(&str, bool)> =
            filled.iter().map(|one| (one.pointer.as_str(), one.was_null)).collect();
        assert_eq!(filled, [("/list/0/a", false), ("/b", true)]);
        assert_eq!((&value["b"], &value["c"]), (&json!([]), &json!(null)));
        let scan = scan_fields(&value, &ty, true);
        let unknown: Vec<_> = scan.unknown.iter().map(|(pointer, _)| pointer).collect();
        assert_eq!(unknown, ["/list/1/x~1y"]);
    }
}
