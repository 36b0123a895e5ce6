//! Reads settings files of the user's programs: regular files of bounded size.

use jsonc_parser::{CollectOptions, ParseOptions};
use serde_json::Value;
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The most bytes that are read of a settings file.
const MAX_BYTES: u64 = 1 << 20;

/// The folder with a program's own files: what a variable names, or a folder in the home.
pub(crate) fn folder(
    env: &dyn Fn(&str) -> Option<OsString>,
    variable: &str,
    in_home: &str,
) -> Option<PathBuf> {
    let set = |name: &str| env(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set(variable).or_else(|| set("HOME").map(|home| home.join(in_home)))
}

/// Gemini CLI's folder: below the one that its variable names.
pub(crate) fn gemini_folder(env: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    folder(env, "GEMINI_CLI_HOME", "").map(|home| home.join(".gemini"))
}

/// Reads a file as text. None if it does not exist.
pub(crate) fn read_text(path: &Path) -> Option<Result<String, String>> {
    let meta = match std::fs::metadata(path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => return Some(Err(error.to_string())),
    };
    // Opening a pipe would block.
    if !meta.is_file() {
        return Some(Err("it is not a file".to_owned()));
    }
    let mut bytes = Vec::new();
    let read =
        std::fs::File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes));
    Some(match read {
        Err(error) => Err(error.to_string()),
        Ok(_) if bytes.len() as u64 > MAX_BYTES => Err("it is larger than 1 MiB".to_owned()),
        Ok(_) => String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned()),
    })
}

/// Reads a JSON file, in which comments are allowed. None if it does not exist.
pub(crate) fn read_json(path: &Path) -> Option<Result<Value, String>> {
    let text = match read_text(path)? {
        Ok(text) => text,
        Err(why) => return Some(Err(why)),
    };
    let parsed =
        jsonc_parser::parse_to_ast(&text, &CollectOptions::default(), &ParseOptions::default());
    Some(match parsed {
        Ok(parsed) => Ok(parsed.value.map(Value::from).unwrap_or_default()),
        Err(error) => Err(format!("it is not JSON: {error}")),
    })
}

/// Reads a TOML file as JSON. None if it does not exist.
pub(crate) fn read_toml(path: &Path) -> Option<Result<Value, String>> {
    let text = match read_text(path)? {
        Ok(text) => text,
        Err(why) => return Some(Err(why)),
    };
    let parsed = toml::from_str::<Value>(&text);
    Some(parsed.map_err(|error| {
        let first = error.message().lines().next().unwrap_or_default().to_owned();
        format!("it is not TOML: {first}")
    }))
}
