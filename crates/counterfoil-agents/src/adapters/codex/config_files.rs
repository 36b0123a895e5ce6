//! Finds the environment variables that Codex's configuration files refer to: the keys of providers
//! and servers.

use crate::adapters::record::folder_of;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// The largest file that is read.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// The most files that are read.
const MAX_FILES: usize = 64;
/// The most variables that are passed on.
const MAX_NAMES: usize = 64;

/// The folder of Codex's files.
pub(super) fn folder(env: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    folder_of(env, "CODEX_HOME", ".codex")
}

/// The variables that the configuration file and its profiles refer to. Unreadable files are
/// skipped: Codex itself reports what is wrong with them. Files in the project are ignored, because
/// a repository must not choose which variables an agent sees.
pub(super) fn configured_variables(folder: &Path) -> Vec<String> {
    let mut names = BTreeSet::new();
    for file in files(folder) {
        if let Some(settings) = read(&file) {
            collect_names(&settings, &mut names);
        }
    }
    names.into_iter().take(MAX_NAMES).collect()
}

/// The model that the configuration file chooses.
pub(super) fn model(folder: &Path) -> Option<String> {
    let settings = read(&folder.join("config.toml"))?;
    settings.get("model")?.as_str().filter(|model| !model.is_empty()).map(str::to_owned)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().take(10_000).flatten();
    let mut profiles: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.to_str().is_some_and(|path| path.ends_with(".config.toml")))
        .collect();
    profiles.sort();
    std::iter::once(folder.join("config.toml")).chain(profiles).take(MAX_FILES).collect()
}

fn read(file: &Path) -> Option<Table> {
    // Opening a pipe would block.
    if !std::fs::metadata(file).ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    File::open(file).ok()?.take(MAX_FILE_BYTES + 1).read_to_string(&mut text).ok()?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return None;
    }
    text.parse().ok()
}

/// Adds the variables that the settings refer to.
fn collect_names(settings: &Table, names: &mut BTreeSet<String>) {
    let each = |list: &str| settings.get(list).and_then(Value::as_table).into_iter().flatten();
    for (_, one) in each("model_providers").chain(each("mcp_servers")) {
        for key in ["env_key", "bearer_token_env_var"] {
            names.extend(one.get(key).and_then(name));
        }
        let headers = one.get("env_http_headers").and_then(Value::as_table).into_iter().flatten();
        names.extend(headers.filter_map(|(_, value)| name(value)));
        let passed_on = one.get("env_vars").and_then(Value::as_array).into_iter().flatten();
        names.extend(
            passed_on.filter_map(|entry| name(entry).or_else(|| entry.get("name").and_then(name))),
        );
    }
}

/// A value that is a valid name of a variable.
fn name(value: &Value) -> Option<String> {
    let name = value.as_str().filter(|name| !name.is_empty() && name.len() <= 256)?;
    let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    name.bytes().all(is_valid).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(files: &[(&str, &[u8])]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        configured_variables(folder.path())
    }

    #[test]
    fn the_variables_of_providers_and_servers_are_named() {
        let config = br#"
            model_provider = "gateway"
            [model_providers.gateway]
            env_key = "GATEWAY_KEY"
            env_http_headers = { X-Team = "GATEWAY_TEAM", X-StreamAnomalies = 7 }
            [mcp_servers.issues]
            url = "https://issues.example"
            bearer_token_env_var = "ISSUES_TOKEN"
            [mcp_servers.local]
            command = "x"
            env = { SET = "here" }
            env_vars = ["LOCAL_ONE", { name = "LOCAL_TWO", source = "local" }, 3]
        "#;
        let profile = b"[model_providers.other]\nenv_key = \"OTHER_KEY\"";
        assert_eq!(
            names(&[
                ("config.toml", config),
                ("work.config.toml", profile),
                ("notes.toml", b"x = [")
            ]),
            ["GATEWAY_KEY", "GATEWAY_TEAM", "ISSUES_TOKEN", "LOCAL_ONE", "LOCAL_TWO", "OTHER_KEY"]
        );
    }

    #[test]
    fn files_that_cannot_be_read_name_nothing() {
        assert!(configured_variables(Path::new("/nonexistent/.codex")).is_empty());
        let invalid: [&[u8]; 5] = [
            b"model_providers = 7",
            b"[model_providers.x]\nenv_key = [1]",
            b"[model_providers.x]\nenv_key = \"A B=C*\"",
            b"\xff\xfe",
            b"[model_providers.x",
        ];
        for text in invalid {
            assert!(names(&[("config.toml", text)]).is_empty());
        }
        let long = [b"[model_providers.x]\nenv_key = \"KEY\"\n#".as_slice(), &vec![b'x'; 2 << 20]]
            .concat();
        assert!(names(&[("config.toml", &long)]).is_empty());
    }

    #[test]
    fn the_folder_is_the_one_that_codex_uses() {
        let env = |name: &str| match name {
            "HOME" => Some(OsString::from("/home/x")),
            _ => Some(OsString::new()),
        };
        assert_eq!(folder(&env), Some(PathBuf::from("/home/x/.codex")));
        let env = |name: &str| Some(OsString::from(if name == "HOME" { "/home/x" } else { "/c" }));
        assert_eq!(folder(&env), Some(PathBuf::from("/c")));
        assert_eq!(folder(&|_| None), None);
    }
}
