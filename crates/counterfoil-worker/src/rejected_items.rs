//! Keeps the items of lists that a reply gave in a wrong form, until a later reply of the same
//! conversation has them in a valid form. An agent that leaves such an item out in its next reply
//! does not make it disappear.

use counterfoil_contract::report::RejectedItem;
use counterfoil_contract::{Code, Report, Stage, Status, Violation};
use counterfoil_flow::RejectedPart;
use serde_json::Value;

/// The maximum number of items that are kept.
const MAX_ITEMS: usize = 200;
/// The maximum length of an item's text.
const MAX_TEXT: usize = 4000;
/// Shorter texts are names and keywords, which also appear in other items.
const MIN_PROSE: usize = 10;

/// The codes of questions about a result that can be read.
const QUESTIONS: [Code; 4] =
    [Code::DifferingResults, Code::OnlyQuoted, Code::CopyOfEarlier, Code::ChannelsDiffer];

/// The items of a conversation that were rejected so far.
#[derive(Default)]
pub(crate) struct RejectedItems {
    items: Vec<RejectedItem>,
    /// The last reply, if all of it was rejected.
    whole: Option<RejectedPart>,
}

impl RejectedItems {
    /// Takes note of the next reply: its own rejected items, and those of earlier replies that it
    /// does not have. If it tried to give a result of which not even a list can be read, all of it
    /// is one item.
    pub(crate) fn next_reply(&mut self, report: &Report, text: &str) {
        let is_unreadable = report.status == Status::Rejected
            && matches!(report.stage, Some(Stage::Parse | Stage::Validation))
            && report.rejected_items.is_empty()
            && !report.codes().iter().any(|code| QUESTIONS.contains(code));
        self.whole = is_unreadable.then(|| RejectedPart {
            at: String::new(),
            reason: join_messages(&report.violations),
            text: shorten(text),
        });
        let valid = report.value.as_ref().or(report.partial.as_ref());
        let rejected = &report.rejected_items;
        self.items.retain(|item| {
            !valid.is_some_and(|value| mentions(value, &item.value))
                && !rejected.iter().any(|other| mentions(&other.value, &item.value))
        });
        self.items.extend(rejected.iter().filter(|item| !is_template(item)).cloned());
        self.items.truncate(MAX_ITEMS);
    }

    /// The items that are left at the end.
    pub(crate) fn into_parts(self) -> Vec<RejectedPart> {
        let part = |item: RejectedItem| RejectedPart {
            reason: join_messages(&item.violations),
            text: shorten(&item.value.to_string()),
            at: item.pointer,
        };
        self.items.into_iter().map(part).chain(self.whole).collect()
    }
}

/// Whether an item is a template that was not filled in: every value is a placeholder.
fn is_template(item: &RejectedItem) -> bool {
    let placeholders = item.violations.iter().filter(|one| one.code == Code::Placeholder).count();
    placeholders > 0 && placeholders >= count_scalars(&item.value)
}

fn count_scalars(value: &Value) -> usize {
    match value {
        Value::Null => 0,
        Value::Array(items) => items.iter().map(count_scalars).sum(),
        Value::Object(fields) => fields.values().map(count_scalars).sum(),
        _ => 1,
    }
}

fn join_messages(violations: &[Violation]) -> String {
    violations.iter().map(|one| one.message.as_str()).collect::<Vec<_>>().join("; ")
}

fn shorten(text: &str) -> String {
    if text.chars().count() <= MAX_TEXT {
        return text.to_owned();
    }
    text.chars().take(MAX_TEXT - 1).chain(['…']).collect()
}

/// Whether a value says the same as an item, or as each of those in it if it is a group of items.
fn mentions(value: &Value, item: &Value) -> bool {
    let mut all = Vec::new();
    collect_texts(value, "", &mut all);
    let mut leaves = Vec::new();
    collect_leaves(item, &mut leaves);
    leaves.into_iter().all(|leaf| mentions_one(&all, leaf))
}

/// Whether one of these texts is a sentence or the id of an item. An item with neither is
/// recognised by any of its texts.
fn mentions_one(all: &[(&str, &str)], item: &Value) -> bool {
    let mut texts = Vec::new();
    collect_texts(item, "", &mut texts);
    let is_name = |(key, text): &(&str, &str)| {
        *key == "id" || (text.chars().count() >= MIN_PROSE && text.contains(' '))
    };
    let named = texts.iter().any(is_name);
    texts.retain(|one| !named || is_name(one));
    texts.is_empty() || texts.iter().any(|one| all.contains(one))
}

/// The items of an item: those of its lists of objects, or itself if it has none.
fn collect_leaves<'v>(item: &'v Value, into: &mut Vec<&'v Value>) {
    let lists = item.as_object().into_iter().flat_map(|fields| fields.values());
    let inner: Vec<&Value> =
        lists.filter_map(Value::as_array).flatten().filter(|one| one.is_object()).collect();
    if inner.is_empty() {
        into.push(item);
    }
    for one in inner {
        collect_leaves(one, into);
    }
}

/// The texts of a value, each with the key that it stands under.
fn collect_texts<'v>(value: &'v Value, key: &'v str, into: &mut Vec<(&'v str, &'v str)>) {
    match value {
        Value::String(text) => into.push((key, text)),
        Value::Array(items) => items.iter().for_each(|item| collect_texts(item, key, into)),
        Value::Object(fields) => {
            fields.iter().for_each(|(key, value)| collect_texts(value, key, into));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_sentence_or_an_id_is_recognised() {
        let item =
            json!({"id": "F001", "issue": "the key ignores the tenant", "file": "src/cache.py"});
        let same = |value: Value| mentions(&json!({"groups": [{"findings": [value]}]}), &item);
        assert!(same(json!({"id": "F007", "issue": "the key ignores the tenant"})));
        assert!(same(json!({"id": "F001", "issue": "the tenant is not in the key"})));
        assert!(!same(
            json!({"id": "F002", "issue": "another one entirely", "file": "src/cache.py"})
        ));
    }

    #[test]
    fn an_item_without_sentence_and_id_is_recognised_by_what_it_has() {
        let item = json!({"file": "src/cache.py", "message": "Unclear"});
        assert!(mentions(
            &json!([{"file": "src/cache.py", "message": "The name is unclear"}]),
            &item
        ));
        assert!(!mentions(
            &json!([{"file": "src/pool.py", "message": "The name is unclear"}]),
            &item
        ));
    }

    #[test]
    fn a_group_is_recognised_by_all_of_its_items() {
        let group = json!({"findings": [{"id": "F001"}, {"id": "F002"}]});
        assert!(mentions(&json!([{"id": "F001"}, {"id": "F002"}]), &group));
        assert!(!mentions(&json!([{"id": "F001"}]), &group));
    }

    #[test]
    fn an_item_without_any_text_is_not_kept() {
        assert!(mentions(&json!([]), &json!({"line": 3})));
    }
}
