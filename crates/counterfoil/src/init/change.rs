//! Edits of configuration files, recorded so that they can be undone. No I/O.
//!
//! An edit only inserts text, so undoing it restores the file byte for byte. If the file was edited
//! since, undoing removes the added entries and keeps everything else.

use super::json::JsonEntry;
use super::{json, toml};
use crate::digest;
use counterfoil_agents::adapters::Server;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json as literal};

/// Everything that `counterfoil init` added to a project, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct InitRecord {
    /// The changes, one for each file and each call of init.
    pub(crate) changes: Vec<FileChange>,
}

/// The recorded edit of one file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct FileChange {
    /// The path of the file relative to the project.
    pub(crate) file: String,
    /// The digest of the file before the edit, or none if the file did not exist.
    pub(crate) before: Option<String>,
    /// The digest of the file after the edit.
    pub(crate) after: String,
    /// Whether the folder of the file was created with it.
    #[serde(default, rename = "folder")]
    pub(crate) created_folder: bool,
    /// The inserted texts, in the order of insertion.
    insertions: Vec<Insertion>,
    /// The entries that the texts contain, for a file that was edited since.
    entries: Vec<AddedEntry>,
}

/// A text that was inserted at a byte offset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Insertion {
    at: usize,
    text: String,
}

/// An entry that init added to a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum AddedEntry {
    /// A member of a JSON object, or an item of a list. The first `existing` keys of the path were
    /// there before; the others were created.
    Json {
        path: Vec<String>,
        value: Value,
        #[serde(rename = "item")]
        is_item: bool,
        #[serde(rename = "made")]
        existing: usize,
    },
    /// A value in a TOML table. The first `existing` tables of the path were there before; the
    /// others were created.
    Toml {
        path: Vec<String>,
        value: Value,
        #[serde(rename = "made")]
        existing: usize,
    },
    /// Comment lines in a TOML file.
    Lines(String),
}

/// The result of undoing a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UndoResult {
    /// The change is not in the file: it was never made, or it was removed since.
    NotPresent,
    /// The file is as it was before the change; none means that it did not exist.
    Restored(Option<String>),
    /// The file was edited since. This is its text without the added entries (none if nothing is
    /// left), and what stays of entries that were changed since.
    EntriesRemoved(Option<String>, Vec<String>),
}

/// An edit in progress: the text of a file and what was inserted so far.
#[derive(Clone, Debug)]
pub(crate) struct FileEdit {
    before: Option<String>,
    text: String,
    insertions: Vec<Insertion>,
    entries: Vec<AddedEntry>,
}

impl FileEdit {
    /// Starts from the current text of a file; `empty` is the initial text of a new file.
    pub(crate) fn new(before: Option<String>, empty: &str) -> Self {
        let text = before.clone().unwrap_or_else(|| empty.to_owned());
        // Comments at the top of a new file go with what init added below.
        let is_comment = before.is_none() && empty.starts_with('#');
        let entries = is_comment.then(|| AddedEntry::Lines(empty.to_owned()));
        Self { before, text, insertions: Vec::new(), entries: entries.into_iter().collect() }
    }

    /// The current text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The text before the edit.
    pub(crate) fn before(&self) -> Option<&str> {
        self.before.as_deref()
    }

    /// Whether anything was inserted.
    pub(crate) fn is_changed(&self) -> bool {
        !self.insertions.is_empty()
    }

    /// Adds a member, or an item of a list, to a JSON file.
    pub(crate) fn add_json(
        &mut self,
        path: &[&str],
        value: Value,
        is_item: bool,
    ) -> Result<(), String> {
        let path: Vec<String> = path.iter().map(|key| (*key).to_owned()).collect();
        let new = json::add(&self.text, &JsonEntry { path: &path, value: &value, is_item })?;
        let existing = (1..=path.len())
            .take_while(|depth| json::get(&self.text, &path[..*depth]).is_some())
            .count();
        self.record(new, AddedEntry::Json { path, value, is_item, existing })
    }

    /// Adds a string, or a list of strings, to a TOML file.
    pub(crate) fn add_toml(&mut self, path: &[&str], value: Value) -> Result<(), String> {
        let path: Vec<String> = path.iter().map(|key| (*key).to_owned()).collect();
        let new = toml::add(&self.text, &path, &value)?;
        let existing =
            (1..path.len()).take_while(|depth| toml::contains(&self.text, &path[..*depth])).count();
        self.record(new, AddedEntry::Toml { path, value, existing })
    }

    /// Appends comment lines to a TOML file.
    pub(crate) fn add_comment(&mut self, lines: &str) -> Result<(), String> {
        let new = toml::append(&self.text, lines);
        toml::validate(&new)?;
        self.record(new, AddedEntry::Lines(lines.to_owned()))
    }

    fn record(&mut self, new: String, entry: AddedEntry) -> Result<(), String> {
        let insertion = Insertion::between(&self.text, &new).ok_or(
            "the entry cannot be added without changing other parts of the file; it was not changed",
        )?;
        self.insertions.push(insertion);
        self.entries.push(entry);
        self.text = new;
        Ok(())
    }

    /// The recorded change, for undoing it.
    pub(crate) fn to_change(&self, file: &str, created_folder: bool) -> FileChange {
        FileChange {
            file: file.to_owned(),
            before: self.before.as_ref().map(|text| digest::sha256_hex(text.as_bytes())),
            after: digest::sha256_hex(self.text.as_bytes()),
            created_folder,
            insertions: self.insertions.clone(),
            entries: self.entries.clone(),
        }
    }
}

impl Insertion {
    /// The one insertion that turns a text into another, or none if there is no such insertion.
    fn between(old: &str, new: &str) -> Option<Self> {
        let length = new.len().checked_sub(old.len()).filter(|length| *length > 0)?;
        let mut at = old.bytes().zip(new.bytes()).take_while(|(old, new)| old == new).count();
        while !old.is_char_boundary(at) {
            at -= 1;
        }
        let is_insertion = new.get(at + length..)? == old.get(at..)?;
        is_insertion.then(|| Self { at, text: new[at..at + length].to_owned() })
    }

    /// The text without the insertion, if it is there.
    fn remove_from(&self, text: &str) -> Option<String> {
        let rest = text.get(self.at..)?.strip_prefix(&self.text)?;
        Some(format!("{}{rest}", &text[..self.at]))
    }
}

impl FileChange {
    /// The change that writes a whole file in a folder that may be new.
    pub(crate) fn of_new_file(file: &str, text: &str) -> Self {
        Self {
            file: file.to_owned(),
            before: None,
            after: digest::sha256_hex(text.as_bytes()),
            created_folder: true,
            insertions: Vec::new(),
            entries: Vec::new(),
        }
    }

    /// Undoes the change in the current text of a file.
    pub(crate) fn undo(&self, current: &str) -> UndoResult {
        let digest = digest::sha256_hex(current.as_bytes());
        if self.before.as_ref() == Some(&digest) {
            return UndoResult::NotPresent;
        }
        if self.after == digest {
            let restored = self
                .insertions
                .iter()
                .rev()
                .try_fold(current.to_owned(), |text, insertion| insertion.remove_from(&text));
            let is_original = |text: &String| {
                self.before
                    .as_ref()
                    .is_none_or(|before| *before == digest::sha256_hex(text.as_bytes()))
            };
            if let Some(restored) = restored.filter(is_original) {
                return UndoResult::Restored(self.before.is_some().then_some(restored));
            }
        }
        let mut text = current.to_owned();
        let mut modified = Vec::new();
        for entry in self.entries.iter().rev() {
            match entry.remove_from(&text) {
                Some(shorter) => text = shorter,
                None => modified.extend(entry.what_is_left(&text)),
            }
        }
        if text == current {
            return if modified.is_empty() {
                UndoResult::NotPresent
            } else {
                UndoResult::EntriesRemoved(Some(text), modified)
            };
        }
        let is_empty = text.trim().is_empty()
            || (text.trim_start().starts_with('{') && is_empty_object(&text));
        UndoResult::EntriesRemoved((self.before.is_some() || !is_empty).then_some(text), modified)
    }
}

fn is_empty_object(text: &str) -> bool {
    serde_json::from_str::<Value>(text)
        .is_ok_and(|value| value.as_object().is_some_and(serde_json::Map::is_empty))
}

impl AddedEntry {
    /// The text without the entry, or none if the entry is missing or was changed.
    fn remove_from(&self, text: &str) -> Option<String> {
        match self {
            Self::Json { path, value, is_item, existing } => {
                let mut text = json::remove(text, &JsonEntry { path, value, is_item: *is_item })?;
                let containers = if *is_item { path.len() } else { path.len() - 1 };
                for depth in (*existing..containers).rev() {
                    let path = &path[..=depth];
                    let empty = [literal!({}), literal!([])];
                    let Some(value) = json::get(&text, path).filter(|value| empty.contains(value))
                    else {
                        break;
                    };
                    text = json::remove(&text, &JsonEntry { path, value: &value, is_item: false })?;
                }
                Some(text)
            }
            Self::Toml { path, value, existing } => toml::remove(text, path, value, *existing),
            Self::Lines(lines) => {
                let lines =
                    if text.contains("\r\n") { lines.replace('\n', "\r\n") } else { lines.clone() };
                let (before, after) = text.split_once(&lines)?;
                let before = before
                    .strip_suffix("\n\n")
                    .map_or(before.to_owned(), |before| format!("{before}\n"));
                Some(before + after)
            }
        }
    }

    /// What is left of an entry that was changed; none if it was removed.
    fn what_is_left(&self, text: &str) -> Option<String> {
        match self {
            Self::Json { path, is_item: false, .. } => {
                json::get(text, path).map(|_| path.join("."))
            }
            Self::Json { path, .. } => {
                // An item has no name: it is ours if it still calls us.
                let items = json::get(text, path)?;
                let ours =
                    items.as_array()?.iter().any(|item| item.to_string().contains(Server::NAME));
                ours.then(|| path.join("."))
            }
            Self::Toml { path, .. } => toml::contains(text, path).then(|| path.join(".")),
            Self::Lines(lines) => {
                let left = lines.lines().find(|line| text.lines().any(|other| other == *line));
                left.map(|line| format!("the comment `{line}`"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[ -~é\"\\\\,{}\\[\\]:]{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-zé\",]{1,6}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    /// Settings of a user, in one of the common JSON layouts.
    fn settings() -> impl Strategy<Value = String> {
        let members = prop::collection::btree_map("[a-z]{1,6}", value(), 0..4);
        let stop = prop::option::of(prop::collection::vec(value(), 0..3));
        (members, stop, 0..5usize).prop_map(|(members, stop, layout)| {
            let mut object: serde_json::Map<String, Value> = members.into_iter().collect();
            if let Some(stop) = stop {
                object.insert("hooks".to_owned(), literal!({"Stop": stop}));
            }
            let value = Value::Object(object);
            let pretty = serde_json::to_string_pretty(&value).unwrap_or_default();
            match layout {
                0 => value.to_string(),
                1 => pretty,
                2 => pretty + "\n",
                3 => pretty.replace('\n', "\r\n"),
                _ => format!("\n{}\n\n", with_tabs(&pretty)),
            }
        })
    }

    /// Indents with tabs. Strings, which may hold several spaces, stay as they are.
    fn with_tabs(pretty: &str) -> String {
        let lines = pretty.lines().map(|line| {
            let text = line.trim_start();
            "\t".repeat((line.len() - text.len()) / 2) + text
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    fn hook() -> Value {
        literal!({"hooks": [{"type": "command", "command": "ours"}]})
    }

    fn with_entries(text: &str) -> Option<FileEdit> {
        let mut edit = FileEdit::new(Some(text.to_owned()), json::EMPTY);
        edit.add_json(&["hooks", "Stop"], hook(), true).ok()?;
        edit.add_json(&["mcpServers", "ours"], literal!({"command": "x", "args": ["y"]}), false)
            .ok()?;
        Some(edit)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn undoing_an_edit_restores_the_same_bytes(text in settings()) {
            let old: Value = serde_json::from_str(&text).unwrap();
            let Some(edit) = with_entries(&text) else {
                // Only a value that is in the way prevents the edit.
                prop_assert!(old.get("hooks").is_some_and(|hooks| !hooks.is_object()), "{}", text);
                return Ok(());
            };
            let mut new: Value = serde_json::from_str(edit.text()).unwrap();
            prop_assert_eq!(edit.to_change("f", false).undo(edit.text()), UndoResult::Restored(Some(text.clone())));
            // Nothing else was added.
            let pushed = new["hooks"]["Stop"].as_array_mut().unwrap().pop();
            prop_assert_eq!(pushed, Some(hook()));
            prop_assert_eq!(new["mcpServers"].as_object_mut().unwrap().remove("ours").is_some(), true);
            for (path, key) in [(&["hooks"][..], "Stop"), (&[], "hooks"), (&[], "mcpServers")] {
                let existing = path.iter().try_fold(&old, |value, key| value.get(key)).and_then(|value| value.get(key));
                if existing.is_none() {
                    let holder = path.iter().fold(&mut new, |value, key| &mut value[*key]);
                    holder.as_object_mut().unwrap().shift_remove(key);
                }
            }
            prop_assert_eq!(new, old);
        }

        #[test]
        fn undoing_in_a_file_that_was_edited_removes_only_our_entries(text in settings(), added in value()) {
            let Some(edit) = with_entries(&text) else { return Ok(()) };
            let mut edited: Value = serde_json::from_str(edit.text()).unwrap();
            edited["theirs"] = added.clone();
            let current = serde_json::to_string_pretty(&edited).unwrap();
            let mut expected: Value = serde_json::from_str(&text).unwrap();
            expected["theirs"] = added;
            let UndoResult::EntriesRemoved(Some(left), modified) = edit.to_change("f", false).undo(&current) else {
                return Err(TestCaseError::fail("the file was edited"));
            };
            prop_assert!(modified.is_empty());
            prop_assert_eq!(serde_json::from_str::<Value>(&left).unwrap(), expected);
        }

        #[test]
        fn undoing_an_edit_of_toml_restores_the_same_bytes(lines in prop::collection::vec(prop_oneof![
            Just("# a comment"), Just(""), Just("[checks]"), Just("test = \"cargo test\""), Just("[agents.qa]"),
            Just("model = 'opus' # big"), Just("agents = { dev = {} }"), Just("[[x]]"), Just("a.b.c = [1,\n 2]"),
        ], 0..6), end in prop_oneof![Just(""), Just("\n"), Just("\n\n")]) {
            let text = lines.join("\n") + end;
            let mut edit = FileEdit::new(Some(text.clone()), "");
            let added = edit.add_toml(&["agents", "qa", "contract"], literal!("a/b")).is_ok()
                && edit.add_comment("# [agents.x]\n# contract = \"c/d\"\n").is_ok();
            if added {
                prop_assert_eq!(edit.to_change("f", false).undo(edit.text()), UndoResult::Restored(Some(text)));
            } else {
                prop_assert!(toml::validate(&text).is_err() || text.contains("agents"), "{}", text);
            }
        }
    }

    #[test]
    fn an_insertion_is_found_at_any_position() {
        for (old, new, at) in [
            ("", "a", Some(0)),
            ("aa", "aaa", Some(2)),
            ("äb", "äöb", Some(2)),
            ("ab", "ba", None),
            ("ab", "xyz", None),
        ] {
            let found = Insertion::between(old, new);
            assert_eq!(found.as_ref().map(|insertion| insertion.at), at, "{old} {new}");
            if let Some(found) = found {
                assert_eq!(found.remove_from(new).as_deref(), Some(old));
            }
        }
    }
}
