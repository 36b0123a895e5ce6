//! Finds the items of a list in another result, where an agent may have numbered, formatted or
//! worded them in another way.

use counterfoil_contract::report::RejectedItem;
use serde_json::Value;
use std::collections::HashMap;

/// Shorter texts are names and keywords, which also stand in other items.
const MIN_PROSE: usize = 10;
/// The same for texts in scripts without blanks between words.
const MIN_DENSE_PROSE: usize = 4;
/// How many pairs of items are compared. Beyond that an item has to be worded alike.
const MAX_COMPARED: usize = 100_000;

/// The items of a result. Each of them stands for one item of earlier replies.
#[derive(Default)]
pub(crate) struct ItemIndex {
    items: Vec<Item>,
    /// The item that each one stands for, if it does.
    stands_for: HashMap<usize, Item>,
    by_text: HashMap<String, Vec<usize>>,
    compared: usize,
}

/// The texts of one object, or of one text of a list.
#[derive(Clone)]
struct Item {
    texts: Vec<Text>,
}

#[derive(Clone)]
struct Text {
    key: String,
    /// Without case, blanks and punctuation.
    plain: String,
    is_prose: bool,
    is_number: bool,
}

impl ItemIndex {
    /// Adds all items in a value.
    pub(crate) fn add(&mut self, value: &Value) {
        let from = self.items.len();
        collect_items(value, "", &mut self.items);
        for (at, item) in self.items.iter().enumerate().skip(from) {
            if let Some(text) = item.main_text() {
                self.by_text.entry(text.plain.clone()).or_default().push(at);
            }
        }
    }

    /// Whether the result has this item, or each of those in it if it is a group of items. What was
    /// found stands for no item that says something else.
    pub(crate) fn take(&mut self, item: &Value) -> bool {
        let mut parts = Vec::new();
        collect_items(item, "", &mut parts);
        let count = parts.len();
        parts.retain(|part| {
            let is_known = part.main_text().is_some() || part.text("id").is_some();
            is_known || (count == 1 && part.texts.iter().any(|text| !text.is_number))
        });
        let found: Option<Vec<usize>> = parts.iter().map(|part| self.find(part)).collect();
        let Some(found) = found else { return false };
        self.stands_for.extend(found.into_iter().zip(parts));
        true
    }

    /// Whether the result has this item, in which something is wrong and may have changed.
    pub(crate) fn take_rejected(&mut self, item: &RejectedItem) -> bool {
        let mut value = item.value.clone();
        let wrong = item.violations.iter();
        let wrong =
            wrong.filter_map(|one| one.pointer.strip_prefix(&item.pointer)?.rsplit_once('/'));
        for (around, name) in wrong {
            if let Some(Value::Object(members)) = value.pointer_mut(around) {
                members.shift_remove(name);
            }
        }
        self.take(&value)
    }

    fn find(&mut self, item: &Item) -> Option<usize> {
        let is_free = |at: usize| self.stands_for.get(&at).is_none_or(|other| item.is_same(other));
        let main = item.main_text();
        let alike = main.and_then(|text| self.by_text.get(&text.plain)).into_iter().flatten();
        let all = alike.copied().chain(0..self.items.len());
        let mut compared = 0;
        let found = all
            .take(MAX_COMPARED.saturating_sub(self.compared))
            .inspect(|_| compared += 1)
            .find(|at| item.is_same(&self.items[*at]) && is_free(*at));
        self.compared += compared;
        found
    }
}

impl Item {
    /// The longest prose.
    fn main_text(&self) -> Option<&Text> {
        self.texts.iter().filter(|text| text.is_prose).max_by_key(|text| text.plain.len())
    }

    fn text(&self, key: &str) -> Option<&Text> {
        self.texts.iter().find(|text| text.key == key)
    }

    /// Whether another item says the same: all its words do; or it has the same id and nothing that
    /// differs but its words; or, without words and id, at least half of its texts are the same.
    fn is_same(&self, other: &Item) -> bool {
        let pairs = self.texts.iter().filter_map(|ours| Some((ours, other.text(&ours.key)?)));
        let (alike, differ): (Vec<_>, Vec<_>) =
            pairs.partition(|(ours, theirs)| ours.is_alike(theirs));
        let is_prose = |(ours, theirs): &(&Text, &Text)| ours.is_prose || theirs.is_prose;
        let same_words = match self.main_text() {
            Some(_) if alike.iter().chain(&differ).any(is_prose) => !differ.iter().any(is_prose),
            // It may be in a list of texts now.
            Some(main) => other.texts.iter().any(|theirs| main.is_alike(theirs)),
            None => self.text("id").is_none() && !alike.is_empty() && alike.len() >= differ.len(),
        };
        let same_id = alike.iter().any(|(ours, _)| ours.key == "id");
        same_words || (same_id && differ.iter().all(|(ours, _)| ours.is_prose))
    }
}

impl Text {
    /// Whether both say the same. Of two sentences one may be a part of the other.
    fn is_alike(&self, other: &Text) -> bool {
        let is_prose = self.is_prose && other.is_prose;
        let has = |whole: &Text, part: &Text| is_prose && whole.plain.contains(&part.plain);
        self.plain == other.plain || has(self, other) || has(other, self)
    }
}

/// The items in a value: its objects, and the texts of its lists. An object with a list of objects is
/// a group, and what it says of them is not an item.
fn collect_items(value: &Value, key: &str, into: &mut Vec<Item>) {
    match value {
        Value::String(text) => into.push(Item { texts: vec![Text::new(key, text)] }),
        Value::Array(items) => items.iter().for_each(|item| collect_items(item, key, into)),
        Value::Object(members) => {
            let is_group =
                members.values().filter_map(Value::as_array).flatten().any(Value::is_object);
            let texts = members.iter().filter_map(|(key, value)| Text::of_scalar(key, value));
            let texts: Vec<Text> = texts.collect();
            if !texts.is_empty() && !is_group {
                into.push(Item { texts });
            }
            for (key, value) in members.iter().filter(|(_, value)| !value.is_string()) {
                collect_items(value, key, into);
            }
        }
        _ => {}
    }
}

impl Text {
    fn new(key: &str, text: &str) -> Self {
        let plain: String = text.chars().filter(|one| one.is_alphanumeric()).collect();
        let plain = plain.to_lowercase();
        let is_dense = plain.chars().filter(|one| !one.is_ascii()).count() >= MIN_DENSE_PROSE;
        let is_prose = is_dense || (text.chars().count() >= MIN_PROSE && text.trim().contains(' '));
        Self { key: key.to_owned(), plain, is_prose, is_number: false }
    }

    fn of_scalar(key: &str, value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Some(Self::new(key, text)),
            Value::Number(number) => {
                Some(Self { is_number: true, ..Self::new(key, &number.to_string()) })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn has(result: &Value, item: &Value) -> bool {
        let mut index = ItemIndex::default();
        index.add(result);
        index.take(item)
    }

    fn among(findings: &[Value], item: &Value) -> bool {
        has(&json!({"groups": [{"description": "belongs together", "findings": findings}]}), item)
    }

    #[test]
    fn an_item_is_recognised_by_its_words_or_by_its_id_and_all_that_is_not_words() {
        let item = json!({
            "id": "F001", "severity": "critical", "file": "src/cache.py", "line": 3,
            "issue": "The key ignores the tenant", "fix_hint": "Add a test for it"
        });
        let but = |changes: Value| {
            let mut other = item.clone();
            for (key, value) in changes.as_object().unwrap() {
                other[key] = value.clone();
            }
            other
        };
        for (name, other, same) in [
            ("another number", but(json!({"id": "F007"})), true),
            (
                "a dot and another case",
                but(json!({"id": "F007", "issue": "the key ignores the tenant."})),
                true,
            ),
            (
                "a longer text",
                but(json!({"id": "F7", "issue": "Here the key ignores the tenant, so users mix"})),
                true,
            ),
            ("other words", but(json!({"issue": "No tenant in the key"})), true),
            (
                "another finding with its number",
                but(json!({"issue": "A bad name", "severity": "minor"})),
                false,
            ),
            (
                "another file with its number",
                but(json!({"issue": "No tenant", "file": "src/pool.py"})),
                false,
            ),
            (
                "the same hint",
                but(json!({"id": "F002", "issue": "The pool ignores the tenant"})),
                false,
            ),
        ] {
            assert_eq!(among(&[other], &item), same, "{name}");
        }
    }

    #[test]
    fn a_name_in_its_words_is_no_item() {
        let item =
            json!({"id": "F001", "file": "src/lib.rs", "issue": "It is wrong in src/lib.rs"});
        assert!(!has(&json!({"groups": [], "files_reviewed": ["src/lib.rs"]}), &item));
    }

    #[test]
    fn words_need_no_blanks() {
        let item = json!({"file": "src/a.py", "severity": "critical", "message": "用户输入会到达求值函数"});
        let other =
            json!({"file": "src/a.py", "severity": "critical", "message": "变量的名字太短了"});
        assert!(among(std::slice::from_ref(&item), &item));
        assert!(!among(&[other], &item));
    }

    #[test]
    fn an_item_without_words_and_id_is_recognised_by_what_it_has() {
        let item = json!({"file": "src/cache.py", "message": "Unclear"});
        let in_file = |file: &str| json!([{"file": file, "message": "The name is unclear"}]);
        assert!(has(&in_file("src/cache.py"), &item));
        assert!(!has(&in_file("src/pool.py"), &item));
    }

    #[test]
    fn a_group_is_recognised_by_all_of_its_items() {
        let group = json!({"findings": [{"id": "F001"}, {"id": "F002"}]});
        assert!(has(&json!([{"id": "F001"}, {"id": "F002"}]), &group));
        assert!(!has(&json!([{"id": "F001"}]), &group));
    }

    #[test]
    fn each_item_stands_for_one() {
        let mut index = ItemIndex::default();
        index.add(&json!([{"id": "F001", "issue": "The lock leaks here"}]));
        let item = |id: &str, issue: &str| json!({"id": id, "issue": issue});
        assert!(index.take(&item("F007", "The lock leaks here.")));
        assert!(index.take(&item("F007", "The lock leaks here.")), "however often it was said");
        assert!(!index.take(&item("F001", "Input reaches eval")), "another one has its number");
    }

    #[test]
    fn an_item_without_any_text_is_not_missed() {
        assert!(has(&json!([]), &json!({"line": 3})));
    }

    #[test]
    fn an_item_that_is_cut_off_is_a_part_of_the_whole_one() {
        let whole = json!({"id": "F001", "issue": "The key ignores the tenant"});
        assert!(has(&json!([whole]), &json!({"id": "F001", "issue": "The key ig"})));
    }
}
