//! A folder in scratch that stands in for the one that a program keeps in the user's home:
//! everything in it is the user's own, by links, but for one file of settings, which is the user's
//! with a few changes. So a program that takes settings from nowhere else gets ours for one run,
//! and nothing of the user's is written.

use serde_json::{Map, Value};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

/// A folder that stands in for one of the user's.
#[derive(Clone, Debug, PartialEq)]
pub struct StandIn {
    /// The user's folder, if there is a home.
    pub of: Option<PathBuf>,
    /// The folder in scratch.
    pub at: PathBuf,
    /// What is not linked: what the program keeps of its conversations.
    pub without: &'static [&'static str],
    /// The file of settings in it, in JSON with comments.
    pub settings: &'static str,
    /// What is changed in the settings.
    pub edits: Vec<Edit>,
    /// The variables that tell the program of it. They are only set if it could be made.
    pub variables: Vec<(OsString, OsString)>,
}

/// One change of settings.
#[derive(Clone, Debug, PartialEq)]
pub enum Edit {
    /// A value, whatever stood there.
    Set(&'static [&'static str], Value),
    /// A value, if none stands there.
    Fill(&'static [&'static str], Value),
    /// One more item, where a list stands that lacks it. Without a list there is none to be on.
    Join(&'static [&'static str], &'static str),
    /// One item less, where a list stands that has it.
    Leave(&'static [&'static str], &'static str),
}

/// Settings that are longer are not read.
const LONGEST: u64 = 4 << 20;

impl StandIn {
    /// Makes the folder, or brings it up to date. What is said is why it cannot be had.
    pub fn make(&self) -> Result<(), String> {
        let wrong =
            |what: &Path, error: &io::Error| format!("{} cannot be made: {error}", what.display());
        fs::create_dir_all(&self.at).map_err(|error| wrong(&self.at, &error))?;
        let theirs = self.of.as_deref().map(|of| self.links(of)).transpose()?.flatten();
        let settings = edited(theirs.as_deref(), &self.edits).map_err(|why| {
            let file = self.of.as_deref().unwrap_or(Path::new("")).join(self.settings);
            format!("{} {why}", file.display())
        })?;
        let file = self.at.join(self.settings);
        // There may be keys in it.
        let mut options = fs::OpenOptions::new();
        let mut opened = options.write(true).create(true).truncate(true).mode(0o600).open(&file);
        let written = opened.as_mut().map_err(|error| wrong(&file, error))?.write_all(&settings);
        written.map_err(|error| wrong(&file, &error))
    }

    /// Links what stands in the user's folder, and gives the settings that stand there.
    fn links(&self, of: &Path) -> Result<Option<String>, String> {
        let unreadable = |error: io::Error| format!("{} cannot be read: {error}", of.display());
        let entries = match fs::read_dir(of) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unreadable(error)),
        };
        // A program that works in a folder may be given another one that leads to it.
        let of = of.canonicalize().map_err(unreadable)?;
        for entry in entries {
            let name = entry.map_err(unreadable)?.file_name();
            if name == OsStr::new(self.settings)
                || self.without.iter().any(|left| name == OsStr::new(left))
            {
                continue;
            }
            let link = self.at.join(&name);
            match symlink(of.join(&name), &link) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(format!("{} cannot be made: {error}", link.display())),
            }
        }
        let file = of.join(self.settings);
        match fs::metadata(&file) {
            Ok(found) if found.len() > LONGEST => {
                Err(format!("{} has more than 4 MB", file.display()))
            }
            Ok(_) => fs::read_to_string(&file)
                .map(Some)
                .map_err(|error| format!("{} cannot be read: {error}", file.display())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("{} cannot be read: {error}", file.display())),
        }
    }
}

/// Settings with changes made to them, as JSON. What is said is what is wrong with them.
pub fn edited(settings: Option<&str>, edits: &[Edit]) -> Result<Vec<u8>, String> {
    let text = settings.map(without_comments).filter(|text| !text.trim().is_empty());
    let mut root = match text.as_deref().map(serde_json::from_str::<Value>) {
        None => Value::Object(Map::new()),
        Some(Ok(root @ Value::Object(_))) => root,
        Some(Ok(_)) => return Err("is no object".to_owned()),
        Some(Err(error)) => return Err(format!("is no JSON: {error}")),
    };
    for edit in edits {
        edit.make(&mut root);
    }
    serde_json::to_vec_pretty(&root).map_err(|error| error.to_string())
}

impl Edit {
    fn make(&self, root: &mut Value) {
        match self {
            Self::Set(path, value) => *place(root, path) = value.clone(),
            Self::Fill(path, value) => {
                let place = place(root, path);
                if place.is_null() {
                    *place = value.clone();
                }
            }
            Self::Join(path, item) => {
                if let Some(list) =
                    list(root, path).filter(|list| !list.iter().any(|own| own == item))
                {
                    list.push(Value::from(*item));
                }
            }
            Self::Leave(path, item) => {
                if let Some(list) = list(root, path) {
                    list.retain(|own| own != item);
                }
            }
        }
    }
}

/// The value at a path, which is made on the way. What stands in the way and is no object is
/// nothing that a program could read.
fn place<'v>(root: &'v mut Value, path: &[&str]) -> &'v mut Value {
    path.iter().fold(root, |place, key| {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        &mut place[*key]
    })
}

/// The list at a path, if one stands there.
fn list<'v>(root: &'v mut Value, path: &[&str]) -> Option<&'v mut Vec<Value>> {
    path.iter().try_fold(root, |place, key| place.get_mut(*key))?.as_array_mut()
}

/// JSON with its comments blanked out, so that places stay the same.
fn without_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['"', '/']) {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        let (length, comment) = match rest.as_bytes() {
            [b'"', ..] => (string(rest), false),
            [b'/', b'/', ..] => (rest.find('\n').unwrap_or(rest.len()), true),
            [b'/', b'*', ..] => (rest[2..].find("*/").map_or(rest.len(), |end| end + 4), true),
            _ => (1, false),
        };
        let blank = |c: char| if c == '\n' { '\n' } else { ' ' };
        if comment {
            plain.extend(rest[..length].chars().map(blank));
        } else {
            plain.push_str(&rest[..length]);
        }
        rest = &rest[length..];
    }
    plain.push_str(rest);
    plain
}

/// How long the string is that a text begins with, with its quotes.
fn string(text: &str) -> usize {
    let mut escaped = false;
    let end = text.bytes().skip(1).position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |end| end + 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn after(settings: &str, edits: &[Edit]) -> Result<Value, String> {
        edited(Some(settings), edits).map(|bytes| serde_json::from_slice(&bytes).unwrap())
    }

    #[test]
    fn what_the_user_set_stays_but_for_what_is_set_over_it() {
        let theirs = r#"{ // mine
            "theme": "dark // no comment", /* a "quoted" one
            */ "auth": {"type": "oauth", "url": "https://example.org/a"}, "servers": {"own": {"command": "x\\"}},
            "big": 12345678901234567890123
        }"#;
        let edits = [
            Edit::Set(&["servers", "ours"], json!({"command": "y"})),
            Edit::Fill(&["auth", "type"], json!("key")),
            Edit::Fill(&["general", "plan", "enabled"], json!(false)),
        ];
        let expected = r#"{"theme": "dark // no comment", "auth": {"type": "oauth", "url": "https://example.org/a"},
            "servers": {"own": {"command": "x\\"}, "ours": {"command": "y"}}, "big": 12345678901234567890123,
            "general": {"plan": {"enabled": false}}}"#;
        assert_eq!(
            after(theirs, &edits).unwrap(),
            serde_json::from_str::<Value>(expected).unwrap()
        );
    }

    #[test]
    fn lists_are_joined_and_left_only_where_they_stand() {
        let edits =
            [Edit::Join(&["mcp", "allowed"], "ours"), Edit::Leave(&["mcp", "excluded"], "ours")];
        for (theirs, expected) in [
            ("{}", json!({})),
            (r#"{"mcp":{"allowed":["a"]}}"#, json!({"mcp":{"allowed":["a", "ours"]}})),
            (
                r#"{"mcp":{"allowed":["ours"],"excluded":["b","ours"]}}"#,
                json!({"mcp":{"allowed":["ours"],"excluded":["b"]}}),
            ),
            (r#"{"mcp":{"allowed":"a"}}"#, json!({"mcp":{"allowed":"a"}})),
            (r#"{"mcp":[]}"#, json!({"mcp":[]})),
        ] {
            assert_eq!(after(theirs, &edits).unwrap(), expected, "{theirs}");
        }
    }

    #[test]
    fn what_stands_in_the_way_gives_way() {
        let edits = [Edit::Set(&["a", "b", "c"], json!(1))];
        for theirs in ["{}", r#"{"a":null}"#, r#"{"a":"text"}"#, r#"{"a":{"b":[1]}}"#] {
            assert_eq!(after(theirs, &edits).unwrap()["a"]["b"]["c"], json!(1), "{theirs}");
        }
    }

    #[test]
    fn settings_that_cannot_be_read_are_said_to_be_so() {
        assert_eq!(after("[1]", &[]).unwrap_err(), "is no object");
        for broken in ["{", r#"{"a": "unended // "#, "{ /* unended", "{} x", "/"] {
            assert!(after(broken, &[]).unwrap_err().starts_with("is no JSON"), "{broken}");
        }
        for empty in ["", " \n", "// nothing", "/* nothing */"] {
            assert_eq!(after(empty, &[]).unwrap(), json!({}), "{empty}");
        }
    }

    fn of(home: &Path, scratch: &Path) -> StandIn {
        StandIn {
            of: Some(home.join(".own")),
            at: scratch.join("home/.own"),
            without: &["tmp"],
            settings: "settings.json",
            edits: vec![Edit::Set(&["retries"], json!(2))],
            variables: Vec::new(),
        }
    }

    #[test]
    fn everything_but_the_settings_and_the_conversations_is_the_users_own() {
        let (home, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let own = home.path().join(".own");
        fs::create_dir_all(own.join("tmp")).unwrap();
        fs::create_dir_all(own.join("policies")).unwrap();
        fs::write(own.join("settings.json"), "{\"theme\":\"dark\"}").unwrap();
        fs::write(own.join("login"), "before").unwrap();

        let stand_in = of(home.path(), scratch.path());
        stand_in.make().unwrap();
        // The program renews its login, and changes its settings; another prompt follows.
        fs::write(stand_in.at.join("login"), "after").unwrap();
        fs::write(stand_in.at.join("settings.json"), "{}").unwrap();
        fs::write(own.join("later"), "").unwrap();
        stand_in.make().unwrap();

        let mut names: Vec<_> =
            fs::read_dir(&stand_in.at).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["later", "login", "policies", "settings.json"]);
        assert_eq!(fs::read_to_string(own.join("login")).unwrap(), "after");
        assert_eq!(fs::read_to_string(own.join("settings.json")).unwrap(), "{\"theme\":\"dark\"}");
        let settings = fs::read(stand_in.at.join("settings.json")).unwrap();
        assert_eq!(
            serde_json::from_slice::<Value>(&settings).unwrap(),
            json!({"theme": "dark", "retries": 2})
        );
    }

    #[test]
    fn without_a_home_there_are_only_our_settings() {
        let scratch = tempfile::tempdir().unwrap();
        for home in [None, Some(scratch.path().join("nowhere"))] {
            let stand_in = StandIn { of: home, ..of(scratch.path(), scratch.path()) };
            stand_in.make().unwrap();
            assert_eq!(fs::read_dir(&stand_in.at).unwrap().count(), 1);
        }
    }

    #[test]
    fn settings_that_are_broken_are_named() {
        let (home, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir_all(home.path().join(".own")).unwrap();
        fs::write(home.path().join(".own/settings.json"), "{,}").unwrap();
        let said = of(home.path(), scratch.path()).make().unwrap_err();
        assert!(said.contains("/.own/settings.json is no JSON: "), "{said}");
    }
}
