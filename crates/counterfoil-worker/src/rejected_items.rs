//! Keeps the items of lists that a reply gave in a wrong form, or that stood in a reply which was not
//! accepted, until a later reply of the same conversation has them in a valid form. An agent that
//! leaves such an item out in its next reply does not make it disappear.

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
    /// The items that were valid themselves, of earlier replies that were not accepted.
    readable: Vec<Value>,
    /// Those of the last reply. At the end they are part of what can be read of it.
    last_readable: Vec<Value>,
    /// The last reply, if all of it was rejected.
    whole: Option<RejectedPart>,
}

impl RejectedItems {
    /// Takes note of the next reply: its own rejected items, and those of earlier replies that it
    /// does not have. If it tried to give a result of which not even a list can be read, all of it
    /// is one item. `salvage` has the lists of the contract whose items are read one by one.
    pub(crate) fn next_reply(&mut self, report: &Report, text: &str, salvage: &[String]) {
        let is_wrong = report.status == Status::Rejected
            && !report.codes().iter().any(|code| QUESTIONS.contains(code));
        let is_unreadable = is_wrong
            && matches!(report.stage, Some(Stage::Parse | Stage::Validation))
            && report.rejected_items.is_empty();
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
        self.readable.append(&mut self.last_readable);
        self.readable.retain(|item| {
            !valid.is_some_and(|value| mentions(value, item))
                && !rejected.iter().any(|other| mentions(&other.value, item))
        });
        self.readable.truncate(MAX_ITEMS);
        if let Some(partial) = report.partial.as_ref().filter(|_| is_wrong) {
            // A list inside of the items of another one has the items.
            let innermost = |pattern: &&String| {
                !salvage.iter().any(|other| other.starts_with(&format!("{pattern}/")))
            };
            let items = salvage.iter().filter(innermost).flat_map(|list| items_of(partial, list));
            self.last_readable = items.cloned().collect();
        }
    }

    /// The items that are left at the end.
    pub(crate) fn into_parts(self) -> Vec<RejectedPart> {
        let part = |item: RejectedItem| RejectedPart {
            reason: join_messages(&item.violations),
            text: shorten(&item.value.to_string()),
            at: item.pointer,
        };
        let dropped = |item: Value| RejectedPart {
            at: String::new(),
            reason: "it stood in a reply that was not accepted, and the result leaves it out"
                .to_owned(),
            text: shorten(&item.to_string()),
        };
        let readable = self.readable.into_iter().map(dropped);
        self.items.into_iter().map(part).chain(readable).chain(self.whole).collect()
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

/// The items of the lists that a pattern selects.
fn items_of<'v>(value: &'v Value, pattern: &str) -> Vec<&'v Value> {
    let mut found = vec![value];
    for token in pattern.split('/').skip(1).chain(["*"]) {
        let inner = |value: &'v Value| match value {
            Value::Array(items) if token == "*" => items.iter().collect(),
            Value::Object(fields) if token == "*" => fields.values().collect(),
            other => other.get(token).into_iter().collect::<Vec<&Value>>(),
        };
        found = found.into_iter().flat_map(inner).collect();
    }
    found
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

    fn report(status: Status, value: Option<Value>, partial: Option<Value>) -> Report {
        let contract = counterfoil_contract::Contract::from_yaml(
            "contract: acme/list\nversion: 1\nfields: { items: [{ id: string }] }\n",
        );
        let report = contract.unwrap().check("nothing");
        Report { status, value, partial, violations: Vec::new(), ..report }
    }

    #[test]
    fn a_valid_item_of_a_refused_reply_is_missed() {
        let items = |ids: &[&str]| {
            let ids: Vec<Value> = ids.iter().map(|id| json!({"id": id})).collect();
            json!({"items": ids})
        };
        let refused = || report(Status::Rejected, None, Some(items(&["F001", "F002"])));
        let left = |then: Report, list: &str| -> Vec<String> {
            let salvage = [list.to_owned()];
            let mut rejected = RejectedItems::default();
            rejected.next_reply(&refused(), "", &salvage);
            rejected.next_reply(&then, "", &salvage);
            rejected.into_parts().into_iter().map(|part| part.text).collect()
        };
        let accepted = |ids: &[&str]| report(Status::Accepted, Some(items(ids)), None);
        assert_eq!(left(accepted(&["F002"]), "/items"), [r#"{"id":"F001"}"#]);
        assert_eq!(left(accepted(&["F002", "F001"]), "/items"), [""; 0]);
        assert_eq!(left(accepted(&["F002"]), "/others"), [""; 0]);
        // What is left of the last reply is its partial result.
        assert_eq!(left(refused(), "/items"), [""; 0]);
    }

    #[test]
    fn an_item_without_any_text_is_not_kept() {
        assert!(mentions(&json!([]), &json!({"line": 3})));
    }
}
