//! The paths that a contract's rules and policy name: whether the schema has them, and which ones
//! were probably meant.

use super::{Origin, path_exists};
use crate::code::Code;
use crate::definition::Definition;
use crate::expr::Type;
use crate::policy::Coerce;
use crate::problem::Problem;
use crate::suggest::nearest;
use crate::text::article;

/// Types are known this many levels deep, so no longer path is suggested.
const MAX_TOKENS: usize = 64;

/// The type at a JSON pointer, in which `*` stands for the items of a list or a map; `None` if the
/// schema has no such path.
pub(super) fn type_at(pointer: &str, root: &Type) -> Option<Type> {
    if pointer.is_empty() {
        return Some(root.clone());
    }
    root.at(pointer.strip_prefix('/')?.split('/'))
}

/// The type of what a pointer pattern selects. It selects all items of a list, never one of them.
pub(super) fn selected(pattern: &str, root: &Type) -> Option<Type> {
    let found = type_at(pattern, root)?;
    let mut ty = root.clone();
    for token in pattern.split('/').skip(1) {
        if is_list(&ty) && token != "*" {
            return None;
        }
        ty = ty.at([token])?;
    }
    Some(found)
}

/// Whether a value is a list, unless it is null.
fn is_list(ty: &Type) -> bool {
    ty.items().is_some()
        && ty.alternatives().iter().all(|one| matches!(one, Type::List(_) | Type::Null))
}

/// A hint that names the path that was probably meant; if there is none, the other hint.
pub(super) fn hint(pattern: &str, root: &Type, otherwise: &str) -> String {
    meant(pattern, root)
        .map_or_else(|| otherwise.to_owned(), |path| format!("did you mean '{path}'?"))
}

/// The path of the schema that a pattern resembles: with misspelt names, without `*` for the items,
/// or in another notation, such as `findings[*].file`.
fn meant(pattern: &str, root: &Type) -> Option<String> {
    let mut plain = pattern.replace("[*]", "/*").replace("[]", "/*");
    if !pattern.starts_with('/') {
        plain = plain.replace('.', "/");
    }
    let tokens: Vec<&str> = plain.split('/').filter(|token| !token.is_empty()).collect();
    if tokens.len() > MAX_TOKENS {
        return None;
    }
    let mut ty = root.clone();
    let mut path = String::new();
    for token in tokens {
        if is_list(&ty) && token != "*" {
            ty = ty.at(["*"])?;
            path.push_str("/*");
            if token.parse::<usize>().is_ok() {
                continue;
            }
        }
        let (name, inner) = child(&ty, token)?;
        path.push('/');
        path.push_str(&name);
        ty = inner;
    }
    (path != pattern && !path.is_empty()).then_some(path)
}

/// The field of a type that a name means, and its type.
fn child(ty: &Type, name: &str) -> Option<(String, Type)> {
    if let Some(inner) = ty.at([name]) {
        return Some((name.to_owned(), inner));
    }
    let object = ty.object()?;
    let near = nearest(name, object.fields.keys().map(String::as_str))?;
    let field = object.fields.get(near)?;
    Some((near.to_owned(), field.ty.clone()))
}

/// Checks that the paths of a policy exist in the schema.
pub(super) fn check_policy(
    definition: &Definition,
    root: &Type,
    origin: Origin,
    problems: &mut Vec<Problem>,
) {
    let selected = |path: &str| match origin {
        Origin::Author => selected(path, root),
        Origin::Store => path_exists(path, root).then_some(Type::Any),
    };
    let mut refuse = |place: &str, message: String, hint: String| {
        problems.push(Problem::new(Code::BadPolicy, place, message, hint));
    };
    for (index, rename) in definition.policy.rename.iter().enumerate() {
        let field = format!("{}/{}", rename.at, rename.to);
        if selected(&field).is_none() {
            refuse(
                &format!("policy.rename[{index}]"),
                format!("'{field}' is not a path in the schema"),
                hint(&field, root, "at: is a pointer pattern, to: a field of the objects there"),
            );
        }
    }
    for path in &definition.policy.salvage {
        match selected(path) {
            Some(ty) if has_items(&ty) => {}
            Some(ty) => refuse(
                "policy.salvage",
                format!("'{path}' has no items: it is {}", article(&ty.to_string())),
                "name a list or an object; \"\" names the result itself".to_owned(),
            ),
            None => refuse(
                "policy.salvage",
                format!("'{path}' is not a path in the schema"),
                hint(path, root, "write a JSON pointer, with * for the items of a list"),
            ),
        }
    }
    let Coerce::Fields(fields) = &definition.policy.coerce else { return };
    let is_field = |path: &str| match origin {
        Origin::Author => type_at(path, root).is_some(),
        Origin::Store => path_exists(path, root),
    };
    for path in fields.iter().filter(|path| !is_field(path)) {
        refuse(
            "policy.coerce",
            format!("'{path}' is not a path in the schema"),
            hint(path, root, "write a JSON pointer, with * for the items of a list"),
        );
    }
}

/// Whether a value can have items of which some are valid and others are not.
fn has_items(ty: &Type) -> bool {
    ty.alternatives()
        .iter()
        .any(|one| matches!(one, Type::Any | Type::List(_) | Type::Object(_) | Type::Map(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn root() -> Type {
        let finding = json!({"type": "object", "properties": {
            "file": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}}}});
        Type::from_schema(&json!({"type": "object", "properties": {
            "summary": {"type": "string"},
            "findings": {"type": "array", "items": finding},
            "more": {"type": ["array", "null"], "items": finding},
            "meta": {"type": "object", "properties": {"run": {"type": "string"}}},
            "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
        }}))
    }

    #[test]
    fn a_pattern_selects_all_items_and_begins_with_a_slash() {
        for pattern in ["", "/findings", "/findings/*", "/findings/*/file", "/more/*/tags/*"] {
            assert!(selected(pattern, &root()).is_some(), "{pattern}");
        }
        for pattern in ["/meta/run", "/counts/*", "/counts/7"] {
            assert!(selected(pattern, &root()).is_some(), "{pattern}");
        }
        for pattern in ["findings", "/", "/finding", "/findings/0", "/findings/0/file", "/more/1"] {
            assert!(selected(pattern, &root()).is_none(), "{pattern}");
        }
        assert!(type_at("/findings/0/file", &root()).is_some());
    }

    #[test]
    fn the_path_that_was_meant_is_named() {
        for (pattern, meant_path) in [
            ("/finding", Some("/findings")),
            ("/finding/*", Some("/findings/*")),
            ("findings", Some("/findings")),
            ("findings[*]", Some("/findings/*")),
            ("findings[].file", Some("/findings/*/file")),
            ("findings.*.fiel", Some("/findings/*/file")),
            ("/findings/file", Some("/findings/*/file")),
            ("/findings/0/file", Some("/findings/*/file")),
            ("/more/tags", Some("/more/*/tags")),
            ("meta.run", Some("/meta/run")),
            ("/nowhere", None),
            ("/summary/text", None),
            ("", None),
            ("/", None),
        ] {
            assert_eq!(meant(pattern, &root()).as_deref(), meant_path, "{pattern}");
        }
        assert_eq!(meant(&"/a".repeat(100_000), &root()), None);
    }
}
