//! Keeps the items of lists that a reply gave in a wrong form, or that stood in a reply which was not
//! accepted, until a later reply of the same conversation has them in a valid form. An agent that
//! leaves such an item out in its next reply does not make it disappear.

use crate::same_item::ItemIndex;
use counterfoil_contract::report::{RejectedItem, SalvagedItems};
use counterfoil_contract::{Code, Report, Stage, Status, Violation};
use counterfoil_flow::RejectedPart;
use serde_json::Value;

/// The maximum number of items that are kept.
const MAX_ITEMS: usize = 200;
/// The maximum length of an item's text.
const MAX_TEXT: usize = 4000;

/// The codes of questions about a result that can be read.
const QUESTIONS: [Code; 5] = [
    Code::DifferingResults,
    Code::OnlyQuoted,
    Code::CopyOfEarlier,
    Code::ChannelsDiffer,
    Code::ProblemLeftOut,
];

/// The items of a conversation that were rejected so far.
#[derive(Default)]
pub(crate) struct RejectedItems {
    items: Vec<RejectedItem>,
    /// The items that were valid themselves, of earlier replies that were not accepted.
    readable: Vec<Value>,
    /// Those of the last reply. At the end they are part of what can be read of it.
    last_readable: Vec<Value>,
    /// The items of the other attempts in the last reply, which are no part of its result.
    last_attempts: SalvagedItems,
    /// The last reply, if all of it was rejected.
    whole: Option<RejectedPart>,
}

impl RejectedItems {
    /// Takes note of the next reply: its own rejected items, and those of earlier replies that it
    /// does not have. If it tried to give a result of which not even a list can be read, all of it
    /// is one item. `result` has the items of the report, `attempts` those of every attempt of the
    /// reply that was not accepted.
    pub(crate) fn next_reply(
        &mut self,
        report: &Report,
        result: SalvagedItems,
        attempts: SalvagedItems,
        text: &str,
    ) {
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
        let mut known = ItemIndex::default();
        let in_result = valid.into_iter().chain(result.rejected.iter().map(|item| &item.value));
        in_result.for_each(|value| known.add(value));
        let valid = last_of_each(attempts.valid, |item| item, |item| known.take(item));
        let rejected =
            last_of_each(attempts.rejected, |item| &item.value, |item| known.take_rejected(item));
        let in_attempts = valid.iter().chain(rejected.iter().map(|item| &item.value));
        in_attempts.for_each(|value| known.add(value));
        let before = std::mem::take(&mut self.last_attempts);
        self.items.extend(before.rejected);
        self.items.retain(|item| !known.take_rejected(item) && !is_template(item));
        self.items.extend(result.rejected.iter().filter(|item| !is_template(item)).cloned());
        self.items.truncate(MAX_ITEMS);
        self.readable.append(&mut self.last_readable);
        self.readable.extend(before.valid);
        self.readable.retain(|item| !known.take(item));
        self.readable.truncate(MAX_ITEMS);
        if is_wrong {
            self.last_readable = result.valid;
        }
        self.last_attempts = SalvagedItems { valid, rejected, results: Vec::new() };
    }

    /// The items that are left at the end.
    pub(crate) fn into_parts(mut self) -> Vec<RejectedPart> {
        // The whole reply has the items of its attempts.
        if self.whole.is_none() {
            let last = self.last_attempts;
            self.items.extend(last.rejected.into_iter().filter(|item| !is_template(item)));
            self.readable.extend(last.valid);
        }
        let part = |item: RejectedItem| RejectedPart {
            reason: join_messages(&item.violations),
            text: shorten(&item.value.to_string()),
            at: item.pointer,
        };
        let dropped = |item: Value| RejectedPart {
            at: String::new(),
            reason: "it stands in an attempt that was not accepted, and not in the result"
                .to_owned(),
            text: shorten(&item.to_string()),
        };
        let readable = self.readable.into_iter().take(MAX_ITEMS).map(dropped);
        let items = self.items.into_iter().take(MAX_ITEMS).map(part);
        items.chain(readable).chain(self.whole).collect()
    }
}

/// The items that the result does not have. Of several that say the same, the last is kept.
fn last_of_each<T>(
    items: Vec<T>,
    value: impl Fn(&T) -> &Value,
    mut is_in_result: impl FnMut(&T) -> bool,
) -> Vec<T> {
    let mut kept: Vec<T> = Vec::new();
    let mut later = ItemIndex::default();
    for item in items.into_iter().rev() {
        if !later.take(value(&item)) && !is_in_result(&item) {
            later.add(value(&item));
            kept.push(item);
        }
    }
    kept.reverse();
    kept.truncate(MAX_ITEMS);
    kept
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

#[cfg(test)]
mod tests {
    use super::*;
    use counterfoil_agents::result_selection::{ResultCandidates, ResultSelector, SelectedResult};
    use counterfoil_agents::submissions::Submission;
    use counterfoil_contract::Contract;
    use serde_json::json;

    /// A contract for a list of items, in a fence; two results that differ are asked about.
    fn contract() -> Contract {
        Contract::from_yaml(
            "contract: acme/list\nversion: 1\nframing: fenced-json\n\
             fields: { items: [{ id: string, level: low | high }], read: string }\n\
             policy: { salvage: [/items], several: ask }\n",
        )
        .unwrap()
    }

    fn result(ids: &[&str]) -> String {
        let items: Vec<Value> = ids.iter().map(|id| json!({"id": id, "level": "low"})).collect();
        json!({"items": items, "read": "all"}).to_string()
    }

    fn fenced(result: &str) -> String {
        format!("```json\n{result}\n```\n")
    }

    /// The texts of the items that are left after these replies.
    fn left(replies: &[&str]) -> Vec<String> {
        let contract = contract();
        let mut selector = ResultSelector::new(&contract, &[], "", &[]);
        let mut rejected = RejectedItems::default();
        for text in replies {
            let offered = ResultCandidates { text: text.as_bytes(), ..Default::default() };
            let SelectedResult { report, items, .. } = selector.select(offered);
            rejected.next_reply(&report, contract.salvage_report(&report), items, text);
        }
        rejected.into_parts().into_iter().map(|part| part.text).collect()
    }

    #[test]
    fn a_valid_item_of_a_refused_reply_is_missed() {
        let (first, second) =
            (json!({"id": "F001", "level": "low"}), json!({"id": "F002", "level": "low"}));
        let malformed = json!({"id": "F003", "level": "medium"});
        let give = |items: &[&Value]| json!({"items": items, "read": "all"}).to_string();
        let cut = |text: &str, at: &str| text[..text.find(at).unwrap()].to_owned();
        let both = result(&["F001", "F002"]);
        let end = |count| both.match_indices('}').nth(count).unwrap().0 + 1;
        let cases: &[(&str, String, &[&Value])] = &[
            ("invalid", fenced(&give(&[&first, &second, &malformed])), &[&malformed, &first]),
            ("without a field", fenced(&json!({"items": [first, second]}).to_string()), &[&first]),
            ("not in a fence", both.clone(), &[&first]),
            (
                "two of them, not in a fence",
                format!("{}\n\n{}", give(&[&first]), give(&[])),
                &[&first],
            ),
            ("cut off after its items", format!("```json\n{}", &both[..end(1)]), &[&first]),
            ("cut off in the second item", format!("```json\n{}", cut(&both, "F002")), &[&first]),
            (
                "cut off at the end of an item",
                format!("```json\n{}", cut(&result(&["F001"]), "}]")),
                &[&first],
            ),
            ("cut off in the first item", format!("```json\n{}", cut(&both, "F001")), &[]),
            (
                "cut off, with a malformed item",
                fenced(&cut(&give(&[&malformed, &second]), ",\"read")),
                &[&malformed],
            ),
            (
                "broken in the first item",
                fenced(&both.replace("\"F001\",", "\"F001\" ")),
                &[&first],
            ),
            ("broken after the first item", fenced(&both.replace("},{", "} and {")), &[&first]),
            ("two results", format!("{}or\n{}", fenced(&both), fenced(&give(&[]))), &[&first]),
            (
                "a draft before an invalid result",
                format!("{}or\n{}", fenced(&both), fenced("{\"items\": []}")),
                &[&first],
            ),
            ("in a thought", format!("<think>{both}</think>\nwait"), &[]),
            ("something else", "```json\n{\"id\": \"F001\"}\n```\n".to_owned(), &[]),
        ];
        let then = |ids: &[&str]| fenced(&result(ids));
        for (name, text, missed) in cases {
            let missed: Vec<String> = missed.iter().map(ToString::to_string).collect();
            assert_eq!(left(&[text, &then(&["F002"])]), missed, "{name}");
            assert_eq!(left(&[text, &then(&["F001", "F002", "F003"])]), [""; 0], "{name}");
            // It is missed once, however often it was sent.
            assert_eq!(left(&[text, text, "Sorry.", &then(&["F002"])]), missed, "{name}");
        }
    }

    #[test]
    fn what_is_left_of_the_last_reply_is_its_partial_result() {
        let malformed = json!({"id": "F003", "level": "medium"});
        let items = json!([{"id": "F001", "level": "low"}, malformed]);
        let text = fenced(&json!({"items": items, "read": "all"}).to_string());
        assert_eq!(left(&[&text, &text]), [malformed.to_string()]);
    }

    #[test]
    fn an_item_of_a_refused_submission_is_missed_in_the_next_one() {
        let contract = contract();
        let submitted = |items: Value| {
            let value = json!({"items": items, "read": "all"});
            Submission::now(value.clone(), &contract.check_value(&value))
        };
        let malformed = json!({"id": "F003", "level": "medium"});
        let refused = submitted(json!([{"id": "F001", "level": "low"}, malformed]));
        let left = |last: Submission| {
            let submissions = [refused.clone(), last];
            let mut selector = ResultSelector::new(&contract, &[], "", &[]);
            let offered = ResultCandidates { submissions: &submissions, ..Default::default() };
            let SelectedResult { report, items, .. } = selector.select(offered);
            let mut rejected = RejectedItems::default();
            rejected.next_reply(&report, contract.salvage_report(&report), items, "");
            rejected.into_parts().len()
        };
        assert_eq!(left(submitted(json!([]))), 2);
        assert_eq!(left(submitted(json!([{"id": "F003", "level": "high"}]))), 1);
        let both = json!([{"id": "F001", "level": "low"}, {"id": "F003", "level": "high"}]);
        assert_eq!(left(submitted(both)), 0);
    }

    #[test]
    fn an_item_of_the_last_reply_that_is_no_part_of_its_result_is_kept() {
        let item = json!({"id": "F001", "level": "low"}).to_string();
        let unfenced = result(&["F001"]);
        assert_eq!(left(&[&unfenced]), [item]);
        assert_eq!(left(&[&unfenced, &fenced(&unfenced)]), [""; 0]);
        // All of a reply that cannot be parsed is kept as it is.
        let cut = format!("```json\n{}\n```\n", &unfenced[..unfenced.len() - 1]);
        assert_eq!(left(&[&cut]), [cut.as_str()]);
    }
}
