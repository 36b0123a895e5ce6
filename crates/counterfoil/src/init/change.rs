//! What was added to a file, as it is kept for taking it out again. No I/O.

use super::{json, toml};
use crate::digest;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json as literal};

/// Everything that was added to a project, the oldest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Record {
    /// What was added to which file.
    pub(crate) changes: Vec<Change>,
}

/// What was added to one file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Change {
    /// The file, in the repository.
    pub(crate) file: String,
    /// The digest of the file before; none if there was none.
    pub(crate) before: Option<String>,
    /// The digest of the file after.
    pub(crate) after: String,
    /// Whether its folder was made for it.
    #[serde(default)]
    pub(crate) folder: bool,
    /// What was put in where, one after the other.
    insertions: Vec<Insertion>,
    /// What it means, for a file that was edited since.
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Insertion {
    at: usize,
    text: String,
}

/// Something of ours in a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Entry {
    /// A member of an object, or an item of a list. Keys from the depth `made` on were made for it.
    Json { path: Vec<String>, value: Value, item: bool, made: usize },
    /// A value in a table. Tables from the depth `made` on were made for it.
    Toml { path: Vec<String>, value: Value, made: usize },
    /// Lines of a comment.
    Lines(String),
}

/// What comes of taking a change out of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Undone {
    /// It was never made, or somebody took it out already.
    Nothing,
    /// The file is as it was before.
    Whole(Option<String>),
    /// The file was edited since; what was added is gone. What somebody changed is theirs, and
    /// named.
    Parts(Option<String>, Vec<String>),
}

/// A file at work: its text, and what was put in.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    before: Option<String>,
    text: String,
    insertions: Vec<Insertion>,
    entries: Vec<Entry>,
}

impl Draft {
    /// Begins with a file as it is; `empty` is how a new one begins.
    pub(crate) fn new(before: Option<String>, empty: &str) -> Self {
        let text = before.clone().unwrap_or_else(|| empty.to_owned());
        Self { before, text, insertions: Vec::new(), entries: Vec::new() }
    }

    /// The text as it is now.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The text before anything was put in.
    pub(crate) fn before(&self) -> Option<&str> {
        self.before.as_deref()
    }

    /// Whether anything was put in.
    pub(crate) fn is_changed(&self) -> bool {
        !self.insertions.is_empty()
    }

    /// Adds a member, or an item of a list, to a JSON file.
    pub(crate) fn json(&mut self, path: &[&str], value: Value, item: bool) -> Result<(), String> {
        let path: Vec<String> = path.iter().map(|key| (*key).to_owned()).collect();
        let new = json::add(&self.text, &json::Entry { path: &path, value: &value, item })?;
        let made = (1..=path.len())
            .take_while(|depth| json::get(&self.text, &path[..*depth]).is_some())
            .count();
        self.take(new, Entry::Json { path, value, item, made })
    }

    /// Adds a text, or a list of texts, to a TOML file.
    pub(crate) fn toml(&mut self, path: &[&str], value: Value) -> Result<(), String> {
        let path: Vec<String> = path.iter().map(|key| (*key).to_owned()).collect();
        let new = toml::add(&self.text, &path, &value)?;
        let made =
            (1..path.len()).take_while(|depth| toml::is_there(&self.text, &path[..*depth])).count();
        self.take(new, Entry::Toml { path, value, made })
    }

    /// Adds lines at the end of a TOML file.
    pub(crate) fn lines(&mut self, lines: &str) -> Result<(), String> {
        let new = toml::append(&self.text, lines);
        toml::check(&new)?;
        self.take(new, Entry::Lines(lines.to_owned()))
    }

    fn take(&mut self, new: String, entry: Entry) -> Result<(), String> {
        let insertion = Insertion::between(&self.text, &new).ok_or(
            "it cannot be edited without changing more than what is added; it is left as it is",
        )?;
        self.insertions.push(insertion);
        self.entries.push(entry);
        self.text = new;
        Ok(())
    }

    /// What is kept of it.
    pub(crate) fn change(&self, file: &str, folder: bool) -> Change {
        Change {
            file: file.to_owned(),
            before: self.before.as_ref().map(|text| digest::of(text.as_bytes())),
            after: digest::of(self.text.as_bytes()),
            folder,
            insertions: self.insertions.clone(),
            entries: self.entries.clone(),
        }
    }
}

impl Insertion {
    /// What was put into a text to make another; none if more than that was done.
    fn between(old: &str, new: &str) -> Option<Self> {
        let length = new.len().checked_sub(old.len()).filter(|length| *length > 0)?;
        let mut at = old.bytes().zip(new.bytes()).take_while(|(old, new)| old == new).count();
        while !old.is_char_boundary(at) {
            at -= 1;
        }
        let is_all = new.get(at + length..)? == old.get(at..)?;
        is_all.then(|| Self { at, text: new[at..at + length].to_owned() })
    }

    /// The text without it, if it is there.
    fn out_of(&self, text: &str) -> Option<String> {
        let behind = text.get(self.at..)?.strip_prefix(&self.text)?;
        Some(format!("{}{behind}", &text[..self.at]))
    }
}

impl Change {
    /// Takes the change out of a file as it is now.
    pub(crate) fn undo(&self, now: &str) -> Undone {
        let digest = digest::of(now.as_bytes());
        if self.before.as_ref() == Some(&digest) {
            return Undone::Nothing;
        }
        if self.after == digest {
            let back = self
                .insertions
                .iter()
                .rev()
                .try_fold(now.to_owned(), |text, one| one.out_of(&text));
            let is_it = |text: &String| {
                self.before.as_ref().is_none_or(|before| *before == digest::of(text.as_bytes()))
            };
            if let Some(back) = back.filter(is_it) {
                return Undone::Whole(self.before.is_some().then_some(back));
            }
        }
        let mut text = now.to_owned();
        let mut theirs = Vec::new();
        for entry in self.entries.iter().rev() {
            match entry.out_of(&text) {
                Some(less) => text = less,
                None => theirs.extend(entry.name()),
            }
        }
        if text == now {
            return if theirs.is_empty() {
                Undone::Nothing
            } else {
                Undone::Parts(Some(text), theirs)
            };
        }
        let is_empty = text.trim().is_empty()
            || (text.trim_start().starts_with('{') && is_empty_object(&text));
        Undone::Parts((self.before.is_some() || !is_empty).then_some(text), theirs)
    }
}

fn is_empty_object(text: &str) -> bool {
    serde_json::from_str::<Value>(text)
        .is_ok_and(|value| value.as_object().is_some_and(serde_json::Map::is_empty))
}

impl Entry {
    /// A file without it; none if it is not there as it was added.
    fn out_of(&self, text: &str) -> Option<String> {
        match self {
            Self::Json { path, value, item, made } => {
                let mut text = json::remove(text, &json::Entry { path, value, item: *item })?;
                let containers = if *item { path.len() } else { path.len() - 1 };
                for depth in (*made..containers).rev() {
                    let path = &path[..=depth];
                    let nothing = [literal!({}), literal!([])];
                    let Some(value) =
                        json::get(&text, path).filter(|value| nothing.contains(value))
                    else {
                        break;
                    };
                    text = json::remove(&text, &json::Entry { path, value: &value, item: false })?;
                }
                Some(text)
            }
            Self::Toml { path, value, made } => toml::remove(text, path, value, *made),
            Self::Lines(lines) => {
                let lines =
                    if text.contains("\r\n") { lines.replace('\n', "\r\n") } else { lines.clone() };
                let (before, behind) = text.split_once(&lines)?;
                let before = before
                    .strip_suffix("\n\n")
                    .map_or(before.to_owned(), |before| format!("{before}\n"));
                Some(before + behind)
            }
        }
    }

    /// What it is called where somebody changed it. Comments that are gone are not missed.
    fn name(&self) -> Option<String> {
        match self {
            Self::Json { path, .. } | Self::Toml { path, .. } => Some(path.join(".")),
            Self::Lines(_) => None,
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

    /// Settings that somebody may have, in one of the ways in which people lay JSON out.
    fn settings() -> impl Strategy<Value = String> {
        let members = prop::collection::btree_map("[a-z]{1,6}", value(), 0..4);
        let stop = prop::option::of(prop::collection::vec(value(), 0..3));
        (members, stop, 0..5usize).prop_map(|(members, stop, way)| {
            let mut object: serde_json::Map<String, Value> = members.into_iter().collect();
            if let Some(stop) = stop {
                object.insert("hooks".to_owned(), literal!({"Stop": stop}));
            }
            let value = Value::Object(object);
            let pretty = serde_json::to_string_pretty(&value).unwrap_or_default();
            match way {
                0 => value.to_string(),
                1 => pretty,
                2 => pretty + "\n",
                3 => pretty.replace('\n', "\r\n"),
                _ => format!("\n{}\n\n", pretty.replace("  ", "\t")),
            }
        })
    }

    fn hook() -> Value {
        literal!({"hooks": [{"type": "command", "command": "ours"}]})
    }

    fn with_ours(text: &str) -> Option<Draft> {
        let mut draft = Draft::new(Some(text.to_owned()), json::EMPTY);
        draft.json(&["hooks", "Stop"], hook(), true).ok()?;
        draft
            .json(&["mcpServers", "ours"], literal!({"command": "x", "args": ["y"]}), false)
            .ok()?;
        Some(draft)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn adding_and_taking_out_gives_back_the_same_bytes(text in settings()) {
            // What is in the way, such as `mcpServers` that is a number, is another test's.
            let Some(draft) = with_ours(&text) else { return Ok(()) };
            let old: Value = serde_json::from_str(&text).unwrap();
            let mut new: Value = serde_json::from_str(draft.text()).unwrap();
            prop_assert_eq!(draft.change("f", false).undo(draft.text()), Undone::Whole(Some(text.clone())));
            // Nothing but ours is in it.
            let pushed = new["hooks"]["Stop"].as_array_mut().unwrap().pop();
            prop_assert_eq!(pushed, Some(hook()));
            prop_assert_eq!(new["mcpServers"].as_object_mut().unwrap().remove("ours").is_some(), true);
            for (path, key) in [(&["hooks"][..], "Stop"), (&[], "hooks"), (&[], "mcpServers")] {
                let there = path.iter().try_fold(&old, |value, key| value.get(key)).and_then(|value| value.get(key));
                if there.is_none() {
                    let holder = path.iter().fold(&mut new, |value, key| &mut value[*key]);
                    holder.as_object_mut().unwrap().shift_remove(key);
                }
            }
            prop_assert_eq!(new, old);
        }

        #[test]
        fn what_was_edited_since_loses_ours_alone(text in settings(), theirs in value()) {
            let Some(draft) = with_ours(&text) else { return Ok(()) };
            let mut edited: Value = serde_json::from_str(draft.text()).unwrap();
            edited["theirs"] = theirs.clone();
            let now = serde_json::to_string_pretty(&edited).unwrap();
            let mut expected: Value = serde_json::from_str(&text).unwrap();
            expected["theirs"] = theirs;
            let Undone::Parts(Some(left), stays) = draft.change("f", false).undo(&now) else {
                return Err(TestCaseError::fail("it was edited"));
            };
            prop_assert!(stays.is_empty());
            prop_assert_eq!(serde_json::from_str::<Value>(&left).unwrap(), expected);
        }

        #[test]
        fn toml_comes_back_too(lines in prop::collection::vec(prop_oneof![
            Just("# a comment"), Just(""), Just("[checks]"), Just("test = \"cargo test\""), Just("[agents.qa]"),
            Just("model = 'opus' # big"), Just("agents = { dev = {} }"), Just("[[x]]"), Just("a.b.c = [1,\n 2]"),
        ], 0..6), end in prop_oneof![Just(""), Just("\n"), Just("\n\n")]) {
            let text = lines.join("\n") + end;
            let mut draft = Draft::new(Some(text.clone()), "");
            let added = draft.toml(&["agents", "qa", "contract"], literal!("a/b")).is_ok()
                && draft.lines("# [agents.x]\n# contract = \"c/d\"\n").is_ok();
            if added {
                prop_assert_eq!(draft.change("f", false).undo(draft.text()), Undone::Whole(Some(text)));
            } else {
                prop_assert!(toml::check(&text).is_err() || text.contains("agents"), "{}", text);
            }
        }
    }

    #[test]
    fn an_insertion_is_found_wherever_it_is() {
        for (old, new, at) in [
            ("", "a", Some(0)),
            ("aa", "aaa", Some(2)),
            ("äb", "äöb", Some(2)),
            ("ab", "ba", None),
            ("ab", "xyz", None),
        ] {
            let found = Insertion::between(old, new);
            assert_eq!(found.as_ref().map(|one| one.at), at, "{old} {new}");
            if let Some(found) = found {
                assert_eq!(found.out_of(new).as_deref(), Some(old));
            }
        }
    }
}
