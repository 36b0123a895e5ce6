//! Examples with a text that stands for a real one: that of a scaffold, or a word in place of a value.
//! Agents are shown the examples, and are not to take such a text for a good one.

use crate::code::Code;
use crate::expr::Type;
use crate::problem::Problem;
use crate::text::truncate;
use serde_json::Value;

/// How a text of an example begins that is to be replaced. A scaffold has one.
const MARK: &str = "EXAMPLE:";
/// Words in place of a value, in any case.
const WORDS: [&str; 9] =
    ["string", "integer", "boolean", "todo", "tbd", "fixme", "placeholder", "lorem ipsum", "xxx"];
/// The most characters of a text that a message quotes.
const MAX_QUOTED: usize = 40;
/// Deeper values are not examined.
const MAX_DEPTH: usize = 64;

/// A warning for each example with such a text, at the first one.
pub(super) fn placeholders(examples: &[Value], ty: &Type, limit: usize) -> Vec<Problem> {
    let found = examples.iter().enumerate().filter_map(|(at, example)| {
        let (path, text) = first_in(example, &[ty], MAX_DEPTH)?;
        Some(Problem::new(
            Code::PlaceholderExample,
            &format!("examples[{at}]{path}"),
            format!(
                "'{}' stands for a real text, and agents are shown it",
                truncate(text, MAX_QUOTED)
            ),
            "write what a good answer could have here",
        ))
    });
    found.take(limit).collect()
}

/// The first such text in a value that has one of these types, with its path.
fn first_in<'v>(value: &'v Value, types: &[&Type], depth: usize) -> Option<(String, &'v str)> {
    let depth = depth.checked_sub(1)?;
    match value {
        Value::String(text) => {
            (is_free_text(types) && is_placeholder(text)).then(|| (String::new(), text.as_str()))
        }
        Value::Array(items) => {
            let types = inside(types, None);
            items.iter().enumerate().find_map(|(at, item)| {
                let (path, text) = first_in(item, &types, depth)?;
                Some((format!("[{at}]{path}"), text))
            })
        }
        Value::Object(fields) => fields.iter().find_map(|(name, value)| {
            let (path, text) = first_in(value, &inside(types, Some(name.as_str())), depth)?;
            Some((format!(".{name}{path}"), text))
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// The types of the items of a list, or of a field of an object.
fn inside<'t>(types: &[&'t Type], field: Option<&str>) -> Vec<&'t Type> {
    let alternatives = types.iter().flat_map(|ty| ty.alternatives());
    alternatives
        .filter_map(|ty| match (ty, field) {
            (Type::List(item), None) => Some(&**item),
            (Type::Map(value), Some(_)) => Some(&**value),
            (Type::Object(object), Some(name)) => object.fields.get(name).map(|field| &field.ty),
            _ => None,
        })
        .collect()
}

/// Whether a text can be any. Where words are listed, each of them is a value.
fn is_free_text(types: &[&Type]) -> bool {
    let is = |wanted: fn(&Type) -> bool| types.iter().flat_map(|ty| ty.alternatives()).any(wanted);
    is(|ty| matches!(ty, Type::String(None))) && !is(|ty| matches!(ty, Type::String(Some(_))))
}

fn is_placeholder(text: &str) -> bool {
    let text = text.trim();
    let begins_so = text.starts_with(MARK) || text.starts_with("TODO:");
    begins_so || WORDS.iter().any(|word| word.eq_ignore_ascii_case(text))
}

#[cfg(test)]
mod tests {
    use crate::contract::Contract;

    fn places(fields: &str, examples: &str) -> Vec<String> {
        let text = format!("contract: a/b\nversion: 1\nfields: {fields}\nexamples: {examples}\n");
        let problems = Contract::from_yaml(&text).unwrap().lint();
        problems.into_iter().map(|problem| problem.place).collect()
    }

    #[test]
    fn a_text_that_stands_for_another_is_found_once_for_each_example() {
        let fields = "{ kind: todo | done, notes: [{ at: string, note?: string }] }";
        let example = |at: &str, note: &str| {
            format!("{{ kind: todo, notes: [{{ at: a.rs }}, {{ at: '{at}', note: '{note}' }}] }}")
        };
        for (at, note, place) in [
            ("b.rs", "It is never released.", None),
            ("b.rs", "EXAMPLE: It is never released.", Some("examples[0].notes[1].note")),
            ("string", " ToDo ", Some("examples[0].notes[1].at")),
            ("b.rs", "TODO: word it", Some("examples[0].notes[1].note")),
            ("b.rs", "the string that is left", None),
        ] {
            let found = places(fields, &format!("[{}]", example(at, note)));
            assert_eq!(found, place.into_iter().collect::<Vec<_>>(), "{at} {note}");
        }
        let both = format!("[{}, {}]", example("b.rs", "tbd"), example("b.rs", "xxx"));
        assert_eq!(
            places(fields, &both),
            ["examples[0].notes[1].note", "examples[1].notes[1].note"]
        );
    }
}
