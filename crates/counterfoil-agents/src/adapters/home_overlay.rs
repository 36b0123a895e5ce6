//! An overlay over the folder that a program keeps in the user's home. All entries are symbolic
//! links to the user's own, except the settings file, which is a copy with a few changes. A program
//! that reads settings from nowhere else gets ours for one run this way, and the user's files are
//! not changed.

use counterfoil_contract::text::display_path;
use jsonc_parser::{CollectOptions, ParseOptions};
use serde_json::{Map, Value};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

/// An overlay over a folder in the user's home.
#[derive(Clone, Debug, PartialEq)]
pub struct HomeOverlay {
    /// The user's folder, if there is a home.
    pub source: Option<PathBuf>,
    /// Where the overlay is created, in the scratch folder.
    pub path: PathBuf,
    /// The entries that are not linked: the program's records of its conversations.
    pub exclude: &'static [&'static str],
    /// The name of the settings file, which is JSON with comments.
    pub settings_file: &'static str,
    /// The changes to the settings.
    pub edits: Vec<SettingsEdit>,
    /// The variables that point the program to the overlay. They are set only if it was created.
    pub variables: Vec<(OsString, OsString)>,
}

/// One change to the settings. The first field is the path of keys.
#[derive(Clone, Debug, PartialEq)]
pub enum SettingsEdit {
    /// Sets a value.
    Set(&'static [&'static str], Value),
    /// Sets a value unless there is one.
    SetDefault(&'static [&'static str], Value),
    /// Adds an item to a list that lacks it. Does nothing if there is no list.
    AddToList(&'static [&'static str], &'static str),
    /// Removes an item from a list. Does nothing if there is no list.
    RemoveFromList(&'static [&'static str], &'static str),
}

/// The largest settings file that is read.
const MAX_SETTINGS_BYTES: u64 = 4 << 20;

/// Why an overlay cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum OverlayError {
    /// A file or link of the overlay cannot be created.
    #[error("{} cannot be created: {error}", display_path(path))]
    Create {
        /// The file or link.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The user's folder or settings cannot be read.
    #[error("{} cannot be read: {error}", display_path(path))]
    Read {
        /// The folder or file.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The user's settings are too large.
    #[error("{} has more than 4 MiB", display_path(path))]
    TooLarge {
        /// The settings file.
        path: PathBuf,
    },
    /// The user's settings are invalid.
    #[error("{} {error}", display_path(path))]
    Settings {
        /// The settings file.
        path: PathBuf,
        /// What is wrong with it.
        error: SettingsError,
    },
}

/// Settings that cannot be edited.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// The text is not JSON, even with comments allowed.
    #[error("is not JSON: {0}")]
    Syntax(String),
    /// The text is a JSON value of another type.
    #[error("is not an object")]
    NotAnObject,
}

impl HomeOverlay {
    /// Creates the overlay, or updates it.
    ///
    /// # Errors
    ///
    /// The user's folder or settings cannot be read, or the overlay cannot be written.
    pub fn create(&self) -> Result<(), OverlayError> {
        let failed = |path: &Path, error| OverlayError::Create { path: path.to_owned(), error };
        fs::create_dir_all(&self.path).map_err(|error| failed(&self.path, error))?;
        let source = self.source.as_deref();
        let theirs = source.map(|source| self.link_entries(source)).transpose()?.flatten();
        let settings = edit_settings(theirs.as_deref(), &self.edits).map_err(|error| {
            let path = source.unwrap_or(Path::new("")).join(self.settings_file);
            OverlayError::Settings { path, error }
        })?;
        let file = self.path.join(self.settings_file);
        // The settings may contain keys.
        let mut options = fs::OpenOptions::new();
        let opened = options.write(true).create(true).truncate(true).mode(0o600).open(&file);
        opened
            .and_then(|mut opened| opened.write_all(&settings))
            .map_err(|error| failed(&file, error))
    }

    /// Links the entries of the user's folder and returns the user's settings.
    fn link_entries(&self, source: &Path) -> Result<Option<String>, OverlayError> {
        let unreadable = |path: &Path| {
            let path = path.to_owned();
            move |error| OverlayError::Read { path, error }
        };
        let entries = match fs::read_dir(source) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unreadable(source)(error)),
        };
        // Relative paths and links must resolve from the overlay as well.
        let source = source.canonicalize().map_err(unreadable(source))?;
        for entry in entries {
            let name = entry.map_err(unreadable(&source))?.file_name();
            if name == OsStr::new(self.settings_file)
                || self.exclude.iter().any(|excluded| name == OsStr::new(excluded))
            {
                continue;
            }
            let link = self.path.join(&name);
            match symlink(source.join(&name), &link) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(OverlayError::Create { path: link, error }),
            }
        }
        let file = source.join(self.settings_file);
        match fs::metadata(&file) {
            Ok(found) if found.len() > MAX_SETTINGS_BYTES => {
                Err(OverlayError::TooLarge { path: file })
            }
            Ok(_) => fs::read_to_string(&file).map(Some).map_err(unreadable(&file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(unreadable(&file)(error)),
        }
    }
}

/// Applies edits to settings and returns them as JSON. Without settings, the edits apply to an
/// empty object.
///
/// # Errors
///
/// The settings are not a JSON object. Comments are allowed.
pub fn edit_settings(
    settings: Option<&str>,
    edits: &[SettingsEdit],
) -> Result<Vec<u8>, SettingsError> {
    let mut root = match parse_settings(settings.unwrap_or_default())? {
        None => Value::Object(Map::new()),
        Some(root @ Value::Object(_)) => root,
        Some(_) => return Err(SettingsError::NotAnObject),
    };
    for edit in edits {
        edit.apply(&mut root);
    }
    serde_json::to_vec_pretty(&root).map_err(|error| SettingsError::Syntax(error.to_string()))
}

/// Parses JSON with comments. None if there is only white space and comments.
fn parse_settings(text: &str) -> Result<Option<Value>, SettingsError> {
    let options = ParseOptions {
        allow_comments: true,
        allow_loose_object_property_names: false,
        allow_trailing_commas: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    // The syntax tree, unlike the serde interface, keeps the digits of large numbers.
    jsonc_parser::parse_to_ast(text, &CollectOptions::default(), &options)
        .map(|parsed| parsed.value.map(Value::from))
        .map_err(|error| SettingsError::Syntax(error.to_string()))
}

impl SettingsEdit {
    fn apply(&self, root: &mut Value) {
        match self {
            Self::Set(path, value) => *place(root, path) = value.clone(),
            Self::SetDefault(path, value) => {
                let place = place(root, path);
                if place.is_null() {
                    *place = value.clone();
                }
            }
            Self::AddToList(path, item) => {
                if let Some(list) =
                    list(root, path).filter(|list| !list.iter().any(|own| own == item))
                {
                    list.push(Value::from(*item));
                }
            }
            Self::RemoveFromList(path, item) => {
                if let Some(list) = list(root, path) {
                    list.retain(|own| own != item);
                }
            }
        }
    }
}

/// The value at a path. Missing objects are created, and other values on the way are replaced.
fn place<'v>(root: &'v mut Value, path: &[&str]) -> &'v mut Value {
    path.iter().fold(root, |place, key| {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        &mut place[*key]
    })
}

/// The list at a path, if there is one.
fn list<'v>(root: &'v mut Value, path: &[&str]) -> Option<&'v mut Vec<Value>> {
    path.iter().try_fold(root, |place, key| place.get_mut(*key))?.as_array_mut()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn after(settings: &str, edits: &[SettingsEdit]) -> Result<Value, SettingsError> {
        edit_settings(Some(settings), edits).map(|bytes| serde_json::from_slice(&bytes).unwrap())
    }

    #[test]
    fn the_users_settings_are_kept_except_for_edits() {
        let theirs = r#"{ // mine
            "theme": "dark // no comment", /* a "quoted" one
            */ "auth": {"type": "oauth", "url": "https://example.org/a"}, "servers": {"own": {"command": "x\\"}},
            "big": 12345678901234567890123
        }"#;
        let edits = [
            SettingsEdit::Set(&["servers", "env"], json!({"command": "y"})),
            SettingsEdit::SetDefault(&["auth", "type"], json!("key")),
            SettingsEdit::SetDefault(&["general", "plan", "enabled"], json!(false)),
        ];
        let expected = r#"{"theme": "dark // no comment", "auth": {"type": "oauth", "url": "https://example.org/a"},
            "servers": {"own": {"command": "x\\"}, "env": {"command": "y"}}, "big": 12345678901234567890123,
            "general": {"plan": {"enabled": false}}}"#;
        assert_eq!(
            after(theirs, &edits).unwrap(),
            serde_json::from_str::<Value>(expected).unwrap()
        );
    }

    #[test]
    fn lists_are_edited_only_where_they_exist() {
        let edits = [
            SettingsEdit::AddToList(&["mcp", "allowed"], "env"),
            SettingsEdit::RemoveFromList(&["mcp", "excluded"], "env"),
        ];
        for (theirs, expected) in [
            ("{}", json!({})),
            (r#"{"mcp":{"allowed":["a"]}}"#, json!({"mcp":{"allowed":["a", "env"]}})),
            (
                r#"{"mcp":{"allowed":["env"],"excluded":["b","env"]}}"#,
                json!({"mcp":{"allowed":["env"],"excluded":["b"]}}),
            ),
            (r#"{"mcp":{"allowed":"a"}}"#, json!({"mcp":{"allowed":"a"}})),
            (r#"{"mcp":[]}"#, json!({"mcp":[]})),
        ] {
            assert_eq!(after(theirs, &edits).unwrap(), expected, "{theirs}");
        }
    }

    #[test]
    fn values_on_the_path_are_replaced() {
        let edits = [SettingsEdit::Set(&["a", "b", "c"], json!(1))];
        for theirs in ["{}", r#"{"a":null}"#, r#"{"a":"text"}"#, r#"{"a":{"b":[1]}}"#] {
            assert_eq!(after(theirs, &edits).unwrap()["a"]["b"]["c"], json!(1), "{theirs}");
        }
    }

    #[test]
    fn settings_that_cannot_be_parsed_are_errors() {
        assert_eq!(after("[1]", &[]).unwrap_err(), SettingsError::NotAnObject);
        for broken in [
            "{",
            r#"{"a": "unended // "#,
            "{ /* unended",
            "{} x",
            "/",
            "{\"a\": 1,}",
            "{a: 1}",
            "{'a': 1}",
        ] {
            assert!(matches!(after(broken, &[]), Err(SettingsError::Syntax(_))), "{broken}");
        }
        for empty in ["", " \n", "// nothing", "/* nothing */"] {
            assert_eq!(after(empty, &[]).unwrap(), json!({}), "{empty}");
        }
    }

    fn overlay(home: &Path, scratch: &Path) -> HomeOverlay {
        HomeOverlay {
            source: Some(home.join(".own")),
            path: scratch.join("home/.own"),
            exclude: &["tmp"],
            settings_file: "settings.json",
            edits: vec![SettingsEdit::Set(&["retries"], json!(2))],
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

        let home_overlay = overlay(home.path(), scratch.path());
        home_overlay.create().unwrap();
        // The program renews its login, and changes its settings; another prompt follows.
        fs::write(home_overlay.path.join("login"), "after").unwrap();
        fs::write(home_overlay.path.join("settings.json"), "{}").unwrap();
        fs::write(own.join("later"), "").unwrap();
        home_overlay.create().unwrap();

        let mut names: Vec<_> = fs::read_dir(&home_overlay.path)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        assert_eq!(names, ["later", "login", "policies", "settings.json"]);
        assert_eq!(fs::read_to_string(own.join("login")).unwrap(), "after");
        assert_eq!(fs::read_to_string(own.join("settings.json")).unwrap(), "{\"theme\":\"dark\"}");
        let settings = fs::read(home_overlay.path.join("settings.json")).unwrap();
        assert_eq!(
            serde_json::from_slice::<Value>(&settings).unwrap(),
            json!({"theme": "dark", "retries": 2})
        );
    }

    #[test]
    fn without_a_home_there_are_only_our_settings() {
        let scratch = tempfile::tempdir().unwrap();
        for home in [None, Some(scratch.path().join("nowhere"))] {
            let home_overlay =
                HomeOverlay { source: home, ..overlay(scratch.path(), scratch.path()) };
            home_overlay.create().unwrap();
            assert_eq!(fs::read_dir(&home_overlay.path).unwrap().count(), 1);
        }
    }

    #[test]
    fn settings_that_are_broken_are_named() {
        let (home, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir_all(home.path().join(".own")).unwrap();
        fs::write(home.path().join(".own/settings.json"), "{,}").unwrap();
        let error = overlay(home.path(), scratch.path()).create().unwrap_err().to_string();
        assert!(error.contains("/.own/settings.json is not JSON: "), "{error}");
    }
}
